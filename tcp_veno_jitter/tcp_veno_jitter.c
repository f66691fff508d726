// SPDX-License-Identifier: GPL-2.0-only
/*
 * veno_jitter: keeps a queue of its own short, shares as CUBIC does what others
 * fill, and takes a loss for noise only where the path has shown that it is.
 *
 * Papers: JTCP (IEEE JSAC 22(4), 2004) for the jitter, TCP Veno (IEEE JSAC
 * 21(2), 2003) for the backlog, TCP New Jersey (Computer Networks 47(2), 2005)
 * for the bandwidth. RFC 9438 for the window beside others. The law on one page:
 * docs/veno_jitter.md; measurements, and rules that lost: docs/veno_jitter-measured.md
 * and docs/veno_jitter-tried.md.
 *
 *   D = jitter between the newest packet and one that met an empty queue
 *   q = min(RTT - base, D)             queueing delay on the way there
 *   V = q of the last packet of a round trip less the smallest q of it, averaged
 *       over eight: no queue that stands, so none of Q
 *   Q = smallest q of a round trip, less V, if that is not deep (half of base):
 *       the queue that stands, not a burst's
 *   N = w * Q / RTT                    this flow's packets in it
 *
 * The jitter ratio of the packets since that empty queue is D / RTT, so JTCP's
 * test Jr >= k / w and Veno's test N >= k are one and the same here.
 *
 * There are three states:
 *
 *   STARTUP  The window doubles each round trip, and grows by a quarter after
 *            the first sign of a limit: a loss, or eight packets in a row that
 *            wait. While packets are lost no more is sent than arrives.
 *            A queue begins to stand: drain it, ALONE.
 *            Losses, and an eighth more is not delivered: listen, ALONE. They
 *            were noise: go on here.
 *            An eighth more is not delivered three times: ALONE.
 *            A timeout: SHARED.
 *   ALONE    The queue is ours. +1 a round trip while N < beta, +1/2 above. After
 *            8 round trips without a queue the step doubles each time, up to w / 8;
 *            after 2 if V is above base / 8, as queues come and go there. Q at a
 *            tenth of base is drained: w sinks to max(ocwnd, w - N) and a packet
 *            more, or a piece that arrives as one. One that came at once is not
 *            our doing, and waited for: 4 round trips.
 *            Drains and then dips do not empty it, or it overflows although we
 *            drain it: SHARED, up to the window that was given up.
 *            More is lost than noise explains: listen. A second time: SHARED,
 *            without room. Two exceptions, with room: more than two fifths lost is
 *            an outage, listen again; an eighth to two fifths lost while it listens
 *            is no answer to our load, as less is sent, listen on.
 *   SHARED   CUBIC's window, RFC 9438; without room +1/2 a round trip until its
 *            curve is above the last maximum.
 *            With room: no queue for more than 16 round trips, or none in a dip,
 *            after a loss in two dips: ALONE. A dip that ends it shows that nobody else
 *            was there: next time twice as many drains are tried before SHARED.
 *
 * What a loss means depends on whether the path has *room*: a queue above base / 8
 * has been seen there of which beta packets were ours, or startup ended in one.
 *
 *   room     Only a full queue drops. A loss is congestion if q and Q are at
 *            the top of what Q has been, and that is deep (half of base) or the
 *            last losses were at the top as well. Otherwise it is noise.
 *   no room  Nothing shows how full the path is, as with a policer or a queue
 *            of a few packets. ALONE: a loss is congestion, unless noise alone
 *            takes a packet of every second window. SHARED: each packet that is
 *            sent credits five quarters of the noise, each lost one takes one
 *            off; a loss that overdraws what was saved is congestion, however
 *            large the window.
 *
 * With room, what one ACK shows to be lost is one loss, up to eight packets: noise
 * comes in bursts, what overflows a queue that is kept short goes one by one.
 *
 * Noise is what is lost while less is sent than was delivered and three of four
 * packets meet no queue: that of others would drop just as well. If of 32 to 512
 * packets more are lost than that noise and three times its scatter explain, that is
 * congestion, whatever was said of single losses. Where it comes twice, in SHARED once,
 * although a queue seems to tell, the queue is too short for it: only a deep or a
 * steady one is room from then on.
 *
 * Four trials ask the path what cannot be seen otherwise:
 *
 *   listen  too much is lost: three quarters of what was delivered, until 64
 *           packets have told the noise. If it takes less than four of them: 192, if
 *           it takes some, and 512 packets, where that is no more than 8 round trips.
 *   dip     each 5 s by the wall clock, and so at once with all others of our kind,
 *           if base has not been seen of late; or because drains do not help: what
 *           empties the queue, down to half of what the path holds, for as long as
 *           the round trip gets shorter. A deep queue of which a quarter is left was
 *           ours, if ALONE. One that becomes much shorter is our kind's, though it may
 *           not get empty: what is left of it is base then, if that is a lot. A loss in
 *           a dip is of the window before. If no RTT between two looks, 5 s apart, was
 *           shorter by base / 8, or by half of RTT - base if that is less, in spite of a
 *           dip, the path is longer, and the smallest of them is base; SHARED by
 *           base / 32, from the first of four looks to the last. ALONE,
 *           a look that has not shown base is followed by one after a quarter of that
 *           time, if V is small.
 *   hush    SHARED, no room: each 5 s by the wall clock, and so at once with all
 *           others of our kind, three quarters of the window for a sixteenth of
 *           that time. What is lost then is noise, not what the others overflow.
 *           Where the delay varies most packets wait; if those behind a gap often do
 *           not, no queue has dropped, and waiting as long as most is no queue.
 *   probe   SHARED, no room and no queue for 16 round trips, then 32 and so on:
 *           a quarter more than the window or its last maximum. If that is
 *           delivered, a quarter more again, or STARTUP if a queue had misled.
 *
 *   symbol  field                    unit
 *   V       forward.varies           16 us
 *   Q       standing_us              us
 *   base    base_us                  us
 *   w       tcp_snd_cwnd()           packets
 *   ocwnd   bandwidth * (RTT - Q) / mss   packets
 *
 * cong_control replaces the core's window reduction: the window sinks by one
 * packet for two that arrive, so the ACK clock goes on. It does not grow while
 * a loss that is congestion is being repaired. The core's recovery decides what
 * to retransmit as ever. Where it sinks to after a loss that is congestion: ALONE
 * to what drains the queue, or 0.85 w if that is less; SHARED to keep_percent of w.
 *
 * Without time stamps q is that of the round trip. With them, what is queue on
 * the way back by the receiver's clock alone excuses no loss: where three round
 * trips were longer than base and Q explain, each is congestion, but for those of a
 * hush, and after three the clock is not used any more. V excuses none, either: losses
 * are judged by Q with V put back.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "compat/tcp_cong.h"
#include "estimators/cubic_window.h"
#include "estimators/forward_queue.h"
#include "estimators/jitter_ratio.h"
#include "estimators/peer_clock.h"
#include "estimators/tabe.h"
#include "estimators/veno_backlog.h"
#include "tcp_info.h"
#include "tcp_loss.h"
#include "tcp_param.h"
#include "tcp_rtt.h"

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

static struct tcp_param vj_keep_percent = { .value = 70, .min = 50, .max = 95 };
module_param_cb(keep_percent, &tcp_param_ops, &vj_keep_percent, 0644);
MODULE_PARM_DESC(keep_percent,
		 "window that a congestion loss leaves beside others, percent (50-95)");

static struct tcp_param vj_pace = { .value = 1, .min = 0, .max = 1 };
module_param_cb(pace, &tcp_param_ops, &vj_pace, 0644);
MODULE_PARM_DESC(pace, "pace packets: 0 only under fq, 1 always (0-1)");

static struct tcp_param vj_peer_clock = { .value = 1, .min = 0, .max = 2 };
module_param_cb(peer_clock, &tcp_param_ops, &vj_peer_clock, 0644);
MODULE_PARM_DESC(peer_clock,
		 "receiver's time stamps: 0 unused, 1 excuse no loss, 2 believed (0-2)");

/* What the law is tuned by; docs/veno_jitter-measured.md says how much each matters. */
#define VJ_ROOM_SHIFT		3	/* 1/8: of base, a queue that counts; of w, much */
#define VJ_LITTLE_SHIFT		6	/* 1/64: of base, no queue; of packets, no losses */
#define VJ_TOP_PERCENT		85	/* of the largest q that stood: below it is noise */
#define VJ_PATTERN		3	/* so often is a pattern; @tops and @flat: once more */
#define VJ_HOLD_ROUNDS		3	/* until a smaller window shows */
#define VJ_CALM_ROUNDS		8	/* that matter: without a queue, or with one */
#define VJ_BASE_S		5	/* shortest turn; a silence that forgets the path */
#define VJ_FILLS		5	/* of @fills; above it dips, no drains any more */
#define VJ_TRIAL_SHIFT		2	/* 1/4: what a trial changes; of a turn, to the next look */
#define VJ_HUSHED_SHIFT		4	/* a hush lasts for a sixteenth of a turn */
#define VJ_EXCUSED_SHIFT	2	/* a quarter as much again as noise is excused */
#define VJ_FEW_PKTS		8	/* fewer tell no queue, no rate; in a row one loss */

/* What follows from those. */
#define VJ_STOOD_ROUNDS		(VJ_HOLD_ROUNDS + 1)	/* then one that jumped up is drained */
#define VJ_CALM_SHIFT		ilog2(VJ_CALM_ROUNDS)	/* between two looks */
#define VJ_SWING_ROUNDS		(VJ_CALM_ROUNDS / 4)	/* the same where queues come and go */
#define VJ_ROUNDS_SHIFT		(VJ_HUSHED_SHIFT + 2)	/* so a hush has four round trips or more */
#define VJ_FILLS_MAX		(3 * VJ_FILLS)	/* of @fills; above it others fill the queue */
#define VJ_LOSS_PKTS		((1 << VJ_LITTLE_SHIFT) / 2)	/* smallest sample of losses */
#define VJ_QUIET_MAX		(4 * VJ_LOSS_PKTS)	/* remembered where only losses tell */
#define VJ_CREDIT_PKTS		VJ_LOSS_PKTS	/* losses that noise may save */

/* What follows from the medium, the core or an RFC. */
#define VJ_NO_SAMPLE_US		~0U	/* no q: of this ACK, or of this round trip yet */
#define VJ_SACK_WAIT_US		1100	/* tcp_comp_sack_delay_ns and its slack */
#define VJ_DELACK_PKTS		4	/* a smaller window waits for ACKs */
#define VJ_OVERTAKEN_PKTS	3	/* behind a gap, that may have come by another way */
#define VJ_ACKED_PKTS		2	/* delayed ACKs tell of so many (RFC 5681) */
#define VJ_FORGET_SHIFT		7	/* 1/128 a round: the largest q fades, B falls at most */
#define VJ_LEARN_SHIFT		2	/* Q's largest rises by 1/4 of the way */
#define VJ_TOPS_MAX		15
#define VJ_TOPS_STEP		2	/* what a loss elsewhere takes back */
#define VJ_PATIENCE		3	/* doublings of VJ_FILLS_MAX */
#define VJ_CALM_MAX		255
#define VJ_CE_KEEP_PERCENT	85	/* of the window: a mark (RFC 8511), a loss ALONE */
#define VJ_PACE_PERCENT		105
#define VJ_PACE_STARTUP_PERCENT	200
#define VJ_PACE_EASED_PERCENT	130
#define VJ_PACE_FEW_PERCENT	1600	/* as good as not paced */
#define VJ_EASED_PKTS		4	/* startup, eased: 1/4 more a round (RFC 9406) */
#define VJ_STAMP_SHIFT		14	/* stamps are in 2^14 us, 16 ms */
#define VJ_HEARD		4	/* losses that tell a share */
#define VJ_HEARD_PKTS		512	/* that tell it for sure */
#define VJ_SCATTER		18	/* (3 sigma)^2 of the sample, as much of what was heard */
#define VJ_SHARE_SHIFT		16	/* of @noise */
#define VJ_QUIET_PKTS		3	/* that met no queue, for one that did */
#define VJ_CLEAR_STEP		8	/* gaps in a queue, for one in none */
#define VJ_CLEAR		(3 * VJ_CLEAR_STEP) /* then losses come without a queue */
#define VJ_CLEAR_MAX		63
#define VJ_CREDIT_SHIFT		8	/* of @credit */
#define VJ_TURN_MAX_SHIFT	6	/* 5 s, 10 s, ... 320 s */

enum vj_state {
	VJ_STARTUP,	/* the window doubles */
	VJ_ALONE,	/* the queue is ours: it is kept short */
	VJ_SHARED,	/* the usual share: losses decide */
};

enum vj_trial {
	VJ_NO_TRIAL,	/* but it may listen: a hold with @listens */
	VJ_DIP,		/* the window is lowered, more is still in flight */
	VJ_DIPPED,	/* what is acknowledged was sent with the lower window */
	VJ_HUSH,	/* the same, but a little, and to hear the noise */
	VJ_HUSHED,
	VJ_PROBE,	/* the window is raised */
	VJ_PROBED,	/* what is acknowledged was sent with the larger window */
};

