// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender: RFC 5348, 4 and 8; RFC 4828 for small packets.
 *
 *   symbol          field            unit
 *   s               packet_bytes     bytes, mean of what was sent
 *   R               rtt              ns
 *   R_sqmean        rtt_sqmean       sqrt(ns)
 *   X               rate             bytes/s
 *   X_Bps           rate_equation    bytes/s
 *   X_recv_set      received[]       bytes/s
 *   p               p                -
 *   tld             last_doubled     ns
 *
 * Differences from the RFC:
 * - What feedback claims is held against what the sender knows (audit.h):
 *   X_recv is at most what was sent, p about what the holes say at least.
 * - Where losses are said to be random, a share above RANDOM_MAX is not
 *   believed: then it is p.
 * - UDDJ's law "ease": rate_ease() below, docs/tfrc.md.
 */
#include "audit.h"
#include "equation.h"
#include "nonce.h"
#include "sized.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S	    1000000000.0
#define T_MBI_S		    64.0 /* the longest gap between packets */
#define RTT_WEIGHT	    0.9	 /* q of 4.3 */
#define RTT_SQMEAN_WEIGHT   0.9	 /* q2 of 4.5 */
#define NOFEEDBACK_FIRST_NS (2 * INT64_C(1000000000))
#define INITIAL_BYTES	    4380.0 /* 4.2, RFC 3390 */
#define DATA_LIMITED_LOSS   0.85   /* 4.3, step 4 */
#define RECEIVED_MAX	    8
#define BURST_DEFAULT_NS    1000000
#define HISTORY_PACKETS	    65536 /* 0.7 s of 1 Gb/s in 1400-byte packets */
#define HISTORY_PACKETS_MAX (1U << 24)
#define OPTIONS_KNOWN	    (TFRC_DAMPING | TFRC_SMALL_PACKETS)
#define PACKET_DEFAULT	    1460
#define RTT_MIN_NS	    1000 /* what the wire can say */

#define SMALL_GAP_NS 10000000 /* RFC 4828, 4.2: the least gap */
/*
 * The nofeedback timer's least: as TCP's, for a host is busy with other things
 * for longer than a short round trip.
 */
#define NOFEEDBACK_LEAST_NS 200000000

/* p that is told may be that much below the one that the holes give: at 20 % loss
 * the rate goes with its 3.5th power. */
#define AUDIT_TOLERANCE 0.97
/* Answers over which t_delay may be no more than the gap to the next packet. */
#define DELAY_ANSWERS 16
/* Round trips that packets' fate may be left open, and then not told at all. */
#define LAG_RTTS 4
/* So many are no lag: those of a slow stream are further apart than that. */
#define LAG_PACKETS 16
/* The share of packets lost at random beyond which no one is believed. */
#define RANDOM_MAX    0.3
#define RANDOM_WEIGHT 0.002

/* UDDJ_EASE; what each was measured against: docs/tfrc.md */
#define EASE	       0.95 /* what a congested round trip leaves of the target */
#define QUEUE_KEPT_S   0.005 /* a queue that is left alone: UDDJ_QUEUE_NS */
#define QUEUE_DRAIN_S  0.1 /* the time that the rest of it should take to go */
#define QUEUE_OTHERS_S 0.025 /* one that we would not let stand */
#define YIELD_MAX      0.8   /* of the target, however long the queue */
#define GROW_FROM      0.85 /* who sends less of the target learns nothing of it */
#define PRESSURE_HIGH  20
#define PRESSURE_MAX   40
#define PRESSURE_FALL  2

struct received {
	double rate;
	tfrc_time at;
};

