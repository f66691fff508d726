/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much faster the receiver's clock runs than the sender's.
 *
 * The transit time y = R - S of packets holds the clocks' offset, their skew,
 * and the queue on the way there. The round trip holds that queue, too, and no
 * skew, as one clock measures it. So in
 *
 *   z = y - RTT = offset + skew * t - (the way back)
 *
 * the queue cancels, and z is a straight line but for queues on the way back.
 * Means of z over windows of a second are kept, and the skew is the median of
 * the slopes of all pairs of them (Theil 1950, Sen 1968): up to 29 % of the
 * windows may be wrong by any amount without harm.
 *
 * A step of either clock breaks the line: what came before is forgotten, the
 * skew found is kept.
 */
#ifndef TFRC_SKEW_H
#define TFRC_SKEW_H

#include "tfrc.h"

#define SKEW_WINDOWS   32
#define SKEW_WINDOW_NS INT64_C(1000000000)

struct skew_window {
	double time_ns;	 /* sender's clock, mean, since the first packet */
	double value_ns; /* z, mean, since the first packet's */
};

/**
 * struct skew - all zero is the initial state
 * @windows: the newest means, a ring
 * @count: how many there are
 * @next: where the next goes
 * @started: @origin_* hold
 * @origin_time: sender's clock at the first packet
 * @origin_value: z of the first packet
 * @begin: sender's clock at the begin of the open window
 * @sum_time: sums over the open window
 * @sum_value:
 * @samples: packets in the open window
 * @ratio: the skew, ns per ns
 */
struct skew {
	struct skew_window windows[SKEW_WINDOWS];
	unsigned int count;
	unsigned int next;
	bool started;
	tfrc_time origin_time;
	tfrc_time origin_value;
	tfrc_time begin;
	double sum_time;
	double sum_value;
	unsigned int samples;
	double ratio;
};

/**
 * skew_sample() - a packet came
 * @skew: state
 * @sent: when it was sent, ns, sender's clock
 * @transit: R - S, ns
 * @rtt: the newest round trip time, ns
 */
void skew_sample(struct skew *skew, tfrc_time sent, tfrc_time transit,
		 tfrc_time rtt);

/* A clock was stepped. */
void skew_step(struct skew *skew);

#endif
