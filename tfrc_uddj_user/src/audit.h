/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sender's own view of what became of its packets (RFC 5348, 9; RFC 4342,
 * 9).
 *
 * Each packet has a nonce that only who received it knows. A receiver reports
 * an edge, below which it knows the fate of all packets, the holes below it,
 * and the XOR of all nonces that it got. The sender, who can compute each
 * nonce, sums up what is not in a hole: a receiver that hides a loss, or
 * acknowledges what did not arrive yet, must guess 32 bits.
 *
 * From holes that are true follow the loss event rate and the rate of arrival,
 * which the receiver's own figures are held against.
 */
#ifndef TFRC_AUDIT_H
#define TFRC_AUDIT_H

#include "history.h"
#include "wire.h"

/* What is kept of a packet: sums, so that spans are differences. */
struct audit_record {
	tfrc_time sent;
	uint64_t bytes_end;   /* sent up to and with this packet */
	uint32_t limited_end; /* packets that the rate held back, likewise;
				 wraps */
};

struct audit {
	const uint8_t *key;
	struct audit_record *records; /* a ring, by seq */
	uint64_t capacity;	      /* a power of two */
	uint64_t next_seq;
	uint64_t edge;
	uint64_t echo_seq; /* of the newest feedback */
	bool echoed;	   /* there was one */
	uint32_t nonce_sum;
	struct tfrc_history history; /* of losses by congestion */
	struct tfrc_history all;     /* of all losses, whatever is said */
	uint64_t arrived_bytes;	     /* below the edge, not in holes */
	uint64_t arrived_packets;
	uint64_t lost_congestion;
	uint64_t lost_random;
	uint64_t random_counted; /* of these, those of a long run as RUN_COUNTED
				  */
	/* the rate of arrival by the sender's clock, over a round trip at least
	 */
	bool rate_started;
	tfrc_time rate_from;
	uint64_t rate_from_bytes;
	double rates[2]; /* the newest two */
};

/* 0 or TFRC_E_NOMEM. */
int audit_init(struct audit *a, const uint8_t *key, bool small);
void audit_free(struct audit *a);

/* Packet next_seq leaves. LIMITED: it is the rate that holds the next one back.
 */
int audit_sent(struct audit *a, tfrc_time now, size_t bytes, bool limited);

/* Could FB be? Changes nothing. 0 or a tfrc_error. */
int audit_check(const struct audit *a, const struct wire_feedback *fb);

/* Take FB, which audit_check() has passed; R is the round trip time. */
void audit_take(struct audit *a, const struct wire_feedback *fb, tfrc_time rtt);

/* Nothing that was sent after the feedback before FB was held back by the rate.
 */
bool audit_data_limited(const struct audit *a, const struct wire_feedback *fb);

/* When packet SEQ was sent; it has been, and is in the ring. */
tfrc_time audit_sent_at(const struct audit *a, uint64_t seq);

/* The most that can have arrived, bytes/s; 0: not known. */
double audit_rate_max(const struct audit *a);

#endif
