/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rate that a loss event rate allows, and back: the throughput equation for
 * a flow of packets of S bytes, headers of libtfrc included; under TFRC-SP (RFC
 * 4828, 4.2) SMALL packets have what a TCP of 1460-byte segments would have.
 * Rates are bytes/s, round trips seconds.
 */
#ifndef TFRC_EQUATION_H
#define TFRC_EQUATION_H

#include "tfrc.h"

/* X_Bps for p; 0 for arguments that make no sense. */
double equation_rate(bool small, double s, double rtt_s, double p);

/* The p for which that is X, at most 1. */
double equation_p(bool small, double s, double rtt_s, double x);

/*
 * RFC 5348, 6.3.1: what the first loss interval counts as, packets, when at
 * most X had been received; half a packet a round trip is the least that
 * counts. 0: R is not known.
 */
double equation_first_interval(bool small, double s, double rtt_s, double x);

#endif
