// SPDX-License-Identifier: GPL-2.0-only
#include "harness.h"
#include "history.h"
#include "sim.h"

#define RTT_NS (50 * SIM_MS)
#define GAP_NS SIM_MS

static const double weights[8] = {1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2};

/*
 * RFC 5348, 5.4 and 5.5, as the text has them: I[0] is the open interval, I[1]
 * the newest that is closed; K of those.
 */
static double oracle_rate(const double *I, const double *DF, unsigned int k)
{
	double i_tot = 0, w_tot = 0, i_tot0, i_tot1, w_tot0, w_tot1, mean,
	       discount = 1, p0, p1;

	if (!k)
		return 0;
	for (unsigned int i = 1; i <= k; i++) {
		i_tot += I[i] * weights[i - 1] * DF[i];
		w_tot += weights[i - 1] * DF[i];
	}
	mean = i_tot / w_tot;
	if (I[0] > 2 * mean)
		discount = fmax(2 * mean / I[0], 0.25);
	i_tot0 = I[0] * weights[0];
	w_tot0 = weights[0];
	i_tot1 = 0;
	w_tot1 = 0;
	for (unsigned int i = 1; i < k; i++) {
		i_tot0 += I[i] * weights[i] * DF[i] * discount;
		w_tot0 += weights[i] * DF[i] * discount;
	}
	for (unsigned int i = 1; i <= k; i++) {
		i_tot1 += I[i] * weights[i - 1] * DF[i];
		w_tot1 += weights[i - 1] * DF[i];
	}
	p0 = w_tot0 / i_tot0;
	p1 = w_tot1 / i_tot1;
	return fmin(1, fmin(p0, p1));
}

struct oracle {
	double I[9], DF[9];
	unsigned int k;
};

static void oracle_event(struct oracle *o)
{
	double mean = 0, w = 0, discount = 1;

	for (unsigned int i = 1; i <= o->k; i++) {
		mean += o->I[i] * weights[i - 1] * o->DF[i];
		w += weights[i - 1] * o->DF[i];
	}
	/* what the open interval discounts is then kept (5.5) */
	if (o->k && o->I[0] > 2 * mean / w)
		discount = fmax(2 * mean / w / o->I[0], 0.25);
	for (unsigned int i = 8; i > 1; i--) {
		o->I[i] = o->I[i - 1];
		o->DF[i] = o->DF[i - 1] * discount;
	}
	o->I[1] = o->I[0];
	o->DF[1] = 1;
	o->I[0] = 0;
	if (o->k < 8)
		o->k++;
}

static void test_oracle(void)
{
	uint64_t random = 1;

	for (unsigned int run = 0; run < 300; run++) {
		struct tfrc_history h = {0};
		struct oracle o = {0};
		uint64_t seq = 0;

		for (unsigned int event = 0; event < 40; event++) {
			uint64_t length =
				60 + (uint64_t)pow(10, 5 * sim_random(&random));

			for (unsigned int step = 1; step <= 4; step++) {
				o.I[0] = (double)(length * step / 4);
				history_arrived(&h, seq + length * step / 4);
				EXPECT_NEAR(history_rate(&h),
					    oracle_rate(o.I, o.DF, o.k), 1e-12);
			}
			seq += length;
			EXPECT(history_lost(&h, seq, (tfrc_time)seq * GAP_NS,
					    RTT_NS),
			       "no event at %llu", (unsigned long long)seq);
			oracle_event(&o);
			o.I[0] = 1;
			EXPECT_NEAR(history_rate(&h),
				    oracle_rate(o.I, o.DF, o.k), 1e-12);
		}
	}
}

/* Eight intervals of 100 and the open one below the mean: p = 1/100. */
static void test_average(void)
{
	struct tfrc_history h = {0};

	for (unsigned int i = 1; i <= 9; i++)
		history_lost(&h, i * 100, i * 100 * GAP_NS, RTT_NS);
	EXPECT_NEAR(history_rate(&h), 0.01, 1e-12);
	history_arrived(&h, 950);
	EXPECT_NEAR(history_rate(&h), 0.01, 1e-12);
	/* the open one is 200 now: (200 + 5 * 100) / 6 = 116.67, discount not
	 * yet */
	history_arrived(&h, 1100);
	EXPECT_NEAR(history_rate(&h), 6 / 700.0, 1e-12);
	/* 800: DF = 2 * 100 / 800 = 0.25; (800 + 0.25 * 500) / (1 + 0.25 * 5) */
	history_arrived(&h, 1700);
	EXPECT_NEAR(history_rate(&h), 2.25 / 925, 1e-12);
	/* the discount stops at 0.25 */
	history_arrived(&h, 900 + 100000);
	EXPECT_NEAR(history_rate(&h), 2.25 / (100000 + 125), 1e-12);
}

