// SPDX-License-Identifier: GPL-2.0-only
#include "source.h"
#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* VBR: 25 frames a second; the first of twelve is four times as large as the
 * others. */
#define FRAME_NS       (NS_PER_S / 25)
#define GROUP_FRAMES   12
#define KEY_FRAME_SIZE 4.0
#define FRAME_SPREAD   0.5 /* sizes are uniform within this of their mean */
/* What a sender slower than its source may have waiting, a packet at least:
 * older data is worth nothing. */
#define BACKLOG_S 1.0

int source_open(struct source *source, tfrc_time now)
{
	source->at = now;
	source->random = 1;
	source->buffer = calloc(1, SOURCE_BUFFER_BYTES);
	return source->buffer ? 0 : -1;
}

void source_close(struct source *source)
{
	free(source->buffer);
}

/* Same numbers on every run; uniform in [-1, 1). */
static double draw(struct source *source)
{
	source->random = source->random * UINT64_C(6364136223846793005) +
			 1442695040888963407U;
	return (double)(int64_t)source->random / 9223372036854775808.0;
}

static double frame_bytes(struct source *source)
{
	double mean = source->rate * FRAME_NS / NS_PER_S;
	double usual =
		mean * GROUP_FRAMES / (GROUP_FRAMES - 1 + KEY_FRAME_SIZE);
	double size = source->frames++ % GROUP_FRAMES ? usual
						      : KEY_FRAME_SIZE * usual;

	return size * (1 + FRAME_SPREAD * draw(source));
}

static void make_up(struct source *source, tfrc_time now)
{
	double most = source->rate * BACKLOG_S;

	if (most < (double)source->packet_bytes)
		most = (double)source->packet_bytes;
	if (source->kind == SOURCE_CBR) {
		source->available +=
			source->rate * (double)(now - source->at) / NS_PER_S;
		source->at = now;
	} else {
		for (; source->at <= now; source->at += FRAME_NS)
			source->available += frame_bytes(source);
	}
	if (source->available > most)
		source->available = most;
}

static int fill(struct source *source)
{
	ssize_t got;

	memmove(source->buffer, source->buffer + source->first,
		source->end - source->first);
	source->end -= source->first;
	source->first = 0;
	got = read(source->fd, source->buffer + source->end,
		   SOURCE_BUFFER_BYTES - source->end);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	source->eof = got == 0;
	source->end += (size_t)got;
	return 0;
}

int source_update(struct source *source, tfrc_time now, bool readable)
{
	if (source->kind == SOURCE_CBR || source->kind == SOURCE_VBR)
		make_up(source, now);
	else if (source->kind == SOURCE_FD && readable &&
		 source_wants_read(source))
		return fill(source);
	return 0;
}

static uint64_t at_hand(const struct source *source)
{
	uint64_t bytes = UINT64_MAX;

	if (source->kind == SOURCE_FD)
		bytes = source->end - source->first;
	else if (source->kind != SOURCE_ENDLESS)
		bytes = (uint64_t)source->available;
	if (source->limit && bytes > source->limit - source->taken)
		bytes = source->limit - source->taken;
	return bytes;
}

/* What is at hand is the last there will be. */
static bool is_last(const struct source *source)
{
	return source->eof ||
	       (source->limit &&
		source->taken + at_hand(source) >= source->limit);
}

/* A live stream does not wait for a packet to be full. */
size_t source_ready(const struct source *source, size_t most)
{
	uint64_t bytes = at_hand(source);

	if (bytes >= most)
		return most;
	return source->kind == SOURCE_FD || source->kind == SOURCE_VBR ||
			       is_last(source)
		       ? bytes
		       : 0;
}

void source_take(struct source *source, uint8_t *out, size_t bytes)
{
	source->taken += bytes;
	if (source->kind == SOURCE_FD) {
		memcpy(out, source->buffer + source->first, bytes);
		source->first += bytes;
	} else if (source->kind != SOURCE_ENDLESS) {
		source->available -= (double)bytes;
	}
}

tfrc_time source_ready_at(const struct source *source, tfrc_time now,
			  size_t bytes)
{
	if (source_ready(source, bytes))
		return now;
	if (source_ended(source) || source->kind == SOURCE_FD)
		return TFRC_NEVER;
	if (source->kind == SOURCE_VBR)
		return source->at;
	return source->at +
	       (tfrc_time)(((double)bytes - source->available) / source->rate *
			   NS_PER_S) +
	       1;
}

bool source_wants_read(const struct source *source)
{
	return source->kind == SOURCE_FD && !source->eof &&
	       source->end - source->first < SOURCE_BUFFER_BYTES / 2;
}

bool source_ended(const struct source *source)
{
	if (source->limit && source->taken >= source->limit)
		return true;
	return source->eof && source->first == source->end;
}
