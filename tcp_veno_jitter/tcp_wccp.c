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
 *   T_c              max(min_rtt, b / min(r_p, w / srtt))
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
 *               feedback                   loss, ECN: the core repairs
 *   plain  --------------------->  paced  ---------------------> repair
 *          <---------------------         <---------------------
 *    none for a while, others fill          all is repaired
 *    the channel
 *
 * Two structures of operations, one name. Plain is Reno as the core has it, to the
 * byte: nothing is paced, no hook takes the window over. So is repair: packet
 * conservation, timeouts and undo are the core's, which leaves them to a module that
 * has a cong_control hook. Only paced has that hook: segments are paced with r_p, and
 * it does what the core then leaves out (wccp_validate()). With nothing on its way
 * paced is plain, too, so that after an idle time the core restarts the window, and
 * wccp_event() the rate.
 *
 * Under the rate there is always Reno's window, and r_p is never more than twice
 * what the window allows: whatever nodes say, a loss halves the window. With
 * feedback the window is at most window_percent of r_p * min_rtt.
 *
 * Differences from the paper: T_c is of the smallest round trip time, not of the
 * smoothed one, so that who fills queues does not answer the more slowly, and of what
 * is sent, where the window w is less than r_p. fb > 0
 * counts only if it is about data that was sent after the last change, which is
 * a round trip. It is between -r_p/2 and r_p. A flow whose application has no
 * more to send, or that repairs a loss, is not given more. r_p bounds the window:
 * near the edge of what the channel carries nodes notice too much only late. Where
 * others fill the channel, whoever yields to them has nothing (wccp_share.h).
 */

#include <linux/module.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "compat/psp.h"
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

/**
 * struct tcp_wccp - private area of a connection
 * @rate: r_p (bytes/s); 0: plain
 * @feedback: newest fb (bytes/s)
 * @round_end: what is sent when so many packets are delivered is sent after r_p
 *	changed (packets, wraps)
 * @changed_us: when r_p changed (us, wraps)
 * @heard: when @feedback came (jiffies)
 * @min_rtt_us: smallest round trip time of whole segments since the last timeout;
 *	~0: none
 * @bytes_acked: so many were acknowledged before (bytes, wraps)
 * @first_pkts: the window that there was before two segments had to wait
 * @burst_pkts: what a burst may have at most, 0: what the core allows
 * @core_burst_pkts: and that is it
 * @room_bytes: that each segment leaves to the option
 * @echoes: the peer asks, too: its echo needs room
 * @hops: of the way back, that is taken for the way there; 0: not known
 * @fresh: @feedback came after the last change
 * @seen: so did an ACK of what was sent after it
 * @waiting: no data has been acknowledged yet, and nothing lost or marked
 * @advanced: the newest ACK acknowledged data
 */
struct tcp_wccp {
	u32 rate;
	s32 feedback;
	u32 round_end;
	u32 changed_us;
	u32 heard;
	u32 min_rtt_us;
	u32 bytes_acked;
	u32 first_pkts;
	u16 burst_pkts;
	u16 core_burst_pkts;
	u8 room_bytes;
	u8 echoes;
	u8 hops;
	u8 fresh:1,
	   seen:1,
	   waiting:1,
	   advanced:1;
};

/**
 * struct wccp_ends - a namespace
 * @agents: devices whose queueing discipline could put the option on segments
 */
struct wccp_ends {
	atomic_t agents;
};

static unsigned int wccp_ends_id __read_mostly;
static struct tcp_congestion_ops wccp_plain_ops;
static const struct tcp_congestion_ops wccp_paced_ops;

/* --- room for the option ------------------------------------------------------ */

/*
 * Could there be feedback? Where an agent is, and for IPv4 only, also where an IPv6
 * socket is used for it.
 */
static bool wccp_is_of_use(const struct sock *sk)
{
	struct wccp_ends *ends = net_generic(sock_net(sk), wccp_ends_id);

	return inet_csk(sk)->icsk_af_ops->net_header_len ==
	       sizeof(struct iphdr) && atomic_read(&ends->agents) > 0;
}

/*
 * Segments leave so many bytes to options that TCP does not know of. What else is
 * left free are IPv4's options, and PSP's headers: an IPv6 socket that is used for IPv4
 * may have had its own, which are in no packet, counted here.
 */
