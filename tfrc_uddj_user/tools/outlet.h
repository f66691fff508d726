/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How packets leave: many in one system call; those that are due together and
 * of one size as one message that the kernel cuts (UDP_SEGMENT); ahead of time,
 * with the time to leave at, where a queueing discipline keeps it (SO_TXTIME).
 */
#ifndef TFRC_TOOLS_OUTLET_H
#define TFRC_TOOLS_OUTLET_H

#include "tfrc.h"

#include <sys/uio.h>

#define OUTLET_BATCH 64

/**
 * struct outlet - a connected UDP socket to send from
 * @fd: the socket
 * @segments: the kernel cuts long messages
 * @lead_ns: how far ahead packets may be handed over; 0: it does not wait
 * @errors: packets that were refused; each is as lost as any other
 * @refused: the other host said that nobody listens there
 */
struct outlet {
	int fd;
	bool segments;
	tfrc_time lead_ns;
	uint64_t errors;
	bool refused;
};

/* A packet, and when it is to leave. */
struct outlet_packet {
	struct iovec data;
	tfrc_time at;
};

/* Find out what FD can do; VERBOSE: say so. */
void outlet_open(struct outlet *outlet, int fd, bool verbose);

/* COUNT is at most OUTLET_BATCH. */
void outlet_send(struct outlet *outlet, const struct outlet_packet *packets,
		 unsigned int count);

#endif
