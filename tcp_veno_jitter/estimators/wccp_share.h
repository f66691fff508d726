/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a node lets each flow's rate change by, from how busy its channel is.
 *
 * Paper: H. Zhai, X. Chen, Y. Fang, "Improving transport layer performance in
 * multihop ad hoc networks by exploiting MAC layer information", IEEE
 * Transactions on Wireless Communications 6(5), 2007, as the seed paper (WCCP)
 * gives it.
 *
 *   r_b = busy time / time
 *   dS  = (th_b - r_b) / r_b * S
 *   J   = sum of 1 / (r_p * c), over the packets of an interval c
 *   fb  = (a / A) * dS / J        dS > 0: by weight, a = 1 or 1 / hops
 *   fb  = (dS / S) * r_p          dS < 0: in proportion
 *   fb += h * ((a / A) * S / J - r_p)       h = shuffle_percent
 *   fb *= T_c / c                 T_c < c
 *
 *   symbol     field              unit
 *   r_b        busy_ns / time_ns
 *   th_b       wccp_edge          1 / 2^WCCP_SHIFT
 *   S          bytes / time_ns    payload
 *   c          time_ns            ns
 *   J * c      presence_ns        ns: each packet stands for L / r_p of its flow
 *   a          wccp_weight()      1 / 2^WCCP_SHIFT
 *   A          weight             1 / 2^WCCP_SHIFT, the mean of a over the flows
 *   dS / S     factor             1 / 2^WCCP_SHIFT
 *   fb         raise, cut         bytes/s that all get, share of r_p that all give
 *
 * Differences from the paper: th_b is found where the node is. How busy a saturated
 * channel is hangs on its rate, the sizes of packets and how many contend: one hop of
 * 300 bytes at 2 Mb/s is full at 88 %, and four of 1000 bytes carry a quarter more at
 * 95.5 than at 95. What tells a saturated channel from one that is not is that packets
 * wait in the node's queue; th_b is below what r_b was then, and above what it was
 * without (struct wccp_edge). What a packet of L bytes stands for is L / r_p with r_p
 * in bytes/s, so that sizes may differ. dS is taken gain_percent of,
 * as rates answer an interval late. dS / S is between -1/2 and 1, also where r_b
 * is 0 or tiny; J is a quarter at least. BW_a is not needed: it says how much
 * a node without traffic could carry, and such a node has nobody to tell.
 * A sender changes its rate once per T_c, so it may do it many times with what was
 * given for one c: each time it gets T_c / c of it, so that once c is over it has had
 * no more than was to be given, however seldom the channel is read.
 * With equal weights a flow over eight hops costs the chain what two over four
 * cost; with a = 1 / hops each flow takes as much of the channel's time as another,
 * which is the proportionally fair share (Kelly 1997) where one clique of links is
 * the bottleneck.
 * h is XCP's (Katabi, Handley, Rohrs, SIGCOMM 2002, 3.5.2): when r_b is where it
 * should be, dS is 0 and unequal rates would stay unequal.
 */
#ifndef ESTIMATORS_WCCP_SHARE_H
#define ESTIMATORS_WCCP_SHARE_H

#include "types.h"
#include "wccp_option.h"

#define WCCP_SHIFT		16
#define WCCP_ONE		0x10000		/* 1, in this unit */
#define WCCP_NSEC_PER_SEC	1000000000ULL
#define WCCP_NSEC_PER_MSEC	1000000U
#define WCCP_FLOWS_MIN		0x4000U		/* J, a quarter */
#define WCCP_WEIGHT_MIN		(WCCP_ONE / WCCP_HOPS_MAX)
/* Longer intervals are none: 2^34 ns (17 s) leaves room for what is below. */
#define WCCP_TIME_MAX_NS	0x400000000ULL
/* A packet stands for no more than that, however slow its flow claims to be. */
#define WCCP_PRESENCE_MAX_NS	2000000000U
#define WCCP_INTERVAL_MIN_MS	20
#define WCCP_INTERVAL_MAX_MS	2000
#define WCCP_EDGE_OVER		16	/* intervals */
#define WCCP_EDGE_FEW		(WCCP_ONE / 16)	/* packets, besides what is being sent */
#define WCCP_EDGE_SOME		(WCCP_ONE / 2)
#define WCCP_EDGE_MANY		(4 * WCCP_ONE)
#define WCCP_EDGE_STAND_PKTS	4
#define WCCP_EDGE_PKTS_MAX	1000U
#define WCCP_EDGE_UP		(WCCP_ONE / 800)
#define WCCP_EDGE_NEAR		(WCCP_ONE / 100)
#define WCCP_EDGE_MIN_PERCENT	50
#define WCCP_EDGE_MAX_PERCENT	99
#define WCCP_OTHERS_PARTS	8	/* an eighth of what passes is a part of it */
#define WCCP_OTHERS_VAIN_MS	2000
#define WCCP_OTHERS_LAST_MS	5000
#define WCCP_RATE_MAX		0x7fffffffU	/* bytes/s: 17 Gb/s */
#define WCCP_BYTES_MAX		0xffffffffffULL	/* 2^40: bytes * 10^9 / c */

