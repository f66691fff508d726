// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver: RFC 5348, 6, with the loss history of 5 (history.h).
 *
 * Packets come in any order. A slot each is kept until its fate and that of
 * all before it is known: it has come, or three with higher numbers have
 * (NDUPACK, 5.1). Then the edge moves past it, and everything else sees packets
 * in the order of sending.
 *
 *      received, in order | fate not known | nothing yet
 *      -------------------|----------------|------------
 *                        edge            high
 *
 * The sender checks what is said (audit.h), so holes are told again until it
 * has said that it knows them, a round trip later. There is room for a hundred.
 * When losses come faster, holes and what arrived between them are told as one:
 * the receiver then claims less than it has. When even that does not help, as
 * no feedback gets through, the edge waits.
 */
#include "equation.h"
#include "history.h"
#include "sized.h"
#include "uddj.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NDUPACK 3
#ifndef SLOTS	   /* fuzzers have few: sooner at their end */
#define SLOTS 4096 /* the furthest that a packet may come early */
#endif
#define AMPLIFICATION_MAX 3
#define SLOT_OF(seq)	  ((seq) % SLOTS)
/* From here on new holes are merged, so that each feedback has room for one at
 * least. */
#define HOLES_CROWDED (WIRE_HOLES_MAX - 4)
#define HOLE_AT(r, i) (&(r)->holes[((r)->holes_first + (i)) % WIRE_HOLES_MAX])

struct slot {
	bool filled;
	uint64_t seq;
	tfrc_time sent;
	tfrc_time arrived;
	tfrc_time rtt_sample;
	uint32_t nonce;
};

struct tfrc_receiver {
	struct tfrc_receiver_config config;
	bool (*passed_queues)(void *arg, uint64_t seq); /* tfrc_testbed.h */
	void *passed_arg;
	bool started;
	bool confirmed;
	uint64_t connection_id;
	enum tfrc_discrimination discrimination;
	enum tfrc_uddj_law law;
	bool fin;
	uint64_t fin_seq;

	/* what has come */
	struct slot slots[SLOTS]; /* SEQ stays when FILLED does not */
	bool used[SLOTS];	  /* there is a SEQ */
	uint64_t edge;
	uint64_t top[NDUPACK]; /* the highest numbers that came, +1; the highest
				  first */
	struct slot before;    /* the newest in order, if FILLED */
	uint32_t nonce_sum;
	struct wire_hole holes[WIRE_HOLES_MAX]; /* a ring */
	unsigned int holes_first;
	unsigned int holes_count;
	unsigned int untold;	 /* the newest of them: in no feedback yet */
	uint32_t since_hole_sum; /* nonces of what came after the newest */

	/* what follows from it */
	struct tfrc_history history;
	struct uddj uddj;
	tfrc_time rtt;	     /* R as the sender tells */
	double packet_bytes; /* s, mean */
	double rate_received;
	double rate_received_max;

	/* feedback */
	tfrc_time feedback_at; /* TFRC_NEVER: when data comes */
	tfrc_time last_feedback;
	tfrc_time interval_since;
	tfrc_time rate_since;
	uint64_t rate_bytes;
	bool news; /* data came since the last feedback */
	uint64_t number;
	uint64_t feedback_bytes;
	uint64_t data_bytes;
	struct slot newest; /* that with the highest number */

	uint64_t packets_received;
	uint64_t payload_received;
	uint64_t lost_congestion;
	uint64_t lost_random;
	uint64_t judged[2][2];
	uint64_t late;
	uint64_t stale;
	uint64_t refused;
};

struct tfrc_receiver *
tfrc_receiver_new(const struct tfrc_receiver_config *config,
		  size_t config_bytes)
{
	struct tfrc_receiver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	if (!sized_in(&r->config, sizeof(r->config), config,
		      config ? config_bytes : 0)) {
		free(r);
		errno = EINVAL;
		return NULL;
	}
	r->confirmed = !r->config.challenge;
	r->feedback_at = TFRC_NEVER;
	return r;
}

void tfrc_testbed_oracle(struct tfrc_receiver *r,
			 bool (*passed_queues)(void *arg, uint64_t seq),
			 void *arg)
{
	r->passed_queues = passed_queues;
	r->passed_arg = arg;
}

