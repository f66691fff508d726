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
 *   fb  = dS / J                  dS > 0: the same for each flow
 *   fb  = (dS / S) * r_p          dS < 0: in proportion
 *   fb += h * (S / J - r_p)       h = shuffle_percent
 *   fb *= T_c / c                 T_c < c
 *
 *   symbol     field              unit
 *   r_b        busy_ns / time_ns
 *   th_b       threshold_percent  percent
 *   S          bytes / time_ns    payload
 *   c          time_ns            ns
 *   J * c      presence_ns        ns: each packet stands for L / r_p of its flow
 *   dS / S     factor             1 / 2^WCCP_SHIFT
 *   fb         raise, cut         bytes/s that all get, share of r_p that all give
 *
 * Differences from the paper: what a packet of L bytes stands for is L / r_p
 * with r_p in bytes/s, so that sizes may differ. dS is taken gain_percent of,
 * as rates answer an interval late. dS / S is between -1/2 and 1, also where r_b
 * is 0 or tiny; J is a quarter at least. BW_a is not needed: it says how much
 * a node without traffic could carry, and such a node has nobody to tell.
 * A sender changes its rate once per T_c, so it may do it many times with what was
 * given for one c: each time it gets T_c / c of it, so that once c is over it has had
 * no more than was to be given, however seldom the channel is read.
 * h is XCP's (Katabi, Handley, Rohrs, SIGCOMM 2002, 3.5.2): when r_b is where it
 * should be, dS is 0 and unequal rates would stay unequal.
 */
#ifndef ESTIMATORS_WCCP_SHARE_H
#define ESTIMATORS_WCCP_SHARE_H

#include "types.h"

#define WCCP_SHIFT		16
#define WCCP_ONE		0x10000		/* 1, in this unit */
#define WCCP_NSEC_PER_SEC	1000000000ULL
#define WCCP_NSEC_PER_MSEC	1000000U
#define WCCP_FLOWS_MIN		0x4000U		/* J, a quarter */
/* Longer intervals are none: 2^34 ns (17 s) leaves room for what is below. */
#define WCCP_TIME_MAX_NS	0x400000000ULL
/* A packet stands for no more than that, however slow its flow claims to be. */
#define WCCP_PRESENCE_MAX_NS	2000000000U
#define WCCP_INTERVAL_MIN_MS	20
#define WCCP_INTERVAL_MAX_MS	2000
#define WCCP_OTHERS_PARTS	8	/* an eighth of what passes is a part of it */
#define WCCP_OTHERS_VAIN_MS	2000
#define WCCP_OTHERS_LAST_MS	5000
#define WCCP_RATE_MAX		0x7fffffffU	/* bytes/s: 17 Gb/s */
#define WCCP_BYTES_MAX		0xffffffffffULL	/* 2^40: bytes * 10^9 / c */

/**
 * struct wccp_load - what passed a node in an interval; all zero is none
 * @presence_ns: J * c
 * @bytes: S * c
 * @intervals_ms: sum of T_c
 * @pkts: packets
 */
struct wccp_load {
	u64 presence_ns;
	u64 bytes;
	u64 intervals_ms;
	u32 pkts;
};

/**
 * struct wccp_share - what a node gives
 * @factor: dS / S, for people
 * @raise: what each flow gets (bytes/s)
 * @cut: what each gives of its r_p (1 / 2^WCCP_SHIFT)
 * @busy: r_b, for people (1 / 2^WCCP_SHIFT)
 * @rate: S, for people (bytes/s)
 * @flows: J, for people (1 / 2^WCCP_SHIFT)
 * @time_us: c (us); a flow whose T_c is less takes that part of it, each time
 */
struct wccp_share {
	s32 factor;
	u32 raise;
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
 * wccp_load_note() - a packet with WCCP's option passes
 * @load: state
 * @rate: its r_p (bytes/s), any value
 * @interval_ms: its T_c (ms), any value
 * @bytes: its payload
 */
static inline void wccp_load_note(struct wccp_load *load, u32 rate,
				  u16 interval_ms, u32 bytes)
{
	u64 presence_ns = WCCP_PRESENCE_MAX_NS;

	if (load->pkts == ~0U)
		return;
	if (rate)
		presence_ns = div_u64(bytes * WCCP_NSEC_PER_SEC, rate);
	load->presence_ns += wccp_min(presence_ns, WCCP_PRESENCE_MAX_NS);
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
 * that yielding was in vain. It ends when others are no longer part of what passes.
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

/* dS / S, before the gain. */
static inline s32 wccp_factor(u32 busy, u32 threshold_percent)
{
	s64 threshold = wccp_percent(threshold_percent);

	if (!busy)
		return WCCP_ONE;
	return wccp_clamp(div_s64((threshold - busy) * WCCP_ONE, busy),
			  -WCCP_ONE / 2, WCCP_ONE);
}

/**
 * struct wccp_law - the parameters
 * @threshold_percent: th_b
 * @gain_percent: of dS, that is given
 * @shuffle_percent: h
 */
struct wccp_law {
	u32 threshold_percent;
	u32 gain_percent;
	u32 shuffle_percent;
};

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
	/* c in us: it divides, and fits 32 bits */
	u32 time_us = wccp_min(div_u64(time_ns, 1000) + 1, ~0U);
	u64 bytes = wccp_min(load->bytes, WCCP_BYTES_MAX);
	u64 presence_us = div_u64(load->presence_ns, 1000);
	u64 busy_us = div_u64(wccp_min(busy_ns, time_ns), 1000);

	share->time_us = time_us;
	share->busy = wccp_min(div_u64(busy_us << WCCP_SHIFT, time_us),
			       WCCP_ONE);
	share->factor = div_s64((s64)wccp_factor(share->busy,
						 law->threshold_percent) *
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
 *
 * Return: others fill the channel.
 */
static inline bool wccp_others_update(struct wccp_others *others,
				      const struct wccp_share *share,
				      const struct wccp_load *load)
{
	u32 ms = share->time_us / 1000 + 1;
	u64 bytes = wccp_min(others->bytes, WCCP_BYTES_MAX);
	u64 all = bytes + wccp_min(load->bytes, WCCP_BYTES_MAX);
	bool part = bytes && bytes * WCCP_OTHERS_PARTS >= all;

	others->bytes = 0;
	if (part && share->factor <= 0)
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
 *
 * Return: bytes/s.
 */
static inline s32 wccp_share_feedback(const struct wccp_share *share, u32 rate,
				      u16 interval_ms)
{
	u64 gives = share->cut * wccp_min(rate, WCCP_RATE_MAX);
	s64 feedback = (s64)share->raise - (s64)(gives >> WCCP_SHIFT);
	u32 interval_us = wccp_clamp(interval_ms, 1, WCCP_INTERVAL_MAX_MS) * 1000;

	/* 2^32 * 2^21: no overflow */
	if (interval_us < share->time_us)
		feedback = div_s64(feedback * interval_us, share->time_us);
	return feedback;
}

#endif /* ESTIMATORS_WCCP_SHARE_H */
