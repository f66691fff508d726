// SPDX-License-Identifier: GPL-2.0-only
/*
 * JSCTP: congestion control of SCTP that tells wireless from congestion loss by
 * the jitter ratio, and goes to the measured bandwidth.
 *
 * Paper: J.-M. Chen, C.-H. Chu, E. H.-K. Wu, M.-F. Tsai, J.-R. Wang, "Improving
 * SCTP performance by jitter-based congestion control over wired-wireless
 * networks", EURASIP JWCN 2011 (equation and section numbers are its own).
 *
 *   Jr    = ((R_n - R_0) - (S_n - S_0)) / (R_n - R_0)   over m windows    (7)
 *   sjr   = (1 - a) * sjr + a * Jr                      Jr = 0 left out   (8)
 *   B_n   = (RTT * B_{n-1} + L_n) / ((R_n - R_{n-1}) + RTT)               (9)
 *   ocwnd = RTT * B_n                                                     (10)
 *
 *   sjr >= k / w                                congestion, else wireless
 *
 *                          jsctp                        jsctp_abe
 *   miss indications
 *     congestion   ssthresh = cwnd = w / 2      ssthresh = cwnd = ocwnd
 *     wireless     -                            -
 *   T3-rtx timeout
 *     congestion   ssthresh = w / 2, cwnd = 1   ssthresh = ocwnd, cwnd = 1
 *     wireless     ssthresh = cwnd = w / 2      ssthresh = cwnd = ocwnd
 *
 * On a full queue, which no longer grows, Jr is 0 as well: overflows would be
 * wireless, and who shares the queue would starve. So jsctp_abe also takes the
 * jitter (1) between the newest packet and one that met an empty queue, which is
 * what the newest one waited, and keeps to
 *
 *   q  = min(RTT - min RTT, D)        see estimators/forward_queue.h
 *   Q  = smallest q of a round trip   the queue that stands, not a burst's
 *
 *   Q >= 6 % of min RTT   a loss is congestion, growth is +1/2 a round trip (as
 *                         Veno's), slow start ends
 *   after such a loss     growth is +1/2 until the window is what it was, as ocwnd
 *                         may be most of it; a loss that is noise ends that
 *   Q stands 3 round trips after the window went to ocwnd
 *                         others fill it: congestion leaves half of w at most
 *
 * A policer and a queue of a few packets drop without a queue that shows. There the
 * number of losses tells (estimators/loss_share.h):
 *
 *   too much is lost    listen: 3/4 of what was delivered, until it is known how much
 *                       is lost then, which is noise
 *   again               the path is narrow: a loss is congestion as in RFC 9260, unless
 *                       noise alone takes a packet of each second window; no growth
 *                       beyond B * min RTT and a little; listening takes longer each
 *                       time; a timeout is followed by slow start
 *   Q >= min RTT / 8, with 3 packets of ours
 *                       the path shows its queue: not narrow
 *
 * In slow start losses are counted as they are told, not at the end of the round
 * trip; it listens at w / 2 at most; and sjr is not asked while the smallest q of the
 * round trip so far is small. If what was heard explains what ended the first slow
 * start, that goes on.
 *
 * Noise is also heard, little by little, below 7/8 of what was delivered when the
 * window was last reduced for it.
 *
 * The peer may lie about R, to have its losses ignored. What it says of the queue
 * is held against our own clock:
 *
 *   Q' = smallest RTT - min RTT of a round trip   there and back
 *
 *   Q' >= 6 % of min RTT, and Q < Q' / 2   R is not believed: Q = Q', and a loss
 *                                          is congestion
 *   ocwnd <= w * min RTT / (min RTT + Q)   what a B that is too large cannot
 *                                          exceed
 *
 * That is also what a congested way back looks like, where it is as RFC 9260.
 * Who hides a queue that our clock has seen without gains half of it at most. But
 * the clock bounds a round trip from below only: who delays all SACKs and echoes
 * from the first packet on, and the less the longer the queue is, has all of the
 * queue in min RTT, and may claim any. It pays by that round trip for good, and
 * has what this is without Q; what it loses then is heard as noise.
 *
 *   symbol        field                 unit
 *   S, R          newest                us; our clock, the peer's
 *   Jr, sjr       ratio                 see estimators/jitter_ratio.h
 *   B_n           bandwidth             bytes/s
 *   L_n           unclocked_bytes       bytes
 *   RTT in (9)    srtt_us               us
 *   RTT in (10)   min_rtt_us, srtt_us   us
 *   Q             standing_us           us
 *   Q'            round_above_us        us
 *   w             cwnd / s              packets of s bytes
 *   s             frag_point            bytes of payload of a full chunk
 *   k             k_percent             1/100 packet
 *   m             m                     windows
 *   a             alpha_percent         1/100
 *
 * The state is one path's; each destination has its own. The window grows as in
 * RFC 9260, which also decides once for all losses of a window (fast recovery).
 * Times come from TIMESTAMP chunks (net.sctp.timestamp_chunk); without them,
 * and until the first complete span, all is as in RFC 9260.
 *
 * Differences from the paper:
 *  - RTT in (10) is the smallest one (ocwnd_srtt = 0), so that a full queue is
 *    drained; with the smoothed one RTT * B is the window that there was.
 *  - k is half a packet, not one: see docs/jtcp.md.
 *  - Q, with all that follows from it: docs/sctp-internals.md has what it is worth.
 *  - ocwnd is at least 4 MTU, as every ssthresh of RFC 9260, and at most w. Half
 *    of w is at least 2 MTU, as with TCP, where others fill the queue.
 *  - ECNE is congestion whatever the ratio, and leaves w / 2: a queue that is
 *    marked stays short, so ocwnd would be w.
 *  - A timeout that follows a timeout with nothing acknowledged between them is
 *    congestion. (The path's error_count does not tell: it counts this timeout,
 *    too, and a heartbeat that comes through sets it to 0.)
 *  - After a window that was acknowledged without a time nothing is known.
 *  - A pause in sending is no evidence of a slower path: it is left out.
 *  - Three miss indications start it, not four: net.sctp.miss_indications.
 */