void tfrc_testbed_judged(const struct tfrc_receiver *r, uint64_t judged[2][2])
{
	memcpy(judged, r->judged, sizeof(r->judged));
}

void tfrc_receiver_free(struct tfrc_receiver *r)
{
	free(r);
}

/* --- losses --------------------------------------------------------------- */

static bool passed_queues(const struct tfrc_receiver *r, uint64_t seq)
{
	return r->passed_queues && r->passed_queues(r->passed_arg, seq);
}

static bool is_random(const struct tfrc_receiver *r, uint64_t seq,
		      bool uddj_says_congestion)
{
	if (r->discrimination == TFRC_LOSS_WIRELESS)
		return passed_queues(r, seq);
	return r->discrimination == TFRC_LOSS_UDDJ && !uddj_says_congestion;
}

/* Testbeds: what was said against what was true. */
static void judge(struct tfrc_receiver *r, uint64_t first, uint32_t length,
		  bool said_random)
{
	if (!r->passed_queues)
		return;
	/* the oracle does not remember more, and a run that long is no
	 * judgement */
	for (uint64_t seq = first; seq < first + length && seq - first < SLOTS;
	     seq++)
		r->judged[passed_queues(r, seq)][said_random]++;
}

/*
 * 6.3.1: before the first loss counts, what its interval is to count as: the
 * one that fits the largest rate so far, half of what was too much.
 */
static void seed_history(struct tfrc_receiver *r, tfrc_time now)
{
	double target = r->rate_received_max;
	double elapsed_s = (double)(now - r->rate_since) * 1e-9;

	if (r->history.events)
		return;
	if (!(target > 0) && elapsed_s > 0)
		target = (double)r->rate_bytes / elapsed_s;
	r->history.first =
		equation_first_interval(r->history.small, r->packet_bytes,
					(double)r->rtt * 1e-9, target);
}

/* The newest hole and one that begins at FIRST become one, if they may. */
static bool merge_hole(struct tfrc_receiver *r, uint64_t first, uint32_t length,
		       bool random)
{
	struct wire_hole *last = HOLE_AT(r, r->holes_count - 1);
	bool touch = last->first + last->length == first &&
		     last->random == random;
	uint64_t whole = first + length - last->first;

	if (!r->untold || whole > WIRE_HOLE_LENGTH_MAX ||
	    (!touch && r->holes_count < HOLES_CROWDED))
		return false;
	last->length = (uint32_t)whole;
	last->random &= random;
	r->nonce_sum ^= r->since_hole_sum;
	r->since_hole_sum = 0;
	return true;
}

static void note_hole(struct tfrc_receiver *r, uint64_t first, uint32_t length,
		      bool random)
{
	if (merge_hole(r, first, length, random))
		return;
	*HOLE_AT(r, r->holes_count) = (struct wire_hole){
		.first = first, .length = length, .random = random};
	r->holes_count++;
	r->untold++;
	r->since_hole_sum = 0;
}

/* 5.2: lost packets are spread evenly over the time between those around them. */
static tfrc_time interpolate(const struct slot *before,
			     const struct slot *after, uint64_t seq,
			     double *gap_ns)
{
	if (!before->filled) {
		*gap_ns = 0;
		return after->arrived;
	}
	*gap_ns = (double)(after->arrived - before->arrived) /
		  (double)(after->seq - before->seq);
	if (*gap_ns < 0)
		*gap_ns = 0;
	return before->arrived +
	       (tfrc_time)(*gap_ns * (double)(seq - before->seq));
}

/* LENGTH packets from FIRST on are lost, for one cause. */
static bool lose_run(struct tfrc_receiver *r, tfrc_time now, uint64_t first,
		     uint32_t length, bool random, const struct slot *after)
{
	double gap_ns;
	tfrc_time time = interpolate(&r->before, after, first, &gap_ns);

	note_hole(r, first, length, random);
	judge(r, first, length, random);
	if (random) {
		r->lost_random += length;
		history_arrived(&r->history, first + length);
		return false;
	}
	r->lost_congestion += length;
	seed_history(r, now);
	return history_lost_run(&r->history, first, length, time, gap_ns,
				r->rtt);
}

/*
 * Packets from the edge to END (excluded) are lost; AFTER came after them. An
 * oracle may know them one by one. Returns whether a loss event began.
 */
