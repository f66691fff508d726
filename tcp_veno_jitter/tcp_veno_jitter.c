// SPDX-License-Identifier: GPL-2.0-only
/*
 * veno_jitter: keeps the bottleneck's queue short, knows from it why a packet
 * was lost, and goes to the measured bandwidth when it was congestion.
 *
 * Papers: JTCP (IEEE JSAC 22(4), 2004) for the jitter, TCP Veno (IEEE JSAC
 * 21(2), 2003) for the backlog, TCP New Jersey (Computer Networks 47(2), 2005)
 * for the bandwidth. docs/veno_jitter.md has the measurements behind each rule.
 *
 *   D = jitter between the newest packet and one that met an empty queue
 *   q = min(RTT - base, D)             queueing delay on the way there
 *   N = w * q / (base + q)             this flow's packets in the queue
 *   Q = smallest q of a round trip     the queue that stands, not a burst's
 *
 * The jitter ratio of the packets since that empty queue is D / RTT, so JTCP's
 * test Jr >= k / w and Veno's test N >= k are one and the same here.
 *
 *   startup       twice as fast a round trip, until a queue stands
 *   N < beta      +1 a round trip; faster after 8 of them without a queue
 *   N >= beta     +1/2 a round trip
 *   Q high        drain: w sinks to max(ocwnd, w - N) + 1, before it overflows
 *   loss, random      w stays
 *   loss, congestion  w sinks to min(max(ocwnd, w - N) + 1, 0.8 w)
 *   timeout           the same, or slow start up to there; the second in a row
 *                     always slow start
 *
 *   A loss is congestion if q and Q are at the top of what Q has been, and the
 *   queue is deep (half of base) or the last losses were at the top as well.
 *
 * If a deep queue stays in spite of four drains, somebody else fills it: then
 * there is no drain, until the queue was empty again, or one drain in 256 round
 * trips shows that they have gone. That is competing.
 *
 *   symbol  field                    unit
 *   q       queue_us                 us
 *   Q       standing_us              us
 *   base    tcp_min_rtt()            us
 *   w       tcp_snd_cwnd()           packets
 *   ocwnd   bandwidth * base / mss   packets
 *   high    drain_percent            percent of base, and 3 packets of N
 *
 * cong_control replaces the core's window reduction: the window sinks by one
 * packet for two that arrive, so the ACK clock goes on. The core's recovery
 * decides what to retransmit as ever.
 *
 * Without time stamps q is that of the round trip.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "compat/tcp_cong.h"
#include "estimators/forward_queue.h"
#include "estimators/jitter_ratio.h"
#include "estimators/peer_clock.h"
#include "estimators/tabe.h"
#include "estimators/veno_backlog.h"
#include "tcp_info.h"
#include "tcp_loss.h"
#include "tcp_param.h"

#define TCP_VERDICT_SYSTEM veno_jitter
#include "tcp_verdict.h"

static struct tcp_param vj_beta_pkts = { .value = 3, .min = 1, .max = 1000 };
module_param_cb(beta_pkts, &tcp_param_ops, &vj_beta_pkts, 0644);
MODULE_PARM_DESC(beta_pkts,
		 "beta: backlog at which growth slows down, packets (1-1000)");

static struct tcp_param vj_drain_percent = { .value = 10, .min = 1, .max = 1000 };
module_param_cb(drain_percent, &tcp_param_ops, &vj_drain_percent, 0644);
MODULE_PARM_DESC(drain_percent,
		 "standing queue that is drained, percent of the base RTT (1-1000)");

static struct tcp_param vj_deep_percent = { .value = 50, .min = 1, .max = 1000 };
module_param_cb(deep_percent, &tcp_param_ops, &vj_deep_percent, 0644);
MODULE_PARM_DESC(deep_percent,
		 "queue at whose top a loss is congestion, percent of the base RTT (1-1000)");

static struct tcp_param vj_keep_percent = { .value = 80, .min = 50, .max = 95 };
module_param_cb(keep_percent, &tcp_param_ops, &vj_keep_percent, 0644);
MODULE_PARM_DESC(keep_percent,
		 "most of the window that a congestion loss leaves, percent (50-95)");

static struct tcp_param vj_pace = { .value = 1, .min = 0, .max = 1 };
module_param_cb(pace, &tcp_param_ops, &vj_pace, 0644);
MODULE_PARM_DESC(pace, "pace packets: 0 only under fq, 1 always (0-1)");

static struct tcp_param vj_peer_clock = { .value = 1, .min = 0, .max = 1 };
module_param_cb(peer_clock, &tcp_param_ops, &vj_peer_clock, 0644);
MODULE_PARM_DESC(peer_clock,
		 "believe the receiver's time stamps: 0 if it may lie (0-1)");

#define VJ_NO_QUEUE_US		~0U	/* no sample in this round trip yet */
#define VJ_DRAIN_MIN_PKTS	3	/* a shorter queue is delayed ACKs */
#define VJ_MARGIN_PKTS		1	/* left in the queue by a drain */
#define VJ_HOLD_ROUNDS		3	/* until a drain shows in Q */
#define VJ_EMPTY_SHIFT		3	/* Q below base / 8 is no queue */
#define VJ_FORGET_SHIFT		7	/* the largest Q fades, 1/128 a round */
#define VJ_LEARN_SHIFT		2	/* and rises by 1/4 of the way */
#define VJ_DELACK_PKTS		4	/* a smaller window waits for ACKs */
#define VJ_BW_FADE_SHIFT	7	/* B without a queue, 1/128 a round */
#define VJ_WAY_BACK_SHIFT	3	/* base / 8 longer is a busy way back */
#define VJ_LOST_HALF		2	/* w / ocwnd if half of it is lost */
#define VJ_TOP_PERCENT		85	/* of the largest Q is the top */
#define VJ_TOPS			3	/* losses at the top that make a pattern */
#define VJ_TOPS_MAX		15
#define VJ_TOPS_STEP		2	/* what a loss elsewhere takes back */
#define VJ_RESISTED		3	/* drains in vain, and one more */
#define VJ_COMPETE_ROUNDS	16	/* without a queue, to be alone again */
#define VJ_CALM_ROUNDS		8
#define VJ_CALM_MAX		31
#define VJ_FASTEST_PKTS		8	/* growth is at most w/8 a round trip */
#define VJ_CE_KEEP_PERCENT	85	/* of the window, after a mark (RFC 8511) */
#define VJ_PACE_PERCENT		125
#define VJ_PACE_STARTUP_PERCENT	250

