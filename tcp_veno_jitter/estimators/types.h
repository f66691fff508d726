/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Integer types and 64-bit divisions of the estimators.
 *
 * The estimators are plain integer arithmetic: no socket, no clock reading, no
 * allocation. The same headers compile into kernel modules (TCP, SCTP) and
 * into host programs; this file is the only one that knows which.
 */
#ifndef ESTIMATORS_TYPES_H
#define ESTIMATORS_TYPES_H

#ifdef __KERNEL__

#include <linux/math64.h>
#include <linux/types.h>

#else

#include <stdbool.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

#endif /* __KERNEL__ */

#endif /* ESTIMATORS_TYPES_H */