static bool lose(struct tfrc_receiver *r, tfrc_time now, uint64_t end,
		 const struct slot *after)
{
	bool congestion = uddj_lost(&r->uddj), event = false;

	while (r->edge < end && r->holes_count < WIRE_HOLES_MAX) {
		uint64_t first = r->edge;
		uint64_t last = end - first > WIRE_HOLE_LENGTH_MAX
					? first + WIRE_HOLE_LENGTH_MAX
					: end;
		bool random = is_random(r, first, congestion);

		if (r->discrimination == TFRC_LOSS_WIRELESS &&
		    end - first <= SLOTS) {
			for (last = first + 1; last < end; last++)
				if (is_random(r, last, congestion) != random)
					break;
		}
		event |= lose_run(r, now, first, (uint32_t)(last - first),
				  random, after);
		r->edge = last;
	}
	return event;
}

/* --- the edge --------------------------------------------------------------- */

static struct slot *slot_at(struct tfrc_receiver *r, uint64_t seq)
{
	struct slot *slot = &r->slots[SLOT_OF(seq)];

	return slot->filled && slot->seq == seq ? slot : NULL;
}

/* The next packet in order has come. */
static void take_in_order(struct tfrc_receiver *r, struct slot *slot)
{
	uddj_packet(&r->uddj, slot->sent, slot->arrived, slot->rtt_sample);
	history_arrived(&r->history, slot->seq + 1);
	r->nonce_sum ^= slot->nonce;
	r->since_hole_sum ^= slot->nonce;
	r->before = *slot;
	slot->filled = false;
	r->edge = slot->seq + 1;
}

static struct slot *next_filled(struct tfrc_receiver *r, uint64_t end)
{
	for (uint64_t seq = r->edge; seq < end; seq++) {
		struct slot *slot = slot_at(r, seq);

		if (slot)
			return slot;
	}
	return NULL;
}

/* Move the edge to where a packet's fate is open. Returns whether a loss event
 * began. */
static bool advance(struct tfrc_receiver *r, tfrc_time now)
{
	bool event = false;

	for (;;) {
		struct slot *slot = slot_at(r, r->edge);

		if (slot) {
			take_in_order(r, slot);
			continue;
		}
		/* top[] is one above the number: three have come from top[2] -
		 * 1 on */
		if (!r->top[NDUPACK - 1] ||
		    r->edge >= r->top[NDUPACK - 1] - 1 ||
		    r->holes_count == WIRE_HOLES_MAX)
			return event;
		slot = next_filled(r, r->top[NDUPACK - 1]);
		event |= lose(r, now,
			      slot ? slot->seq : r->top[NDUPACK - 1] - 1,
			      slot ? slot : &r->newest);
	}
}

static void note_top(struct tfrc_receiver *r, uint64_t seq)
{
	for (unsigned int i = 0; i < NDUPACK; i++) {
		if (seq + 1 <= r->top[i])
			continue;
		memmove(&r->top[i + 1], &r->top[i],
			(NDUPACK - 1 - i) * sizeof(r->top[0]));
		r->top[i] = seq + 1;
		return;
	}
}

/*
 * A packet is further ahead than there are slots: what it would push out is
 * decided now. Slots hold what came, so this is few steps whatever SEQ is.
 */
static bool make_room(struct tfrc_receiver *r, tfrc_time now, uint64_t seq,
		      const struct slot *packet)
{
	uint64_t keep_from = seq - SLOTS + 1;
	bool event = false;

	while (r->edge < keep_from && r->holes_count < WIRE_HOLES_MAX) {
		uint64_t end = r->edge + SLOTS < keep_from ? r->edge + SLOTS
							   : keep_from;
		struct slot *slot = next_filled(r, end);

		if (slot && slot->seq == r->edge) {
			take_in_order(r, slot);
			continue;
		}
		if (!slot) /* no slot is filled beyond those that were looked at
			    */
			end = end < r->edge + SLOTS ? end : keep_from;
		event |= lose(r, now, slot ? slot->seq : end,
			      slot ? slot : packet);
	}
	return event;
}

/*
 * Is there room for the holes before a packet that is too far ahead? When it
 * is crowded one more will do, as the others are merged with it.
 */
static bool has_room(const struct tfrc_receiver *r)
{
	return r->holes_count + 2 <= WIRE_HOLES_MAX;
}

