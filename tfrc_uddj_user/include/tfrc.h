/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libtfrc - TCP Friendly Rate Control (RFC 5348) with loss discrimination.
 *
 * Two state machines, a sender and a receiver. They open no socket and read no
 * clock: the caller says what time it is and what came, and asks what to send
 * and when to come back. Times are nanoseconds of the caller's monotonic
 * clock, from any origin; sender and receiver need not share it. Rates are
 * bytes per second of UDP payload, libtfrc's headers included.
 *
 * An object is used by one thread at a time; different objects are independent.
 * Memory is taken when an object is made, and never after: some 2 MiB for a
 * sender (32 bytes for each of history_packets), 230 KiB for a receiver.
 *
 * Structures that a caller fills or reads go with their size, so that they can
 * grow: members are only ever added at the end, and what is zero, or not there,
 * is the default. Fill them by name, with the rest zero:
 *
 *	struct tfrc_sender_config config = {.discrimination = TFRC_LOSS_UDDJ};
 *	sender = tfrc_sender_new(&config, sizeof(config), now);
 */
#ifndef TFRC_H
#define TFRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TFRC_API __attribute__((visibility("default")))
#else
#define TFRC_API
#endif

#define TFRC_VERSION		"2.1.0" /* of this header */
#define TFRC_WIRE_VERSION	2
#define TFRC_DATA_HEADER_BYTES	52
#define TFRC_FEEDBACK_MAX_BYTES 1288
#define TFRC_PACKET_MAX_BYTES	65507 /* the largest UDP payload over IPv4 */
#define TFRC_KEY_BYTES		16
#define TFRC_NEVER		INT64_MAX

typedef int64_t tfrc_time; /* ns */

/* What a lost packet is taken for (docs/tfrc.md). */
enum tfrc_discrimination {
	TFRC_LOSS_TFRC = 0, /* congestion, always: RFC 5348 */
	TFRC_LOSS_UDDJ = 1, /* as the one-way delay's jitter tells */
};

/* How UDDJ's congestion flag enters the rate (docs/tfrc.md has the figures). */
enum tfrc_uddj_law {
	TFRC_UDDJ_EASE = 0,	/* it lowers a target, of which is sent what the
				   queue allows */
	TFRC_UDDJ_MARK = 1,	/* it is a loss event, as an ECN mark is */
	TFRC_UDDJ_CLASSIFY = 2, /* it tells losses apart, nothing else */
};

/* What calls that take a packet return when they refuse it. */
enum tfrc_error {
	TFRC_E_FORMAT = -1,   /* no packet of this version */
	TFRC_E_STRANGER = -2, /* of another connection */
	TFRC_E_STALE = -3,    /* older than what has come: late, or replayed */
	TFRC_E_FORGED = -4,   /* claims what cannot be */
	TFRC_E_UNKNOWN = -6,  /* the receiver does not know the connection */
};

/* --- sender ------------------------------------------------------------- */

enum tfrc_sender_option {
	TFRC_DAMPING = 1,	/* RFC 5348, 4.5: oscillation prevention */
	TFRC_SMALL_PACKETS = 2, /* RFC 4828, TFRC-SP */
};

struct tfrc_sender_config {
	uint64_t connection_id;	     /* random */
	uint8_t key[TFRC_KEY_BYTES]; /* random, secret: nonces are made of it */
	uint32_t packet_bytes; /* s until packets have been sent; 0: 1460 */
	uint32_t options;      /* of enum tfrc_sender_option */
	enum tfrc_discrimination discrimination;
	enum tfrc_uddj_law uddj_law;
	double max_rate;	  /* bytes/s, never sent faster; 0: no limit */
	tfrc_time burst_ns;	  /* credit for late wake-ups (8.3); 0: 1 ms */
	uint32_t history_packets; /* so many are remembered until they are
				     answered for; 0: 65536. At least what is
				     sent in some round trips */
	uint32_t reserved;	  /* 0: no padding, whose bytes nobody sets, may
				     ever become a member */
};

