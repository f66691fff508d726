// SPDX-License-Identifier: GPL-2.0-only
#include "outlet.h"
#include "common.h"
#include "qdisc.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEGMENTS_MAX 64	   /* UDP_MAX_SEGMENTS of older kernels */
#define MESSAGE_MAX  65000 /* with headers it must fit into 16 bits */
/* Some timers' worth: whoever wakes up late is early enough. */
#define LEAD_NS 1000000

/* Control messages: one, of either kind. */
union control {
	char bytes[CMSG_SPACE(sizeof(uint64_t))];
	struct cmsghdr align;
};

struct messages {
	struct mmsghdr header[OUTLET_BATCH];
	unsigned int packets[OUTLET_BATCH]; /* in each */
	struct iovec data[OUTLET_BATCH];
	union control control[OUTLET_BATCH];
	unsigned int count;
};

static const char *try_times(struct outlet *outlet)
{
	static char said[128];
	struct sock_txtime how = {.clockid = CLOCK_MONOTONIC};
	struct egress egress;

	if (!egress_of(outlet->fd, &egress))
		return "packets leave when this program wakes up: the kernel "
		       "does not say which way";
	if (!egress.keeps_times) {
		snprintf(said, sizeof(said),
			 "packets leave when this program wakes up: %s has %s, "
			 "not fq",
			 egress.device, egress.qdisc);
	} else if (setsockopt(outlet->fd, SOL_SOCKET, SO_TXTIME, &how,
			      sizeof(how))) {
		snprintf(said, sizeof(said),
			 "packets leave when this program wakes up: no "
			 "SO_TXTIME: %s",
			 strerror(errno));
	} else {
		outlet->lead_ns = LEAD_NS;
		snprintf(said, sizeof(said),
			 "packets leave at their times: %s has fq",
			 egress.device);
	}
	return said;
}

void outlet_open(struct outlet *outlet, int fd, bool verbose)
{
	int none = 0;
	const char *times;

	*outlet = (struct outlet){.fd = fd};
	times = try_times(outlet);
	/* segments of one message leave together: not where each has its time */
	outlet->segments =
		!outlet->lead_ns &&
		!setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none));
	if (verbose)
		complain("%s%s", times,
			 outlet->segments ? "; what is due together, as one "
					    "message"
					  : "");
}

static void set_control(struct msghdr *msg, union control *control, int level,
			int type, const void *value, size_t bytes)
{
	struct cmsghdr *part;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(bytes);
	part = CMSG_FIRSTHDR(msg);
	part->cmsg_level = level;
	part->cmsg_type = type;
	part->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(part), value, bytes);
}

/* How many packets may be one message: of one size, but for the last. */
static unsigned int run_length(const struct outlet *outlet,
			       const struct outlet_packet *packets,
			       unsigned int count)
{
	size_t size = packets[0].data.iov_len, bytes = size;
	unsigned int n = 1;

	if (!outlet->segments)
		return 1;
	while (n < count && n < SEGMENTS_MAX &&
	       packets[n].data.iov_len <= size &&
	       bytes + packets[n].data.iov_len <= MESSAGE_MAX) {
		bytes += packets[n].data.iov_len;
		n++;
		if (packets[n - 1].data.iov_len < size)
			break;
	}
	return n;
}

static void lay_out(const struct outlet *outlet,
		    const struct outlet_packet *packets, unsigned int count,
		    struct messages *m)
{
	m->count = 0;
	for (unsigned int i = 0, n; i < count; i += n) {
		struct mmsghdr *header = &m->header[m->count];
		union control *control = &m->control[m->count];

		n = run_length(outlet, packets + i, count - i);
		for (unsigned int k = i; k < i + n; k++)
			m->data[k] = packets[k].data;
		*header = (struct mmsghdr){
			.msg_hdr = {.msg_iov = &m->data[i], .msg_iovlen = n}};
		if (n > 1) {
			uint16_t size = (uint16_t)packets[i].data.iov_len;

			set_control(&header->msg_hdr, control, IPPROTO_UDP,
				    UDP_SEGMENT, &size, sizeof(size));
		} else if (outlet->lead_ns) {
			uint64_t at = (uint64_t)packets[i].at;

			set_control(&header->msg_hdr, control, SOL_SOCKET,
				    SCM_TXTIME, &at, sizeof(at));
		}
		m->packets[m->count++] = n;
	}
}

/* A path that cannot carry segments of this size: from now on one by one. */
static bool cannot_cut(int error)
{
	return error == EINVAL || error == EMSGSIZE || error == EIO ||
	       error == EOPNOTSUPP;
}

void outlet_send(struct outlet *outlet, const struct outlet_packet *packets,
		 unsigned int count)
{
	struct messages m;
	unsigned int done = 0, first = 0;

	lay_out(outlet, packets, count, &m);
	while (done < m.count) {
		int sent = sendmmsg(outlet->fd, m.header + done, m.count - done,
				    0);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && m.packets[done] > 1 && cannot_cut(errno)) {
			outlet->segments = false;
			outlet_send(outlet, packets + first, count - first);
			return;
		}
		if (sent < 0 && errno == ECONNREFUSED)
			outlet->refused = true;
		if (sent < 0) {
			outlet->errors += m.packets[done];
			sent = 1;
		}
		for (; sent > 0; sent--)
			first += m.packets[done++];
	}
}