/* --- data packets ----------------------------------------------------------- */

static void forget_holes(struct tfrc_receiver *r, uint64_t acked_edge)
{
	while (r->holes_count) {
		const struct wire_hole *hole = HOLE_AT(r, 0);

		if (hole->first + hole->length > acked_edge)
			return;
		r->holes_first = (r->holes_first + 1) % WIRE_HOLES_MAX;
		r->holes_count--;
	}
}

static void start(struct tfrc_receiver *r, const struct wire_data *data,
		  tfrc_time arrival)
{
	r->started = true;
	r->connection_id = data->connection_id;
	r->discrimination = (data->flags & WIRE_DATA_DISCRIMINATE) >>
			    WIRE_DATA_DISCRIMINATE_SHIFT;
	r->law = (data->flags & WIRE_DATA_LAW) >> WIRE_DATA_LAW_SHIFT;
	r->history.small = data->flags & WIRE_DATA_SMALL;
	r->rate_since = arrival;
	r->last_feedback = arrival;
	r->interval_since = arrival;
}

/*
 * 6.2: X_recv is of the last round trip. After one without data, in which the
 * feedback timer went on, that begins a round trip before what comes now.
 */
static void end_pause(struct tfrc_receiver *r, tfrc_time now)
{
	if (r->news || !r->rtt || now - r->last_feedback < r->rtt)
		return;
	r->rate_since = now - r->rtt;
	r->rate_bytes = 0;
}

static void note_packet(struct tfrc_receiver *r, tfrc_time now,
			const struct wire_data *data, size_t bytes)
{
	if (data->seq >= r->top[0]) /* what comes late says an old R */
		r->rtt = (tfrc_time)data->rtt_us * 1000;
	end_pause(r, now);
	r->packet_bytes = r->packets_received
				  ? 0.9 * r->packet_bytes + 0.1 * (double)bytes
				  : (double)bytes;
	r->packets_received++;
	r->payload_received += bytes - TFRC_DATA_HEADER_BYTES;
	r->rate_bytes += bytes;
	r->data_bytes += bytes;
	if (data->flags & WIRE_DATA_FIN) {
		r->fin = true;
		r->fin_seq = data->seq;
	}
}

/* 6.1: is feedback due at once? */
static bool is_due(struct tfrc_receiver *r, tfrc_time now, bool event)
{
	if (event || r->fin || !r->number || !r->rtt)
		return true;
	/* nothing came for a round trip: the timer has expired without news
	 * (6.2) */
	return now - r->last_feedback >= r->rtt;
}

static int refuse(struct tfrc_receiver *r, int error)
{
	if (error == TFRC_E_STALE)
		r->stale++;
	else
		r->refused++;
	return error;
}

/*
 * Has packet SEQ, below the edge, not come before? Its slot knows, as long as
 * no later packet has used it.
 */
static bool is_late(const struct tfrc_receiver *r, uint64_t seq)
{
	const struct slot *slot = &r->slots[SLOT_OF(seq)];

	return r->edge - seq <= SLOTS && !slot->filled &&
	       (!r->used[SLOT_OF(seq)] || slot->seq < seq);
}

/*
 * No room for a packet before the sender knows of the holes. It may be that all
 * feedback with them was lost, and no packet is news then: so it is told again.
 */
static int no_room(struct tfrc_receiver *r, tfrc_time now, size_t bytes)
{
	end_pause(r, now);
	r->rate_bytes += bytes;
	r->data_bytes += bytes;
	r->news = true;
	return refuse(r, TFRC_E_STALE);
}

static int check(struct tfrc_receiver *r, const uint8_t *packet, size_t bytes,
		 tfrc_time arrival, struct wire_data *data)
{
	int error = bytes > TFRC_PACKET_MAX_BYTES
			    ? TFRC_E_FORMAT
			    : wire_get_data(packet, bytes, data);

	if (error || arrival < 0 || arrival >= WIRE_TIME_MAX)
		return TFRC_E_FORMAT;
	if (r->started && data->connection_id != r->connection_id)
		return TFRC_E_STRANGER;
	/* 2^31 packets lost in a row: no sender goes on like that */
	if (data->seq > r->edge && data->seq - r->edge > WIRE_HOLE_LENGTH_MAX)
		return TFRC_E_FORGED;
	if (data->seq < r->edge)
		return is_late(r, data->seq) ? TFRC_LATE : TFRC_E_STALE;
	return slot_at(r, data->seq) ? TFRC_E_STALE : 0;
}