struct tfrc_sender {
	struct tfrc_sender_config config;
	struct audit audit;
	double packet_bytes;
	tfrc_time rtt;
	tfrc_time rtt_sample;
	tfrc_time rtt_low;
	tfrc_time whole_low; /* the least from a packet to its answer, t_delay
				included */
	double rtt_sqmean;
	tfrc_time delay_ns;	/* t_delay of the newest answer, and is the */
	bool delay_open;	/* packet after its echo still to be sent? */
	double delay_excess_ns; /* what t_delay is too much in the mean */
	unsigned int delays;
	double rate;
	double rate_equation;
	double p;
	double p_audited;
	double random_share; /* of packets, said to be lost at random; a moving
				mean */
	struct received received[RECEIVED_MAX]; /* empty: infinity */
	unsigned int received_count;
	bool any_feedback;
	double received_top; /* the largest X_recv before the first loss */
	tfrc_time lag_since; /* the receiver is behind since; TFRC_NEVER: not */
	bool eased;	     /* UDDJ_EASE: slow start is over */
	double target;	     /* UDDJ_EASE: the rate without a queue, bytes/s */
	double climb;	     /* UDDJ_EASE: the most, after a silence; 0: none */
	double queue_s;	     /* UDDJ's q as told, and how it changes, s/s */
	double queue_slope;
	double queue_slope_from_s; /* q where the slope is measured from */
	tfrc_time queue_slope_since;
	int pressure; /* UDDJ_EASE: round trips with others' queue, less those
			 without */
	bool congested;
	bool data_limited;
	bool fin_acked;
	bool rejected;
	uint32_t challenge; /* of the receiver's, to be repeated */
	tfrc_time last_doubled;
	uint32_t loss_events;

	tfrc_time slot;	   /* when the newest packet was to leave */
	double slot_bytes; /* its size; 0: none has left */
	bool waits;	   /* there is data, and the rate holds it back */
	tfrc_time nofeedback_at;
	bool idle; /* nothing was sent since the timer was set */

	uint64_t payload_sent;
	uint64_t feedbacks;
	uint64_t refused;
	uint64_t expirations;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double seconds(tfrc_time t)
{
	return (double)t / NS_PER_S;
}

static tfrc_time nanoseconds(double s)
{
	return s < 1e9 ? (tfrc_time)(s * NS_PER_S) : (tfrc_time)1e18;
}

/* RFC 4828 */
static bool is_small(const struct tfrc_sender *s)
{
	return s->config.options & TFRC_SMALL_PACKETS;
}

static bool is_possible(const struct tfrc_sender_config *config)
{
	return config->packet_bytes <= TFRC_PACKET_MAX_BYTES &&
	       !(config->options & ~(uint32_t)OPTIONS_KNOWN) &&
	       (unsigned int)config->discrimination <= TFRC_LOSS_WIRELESS &&
	       (unsigned int)config->uddj_law <= TFRC_UDDJ_CLASSIFY &&
	       config->max_rate >= 0 && isfinite(config->max_rate) &&
	       config->burst_ns >= 0 && config->burst_ns < WIRE_TIME_MAX &&
	       config->history_packets <= HISTORY_PACKETS_MAX &&
	       !config->reserved;
}

struct tfrc_sender *tfrc_sender_new(const struct tfrc_sender_config *config,
				    size_t config_bytes, tfrc_time now)
{
	struct tfrc_sender *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (!sized_in(&s->config, sizeof(s->config), config, config_bytes) ||
	    !is_possible(&s->config)) {
		free(s);
		errno = EINVAL;
		return NULL;
	}
	config = &s->config;
	if (!audit_init(&s->audit, s->config.key,
			config->history_packets ? config->history_packets
						: HISTORY_PACKETS,
			is_small(s),
			config->discrimination != TFRC_LOSS_TFRC)) {
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->packet_bytes = config->packet_bytes ? config->packet_bytes
					       : PACKET_DEFAULT;
	if (!s->config.burst_ns)
		s->config.burst_ns = BURST_DEFAULT_NS;
	s->rate = s->packet_bytes; /* 4.2: a packet a second */
	s->slot = now;
	s->lag_since = TFRC_NEVER;
	s->nofeedback_at = now + NOFEEDBACK_FIRST_NS;
	s->idle = true;
	return s;
}

void tfrc_sender_free(struct tfrc_sender *s)
{
	if (!s)
		return;
	audit_free(&s->audit);
	free(s);
}

void tfrc_sender_set_max_rate(struct tfrc_sender *s, double rate)
{
	s->config.max_rate = rate > 0 && isfinite(rate) ? rate : 0;
}

/* --- the rate ------------------------------------------------------------ */

static double least_rate(const struct tfrc_sender *s)
{
	return s->packet_bytes / T_MBI_S;
}

/* W_init / R; 0 before there is an R. */
static double initial_rate(const struct tfrc_sender *s)
{
	double window = smaller(4 * s->packet_bytes,
				larger(2 * s->packet_bytes, INITIAL_BYTES));

	return s->rtt ? window / seconds(s->rtt) : 0;
}

static double equation(const struct tfrc_sender *s, double p)
{
	return equation_rate(is_small(s), s->packet_bytes, seconds(s->rtt), p);
}

static double received_max(const struct tfrc_sender *s)
{
	double most = 0;

	if (!s->received_count)
		return INFINITY;
	for (unsigned int i = 0; i < s->received_count; i++)
		most = larger(most, s->received[i].rate);
	return most;
}

static void received_only(struct tfrc_sender *s, tfrc_time now, double rate)
{
	s->received[0] = (struct received){.rate = rate, .at = now};
	s->received_count = 1;
}

/* "Update X_recv_set" */
static void received_update(struct tfrc_sender *s, tfrc_time now, double rate)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < s->received_count; i++)
		if (now - s->received[i].at <= 2 * s->rtt)
			s->received[kept++] = s->received[i];
	if (kept == RECEIVED_MAX) {
		memmove(s->received, s->received + 1,
			(RECEIVED_MAX - 1) * sizeof(s->received[0]));
		kept--;
	}
	s->received[kept++] = (struct received){.rate = rate, .at = now};
	s->received_count = kept;
}

