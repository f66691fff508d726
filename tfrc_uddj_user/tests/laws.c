// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of docs/tfrc.md: how laws of uddj do, in simulated time, and where
 * delay jitters without a queue. 10 Mb/s with 50 packets, round trip 50 ms;
 * medians over seeds.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS	    7
#define SEEDS_JITTER 20
#define PAYLOAD	    1400
#define FRAME	    (PAYLOAD + TFRC_DATA_HEADER_BYTES + 42)
#define CROSS_FRAME (1472 + 42)

struct figures {
	double share; /* of what the cross traffic leaves */
	double jain;
	double drops;	 /* of its packets, % */
	double delay_ms; /* p95 */
	double wrong;	 /* random losses taken for congestion, % */
	double missed;	 /* the other way round, % */
};

struct case_of {
	const char *name;
	unsigned int flows;
	double loss;
	double peak_bps; /* of each of three cross flows, 2 Mb/s in the mean; 0:
			    none */
};

static const struct case_of cases[] = {
	{"CBR, 0 %", 1, 0, 2e6},    {"CBR, 4 %", 1, 0.04, 2e6},
	{"CBR, 8 %", 1, 0.08, 2e6}, {"bursty, 4 %", 1, 0.04, 3e6},
	{"4 alike, 0 %", 4, 0, 0},  {"4 alike, 4 %", 4, 0.04, 0},
	{"8 alike, 0 %", 8, 0, 0},
};

static const struct {
	const char *name;
	enum tfrc_discrimination discrimination;
	enum tfrc_uddj_law law;
} laws[] = {
	{"uddj, ease", TFRC_LOSS_UDDJ, TFRC_UDDJ_EASE},
	{"uddj, mark", TFRC_LOSS_UDDJ, TFRC_UDDJ_MARK},
	{"uddj, classify", TFRC_LOSS_UDDJ, TFRC_UDDJ_CLASSIFY},
	{"wireless (oracle)", TFRC_LOSS_WIRELESS, TFRC_UDDJ_EASE},
	{"tfrc", TFRC_LOSS_TFRC, TFRC_UDDJ_EASE},
};

static struct sim_flow flow[SIM_FLOWS];

static struct figures summarise(const struct sim *sim, double loss)
{
	double sum = 0, squares = 0, drops = 0, sent = 0, judged[2][2] = {{0}};
	double left_bps = sim->path.rate_bps - 8e9 * (double)sim->cross_sent *
						       CROSS_FRAME /
						       (double)sim->duration;

	for (unsigned int i = 0; i < sim->flows; i++) {
		uint64_t counted[2][2];
		double rate = sim_goodput(sim, i);

		tfrc_testbed_judged(flow[i].receiver, counted);
		for (unsigned int was = 0; was < 2; was++)
			for (unsigned int said = 0; said < 2; said++)
				judged[was][said] += (double)counted[was][said];
		sum += rate;
		squares += rate * rate;
		drops += (double)flow[i].queue_drops;
		sent += (double)flow[i].sent;
	}
	return (struct figures){
		.share = 100 * sum / (left_bps * PAYLOAD / FRAME * (1 - loss)),
		.jain = sum * sum / (squares * sim->flows),
		.drops = 100 * drops / sent,
		.delay_ms = sim->queue_delay_p95_ms,
		.wrong = 100 * judged[1][0] /
			 (judged[1][0] + judged[1][1] + 1e-9),
		.missed = 100 * judged[0][1] /
			  (judged[0][0] + judged[0][1] + 1e-9),
	};
}

