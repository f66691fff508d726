// SPDX-License-Identifier: GPL-2.0-only
/* Prints "kept" if the floating point state of processes and threads is what they left in it. */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200

static volatile sig_atomic_t caught;

/* Give xmm0 and xmm15 a mark, let the kernel do something, and say whether they still have it. */
static int keeps(uint64_t mark, long number, long a, long b, long *result)
{
	uint64_t low, high;
	long got;

	asm volatile("movq %[mark], %%xmm0\n\t"
		     "movq %[mark], %%xmm15\n\t"
		     "syscall\n\t"
		     "movq %%xmm0, %[low]\n\t"
		     "movq %%xmm15, %[high]\n\t"
		     : "=a"(got), [low] "=&r"(low), [high] "=&r"(high)
		     : "0"(number), "D"(a), "S"(b), "d"(0L), [mark] "r"(mark)
		     : "rcx", "r11", "xmm0", "xmm15", "memory");
	if (result)
		*result = got;
	return low == mark && high == mark;
}

static void *yield_often(void *mark)
{
	for (int i = 0; i < ROUNDS; i++)
		if (!keeps((uint64_t)mark + i, SYS_sched_yield, 0, 0, NULL))
			return "a thread lost its registers to another";
	return NULL;
}

static void on_signal(int number)
{
	uint64_t other = 0xdead;

	asm volatile("movq %0, %%xmm0\n\tmovq %0, %%xmm15" : : "r"(other) : "xmm0", "xmm15");
	caught = number;
}

static const char *after_fork(void)
{
	uint64_t mark = 0xf0f0;
	int status;
	long pid;
	int kept = keeps(mark, SYS_fork, 0, 0, &pid);

	if (!pid)
		_exit(!kept);
	waitpid(pid, &status, 0);
	if (!kept)
		return "a parent lost its registers by fork";
	return status ? "a child did not get its parent's registers" : NULL;
}

static const char *after_signal(void)
{
	signal(SIGUSR1, on_signal);
	if (!keeps(0xabcd, SYS_kill, getpid(), SIGUSR1, NULL))
		return "a signal's handler changed the registers";
	return caught ? NULL : "no signal came";
}

/* A tracer sees a child's xmm0, not its own, and may change it. */
static const char *when_traced(void)
{
	struct user_fpregs_struct regs;
	uint64_t seen, mark = 0x1234;
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		_exit(!keeps(mark, SYS_kill, getpid(), SIGSTOP, NULL));
	}
	waitpid(pid, &status, 0);
	keeps(0x9999, SYS_getppid, 0, 0, NULL);
	if (ptrace(PTRACE_GETFPREGS, pid, NULL, &regs))
		return "PTRACE_GETFPREGS failed";
	memcpy(&seen, regs.xmm_space, sizeof(seen));
	regs.xmm_space[0]++;
	if (ptrace(PTRACE_SETFPREGS, pid, NULL, &regs))
		return "PTRACE_SETFPREGS failed";
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	if (seen != mark)
		return "a tracer saw other registers than the child's";
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? NULL : "a tracer changed nothing";
}

int main(void)
{
	const char *lost = NULL;
	pthread_t threads[3];
	void *told;

	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, yield_often, (void *)((i + 1) << 32));
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &told);
		lost = lost ? lost : told;
	}
	lost = lost ? lost : after_fork();
	lost = lost ? lost : after_signal();
	lost = lost ? lost : when_traced();
	puts(lost ? lost : "kept");
	return lost != NULL;
}
