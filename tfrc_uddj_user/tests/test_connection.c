// SPDX-License-Identifier: GPL-2.0-only
/* Whole connections in simulated time. */
#include "harness.h"
#include "sim.h"

#include <string.h>

#define RATE_BPS 10e6
#define HEADERS	 42 /* Ethernet, IPv4, UDP */
#define PAYLOAD	 1400
#define FRAME	 (PAYLOAD + TFRC_DATA_HEADER_BYTES + HEADERS)

static struct sim_flow flow[SIM_FLOWS];
/* Three CBR flows of 2 Mb/s: the paper's Fig. 4 */
static const struct sim_cross cbr[3] = {
	{2e6, 1472, 0, 0}, {2e6, 1472, 0, 0}, {2e6, 1472, 0, 0}};
/* The same in the mean, in bursts: each leaves 4, 7 or 10 Mb/s of 10, or 1 */
static const struct sim_cross bursty[3] = {
	{3e6, 1472, 200 * SIM_MS, 100 * SIM_MS},
	{3e6, 1472, 200 * SIM_MS, 100 * SIM_MS},
	{3e6, 1472, 200 * SIM_MS, 100 * SIM_MS}};
#define RESIDUAL_BPS (4e6 * PAYLOAD / FRAME)

static struct sim bottleneck(unsigned int flows,
			     enum tfrc_discrimination discrimination,
			     double loss)
{
	struct sim sim = {
		.path = {.rate_bps = RATE_BPS,
			 .queue_pkts = 50,
			 .delay_ns = 25 * SIM_MS,
			 .loss = loss,
			 .header_bytes = HEADERS},
		.flow = flow,
		.flows = flows,
		.duration = 200 * SIM_SECOND,
		.warmup = 20 * SIM_SECOND,
		.seed = 11,
	};

	memset(flow, 0, sizeof(flow));
	for (unsigned int i = 0; i < flows; i++) {
		flow[i].config.discrimination = discrimination;
		flow[i].payload_bytes = PAYLOAD;
		flow[i].start = i * 33 * SIM_MS;
	}
	return sim;
}

static double jain(const struct sim *sim)
{
	double sum = 0, squares = 0;

	for (unsigned int i = 0; i < sim->flows; i++) {
		sum += sim_goodput(sim, i);
		squares += sim_goodput(sim, i) * sim_goodput(sim, i);
	}
	return sum * sum / (squares * sim->flows);
}

/* The queue's drops, of what the flows sent. */
static double drop_share(const struct sim *sim)
{
	double drops = 0, sent = 0;

	for (unsigned int i = 0; i < sim->flows; i++) {
		drops += (double)sim->flow[i].queue_drops;
		sent += (double)sim->flow[i].sent;
	}
	return drops / sent;
}

/* Nothing that an honest receiver says may be refused. */
static void expect_honest(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->flows; i++) {
		struct tfrc_sender_info info;

		tfrc_sender_get_info(sim->flow[i].sender, &info, sizeof(info));
		EXPECT(info.feedbacks_refused == 0, "flow %u: %llu refused", i,
		       (unsigned long long)info.feedbacks_refused);
		EXPECT(info.loss_event_rate_audited <= 0 ||
			       info.loss_event_rate >=
				       0.5 * info.loss_event_rate_audited,
		       "flow %u: p %g, audited %g", i, info.loss_event_rate,
		       info.loss_event_rate_audited);
	}
}

static void test_fills(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);

	sim_run(&sim);
	EXPECT_NEAR(sim_goodput(&sim, 0), RATE_BPS * PAYLOAD / FRAME, 0.03);
	EXPECT(sim_variation(&sim, 0) < 0.1, "%g", sim_variation(&sim, 0));
	expect_honest(&sim);
	sim_free(&sim);
}

