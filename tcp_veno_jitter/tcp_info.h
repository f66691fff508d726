/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a stock "ss -ti" shows of these algorithms.
 *
 * The kernel passes three fixed layouts of congestion control state to user
 * space; the one of BBR holds most numbers, and every ss knows it. All our
 * algorithms fill it in the same way (0: the algorithm has no such number):
 *
 *   ss prints       field             meaning here
 *   bw:             bbr_bw_lo/hi      bandwidth estimate (bytes/s; ss: bit/s)
 *   mrtt:           bbr_min_rtt       base round trip time (us; ss: ms)
 *   pacing_gain:    bbr_pacing_gain   jitter ratio (percent << 8; ss: percent)
 *   cwnd_gain:      bbr_cwnd_gain     backlog (packets << 8; ss: packets)
 *
 * An algorithm whose law has states tells the state in the two lowest bits of
 * bbr_pacing_gain, and its jitter ratio in steps of 1/64 percent.
 *
 * The jitter ratio is the smoothed one where the algorithm smooths. The field
 * has no sign: a draining queue (ratio below 0) shows as 0.
 */
#ifndef TCP_INFO_H
#define TCP_INFO_H

#include <linux/inet_diag.h>
#include <linux/string.h>

#include "estimators/jitter_ratio.h"
#include "estimators/veno_backlog.h"

#define TCP_INFO_GAIN_SHIFT	8	/* of bbr_pacing_gain, bbr_cwnd_gain */
#define TCP_INFO_LAW_MASK	3	/* of bbr_pacing_gain: the law's state */

/**
 * struct tcp_info_state - the numbers to show
 * @bw_bytes_per_s: bandwidth estimate (bytes/s)
 * @base_rtt_us: base round trip time (us); all ones, as tcp_min_rtt() has it
 *	before the first sample, shows as 0
 * @jitter_ratio: 1 / 2^JITTER_RATIO_SHIFT
 * @backlog: 1 / 2^VENO_BACKLOG_SHIFT packet
 * @law: state of the law, 1 to TCP_INFO_LAW_MASK; 0: it has none
 */
struct tcp_info_state {
	u64 bw_bytes_per_s;
	u32 base_rtt_us;
	s32 jitter_ratio;
	u32 backlog;
	u32 law;
};

/**
 * tcp_info_fill() - the get_info hook of all algorithms
 * @state: the numbers to show
 * @ext: attributes asked for, bit (attribute - 1)
 * @attr: set to the attribute filled in
 * @info: filled in
 *
 * Return: size of the attribute; 0 if none of ours was asked for.
 */
static inline size_t tcp_info_fill(const struct tcp_info_state *state, u32 ext,
				   int *attr, union tcp_cc_info *info)
{
	u32 ratio = max(state->jitter_ratio, 0);

	/* ss asks for VEGASINFO and takes what it gets, as with BBR */
	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) |
		     1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;

	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)state->bw_bytes_per_s;
	info->bbr.bbr_bw_hi = (u32)(state->bw_bytes_per_s >> 32);
	if (state->base_rtt_us != ~0U)
		info->bbr.bbr_min_rtt = state->base_rtt_us;
	info->bbr.bbr_pacing_gain =
		ratio * 100ULL >> (JITTER_RATIO_SHIFT - TCP_INFO_GAIN_SHIFT);
	if (state->law) {
		info->bbr.bbr_pacing_gain &= ~TCP_INFO_LAW_MASK;
		info->bbr.bbr_pacing_gain |= state->law & TCP_INFO_LAW_MASK;
	}
	info->bbr.bbr_cwnd_gain =
		state->backlog >> (VENO_BACKLOG_SHIFT - TCP_INFO_GAIN_SHIFT);
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

#endif /* TCP_INFO_H */
