/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * labprobe's parts: probe_netlink.c asks the kernel, probe_csv.c writes what
 * was sampled, labprobe.c holds the options and the clock.
 */
#ifndef LABPROBE_H
#define LABPROBE_H

#include "tcp_info_abi.h"

#include <linux/inet_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include <linux/sctp.h> /* needs the line above */

#define ALGORITHM_NAME_MAX 16 /* TCP_CA_NAME_MAX */

enum cc_kind { CC_NONE, CC_BBR, CC_VEGAS, CC_DCTCP };

struct flow_sample {
	uint32_t tick;
	uint32_t flow; /* index into probe.flows */
	struct tcp_info_abi tcp;
	size_t tcp_length;
	struct sctp_info sctp; /* of an SCTP flow, in place of the above */
	char algorithm[ALGORITHM_NAME_MAX];
	enum cc_kind cc_kind;
	union tcp_cc_info cc;
};

struct hop_sample {
	uint32_t tick;
	uint32_t hop; /* index into probe.hops */
	uint64_t sent_pkts;
	uint64_t sent_bytes;
	uint32_t drops;
	uint32_t backlog_pkts;
	uint32_t backlog_bytes;
	uint32_t overlimits;
	uint32_t ce_marks; /* 0 for qdiscs that do not mark */
};

/* A netlink socket, opened inside the network namespace it asks about. */
struct channel {
	int protocol; /* NETLINK_SOCK_DIAG or NETLINK_ROUTE */
	int fd;
	uint64_t netns_inode;
	unsigned int targets; /* flows or hops asked about through it */
};

struct flow_target {
	const char *name;
	unsigned int channel;
	uint16_t source_port;
	uint8_t protocol; /* IPPROTO_TCP or IPPROTO_SCTP */
	bool located; /* id is known, so that it can be asked about directly */
	bool seen;
	struct inet_diag_sockid id;
};

struct hop_target {
	const char *name;
	unsigned int channel;
	int ifindex;
	uint32_t parent; /* of the qdisc to sample: TC_H_ROOT, or a class */
	bool seen;
};

/* A growing array. */
struct list {
	void *items;
	size_t count;
	size_t room;
};

struct probe {
	struct list channels; /* of struct channel */
	struct list flows; /* of struct flow_target */
	struct list hops; /* of struct hop_target */
	struct list flow_samples;
	struct list hop_samples;
	unsigned int interval_ms;
	char *requests; /* room for the largest batch of one channel */
	size_t requests_room;
	struct reply *replies;
	struct mmsghdr *messages;
	unsigned int messages_room;
};

/* A zeroed item at the end of LIST; NULL after complaining (out of memory). */
void *list_add(struct list *list, size_t item_bytes);

/*
 * Add a target. NETNS is a path or "-"; SPEC is only for the error line.
 * False after complaining.
 */
bool probe_add_flow(struct probe *probe, const char *spec, const char *name, const char *netns,
		    uint16_t source_port, uint8_t protocol);
bool probe_add_hop(struct probe *probe, const char *spec, const char *name, const char *netns,
		   const char *device, uint32_t parent);

/* Allocate the buffers, once all targets are there. */
bool probe_prepare(struct probe *probe);

/* Sample every target: two system calls a channel. */
bool probe_sample(struct probe *probe, uint32_t tick);

void write_flows_csv(FILE *out, const struct probe *probe);
void write_hops_csv(FILE *out, const struct probe *probe);

#endif
