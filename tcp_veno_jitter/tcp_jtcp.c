// SPDX-License-Identifier: GPL-2.0-only
/*
 * JTCP: congestion control that tells wireless from congestion loss by the
 * jitter ratio.
 *
 * Papers: E. H.-K. Wu, M.-Z. Chen, "JTCP: Jitter-based TCP for heterogeneous
 * wireless networks", IEEE JSAC 22(4), 2004; the smoothing is of J.-M. Chen et
 * al., "Improving SCTP performance by jitter-based congestion control over
 * wired-wireless networks", EURASIP JWCN 2011, section 3.1.4.
 *
 *   Jr  = ((R_n - R_0) - (S_n - S_0)) / (R_n - R_0)   over m windows
 *   sjr = (1 - a) * sjr + a * Jr                      Jr = 0 left out
 *   sjr >= k / w                                      congestion, else wireless
 *
 *                 congestion                    wireless
 *   fast rtx      ssthresh = cwnd = w / 2       cwnd = w, ssthresh >= w
 *   timeout       ssthresh = w / 2, cwnd = 1    ssthresh = cwnd = w / 2
 *
 *   symbol  field                       unit
 *   S, R    arrival (tcp_arrival.h)     us
 *   Jr      ratio.jr                    see estimators/jitter_ratio.h
 *   sjr     ratio.sjr                   same
 *   w       tcp_snd_cwnd()              packets
 *   k       k_percent                   1/100 packet
 *   m       m                           windows
 *   a       alpha_percent               1/100
 *
 * The window grows as Reno's.
 *
 * Differences from the papers:
 *  - sjr decides, not Jr; alpha_percent = 0 gives JTCP of 2004 back.
 *  - k is half a packet, not one. A saturated path gives a ratio of 1/w, an idle
 *    one 0: k = 1 is the very value to be recognised, so that rounding decides;
 *    1/2 leaves the same margin on both sides.
 *  - S and R of SACKed packets count, so the ratio is followed during recovery.
 *  - A CE mark, and a drop in the host's own queue, is congestion whatever the
 *    ratio, also one told in a recovery; and so is a loss before the first
 *    complete span.
 *  - A loss within one smoothed RTT of the one classified last changes nothing
 *    more. Recovery already gives that; a tail loss probe does not.
 *  - A timeout that follows a timeout with nothing acknowledged between them is
 *    left to the core: cwnd = 1.
 *  - The core has no recovery that leaves ssthresh alone: a wireless loss
 *    raises a lower one to w; a higher one comes back when recovery ends.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "estimators/jitter_ratio.h"
#include "tcp_arrival.h"
#include "tcp_info.h"
#include "tcp_loss.h"
#include "tcp_param.h"

#define TCP_VERDICT_SYSTEM jtcp
#include "tcp_verdict.h"

#define TCP_JITTER_SYSTEM jtcp
#define CREATE_TRACE_POINTS
#include "tcp_jitter_trace.h"

static struct tcp_param jtcp_k_percent = { .value = 50, .min = 1, .max = 1000 };
module_param_cb(k_percent, &tcp_param_ops, &jtcp_k_percent, 0644);
MODULE_PARM_DESC(k_percent,
		 "k: queued packets per window that mean congestion, 1/100 packet (1-1000)");

static struct tcp_param jtcp_m = { .value = 1, .min = 1, .max = 16 };
module_param_cb(m, &tcp_param_ops, &jtcp_m, 0644);
MODULE_PARM_DESC(m, "m: windows a jitter ratio spans (1-16)");

static struct tcp_param jtcp_alpha_percent = { .value = 5, .min = 0, .max = 100 };
module_param_cb(alpha_percent, &tcp_param_ops, &jtcp_alpha_percent, 0644);
MODULE_PARM_DESC(alpha_percent,
		 "a: weight of a packet in the jitter ratio, 1/100; 0: use the raw ratio (0-100)");

static struct tcp_param jtcp_peer_clock = { .value = 1, .min = 0, .max = 1 };
module_param_cb(peer_clock, &tcp_param_ops, &jtcp_peer_clock, 0644);
MODULE_PARM_DESC(peer_clock,
		 "R is the receiver's time stamp; 0: when the ACK arrives, which no receiver can forge (0-1)");

/**
 * struct jtcp - private area of a connection
 * @arrival: times of the newest acknowledged packet
 * @ratio: jitter ratio
 * @verdict_us: when a loss was last classified, our clock (us), 0: never
 * @held_ssthresh: threshold to give back after a wireless loss (packets)
 * @wireless: the last loss was wireless
 * @timeout: a timeout was classified; its window is still to be set
 * @probed: the next ssthresh hook is for a tail loss probe
 * @marked: a mark was answered in the recovery that lasts, or has ended with this ACK
 */