#include <linux/module.h>
#include <net/sctp/sctp.h>
#include <net/sctp/cong.h>

#include "estimators/forward_queue.h"
#include "estimators/jitter_ratio.h"
#include "estimators/loss_share.h"
#include "estimators/tabe.h"
#include "estimators/veno_backlog.h"
#include "sctp_jsctp_info.h"
#include "tcp_param.h"

#define CREATE_TRACE_POINTS
#include "sctp_jitter_trace.h"

#define JSCTP_RTT_SHIFT		3	/* srtt: 7/8 of what it was */
#define JSCTP_TICK_US		1	/* of the times in TIMESTAMP chunks */
#define JSCTP_UNCLOCKED_BYTES	0x40000000U	/* 2^30: above any window */
#define JSCTP_NO_QUEUE_US	~0U	/* no sample in this round trip yet */
#define JSCTP_DRAIN_ROUNDS	3	/* until a smaller window shows in Q */
#define JSCTP_OCWND_MTUS	4	/* least ocwnd, as RFC 9260 section 7.2.3 */
#define JSCTP_SHARED_MTUS	2	/* least window in others' queue */
#define JSCTP_ROOM_SHIFT	3	/* base / 8 is a queue that shows ... */
#define JSCTP_ROOM_PKTS		3	/* ... with so many packets of ours */
#define JSCTP_HOLD_ROUNDS	2	/* until what was sent before a reduction is known */
#define JSCTP_HEARD		6	/* losses that tell a share */
#define JSCTP_HEARD_PKTS	64	/* least sample that is heard */
#define JSCTP_LITTLE_SHIFT	6	/* 1/64, a share of loss that is let pass at first */
#define JSCTP_STRUCK_MOST_PKTS	1023	/* what struck_lost_pkts holds */
#define JSCTP_SHY_MAX		4	/* doublings of what is heard */

static struct tcp_param jsctp_k_percent = { .value = 50, .min = 1, .max = 1000 };
module_param_cb(k_percent, &tcp_param_ops, &jsctp_k_percent, 0644);
MODULE_PARM_DESC(k_percent,
		 "k of sjr >= k/w, in 1/100 packet (1-1000)");

static struct tcp_param jsctp_m = { .value = 1, .min = 1, .max = 16 };
module_param_cb(m, &tcp_param_ops, &jsctp_m, 0644);
MODULE_PARM_DESC(m, "windows that a jitter ratio covers (1-16)");

static struct tcp_param jsctp_alpha_percent = { .value = 5, .max = 100 };
module_param_cb(alpha_percent, &tcp_param_ops, &jsctp_alpha_percent, 0644);
MODULE_PARM_DESC(alpha_percent,
		 "weight of a sample in sjr, in 1/100; 0: decide by Jr (0-100)");

static struct tcp_param jsctp_ocwnd_srtt = { .value = 0, .max = 1 };
module_param_cb(ocwnd_srtt, &tcp_param_ops, &jsctp_ocwnd_srtt, 0644);
MODULE_PARM_DESC(ocwnd_srtt,
		 "RTT in ocwnd = RTT * B: 0 smallest, 1 smoothed (0-1)");

static struct tcp_param jsctp_queue_percent = { .value = 6, .min = 1, .max = 1000 };
module_param_cb(queue_percent, &tcp_param_ops, &jsctp_queue_percent, 0644);
MODULE_PARM_DESC(queue_percent,
		 "standing queue that makes a loss congestion for jsctp_abe, percent of the smallest RTT (1-1000)");

