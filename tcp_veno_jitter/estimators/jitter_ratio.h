/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jitter ratio: which share of the packets sent stayed in the bottleneck queue.
 *
 * Papers: E. H.-K. Wu, M.-Z. Chen, "JTCP: Jitter-based TCP for heterogeneous
 * wireless networks", IEEE JSAC 22(4), 2004; J.-M. Chen et al., "Improving
 * SCTP performance by jitter-based congestion control over wired-wireless
 * networks", EURASIP JWCN 2011 (JSCTP below, with its equation numbers).
 *
 *   D(i,j) = (R_j - R_i) - (S_j - S_i)                          (JSCTP eq. 1)
 *   Jr     = D(n - m*w, n) / (R_n - R_{n-m*w})                   (JSCTP eq. 7)
 *   sjr    = (1 - a) * sjr + a * Jr, samples Jr = 0 left out     (JSCTP eq. 8)
 *
 *   symbol  field                     unit
 *   S_i     anchor_sent_us            us, sender's clock, wraps
 *   R_i     anchor_arrived_us         us, receiver's clock, wraps
 *   i       anchor_pkts               packets delivered so far, wraps
 *   n       struct jitter_sample      newest acknowledged packet
 *   w       cwnd_pkts                 packets
 *   m       m                         windows
 *   a       alpha_percent             1/100
 *   Jr      jr                        1 / 2^JITTER_RATIO_SHIFT
 *   sjr     sjr                       1 / 2^JITTER_RATIO_SHIFT
 *
 * Reading it: while a saturated bottleneck lets the window grow by one packet
 * a round trip, D is one packet's service time and Jr = 1/w; with an idle
 * bottleneck Jr is about 0; while a queue drains Jr is below 0. Over a longer
 * span D and R grow alike, so Jr keeps its meaning.
 *
 * Differences from the papers:
 *  - Spans follow one another (packet n of one span is packet n - m*w of the
 *    next): two time stamps of memory instead of two per packet in flight. One
 *    sample per m windows, as JTCP takes one per round trip.
 *  - JSCTP smooths once per SACK. A sample of ours stands for all packets of
 *    its span and weighs as much as that many: 1 - (1 - a)^packets. (With
 *    weight a per window sjr would be the mean over a whole sawtooth: 0.)
 *  - Two readings of a clock that ticks are off by less than one tick from
 *    each other, so a D that is read as 2 ticks or more is one of more than 1,
 *    and of its sign. Where less is read the span is lengthened by one window
 *    after the other, until D shows or until 2 ticks are at most 1/(2w) of the
 *    span; then it is the "ineffective" Jr = 0.
 *  - D is looked at once per m windows, not at every packet. Packets that are
 *    whole windows apart have the same place in a burst; and the first of many
 *    looks that shows something would as a rule be one at noise.
 *  - Jr is limited to [-1, 1]: above 1 it cannot be; below -1 it only says
 *    that arrivals were compressed.
 */
#ifndef ESTIMATORS_JITTER_RATIO_H
#define ESTIMATORS_JITTER_RATIO_H

#include "types.h"

/*
 * Ratios are at most 1 in magnitude, so 2^24 in fixed point: fits s32. Before
 * the division D is below 2^JITTER_SPAN_BITS us, so the product stays below
 * 2^(28 + 24) = 2^52: fits s64. The smoothing multiplies 2^25 by 2^24 at most.
 */
#define JITTER_RATIO_SHIFT	24
#define JITTER_RATIO_ONE	0x1000000	/* 1 << JITTER_RATIO_SHIFT */

/* A longer span (268 s) says nothing about the queue of today. */
#define JITTER_SPAN_BITS	28

/**
 * struct jitter_sample - the newest acknowledged packet
 * @sent_us: when it was sent, sender's clock (us)
 * @arrived_us: when it arrived, receiver's clock (us)
 * @tick_us: resolution of @arrived_us (us), at least 1
 * @pkts: packets delivered so far, this one included
 */
struct jitter_sample {
	u32 sent_us;
	u32 arrived_us;
	u32 tick_us;
	u32 pkts;
};

/**
 * struct jitter_ratio - state of one path; all zero is the initial state
 * @anchor_sent_us: send time of the span's first packet (us)
 * @anchor_arrived_us: arrival time of the span's first packet (us)
 * @anchor_pkts: packets delivered when it was
 * @look_pkts: packets delivered when D was last looked at
 * @jr: ratio of the last complete span
 * @sjr: smoothed ratio, ineffective samples left out
 * @anchored: a span is open
 * @sampled: at least one span was completed
 */
struct jitter_ratio {
	u32 anchor_sent_us;
	u32 anchor_arrived_us;
	u32 anchor_pkts;
	u32 look_pkts;
	s32 jr;
	s32 sjr;
	u8 anchored:1,
	   sampled:1;
};

/**
 * jitter_ratio_restart() - drop the open span, keep jr and sjr
 * @j: state
 *
 * For a pause in sending or a change of clock.
 */
