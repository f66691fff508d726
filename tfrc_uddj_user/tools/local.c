// SPDX-License-Identifier: GPL-2.0-only
#include "local.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void local_ask(int fd, int family)
{
	int on = 1;

	/* on an IPv6 socket IPv4's addresses are told as IPv6's */
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on,
				 sizeof(on));
	else
		(void)setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
}

struct local local_of(struct msghdr *msg)
{
	struct local local = {0};

	for (struct cmsghdr *part = CMSG_FIRSTHDR(msg); part;
	     part = CMSG_NXTHDR(msg, part)) {
		if (part->cmsg_level == IPPROTO_IPV6 &&
		    part->cmsg_type == IPV6_PKTINFO) {
			local.kind = LOCAL_V6;
			memcpy(&local.v6, CMSG_DATA(part), sizeof(local.v6));
		} else if (part->cmsg_level == IPPROTO_IP &&
			   part->cmsg_type == IP_PKTINFO) {
			local.kind = LOCAL_V4;
			memcpy(&local.v4, CMSG_DATA(part), sizeof(local.v4));
		}
	}
	/* the way back need not be by the device that it came in by, but where
	 * an address means nothing without one */
	local.v4.ipi_ifindex = 0;
	if (!IN6_IS_ADDR_LINKLOCAL(&local.v6.ipi6_addr))
		local.v6.ipi6_ifindex = 0;
	return local;
}

static void set_source(struct msghdr *msg, char *control,
		       const struct local *local)
{
	bool is_v4 = local->kind == LOCAL_V4;
	const void *source = is_v4 ? (const void *)&local->v4 : &local->v6;
	size_t bytes = is_v4 ? sizeof(local->v4) : sizeof(local->v6);
	struct cmsghdr *part;

	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(bytes);
	part = CMSG_FIRSTHDR(msg);
	part->cmsg_level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
	part->cmsg_type = is_v4 ? IP_PKTINFO : IPV6_PKTINFO;
	part->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(part), source, bytes);
}

ssize_t local_send(int fd, const struct local *local, const void *packet,
		   size_t bytes, const struct sockaddr_storage *to,
		   socklen_t to_bytes)
{
	struct iovec data = {.iov_base = (void *)packet, .iov_len = bytes};
	struct msghdr msg = {.msg_name = (void *)to,
			     .msg_namelen = to_bytes,
			     .msg_iov = &data,
			     .msg_iovlen = 1};
	union {
		char bytes[LOCAL_CONTROL_BYTES];
		struct cmsghdr align;
	} control = {0};
	ssize_t sent;

	if (local->kind)
		set_source(&msg, control.bytes, local);
	sent = sendmsg(fd, &msg, 0);
	if (sent < 0 && local->kind &&
	    (errno == EINVAL || errno == EADDRNOTAVAIL)) {
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		sent = sendmsg(fd, &msg, 0);
	}
	return sent;
}