/* Losses within a round trip of the first are one event (5.2). */
static void test_one_event(void)
{
	struct tfrc_history h = {0};
	unsigned int events = 0;

	for (uint64_t seq = 1000; seq <= 1000 + 50; seq++)
		events +=
			history_lost(&h, seq, (tfrc_time)seq * GAP_NS, RTT_NS);
	EXPECT(events == 1, "%u events", events);
	EXPECT(history_lost(&h, 1051, 1051 * GAP_NS, RTT_NS),
	       "a round trip and 1 ms later");
	EXPECT(h.events == 2, "%llu", (unsigned long long)h.events);
}

static void test_run(void)
{
	for (uint64_t length = 1; length < 2000; length = length * 3 / 2 + 1) {
		struct tfrc_history one = {0}, run = {0};
		unsigned int events = 0;

		for (uint64_t i = 0; i < length; i++)
			events += history_lost(&one, 500 + i,
					       (tfrc_time)(500 + i) * GAP_NS,
					       RTT_NS);
		EXPECT(history_lost_run(&run, 500, length, 500 * GAP_NS, GAP_NS,
					RTT_NS) == events,
		       "a run of %llu", (unsigned long long)length);
		EXPECT_NEAR(history_rate(&run), history_rate(&one), 1e-12);
	}
}

/* However long a run that an attacker makes up: few steps, and p stays sane. */
static void test_huge_run(void)
{
	struct tfrc_history h = {0};
	double p;

	history_lost_run(&h, 5, UINT64_C(1) << 60, 5, 1e-3, 1);
	p = history_rate(&h);
	EXPECT(p > 0 && p <= 1, "%g", p);
	EXPECT(h.end == 5 + (UINT64_C(1) << 60), "%llu",
	       (unsigned long long)h.end);
}

static void test_none(void)
{
	struct tfrc_history h = {0};

	history_arrived(&h, 1000000);
	EXPECT(history_rate(&h) == 0, "%g", history_rate(&h));
}

static void test_seed(void)
{
	struct tfrc_history h = {.first = 5000}, run = {.first = 82};

	history_lost(&h, 10, 10, RTT_NS);
	EXPECT_NEAR(history_rate(&h), 1 / 5000.0, 1e-12);
	history_lost(&h, 1010, SIM_SECOND, RTT_NS);
	EXPECT_NEAR(history_rate(&h), 1 / 3000.0, 1e-12);
	/* the first loss may be several events: it is of all the first */
	history_lost_run(&run, 1000, 5, SIM_SECOND, 1.5 * RTT_NS, RTT_NS);
	EXPECT_NEAR(history_rate(&run), (4 + 0.8) / (4 + 0.8 * 82), 1e-12);
}

/* RFC 4828, 4.4: an interval of up to two round trips is divided by its losses.
 */
static void test_small(void)
{
	struct tfrc_history h = {.small = true};

	history_lost(&h, 100, 100 * GAP_NS, RTT_NS);
	history_lost(&h, 102, 102 * GAP_NS, RTT_NS);
	history_lost(&h, 104, 104 * GAP_NS, RTT_NS);
	history_lost(&h, 160, 160 * GAP_NS, RTT_NS);
	EXPECT_NEAR(h.closed[0].packets, 60 / 3.0, 1e-12);
	/* a longer one is not */
	history_lost(&h, 162, 162 * GAP_NS, RTT_NS);
	history_lost(&h, 400, 400 * GAP_NS, RTT_NS);
	EXPECT_NEAR(h.closed[0].packets, 240, 1e-12);
}

const struct test history_tests[] = {
	{test_none, "no loss, no loss event rate"},
	{test_average, "averages and discounts worked out by hand"},
	{test_oracle,
	 "loss interval averages and history discounting are the RFC's"},
	{test_one_event, "losses within a round trip are one event"},
	{test_run, "a run of losses counts as its packets one by one"},
	{test_huge_run, "a run of 2^60 losses takes no time and no harm"},
	{test_seed, "the first interval is replaced, later ones are not"},
	{test_small, "TFRC-SP divides short intervals by their losses"},
	{0},
};