/**
 * struct jsctp - private area of a path
 * @newest: times of the newest packet that has come back
 * @ratio: jitter ratio
 * @bandwidth: B
 * @forward: D
 * @round_queue_us: smallest q of this round trip (us)
 * @round_above_us: smallest RTT - min RTT of this round trip (us)
 * @standing_us: Q, smallest q of the last round trip (us)
 * @round_end_us: this round trip ends with a packet sent then (us), wraps
 * @acked_pkts: packets acknowledged so far, wraps
 * @acked_bytes: beyond those (bytes), below s
 * @unclocked_bytes: acknowledged since a time came with a SACK (bytes)
 * @min_rtt_us: smallest round trip (us), 0: none yet
 * @srtt_us: smoothed round trip (us), 0: none yet
 * @timed: @newest came with this SACK
 * @paused: there was a pause since the last estimate
 * @timed_out: nothing is acknowledged since a timeout
 * @abe: this is jsctp_abe
 * @doubted: the peer's times contradict the round trips of the last one
 * @round_pkts: @acked_pkts when this round trip began
 * @lost_bytes: reported missing in this round trip, and what was below s before (bytes)
 * @losses: noise, and the sample that is held against it
 * @top_pkts: window that was given up because of losses, as far as it was delivered
 *	(packets), 0: none
 * @max_pkts: window at the last miss indications, if Q stood (packets), 0: it did
 *	not, or times have stopped, or nothing was sent; what else takes from the
 *	window leaves it
 * @standing_max_ms: largest Q (ms), only told
 * @listen_pkts: so many are to be heard (packets)
 * @contested: Q stands although the window went to ocwnd
 * @drained: round trips until that is known
 * @hold: round trips until what was sent before a reduction is known
 * @answered: the window was reduced in this round trip
 * @hears: this round trip began with little in flight: its losses are noise
 * @listens: less is sent than was delivered, to learn the noise
 * @struck: it has listened
 * @narrow: too much was lost again after that
 * @shy: doublings of how long it listens
 * @starts: it listens because of what was lost before the window was ever reduced
 * @struck_sent_pkts: of the sample that made it listen (packets)
 * @struck_lost_pkts: of which so many were lost (packets)
 */
struct jsctp {
	struct sctp_cong_times newest;
	struct jitter_ratio ratio;
	struct tabe bandwidth;
	struct forward_queue forward;
	u32 round_queue_us;
	u32 round_above_us;
	u32 standing_us;
	u32 round_end_us;
	u32 acked_pkts;
	u32 acked_bytes;
	u32 unclocked_bytes;
	u32 min_rtt_us;
	u32 srtt_us;
	u32 round_pkts;
	u32 lost_bytes;
	struct loss_share losses;
	u16 top_pkts;
	u16 max_pkts;
	u16 standing_max_ms;
	u16 listen_pkts;
	u16 struck_sent_pkts;
	u32 timed:1,
	    paused:1,
	    timed_out:1,
	    abe:1,
	    doubted:1,
	    contested:1,
	    drained:2,
	    hold:2,
	    answered:1,
	    hears:1,
	    listens:1,
	    struck:1,
	    narrow:1,
	    shy:3,
	    starts:1,
	    struck_lost_pkts:10;
};

/* --- what is known of the path ------------------------------------------- */

static u32 jsctp_payload(const struct sctp_transport *t)
{
	return max(t->asoc->frag_point, 1U);
}

/* ocwnd is not below this (bytes). */
static u32 jsctp_least_ocwnd(const struct sctp_transport *t)
{
	return JSCTP_OCWND_MTUS * t->asoc->pathmtu;
}

static u32 jsctp_window_pkts(const struct sctp_transport *t)
{
	return max(t->cwnd / jsctp_payload(t), 1U);
}

/* Has the peer stopped to return times? */
static bool jsctp_stale(const struct sctp_transport *t, const struct jsctp *j)
{
	return j->unclocked_bytes > t->cwnd;
}

/* Is this a queue that counts? */
static bool jsctp_is_queue(const struct jsctp *j, u32 queue_us)
{
	return queue_us &&
	       (u64)queue_us * 100 >=
	       (u64)j->min_rtt_us * tcp_param_get(&jsctp_queue_percent);
}

/* Does a queue stand that counts? Only jsctp_abe asks. */
static bool jsctp_queue_stands(const struct sctp_transport *t,
			       const struct jsctp *j)
{
	return j->abe && !jsctp_stale(t, j) &&
	       jsctp_is_queue(j, j->standing_us);
}

/* Does a queue show that a full path would have? Ours is a part of it. */
static bool jsctp_has_room(const struct sctp_transport *t,
			   const struct jsctp *j)
{
	return !j->doubted && j->standing_us &&
	       j->standing_us >= j->min_rtt_us >> JSCTP_ROOM_SHIFT &&
	       veno_backlog_reaches(jsctp_window_pkts(t), j->standing_us,
				    j->min_rtt_us + j->standing_us,
				    JSCTP_ROOM_PKTS);
}

/*
 * The window that is given up, but no more than was delivered: what is lost above
 * that is no noise. One that had not come back is no new one.
 */
static void jsctp_note_top(const struct sctp_transport *t, struct jsctp *j)
{
	u32 delivered_pkts = tabe_window_pkts(&j->bandwidth, j->min_rtt_us,
					      jsctp_payload(t));
	u32 w_pkts = min3(jsctp_window_pkts(t), delivered_pkts, (u32)U16_MAX);

	if (2 * w_pkts > j->top_pkts)
		j->top_pkts = w_pkts;
}

