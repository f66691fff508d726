/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test is a function that calls EXPECT(); a failed one prints where and what.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdio.h>

#include "estimators/types.h"

/* Failed expectations of the running test. */
extern unsigned int test_failures;

#define EXPECT(cond, ...) \
	do { \
		if (!(cond) && test_failures++ < 3) { \
			printf("# %s:%d: %s: ", __FILE__, __LINE__, #cond); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

/* A test and the claim it makes. */
struct test {
	void (*run)(void);
	const char *claim;
};

/* Ends with an entry without run. */
extern const struct test jitter_ratio_tests[];
extern const struct test veno_backlog_tests[];
extern const struct test loss_share_tests[];
extern const struct test cubic_window_tests[];
extern const struct test tabe_tests[];
extern const struct test peer_clock_tests[];
extern const struct test forward_queue_tests[];
extern const struct test wccp_option_tests[];
extern const struct test wccp_share_tests[];

/* Same numbers on every run. */
void random_seed(u64 seed);
u32 random_u32(void);
/* Uniform in [low, high]. */
u32 random_between(u32 low, u32 high);
/* Uniform in its bits: small and huge numbers alike, at most @bits bits. */
u32 random_log(unsigned int bits);

#endif /* TESTS_HARNESS_H */
