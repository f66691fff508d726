// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: a receiver whose clock is known; its time stamps go through a return
 * path of random delay.
 *
 * Tolerance: time that passed on the estimated clock is within the skew (200
 * ppm), two ticks (both ends are rounded) and 110 ppm (3333 us stands for
 * 10000/3) of the time that passed there.
 */
#include <math.h>

#include "estimators/peer_clock.h"
#include "harness.h"

/* A receiver, its clock and the path back. */
struct peer {
	double tick_us;
	double skew;
	u32 first_ticks;
	u32 return_us;
	double now_us;
	double last_us;
};

static u32 peer_ticks(const struct peer *p)
{
	return p->first_ticks + (u64)(p->now_us * (1 + p->skew) / p->tick_us);
}

static enum peer_clock_result peer_ack(struct peer_clock *pc, struct peer *p,
				       u32 gap_us)
{
	double local_us;

	p->now_us += gap_us;
	/* the return path keeps the order */
	local_us = p->now_us + random_between(0, p->return_us);
	local_us = fmax(local_us, p->last_us);
	p->last_us = local_us;
	return peer_clock_update(pc, peer_ticks(p), 1000 + (u64)local_us);
}

static void run_clock(struct peer p)
{
	struct peer_clock pc = { 0 };
	double from_us, passed_us, tolerance_us;
	u32 from_peer_us, changes = 0;

	while (p.now_us < 3e6)
		peer_ack(&pc, &p, random_log(15));
	EXPECT(peer_clock_known_us(&pc) == (u32)p.tick_us, "after 3 s: %u, is %f",
	       peer_clock_known_us(&pc), p.tick_us);
	from_us = p.now_us;
	from_peer_us = pc.peer_us;
	while (p.now_us < 700e6) {
		changes += peer_ack(&pc, &p, random_log(18)) ==
			   PEER_CLOCK_CHANGED;
		passed_us = p.now_us - from_us;
		tolerance_us = passed_us * 310 / 1e6 + 2 * p.tick_us + 1;
		EXPECT(fabs((u32)(pc.peer_us - from_peer_us) - passed_us) <=
		       tolerance_us, "%f s: %u us", passed_us / 1e6,
		       pc.peer_us - from_peer_us);
	}
	EXPECT(!changes && peer_clock_known_us(&pc) == (u32)p.tick_us,
	       "%u changes, tick %u, is %f", changes, peer_clock_known_us(&pc), p.tick_us);
}

static void test_known_ticks(void)
{
	static const double ticks_us[] = { 1, 1000, 10000 / 3.0, 4000, 10000 };
	static const u32 returns_us[] = { 0, 5000, 50000 };
	struct peer p = { 0 };
	int i, j, ppm;

	for (i = 0; i < 5; i++) {
		for (j = 0; j < 3; j++) {
			for (ppm = -200; ppm <= 200; ppm += 200) {
				p.tick_us = ticks_us[i];
				p.skew = ppm / 1e6;
				p.return_us = returns_us[j];
				p.first_ticks = random_u32();
				run_clock(p);
			}
		}
	}
}

static void test_wrap(void)
{
	struct peer p = { .tick_us = 1, .first_ticks = ~0U - 1000000 };

	run_clock(p);
	p.tick_us = 1000;
	p.first_ticks = ~0U - 2000;
	run_clock(p);
}

/*
 * The nearest in ratio, by logarithms. A bound is rounded to 1 ns, so a
 * thousandth around the middle of two neighbours may go either way.
 */
static void test_nearest(void)
{
	static const double known_us[] = { 1, 1000, 10000 / 3.0, 4000, 10000 };
	double measured_us, left, right;
	int i, n;

	for (n = 0; n < 100000; n++) {
		measured_us = exp2(random_between(0, 1330) / 100.0);
		for (i = 0; i < 3 && measured_us > known_us[i + 1]; i++)
			;
		left = log(measured_us / known_us[i]);
		right = log(known_us[i + 1] / measured_us);
		if (fabs(left - right) < 0.002)
			continue;
		if (left > right)
			i++;
		EXPECT(peer_clock_nearest_us(measured_us * 1000) ==
		       (u32)known_us[i], "%f us", measured_us);
	}
}

/* A return path that grows by 0.4 s while the clock is being learnt. */
static void test_wrong_guess_mended(void)
{
	struct peer p = { .tick_us = 1000 };
	struct peer_clock pc = { 0 };

	while (p.now_us < 20e6) {
		p.now_us += 5000;
		peer_clock_update(&pc, peer_ticks(&p),
				  (u64)(p.now_us + fmin(p.now_us, 400000)));
	}
	EXPECT(peer_clock_known_us(&pc) == 1000, "tick %u", peer_clock_known_us(&pc));
}

static void test_unknown_ticks(void)
{
	static const double ticks_us[] = { 0.01, 100, 500, 976.5625, 2000,
					   20000, 500000, 0 };
	struct peer_clock pc;
	struct peer p;
	u32 i;

	for (i = 0; ticks_us[i] != 0; i++) {
		pc = (struct peer_clock){ 0 };
		p = (struct peer){ .tick_us = ticks_us[i] };
		while (p.now_us < 60e6)
			peer_ack(&pc, &p, 20000);
		EXPECT(!peer_clock_known_us(&pc), "%f us taken for %u us", ticks_us[i],
		       peer_clock_known_us(&pc));
	}
}