/**
 * struct veno_jitter - private area of a connection
 * @bandwidth: B
 * @clock: the receiver's clock
 * @forward: D
 * @queue_us: q of the newest packet (us)
 * @round_queue_us: smallest q of this round trip (us)
 * @round_rtt_us: RTT of that packet (us)
 * @standing_us: Q, smallest q of the last round trip (us)
 * @standing_rtt_us: RTT of that packet (us)
 * @standing_max_us: largest Q, fading (us)
 * @round_end: this round trip ends when that is delivered (packets)
 * @counted: tp->delivered when @bandwidth was updated (packets)
 * @lost: tp->lost at the last ACK (packets)
 * @full: round trips with a queue while @competing, wraps: then it is drained
 * @startup: no queue has stood yet
 * @slow: N >= beta in the last round trip
 * @competing: somebody else fills the queue
 * @draining: the window is sinking to snd_ssthresh
 * @random: the last verdict
 * @judged: there was a verdict in this round trip
 * @probed: the next ssthresh hook is for a tail loss probe
 * @resisted: round trips with a deep queue in spite of a drain
 * @hold: round trips without growth and drains
 * @contested: round trips without a queue until @competing ends
 * @calm: round trips without a queue
 * @tops: how many of the last losses were at the top
 * @trusts: the receiver's clock is used
 */
struct veno_jitter {
	struct tabe bandwidth;
	struct peer_clock clock;
	struct forward_queue forward;
	u32 queue_us;
	u32 round_queue_us;
	u32 round_rtt_us;
	u32 standing_us;
	u32 standing_rtt_us;
	u32 standing_max_us;
	u32 round_end;
	u32 counted;
	u32 lost;
	u8 full;
	u32 startup:1,
	    slow:1,
	    competing:1,
	    draining:1,
	    random:1,
	    judged:1,
	    probed:1,
	    resisted:2,
	    hold:2,
	    contested:5,
	    calm:5,
	    tops:4,
	    trusts:1;
};

