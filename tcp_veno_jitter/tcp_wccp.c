// SPDX-License-Identifier: GPL-2.0-only
/*
 * WCCP: the nodes of a wireless path say how fast to send.
 *
 * Paper: H. Zhai, X. Chen, Y. Fang, "Improving transport layer performance in
 * multihop ad hoc networks by exploiting MAC layer information", IEEE
 * Transactions on Wireless Communications 6(5), 2007, as the seed paper (WCCP)
 * gives it.
 *
 *   first feedback   r_p = 1 segment a round trip
 *   feedback         r_p = r_p + fb, once per T_c
 *   T_c              max(min_rtt, b / r_p)
 *
 * That is the sender. What nodes do is in sch_wccp.c and estimators/wccp_share.h,
 * what segments carry in estimators/wccp_option.h.
 *
 *   symbol  field              unit
 *   r_p     rate               bytes/s of payload
 *   fb      feedback           bytes/s
 *   T_c     wccp_interval_us() us
 *   b       pkts_per_interval  segments
 *
 *                    feedback
 *   plain TCP ----------------------> rate: segments are paced with r_p
 *             <----------------------
 *               none for a while, or a timeout
 *
 * Under the rate there is always Reno's window, and r_p is never more than twice
 * what the window allows: whatever nodes say, a loss halves the window. With
 * feedback the window is at most window_percent of r_p * min_rtt. Without it, it
 * is Reno, paced as the kernel paces it.
 *
 * Differences from the paper: T_c is of the smallest round trip time, not of the
 * smoothed one, so that who fills queues does not answer the more slowly. fb > 0
 * counts only if it is about data that was sent after the last change, which is
 * a round trip. It is between -r_p/2 and r_p. A flow whose application has no
 * more to send, or that repairs a loss, is not given more. r_p bounds the window:
 * near the edge of what the channel carries nodes notice too much only late.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "compat/tcp_cong.h"
#include "estimators/wccp_option.h"
#include "tcp_info.h"
#include "tcp_param.h"
#include "tcp_wccp.h"

static struct tcp_param wccp_pkts_per_interval = { .value = 3, .min = 1, .max = 100 };
module_param_cb(pkts_per_interval, &tcp_param_ops, &wccp_pkts_per_interval,
		0644);
MODULE_PARM_DESC(pkts_per_interval,
		 "b: the control interval has as many segments at least (1-100)");

static struct tcp_param wccp_window_percent = { .value = 250, .min = 100, .max = 1000 };
module_param_cb(window_percent, &tcp_param_ops, &wccp_window_percent, 0644);
MODULE_PARM_DESC(window_percent,
		 "the window is at most so much of r_p times the smallest RTT (100-1000)");

#define WCCP_SILENT_INTERVALS	4	/* T_c without feedback: plain TCP */
#define WCCP_SILENT_MIN_US	(250U * USEC_PER_MSEC)
#define WCCP_SILENT_MAX_US	(2U * USEC_PER_SEC)
#define WCCP_WINDOW_MIN_PKTS	4U	/* one more than ACKs wait for */
#define WCCP_FIRST_PKTS		2U	/* until an ACK says if there is feedback */
#define WCCP_SLOWEST_SHIFT	1	/* r_p is half a segment a round trip */
#define WCCP_WINDOW_SHIFT	1	/* r_p is twice the window's rate */
#define WCCP_PACE_STARTUP_PERCENT 200	/* without feedback, as the kernel has it */
#define WCCP_PACE_PERCENT	120

/**
 * struct tcp_wccp - private area of a connection
 * @rate: r_p (bytes/s); 0: plain TCP
 * @feedback: newest fb (bytes/s)
 * @round_end: what is sent when so many packets are delivered is sent after r_p
 *	changed (packets, wraps)
 * @changed_us: when r_p changed (us, wraps)
 * @heard: when @feedback came (jiffies)
 * @min_rtt_us: smallest round trip time of whole segments since the last timeout;
 *	~0: none
 * @bytes_acked: so many were acknowledged before (bytes, wraps)
 * @fresh: it came after the last change
 * @seen: so did an ACK of what was sent after it
 * @waiting: no data has been acknowledged yet
 * @sinking: the window sinks to snd_ssthresh
 * @reserved: segments are left room for the option
 */
struct tcp_wccp {
	u32 rate;
	s32 feedback;
	u32 round_end;
	u32 changed_us;
	u32 heard;
	u32 min_rtt_us;
	u32 bytes_acked;
	u8 fresh:1,
	   seen:1,
	   waiting:1,
	   sinking:1,
	   reserved:1;
};