/* "Maximize X_recv_set" */
static void received_maximize(struct tfrc_sender *s, tfrc_time now, double rate)
{
	received_only(s, now,
		      s->received_count ? larger(rate, received_max(s)) : rate);
}

static void received_halve(struct tfrc_sender *s)
{
	for (unsigned int i = 0; i < s->received_count; i++)
		s->received[i].rate /= 2;
}

static void rate_set(struct tfrc_sender *s, double rate)
{
	s->rate = larger(rate, least_rate(s));
}

/* 4.3, step 4: the equation's rate, or slow start's. */
static void rate_update(struct tfrc_sender *s, tfrc_time now, double limit)
{
	if (s->p > 0) {
		rate_set(s, smaller(s->rate_equation, limit));
	} else if (now - s->last_doubled >= s->rtt) {
		rate_set(s,
			 larger(smaller(2 * s->rate, limit), initial_rate(s)));
		s->last_doubled = now;
	}
}

/* UDDJ's q. A slope over less than a part of a round trip is noise. */
static void note_queue(struct tfrc_sender *s, tfrc_time now, uint32_t queue_us)
{
	tfrc_time elapsed = now - s->queue_slope_since;

	s->queue_s = queue_us * 1e-6;
	if (elapsed <= 0 || elapsed < s->rtt / 4)
		return;
	s->queue_slope =
		(s->queue_s - s->queue_slope_from_s) / seconds(elapsed);
	s->queue_slope_from_s = s->queue_s;
	s->queue_slope_since = now;
}

/*
 * The share of the target that lets the queue drain: of the queue as it will be
 * a round trip later, when what is sent now gets there.
 */
static double ease_share(const struct tfrc_sender *s)
{
	double excess_s =
		s->queue_s + s->queue_slope * seconds(s->rtt) - QUEUE_KEPT_S;

	return 1 - smaller(larger(excess_s, 0) / QUEUE_DRAIN_S, YIELD_MAX);
}

/*
 * A queue that stays although we yield is someone else's, TCP's most likely.
 */
