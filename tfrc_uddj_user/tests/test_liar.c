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

/* Marks each hole as random: plain TFRC does not ask. */
static size_t marks_random(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	fb.p = 0;
	fb.loss_events = 0;
	for (unsigned int i = 0; i < fb.holes; i++)
		fb.hole[i].random = true;
	return wire_put_feedback(packet, &fb);
}

/* Adds to t_delay what ARG says, ns. */
static size_t adds_delay(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	wire_get_feedback(packet, bytes, &fb);
	fb.delay_ns += *(const uint64_t *)arg;
	return wire_put_feedback(packet, &fb);
}

/* The same, but each second time only. */
static size_t adds_at_times(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	wire_get_feedback(packet, bytes, &fb);
	return fb.number % 2 ? bytes : adds_delay(arg, packet, bytes);
}

/* Adds to t_delay what ARG says, ns, and answers only now and then. */
static size_t adds_rarely(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	wire_get_feedback(packet, bytes, &fb);
	return fb.number % 4 ? 0 : adds_delay(arg, packet, bytes);
}

/* Tells that share of p: as little as is let pass, or seems to be. */
static size_t shaves_p(void *arg, uint8_t *packet, size_t bytes)
{
	struct wire_feedback fb;

	wire_get_feedback(packet, bytes, &fb);
	fb.p = wire_fraction(*(const double *)arg * wire_fraction_value(fb.p));
	return wire_put_feedback(packet, &fb);
}

/* Good news from before the first loss, under new numbers. */
static size_t renumbers(void *arg, uint8_t *packet, size_t bytes)
{
	static struct wire_feedback good;
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	if (!fb.loss_events) {
		good = fb;
		return bytes;
	}
	good.number = fb.number;
	return wire_put_feedback(packet, &good);
}

/* Goes on to echo, but leaves the fate of what was lost open. */
static size_t keeps_edge(void *arg, uint8_t *packet, size_t bytes)
{
	static struct wire_feedback good;
	struct wire_feedback fb;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	if (!fb.loss_events) {
		good = fb;
		return bytes;
	}
	fb.p = 0;
	fb.loss_events = 0;
	fb.holes = 0;
	fb.edge = good.edge;
	fb.nonce_sum = good.nonce_sum;
	return wire_put_feedback(packet, &fb);
}

/* Echoes what came, but of losses tells only what is 15 packets old. */
static size_t trails(void *arg, uint8_t *packet, size_t bytes)
{
	static struct wire_feedback told[16];
	struct wire_feedback fb, old;

	(void)arg;
	wire_get_feedback(packet, bytes, &fb);
	if (fb.number == 1)
		memset(told, 0, sizeof(told));
	told[fb.number % 16] = fb;
	old = fb;
	for (unsigned int i = 0; i < 16; i++)
		if (told[i].edge && told[i].edge < old.edge &&
		    told[i].edge + 15 >= fb.echo_seq)
			old = told[i];
	old.number = fb.number;
	old.echo_seq = fb.echo_seq;
	old.echo_nonce = fb.echo_nonce;
	old.delay_ns = fb.delay_ns;
	old.x_recv = fb.x_recv;
	return wire_put_feedback(packet, &old);
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

/* The paths that they lie over. */
struct place {
	double rate_bps;
	double loss;
};

static const struct place bottleneck = {BOTTLENECK_BPS, 0};
static const struct place narrow = {3e6, 0};
static const struct place lossy = {50e6, 0.01};
static const struct place lossier = {50e6, 0.04};
static const struct place lossiest = {50e6, 0.2};

static uint64_t sim_seed = 3;

/* A minute of one FLOW there. */
static struct sim sim_at(const struct place *place, struct sim_flow *flow,
			 uint64_t seed)
{
	return (struct sim){
		.path = {.rate_bps = place->rate_bps,
			 .loss = place->loss,
			 .queue_pkts = 25,
			 .delay_ns = 20 * SIM_MS,
			 .header_bytes = 42},
		.flow = flow,
		.flows = 1,
		.duration = 60 * SIM_SECOND,
		.seed = seed,
	};
}

/* What a sender sends there, bit/s. */
static double sent_over(const struct place *place,
			enum tfrc_discrimination discrimination,
			size_t (*lie)(void *, uint8_t *, size_t), void *arg,
			struct tfrc_sender_info *info)
{
	static struct sim_flow flow;
	struct sim sim = sim_at(place, &flow, sim_seed);

	flow = (struct sim_flow){.config = {.discrimination = discrimination},
				 .payload_bytes = 1000,
				 .lie = lie,
				 .lie_arg = arg};
	sim_run(&sim);
	tfrc_sender_get_info(flow.sender, info, sizeof(*info));
	sim_free(&sim);
	return (double)info->bytes_sent * 8 / 60;
}

/* The rate at which a sender floods the bottleneck that feeds this receiver,
 * bit/s. */
static double sent_rate(enum tfrc_discrimination discrimination,
			size_t (*lie)(void *, uint8_t *, size_t),
			struct tfrc_sender_info *info)
{
	unsigned int count = 0;

	return sent_over(&bottleneck, discrimination, lie, &count, info);
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

#define LIAR_MAX 1.2

/* Nobody gets more of plain TFRC than that by lying. */
static void expect_no_gain(const struct place *place, const char *what,
			   size_t (*lie)(void *, uint8_t *, size_t), void *arg)
{
	struct tfrc_sender_info info;
	double honest = sent_over(place, TFRC_LOSS_TFRC, NULL, NULL, &info);
	double lying = sent_over(place, TFRC_LOSS_TFRC, lie, arg, &info);

	EXPECT(lying <= LIAR_MAX * honest,
	       "%s: %.2f of the honest rate, %.2f Mbit/s", what, lying / honest,
	       lying * 1e-6);
}

static void test_random_bits(void)
{
	struct tfrc_sender_info info;

	expect_no_gain(&narrow, "random", marks_random, NULL);
	expect_no_gain(&lossy, "random", marks_random, NULL);
	expect_no_gain(&lossier, "random", marks_random, NULL);
	sent_over(&lossy, TFRC_LOSS_TFRC, marks_random, NULL, &info);
	EXPECT(info.packets_lost_random == 0, "%llu called random",
	       (unsigned long long)info.packets_lost_random);
}

static void test_added_delay(void)
{
	const struct place *const places[] = {&lossy, &lossier, &narrow};

	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int share = 50; share <= 98; share += 6) {
			/* of the 40 ms that a round trip takes without queue */
			uint64_t ns = share * (uint64_t)SIM_MS * 40 / 100;

			expect_no_gain(places[i], "t_delay", adds_delay, &ns);
			expect_no_gain(places[i], "t_delay, at times",
				       adds_at_times, &ns);
		}
	}
}