/* Random loss alone: the rate is the equation's, for p of loss events. */
static void test_follows_equation(void)
{
	for (double loss = 0.001; loss < 0.1; loss *= 2) {
		struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, loss);
		double wanted, rate, events;
		struct tfrc_receiver_info info;

		sim.path.rate_bps = 0;
		sim_run(&sim);
		tfrc_receiver_get_info(flow[0].receiver, &info, sizeof(info));
		events = (double)info.loss_events / (double)flow[0].sent;
		rate = sim_goodput(&sim, 0) / 8 / (1 - loss) *
		       (PAYLOAD + TFRC_DATA_HEADER_BYTES) / PAYLOAD;
		wanted = tfrc_equation(PAYLOAD + TFRC_DATA_HEADER_BYTES, 0.05,
				       events);
		EXPECT(rate > 0.7 * wanted && rate < 1.4 * wanted,
		       "loss %g: %g, equation %g", loss, rate, wanted);
		expect_honest(&sim);
		sim_free(&sim);
	}
}

static void test_equal_shares(void)
{
	const enum tfrc_discrimination kinds[] = {TFRC_LOSS_TFRC,
						  TFRC_LOSS_UDDJ};

	for (unsigned int kind = 0; kind < 2; kind++) {
		for (unsigned int n = 2; n <= 8; n *= 2) {
			struct sim sim = bottleneck(n, kinds[kind], 0);

			sim.duration = 400 * SIM_SECOND;
			sim.warmup = 50 * SIM_SECOND;
			sim_run(&sim);
			EXPECT(jain(&sim) >= 0.97, "%u flows of kind %u: %g", n,
			       kind, jain(&sim));
			EXPECT(kinds[kind] == TFRC_LOSS_TFRC ||
				       drop_share(&sim) <= 0.001,
			       "%u flows: %g dropped", n, drop_share(&sim));
			expect_honest(&sim);
			sim_free(&sim);
		}
	}
}

/*
 * Eight that start at other times: their common queue is a long one, and may
 * not be taken for others'.
 */
static void test_eight(void)
{
	for (unsigned int k = 0; k < 8; k++) {
		struct sim sim = bottleneck(8, TFRC_LOSS_UDDJ, 0);

		for (unsigned int i = 0; i < 8; i++)
			flow[i].start = i * (13 + 6 * k) * SIM_MS;
		sim.duration = 120 * SIM_SECOND;
		sim_run(&sim);
		EXPECT(drop_share(&sim) <= 0.001, "%u: %g dropped", k,
		       drop_share(&sim));
		sim_free(&sim);
	}
}

/* The paper's Fig. 4, with bounds of the queue beside it. */
static void test_residual(void)
{
	struct sim plain = bottleneck(1, TFRC_LOSS_TFRC, 0);

	plain.cross = cbr;
	plain.crosses = 3;
	sim_run(&plain);
	sim_free(&plain);
	for (double loss = 0; loss <= 0.081; loss += 0.02) {
		struct sim sim = bottleneck(1, TFRC_LOSS_UDDJ, loss);

		sim.cross = cbr;
		sim.crosses = 3;
		sim_run(&sim);
		EXPECT(sim_goodput(&sim, 0) >= 0.95 * RESIDUAL_BPS * (1 - loss),
		       "loss %g: %.0f", loss, sim_goodput(&sim, 0));
		EXPECT((double)flow[0].queue_drops <=
			       0.001 * (double)flow[0].sent,
		       "loss %g: %llu drops of %llu", loss,
		       (unsigned long long)flow[0].queue_drops,
		       (unsigned long long)flow[0].sent);
		EXPECT(sim.queue_delay_p95_ms < plain.queue_delay_p95_ms,
		       "loss %g: %g ms, tfrc %g", loss, sim.queue_delay_p95_ms,
		       plain.queue_delay_p95_ms);
		expect_honest(&sim);
		sim_free(&sim);
	}
}