/**
 * struct wccp_load - what passed a node in an interval; all zero is none
 * @presence_ns: J * c
 * @weighted_ns: A * J * c
 * @bytes: S * c
 * @intervals_ms: sum of T_c
 * @pkts: packets
 */
struct wccp_load {
	u64 presence_ns;
	u64 weighted_ns;
	u64 bytes;
	u64 intervals_ms;
	u32 pkts;
};

/**
 * struct wccp_share - what a node gives
 * @factor: dS / S, for people
 * @raise: what a flow of the mean weight gets (bytes/s)
 * @cut: what each gives of its r_p (1 / 2^WCCP_SHIFT)
 * @busy: r_b, for people (1 / 2^WCCP_SHIFT)
 * @rate: S, for people (bytes/s)
 * @flows: J, for people (1 / 2^WCCP_SHIFT)
 * @time_us: c (us); a flow whose T_c is less takes that part of it, each time
 * @weight: A (1 / 2^WCCP_SHIFT), WCCP_WEIGHT_MIN to 1
 */
struct wccp_share {
	s32 factor;
	u32 raise;
	u32 weight;
	u32 cut;
	u32 busy;
	u32 rate;
	u32 flows;
	u32 time_us;
};

static inline u64 wccp_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline s64 wccp_clamp(s64 value, s64 low, s64 high)
{
	return value < low ? low : value > high ? high : value;
}

/**
 * wccp_weight() - a
 * @hops: of a flow's way, 0: not known, counts as 1
 * @by_hops: shares are by 1 / hops, otherwise equal
 *
 * Return: WCCP_WEIGHT_MIN to WCCP_ONE.
 */
static inline u32 wccp_weight(u8 hops, bool by_hops)
{
	if (!by_hops || !hops)
		return WCCP_ONE;
	return WCCP_ONE / (hops < WCCP_HOPS_MAX ? hops : WCCP_HOPS_MAX);
}

/**
 * wccp_load_note() - a packet with WCCP's option passes
 * @load: state
 * @rate: its r_p (bytes/s), any value
 * @interval_ms: its T_c (ms), any value
 * @bytes: its payload
 * @weight: its flow's, of wccp_weight()
 */
static inline void wccp_load_note(struct wccp_load *load, u32 rate,
				  u16 interval_ms, u32 bytes, u32 weight)
{
	u64 presence_ns = WCCP_PRESENCE_MAX_NS;

	if (load->pkts == ~0U)
		return;
	if (rate)
		presence_ns = div_u64(bytes * WCCP_NSEC_PER_SEC, rate);
	presence_ns = wccp_min(presence_ns, WCCP_PRESENCE_MAX_NS);
	load->presence_ns += presence_ns;
	load->weighted_ns += presence_ns * weight >> WCCP_SHIFT;
	load->bytes += bytes;
	load->intervals_ms += wccp_clamp(interval_ms, WCCP_INTERVAL_MIN_MS,
					 WCCP_INTERVAL_MAX_MS);
	load->pkts++;
}

/**
 * wccp_load_interval_ms() - the node's control interval, mean T_c
 * @load: state
 */
static inline u32 wccp_load_interval_ms(const struct wccp_load *load)
{
	if (!load->pkts)
		return WCCP_INTERVAL_MIN_MS;
	return div_u64(load->intervals_ms, load->pkts);
}

/**
 * struct wccp_others - who fills the channel without listening; all zero is nobody
 * @bytes: payload of packets without WCCP's option in this interval
 * @vain_ms: so long has the channel been too busy while they were part of it; the
 *	time that it was not counts twice
 * @lasts_ms: and for so long it counts
 *
 * Elastic traffic takes what is yielded to it: the channel does not get less busy,
 * and who yields ends with nothing. Traffic that does not answer (CBR) leaves it less
 * busy within an interval or two. So it is not what passes that tells them apart, but
 * that yielding was in vain. Where packets stand in the node's queue and less than an
 * eighth of what passes listens, nothing could be yielded that would help: that is known
 * at once. It ends when others are no longer part of what passes.
 */
struct wccp_others {
	u64 bytes;
	u32 vain_ms;
	u32 lasts_ms;
};

/* @percent of 1, in 1 / 2^WCCP_SHIFT. */
static inline u32 wccp_percent(u32 percent)
{
	return (percent << WCCP_SHIFT) / 100;
}