static void wccp_set_room(struct sock *sk, u8 bytes)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct ip_options_rcu *options =
		rcu_dereference_protected(inet_sk(sk)->inet_opt,
					  lockdep_sock_is_held(sk));
	u16 wanted = (options ? options->opt.optlen : 0) +
		     psp_sk_overhead(sk) + bytes;

	ca->room_bytes = bytes;
	if (icsk->icsk_ext_hdr_len == wanted)
		return;
	icsk->icsk_ext_hdr_len = wanted;
	if (icsk->icsk_pmtu_cookie && sk->sk_state != TCP_CLOSE)
		icsk->icsk_sync_mss(sk, icsk->icsk_pmtu_cookie);
}

static void wccp_make_room(struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);
	u8 bytes = 0;

	if (wccp_is_of_use(sk))
		bytes = WCCP_DATA_BYTES +
			(READ_ONCE(ca->echoes) ? WCCP_ECHO_BYTES : 0);
	if (bytes || ca->room_bytes)
		wccp_set_room(sk, bytes);
}

/* --- the rate ----------------------------------------------------------------- */

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

/*
 * A burst is what is sent in a ms (sk_pacing_shift). The core allows more where round
 * trips are short: over one hop all of the window at once, and as each such burst ends
 * with PSH, no ACK of it waits for another. When a route changes, it sets its own anew.
 */
static void wccp_set_burst(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	unsigned long bytes = READ_ONCE(sk->sk_pacing_rate) >>
			      READ_ONCE(sk->sk_pacing_shift);
	unsigned long pkts = bytes / max(tcp_sk(sk)->mss_cache, 1U);

	if (!ca->burst_pkts || sk->sk_gso_max_segs != ca->burst_pkts)
		ca->core_burst_pkts = max_t(u16, sk->sk_gso_max_segs, 1);
	ca->burst_pkts = clamp_t(unsigned long, pkts, 1, ca->core_burst_pkts);
	sk->sk_gso_max_segs = ca->burst_pkts;
}

static void wccp_end_burst(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (ca->burst_pkts && sk->sk_gso_max_segs == ca->burst_pkts)
		sk->sk_gso_max_segs = ca->core_burst_pkts;
	ca->burst_pkts = 0;
}

static void wccp_set_pacing(struct sock *sk, u64 rate)
{
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
	wccp_set_burst(sk);
}

/* The core's own pacing; an application, or fq, may want it for reasons of its own. */
static void wccp_pace(struct sock *sk, bool paced)
{
	if (paced) {
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			SK_PACING_NEEDED);
		return;
	}
	wccp_end_burst(sk);
	if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED,
			SK_PACING_NONE);
}

/* What Reno's window allows (bytes/s); 2^16 bytes, 2^20 us: 2^27 packets fit. */
static u64 wccp_window_rate(const struct tcp_sock *tp)
{
	u64 w = min(tcp_snd_cwnd(tp), 1U << 27);
	u64 rate = w * READ_ONCE(tp->mss_cache) * USEC_PER_SEC;

	return div_u64(rate, max(READ_ONCE(tp->srtt_us) >> 3, 1U));
}

/*
 * T_c; no lock is needed. Where the window rules, b segments take as long as it lets
 * them, whatever r_p is: ACKs wait that long for each other.
 */
static u32 wccp_interval_us(const struct tcp_sock *tp, u64 rate)
{
	u64 bytes = (u64)tcp_param_get(&wccp_pkts_per_interval) *
		    READ_ONCE(tp->mss_cache);
	u64 used = max(min(rate, wccp_window_rate(tp)), 1ULL);
	u64 interval_us = div64_u64(bytes * USEC_PER_SEC, used);
	u32 min_rtt_us = tcp_min_rtt(tp);

	if (min_rtt_us == ~0U)
		min_rtt_us = 0;
	return min_t(u64, max_t(u64, min_rtt_us, interval_us), S32_MAX);
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
	u32 limit_us = clamp_t(u32, interval_us, WCCP_SILENT_MIN_US,
			       WCCP_SILENT_MAX_US) * WCCP_SILENT_INTERVALS;

	return !tp->sacked_out &&
	       tcp_jiffies32 - ca->heard > usecs_to_jiffies(limit_us);
}

