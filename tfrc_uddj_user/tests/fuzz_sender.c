// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a sender makes of feedback that anyone may send. The nonces are put
 * right first: else nothing would get past them.
 */
#include "fuzz.h"
#include "nonce.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#define PACKETS 32
#define STEP_NS INT64_C(300000)

static const struct tfrc_sender_config config = {.connection_id = 1,
						 .discrimination =
							 TFRC_LOSS_UDDJ,
						 .history_packets = 64};

static uint32_t sum_of(const struct wire_feedback *fb)
{
	uint32_t sum = 0;

	for (uint64_t seq = 0; seq < fb->edge && seq < PACKETS; seq++) {
		bool lost = false;

		for (unsigned int i = 0; i < fb->holes; i++)
			lost |= seq >= fb->hole[i].first &&
				seq - fb->hole[i].first < fb->hole[i].length;
		if (!lost)
			sum ^= nonce_of(config.key, seq);
	}
	return sum;
}

static void give(struct tfrc_sender *sender, tfrc_time now,
		 const uint8_t *input, size_t bytes)
{
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_sender_info info;
	struct wire_feedback fb;

	if (wire_get_feedback(input, bytes, &fb) == 0) {
		fb.connection_id = 1;
		fb.echo_nonce = nonce_of(config.key, fb.echo_seq);
		fb.nonce_sum = sum_of(&fb);
		if (wire_put_feedback(packet, &fb) != bytes)
			abort();
		tfrc_sender_feedback(sender, now, packet, bytes);
	} else if (tfrc_sender_feedback(sender, now, input, bytes) == 0) {
		abort();
	}
	tfrc_sender_timer(sender, now);
	tfrc_sender_get_info(sender, &info, sizeof(info));
	if (!(info.rate > 0) ||
	    !(info.loss_event_rate >= 0 && info.loss_event_rate <= 1) ||
	    info.payload_arrived > info.bytes_sent)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes)
{
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	uint8_t header[TFRC_DATA_HEADER_BYTES];
	tfrc_time now = 0;

	for (unsigned int i = 0; sender && i < PACKETS; i++)
		tfrc_sender_packet(sender, now += STEP_NS, i * 40,
				   i % 3 ? TFRC_MORE : 0, header);
	while (sender && bytes > 3) {
		size_t length = input[1] | (size_t)input[2] << 8;

		if (length > bytes - 3)
			length = bytes - 3;
		now += input[0] * STEP_NS;
		give(sender, now, input + 3, length);
		input += 3 + length;
		bytes -= 3 + length;
	}
	tfrc_sender_free(sender);
	return 0;
}