static void vj_init(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	memset(vj, 0, sizeof(*vj));
	vj->startup = 1;
	vj->trusts = tcp_param_get(&vj_peer_clock);
	vj->round_queue_us = VJ_NO_QUEUE_US;
	vj->round_end = tp->delivered;
	vj->counted = tp->delivered;
	vj->lost = tp->lost;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (tcp_param_get(&vj_pace))
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			SK_PACING_NEEDED);
}

static bool vj_backlog_reaches(const struct tcp_sock *tp,
			       const struct veno_jitter *vj, u32 n_pkts)
{
	return veno_backlog_reaches(tcp_snd_cwnd(tp), vj->standing_us,
				    vj->standing_rtt_us, n_pkts);
}

/* The round trip without the queue there: base, and the queue back. */
static u32 vj_path_us(const struct veno_jitter *vj)
{
	return vj->standing_rtt_us - vj->standing_us;
}

/* N of the standing queue, in 1 / 2^VENO_BACKLOG_SHIFT packet. */
static u32 vj_backlog(const struct tcp_sock *tp, const struct veno_jitter *vj)
{
	return veno_backlog(tcp_snd_cwnd(tp), vj_path_us(vj),
			    vj->standing_rtt_us);
}

static bool vj_is_part_of_base(const struct tcp_sock *tp, u32 queue_us,
			       u32 percent)
{
	return (u64)queue_us * 100 >= (u64)tcp_min_rtt(tp) * percent;
}

/* Its tick, and whether it goes as it should: at first and once a round trip. */
static noinline void vj_check_clock(struct veno_jitter *vj,
				    const struct tcp_sock *tp)
{
	u32 tick_us = vj->clock.tick_us;
	bool changed;

	if (!tp->rx_opt.tstamp_ok || !vj->trusts)
		return;
	changed = peer_clock_look(&vj->clock, tp->rx_opt.rcv_tsval,
				  tp->tcp_mstamp);
	if (changed)
		forward_queue_restart(&vj->forward);
	if (changed || vj->clock.tick_us != tick_us)
		tabe_restart(&vj->bandwidth);
}

/* The receiver's clock; false if this ACK's time is an old one. */
static bool vj_note_time(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	if (!tp->rx_opt.saw_tstamp || unlikely(!vj->trusts))
		return true;
	if (unlikely(!vj->clock.check_shift))
		vj_check_clock(vj, tp);
	return peer_clock_advance(&vj->clock, tp->rx_opt.rcv_tsval);
}

/*
 * What was delivered since the last time, over the receiver's time for it. An
 * idle application is no evidence of a slower path, and a window that leaves no
 * queue is little.
 */
static void vj_update_bandwidth(struct veno_jitter *vj,
				const struct tcp_sock *tp, bool empty)
{
	u32 t_us = vj->clock.tick_us ? vj->clock.peer_us : (u32)tp->tcp_mstamp;
	u64 bytes = (u64)(tp->delivered - vj->counted) * tp->mss_cache;
	u64 before = vj->bandwidth.bw_bytes_per_s;
	u64 least = 0;

	vj->counted = tp->delivered;
	tabe_update(&vj->bandwidth, t_us, min_t(u64, bytes, U32_MAX),
		    tp->srtt_us >> 3);
	if (tp->app_limited)
		least = before;
	else if (empty)
		least = before - (before >> VJ_BW_FADE_SHIFT);
	vj->bandwidth.bw_bytes_per_s = max(vj->bandwidth.bw_bytes_per_s, least);
}

