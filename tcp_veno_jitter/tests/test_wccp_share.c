// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: the paper's formulas in double precision.
 *
 * Tolerance: S, J and r_b are divided by an interval that is up to 1 us too long
 * (1e-3 of the shortest, 1 ms), busy time is cut to a us, and r_b, th_b and
 * dS / S to 1 / 2^16. So r_b is off by e = 2e-3 * r_b + 1e-3 / ms + 2^-16 and
 * dS / S by e * th_b / r_b^2, and what it is cut to.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimators/wccp_share.h"
#include "harness.h"

#define PACKETS_MAX	50

/* dS / S as the paper has it, within our bounds. */
static double oracle_factor(double busy, double threshold, double gain)
{
	double factor = busy > 0 ? (threshold - busy) / busy : 1;

	return gain * fmin(fmax(factor, -0.5), 1);
}

/* Of a flow over 0 (not known) to 20 hops, or any number of them; shares are by hops. */
static u32 random_weight(void)
{
	return wccp_weight(random_u32() % 8 ? random_between(0, 20) : random_u32(), true);
}

static void agrees_with_the_formulas(void)
{
	u32 n, i, pkts, rate, bytes, ms, weight;
	double presence_s, weighted_s, sum_bytes, time_s, busy, factor, flows, slack, h, gets;
	struct wccp_law law;
	struct wccp_share share;
	struct wccp_load load;
	u64 time_ns, busy_ns;

	for (n = 0; n < 100000; n++) {
		memset(&load, 0, sizeof(load));
		presence_s = 0;
		weighted_s = 0;
		sum_bytes = 0;
		pkts = random_between(1, PACKETS_MAX);
		for (i = 0; i < pkts; i++) {
			rate = random_log(31) + 1;
			bytes = random_between(1, 1500);
			ms = random_log(16);
			weight = random_weight();
			wccp_load_note(&load, rate, ms, bytes, weight);
			presence_s += fmin((double)bytes / rate, 2);
			weighted_s += fmin((double)bytes / rate, 2) * weight / WCCP_ONE;
			sum_bytes += bytes;
		}
		time_ns = 1000000ULL + random_log(32);
		busy_ns = time_ns / 65536 * random_between(0, 65536);
		law.threshold = wccp_percent(random_between(10, 99));
		law.gain_percent = random_between(1, 100);
		law.shuffle_percent = random_between(0, 50);
		wccp_share_update(&share, &load, time_ns, busy_ns, &law);

		time_s = time_ns / 1e9;
		busy = (double)busy_ns / time_ns;
		factor = oracle_factor(busy, (double)law.threshold / WCCP_ONE,
				       law.gain_percent / 100.0);
		slack = 0.002 * busy + 0.000001 / time_s + 0.00002;
		slack = busy > slack ? 0.0001 + slack / (busy - slack) /
				       (busy - slack) : 1.5;
		EXPECT(fabs((double)share.factor / WCCP_ONE - factor) <= slack,
		       "%u: factor %f, not %f", n,
		       (double)share.factor / WCCP_ONE, factor);
		flows = fmin(fmax(presence_s / time_s, 0.25), 32768);
		EXPECT(fabs((double)share.flows / WCCP_ONE - flows) <=
		       flows * 0.002 + 0.001, "%u: J %f, not %f", n,
		       (double)share.flows / WCCP_ONE, flows);
		EXPECT(fabs(share.rate - sum_bytes / time_s) <=
		       sum_bytes / time_s * 0.002 + 1, "%u: S %u, not %f", n,
		       share.rate, sum_bytes / time_s);
		h = law.shuffle_percent / 100.0;
		factor = (double)share.factor / WCCP_ONE;
		flows = (double)share.flows / WCCP_ONE;
		EXPECT(fabs((double)share.weight / WCCP_ONE - weighted_s / presence_s) <=
		       0.0001 + 0.00003 / presence_s, "%u: A %f, not %f", n,
		       (double)share.weight / WCCP_ONE, weighted_s / presence_s);
		rate = random_log(31);
		weight = random_weight();
		/* a / A of what each gets */
		gets = share.rate / flows * weight / share.weight;
		factor = fmax(factor, 0) * gets + fmin(factor, 0) * rate +
			 h * (gets - rate);
		slack = 17 + (gets + rate) / WCCP_ONE;
		ms = random_between(1, 2000);
		factor *= fmin(ms / 1000.0 / time_s, 1);
		slack += fabs(factor) * 0.000001 / time_s;
		EXPECT(fabs(wccp_share_feedback(&share, rate, ms, weight) - factor) <=
		       slack, "%u: fb %d, not %f", n,
		       wccp_share_feedback(&share, rate, ms, weight), factor);
	}
}

