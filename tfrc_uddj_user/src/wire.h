/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packets of docs/wire-formats.md and nothing else: what a field means is
 * checked where it is used, that it has a possible value is checked here.
 */
#ifndef TFRC_WIRE_H
#define TFRC_WIRE_H

#include "tfrc_testbed.h"

/* Bits of a data packet's flags. */
#define WIRE_DATA_FIN		     0x01
#define WIRE_DATA_SMALL		     0x02 /* RFC 4828 */
#define WIRE_DATA_DISCRIMINATE	     0x0c /* enum tfrc_discrimination */
#define WIRE_DATA_DISCRIMINATE_SHIFT 2
#define WIRE_DATA_LAW		     0x30 /* enum tfrc_uddj_law */
#define WIRE_DATA_LAW_SHIFT	     4
#define WIRE_DATA_KNOWN		     0x3f

/* Bits of a feedback packet's flags. */
#define WIRE_FEEDBACK_FIN	0x01
#define WIRE_FEEDBACK_CONGESTED 0x02
#define WIRE_FEEDBACK_UNKNOWN	0x04 /* the connection is not known here */
#define WIRE_FEEDBACK_KNOWN	0x07

#define WIRE_FEEDBACK_HEADER_BYTES 76
#define WIRE_HOLE_BYTES		   12
#define WIRE_HOLES_MAX		   101
#define WIRE_HOLE_RANDOM	   0x80000000U /* of its length: not by congestion */
#define WIRE_HOLE_LENGTH_MAX	   0x7fffffffU

/* Sequence numbers stay below this, so that sums of them fit in 64 bits. */
#define WIRE_SEQ_MAX (UINT64_C(1) << 62)

/* Times, too: differences of differences fit. 2^61 ns are 73 years. */
#define WIRE_TIME_MAX (INT64_C(1) << 61)

_Static_assert(WIRE_FEEDBACK_HEADER_BYTES + WIRE_HOLES_MAX * WIRE_HOLE_BYTES ==
		       TFRC_FEEDBACK_MAX_BYTES,
	       "a feedback packet with all its holes");

struct wire_data {
	uint8_t flags;
	uint64_t connection_id;
	uint64_t seq;
	uint64_t send_time_ns; /* sender's clock */
	uint64_t acked_edge;   /* holes below it have been heard of */
	uint32_t nonce;
	uint32_t rtt_us;	/* R; 0: not known */
	uint32_t rtt_sample_us; /* the newest sample; 0: none */
	uint32_t challenge;	/* of the newest feedback; 0: none */
};

struct wire_hole {
	uint64_t first;
	uint32_t length;
	bool random;
};

struct wire_feedback {
	uint8_t flags;
	uint64_t connection_id;
	uint64_t number;     /* 1, 2, 3, ... */
	uint64_t echo_seq;   /* the newest packet, */
	uint32_t echo_nonce; /* its nonce, */
	uint64_t delay_ns;   /* and how long ago it came: t_delay */
	uint64_t x_recv;     /* bytes/s, 2^-16 */
	uint32_t p;	     /* 2^-32 */
	uint32_t loss_events;
	uint64_t edge;	    /* the fate of all packets below it is known */
	uint32_t nonce_sum; /* XOR of the nonces of those that arrived */
	uint32_t queue_us;  /* UDDJ's q */
	uint32_t challenge; /* to be repeated; 0: need not be */
	uint16_t holes;
	struct wire_hole hole[WIRE_HOLES_MAX];
};

void wire_put_data(uint8_t out[TFRC_DATA_HEADER_BYTES],
		   const struct wire_data *data);
int wire_get_data(const uint8_t *in, size_t bytes, struct wire_data *data);

size_t wire_put_feedback(uint8_t out[TFRC_FEEDBACK_MAX_BYTES],
			 const struct wire_feedback *fb);
int wire_get_feedback(const uint8_t *in, size_t bytes,
		      struct wire_feedback *fb);

/* Fixed point of x_recv and p; what does not fit becomes the largest value. */
uint64_t wire_rate(double bytes_per_s);
double wire_rate_value(uint64_t rate);
uint32_t wire_fraction(double p);
double wire_fraction_value(uint32_t p);

#endif
