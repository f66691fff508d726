// SPDX-License-Identifier: GPL-2.0-only
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARETO_SHAPE 1.5
#define PARETO_MAX   100   /* means */
#define BUCKETS	     20000 /* of queueing delay, 0.1 ms each */
#define ORACLE_BITS  (1U << 20)

enum kind { SEND, TIMER, DATA, FEEDBACK_DUE, FEEDBACK, LEAVE, CROSS, SAMPLE };

struct event {
	tfrc_time at;
	uint64_t order;
	enum kind kind;
	unsigned int flow;
	uint32_t token; /* stale timers have an old one */
	uint8_t *packet;
	size_t bytes;
};

struct world {
	struct sim *sim;
	struct event *heap;
	size_t count, room;
	uint64_t order, random;
	tfrc_time now;
	/* the bottleneck */
	struct event *queue;
	unsigned int queued, queue_first;
	tfrc_time busy_until;
	/* of each flow */
	uint32_t send_token[SIM_FLOWS], timer_token[SIM_FLOWS],
		due_token[SIM_FLOWS];
	double source_bytes[SIM_FLOWS];
	tfrc_time source_at[SIM_FLOWS];
	uint8_t *passed[SIM_FLOWS];
	bool finished[SIM_FLOWS];
	tfrc_time in_order[SIM_FLOWS]; /* the newest is that late */
	/* of each cross traffic */
	tfrc_time on_until[SIM_FLOWS];
	uint64_t delays[BUCKETS], samples;
};

