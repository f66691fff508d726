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

/*
 * The edge stays at 0: a receiver that begins with the next packet must be able
 * to say that it has not got this one. X_recv is 0: nothing grows before.
 */
size_t tfrc_challenge(const void *packet, size_t bytes,
		      const uint8_t key[TFRC_KEY_BYTES], const void *peer,
		      size_t peer_bytes,
		      uint8_t answer[TFRC_FEEDBACK_MAX_BYTES])
{
	struct wire_feedback fb = {.number = 1};
	struct wire_data data;

	if (wire_get_data(packet, bytes, &data))
		return 0;
	fb.connection_id = data.connection_id;
	fb.echo_seq = data.seq;
	fb.echo_nonce = data.nonce;
	fb.challenge = challenge_to(key, peer, peer_bytes, data.connection_id);
	return wire_put_feedback(answer, &fb);
}
