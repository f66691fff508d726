// SPDX-License-Identifier: GPL-2.0-only
#include "harness.h"
#include "sim.h"
#include "uddj.h"

#define RTT_NS	(50 * SIM_MS)
#define BASE_NS (20 * SIM_MS)

/* A packet each GAP whose queue is QUEUE; the receiver's clock is SKEW fast,
 * OFFSET off. */
struct train {
	struct uddj u;
	tfrc_time sent;
	tfrc_time gap;
	tfrc_time offset;
	double skew;
};

static void packet(struct train *t, tfrc_time queue)
{
	tfrc_time real = t->sent + BASE_NS + queue;

	uddj_packet(&t->u, t->sent,
		    real + t->offset + (tfrc_time)((double)real * t->skew),
		    RTT_NS + queue);
	t->sent += t->gap;
}

/* PACKETS with a queue that goes from FROM to TO; then the interval ends. */
static bool interval(struct train *t, unsigned int packets, tfrc_time from,
		     tfrc_time to)
{
	for (unsigned int i = 0; i < packets; i++)
		packet(t, from + (to - from) * i / packets);
	return uddj_interval_end(&t->u);
}

static void test_recursion(void)
{
	struct train t = {.gap = 2 * SIM_MS, .offset = -5 * SIM_SECOND};
	const tfrc_time queue[] = {0, 1, 4, 9, 7, 3, 0, 0, 2, 30, 29, 0, 0};

	for (unsigned int i = 0; i < sizeof(queue) / sizeof(queue[0]); i++) {
		packet(&t, queue[i] * SIM_MS);
		EXPECT(fabs(t.u.queue_ns - (double)(queue[i] * SIM_MS)) < 1,
		       "packet %u: %g", i, t.u.queue_ns);
	}
}

/* 2.2: a queue from before the first packet cannot be seen until it drains. */
static void test_initial_queue(void)
{
	struct train t = {.gap = 2 * SIM_MS};

	for (int queue = 10; queue >= 0; queue--)
		packet(&t, queue * SIM_MS);
	EXPECT(t.u.now.busy_out_ns > 0, "the drain was not busy");
	packet(&t, 3 * SIM_MS);
	EXPECT(fabs(t.u.queue_ns - 3e6) < 1, "%g", t.u.queue_ns);
}

static void test_flag(void)
{
	struct train t = {.gap = 2 * SIM_MS};

	EXPECT(!interval(&t, 25, 0, 0), "an idle path");
	EXPECT(!interval(&t, 25, 0, 4 * SIM_MS), "a queue that begins");
	EXPECT(!interval(&t, 25, 4 * SIM_MS, 4 * SIM_MS),
	       "a short queue that stays");
	EXPECT(!interval(&t, 25, 4 * SIM_MS, 12 * SIM_MS),
	       "not above the threshold all the time");
	EXPECT(interval(&t, 25, 12 * SIM_MS, 20 * SIM_MS),
	       "a queue that grows");
	EXPECT(interval(&t, 25, 20 * SIM_MS, 20 * SIM_MS),
	       "a queue that stays");
	EXPECT(!interval(&t, 25, 20 * SIM_MS, 8 * SIM_MS),
	       "a queue that drains");
	EXPECT(!interval(&t, 3, 8 * SIM_MS, 30 * SIM_MS),
	       "too few packets to say");
}

static void test_losses(void)
{
	struct train t = {.gap = 2 * SIM_MS};

	interval(&t, 50, 0, 0);
	EXPECT(!uddj_lost(&t.u), "a loss on an idle path");
	interval(&t, 50, 0, 60 * SIM_MS);
	for (unsigned int i = 0; i < 25; i++)
		packet(&t, 60 * SIM_MS);
	EXPECT(uddj_lost(&t.u), "a loss from a full queue");
	interval(&t, 25, 60 * SIM_MS, 55 * SIM_MS);
	packet(&t, 55 * SIM_MS);
	EXPECT(!t.u.congested && uddj_lost(&t.u),
	       "a loss from one that has just begun to drain");
	interval(&t, 25, 60 * SIM_MS, 20 * SIM_MS);
	interval(&t, 25, 20 * SIM_MS, 22 * SIM_MS);
	packet(&t, 22 * SIM_MS);
	EXPECT(t.u.congested, "it grows, so it is congestion");
	EXPECT(!uddj_lost(&t.u), "but far from full");
}