struct jtcp {
	struct tcp_arrival arrival;
	struct jitter_ratio ratio;
	u64 verdict_us;
	u32 held_ssthresh;
	u8 wireless:1,
	   timeout:1,
	   probed:1,
	   marked:1;
};

static void jtcp_init(struct sock *sk)
{
	struct jtcp *jtcp = inet_csk_ca(sk);

	memset(jtcp, 0, sizeof(*jtcp));
}

static void jtcp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct jtcp *jtcp = inet_csk_ca(sk);
	struct jitter_sample in;
	u32 flags;

	jtcp->probed = tcp_loss_is_probed(tp);
	flags = tcp_arrival_update(&jtcp->arrival, tp, sample->rtt_us,
				   tcp_param_get(&jtcp_peer_clock));
	if (flags & TCP_ARRIVAL_RESTART)
		jitter_ratio_restart(&jtcp->ratio);
	if (!(flags & TCP_ARRIVAL_SENT))
		return;

	/* delivered counts what sample->pkts_acked does, and SACKs at once */
	in.pkts = tp->delivered;
	in.sent_us = (u32)jtcp->arrival.sent_us;
	in.arrived_us = jtcp->arrival.arrived_us;
	in.tick_us = tcp_arrival_tick_us(&jtcp->arrival);
	if (jitter_ratio_update(&jtcp->ratio, &in, tcp_snd_cwnd(tp),
				tcp_param_get(&jtcp_m),
				tcp_param_get(&jtcp_alpha_percent)))
		trace_tcp_jitter_ratio(sk, jtcp->ratio.jr, jtcp->ratio.sjr);
}

/* The ratio that decides: sjr, or Jr if smoothing is off. */
static s32 jtcp_ratio(const struct jtcp *jtcp)
{
	return tcp_param_get(&jtcp_alpha_percent) ? jtcp->ratio.sjr :
						    jtcp->ratio.jr;
}

static bool jtcp_is_congestion(const struct tcp_sock *tp,
			       const struct jtcp *jtcp)
{
	if (!jtcp->ratio.sampled)
		return true;
	return jitter_ratio_congested(jtcp_ratio(jtcp), tcp_snd_cwnd(tp),
				      tcp_param_get(&jtcp_k_percent));
}

/* Already answered a loss in this round trip? */
static bool jtcp_just_classified(const struct tcp_sock *tp,
				 const struct jtcp *jtcp)
{
	return jtcp->verdict_us &&
	       tp->tcp_mstamp - jtcp->verdict_us < tp->srtt_us >> 3;
}

static void jtcp_tell_verdict(const struct sock *sk, bool probed)
{
	const struct jtcp *jtcp = inet_csk_ca(sk);
	const struct tcp_verdict_features features = {
		.jr = jtcp->ratio.jr,
		.sjr = jtcp->ratio.sjr,
	};

	tcp_verdict(sk, !jtcp->wireless, probed, &features);
}

/*
 * Fast retransmit, ECN and timeout all come through here; which of them is
 * known only afterwards, so a timeout is corrected in jtcp_timeout().
 */