/* The window is reduced: what was sent before is no part of what is judged. */
static void jsctp_hold(struct jsctp *j)
{
	if (j->listens)
		return;
	j->hold = JSCTP_HOLD_ROUNDS;
	j->answered = 1;
}

/*
 * More is lost than noise explains: send three quarters of what was delivered
 * until it is known what is lost then. That is noise.
 */
static void jsctp_listen(struct sctp_transport *t, struct jsctp *j)
{
	u32 delivered = tabe_window_pkts(&j->bandwidth, j->min_rtt_us, 1);
	u32 least = jsctp_least_ocwnd(t);
	u32 most = t->cwnd;

	/* what slow start has added is more than was delivered, though B rises by it */
	if (t->cwnd < t->ssthresh)
		most /= 2;
	j->starts = t->ssthresh >= t->asoc->peer.i.a_rwnd;
	j->struck_sent_pkts = j->losses.sent_pkts;
	j->struck_lost_pkts = min(j->losses.lost_pkts + 0U,
				  JSCTP_STRUCK_MOST_PKTS + 0U);
	/* so many that eight would be lost if it were noise */
	j->listen_pkts = j->struck ? LOSS_SHARE_MOST_PKTS << j->shy :
		clamp(8U * j->losses.sent_pkts / max(j->losses.lost_pkts, 1U),
		      JSCTP_HEARD_PKTS + 0U, LOSS_SHARE_MOST_PKTS + 0U);
	if (j->struck && j->shy < JSCTP_SHY_MAX)
		j->shy++;
	jsctp_note_top(t, j);
	j->narrow = j->struck;
	jsctp_hold(j);
	j->listens = 1;
	t->cwnd = clamp(delivered / 4 * 3, least, max(most, least));
	t->ssthresh = t->cwnd;
	loss_share_restart(&j->losses);
}

/* Did what ended slow start turn out to be the noise that was heard then? */
static bool jsctp_was_noise(const struct jsctp *j)
{
	const struct loss_share struck = {
		.noise = j->losses.noise,
		.sent_pkts = j->struck_sent_pkts,
		.lost_pkts = j->struck_lost_pkts,
	};

	return !loss_share_exceeds(&struck, LOSS_SHARE_SHIFT);
}

/* Enough is heard once six are lost, or three times as much if there are fewer. */
static void jsctp_listened(struct sctp_transport *t, struct jsctp *j)
{
	const struct loss_share *ls = &j->losses;
	u32 least_pkts = j->listen_pkts;

	if (!j->narrow && ls->lost_pkts)
		least_pkts = ls->lost_pkts < JSCTP_HEARD ?
			     max(least_pkts, 3U * JSCTP_HEARD_PKTS) :
			     JSCTP_HEARD_PKTS;
	if (ls->sent_pkts < least_pkts)
		return;
	/* what is heard takes the place of the noise; of one that counts, of half */
	loss_share_hear(&j->losses, ls->sent_pkts, ls->lost_pkts,
			ls->noise >> (LOSS_SHARE_SHIFT - JSCTP_LITTLE_SHIFT) ?
			LOSS_SHARE_MOST_PKTS / 2 : LOSS_SHARE_MOST_PKTS);
	loss_share_restart(&j->losses);
	j->listens = 0;
	j->struck = 1;
	if (j->starts && jsctp_was_noise(j))
		t->ssthresh = max(t->ssthresh, t->asoc->peer.i.a_rwnd);
	j->starts = 0;
}

/* Is what this round trip loses judged? */
static bool jsctp_counts(const struct jsctp *j)
{
	return !j->hold && (j->listens || !j->answered);
}

/* Is more lost than noise explains? */
static bool jsctp_exceeds(const struct jsctp *j, const struct loss_share *ls)
{
	return loss_share_exceeds(ls, j->struck ? LOSS_SHARE_SHIFT :
						  JSCTP_LITTLE_SHIFT);
}

/* The losses of a round trip. */
static void jsctp_note_losses(struct sctp_transport *t, struct jsctp *j)
{
	u32 lost_pkts = j->lost_bytes / jsctp_payload(t);
	u32 sent_pkts = j->acked_pkts - j->round_pkts + lost_pkts;
	bool room = jsctp_has_room(t, j);
	bool counts = jsctp_counts(j);

	j->round_pkts = j->acked_pkts;
	j->lost_bytes %= jsctp_payload(t);
	j->hold -= !!j->hold;
	if (j->hears && !j->listens)
		loss_share_hear(&j->losses, sent_pkts, lost_pkts,
				min(sent_pkts, JSCTP_HEARD_PKTS + 0U));
	if (room) {
		j->narrow = 0;
		j->struck = 0;
		j->shy = 0;
		j->top_pkts = 0;
	}
	if (counts) {
		loss_share_add(&j->losses, sent_pkts, lost_pkts);
		if (j->listens)
			jsctp_listened(t, j);
		else if (jsctp_exceeds(j, &j->losses))
			jsctp_listen(t, j);
		else if (j->losses.sent_pkts >= LOSS_SHARE_MOST_PKTS)
			loss_share_restart(&j->losses);
	}
	j->answered = 0;
	j->hears = j->top_pkts && !j->hold &&
		   8 * jsctp_window_pkts(t) < 7 * (u32)j->top_pkts &&
		   !t->asoc->fast_recovery && !jsctp_queue_stands(t, j);
}