static struct tcp_congestion_ops wccp_ops;

/* Segments leave so many bytes to options that TCP does not know of. */
static void wccp_reserve(struct sock *sk, int bytes)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	icsk->icsk_ext_hdr_len += bytes;
	if (icsk->icsk_pmtu_cookie && sk->sk_state != TCP_CLOSE)
		icsk->icsk_sync_mss(sk, icsk->icsk_pmtu_cookie);
}

/*
 * One segment a round trip (bytes/s). Small packets, such as those of the
 * handshake, come back sooner than data does: the newest one counts as well.
 */
static u32 wccp_first_rate(const struct tcp_sock *tp)
{
	u32 rtt_us = max3(tp->srtt_us >> 3, tp->rack.rtt_us, 1U);

	return min_t(u64, div_u64((u64)tp->mss_cache * USEC_PER_SEC, rtt_us),
		     S32_MAX);
}

static void wccp_set_pacing(struct sock *sk, u64 rate)
{
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void wccp_init(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	memset(ca, 0, sizeof(*ca));
	ca->min_rtt_us = ~0U;
	ca->bytes_acked = tp->bytes_acked;
	/* IPv4 only, also where an IPv6 socket is used for it */
	if (inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct iphdr)) {
		ca->reserved = 1;
		wccp_reserve(sk, WCCP_DATA_BYTES);
	}
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	if (tp->bytes_acked <= 1 && !tp->data_segs_out) {
		ca->waiting = 1;
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), WCCP_FIRST_PKTS));
		if (tp->srtt_us)
			wccp_set_pacing(sk, wccp_first_rate(tp));
	}
}

static void wccp_release(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (ca->reserved)
		wccp_reserve(sk, -WCCP_DATA_BYTES);
	ca->reserved = 0;
}

/* T_c; no lock is needed. */
static u32 wccp_interval_us(const struct tcp_sock *tp, u64 rate)
{
	u64 bytes = (u64)tcp_param_get(&wccp_pkts_per_interval) *
		    READ_ONCE(tp->mss_cache);
	u64 interval_us = div64_u64(bytes * USEC_PER_SEC, max(rate, 1ULL));
	u32 min_rtt_us = tcp_min_rtt(tp);

	if (min_rtt_us == ~0U)
		min_rtt_us = 0;
	return min_t(u64, max_t(u64, min_rtt_us, interval_us), S32_MAX);
}

/* What Reno's window allows (bytes/s); 2^16 bytes, 2^20 us: 2^27 packets fit. */
static u64 wccp_window_rate(const struct tcp_sock *tp)
{
	u64 w = min(tcp_snd_cwnd(tp), 1U << 27);
	u64 rate = w * tp->mss_cache * USEC_PER_SEC;

	return div_u64(rate, max(tp->srtt_us >> 3, 1U));
}

static void wccp_set_rate(struct sock *sk, u64 rate)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 most = wccp_window_rate(tp) << WCCP_WINDOW_SHIFT;
	u32 least = (wccp_first_rate(tp) >> WCCP_SLOWEST_SHIFT) + 1;

	ca->rate = clamp_t(u64, min(rate, most), least, S32_MAX);
}

/*
 * Does fb count by now? It has to be T_c since the last change. Only one that
 * lowers the rate need not wait until data comes by that knows the change.
 */
static bool wccp_is_due(const struct tcp_sock *tp, const struct tcp_wccp *ca)
{
	u32 since_us = (u32)tp->tcp_mstamp - ca->changed_us;

	if (!ca->fresh || since_us < wccp_interval_us(tp, ca->rate))
		return false;
	return ca->seen || ca->feedback < 0;
}

static void wccp_mark_change(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	ca->fresh = 0;
	ca->seen = 0;
	ca->round_end = tp->delivered;
	ca->changed_us = (u32)tp->tcp_mstamp;
}

/*
 * Nobody has said anything for so long that it is plain TCP again. Where holes
 * are told of, ACKs may have no room: then Reno's window is what counts.
 */
static bool wccp_is_silent(const struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 interval_us = max(wccp_interval_us(tp, ca->rate),
			      tp->srtt_us >> 3);
	u32 limit_us = clamp(interval_us, WCCP_SILENT_MIN_US,
			     WCCP_SILENT_MAX_US) * WCCP_SILENT_INTERVALS;

	return !tp->sacked_out &&
	       tcp_jiffies32 - ca->heard > usecs_to_jiffies(limit_us);
}