/* The newest feedback says that others fill the channel. */
static bool wccp_hears_of_others(const struct tcp_wccp *ca)
{
	return ca->fresh && ca->feedback == WCCP_OTHERS;
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

/* A flow gets no more that does not use what it has. */
static s64 wccp_most(const struct rate_sample *rs, const struct tcp_wccp *ca)
{
	return rs->is_app_limited ? 0 : ca->rate;
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

/* --- plain, paced and back ----------------------------------------------------- */

static void wccp_be_paced(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	ca->waiting = 0;
	wccp_pace(sk, true);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &wccp_paced_ops);
}

/* The window is the core's; with a rate it is for a while. */
static void wccp_be_plain(struct sock *sk)
{
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &wccp_plain_ops);
}

/* Nobody tells how fast to send, or others would take what is yielded. */
static void wccp_forget_rate(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	ca->rate = 0;
	ca->fresh = 0;
	wccp_pace(sk, false);
	wccp_be_plain(sk);
}

/* Whatever the path says of itself comes too late now: on as Reno, from this window. */
static void wccp_end_waiting(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (!ca->waiting)
		return;
	ca->waiting = 0;
	wccp_pace(sk, false);
}

/* The window is what it would have been, if it has not grown further. */
static void wccp_give_back(struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), ca->first_pkts));
}

/* An ACK comes in; what it brings is known, what follows from it is not. */
static void wccp_plain_ack(struct sock *sk, u32 flags)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	/* the SYN's: whoever is chosen instead before init would not release the room */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	wccp_make_room(sk);
	if (ca->waiting && tcp_sk(sk)->bytes_acked > 1) {
		/* what a mark is about is what was sent */
		if (!(flags & CA_ACK_ECE))
			wccp_give_back(sk);
		wccp_end_waiting(sk);
	}
	if (wccp_hears_of_others(ca) ||
	    (ca->rate && inet_csk(sk)->icsk_ca_state < TCP_CA_CWR &&
	     wccp_is_silent(sk)))
		wccp_forget_rate(sk);
}

/* Is there a rate, or feedback to make one of, and is the window nobody else's? */
static bool wccp_may_pace(const struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR ||
	    !tcp_sk(sk)->srtt_us || wccp_hears_of_others(ca))
		return false;
	return ca->rate ? !wccp_is_silent(sk) : ca->fresh;
}

/*
 * To become paced here, and not in in_ack_event, is sure of cong_control in the same ACK,
 * which makes it plain again if need be. Round trips are of whole segments: small packets
 * come back sooner.
 */
static void wccp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 acked_bytes = (u32)tp->bytes_acked - ca->bytes_acked;

	ca->bytes_acked = tp->bytes_acked;
	ca->advanced = acked_bytes > 0;
	if (sample->rtt_us > 0 && acked_bytes >= tp->mss_cache)
		ca->min_rtt_us = min_t(u32, ca->min_rtt_us, sample->rtt_us);
	if (wccp_may_pace(sk))
		wccp_be_paced(sk);
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
	} else if (wccp_is_due(tp, ca)) {
		feedback = clamp_t(s64, ca->feedback, -(s64)ca->rate / 2,
				   wccp_most(rs, ca));
		wccp_set_rate(sk, ca->rate + feedback);
		wccp_mark_change(sk);
	}
}

/*
 * A window that the application has not filled for a timeout's time is half
 * forgotten (RFC 2861), as tcp_cwnd_application_limited() has it.
 */
static void wccp_validate(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 used_pkts = max_t(u32, tp->snd_cwnd_used, TCP_INIT_CWND);
	u32 w = tcp_snd_cwnd(tp);

	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) ||
	    (s32)(tcp_jiffies32 - tp->snd_cwnd_stamp) <
	    (s32)inet_csk(sk)->icsk_rto)
		return;
	if (used_pkts < w) {
		tp->snd_ssthresh = tcp_current_ssthresh(sk);
		tcp_snd_cwnd_set(tp, (w + used_pkts) >> 1);
	}
	tp->snd_cwnd_used = 0;
	tp->snd_cwnd_stamp = tcp_jiffies32;
}

