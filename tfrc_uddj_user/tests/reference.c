// SPDX-License-Identifier: GPL-2.0-only
#include "reference.h"

#include <math.h>
#include <stdlib.h>

#define N 8

static const long double w[N] = {1, 1, 1, 1, 0.8L, 0.6L, 0.4L, 0.2L};

struct event {
	size_t first; /* S_A */
	long double time;
	size_t losses;
};

/* RFC 5348, 3.1; with RFC 4828, 4.2: 1460 bytes, and 40 of header off. */
static long double allowed(const struct reference *of, long double p)
{
	long double s = of->small ? 1460 : of->packet_bytes, r = of->rtt_s;
	long double x =
		s / (r * sqrtl(2 * p / 3) +
		     4 * r * 3 * sqrtl(3 * p / 8) * p * (1 + 32 * p * p));

	return of->small ? x * of->packet_bytes / (of->packet_bytes + 40) : x;
}

/* 6.3.1: 1/p for which X_target is allowed, or half a packet a round trip. */
static long double first_interval(const struct reference *of)
{
	long double least = of->packet_bytes / of->rtt_s / 2;
	long double target = of->receive_rate_max > least ? of->receive_rate_max
							  : least;
	long double p_low = 1e-18L, p_high = 1;

	while (p_high / p_low > 1.0000001L) {
		long double p = sqrtl(p_low * p_high);

		if (allowed(of, p) > target)
			p_low = p;
		else
			p_high = p;
	}
	return 1 / p_high;
}

/* 5.2: T_loss */
static long double loss_time(const struct reference *of, size_t lost)
{
	size_t before = lost, after = lost;
	long double t_before, t_after;

	while (before > 0 && of->packet[before].lost)
		before--;
	while (of->packet[after].lost)
		after++;
	t_after = of->packet[after].time_s;
	if (of->packet[before].lost)
		return t_after;
	t_before = of->packet[before].time_s;
	return t_before + (t_after - t_before) * (long double)(lost - before) /
				  (long double)(after - before);
}

/* 5.2: what is lost within R of an event's first loss belongs to it. */
static size_t find_events(const struct reference *of, struct event *event)
{
	size_t events = 0;

	for (size_t i = 0; i < of->packets; i++) {
		long double time;

		if (!of->packet[i].lost)
			continue;
		time = loss_time(of, i);
		/* a ns: times are whole ones on the wire */
		if (events &&
		    event[events - 1].time + of->rtt_s + 1e-9L >= time)
			event[events - 1].losses++;
		else
			event[events++] = (struct event){
				.first = i, .time = time, .losses = 1};
	}
	return events;
}

/* 5.3; RFC 4828, 4.4: N/K if it took two round trips at most. */
static long double size_of(const struct reference *of, const struct event *a)
{
	const struct event *b = a + 1;
	long double size = (long double)(b->first - a->first);

	if (of->small && b->time - a->time <= 2 * of->rtt_s + 1e-9L)
		size /= (long double)a->losses;
	return size;
}

struct history {
	long double I[N + 1], DF[N + 1];
	size_t k;
};

/* 5.5, with I_0 as given: the general discount factor. */
static long double discount(const struct history *h, long double i_0)
{
	long double i_tot = 0, w_tot = 0, i_mean, df;

	for (size_t i = 1; i <= h->k; i++) {
		w_tot += w[i - 1] * h->DF[i];
		i_tot += h->I[i] * w[i - 1] * h->DF[i];
	}
	if (!h->k)
		return 1;
	i_mean = i_tot / w_tot;
	df = 2 * i_mean / i_0;
	if (df >= 1)
		return 1;
	return df < 0.25L ? 0.25L : df;
}

/* 5.5: a loss event; the open interval was I_0, and counts as SIZE. */
static void shift(struct history *h, long double i_0, long double size)
{
	long double df = discount(h, i_0);

	for (size_t i = 1; i <= h->k; i++)
		h->DF[i] *= df;
	for (size_t i = N; i > 1; i--) {
		h->I[i] = h->I[i - 1];
		h->DF[i] = h->DF[i - 1];
	}
	h->I[1] = size;
	h->DF[1] = 1;
	if (h->k < N)
		h->k++;
}

/* 5.4 (which says what is summed up to which k) with the discounts of 5.5. */
static double rate(const struct history *h, long double i_0)
{
	long double df = discount(h, i_0), i_tot0 = i_0 * w[0], w_tot0 = w[0];
	long double i_tot1 = 0, w_tot1 = 0, mean;

	for (size_t i = 1; i < h->k; i++) {
		i_tot0 += h->I[i] * w[i] * h->DF[i] * df;
		w_tot0 += w[i] * h->DF[i] * df;
	}
	for (size_t i = 1; i <= h->k; i++) {
		i_tot1 += h->I[i] * w[i - 1] * h->DF[i];
		w_tot1 += w[i - 1] * h->DF[i];
	}
	mean = fmaxl(i_tot0 / w_tot0, i_tot1 / w_tot1);
	return (double)(mean > 1 ? 1 / mean : 1);
}

double reference_p(const struct reference *of)
{
	struct event *event = calloc(of->packets + 1, sizeof(event[0]));
	size_t events = find_events(of, event);
	struct history h = {.k = 0};
	double p = 0;

	if (events) {
		shift(&h, 1, first_interval(of));
		for (size_t i = 1; i < events; i++)
			shift(&h,
			      (long double)(event[i].first -
					    event[i - 1].first),
			      size_of(of, &event[i - 1]));
		p = rate(&h,
			 (long double)(of->packets - event[events - 1].first));
	}
	free(event);
	return p;
}