/**
 * struct veno_jitter - private area of a connection
 * @bandwidth: B
 * @clock: the receiver's clock
 * @forward: D and V
 * @base_us: smallest RTT of full packets in the last minutes (sysctl_tcp_min_rtt_wlen),
 *	or what a look or a dip has found (us)
 * @round_queue_us: smallest q of this round trip (us)
 * @round_rtt_us: smallest RTT of this round trip (us)
 * @standing_us: Q of the last round trip (us)
 * @standing_path_us: smallest RTT of it without Q: base, V and the queue back (us)
 * @standing_max_us: largest smallest q of a round trip, with V, fading (us)
 * @round_end: this round trip ends when that is delivered (packets)
 * @lost: tp->lost when it began, its lower half; more where a run is fewer losses (packets)
 * @w_max: STARTUP: most that was delivered in a round trip; SHARED: W_max of CUBIC;
 *	ALONE: largest window that was drained, or still W_max, until more than 16
 *	round trips without a queue (packets)
 * @growth_pkts: the window grows by one for so many that are delivered (packets)
 * @noise: share of the packets that is lost at random, 1 / 2^VJ_SHARE_SHIFT
 * @recent_us: base is seen by an RTT of up to 17/16 of it, or of up to this. It is the
 *	newest that did so; after a look that missed base the last round trip's smallest,
 *	or the smallest since, less base / 64 (us)
 * @base_stamp: when @recent_us was seen, or looked for in vain (2^VJ_STAMP_SHIFT us)
 * @epoch: when CUBIC's window was reduced, without pauses since; begins anew after 17
 *	minutes, as if there were a maximum to return to (2^VJ_STAMP_SHIFT us)
 * @sent: packets of earlier round trips, too few yet for a share (packets)
 * @sent_lost: how many of them were lost (packets)
 * @credit: the account, while vj_is_blind() and not in a hush: losses that noise
 *	explains and that have not happened yet (1 / 2^VJ_CREDIT_SHIFT packet)
 * @calm: round trips without a queue
 * @queued: startup: packets in a row that met one; SHARED, @fooled:
 *	round trips in which one stood
 * @quiet: RTTs of the loss sample that met no queue, less VJ_QUIET_PKTS for each
 *	that did; vj_is_blind(): a running sum; in a hush less one for each that did
 * @state: enum vj_state
 * @trial: enum vj_trial
 * @hold: round trips without growth and drains
 * @draining: the window is sinking to snd_ssthresh
 * @random: the last loss was noise
 * @judged: there was a verdict in this round trip
 * @answered: the losses of this hold, or dip, are answered: no second time until it
 *	ends
 * @tlp: the next ssthresh hook is for a tail loss probe
 * @counted: what this ACK shows to be lost is in @lost, as a run
 * @slow: N >= beta in the last round trip (vj_beta())
 * @roomy: a queue of base / 8 was seen, of which beta packets were ours; a deep
 *	one if @fooled
 * @trusts: the receiver's clock is used
 * @resisted: round trips with a congestion loss in a deep queue, since ALONE began or
 *	a dip found none
 * @tops: one more for each verdict at the top of the queue, two less for another
 * @vain: STARTUP: round trips in a row without gain; else: those with a deep queue,
 *	holds not counted, since the last without one; VJ_PATTERN at most
 * @undo_state: state before the loss that may have been none
 * @undo_roomy: what it had shown of the path by then: @roomy
 * @undo_struck: @struck of then
 * @undo_fooled: @fooled of then
 * @listens: the losses after this drain are what noise there is
 * @stood: round trips in a row with a queue to drain; one that did not jump up has
 *	stood for VJ_STOOD_ROUNDS at once
 * @flat: looks with a dip after which base was still unseen, and no RTT shorter
 * @fills: drains of late: one or two more for each that begins, or for a hold in its
 *	place, one less for each round trip without a queue of ours
 * @shy: without room: probes since room was seen or given up, each doubles the wait for
 *	the next; with room: dips that ended SHARED since a loss there, each doubles the
 *	drains until SHARED
 * @struck: it has listened: the next excess, or loss that is congestion without room,
 *	ends startup, or makes ALONE SHARED
 * @fooled: too much was lost although there seemed to be room: only a deep queue,
 *	or a steady one, is room from then on
 * @lossy: SHARED, with room: packets were lost
 * @doubted: SHARED, with room, after a loss: the next dip that finds no queue does not
 *	end it, the one after that does
 * @returns: startup goes on after listening, if any noise is known
 * @settled: SHARED: what this round trip loses is noise
 */
struct veno_jitter {
	struct tabe bandwidth;
	struct peer_clock clock;
	struct forward_queue forward;
	u32 base_us;
	u32 recent_us;
	u32 round_queue_us;
	u32 round_rtt_us;
	u32 standing_us;
	u32 standing_path_us;
	u32 standing_max_us;
	u32 round_end;
	u32 w_max;
	u16 lost;
	u16 sent;
	union {
		u16 sent_lost;
		u16 credit;
	};
	u16 growth_pkts;
	u16 noise;
	u16 base_stamp;
	u16 epoch;
	u8 calm;
	u8 queued:4,
	   undo_roomy:1,
	   undo_struck:1,
	   undo_fooled:1;
	s16 quiet;
	u8 fills:7,
	   fooled:1;
	/* what most ACKs ask for is in one byte, or in one more */
	u8 state:2,
	   trial:3,
	   hold:2,
	   draining:1;
	u8 random:1,
	   judged:1,
	   answered:1,
	   tlp:1,
	   counted:1,
	   slow:1,
	   roomy:1,
	   trusts:1;
	u8 resisted:2,
	   tops:4,
	   vain:2;
	u8 undo_state:2,
	   listens:1,
	   shy:3,
	   struck:1,
	   settled:1;
	u8 stood:3,
	   flat:2,
	   lossy:1,
	   doubted:1,
	   returns:1;
};

/* Lost in this round trip. */
static u32 vj_lost_pkts(const struct veno_jitter *vj, const struct tcp_sock *tp)
{
	return (u16)(tp->lost - vj->lost);
}

/*
 * One ACK shows @pkts to be lost, which so were sent one after the other. What
 * overflows a queue that we keep short goes one by one; noise comes in bursts, which
 * scatter more than single losses do. So a run counts as one loss where a queue tells
 * when the path is full.
 */
static void vj_note_run(struct veno_jitter *vj, u32 pkts)
{
	if (vj->roomy && vj->state != VJ_STARTUP && pkts > 1)
		vj->lost += pkts - DIV_ROUND_UP(pkts, VJ_FEW_PKTS);
}

/* Time in 2^VJ_STAMP_SHIFT us; wraps after 17 minutes. */
static u16 vj_stamp(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp >> VJ_STAMP_SHIFT;
}

/* How long ago @stamp was (us). */
static u32 vj_age_us(const struct tcp_sock *tp, u16 stamp)
{
	return (u32)(u16)(vj_stamp(tp) - stamp) << VJ_STAMP_SHIFT;
}

/*
 * Beside others, whose packets leave in pairs as ACKs come. Evenly spaced ones would
 * find each place in a queue of a few packets first, and the pairs be dropped.
 */
static bool vj_has_few_beside_others(const struct veno_jitter *vj,
				     const struct tcp_sock *tp)
{
	return vj->state == VJ_SHARED && vj->roomy &&
	       tcp_snd_cwnd(tp) < 2 * VJ_FEW_PKTS;
}

static u32 vj_standing_rtt_us(const struct veno_jitter *vj)
{
	return vj->standing_path_us + vj->standing_us;
}

/* A delay that counts as a queue; whether the path has room is @roomy. */
static bool vj_is_queue(const struct veno_jitter *vj, u32 queue_us)
{
	return queue_us > vj->base_us >> VJ_ROOM_SHIFT;
}

/*
 * Do queues come and go, as where the rate swings (LTE, Wi-Fi among others)? What a
 * drain has taken off the window is soon asked for again there.
 */
static bool vj_swings(const struct veno_jitter *vj)
{
	return vj_is_queue(vj, forward_queue_varies_us(&vj->forward));
}

/*
 * As tcp_update_pacing_rate(), which a cong_control hook replaces, but from the
 * window alone, and once a round trip. Above the path's rate even a window that
 * fits would overflow a short queue in bursts: so the margin is small. The mean RTT
 * lags: after an outage a small window would be sent over seconds. So it is twice the
 * last round trip's shortest at most, and that itself ALONE where queues come and go.
 */
static void vj_update_pacing(struct sock *sk)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);
	u32 rtt_us = tp->srtt_us ? : USEC_PER_MSEC << 3;

	if (vj->standing_path_us)
		rtt_us = min_t(u64, rtt_us, (u64)vj_standing_rtt_us(vj) <<
			       (vj->state == VJ_ALONE && vj_swings(vj) ? 3 : 4));
	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)
		rate *= VJ_PACE_STARTUP_PERCENT;
	else if (vj->state == VJ_STARTUP)
		rate *= VJ_PACE_EASED_PERCENT;
	else if (vj_has_few_beside_others(vj, tp))
		rate *= VJ_PACE_FEW_PERCENT;
	else
		rate *= VJ_PACE_PERCENT;
	rate *= tcp_snd_cwnd(tp);
	rate = div_u64(rate, rtt_us);
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* No packet of this round trip has come yet. */
static void vj_begin_round(struct veno_jitter *vj)
{
	vj->round_queue_us = VJ_NO_SAMPLE_US;
	vj->round_rtt_us = ~0U;
}

static void vj_init(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	memset(vj, 0, sizeof(*vj));
	vj->trusts = !!tcp_param_get(&vj_peer_clock);
	/* a SYN is shorter than what follows, and so is its round trip */
	vj->base_us = tp->data_segs_out ? tcp_min_rtt(tp) : ~0U;
	vj->recent_us = vj->base_us;
	vj->base_stamp = vj_stamp(tp);
	vj_begin_round(vj);
	vj->round_end = tp->delivered;
	vj->lost = tp->lost;
	vj->growth_pkts = 1;
	/* chosen amid a recovery: the core has forgotten the threshold, for no mark */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		tp->prior_ssthresh = tp->snd_ssthresh;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (tcp_param_get(&vj_pace))
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			SK_PACING_NEEDED);
	vj_update_pacing(sk);
}

/*
 * Does this host's device cut what TCP sends? If not the stack does, and each packet
 * goes its way: the first one of a piece waits for none.
 */
static bool vj_is_offloaded(const struct sock *sk)
{
	const struct dst_entry *dst;
	bool offloaded;

	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	offloaded = dst && READ_ONCE(dst->dev)->features & NETIF_F_ALL_TSO;
	rcu_read_unlock();
	return offloaded && sk_can_gso(sk);
}

/*
 * How many packets TCP hands over at once (tcp_tso_autosize()), but no more than half of
 * the window. The stack cuts them, or the network card does, or nobody.
 */
static u32 vj_piece_pkts(const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	u32 size = sk->sk_gso_max_size;
	u64 bytes = READ_ONCE(sk->sk_pacing_rate) >>
		    READ_ONCE(sk->sk_pacing_shift);
	u32 shift = tcp_min_rtt(tp) >>
		    min_t(u32, 31,
			  READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_tso_rtt_log));

	if (shift < BITS_PER_TYPE(size))
		bytes += size >> shift;
	return clamp((u32)min_t(u64, bytes, size) / tp->mss_cache, 1U,
		     min_t(u32, sk->sk_gso_max_segs,
			   max(tcp_snd_cwnd(tp) / 2, 1U)));
}

/*
 * How many packets leave in one piece and arrive as one: what TCP hands over where
 * segmentation is offloaded, but no more than an ACK tells of by the mean of this
 * connection. Where a network card cuts pieces and nobody puts them together again, an
 * ACK tells of two packets at most, and the first ones of a piece have waited for none.
 */
static u32 vj_burst_pkts(const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;
	u32 acks = READ_ONCE(tp->segs_in) - READ_ONCE(tp->data_segs_in);
	u64 acked_pkts = div64_u64(tp->bytes_acked,
				   (u64)tp->mss_cache * max(acks, 1U));

	if (acked_pkts <= VJ_ACKED_PKTS || !vj_is_offloaded(sk))
		return 1;
	return min_t(u64, vj_piece_pkts(tp), acked_pkts);
}

/*
 * So much was lost of so much: may that be the tails of our own pieces, in a queue that is
 * shorter than they are? One packet of each or more.
 */
static bool vj_may_be_tails(const struct tcp_sock *tp, u32 sent_pkts,
			    u32 lost_pkts)
{
	u32 piece_pkts = vj_piece_pkts(tp);

	return piece_pkts > VJ_ACKED_PKTS &&
	       (u64)lost_pkts * piece_pkts >= sent_pkts;
}

/* The last packet of such a piece waits for the first one, wherever the path is used. */
static u32 vj_beta(const struct tcp_sock *tp)
{
	return tcp_param_get(&vj_beta_pkts) + vj_burst_pkts(tp) - 1;
}

static bool vj_backlog_reaches(const struct tcp_sock *tp,
			       const struct veno_jitter *vj, u32 n_pkts)
{
	return veno_backlog_reaches(tcp_snd_cwnd(tp), vj->standing_us,
				    vj_standing_rtt_us(vj), n_pkts);
}

/* N of the standing queue, in 1 / 2^VENO_BACKLOG_SHIFT packet. */
static u32 vj_backlog(const struct tcp_sock *tp, const struct veno_jitter *vj)
{
	return veno_backlog(tcp_snd_cwnd(tp), vj->standing_path_us,
			    vj_standing_rtt_us(vj));
}

static bool vj_is_part_of_base(const struct veno_jitter *vj, u32 queue_us,
			       u32 percent)
{
	return (u64)queue_us * 100 >= (u64)vj->base_us * percent;
}

static bool vj_is_deep(const struct veno_jitter *vj, u32 queue_us)
{
	return vj_is_part_of_base(vj, queue_us,
				  tcp_param_get(&vj_deep_percent));
}

/* More than two fifths: noise does not take that much for long. */
static bool vj_is_outage(u32 sent_pkts, u32 lost_pkts)
{
	return 5 * (u64)lost_pkts > 2 * (u64)sent_pkts;
}

/* A new sample of losses, or no credit. */
static void vj_forget_sample(struct veno_jitter *vj)
{
	vj->sent = 0;
	vj->sent_lost = 0;
}

/* SHARED without room: only losses tell how full the path is, and the account judges them. */
static bool vj_is_blind(const struct veno_jitter *vj)
{
	return vj->state == VJ_SHARED && !vj->roomy;
}

/*
 * There is a queue that shows when the path is full. When it is first seen @shy, @calm
 * and the sample begin anew, as they are of other things without room.
 * One that is @sure, deep or steady, forgives what a short one has misled to.
 */
static void vj_see_room(struct veno_jitter *vj, bool sure)
{
	if (!vj->roomy) {
		vj->shy = 0;
		vj->calm = 0;
		vj_forget_sample(vj);
	}
	if (!vj->roomy || sure)
		vj->struck = 0;
	if (sure)
		vj->fooled = 0;
	vj->roomy = 1;
}

