// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: equation 9 in double precision on times that do not wrap.
 *
 * Tolerance: each update rounds B by at most 1/2 byte/s, and the filter keeps
 * RTT / (dt + RTT) of it, so the errors of all updates sum up to at most
 * (1 + RTT / dt) / 2 bytes/s, with the smallest dt of the trace; 1e-9 of B on
 * top is the double's own rounding.
 */
#include <math.h>
#include <stdlib.h>

#include "estimators/tabe.h"
#include "harness.h"

/* What the trace has been so far, in the terms of equation 9. */
struct oracle {
	double bw_bytes_per_s;
	double bytes;
	double t_us;
	double smallest_us;
	double rtt_us;
};

static void oracle_ack(struct oracle *o, double t_us, double bytes)
{
	double dt_s = (t_us - o->t_us) / 1e6, rtt_s = o->rtt_us / 1e6;

	o->bytes += bytes;
	if (dt_s <= 0)
		return;
	o->bw_bytes_per_s = (rtt_s * o->bw_bytes_per_s + o->bytes) / (dt_s + rtt_s);
	o->bw_bytes_per_s = fmin(o->bw_bytes_per_s, TABE_BW_MAX_BYTES_PER_S - 1);
	o->smallest_us = fmin(o->smallest_us, t_us - o->t_us);
	o->bytes = 0;
	o->t_us = t_us;
}

static void run_trace(u32 rtt_us, u32 start_us, u32 gap_bits, u32 bytes_bits)
{
	struct oracle o = { .t_us = start_us, .smallest_us = 1e18,
			    .rtt_us = rtt_us };
	struct tabe tb = { 0 };
	u64 t_us = start_us;
	u32 i, bytes, back_us;
	double tolerance;

	tabe_update(&tb, start_us, 12345, rtt_us);
	for (i = 0; i < 2000; i++) {
		bytes = random_log(bytes_bits);
		/* one ACK in eight is older than the newest */
		back_us = random_u32() % 8 ? 0 : random_log(10);
		if (!back_us)
			t_us += random_log(gap_bits);
		tabe_update(&tb, (u32)(t_us - back_us), bytes, rtt_us);
		oracle_ack(&o, (double)t_us - back_us, bytes);
		tolerance = (1 + rtt_us / o.smallest_us) / 2 + o.bw_bytes_per_s / 1e9;
		EXPECT(fabs(tb.bw_bytes_per_s - o.bw_bytes_per_s) <= tolerance,
		       "step %u: got %llu want %f +- %f", i,
		       tb.bw_bytes_per_s, o.bw_bytes_per_s, tolerance);
	}
}

static void test_random(void)
{
	u32 i;

	for (i = 0; i < 300; i++)
		run_trace(random_log(24) + 1, random_u32(),
			  random_between(1, 24), random_between(1, 17));
}

static void test_wrap(void)
{
	u32 i;

	for (i = 0; i < 50; i++)
		run_trace(100000, ~0U - random_log(16), 12, 17);
}

static void test_huge(void)
{
	struct tabe tb = { 0 };
	u32 i;

	for (i = 0; i < 100; i++)
		tabe_update(&tb, i, ~0U, ~0U);
	for (i = 0; i < 1000; i++)
		tabe_update(&tb, 100 + i, ~0U, 1);
	EXPECT(tb.bw_bytes_per_s == TABE_BW_MAX_BYTES_PER_S - 1, "limit, got %llu",
	       tb.bw_bytes_per_s);
	EXPECT(tabe_window_pkts(&tb, ~0U, 1) == ~0U, "window limit");
	tabe_update(&tb, 1099, ~0U, 1);
	tabe_update(&tb, 1099, ~0U, 1);
	EXPECT(tb.bytes == TABE_BYTES_MAX, "bytes stay at their limit");
	tabe_update(&tb, 1099 + 0x7fffffffU, 0, 1);
	EXPECT(tb.bw_bytes_per_s < 10000000, "35 minutes of silence: %llu",
	       tb.bw_bytes_per_s);
}

