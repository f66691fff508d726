/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ending a timer for good.
 *
 *   kernels               function
 *   to 6.1.157            del_timer_sync(): it may be armed again
 *   6.1.158 and 6.2 on    timer_shutdown_sync(): it may not
 *
 * Which of them the kernel has is read from its header (compat/Kbuild).
 */
#ifndef COMPAT_TIMER_H
#define COMPAT_TIMER_H

#include <linux/timer.h>

/**
 * compat_timer_shutdown_sync() - end a timer and wait for its handler
 * @timer: that nobody arms any more
 */
static inline void compat_timer_shutdown_sync(struct timer_list *timer)
{
#ifdef TIMER_HAS_SHUTDOWN
	timer_shutdown_sync(timer);
#else
	del_timer_sync(timer);
#endif
}

#endif /* COMPAT_TIMER_H */