/* A round trip that is otherwise takes back an eighth of those counted, and one. */
static u8 vj_less(u8 rounds)
{
	return rounds - min_t(u8, rounds, rounds / 8 + 1);
}

/* Is Q none that counts? One that we have little part in, unless it is deep. */
static bool vj_is_empty(const struct veno_jitter *vj, bool deep)
{
	return !vj_is_queue(vj, vj->standing_us) || (!deep && !vj->slow);
}

/* The smallest RTT of the last round trip is at most 9/8 of base: nobody's packets wait. */
static bool vj_is_clear(const struct veno_jitter *vj)
{
	return vj_standing_rtt_us(vj) <=
	       vj->base_us + (vj->base_us >> VJ_ROOM_SHIFT);
}

/*
 * Is the round trip as long as base and Q say? If not, only the receiver's clock says
 * that the rest was on the way back, and it may lie.
 */
static bool vj_is_shown(const struct veno_jitter *vj)
{
	return !vj->forward.unshown || tcp_param_get(&vj_peer_clock) > 1;
}

/*
 * Was it none of the last three? Then that excuses no loss. A single one may be longer:
 * acknowledgments are held and come together over Wi-Fi.
 */
static bool vj_is_hidden(const struct veno_jitter *vj)
{
	return vj->forward.unshown == VJ_PATTERN && !vj_is_shown(vj);
}

/* Its tick, and whether it goes as it should: once a round trip. */
static void vj_check_clock(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	if (!tp->rx_opt.tstamp_ok || !vj->trusts)
		return;
	if (peer_clock_look(&vj->clock, tp->rx_opt.rcv_tsval, tp->tcp_mstamp))
		forward_queue_restart(&vj->forward);
	vj->forward.known &= vj->clock.known & vj->forward.anchored;
}

/*
 * The receiver's clock; @known: its tick is, so it goes. Return: this ACK has a time, and
 * it is no older one.
 */
static __always_inline bool vj_note_time(struct veno_jitter *vj,
					 const struct tcp_sock *tp, bool known)
{
	if (!tp->rx_opt.saw_tstamp)
		return false;
	if (!known && !peer_clock_goes(&vj->clock)) {
		if (!vj->trusts)
			return false;
		peer_clock_start(&vj->clock, tp->rx_opt.rcv_tsval,
				 tp->tcp_mstamp);
	}
	return peer_clock_advance(&vj->clock, tp->rx_opt.rcv_tsval);
}

/* Is so much above base more than a little? */
static bool vj_is_much(const struct veno_jitter *vj, u32 above_us)
{
	return above_us > vj->base_us >> (VJ_ROOM_SHIFT + 1);
}

/* Is it more than base, not by a little? */
static bool vj_exceeds_base(const struct veno_jitter *vj, u32 rtt_us)
{
	return rtt_us > vj->base_us && vj_is_much(vj, rtt_us - vj->base_us);
}

/*
 * Note when base was last seen: by an RTT within 1/16 of it, or by a smaller one, which
 * is base then. Where it has not been seen for long, one that is the smallest since, by a
 * 64th of base, counts as well.
 *
 * Return: how much its RTT is above base (us).
 */
static __always_inline u32 vj_note_base(struct veno_jitter *vj,
					const struct tcp_sock *tp, u32 rtt_us)
{
	u32 above_us = rtt_us - vj->base_us;

	if (unlikely(rtt_us < vj->base_us)) {
		/* who overtook others took another way, who is behind a hole met less */
		if (vj->base_us != ~0U && tp->sacked_out)
			return 0;
		vj->base_us = rtt_us;
		above_us = 0;
	}
	if (vj_is_much(vj, above_us)) {
		if (rtt_us > vj->recent_us)
			return above_us;
		rtt_us -= vj->base_us >> VJ_LITTLE_SHIFT;
	}
	vj->recent_us = rtt_us;
	vj->base_stamp = vj_stamp(tp);
	return above_us;
}

/*
 * The first round trip after a silence. What was sent before it may have been
 * requests, which are shorter, and so is their round trip: where the path holds
 * less than 64 packets each full one would seem to meet a queue from then on.
 */
static void vj_note_full_packets(struct veno_jitter *vj,
				 const struct tcp_sock *tp)
{
	u32 least_us = tcp_min_rtt(tp);

	vj->base_us = max(vj->base_us,
			  min(vj_standing_rtt_us(vj),
			      least_us + (least_us >> VJ_ROOM_SHIFT)));
}

/* The largest q that counts as no queue where noise is heard (us). */
static __always_inline u32 vj_quiet_us(const struct veno_jitter *vj)
{
	u32 quiet_us = vj->base_us >> VJ_LITTLE_SHIFT;
	u32 tick_us = vj->clock.tick_us;

	if (vj->roomy)
		quiet_us = clamp(vj->standing_max_us / 2, quiet_us,
				 vj->base_us >> VJ_ROOM_SHIFT);
	if (tick_us <= 2 * quiet_us)
		quiet_us = max(quiet_us, tick_us);
	return quiet_us;
}

/*
 * How long an ACK may have waited at the receiver (us): of packets out of order a
 * Linux host sends one in a millisecond; base / 2 is the most that is excused.
 */
static u32 vj_sack_wait_us(const struct veno_jitter *vj,
			   const struct tcp_sock *tp)
{
	return tp->sacked_out ? min(vj->base_us / 2, VJ_SACK_WAIT_US + 0U) : 0;
}

/*
 * Is noise heard in the round trip that begins? In the last one of a hold, while the
 * window listens. In SHARED without room, in a hush, and where losses are noise.
 */
static bool vj_asks_quiet(const struct veno_jitter *vj)
{
	if (vj->state == VJ_SHARED)
		return !vj->roomy || vj->settled || vj->trial == VJ_HUSHED;
	return vj->hold == 1;
}

/*
 * A queue that drops is full, so the first packet behind a gap has waited. Where one in
 * nine and more has not, losses come without a queue, however much the delay varies.
 */
static void vj_note_gap(struct veno_jitter *vj, const struct tcp_sock *tp,
			u32 above_us)
{
	bool gap = tp->sacked_out;

	if (gap && !vj->clock.gap && !tp->reord_seen) {
		if (above_us <= vj->base_us >> (VJ_LITTLE_SHIFT - 1))
			vj->clock.clear = min(vj->clock.clear + VJ_CLEAR_STEP,
					      VJ_CLEAR_MAX);
		else if (vj->clock.clear)
			vj->clock.clear--;
	}
	vj->clock.gap = gap;
}

/*
 * Did this packet meet a queue? SHARED only the first ACK of more than two packets that
 * left at once, at @sent_us, tells: the others have waited for it, however empty the path
 * is. While the window listens others may not do so, and what they overflow is no noise.
 */
static __always_inline void vj_note_quiet(struct veno_jitter *vj,
					  const struct tcp_sock *tp, u8 sent_us,
					  u32 queue_us, u32 above_us)
{
	u32 quiet_us = vj_quiet_us(vj);

	vj_note_gap(vj, tp, above_us);
	/* four times the mean deviation: the delay varies, and no queue drops */
	if (vj->trial == VJ_HUSHED && vj->clock.clear >= VJ_CLEAR &&
	    !tp->reord_seen)
		quiet_us = clamp(tp->mdev_us, quiet_us,
				 vj->base_us >> VJ_TRIAL_SHIFT);
	if (vj->forward.in_pieces && vj->state == VJ_SHARED &&
	    sent_us == vj->forward.sent_us)
		return;
	vj->forward.sent_us = sent_us;
	/* a coarse clock tells of many packets, not of each */
	if (vj->clock.tick_us > quiet_us)
		queue_us = above_us;
	if (queue_us <= quiet_us)
		vj->quiet += vj->quiet < S16_MAX;
	else if (above_us > quiet_us + vj_sack_wait_us(vj, tp))
		vj->quiet = max_t(s32, vj->quiet -
				  (vj->trial == VJ_HUSHED ? 1 : VJ_QUIET_PKTS),
				  S16_MIN);
}

/*
 * q of the newest packet (us). Unless its ACK has a time of the receiver's clock, and
 * no older one, and the tick is known, the queues there and back are one. @known: it is,
 * and there is a packet to compare with.
 */
static __always_inline u32 vj_forward_queue_us(struct veno_jitter *vj,
					       const struct tcp_sock *tp,
					       u32 rtt_us, u32 above_us,
					       bool known)
{
	u32 sent_us = (u32)tp->tcp_mstamp - rtt_us;
	u32 transit_us, queue_us;

	if (!vj_note_time(vj, tp, known))
		return above_us;
	transit_us = vj->clock.peer_us - sent_us;
	if (!known && !vj->forward.anchored) {
		/* the first packets have no queue of their own */
		queue_us = tp->delivered <= TCP_INIT_CWND ? 0 : above_us;
		forward_queue_start(&vj->forward, transit_us, queue_us);
	} else {
		queue_us = forward_queue_follow(&vj->forward, transit_us,
						above_us, vj->clock.tick_us);
	}
	if (!known)
		vj->forward.known = vj->clock.known;
	return known || vj->clock.known ? queue_us : above_us;
}

/*
 * The largest that stood, fading: delayed ACKs look like a queue to a small window,
 * and one long round trip is no reason to expect another.
 */
static void vj_note_largest(struct veno_jitter *vj, u32 queue_us, u32 w)
{
	u32 largest_us = vj->standing_max_us;

	largest_us -= DIV_ROUND_UP(largest_us, 1 << VJ_FORGET_SHIFT);
	if (queue_us > largest_us && w >= VJ_DELACK_PKTS)
		largest_us += DIV_ROUND_UP(queue_us - largest_us,
					   1 << VJ_LEARN_SHIFT);
	vj->standing_max_us = largest_us;
}

/* By how much the growth of the window made the last packet of a round trip wait (us). */
static u32 vj_grown_us(const struct veno_jitter *vj)
{
	if (vj->hold || vj->trial || vj->draining || !vj->growth_pkts)
		return 0;
	return vj->round_rtt_us / vj->growth_pkts;
}

/*
 * Q at the end of a round trip; @last_us: q of its last packet. While slow start
 * makes a queue itself nothing of it is V, nor what growth adds within a round trip.
 */
static void vj_note_standing(struct veno_jitter *vj, const struct tcp_sock *tp,
			     u32 last_us)
{
	u32 queue_us = vj->round_queue_us;
	u32 path_us = vj->round_rtt_us - queue_us;

	if (vj->state != VJ_STARTUP && !tcp_in_slow_start(tp) &&
	    last_us != VJ_NO_SAMPLE_US)
		forward_queue_note_round(&vj->forward, last_us,
					 queue_us + vj_grown_us(vj));
	vj_note_largest(vj, queue_us, tcp_snd_cwnd(tp));
	if (!vj_is_queue(vj, path_us - min(path_us, vj->base_us)))
		vj->forward.unshown = 0;
	else if (vj->forward.unshown < VJ_PATTERN)
		vj->forward.unshown++;
	if (!vj_is_deep(vj, queue_us))
		queue_us -= min(queue_us, forward_queue_varies_us(&vj->forward));

	vj->standing_us = queue_us;
	vj->standing_path_us = vj->round_rtt_us - queue_us;
	vj_begin_round(vj);
	vj->slow = vj_backlog_reaches(tp, vj, vj_beta(tp));
	vj->forward.in_pieces = vj_piece_pkts(tp) > VJ_ACKED_PKTS;
}

/* The queue, @before_us a round trip ago, came within this one. */
static bool vj_jumps(const struct veno_jitter *vj, const struct tcp_sock *tp,
		     u32 before_us)
{
	return !vj_lost_pkts(vj, tp) && vj->standing_us > before_us &&
	       veno_backlog_reaches(tcp_snd_cwnd(tp),
				    vj->standing_us - before_us,
				    vj_standing_rtt_us(vj), vj_beta(tp));
}

/*
 * What was delivered in the round trip, over the time that it took on our own
 * clock: the receiver's could promise more. @idle: less was sent than the path
 * may hold, which is no evidence of a slower one; where no queue stands a window
 * that is too small is little. Return: the rate of this round trip (bytes/s).
 */
static u64 vj_update_bandwidth(struct veno_jitter *vj,
			       const struct tcp_sock *tp, bool idle, bool empty)
{
	u32 now_us = tp->tcp_mstamp;
	u32 interval_us = now_us - vj->bandwidth.t_us;
	u64 bytes = (u64)(tp->delivered - vj->round_end) * tp->mss_cache;
	u64 before = vj->bandwidth.bw_bytes_per_s;
	u64 rate = 0, least = 0;

	if (vj->bandwidth.started && interval_us)
		rate = div_u64(bytes * USEC_PER_SEC, interval_us);
	tabe_update(&vj->bandwidth, now_us, min_t(u64, bytes, U32_MAX),
		    tp->srtt_us >> 3);
	if (idle)
		least = before;
	else if (empty)
		least = before - (before >> VJ_FORGET_SHIFT);
	vj->bandwidth.bw_bytes_per_s = max(vj->bandwidth.bw_bytes_per_s, least);
	return rate;
}

/*
 * ACKs that wait for their turn on the way back, as over Wi-Fi, make a round trip
 * longer, but not the path slower: if one came within 9/8 of base, and the last
 * packet met no queue (@last_us: its q), all that was delivered would have come in
 * 17/16 of base (bytes/s). A queue that more packets make meets the last one most.
 */
static u64 vj_rate_without_waits(const struct veno_jitter *vj,
				 const struct tcp_sock *tp, u32 delivered_pkts,
				 u32 last_us)
{
	u64 bytes = (u64)delivered_pkts * tp->mss_cache;

	if (!vj_is_clear(vj) || !vj->base_us || last_us > vj->base_us >> 4)
		return 0;
	return div_u64(bytes * USEC_PER_SEC,
		       vj->base_us + (vj->base_us >> 4));
}