static void describe(const struct tfrc_receiver *r,
		     const struct wire_data *data, const struct slot *slot,
		     const uint8_t *packet, size_t bytes, struct tfrc_data *out,
		     size_t out_bytes)
{
	struct tfrc_data all = {
		.seq = data->seq,
		.payload = packet + TFRC_DATA_HEADER_BYTES,
		.payload_bytes = bytes - TFRC_DATA_HEADER_BYTES,
		.transit_ns = slot->arrived - slot->sent,
		.fin = data->flags & WIRE_DATA_FIN,
		.confirmed = r->confirmed,
	};

	sized_out(out, out_bytes, &all, sizeof(all));
}

int tfrc_receiver_data(struct tfrc_receiver *r, tfrc_time now,
		       tfrc_time arrival, const void *packet, size_t bytes,
		       struct tfrc_data *out, size_t out_bytes)
{
	struct wire_data data;
	struct slot slot;
	bool event = false;
	int error = check(r, packet, bytes, arrival, &data); /* or TFRC_LATE */

	if (error < 0)
		return refuse(r, error);
	slot = (struct slot){.filled = true,
			     .seq = data.seq,
			     .sent = (tfrc_time)data.send_time_ns,
			     .arrived = arrival,
			     .rtt_sample = (tfrc_time)data.rtt_sample_us * 1000,
			     .nonce = data.nonce};
	if (!r->started)
		start(r, &data, arrival);
	forget_holes(r, data.acked_edge);
	r->confirmed |= data.challenge == r->config.challenge;
	if (error == TFRC_LATE) {
		slot.filled = false;
		r->late++;
	} else if (data.seq - r->edge >= SLOTS) {
		if (!has_room(r))
			return no_room(r, now, bytes);
		event = make_room(r, now, data.seq, &slot);
	}
	note_packet(r, now, &data, bytes);
	r->slots[SLOT_OF(data.seq)] = slot;
	r->used[SLOT_OF(data.seq)] = true;
	if (out)
		describe(r, &data, &slot, packet, bytes, out, out_bytes);
	if (error == TFRC_LATE)
		return TFRC_LATE;
	if (data.seq + 1 > r->top[0])
		r->newest = slot;
	note_top(r, data.seq);
	event |= advance(r, now);
	r->news = true;
	if (is_due(r, now, event))
		r->feedback_at = now;
	return r->feedback_at <= now ? TFRC_FEEDBACK_DUE : TFRC_TAKEN;
}

/* --- feedback --------------------------------------------------------------- */

tfrc_time tfrc_receiver_next_timer(const struct tfrc_receiver *r)
{
	return r->news ? r->feedback_at : TFRC_NEVER;
}

/*
 * 6.2: X_recv is over a round trip at least. Feedback that comes early, as a
 * loss event began, leaves the measurement running.
 */
static void measure_rate(struct tfrc_receiver *r, tfrc_time now)
{
	tfrc_time elapsed = now - r->rate_since;

	if (elapsed <= 0)
		return;
	if (elapsed < r->rtt && r->rate_received > 0)
		return;
	/* the first packet of all opens the time that it is measured over */
	r->rate_received = (double)r->rate_bytes / ((double)elapsed * 1e-9);
	if (r->rtt && r->rate_received > r->rate_received_max)
		r->rate_received_max = r->rate_received;
	r->rate_bytes = 0;
	r->rate_since = now;
}

/* A round trip is over: was it congested, and is that a loss event? */
static void end_interval(struct tfrc_receiver *r, tfrc_time now)
{
	if (r->discrimination != TFRC_LOSS_UDDJ ||
	    now - r->interval_since < r->rtt)
		return;
	r->interval_since = now;
	if (!uddj_interval_end(&r->uddj))
		return;
	if (r->law != TFRC_UDDJ_MARK || !r->before.filled)
		return;
	seed_history(r, now);
	history_lost(&r->history, r->before.seq, r->before.arrived, r->rtt);
}