double sim_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static bool chance(struct world *w, double p)
{
	return p > 0 && sim_random(&w->random) < p;
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct world *w, struct event event)
{
	size_t i = w->count++;

	if (w->count > w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->heap = realloc(w->heap, w->room * sizeof(w->heap[0]));
	}
	event.order = w->order++;
	for (; i && earlier(&event, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = event;
}

static struct event pop(struct world *w)
{
	struct event first = w->heap[0], last = w->heap[--w->count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= w->count)
			break;
		if (child + 1 < w->count &&
		    earlier(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!earlier(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	if (w->count)
		w->heap[i] = last;
	return first;
}

/* --- the path ------------------------------------------------------------ */

static uint64_t seq_of(const uint8_t *packet)
{
	uint64_t seq = 0;

	for (unsigned int i = 0; i < 8; i++)
		seq = seq << 8 | packet[12 + i];
	return seq;
}

static tfrc_time wire_time(const struct world *w, size_t bytes)
{
	return (tfrc_time)(8e9 * (double)(bytes + w->sim->path.header_bytes) /
			   w->sim->path.rate_bps);
}

/* As where a link repeats what was lost: nothing overtakes. */
static tfrc_time jitter(struct world *w, unsigned int flow)
{
	tfrc_time most = w->sim->path.jitter_ns, at;

	if (!most)
		return 0;
	at = w->now + (tfrc_time)(sim_random(&w->random) * (double)most);
	if (at < w->in_order[flow])
		at = w->in_order[flow];
	w->in_order[flow] = at;
	return at - w->now;
}

static void past_queue(struct world *w, struct event event)
{
	const struct sim_path *path = &w->sim->path;
	struct sim_flow *flow = &w->sim->flow[event.flow];

	if (event.kind == CROSS)
		return;
	w->passed[event.flow][seq_of(event.packet) % ORACLE_BITS] = 1;
	if (chance(w, path->loss)) {
		flow->random_drops++;
		free(event.packet);
		return;
	}
	event.kind = DATA;
	event.at = w->now + path->delay_ns + jitter(w, event.flow);
	if (chance(w, path->duplicate)) {
		struct event copy = event;

		copy.packet = malloc(TFRC_DATA_HEADER_BYTES);
		memcpy(copy.packet, event.packet, TFRC_DATA_HEADER_BYTES);
		push(w, copy);
	}
	if (chance(w, path->reorder))
		event.at += path->reorder_ns;
	push(w, event);
}

static void enqueue(struct world *w, struct event event)
{
	struct sim *sim = w->sim;
	unsigned int room = sim->path.queue_pkts;

	if (event.kind == CROSS)
		sim->cross_sent++;
	if (!(sim->path.rate_bps > 0)) {
		past_queue(w, event);
		return;
	}
	if (w->queued >= room) {
		if (event.kind == CROSS)
			sim->cross_drops++;
		else
			sim->flow[event.flow].queue_drops++;
		free(event.packet);
		return;
	}
	w->queue[(w->queue_first + w->queued++) % room] = event;
	if (w->busy_until < w->now)
		w->busy_until = w->now;
	w->busy_until += wire_time(w, event.bytes);
	push(w, (struct event){.at = w->busy_until, .kind = LEAVE});
}

static void leave(struct world *w)
{
	struct event event = w->queue[w->queue_first];

	w->queue_first = (w->queue_first + 1) % w->sim->path.queue_pkts;
	w->queued--;
	past_queue(w, event);
}

/* Means of ON and OFF; a Pareto distribution's tail is cut. */
static tfrc_time pareto(struct world *w, tfrc_time mean)
{
	double least = (double)mean * (PARETO_SHAPE - 1) / PARETO_SHAPE;
	double time = least / pow(1 - sim_random(&w->random), 1 / PARETO_SHAPE);

	return (tfrc_time)(time < PARETO_MAX * (double)mean
				   ? time
				   : PARETO_MAX * (double)mean);
}

static void cross(struct world *w, unsigned int i)
{
	const struct sim_cross *c = &w->sim->cross[i];
	tfrc_time next =
		w->now +
		(tfrc_time)(8e9 * (c->bytes + w->sim->path.header_bytes) /
			    c->rate_bps);

	if (c->off_ns && next > w->on_until[i]) {
		next = w->on_until[i] + pareto(w, c->off_ns);
		w->on_until[i] = next + pareto(w, c->on_ns);
	}
	enqueue(w, (struct event){.kind = CROSS, .flow = i, .bytes = c->bytes});
	push(w, (struct event){.at = next, .kind = CROSS, .flow = i});
}

/* --- the ends ------------------------------------------------------------ */

static tfrc_time receiver_clock(const struct sim_flow *flow, tfrc_time now)
{
	const struct sim_clock *clock = &flow->clock;
	tfrc_time time =
		now + clock->offset_ns + (tfrc_time)((double)now * clock->skew);

	return clock->step_at && now >= clock->step_at ? time + clock->step_ns
						       : time;
}

/* How much later by the true clock. */
static tfrc_time true_time(const struct world *w, const struct sim_flow *flow,
			   tfrc_time at)
{
	tfrc_time left = at - receiver_clock(flow, w->now);

	return w->now +
	       (left > 0
			? (tfrc_time)((double)left / (1 + flow->clock.skew)) + 1
			: 0);
}

static tfrc_time at_least_now(const struct world *w, tfrc_time at)
{
	return at > w->now ? at : w->now;
}

static void plan_timer(struct world *w, unsigned int i)
{
	tfrc_time at = tfrc_sender_next_timer(w->sim->flow[i].sender);

	if (at != TFRC_NEVER)
		push(w, (struct event){.at = at_least_now(w, at),
				       .kind = TIMER,
				       .flow = i,
				       .token = ++w->timer_token[i]});
}

/* Bytes/s of its data; 0: there always is some. */
static double source_rate(const struct world *w, unsigned int i)
{
	const struct sim_flow *flow = &w->sim->flow[i];

	return flow->slow_until && w->now >= flow->slow_until
		       ? 0
		       : flow->source_rate;
}

static tfrc_time data_at(struct world *w, unsigned int i)
{
	struct sim_flow *flow = &w->sim->flow[i];
	tfrc_time at = at_least_now(w, tfrc_sender_next_send(flow->sender));
	double lacks;

	if (flow->idle_until && at >= flow->idle_from && at < flow->idle_until)
		at = flow->idle_until;
	if (!(source_rate(w, i) > 0))
		return at;
	lacks = (double)flow->payload_bytes - w->source_bytes[i];
	if (lacks > 0 &&
	    w->source_at[i] + (tfrc_time)(lacks / flow->source_rate * 1e9) >=
		    at)
		return w->source_at[i] +
		       (tfrc_time)(lacks / flow->source_rate * 1e9) + 1;
	return at;
}

static void plan_send(struct world *w, unsigned int i)
{
	if (!w->finished[i])
		push(w, (struct event){.at = data_at(w, i),
				       .kind = SEND,
				       .flow = i,
				       .token = ++w->send_token[i]});
}

static bool take_source(struct world *w, unsigned int i)
{
	struct sim_flow *flow = &w->sim->flow[i];

	if (!(source_rate(w, i) > 0))
		return !(flow->idle_until && w->now < flow->idle_from &&
			 tfrc_sender_next_send(flow->sender) >=
				 flow->idle_from);
	w->source_bytes[i] +=
		(double)(w->now - w->source_at[i]) * 1e-9 * flow->source_rate;
	w->source_at[i] = w->now;
	w->source_bytes[i] -= (double)flow->payload_bytes;
	return w->source_bytes[i] >= (double)flow->payload_bytes;
}

static void send_one(struct world *w, unsigned int i)
{
	struct sim_flow *flow = &w->sim->flow[i];
	bool fin = flow->stop && w->now >= flow->stop;
	bool more = take_source(w, i);
	uint8_t *packet = malloc(TFRC_DATA_HEADER_BYTES);

	if (tfrc_sender_packet(
		    flow->sender, w->now, fin ? 0 : flow->payload_bytes,
		    (more ? TFRC_MORE : 0) | (fin ? TFRC_FIN : 0), packet)) {
		free(packet);
		return;
	}
	flow->sent++;
	w->passed[i][seq_of(packet) % ORACLE_BITS] = 0;
	enqueue(w, (struct event){.kind = DATA,
				  .flow = i,
				  .packet = packet,
				  .bytes = TFRC_DATA_HEADER_BYTES +
					   (fin ? 0 : flow->payload_bytes)});
	plan_send(w, i);
	plan_timer(w, i);
}

static void plan_due(struct world *w, unsigned int i)
{
	struct sim_flow *flow = &w->sim->flow[i];
	tfrc_time due = tfrc_receiver_next_timer(flow->receiver);

	if (due != TFRC_NEVER)
		push(w, (struct event){.at = true_time(w, flow, due),
				       .kind = FEEDBACK_DUE,
				       .flow = i,
				       .token = ++w->due_token[i]});
}

static void answer(struct world *w, unsigned int i)
{
	const struct sim_path *path = &w->sim->path;
	struct sim_flow *flow = &w->sim->flow[i];
	uint8_t *packet = malloc(TFRC_FEEDBACK_MAX_BYTES);
	size_t bytes = tfrc_receiver_feedback(
		flow->receiver, receiver_clock(flow, w->now), packet);
	bool silent = w->now >= path->silent_from &&
		      w->now < path->silent_until;

	if (bytes && flow->lie)
		bytes = flow->lie(flow->lie_arg, packet, bytes);
	if (!bytes || silent || chance(w, path->feedback_loss))
		free(packet);
	else
		push(w, (struct event){.at = w->now + path->delay_ns,
				       .kind = FEEDBACK,
				       .flow = i,
				       .packet = packet,
				       .bytes = bytes});
	plan_due(w, i);
}

static void arrive(struct world *w, struct event *event)
{
	unsigned int i = event->flow;
	struct sim_flow *flow = &w->sim->flow[i];
	tfrc_time now = receiver_clock(flow, w->now);
	uint8_t *whole =
		calloc(1, event->bytes); /* the payload is not carried along */
	struct tfrc_data data;
	int due;

	memcpy(whole, event->packet, TFRC_DATA_HEADER_BYTES);
	due = tfrc_receiver_data(flow->receiver, now, now, whole, event->bytes,
				 &data, sizeof(data));
	if (due >= 0) {
		size_t bin = (size_t)(w->now / w->sim->bin_ns);

		flow->payload_arrived += data.payload_bytes;
		if (w->now < w->sim->warmup)
			flow->payload_warm += data.payload_bytes;
		if (bin < sizeof(flow->bin) / sizeof(flow->bin[0])) {
			flow->bin[bin] += (double)data.payload_bytes;
			flow->bins = (unsigned int)bin + 1;
		}
	}
	if (due == TFRC_FEEDBACK_DUE)
		answer(w, i);
	else
		plan_due(w, i);
	free(whole);
}

static bool oracle(void *arg, uint64_t seq)
{
	const uint8_t *passed = arg;

	return passed[seq % ORACLE_BITS];
}

/* A bin without feedback keeps the rate of the one before. */
static void note_rate(const struct world *w, struct sim_flow *flow, double rate)
{
	size_t bin = (size_t)(w->now / w->sim->bin_ns);

	for (; flow->rates <= bin &&
	       flow->rates < sizeof(flow->rate) / sizeof(flow->rate[0]);
	     flow->rates++)
		flow->rate[flow->rates] =
			flow->rates ? flow->rate[flow->rates - 1] : 0;
	if (bin < flow->rates)
		flow->rate[bin] = rate;
}

static void handle_feedback(struct world *w, struct event *event)
{
	struct sim_flow *flow = &w->sim->flow[event->flow];
	struct tfrc_sender_info info;

	tfrc_sender_feedback(flow->sender, w->now, event->packet, event->bytes);
	tfrc_sender_get_info(flow->sender, &info, sizeof(info));
	note_rate(w, flow, info.rate);
	if (info.fin_acked && !flow->fin_acked_at) {
		flow->fin_acked_at = w->now;
		w->finished[event->flow] = true;
	}
	plan_send(w, event->flow);
	plan_timer(w, event->flow);
}

static void sample(struct world *w)
{
	tfrc_time delay = w->busy_until > w->now ? w->busy_until - w->now : 0;
	size_t bucket = (size_t)(delay / (SIM_MS / 10));

	if (w->now >= w->sim->warmup) {
		w->delays[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
		w->samples++;
	}
	push(w, (struct event){.at = w->now + 10 * SIM_MS, .kind = SAMPLE});
}

static void handle(struct world *w, struct event *event)
{
	unsigned int i = event->flow;

	switch (event->kind) {
	case SEND:
		if (event->token == w->send_token[i] && !w->finished[i])
			send_one(w, i);
		break;
	case TIMER:
		if (event->token != w->timer_token[i] || w->finished[i])
			break;
		tfrc_sender_timer(w->sim->flow[i].sender, w->now);
		plan_send(w, i);
		plan_timer(w, i);
		break;
	case DATA:
		arrive(w, event);
		break;
	case FEEDBACK_DUE:
		if (event->token == w->due_token[i])
			answer(w, i);
		break;
	case FEEDBACK:
		handle_feedback(w, event);
		break;
	case LEAVE:
		leave(w);
		break;
	case CROSS:
		cross(w, i);
		break;
	case SAMPLE:
		sample(w);
		break;
	}
	free(event->packet);
}

static double quantile(const struct world *w, double q)
{
	uint64_t below = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		below += w->delays[i];
		if ((double)below >= q * (double)w->samples)
			return (double)i * 0.1;
	}
	return 0;
}

static void set_up(struct world *w)
{
	struct sim *sim = w->sim;

	if (sim->path.queue_pkts)
		w->queue = calloc(sim->path.queue_pkts, sizeof(w->queue[0]));
	for (unsigned int i = 0; i < sim->flows; i++) {
		struct sim_flow *flow = &sim->flow[i];
		w->passed[i] = calloc(1, ORACLE_BITS);
		flow->config.connection_id = sim->seed * 1000 + i;
		flow->config.key[0] = (uint8_t)i;
		flow->sender = tfrc_sender_new(
			&flow->config, sizeof(flow->config), flow->start);
		flow->receiver = tfrc_receiver_new(NULL, 0);
		tfrc_testbed_oracle(flow->receiver, oracle, w->passed[i]);
		w->source_at[i] = flow->start;
		push(w, (struct event){.at = flow->start,
				       .kind = SEND,
				       .flow = i,
				       .token = ++w->send_token[i]});
	}
	for (unsigned int i = 0; i < sim->crosses; i++)
		push(w, (struct event){
				.at = (tfrc_time)(sim_random(&w->random) * 1e7),
				.kind = CROSS,
				.flow = i});
	push(w, (struct event){.kind = SAMPLE});
}

void sim_run(struct sim *sim)
{
	struct world *w = calloc(1, sizeof(*w));

	w->sim = sim;
	w->random = sim->seed;
	if (!sim->bin_ns)
		sim->bin_ns = SIM_SECOND;
	set_up(w);
	while (w->count && w->heap[0].at <= sim->duration) {
		struct event event = pop(w);

		w->now = event.at;
		sim->events++;
		/* handed on packets are not the handler's to free */
		if (event.kind == LEAVE || event.kind == CROSS)
			event.packet = NULL;
		handle(w, &event);
	}
	sim->queue_delay_p50_ms = quantile(w, 0.5);
	sim->queue_delay_p95_ms = quantile(w, 0.95);
	for (size_t i = 0; i < w->count; i++)
		free(w->heap[i].packet);
	for (unsigned int i = 0; i < w->queued; i++)
		free(w->queue[(w->queue_first + i) % sim->path.queue_pkts]
			     .packet);
	for (unsigned int i = 0; i < sim->flows; i++)
		free(w->passed[i]);
	free(w->queue);
	free(w->heap);
	free(w);
}

void sim_free(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->flows; i++) {
		tfrc_sender_free(sim->flow[i].sender);
		tfrc_receiver_free(sim->flow[i].receiver);
	}
}

double sim_goodput(const struct sim *sim, unsigned int flow)
{
	const struct sim_flow *f = &sim->flow[flow];

	return 8e9 * (double)(f->payload_arrived - f->payload_warm) /
	       (double)(sim->duration - sim->warmup);
}

double sim_variation(const struct sim *sim, unsigned int flow)
{
	const struct sim_flow *f = &sim->flow[flow];
	double n = 0, sum = 0, squares = 0;

	for (unsigned int i = (unsigned int)(sim->warmup / sim->bin_ns);
	     i < f->bins; i++) {
		n++;
		sum += f->bin[i];
		squares += f->bin[i] * f->bin[i];
	}
	return sum > 0 ? sqrt(squares / n - sum / n * (sum / n)) / (sum / n)
		       : 0;
}
