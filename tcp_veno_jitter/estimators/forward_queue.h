/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forward queue: how long the newest packet waited on the way there.
 *
 * Paper: E. H.-K. Wu, M.-Z. Chen, JTCP, IEEE JSAC 22(4), 2004: the jitter
 *
 *   D(i,n) = (R_n - R_i) - (S_n - S_i)
 *
 * between two packets needs no synchronised clocks. With i the packet that met
 * the emptiest queue so far, D(i,n) is the queueing delay of packet n, without
 * anything that happens to the ACKs:
 *
 *   D = (R_n - S_n) - base,   base = smallest R - S
 *   q = min(RTT - min RTT, D)
 *
 *   symbol   field          unit
 *   S, R     arguments      us; sender's, receiver's clock; both wrap
 *   base     base_us        us, the clocks' offset included, wraps
 *   tick     tick_us        us, resolution of R
 *   q        returned       us
 *   V        varies         2^FORWARD_QUEUE_VARIES_SHIFT us
 *
 * The round trip bounds it: the queue there is at most the queue there and
 * back. A reading of R is early by less than a tick, and so is the base's, so
 * q is less than the queue there by less than a tick: q + tick, or RTT - min RTT
 * if that is smaller, is never less. The smallest q of many packets is nearer:
 * one of them came just before the next tick, as did the base's. Packets that
 * are further apart than a tick are few, but then a tick is less than a packet.
 *
 * A skew of the receiver's clock is followed, not computed: a packet that seems
 * to have waited a tick longer than its whole round trip allows has a base that
 * is too small, and the base goes up by the rest.
 *
 * A path may have a delay that varies without any queue (a radio link that repeats
 * frames, a rate that changes), and then the packet that met the emptiest queue is
 * the luckiest of thousands. V is by how much q of the packet that ends a round trip
 * is above the smallest q of it, averaged over eight. A queue that stands is in both,
 * so V is what comes and goes.
 */
#ifndef ESTIMATORS_FORWARD_QUEUE_H
#define ESTIMATORS_FORWARD_QUEUE_H

#include "types.h"

#define FORWARD_QUEUE_VARIES_SHIFT	4	/* 16 us, up to a second */
#define FORWARD_QUEUE_VARIES_ROUNDS	8

/**
 * struct forward_queue - state of one path; all zero is the initial state
 * @base_us: R - S of a packet that met an empty queue (us), wraps
 * @varies: V (2^FORWARD_QUEUE_VARIES_SHIFT us)
 * @anchored: @base_us is valid
 * @known: the caller's: it is of a clock whose tick is known
 * @in_pieces: the caller's: more packets leave at once than delayed ACKs tell of
 * @asked: the caller's: it asks of each packet whether it met a queue
 * @denied: the caller's: losses that came from a queue that only R denies, less others
 * @unshown: the caller's: round trips in a row that were longer than the queue by R says
 * @sent_us: the caller's: when the last packet left that was asked whether it met a queue,
 *	lowest bits (us)
 */
struct forward_queue {
	u32 base_us;
	u16 varies;
	u8 anchored:1,
	   known:1,
	   in_pieces:1,
	   asked:1,
	   denied:2,
	   unshown:2;
	u8 sent_us;
};

/**
 * forward_queue_restart() - the receiver's clock is not what it was
 * @fq: state
 */
static inline void forward_queue_restart(struct forward_queue *fq)
{
	fq->anchored = 0;
}

/**
 * forward_queue_start() - take the newest packet's queue for known
 * @fq: state
 * @transit_us: R - S of that packet (us), wraps
 * @queue_us: its queueing delay (us)
 *
 * None for the first packets of a connection, which have no queue of their own: what
 * their round trip is above the smallest may well be the way back's.
 */
static inline void forward_queue_start(struct forward_queue *fq, u32 transit_us,
				       u32 queue_us)
{
	fq->anchored = 1;
	fq->base_us = transit_us - queue_us;
}

/**
 * forward_queue_follow() - queueing delay of the newest packet
 * @fq: state, after a start
 * @transit_us: R - S of that packet (us), wraps
 * @above_us: RTT - min RTT of that packet (us)
 * @tick_us: resolution of R (us), at least 1
 *
 * Return: q (us), at most @above_us; too small by less than @tick_us.
 */
static inline u32 forward_queue_follow(struct forward_queue *fq,
				       u32 transit_us, u32 above_us,
				       u32 tick_us)
{
	s32 waited_us = transit_us - fq->base_us;

	if (waited_us < 0) {
		fq->base_us = transit_us;
		return 0;
	}
	if ((u32)waited_us > above_us + tick_us)
		fq->base_us = transit_us - above_us - tick_us;
	return above_us < (u32)waited_us ? above_us : (u32)waited_us;
}

/**
 * forward_queue_update() - queueing delay of the newest packet, of any
 * @fq: state
 * @transit_us: R - S of that packet (us), wraps
 * @above_us: RTT - min RTT of that packet (us)
 * @tick_us: resolution of R (us), at least 1
 *
 * Without a start the first packet's queue is taken to be the one of the round
 * trip: a clock that becomes known while the queue is full must not call it empty.
 *
 * Return: q (us), at most @above_us; too small by less than @tick_us.
 */
static inline u32 forward_queue_update(struct forward_queue *fq,
				       u32 transit_us, u32 above_us,
				       u32 tick_us)
{
	if (fq->anchored)
		return forward_queue_follow(fq, transit_us, above_us, tick_us);
	forward_queue_start(fq, transit_us, above_us);
	return above_us;
}

/**
 * forward_queue_note_round() - a round trip is over
 * @fq: state
 * @last_us: q of its last packet (us)
 * @least_us: smallest q of it (us)
 *
 * The last one of each round trip, and not all of them: a mean over ACKs follows
 * a window that sinks too late, and would take that for V.
 */
static inline void forward_queue_note_round(struct forward_queue *fq,
					    u32 last_us, u32 least_us)
{
	u32 above = last_us > least_us ? last_us - least_us : 0;

	above >>= FORWARD_QUEUE_VARIES_SHIFT;
	if (above > 0xffff)
		above = 0xffff;
	fq->varies = ((FORWARD_QUEUE_VARIES_ROUNDS - 1) * fq->varies + above) /
		     FORWARD_QUEUE_VARIES_ROUNDS;
}

/**
 * forward_queue_forget_rounds() - after a silence the path may be another
 * @fq: state
 */
static inline void forward_queue_forget_rounds(struct forward_queue *fq)
{
	fq->varies = 0;
}

/**
 * forward_queue_varies_us() - V, rounded down
 * @fq: state
 *
 * Return: us; 0 before the first round trip.
 */
static inline u32 forward_queue_varies_us(const struct forward_queue *fq)
{
	return (u32)fq->varies << FORWARD_QUEUE_VARIES_SHIFT;
}

#endif /* ESTIMATORS_FORWARD_QUEUE_H */