static size_t write_feedback(struct tfrc_receiver *r, tfrc_time now,
			     uint8_t packet[TFRC_FEEDBACK_MAX_BYTES])
{
	tfrc_time delay = now - r->newest.arrived;
	struct wire_feedback fb = {
		.connection_id = r->connection_id,
		.number = ++r->number,
		.echo_seq = r->newest.seq,
		.echo_nonce = r->newest.nonce,
		.delay_ns = delay > 0 && delay < WIRE_TIME_MAX ? (uint64_t)delay
							       : 0,
		.x_recv = wire_rate(r->rate_received),
		.p = wire_fraction(history_rate(&r->history)),
		.loss_events = (uint32_t)r->history.events,
		.edge = r->edge,
		.nonce_sum = r->nonce_sum,
		.queue_us = r->uddj.queue_ns < 4e12
				    ? (uint32_t)(r->uddj.queue_ns / 1000)
				    : UINT32_MAX,
		.challenge = r->confirmed ? 0 : r->config.challenge,
		.holes = (uint16_t)r->holes_count,
	};

	if (r->fin && r->confirmed) /* who says the end must be who began */
		fb.flags |= WIRE_FEEDBACK_FIN;
	if (r->discrimination == TFRC_LOSS_UDDJ && r->uddj.congested)
		fb.flags |= WIRE_FEEDBACK_CONGESTED;
	for (unsigned int i = 0; i < r->holes_count; i++)
		fb.hole[i] = *HOLE_AT(r, i);
	return wire_put_feedback(packet, &fb);
}

/*
 * Whoever sends under a false address must not get more sent there than a few
 * times what it sends itself (as RFC 9000, 8).
 */
static bool may_answer(const struct tfrc_receiver *r)
{
	size_t bytes =
		WIRE_FEEDBACK_HEADER_BYTES + r->holes_count * WIRE_HOLE_BYTES;

	return r->feedback_bytes + bytes <= AMPLIFICATION_MAX * r->data_bytes;
}

/* Who steers by the queue must hear of it in time; 6.2 asks for one. */
static int feedbacks_per_rtt(const struct tfrc_receiver *r)
{
	return r->discrimination == TFRC_LOSS_UDDJ ? 2 : 1;
}

size_t tfrc_receiver_feedback(struct tfrc_receiver *r, tfrc_time now,
			      uint8_t packet[TFRC_FEEDBACK_MAX_BYTES])
{
	size_t bytes;

	if (!r->news || now < r->feedback_at)
		return 0;
	if (!may_answer(r)) {
		r->news = false;
		return 0;
	}
	measure_rate(r, now);
	end_interval(r, now);
	r->news = false;
	r->untold = 0;
	r->last_feedback = now;
	r->feedback_at = now + r->rtt / feedbacks_per_rtt(r);
	bytes = write_feedback(r, now, packet);
	r->feedback_bytes += bytes;
	return bytes;
}

void tfrc_receiver_get_info(const struct tfrc_receiver *r,
			    struct tfrc_receiver_info *info, size_t info_bytes)
{
	struct tfrc_receiver_info all = {
		.rate_received = r->rate_received,
		.loss_event_rate = history_rate(&r->history),
		.loss_events = r->history.events,
		.rtt_ns = r->rtt,
		.packets_received = r->packets_received,
		.payload_received = r->payload_received,
		.packets_lost_congestion = r->lost_congestion,
		.packets_lost_random = r->lost_random,
		.packets_late = r->late,
		.packets_stale = r->stale,
		.packets_refused = r->refused,
		.congested_rtts = r->uddj.intervals,
		.queue_ns = (tfrc_time)r->uddj.queue_ns,
		.skew_ppm = r->uddj.skew.ratio * 1e6,
		.congested = r->uddj.congested,
		.fin = r->fin,
		.confirmed = r->confirmed,
		.discrimination = r->discrimination,
	};

	sized_out(info, info_bytes, &all, sizeof(all));
}

int tfrc_connection_of(const void *packet, size_t bytes,
		       uint64_t *connection_id)
{
	struct wire_data data;
	int error = wire_get_data(packet, bytes, &data);

	if (!error)
		*connection_id = data.connection_id;
	return error;
}

bool tfrc_is_answered(const void *packet, size_t bytes)
{
	struct wire_data data;

	return !wire_get_data(packet, bytes, &data) &&
	       (data.acked_edge || data.challenge);
}
