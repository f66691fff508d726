/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets of senders that have not shown yet that answers reach them. Anyone
 * can make such up, so all of them share one piece of memory, in which the
 * newest 2 MiB are kept at least, and 4 MiB at most.
 */
#ifndef TFRC_TOOLS_WAITING_H
#define TFRC_TOOLS_WAITING_H

#include "tfrc.h"

#include <sys/socket.h>

struct waiting;

struct waiting_packet {
	struct sockaddr_storage peer;
	socklen_t peer_bytes;
	uint64_t id; /* of its connection */
	tfrc_time arrival;
	size_t bytes;
	uint8_t data[];
};

struct waiting *waiting_open(void);
void waiting_close(struct waiting *waiting);

/* Keep a packet with a copy of its BYTES at DATA. */
void waiting_add(struct waiting *waiting, const struct waiting_packet *packet,
		 const uint8_t *data);

/*
 * The packet of this connection of this peer's that came next after BEFORE;
 * BEFORE is NULL for the first. NULL: there is none.
 */
const struct waiting_packet *waiting_next(const struct waiting *waiting,
					  const struct waiting_packet *before,
					  uint64_t id, const void *peer,
					  socklen_t peer_bytes);

void waiting_clear(struct waiting *waiting);

#endif
