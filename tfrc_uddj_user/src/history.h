/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loss events and the loss event rate: RFC 5348, 5.2 to 5.5, RFC 4828, 4.4.
 *
 * Who keeps it gives each loss with its time: the receiver that of arrival as
 * interpolated (5.2), the sender, who checks the receiver, that of sending.
 */
#ifndef TFRC_HISTORY_H
#define TFRC_HISTORY_H

#include "tfrc.h"

#define HISTORY_INTERVALS 8 /* n of 5.4 */

/* A closed loss interval. */
struct loss_interval {
	double packets;	 /* its length */
	double discount; /* DF_i of 5.5 */
};

/**
 * struct tfrc_history - all zero is the initial state
 * @closed: I_1 to I_n, the newest first
 * @count: how many of them there are
 * @events: loss events so far
 * @event_seq: first lost packet of the newest event
 * @event_time: when it was lost
 * @end: one above the newest packet
 * @small: RFC 4828: count losses of short intervals one by one
 * @first: what the first interval is to count as (6.3.1); 0: as it is
 * @lost: losses in the open interval
 * @event_rtt_ns: RFC 4828: R at the event
 */
struct tfrc_history {
	struct loss_interval closed[HISTORY_INTERVALS];
	unsigned int count;
	uint64_t events;
	uint64_t event_seq;
	tfrc_time event_time;
	uint64_t end;
	bool small;
	double first;
	uint64_t lost;
	tfrc_time event_rtt_ns;
};

/**
 * history_arrived() - packets below END have been accounted for
 * @h: history
 * @end: one above the newest packet
 */
void history_arrived(struct tfrc_history *h, uint64_t end);

/**
 * history_lost() - a packet was lost, or marked (5.3)
 * @h: history
 * @seq: its number
 * @time: when it would have come, or when it came
 * @rtt_ns: R then
 *
 * Return: a loss event begins with it.
 */
bool history_lost(struct tfrc_history *h, uint64_t seq, tfrc_time time,
		  tfrc_time rtt_ns);

/**
 * history_lost_run() - LENGTH packets in a row, evenly spread from TIME on
 * @h: history
 * @seq: the first of them
 * @length: how many
 * @time: of the first
 * @gap_ns: from one to the next
 * @rtt_ns: R then
 *
 * Return: how many loss events began.
 */
unsigned int history_lost_run(struct tfrc_history *h, uint64_t seq,
			      uint64_t length, tfrc_time time, double gap_ns,
			      tfrc_time rtt_ns);

/* The loss event rate p (5.4, 5.5); 0 before the first event. */
double history_rate(const struct tfrc_history *h);

#endif
