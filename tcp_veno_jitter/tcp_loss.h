/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts about the loss that the core is about to react to.
 */
#ifndef TCP_LOSS_H
#define TCP_LOSS_H

#include <net/tcp.h>

/**
 * tcp_loss_is_signalled() - did the network say "congestion" in so many words?
 * @tp: socket, inside the ssthresh hook
 *
 * Before that hook runs, the core sets prior_ssthresh to 0 when the reason is
 * an ECN echo or a drop in the host's own queue (tcp_enter_cwr()) or when the
 * ACK that starts fast recovery carries an ECN echo (tcp_enter_recovery()), as
 * such a reduction is never undone. Otherwise it holds the old threshold,
 * which is not 0. A loss repaired by a tail loss probe leaves the value of the
 * episode before: a probe after a CE mark counts as signalled, on the safe
 * side.
 */
static inline bool tcp_loss_is_signalled(const struct tcp_sock *tp)
{
	return !tp->prior_ssthresh;
}

/**
 * tcp_loss_half_window() - Reno's answer to a loss
 * @tp: socket
 *
 * RFC 5681 eq. 4, with the congestion window in place of the flight as
 * tcp_reno_ssthresh() has it.
 */
static inline u32 tcp_loss_half_window(const struct tcp_sock *tp)
{
	return max(tcp_snd_cwnd(tp) >> 1, 2U);
}

#endif /* TCP_LOSS_H */