/* Whatever segments and the channel say, no rate is taken away. */
static void hostile_fields_stay_in_bounds(void)
{
	static const u32 RATES[] = { 0, 1, 2, 0x7fffffff, 0x80000000, ~0U };
	static const u64 TIMES_NS[] = { 1, 999, 1000, 1000000,
					WCCP_TIME_MAX_NS };
	struct wccp_law law = { wccp_percent(92), 100, 50 };
	struct wccp_share share;
	struct wccp_load load;
	u32 n, i, rate;
	u64 time_ns;
	s32 fb;

	for (n = 0; n < 200000; n++) {
		memset(&load, 0, sizeof(load));
		for (i = random_between(0, 20); i; i--)
			wccp_load_note(&load, RATES[random_u32() % 6],
				       random_u32(), random_log(32),
				       random_weight());
		if (n % 16 == 0) {
			load.presence_ns = ~0ULL - random_u32();
			load.bytes = ~0ULL - random_u32();
			load.pkts = ~0U;
			wccp_load_note(&load, 0, 0, ~0U, WCCP_ONE);
		}
		EXPECT(wccp_load_interval_ms(&load) <= WCCP_INTERVAL_MAX_MS ||
		       load.pkts == ~0U, "interval");
		time_ns = TIMES_NS[random_u32() % 5];
		wccp_share_update(&share, &load, time_ns,
				  random_u32() % 2 ? ~0ULL : random_log(32),
				  &law);
		rate = RATES[random_u32() % 6];
		fb = wccp_share_feedback(&share, rate, random_u32(),
					 random_weight());
		EXPECT(share.factor >= -WCCP_ONE / 2 && share.factor <= WCCP_ONE,
		       "factor %d", share.factor);
		EXPECT(fb >= -(s64)rate, "fb %d of %u", fb, rate);
		EXPECT(share.weight >= WCCP_WEIGHT_MIN && share.weight <= WCCP_ONE,
		       "A %u", share.weight);
		EXPECT(share.flows >= WCCP_FLOWS_MIN && share.cut <= WCCP_ONE &&
		       share.raise <= WCCP_RATE_MAX, "J, raise, cut");
	}
}

static void silence_and_noise(void)
{
	const struct wccp_law law = { wccp_percent(92), 100, 0 };
	struct wccp_load load = { 0 };
	struct wccp_share share;

	EXPECT(wccp_load_interval_ms(&load) == WCCP_INTERVAL_MIN_MS, "none");
	wccp_load_note(&load, 10000, 100, 1000, WCCP_ONE);
	wccp_share_update(&share, &load, 100000000, 0, &law);
	EXPECT(share.factor == WCCP_ONE, "0 %%: %d", share.factor);
	EXPECT(share.raise > 9990 && share.raise <= 10000, "%u", share.raise);
	EXPECT(share.cut == 0, "%u", share.cut);
	wccp_share_update(&share, &load, 100000000, 1, &law);
	EXPECT(share.factor == WCCP_ONE, "tiny: %d", share.factor);
	wccp_share_update(&share, &load, 100000000, 100000000, &law);
	EXPECT(fabs(share.factor + 0.08 * WCCP_ONE) < 3,
	       "100 %%: %d", share.factor);
	EXPECT(share.raise == 0 && share.cut == (u32)-share.factor,
	       "100 %%: %u %u", share.raise, share.cut);
}

/*
 * Where the channel is as busy as it should be, three flows of these weights get their
 * share of what they have together.
 */
