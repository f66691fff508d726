// SPDX-License-Identifier: GPL-2.0-only
/* The sender against a receiver that the test plays: RFC 5348, 4. */
#include "harness.h"
#include "nonce.h"
#include "sim.h"
#include "wire.h"

#include <string.h>

#define PAYLOAD (1000 - TFRC_DATA_HEADER_BYTES) /* s = 1000 bytes */
#define S	1000.0
#define RTT	(100 * SIM_MS)
#define RTT_S	0.1

static const struct tfrc_sender_config config = {.connection_id = 1,
						 .packet_bytes = 1000};

/* A sender, and what its receiver knows. */
struct pair {
	struct tfrc_sender *sender;
	tfrc_time now;
	uint64_t number;
	uint64_t next;
	uint32_t nonce_sum;
	bool congested; /* what the next feedback says of the queue */
	uint32_t queue_us;
	bool lost; /* and the newest packet but one, at random as it says */
	struct tfrc_sender_info info;
};

static void open_pair(struct pair *pair, const struct tfrc_sender_config *with)
{
	*pair = (struct pair){.sender =
				      tfrc_sender_new(with, sizeof(*with), 0)};
}

static void send_packets(struct pair *pair, unsigned int count, bool more)
{
	uint8_t header[TFRC_DATA_HEADER_BYTES];
	struct wire_data data;

	while (count--) {
		if (tfrc_sender_next_send(pair->sender) > pair->now)
			pair->now = tfrc_sender_next_send(pair->sender);
		EXPECT(tfrc_sender_packet(pair->sender, pair->now, PAYLOAD,
					  more ? TFRC_MORE : 0, header) == 0,
		       "not sent");
		wire_get_data(header, sizeof(header), &data);
		pair->next = data.seq + 1;
		pair->nonce_sum ^= data.nonce;
	}
}

/* All that was sent has come; feedback says so after a round trip. */
static int feed(struct pair *pair, double x_recv, double p)
{
	struct wire_feedback fb = {
		.connection_id = 1,
		.number = ++pair->number,
		.echo_seq = pair->next - 1,
		.echo_nonce = nonce_of(config.key, pair->next - 1),
		.x_recv = wire_rate(x_recv),
		.p = wire_fraction(p),
		.loss_events = p > 0,
		.edge = pair->next,
		.nonce_sum = pair->nonce_sum,
		.flags = pair->congested ? WIRE_FEEDBACK_CONGESTED : 0,
		.queue_us = pair->queue_us,
	};
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES];
	size_t bytes;
	int error;

	if (pair->lost) {
		fb.holes = 1;
		fb.hole[0] = (struct wire_hole){
			.first = pair->next - 2, .length = 1, .random = true};
		pair->nonce_sum ^= nonce_of(config.key, pair->next - 2);
		fb.nonce_sum = pair->nonce_sum;
	}
	bytes = wire_put_feedback(packet, &fb);

	pair->now += RTT;
	error = tfrc_sender_feedback(pair->sender, pair->now, packet, bytes);
	tfrc_sender_get_info(pair->sender, &pair->info, sizeof(pair->info));
	return error;
}

static void test_initial(void)
{
	struct pair pair;

	open_pair(&pair, &config);
	tfrc_sender_get_info(pair.sender, &pair.info, sizeof(pair.info));
	EXPECT_NEAR(pair.info.rate, S, 1e-9);
	EXPECT(tfrc_sender_next_timer(pair.sender) == 2 * SIM_SECOND,
	       "4.2: 2 s");
	send_packets(&pair, 1, true);
	EXPECT(tfrc_sender_next_send(pair.sender) == SIM_SECOND,
	       "a packet a second");
	EXPECT(feed(&pair, 0, 0) == 0, "refused");
	/* W_init = min(4s, max(2s, 4380)) */
	EXPECT_NEAR(pair.info.rate, 4000 / RTT_S, 1e-9);
	EXPECT_NEAR((double)pair.info.rtt_ns, (double)RTT, 1e-9);
	EXPECT(tfrc_sender_next_timer(pair.sender) == pair.now + 4 * RTT, "4R");
	EXPECT(tfrc_sender_next_send(pair.sender) <= pair.now,
	       "the new rate counts at once");
	tfrc_sender_free(pair.sender);
}

static void test_slow_start(void)
{
	struct pair pair;
	double rate;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	for (unsigned int i = 0; i < 5; i++) {
		rate = pair.info.rate;
		send_packets(&pair, (unsigned int)(rate * RTT_S / S), true);
		feed(&pair, 1e12, 0);
		EXPECT_NEAR(pair.info.rate, 2 * rate,
			    0.6); /* held to what was sent */
		EXPECT(pair.info.rate > rate, "did not grow");
	}
	/* twice of what arrives at most; the set forgets after two round trips
	 * (4.3) */
	for (unsigned int i = 0; i < 4; i++) {
		send_packets(&pair, 20, true);
		feed(&pair, 60000, 0);
	}
	EXPECT_NEAR(pair.info.rate, 120000, 1e-6);
	tfrc_sender_free(pair.sender);
}

