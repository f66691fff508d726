/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * UDDJ: is the bottleneck congested, as seen from one-way delay jitter?
 *
 * Paper: A. Kumar, R. M. Sharma, "A New Congestion Control Approach on TFRC
 * Over Wired and Wireless Networks". Equations by their numbers there:
 *
 *   dU_i = (R_i - R_{i-1}) - (S_i - S_{i-1})                             (2)
 *   u_i  = 1 if dU_i + q_{i-1} > 0 (the bottleneck was busy), else 0      (7)
 *   q_i  = q_{i-1} + dU_i if u_i, else max(0, dU_i)                       (8)
 *   congested  if  sum of og_i where u_i = 1  >=  sum of id_i        (10, 11)
 *
 *   symbol   field          unit
 *   S, R     arguments      ns; sender's and receiver's clock
 *   id       -              ns, input gap S_i - S_{i-1}
 *   og       -              ns, output gap R_i - R_{i-1}
 *   q        queue_ns       ns, queueing delay (the paper's beta)
 *
 * The interval is a round trip, or what there was of it when a loss is found.
 *
 * Differences from the paper, each measured in docs/tfrc.md:
 * - Skew is taken off dU (skew.h): in a busy time its errors would add up.
 * - Equality in (11) holds for any queue that stays as it is, one packet of
 *   cross traffic always just in front of ours included. So a congested
 *   interval must also have had a queue above UDDJ_QUEUE_NS all the time.
 * - Nothing in (7), (8) ever lowers q when the path got longer or a clock was
 *   stepped. A queue is part of the round trip: a q that stays above what the
 *   round trip has on top of its smallest is cut down to that.
 * - A loss is congestion if the queue stood above UDDJ_QUEUE_NS, or had the
 *   flag a round trip before, and is at least 0.9 of the longest of the last
 *   half minute, or 2 ms less than that: a queue that drops is full.
 * - Gaps in the numbers are skipped: with (2) over the hole, sums stay exact.
 */
#ifndef TFRC_UDDJ_H
#define TFRC_UDDJ_H

#include "skew.h"

/*
 * A queue that is shorter is no congestion: what CoDel (RFC 8289, 4.3) calls an
 * acceptable standing queue.
 */
#define UDDJ_QUEUE_NS INT64_C(5000000)

/* An interval of fewer packets says nothing: it goes on. */
#define UDDJ_PACKETS_MIN 4

/**
 * struct uddj_interval - sums over a round trip
 * @busy_out_ns: sum of the output gaps with u = 1
 * @in_ns: sum of the input gaps
 * @queue_low_ns: smallest q
 * @queue_high_ns: largest q
 * @rtt_high_ns: largest round trip time that was told
 * @packets: how many
 */
struct uddj_interval {
	double busy_out_ns;
	double in_ns;
	double queue_low_ns;
	double queue_high_ns;
	tfrc_time rtt_high_ns;
	unsigned int packets;
};

/**
 * struct uddj - state of a path; all zero is the initial one
 * @skew: of the two clocks
 * @started: there is a packet before the next
 * @draining: the queue that was there at the start is still being found (2.2)
 * @sent: S of the newest packet
 * @arrived: R of the newest packet
 * @queue_ns: q
 * @now: the open interval
 * @last: the one before it
 * @rtt_low_ns: smallest round trip time of the newest half minute, and of the
 * one before
 * @window_since: sender's clock when the newest began
 * @queue_top_ns: largest q of the same times
 * @stuck: intervals in a row whose q the round trip does not explain
 * @congested: the flag, of the last interval that was long enough
 * @intervals: how many of them there were with the flag
 */
struct uddj {
	struct skew skew;
	bool started;
	bool draining;
	tfrc_time sent;
	tfrc_time arrived;
	double queue_ns;
	struct uddj_interval now;
	struct uddj_interval last;
	tfrc_time rtt_low_ns[2];
	double queue_top_ns[2];
	tfrc_time window_since;
	unsigned int stuck;
	bool congested;
	uint64_t intervals;
};

/**
 * uddj_packet() - the next packet in the order of sending
 * @u: state
 * @sent: S, ns
 * @arrived: R, ns
 * @rtt: newest sample of the round trip, ns; 0: none
 */
void uddj_packet(struct uddj *u, tfrc_time sent, tfrc_time arrived,
		 tfrc_time rtt);

/**
 * uddj_interval_end() - a round trip is over
 * @u: state
 *
 * Return: the flag was set for it.
 */
bool uddj_interval_end(struct uddj *u);

/**
 * uddj_lost() - packets are missing after the newest
 * @u: state
 *
 * Return: by congestion, as the queue and the interval up to here, or the one
 * before, say.
 */
bool uddj_lost(const struct uddj *u);

#endif
