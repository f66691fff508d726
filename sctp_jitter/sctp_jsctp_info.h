/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What jsctp and jsctp_abe tell of a path. /proc/net/sctp/cong prints it; the series
 * for netdev (netdev/) has it as an attribute of inet_diag.
 */
#ifndef SCTP_JSCTP_INFO_H
#define SCTP_JSCTP_INFO_H

#include <linux/types.h>

/**
 * struct sctp_jsctp_info - state of a path
 * @bw_bytes_per_s: B, the bandwidth estimate (bytes/s)
 * @jr_ppm: Jr, the jitter ratio of the last span (1 / 10^6)
 * @sjr_ppm: sjr, smoothed (1 / 10^6)
 * @min_rtt_us: smallest round trip (us), 0: none yet
 * @srtt_us: smoothed round trip (us), 0: none yet
 * @sent_us: when the newest packet that came back was sent, our clock (us), wraps
 * @received_us: when it was received, the peer's clock (us), wraps
 * @queue_us: queue that stands (us)
 * @noise_ppm: share that the path loses by itself (1 / 10^6)
 * @sampled: there was a jitter ratio
 * @contested: others fill the queue
 * @doubted: the peer's times are not believed
 * @listens: less is sent for a while, to learn what the path loses by itself
 * @narrow: the path drops without a queue that would show
 * @pad: 0
 */
struct sctp_jsctp_info {
	__u64 bw_bytes_per_s;
	__s32 jr_ppm;
	__s32 sjr_ppm;
	__u32 min_rtt_us;
	__u32 srtt_us;
	__u32 sent_us;
	__u32 received_us;
	__u32 queue_us;
	__u32 noise_ppm;
	__u8 sampled;
	__u8 contested;
	__u8 doubted;
	__u8 listens;
	__u8 narrow;
	__u8 pad[3];
};

#endif /* SCTP_JSCTP_INFO_H */
