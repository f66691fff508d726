/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seam between labflow and a transport: one struct transport a protocol,
 * one file a transport. Add a member by listing it in labflow.c.
 *
 * Every operation returns 0, or -1 after writing one line into error[].
 */
#ifndef LABFLOW_TRANSPORT_H
#define LABFLOW_TRANSPORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define FLOW_ERROR_MAX 384
#define ALGORITHM_NAME_MAX 16 /* TCP_CA_NAME_MAX */

struct flow_options {
	const struct transport *transport;
	const char *name;
	const char *algorithm; /* NULL: what the route or the sysctl says */
	struct sockaddr_in local;
	struct sockaddr_in peer;
	uint64_t bytes; /* 0: no byte limit; of each request where there are several */
	uint32_t repeats; /* TCP, SCTP: requests, each answered by the sink; 0: no requests */
	int64_t pause_ns; /* between an answer and the next request */
	uint64_t rate_bps; /* UDP: bits of whole Ethernet frames per second */
	int64_t on_ns, off_ns; /* UDP: means of bursts and of the gaps between; 0: no gaps */
	uint64_t seed; /* of their lengths */
	int mss_bytes; /* 0: the kernel's choice; UDP: payload of a datagram; SCTP: of a chunk */
	int sndbuf_bytes; /* 0: the kernel's choice */
};

struct flow {
	const struct flow_options *options;
	int fd; /* -1 while not open */
	bool connected;
	uint64_t written_bytes;
	int64_t *answers_ns; /* how long each request took that was answered */
	uint32_t answers;
	int64_t waiting_since_ns; /* of one that was not, at the end; 0: there is none */
	uint32_t datagrams; /* UDP: sent */
	bool completed; /* the byte limit was reached and all of it acknowledged */
	char error[FLOW_ERROR_MAX]; /* empty: none */
};

/* What the kernel says about a flow at its end. */
struct flow_info {
	char algorithm[ALGORITHM_NAME_MAX];
	uint16_t source_port;
	uint64_t bytes_acked; /* payload only */
	uint64_t bytes_sent; /* payload, retransmissions included */
	uint64_t bytes_retrans;
	uint32_t segs_out;
	uint32_t data_segs_out;
	uint32_t retransmits;
	int64_t timeouts; /* -1: this kernel does not say */
	uint32_t mss_bytes;
	int64_t min_rtt_us; /* -1: no sample */
	uint32_t srtt_us;
	uint32_t cwnd_pkts;
	uint32_t delivered_pkts;
	uint32_t delivered_ce_pkts;
	uint32_t reord_seen;
};

struct sink_options {
	const struct transport *transport;
	struct sockaddr_in local;
	int lowat_bytes;
	uint64_t reply_after_bytes; /* TCP, SCTP: one byte goes back after so many; 0: none */
	int rcvbuf_bytes; /* 0: the kernel's choice */
};

/* What arrived on one connection; times are CLOCK_REALTIME, 0 for none. */
struct arrival {
	uint64_t bytes;
	uint32_t datagrams; /* UDP has this alone */
	int64_t first_byte_real_ns;
	int64_t last_byte_real_ns;
};

struct transport {
	const char *name;
	bool connectionless; /* receive() takes what listen() gives, and ends at a shutdown() */

	/* Sender, in this order; the start time lies between open and connect. */
	int (*open)(struct flow *flow);
	int (*connect)(struct flow *flow); /* 1: its time was over first */
	/* Send until the byte limit is acknowledged or stop_signal is set. */
	int (*send)(struct flow *flow);
	int (*info)(struct flow *flow, struct flow_info *info);
	/* Without completion nothing may drain afterwards: reset the connection. */
	void (*close)(struct flow *flow);

	/* Sink: a listening descriptor, and the life of one accepted connection. */
	int (*listen)(const struct sink_options *options, char error[FLOW_ERROR_MAX]);
	void (*receive)(int fd, const struct sink_options *options, struct arrival *arrival);
};

extern const struct transport transport_tcp;
extern const struct transport transport_mptcp; /* and with it the subflows that namespaces say */
extern const struct transport transport_udp;
extern const struct transport transport_sctp;

#endif