/**
 * struct wccp_edge - th_b, from what the channel shows here; all zero: as the law has it
 * @threshold: th_b (1 / 2^WCCP_SHIFT)
 * @percent: that it began with
 * @mean_busy: r_b over the last WCCP_EDGE_OVER intervals (1 / 2^WCCP_SHIFT)
 * @mean_pkts: in the node's queue when they ended (1 / 2^WCCP_SHIFT packets)
 * @queue_pkts: when the last one did
 * @stands: there were WCCP_EDGE_STAND_PKTS then and the time before
 */
struct wccp_edge {
	u32 threshold;
	u32 percent;
	u32 mean_busy;
	u32 mean_pkts;
	u32 queue_pkts;
	bool stands;
};

/* Where packets wait, th_b is below what r_b is; where none do and it is reached, above. */
static inline u32 wccp_edge_move(struct wccp_edge *edge, u32 threshold)
{
	u32 first = wccp_percent(edge->percent);
	u32 busy = edge->mean_busy;
	u32 below = busy - wccp_min(busy, WCCP_EDGE_NEAR);

	if (edge->mean_pkts > WCCP_EDGE_MANY) {
		/* the next step waits for what comes of this one */
		edge->mean_pkts /= 2;
		return wccp_min(threshold, below);
	}
	/* some wait at any node that sends much: no reason to get below the first th_b */
	if (edge->mean_pkts > WCCP_EDGE_SOME && threshold > first)
		return wccp_min(threshold, below > first ? below : first);
	if (edge->mean_pkts < WCCP_EDGE_FEW && busy + WCCP_EDGE_NEAR >= threshold)
		return threshold + WCCP_EDGE_UP;
	return threshold;
}

/**
 * wccp_edge_update() - an interval is over
 * @edge: state
 * @busy: r_b (1 / 2^WCCP_SHIFT)
 * @queue_pkts: in the node's queue now
 * @told: it is all that waits at the node; otherwise more may wait where nobody can
 *	see it, and th_b does not get above @percent
 * @percent: th_b to begin with
 */
static inline void wccp_edge_update(struct wccp_edge *edge, u32 busy,
				    u32 queue_pkts, bool told, u32 percent)
{
	u32 floor = wccp_percent(wccp_min(percent, WCCP_EDGE_MIN_PERCENT));
	u32 most = wccp_percent(told ? WCCP_EDGE_MAX_PERCENT : percent);
	u32 threshold = edge->percent == percent ? edge->threshold :
						   wccp_percent(percent);
	u32 now = wccp_min(queue_pkts, WCCP_EDGE_PKTS_MAX) << WCCP_SHIFT;

	edge->stands = queue_pkts >= WCCP_EDGE_STAND_PKTS &&
		       edge->queue_pkts >= WCCP_EDGE_STAND_PKTS;
	edge->queue_pkts = queue_pkts;
	edge->percent = percent;
	edge->mean_busy += busy / WCCP_EDGE_OVER - edge->mean_busy / WCCP_EDGE_OVER;
	edge->mean_pkts += now / WCCP_EDGE_OVER - edge->mean_pkts / WCCP_EDGE_OVER;
	threshold = wccp_edge_move(edge, threshold);
	edge->threshold = wccp_clamp(threshold, floor, most);
}

/* dS / S, before the gain; both in 1 / 2^WCCP_SHIFT. */
static inline s32 wccp_factor(u32 busy, s64 threshold)
{
	if (!busy)
		return WCCP_ONE;
	return wccp_clamp(div_s64((threshold - busy) * WCCP_ONE, busy),
			  -WCCP_ONE / 2, WCCP_ONE);
}

/**
 * struct wccp_law - the parameters
 * @threshold: th_b (1 / 2^WCCP_SHIFT)
 * @gain_percent: of dS, that is given
 * @shuffle_percent: h
 */
struct wccp_law {
	u32 threshold;
	u32 gain_percent;
	u32 shuffle_percent;
};

/* A, the mean weight of what passed; of more than 2^32 us of J * c it is only bounded. */
static inline u32 wccp_mean_weight(const struct wccp_load *load)
{
	u64 presence_us = wccp_min(div_u64(load->presence_ns, 1000), ~0U);
	u64 weighted_us = wccp_min(div_u64(load->weighted_ns, 1000), ~0U);

	if (!presence_us)
		return WCCP_ONE;
	return wccp_clamp(div_u64(weighted_us << WCCP_SHIFT, presence_us),
			  WCCP_WEIGHT_MIN, WCCP_ONE);
}

/* r_b (1 / 2^WCCP_SHIFT), of @time_ns as in wccp_share_update(). */
static inline u32 wccp_busy(u64 time_ns, u64 busy_ns)
{
	/* c in us: it divides, and fits 32 bits */
	u32 time_us = wccp_min(div_u64(time_ns, 1000) + 1, ~0U);
	u64 busy_us = div_u64(wccp_min(busy_ns, time_ns), 1000);

	return wccp_min(div_u64(busy_us << WCCP_SHIFT, time_us), WCCP_ONE);
}

