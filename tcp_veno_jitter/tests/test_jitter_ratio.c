// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: the whole trace is kept (times that do not wrap, in doubles), and
 * equation 7 is computed from its two ends, equation 8 from the list of
 * samples.
 *
 * Tolerance: Jr is one division rounded toward 0, so 2^-24; a Jr below that is
 * 0. The weight is cut at most 64 times by 2^-24 and multiplies a step of at
 * most 2, so an update of sjr is off by less than 2^-24 * 129. What is left of
 * an error shrinks by 1 - a, so all of them sum up to 2^-24 * 129 / a.
 */
#include <math.h>
#include <string.h>

#include "estimators/jitter_ratio.h"
#include "harness.h"

#define TRACE_PKTS	4000
#define UNIT		(1.0 / JITTER_RATIO_ONE)

/* sent and arrived (as its clock shows it) of each packet, us */
static double sent[TRACE_PKTS], arrived[TRACE_PKTS];

/* What was derived from the trace so far. */
struct oracle {
	int first;
	int looked;
	double jr;
	double sjr;
};

static double clip(double ratio)
{
	return fmax(-1, fmin(1, ratio));
}

/* Does packet n end the span? Equation 7 and the resolution rule. */
static bool oracle_packet(struct oracle *o, int n, u32 w, u32 m, double tick_us,
			  double a)
{
	double span_us = arrived[n] - arrived[o->first];
	double d_us = span_us - (sent[n] - sent[o->first]);
	bool shows;

	if (sent[n] < sent[o->first] || span_us < 0 ||
	    fmax(span_us, span_us - d_us) >= 268435456.0) {
		o->first = n;
		o->looked = n;
		return false;
	}
	if (n - o->looked < (double)m * w || span_us <= 0)
		return false;
	o->looked = n;
	shows = fabs(d_us) / tick_us >= 2;
	if (!shows && 2 * tick_us / span_us > 1 / (2.0 * w))
		return false;
	o->jr = shows ? clip(d_us / span_us) : 0;
	a = 1 - pow(1 - a, n - o->first);
	if (fabs(o->jr) >= UNIT)
		o->sjr = (1 - a) * o->sjr + a * o->jr;
	o->first = n;
	return true;
}

/* Run the trace through both; returns the number of samples. */
static int compare(u32 w, u32 m, u32 tick_us, u32 alpha_percent, u64 offset_us)
{
	double a = alpha_percent / 100.0;
	struct jitter_ratio j = { 0 };
	struct oracle o = { 0 };
	struct jitter_sample in;
	int n, samples = 0;
	bool got, want;

	for (n = 0; n < TRACE_PKTS; n++) {
		in.sent_us = (u32)((u64)sent[n] + offset_us);
		in.arrived_us = (u32)((u64)arrived[n] + offset_us * 3);
		in.tick_us = tick_us;
		in.pkts = (u32)(n + offset_us);
		got = jitter_ratio_update(&j, &in, w, m, alpha_percent);
		want = n && oracle_packet(&o, n, w, m, tick_us, a);
		samples += want;
		EXPECT(got == want, "packet %d: sampled %d, want %d", n, got,
		       want);
		EXPECT(fabs(j.jr * UNIT - o.jr) <= UNIT,
		       "packet %d: jr %.9f want %.9f", n, j.jr * UNIT, o.jr);
		EXPECT(!a || fabs(j.sjr * UNIT - o.sjr) <= UNIT + 129 * UNIT / a,
		       "packet %d: sjr %.9f want %.9f", n, j.sjr * UNIT, o.sjr);
	}
	EXPECT(j.sampled == (samples > 0), "sampled %d", j.sampled);
	return samples;
}

/* Times as the receiver's clock shows them. */
static void quantise(u32 tick_us, double skew)
{
	int n;

	for (n = 0; n < TRACE_PKTS; n++)
		arrived[n] = floor(arrived[n] * (1 + skew) / tick_us) * tick_us;
}

/* Random gaps up to 2^bits us, random queueing delay; sometimes reordered. */
static void random_trace(u32 gap_bits, u32 queue_bits)
{
	double now = 0;
	int n;

	for (n = 0; n < TRACE_PKTS; n++) {
		now += random_log(gap_bits);
		sent[n] = now;
		arrived[n] = now + 40000 + random_log(queue_bits);
		if (random_u32() % 50 == 0)
			sent[n] = fmax(0, sent[n] - random_log(16));
	}
}

