// SPDX-License-Identifier: GPL-2.0-only
#include "waiting.h"
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define HALF_BYTES (2 << 20)

/* When the newer half is full, the older one is forgotten and filled anew. */
struct half {
	_Alignas(struct waiting_packet) uint8_t room[HALF_BYTES];
	size_t end;
};

struct waiting {
	struct half halves[2];
	unsigned int newer;
};

struct waiting *waiting_open(void)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (!waiting)
		fail("out of memory");
	return waiting;
}

void waiting_close(struct waiting *waiting)
{
	free(waiting);
}

/* What a packet takes, so that the next one is aligned. */
static size_t taken(size_t bytes)
{
	const size_t align = _Alignof(struct waiting_packet);

	return (sizeof(struct waiting_packet) + bytes + align - 1) / align *
	       align;
}

void waiting_add(struct waiting *waiting, const struct waiting_packet *packet,
		 const uint8_t *data)
{
	struct half *half = &waiting->halves[waiting->newer];
	struct waiting_packet *room;

	if (half->end + taken(packet->bytes) > HALF_BYTES) {
		waiting->newer = !waiting->newer;
		half = &waiting->halves[waiting->newer];
		half->end = 0;
	}
	room = (struct waiting_packet *)(half->room + half->end);
	*room = *packet;
	memcpy(room->data, data, packet->bytes);
	half->end += taken(packet->bytes);
}

/* Of whatever connection; the older half comes first. */
static const struct waiting_packet *
next_of_all(const struct waiting *waiting, const struct waiting_packet *before)
{
	const struct half *newer = &waiting->halves[waiting->newer],
			  *half = &waiting->halves[!waiting->newer];
	const uint8_t *at = (const uint8_t *)before;

	if (before && at >= newer->room && at < newer->room + newer->end)
		half = newer;
	at = before ? at + taken(before->bytes) : half->room;
	if (half != newer && at == half->room + half->end) {
		half = newer;
		at = newer->room;
	}
	return at < half->room + half->end ? (const struct waiting_packet *)at
					   : NULL;
}

const struct waiting_packet *waiting_next(const struct waiting *waiting,
					  const struct waiting_packet *before,
					  uint64_t id, const void *peer,
					  socklen_t peer_bytes)
{
	const struct waiting_packet *at = before;

	do
		at = next_of_all(waiting, at);
	while (at && (at->id != id || at->peer_bytes != peer_bytes ||
		      memcmp(&at->peer, peer, peer_bytes)));
	return at;
}

void waiting_clear(struct waiting *waiting)
{
	waiting->halves[0].end = waiting->halves[1].end = 0;
}