/* A steady path, seen through a clock of coarse ticks. */
static void expect_rate(u32 tick_us, double skew)
{
	const u32 packet = 1500, packet_us = 1250, rtt_us = 90000;
	const double rate_bytes_per_s = packet * 1e6 / packet_us;
	struct tabe tb = { 0 };
	double sum = 0;
	u32 i, t_us;

	for (i = 0; i < 20000; i++) {
		t_us = (u64)(i * (double)packet_us * (1 + skew)) / tick_us * tick_us;
		tabe_update(&tb, t_us, packet, rtt_us);
		if (i >= 10000)
			sum += tb.bw_bytes_per_s;
	}
	EXPECT(fabs(sum / 10000 / rate_bytes_per_s - 1) < 0.02,
	       "tick %u us: %f of the rate", tick_us, sum / 10000 / rate_bytes_per_s);
}

static void test_ticks(void)
{
	static const u32 ticks_us[] = { 1, 1000, 4000, 10000 };
	u32 i;

	for (i = 0; i < 4; i++) {
		expect_rate(ticks_us[i], 0);
		expect_rate(ticks_us[i], 200 / 1e6);
		expect_rate(ticks_us[i], -200 / 1e6);
	}
}

/* The same arrivals, acknowledged one by one or ten at a time. */
static void test_stretch_acks(void)
{
	struct tabe one = { 0 }, ten = { 0 };
	u32 i;

	for (i = 0; i <= 1000; i++) {
		tabe_update(&one, i * 1000, 1500, 50000);
		if (i % 10 == 0)
			tabe_update(&ten, i * 1000, 15000, 50000);
	}
	EXPECT(fabs((double)one.bw_bytes_per_s / ten.bw_bytes_per_s - 1) < 0.001,
	       "one %llu ten %llu", one.bw_bytes_per_s,
	       ten.bw_bytes_per_s);
}

static void test_restart(void)
{
	struct tabe tb = { 0 };
	u64 before_bytes_per_s;
	u32 i;

	for (i = 0; i < 1000; i++)
		tabe_update(&tb, i * 1000, 1500, 50000);
	before_bytes_per_s = tb.bw_bytes_per_s;
	tabe_restart(&tb);
	tabe_update(&tb, 500000000, 1500, 50000);
	EXPECT(tb.bw_bytes_per_s == before_bytes_per_s, "the pause must not count");
	tabe_update(&tb, 500001000, 1500, 50000);
	EXPECT(llabs((long long)(tb.bw_bytes_per_s - before_bytes_per_s)) <= 1,
	       "and the rate goes on");
}

static void test_window(void)
{
	u32 i, rtt_us, mss;
	struct tabe tb = { 0 };
	double want;

	for (i = 0; i < 100000; i++) {
		tb.bw_bytes_per_s = (u64)random_log(32) << random_between(0, 4);
		rtt_us = random_log(25);
		mss = random_between(1, 65535);
		/* rounded down twice: to bytes, then to packets */
		want = floor(tb.bw_bytes_per_s * (rtt_us ? rtt_us : 1.0) / 1e6);
		want = floor(want / mss);
		EXPECT(tabe_window_pkts(&tb, rtt_us, mss) ==
		       fmin(want, 4294967295.0),
		       "B %llu rtt %u mss %u: want %f",
		       tb.bw_bytes_per_s, rtt_us, mss, want);
	}
}

const struct test tabe_tests[] = {
	{ test_random, "tabe: random traces with reordered ACKs" },
	{ test_wrap, "tabe: the receiver's clock wraps" },
	{ test_huge, "tabe: largest values saturate" },
	{ test_ticks, "tabe: 1 us to 10 ms ticks, +-200 ppm, same bandwidth" },
	{ test_stretch_acks, "tabe: ACKs that cover many packets" },
	{ test_restart, "tabe: a pause in sending does not count" },
	{ test_window, "tabe: optimal window, rounded down" },
	{ NULL, NULL },
};
