// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: N = w * (1 - BaseRTT / RTT) in double precision.
 *
 * Tolerance: the estimator rounds down to 1/256 packet, a double has 53 bits
 * and N at most 31, so it is within [oracle - 1, oracle] units, +-1e-6 for the
 * double's own rounding.
 */
#include <math.h>

#include "estimators/veno_backlog.h"
#include "harness.h"

static void expect_backlog(u32 cwnd_pkts, u32 base_rtt_us, u32 rtt_us)
{
	double want = cwnd_pkts * (1 - (double)base_rtt_us / rtt_us) *
		      (1 << VENO_BACKLOG_SHIFT);
	u32 got = veno_backlog(cwnd_pkts, base_rtt_us, rtt_us);
	const double rounding = 1 / 1e6;

	EXPECT(got <= want + rounding && got > want - 1 - rounding,
	       "w %u base %u rtt %u: got %u want %f", cwnd_pkts, base_rtt_us,
	       rtt_us, got, want);
}

static void test_random(void)
{
	u32 i, base_rtt_us, cwnd_pkts;

	for (i = 0; i < 200000; i++) {
		base_rtt_us = random_log(31) + 1;
		cwnd_pkts = random_log(20) + 1;
		expect_backlog(cwnd_pkts, base_rtt_us,
			       random_between(base_rtt_us + 1, ~0U));
		expect_backlog(cwnd_pkts, base_rtt_us,
			       base_rtt_us + 1 + random_log(30));
	}
}

static void test_corners(void)
{
	expect_backlog(1, 1, ~0U);
	expect_backlog(1 << 20, 1, ~0U);
	expect_backlog((1 << VENO_CWND_BITS) - 1, 1, ~0U);
	EXPECT(veno_backlog(~0U, 1, ~0U) ==
	       veno_backlog((1 << VENO_CWND_BITS) - 1, 1, ~0U),
	       "a huge window is cut, not wrapped");
}

static void test_no_backlog(void)
{
	EXPECT(!veno_backlog(100, 0, 1000), "BaseRTT not known");
	EXPECT(!veno_backlog(100, 1000, 1000), "RTT is BaseRTT");
	EXPECT(!veno_backlog(100, 1000, 900), "RTT below BaseRTT");
	EXPECT(!veno_backlog(100, 1000, 0), "RTT not known");
	EXPECT(!veno_backlog(0, 1000, 2000), "no window");
}

/* A queue of q packets on a path of r packets/s: N must say q. */
static void test_known_queue(void)
{
	const double packet_us = 7500, base_us = 120000;
	u32 queue, got, cwnd_pkts;

	for (queue = 1; queue <= 12; queue++) {
		cwnd_pkts = base_us / packet_us + queue;
		got = veno_backlog(cwnd_pkts, base_us,
				   base_us + queue * packet_us);
		EXPECT(fabs(got / 256.0 - queue) < 0.01, "queue %u: N %f",
		       queue, got / 256.0);
	}
}

/* The comparison is the estimate's, but for what that rounds away. */
static void test_reaches(void)
{
	u32 i, cwnd_pkts, queue_us, base_us, n_pkts;
	double backlog;

	for (i = 0; i < 100000; i++) {
		cwnd_pkts = random_log(20) + 1;
		base_us = random_log(24) + 1;
		queue_us = random_log(24);
		n_pkts = random_log(12);
		backlog = (double)cwnd_pkts * queue_us /
			  ((double)base_us + queue_us);
		EXPECT(veno_backlog_reaches(cwnd_pkts, queue_us,
					    base_us + queue_us, n_pkts) ==
		       (backlog >= n_pkts),
		       "%f packets, asked for %u", backlog, n_pkts);
	}
}

const struct test veno_backlog_tests[] = {
	{ test_random, "backlog: random windows and RTTs" },
	{ test_corners, "backlog: largest values do not overflow" },
	{ test_no_backlog, "backlog: 0 where nothing is known or queued" },
	{ test_known_queue, "backlog: counts the packets of a known queue" },
	{ test_reaches, "backlog: reaches n packets without a division" },
	{ NULL, NULL },
};
