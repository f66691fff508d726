/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A path in simulated time: whole connections of libtfrc over a bottleneck.
 *
 *   senders --> [queue | rate] --> delay, random loss, reordering --> receivers
 *           <---------------- delay, loss of feedback <--------------
 *
 * Time is counted from 0 in ns. Nothing here reads a clock; the same seed gives
 * the same run.
 */
#ifndef TFRC_TESTS_SIM_H
#define TFRC_TESTS_SIM_H

#include "tfrc_testbed.h"

#define SIM_SECOND INT64_C(1000000000)
#define SIM_MS	   INT64_C(1000000)
#define SIM_FLOWS  32

struct sim_path {
	double rate_bps;	 /* of the bottleneck; 0: no bottleneck */
	unsigned int queue_pkts; /* the packet being sent included */
	tfrc_time delay_ns;	 /* one way */
	double loss;		 /* random, after the queue */
	double feedback_loss;
	double duplicate;
	tfrc_time
		jitter_ns; /* each comes uniformly up to that later, in order */
	double reorder;	   /* such a share comes reorder_ns later */
	tfrc_time reorder_ns;
	tfrc_time silent_from; /* no feedback gets through from here */
	tfrc_time silent_until;
	unsigned int header_bytes; /* below UDP, counted by the rate */
};

/* Traffic that nothing slows down: ON of ON + OFF at RATE; OFF 0: always. */
struct sim_cross {
	double rate_bps;
	unsigned int bytes;
	tfrc_time on_ns; /* means; Pareto, shape 1.5 */
	tfrc_time off_ns;
};

struct sim_clock {
	double skew; /* receiver's clock: so much faster */
	tfrc_time offset_ns;
	tfrc_time step_at; /* true time; 0: never */
	tfrc_time step_ns;
};

struct sim_flow {
	struct tfrc_sender_config config;
	size_t payload_bytes;
	tfrc_time start;
	tfrc_time stop;	    /* 0: the end */
	double source_rate; /* payload, bytes/s; 0: always has data */
	tfrc_time slow_until; /* then it always has data; 0: the end */
	tfrc_time idle_from;
	tfrc_time idle_until;
	struct sim_clock clock;
	/* rewrite feedback on its way: what a liar would do; new length, 0
	 * drops it */
	size_t (*lie)(void *arg, uint8_t *packet, size_t bytes);
	void *lie_arg;

	/* results */
	struct tfrc_sender *sender;
	struct tfrc_receiver *receiver;
	uint64_t sent;
	uint64_t queue_drops;
	uint64_t random_drops;
	uint64_t payload_arrived;
	uint64_t payload_warm; /* of it, before the warm-up ended */
	tfrc_time fin_acked_at;
	unsigned int bins; /* goodput of each RATE_BIN */
	double bin[4096];  /* bytes */
	unsigned int rates;
	double rate[4096]; /* allowed at its end by the newest feedback */
};

struct sim {
	struct sim_path path;
	const struct sim_cross *cross;
	unsigned int crosses;
	struct sim_flow *flow;
	unsigned int flows;
	tfrc_time duration;
	tfrc_time warmup;
	tfrc_time bin_ns;
	uint64_t seed;

	/* results */
	double queue_delay_p95_ms;
	double queue_delay_p50_ms;
	uint64_t cross_sent;
	uint64_t cross_drops;
	uint64_t events;
};

void sim_run(struct sim *sim);
void sim_free(struct sim *sim);

/* Payload per second after the warm-up, bits. */
double sim_goodput(const struct sim *sim, unsigned int flow);

/* Standard deviation over mean of the bins after the warm-up. */
double sim_variation(const struct sim *sim, unsigned int flow);

/* Uniform in [0, 1); the state is the caller's. */
double sim_random(uint64_t *state);

#endif