static inline void jitter_ratio_restart(struct jitter_ratio *j)
{
	j->anchored = 0;
}

/* Open a span at @in. */
static inline void jitter_ratio_anchor(struct jitter_ratio *j,
				       const struct jitter_sample *in)
{
	j->anchor_sent_us = in->sent_us;
	j->anchor_arrived_us = in->arrived_us;
	j->anchor_pkts = in->pkts;
	j->look_pkts = in->pkts;
	j->anchored = 1;
}

/* D / R in fixed point, limited to [-1, 1]; |D| < 2^28 us, R > 0 us. */
static inline s32 jitter_ratio_quotient(s32 d_us, s32 arrived_span_us)
{
	s64 jr = div_s64((s64)d_us * JITTER_RATIO_ONE, arrived_span_us);

	if (jr > JITTER_RATIO_ONE)
		return JITTER_RATIO_ONE;
	if (jr < -JITTER_RATIO_ONE)
		return -JITTER_RATIO_ONE;
	return jr;
}

/*
 * 1 - (1 - a)^pkts in fixed point: what pkts samples of weight a weigh
 * together. Each product of two factors <= 1 is cut by less than one unit, at
 * most 64 of them. Products are at most 2^48: fit u64.
 */
static inline s32 jitter_ratio_weight(u32 alpha_percent, u32 pkts)
{
	u64 keep = div_u64((100ULL - alpha_percent) * JITTER_RATIO_ONE, 100);
	u64 kept = JITTER_RATIO_ONE;

	for (; pkts; pkts >>= 1) {
		if (pkts & 1)
			kept = kept * keep >> JITTER_RATIO_SHIFT;
		keep = keep * keep >> JITTER_RATIO_SHIFT;
	}
	return JITTER_RATIO_ONE - kept;
}

/* sjr after a sample that stands for pkts packets (JSCTP eq. 8). */
static inline s32 jitter_ratio_smooth(s32 sjr, s32 jr, u32 alpha_percent,
				      u32 pkts)
{
	s64 step = (s64)(jr - sjr) * jitter_ratio_weight(alpha_percent, pkts);

	return sjr + (s32)div_s64(step, JITTER_RATIO_ONE);
}

/**
 * jitter_ratio_update() - take the newest acknowledged packet into account
 * @j: state
 * @in: that packet; callers never pass packets sent before an earlier one
 * @cwnd_pkts: w, the congestion window (packets)
 * @m: windows from one look at D to the next
 * @alpha_percent: a, weight of one packet's sample in sjr (1/100), at most 100
 *
 * JSCTP section 3.1.3 (eq. 7) and 3.1.4 (eq. 8).
 *
 * Return: true if a span was completed and @j->jr is new.
 */
static inline bool jitter_ratio_update(struct jitter_ratio *j,
				       const struct jitter_sample *in,
				       u32 cwnd_pkts, u32 m, u32 alpha_percent)
{
	s32 sent_span_us = in->sent_us - j->anchor_sent_us;
	s32 arrived_span_us = in->arrived_us - j->anchor_arrived_us;
	u32 span_pkts = in->pkts - j->anchor_pkts;
	s32 d_us;

	if (!j->anchored || sent_span_us >> JITTER_SPAN_BITS ||
	    arrived_span_us >> JITTER_SPAN_BITS) {
		jitter_ratio_anchor(j, in);
		return false;
	}
	if (in->pkts - j->look_pkts < (u64)m * cwnd_pkts || !arrived_span_us)
		return false;
	j->look_pkts = in->pkts;

	d_us = arrived_span_us - sent_span_us;
	if ((d_us < 0 ? -d_us : d_us) < 2 * (s32)in->tick_us) {
		if (4ULL * in->tick_us * cwnd_pkts > (u32)arrived_span_us)
			return false;
		d_us = 0;
	}

	j->jr = jitter_ratio_quotient(d_us, arrived_span_us);
	if (j->jr)
		j->sjr = jitter_ratio_smooth(j->sjr, j->jr, alpha_percent,
					     span_pkts);
	j->sampled = 1;
	jitter_ratio_anchor(j, in);
	return true;
}

/**
 * jitter_ratio_congested() - does a ratio reach k/w?
 * @ratio: jr or sjr, 1 / 2^JITTER_RATIO_SHIFT
 * @cwnd_pkts: w, the congestion window (packets)
 * @k_percent: k, packets that may queue per window (1/100 packet)
 *
 * JSCTP section 3.1.3. The product is below 2^(24 + 32 + 7) = 2^63.
 */
static inline bool jitter_ratio_congested(s32 ratio, u32 cwnd_pkts,
					  u32 k_percent)
{
	return (s64)ratio * cwnd_pkts * 100 >=
	       (s64)k_percent << JITTER_RATIO_SHIFT;
}

#endif /* ESTIMATORS_JITTER_RATIO_H */