static void test_equation(void)
{
	struct pair pair;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	send_packets(&pair, 10, true);
	feed(&pair, 1e9, 0.02);
	EXPECT(pair.info.rate <=
		       tfrc_equation(S, (double)pair.info.rtt_ns * 1e-9, 0.02) *
			       1.000001,
	       "%g", pair.info.rate);
	EXPECT_NEAR(pair.info.rate_equation,
		    tfrc_equation(S, (double)pair.info.rtt_ns * 1e-9, 0.02),
		    1e-6);
	tfrc_sender_free(pair.sender);
}

static void test_silence(void)
{
	struct pair pair;
	double rate;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	rate = pair.info.rate;
	for (unsigned int i = 0; i < 40; i++) {
		send_packets(&pair, 1, true);
		if (tfrc_sender_next_timer(pair.sender) > pair.now)
			pair.now = tfrc_sender_next_timer(pair.sender);
		tfrc_sender_timer(pair.sender, pair.now);
		tfrc_sender_get_info(pair.sender, &pair.info,
				     sizeof(pair.info));
		rate = fmax(rate / 2, S / 64);
		EXPECT_NEAR(pair.info.rate, rate, 1e-9);
	}
	EXPECT_NEAR(pair.info.rate, S / 64, 1e-9); /* t_mbi */
	EXPECT(feed(&pair, 0, 0) == 0, "feedback after silence is refused");
	EXPECT(tfrc_sender_next_send(pair.sender) <= pair.now,
	       "it still waits");
	tfrc_sender_free(pair.sender);
}

/* A short round trip is no reason to count the ms that a host is busy. */
static void test_silence_on_loopback(void)
{
	uint8_t header[TFRC_DATA_HEADER_BYTES];
	struct pair pair;
	tfrc_time from;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	pair.now -= RTT - 100000; /* the answer comes after 0.1 ms */
	feed(&pair, 0, 0);
	from = pair.now;
	while (tfrc_sender_next_timer(pair.sender) <
	       from + 17 * SIM_SECOND / 10) {
		pair.now = tfrc_sender_next_timer(pair.sender);
		tfrc_sender_packet(pair.sender, pair.now, PAYLOAD, TFRC_MORE,
				   header);
		tfrc_sender_timer(pair.sender, pair.now);
	}
	tfrc_sender_get_info(pair.sender, &pair.info, sizeof(pair.info));
	EXPECT(pair.info.nofeedback_expirations > 2 &&
		       pair.info.nofeedback_expirations <= 9,
	       "%llu times in 1.7 s",
	       (unsigned long long)pair.info.nofeedback_expirations);
	tfrc_sender_free(pair.sender);
}

/* 4.4: who sent nothing does not pay for silence, down to the initial rate. */
static void test_idle(void)
{
	struct pair pair;
	double rate;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	rate = pair.info.rate;
	pair.now = tfrc_sender_next_timer(pair.sender);
	tfrc_sender_timer(pair.sender, pair.now);
	EXPECT(tfrc_sender_next_timer(pair.sender) == TFRC_NEVER,
	       "it wakes up for nothing");
	pair.now += 3600 * SIM_SECOND;
	send_packets(&pair, 1, true);
	EXPECT(tfrc_sender_next_timer(pair.sender) == pair.now + 4 * RTT,
	       "no timer");
	tfrc_sender_get_info(pair.sender, &pair.info, sizeof(pair.info));
	EXPECT_NEAR(pair.info.rate, rate, 1e-9);
	tfrc_sender_free(pair.sender);
}

/* A sender without enough data keeps X_recv of better times (4.3, step 4). */
static void test_data_limited(void)
{
	struct pair pair;

	open_pair(&pair, &config);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	for (unsigned int i = 0; i < 3; i++) {
		send_packets(&pair, 10, true);
		feed(&pair, 50000, 0);
	}
	EXPECT(!pair.info.data_limited, "it had data");
	for (unsigned int i = 0; i < 10; i++) {
		send_packets(&pair, 1, false);
		feed(&pair, 5000, 0);
		EXPECT(pair.info.data_limited, "it had none");
	}
	EXPECT(pair.info.rate >= 50000, "%g", pair.info.rate);
	/* what waits after the packet is no part of the time before it */
	send_packets(&pair, 1, true);
	feed(&pair, 5000, 0);
	EXPECT(pair.info.data_limited, "it had none until then");
	tfrc_sender_free(pair.sender);
}

