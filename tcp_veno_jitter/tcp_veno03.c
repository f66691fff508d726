// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Veno as published in 2003.
 *
 * Paper: C. P. Fu, S. C. Liew, "TCP Veno: TCP enhancement for transmission
 * over wireless access networks", IEEE JSAC 21(2), 2003.
 *
 *   N = w * (RTT - BaseRTT) / RTT         packets in the bottleneck queue
 *
 *                        N < beta              N >= beta
 *   congestion avoidance +1/w per ACK          +1/w per every other ACK
 *   duplicate ACKs       ssthresh = 4/5 w      ssthresh = w / 2
 *   timeout              ssthresh = w / 2, cwnd = 1 (both)
 *
 *   symbol   field             unit
 *   w        tcp_snd_cwnd()    packets
 *   RTT      srtt_us >> 3      us, smoothed as in the paper
 *   BaseRTT  base_rtt_us       us, smallest RTT since the last loss
 *   N        veno_backlog()    see estimators/veno_backlog.h
 *   beta     beta_pkts         packets
 *   4/5      keep_percent      1/100
 *
 * BaseRTT is reset at every detected loss. From then until the first new RTT
 * sample it is not known, and so is N: the window grows and shrinks as Reno's.
 *
 * Differences from the paper:
 *  - "every other ACK" is half the credit per acknowledged packet, so that an
 *    ACK which covers many packets counts for all of them.
 *  - A CE mark, and a drop in the host's own queue, is congestion whatever N:
 *    w / 2, also one told in a recovery. It is not a loss, so BaseRTT stays.
 *  - A loss that turns out not to have been one gives the old BaseRTT back.
 * docs/veno03.md lists the differences from the kernel's own veno.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "estimators/veno_backlog.h"
#include "tcp_info.h"
#include "tcp_loss.h"
#include "tcp_param.h"
#include "tcp_rtt.h"

#define TCP_VERDICT_SYSTEM veno03
#include "tcp_verdict.h"

static struct tcp_param veno03_beta_pkts = { .value = 3, .min = 1, .max = 1000 };
module_param_cb(beta_pkts, &tcp_param_ops, &veno03_beta_pkts, 0644);
MODULE_PARM_DESC(beta_pkts, "beta: backlog that means congestion, packets (1-1000)");

static struct tcp_param veno03_keep_percent = { .value = 80, .min = 50, .max = 100 };
module_param_cb(keep_percent, &tcp_param_ops, &veno03_keep_percent, 0644);
MODULE_PARM_DESC(keep_percent,
		 "share of the window kept after a random loss, 1/100 (50-100)");

/**
 * struct veno03 - private area of a connection
 * @base_rtt_us: BaseRTT (us), 0 if not known
 * @undo_base_rtt_us: BaseRTT before the last loss (us)
 * @probed: the next ssthresh hook is for a tail loss probe
 * @marked: a mark was answered in the recovery that lasts, or has ended with this ACK
 */
struct veno03 {
	u32 base_rtt_us;
	u32 undo_base_rtt_us;
	u8 probed:1,
	   marked:1;
};

static void veno03_init(struct sock *sk)
{
	struct veno03 *veno = inet_csk_ca(sk);

	memset(veno, 0, sizeof(*veno));
}

static void veno03_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct veno03 *veno = inet_csk_ca(sk);

	veno->probed = tcp_loss_is_probed(tcp_sk(sk));
	if (!tcp_rtt_is_measured(tcp_sk(sk), sample->rtt_us))
		return;
	if (!veno->base_rtt_us || sample->rtt_us < veno->base_rtt_us)
		veno->base_rtt_us = sample->rtt_us;
}

/* N in 1 / 2^VENO_BACKLOG_SHIFT packet. */
static u32 veno03_backlog(const struct sock *sk)
{
	const struct veno03 *veno = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return veno_backlog(tcp_snd_cwnd(tp), veno->base_rtt_us,
			    tp->srtt_us >> 3);
}

static bool veno03_is_congested(const struct sock *sk)
{
	return veno03_backlog(sk) >=
	       tcp_param_get(&veno03_beta_pkts) << VENO_BACKLOG_SHIFT;
}

