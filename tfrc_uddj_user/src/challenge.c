// SPDX-License-Identifier: GPL-2.0-only
/*
 * First packets, which anyone can send under a false address, are answered
 * without anything being kept of them: what a sender has to repeat is a keyed
 * hash of where it is and which connection it has, so who repeats it is known.
 */
#include "nonce.h"
#include "wire.h"

static uint32_t challenge_to(const uint8_t key[TFRC_KEY_BYTES],
			     const void *peer, size_t peer_bytes,
			     uint64_t connection_id)
{
	uint32_t challenge =
		(uint32_t)siphash(key, connection_id, peer, peer_bytes);

	return challenge ? challenge : 1; /* 0: none */
}

bool tfrc_is_confirmed(const void *packet, size_t bytes,
		       const uint8_t key[TFRC_KEY_BYTES], const void *peer,
		       size_t peer_bytes)
{
	struct wire_data data;

	return !wire_get_data(packet, bytes, &data) &&
	       data.challenge == challenge_to(key, peer, peer_bytes,
					      data.connection_id);
}

/* What such answers have in common: which packet they are to. */
static size_t answer_to(const struct wire_data *data, uint8_t flags,
			uint64_t number, uint32_t challenge,
			uint8_t answer[TFRC_FEEDBACK_MAX_BYTES])
{
	const struct wire_feedback fb = {
		.flags = flags,
		.connection_id = data->connection_id,
		.number = number,
		.echo_seq = data->seq,
		.echo_nonce = data->nonce,
		.challenge = challenge,
	};

	return wire_put_feedback(answer, &fb);
}

/*
 * The edge stays at 0: a receiver that begins with the next packet must be able
 * to say that it has not got this one. X_recv is 0: nothing grows before.
 */
size_t tfrc_challenge(const void *packet, size_t bytes,
		      const uint8_t key[TFRC_KEY_BYTES], const void *peer,
		      size_t peer_bytes,
		      uint8_t answer[TFRC_FEEDBACK_MAX_BYTES])
{
	struct wire_data data;

	if (wire_get_data(packet, bytes, &data))
		return 0;
	return answer_to(&data, 0, 1,
			 challenge_to(key, peer, peer_bytes,
				      data.connection_id),
			 answer);
}

size_t tfrc_reject(const void *packet, size_t bytes,
		   uint8_t answer[TFRC_FEEDBACK_MAX_BYTES])
{
	struct wire_data data;

	if (wire_get_data(packet, bytes, &data))
		return 0;
	return answer_to(&data, WIRE_FEEDBACK_UNKNOWN, 0, 0, answer);
}
