// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a receiver makes of packets that anyone may send: a row of packets, each
 * with two bytes in front: how much later it comes, and its length.
 */
#include "fuzz.h"
#include "tfrc.h"

#include <stdlib.h>
#include <string.h>

#define STEP_NS INT64_C(300000)

static void check(struct tfrc_receiver *receiver, tfrc_time now)
{
	uint8_t out[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_receiver_info info;
	size_t bytes = tfrc_receiver_feedback(receiver, now, out);

	tfrc_receiver_get_info(receiver, &info, sizeof(info));
	if (bytes > sizeof(out) ||
	    !(info.loss_event_rate >= 0 && info.loss_event_rate <= 1) ||
	    !(info.rate_received >= 0))
		abort();
}

/* What is answered without a receiver. */
static void check_challenge(const uint8_t *packet, size_t bytes)
{
	static const uint8_t key[TFRC_KEY_BYTES];
	uint8_t out[TFRC_FEEDBACK_MAX_BYTES];
	size_t length = tfrc_challenge(packet, bytes, key, "here", 4, out);

	if (length > 3 * bytes ||
	    (!length && tfrc_is_confirmed(packet, bytes, key, "here", 4)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
	struct tfrc_receiver *receiver = tfrc_receiver_new(NULL, 0);
	tfrc_time now = 0;

	while (receiver && bytes > 2) {
		size_t length = input[1] < bytes - 2 ? input[1] : bytes - 2;
		uint8_t *packet = malloc(
			length + 1); /* so that reading too far is seen */

		now += input[0] * STEP_NS;
		memcpy(packet, input + 2, length);
		check_challenge(packet, length);
		if (tfrc_receiver_data(receiver, now, now, packet, length,
				       NULL, 0) > 0)
			check(receiver, now);
		free(packet);
		input += 2 + length;
		bytes -= 2 + length;
	}
	if (receiver)
		check(receiver, now + 1000 * STEP_NS);
	tfrc_receiver_free(receiver);
	return 0;
}