static void veno03_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 credit_pkts;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	credit_pkts = tcp_snd_cwnd(tp);
	if (veno03_is_congested(sk))
		credit_pkts *= 2;
	tcp_cong_avoid_ai(tp, credit_pkts, acked);
}

/* A loss was detected; the next RTT sample starts a new BaseRTT. */
static void veno03_reset_base_rtt(struct veno03 *veno)
{
	if (veno->base_rtt_us)
		veno->undo_base_rtt_us = veno->base_rtt_us;
	veno->base_rtt_us = 0;
}

static void veno03_tell_verdict(const struct sock *sk, bool congestion,
				bool probed)
{
	const struct tcp_verdict_features features = {
		.backlog = veno03_backlog(sk),
	};

	tcp_verdict(sk, congestion, probed, &features);
}

/*
 * Fast retransmit, ECN and timeout all come through here; a timeout is known
 * only afterwards, by CA_EVENT_LOSS.
 */
static u32 veno03_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct veno03 *veno = inet_csk_ca(sk);
	bool probed = veno->probed;
	bool congestion;
	u64 kept;

	veno->probed = 0;
	if (tcp_loss_is_signalled(tp, probed))
		return veno->marked ? max(tcp_snd_cwnd(tp), 2U) :
				      tcp_loss_half_window(tp);

	congestion = !veno->base_rtt_us || veno03_is_congested(sk);
	if (tcp_verdict_is_watched())
		veno03_tell_verdict(sk, congestion, probed);
	veno03_reset_base_rtt(veno);
	if (congestion)
		return tcp_loss_half_window(tp);
	kept = (u64)tcp_snd_cwnd(tp) * tcp_param_get(&veno03_keep_percent);
	return max_t(u32, div_u64(kept, 100), 2);
}

static void veno03_in_ack_event(struct sock *sk, u32 flags)
{
	struct veno03 *veno = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery)
		veno->marked = 0;
	else if (tcp_loss_halve_for_mark(tcp_sk(sk), flags))
		veno->marked = 1;
}

static void veno03_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* in tcp_enter_loss(), cwnd is still w */
	if (event == CA_EVENT_LOSS)
		tp->snd_ssthresh = tcp_loss_half_window(tp);
}

static void veno03_set_state(struct sock *sk, u8 new_state)
{
	struct veno03 *veno = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss || !tcp_loss_is_late_timeout(sk))
		return;
	tcp_loss_halve_late(tcp_sk(sk));
	/* undo goes back to before recovery: keep undo_base_rtt_us */
	veno->base_rtt_us = 0;
}

static u32 veno03_undo_cwnd(struct sock *sk)
{
	struct veno03 *veno = inet_csk_ca(sk);

	veno->base_rtt_us = min_not_zero(veno->base_rtt_us,
					 veno->undo_base_rtt_us);
	return tcp_reno_undo_cwnd(sk);
}

static size_t veno03_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct veno03 *veno = inet_csk_ca(sk);
	const struct tcp_info_state state = {
		.base_rtt_us = veno->base_rtt_us,
		.backlog = veno03_backlog(sk),
	};

	return tcp_info_fill(&state, ext, attr, info);
}

static struct tcp_congestion_ops veno03_ops __read_mostly = {
	.init		= veno03_init,
	.ssthresh	= veno03_ssthresh,
	.cong_avoid	= veno03_cong_avoid,
	.undo_cwnd	= veno03_undo_cwnd,
	.cwnd_event	= veno03_cwnd_event,
	.set_state	= veno03_set_state,
	.in_ack_event	= veno03_in_ack_event,
	.pkts_acked	= veno03_pkts_acked,
	.get_info	= veno03_get_info,

	.owner		= THIS_MODULE,
	.name		= "veno03",
};

static int __init veno03_register(void)
{
	BUILD_BUG_ON(sizeof(struct veno03) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&veno03_ops);
}

static void __exit veno03_unregister(void)
{
	tcp_unregister_congestion_control(&veno03_ops);
}

module_init(veno03_register);
module_exit(veno03_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Veno as published in 2003");
MODULE_VERSION("0.1");