/*
 * What is sent in the second half by who had a packet now and then in the
 * first, where the gap to the next packet does not bound t_delay.
 */
static double sent_after_calm(const struct place *place,
			      size_t (*lie)(void *, uint8_t *, size_t),
			      void *arg)
{
	static struct sim_flow flow;
	struct sim sim = sim_at(place, &flow, 3);
	double sent = 0;

	flow = (struct sim_flow){.payload_bytes = 1000,
				 .source_rate = 5000,
				 .slow_until = 30 * SIM_SECOND,
				 .lie = lie,
				 .lie_arg = arg};
	sim_run(&sim);
	for (unsigned int i = 30; i < flow.bins; i++)
		sent += flow.bin[i];
	sim_free(&sim);
	return sent * 8 / 30;
}

static void test_calm(void)
{
	const struct place *const places[] = {&lossy, &lossier, &narrow};

	for (unsigned int i = 0; i < 3; i++) {
		double honest = sent_after_calm(places[i], NULL, NULL);

		for (unsigned int share = 50; share <= 98; share += 12) {
			uint64_t ns = share * (uint64_t)SIM_MS * 40 / 100;
			double lying =
				sent_after_calm(places[i], adds_delay, &ns);

			EXPECT(lying <= LIAR_MAX * honest,
			       "place %u, %u %%: %.2f of the honest rate", i,
			       share, lying / honest);
			lying = sent_after_calm(places[i], adds_rarely, &ns);
			EXPECT(lying <= LIAR_MAX * honest,
			       "place %u, %u %%, rarely: %.2f of the honest rate", i,
			       share, lying / honest);
		}
	}
}

static void test_shaved_p(void)
{
	const double shares[] = {0.91, 0.975};

	for (unsigned int i = 0; i < 2; i++) {
		double share = shares[i], honest = 0, lying = 0;
		struct tfrc_sender_info info;

		expect_no_gain(&lossy, "p", shaves_p, &share);
		expect_no_gain(&lossier, "p", shaves_p, &share);
		expect_no_gain(&narrow, "p", shaves_p, &share);
		/* a packet or two a round trip is left there: one seed may be
		 * any rate */
		for (sim_seed = 1; sim_seed <= 6; sim_seed++) {
			honest += sent_over(&lossiest, TFRC_LOSS_TFRC, NULL,
					    NULL, &info);
			lying += sent_over(&lossiest, TFRC_LOSS_TFRC, shaves_p,
					   &share, &info);
		}
		sim_seed = 3;
		EXPECT(lying <= LIAR_MAX * honest,
		       "%g of p at 20 %%: %.2f of the honest rate", share,
		       lying / honest);
	}
}

