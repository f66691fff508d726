/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Send and arrival time of the newest acknowledged packet, once per ACK.
 *
 *   S = tcp_mstamp - rtt_us         us, our clock
 *   R = the ACK's TSval             us, receiver's clock (peer_clock.h)
 *
 * S comes from the packet's own send time, not from TSecr, which goes stale
 * while a hole exists; SACKed packets count. Only where the ACK is of a
 * retransmission, too, the core's rtt_us is of the time stamp, in whole ms, and
 * the receiver's to choose (docs/jtcp.md, limits). rtt_us < 0: there is no S.
 *
 * Without time stamps on the connection, while the receiver's tick is not known
 * (0.26 s at the start), and for who does not believe the receiver's clock, R is
 * the arrival of the ACK on our clock. Then the return path is part of it: a
 * jitter ratio is one of the round trip, a bandwidth estimate one of the ACK
 * stream. An ACK without a time stamp on a connection that has them is no sample.
 *
 *   symbol  field          unit
 *   S       sent_us        us, our clock, does not wrap
 *   R       arrived_us     us, receiver's clock, wraps
 */
#ifndef TCP_ARRIVAL_H
#define TCP_ARRIVAL_H

#include <net/tcp.h>

#include "estimators/peer_clock.h"

/* Results of tcp_arrival_update(), a bit mask. */
#define TCP_ARRIVAL_TIME	0x1	/* arrived_us is of this ACK */
#define TCP_ARRIVAL_SENT	0x2	/* so is sent_us */
#define TCP_ARRIVAL_RESTART	0x4	/* do not compare with earlier times */

/* Nothing was sent for this many smoothed RTTs: a pause, not a queue. */
#define TCP_ARRIVAL_PAUSE_RTTS	2

/**
 * struct tcp_arrival - state of one connection; all zero is the initial state
 * @clock: the receiver's clock
 * @sent_us: S (us)
 * @arrived_us: R (us)
 * @seen: @sent_us is valid
 * @peer: @arrived_us is of the receiver's clock, not of ours
 */
struct tcp_arrival {
	struct peer_clock clock;
	u64 sent_us;
	u32 arrived_us;
	u8 seen:1,
	   peer:1;
};

/* Resolution of R (us). */
static inline u32 tcp_arrival_tick_us(const struct tcp_arrival *arrival)
{
	return arrival->peer ? peer_clock_known_us(&arrival->clock) : 1;
}

static inline u32 tcp_arrival_note_time(struct tcp_arrival *arrival,
					const struct tcp_sock *tp,
					bool believed)
{
	enum peer_clock_result result = PEER_CLOCK_OK;
	u32 flags = TCP_ARRIVAL_TIME;
	bool peer = false;

	if (believed && tp->rx_opt.tstamp_ok) {
		if (!tp->rx_opt.saw_tstamp)
			return 0;
		result = peer_clock_update(&arrival->clock,
					   tp->rx_opt.rcv_tsval,
					   tp->tcp_mstamp);
		if (result == PEER_CLOCK_OLD)
			return 0;
		peer = arrival->clock.known;
	}
	if (result == PEER_CLOCK_CHANGED || peer != arrival->peer)
		flags |= TCP_ARRIVAL_RESTART;
	arrival->peer = peer;
	arrival->arrived_us = peer ? arrival->clock.peer_us :
				     (u32)tp->tcp_mstamp;
	return flags;
}

static inline u32 tcp_arrival_note_sent(struct tcp_arrival *arrival,
					const struct tcp_sock *tp, s32 rtt_us)
{
	u32 pause_us = TCP_ARRIVAL_PAUSE_RTTS * (tp->srtt_us >> 3);
	u64 sent_us = tp->tcp_mstamp - rtt_us;
	u32 flags = TCP_ARRIVAL_SENT;

	if (rtt_us < 0 || (arrival->seen && sent_us < arrival->sent_us))
		return 0;
	if (arrival->seen && sent_us - arrival->sent_us > pause_us)
		flags |= TCP_ARRIVAL_RESTART;
	arrival->seen = 1;
	arrival->sent_us = sent_us;
	return flags;
}

/**
 * tcp_arrival_update() - the first step of a pkts_acked hook
 * @arrival: state
 * @tp: socket
 * @rtt_us: the ack_sample's round trip time (us), negative for none
 * @believed: the receiver's clock is; a forged one hides a queue
 *
 * Return: TCP_ARRIVAL_* bits.
 */
static inline u32 tcp_arrival_update(struct tcp_arrival *arrival,
				     const struct tcp_sock *tp, s32 rtt_us,
				     bool believed)
{
	u32 flags = tcp_arrival_note_time(arrival, tp, believed);

	if (flags)
		flags |= tcp_arrival_note_sent(arrival, tp, rtt_us);
	return flags;
}

#endif /* TCP_ARRIVAL_H */