static void shared_by(const u32 *weights)
{
	const struct wccp_law law = { wccp_percent(50), 50, 10 };
	u32 rates[] = { 1000, 5000, 40000 };
	double sum = weights[0] + weights[1] + weights[2];
	struct wccp_share share;
	struct wccp_load load;
	u32 n, i, packet;

	for (n = 0; n < 200; n++) {
		memset(&load, 0, sizeof(load));
		for (i = 0; i < 3; i++)
			for (packet = 0; packet < rates[i] / 100; packet++)
				wccp_load_note(&load, rates[i], 100, 100, weights[i]);
		wccp_share_update(&share, &load, 1000000000, 500000000, &law);
		for (i = 0; i < 3; i++)
			rates[i] += wccp_share_feedback(&share, rates[i], 1000,
							weights[i]);
	}
	for (i = 0; i < 3; i++)
		EXPECT(fabs(rates[i] / (46000 * weights[i] / sum) - 1) < 0.04,
		       "%u: %u", i, rates[i]);
}

static void shuffling_makes_rates_equal(void)
{
	static const u32 EQUAL[] = { WCCP_ONE, WCCP_ONE, WCCP_ONE };

	shared_by(EQUAL);
}

/* Eight hops get half of what four get, and an eighth of what one gets. */
static void shares_are_by_hops(void)
{
	const u32 by_hops[] = { wccp_weight(8, true), wccp_weight(4, true),
				wccp_weight(1, true) };

	EXPECT(wccp_weight(0, true) == WCCP_ONE && wccp_weight(9, false) == WCCP_ONE &&
	       wccp_weight(255, true) == WCCP_WEIGHT_MIN, "bounds");
	shared_by(by_hops);
}

/* One slow flow over many hops: its own weight takes nothing from it. */
static void alone_the_weight_is_none(void)
{
	const struct wccp_law law = { wccp_percent(92), 50, 10 };
	struct wccp_load load = { 0 }, equal = { 0 };
	struct wccp_share share, plain;
	u32 weight = wccp_weight(15, true), i;

	for (i = 0; i < 10; i++) {
		wccp_load_note(&load, 10000, 100, 1000, weight);
		wccp_load_note(&equal, 10000, 100, 1000, WCCP_ONE);
	}
	wccp_share_update(&share, &load, 1000000000, 500000000, &law);
	wccp_share_update(&plain, &equal, 1000000000, 500000000, &law);
	EXPECT(abs(wccp_share_feedback(&share, 10000, 1000, weight) -
		   wccp_share_feedback(&plain, 10000, 1000, WCCP_ONE)) < 4, "alone");
}

/* A flow is counted once, however many packets it sends at its rate. */
static void flows_are_counted_once(void)
{
	const struct wccp_law law = { wccp_percent(92), 50, 10 };
	struct wccp_share share;
	struct wccp_load load;
	u32 flows, f, i;

	for (flows = 1; flows <= 20; flows++) {
		memset(&load, 0, sizeof(load));
		for (f = 1; f <= flows; f++)
			for (i = 0; i < 10 * f; i++)
				wccp_load_note(&load, f * 10000, 100, 1000,
					       WCCP_ONE);
		wccp_share_update(&share, &load, 1000000000, 500000000, &law);
		EXPECT(fabs((double)share.flows / WCCP_ONE - flows) < 0.001 * flows,
		       "%f, not %u", (double)share.flows / WCCP_ONE, flows);
	}
}

/* An interval of @ms in which others had @others of 8000 bytes; the channel is @busy. */
static bool others_after(struct wccp_others *others, u32 ms, u32 bytes, bool busy)
{
	const struct wccp_law law = { wccp_percent(92), 50, 10 };
	struct wccp_load load = { 0 };
	struct wccp_share share;

	wccp_load_note(&load, 10000, ms, 8000 - bytes, WCCP_ONE);
	wccp_share_update(&share, &load, ms * 1000000ULL,
			  ms * (busy ? 990000ULL : 500000ULL), &law);
	others->bytes = bytes;
	return wccp_others_update(others, &share, &load, false);
}

/*
 * Yielding has to be in vain for 2 s more than twice what it was not; it is
 * forgotten 5 s after they are gone.
 */