static u32 jtcp_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct jtcp *jtcp = inet_csk_ca(sk);
	bool probed = jtcp->probed;
	bool signalled = tcp_loss_is_signalled(tp, probed);

	jtcp->probed = 0;
	if (signalled ? jtcp->marked : jtcp_just_classified(tp, jtcp))
		return max(tcp_snd_cwnd(tp), 2U);

	jtcp->verdict_us = tp->tcp_mstamp;
	jtcp->wireless = !signalled && !jtcp_is_congestion(tp, jtcp);
	if (tcp_verdict_is_watched() && !signalled)
		jtcp_tell_verdict(sk, probed);
	if (!jtcp->wireless) {
		jtcp->held_ssthresh = 0;
		return tcp_loss_half_window(tp);
	}
	jtcp->held_ssthresh = tp->snd_ssthresh;
	return max(tcp_snd_cwnd(tp), 2U);
}

static void jtcp_in_ack_event(struct sock *sk, u32 flags)
{
	struct jtcp *jtcp = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery) {
		jtcp->marked = 0;
	} else if (tcp_loss_halve_for_mark(tcp_sk(sk), flags)) {
		jtcp->marked = 1;
		jtcp->wireless = 0;
		jtcp->held_ssthresh = 0;
	}
}

/* The core is in tcp_enter_loss(), cwnd is still w. */
static void jtcp_timeout(struct sock *sk)
{
	struct jtcp *jtcp = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = tcp_loss_half_window(tp);
	jtcp->held_ssthresh = 0;
	jtcp->timeout = 1;
}

static void jtcp_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct jtcp *jtcp = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	switch (event) {
	case CA_EVENT_LOSS:
		jtcp_timeout(sk);
		break;
	case CA_EVENT_COMPLETE_CWR:
		tp->snd_ssthresh = max(tp->snd_ssthresh, jtcp->held_ssthresh);
		jtcp->held_ssthresh = 0;
		break;
	default:
		break;
	}
}

/*
 * tcp_enter_loss() sets cwnd after CA_EVENT_LOSS, and the state after that. A
 * timeout during fast recovery keeps the verdict that recovery began with.
 */
static void jtcp_set_state(struct sock *sk, u8 new_state)
{
	struct jtcp *jtcp = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state != TCP_CA_Loss)
		return;
	if (!jtcp->timeout) {
		if (!tcp_loss_is_late_timeout(sk))
			return;
		tcp_loss_halve_late(tp);
		jtcp->held_ssthresh = 0;
	}
	jtcp->timeout = 0;
	if (jtcp->wireless)
		tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
}

/* The core gives the old threshold back; a loss that was none has had no answer. */
static u32 jtcp_undo_cwnd(struct sock *sk)
{
	struct jtcp *jtcp = inet_csk_ca(sk);

	jtcp->held_ssthresh = 0;
	jtcp->verdict_us = 0;
	return tcp_reno_undo_cwnd(sk);
}

static size_t jtcp_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct jtcp *jtcp = inet_csk_ca(sk);
	const struct tcp_info_state state = {
		.base_rtt_us = tcp_min_rtt(tcp_sk(sk)),
		.jitter_ratio = jtcp_ratio(jtcp),
	};

	return tcp_info_fill(&state, ext, attr, info);
}

static struct tcp_congestion_ops jtcp_ops __read_mostly = {
	.init		= jtcp_init,
	.ssthresh	= jtcp_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= jtcp_undo_cwnd,
	.cwnd_event	= jtcp_cwnd_event,
	.set_state	= jtcp_set_state,
	.in_ack_event	= jtcp_in_ack_event,
	.pkts_acked	= jtcp_pkts_acked,
	.get_info	= jtcp_get_info,

	.owner		= THIS_MODULE,
	.name		= "jtcp",
};

static int __init jtcp_register(void)
{
	BUILD_BUG_ON(sizeof(struct jtcp) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&jtcp_ops);
}

static void __exit jtcp_unregister(void)
{
	tcp_unregister_congestion_control(&jtcp_ops);
}

module_init(jtcp_register);
module_exit(jtcp_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("JTCP: jitter-based congestion control");
MODULE_VERSION("0.1");