/* What B needs without a queue (packets). */
static u32 vj_ocwnd_pkts(const struct tcp_sock *tp, const struct veno_jitter *vj)
{
	return tabe_window_pkts(&vj->bandwidth,
				vj->standing_path_us ? : vj->base_us,
				tp->mss_cache);
}

/* max(ocwnd, w - N) and a packet, or a piece, more: it leaves no queue of ours. */
static u32 vj_drained_pkts(const struct tcp_sock *tp,
			   const struct veno_jitter *vj)
{
	u32 moving = tcp_snd_cwnd(tp) -
		     (vj_backlog(tp, vj) >> VENO_BACKLOG_SHIFT);

	return min(max(vj_ocwnd_pkts(tp, vj), moving) + vj_burst_pkts(tp),
		   tcp_snd_cwnd(tp) + 1);
}

static void vj_enter(struct veno_jitter *vj, enum vj_state state)
{
	vj->state = state;
	vj_forget_sample(vj);
	vj->lossy = 0;
	vj->doubted = 0;
	vj->resisted = 0;
	vj->calm = 0;
	vj->vain = 0;
	vj->fills = 0;
	vj->queued = 0;
	if (state == VJ_STARTUP)
		vj->w_max = 0;
	if (vj->trial >= VJ_PROBE)
		vj->trial = VJ_NO_TRIAL;
}

/*
 * Let the window sink to @target_pkts, and hold. Ends startup and a probe; @answered and
 * @listens are to be set afterwards. SHARED with room a hold is a round trip shorter.
 */
static void vj_sink(struct sock *sk, u32 target_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (vj->state == VJ_STARTUP) {
		vj_enter(vj, VJ_ALONE);
		vj->w_max = 0;
	}
	if (vj->trial >= VJ_PROBE) {
		vj->trial = VJ_NO_TRIAL;
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	}
	vj->draining = 1;
	vj->hold = VJ_HOLD_ROUNDS - (vj->state == VJ_SHARED && vj->roomy);
	vj->answered = 0;
	vj->listens = 0;
	tp->snd_ssthresh = clamp(target_pkts, 2U, max(tcp_snd_cwnd(tp), 2U));
}

/* The window; in a dip or hush the one before it, in a probe that or W_max, if larger. */
static u32 vj_window_pkts(const struct tcp_sock *tp, const struct veno_jitter *vj)
{
	return vj->trial ? tp->snd_ssthresh : tcp_snd_cwnd(tp);
}

/* Lowered by a trial: a dip or a hush. */
static bool vj_is_lowered(const struct veno_jitter *vj)
{
	return vj->trial && vj->trial < VJ_PROBE;
}

/*
 * RFC 9438, sections 4.6 and 4.7: a new maximum, less if the last one was not
 * reached, and where the window sinks to. SHARED that only @begins has its maximum
 * already. Below half of the last one the window had not come back yet: that
 * maximum fades, and the window is no new one.
 */
static u32 vj_cubic_reduce(struct veno_jitter *vj, const struct tcp_sock *tp,
			   bool begins)
{
	u32 keep = tcp_param_get(&vj_keep_percent);
	u32 w = vj_window_pkts(tp, vj);

	if (!begins) {
		u32 most = w < vj->w_max / 2 ? vj->w_max : w;

		vj->w_max = w < vj->w_max ?
			    div_u64((u64)most * (100 + keep), 200) : w;
	}
	vj->epoch = vj_stamp(tp);
	return div_u64((u64)w * keep, 100);
}

/*
 * The usual share from now on. If that is because others filled what we drained,
 * the window that was given up is asked for again. Return: it was not so before.
 */
static bool vj_share(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	u32 given_up_pkts = vj->fills ? vj->w_max : 0;

	if (vj->state == VJ_SHARED)
		return false;
	vj_enter(vj, VJ_SHARED);
	vj->epoch = vj_stamp(tp);
	vj->w_max = max(given_up_pkts, vj_window_pkts(tp, vj));
	return true;
}

/* The same, and what seemed to be room has not shown that the path is full. */
static bool vj_share_blindly(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	bool begins = vj_share(vj, tp);

	if (vj->roomy)
		vj->shy = 0;
	vj->fooled |= vj->roomy;
	vj->roomy = 0;
	vj->forward.asked = 1;
	vj_forget_sample(vj);
	return begins;
}

/* The window of a trial that asks what is lost when less is sent (packets). */
static u32 vj_less_pkts(u32 pkts)
{
	return pkts - DIV_ROUND_UP(pkts, 1 << VJ_TRIAL_SHIFT);
}

/*
 * Send less than what was delivered until the share that is lost is known: that
 * much is noise. Startup goes on if there is some.
 */
static void vj_listen(struct sock *sk, u32 delivered_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	bool returns = vj->state == VJ_STARTUP;

	vj_sink(sk, vj_less_pkts(delivered_pkts));
	vj->returns = returns;
	vj->struck = 1;
	vj->listens = 1;
	vj->answered = 1;
}

/*
 * Has startup met a queue, or losses while an eighth more was not delivered, or
 * more of them than were heard? In this state w_max is the most that was
 * delivered in a round trip.
 */
static void vj_check_startup(struct sock *sk, u64 rate_bytes_per_s,
			     u32 sent_pkts, u32 lost_pkts, bool excess)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered_pkts = div64_u64(rate_bytes_per_s * vj->base_us,
				       (u64)tp->mss_cache * USEC_PER_SEC);
	bool gained = delivered_pkts > vj->w_max + vj->w_max / 8;
	u32 most;

	vj->w_max = max(vj->w_max, delivered_pkts);
	if (vj->slow && vj_is_queue(vj, vj->standing_us)) {
		vj_sink(sk, vj_drained_pkts(tp, vj));
		return;
	}
	if (vj->struck && excess) {
		vj_sink(sk, vj->w_max);
		vj->answered = 1;
		return;
	}
	/* the first round trip after a silence has no rate: it tells of losses only */
	if (!rate_bytes_per_s && !lost_pkts)
		return;
	if (gained || !tcp_is_cwnd_limited(sk)) {
		vj->vain = 0;
		return;
	}
	vj->vain++;
	if (!vj->struck && (lost_pkts > tcp_snd_cwnd(tp) / 4 ||
			    (lost_pkts > 1 && vj->vain > 1))) {
		most = vj->w_max;
		/* but one that mostly waited, for a probe or a timer, tells little */
		if (vj_is_outage(sent_pkts, lost_pkts))
			most = min(most, max(delivered_pkts,
					     2U * TCP_INIT_CWND));
		vj_listen(sk, 2 * most / 3);
	} else if (vj->vain == VJ_PATTERN) {
		vj_sink(sk, vj->w_max);
	}
}

/* Of this round trip, as far as it has come. */
static bool vj_has_outage(const struct veno_jitter *vj,
			  const struct tcp_sock *tp)
{
	u32 lost = vj_lost_pkts(vj, tp);

	return lost > VJ_FEW_PKTS &&
	       vj_is_outage(tp->delivered - vj->round_end + lost, lost);
}

/* From now on the window grows by a quarter a round trip, it does not double. */
static void vj_ease(struct tcp_sock *tp)
{
	tp->snd_ssthresh = min(tp->snd_ssthresh, tcp_snd_cwnd(tp));
}

/* Packets in a row that wait are a sign of a limit. */
static void vj_note_wait(struct veno_jitter *vj, struct tcp_sock *tp,
			 u32 queue_us)
{
	/* no sample is no end of them */
	if (!vj_is_queue(vj, queue_us)) {
		vj->queued = 0;
		return;
	}
	vj->queued = min(vj->queued + (queue_us != VJ_NO_SAMPLE_US),
			 VJ_FEW_PKTS);
	if (vj->queued == VJ_FEW_PKTS)
		vj_ease(tp);
}

/*
 * The first sign of a limit: more lost than twice the noise that was heard, or several
 * packets in a row that wait. While that much is lost no more is sent than arrives.
 */
static void vj_ease_startup(struct sock *sk, u32 queue_us, u32 acked_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 heard_pkts = 2 * (u64)tcp_snd_cwnd(tp) * vj->noise >> VJ_SHARE_SHIFT;
	u32 least_pkts = vj_has_outage(vj, tp) ? TCP_INIT_CWND :
			 max(vj->w_max, TCP_INIT_CWND + 0U);

	if (vj_lost_pkts(vj, tp) > heard_pkts + 2 * !!vj->noise) {
		if (tcp_snd_cwnd(tp) > least_pkts)
			tcp_snd_cwnd_set(tp, clamp(tcp_packets_in_flight(tp) +
						   acked_pkts, least_pkts,
						   tcp_snd_cwnd(tp)));
		vj_ease(tp);
	}
	vj_note_wait(vj, tp, queue_us);
}

/* Within a round trip of startup, which would double the queue by its end. */
static __always_inline bool vj_meets_queue(const struct veno_jitter *vj,
					   const struct tcp_sock *tp)
{
	return vj_is_much(vj, vj->round_queue_us) &&
	       vj->round_queue_us != VJ_NO_SAMPLE_US &&
	       vj->state == VJ_STARTUP && !vj_lost_pkts(vj, tp) &&
	       tp->delivered - vj->round_end > VJ_FEW_PKTS &&
	       veno_backlog_reaches(tcp_snd_cwnd(tp), vj->round_queue_us,
				    vj->round_rtt_us, VJ_FEW_PKTS);
}

/* What is too much is not sent at all: the queue has little room left. */
static void vj_end_startup(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	vj_note_standing(vj, tp, VJ_NO_SAMPLE_US);
	if (!vj->fooled)
		vj_see_room(vj, false);
	vj_sink(sk, vj_drained_pkts(tp, vj));
	tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
	vj_update_pacing(sk);
}

/*
 * Does a queue stand that we have a part in? One that came within a round trip
 * is a slower path or a path that jitters: it may go as it came. But not in slow
 * start, where it would be twice as long after the next one.
 */
static bool vj_stands(struct veno_jitter *vj, const struct tcp_sock *tp,
		      bool jumps)
{
	if (!vj->slow || !vj_is_part_of_base(vj, vj->standing_us,
					     tcp_param_get(&vj_drain_percent))) {
		vj->stood = 0;
		return false;
	}
	if (!vj->stood && (!jumps || tcp_in_slow_start(tp)))
		vj->stood = VJ_STOOD_ROUNDS;
	else
		vj->stood++;
	if (!vj->fills && vj->stood < VJ_STOOD_ROUNDS)
		return false;
	vj->stood = 0;
	return true;
}

/* More drains in vain than that, and others fill the queue. */
static u32 vj_patience(const struct veno_jitter *vj)
{
	return VJ_FILLS_MAX << (vj->roomy ? min(vj->shy + 0U, VJ_PATIENCE + 0U) : 0);
}

/*
 * What to do about the queue that stood during the last round trip. One that
 * stays deep, or of which we keep much, is not ours alone: then the window waits
 * for what a dip shows.
 */
static void vj_answer_queue(struct sock *sk, bool deep, bool empty, bool jumps)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (deep)
		vj->vain = min(vj->vain + 1, VJ_PATTERN);
	else if (empty)
		vj->vain = 0;
	if (empty || !vj->slow)
		vj->fills -= !!vj->fills;
	if (vj->state != VJ_ALONE)
		return;
	if (vj->calm > 2 * VJ_CALM_ROUNDS) {
		vj->w_max = 0;
		if (vj->roomy && vj_is_clear(vj))
			vj->struck = 0;
	}
	/* deep, and hardly any of it ours: too little to drain, or to dip */
	if (vj->vain == VJ_PATTERN && !vj->slow)
		vj->fills += 2;
	if (!vj_stands(vj, tp, jumps) && vj->fills <= vj_patience(vj))
		return;
	vj->w_max = max(vj->w_max, tcp_snd_cwnd(tp));
	vj->fills++;
	if (vj->vain == VJ_PATTERN ||
	    vj_backlog_reaches(tp, vj, 2 * vj_beta(tp)))
		vj->fills++;
	if (vj->fills > vj_patience(vj)) {
		vj_share(vj, tp);
	} else if (vj->vain == VJ_PATTERN || vj->fills > VJ_FILLS) {
		vj->hold = VJ_HOLD_ROUNDS;
		vj->answered = 0;
	} else {
		vj_sink(sk, vj_drained_pkts(tp, vj));
	}
}

/* What is delivered in a round trip with the queue, which may be others'. */
static u32 vj_delivered_pkts(const struct veno_jitter *vj,
			     const struct tcp_sock *tp)
{
	if (!vj->bandwidth.bw_bytes_per_s)
		return tcp_snd_cwnd(tp);
	return tabe_window_pkts(&vj->bandwidth, vj_standing_rtt_us(vj),
				tp->mss_cache);
}

/*
 * Without room: less than what was delivered, and no more than that is asked for
 * again soon: what is lost above is no noise. Windows of a few packets are measured
 * too coarsely for that. Return: where the window sinks to (packets).
 */
static u32 vj_reduce_blindly(struct veno_jitter *vj, const struct tcp_sock *tp,
			     bool begins)
{
	u32 delivered_pkts = vj_delivered_pkts(vj, tp);
	u32 keep_pkts = vj_cubic_reduce(vj, tp, begins);

	vj->w_max = min(vj->w_max, max(delivered_pkts, VJ_FEW_PKTS + 0U));
	return min(7 * delivered_pkts / 8, keep_pkts);
}

/*
 * More is lost than noise explains; or, without room and not yet SHARED, any loss
 * that is congestion. Less than what was delivered is sent for a
 * while, which shows what noise there is; if that was not it, the path has no
 * queue that would show when it is full. With room, an @outage (more than two fifths)
 * is what a handover has: what was known of the path holds.
 */
static void vj_answer_excess(struct sock *sk, bool outage)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	bool begins;

	if (vj->state == VJ_ALONE && (!vj->struck || (vj->roomy && outage))) {
		vj_listen(sk, vj_delivered_pkts(vj, tp));
		return;
	}
	begins = vj_share_blindly(vj, tp);
	vj_sink(sk, vj_reduce_blindly(vj, tp, begins));
	vj->answered = 1;
}