/* Others' bursts: of what they leave, the mean of some seeds. */
static void test_bursty(void)
{
	double had = 0, left = 0;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct sim sim = bottleneck(1, TFRC_LOSS_UDDJ, 0.04);

		sim.cross = bursty;
		sim.crosses = 3;
		sim.seed = seed;
		sim_run(&sim);
		had += sim_goodput(&sim, 0);
		left += (RATE_BPS - 8e9 * (double)sim.cross_sent *
					    (1472 + HEADERS) /
					    (double)sim.duration) *
			PAYLOAD / FRAME * 0.96;
		expect_honest(&sim);
		sim_free(&sim);
	}
	EXPECT(had >= 0.88 * left, "%g", had / left);
}

/* Beside flows that fill the queue easing alone would give way to them for
 * ever. */
static void test_beside_tfrc(void)
{
	struct sim sim = bottleneck(4, TFRC_LOSS_UDDJ, 0);
	double uddj, tfrc;

	flow[2].config.discrimination = TFRC_LOSS_TFRC;
	flow[3].config.discrimination = TFRC_LOSS_TFRC;
	sim.duration = 300 * SIM_SECOND;
	sim.warmup = 50 * SIM_SECOND;
	sim_run(&sim);
	uddj = sim_goodput(&sim, 0) + sim_goodput(&sim, 1);
	tfrc = sim_goodput(&sim, 2) + sim_goodput(&sim, 3);
	EXPECT(uddj > 0.4 * tfrc, "uddj %.0f, tfrc %.0f", uddj, tfrc);
	EXPECT(uddj < 1.05 * tfrc, "uddj %.0f, tfrc %.0f", uddj, tfrc);
	sim_free(&sim);
}

static void test_oracle(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_WIRELESS, 0.04);
	struct tfrc_receiver_info info;

	sim.cross = cbr;
	sim.crosses = 3;
	sim_run(&sim);
	tfrc_receiver_get_info(flow[0].receiver, &info, sizeof(info));
	EXPECT_NEAR((double)info.packets_lost_congestion,
		    (double)flow[0].queue_drops, 0.02);
	EXPECT_NEAR((double)info.packets_lost_random,
		    (double)flow[0].random_drops, 0.02);
	EXPECT(sim_goodput(&sim, 0) >= 0.95 * RESIDUAL_BPS * 0.96, "%.0f",
	       sim_goodput(&sim, 0));
	expect_honest(&sim);
	sim_free(&sim);
}

static void test_clocks(void)
{
	const struct sim_clock clocks[] = {
		{.skew = 200e-6, .offset_ns = 1000 * SIM_SECOND},
		{.skew = -200e-6, .offset_ns = 1000 * SIM_SECOND},
		{.step_at = 100 * SIM_SECOND, .step_ns = 5 * SIM_SECOND},
		{.step_at = 100 * SIM_SECOND, .step_ns = 40 * SIM_MS},
		{.step_at = 100 * SIM_SECOND,
		 .step_ns = -40 * SIM_MS,
		 .offset_ns = 1000 * SIM_SECOND},
		{.step_at = 100 * SIM_SECOND,
		 .step_ns = 20 * SIM_MS,
		 .skew = 200e-6},
	};

	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct sim sim = bottleneck(1, TFRC_LOSS_UDDJ, 0.04);

		sim.cross = cbr;
		sim.crosses = 3;
		flow[0].clock = clocks[i];
		sim_run(&sim);
		EXPECT(sim_goodput(&sim, 0) >= 0.95 * RESIDUAL_BPS * 0.96,
		       "clock %u: %.0f", i, sim_goodput(&sim, 0));
		EXPECT((double)flow[0].queue_drops <=
			       0.001 * (double)flow[0].sent,
		       "clock %u: %llu drops", i,
		       (unsigned long long)flow[0].queue_drops);
		sim_free(&sim);
	}
}

static void test_rough_path(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0.01);

	sim.path.reorder = 0.02;
	sim.path.reorder_ns = 30 * SIM_MS;
	sim.path.duplicate = 0.02;
	sim.path.feedback_loss = 0.3;
	sim_run(&sim);
	EXPECT(sim_goodput(&sim, 0) > 0.2e6, "%.0f", sim_goodput(&sim, 0));
	expect_honest(&sim);
	sim_free(&sim);
}