/*
 * Times had stopped coming, and the window has grown as it liked: what was lost
 * meanwhile is no noise.
 */
static void jsctp_forget_losses(struct jsctp *j)
{
	j->round_pkts = j->acked_pkts;
	j->lost_bytes = 0;
	j->hears = 0;
	j->listens = 0;
	j->starts = 0;
	loss_share_restart(&j->losses);
}

static void jsctp_start_round(struct jsctp *j)
{
	j->round_queue_us = JSCTP_NO_QUEUE_US;
	j->round_above_us = JSCTP_NO_QUEUE_US;
	j->round_end_us = j->newest.sent_us + j->newest.rtt_us;
}

/* A packet that was sent after the end of the round trip before has come back. */
static void jsctp_end_round(struct sctp_transport *t, struct jsctp *j)
{
	j->doubted = jsctp_is_queue(j, j->round_above_us) &&
		     j->round_queue_us < j->round_above_us / 2;
	j->standing_us = j->doubted ? j->round_above_us : j->round_queue_us;
	j->standing_max_ms = clamp(DIV_ROUND_UP(j->standing_us, 1000U),
				   j->standing_max_ms + 0U, U16_MAX + 0U);
	jsctp_start_round(j);
	if (j->drained && !--j->drained)
		j->contested = jsctp_queue_stands(t, j);
	if (j->abe)
		jsctp_note_losses(t, j);
}

/*
 * A pause may be longer than the clock goes without a wrap. PAUSED: the newest packet
 * was sent after one.
 */
static void jsctp_note_queue(struct sctp_transport *t, struct jsctp *j,
			     bool paused)
{
	u32 transit_us = j->newest.received_us - j->newest.sent_us;
	u32 above_us = j->newest.rtt_us - min(j->newest.rtt_us, j->min_rtt_us);
	u32 queue_us = forward_queue_update(&j->forward, transit_us, above_us,
					    JSCTP_TICK_US);

	if (!j->srtt_us || paused)
		jsctp_start_round(j);
	j->round_queue_us = min(j->round_queue_us, queue_us);
	j->round_above_us = min(j->round_above_us, above_us);
	if ((s32)(j->newest.sent_us - j->round_end_us) >= 0)
		jsctp_end_round(t, j);
}

static void jsctp_note_min_rtt(struct jsctp *j, u32 rtt_us)
{
	if (!j->min_rtt_us || rtt_us < j->min_rtt_us)
		j->min_rtt_us = max(rtt_us, 1U);
}

static void jsctp_note_srtt(struct jsctp *j, u32 rtt_us)
{
	if (!j->srtt_us)
		j->srtt_us = max(rtt_us, 1U);
	else
		j->srtt_us += (s32)(rtt_us - j->srtt_us) >> JSCTP_RTT_SHIFT;
}

/*
 * A window's packets are sent as those of the window before are acknowledged, so
 * a gap longer than a round trip means that there was nothing to send, or that a
 * timeout was waited for.
 */
static void jsctp_timed(struct sctp_transport *t,
			const struct sctp_cong_times *times)
{
	struct jsctp *j = sctp_cong_priv(t);
	bool paused = j->srtt_us &&
		      times->sent_us - j->newest.sent_us > j->srtt_us;

	if (jsctp_stale(t, j))
		jsctp_forget_losses(j);
	/* more than one time may come before anything is acknowledged */
	j->paused |= paused;
	j->timed = 1;
	j->newest = *times;

	jsctp_note_min_rtt(j, times->rtt_us);
	jsctp_note_queue(t, j, paused);
	jsctp_note_srtt(j, times->rtt_us);
}

/*
 * Without TIMESTAMP chunks the protocol's own round trips are all that is known.
 * They decide nothing, as the losses are then congestion: they are told.
 */
static void jsctp_rtt(struct sctp_transport *t, u32 rtt_us)
{
	struct jsctp *j = sctp_cong_priv(t);

	if (t->asoc->timestamp.used)
		return;
	jsctp_note_min_rtt(j, rtt_us);
	jsctp_note_srtt(j, rtt_us);
}

/* A path that another algorithm has used has been measured. */
static void jsctp_init(struct sctp_transport *t, enum sctp_cong_start why)
{
	if (why == SCTP_CONG_CHANGE && t->srtt)
		jsctp_rtt(t, jiffies_to_usecs(t->srtt));
}

static void jsctp_count(struct jsctp *j, u32 bytes, u32 payload)
{
	u32 sum = j->acked_bytes + bytes;

	j->acked_pkts += sum / payload;
	j->acked_bytes = sum % payload;
	/* a peer that never returns a time must not make it wrap */
	if (j->unclocked_bytes < JSCTP_UNCLOCKED_BYTES)
		j->unclocked_bytes += bytes;
}