/*
 * CUBIC's window, or +1/2 a round trip where Reno is as fast and, with room, +1
 * from the last maximum (RFC 9438, section 4.3). Without room CUBIC's begins
 * past the last maximum: who comes back faster sees less of the path below its
 * top, and takes what is lost there for noise.
 */
static u32 vj_cubic_growth_pkts(const struct tcp_sock *tp,
				const struct veno_jitter *vj)
{
	u32 t_us = vj_age_us(tp, vj->epoch) + (tp->srtt_us >> 3);
	u32 target = cubic_window_pkts(vj->w_max,
				       tcp_param_get(&vj_keep_percent),
				       t_us / USEC_PER_MSEC);
	u32 w = tcp_snd_cwnd(tp);

	if (target <= (vj->roomy ? w : max(w, vj->w_max)))
		return vj->roomy && w >= vj->w_max ? w : 2 * w;
	return max(w / min(target - w, w / 16 + 1), 2U);
}

/* Packets that have to be acknowledged for the window to grow by one. */
static u32 vj_growth_pkts(const struct tcp_sock *tp,
			  const struct veno_jitter *vj)
{
	u32 w = tcp_snd_cwnd(tp);
	u32 calm = vj_swings(vj) ? VJ_SWING_ROUNDS : VJ_CALM_ROUNDS;
	u32 steps;

	if (vj->state == VJ_STARTUP)
		return VJ_EASED_PKTS;
	if (vj->state == VJ_SHARED)
		return vj_cubic_growth_pkts(tp, vj);
	if (vj->vain == VJ_PATTERN)
		return U16_MAX;
	if (vj->slow)
		return 2 * w;
	if (vj->calm <= calm)
		return w;
	steps = vj->calm - calm;
	return max(w >> min(steps, 16U), min(w, 1U << VJ_ROOM_SHIFT));
}

/*
 * A turn of the wall clock (us): 5 s, doubled until it is 2^@rounds_shift round trips.
 * It begins at the same instant for all flows of a host, and of hosts whose clocks
 * agree; a longer one begins with each second shorter one.
 */
static u32 vj_turn_us(const struct tcp_sock *tp, u32 rounds_shift)
{
	u32 shortest_us = VJ_BASE_S * USEC_PER_SEC;
	u32 rtt_us = tp->srtt_us >> 3;

	return shortest_us << min(fls(rtt_us / (shortest_us >> rounds_shift)),
				  VJ_TURN_MAX_SHIFT);
}

/* How long ago it began (us). */
static u32 vj_turned_us(const struct tcp_sock *tp, u32 rounds_shift)
{
	u64 now_us = ktime_to_us(ktime_get_real());

	return do_div(now_us, vj_turn_us(tp, rounds_shift));
}

/* Send @pkts until the trial shows; the threshold remembers what was sent. */
static void vj_begin_trial(struct sock *sk, enum vj_trial trial, u32 pkts,
			   u32 back_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	vj->trial = trial;
	/* an answer that a hold waits for is one to what is lost in a dip, too */
	vj->answered &= !!vj->hold;
	tp->snd_ssthresh = max(back_pkts, 2U);
	tcp_snd_cwnd_set(tp, pkts);
}

/*
 * A quarter more than @most; not by who does not use its window or is on the way back
 * to it, nor beyond its clamp.
 */
static bool vj_begin_probe(struct sock *sk, u32 most)
{
	u32 probe = most + DIV_ROUND_UP(most, 1 << VJ_TRIAL_SHIFT);

	if (!tcp_is_cwnd_limited(sk) || tcp_in_slow_start(tcp_sk(sk)) ||
	    probe > tcp_sk(sk)->snd_cwnd_clamp)
		return false;
	vj_begin_trial(sk, VJ_PROBE, probe, most);
	return true;
}

/* Base is @rtt_us from now on: what is known of the queue above it is of another one. */
static void vj_move_base(struct veno_jitter *vj, u32 rtt_us)
{
	vj->flat = 0;
	vj->base_us = rtt_us;
	vj->standing_max_us = 0;
	vj->clock.clear = 0;
	vj->resisted = 0;
	vj->tops = 0;
	vj->vain = 0;
	vj->fills = 0;
}

/*
 * In a dip a deep queue has become much shorter than it was, and half of our share of
 * the path is still ours: others dip as well, so they are of our kind, though all of us
 * together may be too many for the queue to get empty.
 */
static bool vj_dips_together(const struct veno_jitter *vj,
			     const struct tcp_sock *tp)
{
	u64 kept = (u64)tcp_snd_cwnd(tp) * tp->mss_cache * USEC_PER_SEC;

	return vj_is_deep(vj, vj->standing_max_us) &&
	       vj->standing_us <= vj->standing_max_us / 8 * 3 &&
	       2 * kept >= vj->bandwidth.bw_bytes_per_s *
			   vj_standing_rtt_us(vj);
}

/* No queue in a dip; ALONE a quarter of a deep one may be left, which was ours then. */
static bool vj_dip_clears(const struct veno_jitter *vj)
{
	return vj_is_clear(vj) ||
	       (vj->state == VJ_ALONE &&
		vj_is_deep(vj, vj->standing_max_us) &&
		!vj_is_deep(vj, vj->standing_us) &&
		vj->standing_us <= vj->standing_max_us / 4);
}

/*
 * Beside others a queue may be empty because they have just backed off: who has
 * lost packets to them looks twice. What the smallest windows of our kind leave of a
 * queue is base for all of them.
 */
static void vj_end_dip(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ocwnd = vj_ocwnd_pkts(tp, vj) + 1;
	u32 rtt_us = vj_standing_rtt_us(vj);
	bool together = vj_dips_together(vj, tp);

	vj->trial = VJ_NO_TRIAL;
	if (!vj_dip_clears(vj) && !together) {
		vj->doubted = vj->lossy;
	} else if (vj->doubted && !together) {
		vj->doubted = 0;
	} else {
		if (together && rtt_us > 2 * vj->base_us)
			vj_move_base(vj, rtt_us);
		vj->resisted = 0;
		vj->vain = 0;
		vj->fills = 0;
		tp->snd_ssthresh = clamp(ocwnd, 2U, tp->snd_ssthresh);
		if (vj->state == VJ_SHARED && vj->roomy) {
			vj_enter(vj, VJ_ALONE);
			vj->shy = min(vj->shy + 1, VJ_PATIENCE);
		}
	}
	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), tp->snd_ssthresh));
}

/*
 * Was an eighth more delivered than ever, and no more lost? Then a quarter more again,
 * rather than a startup, whose losses others would take for noise; where a queue had
 * misled, STARTUP.
 */
static void vj_end_probe(struct sock *sk, u64 rate_bytes_per_s, bool excess)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 most = (u64)tp->snd_ssthresh * tp->mss_cache * USEC_PER_SEC;
	u32 w = tcp_snd_cwnd(tp);

	vj->trial = VJ_NO_TRIAL;
	most -= (most >> VJ_SHARE_SHIFT) * vj->noise;
	/* a silence has no rate, and no verdict */
	if (!rate_bytes_per_s && !excess) {
		tcp_snd_cwnd_set(tp, min(w, tp->snd_ssthresh));
		return;
	}
	if (excess || rate_bytes_per_s * vj->base_us < most / 8 * 9) {
		vj_sink(sk, min(tp->snd_ssthresh, vj_ocwnd_pkts(tp, vj)));
		vj->answered = excess;
		return;
	}
	if (!vj->fooled) {
		vj->w_max = w;
		vj_begin_probe(sk, w);
		return;
	}
	vj_enter(vj, VJ_STARTUP);
	/* it misled, which is forgotten */
	vj->struck = 0;
	vj->fooled = 0;
	tp->snd_ssthresh = w;
}

/* The share that was lost, 1 / 2^VJ_SHARE_SHIFT. */
static u32 vj_lost_share(u32 sent_pkts, u32 lost_pkts)
{
	u64 lost = (u64)min(lost_pkts, sent_pkts) << VJ_SHARE_SHIFT;

	return min_t(u64, div_u64(lost, max(sent_pkts, 1U)), U16_MAX);
}

/* So much was lost of so much: that is noise, as sure as @weight of VJ_HEARD_PKTS. */
static void vj_hear(struct veno_jitter *vj, u32 sent_pkts, u32 lost_pkts,
		    s32 weight)
{
	s32 share = vj_lost_share(sent_pkts, lost_pkts);

	vj->noise += (share - vj->noise) * weight / VJ_HEARD_PKTS;
}

/*
 * What a hush has heard. What was known counts as so many packets as lose VJ_HEARD,
 * by the larger of both shares: some hundred of which none is lost are what a noise of
 * one in a hundred leaves now and then.
 */
static void vj_hear_hush(struct veno_jitter *vj)
{
	u32 share = max3(vj->noise + 0U,
			 vj_lost_share(vj->sent, vj->sent_lost), 1U);
	u32 known = clamp((VJ_HEARD << VJ_SHARE_SHIFT) / share,
			  2U * VJ_LOSS_PKTS, VJ_HEARD_PKTS + 0U);

	vj_hear(vj, vj->sent, vj->sent_lost,
		VJ_HEARD_PKTS * vj->sent / (vj->sent + known));
}

/*
 * What is left of the credit after so much was lost of so much; below zero more was
 * lost than noise explains. It is charged for each packet alike, so that large
 * windows answer to the losses beyond noise as small ones do. A quarter more than was
 * heard is allowed, and two fifths at most.
 */
static s32 vj_credit(const struct veno_jitter *vj, u32 sent_pkts, u32 lost_pkts)
{
	u32 share = min(vj->noise + (vj->noise >> VJ_EXCUSED_SHIFT),
			2 * (1 << VJ_SHARE_SHIFT) / 5);
	u64 heard = (u64)sent_pkts * share >> (VJ_SHARE_SHIFT - VJ_CREDIT_SHIFT);

	return vj->credit + (s32)min_t(u64, heard, S32_MAX / 2) -
	       (s32)(min(lost_pkts, U16_MAX + 0U) << VJ_CREDIT_SHIFT);
}

static void vj_save_credit(struct veno_jitter *vj, s32 credit)
{
	vj->credit = clamp(credit, 0, VJ_CREDIT_PKTS << VJ_CREDIT_SHIFT);
}

/* The credit after an answer, a hush or a pause: what noise takes of three windows of @pkts. */
static void vj_renew_credit(struct veno_jitter *vj, u32 pkts)
{
	vj_forget_sample(vj);
	vj_save_credit(vj, vj_credit(vj, VJ_HOLD_ROUNDS * min(pkts, U16_MAX + 0U),
				     0));
}

/*
 * Is it time for a hush? @round_us: how long this round trip was. A window that
 * sinks goes back to where it sinks to. One of two packets sends no less, but does
 * not grow.
 */
static bool vj_hushes(struct sock *sk, u32 round_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 w = vj->draining ? tp->snd_ssthresh : tcp_snd_cwnd(tp);

	if (!vj_is_blind(vj) || tcp_in_slow_start(tp) ||
	    vj_turned_us(tp, VJ_ROUNDS_SHIFT) >= round_us)
		return false;
	vj->draining = 0;
	vj_begin_trial(sk, VJ_HUSH, max(vj_less_pkts(w), 2U), w);
	return true;
}

/*
 * A round trip of a hush, which lasts for a sixteenth of a turn. What is lost then is
 * noise, if most packets meet no queue: all of our kind send less.
 */
static void vj_end_hush(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!vj->sent || vj_turned_us(tp, VJ_ROUNDS_SHIFT) <
			 vj_turn_us(tp, VJ_ROUNDS_SHIFT) >> VJ_HUSHED_SHIFT)
		return;
	vj->trial = VJ_NO_TRIAL;
	if (vj->quiet > 0 && vj_is_shown(vj) &&
	    !vj_is_outage(vj->sent, vj->sent_lost) &&
	    !vj_may_be_tails(tp, vj->sent, vj->sent_lost))
		vj_hear_hush(vj);
	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	vj->answered = 0;
	vj->quiet = 0;
	/* room may have been seen meanwhile: then there is a sample, and no account */
	if (vj_is_blind(vj))
		vj_renew_credit(vj, tcp_snd_cwnd(tp));
	else
		vj_forget_sample(vj);
}

/*
 * The queue of this round trip was none: the smallest RTT since the last look is base.
 * What was drained in vain comes back, but no more than twice doubled, as the path may
 * have become slower meanwhile.
 */
static void vj_take_as_base(struct veno_jitter *vj, struct tcp_sock *tp,
			    u32 rtt_us, u32 least_us)
{
	u32 most = 4 * tcp_snd_cwnd(tp);

	if (vj->state == VJ_ALONE)
		tp->snd_ssthresh = max(tp->snd_ssthresh,
				       min(vj->w_max, most));
	vj_move_base(vj, least_us);
	vj->recent_us = least_us;
	vj->standing_us = rtt_us - least_us;
	vj->standing_path_us = least_us;
	vj->slow = 0;
	vj->stood = 0;
}

/*
 * Base has not been seen for long. Was no RTT since the look before shorter than this one
 * by base/8, or by half of RTT - base if that is less, though the window has dipped and
 * some of the queue was ours? Then it is none: queues do not stand that evenly, and ours
 * would have gone. In SHARED, where others may keep it, by base/32, at three looks after
 * the first. Return: it is so, and the path has got longer.
 */
static bool vj_note_unseen(struct veno_jitter *vj, struct tcp_sock *tp)
{
	u32 little_us = vj->base_us >> VJ_LITTLE_SHIFT;
	u32 more_us = vj->base_us >> (VJ_ROOM_SHIFT + 1);
	u32 rtt_us = vj_standing_rtt_us(vj);
	u32 least_us = min(rtt_us, vj->recent_us + little_us);
	u32 falls_us = 2 * little_us;

	vj->base_stamp = vj_stamp(tp);
	if (vj->state == VJ_ALONE)
		falls_us = min(2 * more_us, (rtt_us - vj->base_us) / 2);
	if (!vj->flat || !vj_exceeds_base(vj, vj->recent_us) ||
	    rtt_us > least_us + falls_us || !vj_backlog_reaches(tp, vj, 1) ||
	    tcp_snd_cwnd(tp) <= VJ_DELACK_PKTS) {
		vj->flat = 0;
	} else if (vj->state != VJ_ALONE && vj->flat < VJ_PATTERN) {
		vj->flat++;
	} else {
		vj_take_as_base(vj, tp, rtt_us, least_us);
		return true;
	}
	vj->recent_us = rtt_us - little_us;
	return false;
}

