/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The local address that a datagram came to. A socket that takes those of all
 * addresses has none of its own: what it sends leaves from the one that the
 * route prefers, and who asked another does not take that for an answer.
 */
#ifndef TFRC_TOOLS_LOCAL_H
#define TFRC_TOOLS_LOCAL_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

/* Room for it in a message's control part. */
#define LOCAL_CONTROL_BYTES CMSG_SPACE(sizeof(struct in6_pktinfo))

enum local_kind { LOCAL_UNKNOWN, LOCAL_V4, LOCAL_V6 };

struct local {
	enum local_kind kind;
	struct in_pktinfo v4;
	struct in6_pktinfo v6;
};

/* Have the kernel tell it for each datagram; FAMILY is the socket's. */
void local_ask(int fd, int family);

/* Where the datagram with this control part came to. */
struct local local_of(struct msghdr *msg);

/* sendto() from there; if the address is gone, from wherever the route says. */
ssize_t local_send(int fd, const struct local *local, const void *packet,
		   size_t bytes, const struct sockaddr_storage *to,
		   socklen_t to_bytes);

#endif