static void note_pressure(struct tfrc_sender *s)
{
	s->pressure += s->queue_s > QUEUE_OTHERS_S ? 1 : -PRESSURE_FALL;
	if (s->pressure < 0)
		s->pressure = 0;
	if (s->pressure > PRESSURE_MAX)
		s->pressure = PRESSURE_MAX;
}

/*
 * After a silence: twice as much each round trip, as in slow start (4.3), up to
 * where a queue is met. The flag alone may be an old one.
 */
static void climb_step(struct tfrc_sender *s)
{
	if (!(s->climb > 0))
		return;
	s->climb = larger(2 * s->climb, initial_rate(s));
	if (s->congested && s->queue_s > QUEUE_KEPT_S) {
		s->target = smaller(s->target, s->rate);
		s->climb = 0;
	}
}

/* Once in a round trip: the target, and whose the queue is. */
static void ease_step(struct tfrc_sender *s, tfrc_time now)
{
	if (now - s->last_doubled < s->rtt)
		return;
	s->last_doubled = now;
	climb_step(s);
	note_pressure(s);
	if (s->congested)
		s->target *= EASE;
	else if (s->rate >= GROW_FROM * s->target)
		s->target += s->packet_bytes / seconds(s->rtt);
}

/*
 * UDDJ_EASE. The first congested round trip ends slow start. From then on there
 * is a target, which grows by a packet a round trip and shrinks when that was
 * congested; and of it is sent what the queue allows. So the rate is back as
 * soon as a burst of others is over. After a silence it takes as many round
 * trips as in slow start: nobody knows the path any more.
 *
 * Never more than the equation allows for the losses by congestion. Beside
 * those who keep the queue full who goes on yielding would give way for ever:
 * there it is what the equation allows, as plain TFRC, and for all losses, as
 * in a queue that is always full nothing tells them apart.
 */
static void rate_ease(struct tfrc_sender *s, tfrc_time now, double received,
		      double limit)
{
	double ceiling = s->p > 0 ? smaller(s->rate_equation, limit) : limit;
	double p_all = larger(s->p, history_rate(&s->audit.all));

	if (!s->eased && !s->congested) {
		rate_update(s, now, limit);
		return;
	}
	if (!s->eased) {
		s->eased = true;
		s->target = received;
	}
	ease_step(s, now);
	if (p_all > 0 && s->pressure >= PRESSURE_HIGH) {
		rate_set(s, smaller(ceiling, equation(s, p_all)));
		s->target = s->rate;
		return;
	}
	if (smaller(s->climb, limit) >= s->target)
		s->climb = 0;
	if (s->climb > 0)
		ceiling = smaller(ceiling, s->climb);
	else
		s->target = smaller(s->target, limit);
	rate_set(s, smaller(s->target * ease_share(s), ceiling));
}

/* --- sending ------------------------------------------------------------- */

/* 4.5: X_inst; slower while the queue is longer than it has been. */
static double sending_rate(const struct tfrc_sender *s)
{
	double rate = s->rate;

	if ((s->config.options & TFRC_DAMPING) && s->rtt_sample > 0)
		rate = larger(rate * s->rtt_sqmean /
				      sqrt((double)s->rtt_sample),
			      least_rate(s));
	if (s->config.max_rate > 0)
		rate = smaller(rate, s->config.max_rate);
	return rate;
}

static tfrc_time packet_gap(const struct tfrc_sender *s, double bytes)
{
	tfrc_time gap = nanoseconds(bytes / sending_rate(s));

	return is_small(s) && gap < SMALL_GAP_NS ? SMALL_GAP_NS : gap;
}

static tfrc_time nofeedback_time(const struct tfrc_sender *s)
{
	tfrc_time time = nanoseconds(2 * s->packet_bytes / s->rate);

	if (time < 4 * s->rtt)
		time = 4 * s->rtt;
	return time < NOFEEDBACK_LEAST_NS ? NOFEEDBACK_LEAST_NS : time;
}

