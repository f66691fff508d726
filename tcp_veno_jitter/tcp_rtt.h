/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which of the core's round trips are measured.
 */
#ifndef TCP_RTT_H
#define TCP_RTT_H

#include <net/tcp.h>

/**
 * tcp_rtt_is_measured() - is that a round trip that our clock has measured?
 * @tp: socket, in pkts_acked or cong_control
 * @rtt_us: what the core says it is (us), 0 or less: none
 *
 * Where the ACK is of a retransmission as well, the core makes one of the time stamp
 * that it returns: whole ms, and the receiver's to choose.
 *
 * Return: true if it is that of the newest packet that has come.
 */
static __always_inline bool tcp_rtt_is_measured(const struct tcp_sock *tp,
						long rtt_us)
{
	return rtt_us > 0 && (u32)tp->tcp_mstamp - (u32)rtt_us ==
			     (u32)tp->first_tx_mstamp;
}

#endif /* TCP_RTT_H */