/* Is it time for a trial? */
static bool vj_needs_trial(struct sock *sk, u32 round_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 w = tcp_snd_cwnd(tp);
	u32 most = max(w, vj->w_max);
	u32 half, wait, look_us;
	bool unseen;

	if (vj->state == VJ_STARTUP || vj->draining || vj->listens)
		return false;
	look_us = vj_turn_us(tp, VJ_CALM_SHIFT);
	if (vj->flat && vj_exceeds_base(vj, vj->recent_us) &&
	    vj->state == VJ_ALONE && !vj_swings(vj) &&
	    look_us >> VJ_TRIAL_SHIFT >= tp->srtt_us >> 3 << VJ_CALM_SHIFT)
		look_us >>= VJ_TRIAL_SHIFT;
	/* who comes back from a timeout knows too little of its share */
	unseen = vj_turned_us(tp, VJ_CALM_SHIFT) % look_us < round_us &&
		 !tcp_in_slow_start(tp) &&
		 vj_age_us(tp, vj->base_stamp) > look_us / 4;
	if (unseen || (vj->fills > VJ_FILLS && vj->hold == 1)) {
		if (unseen && vj_note_unseen(vj, tp))
			return true;
		half = tabe_window_pkts(&vj->bandwidth, vj->base_us / 2,
					tp->mss_cache);
		half = max(half, VJ_DELACK_PKTS + 0U);
		if (!vj->vain)
			half = max(half, w - min(w, 2 * (vj_backlog(tp, vj) >>
					 VENO_BACKLOG_SHIFT) + 1));
		/* the smallest windows look as well, when all others do */
		if (w <= half && !(unseen && w <= VJ_DELACK_PKTS))
			return false;
		vj->flat += unseen && !vj->flat;
		vj_begin_trial(sk, VJ_DIP, min(half, w), w);
		return true;
	}
	wait = most < VJ_FEW_PKTS ? 2 * VJ_CALM_ROUNDS :
	       min(2 * VJ_CALM_ROUNDS << vj->shy, VJ_CALM_MAX);
	if (vj->state == VJ_SHARED && !vj->roomy && !vj->hold &&
	    vj->calm >= wait) {
		/* the next queue ends the wait of who does not use its window */
		vj->calm = wait;
		if (!vj_begin_probe(sk, most))
			return false;
		vj->calm = VJ_CALM_ROUNDS;
		vj->shy = min(vj->shy + 1, 4);
		return true;
	}
	return false;
}

/*
 * A round trip of a trial, or the first: true. It was @round_us long, and more was
 * lost in it than noise explains if @excess; it @falls by a sixteenth.
 */
static bool vj_try(struct sock *sk, u32 round_us, u64 rate_bytes_per_s,
		   bool excess, bool falls)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	switch (vj->trial) {
	case VJ_DIP:
		if (tcp_packets_in_flight(tp) <= tcp_snd_cwnd(tp)) {
			vj->trial = VJ_DIPPED;
			vj->answered = 0;
		}
		return true;
	case VJ_DIPPED:
		/* others dip as well: it may yet be empty */
		if (!falls || vj_is_clear(vj))
			vj_end_dip(sk);
		return true;
	case VJ_HUSH:
		if (tcp_packets_in_flight(tp) <= tcp_snd_cwnd(tp)) {
			vj->trial = VJ_HUSHED;
			vj->answered = 1;
			vj->quiet = 0;
			vj_forget_sample(vj);
		}
		return true;
	case VJ_HUSHED:
		vj_end_hush(sk);
		return true;
	case VJ_PROBE:
		vj->trial = VJ_PROBED;
		return true;
	case VJ_PROBED:
		vj_end_probe(sk, rate_bytes_per_s, excess);
		return true;
	}
	return vj_hushes(sk, round_us) || vj_needs_trial(sk, round_us);
}

/*
 * Is less sent than when it was too much, and no queue? Then losses are noise.
 * SHARED: asked before the round trip, as its losses are answered.
 */
static bool vj_is_settled(const struct veno_jitter *vj,
			  const struct tcp_sock *tp)
{
	if (vj->draining || vj->trial)
		return false;
	if (vj->state == VJ_SHARED)
		return !vj->hold && 8 * (u64)tcp_snd_cwnd(tp) < 7 * (u64)vj->w_max &&
		       vj_is_clear(vj);
	return vj->hold == 1 && vj->quiet > 0 && vj_is_shown(vj);
}

/*
 * What a round trip lost without a trial, little by little: beside others it may
 * be theirs.
 */
static void vj_hear_round(struct veno_jitter *vj, const struct tcp_sock *tp,
			  u32 sent_pkts, u32 lost_pkts)
{
	bool heard = vj->state == VJ_SHARED ?
		     vj->settled && vj->quiet > 0 &&
		     !vj_may_be_tails(tp, sent_pkts, lost_pkts) :
		     vj_is_settled(vj, tp);

	if (heard)
		vj_hear(vj, sent_pkts, lost_pkts,
			min(sent_pkts, 2 * VJ_LOSS_PKTS + 0U));
}

/* What was sent and lost in a hush, which may be more than fits: then its half. */
static void vj_note_hushed(struct veno_jitter *vj, u32 sent_pkts, u32 lost_pkts)
{
	u32 sent = vj->sent + sent_pkts;
	u32 lost = vj->sent_lost + min(lost_pkts, sent_pkts);

	while (sent > U16_MAX) {
		sent /= 2;
		lost /= 2;
		vj->quiet /= 2;
	}
	vj->sent = sent;
	vj->sent_lost = lost;
}

/*
 * The share that was lost, of so many packets as it takes to tell: what shows in
 * VJ_LOSS_PKTS is answered at once, what is less after VJ_HEARD_PKTS at most.
 *
 * Return: more is lost than the noise that has been heard explains, with three
 * times the scatter of both, two packets and, where a queue tells, 1/64; or two
 * fifths, which no noise does for long. @goes_on: it was listening, and more than an
 * eighth was lost.
 */
static bool vj_note_loss(struct veno_jitter *vj, const struct tcp_sock *tp,
			 u32 sent_pkts, u32 lost_pkts, bool *goes_on)
{
	u32 least_pkts = VJ_LOSS_PKTS, most_pkts = VJ_HEARD_PKTS;
	bool too_much = false;
	u64 expected;
	s64 excess;

	if (vj->trial == VJ_HUSHED) {
		vj_note_hushed(vj, sent_pkts, lost_pkts);
		return false;
	}
	if (!vj->listens) {
		vj_hear_round(vj, tp, sent_pkts, lost_pkts);
		/* packets that repair a loss come in bursts: a longer look */
		vj->quiet = vj_is_blind(vj) ?
			    clamp_t(s32, vj->quiet, -VJ_QUIET_MAX,
				    VJ_QUIET_MAX) : 0;
	}
	if (vj_is_blind(vj)) {
		s32 credit = vj_credit(vj, sent_pkts, lost_pkts);

		vj_save_credit(vj, credit);
		return credit < 0;
	}
	sent_pkts += vj->sent;
	lost_pkts = min(lost_pkts + vj->sent_lost, sent_pkts);
	if (vj->listens) {
		least_pkts *= lost_pkts && lost_pkts < VJ_HEARD ? 6 : 2;
		if (lost_pkts < VJ_HEARD &&
		    VJ_CALM_ROUNDS * tcp_snd_cwnd(tp) >= most_pkts)
			least_pkts = most_pkts;
		most_pkts = least_pkts;
	}
	if (sent_pkts >= least_pkts) {
		expected = (u64)sent_pkts * vj->noise;
		excess = ((s64)lost_pkts - 2) * (1 << VJ_SHARE_SHIFT) -
			 (s64)expected;
		if (vj->roomy && vj_is_shown(vj))
			excess -= (u64)sent_pkts <<
				  (VJ_SHARE_SHIFT - VJ_LITTLE_SHIFT);
		excess >>= VJ_SHARE_SHIFT;
		expected = expected * VJ_SCATTER >> VJ_SHARE_SHIFT;
		too_much = vj_is_outage(sent_pkts, lost_pkts) ||
			   (excess > 0 && excess * excess > (s64)expected);
	}
	/* nobody acts on an excess during a hold or a dip: the sample is kept for later */
	if (sent_pkts < most_pkts &&
	    (!too_much || (!vj->listens && !vj->answered &&
			   (vj->hold || vj_is_lowered(vj))))) {
		vj->sent = sent_pkts;
		vj->sent_lost = lost_pkts;
		return too_much;
	}
	/* what is heard takes the place of the noise; of one that counts, of half */
	if (vj->listens && vj_is_settled(vj, tp) &&
	    !vj_is_outage(sent_pkts, lost_pkts))
		vj_hear(vj, sent_pkts, lost_pkts,
			vj->noise >> (VJ_SHARE_SHIFT - VJ_LITTLE_SHIFT) ?
			VJ_HEARD_PKTS / 2 : VJ_HEARD_PKTS);
	*goes_on = too_much && vj->listens && vj->hold == 1 &&
		   !vj_is_outage(sent_pkts, lost_pkts) &&
		   lost_pkts > sent_pkts >> VJ_ROOM_SHIFT;
	vj_forget_sample(vj);
	vj->quiet = 0;
	return too_much;
}

/*
 * RFC 5681, section 4.1, and RFC 7661: the core leaves a window that the
 * application does not use to a cong_control hook.
 */
static void vj_validate_window(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 used = max(tp->snd_cwnd_used, TCP_INIT_CWND + 0U);

	if (tcp_is_cwnd_limited(sk) ||
	    !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle) ||
	    (s32)(tcp_jiffies32 - tp->snd_cwnd_stamp) < inet_csk(sk)->icsk_rto)
		return;
	if (used < tcp_snd_cwnd(tp)) {
		tp->snd_ssthresh = tcp_current_ssthresh(sk);
		tcp_snd_cwnd_set(tp, (tcp_snd_cwnd(tp) + used) / 2);
	}
	tp->snd_cwnd_used = 0;
	tp->snd_cwnd_stamp = tcp_jiffies32;
}

/* A round trip of a hold is over; one that listens lasts until it has heard. */
static void vj_hold(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (vj->hold > 2 || !vj->listens) {
		/* what is answered is no part of what is too much */
		if (vj->hold && vj->answered && vj->trial != VJ_HUSHED) {
			if (vj_is_blind(vj))
				vj_renew_credit(vj, tcp_snd_cwnd(tp));
			else
				vj_forget_sample(vj);
		}
		vj->hold -= !!vj->hold;
	} else if (vj->hold == 2) {
		if (vj->draining)
			return;
		vj->hold = 1;
		vj_forget_sample(vj);
		vj->quiet = 0;
	} else if (!vj->sent) {
		vj->hold = 0;
		vj->listens = 0;
		if (vj->returns && vj->noise && !vj->roomy &&
		    vj->state == VJ_ALONE) {
			vj_enter(vj, VJ_STARTUP);
			tp->snd_ssthresh = tcp_snd_cwnd(tp);
		}
	}
}

/*
 * A queue of 3/32 of base that stands in eight more round trips than it does not cannot
 * fluctuate faster than our packets come by: it tells, though a shorter one did not.
 */
static void vj_note_steady(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	if (tcp_snd_cwnd(tp) < VJ_DELACK_PKTS)
		return;
	if (!vj_is_queue(vj, 4 * vj->standing_us / 3)) {
		vj->queued -= !!vj->queued;
	} else if (++vj->queued == VJ_CALM_ROUNDS) {
		vj->queued = 0;
		vj_see_room(vj, true);
	}
}

/*
 * A round trip is over; @last_us: q of its last packet. The order matters: vj_note_loss()
 * asks for the hold of that round trip, @held keeps it, and vj_hold() ends it; no sample
 * left tells vj_hold() that what it listens to is complete.
 */
