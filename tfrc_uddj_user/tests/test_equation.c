// SPDX-License-Identifier: GPL-2.0-only
#include "equation.h"
#include "harness.h"
#include "sim.h"

/* RFC 5348, 3.1 word for word, b and t_RTO not put in, in long double. */
static long double oracle(long double s, long double r, long double p)
{
	const long double b = 1, t_rto = 4 * r;

	return s / (r * sqrtl(2 * b * p / 3) +
		    t_rto * (3 * sqrtl(3 * b * p / 8)) * p * (1 + 32 * p * p));
}

static void test_oracle(void)
{
	for (double exponent = -12; exponent <= 0; exponent += 0.01) {
		double p = pow(10, exponent);

		EXPECT_NEAR(tfrc_equation(1460, 0.1, p),
			    (double)oracle(1460, 0.1, p), 1e-12);
		EXPECT_NEAR(tfrc_equation(1, 1e-4, p),
			    (double)oracle(1, 1e-4, p), 1e-12);
		EXPECT_NEAR(tfrc_equation(65507, 10, p),
			    (double)oracle(65507, 10, p), 1e-12);
	}
}

/* Worked out with 50 decimal digits elsewhere, bytes/s. */
static void test_values(void)
{
	EXPECT_NEAR(tfrc_equation(1460, 0.1, 0.01), 164005.06216996977, 1e-13);
	EXPECT_NEAR(tfrc_equation(1460, 0.1, 1e-6), 17881114.192289464, 1e-13);
	EXPECT_NEAR(tfrc_equation(1000, 0.05, 0.1), 35402.041555826479, 1e-13);
	EXPECT_NEAR(tfrc_equation(1460, 0.1, 1), 60.004278933950335, 1e-13);
}

/*
 * Linux had f(p) = s / (R X) as a table (net/dccp/ccids/lib/tfrc_equation.c, up
 * to 6.15): 500 values of p by 0.002 and 500 by 0.0001, in millionths and
 * rounded down. Its numbers are not repeated here, but what FNV-1a makes of
 * them, row by row: that is the same only if all 1000 are.
 */
static void test_kernel_table(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned int row = 1; row <= 500; row++) {
		const double p[2] = {row / 500.0, row / 10000.0};

		for (unsigned int column = 0; column < 2; column++) {
			double f = 1e6 / tfrc_equation(1, 1, p[column]);

			hash ^= (uint64_t)floor(f + 1e-6);
			hash *= UINT64_C(0x100000001b3);
		}
	}
	EXPECT(hash == UINT64_C(0xfe50ae6f4c7e64ba), "%llx",
	       (unsigned long long)hash);
}

/* RFC 4828, 4.2 and RFC 5348, 6.3.1 together. */
static void test_small(void)
{
	const double s = 100, r = 0.05;

	for (double x = 1e3; x < 1e7; x *= 1.7) {
		double packets = equation_first_interval(true, s, r, x);

		EXPECT_NEAR(equation_rate(true, s, r, 1 / packets), x, 1e-6);
		EXPECT_NEAR((double)oracle(1460, r, 1 / packets) * s / (s + 40),
			    x, 1e-6);
	}
	/* half a packet a round trip at least; no round trip, no interval */
	EXPECT_NEAR(equation_rate(false, s, r,
				  1 / equation_first_interval(false, s, r, 1)),
		    0.5 * s / r, 1e-6);
	EXPECT(equation_first_interval(false, s, 0, 1e6) == 0, "no R");
}

static void test_inverse(void)
{
	for (double exponent = -12; exponent <= 0; exponent += 0.01) {
		double p = pow(10, exponent);
		double x = tfrc_equation(1460, 0.1, p);

		EXPECT_NEAR(tfrc_equation_inverse(1460, 0.1, x), p, 1e-9);
	}
}

static void test_monotonic(void)
{
	double last = INFINITY;

	for (double exponent = -12; exponent <= 0; exponent += 0.01) {
		double x = tfrc_equation(1460, 0.1, pow(10, exponent));

		EXPECT(x < last, "at 1e%g", exponent);
		last = x;
	}
}

static void test_nonsense(void)
{
	const double odd[] = {0, -1, NAN};

	for (unsigned int i = 0; i < 3; i++) {
		EXPECT(tfrc_equation(odd[i], 0.1, 0.1) == 0, "s %g", odd[i]);
		EXPECT(tfrc_equation(1460, odd[i], 0.1) == 0, "R %g", odd[i]);
		EXPECT(tfrc_equation(1460, 0.1, odd[i]) == 0, "p %g", odd[i]);
		EXPECT(tfrc_equation_inverse(1460, 0.1, odd[i]) == 1, "X %g",
		       odd[i]);
		EXPECT(tfrc_equation_inverse(odd[i], 0.1, 1) == 1, "s %g",
		       odd[i]);
	}
	EXPECT(tfrc_equation(1460, 0.1, 7) == tfrc_equation(1460, 0.1, 1),
	       "p above 1");
	EXPECT(tfrc_equation_inverse(1460, 0.1, 1e-9) == 1,
	       "slower than p = 1 gives");
}

const struct test equation_tests[] = {
	{test_oracle, "the equation is the RFC's over 12 decades"},
	{test_values, "the equation gives the values worked out elsewhere"},
	{test_kernel_table,
	 "all 1000 values of the table that Linux had, to 1e-6"},
	{test_small, "small packets' first interval fits small packets' rate"},
	{test_inverse, "the inverse takes back 12 decades to 1e-9"},
	{test_monotonic, "more loss never allows a higher rate"},
	{test_nonsense, "arguments that make no sense allow nothing"},
	{0},
};