static void test_damping(void)
{
	struct tfrc_sender_config damped = config;
	struct pair pair;
	tfrc_time before;

	damped.options = TFRC_DAMPING;
	open_pair(&pair, &damped);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	send_packets(&pair, 1, true);
	before = tfrc_sender_next_send(pair.sender) - pair.now;
	pair.now += 3 * RTT; /* the round trip is four times what it was */
	feed(&pair, 1e6, 0);
	send_packets(&pair, 1, true);
	EXPECT(pair.info.rate > 0 && before > 0, "rate");
	/* 4.5: R_sqmean = 0.9 sqrt(R) + 0.1 sqrt(4R), X_inst = X * that /
	 * sqrt(4R) */
	EXPECT_NEAR((double)(tfrc_sender_next_send(pair.sender) - pair.now),
		    S / (pair.info.rate * 1.1 / 2) * 1e9,
		    0.05); /* 1 ms is credit */
	tfrc_sender_free(pair.sender);
}

static void test_ceiling(void)
{
	struct tfrc_sender_config limited = config;
	struct pair pair;
	tfrc_time from;

	limited.max_rate = 20000;
	open_pair(&pair, &limited);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	from = pair.now;
	send_packets(&pair, 100, true);
	EXPECT((double)(pair.now - from) >= 97 / 20.0 * 1e9, "%lld ns",
	       (long long)(pair.now - from));
	tfrc_sender_free(pair.sender);
}

/* RFC 4828: as if packets had 1460 bytes, headers taken off, 10 ms apart. */
static void test_small(void)
{
	struct tfrc_sender_config small = config;
	struct pair pair;
	double wanted;

	small.options = TFRC_SMALL_PACKETS;
	open_pair(&pair, &small);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	send_packets(&pair, 10, true);
	feed(&pair, 1e9, 0.05);
	wanted = tfrc_equation(1460, (double)pair.info.rtt_ns * 1e-9, 0.05) *
		 S / (S + 40);
	EXPECT_NEAR(pair.info.rate_equation, wanted, 1e-6);
	send_packets(&pair, 3, true);
	EXPECT(tfrc_sender_next_send(pair.sender) - pair.now >= 9 * SIM_MS,
	       "closer than 10 ms");
	tfrc_sender_free(pair.sender);
}

static void test_sizes(void)
{
	uint8_t header[TFRC_DATA_HEADER_BYTES];
	struct pair pair;

	open_pair(&pair, &config);
	EXPECT(tfrc_sender_packet(pair.sender, 0,
				  TFRC_PACKET_MAX_BYTES -
					  TFRC_DATA_HEADER_BYTES,
				  TFRC_MORE, header) == 0,
	       "the largest");
	EXPECT(tfrc_sender_packet(pair.sender, 0,
				  TFRC_PACKET_MAX_BYTES -
					  TFRC_DATA_HEADER_BYTES + 1,
				  TFRC_MORE, header) == TFRC_E_FORMAT,
	       "one byte more");
	EXPECT(tfrc_sender_packet(pair.sender, 0, SIZE_MAX, TFRC_MORE,
				  header) == TFRC_E_FORMAT,
	       "absurd");
	EXPECT(tfrc_sender_packet(pair.sender, -1, 1, TFRC_MORE, header) ==
		       TFRC_E_FORMAT,
	       "before time began");
	EXPECT(tfrc_sender_packet(pair.sender, 1, 1, TFRC_MORE, header) == 0,
	       "a byte");
	tfrc_sender_free(pair.sender);
	tfrc_sender_free(NULL);
}

/* A round trip with that queue at its end. */
static double eased(struct pair *pair, bool congested, uint32_t queue_us)
{
	pair->congested = congested;
	pair->queue_us = queue_us;
	send_packets(pair, (unsigned int)(pair->info.rate * RTT_S / S), true);
	feed(pair, 1e12, 0);
	return pair->info.rate;
}

/* A pair of the law "ease", with its first feedback. */
static void open_eased(struct pair *pair)
{
	const struct tfrc_sender_config with = {.connection_id = 1,
						.packet_bytes = 1000,
						.discrimination =
							TFRC_LOSS_UDDJ};

	open_pair(pair, &with);
	send_packets(pair, 1, true);
	feed(pair, 0, 0);
}

