/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an algorithm knew of a path when it said what a loss was: what is told as
 * the tracepoint jsctp:sctp_verdict (sctp_jitter_trace.h).
 */
#ifndef SCTP_VERDICT_H
#define SCTP_VERDICT_H

#include <net/sctp/sctp.h>

/**
 * struct sctp_verdict_features - what the algorithm knew of the path
 * @cwnd_pkts: w, before the answer (packets)
 * @rtt_us: newest round trip (us)
 * @srtt_us: smoothed round trip (us)
 * @min_rtt_us: smallest round trip (us)
 * @queue_us: queue that stood in the last round trip (us)
 * @queue_max_us: largest of it (us)
 * @backlog: packets of this flow in it, 1 / 2^VENO_BACKLOG_SHIFT packet
 * @jr: jitter ratio of the last span, 1 / 2^JITTER_RATIO_SHIFT
 * @sjr: smoothed jitter ratio, same unit
 */
struct sctp_verdict_features {
	u32 cwnd_pkts;
	u32 rtt_us;
	u32 srtt_us;
	u32 min_rtt_us;
	u32 queue_us;
	u32 queue_max_us;
	u32 backlog;
	s32 jr;
	s32 sjr;
};

/* Which path: 4 bytes of the peer's address, 0 if it is not IPv4. */
static inline void sctp_verdict_path(const struct sctp_transport *t, u8 *path)
{
	memset(path, 0, 4);
	if (t->ipaddr.sa.sa_family == AF_INET)
		memcpy(path, &t->ipaddr.v4.sin_addr, 4);
}

#endif /* SCTP_VERDICT_H */
