/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * struct tcp_info of include/uapi/linux/tcp.h up to Linux 6.7, under a name of
 * its own: the system's header may be older than the running kernel (Debian 12
 * ends at tcpi_snd_wnd) or newer. The kernel only ever appends fields and
 * fills in as many as it knows, so test a late one with TCP_INFO_HAS().
 */
#ifndef TRAFFIC_TCP_INFO_ABI_H
#define TRAFFIC_TCP_INFO_ABI_H

#include <stddef.h>
#include <stdint.h>

struct tcp_info_abi {
	uint8_t state;
	uint8_t ca_state;
	uint8_t rto_retransmits;
	uint8_t probes;
	uint8_t backoff;
	uint8_t options;
	uint8_t wscales;
	uint8_t delivery_rate_flags;

	uint32_t rto_us;
	uint32_t ato_us;
	uint32_t snd_mss_bytes;
	uint32_t rcv_mss_bytes;

	uint32_t unacked_pkts;
	uint32_t sacked_pkts;
	uint32_t lost_pkts;
	uint32_t retrans_pkts;
	uint32_t fackets;

	uint32_t last_data_sent_ms;
	uint32_t last_ack_sent_ms;
	uint32_t last_data_recv_ms;
	uint32_t last_ack_recv_ms;

	uint32_t pmtu_bytes;
	uint32_t rcv_ssthresh_bytes;
	uint32_t srtt_us;
	uint32_t rttvar_us;
	uint32_t ssthresh_pkts;
	uint32_t cwnd_pkts;
	uint32_t advmss_bytes;
	uint32_t reordering_pkts;

	uint32_t rcv_rtt_us;
	uint32_t rcv_space_bytes;

	uint32_t total_retrans_pkts;

	uint64_t pacing_rate_bytes_per_s;
	uint64_t max_pacing_rate_bytes_per_s;
	uint64_t bytes_acked; /* and one for each of SYN (if sent) and FIN */
	uint64_t bytes_received;
	uint32_t segs_out;
	uint32_t segs_in;

	uint32_t notsent_bytes;
	uint32_t min_rtt_us;
	uint32_t data_segs_in;
	uint32_t data_segs_out;

	uint64_t delivery_rate_bytes_per_s;

	uint64_t busy_time_us;
	uint64_t rwnd_limited_us;
	uint64_t sndbuf_limited_us;

	uint32_t delivered_pkts;
	uint32_t delivered_ce_pkts;

	uint64_t bytes_sent; /* payload, retransmissions included */
	uint64_t bytes_retrans;
	uint32_t dsack_dups;
	uint32_t reord_seen;

	uint32_t rcv_ooopack;
	uint32_t snd_wnd_bytes;
	uint32_t rcv_wnd_bytes; /* 6.2 */
	uint32_t rehash; /* 6.2 */
	uint16_t total_rto; /* 6.7 */
	uint16_t total_rto_recoveries; /* 6.7 */
	uint32_t total_rto_time_ms; /* 6.7 */
};

_Static_assert(offsetof(struct tcp_info_abi, pacing_rate_bytes_per_s) == 104, "tcp_info layout");
_Static_assert(offsetof(struct tcp_info_abi, bytes_sent) == 200, "tcp_info layout");
_Static_assert(offsetof(struct tcp_info_abi, total_rto) == 240, "tcp_info layout");
_Static_assert(sizeof(struct tcp_info_abi) == 248, "tcp_info layout");

/* Did a kernel that returned LENGTH bytes fill in FIELD? */
#define TCP_INFO_HAS(length, field)                    \
	((length) >= offsetof(struct tcp_info_abi, field) + \
			     sizeof(((struct tcp_info_abi *)0)->field))

#define TCP_INFO_MIN_RTT_NONE UINT32_MAX
#define TCP_INFO_SSTHRESH_INFINITE INT32_MAX

#endif
