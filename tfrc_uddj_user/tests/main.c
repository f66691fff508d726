// SPDX-License-Identifier: GPL-2.0-only
/* Runs all tests, or those whose claim contains the argument; output is TAP. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

unsigned int test_failures;

static const struct test *const suites[] = {
	api_tests,  equation_tests,   history_tests, reference_tests,
	wire_tests, uddj_tests,	      sender_tests,  receiver_tests,
	liar_tests, connection_tests,
};

int main(int argc, char **argv)
{
	unsigned int number = 0, failed = 0;

	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		for (const struct test *test = suites[i]; test->run; test++) {
			if (argc > 1 && !strstr(test->claim, argv[1]))
				continue;
			test_failures = 0;
			test->run();
			failed += test_failures != 0;
			printf("%sok %u - %s\n", test_failures ? "not " : "",
			       ++number, test->claim);
		}
	}
	printf("1..%u\n", number);
	return failed || !number ? EXIT_FAILURE : EXIT_SUCCESS;
}
