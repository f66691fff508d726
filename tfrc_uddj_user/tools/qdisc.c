// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nothing tells a socket whether the time that it gives a packet is kept:
 * where there is no fq, the packet just leaves at once. So look: the route's
 * device, and the queueing disciplines there. With several queues each has its
 * own, below mq. (etf keeps times, too, but drops what is late: that is for
 * reserved slots.)
 */
#include "qdisc.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 32768

typedef void (*take_message)(const struct nlmsghdr *message, void *arg);

/* Ask REQUEST; give each message of the answer to TAKE. */
static bool ask(const void *request, size_t bytes, bool many, take_message take,
		void *arg)
{
	static char answer[ANSWER_BYTES]
		__attribute__((aligned(NLMSG_ALIGNTO)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	bool good = fd >= 0 && send(fd, request, bytes, 0) == (ssize_t)bytes;
	bool more = good;

	while (more) {
		ssize_t got = recv(fd, answer, sizeof(answer), 0);
		unsigned int left = got > 0 ? (unsigned int)got : 0;
		struct nlmsghdr *message = (struct nlmsghdr *)answer;

		more = many && left;
		good = left;
		for (; NLMSG_OK(message, left);
		     message = NLMSG_NEXT(message, left)) {
			if (message->nlmsg_type == NLMSG_DONE)
				more = false;
			else if (message->nlmsg_type == NLMSG_ERROR)
				more = good = false;
			else
				take(message, arg);
		}
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static void take_route(const struct nlmsghdr *message, void *arg)
{
	int left = (int)RTM_PAYLOAD(message), *device = arg;
	const struct rtattr *part = RTM_RTA(NLMSG_DATA(message));

	for (; RTA_OK(part, left); part = RTA_NEXT(part, left))
		if (part->rta_type == RTA_OIF)
			memcpy(device, RTA_DATA(part), sizeof(*device));
}

/* The device that packets to PEER leave by; 0: not known. */
static int device_to(const struct sockaddr *peer)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr part;
		uint8_t address[16];
	} request = {.header = {.nlmsg_type = RTM_GETROUTE,
				.nlmsg_flags = NLM_F_REQUEST},
		     .part = {.rta_type = RTA_DST}};
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	const void *address = &v4->sin_addr;
	unsigned int bytes = sizeof(v4->sin_addr);
	int device = 0;

	if (peer->sa_family == AF_INET6) {
		if (v6->sin6_scope_id)
			return (int)v6->sin6_scope_id;
		address = &v6->sin6_addr;
		bytes = sizeof(v6->sin6_addr);
	}
	memcpy(request.address, address, bytes);
	request.route.rtm_family = (unsigned char)peer->sa_family;
	request.route.rtm_dst_len = (unsigned char)(8 * bytes);
	request.part.rta_len = (unsigned short)RTA_LENGTH(bytes);
	request.header.nlmsg_len =
		(uint32_t)(NLMSG_LENGTH(sizeof(request.route)) +
			   RTA_LENGTH(bytes));
	if (!ask(&request, request.header.nlmsg_len, false, take_route,
		 &device))
		return 0;
	return device;
}

struct search {
	int device;
	struct egress *egress;
	unsigned int keeping, others;
};

static void take_qdisc(const struct nlmsghdr *message, void *arg)
{
	const struct tcmsg *qdisc = NLMSG_DATA(message);
	int left = (int)TCA_PAYLOAD(message);
	struct search *search = arg;
	const char *kind = "";

	if (qdisc->tcm_ifindex != search->device ||
	    qdisc->tcm_parent == TC_H_INGRESS ||
	    qdisc->tcm_parent == TC_H_CLSACT)
		return;
	for (const struct rtattr *part = TCA_RTA(qdisc); RTA_OK(part, left);
	     part = RTA_NEXT(part, left))
		if (part->rta_type == TCA_KIND)
			kind = RTA_DATA(part);
	if (!strcmp(kind, "mq"))
		return;
	if (!strcmp(kind, "fq")) {
		search->keeping++;
		return;
	}
	search->others++;
	snprintf(search->egress->qdisc, sizeof(search->egress->qdisc), "%s",
		 kind);
}

bool egress_of(int fd, struct egress *egress)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg qdisc;
	} request = {.header = {.nlmsg_len = sizeof(request),
				.nlmsg_type = RTM_GETQDISC,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	struct search search = {.egress = egress};
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);

	*egress = (struct egress){.qdisc = "no queue"};
	if (getpeername(fd, (struct sockaddr *)&peer, &bytes))
		return false;
	search.device = device_to((const struct sockaddr *)&peer);
	if (!search.device ||
	    !if_indextoname((unsigned int)search.device, egress->device) ||
	    !ask(&request, sizeof(request), true, take_qdisc, &search))
		return false;
	egress->keeps_times = search.keeping && !search.others;
	return true;
}