/* Without the receiver's time the queues there and back are one. */
static void vj_note_queue(struct veno_jitter *vj, const struct tcp_sock *tp,
			  u32 rtt_us)
{
	u32 above_us = rtt_us - min(rtt_us, tcp_min_rtt(tp));
	u32 sent_us = (u32)tp->tcp_mstamp - rtt_us;
	u32 transit_us = vj->clock.peer_us - sent_us;
	u32 queue_us = above_us;

	if (unlikely(!vj->forward.anchored && tp->delivered <= TCP_INIT_CWND))
		forward_queue_start(&vj->forward, transit_us);
	if (likely(tp->rx_opt.saw_tstamp))
		queue_us = forward_queue_update(&vj->forward, transit_us,
						above_us,
						peer_clock_tick_us(&vj->clock));
	if (unlikely(!vj->clock.tick_us))
		queue_us = above_us;
	vj->queue_us = queue_us;
	if (queue_us < vj->round_queue_us) {
		vj->round_queue_us = queue_us;
		vj->round_rtt_us = rtt_us;
	}
}

/* max(ocwnd, w - N) and a margin: a window that leaves no queue of ours. */
static u32 vj_drained_pkts(const struct tcp_sock *tp,
			   const struct veno_jitter *vj)
{
	u32 ocwnd = tabe_window_pkts(&vj->bandwidth, vj_path_us(vj),
				     tp->mss_cache);
	u32 others = tcp_snd_cwnd(tp) -
		     (vj_backlog(tp, vj) >> VENO_BACKLOG_SHIFT);

	return min(max(ocwnd, others), tcp_snd_cwnd(tp)) + VJ_MARGIN_PKTS;
}

/* Let the window sink to @target_pkts. */
static void vj_sink(struct sock *sk, u32 target_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	vj->startup = 0;
	vj->draining = 1;
	vj->hold = VJ_HOLD_ROUNDS;
	tp->snd_ssthresh = clamp(target_pkts, 2U, max(tcp_snd_cwnd(tp), 2U));
}

/* The queue is deep, or overflows, although we drain it. */
static void vj_resisted(struct veno_jitter *vj)
{
	if (vj->resisted < VJ_RESISTED) {
		vj->resisted++;
		return;
	}
	vj->competing = 1;
	vj->contested = VJ_COMPETE_ROUNDS;
}

static void vj_note_empty(struct veno_jitter *vj)
{
	vj->calm = min(vj->calm + 1, VJ_CALM_MAX);
	vj->resisted = 0;
	if (vj->contested)
		vj->contested--;
	else
		vj->competing = 0;
}

/* Is Q none that counts? One that we have little part in, unless it is deep. */
static bool vj_is_empty(const struct tcp_sock *tp, const struct veno_jitter *vj,
			bool deep)
{
	return vj->standing_us <= tcp_min_rtt(tp) >> VJ_EMPTY_SHIFT ||
	       (!deep && !vj_backlog_reaches(tp, vj, VJ_DRAIN_MIN_PKTS));
}

/* What to do about the queue that stood during the last round trip. */
static void vj_answer_queue(struct sock *sk, bool deep, bool empty)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	bool high;

	if (vj->startup) {
		if (!empty && vj->slow)
			vj_sink(sk, vj_drained_pkts(tp, vj));
		return;
	}
	if (deep)
		vj_resisted(vj);
	if (vj->competing && !empty && !++vj->full) {
		vj->contested = VJ_HOLD_ROUNDS;
		vj_sink(sk, vj_drained_pkts(tp, vj));
		return;
	}
	high = vj_is_part_of_base(tp, vj->standing_us,
				  tcp_param_get(&vj_drain_percent)) &&
	       vj_backlog_reaches(tp, vj, VJ_DRAIN_MIN_PKTS);
	if (high && !vj->competing)
		vj_sink(sk, vj_drained_pkts(tp, vj));
}

/*
 * As tcp_update_pacing_rate(), which a cong_control hook replaces, but once a
 * round trip: the window does not outgrow the margin until the next.
 */
static void vj_update_pacing(struct sock *sk)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);

	rate *= vj->startup || tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2 ?
		VJ_PACE_STARTUP_PERCENT : VJ_PACE_PERCENT;
	rate *= max(tcp_snd_cwnd(tp), tp->packets_out);
	if (likely(tp->srtt_us))
		rate = div_u64(rate, tp->srtt_us);
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/*
 * Q, and what Q has been. Delayed ACKs look like a queue to a small window, and
 * one long round trip is no reason to expect another.
 */
