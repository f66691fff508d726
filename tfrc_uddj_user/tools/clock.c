// SPDX-License-Identifier: GPL-2.0-only
#include "clock.h"

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

struct clock_pair clock_read_pair(void)
{
	return (struct clock_pair){ .monotonic = read_clock(CLOCK_MONOTONIC),
				    .real = read_clock(CLOCK_REALTIME) };
}

tfrc_time clock_arrival(const struct clock_pair *now, const struct timespec *real)
{
	tfrc_time ago = now->real - (real->tv_sec * NS_PER_S + real->tv_nsec);

	/* a wall clock that was stepped in between: better late than absurd */
	if (ago < 0 || ago > 10 * NS_PER_S || ago > now->monotonic)
		ago = 0;
	return now->monotonic - ago;
}

bool clock_sleep_until(tfrc_time time)
{
	struct timespec until = { .tv_sec = time / NS_PER_S, .tv_nsec = time % NS_PER_S };

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0;
}