static void nofeedback_restart(struct tfrc_sender *s, tfrc_time now)
{
	s->nofeedback_at =
		now + (s->rtt ? nofeedback_time(s) : NOFEEDBACK_FIRST_NS);
	s->idle = true;
}

/* t_i + t_ipi of 8.3, with the rate of now: what was slow need not stay so. */
tfrc_time tfrc_sender_next_send(const struct tfrc_sender *s)
{
	return s->slot_bytes > 0 ? s->slot + packet_gap(s, s->slot_bytes)
				 : s->slot;
}

tfrc_time tfrc_sender_next_timer(const struct tfrc_sender *s)
{
	return s->nofeedback_at;
}

/* 8.3: what was not sent in time is credit, for a burst of so long at most. */
static void schedule(struct tfrc_sender *s, tfrc_time now, double bytes)
{
	tfrc_time credit = s->config.burst_ns;

	if (s->rtt && credit > s->rtt)
		credit = s->rtt;
	s->slot = tfrc_sender_next_send(s);
	if (s->slot < now - credit)
		s->slot = now - credit;
	s->slot_bytes = bytes;
}

static uint32_t microseconds(tfrc_time t)
{
	return t / 1000 < UINT32_MAX ? (uint32_t)(t / 1000) : UINT32_MAX;
}

/*
 * A receiver that got a packet and waits gets the next one, and echoes that,
 * unless it is lost or late: so t_delay is below the gap between the two, in
 * the mean about half of it. What is claimed beyond that in the mean is not
 * believed.
 */
static void note_delay(struct tfrc_sender *s, tfrc_time delay, tfrc_time gap)
{
	double excess_ns = (double)(delay - gap), most = (double)s->rtt;

	/* a host that was asleep, or a pause, is no reason to go by for long */
	excess_ns = larger(smaller(excess_ns, most), -most);
	s->delays += s->delays < DELAY_ANSWERS;
	s->delay_excess_ns += (excess_ns - s->delay_excess_ns) / s->delays;
}

/* The packet after the echo leaves later than the answer came. */
static void note_gap(struct tfrc_sender *s, tfrc_time now)
{
	uint64_t before = s->audit.next_seq - 1;

	if (!s->delay_open || before != s->audit.echo_seq)
		return;
	s->delay_open = false;
	note_delay(s, s->delay_ns, now - audit_sent_at(&s->audit, before));
}

/* Is it the rate that held back the packet that leaves now? */
static bool is_held(const struct tfrc_sender *s, tfrc_time now)
{
	return s->waits && now - tfrc_sender_next_send(s) <=
				   s->rtt / 4 + s->config.burst_ns;
}

int tfrc_sender_packet(struct tfrc_sender *s, tfrc_time now,
		       size_t payload_bytes, unsigned int flags,
		       uint8_t header[TFRC_DATA_HEADER_BYTES])
{
	struct wire_data data = {
		.flags = (uint8_t)(s->config.discrimination
					   << WIRE_DATA_DISCRIMINATE_SHIFT |
				   s->config.uddj_law << WIRE_DATA_LAW_SHIFT |
				   (is_small(s) ? WIRE_DATA_SMALL : 0) |
				   (flags & TFRC_FIN ? WIRE_DATA_FIN : 0)),
		.connection_id = s->config.connection_id,
		.seq = s->audit.next_seq,
		.send_time_ns = (uint64_t)now,
		.acked_edge = s->audit.edge,
		.nonce = nonce_of(s->config.key, s->audit.next_seq),
		.rtt_us = microseconds(s->rtt),
		.rtt_sample_us = microseconds(s->rtt_sample),
		.challenge = s->challenge,
	};
	size_t bytes = payload_bytes + TFRC_DATA_HEADER_BYTES;
	bool held = is_held(s, now);

	if (now < 0 || now >= WIRE_TIME_MAX ||
	    payload_bytes > TFRC_PACKET_MAX_BYTES ||
	    bytes > TFRC_PACKET_MAX_BYTES)
		return TFRC_E_FORMAT;
	if (s->audit.next_seq)
		note_gap(s, now);
	s->packet_bytes = s->audit.next_seq
				  ? 0.9 * s->packet_bytes + 0.1 * (double)bytes
				  : (double)bytes;
	schedule(s, now, (double)bytes);
	audit_sent(&s->audit, now, bytes, held, s->rtt);
	s->waits = (flags & TFRC_MORE) && tfrc_sender_next_send(s) > now;
	s->payload_sent += payload_bytes;
	if (s->nofeedback_at == TFRC_NEVER)
		nofeedback_restart(s, now);
	s->idle = false;
	wire_put_data(header, &data);
	return 0;
}

