// SPDX-License-Identifier: GPL-2.0-only
/* Receivers that lie. An honest one over the same path is what they are held
 * against. */
#include "harness.h"
#include "sim.h"
#include "wire.h"

#include <string.h>

#define BOTTLENECK_BPS 5e6

static size_t no_loss(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.p = 0;
	fb.loss_events = 0;
	return wire_put_feedback(packet, &fb);
}

static size_t hides_holes(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.p = 0;
	fb.holes = 0;
	return wire_put_feedback(packet, &fb);
}

static size_t greedy_rate(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.x_recv = wire_rate(1e9);
	fb.p = 0;
	return wire_put_feedback(packet, &fb);
}

static size_t says_random(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.p = 0;
	fb.flags &= (uint8_t)~WIRE_FEEDBACK_CONGESTED;
	fb.x_recv = wire_rate(1e9);
	for (unsigned int i = 0; i < fb.holes; i++)
		fb.hole[i].random = true;
	return wire_put_feedback(packet, &fb);
}

static size_t waits_long(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.delay_ns = 30 * (uint64_t)SIM_SECOND;
	return wire_put_feedback(packet, &fb);
}

/* Answers for packets that have not come yet. */
static size_t runs_ahead(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	if (fb.number > 5) {
		fb.echo_seq += 2;
		fb.edge = fb.echo_seq + 1;
	}
	return wire_put_feedback(packet, &fb);
}

/* Says the same thing over and over. */
static size_t replays(void *arg, uint8_t *packet, size_t bytes)
{
	static uint8_t first[TFRC_FEEDBACK_MAX_BYTES];
	static size_t first_bytes;
	unsigned int *count = arg;

	if ((*count)++ == 10) {
		memcpy(first, packet, bytes);
		first_bytes = bytes;
	}
	if (*count > 10) {
		memcpy(packet, first, first_bytes);
		return first_bytes;
	}
	return bytes;
}

/* The rate at which a sender floods the bottleneck that feeds this receiver,
 * bit/s. */
static double sent_rate(enum tfrc_discrimination discrimination,
			size_t (*lie)(void *, uint8_t *, size_t),
			struct tfrc_sender_info *info)
{
	static struct sim_flow flow;
	unsigned int count = 0;
	struct sim sim = {
		.path = {.rate_bps = BOTTLENECK_BPS,
			 .queue_pkts = 25,
			 .delay_ns = 20 * SIM_MS,
			 .header_bytes = 42},
		.flow = &flow,
		.flows = 1,
		.duration = 60 * SIM_SECOND,
		.seed = 3,
	};

	flow = (struct sim_flow){.config = {.discrimination = discrimination},
				 .payload_bytes = 1000,
				 .lie = lie,
				 .lie_arg = &count};
	sim_run(&sim);
	tfrc_sender_get_info(flow.sender, info);
	sim_free(&sim);
	return (double)info->bytes_sent * 8 / 60;
}

static void expect_bounded(enum tfrc_discrimination discrimination,
			   const char *what,
			   size_t (*lie)(void *, uint8_t *, size_t),
			   double factor)
{
	struct tfrc_sender_info info;
	double honest = sent_rate(discrimination, NULL, &info);
	double lying = sent_rate(discrimination, lie, &info);

	EXPECT(lying <= factor * honest, "%s: %.0f, honest %.0f bit/s", what,
	       lying, honest);
}

static void test_p(void)
{
	expect_bounded(TFRC_LOSS_TFRC, "p = 0", no_loss, 1.15);
}

static void test_holes(void)
{
	struct tfrc_sender_info info;

	expect_bounded(TFRC_LOSS_TFRC, "no holes", hides_holes, 1.0);
	sent_rate(TFRC_LOSS_TFRC, hides_holes, &info);
	EXPECT(info.feedbacks_refused > 0, "nothing was refused");
}

static void test_rate(void)
{
	expect_bounded(TFRC_LOSS_TFRC, "X_recv of 8 Gb/s", greedy_rate, 1.15);
}

/* Here there is no proof; but more than 30 % random loss is not believed. */
static void test_random(void)
{
	struct tfrc_sender_info info;
	double lying = sent_rate(TFRC_LOSS_UDDJ, says_random, &info);

	EXPECT(lying < BOTTLENECK_BPS / 0.6, "%.0f bit/s into %.0f", lying,
	       BOTTLENECK_BPS);
}

static void test_delay(void)
{
	expect_bounded(TFRC_LOSS_TFRC, "waited 30 s", waits_long, 1.05);
}

static void test_ahead(void)
{
	struct tfrc_sender_info info;

	expect_bounded(TFRC_LOSS_TFRC, "packets that did not come", runs_ahead,
		       0.2);
	sent_rate(TFRC_LOSS_TFRC, runs_ahead, &info);
	EXPECT(info.feedbacks == 5, "%llu accepted",
	       (unsigned long long)info.feedbacks);
}

static void test_replay(void)
{
	struct tfrc_sender_info info;

	expect_bounded(TFRC_LOSS_TFRC, "replays", replays, 0.2);
	sent_rate(TFRC_LOSS_TFRC, replays, &info);
	EXPECT(info.feedbacks == 11, "%llu accepted",
	       (unsigned long long)info.feedbacks);
}

/* Off the path: all is known but the connection, or but the nonces. */
static void test_spoof(void)
{
	const struct tfrc_sender_config config = {.connection_id = 77,
						  .key = {1, 2, 3}};
	struct tfrc_sender *sender = tfrc_sender_new(&config, 0);
	struct wire_feedback fb = {
		.connection_id = 77, .number = 1, .edge = 1, .holes = 0};
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES], header[TFRC_DATA_HEADER_BYTES];
	struct tfrc_sender_info before, after;
	uint64_t random = 1;

	tfrc_sender_packet(sender, 0, 100, true, false, header);
	tfrc_sender_get_info(sender, &before);
	for (unsigned int i = 0; i < 100000; i++) {
		fb.echo_nonce = (uint32_t)(sim_random(&random) * 4294967296.0);
		fb.nonce_sum = fb.echo_nonce;
		fb.connection_id = i % 2 ? 77 : 78;
		EXPECT(tfrc_sender_feedback(sender, SIM_MS, packet,
					    wire_put_feedback(packet, &fb)) < 0,
		       "%u", i);
	}
	tfrc_sender_get_info(sender, &after);
	EXPECT(after.rate == before.rate && after.rtt_ns == 0 &&
		       after.feedbacks_refused == 100000,
	       "it had an effect");
	tfrc_sender_free(sender);
}

const struct test liar_tests[] = {
	{test_p, "who says that p is 0 gains nothing from it"},
	{test_holes, "who hides losses is not listened to"},
	{test_rate, "who claims to receive 8 Gb/s gains nothing from it"},
	{test_random,
	 "who calls all losses random overloads a path by less than 2/3"},
	{test_delay,
	 "who claims to have waited 30 s does not shorten the round trip"},
	{test_ahead, "who answers for what did not come is not listened to"},
	{test_replay, "replayed feedback is not listened to"},
	{test_spoof, "feedback from off the path has no effect"},
	{0},
};
