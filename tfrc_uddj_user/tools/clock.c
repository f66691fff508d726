// SPDX-License-Identifier: GPL-2.0-only
#include "clock.h"

#define REAL_FOR_NS 100000000

static tfrc_time read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

tfrc_time clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void clock_update(struct clock_pair *pair)
{
	tfrc_time now = read_clock(CLOCK_MONOTONIC);

	if (!pair->real || now - pair->read_at > REAL_FOR_NS) {
		pair->real = read_clock(CLOCK_REALTIME);
		pair->read_at = now;
	} else {
		pair->real += now - pair->monotonic;
	}
	pair->monotonic = now;
}

tfrc_time clock_arrival(const struct clock_pair *now,
			const struct timespec *real)
{
	tfrc_time ago = now->real - (real->tv_sec * NS_PER_S + real->tv_nsec);

	/* just come, or a wall clock that was stepped: better late than absurd */
	if (ago < 0 || ago > 10 * NS_PER_S || ago > now->monotonic)
		ago = 0;
	return now->monotonic - ago;
}