static void wccp_main(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->advanced)
		tcp_reno_cong_avoid(sk, 0, rs->acked_sacked);
	if (rs->is_app_limited)
		wccp_validate(sk);
	wccp_follow(sk, rs);
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), wccp_most_pkts(tp, ca)));
	wccp_set_pacing(sk, min_t(u64, ca->rate,
				  wccp_window_rate(tp) << WCCP_WINDOW_SHIFT));
	if (!tp->packets_out)
		wccp_be_plain(sk);
}

TCP_CONG_CONTROL(wccp_cong_control, wccp_main);

/* As wccp_plain_ack(), while paced. */
static void wccp_paced_ack(struct sock *sk, u32 flags)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	wccp_make_room(sk);
	if (wccp_hears_of_others(ca) || wccp_is_silent(sk))
		wccp_forget_rate(sk);
}

/* What is lost or marked, the core answers; after a timeout the rate begins anew. */
static void wccp_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (new_state >= TCP_CA_CWR) {
		wccp_end_waiting(sk);
		wccp_be_plain(sk);
	}
	if (new_state != TCP_CA_Loss)
		return;
	ca->min_rtt_us = ~0U;
	if (!ca->rate)
		return;
	wccp_set_rate(sk, wccp_first_rate(tcp_sk(sk)));
	wccp_mark_change(sk);
}

/*
 * The core has restarted the window after an idle time: the rate begins anew, too. Where
 * what it is asked to send is not all that there is, it was the rate that let it wait.
 */
static void wccp_event(struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_CWND_RESTART || !ca->rate ||
	    tcp_send_head(sk) != tcp_write_queue_tail(sk))
		return;
	wccp_set_rate(sk, wccp_first_rate(tcp_sk(sk)));
	wccp_set_pacing(sk, ca->rate);
	wccp_mark_change(sk);
}

/* What the socket has been given, it gets back. */
static void wccp_release(struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	if (ca->waiting)
		wccp_give_back(sk);
	/* the socket may be connected again, or listen */
	wccp_be_plain(sk);
	wccp_pace(sk, false);
	if (ca->room_bytes)
		wccp_set_room(sk, 0);
}

/*
 * Where the namespace has agents, two segments wait for an ACK that says whether the
 * path has. Who is chosen between connect() and the SYN-ACK does not: the core sets
 * the first window after that, and calls no second init.
 */
static void wccp_init(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	memset(ca, 0, sizeof(*ca));
	ca->min_rtt_us = ~0U;
	ca->bytes_acked = tp->bytes_acked;
	if (!wccp_is_of_use(sk))
		return;
	wccp_make_room(sk);
	if (sk->sk_state == TCP_SYN_SENT || tp->bytes_acked > 1 ||
	    tp->data_segs_out)
		return;
	ca->waiting = 1;
	ca->first_pkts = tcp_snd_cwnd(tp);
	wccp_pace(sk, true);
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), WCCP_FIRST_PKTS));
	if (tp->srtt_us)
		wccp_set_pacing(sk, wccp_first_rate(tp));
}

/* Two segments at once are a burst where each silences four hops. */
static u32 __maybe_unused wccp_min_tso_segs(struct sock *sk)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);

	return ca->rate || ca->waiting ? 1 :
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
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

/* What both have in common: Reno's law, and what is known of the connection. */
#define WCCP_OPS							\
	.init		= wccp_init,					\
	.release	= wccp_release,					\
	.ssthresh	= tcp_reno_ssthresh,				\
	.cong_avoid	= tcp_reno_cong_avoid,				\
	.undo_cwnd	= tcp_reno_undo_cwnd,				\
	.set_state	= wccp_set_state,				\
	.cwnd_event	= wccp_event,					\
	.pkts_acked	= wccp_pkts_acked,				\
	TCP_CONG_MIN_TSO_SEGS(wccp_min_tso_segs)			\
	.get_info	= wccp_get_info,				\
	.owner		= THIS_MODULE,					\
	.name		= "wccp"

static struct tcp_congestion_ops wccp_plain_ops __read_mostly = {
	WCCP_OPS,
	.in_ack_event	= wccp_plain_ack,
};

/* Not registered: sockets have these for as long as they are paced. */
static const struct tcp_congestion_ops wccp_paced_ops = {
	WCCP_OPS,
	.in_ack_event	= wccp_paced_ack,
	.cong_control	= wccp_cong_control,
};

/**
 * tcp_wccp_is_used() - is this a TCP socket of ours?
 * @sk: any full socket; no lock is needed, so it may change at any time
 */