static void others_fill_the_channel(void)
{
	const struct wccp_share calm = { .factor = 1, .time_us = 99999 };
	const struct wccp_load load = { .bytes = 1000 };
	struct wccp_others others = { 0 };
	bool stood;
	u32 i;

	for (i = 0; i < 1000; i++) {
		EXPECT(!others_after(&others, 100, 7000, i % 3), "CBR %u", i);
		EXPECT(!others_after(&others, 100, 900, true), "few %u", i);
	}
	others_after(&others, 100, 0, true);
	for (i = 0; i < 19; i++)
		EXPECT(!others_after(&others, 100, 7000, true), "early %u", i);
	others_after(&others, 100, 7000, true);
	for (i = 0; i < 1000; i++)
		EXPECT(others_after(&others, 100, 4000, false), "with us %u", i);
	for (i = 0; i < 49; i++)
		EXPECT(others_after(&others, 100, 0, true), "just left %u", i);
	EXPECT(!others_after(&others, 100, 0, true), "gone");
	/* who stands in a queue need not look how busy the channel is */
	for (i = 0; i < 20; i++) {
		others.bytes = 7000;
		stood = wccp_others_update(&others, &calm, &load, true);
		EXPECT(stood == (i == 19), "queue %u", i);
	}
	/* where next to nothing of that queue is ours, that is known at once */
	memset(&others, 0, sizeof(others));
	others.bytes = 7001;
	EXPECT(wccp_others_update(&others, &calm, &load, true), "at once");
	memset(&others, 0, sizeof(others));
	others.bytes = 7001;
	EXPECT(!wccp_others_update(&others, &calm, &load, false), "no queue");
	others.bytes = ~0ULL;
	others.vain_ms = ~0U;
	others.lasts_ms = ~0U;
	EXPECT(others_after(&others, 17000, 8000, true), "bounds");
}

/* A channel that is full at @full of 2^WCCP_SHIFT: th_b comes to be next to that. */
static void edge_of(u32 full, bool told, u32 low, u32 high)
{
	struct wccp_edge edge = { 0 };
	u32 n, busy = 0, queue = 0;

	for (n = 0; n < 3000; n++) {
		wccp_edge_update(&edge, busy, queue, told, 95);
		/* rates follow th_b; what is above what the channel carries queues */
		busy = wccp_min(edge.threshold, full);
		queue = edge.threshold > full ? wccp_min(queue + 1, 50) :
						queue - wccp_min(queue, 2);
		if (n > 1000)
			EXPECT(edge.threshold >= low && edge.threshold <= high,
			       "%u of %u: %u", n, full, edge.threshold);
	}
}

static void the_edge_is_found(void)
{
	u32 percent, n;
	struct wccp_edge edge = { 0 };

	for (percent = 70; percent <= 98; percent++)
		edge_of(wccp_percent(percent), true,
			wccp_percent(percent) * 97 / 100,
			wccp_percent(percent) * 101 / 100);
	/* nobody says how many wait, and none do here: as it was */
	edge_of(WCCP_ONE, false, wccp_percent(95), wccp_percent(95));
	for (n = 0; n < 100000; n++) {
		wccp_edge_update(&edge, random_log(17), random_log(32),
				 random_u32() % 2, random_between(10, 99));
		EXPECT(edge.threshold >= wccp_percent(10) &&
		       edge.threshold <= wccp_percent(99), "%u", edge.threshold);
	}
}

const struct test wccp_share_tests[] = {
	{ agrees_with_the_formulas,
	  "wccp: a node's share is the paper's within rounding" },
	{ flows_are_counted_once, "wccp: J counts each flow once" },
	{ others_fill_the_channel,
	  "wccp: others are who takes what is yielded, for as long as they are there" },
	{ the_edge_is_found,
	  "wccp: th_b is found where a channel is full, at 70 to 98 %" },
	{ shuffling_makes_rates_equal,
	  "wccp: rates that share a node become equal, their sum stays" },
	{ shares_are_by_hops, "wccp: shares by hops are by 1 / hops" },
	{ alone_the_weight_is_none, "wccp: who is alone gets what it would get" },
	{ silence_and_noise,
	  "wccp: 0 %, 100 % and next to no busyness give the bounds" },
	{ hostile_fields_stay_in_bounds,
	  "wccp: hostile fields and clocks leave fb in bounds" },
	{ NULL, NULL }
};
