/* SPDX-License-Identifier: GPL-2.0-only */
/* The one file that reads clocks. Times are ns of CLOCK_MONOTONIC. */
#ifndef TFRC_TOOLS_CLOCK_H
#define TFRC_TOOLS_CLOCK_H

#include "tfrc.h"

#include <time.h>

#define NS_PER_S INT64_C(1000000000)

tfrc_time clock_now(void);

/* CLOCK_REALTIME, which the kernel stamps datagrams with, read beside
 * MONOTONIC. */
struct clock_pair {
	tfrc_time monotonic;
	tfrc_time real;
	tfrc_time read_at; /* when REAL was read */
};

/* Read them again: REAL once in a while only, as it goes along with the other. */
void clock_update(struct clock_pair *pair);

/*
 * When a datagram came that the kernel stamped with REAL (SO_TIMESTAMPNS); NOW
 * was read after it came. A wall clock that is stepped does no harm but to
 * those that are under way; never later than NOW.
 */
tfrc_time clock_arrival(const struct clock_pair *now,
			const struct timespec *real);

#endif