static void vj_end_round(struct sock *sk, bool limited, u32 last_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool measured = vj->round_queue_us != VJ_NO_SAMPLE_US;
	bool dips = vj_is_lowered(vj);
	u32 lost = vj_lost_pkts(vj, tp);
	u32 sent = tp->delivered - vj->round_end + lost;
	bool goes_on = false;
	bool excess = vj_note_loss(vj, tp, sent, lost, &goes_on);
	bool held = vj->hold;
	/* the first one after a silence has no beginning */
	u32 round_us = vj->bandwidth.started ?
		       (u32)tp->tcp_mstamp - vj->bandwidth.t_us :
		       tp->srtt_us >> 3;
	u32 queue_us = vj->standing_us;
	u32 rtt_us = vj_standing_rtt_us(vj);
	bool jumps = false, falls = false;
	bool deep, empty, calm;
	u64 rate;

	vj->judged = 0;
	vj->settled = 0;
	vj_hold(sk);
	vj_check_clock(vj, tp);
	if (measured) {
		vj_note_standing(vj, tp, last_us);
		jumps = vj_jumps(vj, tp, queue_us);
		falls = vj_standing_rtt_us(vj) < rtt_us / 16 * 15;
	}
	/* the core forgets after sysctl_tcp_min_rtt_wlen */
	vj->base_us = max(vj->base_us, tcp_min_rtt(tp));
	if (measured && !vj->bandwidth.started)
		vj_note_full_packets(vj, tp);
	deep = vj_is_deep(vj, vj->standing_us);
	empty = measured && vj_is_empty(vj, deep);
	rate = vj_update_bandwidth(vj, tp, limited || dips, empty);
	vj->round_end = tp->delivered;
	vj->lost = tp->lost;
	if (!measured) {
		/* as without SACK while a loss is repaired: nothing grows unseen */
		vj->growth_pkts = U16_MAX;
		if (excess && !held && !vj->draining && !vj->trial &&
		    vj->state != VJ_STARTUP)
			vj_answer_excess(sk, vj_is_outage(sent, lost));
		return;
	}
	if (rate)
		rate = max(rate, vj_rate_without_waits(vj, tp, sent - lost,
						       last_us));

	if (vj->slow && (deep || (!vj->fooled && vj_is_queue(vj, vj->standing_us))))
		vj_see_room(vj, deep);
	if (vj->state == VJ_SHARED && vj->fooled)
		vj_note_steady(vj, tp);
	calm = vj->struck || (vj->state == VJ_SHARED && !vj->roomy) ?
	       vj->standing_us <= vj_quiet_us(vj) : empty;
	if (calm && vj_is_shown(vj))
		vj->calm = min(vj->calm + 1, VJ_CALM_MAX);
	else if (vj->state != VJ_SHARED || vj->roomy)
		vj->calm = 0;
	else if (!calm)
		/* one packet of our own is a queue where base is short */
		vj->calm = vj_less(vj->calm);
	if (goes_on && vj->roomy && vj->state == VJ_ALONE &&
	    vj_delivered_pkts(vj, tp) >= VJ_FEW_PKTS) {
		/* though less is sent: no answer to our load */
		vj_listen(sk, vj_delivered_pkts(vj, tp));
		vj->struck = 0;
	} else if (vj_try(sk, round_us, rate, excess, falls)) {
		/* the window is the trial's */
	} else if (vj->state == VJ_STARTUP) {
		vj_check_startup(sk, rate, sent, lost, excess && !held);
	} else if (!held) {
		if (excess && !vj->draining)
			vj_answer_excess(sk, vj_is_outage(sent, lost));
		else
			vj_answer_queue(sk, deep, empty, jumps);
		if (vj->state == VJ_SHARED && vj->roomy &&
		    vj->calm > 2 * VJ_CALM_ROUNDS && vj_is_clear(vj))
			vj_enter(vj, VJ_ALONE);
	}
	if (!vj->trial && !vj->draining)
		vj_validate_window(sk);
	vj->growth_pkts = min_t(u32, vj_growth_pkts(tp, vj), U16_MAX);
	vj->settled = vj->state == VJ_SHARED && vj_is_settled(vj, tp);
}

/* May the window grow? Not while it sinks, nor while congestion is being repaired. */
static __always_inline bool vj_may_grow(const struct sock *sk,
					const struct veno_jitter *vj)
{
	return !vj->hold && !vj->trial && !vj->draining &&
	       tcp_is_cwnd_limited(sk) &&
	       (vj->random || inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery ||
		(inet_csk(sk)->icsk_ca_state == TCP_CA_Loss &&
		 tcp_in_slow_start(tcp_sk(sk))));
}

/* Noise of 1/128 and more: nearly each round trip has a recovery. */
static bool vj_is_noisy(const struct veno_jitter *vj)
{
	return vj->noise >= 1 << (VJ_SHARE_SHIFT - VJ_LITTLE_SHIFT - 1);
}

/*
 * In slow start, or in spite of noise: tcp_cong_avoid_ai() counts from zero after each
 * recovery, and the window would not grow. So there it grows at each @growth_pkts-th
 * packet of all that are delivered.
 */
static noinline void vj_grow_seldom(struct sock *sk, u32 acked_pkts)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 since_pkts;

	if (tcp_in_slow_start(tp)) {
		acked_pkts = tcp_slow_start(tp, acked_pkts);
		/* a timeout, or a window that is not used, allows no more than that */
		if (!acked_pkts || !vj_may_grow(sk, vj))
			return;
	}
	if (!vj_is_noisy(vj) || tcp_snd_cwnd(tp) < VJ_FEW_PKTS) {
		tcp_cong_avoid_ai(tp, vj->growth_pkts, acked_pkts);
		return;
	}
	since_pkts = tp->delivered % vj->growth_pkts;
	if (since_pkts < acked_pkts)
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp) + 1 +
					 (acked_pkts - since_pkts - 1) /
					 vj->growth_pkts, tp->snd_cwnd_clamp));
}

static __always_inline void vj_grow(struct sock *sk, u32 acked_pkts)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (unlikely(tcp_in_slow_start(tp) || vj_is_noisy(vj)))
		vj_grow_seldom(sk, acked_pkts);
	else
		tcp_cong_avoid_ai(tp, vj->growth_pkts, acked_pkts);
}

/*
 * One packet less for two that arrive, down to the threshold. While more than two fifths
 * of this round trip are lost no more is sent than arrives (RFC 6937), and no more is
 * asked for afterwards.
 */
static noinline void vj_drain(struct sock *sk, u32 acked_pkts)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 w = tcp_snd_cwnd(tp);
	u32 step_pkts = (acked_pkts + !(tp->delivered & 1)) / 2;

	if (vj_has_outage(vj, tp)) {
		/* ACKs that come in a burst are ahead of the pacing */
		w = min(w, max3(tcp_packets_in_flight(tp) + acked_pkts,
				tp->delivered - vj->round_end, 2U));
		tp->snd_ssthresh = min(tp->snd_ssthresh, w);
	}
	if (w > tp->snd_ssthresh + step_pkts) {
		tcp_snd_cwnd_set(tp, w - step_pkts);
		return;
	}
	tcp_snd_cwnd_set(tp, min(w, tp->snd_ssthresh));
	vj->draining = 0;
}

/*
 * Q with V put back, but no more than RTT - base (us): what varies by itself excuses
 * no loss.
 */
static u32 vj_whole_queue_us(const struct veno_jitter *vj)
{
	u32 rtt_us = vj_standing_rtt_us(vj);

	return max(vj->standing_us,
		   min(vj->standing_us + forward_queue_varies_us(&vj->forward),
		       rtt_us - min(rtt_us, vj->base_us)));
}

/* Too little of ours waits: a packet, or half of one where queues are known. */
static bool vj_is_queueless(const struct tcp_sock *tp,
			    const struct veno_jitter *vj)
{
	u32 w = tcp_snd_cwnd(tp);

	if (vj_is_queue(vj, vj->standing_max_us))
		w *= 2;
	return !veno_backlog_reaches(w, vj_whole_queue_us(vj),
				     vj_standing_rtt_us(vj), 1);
}

/*
 * Only a full queue drops, and it is as full as it has ever been. A queue that is
 * kept short has its own top, where random losses happen as well: there it takes
 * several: @tops is one more for each loss up there, two less for another. Without
 * room a loss is congestion, unless the noise alone takes a packet of every second
 * window.
 */
static bool vj_is_congestion(const struct tcp_sock *tp, struct veno_jitter *vj)
{
	u32 queue_us = min(vj->round_queue_us, vj_whole_queue_us(vj));

	if (vj->state == VJ_STARTUP || vj->trial == VJ_HUSHED)
		return false;
	if (vj_is_hidden(vj))
		return true;
	if (vj_is_blind(vj))
		return vj_credit(vj, tp->delivered - vj->round_end,
				 vj_lost_pkts(vj, tp)) < 0;
	if (!vj->roomy)
		return 2 * (u64)vj_window_pkts(tp, vj) * vj->noise <
		       1 << VJ_SHARE_SHIFT;
	if (vj_is_queueless(tp, vj) ||
	    (u64)queue_us * 100 < (u64)vj->standing_max_us * VJ_TOP_PERCENT) {
		vj->tops -= min_t(u32, vj->tops, VJ_TOPS_STEP);
		return false;
	}
	vj->tops = min(vj->tops + 1, VJ_TOPS_MAX);
	return vj->tops > VJ_PATTERN || vj_is_deep(vj, queue_us);
}

/*
 * A loss that is congestion tells of a full queue. Where the receiver's clock denies the
 * most of it, and that again and again, the clock is not used any more: from then on the
 * round trip tells how long packets wait. Each other loss takes one such back.
 */
static void vj_note_denied(struct veno_jitter *vj)
{
	u32 rtt_us = vj_standing_rtt_us(vj);

	if (vj->random || !vj_is_hidden(vj) ||
	    2 * (u64)vj->standing_us + vj->base_us >= rtt_us) {
		vj->forward.denied -= !!vj->forward.denied;
		return;
	}
	if (++vj->forward.denied < VJ_PATTERN)
		return;
	vj->trusts = 0;
	vj->forward.denied = 0;
	vj->forward.known = 0;
	memset(&vj->clock, 0, sizeof(vj->clock));
	forward_queue_restart(&vj->forward);
}

static void vj_tell_verdict(const struct sock *sk, bool tlp)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_verdict_features features = {
		.backlog = vj_backlog(tcp_sk(sk), vj),
		.queue_us = vj_whole_queue_us(vj),
		.queue_max_us = vj->standing_max_us,
	};

	tcp_verdict(sk, !vj->random, tlp, &features);
}

/*
 * The queue overflows in this round trip: if it was deep although we drained it, it
 * is others'. Return: SHARED begins.
 */
static bool vj_note_overflow(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	if (vj->state != VJ_ALONE)
		return false;
	if (vj->vain == VJ_PATTERN ||
	    (vj_is_deep(vj, vj->standing_us) && ++vj->resisted == VJ_PATTERN))
		return vj_share(vj, tp);
	return false;
}

/* Answer a loss or, if @signalled, a CE mark or a full queue of this host. */
static void vj_judge(struct sock *sk, bool signalled, bool tlp)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool begins = false, answered;
	u32 keep_pkts = 0;

	vj->judged = 1;
	vj->random = !signalled && !vj_is_congestion(tp, vj);
	if (!signalled) {
		if (tcp_verdict_is_watched())
			vj_tell_verdict(sk, tlp);
		/* one answer is enough until it shows */
		answered = (vj->hold || vj_is_lowered(vj)) && vj->answered;
		if (vj->random || !answered)
			vj_note_denied(vj);
		if (vj->random)
			return;
		begins = vj_note_overflow(vj, tp);
		if (answered)
			return;
		if (vj->state == VJ_ALONE && !vj->roomy && !vj_is_lowered(vj)) {
			vj_answer_excess(sk, false);
			return;
		}
	}
	if (signalled) {
		vj->calm = 0;
		/* an AQM keeps its queue too short to show: only its marks tell */
		if (!vj_is_blind(vj) && !vj_is_queue(vj, vj->standing_us))
			begins = vj_share_blindly(vj, tp);
	}
	if (vj_is_blind(vj)) {
		keep_pkts = vj_reduce_blindly(vj, tp, begins);
	} else if (vj->state == VJ_SHARED) {
		keep_pkts = vj_cubic_reduce(vj, tp, begins);
		vj->doubted |= !vj->lossy;
		vj->lossy = 1;
		vj->shy = 0;
	}
	if (signalled || vj->state == VJ_ALONE)
		keep_pkts = div_u64((u64)vj_window_pkts(tp, vj) *
				    VJ_CE_KEEP_PERCENT, 100);
	if (vj_is_lowered(vj)) {
		/* that is where the dip goes back to */
		tp->snd_ssthresh = max(keep_pkts, 2U);
		vj->answered = 1;
		return;
	}
	if (vj->state == VJ_ALONE)
		keep_pkts = min(keep_pkts, vj_drained_pkts(tp, vj));
	if (vj->draining)
		keep_pkts = min(keep_pkts, tp->snd_ssthresh);
	vj_sink(sk, keep_pkts);
	vj->answered = 1;
}

static __always_inline void vj_move_window(struct sock *sk,
					   struct veno_jitter *vj,
					   u32 acked_pkts)
{
	if (vj_may_grow(sk, vj))
		vj_grow(sk, acked_pkts);
	else if (vj->draining && acked_pkts)
		vj_drain(sk, acked_pkts);
}

static bool vj_round_ends(const struct veno_jitter *vj,
			  const struct rate_sample *rs)
{
	return !before(rs->prior_delivered, vj->round_end) && rs->delivered > 0;
}

/* Each round trip of a long recovery is judged, not only its beginning. */
static bool vj_is_unjudged(const struct sock *sk, const struct veno_jitter *vj)
{
	return !vj->judged && vj_lost_pkts(vj, tcp_sk(sk)) &&
	       inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;
}

/* Are there losses that ask for an answer? */
static bool vj_has_losses(const struct sock *sk, const struct veno_jitter *vj,
			  const struct rate_sample *rs)
{
	return unlikely(vj_lost_pkts(vj, tcp_sk(sk))) &&
	       (rs->losses > 0 || vj_is_unjudged(sk, vj));
}

/* What is not done for each ACK: losses, the end of a round trip or of startup. */
static noinline void vj_main_seldom(struct sock *sk,
				    const struct rate_sample *rs, u32 queue_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 acked_pkts = rs->acked_sacked;

	if (rs->losses > 0 && !vj->counted)
		vj_note_run(vj, min_t(u32, rs->losses, vj_lost_pkts(vj, tp)));
	if (vj->state == VJ_STARTUP)
		vj_ease_startup(sk, queue_us, acked_pkts);
	if (vj_is_unjudged(sk, vj))
		vj_judge(sk, false, false);
	if (vj_round_ends(vj, rs)) {
		vj_end_round(sk, rs->is_app_limited, queue_us);
		vj->forward.asked = vj_asks_quiet(vj);
		vj->forward.sent_us = tp->tcp_mstamp - rs->rtt_us;
		vj_update_pacing(sk);
	} else if (vj_meets_queue(vj, tp)) {
		vj_end_startup(sk);
	}
	vj_move_window(sk, vj, acked_pkts);
}

/* An ACK of startup that ends no round trip, and mostly of one that has lost nothing. */
static noinline void vj_main_startup(struct sock *sk,
				     const struct rate_sample *rs, u32 queue_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (vj_lost_pkts(vj, tp) || vj_meets_queue(vj, tp)) {
		vj_main_seldom(sk, rs, queue_us);
		return;
	}
	vj_note_wait(vj, tp, queue_us);
	vj_move_window(sk, vj, rs->acked_sacked);
}