/* --- feedback ------------------------------------------------------------ */

/*
 * The first answer is sent at once: a wait is not believed there at all. Later
 * what is too much in the mean comes off each, also off those below it.
 */
static tfrc_time believed_delay(struct tfrc_sender *s,
				const struct wire_feedback *fb)
{
	tfrc_time gap = audit_gap_after(&s->audit, fb->echo_seq);

	if (!s->rtt)
		return 0;
	s->delay_ns = (tfrc_time)fb->delay_ns;
	s->delay_open = gap == TFRC_NEVER;
	if (!s->delay_open)
		note_delay(s, s->delay_ns, gap);
	return s->delay_ns - (tfrc_time)larger(s->delay_excess_ns, 0);
}

static void take_rtt(struct tfrc_sender *s, tfrc_time now,
		     const struct wire_feedback *fb)
{
	tfrc_time whole = now - audit_sent_at(&s->audit, fb->echo_seq);
	tfrc_time sample = whole - believed_delay(s, fb);

	if (whole < RTT_MIN_NS)
		whole = RTT_MIN_NS;
	if (!s->whole_low || whole < s->whole_low)
		s->whole_low = whole;
	/* who claims to have waited longer than the whole round trip is not
	 * believed */
	if (sample < RTT_MIN_NS)
		sample = whole;
	/*
	 * Nor that a round trip is shorter than the quickest answer of all was:
	 * an honest receiver sends one at once now and then.
	 */
	if (sample < s->whole_low)
		sample = s->whole_low;
	s->rtt_sample = sample;
	if (!s->rtt_low || sample < s->rtt_low)
		s->rtt_low = sample;
	if (!s->rtt) {
		s->rtt = sample;
		s->rtt_sqmean = sqrt((double)sample);
		return;
	}
	s->rtt = (tfrc_time)(RTT_WEIGHT * (double)s->rtt +
			     (1 - RTT_WEIGHT) * (double)sample);
	s->rtt_sqmean = RTT_SQMEAN_WEIGHT * s->rtt_sqmean +
			(1 - RTT_SQMEAN_WEIGHT) * sqrt((double)sample);
}

/* A moving mean by packets. */
static void take_random(struct tfrc_sender *s, uint64_t lost, uint64_t packets)
{
	double keep = pow(1 - RANDOM_WEIGHT, (double)packets);

	if (packets)
		s->random_share = keep * s->random_share +
				  (1 - keep) * (double)lost / (double)packets;
}

/* p as told, unless the holes told say more. */
static double believed_p(struct tfrc_sender *s, const struct wire_feedback *fb)
{
	double p = wire_fraction_value(fb->p);

	s->p_audited = history_rate(&s->audit.history);
	if (p < AUDIT_TOLERANCE * s->p_audited)
		p = s->p_audited;
	if (s->config.discrimination != TFRC_LOSS_TFRC &&
	    s->random_share > RANDOM_MAX)
		p = larger(p, s->random_share);
	return p;
}

static double believed_rate(const struct tfrc_sender *s,
			    const struct wire_feedback *fb)
{
	double rate = wire_rate_value(fb->x_recv),
	       most = audit_rate_max(&s->audit);

	return most > 0 ? smaller(rate, most) : rate;
}

