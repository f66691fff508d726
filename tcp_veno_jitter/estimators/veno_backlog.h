/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Veno's backlog: how many packets of this flow wait in the bottleneck queue.
 *
 * Paper: C. P. Fu, S. C. Liew, "TCP Veno: TCP enhancement for transmission
 * over wireless access networks", IEEE JSAC 21(2), 2003, section II.
 *
 *   DIFF = w / BaseRTT - w / RTT
 *   N    = DIFF * BaseRTT = w * (RTT - BaseRTT) / RTT
 *
 *   symbol   field         unit
 *   w        cwnd_pkts     packets
 *   BaseRTT  base_rtt_us   us, 0: not known
 *   RTT      rtt_us        us
 *   N        returned      1 / 2^VENO_BACKLOG_SHIFT packet
 */
#ifndef ESTIMATORS_VENO_BACKLOG_H
#define ESTIMATORS_VENO_BACKLOG_H

#include "types.h"

/*
 * N is at most w. w is cut at 2^VENO_CWND_BITS - 1 packets, so N stays below
 * 2^(23 + 8) and the product below 2^(23 + 32 + 8) = 2^63.
 */
#define VENO_BACKLOG_SHIFT	8
#define VENO_CWND_BITS		23

/**
 * veno_backlog() - packets queued at the bottleneck
 * @cwnd_pkts: w, the congestion window (packets)
 * @base_rtt_us: BaseRTT (us), 0 if not known
 * @rtt_us: RTT (us)
 *
 * Return: N in 1 / 2^VENO_BACKLOG_SHIFT packet, rounded down; 0 if BaseRTT is
 * not known or not below RTT.
 */
static inline u32 veno_backlog(u32 cwnd_pkts, u32 base_rtt_us, u32 rtt_us)
{
	u64 product;

	if (!base_rtt_us || rtt_us <= base_rtt_us)
		return 0;
	if (cwnd_pkts >> VENO_CWND_BITS)
		cwnd_pkts = (1U << VENO_CWND_BITS) - 1;
	product = (u64)cwnd_pkts * (rtt_us - base_rtt_us);
	return div_u64(product << VENO_BACKLOG_SHIFT, rtt_us);
}

/**
 * veno_backlog_reaches() - veno_backlog() >= n packets, without its division
 * @cwnd_pkts: w, the congestion window (packets)
 * @queue_us: RTT - BaseRTT (us)
 * @rtt_us: RTT (us), below 2^31
 * @n_pkts: packets, below 2^31
 */
static inline bool veno_backlog_reaches(u32 cwnd_pkts, u32 queue_us,
					u32 rtt_us, u32 n_pkts)
{
	return (u64)cwnd_pkts * queue_us >= (u64)n_pkts * rtt_us;
}

#endif /* ESTIMATORS_VENO_BACKLOG_H */