bool tcp_wccp_is_used(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops;

	if (!sk_is_tcp(sk))
		return false;
	ops = READ_ONCE(inet_csk(sk)->icsk_ca_ops);
	return ops == &wccp_plain_ops || ops == &wccp_paced_ops;
}
EXPORT_SYMBOL_GPL(tcp_wccp_is_used);

/**
 * tcp_wccp_note_agents() - a namespace has more agents, or fewer
 * @net: the namespace
 * @more: by how many
 */
void tcp_wccp_note_agents(struct net *net, int more)
{
	struct wccp_ends *ends = net_generic(net, wccp_ends_id);

	atomic_add(more, &ends->agents);
}
EXPORT_SYMBOL_GPL(tcp_wccp_note_agents);

/**
 * tcp_wccp_request() - what a data segment of this socket asks for
 * @sk: a socket that tcp_wccp_is_used(); no lock is needed
 * @request: filled in
 *
 * The algorithm may be another by now: what is read belongs to every TCP socket, or
 * (hops) may be any value.
 */
void tcp_wccp_request(const struct sock *sk, struct wccp_request *request)
{
	const struct tcp_wccp *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rate = min_t(unsigned long, READ_ONCE(sk->sk_pacing_rate), S32_MAX);
	u32 interval_us = wccp_interval_us(tp, rate);

	request->rate = max(rate, 1U);
	request->feedback = request->rate;
	request->interval_ms = min_t(u32, interval_us / USEC_PER_MSEC, U16_MAX);
	request->hops = min_t(u8, READ_ONCE(ca->hops), WCCP_HOPS_MAX);
}
EXPORT_SYMBOL_GPL(tcp_wccp_request);

/**
 * tcp_wccp_feedback() - an ACK has brought feedback
 * @sk: a full TCP socket
 * @ack_seq: what the ACK acknowledges, host's byte order
 * @feedback: fb (bytes/s), any value
 * @hops: that the ACK has come
 *
 * Softirq only. If a process has the socket, this feedback is forgotten: the
 * next ACK has it again.
 */
void tcp_wccp_feedback(struct sock *sk, u32 ack_seq, s32 feedback, u8 hops)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_wccp *ca = inet_csk_ca(sk);

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && tcp_wccp_is_used(sk) &&
	    inet_csk(sk)->icsk_ca_initialized &&
	    !before(ack_seq, tp->snd_una) && !after(ack_seq, tp->snd_nxt)) {
		ca->feedback = feedback;
		WRITE_ONCE(ca->hops, hops);
		ca->fresh = 1;
		ca->heard = tcp_jiffies32;
	}
	bh_unlock_sock(sk);
}
EXPORT_SYMBOL_GPL(tcp_wccp_feedback);

/**
 * tcp_wccp_note_data() - data with the option has come to a socket that uses this
 * @sk: a socket that tcp_wccp_is_used()
 *
 * Softirq only. If a process has the socket, the next segment will do.
 */
void tcp_wccp_note_data(struct sock *sk)
{
	struct tcp_wccp *ca = inet_csk_ca(sk);

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && tcp_wccp_is_used(sk) &&
	    inet_csk(sk)->icsk_ca_initialized)
		ca->echoes = 1;
	bh_unlock_sock(sk);
}
EXPORT_SYMBOL_GPL(tcp_wccp_note_data);

static struct pernet_operations wccp_ends_ops = {
	.id = &wccp_ends_id,
	.size = sizeof(struct wccp_ends),
};

static int __init wccp_register(void)
{
	int error;

	BUILD_BUG_ON(sizeof(struct tcp_wccp) > ICSK_CA_PRIV_SIZE);
	error = register_pernet_subsys(&wccp_ends_ops);
	if (error)
		return error;
	error = tcp_register_congestion_control(&wccp_plain_ops);
	if (error)
		unregister_pernet_subsys(&wccp_ends_ops);
	return error;
}

static void __exit wccp_unregister(void)
{
	tcp_unregister_congestion_control(&wccp_plain_ops);
	unregister_pernet_subsys(&wccp_ends_ops);
}

module_init(wccp_register);
module_exit(wccp_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("WCCP: the nodes of a wireless path say how fast to send");
MODULE_VERSION("0.1");
