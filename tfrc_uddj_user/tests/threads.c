// SPDX-License-Identifier: GPL-2.0-only
/* Whole connections in several threads at once: objects share nothing. */
#include "sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4

static void *run(void *argument)
{
	struct sim_flow *flow = argument;
	struct sim sim = {
		.path = {.rate_bps = 10e6,
			 .queue_pkts = 50,
			 .delay_ns = 25 * SIM_MS,
			 .loss = 0.02,
			 .header_bytes = 42},
		.flow = flow,
		.flows = 1,
		.duration = 20 * SIM_SECOND,
		.seed = 5,
	};

	flow->payload_bytes = 1400;
	flow->config.discrimination = TFRC_LOSS_UDDJ;
	sim_run(&sim);
	sim_free(&sim);
	return NULL;
}

int main(void)
{
	static struct sim_flow flow[THREADS];
	pthread_t thread[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, &flow[i]))
			return EXIT_FAILURE;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 1; i < THREADS; i++) {
		if (flow[i].sent != flow[0].sent) {
			puts("threads disturb each other");
			return EXIT_FAILURE;
		}
	}
	printf("%d threads, %llu packets each\n", THREADS,
	       (unsigned long long)flow[0].sent);
	return EXIT_SUCCESS;
}