static void vj_note_standing(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	u32 largest_us = vj->standing_max_us;
	u32 queue_us = vj->round_queue_us;

	vj->standing_us = queue_us;
	vj->standing_rtt_us = vj->round_rtt_us;
	vj->round_queue_us = VJ_NO_QUEUE_US;
	largest_us -= largest_us >> VJ_FORGET_SHIFT;
	if (queue_us > largest_us && tcp_snd_cwnd(tp) >= VJ_DELACK_PKTS)
		largest_us += DIV_ROUND_UP(queue_us - largest_us,
					   1 << VJ_LEARN_SHIFT);
	vj->standing_max_us = largest_us;
	vj->slow = vj_backlog_reaches(tp, vj, tcp_param_get(&vj_beta_pkts));
}

/*
 * The way back takes longer and the queue there is empty: the window that
 * filled the path fills it no more.
 */
static void vj_hold_rate(struct tcp_sock *tp, const struct veno_jitter *vj)
{
	u32 base_us = tcp_min_rtt(tp);
	u32 ocwnd;

	if (vj_path_us(vj) <= base_us + (base_us >> VJ_WAY_BACK_SHIFT))
		return;
	ocwnd = tabe_window_pkts(&vj->bandwidth, vj_path_us(vj), tp->mss_cache);
	tcp_snd_cwnd_set(tp, clamp(ocwnd, tcp_snd_cwnd(tp),
				   max(tcp_snd_cwnd(tp), tp->snd_cwnd_clamp)));
}

/* A round trip is over. Not inline: it must not cost the other ACKs registers. */
static noinline void vj_end_round(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool measured = vj->round_queue_us != VJ_NO_QUEUE_US;
	bool held = vj->hold;
	bool deep, empty;

	vj->round_end = tp->delivered;
	vj->judged = 0;
	vj->hold -= held;
	vj_check_clock(vj, tp);
	if (measured)
		vj_note_standing(vj, tp);
	deep = vj_is_part_of_base(tp, vj->standing_us,
				  tcp_param_get(&vj_deep_percent));
	empty = measured && vj_is_empty(tp, vj, deep);
	vj_update_bandwidth(vj, tp, empty);
	if (!measured)
		return;

	if (empty)
		vj_note_empty(vj);
	else
		vj->calm = 0;
	if (empty && !vj->startup && !vj->draining &&
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Loss &&
	    tcp_is_cwnd_limited(sk))
		vj_hold_rate(tp, vj);
	if (!held)
		vj_answer_queue(sk, deep, empty);
}

/* Packets that have to be acknowledged for the window to grow by one. */
static u32 vj_credit_pkts(const struct tcp_sock *tp,
			  const struct veno_jitter *vj)
{
	u32 w = tcp_snd_cwnd(tp);
	u32 steps;

	if (vj->slow)
		return 2 * w;
	if (vj->calm <= VJ_CALM_ROUNDS ||
	    vj->queue_us > tcp_min_rtt(tp) >> VJ_EMPTY_SHIFT)
		return w;
	steps = vj->calm - VJ_CALM_ROUNDS;
	return max(w >> min(steps, 16U), min_t(u32, w, VJ_FASTEST_PKTS));
}

static void vj_grow(struct tcp_sock *tp, const struct veno_jitter *vj,
		    u32 acked_pkts)
{
	if (tcp_in_slow_start(tp)) {
		acked_pkts = tcp_slow_start(tp, acked_pkts);
		if (!acked_pkts)
			return;
	}
	tcp_cong_avoid_ai(tp, vj_credit_pkts(tp, vj), acked_pkts);
}

/* One packet less for two that arrived, down to the threshold. */
static void vj_drain(struct tcp_sock *tp, struct veno_jitter *vj,
		     u32 acked_pkts)
{
	u32 w = tcp_snd_cwnd(tp);
	u32 step_pkts = (acked_pkts + !(tp->delivered & 1)) / 2;

	if (w > tp->snd_ssthresh + step_pkts) {
		tcp_snd_cwnd_set(tp, w - step_pkts);
		return;
	}
	tcp_snd_cwnd_set(tp, min(w, tp->snd_ssthresh));
	vj->draining = 0;
}