static struct figures run(const struct case_of *of, unsigned int law,
			  uint64_t seed)
{
	bool constant = of->peak_bps <= 2e6;
	struct sim_cross cross[3];
	struct sim sim = {
		.path = {.rate_bps = 10e6,
			 .queue_pkts = 50,
			 .delay_ns = 25 * SIM_MS,
			 .loss = of->loss,
			 .header_bytes = 42},
		.cross = cross,
		.crosses = of->peak_bps > 0 ? 3 : 0,
		.flow = flow,
		.flows = of->flows,
		.duration = 200 * SIM_SECOND,
		.warmup = 20 * SIM_SECOND,
		.seed = seed,
	};
	struct figures figures;

	memset(flow, 0, sizeof(flow));
	for (unsigned int i = 0; i < of->flows; i++) {
		flow[i].config.discrimination = laws[law].discrimination;
		flow[i].config.uddj_law = laws[law].law;
		flow[i].payload_bytes = PAYLOAD;
		flow[i].start =
			(tfrc_time)(seed * 7919 % 100 + i * 33) * SIM_MS;
	}
	for (unsigned int i = 0; i < 3; i++)
		cross[i] = (struct sim_cross){
			.rate_bps = of->peak_bps,
			.bytes = 1472,
			.on_ns = 200 * SIM_MS,
			.off_ns = constant ? 0 : 100 * SIM_MS};
	sim_run(&sim);
	figures = summarise(&sim, of->loss);
	sim_free(&sim);
	return figures;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Mb/s of a flow alone at 1 % loss, each packet up to MOST_MS later, in order. */
static double run_jitter(unsigned int law, unsigned int most_ms, uint64_t seed)
{
	struct sim sim = {
		.path = {.rate_bps = 10e6,
			 .queue_pkts = 50,
			 .delay_ns = 25 * SIM_MS,
			 .loss = 0.01,
			 .jitter_ns = most_ms * SIM_MS,
			 .header_bytes = 42},
		.flow = flow,
		.flows = 1,
		.duration = 120 * SIM_SECOND,
		.warmup = 20 * SIM_SECOND,
		.seed = seed,
	};
	double rate;

	memset(flow, 0, sizeof(flow));
	flow[0].config.discrimination = laws[law].discrimination;
	flow[0].config.uddj_law = laws[law].law;
	flow[0].payload_bytes = PAYLOAD;
	flow[0].start = (tfrc_time)(seed * 7919 % 100) * SIM_MS;
	sim_run(&sim);
	rate = sim_goodput(&sim, 0);
	sim_free(&sim);
	return rate * 1e-6;
}

static void print_jitter(void)
{
	static const unsigned int most_ms[] = {0, 10, 20, 30, 40, 60, 80};

	printf("\n| law | 0 ms | 10 | 20 | 30 | 40 | 60 | 80 |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (unsigned int law = 0; law < sizeof(laws) / sizeof(laws[0]);
	     law++) {
		printf("| %s |", laws[law].name);
		for (size_t i = 0; i < sizeof(most_ms) / sizeof(most_ms[0]);
		     i++) {
			double rate[SEEDS_JITTER];

			for (unsigned int seed = 0; seed < SEEDS_JITTER; seed++)
				rate[seed] = run_jitter(law, most_ms[i],
							seed + 1);
			printf(" %.2f |", median(rate, SEEDS_JITTER));
		}
		printf("\n");
	}
}

int main(void)
{
	printf("| law | case | share %% | Jain | drops %% | p95 ms | random as "
	       "congestion %% |"
	       " congestion as random %% "
	       "|\n|---|---|---|---|---|---|---|---|\n");
	for (unsigned int law = 0; law < sizeof(laws) / sizeof(laws[0]);
	     law++) {
		for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]);
		     i++) {
			double value[6][SEEDS];

			for (unsigned int seed = 0; seed < SEEDS; seed++) {
				struct figures f =
					run(&cases[i], law, seed + 1);
				double all[6] = {f.share,    f.jain,  f.drops,
						 f.delay_ms, f.wrong, f.missed};

				for (unsigned int k = 0; k < 6; k++)
					value[k][seed] = all[k];
			}
			printf("| %s | %s | %.1f | %.3f | %.3f | %.1f | %.1f | "
			       "%.1f |\n",
			       laws[law].name, cases[i].name,
			       median(value[0], SEEDS), median(value[1], SEEDS),
			       median(value[2], SEEDS), median(value[3], SEEDS),
			       median(value[4], SEEDS),
			       median(value[5], SEEDS));
		}
	}
	print_jitter();
	return EXIT_SUCCESS;
}
