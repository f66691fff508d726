// SPDX-License-Identifier: GPL-2.0-only
#include "audit.h"
#include "nonce.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 64
/*
 * A queue that empties lets packets arrive faster than they were sent; so does
 * an interval that is cut at a packet.
 */
#define RATE_SLACK 1.25
/*
 * A receiver that has no room for all holes tells of longer ones. It pays for
 * that with X_recv, and need not pay twice.
 */
#define RUN_COUNTED 4

bool audit_init(struct audit *a, const uint8_t *key, uint32_t packets,
		bool small, bool may_be_random)
{
	*a = (struct audit){.key = key,
			    .capacity = CAPACITY_MIN,
			    .may_be_random = may_be_random};
	a->history.small = small;
	a->all.small = small;
	while (a->capacity < packets)
		a->capacity *= 2;
	a->records = calloc(a->capacity, sizeof(a->records[0]));
	return a->records;
}

void audit_free(struct audit *a)
{
	free(a->records);
}

static struct audit_record *record(const struct audit *a, uint64_t seq)
{
	return &a->records[seq & (a->capacity - 1)];
}

/* Packets from here on are in the ring. */
static uint64_t oldest(const struct audit *a)
{
	return a->next_seq > a->capacity ? a->next_seq - a->capacity : 0;
}

void audit_sent(struct audit *a, tfrc_time now, size_t bytes, bool limited,
		tfrc_time rtt)
{
	struct audit_record before = {.sent = now};
	tfrc_time gap;

	if (a->next_seq)
		before = *record(a, a->next_seq - 1);
	gap = now - before.sent;
	*record(a, a->next_seq) = (struct audit_record){
		.sent = now,
		.busy_end = before.busy_end + (rtt && gap > rtt ? rtt : gap),
		.bytes_end = before.bytes_end + bytes,
		.limited_end = before.limited_end + limited,
	};
	a->next_seq++;
}

tfrc_time audit_sent_at(const struct audit *a, uint64_t seq)
{
	return record(a, seq)->sent;
}

/* Bytes of the packets from FIRST to END (excluded). */
static uint64_t bytes_between(const struct audit *a, uint64_t first,
			      uint64_t end)
{
	uint64_t before = 0;

	if (end <= first)
		return 0;
	if (first > oldest(a))
		before = record(a, first - 1)->bytes_end;
	else if (first)
		return 0; /* not known any more: claim nothing */
	return record(a, end - 1)->bytes_end - before;
}

/* The nonces of the packets from FIRST to END (excluded). */
static uint32_t nonces_between(const struct audit *a, uint64_t first,
			       uint64_t end)
{
	uint32_t sum = 0;

	for (uint64_t seq = first; seq < end; seq++)
		sum ^= nonce_of(a->key, seq);
	return sum;
}

/* The sum that a receiver has which tells the truth. */
static uint32_t expected_sum(const struct audit *a,
			     const struct wire_feedback *fb)
{
	uint32_t sum = a->nonce_sum;
	uint64_t from = a->edge;

	for (unsigned int i = 0; i < fb->holes; i++) {
		uint64_t end = fb->hole[i].first + fb->hole[i].length;

		if (end <= from)
			continue;
		if (fb->hole[i].first > from)
			sum ^= nonces_between(a, from, fb->hole[i].first);
		from = end;
	}
	return sum ^ nonces_between(a, from, fb->edge);
}

int audit_check(const struct audit *a, const struct wire_feedback *fb)
{
	if (fb->echo_seq >= a->next_seq || fb->echo_seq < oldest(a))
		return TFRC_E_FORGED;
	if (fb->flags & WIRE_FEEDBACK_UNKNOWN) /* it knows but this packet */
		return fb->echo_nonce == nonce_of(a->key, fb->echo_seq)
			       ? 0
			       : TFRC_E_FORGED;
	if (fb->edge < a->edge || (a->echoed && fb->echo_seq < a->echo_seq))
		return TFRC_E_STALE;
	/* nothing new, under whatever number */
	if (a->echoed && fb->edge == a->edge && fb->echo_seq == a->echo_seq)
		return TFRC_E_STALE;
	if (fb->echo_nonce != nonce_of(a->key, fb->echo_seq) ||
	    fb->nonce_sum != expected_sum(a, fb))
		return TFRC_E_FORGED;
	return 0;
}

void audit_first_interval(struct audit *a, double packets)
{
	if (!a->history.events)
		a->history.first = packets;
	if (!a->all.events)
		a->all.first = packets;
}

