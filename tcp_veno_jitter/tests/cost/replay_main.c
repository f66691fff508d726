// SPDX-License-Identifier: GPL-2.0-only
/*
 * The C library's half of the replay: reads a recording and decides which
 * steps run, with callgrind told where a part ends.
 *
 *   replay check FILE              replays all, compares each step
 *   replay measure FILE N [cold]   at most N ACKs of each phase, then all calls
 *                                  that are not of an ACK
 *
 * The parts of an ACK are "before PHASE" (the first hooks), "control PHASE" (the
 * hook that moves cwnd) and "core PHASE" (the core's function that calls that
 * hook, or does without). The rest is one part, "events".
 *
 * Cold: the first-level caches are emptied before each call.
 */

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "replay.h"

/* As in enum cost_hook. */
enum { INIT, IN_ACK_EVENT, PKTS_ACKED, CONG_CONTROL, CONG_AVOID };

enum phase { START, STEADY, RECOVERY, PHASES };

static const char *const phase_names[PHASES] = {
	"start", "steady", "recovery",
};

#define START_RTTS	10
#define PAGE_BYTES	4096UL
#define CACHE_BYTES	65536	/* twice a first-level cache, in lines of 64 */

static struct replay_step *steps;
static unsigned long count;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "replay: %s: %s\n", what, why);
	exit(1);
}

static void open_recording(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat status;
	size_t bytes;
	void *data;

	if (fd < 0 || fstat(fd, &status))
		die(path, strerror(errno));
	bytes = status.st_size;
	data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		die(path, strerror(errno));
	close(fd);
	count = replay_count(data, bytes);
	if (!count)
		die(path, "no recording of this kernel");
	steps = aligned_alloc(PAGE_BYTES, (count * replay_step_bytes() +
					   PAGE_BYTES - 1) & -PAGE_BYTES);
	if (!steps || replay_open(data, bytes, steps))
		die(path, "the algorithm of the recording is not in this program");
	munmap(data, bytes);
}

/* First step from @from on that begins an ACK; the end if there is none. */
static unsigned long next_ack(unsigned long from)
{
	while (from < count &&
	       replay_view(replay_at(steps, from)).hook != IN_ACK_EVENT)
		from++;
	return from;
}

static enum phase phase_of(unsigned long ack)
{
	struct replay_view view = replay_view(replay_at(steps, ack));

	if (view.ca_state)
		return RECOVERY;
	return view.rtts < START_RTTS ? START : STEADY;
}

/* A lap over more data and code than the first-level caches hold. */
static void empty_caches(void)
{
	static char data[CACHE_BYTES];
	size_t i;

	for (i = 0; i < CACHE_BYTES; i += 64)
		asm volatile("movb %0, %%al" : : "m"(data[i]) : "al");
	asm volatile(".balign 64\n"
		     ".rept 1024\n"
		     "jmp 1f\n"
		     ".balign 64\n"
		     "1:\n"
		     ".endr\n");
}

static int is_ack_hook(const struct replay_view *view)
{
	return view->present && view->hook >= IN_ACK_EVENT &&
	       view->hook <= CONG_AVOID;
}

static void run_step(const struct replay_step *step, int cold)
{
	replay_load(step);
	if (cold)
		empty_caches();
	replay_call(step);
}

static void end_part(const char *kind, enum phase phase)
{
	char name[32];

	snprintf(name, sizeof(name), "%s %s", kind, phase_names[phase]);
	CALLGRIND_DUMP_STATS_AT(name);
}

/* An ACK in three parts; the last is what the core does with the second. */
static void run_ack(unsigned long ack, int cold)
{
	unsigned long next = next_ack(ack + 1), i;
	const struct replay_step *control = NULL;
	enum phase phase = phase_of(ack);

	for (i = ack; i < next; i++) {
		const struct replay_step *step = replay_at(steps, i);
		struct replay_view view = replay_view(step);

		if (!is_ack_hook(&view))
			continue;
		if (view.hook >= CONG_CONTROL)
			control = step;
		else
			run_step(step, cold);
	}
	end_part("before", phase);
	if (control)
		run_step(control, cold);
	end_part("control", phase);
	replay_load_core(replay_at(steps, ack), replay_at(steps, next), control);
	if (cold)
		empty_caches();
	replay_call_core();
	end_part("core", phase);
}

static void run_events(int cold)
{
	unsigned long i;

	for (i = 0; i < count; i++) {
		const struct replay_step *step = replay_at(steps, i);
		struct replay_view view = replay_view(step);

		if (!view.present || is_ack_hook(&view))
			continue;
		run_step(step, cold);
	}
}

/* At most @limit ACKs of each phase, evenly over it. */
static void measure(unsigned long limit, int cold)
{
	unsigned long of_phase[PHASES] = {}, seen[PHASES] = {}, ack, next;

	for (ack = next_ack(0); (next = next_ack(ack + 1)) < count; ack = next)
		of_phase[phase_of(ack)]++;
	for (ack = next_ack(0); (next = next_ack(ack + 1)) < count; ack = next) {
		enum phase phase = phase_of(ack);
		unsigned long total = of_phase[phase];
		unsigned long take = total < limit ? total : limit;
		unsigned long i = seen[phase]++;

		if (i * take / total != (i + 1) * take / total)
			run_ack(ack, cold);
	}
	run_events(cold);
	CALLGRIND_DUMP_STATS_AT("events");
}

/* Print what came out, and the first step that differs; 1 if any does. */
static int check(void)
{
	unsigned long verdicts[REPLAY_DIFFERS + 1] = {}, i;

	for (i = 0; i < count; i++) {
		const struct replay_step *step = replay_at(steps, i);
		struct replay_view view = replay_view(step);
		enum replay_verdict verdict;

		if (!view.present)
			continue;
		replay_load(step);
		replay_call(step);
		verdict = replay_check(step);
		verdicts[verdict]++;
		if (verdict == REPLAY_DIFFERS && verdicts[verdict] == 1)
			fprintf(stderr, "replay: step %lu, hook %u differs\n", i,
				view.hook);
	}
	printf("{\"same\": %lu, \"drawn\": %lu, \"differs\": %lu}\n",
	       verdicts[REPLAY_SAME], verdicts[REPLAY_DRAWN],
	       verdicts[REPLAY_DIFFERS]);
	return verdicts[REPLAY_DIFFERS] != 0;
}

static int run(int argc, char **argv)
{
	if (argc < 3)
		die("usage", "replay check FILE | replay measure FILE N [cold]");
	open_recording(argv[2]);
	if (!strcmp(argv[1], "check"))
		return check();
	if (strcmp(argv[1], "measure") || argc < 4)
		die(argv[1], "check FILE or measure FILE N [cold]");
	measure(strtoul(argv[3], NULL, 10), argc > 4);
	return 0;
}

/*
 * Arguments and environment lie above the stack and move it. The hooks' stack
 * must lie in the same cache lines whatever these are.
 */
int main(int argc, char **argv)
{
	unsigned long beyond_page = (unsigned long)__builtin_frame_address(0) %
				    PAGE_BYTES;
	void *pad = alloca(beyond_page);

	asm volatile("" : : "r"(pad) : "memory");
	return run(argc, argv);
}