/* What all get and give, from dS / S, S and J. */
static inline void wccp_share_out(struct wccp_share *share, u32 shuffle)
{
	u64 gets = shuffle, gives = shuffle;

	if (share->factor > 0)
		gets += share->factor;
	else
		gives -= share->factor;
	share->raise = wccp_min(div_u64(gets * share->rate, share->flows),
				WCCP_RATE_MAX);
	share->cut = wccp_min(gives, WCCP_ONE);
}

/**
 * wccp_share_update() - an interval is over
 * @share: what is given from now on
 * @load: what passed
 * @time_ns: c, above 0, at most WCCP_TIME_MAX_NS
 * @busy_ns: how much of it the channel was busy
 * @law: parameters, percents up to 100
 */
static inline void wccp_share_update(struct wccp_share *share,
				     const struct wccp_load *load, u64 time_ns,
				     u64 busy_ns, const struct wccp_law *law)
{
	u32 time_us = wccp_min(div_u64(time_ns, 1000) + 1, ~0U);
	u64 bytes = wccp_min(load->bytes, WCCP_BYTES_MAX);
	u64 presence_us = div_u64(load->presence_ns, 1000);

	share->time_us = time_us;
	share->weight = wccp_mean_weight(load);
	share->busy = wccp_busy(time_ns, busy_ns);
	share->factor = div_s64((s64)wccp_factor(share->busy,
						 law->threshold) *
				law->gain_percent, 100);
	share->rate = wccp_min(div_u64(bytes * 1000000, time_us),
			       WCCP_RATE_MAX);
	share->flows = wccp_clamp(div_u64(wccp_min(presence_us, 1ULL << 46)
					  << WCCP_SHIFT, time_us),
				  WCCP_FLOWS_MIN, WCCP_RATE_MAX);
	wccp_share_out(share, wccp_percent(law->shuffle_percent));
}

/**
 * wccp_others_update() - an interval is over
 * @others: state
 * @share: what is given from now on
 * @load: what passed with the option
 * @stands: packets stand in the node's queue
 *
 * Return: others fill the channel.
 */
static inline bool wccp_others_update(struct wccp_others *others,
				      const struct wccp_share *share,
				      const struct wccp_load *load, bool stands)
{
	u32 ms = share->time_us / 1000 + 1;
	u64 bytes = wccp_min(others->bytes, WCCP_BYTES_MAX);
	u64 ours = wccp_min(load->bytes, WCCP_BYTES_MAX);
	bool part = bytes && bytes * WCCP_OTHERS_PARTS >= bytes + ours;
	/* a queue that stands though next to nothing of it is ours: yielding is in vain */
	bool swamped = stands && ours * WCCP_OTHERS_PARTS < bytes + ours;

	others->bytes = 0;
	if (part && swamped)
		others->vain_ms = WCCP_OTHERS_VAIN_MS;
	else if (part && (stands || share->factor <= 0))
		others->vain_ms = wccp_min((u64)others->vain_ms + ms,
					   WCCP_OTHERS_LAST_MS);
	else
		others->vain_ms -= wccp_min(others->vain_ms, 2 * ms);
	if (others->vain_ms >= WCCP_OTHERS_VAIN_MS ||
	    (others->lasts_ms && part))
		others->lasts_ms = WCCP_OTHERS_LAST_MS;
	else
		others->lasts_ms -= wccp_min(others->lasts_ms, ms);
	return others->lasts_ms;
}

/**
 * wccp_share_feedback() - fb of a packet
 * @share: what is given
 * @rate: its r_p (bytes/s), any value
 * @interval_ms: its T_c (ms), any value
 * @weight: its flow's, of wccp_weight()
 *
 * Return: bytes/s.
 */
static inline s32 wccp_share_feedback(const struct wccp_share *share, u32 rate,
				      u16 interval_ms, u32 weight)
{
	u64 gives = share->cut * wccp_min(rate, WCCP_RATE_MAX);
	/* 2^31 * 2^16: no overflow */
	u64 gets = wccp_min(div_u64((u64)share->raise * weight, share->weight),
			    WCCP_RATE_MAX);
	s64 feedback = (s64)gets - (s64)(gives >> WCCP_SHIFT);
	u32 interval_us = wccp_clamp(interval_ms, 1, WCCP_INTERVAL_MAX_MS) * 1000;

	/* 2^32 * 2^21: no overflow */
	if (interval_us < share->time_us)
		feedback = div_s64(feedback * interval_us, share->time_us);
	return feedback;
}

#endif /* ESTIMATORS_WCCP_SHARE_H */