tfrc_time audit_lag(const struct audit *a, const struct wire_feedback *fb)
{
	if (fb->edge > fb->echo_seq || fb->edge < oldest(a))
		return 0;
	return record(a, fb->echo_seq)->sent - record(a, fb->edge)->sent;
}

tfrc_time audit_gap_after(const struct audit *a, uint64_t seq)
{
	if (seq + 1 >= a->next_seq)
		return TFRC_NEVER;
	return record(a, seq + 1)->sent - record(a, seq)->sent;
}

/* The first packet from FIRST on that was sent after TIME, at most END. */
static uint64_t sent_after(const struct audit *a, tfrc_time time,
			   uint64_t first, uint64_t end)
{
	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (record(a, middle)->sent > time)
			end = middle;
		else
			first = middle + 1;
	}
	return end;
}

bool audit_data_limited(const struct audit *a, const struct wire_feedback *fb,
			tfrc_time rtt)
{
	uint64_t end = fb->echo_seq + 1,
		 first = a->echoed ? a->echo_seq + 1 : 0;
	uint32_t before = 0;

	if (first < oldest(a) + 1)
		first = oldest(a) ? oldest(a) + 1 : 0;
	if (first >= end)
		return true;
	first = sent_after(a, record(a, end - 1)->sent - rtt, first, end);
	if (first)
		before = record(a, first - 1)->limited_end;
	return record(a, end - 1)->limited_end == before;
}

static void take_hole(struct audit *a, const struct wire_hole *hole,
		      tfrc_time rtt)
{
	uint64_t first = hole->first > a->edge ? hole->first : a->edge;
	uint64_t length = hole->first + hole->length - first;
	bool random = hole->random && a->may_be_random;
	double gap_ns = 0;
	tfrc_time sent;

	if (random) {
		a->lost_random += length;
		a->random_counted += length < RUN_COUNTED ? length
							  : RUN_COUNTED;
	} else {
		a->lost_congestion += length;
	}
	if (first < oldest(a))
		return;
	sent = record(a, first)->sent;
	if (length > 1)
		gap_ns = (double)(record(a, first + length - 1)->sent - sent) /
			 (double)(length - 1);
	history_lost_run(&a->all, first, length, sent, gap_ns, rtt);
	if (!random)
		history_lost_run(&a->history, first, length, sent, gap_ns, rtt);
}

/* How much of what was sent before the edge arrived in which time. */
static void measure_rate(struct audit *a, tfrc_time rtt)
{
	tfrc_time until, elapsed;

	if (!a->edge || a->edge - 1 < oldest(a))
		return;
	until = record(a, a->edge - 1)->busy_end;
	elapsed = until - a->rate_from;
	if (a->rate_started && (elapsed < rtt || elapsed <= 0))
		return;
	if (a->rate_started) {
		a->rates[1] = a->rates[0];
		a->rates[0] = (double)(a->arrived_bytes - a->rate_from_bytes) /
			      ((double)elapsed * 1e-9);
	}
	a->rate_started = true;
	a->rate_from = until;
	a->rate_from_bytes = a->arrived_bytes;
}

void audit_take(struct audit *a, const struct wire_feedback *fb, tfrc_time rtt)
{
	uint64_t lost_bytes = 0, lost = 0,
		 bytes = bytes_between(a, a->edge, fb->edge);

	a->nonce_sum = fb->nonce_sum;
	for (unsigned int i = 0; i < fb->holes; i++) {
		const struct wire_hole *hole = &fb->hole[i];
		uint64_t end = hole->first + hole->length;
		uint64_t first = hole->first > a->edge ? hole->first : a->edge;

		if (end <= a->edge)
			continue;
		lost_bytes += bytes_between(a, first, end);
		lost += end - first;
		take_hole(a, hole, rtt);
	}
	a->arrived_bytes += bytes > lost_bytes ? bytes - lost_bytes : 0;
	a->arrived_packets += fb->edge - a->edge - lost;
	a->edge = fb->edge;
	a->echo_seq = fb->echo_seq;
	a->echoed = true;
	history_arrived(&a->history, fb->edge);
	history_arrived(&a->all, fb->edge);
	measure_rate(a, rtt);
}

double audit_rate_max(const struct audit *a)
{
	double rate = a->rates[0] > a->rates[1] ? a->rates[0] : a->rates[1];

	return RATE_SLACK * rate;
}