/* The first r_p: a segment a round trip, or what has been delivered so far. */
static void wccp_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = 0;

	if (tp->rate_interval_us && !tp->rate_app_limited)
		rate = div_u64((u64)tp->rate_delivered * tp->mss_cache *
			       USEC_PER_SEC, tp->rate_interval_us);
	if (tp->delivered <= TCP_INIT_CWND)
		rate = 0;
	wccp_set_rate(sk, max_t(u64, rate, wccp_first_rate(tp)));
	wccp_mark_change(sk);
}

/* A flow gets no more while it loses, or does not use what it has. */
static s64 wccp_most(const struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	if (rs->is_app_limited ||
	    inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		return 0;
	return ca->rate;
}

static void wccp_follow(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	s64 feedback;

	if (rs->delivered > 0 && !before(rs->prior_delivered, ca->round_end))
		ca->seen = 1;
	if (!ca->rate) {
		if (ca->fresh && tp->srtt_us)
			wccp_start(sk);
	} else if (wccp_is_silent(sk)) {
		ca->rate = 0;
	} else if (wccp_is_due(tp, ca)) {
		feedback = clamp_t(s64, ca->feedback, -(s64)ca->rate / 2,
				   wccp_most(sk, rs));
		wccp_set_rate(sk, ca->rate + feedback);
		wccp_mark_change(sk);
	}
}

/* The first data has been acknowledged; without feedback it is as if it were now. */
static void wccp_end_waiting(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	ca->waiting = 0;
	if (!ca->fresh)
		tcp_snd_cwnd_set(tp, max_t(u32, tcp_snd_cwnd(tp),
					   min_t(u32, TCP_INIT_CWND,
						 tp->snd_cwnd_clamp)));
}

/* As tcp_update_pacing_rate(), which a cong_control hook replaces. */
static u64 wccp_plain_rate(const struct tcp_sock *tp)
{
	u32 percent = tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2 ?
		      WCCP_PACE_STARTUP_PERCENT : WCCP_PACE_PERCENT;

	return div_u64(wccp_window_rate(tp) * percent, 100);
}

/* One packet less for two that arrived, down to the threshold. */
static void wccp_sink(struct tcp_sock *tp, struct tcp_wccp *ca, u32 acked_pkts)
{
	u32 step_pkts = (acked_pkts + !(tp->delivered & 1)) / 2;
	u32 w = tcp_snd_cwnd(tp);

	if (w > tp->snd_ssthresh + step_pkts) {
		tcp_snd_cwnd_set(tp, w - step_pkts);
		return;
	}
	tcp_snd_cwnd_set(tp, min(w, tp->snd_ssthresh));
	ca->sinking = 0;
}

/* Of whole segments: small packets come back sooner. */
static void wccp_note_rtt(struct tcp_wccp *ca, const struct tcp_sock *tp,
			  const struct rate_sample *rs)
{
	u32 acked_bytes = (u32)tp->bytes_acked - ca->bytes_acked;

	ca->bytes_acked = tp->bytes_acked;
	if (rs->rtt_us > 0 && acked_bytes >= tp->mss_cache)
		ca->min_rtt_us = min_t(u32, ca->min_rtt_us, rs->rtt_us);
}

/* What may be on its way; where nodes let too much pass, queues end there. */
static u32 wccp_most_pkts(const struct tcp_sock *tp, const struct tcp_wccp *ca)
{
	u64 bytes = div_u64((u64)ca->rate * ca->min_rtt_us, USEC_PER_SEC);

	if (ca->min_rtt_us == ~0U)
		return ~0U;
	bytes = div_u64(bytes * tcp_param_get(&wccp_window_percent), 100);
	return clamp_t(u64, div_u64(bytes, max(tp->mss_cache, 1U)) + 1,
		       WCCP_WINDOW_MIN_PKTS, ~0U);
}

static void wccp_main(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate;

	if (ca->waiting && tp->bytes_acked > 1)
		wccp_end_waiting(sk);
	if (rs->acked_sacked) {
		if (ca->sinking)
			wccp_sink(tp, ca, rs->acked_sacked);
		else if (!tcp_in_cwnd_reduction(sk))
			tcp_reno_cong_avoid(sk, 0, rs->acked_sacked);
	}
	wccp_follow(sk, rs);
	wccp_note_rtt(ca, tp, rs);
	if (ca->rate)
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp),
					 wccp_most_pkts(tp, ca)));
	if (ca->rate)
		rate = min_t(u64, ca->rate,
			     wccp_window_rate(tp) << WCCP_WINDOW_SHIFT);
	else
		rate = wccp_plain_rate(tp);
	wccp_set_pacing(sk, rate);
}