/* 6.3.1 at the sender: so that its first interval is like the receiver's. */
static void seed_audit(struct tfrc_sender *s, const struct wire_feedback *fb)
{
	if (s->audit.all.events && s->audit.history.events)
		return;
	if (!s->audit.all.events)
		s->received_top =
			larger(s->received_top,
			       smaller(believed_rate(s, fb), s->rate));
	audit_first_interval(
		&s->audit,
		equation_first_interval(is_small(s), s->packet_bytes,
					seconds(s->rtt), s->received_top));
}

/* 4.3, step 4: the limit from what has been received. */
static double received_limit(struct tfrc_sender *s, tfrc_time now, double rate,
			     bool new_loss)
{
	if (!s->data_limited) {
		received_update(s, now, rate);
		return 2 * received_max(s);
	}
	if (!new_loss) {
		received_maximize(s, now, rate);
		return 2 * received_max(s);
	}
	received_halve(s);
	received_maximize(s, now, DATA_LIMITED_LOSS * rate);
	return received_max(s);
}

/* 4.2: the first feedback gives the first round trip time, and the initial
 * rate. */
static void first_feedback(struct tfrc_sender *s, tfrc_time now)
{
	s->any_feedback = true;
	s->last_doubled = now;
	rate_set(s, initial_rate(s));
}

static bool eases(const struct tfrc_sender *s)
{
	return s->config.discrimination == TFRC_LOSS_UDDJ &&
	       s->config.uddj_law == TFRC_UDDJ_EASE;
}

static void later_feedback(struct tfrc_sender *s, tfrc_time now,
			   const struct wire_feedback *fb)
{
	double p_before = s->p, rate = believed_rate(s, fb), limit;
	bool new_loss;

	note_queue(s, now, fb->queue_us);
	s->p = believed_p(s, fb);
	new_loss = fb->loss_events != s->loss_events || s->p > p_before;
	limit = received_limit(s, now, rate, new_loss);
	s->rate_equation = s->p > 0 ? equation(s, s->p) : 0;
	if (eases(s))
		rate_ease(s, now, rate, limit);
	else
		rate_update(s, now, limit);
}

static int check_feedback(const struct tfrc_sender *s, const void *packet,
			  size_t bytes, struct wire_feedback *fb)
{
	int error = wire_get_feedback(packet, bytes, fb);

	if (error)
		return error;
	if (fb->connection_id != s->config.connection_id)
		return TFRC_E_STRANGER;
	error = audit_check(&s->audit, fb);
	return !error && fb->flags & WIRE_FEEDBACK_UNKNOWN ? TFRC_E_UNKNOWN
							   : error;
}

/*
 * An honest receiver knows a packet's fate when three more have come. One that
 * leaves it open for long, and goes on so, hides losses: it is not listened to
 * any more, and the nofeedback timer does the rest.
 */
static int check_lag(struct tfrc_sender *s, tfrc_time now,
		     const struct wire_feedback *fb)
{
	tfrc_time most = LAG_RTTS * s->rtt;

	if (!s->rtt || fb->edge + LAG_PACKETS > fb->echo_seq ||
	    audit_lag(&s->audit, fb) <= most) {
		s->lag_since = TFRC_NEVER;
		return 0;
	}
	if (s->lag_since == TFRC_NEVER)
		s->lag_since = now;
	return now - s->lag_since > most ? TFRC_E_FORGED : 0;
}

int tfrc_sender_feedback(struct tfrc_sender *s, tfrc_time now,
			 const void *packet, size_t bytes)
{
	uint64_t lost = s->audit.random_counted, edge = s->audit.edge;
	struct wire_feedback fb;
	int error = check_feedback(s, packet, bytes, &fb);

	if (!error)
		error = check_lag(s, now, &fb);
	if (error) {
		s->rejected |= error == TFRC_E_UNKNOWN;
		s->refused++;
		return error;
	}
	s->feedbacks++;
	s->data_limited = audit_data_limited(&s->audit, &fb, s->rtt);
	s->congested = fb.flags & WIRE_FEEDBACK_CONGESTED;
	s->challenge = fb.challenge;
	s->fin_acked = s->fin_acked || fb.flags & WIRE_FEEDBACK_FIN;
	take_rtt(s, now, &fb);
	seed_audit(s, &fb);
	audit_take(&s->audit, &fb, s->rtt);
	take_random(s, s->audit.random_counted - lost, s->audit.edge - edge);
	if (s->any_feedback)
		later_feedback(s, now, &fb);
	else
		first_feedback(s, now);
	s->loss_events = fb.loss_events;
	nofeedback_restart(s, now);
	return 0;
}

