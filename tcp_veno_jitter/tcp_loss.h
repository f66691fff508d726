/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Facts about the loss that the core is about to react to.
 */
#ifndef TCP_LOSS_H
#define TCP_LOSS_H

#include <net/tcp.h>

/**
 * tcp_loss_is_probed() - has this ACK shown that a tail loss probe repaired?
 * @tp: socket, inside the pkts_acked hook
 *
 * That is the condition of tcp_process_tlp_ack(), which runs next, except for
 * FLAG_DSACK_TLP: such a probe repaired nothing, and there is no reduction.
 *
 * Return: true if the next ssthresh hook of this ACK is for the probe. Keep it
 * until that hook, and take it as false after.
 */
static inline bool tcp_loss_is_probed(const struct tcp_sock *tp)
{
	return tp->tlp_high_seq && tp->tlp_retrans &&
	       after(tp->snd_una, tp->tlp_high_seq);
}

/**
 * tcp_loss_is_signalled() - did the network say "congestion" in so many words?
 * @tp: socket, inside the ssthresh hook
 * @probed: tcp_loss_is_probed() of this ACK
 *
 * Before that hook runs, the core sets prior_ssthresh to 0 when the reason is
 * an ECN echo or a drop in the host's own queue (tcp_enter_cwr()) or when the
 * ACK that starts fast recovery carries an ECN echo (tcp_enter_recovery()), as
 * such a reduction is never undone. Otherwise it holds the old threshold,
 * which is not 0. A loss repaired by a tail loss probe leaves the value of the
 * episode before, which is 0 if there was none or if that was a CE mark.
 */
static inline bool tcp_loss_is_signalled(const struct tcp_sock *tp, bool probed)
{
	return !tp->prior_ssthresh && !probed;
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

/**
 * tcp_loss_is_late_timeout() - a timeout that the core does not announce?
 * @sk: socket, inside the set_state hook, the new state is TCP_CA_Loss
 *
 * A timeout during fast recovery, as when the retransmission is lost as well,
 * belongs to the window that recovery has answered: tcp_enter_loss() calls
 * neither the ssthresh hook nor CA_EVENT_LOSS, sets cwnd and leaves the
 * threshold of recovery. w is in prior_cwnd. The state and high_seq are still
 * the old ones, so this is the core's condition once more.
 * tcp_simple_retransmit() (a smaller path MTU) takes this way too, but clears
 * both fields of undo first.
 */
static inline bool tcp_loss_is_late_timeout(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery &&
	       after(tp->high_seq, tp->snd_una) &&
	       (tp->undo_marker || tp->prior_ssthresh);
}

/**
 * tcp_loss_halve_late() - ssthresh = w / 2 in a recovery that may have kept more
 * @tp: socket, inside the set_state or in_ack_event hook
 *
 * Never raises the threshold. Undo stays right: it goes back to prior_cwnd and
 * prior_ssthresh, and neither is touched.
 */
static inline void tcp_loss_halve_late(struct tcp_sock *tp)
{
	tp->snd_ssthresh = min(tp->snd_ssthresh, max(tp->prior_cwnd >> 1, 2U));
}

/**
 * tcp_loss_halve_for_mark() - answer a mark that is told while a loss is repaired
 * @tp: socket, inside the in_ack_event hook, in TCP_CA_Recovery
 * @flags: what that hook is given
 *
 * The core asks for a threshold when recovery begins, and for none if the echo of
 * a mark comes later in it. PRR follows one that is lowered. An echo may be of a
 * mark that was answered before recovery began, as it goes on until CWR arrives:
 * then the threshold is half of prior_cwnd already. The ACK that ends recovery is
 * left to the core: if it has an echo, the ssthresh hook is for that, also where
 * this has answered it.
 *
 * Return: true if the threshold was lowered.
 */
static inline bool tcp_loss_halve_for_mark(struct tcp_sock *tp, u32 flags)
{
	u32 was_pkts = tp->snd_ssthresh;

	if (!(flags & CA_ACK_ECE) || !before(tp->snd_una, tp->high_seq))
		return false;
	tcp_loss_halve_late(tp);
	return tp->snd_ssthresh < was_pkts;
}

#endif /* TCP_LOSS_H */