static void test_random(void)
{
	static const u32 ticks_us[] = { 1, 1000, 4000, 10000 };
	int i, samples = 0;

	for (i = 0; i < 400; i++) {
		random_trace(random_between(1, 18), random_between(1, 20));
		quantise(ticks_us[i % 4], 0);
		samples += compare(random_between(1, 300),
				   random_between(1, 4), ticks_us[i % 4],
				   i % 5 ? random_between(1, 100) : 0, 0);
	}
	EXPECT(samples > 5000, "only %d samples", samples);
}

static void test_wrap(void)
{
	int i;

	for (i = 0; i < 40; i++) {
		random_trace(12, 16);
		compare(20, 1, 1, 5, 0xffffffffULL - random_log(22));
	}
}

static void test_extreme_windows(void)
{
	random_trace(12, 16);
	EXPECT(compare(1, 1, 1, 5, 0) > TRACE_PKTS / 2, "w = 1 samples often");
	EXPECT(compare(1 << 20, 1, 1, 5, 0) == 0, "w = 2^20 takes longer");
	EXPECT(compare(1U << 31, 2, 1, 5, 0) == 0, "m * w beyond 32 bits");
}

static void test_intervals(void)
{
	int n;

	memset(sent, 0, sizeof(sent));
	memset(arrived, 0, sizeof(arrived));
	EXPECT(compare(10, 1, 1, 5, 0) == 0, "no time passes: no ratio");
	random_trace(26, 26);
	compare(10, 1, 1, 5, 0);
	random_trace(31, 10);
	for (n = 0; n < TRACE_PKTS; n++)
		arrived[n] = n;
	compare(1, 1, 1, 5, 0);
}

/*
 * Delays that differ by less than a tick, many packets to a tick and few: D is
 * below one tick, what is read is below two, and nothing may be made of it.
 */
static void test_subtick_noise(void)
{
	static const u32 ticks_us[] = { 1, 1000, 4000, 10000 };
	struct jitter_sample in;
	u32 now_us, arrived_us, tick_us;
	int i, n;

	for (i = 0; i < 8; i++) {
		struct jitter_ratio j = { 0 };

		now_us = 0;
		arrived_us = 0;
		tick_us = ticks_us[i % 4];
		for (n = 0; n < 100000; n++) {
			now_us += random_between(1, i < 4 ? 3000 : 200);
			arrived_us = fmax(arrived_us, now_us + 45678 +
					  random_between(0, tick_us - 1));
			in.sent_us = now_us;
			in.arrived_us = arrived_us / tick_us * tick_us;
			in.tick_us = tick_us;
			in.pkts = n;
			jitter_ratio_update(&j, &in, 20, 1, 5);
			EXPECT(!j.jr && !j.sjr, "tick %u: jr %f", tick_us,
			       j.jr * UNIT);
		}
		EXPECT(j.sampled, "tick %u: never resolved", tick_us);
	}
}

/*
 * Each window leaves as one burst into a path that would carry more: the delay
 * rises within the burst by many ticks, but not from one burst to the next.
 */
static void test_bursts(void)
{
	static const u32 ticks_us[] = { 1, 1000, 4000 };
	const u32 w = 100, service_us = 120, rtt_us = 40000;
	struct jitter_sample in;
	int i, n;

	for (i = 0; i < 3; i++) {
		struct jitter_ratio j = { 0 };
		int samples = 0;

		for (n = 0; n < 100000; n++) {
			in.sent_us = n / w * rtt_us + n % w * 10;
			in.arrived_us = (n / w * rtt_us + n % w * service_us) /
					ticks_us[i] * ticks_us[i];
			in.tick_us = ticks_us[i];
			in.pkts = n;
			samples += jitter_ratio_update(&j, &in, w, 1, 5);
			EXPECT(!j.jr && !j.sjr, "tick %u: jr %f", ticks_us[i],
			       j.jr * UNIT);
		}
		EXPECT(samples > 10, "tick %u: %d samples", ticks_us[i],
		       samples);
	}
}

/*
 * A bottleneck that is always busy and a window that grows by one packet a
 * round trip: the ratio is 1/w. Returns the mean of ratio * w.
 */