static void jsctp_estimate(const struct sctp_transport *t, struct jsctp *j)
{
	u32 w_pkts = jsctp_window_pkts(t);
	const struct jitter_sample sample = {
		.sent_us	= j->newest.sent_us,
		.arrived_us	= j->newest.received_us,
		.tick_us	= JSCTP_TICK_US,
		.pkts		= j->acked_pkts,
	};

	if (j->paused) {
		jitter_ratio_restart(&j->ratio);
		tabe_restart(&j->bandwidth);
	}
	if (jitter_ratio_update(&j->ratio, &sample, w_pkts,
				tcp_param_get(&jsctp_m),
				tcp_param_get(&jsctp_alpha_percent)))
		trace_sctp_jitter_ratio(t, w_pkts, j->ratio.jr, j->ratio.sjr);
	tabe_update(&j->bandwidth, j->newest.received_us, j->unclocked_bytes,
		    j->srtt_us);
	j->unclocked_bytes = 0;
	j->timed = 0;
	j->paused = 0;
}

static void jsctp_note_acked(struct sctp_transport *t, u32 bytes_acked)
{
	struct jsctp *j = sctp_cong_priv(t);

	if (bytes_acked) {
		jsctp_count(j, bytes_acked, jsctp_payload(t));
		j->timed_out = 0;
	}
	if (j->timed)
		jsctp_estimate(t, j);
}

static void jsctp_raise(struct sctp_transport *t, u32 bytes_acked)
{
	jsctp_note_acked(t, bytes_acked);
	sctp_rfc9260_raise(t, bytes_acked);
}

/*
 * While it listens; and on a path without a queue that would show, beyond what is
 * delivered and a little: more would only be lost. Where times have stopped coming
 * neither would ever end.
 */
static bool jsctp_must_not_grow(const struct sctp_transport *t,
				const struct jsctp *j)
{
	u32 delivered;

	if (t->cwnd < t->ssthresh || jsctp_stale(t, j))
		return false;
	if (j->listens)
		return true;
	if (!j->narrow)
		return false;
	delivered = tabe_window_pkts(&j->bandwidth, j->min_rtt_us, 1);
	return t->cwnd > (u64)delivered + delivered / 16 + 2 * t->asoc->pathmtu;
}

/*
 * Is growth half as fast? While a queue stands, and on the way back to the window that
 * overflowed it: ocwnd leaves more of that than the half that +1 a round trip is fair
 * with (RFC 9438, section 4.3).
 */
static bool jsctp_grows_slowly(const struct sctp_transport *t,
			       const struct jsctp *j)
{
	return jsctp_queue_stands(t, j) ||
	       (t->cwnd >= t->ssthresh && jsctp_window_pkts(t) < j->max_pkts);
}

/* While a queue stands slow start is over. */
static void jsctp_abe_raise(struct sctp_transport *t, u32 bytes_acked)
{
	const struct jsctp *j = sctp_cong_priv(t);

	jsctp_note_acked(t, bytes_acked);
	if (jsctp_must_not_grow(t, j))
		return;
	if (bytes_acked && jsctp_queue_stands(t, j))
		t->ssthresh = min(t->ssthresh,
				  max(t->cwnd, jsctp_least_ocwnd(t)));
	if (bytes_acked && jsctp_grows_slowly(t, j))
		bytes_acked /= 2;
	sctp_rfc9260_raise(t, bytes_acked);
}

/* --- losses -------------------------------------------------------------- */

/* Does the path drop without a queue, and is there too little noise to be it? */
static bool jsctp_is_narrow(const struct sctp_transport *t,
			    const struct jsctp *j)
{
	return j->narrow && !j->listens &&
	       !loss_share_noisy(&j->losses,
				 max(jsctp_window_pkts(t), j->top_pkts + 0U));
}

/*
 * Slow start sends at twice the rate that comes back, so bursts queue and Jr is
 * large with half the path unused. How many are lost, and the smallest q so far,
 * tell then.
 */
static bool jsctp_is_starting(const struct sctp_transport *t,
			      const struct jsctp *j)
{
	return j->abe && t->cwnd < t->ssthresh &&
	       !jsctp_is_queue(j, j->round_queue_us);
}

/* Section 3.1.3, and Q; a loss of which nothing is known is congestion. */
static bool jsctp_congested(const struct sctp_transport *t,
			    const struct jsctp *j)
{
	s32 ratio = tcp_param_get(&jsctp_alpha_percent) ? j->ratio.sjr :
							  j->ratio.jr;

	return !j->ratio.sampled || jsctp_stale(t, j) || j->doubted ||
	       jsctp_queue_stands(t, j) || jsctp_is_narrow(t, j) ||
	       (!jsctp_is_starting(t, j) &&
		jitter_ratio_congested(ratio, jsctp_window_pkts(t),
				       tcp_param_get(&jsctp_k_percent)));
}