/* The law "ease": a burst of others is yielded to, and forgotten. */
static void test_ease(void)
{
	struct pair pair;
	double before, during;

	open_eased(&pair);
	for (unsigned int i = 0; i < 5; i++)
		eased(&pair, false, 0);
	EXPECT(pair.info.slow_start, "slow start goes on without a flag");
	before = eased(&pair, true, 4000);
	EXPECT(!pair.info.slow_start, "the first flag ends slow start");
	EXPECT(eased(&pair, true, 4000) < before, "a flag lowers the rate");
	for (unsigned int i = 0; i < 20; i++)
		eased(&pair, false, 4000);
	before = pair.info.rate;
	EXPECT_NEAR(eased(&pair, false, 4000), before + S / RTT_S, 1e-6);
	before = pair.info.rate;
	during = eased(&pair, true, 35000);
	EXPECT(during < 0.6 * before, "30 ms too much, and growing: %g of %g",
	       during, before);
	EXPECT(eased(&pair, true, 200000) > 0.1 * before,
	       "whatever is said of the queue, a part remains");
	eased(&pair, false, 0);
	EXPECT(eased(&pair, false, 0) > 0.8 * before,
	       "back when it is over: %g of %g", pair.info.rate, before);
	tfrc_sender_free(pair.sender);
}

/*
 * Without a loss event X_recv of before is kept over a pause (4.3). The rate is
 * not: it was halved, and doubles again.
 */
static void test_ease_after_a_pause(void)
{
	struct pair pair;
	double before, after;

	open_eased(&pair);
	for (unsigned int i = 0; i < 9; i++)
		eased(&pair, i == 8, 0);
	before = eased(&pair, false, 0);
	while (tfrc_sender_next_timer(pair.sender) != TFRC_NEVER) {
		pair.now = tfrc_sender_next_timer(pair.sender);
		tfrc_sender_timer(pair.sender, pair.now);
	}
	pair.now += 60 * SIM_SECOND;
	send_packets(&pair, 1, true);
	feed(&pair, 1e12, 0);
	/* 4.4: an idle sender keeps twice the initial rate, of 4 packets */
	EXPECT(pair.info.rate <= 4 * 4000 / RTT_S &&
		       pair.info.rate < 0.6 * before,
	       "%g at once, %g before", pair.info.rate, before);
	for (unsigned int i = 0; pair.info.rate < 0.8 * before && i < 6; i++) {
		after = pair.info.rate;
		eased(&pair, false, 0);
		EXPECT(pair.info.rate <= 2.0001 * after &&
			       pair.info.rate > 1.2 * after,
		       "%g after %g", pair.info.rate, after);
	}
	EXPECT(pair.info.rate >= 0.8 * before, "%g after all, %g before",
	       pair.info.rate, before);
	tfrc_sender_free(pair.sender);
}

/*
 * A queue that stays is others', and nothing tells losses from it apart: the
 * rate is what the equation allows for all of them, whatever the receiver calls
 * them.
 */
static void test_others_queue(void)
{
	const struct tfrc_sender_config with = {.connection_id = 1,
						.packet_bytes = 1000,
						.discrimination =
							TFRC_LOSS_UDDJ};
	struct pair pair;
	double wanted = tfrc_equation(S, RTT_S, 0.02);

	open_pair(&pair, &with);
	send_packets(&pair, 1, true);
	feed(&pair, 0, 0);
	for (unsigned int i = 0; i < 4; i++)
		eased(&pair, false, 0);
	for (unsigned int i = 0; i < 60; i++) {
		pair.congested = i % 2;
		pair.queue_us = 60000;
		pair.lost = true;
		send_packets(&pair, 50, true);
		EXPECT(feed(&pair, 1e12, 0) == 0, "refused");
		EXPECT(i < 40 || pair.info.rate < 1.2 * wanted,
		       "round trip %u: %g, for a loss in 50 packets %g", i,
		       pair.info.rate, wanted);
	}
	EXPECT(pair.info.rate > 0.5 * wanted, "%g of %g", pair.info.rate,
	       wanted);
	tfrc_sender_free(pair.sender);
}

const struct test sender_tests[] = {
	{test_initial, "a packet a second, then W_init a round trip (4.2)"},
	{test_slow_start,
	 "slow start doubles, up to twice of what arrives (4.3)"},
	{test_equation, "with loss the equation rules (4.3)"},
	{test_silence,
	 "silence halves the rate down to a packet in 64 s (4.4)"},
	{test_silence_on_loopback,
	 "where the round trip is 0.1 ms, five times a second at most"},
	{test_idle, "an idle sender keeps its initial rate (4.4)"},
	{test_data_limited, "a data-limited sender keeps its limit (4.3)"},
	{test_damping,
	 "damping follows the square root of the round trip (4.5)"},
	{test_ceiling, "the ceiling holds"},
	{test_ease, "uddj yields to a queue and is back when it has gone"},
	{test_ease_after_a_pause, "after a pause it doubles each round trip"},
	{test_others_queue,
	 "beside others' queue it is plain TFRC, for all losses"},
	{test_small, "small packets get what large ones would (RFC 4828)"},
	{test_sizes, "1 byte to 64 KB are sent, more is refused"},
	{0},
};