static double saturated_mean(u32 tick_us, double skew)
{
	const double service_us = 7500, base_us = 120000;
	struct jitter_ratio j = { 0 };
	struct jitter_sample in;
	double sum = 0;
	int n, samples = 0, w = 16, grown = 0;

	for (n = 0; n < TRACE_PKTS; n++) {
		sent[n] = n < w ? 0 : arrived[n - w] + base_us / 2;
		arrived[n] = sent[n] + base_us / 2;
		if (n)
			arrived[n] = fmax(arrived[n], arrived[n - 1] + service_us);
		if (n - grown >= w && w < 60) {
			grown = n;
			w++;
		}
		in.sent_us = sent[n];
		in.arrived_us = (u64)(arrived[n] * (1 + skew) / tick_us) * tick_us;
		in.tick_us = tick_us;
		in.pkts = n;
		if (jitter_ratio_update(&j, &in, w, 1, 5) && w > 20 && w < 60) {
			sum += j.jr * UNIT * w;
			samples++;
		}
	}
	return samples ? sum / samples : 0;
}

/*
 * Within 10 %: the span is m * w or one packet longer, and w grows during it;
 * 200 ppm of skew add at most 0.0002 * 60 to ratio * w.
 */
static void test_saturated(void)
{
	static const u32 ticks_us[] = { 1, 1000, 4000 };
	double mean;
	int i, ppm;

	for (i = 0; i < 3; i++) {
		for (ppm = -200; ppm <= 200; ppm += 200) {
			mean = saturated_mean(ticks_us[i], ppm / 1e6);
			EXPECT(mean > 0.9 && mean < 1.1,
			       "tick %u skew %d: ratio * w = %f", ticks_us[i],
			       ppm, mean);
		}
	}
}

static void test_zero_dropped(void)
{
	struct jitter_ratio j = { 0 };
	struct jitter_sample in = { .tick_us = 1 };
	s32 before;
	int n;

	for (n = 0; n < 10; n++) {
		in.sent_us += 1000;
		in.arrived_us += 1100;
		in.pkts++;
		jitter_ratio_update(&j, &in, 1, 1, 50);
	}
	before = j.sjr;
	EXPECT(before > 0, "queue grows");
	for (n = 0; n < 10; n++) {
		in.sent_us += 1000;
		in.arrived_us += 1000;
		in.pkts++;
		jitter_ratio_update(&j, &in, 1, 1, 50);
	}
	EXPECT(!j.jr && j.sjr == before, "jr %d sjr %d", j.jr, j.sjr);
}

static void test_restart(void)
{
	struct jitter_ratio j = { 0 };
	struct jitter_sample in = { .tick_us = 1 };

	jitter_ratio_update(&j, &in, 10, 1, 5);
	jitter_ratio_restart(&j);
	in.pkts = 10;
	in.sent_us = 100;
	in.arrived_us = 5000;
	EXPECT(!jitter_ratio_update(&j, &in, 10, 1, 5) && !j.sampled,
	       "the span before the restart must not count");
	in.pkts = 20;
	in.sent_us = 200;
	in.arrived_us = 5200;
	EXPECT(jitter_ratio_update(&j, &in, 10, 1, 5) &&
	       j.jr == JITTER_RATIO_ONE / 2, "jr %d", j.jr);
}

/* k/w against doubles; the two may differ only where they are equal. */
static void test_threshold(void)
{
	u32 i, w, k_percent;
	s32 ratio;
	double margin;

	for (i = 0; i < 200000; i++) {
		w = random_log(32) + (i % 2);
		k_percent = random_between(1, 1000);
		ratio = (s32)random_log(24) * (i % 3 ? 1 : -1);
		margin = ratio * UNIT * w - k_percent / 100.0;
		EXPECT(fabs(margin) < 1 / 1e9 ||
		       jitter_ratio_congested(ratio, w, k_percent) ==
		       (margin > 0), "ratio %d w %u k %u", ratio, w, k_percent);
	}
	EXPECT(jitter_ratio_congested(JITTER_RATIO_ONE, ~0U, 1), "largest");
	EXPECT(jitter_ratio_congested(JITTER_RATIO_ONE / 16, 16, 100), "equal");
}

const struct test jitter_ratio_tests[] = {
	{ test_random, "jitter ratio: random traces, all ticks, reordering" },
	{ test_wrap, "jitter ratio: clocks and packet count wrap" },
	{ test_extreme_windows, "jitter ratio: w = 1, 2^20, 2^31" },
	{ test_intervals, "jitter ratio: zero and huge intervals" },
	{ test_subtick_noise, "jitter ratio: delays within one tick never decide" },
	{ test_bursts, "jitter ratio: nor does the place in a burst" },
	{ test_saturated, "jitter ratio: 1/w on a saturated path, +-200 ppm" },
	{ test_zero_dropped, "jitter ratio: sjr leaves out ineffective samples" },
	{ test_restart, "jitter ratio: restart drops the open span" },
	{ test_threshold, "jitter ratio: comparison with k/w" },
	{ NULL, NULL },
};
