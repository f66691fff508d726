/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures that go with their size, as the caller's header has it: an older
 * one is shorter, a newer one longer than what is known here.
 */
#ifndef TFRC_SIZED_H
#define TFRC_SIZED_H

#include <stdbool.h>
#include <string.h>

/* What is not there is zero; false: what is not known here is not. */
static inline bool sized_in(void *to, size_t to_bytes, const void *from,
			    size_t from_bytes)
{
	const unsigned char *byte = from;

	memset(to, 0, to_bytes);
	for (size_t i = to_bytes; i < from_bytes; i++)
		if (byte[i])
			return false;
	if (from_bytes)
		memcpy(to, from, from_bytes < to_bytes ? from_bytes : to_bytes);
	return true;
}

static inline void sized_out(void *to, size_t to_bytes, const void *from,
			     size_t from_bytes)
{
	memset(to, 0, to_bytes);
	memcpy(to, from, from_bytes < to_bytes ? from_bytes : to_bytes);
}

#endif
