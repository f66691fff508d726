// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: W(t) = 0.4 * (t - K)^3 + W_max, K = cbrt(W_max * (1 - beta) / 0.4),
 * RFC 9438, in double precision.
 *
 * Tolerance: K is rounded down to 1 ms, so t - K is wrong by at most that, and
 * W by 0.4 * 3 * (t - K)^2 * 0.001 packets for it, and by one packet for its own
 * rounding.
 */
#include <math.h>

#include "estimators/cubic_window.h"
#include "harness.h"

static void expect_window(u32 w_max_pkts, u32 keep_percent, u32 t_ms)
{
	double k_s = cbrt(w_max_pkts * (1 - keep_percent / 100.0) / 0.4);
	double span_s = t_ms / 1000.0 - k_s;
	double want = fmax(0.4 * span_s * span_s * span_s + w_max_pkts, 0);
	double off = 1.000001 + 0.4 * 3 * (fabs(span_s) + 0.001) *
			 (fabs(span_s) + 0.001) * 0.001;
	u32 got = cubic_window_pkts(w_max_pkts, keep_percent, t_ms);

	EXPECT(fabs(got - want) <= off,
	       "W_max %u beta %u t %u: got %u want %f", w_max_pkts,
	       keep_percent, t_ms, got, want);
}

static void test_random(void)
{
	u32 i;

	for (i = 0; i < 200000; i++)
		expect_window(random_log(20), random_between(50, 100),
			      random_between(0, CUBIC_SPAN_MS - 1));
}

static void test_reduction(void)
{
	/* right after the reduction: what it left */
	expect_window(1000, 70, 0);
	expect_window(10, 50, 0);
	EXPECT(cubic_window_pkts(0, 70, 0) == 0, "nothing was there");
	EXPECT(cubic_window_pkts(1000, 100, 0) == 1000, "nothing was taken");
}

static void test_limits(void)
{
	u32 most = cubic_window_pkts(~0U, 100, ~0U);

	EXPECT(most == cubic_window_pkts(CUBIC_W_MAX_PKTS, 100, CUBIC_SPAN_MS),
	       "both are cut, not wrapped: %u", most);
	EXPECT(cubic_window_pkts(~0U, 0, 0) < CUBIC_W_MAX_PKTS,
	       "a long K is not too long");
}

static void test_roots(void)
{
	u64 i;

	for (i = 0; i < 100000; i++) {
		EXPECT(cubic_root(i * i * i) == i, "root of %llu^3", i);
		EXPECT(i == 0 || cubic_root(i * i * i - 1) == i - 1,
		       "root of %llu^3 - 1", i);
	}
}

const struct test cubic_window_tests[] = {
	{ test_random, "cubic: random windows, shares and times" },
	{ test_reduction, "cubic: begins at what the reduction left" },
	{ test_limits, "cubic: largest values are cut, not wrapped" },
	{ test_roots, "cubic: roots are exact" },
	{ NULL, NULL },
};
