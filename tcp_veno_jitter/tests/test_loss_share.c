// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loss share: estimators/loss_share.h against the same in double precision, and
 * how often it is wrong about random losses.
 */
#include <math.h>

#include "harness.h"
#include "estimators/loss_share.h"

#define NOISE_UNITS	65536.0

static bool exceeds(double sent, double lost, double share, double allowed)
{
	double expected = sent * share;
	double excess = lost - 2 - floor(allowed) - floor(expected);

	if (sent < LOSS_SHARE_LEAST_PKTS)
		return false;
	return 5 * lost > 2 * sent ||
	       (excess > 0 && excess * excess > floor(18 * expected));
}

static void test_formula(void)
{
	u32 i, shift;

	for (i = 0; i < 100000; i++) {
		struct loss_share ls = { .noise = random_log(16) };

		ls.sent_pkts = random_log(14);
		ls.lost_pkts = random_between(0, ls.sent_pkts);
		shift = random_between(4, 16);
		EXPECT(loss_share_exceeds(&ls, shift) ==
		       exceeds(ls.sent_pkts, ls.lost_pkts,
			       ls.noise / NOISE_UNITS,
			       shift < 16 ? ls.sent_pkts / pow(2, shift) : 0),
		       "%u of %u lost, noise %u, allowed 1/2^%u", ls.lost_pkts,
		       ls.sent_pkts, ls.noise, shift);
	}
}

/* Any counts: the sample stays one, lost ones are part of it. */
static void test_corners(void)
{
	struct loss_share ls = { .noise = 0xffff };
	u32 i;

	for (i = 0; i < 10000; i++) {
		loss_share_add(&ls, random_log(32), random_log(32));
		EXPECT(ls.lost_pkts <= ls.sent_pkts, "%u of %u lost",
		       ls.lost_pkts, ls.sent_pkts);
		loss_share_exceeds(&ls, random_between(0, 40));
		loss_share_hear(&ls, random_log(32), random_log(32),
				random_between(0, LOSS_SHARE_MOST_PKTS));
	}
	loss_share_restart(&ls);
	loss_share_add(&ls, 400000, 4000); /* one in a hundred, whatever fits */
	EXPECT(ls.sent_pkts / 101 <= ls.lost_pkts && ls.lost_pkts <= ls.sent_pkts / 100,
	       "%u of %u lost, not a hundredth", ls.lost_pkts, ls.sent_pkts);
	loss_share_hear(&ls, 10, 10, LOSS_SHARE_MOST_PKTS);
	EXPECT(ls.noise == 0xffff, "all lost: %u", ls.noise);
	loss_share_hear(&ls, 0, 0, LOSS_SHARE_MOST_PKTS);
	EXPECT(ls.noise == 0xffff, "nothing sent: %u", ls.noise);
	loss_share_hear(&ls, 10, 0, LOSS_SHARE_MOST_PKTS);
	EXPECT(ls.noise == 0, "none lost: %u", ls.noise);
}

static u32 random_losses(u32 sent, u32 per_mille)
{
	u32 i, lost = 0;

	for (i = 0; i < sent; i++)
		lost += random_between(1, 1000) <= per_mille;
	return lost;
}

/* Noise that is known is no excess; twice as much and 5 % is one. */
static void test_random_losses(void)
{
	u32 permille, tries, missed, wrong;

	for (permille = 10; permille <= 200; permille += 10) {
		wrong = 0;
		missed = 0;
		for (tries = 0; tries < 1000; tries++) {
			struct loss_share ls = {
				.noise = permille * 65536 / 1000,
			};

			loss_share_add(&ls, 512, random_losses(512, permille));
			wrong += loss_share_exceeds(&ls, LOSS_SHARE_SHIFT);
			loss_share_restart(&ls);
			loss_share_add(&ls, 512,
				       random_losses(512, 2 * permille + 50));
			missed += !loss_share_exceeds(&ls, LOSS_SHARE_SHIFT);
		}
		EXPECT(wrong <= 5 && missed <= 50,
		       "%u/1000: %u of 1000 wrong, %u missed", permille, wrong,
		       missed);
	}
}

static void test_noisy(void)
{
	const struct loss_share ls = { .noise = 65536 / 50 + 1 };

	EXPECT(loss_share_noisy(&ls, 25), "2 %% of two windows of 25");
	EXPECT(!loss_share_noisy(&ls, 24), "2 %% of two windows of 24");
}

const struct test loss_share_tests[] = {
	{ test_formula, "loss share: the test, against double precision" },
	{ test_corners, "loss share: any counts" },
	{ test_random_losses, "loss share: random losses are no excess" },
	{ test_noisy, "loss share: noise in each second window" },
	{ NULL, NULL },
};