struct tfrc_sender_info {
	double rate;			/* X, allowed, bytes/s */
	double rate_equation;		/* X_Bps; 0: no loss event so far */
	double rate_received;		/* X_recv as accepted; 0: not known */
	double loss_event_rate;		/* p that is used */
	double loss_event_rate_audited; /* p from the losses that were reported */
	tfrc_time rtt_ns;		/* R; 0: no sample */
	tfrc_time rtt_sample_ns;	/* the newest sample */
	tfrc_time rtt_min_ns;		/* the smallest sample; 0: none */
	uint64_t packets_sent;
	uint64_t bytes_sent;	  /* UDP payload, headers included */
	uint64_t payload_sent;	  /* bytes, without headers */
	uint64_t payload_arrived; /* bytes, of what feedback has told, and
				     proven */
	uint64_t packets_lost_congestion;
	uint64_t packets_lost_random;
	uint64_t feedbacks;	    /* accepted */
	uint64_t feedbacks_refused; /* for whatever reason */
	uint64_t nofeedback_expirations;
	bool congested;	   /* UDDJ's flag in the newest feedback */
	bool slow_start;   /* no loss event so far */
	bool data_limited; /* the newest feedback covers an interval without
			      enough data */
	bool fin_acked;	   /* the receiver has seen the end */
	bool challenged;   /* the receiver waits for any packet before it makes
			      use of what came: send an empty one, if there is
			      no data */
	bool rejected;	   /* the receiver does not know the connection: it was
			      restarted, most likely */
};

struct tfrc_sender;

/*
 * CONFIG_BYTES: sizeof(*config). NULL, with errno: ENOMEM, or EINVAL for values
 * that make no sense or that this version does not know.
 */
TFRC_API struct tfrc_sender *
tfrc_sender_new(const struct tfrc_sender_config *config, size_t config_bytes,
		tfrc_time now);
TFRC_API void tfrc_sender_free(struct tfrc_sender *sender);

/* Never send faster, bytes/s; 0: no limit. */
TFRC_API void tfrc_sender_set_max_rate(struct tfrc_sender *sender, double rate);

/* When the next packet may leave; it may be in the past. */
TFRC_API tfrc_time tfrc_sender_next_send(const struct tfrc_sender *sender);

/* When tfrc_sender_timer() wants to be called; TFRC_NEVER: not before a packet
 * is sent. */
TFRC_API tfrc_time tfrc_sender_next_timer(const struct tfrc_sender *sender);

/* RFC 5348, 4.4: the no-feedback timer, if it is due. */
TFRC_API void tfrc_sender_timer(struct tfrc_sender *sender, tfrc_time now);

enum tfrc_packet_flag {
	TFRC_MORE = 1, /* the caller has further data waiting, so it is the rate
			  that holds it back */
	TFRC_FIN = 2,  /* the last one */
};

/*
 * A packet with PAYLOAD_BYTES leaves now: write its header. FLAGS are of enum
 * tfrc_packet_flag. Returns 0 or a tfrc_error.
 */
TFRC_API int tfrc_sender_packet(struct tfrc_sender *sender, tfrc_time now,
				size_t payload_bytes, unsigned int flags,
				uint8_t header[TFRC_DATA_HEADER_BYTES]);

/* A datagram came back. Returns 0 or a tfrc_error; a refused one changes
 * nothing. */
TFRC_API int tfrc_sender_feedback(struct tfrc_sender *sender, tfrc_time now,
				  const void *packet, size_t bytes);

/* INFO_BYTES: sizeof(*info). */
TFRC_API void tfrc_sender_get_info(const struct tfrc_sender *sender,
				   struct tfrc_sender_info *info,
				   size_t info_bytes);

/* --- receiver ----------------------------------------------------------- */

struct tfrc_receiver_config {
	/*
	 * A random number, not 0: the sender has to repeat it, which proves
	 * that answers reach it; tfrc_data.confirmed then says so. Until then
	 * nothing that came need be from who it says. 0: it need not.
	 */
	uint32_t challenge;
};

struct tfrc_data {
	uint64_t seq;
	const uint8_t *payload; /* in the caller's packet */
	size_t payload_bytes;
	tfrc_time transit_ns; /* arrival - send time; the clocks' offset is in
				 it */
	bool fin;
	bool confirmed; /* the sender has repeated the challenge, if there is one
			 */
};

struct tfrc_receiver_info {
	double rate_received;	/* X_recv, bytes/s */
	double loss_event_rate; /* p */
	uint64_t loss_events;
	tfrc_time rtt_ns; /* R as the sender tells; 0: not known */
	uint64_t packets_received;
	uint64_t payload_received; /* bytes */
	uint64_t packets_lost_congestion;
	uint64_t packets_lost_random;
	uint64_t packets_late;	/* came after they had been given up as lost;
				   they  are among the received, too */
	uint64_t packets_stale; /* duplicates, and what came far too late */
	uint64_t packets_refused;
	uint64_t congested_rtts; /* UDDJ: intervals with the flag */
	tfrc_time queue_ns;	 /* UDDJ: q of the newest packet */
	double skew_ppm; /* UDDJ: receiver's clock against the sender's */
	bool congested;	 /* UDDJ: flag of the newest interval */
	bool fin;
	bool confirmed; /* the sender has repeated the challenge */
	enum tfrc_discrimination discrimination; /* what the sender asked for */
};

