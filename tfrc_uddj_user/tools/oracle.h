/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For testbeds: which packets got past all queues. A packet socket at the place
 * behind them, in that router's network namespace, sees the data packets that
 * did; one that is missing all the same was lost at random.
 */
#ifndef TFRC_TOOLS_ORACLE_H
#define TFRC_TOOLS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct oracle;

/* PLACE is NETNS:DEVICE, a file and an interface where packets come in. Exits
 * if it fails. */
struct oracle *oracle_open(const char *place);
void oracle_close(struct oracle *oracle);

/* Take what the kernel has kept, before it runs out of room. */
void oracle_drain(struct oracle *oracle);

/* Did packet SEQ get past? ORACLE is a struct oracle; it is what libtfrc asks. */
bool oracle_passed(void *oracle, uint64_t seq);

/* Only packets of this connection count. */
void oracle_connection(struct oracle *oracle, uint64_t connection_id);

#endif
