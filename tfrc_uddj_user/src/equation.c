// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP throughput equation, RFC 5348, 3.1, with b = 1 and t_RTO = 4R:
 *
 *                               s
 *   X = ---------------------------------------------------------
 *       R * (sqrt(2p/3) + 12 * sqrt(3p/8) * p * (1 + 32 p^2))
 *
 * The right factor falls in p without end, so there is one p to each X; the
 * inverse is found by halving, which needs no derivative and cannot diverge.
 */
#include "equation.h"

#include <math.h>

/* RFC 4828, 4.2: the segments of the TCP, and the headers of IP and transport. */
#define SMALL_NOMINAL 1460.0
#define SMALL_HEADER  40.0

#define LEAST_PER_RTT 0.5 /* 6.3.1, packets */

/* R X / s: the rate in packets a round trip. */
static double packets_per_rtt(double p)
{
	return 1 /
	       (sqrt(2 * p / 3) + 12 * sqrt(3 * p / 8) * p * (1 + 32 * p * p));
}

double tfrc_equation(double s, double r, double p)
{
	if (!(s > 0) || !(r > 0) || !(p > 0))
		return 0;
	return s / r * packets_per_rtt(p < 1 ? p : 1);
}

double tfrc_equation_inverse(double s, double r, double x)
{
	/* p is looked for by its logarithm: it spans many decades */
	double low = -100, high = 0, wanted = x * r / s;

	if (!(s > 0) || !(r > 0) || !(x > 0))
		return 1;
	for (unsigned int i = 0; i < 64; i++) {
		double middle = (low + high) / 2;

		if (packets_per_rtt(exp2(middle)) > wanted)
			low = middle;
		else
			high = middle;
	}
	return exp2(high);
}

/* Of TFRC-SP's rate a part goes to the headers, which small packets have more
 * of. */
static double small_share(double s)
{
	return s / (s + SMALL_HEADER);
}

double equation_rate(bool small, double s, double rtt_s, double p)
{
	if (!small)
		return tfrc_equation(s, rtt_s, p);
	return s > 0 ? tfrc_equation(SMALL_NOMINAL, rtt_s, p) * small_share(s)
		     : 0;
}

double equation_p(bool small, double s, double rtt_s, double x)
{
	if (!small)
		return tfrc_equation_inverse(s, rtt_s, x);
	return s > 0 ? tfrc_equation_inverse(SMALL_NOMINAL, rtt_s,
					     x / small_share(s))
		     : 1;
}

double equation_first_interval(bool small, double s, double rtt_s, double x)
{
	double least = LEAST_PER_RTT * s / rtt_s;

	if (!(rtt_s > 0) || !(s > 0))
		return 0;
	return 1 / equation_p(small, s, rtt_s, x > least ? x : least);
}