static double hours_of(struct train *t, double hours, double *worst_ms)
{
	uint64_t random = 5, intervals = (uint64_t)(hours * 3600 / 0.05),
		 flags = 0;

	*worst_ms = 0;
	for (uint64_t i = 0; i < intervals; i++) {
		tfrc_time queue = (tfrc_time)(sim_random(&random) * 2e6);
		double true_ms;

		flags += interval(t, 25, queue, 0);
		packet(t, queue);
		true_ms = (double)queue * 1e-6;
		if (fabs(t->u.queue_ns * 1e-6 - true_ms) > *worst_ms)
			*worst_ms = fabs(t->u.queue_ns * 1e-6 - true_ms);
	}
	return (double)flags;
}

static void test_skew(void)
{
	const double ppm[] = {-200, -50, 0, 50, 200};

	for (unsigned int i = 0; i < 5; i++) {
		struct train t = {.gap = 2 * SIM_MS,
				  .skew = ppm[i] * 1e-6,
				  .offset = 7 * SIM_SECOND};
		double worst_ms, flags = hours_of(&t, 0.5, &worst_ms);

		EXPECT(flags == 0, "%g ppm: %g flags in 36000 idle round trips",
		       ppm[i], flags);
		EXPECT(fabs(t.u.skew.ratio * 1e6 - ppm[i]) < 2,
		       "%g ppm taken for %g", ppm[i], t.u.skew.ratio * 1e6);
		EXPECT(worst_ms < 3, "%g ppm: q is %g ms off", ppm[i],
		       worst_ms);
		interval(&t, 25, 0, 20 * SIM_MS);
		EXPECT(interval(&t, 25, 20 * SIM_MS, 30 * SIM_MS),
		       "%g ppm: blind", ppm[i]);
	}
}

/* After a step it may be wrong for a few round trips, not longer. */
static void test_step(void)
{
	const tfrc_time steps[] = {-SIM_SECOND, -30 * SIM_MS, 30 * SIM_MS,
				   SIM_SECOND, 60 * SIM_SECOND};

	for (unsigned int i = 0; i < 5; i++) {
		struct train t = {.gap = 2 * SIM_MS};
		double worst_ms;

		hours_of(&t, 0.01, &worst_ms);
		t.offset += steps[i];
		for (unsigned int rtt = 0; rtt < 10; rtt++)
			interval(&t, 25, SIM_MS, 0);
		EXPECT(!t.u.congested, "step of %lld ms: still congested",
		       (long long)(steps[i] / SIM_MS));
		EXPECT(t.u.queue_ns < 6e6, "step of %lld ms: q %g",
		       (long long)(steps[i] / SIM_MS), t.u.queue_ns);
		interval(&t, 25, 0, 20 * SIM_MS);
		EXPECT(interval(&t, 25, 20 * SIM_MS, 30 * SIM_MS),
		       "step of %lld ms: blind",
		       (long long)(steps[i] / SIM_MS));
	}
}

const struct test uddj_tests[] = {
	{test_recursion, "q follows the queue through (7) and (8)"},
	{test_initial_queue,
	 "a queue from before the first packet is found when it drains"},
	{test_flag,
	 "the flag is set for a queue that stays or grows, and for no other"},
	{test_losses,
	 "losses from a full queue are congestion, others are not"},
	{test_skew, "skews up to 200 ppm are found and taken off"},
	{test_step, "a clock step is over after a few round trips"},
	{0},
};