/*
 * Delay that jitters without a queue looks like one: uddj loses what it has
 * over tfrc, but no more than a tenth beyond.
 */
static void test_jitter(void)
{
	for (tfrc_time most = 10; most <= 40; most += 10) {
		double rate[2];

		for (unsigned int kind = 0; kind < 2; kind++) {
			struct sim sim = bottleneck(
				1, kind ? TFRC_LOSS_UDDJ : TFRC_LOSS_TFRC,
				0.01);

			sim.path.jitter_ns = most * SIM_MS;
			sim_run(&sim);
			rate[kind] = sim_goodput(&sim, 0);
			sim_free(&sim);
		}
		EXPECT(rate[1] >= 0.9 * rate[0],
		       "0 to %lld ms: %.0f, tfrc %.0f", (long long)most,
		       rate[1], rate[0]);
	}
}

/* No feedback for a minute: down to nearly nothing, and up again. */
static void test_silence(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);
	double before = 0, during = 0, after = 0;

	sim.path.silent_from = 60 * SIM_SECOND;
	sim.path.silent_until = 120 * SIM_SECOND;
	sim_run(&sim);
	for (unsigned int i = 30; i < 60; i++) {
		before += flow[0].bin[i];
		during += flow[0].bin[i + 60];
		after += flow[0].bin[i + 130];
	}
	EXPECT(during < 0.02 * before, "%g of %g", during, before);
	EXPECT(after > 0.8 * before, "%g of %g", after, before);
	expect_honest(&sim);
	sim_free(&sim);
}

static void test_idle(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);

	flow[0].idle_from = 60 * SIM_SECOND;
	flow[0].idle_until = 120 * SIM_SECOND;
	sim_run(&sim);
	EXPECT(flow[0].bin[90] == 0, "not idle");
	EXPECT(flow[0].bin[125] > 0.7 * flow[0].bin[50], "%g, before %g",
	       flow[0].bin[125], flow[0].bin[50]);
	expect_honest(&sim);
	sim_free(&sim);
}

/*
 * 20 s of data over 10 % loss, a pause, and more: the largest rate allowed from
 * the first answer to the end of the fourth round trip, of the one before the
 * pause.
 */
static double after_a_pause(uint64_t seed, double loss, tfrc_time idle)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, loss);
	const tfrc_time pause = 20 * SIM_SECOND, round_trip = 50 * SIM_MS;
	unsigned int begin = (unsigned int)((pause + idle) / round_trip);
	double after = 0;

	sim.seed = seed;
	sim.bin_ns = round_trip;
	sim.duration = pause + idle + 8 * round_trip;
	sim.warmup = 0;
	flow[0].idle_from = pause;
	flow[0].idle_until = pause + idle;
	sim_run(&sim);
	for (unsigned int i = begin + 1; i < begin + 4; i++)
		after = fmax(after, flow[0].rate[i]);
	sim_free(&sim);
	return after / flow[0].rate[pause / round_trip - 1];
}

static void test_pause(void)
{
	const tfrc_time pauses[] = {300 * SIM_MS, 5 * SIM_SECOND,
				    60 * SIM_SECOND};

	for (unsigned int i = 0; i < 3; i++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			double back = after_a_pause(seed, 0.1, pauses[i]);

			EXPECT(back >= 0.8, "%g s, seed %llu: %g of the rate",
			       (double)pauses[i] * 1e-9,
			       (unsigned long long)seed, back);
		}
	}
}

/* A source of 500 kb/s has 500 kb/s. */
static void test_data_limited(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);

	flow[0].source_rate = 500e3 / 8;
	sim_run(&sim);
	EXPECT_NEAR(sim_goodput(&sim, 0), 500e3, 0.02);
	EXPECT(flow[0].queue_drops == 0, "drops");
	sim_free(&sim);
}