static void test_still_clock(void)
{
	struct peer_clock pc = { 0 };
	u32 i;

	for (i = 0; i < 100000; i++)
		peer_clock_update(&pc, 77, 1000 + i * 10000ULL);
	EXPECT(!peer_clock_known_us(&pc) && !pc.peer_us, "tick %u", peer_clock_known_us(&pc));
}

static void test_reordered(void)
{
	struct peer p = { .tick_us = 1000, .first_ticks = ~0U - 500 };
	struct peer_clock pc = { 0 }, before;
	u32 i;

	for (i = 0; i < 1000; i++)
		peer_ack(&pc, &p, 1000);
	before = pc;
	EXPECT(peer_clock_update(&pc, pc.last_ticks - 1, 1001500) ==
	       PEER_CLOCK_OLD, "one tick back");
	EXPECT(peer_clock_update(&pc, pc.last_ticks - 400, 1001500) ==
	       PEER_CLOCK_OLD, "across the wrap");
	EXPECT(pc.peer_us == before.peer_us &&
	       pc.last_ticks == before.last_ticks, "state moved");
	EXPECT(peer_clock_update(&pc, pc.last_ticks, 1001500) ==
	       PEER_CLOCK_OK && pc.peer_us == before.peer_us, "same tick");
}

/* Three hours: a 1 us clock wraps twice, the local time's low half too. */
static void test_idle(void)
{
	static const double ticks_us[] = { 1, 1000 };
	struct peer_clock pc;
	struct peer p;
	u32 i, n;

	for (i = 0; i < 2; i++) {
		pc = (struct peer_clock){ 0 };
		p = (struct peer){ .tick_us = ticks_us[i] };
		for (n = 0; n < 1000; n++)
			peer_ack(&pc, &p, 10000);
		p.now_us += 3 * 3600e6;
		EXPECT(peer_ack(&pc, &p, 1) == PEER_CLOCK_CHANGED, "silence");
		EXPECT(peer_clock_known_us(&pc) == (u32)ticks_us[i], "tick %u",
		       peer_clock_known_us(&pc));
		for (n = 0; n < 60000; n++)
			EXPECT(peer_ack(&pc, &p, 10000) == PEER_CLOCK_OK,
			       "goes on");
		EXPECT(peer_clock_known_us(&pc) == (u32)ticks_us[i], "tick %u",
		       peer_clock_known_us(&pc));
	}
}

/* Silence before anything was learnt must not delay the first look. */
static void test_early_idle(void)
{
	struct peer p = { .tick_us = 1000 };
	struct peer_clock pc = { 0 };
	u32 n;

	peer_ack(&pc, &p, 1000);
	p.now_us += 1200e6;
	for (n = 0; n < 100; n++)
		peer_ack(&pc, &p, 10000);
	EXPECT(peer_clock_known_us(&pc) == 1000, "tick %u", peer_clock_known_us(&pc));
}

/* A receiver may stop its clock, or slow it down, to hide a queue. */
static void test_lagging_clock(void)
{
	static const double ticks_us[] = { 1e12, 1250 };
	struct peer_clock pc;
	u32 i, n, before;
	struct peer p;

	for (i = 0; i < 2; i++) {
		pc = (struct peer_clock){ 0 };
		p = (struct peer){ .tick_us = 1000 };
		for (n = 0; n < 500; n++)
			peer_ack(&pc, &p, 10000);
		EXPECT(peer_clock_known_us(&pc) == 1000, "tick %u", peer_clock_known_us(&pc));
		before = peer_ticks(&p);
		p.tick_us = ticks_us[i];
		p.first_ticks += before - peer_ticks(&p);
		/* 0.5 s and 1/64 are hidden by then: of 8.1 s a fifth */
		for (n = 0; n < 320; n++)
			peer_ack(&pc, &p, 10000);
		for (; n < 30000; n++) {
			peer_ack(&pc, &p, 10000);
			EXPECT(!peer_clock_known_us(&pc), "believed after %u0 ms", n);
		}
	}
}

const struct test peer_clock_tests[] = {
	{ test_known_ticks, "peer clock: known ticks, jitter, +-200 ppm" },
	{ test_wrap, "peer clock: time stamps wrap" },
	{ test_nearest, "peer clock: nearest known tick" },
	{ test_wrong_guess_mended, "peer clock: a wrong first guess is mended" },
	{ test_unknown_ticks, "peer clock: other ticks are not known" },
	{ test_still_clock, "peer clock: a clock that stands is not known" },
	{ test_lagging_clock, "peer clock: one that stops or slows down is found out" },
	{ test_reordered, "peer clock: older time stamps are ignored" },
	{ test_idle, "peer clock: three hours of silence" },
	{ test_early_idle, "peer clock: silence before the first look" },
	{ NULL, NULL },
};
