/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test is a function that calls EXPECT(); a failed one prints where and what.
 */
#ifndef TFRC_TESTS_HARNESS_H
#define TFRC_TESTS_HARNESS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* Failed expectations of the running test. */
extern unsigned int test_failures;

#define EXPECT(cond, ...)                                                   \
	do {                                                                \
		if (!(cond) && test_failures++ < 5) {                       \
			printf("# %s:%d: %s: ", __FILE__, __LINE__, #cond); \
			printf(__VA_ARGS__);                                \
			printf("\n");                                       \
		}                                                           \
	} while (0)

#define EXPECT_NEAR(value, wanted, relative)                   \
	do {                                                   \
		double v_ = (value), w_ = (wanted);            \
		EXPECT(fabs(v_ - w_) <= (relative) * fabs(w_), \
		       "%.9g, wanted %.9g", v_, w_);           \
	} while (0)

/* A test and the claim it makes. */
struct test {
	void (*run)(void);
	const char *claim;
};

/* Ends with an entry without run. */
extern const struct test equation_tests[];
extern const struct test history_tests[];
extern const struct test reference_tests[];
extern const struct test wire_tests[];
extern const struct test uddj_tests[];
extern const struct test sender_tests[];
extern const struct test receiver_tests[];
extern const struct test liar_tests[];
extern const struct test api_tests[];
extern const struct test connection_tests[];

#endif
