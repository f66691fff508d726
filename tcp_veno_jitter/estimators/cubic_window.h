/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CUBIC's window: what a flow may have that shares a path with the Internet's
 * usual flows, as a function of the time since its last reduction.
 *
 * RFC 9438, section 4.2:
 *
 *   W(t) = C * (t - K)^3 + W_max
 *   K    = cbrt(W_max * (1 - beta) / C),   C = 0.4 packets / s^3
 *
 * K is that of RFC 8312, section 4.1. RFC 9438 has W_max less the window that the
 * reduction left, which is the same but where W_max was lowered to let others in
 * or a mark took less: K is longer there.
 *
 *   symbol  argument      unit
 *   W_max   w_max_pkts    packets, at the last reduction
 *   beta    keep_percent  percent of W_max that the reduction left
 *   t       t_ms          ms since then
 *   W       returned      packets
 */
#ifndef ESTIMATORS_CUBIC_WINDOW_H
#define ESTIMATORS_CUBIC_WINDOW_H

#include "types.h"

/* W_max is cut at 2^20 packets and t - K at 2^19 ms (9 minutes): 2^57 fits. */
#define CUBIC_W_MAX_PKTS	0x100000U
#define CUBIC_SPAN_MS		0x80000U
/* 1 / C with times in ms: 1000^3 / 0.4, in two factors. */
#define CUBIC_MS3_PER_PKT	2500000000ULL

/* The largest number whose cube is at most x. */
static inline u32 cubic_root(u64 x)
{
	u32 root = 0;
	int shift;

	for (shift = 20; shift >= 0; shift--) {
		u64 tried = root | 1U << shift;

		if (tried * tried * tried <= x)
			root = tried;
	}
	return root;
}

/**
 * cubic_window_pkts() - W(t)
 * @w_max_pkts: W_max (packets)
 * @keep_percent: beta (percent), at most 100
 * @t_ms: t (ms)
 *
 * RFC 9438 eq. 1 and 2.
 *
 * Return: packets, at least 0.
 */
static inline u32 cubic_window_pkts(u32 w_max_pkts, u32 keep_percent, u32 t_ms)
{
	u64 room_pkts100, moved_pkts;
	u32 k_ms, span_ms;

	if (w_max_pkts > CUBIC_W_MAX_PKTS)
		w_max_pkts = CUBIC_W_MAX_PKTS;
	room_pkts100 = (u64)w_max_pkts * (100 - keep_percent);
	k_ms = cubic_root(room_pkts100 * (CUBIC_MS3_PER_PKT / 100));
	span_ms = t_ms < k_ms ? k_ms - t_ms : t_ms - k_ms;
	if (span_ms > CUBIC_SPAN_MS)
		span_ms = CUBIC_SPAN_MS;
	moved_pkts = div_u64((u64)span_ms * span_ms * span_ms / 2,
			     CUBIC_MS3_PER_PKT / 2);
	if (t_ms >= k_ms)
		return w_max_pkts + moved_pkts;
	return moved_pkts < w_max_pkts ? w_max_pkts - moved_pkts : 0;
}

#endif /* ESTIMATORS_CUBIC_WINDOW_H */
