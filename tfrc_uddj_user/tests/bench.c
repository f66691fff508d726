// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a packet costs in libtfrc, without the kernel: headers written, packets
 * taken, feedback written and checked. Processor time, not wall time.
 */
#include "tfrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PACKETS 2000000
#define BYTES	1452
#define RTT_NS	INT64_C(1000000)
#define GAP_NS	INT64_C(11616) /* 1 Gb/s */

static double processor_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One in LOSS packets is lost. */
static void measure(const char *name, enum tfrc_discrimination discrimination,
		    unsigned int loss)
{
	const struct tfrc_sender_config config = {
		.connection_id = 1, .discrimination = discrimination};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct tfrc_receiver *receiver = tfrc_receiver_new(NULL, 0);
	static uint8_t packet[BYTES], feedback[TFRC_FEEDBACK_MAX_BYTES];
	uint64_t feedbacks = 0;
	double begin = processor_s();
	tfrc_time now = 0;

	if (!sender || !receiver)
		exit(EXIT_FAILURE);
	for (unsigned int i = 0; i < PACKETS; i++, now += GAP_NS) {
		size_t bytes = 0;

		tfrc_sender_packet(sender, now, BYTES - TFRC_DATA_HEADER_BYTES,
				   TFRC_MORE, packet);
		if (loss && i % loss == loss / 2)
			continue;
		if (tfrc_receiver_data(receiver, now, now, packet, BYTES,
				       NULL, 0) > 0)
			bytes = tfrc_receiver_feedback(receiver, now, feedback);
		if (bytes && !tfrc_sender_feedback(sender, now + RTT_NS,
						   feedback, bytes))
			feedbacks++;
	}
	printf("%-24s %6.1f ns a packet, %llu feedbacks\n", name,
	       (processor_s() - begin) * 1e9 / PACKETS,
	       (unsigned long long)feedbacks);
	tfrc_sender_free(sender);
	tfrc_receiver_free(receiver);
}

int main(void)
{
	measure("tfrc", TFRC_LOSS_TFRC, 0);
	measure("tfrc, 1 % lost", TFRC_LOSS_TFRC, 100);
	measure("uddj", TFRC_LOSS_UDDJ, 0);
	measure("uddj, 1 % lost", TFRC_LOSS_UDDJ, 100);
	return EXIT_SUCCESS;
}