/* Half of what is sent is lost: no noise does that for long. */
static bool vj_is_hopeless(const struct tcp_sock *tp,
			   const struct veno_jitter *vj)
{
	u32 ocwnd = tabe_window_pkts(&vj->bandwidth, vj_path_us(vj),
				     tp->mss_cache);
	u32 used_pkts = min(tcp_snd_cwnd(tp), tp->packets_out);

	return !vj->startup && ocwnd &&
	       used_pkts / VJ_LOST_HALF > ocwnd + VJ_DRAIN_MIN_PKTS;
}

/* Too little of ours waits: a packet, or half of one where queues are known. */
static bool vj_is_queueless(const struct tcp_sock *tp,
			    const struct veno_jitter *vj)
{
	u32 w = tcp_snd_cwnd(tp);

	if (vj->standing_max_us > tcp_min_rtt(tp) >> VJ_EMPTY_SHIFT)
		w *= 2;
	return !veno_backlog_reaches(w, vj->standing_us, vj->standing_rtt_us,
				     1);
}

/*
 * Only a full queue drops, and it is as full as it has ever been. A queue that
 * is kept short has its own top, where random losses happen as well: there it
 * takes several in a row.
 */
static bool vj_is_congestion(const struct tcp_sock *tp, struct veno_jitter *vj)
{
	u32 queue_us = min(vj->queue_us, vj->standing_us);

	if (vj_is_hopeless(tp, vj))
		return true;
	if (vj_is_queueless(tp, vj) ||
	    (u64)queue_us * 100 < (u64)vj->standing_max_us * VJ_TOP_PERCENT) {
		vj->tops -= min_t(u32, vj->tops, VJ_TOPS_STEP);
		return false;
	}
	vj->tops = min(vj->tops + 1, VJ_TOPS_MAX);
	return vj->tops > VJ_TOPS ||
	       vj_is_part_of_base(tp, queue_us,
				  tcp_param_get(&vj_deep_percent));
}

static void vj_tell_verdict(const struct sock *sk, bool probed)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_verdict_features features = {
		.backlog = vj_backlog(tcp_sk(sk), vj),
		.queue_us = vj->queue_us,
		.queue_max_us = vj->standing_max_us,
	};

	tcp_verdict(sk, !vj->random, probed, &features);
}

/* Answer a loss or, if @signalled, a CE mark or a full queue of this host. */
static void vj_judge(struct sock *sk, bool signalled, bool probed)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 percent = VJ_CE_KEEP_PERCENT;
	u64 keep_pkts;

	vj->judged = 1;
	vj->random = !signalled && !vj_is_congestion(tp, vj);
	if (!signalled) {
		vj->lost = tp->lost;
		if (tcp_verdict_is_watched())
			vj_tell_verdict(sk, probed);
		if (vj->random)
			return;
		if (!vj->startup && !vj->hold)
			vj_resisted(vj);
		percent = tcp_param_get(&vj_keep_percent);
	}
	keep_pkts = div_u64((u64)tcp_snd_cwnd(tp) * percent, 100);
	if (!vj->competing)
		keep_pkts = min_t(u64, keep_pkts, vj_drained_pkts(tp, vj));
	vj_sink(sk, keep_pkts);
}

/* Each round trip of a long recovery is judged, not only its beginning. */
static void vj_note_losses(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->lost == vj->lost)
		return;
	if (!vj->judged && inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		vj_judge(sk, false, false);
	vj->lost = tp->lost;
}

static void vj_main(struct sock *sk, const struct rate_sample *rs)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (likely(vj_note_time(vj, tp)) && rs->rtt_us > 0)
		vj_note_queue(vj, tp, rs->rtt_us);
	if (rs->delivered > 0 && !before(rs->prior_delivered, vj->round_end)) {
		vj_end_round(sk);
		vj_update_pacing(sk);
	}
	vj_note_losses(sk);
	if (rs->acked_sacked) {
		if (vj->draining)
			vj_drain(tp, vj, rs->acked_sacked);
		else if (!vj->hold && tcp_is_cwnd_limited(sk))
			vj_grow(tp, vj, rs->acked_sacked);
	}
}

TCP_CONG_CONTROL(vj_cong_control, vj_main);

