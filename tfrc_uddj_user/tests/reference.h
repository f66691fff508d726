/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loss event rate by the text of RFC 5348 (5.2 to 5.5, 6.3.1) and RFC 4828
 * (4.4), worked out anew from all packets each time it is asked for. It shares
 * nothing with the library but the claim to be right.
 */
#ifndef TFRC_TESTS_REFERENCE_H
#define TFRC_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

/* Packet i of a row; the last three at least have come. */
struct reference_packet {
	bool lost;
	double time_s; /* of arrival, if it came */
};

struct reference {
	const struct reference_packet *packet;
	size_t packets;
	double rtt_s;
	double packet_bytes;	 /* s */
	double receive_rate_max; /* X_recv so far, at the first loss, bytes/s */
	bool small;		 /* RFC 4828 */
};

/* p; 0 before the first loss. */
double reference_p(const struct reference *of);

#endif
