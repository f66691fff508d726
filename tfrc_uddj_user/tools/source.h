/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a sender's data comes from: a descriptor, or made up: without end, at a
 * constant rate, or like video, in frames whose sizes vary.
 */
#ifndef TFRC_TOOLS_SOURCE_H
#define TFRC_TOOLS_SOURCE_H

#include "tfrc.h"

enum source_kind { SOURCE_FD, SOURCE_ENDLESS, SOURCE_CBR, SOURCE_VBR };

#define SOURCE_BUFFER_BYTES (1 << 20)

struct source {
	enum source_kind kind;
	int fd;
	double rate;	     /* CBR, VBR: mean, bytes/s */
	size_t packet_bytes; /* of a full packet */
	uint64_t limit;	     /* bytes in all; 0: none */

	uint64_t taken;
	double available; /* made up, and not taken yet */
	tfrc_time at;	  /* when that was */
	uint64_t frames;
	uint64_t random;
	uint8_t *buffer;
	size_t first, end; /* what is in the buffer */
	bool eof;
};

/* 0, or -1 if there is no memory. */
int source_open(struct source *source, tfrc_time now);
void source_close(struct source *source);

/* Bring it up to NOW; a descriptor is read only if it is READABLE. -1: it
 * cannot be read. */
int source_update(struct source *source, tfrc_time now, bool readable);

/* Bytes that a packet of up to MOST can have now; 0: none. A full packet is
 * waited for. */
size_t source_ready(const struct source *source, size_t most);

/* Put so many bytes at OUT. */
void source_take(struct source *source, uint8_t *out, size_t bytes);

/* When there will be a packet of BYTES: now, later, or TFRC_NEVER if that is
 * not known. */
tfrc_time source_ready_at(const struct source *source, tfrc_time now,
			  size_t bytes);

/* It is to be polled for reading. */
bool source_wants_read(const struct source *source);

/* All has been taken. */
bool source_ended(const struct source *source);

#endif