static void jsctp_tell_verdict(const struct sctp_transport *t,
			       const struct jsctp *j, bool congestion,
			       bool timeout)
{
	u32 w_pkts = jsctp_window_pkts(t);
	const struct sctp_verdict_features features = {
		.cwnd_pkts = w_pkts,
		.rtt_us = j->newest.rtt_us,
		.srtt_us = j->srtt_us,
		.min_rtt_us = j->min_rtt_us,
		.queue_us = j->standing_us,
		.queue_max_us = j->standing_max_ms * USEC_PER_MSEC,
		.backlog = veno_backlog(w_pkts, j->min_rtt_us,
					j->min_rtt_us + j->standing_us),
		.jr = j->ratio.jr,
		.sjr = j->ratio.sjr,
	};

	trace_sctp_verdict(t, congestion, timeout, &features);
}

static bool jsctp_judge(const struct sctp_transport *t, const struct jsctp *j,
			bool timeout)
{
	bool congestion = jsctp_congested(t, j);

	if (trace_sctp_verdict_enabled())
		jsctp_tell_verdict(t, j, congestion, timeout);
	return congestion;
}

/* Is this a loss that the window need not be reduced for? Asked once for each. */
static bool jsctp_is_wireless(struct sctp_transport *t,
			      enum sctp_lower_cwnd reason)
{
	struct jsctp *j = sctp_cong_priv(t);
	bool again = j->timed_out;

	switch (reason) {
	case SCTP_LOWER_CWND_FAST_RTX:
		return !jsctp_judge(t, j, false);
	case SCTP_LOWER_CWND_T3_RTX:
		j->timed_out = 1;
		return !again && !jsctp_judge(t, j, true);
	default:
		return false;
	}
}

static void jsctp_lower(struct sctp_transport *t, enum sctp_lower_cwnd reason)
{
	bool wireless = jsctp_is_wireless(t, reason);

	if (wireless && reason == SCTP_LOWER_CWND_FAST_RTX)
		return;
	sctp_rfc9260_lower(t, reason);
	if (wireless)
		t->cwnd = t->ssthresh;
}

/* What the round trips leave of the window without its queue (bytes). */
static u32 jsctp_drained_window(const struct sctp_transport *t,
				const struct jsctp *j)
{
	if (!j->standing_us || tcp_param_get(&jsctp_ocwnd_srtt))
		return t->cwnd;
	return div_u64((u64)t->cwnd * j->min_rtt_us,
		       j->min_rtt_us + j->standing_us);
}

/* ocwnd (bytes), section 3.2.1. */
static u32 jsctp_ocwnd(const struct sctp_transport *t, const struct jsctp *j)
{
	u32 rtt_us = tcp_param_get(&jsctp_ocwnd_srtt) ? j->srtt_us :
							j->min_rtt_us;
	u32 least = jsctp_least_ocwnd(t);

	return clamp(tabe_window_pkts(&j->bandwidth, rtt_us, 1), least,
		     max(jsctp_drained_window(t, j), least));
}

/* Where congestion takes the window (bytes). */
static u32 jsctp_lowered(const struct sctp_transport *t, const struct jsctp *j)
{
	u32 most = j->contested ? t->cwnd / 2 : t->cwnd;
	u32 least = JSCTP_SHARED_MTUS * t->asoc->pathmtu;

	return min(jsctp_ocwnd(t, j), max(most, least));
}

static void jsctp_abe_lower(struct sctp_transport *t,
			    enum sctp_lower_cwnd reason)
{
	struct jsctp *j = sctp_cong_priv(t);
	u32 lowered = jsctp_lowered(t, j);

	if (jsctp_is_narrow(t, j))
		jsctp_note_top(t, j);
	if (!j->bandwidth.bw_bytes_per_s || jsctp_stale(t, j) ||
	    jsctp_is_narrow(t, j) || reason == SCTP_LOWER_CWND_ECNE ||
	    reason == SCTP_LOWER_CWND_INACTIVE) {
		if (reason == SCTP_LOWER_CWND_INACTIVE || jsctp_stale(t, j))
			j->max_pkts = 0;
		jsctp_lower(t, reason);
		jsctp_hold(j);
		return;
	}
	if (reason == SCTP_LOWER_CWND_T3_RTX) {
		bool wireless = jsctp_is_wireless(t, reason);
		u32 most = j->listens ? t->cwnd : ~0U;

		t->ssthresh = min(wireless ? jsctp_ocwnd(t, j) : lowered, most);
		/* a window at once is more than a queue of a few packets takes */
		t->cwnd = wireless && !j->narrow ? t->ssthresh :
						   t->asoc->pathmtu;
		if (!wireless) {
			j->listens = 0;
			loss_share_restart(&j->losses);
			jsctp_hold(j);
		}
	} else if (!jsctp_is_wireless(t, reason)) {
		jsctp_hold(j);
		j->max_pkts = jsctp_queue_stands(t, j) ?
			      min(jsctp_window_pkts(t), U16_MAX + 0U) : 0;
		t->ssthresh = lowered;
		t->cwnd = lowered;
		if (!j->drained)
			j->drained = JSCTP_DRAIN_ROUNDS;
	} else {
		j->max_pkts = 0;
	}
}

