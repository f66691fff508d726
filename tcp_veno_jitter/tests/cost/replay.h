/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between the two halves of the replay: replay.c knows the kernel's
 * structures, replay_main.c the C library. Neither can include the other's
 * headers.
 */
#ifndef COST_REPLAY_H
#define COST_REPLAY_H

/**
 * struct replay_view - what a step is
 * @hook: enum cost_hook
 * @arg: the hook's last integer argument
 * @present: the algorithm has this hook (in_ack_event is always recorded)
 * @ca_state: enum tcp_ca_state
 * @rtts: round trips since the first step
 */
struct replay_view {
	unsigned int hook;
	unsigned int arg;
	unsigned int present;
	unsigned int ca_state;
	unsigned int rtts;
};

/* Results of replay_check(). */
enum replay_verdict {
	REPLAY_SAME,	/* every byte of the socket as recorded */
	REPLAY_DRAWN,	/* the hook drew a random number: not compared */
	REPLAY_DIFFERS
};

/* One step, opaque outside replay.c. */
struct replay_step;

unsigned long replay_count(const void *recording, unsigned long bytes);
unsigned long replay_step_bytes(void);
int replay_open(const void *recording, unsigned long bytes,
		struct replay_step *steps);
struct replay_step *replay_at(struct replay_step *steps, unsigned long i);
struct replay_view replay_view(const struct replay_step *step);
void replay_load(const struct replay_step *step);
void replay_load_core(const struct replay_step *ack,
		      const struct replay_step *next,
		      const struct replay_step *control);
void replay_call(const struct replay_step *step);
void replay_call_core(void);
enum replay_verdict replay_check(const struct replay_step *step);

#endif /* COST_REPLAY_H */
