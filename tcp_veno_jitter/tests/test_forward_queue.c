// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: a path whose queues there and back are known, a receiver's clock with
 * a tick, a skew and an offset that makes it wrap.
 */
#include <math.h>

#include "estimators/forward_queue.h"
#include "harness.h"

#define BASE_THERE_US	20000
#define BASE_BACK_US	20000

/* A path and its receiver's clock. */
struct path {
	double tick_us;
	double skew;
	double offset_us;
	double now_us;
};

/* R as peer_clock.h gives it: microseconds in steps of a tick. */
static u32 path_read(const struct path *p, double at_us)
{
	double local = at_us * (1 + p->skew) + p->offset_us;

	return (u32)(u64)(floor(local / p->tick_us) * p->tick_us);
}

/* Send a packet that waits this long there, and its ACK so long back. */
static u32 path_send(struct forward_queue *fq, struct path *p, u32 there_us,
		     u32 back_us)
{
	u32 sent_us = (u32)(u64)p->now_us;
	u32 arrived_us = path_read(p, p->now_us + BASE_THERE_US + there_us);

	p->now_us += 500;
	return forward_queue_update(fq, arrived_us - sent_us, there_us + back_us,
				    p->tick_us);
}

/* Every 2 s both queues are empty; in between they are anything. */
static void run_path(struct path p)
{
	double tolerance_us = 2.5 * p.tick_us + fabs(p.skew) * 2.1e6 + 2;
	struct forward_queue fq = { 0 };
	u32 there_us, back_us, got_us, i;

	path_send(&fq, &p, 0, 0);
	for (i = 1; i < 400000; i++) {
		there_us = i % 4000 ? random_log(17) : 0;
		back_us = i % 4000 ? random_log(17) : 0;
		got_us = path_send(&fq, &p, there_us, back_us);
		EXPECT(got_us <= there_us + back_us, "above the round trip");
		EXPECT(fabs((double)got_us - there_us) <= tolerance_us,
		       "%u, is %u there and %u back", got_us, there_us,
		       back_us);
	}
}

static void test_clocks(void)
{
	const double ticks[] = { 1, 1000, 4000, 10000 };
	const double skews[] = { 0, 0.0002, -0.0002 };
	struct path path = { .offset_us = 0xfff00000 };
	u32 i, j;

	for (i = 0; i < 4; i++) {
		for (j = 0; j < 3; j++) {
			path.tick_us = ticks[i];
			path.skew = skews[j];
			run_path(path);
		}
	}
}

/* What a tick can hide: less than its length, and of many packets nothing. */
static void test_tick(void)
{
	struct path p = { .tick_us = 1000, .offset_us = 123 };
	u32 i, there_us, back_us, got_us, least_us, true_us;
	struct forward_queue fq = { 0 };
	u32 round;

	for (i = 0; i < 1000; i++, p.now_us += random_between(0, 100))
		path_send(&fq, &p, 0, 0);
	for (round = 0; round < 1000; round++) {
		least_us = ~0U;
		true_us = random_between(0, 10000);
		for (i = 0; i < 200; i++, p.now_us += random_between(0, 100)) {
			there_us = i ? true_us + random_log(13) : true_us;
			there_us = i % 3 ? there_us : true_us;
			back_us = random_log(13);
			got_us = path_send(&fq, &p, there_us, back_us);
			EXPECT(got_us + 1000 > there_us, "%u, is %u", got_us,
			       there_us);
			least_us = got_us < least_us ? got_us : least_us;
		}
		EXPECT(fabs((double)least_us - true_us) <= 100, "%u, is %u",
		       least_us, true_us);
	}
}

/* A clock that becomes known late, with a full queue, hides none of it. */
static void test_late_clock(void)
{
	struct path p = { .tick_us = 1000, .offset_us = 77 };
	struct forward_queue fq = { 0 };
	u32 i;

	for (i = 0; i < 1000; i++)
		EXPECT(path_send(&fq, &p, 60000, 0) > 59000, "hidden");
	forward_queue_restart(&fq);
	for (i = 0; i < 1000; i++)
		EXPECT(path_send(&fq, &p, 60000, 0) > 59000,
		       "hidden after a restart");
}

/* A way back that is busy from the beginning is no queue there. */
static void test_start(void)
{
	struct path p = { .tick_us = 1000, .offset_us = 77 };
	struct forward_queue fq = { 0 };
	u32 i;

	forward_queue_start(&fq, path_read(&p, BASE_THERE_US), 0);
	for (i = 0; i < 1000; i++) {
		EXPECT(path_send(&fq, &p, 0, 8000) <= 1000, "taken for a queue");
		EXPECT(path_send(&fq, &p, 9000, 8000) > 8000, "not seen");
	}
}

/* Of a path that varies V is the mean; of one that does not, none; no value wraps. */
static void test_varies(void)
{
	struct forward_queue fq = { 0 };
	u32 i, sum_us = 0;

	for (i = 0; i < 1000; i++) {
		forward_queue_note_round(&fq, 80000 + random_between(0, 20000),
					 80000);
		if (i >= 100)
			sum_us += forward_queue_varies_us(&fq);
	}
	EXPECT(fabs(sum_us / 900.0 - 10000) < 700, "%u", sum_us / 900);
	for (i = 0; i < 200; i++)
		forward_queue_note_round(&fq, 90000, 90000);
	EXPECT(!forward_queue_varies_us(&fq), "a queue that stands varies");
	for (i = 0; i < 200; i++)
		forward_queue_note_round(&fq, 80000, 90000);
	EXPECT(!forward_queue_varies_us(&fq), "faster than the fastest");
	forward_queue_note_round(&fq, ~0U, 0);
	forward_queue_forget_rounds(&fq);
	EXPECT(!forward_queue_varies_us(&fq), "not forgotten");
	for (i = 0; i < 200; i++)
		forward_queue_note_round(&fq, ~0U, 0);
	EXPECT(forward_queue_varies_us(&fq) <= 0xffff << FORWARD_QUEUE_VARIES_SHIFT &&
	       forward_queue_varies_us(&fq) > 1000000, "wraps");
}

const struct test forward_queue_tests[] = {
	{ test_clocks, "forward queue: ticks, skews, wraps, queues both ways" },
	{ test_tick, "forward queue: a round trip's smallest to 0.1 ms, with a tick of 1 ms" },
	{ test_late_clock, "forward queue: known late, it hides nothing" },
	{ test_start, "forward queue: a way back that was busy at first" },
	{ test_varies, "forward queue: what a delay varies by is no queue that stands" },
	{ NULL, NULL },
};
