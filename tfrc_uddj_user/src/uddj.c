// SPDX-License-Identifier: GPL-2.0-only
#include "uddj.h"

#include <string.h>

#define STUCK_INTERVALS 4
#define QUEUE_FULL	0.9
#define QUEUE_FULL_NS	2e6 /* short queues: a packet is a large part of them */
#define WINDOW_NS	(30 * INT64_C(1000000000))
/* No queue holds a packet longer: a clock was stepped, or a host was asleep. */
#define STEP_NS (10 * INT64_C(1000000000))

static void interval_begin(struct uddj *u)
{
	u->now = (struct uddj_interval){.queue_low_ns = u->queue_ns,
					.queue_high_ns = u->queue_ns};
}

static void path_restart(struct uddj *u)
{
	skew_step(&u->skew);
	u->queue_ns = 0;
	u->queue_top_ns[0] = 0;
	u->queue_top_ns[1] = 0;
	u->stuck = 0;
	u->last = (struct uddj_interval){0};
	interval_begin(u);
}

/* Extremes are of 30 to 60 s, so that a path that changed is believed. */
static void window_turn(struct uddj *u, tfrc_time sent)
{
	if (u->started && sent - u->window_since <= WINDOW_NS)
		return;
	u->rtt_low_ns[1] = u->rtt_low_ns[0];
	u->rtt_low_ns[0] = 0;
	u->queue_top_ns[1] = u->queue_top_ns[0];
	u->queue_top_ns[0] = 0;
	u->window_since = sent;
}

static void rtt_sample(struct uddj *u, tfrc_time rtt)
{
	if (!u->rtt_low_ns[0] || rtt < u->rtt_low_ns[0])
		u->rtt_low_ns[0] = rtt;
	if (rtt > u->now.rtt_high_ns)
		u->now.rtt_high_ns = rtt;
}

static tfrc_time rtt_low(const struct uddj *u)
{
	tfrc_time newest = u->rtt_low_ns[0], before = u->rtt_low_ns[1];

	return before && (!newest || before < newest) ? before : newest;
}

static double queue_top(const struct uddj *u)
{
	return u->queue_top_ns[0] > u->queue_top_ns[1] ? u->queue_top_ns[0]
						       : u->queue_top_ns[1];
}

/* Equations (7) and (8), and the sums of (10). */
static void update(struct uddj *u, double in_ns, double out_ns)
{
	double jitter_ns = out_ns - in_ns;
	bool busy = jitter_ns + u->queue_ns > 0;

	/* 2.2: at first a fall is of a queue from before the first packet */
	if (u->draining && jitter_ns < 0)
		busy = true;
	else
		u->draining = false;
	if (u->queue_ns + jitter_ns > 0)
		u->queue_ns += jitter_ns;
	else
		u->queue_ns = 0;
	u->now.in_ns += in_ns;
	if (busy && out_ns > 0)
		u->now.busy_out_ns += out_ns;
	if (u->queue_ns < u->now.queue_low_ns)
		u->now.queue_low_ns = u->queue_ns;
	if (u->queue_ns > u->now.queue_high_ns)
		u->now.queue_high_ns = u->queue_ns;
	if (u->queue_ns > u->queue_top_ns[0])
		u->queue_top_ns[0] = u->queue_ns;
	u->now.packets++;
}

void uddj_packet(struct uddj *u, tfrc_time sent, tfrc_time arrived,
		 tfrc_time rtt)
{
	tfrc_time in, out;

	window_turn(u, sent);
	if (rtt > 0) {
		rtt_sample(u, rtt);
		skew_sample(&u->skew, sent, arrived - sent, rtt);
	}
	if (!u->started) {
		u->started = true;
		u->draining = true;
		u->sent = sent;
		u->arrived = arrived;
		interval_begin(u);
		return;
	}
	in = sent - u->sent;
	out = arrived - u->arrived;
	u->sent = sent;
	u->arrived = arrived;
	if (out - in > STEP_NS || in - out > STEP_NS) {
		path_restart(u);
		return;
	}
	update(u, (double)in, (double)out - u->skew.ratio * (double)in);
}

static bool congested(const struct uddj_interval *i)
{
	return i->packets && i->busy_out_ns >= i->in_ns &&
	       i->queue_low_ns > (double)UDDJ_QUEUE_NS;
}

/* How much of the smallest q the round trip does not explain. */
static double unexplained_ns(const struct uddj *u)
{
	tfrc_time high = u->now.rtt_high_ns;

	if (!high)
		return 0;
	if (u->last.rtt_high_ns > high)
		high = u->last.rtt_high_ns;
	return u->now.queue_low_ns - (double)(high - rtt_low(u)) -
	       (double)UDDJ_QUEUE_NS;
}

static void check_queue(struct uddj *u)
{
	double excess_ns = unexplained_ns(u);

	if (excess_ns <= 0) {
		u->stuck = 0;
		return;
	}
	if (++u->stuck < STUCK_INTERVALS)
		return;
	u->stuck = 0;
	u->queue_ns -= excess_ns + (double)UDDJ_QUEUE_NS;
	if (u->queue_ns < 0)
		u->queue_ns = 0;
	u->queue_top_ns[0] = u->queue_ns;
	u->queue_top_ns[1] = 0;
	skew_step(&u->skew);
}

bool uddj_interval_end(struct uddj *u)
{
	if (u->now.packets < UDDJ_PACKETS_MIN)
		return false;
	u->congested = congested(&u->now);
	u->intervals += u->congested;
	check_queue(u);
	u->last = u->now;
	interval_begin(u);
	return u->congested;
}

bool uddj_lost(const struct uddj *u)
{
	double top_ns = queue_top(u);

	if (u->queue_ns < QUEUE_FULL * top_ns &&
	    u->queue_ns < top_ns - QUEUE_FULL_NS)
		return false;
	return u->congested ||
	       (u->now.packets && u->now.queue_low_ns > (double)UDDJ_QUEUE_NS);
}
