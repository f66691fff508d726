// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs all unit tests; TAP on stdout, exit status 1 if one failed.
 */
#include "harness.h"

unsigned int test_failures;

static u64 random_state;

void random_seed(u64 seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
}

/* xorshift64* (Marsaglia 2003, Vigna 2014) */
u32 random_u32(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (random_state * 0x2545f4914f6cdd1dULL) >> 32;
}

u32 random_between(u32 low, u32 high)
{
	return low + (u64)random_u32() * ((u64)high - low + 1) / (1ULL << 32);
}

u32 random_log(unsigned int bits)
{
	unsigned int shift = random_between(32 - bits, 32);

	return shift == 32 ? 0 : random_u32() >> shift;
}

int main(void)
{
	const struct test *const suites[] = {
		jitter_ratio_tests, veno_backlog_tests, tabe_tests, loss_share_tests,
		peer_clock_tests, forward_queue_tests, wccp_option_tests,
		wccp_share_tests, cubic_window_tests, NULL,
	};
	unsigned int passed = 0, failed = 0;
	const struct test *test;
	int i;

	for (i = 0; suites[i]; i++) {
		for (test = suites[i]; test->run; test++) {
			test_failures = 0;
			random_seed(passed + failed + 1);
			test->run();
			if (test_failures)
				failed++;
			else
				passed++;
			printf("%s %u - %s\n", test_failures ? "not ok" : "ok",
			       passed + failed, test->claim);
		}
	}
	printf("1..%u\n", passed + failed);
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