/* --- silence ------------------------------------------------------------- */

/* "Update_Limits", 4.4 */
static void update_limits(struct tfrc_sender *s, tfrc_time now, double limit)
{
	limit = larger(limit, least_rate(s));
	received_only(s, now, limit / 2);
	s->rate_equation = equation(s, s->p);
	rate_set(s, smaller(s->rate_equation, limit));
}

static bool has_spare_rate(const struct tfrc_sender *s)
{
	double recover = initial_rate(s);

	if (s->p > 0)
		return received_max(s) < recover;
	return s->rate < 2 * recover;
}

void tfrc_sender_timer(struct tfrc_sender *s, tfrc_time now)
{
	double received = received_max(s);

	if (now < s->nofeedback_at)
		return;
	if (s->idle && (!s->any_feedback || has_spare_rate(s))) {
		/* nothing was sent that could be answered: wait until something
		 * is */
		s->nofeedback_at = TFRC_NEVER;
		return;
	}
	s->expirations++;
	if (!(s->p > 0))
		rate_set(s, s->rate / 2);
	else if (s->rate_equation > 2 * received)
		update_limits(s, now, received);
	else
		update_limits(s, now, s->rate_equation / 2);
	if (s->eased)
		s->climb = s->rate;
	nofeedback_restart(s, now);
}

void tfrc_sender_get_info(const struct tfrc_sender *s,
			  struct tfrc_sender_info *info, size_t info_bytes)
{
	double received = received_max(s);
	uint64_t headers = s->audit.arrived_packets * TFRC_DATA_HEADER_BYTES;
	struct tfrc_sender_info all = {
		.rate = s->rate,
		.rate_equation = s->rate_equation,
		.rate_received = isfinite(received) ? received : 0,
		.loss_event_rate = s->p,
		.loss_event_rate_audited = s->p_audited,
		.rtt_ns = s->rtt,
		.rtt_sample_ns = s->rtt_sample,
		.rtt_min_ns = s->rtt_low,
		.packets_sent = s->audit.next_seq,
		.bytes_sent = s->payload_sent +
			      s->audit.next_seq * TFRC_DATA_HEADER_BYTES,
		.payload_sent = s->payload_sent,
		.payload_arrived = s->audit.arrived_bytes > headers
					   ? s->audit.arrived_bytes - headers
					   : 0,
		.packets_lost_congestion = s->audit.lost_congestion,
		.packets_lost_random = s->audit.lost_random,
		.feedbacks = s->feedbacks,
		.feedbacks_refused = s->refused,
		.nofeedback_expirations = s->expirations,
		.congested = s->congested,
		.slow_start = !(s->p > 0) && !s->eased,
		.data_limited = s->data_limited,
		.fin_acked = s->fin_acked,
		.challenged = s->challenge,
		.rejected = s->rejected,
	};

	sized_out(info, info_bytes, &all, sizeof(all));
}

const char *tfrc_error_text(int error)
{
	switch (error) {
	case TFRC_E_FORMAT:
		return "not a packet of this protocol version";
	case TFRC_E_STRANGER:
		return "of another connection";
	case TFRC_E_STALE:
		return "old or repeated";
	case TFRC_E_FORGED:
		return "claims what cannot be";
	case TFRC_E_UNKNOWN:
		return "the receiver does not know the connection";
	case 0:
		return "no error";
	default:
		return "unknown error";
	}
}

const char *tfrc_version(void)
{
	return TFRC_VERSION;
}