TCP_CONG_CONTROL(wccp_cong_control, wccp_main);

/* The window sinks to the threshold, here and not in the core. */
static u32 wccp_ssthresh(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	ca->waiting = 0;
	ca->sinking = 1;
	return tcp_reno_ssthresh(sk);
}

/* tcp_enter_loss() has set the window; the rate begins anew, maybe on another path. */
static void wccp_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	ca->sinking = 0;
	ca->min_rtt_us = ~0U;
	if (!ca->rate)
		return;
	wccp_set_rate(sk, wccp_first_rate(tcp_sk(sk)));
	wccp_mark_change(sk);
}

static u32 wccp_undo_cwnd(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	ca->sinking = 0;
	return tcp_reno_undo_cwnd(sk);
}

/* Two segments at once are a burst where each silences four hops. */
static u32 wccp_min_tso_segs(struct sock *sk)
{
	return 1;
}

static size_t wccp_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_info_state state = {
		.bw_bytes_per_s = ca->rate,
		.base_rtt_us = tcp_min_rtt(tcp_sk(sk)),
	};

	return tcp_info_fill(&state, ext, attr, info);
}

static struct tcp_congestion_ops wccp_ops __read_mostly = {
	.init		= wccp_init,
	.release	= wccp_release,
	.ssthresh	= wccp_ssthresh,
	.cong_control	= wccp_cong_control,
	.undo_cwnd	= wccp_undo_cwnd,
	.set_state	= wccp_set_state,
	.min_tso_segs	= wccp_min_tso_segs,
	.get_info	= wccp_get_info,

	.owner		= THIS_MODULE,
	.name		= "wccp",
};

/**
 * tcp_wccp_is_used() - is this a TCP socket of ours?
 * @sk: any full socket; no lock is needed, so it may change at any time
 */
bool tcp_wccp_is_used(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP &&
	       READ_ONCE(inet_csk(sk)->icsk_ca_ops) == &wccp_ops;
}
EXPORT_SYMBOL_GPL(tcp_wccp_is_used);

/**
 * tcp_wccp_request() - what a data segment of this socket asks for
 * @sk: a socket that tcp_wccp_is_used(); no lock is needed
 * @request: filled in
 *
 * Reads only what belongs to every TCP socket: the algorithm may be another by
 * now.
 */
void tcp_wccp_request(const struct sock *sk, struct wccp_request *request)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rate = min_t(unsigned long, READ_ONCE(sk->sk_pacing_rate), S32_MAX);
	u32 interval_us = wccp_interval_us(tp, rate);

	request->rate = max(rate, 1U);
	request->feedback = request->rate;
	request->interval_ms = min_t(u32, interval_us / USEC_PER_MSEC, U16_MAX);
}
EXPORT_SYMBOL_GPL(tcp_wccp_request);

/**
 * tcp_wccp_feedback() - an ACK has brought feedback
 * @sk: a full TCP socket
 * @ack_seq: what the ACK acknowledges, host's byte order
 * @feedback: fb (bytes/s), any value
 *
 * Softirq only. If a process has the socket, this feedback is forgotten: the
 * next ACK has it again.
 */
void tcp_wccp_feedback(struct sock *sk, u32 ack_seq, s32 feedback)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_wccp *ca = inet_csk_ca(sk);

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && tcp_wccp_is_used(sk) &&
	    inet_csk(sk)->icsk_ca_initialized &&
	    !before(ack_seq, tp->snd_una) && !after(ack_seq, tp->snd_nxt)) {
		ca->feedback = feedback;
		ca->fresh = 1;
		ca->heard = tcp_jiffies32;
	}
	bh_unlock_sock(sk);
}
EXPORT_SYMBOL_GPL(tcp_wccp_feedback);

static int __init wccp_register(void)
{
	BUILD_BUG_ON(sizeof(struct tcp_wccp) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&wccp_ops);
}

static void __exit wccp_unregister(void)
{
	tcp_unregister_congestion_control(&wccp_ops);
}

module_init(wccp_register);
module_exit(wccp_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("WCCP: the nodes of a wireless path say how fast to send");
MODULE_VERSION("0.1");