static void test_old_news(void)
{
	double honest = 0, lying = 0;

	expect_no_gain(&lossy, "renumbered", renumbers, NULL);
	expect_no_gain(&narrow, "renumbered", renumbers, NULL);
	expect_no_gain(&lossy, "edge kept", keeps_edge, NULL);
	expect_no_gain(&narrow, "edge kept", keeps_edge, NULL);
	expect_no_gain(&lossy, "told late", trails, NULL);
	expect_no_gain(&narrow, "told late", trails, NULL);
	for (sim_seed = 1; sim_seed <= 6; sim_seed++) {
		struct tfrc_sender_info info;

		honest +=
			sent_over(&lossiest, TFRC_LOSS_TFRC, NULL, NULL, &info);
		lying += sent_over(&lossiest, TFRC_LOSS_TFRC, trails, NULL,
				   &info);
		EXPECT(info.feedbacks_refused == 0, "%llu refused",
		       (unsigned long long)info.feedbacks_refused);
	}
	sim_seed = 3;
	EXPECT(lying <= LIAR_MAX * honest,
	       "told late at 20 %%: %.2f of the honest rate", lying / honest);
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

/* An observer on the path, who has the nonces, uses up all numbers. */
static void test_number(void)
{
	const struct tfrc_sender_config config = {.connection_id = 77,
						  .key = {1, 2, 3}};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct wire_feedback fb = {.connection_id = 77};
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES], header[TFRC_DATA_HEADER_BYTES];
	struct wire_data data;

	for (uint64_t seq = 0; seq < 3; seq++) {
		tfrc_sender_packet(sender, (tfrc_time)seq * SIM_MS, 100,
				   TFRC_MORE, header);
		wire_get_data(header, sizeof(header), &data);
		fb.number = seq == 1 ? UINT64_MAX : seq + 1;
		fb.echo_seq = seq;
		fb.echo_nonce = data.nonce;
		fb.edge = seq + 1;
		fb.nonce_sum ^= data.nonce;
		EXPECT(tfrc_sender_feedback(
			       sender, (tfrc_time)(seq + 10) * SIM_MS, packet,
			       wire_put_feedback(packet, &fb)) == 0,
		       "number %llu is refused", (unsigned long long)fb.number);
		EXPECT(tfrc_sender_feedback(
			       sender, (tfrc_time)(seq + 11) * SIM_MS, packet,
			       wire_put_feedback(packet, &fb)) < 0,
		       "a replay is not refused");
	}
	tfrc_sender_free(sender);
}

/* Off the path: all is known but the connection, or but the nonces. */
static void test_spoof(void)
{
	const struct tfrc_sender_config config = {.connection_id = 77,
						  .key = {1, 2, 3}};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct wire_feedback fb = {
		.connection_id = 77, .number = 1, .edge = 1, .holes = 0};
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES], header[TFRC_DATA_HEADER_BYTES];
	struct tfrc_sender_info before, after;
	uint64_t random = 1;

	tfrc_sender_packet(sender, 0, 100, TFRC_MORE, header);
	tfrc_sender_get_info(sender, &before, sizeof(before));
	for (unsigned int i = 0; i < 100000; i++) {
		fb.echo_nonce = (uint32_t)(sim_random(&random) * 4294967296.0);
		fb.nonce_sum = fb.echo_nonce;
		fb.connection_id = i % 2 ? 77 : 78;
		EXPECT(tfrc_sender_feedback(sender, SIM_MS, packet,
					    wire_put_feedback(packet, &fb)) < 0,
		       "%u", i);
	}
	tfrc_sender_get_info(sender, &after, sizeof(after));
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
	{test_random_bits,
	 "who calls losses random where nobody asked gains nothing from it"},
	{test_added_delay, "who adds half to nearly all of the round trip to "
			   "t_delay gains < 1.2"},
	{test_calm, "who does so while there is little to send gains < 1.2 later"},
	{test_shaved_p, "who tells a little less of p gains < 1.2"},
	{test_old_news,
	 "old news under new numbers, or losses left open, gain nothing"},
	{test_number, "a feedback number of 2^64-1 does not end a connection"},
	{test_ahead, "who answers for what did not come is not listened to"},
	{test_replay, "replayed feedback is not listened to"},
	{test_spoof, "feedback from off the path has no effect"},
	{0},
};
