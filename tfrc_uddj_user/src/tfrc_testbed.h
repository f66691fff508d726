/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For testbeds, which know what became of each packet. Not installed, and not
 * in the shared library: programs of this folder are linked with the archive.
 */
#ifndef TFRC_TESTBED_H
#define TFRC_TESTBED_H

#include "tfrc.h"

/* A lost packet is what an oracle tells: beside enum tfrc_discrimination. */
#define TFRC_LOSS_WIRELESS ((enum tfrc_discrimination)2)

/*
 * PASSED_QUEUES: did packet SEQ get past all queues? TFRC_LOSS_WIRELESS goes by
 * it; under the others it is only counted.
 */
TFRC_API void
tfrc_testbed_oracle(struct tfrc_receiver *receiver,
		    bool (*passed_queues)(void *arg, uint64_t seq), void *arg);

/* Lost packets so far, [was random][said random]. */
TFRC_API void tfrc_testbed_judged(const struct tfrc_receiver *receiver,
				  uint64_t judged[2][2]);

#endif