/*
 * A voice each 20 ms, and round trips of 1 ms: three packets after a lost one
 * take 60 of them.
 */
static void test_voice(void)
{
	for (double loss = 0.01; loss < 0.5; loss *= 2) {
		struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, loss);

		flow[0].payload_bytes = 160;
		flow[0].source_rate = 8000;
		sim.path.delay_ns = SIM_MS / 2;
		sim_run(&sim);
		expect_honest(&sim);
		sim_free(&sim);
	}
}

static void test_ends(void)
{
	struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0.3);
	struct tfrc_receiver_info info;

	flow[0].stop = 50 * SIM_SECOND;
	sim_run(&sim);
	tfrc_receiver_get_info(flow[0].receiver, &info, sizeof(info));
	EXPECT(info.fin, "the receiver does not know");
	EXPECT(flow[0].fin_acked_at >= 50 * SIM_SECOND,
	       "the sender does not know");
	sim_free(&sim);
}

static void test_sizes(void)
{
	const size_t sizes[] = {1, 100, 1400, 9000, 65455};

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);

		flow[0].payload_bytes = sizes[i];
		sim_run(&sim);
		EXPECT(sim_goodput(&sim, 0) >
			       0.9 * RATE_BPS * (double)sizes[i] /
				       (double)(sizes[i] + FRAME - PAYLOAD),
		       "%zu bytes: %.0f bit/s", sizes[i], sim_goodput(&sim, 0));
		expect_honest(&sim);
		sim_free(&sim);
	}
}

static void test_round_trips(void)
{
	const tfrc_time delays[] = {SIM_MS / 20, SIM_MS, 250 * SIM_MS,
				    5 * SIM_SECOND};

	for (unsigned int i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		struct sim sim = bottleneck(1, TFRC_LOSS_TFRC, 0);
		struct tfrc_sender_info info;

		sim.path.delay_ns = delays[i];
		sim.duration = (tfrc_time)200 * SIM_SECOND + 200 * delays[i];
		sim_run(&sim);
		tfrc_sender_get_info(flow[0].sender, &info, sizeof(info));
		EXPECT(info.rtt_min_ns >= 2 * delays[i] &&
			       info.rtt_min_ns < 2 * delays[i] + 70 * SIM_MS,
		       "%lld ns", (long long)info.rtt_min_ns);
		/* the queue is far shorter than the longer round trips: as for
		 * TCP */
		EXPECT(sim_goodput(&sim, 0) >
			       (delays[i] < 100 * SIM_MS ? 8e6 : 1e6),
		       "delay %lld ms: %.0f", (long long)(delays[i] / SIM_MS),
		       sim_goodput(&sim, 0));
		expect_honest(&sim);
		sim_free(&sim);
	}
}

/* A packet a minute for a day; and 1 Gb/s. */
static void test_rates(void)
{
	struct sim slow = bottleneck(1, TFRC_LOSS_TFRC, 0), fast;

	flow[0].source_rate = PAYLOAD / 60.0;
	slow.duration = 86400 * SIM_SECOND;
	slow.warmup = 0;
	slow.bin_ns = 60 * SIM_SECOND;
	sim_run(&slow);
	EXPECT(flow[0].sent >= 1438 && flow[0].sent <= 1441, "%llu packets",
	       (unsigned long long)flow[0].sent);
	EXPECT(flow[0].payload_arrived / PAYLOAD >= 1438, "%llu bytes",
	       (unsigned long long)flow[0].payload_arrived);
	expect_honest(&slow);
	sim_free(&slow);

	fast = bottleneck(1, TFRC_LOSS_TFRC, 0);
	fast.path.rate_bps = 1e9;
	fast.path.queue_pkts = 500;
	fast.path.delay_ns = SIM_MS;
	fast.duration = 5 * SIM_SECOND;
	fast.warmup = 2 * SIM_SECOND;
	sim_run(&fast);
	EXPECT(sim_goodput(&fast, 0) > 0.9e9 * PAYLOAD / FRAME, "%.0f",
	       sim_goodput(&fast, 0));
	expect_honest(&fast);
	sim_free(&fast);
}