/*
 * What slow start has sent too much is sent too much again before the round trip is
 * over: each SACK tells of a packet that came and of one that did not, and two leave.
 * So it is not waited for.
 */
static void jsctp_lost(struct sctp_transport *t, u32 bytes)
{
	struct jsctp *j = sctp_cong_priv(t);
	struct loss_share so_far = j->losses;
	u32 lost_pkts;

	/* a peer that never returns a time must not make it wrap */
	if (j->lost_bytes < JSCTP_UNCLOCKED_BYTES)
		j->lost_bytes += bytes;
	if (t->cwnd >= t->ssthresh || !jsctp_counts(j) || j->listens ||
	    !j->bandwidth.bw_bytes_per_s || jsctp_stale(t, j))
		return;
	lost_pkts = j->lost_bytes / jsctp_payload(t);
	loss_share_add(&so_far, j->acked_pkts - j->round_pkts + lost_pkts,
		       lost_pkts);
	if (jsctp_exceeds(j, &so_far)) {
		j->losses = so_far;
		jsctp_listen(t, j);
	}
}

/* --- what it tells of a path ---------------------------------------------- */

#define JSCTP_PPM	1000000

static s32 jsctp_ppm(s32 ratio)
{
	return ((s64)ratio * JSCTP_PPM) >> JITTER_RATIO_SHIFT;
}

/* The figures may be of different moments, where nothing is locked. */
static void jsctp_tell(const struct jsctp *j, struct sctp_jsctp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->bw_bytes_per_s = READ_ONCE(j->bandwidth.bw_bytes_per_s);
	info->jr_ppm = jsctp_ppm(READ_ONCE(j->ratio.jr));
	info->sjr_ppm = jsctp_ppm(READ_ONCE(j->ratio.sjr));
	info->min_rtt_us = READ_ONCE(j->min_rtt_us);
	info->srtt_us = READ_ONCE(j->srtt_us);
	info->sent_us = READ_ONCE(j->newest.sent_us);
	info->received_us = READ_ONCE(j->newest.received_us);
	info->queue_us = READ_ONCE(j->standing_us);
	info->sampled = j->ratio.sampled;
	info->contested = j->contested;
	info->doubted = j->doubted;
	info->noise_ppm = (u64)READ_ONCE(j->losses.noise) * JSCTP_PPM >>
			  LOSS_SHARE_SHIFT;
	info->listens = j->listens;
	info->narrow = j->narrow;
}

/* For /proc/net/sctp/cong. */
static void jsctp_show(struct sctp_transport *t, struct seq_file *seq)
{
	struct sctp_jsctp_info info;

	jsctp_tell(sctp_cong_priv(t), &info);
	seq_printf(seq, " jr_ppm=%d sjr_ppm=%d sampled=%u bw_bytes_per_s=%llu",
		   info.jr_ppm, info.sjr_ppm, info.sampled,
		   info.bw_bytes_per_s);
	seq_printf(seq, " min_rtt_us=%u srtt_us=%u sent_us=%u received_us=%u",
		   info.min_rtt_us, info.srtt_us, info.sent_us,
		   info.received_us);
	seq_printf(seq, " queue_us=%u contested=%u doubted=%u", info.queue_us,
		   info.contested, info.doubted);
	seq_printf(seq, " noise_ppm=%u listens=%u narrow=%u", info.noise_ppm,
		   info.listens, info.narrow);
}

/* --- the module ---------------------------------------------------------- */

static struct sctp_cong_ops jsctp = {
	.init	= jsctp_init,
	.raise	= jsctp_raise,
	.lower	= jsctp_lower,
	.timed	= jsctp_timed,
	.rtt	= jsctp_rtt,
	.show	= jsctp_show,
	.name	= "jsctp",
	.owner	= THIS_MODULE,
};

static void jsctp_abe_init(struct sctp_transport *t, enum sctp_cong_start why)
{
	struct jsctp *j = sctp_cong_priv(t);

	j->abe = 1;
	jsctp_init(t, why);
}

static struct sctp_cong_ops jsctp_abe = {
	.init	= jsctp_abe_init,
	.raise	= jsctp_abe_raise,
	.lower	= jsctp_abe_lower,
	.lost	= jsctp_lost,
	.timed	= jsctp_timed,
	.rtt	= jsctp_rtt,
	.show	= jsctp_show,
	.name	= "jsctp_abe",
	.owner	= THIS_MODULE,
};

static int __init jsctp_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct jsctp) > SCTP_CONG_PRIV_SIZE);

	err = sctp_cong_register(&jsctp);
	if (err)
		return err;
	err = sctp_cong_register(&jsctp_abe);
	if (err)
		sctp_cong_unregister(&jsctp);
	return err;
}

static void __exit jsctp_module_exit(void)
{
	sctp_cong_unregister(&jsctp_abe);
	sctp_cong_unregister(&jsctp);
}

module_init(jsctp_module_init);
module_exit(jsctp_module_exit);

MODULE_ALIAS("sctp_cong_jsctp");
MODULE_ALIAS("sctp_cong_jsctp_abe");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("JSCTP: jitter ratio and bandwidth estimation for SCTP");
