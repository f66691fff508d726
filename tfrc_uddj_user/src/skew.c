// SPDX-License-Identifier: GPL-2.0-only
#include "skew.h"

#include <stddef.h>

#define SKEW_WINDOWS_MIN 6
#define SKEW_MAX \
	500e-6 /* crystals are within 200 ppm; what is more is no skew */
#define PAIRS_MAX (SKEW_WINDOWS * (SKEW_WINDOWS - 1) / 2)

/*
 * The K-th smallest (from 0) of COUNT, which are put in another order (Hoare's
 * quickselect). qsort() would take memory.
 */
static double select_kth(double *value, size_t count, size_t k)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		double pivot = value[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;; i++, j--) {
			double other;

			while (value[i] < pivot)
				i++;
			while (value[j] > pivot)
				j--;
			if (i >= j)
				break;
			other = value[i];
			value[i] = value[j];
			value[j] = other;
		}
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
	return value[k];
}

static double median_slope(const struct skew *skew)
{
	double slopes[PAIRS_MAX];
	size_t pairs = 0;

	for (unsigned int i = 0; i < skew->count; i++) {
		for (unsigned int j = 0; j < i; j++) {
			const struct skew_window *a = &skew->windows[i],
						 *b = &skew->windows[j];

			if (a->time_ns != b->time_ns)
				slopes[pairs++] = (a->value_ns - b->value_ns) /
						  (a->time_ns - b->time_ns);
		}
	}
	if (!pairs)
		return skew->ratio;
	return select_kth(slopes, pairs, pairs / 2);
}

static void close_window(struct skew *skew)
{
	struct skew_window *window = &skew->windows[skew->next];
	double slope;

	window->time_ns = skew->sum_time / skew->samples;
	window->value_ns = skew->sum_value / skew->samples;
	skew->next = (skew->next + 1) % SKEW_WINDOWS;
	if (skew->count < SKEW_WINDOWS)
		skew->count++;
	if (skew->count < SKEW_WINDOWS_MIN)
		return;
	slope = median_slope(skew);
	if (slope > -SKEW_MAX && slope < SKEW_MAX)
		skew->ratio = slope;
}

static void open_window(struct skew *skew, tfrc_time sent)
{
	skew->begin = sent;
	skew->sum_time = 0;
	skew->sum_value = 0;
	skew->samples = 0;
}

void skew_sample(struct skew *skew, tfrc_time sent, tfrc_time transit,
		 tfrc_time rtt)
{
	if (!skew->started) {
		skew->started = true;
		skew->origin_time = sent;
		skew->origin_value = transit - rtt;
		open_window(skew, sent);
	}
	if (sent - skew->begin >= SKEW_WINDOW_NS) {
		if (skew->samples)
			close_window(skew);
		open_window(skew, sent);
	}
	skew->sum_time += (double)(sent - skew->origin_time);
	skew->sum_value += (double)(transit - rtt - skew->origin_value);
	skew->samples++;
}

void skew_step(struct skew *skew)
{
	skew->count = 0;
	skew->next = 0;
	skew->started = false;
}