/* A quarter lost; at 200 Mb/s there is no room to tell of each: nothing may be
 * refused. */
static void test_heavy_loss(void)
{
	for (double rate_bps = 10e6; rate_bps <= 200e6; rate_bps *= 20) {
		struct sim sim = bottleneck(1, TFRC_LOSS_UDDJ, 0.25);

		sim.path.rate_bps = rate_bps;
		sim.path.queue_pkts = (unsigned int)(rate_bps / 2e5);
		sim.duration = 60 * SIM_SECOND;
		sim_run(&sim);
		EXPECT(sim_goodput(&sim, 0) > 0.6 * 10e6, "%.0f bit/s: %.0f",
		       rate_bps, sim_goodput(&sim, 0));
		expect_honest(&sim);
		sim_free(&sim);
	}
}

static void test_hours(void)
{
	struct sim sim = bottleneck(2, TFRC_LOSS_UDDJ, 0.02);

	sim.path.rate_bps = 1e6;
	sim.duration = 3 * 3600 * SIM_SECOND;
	sim.warmup = 60 * SIM_SECOND;
	flow[1].config.discrimination = TFRC_LOSS_TFRC;
	sim_run(&sim);
	EXPECT(sim_goodput(&sim, 0) + sim_goodput(&sim, 1) > 0.8e6,
	       "%.0f + %.0f", sim_goodput(&sim, 0), sim_goodput(&sim, 1));
	expect_honest(&sim);
	sim_free(&sim);
}

static void test_repeatable(void)
{
	uint64_t sent[2];

	for (unsigned int i = 0; i < 2; i++) {
		struct sim sim = bottleneck(3, TFRC_LOSS_UDDJ, 0.02);

		sim_run(&sim);
		sent[i] = flow[0].sent * 1000003 + flow[1].sent * 1009 +
			  flow[2].sent;
		sim_free(&sim);
	}
	EXPECT(sent[0] == sent[1], "two runs differ");
}

const struct test connection_tests[] = {
	{test_fills, "tfrc fills a bottleneck smoothly"},
	{test_follows_equation,
	 "under random loss tfrc sends what the equation says"},
	{test_equal_shares, "2 to 8 equal flows share equally (Jain >= 0.97)"},
	{test_eight,
	 "eight uddj flows drop 0.1 % at most, whenever they start"},
	{test_residual,
	 "uddj has 95 % of the residual bandwidth at 0 to 8 % loss"},
	{test_bursty, "and 0.88 of it beside bursts, at 4 % loss"},
	{test_beside_tfrc, "beside tfrc uddj neither starves nor takes more"},
	{test_oracle,
	 "the oracle tells each loss, and has the residual bandwidth"},
	{test_clocks, "skewed and stepped clocks cost uddj nothing"},
	{test_rough_path,
	 "reordering, duplicates and lost feedback are survived"},
	{test_jitter, "where the delay jitters uddj has 0.9 of tfrc at least"},
	{test_silence, "without feedback it goes quiet, and comes back"},
	{test_idle, "an idle sender comes back"},
	{test_pause, "after a pause at 10 % loss it is back in 4 round trips"},
	{test_data_limited, "a slow source is not slowed down"},
	{test_voice,
	 "packets 20 round trips apart: no honest feedback is refused"},
	{test_ends, "both ends learn of the end, at 30 % loss"},
	{test_sizes, "packets of 1 byte to 64 KB"},
	{test_round_trips, "round trips of 0.1 ms to 10 s"},
	{test_rates, "a packet a minute to 1 Gb/s"},
	{test_heavy_loss,
	 "a quarter lost at speed: no honest feedback is refused"},
	{test_hours, "hours of protocol time"},
	{test_repeatable, "the same seed gives the same run"},
	{0},
};
