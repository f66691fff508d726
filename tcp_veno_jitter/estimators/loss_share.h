/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loss share: is more lost than the noise of the path explains?
 *
 * A policer, and a queue of a few packets, drop without a delay that would show
 * it. What is left to tell a sender's own losses from noise is how many there
 * are: noise is what is lost while less is sent than was delivered, and
 *
 *   x = L - p n - 2           lost beyond it, two packets granted
 *   x > 0, x^2 > 18 p n       too much: three times the scatter of the sample
 *                             and of what was heard, which is about as long
 *   L > 2/5 n                 too much, whatever was heard
 *
 *   symbol  field       unit
 *   n       sent_pkts   packets of the sample, lost ones included
 *   L       lost_pkts   packets of the sample that were lost
 *   p       noise       1 / 2^LOSS_SHARE_SHIFT
 *
 * The number of losses in n packets has a variance of p n (1 - p), here taken
 * for p n: it is on the safe side, and 3^2 * (p n + p n) = 18 p n.
 *
 * tcp_veno_jitter.c has the same test amid its states.
 */
#ifndef ESTIMATORS_LOSS_SHARE_H
#define ESTIMATORS_LOSS_SHARE_H

#include "types.h"

#define LOSS_SHARE_SHIFT	16
#define LOSS_SHARE_LEAST_PKTS	32	/* that tell a share at all */
#define LOSS_SHARE_MOST_PKTS	512	/* that tell it for sure */
#define LOSS_SHARE_GRANTED_PKTS	2
#define LOSS_SHARE_SCATTER	18

/**
 * struct loss_share - state of one path; all zero is the initial state
 * @noise: p (1 / 2^LOSS_SHARE_SHIFT), below 1
 * @sent_pkts: n
 * @lost_pkts: L, at most n
 */
struct loss_share {
	u16 noise;
	u16 sent_pkts;
	u16 lost_pkts;
};

/**
 * loss_share_restart() - begin a new sample, keep the noise
 * @ls: state
 */
static inline void loss_share_restart(struct loss_share *ls)
{
	ls->sent_pkts = 0;
	ls->lost_pkts = 0;
}

/**
 * loss_share_add() - take packets into the sample
 * @ls: state
 * @sent_pkts: what became of so many is known (packets)
 * @lost_pkts: so many of them were lost (packets)
 *
 * A sample that would be too long for its fields is halved first; of more packets than
 * that leaves room for, their share is taken.
 */
static inline void loss_share_add(struct loss_share *ls, u32 sent_pkts,
				  u32 lost_pkts)
{
	u32 sent = sent_pkts < 0x8000 ? sent_pkts : 0x7fff;
	u32 lost = lost_pkts < sent_pkts ? lost_pkts : sent_pkts;

	if (sent < sent_pkts)
		lost = div_u64((u64)lost * sent, sent_pkts);
	if (ls->sent_pkts + sent > 0xffff) {
		ls->sent_pkts /= 2;
		ls->lost_pkts /= 2;
	}
	ls->sent_pkts += sent;
	ls->lost_pkts += lost;
}

/**
 * loss_share_exceeds() - is more lost than noise explains?
 * @ls: state
 * @allowed_shift: so many packets more are granted, sent / 2^@allowed_shift; 16
 *	and more: none
 *
 * Return: yes; no if the sample is too short to tell.
 */
static inline bool loss_share_exceeds(const struct loss_share *ls,
				      u32 allowed_shift)
{
	/* 2^16 * 2^16 at most; squared after the shift: 2^32 * 18 fits u64 */
	u64 expected = (u64)ls->sent_pkts * ls->noise;
	s64 excess = ls->lost_pkts - LOSS_SHARE_GRANTED_PKTS;

	if (ls->sent_pkts < LOSS_SHARE_LEAST_PKTS)
		return false;
	if (5 * (u32)ls->lost_pkts > 2 * (u32)ls->sent_pkts)
		return true;
	if (allowed_shift < LOSS_SHARE_SHIFT)
		excess -= ls->sent_pkts >> allowed_shift;
	excess -= (expected >> LOSS_SHARE_SHIFT);
	return excess > 0 && (u64)(excess * excess) >
	       expected * LOSS_SHARE_SCATTER >> LOSS_SHARE_SHIFT;
}

/**
 * loss_share_hear() - the share that was lost is noise
 * @ls: state
 * @sent_pkts: of so many packets
 * @lost_pkts: so many were lost
 * @weight: how sure that is, in 1 / LOSS_SHARE_MOST_PKTS, at most that
 */
static inline void loss_share_hear(struct loss_share *ls, u32 sent_pkts,
				   u32 lost_pkts, u32 weight)
{
	u64 lost = (u64)(lost_pkts < sent_pkts ? lost_pkts : sent_pkts);
	s32 share;

	if (!sent_pkts)
		return;
	share = div_u64(lost << LOSS_SHARE_SHIFT, sent_pkts);
	if (share > 0xffff)
		share = 0xffff;
	ls->noise += (share - ls->noise) * (s32)weight / LOSS_SHARE_MOST_PKTS;
}

/**
 * loss_share_noisy() - does noise alone take a packet of each second window?
 * @ls: state
 * @cwnd_pkts: w, the congestion window (packets)
 */
static inline bool loss_share_noisy(const struct loss_share *ls, u32 cwnd_pkts)
{
	return 2 * (u64)cwnd_pkts * ls->noise >> LOSS_SHARE_SHIFT;
}

#endif /* ESTIMATORS_LOSS_SHARE_H */