/* What is left to do once @queue_us, q of this ACK, is known. */
static __always_inline void vj_main_last(struct sock *sk,
					 const struct rate_sample *rs,
					 u32 queue_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);

	if (unlikely(vj_has_losses(sk, vj, rs) || vj_round_ends(vj, rs)))
		vj_main_seldom(sk, rs, queue_us);
	else if (unlikely(vj->state == VJ_STARTUP))
		vj_main_startup(sk, rs, queue_us);
	else
		vj_move_window(sk, vj, rs->acked_sacked);
}

/* It is asked whether this packet met a queue, too. */
static noinline void vj_main_asking(struct sock *sk,
				    const struct rate_sample *rs, u32 queue_us,
				    u32 above_us)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	vj_note_quiet(vj, tp, tp->tcp_mstamp - rs->rtt_us, queue_us, above_us);
	vj_main_last(sk, rs, queue_us);
}

/* The RTT tells how long the newest packet has waited. @known: vj_forward_queue_us()'s. */
static __always_inline void vj_main_sampled(struct sock *sk,
					    const struct rate_sample *rs,
					    bool known)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = rs->rtt_us;
	u32 above_us = vj_note_base(vj, tp, rtt_us);
	u32 queue_us = vj_forward_queue_us(vj, tp, rtt_us, above_us, known);

	if (rtt_us < vj->round_rtt_us)
		vj->round_rtt_us = rtt_us;
	if (queue_us < vj->round_queue_us)
		vj->round_queue_us = queue_us;
	if (unlikely(vj->forward.asked))
		vj_main_asking(sk, rs, queue_us, above_us);
	else
		vj_main_last(sk, rs, queue_us);
}

/*
 * Where packets have overtaken others, the first few behind a gap may have, and taken less
 * time than there is a queue. The newest one is RACK's: what it overtook is older.
 */
static bool vj_is_behind_gap(const struct tcp_sock *tp, u32 rtt_us)
{
	u32 i;

	if (!tp->sacked_out || !tp->reord_seen ||
	    !after(tp->rack.end_seq, tp->snd_una) ||
	    (u32)tp->tcp_mstamp - rtt_us != (u32)tp->rack.mstamp)
		return false;
	for (i = 0; i < ARRAY_SIZE(tp->recv_sack_cache); i++) {
		const struct tcp_sack_block *block = &tp->recv_sack_cache[i];

		if (block->end_seq == tp->rack.end_seq)
			return block->end_seq - block->start_seq <=
			       VJ_OVERTAKEN_PKTS * tp->mss_cache;
	}
	return true;
}

/*
 * Each ACK until the receiver's tick is known, or without time stamps; and those that
 * may be no sample: behind a gap, or of a time stamp.
 */
static noinline void vj_main_rarely(struct sock *sk,
				    const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_rtt_is_measured(tp, rs->rtt_us) &&
	    !vj_is_behind_gap(tp, rs->rtt_us)) {
		vj_main_sampled(sk, rs, false);
		return;
	}
	vj_note_time(inet_csk_ca(sk), tp, false);
	vj_main_last(sk, rs, VJ_NO_SAMPLE_US);
}

/*
 * Each ACK. What most of them need not is done by functions of their own, which are called
 * last: so the compiler saves no registers for them, a tenth of what most ACKs cost.
 */
static void vj_main(struct sock *sk, const struct rate_sample *rs)
{
	const struct veno_jitter *vj = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (unlikely(!vj->forward.known ||
		     !tcp_rtt_is_measured(tp, rs->rtt_us) ||
		     (tp->sacked_out && tp->reord_seen)))
		vj_main_rarely(sk, rs);
	else
		vj_main_sampled(sk, rs, true);
}

TCP_CONG_CONTROL(vj_cong_control, vj_main);

/* cong_control runs too late to see a tail loss probe. */
static void vj_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct veno_jitter *vj = inet_csk_ca(sk);

	if (unlikely(tp->tlp_high_seq || vj->tlp || vj->counted)) {
		vj->tlp = tcp_loss_is_probed(tp);
		vj->counted = 0;
	}
}

/* What the losses to come may change, and undo gives back. */
static void vj_note_undo(struct veno_jitter *vj)
{
	vj->undo_state = vj->state;
	vj->undo_roomy = vj->roomy;
	vj->undo_struck = vj->struck;
	vj->undo_fooled = vj->fooled;
}

/*
 * Fast retransmit, ECN, probes and timeouts come through here. The threshold is
 * where the window sinks to, or the window itself.
 */
static u32 vj_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct veno_jitter *vj = inet_csk_ca(sk);
	bool tlp = vj->tlp;
	bool signalled = tcp_loss_is_signalled(tp, tlp);

	vj->tlp = 0;
	/* the core counts no loss that a probe has repaired */
	vj->lost -= tlp;
	vj_note_undo(vj);
	if (!signalled && !tlp) {
		/* nothing else waits for its repair where one begins */
		vj_note_run(vj, min(tp->lost_out, vj_lost_pkts(vj, tp)));
		vj->counted = 1;
	}
	/* undo gives back the window, not what a trial has made of it */
	if (vj->trial)
		tp->prior_cwnd = tp->snd_ssthresh;
	if (signalled || !vj->judged)
		vj_judge(sk, signalled, tlp);
	if (vj->state == VJ_STARTUP || vj->draining || vj->trial ||
	    (vj->random && tcp_in_slow_start(tp)))
		return tp->snd_ssthresh;
	return max(tcp_snd_cwnd(tp), 2U);
}

/* What is lost so far is answered, or was not lost. */
static void vj_forget_losses(struct veno_jitter *vj, const struct tcp_sock *tp)
{
	vj->lost = tp->lost;
	vj_forget_sample(vj);
	vj->counted = 0;
	vj->draining = 0;
	vj->hold = 0;
	/* it has not listened to its end */
	vj->struck &= !vj->listens;
	vj->listens = 0;
	vj->settled = 0;
	vj->quiet = 0;
	vj->trial = VJ_NO_TRIAL;
}

/*
 * The core asks for no answer to a mark that is told while a loss is repaired; all
 * that it does is to forget the threshold of before. So recovery, which ends now, may
 * have left the window as it was.
 */
static void vj_answer_late_mark(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery &&
	    !tp->prior_ssthresh &&
	    100 * (u64)vj_window_pkts(tp, vj) >
	    VJ_CE_KEEP_PERCENT * (u64)tp->prior_cwnd)
		vj_judge(sk, true, false);
}

/*
 * tcp_enter_loss() has left one packet above what is in flight, and slow start
 * goes from there as RFC 5681 has it, up to half of the window before it, or to
 * ocwnd after a loss that was noise. A smaller MTU of the path also comes here
 * (tcp_simple_retransmit()), and is no loss: it leaves nothing to undo, and nothing
 * of what a probe sent more.
 */
static void vj_set_state(struct sock *sk, u8 new_state)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 before, most;

	if (new_state != TCP_CA_Loss) {
		vj_answer_late_mark(sk);
		return;
	}
	before = tp->prior_cwnd;
	if (vj->trial >= VJ_PROBE)
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), tp->snd_ssthresh));
	vj_forget_losses(vj, tp);
	if (!tp->undo_marker && inet_csk(sk)->icsk_pending)
		return;
	most = max(before / 2, 2U);
	if (vj->state == VJ_STARTUP) {
		vj_share(vj, tp);
		vj->w_max = before;
	} else if (vj->random && !inet_csk(sk)->icsk_retransmits) {
		most = clamp(vj_ocwnd_pkts(tp, vj), most, max(before, 2U));
	}
	tp->snd_ssthresh = min(tp->snd_ssthresh, most);
}

/*
 * The losses were none, so what they took of the state, of room and of what is
 * known of listening is given back, and CUBIC's last maximum is no less than the
 * window before them (RFC 9438, section 4.9.2); its time goes on from the false
 * reduction, and noise stays as it was heard. Room that was seen since stays, and
 * with it the end of STARTUP. The core gives the old threshold back, which STARTUP
 * has none of.
 */
static u32 vj_undo_cwnd(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool probes = vj->trial >= VJ_PROBE;
	u32 w = tcp_reno_undo_cwnd(sk);
	u8 trial = vj->trial;

	vj_forget_losses(vj, tp);
	/*
	 * what it has sent more is still to be judged, and the threshold is where it goes
	 * back to: the core gives no other one back
	 */
	if (probes) {
		vj->trial = trial;
		tp->prior_ssthresh = min(tp->prior_ssthresh, tp->snd_ssthresh);
	}
	vj->roomy |= vj->undo_roomy;
	vj->struck &= vj->undo_struck;
	vj->fooled &= vj->undo_fooled;
	/* losses make STARTUP end, and SHARED begin; not the other way round */
	if (vj->undo_state < vj->state) {
		vj->vain = 0;
		if (vj->undo_state == VJ_STARTUP && vj->roomy) {
			vj->state = VJ_ALONE;
			tp->prior_ssthresh = min(tp->prior_ssthresh, max(w, 2U));
		} else {
			vj->state = vj->undo_state;
			if (vj->state == VJ_STARTUP)
				vj->w_max = 0;
		}
	}
	if (vj->state == VJ_SHARED)
		vj->w_max = max(vj->w_max, probes ? tp->snd_ssthresh : w);
	return w;
}

/* A pause is no time in which CUBIC's window grows: RFC 9438, section 5.8. */
static void vj_skip_pause(struct veno_jitter *vj, const struct tcp_sock *tp,
			  s32 idle_jiffies)
{
	u32 since = (u16)(vj_stamp(tp) - vj->epoch);
	u64 idle_us = (u64)max(idle_jiffies, 0) * (USEC_PER_SEC / HZ);

	vj->epoch += min_t(u64, since, idle_us >> VJ_STAMP_SHIFT);
}

/*
 * The first packet after a silence, which is no evidence of a slower path. After one
 * longer than a timeout the window is what tcp_cwnd_restart() leaves. After a long
 * one the path may be another: noise, room, B and the largest Q are asked for again;
 * base stays.
 */
static void vj_resume(struct sock *sk)
{
	struct veno_jitter *vj = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	s32 idle = tcp_jiffies32 - tp->lsndtime;
	u32 rto = max(inet_csk(sk)->icsk_rto, 1U);
	u32 w = tcp_snd_cwnd(tp);

	tabe_restart(&vj->bandwidth);
	vj_skip_pause(vj, tp, idle);
	/* after a timeout nothing is in flight, either */
	if (tp->packets_out || idle <= (s32)rto ||
	    !READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_slow_start_after_idle))
		return;
	if (vj->draining)
		w = min(w, tp->snd_ssthresh);
	else
		tp->snd_ssthresh = tcp_current_ssthresh(sk);
	tcp_snd_cwnd_set(tp, max(w >> min_t(u32, idle / rto, 31),
				 min_t(u32, w, TCP_INIT_CWND)));
	tp->snd_cwnd_stamp = tcp_jiffies32;
	tp->snd_cwnd_used = 0;
	vj_forget_losses(vj, tp);
	/* who else is there has not changed, either */
	if (vj->state != VJ_STARTUP && idle < VJ_BASE_S * HZ) {
		if (vj_is_blind(vj))
			vj_renew_credit(vj, tp->snd_ssthresh);
		vj_note_undo(vj);
		vj_update_pacing(sk);
		return;
	}
	vj->bandwidth.bw_bytes_per_s = 0;
	vj->noise = 0;
	vj->roomy = 0;
	vj->fooled = 0;
	vj->struck = 0;
	vj->shy = 0;
	vj->tops = 0;
	vj->stood = 0;
	vj->standing_max_us = 0;
	vj->clock.clear = 0;
	forward_queue_forget_rounds(&vj->forward);
	vj_enter(vj, VJ_STARTUP);
	vj_note_undo(vj);
	vj_update_pacing(sk);
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
	/* of the SYN, as long as there is nothing else */
	u32 base_us = max(tcp_min_rtt(tcp_sk(sk)),
			  vj->base_us == ~0U ? 0 : vj->base_us);
	const struct tcp_info_state state = {
		.bw_bytes_per_s = vj->bandwidth.bw_bytes_per_s,
		.base_rtt_us = base_us,
		.jitter_ratio = vj_jitter_ratio(vj, base_us),
		.backlog = vj_backlog(tcp_sk(sk), vj),
		.law = vj->state + 1,
	};

	return tcp_info_fill(&state, ext, attr, info);
}

/*
 * Two packets sent at once are a queue, which a short one has no room for: no
 * more of them go together than the pacing rate makes of a millisecond.
 */
static u32 __maybe_unused vj_min_tso_segs(struct sock *sk)
{
	return 1;
}

static struct tcp_congestion_ops vj_ops __read_mostly = {
	.init		= vj_init,
	.ssthresh	= vj_ssthresh,
	.pkts_acked	= vj_pkts_acked,
	.cong_control	= vj_cong_control,
	.undo_cwnd	= vj_undo_cwnd,
	.TCP_CONG_TX_START_HOOK	= vj_tx_start,
	.set_state	= vj_set_state,
	TCP_CONG_MIN_TSO_SEGS(vj_min_tso_segs)
	.get_info	= vj_get_info,

	.owner		= THIS_MODULE,
	.name		= "veno_jitter",
};

static int __init vj_register(void)
{
	BUILD_BUG_ON(sizeof(struct veno_jitter) > ICSK_CA_PRIV_SIZE);
	/* of their fields */
	BUILD_BUG_ON(VJ_PATTERN > 3 || VJ_HOLD_ROUNDS > 3);
	BUILD_BUG_ON(VJ_FEW_PKTS > 15 || VJ_CALM_ROUNDS > 15);
	/* @fills: beyond the patience by one round trip's at most */
	BUILD_BUG_ON((VJ_FILLS_MAX << VJ_PATIENCE) + 4 > 127);
	return tcp_register_congestion_control(&vj_ops);
}

static void __exit vj_unregister(void)
{
	tcp_unregister_congestion_control(&vj_ops);
}

module_init(vj_register);
module_exit(vj_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("veno_jitter: short queues, loss differentiation, CUBIC's share beside others");
MODULE_VERSION("0.6");