/* cong_control runs too late to see a probe. */
static void vj_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct veno_jitter *vj = inet_csk_ca(sk);

	vj->probed = tcp_loss_is_probed(tcp_sk(sk));
}

/*
 * Fast retransmit, ECN, probes and timeouts come through here. The threshold is
 * where the window sinks to, or the window itself.
 */
static u32 vj_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct veno_jitter *vj = inet_csk_ca(sk);
	bool probed = vj->probed;
	bool signalled = tcp_loss_is_signalled(tp, probed);

	vj->probed = 0;
	if (signalled || !vj->judged)
		vj_judge(sk, signalled, probed);
	if (vj->startup || vj->draining ||
	    (vj->random && tcp_in_slow_start(tp)))
		return tp->snd_ssthresh;
	return max(tcp_snd_cwnd(tp), 2U);
}

/*
 * tcp_enter_loss() has left one packet above what is in flight. After a random
 * loss the path can take more; a second timeout in a row says that it cannot.
 * Nothing timed out, and the window is to stay, if the path's MTU has shrunk.
 */
static void vj_set_state(struct sock *sk, u8 new_state)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ocwnd;

	if (new_state != TCP_CA_Loss)
		return;
	vj->lost = tp->lost;
	if (!tp->undo_marker)
		return;
	vj->draining = 0;
	vj->hold = 0;
	ocwnd = tabe_window_pkts(&vj->bandwidth, tcp_min_rtt(tp),
				 tp->mss_cache);
	if (!vj->bandwidth.bw_bytes_per_s)
		ocwnd = tp->prior_cwnd / 2;
	ocwnd = clamp(ocwnd, 2U, max(tp->prior_cwnd, 2U));
	if (inet_csk(sk)->icsk_retransmits) {
		vj->startup = 0;
		tp->snd_ssthresh = ocwnd;
	} else if (vj->random) {
		tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), ocwnd));
	}
}

/* The core gives the old threshold back. */
static u32 vj_undo_cwnd(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);

	vj->draining = 0;
	vj->hold = 0;
	return tcp_reno_undo_cwnd(sk);
}

/* The first packet after a silence: that one is no evidence either. */
static void vj_resume(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);

	tabe_restart(&vj->bandwidth);
}

TCP_CONG_TX_START(vj_tx_start, vj_resume);

/* The jitter ratio of the last round trip: D / RTT. */
static s32 vj_jitter_ratio(const struct veno_jitter *vj, u32 base_us)
{
	if (base_us + vj->standing_us == 0 || base_us >> JITTER_SPAN_BITS ||
	    vj->standing_us >> JITTER_SPAN_BITS)
		return 0;
	return jitter_ratio_quotient(vj->standing_us,
				     base_us + vj->standing_us);
}

static size_t vj_get_info(struct sock *sk, u32 ext, int *attr,
			  union tcp_cc_info *info)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct tcp_info_state state = {
		.bw_bytes_per_s = vj->bandwidth.bw_bytes_per_s,
		.base_rtt_us = tcp_min_rtt(tp),
		.jitter_ratio = vj_jitter_ratio(vj, tcp_min_rtt(tp)),
		.backlog = vj_backlog(tp, vj),
	};

	return tcp_info_fill(&state, ext, attr, info);
}

static struct tcp_congestion_ops vj_ops __read_mostly = {
	.init		= vj_init,
	.ssthresh	= vj_ssthresh,
	.pkts_acked	= vj_pkts_acked,
	.cong_control	= vj_cong_control,
	.undo_cwnd	= vj_undo_cwnd,
	.TCP_CONG_TX_START_HOOK	= vj_tx_start,
	.set_state	= vj_set_state,
	.get_info	= vj_get_info,

	.owner		= THIS_MODULE,
	.name		= "veno_jitter",
};

static int __init vj_register(void)
{
	BUILD_BUG_ON(sizeof(struct veno_jitter) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&vj_ops);
}

static void __exit vj_unregister(void)
{
	tcp_unregister_congestion_control(&vj_ops);
}

module_init(vj_register);
module_exit(vj_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("veno_jitter: short queues, loss differentiation, measured bandwidth");
MODULE_VERSION("0.1");
