// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver's p against an independent one, over patterns of loss drawn at
 * random; and the throughput equation against the table that the kernel had.
 */
#include "harness.h"
#include "reference.h"
#include "sim.h"
#include "wire.h"

#include <string.h>

#define PATTERNS    1200
#define PACKETS_MAX 3000
#define LOOKS	    12 /* at each pattern */

struct pattern {
	double loss;	   /* share of packets after which some are lost */
	double run;	   /* how many, in the mean */
	unsigned int calm; /* packets before the first may be lost */
	double per_rtt;	   /* packets */
	double pause; /* share of packets that come after ten round trips */
	unsigned int rtt_us;
	size_t bytes;
	bool small;
};

static double between(uint64_t *random, double low, double high)
{
	return low * pow(high / low, sim_random(random));
}

static struct pattern draw(uint64_t *random)
{
	return (struct pattern){
		.loss = between(random, 0.002, 0.3),
		.run = between(random, 1, 30),
		.calm = (unsigned int)between(random, 1, 1500),
		.per_rtt = between(random, 0.3, 200),
		.pause = sim_random(random) < 0.3 ? 0.01 : 0,
		.rtt_us = (unsigned int)between(random, 2000, 500000),
		.bytes = (size_t)between(random, 60, 1500),
		.small = sim_random(random) < 0.4,
	};
}

struct listener {
	struct tfrc_receiver *receiver;
	double receive_rate_max;
	bool told; /* a loss */
};

/*
 * Give it packet SEQ; note what it says of X_recv before it says p, or, if it
 * had nothing to say of it before, with p.
 */
static void hear(struct listener *l, const struct pattern *pattern,
		 uint64_t seq, tfrc_time now)
{
	struct wire_data data = {
		.flags = pattern->small ? WIRE_DATA_SMALL : 0,
		.connection_id = 1,
		.seq = seq,
		.send_time_ns = (uint64_t)now,
		.acked_edge = seq,
		.rtt_us = pattern->rtt_us,
		.rtt_sample_us = pattern->rtt_us,
	};
	uint8_t packet[1500] = {0}, out[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_receiver_info info;
	struct wire_feedback fb;
	size_t bytes;

	wire_put_data(packet, &data);
	tfrc_receiver_data(l->receiver, now, now, packet, pattern->bytes, NULL,
			   0);
	tfrc_receiver_get_info(l->receiver, &info, sizeof(info));
	l->told |= info.loss_events > 0;
	bytes = tfrc_receiver_feedback(l->receiver, now, out);
	if (!bytes || wire_get_feedback(out, bytes, &fb) ||
	    (l->told && l->receive_rate_max > 0))
		return;
	if (wire_rate_value(fb.x_recv) > l->receive_rate_max)
		l->receive_rate_max = wire_rate_value(fb.x_recv);
}

/* The largest difference of p over one pattern, of p. */
static double worst_of(const struct pattern *pattern, uint64_t *random,
		       unsigned int *looks)
{
	static struct reference_packet packets[PACKETS_MAX];
	struct listener l = {.receiver = tfrc_receiver_new(NULL, 0)};
	double gap_ns = pattern->rtt_us * 1e3 / pattern->per_rtt, worst = 0;
	unsigned int to_lose = 0, came = 0, since = 0;
	tfrc_time now = SIM_SECOND;

	for (size_t i = 0; i < PACKETS_MAX; i++, since++) {
		struct reference of = {
			.packet = packets,
			.packets = i + 1,
			.rtt_s = pattern->rtt_us * 1e-6,
			.packet_bytes = (double)pattern->bytes,
			.small = pattern->small,
		};
		struct tfrc_receiver_info info;

		now += (tfrc_time)gap_ns;
		if (sim_random(random) < pattern->pause)
			now += pattern->rtt_us * INT64_C(10000);
		if (i > pattern->calm && !to_lose &&
		    sim_random(random) < pattern->loss)
			to_lose =
				(unsigned int)(1 + 2 * pattern->run *
							   sim_random(random));
		packets[i] = (struct reference_packet){
			.lost = to_lose > 0, .time_s = (double)now * 1e-9};
		if (to_lose) {
			to_lose--;
			came = 0;
			continue;
		}
		hear(&l, pattern, i, now);
		if (++came < 4 || since < PACKETS_MAX / LOOKS || !l.told)
			continue;
		since = 0;
		++*looks;
		of.receive_rate_max = l.receive_rate_max;
		tfrc_receiver_get_info(l.receiver, &info, sizeof(info));
		worst = fmax(worst,
			     fabs(info.loss_event_rate / reference_p(&of) - 1));
	}
	tfrc_receiver_free(l.receiver);
	return worst;
}

static void test_patterns(void)
{
	uint64_t random = 5348;
	unsigned int looks = 0;

	for (unsigned int i = 0; i < PATTERNS; i++) {
		struct pattern pattern = draw(&random);
		double worst = worst_of(&pattern, &random, &looks);

		EXPECT(worst < 0.01,
		       "pattern %u: %g off; loss %g, runs %g, %g a round "
		       "trip%s",
		       i, worst, pattern.loss, pattern.run, pattern.per_rtt,
		       pattern.small ? ", small" : "");
	}
	EXPECT(looks > 5 * PATTERNS, "only %u looks", looks);
}

const struct test reference_tests[] = {
	{test_patterns,
	 "p is within 1 % of an independent one over 1200 random patterns"},
	{0},
};
