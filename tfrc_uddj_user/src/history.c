// SPDX-License-Identifier: GPL-2.0-only
#include "history.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define DISCOUNT_MIN 0.25 /* THRESHOLD of 5.5 */
/*
 * After so many events of a run the history is made of nothing else, and no
 * discount of the time before is left in it.
 */
#define RUN_EVENTS	    (2 * HISTORY_INTERVALS + 1)
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

/* DF: how much less the closed intervals count while the open one is OPEN long.
 */
static double general_discount(const struct tfrc_history *h, double open)
{
	double total, weights, mean = closed_mean(h, &total, &weights);

	if (open <= 2 * mean)
		return 1;
	return 2 * mean / open > DISCOUNT_MIN ? 2 * mean / open : DISCOUNT_MIN;
}

/*
 * 5.4: k, the number of closed intervals, is at most n. The open one and the
 * newest k - 1 of those are held against all k; the larger mean counts.
 */
double history_rate(const struct tfrc_history *h)
{
	double total1, weights1, total0, weights0, discount, mean0, mean1;

	if (!h->count)
		return 0;
	mean1 = closed_mean(h, &total1, &weights1);
	discount = general_discount(h, open_packets(h));
	total0 = open_packets(h) * weight[0];
	weights0 = weight[0];
	for (unsigned int i = 0; i + 1 < h->count; i++) {
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

	if (!h->count && h->first > 0)
		return h->first;
	if (h->small && h->lost > 1 &&
	    time - h->event_time <= SMALL_INTERVAL_RTTS * h->event_rtt_ns)
		packets /= (double)h->lost;
	return packets;
}

/* The first interval has no loss event before it: it begins with the first
 * packet. */
static void close_interval(struct tfrc_history *h, uint64_t seq, tfrc_time time)
{
	double open = (double)(seq - h->event_seq);
	double discount = h->count ? general_discount(h, open) : 1;
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
 * Which packet of a run is the first to be lost more than LEFT_NS after the
 * first of it; LENGTH: none. A whole ns more makes up for rounding.
 */
static uint64_t packet_after(double left_ns, double gap_ns, uint64_t length)
{
	double packet;

	if (left_ns < 0)
		return 0;
	if (!(gap_ns > 0))
		return length;
	packet = floor((left_ns + 1) / gap_ns) + 1;
	return packet < (double)length ? (uint64_t)packet : length;
}

static void begin_event(struct tfrc_history *h, uint64_t seq, tfrc_time time,
			tfrc_time rtt_ns, uint64_t lost)
{
	history_lost(h, seq, time, rtt_ns);
	h->lost = lost;
}

/*
 * The packets of a run are evenly spread, so are the events that they make: a
 * first after what is left of the event before, then one each STRIDE packets.
 * All intervals between are alike. Of a long run those are counted that leave
 * a trace; what lies between the first and the last of them is skipped.
 */
unsigned int history_lost_run(struct tfrc_history *h, uint64_t seq,
			      uint64_t length, tfrc_time time, double gap_ns,
			      tfrc_time rtt_ns)
{
	uint64_t stride = packet_after((double)rtt_ns, gap_ns, length);
	uint64_t first = 0, events;

	if (h->events)
		first = packet_after((double)(h->event_time - time) +
					     (double)rtt_ns,
				     gap_ns, length);
	h->lost += first;
	events = first < length ? (length - 1 - first) / stride + 1 : 0;
	for (uint64_t i = 0; i < events; i++) {
		uint64_t at = first + i * stride;
		uint64_t lost = length - at < stride ? length - at : stride;

		begin_event(h, seq + at,
			    time + (tfrc_time)(gap_ns * (double)at), rtt_ns,
			    lost);
		if (i + 1 == RUN_EVENTS && events > 2 * RUN_EVENTS) {
			i += events - 2 * RUN_EVENTS;
			at = first + i * stride;
			h->events += events - 2 * RUN_EVENTS;
			h->event_seq = seq + at;
			h->event_time = time + (tfrc_time)(gap_ns * (double)at);
		}
	}
	history_arrived(h, seq + length);
	return events < UINT_MAX ? (unsigned int)events : UINT_MAX;
}