struct tfrc_receiver;

/* CONFIG may be NULL, with 0 bytes. NULL, with errno: as tfrc_sender_new(). */
TFRC_API struct tfrc_receiver *
tfrc_receiver_new(const struct tfrc_receiver_config *config,
		  size_t config_bytes);
TFRC_API void tfrc_receiver_free(struct tfrc_receiver *receiver);

/* What tfrc_receiver_data() returns when it takes a packet. */
enum tfrc_taken {
	TFRC_TAKEN = 0,
	TFRC_FEEDBACK_DUE = 1, /* feedback is to be sent now */
	TFRC_LATE = 2, /* it had been given up as lost: DATA is as good as any,
			  but nothing else comes of it */
};

/*
 * A datagram came at ARRIVAL (the kernel's time stamp; at most NOW). Returns a
 * tfrc_taken or a tfrc_error. DATA_BYTES: sizeof(*data); DATA may be NULL, with 0.
 * A duplicate is TFRC_E_STALE; so is what there is no room for, as the sender
 * knows nothing yet of what was lost: that may have feedback become due, so ask
 * tfrc_receiver_next_timer() whatever this returns.
 */
TFRC_API int tfrc_receiver_data(struct tfrc_receiver *receiver, tfrc_time now,
				tfrc_time arrival, const void *packet,
				size_t bytes, struct tfrc_data *data,
				size_t data_bytes);

/* When tfrc_receiver_feedback() wants to be called; TFRC_NEVER: not before data
 * comes. */
TFRC_API tfrc_time
tfrc_receiver_next_timer(const struct tfrc_receiver *receiver);

/* Write the feedback that is due; returns its length, 0 if there is nothing to
 * tell. */
TFRC_API size_t tfrc_receiver_feedback(struct tfrc_receiver *receiver,
				       tfrc_time now,
				       uint8_t packet[TFRC_FEEDBACK_MAX_BYTES]);

/* INFO_BYTES: sizeof(*info). */
TFRC_API void tfrc_receiver_get_info(const struct tfrc_receiver *receiver,
				     struct tfrc_receiver_info *info,
				     size_t info_bytes);

/* The connection of a data packet, for those who serve several; 0 or a
 * tfrc_error. */
TFRC_API int tfrc_connection_of(const void *packet, size_t bytes,
				uint64_t *connection_id);

/*
 * Does the sender of this data packet believe that it has been answered? From a
 * connection that nobody here knows that says that its receiver is gone: answer
 * with what tfrc_reject() writes. It returns the length, 0 if that is no data
 * packet.
 */
TFRC_API bool tfrc_is_answered(const void *packet, size_t bytes);
TFRC_API size_t tfrc_reject(const void *packet, size_t bytes,
			    uint8_t answer[TFRC_FEEDBACK_MAX_BYTES]);

/*
 * Instead of a receiver with a challenge for each first packet, which anyone
 * can send under a false address: nothing is kept until a sender has shown that
 * answers reach it. KEY is random and secret, PEER the address and port that
 * the packet came from, the same bytes each time.
 *
 * Has the sender of this data packet repeated the challenge to it? Then a
 * receiver without one may begin with it. If not, answer with what
 * tfrc_challenge() writes. It returns the length, 0 if that is no data packet.
 * What such packets bring may be kept, and given to the receiver first, each
 * with tfrc_receiver_feedback() after it, whose answer has been sent already.
 */
TFRC_API bool tfrc_is_confirmed(const void *packet, size_t bytes,
				const uint8_t key[TFRC_KEY_BYTES],
				const void *peer, size_t peer_bytes);
TFRC_API size_t tfrc_challenge(const void *packet, size_t bytes,
			       const uint8_t key[TFRC_KEY_BYTES],
			       const void *peer, size_t peer_bytes,
			       uint8_t answer[TFRC_FEEDBACK_MAX_BYTES]);

/* --- the throughput equation -------------------------------------------- */

/*
 * RFC 5348, 3.1 with b = 1, t_RTO = 4R: X_Bps in bytes/s for packets of S
 * bytes, a round trip of R seconds and a loss event rate P in (0, 1]. 0 for
 * arguments that make no sense.
 */
TFRC_API double tfrc_equation(double s, double r, double p);

/* Its inverse: the p at which X bytes/s are allowed, at most 1. */
TFRC_API double tfrc_equation_inverse(double s, double r, double x);

/* What went wrong, in words; also for numbers that are no tfrc_error. */
TFRC_API const char *tfrc_error_text(int error);

/* The version of the library, as TFRC_VERSION. */
TFRC_API const char *tfrc_version(void);

#ifdef __cplusplus
}
#endif

#endif
