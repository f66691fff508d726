/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What PSP takes of each segment of a socket, besides options.
 *
 *   kernels  psp_sk_overhead()
 *   to 6.17  none: nothing
 *   6.18 on  bytes; 0 without CONFIG_INET_PSP
 *
 * Whether the kernel has it is read from its header (compat/Kbuild).
 */
#ifndef COMPAT_PSP_H
#define COMPAT_PSP_H

#ifdef NET_HAS_PSP
#include <net/psp.h>
#else
#include <net/sock.h>

static inline unsigned int psp_sk_overhead(const struct sock *sk)
{
	return 0;
}
#endif

#endif /* COMPAT_PSP_H */
