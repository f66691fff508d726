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
	tfrc_time busy_end;   /* time so far, a pause counted as a round trip */
	uint64_t bytes_end;   /* sent up to and with this packet */
	uint32_t limited_end; /* packets that the rate held back, likewise */
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
	bool may_be_random; /* the receiver is asked what losses were */
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
	tfrc_time rate_from; /* a record's BUSY_END */
	uint64_t rate_from_bytes;
	double rates[2]; /* the newest two */
};

/*
 * MAY_BE_RANDOM: what the receiver says of a loss's cause counts; else each is
 * congestion, whatever it says. PACKETS are remembered, or a few more. False:
 * no memory.
 */
bool audit_init(struct audit *a, const uint8_t *key, uint32_t packets,
		bool small, bool may_be_random);
void audit_free(struct audit *a);

/* Packet next_seq leaves. LIMITED: it was the rate that held it back. R: so
 * far. */
void audit_sent(struct audit *a, tfrc_time now, size_t bytes, bool limited,
		tfrc_time rtt);

/* What the first loss interval counts as (6.3.1), while there is none. */
void audit_first_interval(struct audit *a, double packets);

/* Could FB be? Changes nothing. 0 or a tfrc_error. */
int audit_check(const struct audit *a, const struct wire_feedback *fb);

/* Take FB, which audit_check() has passed; R is the round trip time. */
void audit_take(struct audit *a, const struct wire_feedback *fb, tfrc_time rtt);

/*
 * Did the rate hold back no packet that FB is about: from the echo before to
 * its own (4.3), and of these those of the last round trip, as X_recv is (6.2)?
 */
bool audit_data_limited(const struct audit *a, const struct wire_feedback *fb,
			tfrc_time rtt);

/*
 * How much later than the first packet of unknown fate the one was sent that FB
 * echoes. A receiver that leaves this open for long does not want to tell.
 */
tfrc_time audit_lag(const struct audit *a, const struct wire_feedback *fb);

/* From packet SEQ to the one sent next; TFRC_NEVER: none was. */
tfrc_time audit_gap_after(const struct audit *a, uint64_t seq);

/* When packet SEQ was sent; it has been, and is in the ring. */
tfrc_time audit_sent_at(const struct audit *a, uint64_t seq);

/* The most that can have arrived, bytes/s; 0: not known. */
double audit_rate_max(const struct audit *a);

#endif
