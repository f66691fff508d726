// SPDX-License-Identifier: GPL-2.0-only
#include "history.h"

#include <math.h>
#include <string.h>

#define DISCOUNT_MIN	    0.25 /* THRESHOLD of 5.5 */
#define RUN_EVENTS_MAX	    (HISTORY_INTERVALS + 1)
#define SMALL_INTERVAL_RTTS 2 /* RFC 4828, 4.4 */

static const double weight[HISTORY_INTERVALS] = {1,   1,   1,	1,
						 0.8, 0.6, 0.4, 0.2};

/* I_0: the interval that is open, from its first lost packet to the newest. */
static double open_packets(const struct tfrc_history *h)
{
	return (double)(h->end - h->event_seq);
}

/* The average of the closed intervals, I_1 on the weight w_0. */
static double closed_mean(const struct tfrc_history *h, double *total,
			  double *weights)
{
	*total = 0;
	*weights = 0;
	for (unsigned int i = 0; i < h->count; i++) {
		double w = weight[i] * h->closed[i].discount;

		*total += h->closed[i].packets * w;
		*weights += w;
	}
	return *total / *weights;
}

/* DF: how much less the closed intervals count while the open one is long. */
static double general_discount(const struct tfrc_history *h)
{
	double total, weights, mean = closed_mean(h, &total, &weights);
	double open = open_packets(h);

	if (open <= 2 * mean)
		return 1;
	return 2 * mean / open > DISCOUNT_MIN ? 2 * mean / open : DISCOUNT_MIN;
}

double history_rate(const struct tfrc_history *h)
{
	double total1, weights1, total0, weights0, discount, mean0, mean1;

	if (!h->count)
		return 0;
	mean1 = closed_mean(h, &total1, &weights1);
	discount = general_discount(h);
	total0 = open_packets(h) * weight[0];
	weights0 = weight[0];
	for (unsigned int i = 0; i + 1 < HISTORY_INTERVALS && i < h->count;
	     i++) {
		double w = weight[i + 1] * h->closed[i].discount * discount;

		total0 += h->closed[i].packets * w;
		weights0 += w;
	}
	mean0 = total0 / weights0;
	if (mean0 < mean1)
		mean0 = mean1;
	return mean0 > 1 ? 1 / mean0 : 1;
}

void history_arrived(struct tfrc_history *h, uint64_t end)
{
	if (end > h->end)
		h->end = end;
}

/*
 * RFC 4828: an interval of up to two round trips with K losses in N packets
 * counts as N/K, for small packets would otherwise be lost for nothing.
 */
static double closed_length(const struct tfrc_history *h, uint64_t seq,
			    tfrc_time time)
{
	double packets = (double)(seq - h->event_seq);

	if (h->small && h->lost > 1 &&
	    time - h->event_time <= SMALL_INTERVAL_RTTS * h->event_rtt_ns)
		packets /= (double)h->lost;
	return packets;
}

/* The first interval has no loss event before it: it begins with the first
 * packet. */
static void close_interval(struct tfrc_history *h, uint64_t seq, tfrc_time time)
{
	double discount = h->count ? general_discount(h) : 1;
	double packets = closed_length(h, seq, time);

	for (unsigned int i = 0; i < h->count; i++)
		h->closed[i].discount *= discount;
	memmove(h->closed + 1, h->closed,
		(HISTORY_INTERVALS - 1) * sizeof(h->closed[0]));
	h->closed[0] = (struct loss_interval){
		.packets = packets > 1 ? packets : 1, .discount = 1};
	if (h->count < HISTORY_INTERVALS)
		h->count++;
}

bool history_lost(struct tfrc_history *h, uint64_t seq, tfrc_time time,
		  tfrc_time rtt_ns)
{
	history_arrived(h, seq + 1);
	if (h->events &&
	    (time - h->event_time <= rtt_ns || seq <= h->event_seq)) {
		h->lost++;
		return false;
	}
	close_interval(h, seq, time);
	h->events++;
	h->event_seq = seq;
	h->event_time = time;
	h->event_rtt_ns = rtt_ns;
	h->lost = 1;
	return true;
}

/*
 * Which packet of the run, LAST or a later one, is the first that is more than
 * a round trip after the newest event. A whole ns more makes up for rounding.
 */
static uint64_t next_event(const struct tfrc_history *h, tfrc_time time,
			   double gap_ns, tfrc_time rtt_ns, uint64_t last,
			   uint64_t length)
{
	double left_ns = (double)(h->event_time - time) + (double)rtt_ns + 1;
	double packet = gap_ns > 0 ? ceil(left_ns / gap_ns) : (double)length;

	if (!(packet > (double)last))
		return last + 1;
	return packet < (double)length ? (uint64_t)packet : length;
}

unsigned int history_lost_run(struct tfrc_history *h, uint64_t seq,
			      uint64_t length, tfrc_time time, double gap_ns,
			      tfrc_time rtt_ns)
{
	unsigned int events = 0;
	uint64_t i = 0;

	/* more events than there are intervals would push each other out */
	for (unsigned int step = 0; i < length && step <= RUN_EVENTS_MAX;
	     step++) {
		uint64_t next;

		events += history_lost(h, seq + i,
				       time + (tfrc_time)(gap_ns * (double)i),
				       rtt_ns);
		next = next_event(h, time, gap_ns, rtt_ns, i, length);
		h->lost += next - i - 1;
		i = next;
	}
	history_arrived(h, seq + length);
	return events;
}

void history_seed(struct tfrc_history *h, double packets)
{
	if (h->count == 1 && packets > 0)
		h->closed[0].packets = packets > 1 ? packets : 1;
}
