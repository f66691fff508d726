// SPDX-License-Identifier: GPL-2.0-only
/*
 * TABE: after a loss, the window that the measured bandwidth needs.
 *
 * Papers: K. Xu, Y. Tian, N. Ansari, "Improving TCP performance in integrated
 * wireless communications networks" (TCP New Jersey), Computer Networks 47(2),
 * 2005; J.-M. Chen et al., EURASIP JWCN 2011, section 3.2.1.
 *
 *   B_n   = (RTT * B_{n-1} + L_n) / ((t_n - t_{n-1}) + RTT)
 *   ocwnd = RTT * B_n / s
 *
 *   loss      ssthresh = cwnd = ocwnd, at least 2, at most w
 *   timeout   ssthresh = ocwnd, cwnd = 1
 *
 *   symbol        field                           unit
 *   B_n           bandwidth.bw_bytes_per_s        bytes/s
 *   t_n           arrival.arrived_us              us, receiver's clock
 *   L_n           packets delivered * s           bytes
 *   RTT in B_n    srtt_us >> 3                    us
 *   RTT in ocwnd  tcp_min_rtt(), or srtt_us >> 3  us
 *   s             mss_cache                       bytes
 *   w             tcp_snd_cwnd()                  packets
 *
 * The window grows as Reno's. Every loss counts as congestion: TABE says where
 * to go, not why. That ocwnd fits a random loss as well is what makes it good.
 *
 * Differences from the papers:
 *  - RTT in ocwnd is the smallest one (ocwnd_srtt = 0). With the smoothed one,
 *    RTT * B is the path *and* the queue, that is the window there was: a full
 *    queue would never be drained.
 *  - L_n counts packets, SACKed ones at once, so B does not starve during
 *    recovery and overshoot at its end. Segments below s count as full; as
 *    ocwnd is in packets too, that cancels out.
 *  - A loss before the first estimate halves the window, as Reno does.
 *  - ocwnd is bounded by w. The flight is no bound: the core answers a CE mark
 *    and a probe's repair when packets_out no longer has what the ACK
 *    acknowledged, which is nothing at the end of a burst.
 *  - A pause in sending is left out, it is no evidence of a slower path.
 *  - New Jersey's congestion warning (marking in routers) is left out; a CE
 *    mark is answered as a loss is.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "estimators/tabe.h"
#include "tcp_arrival.h"
#include "tcp_info.h"
#include "tcp_loss.h"
#include "tcp_param.h"

static struct tcp_param tabe_ocwnd_srtt = { .value = 0, .min = 0, .max = 1 };
module_param_cb(ocwnd_srtt, &tcp_param_ops, &tabe_ocwnd_srtt, 0644);
MODULE_PARM_DESC(ocwnd_srtt,
		 "RTT in ocwnd = RTT * B / s: 0 smallest, 1 smoothed (0-1)");

/**
 * struct tcp_tabe - private area of a connection
 * @arrival: times of the newest acknowledged packet
 * @bandwidth: estimate
 * @delivered_pkts: packets delivered at the last ACK
 */
struct tcp_tabe {
	struct tcp_arrival arrival;
	struct tabe bandwidth;
	u32 delivered_pkts;
};

static void tcp_tabe_init(struct sock *sk)
{
	struct tcp_tabe *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->delivered_pkts = tcp_sk(sk)->delivered;
}

static void tcp_tabe_pkts_acked(struct sock *sk,
				const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_tabe *ca = inet_csk_ca(sk);
	u64 bytes = (u64)(tp->delivered - ca->delivered_pkts) * tp->mss_cache;
	u32 flags;

	ca->delivered_pkts = tp->delivered;
	flags = tcp_arrival_update(&ca->arrival, tp, sample->rtt_us, true);
	if (flags & TCP_ARRIVAL_RESTART)
		tabe_restart(&ca->bandwidth);
	/* an ACK without a time of its own: its bytes count at the last one */
	tabe_update(&ca->bandwidth, ca->arrival.arrived_us,
		    min_t(u64, bytes, U32_MAX), tp->srtt_us >> 3);
}

/* RTT in ocwnd (us). */
static u32 tcp_tabe_rtt_us(const struct tcp_sock *tp)
{
	if (tcp_param_get(&tabe_ocwnd_srtt))
		return tp->srtt_us >> 3;
	return tcp_min_rtt(tp);
}

/* ocwnd, but not more than a window of @w_pkts. */
static u32 tcp_tabe_ocwnd(const struct sock *sk, u32 w_pkts)
{
	const struct tcp_tabe *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 ocwnd_pkts = tabe_window_pkts(&ca->bandwidth, tcp_tabe_rtt_us(tp),
					  tp->mss_cache);

	return clamp(ocwnd_pkts, 2U, max(w_pkts, 2U));
}

static u32 tcp_tabe_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct tcp_tabe *ca = inet_csk_ca(sk);

	if (!ca->bandwidth.bw_bytes_per_s)
		return tcp_loss_half_window(tp);
	return tcp_tabe_ocwnd(sk, tcp_snd_cwnd(tp));
}

static void tcp_tabe_set_state(struct sock *sk, u8 new_state)
{
	const struct tcp_tabe *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state != TCP_CA_Loss || !tcp_loss_is_late_timeout(sk) ||
	    !ca->bandwidth.bw_bytes_per_s)
		return;
	/* B may have fallen since recovery began */
	tp->snd_ssthresh = tcp_tabe_ocwnd(sk, tp->snd_ssthresh);
}

static size_t tcp_tabe_get_info(struct sock *sk, u32 ext, int *attr,
				union tcp_cc_info *info)
{
	const struct tcp_tabe *ca = inet_csk_ca(sk);
	const struct tcp_info_state state = {
		.bw_bytes_per_s = ca->bandwidth.bw_bytes_per_s,
		.base_rtt_us = tcp_tabe_rtt_us(tcp_sk(sk)),
	};

	return tcp_info_fill(&state, ext, attr, info);
}

static struct tcp_congestion_ops tcp_tabe_ops __read_mostly = {
	.init		= tcp_tabe_init,
	.ssthresh	= tcp_tabe_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.set_state	= tcp_tabe_set_state,
	.pkts_acked	= tcp_tabe_pkts_acked,
	.get_info	= tcp_tabe_get_info,

	.owner		= THIS_MODULE,
	.name		= "tabe",
};

static int __init tcp_tabe_register(void)
{
	BUILD_BUG_ON(sizeof(struct tcp_tabe) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_tabe_ops);
}

static void __exit tcp_tabe_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_tabe_ops);
}

module_init(tcp_tabe_register);
module_exit(tcp_tabe_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TABE: time-stamp-based available bandwidth estimation");
MODULE_VERSION("0.1");
