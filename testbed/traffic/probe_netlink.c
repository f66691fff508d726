// SPDX-License-Identifier: GPL-2.0-only
/*
 * All questions for one channel go out in a single send() and all answers
 * come back in a single recvmmsg(): netlink answers synchronously, so they
 * are queued by the time send() returns.
 *
 * Flows: a socket whose four-tuple is known is asked about directly, with its
 * cookie, so a later socket on the same ports is not mistaken for it. As long
 * as one is not known, the same batch ends with a dump of the namespace's
 * connected sockets, from which it is recognised by its source port.
 *
 * Hops: RTM_GETQDISC with a parent, TC_H_ROOT or the class an AQM is in, so no
 * handle need be known.
 * NLM_F_ECHO makes kernels that multicast the answer send it to the asker, too.
 * A device that never was up (noop) gets no answer and therefore no row; one
 * with noqueue gets zeros.
 */
#include "common.h"
#include "labprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SELF_NETNS "/proc/self/ns/net"
#define DUMP_SEQUENCE UINT32_MAX /* any other one is the target's index */
#define QDISC_KIND_MAX 16 /* IFNAMSIZ, as the kernel has it */
#define DUMP_SLOTS 16u /* datagrams a dump may take without another call */
#define RECEIVE_BUFFER_BYTES (8 << 20) /* holds the answers for some 4000 targets */

/* The states in which a socket has a congestion window: see tcp_states.h. */
enum tcp_state {
	TCP_STATE_ESTABLISHED = 1,
	TCP_STATE_FIN_WAIT1 = 4,
	TCP_STATE_FIN_WAIT2 = 5,
	TCP_STATE_CLOSE_WAIT = 8,
	TCP_STATE_LAST_ACK = 9,
	TCP_STATE_CLOSING = 11,
};

#define CONNECTED_STATES                                                               \
	(1u << TCP_STATE_ESTABLISHED | 1u << TCP_STATE_FIN_WAIT1 |                     \
	 1u << TCP_STATE_FIN_WAIT2 | 1u << TCP_STATE_CLOSE_WAIT |                      \
	 1u << TCP_STATE_LAST_ACK | 1u << TCP_STATE_CLOSING)

#define SCTP_ASSOC_ESTABLISHED 3 /* enum sctp_state of the kernel; later ones are shutdowns */

/* Larger than any answer: the kernel fits a dump's datagrams to what is read. */
struct reply {
	_Alignas(struct nlmsghdr) char bytes[16384];
};

struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

struct qdisc_request {
	struct nlmsghdr header;
	struct tcmsg body;
};

void *list_add(struct list *list, size_t item_bytes)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		void *items = reallocarray(list->items, room, item_bytes);

		if (!items) {
			complain("out of memory after %zu samples", list->count);
			return NULL;
		}
		list->items = items;
		list->room = room;
	}
	return memset((char *)list->items + list->count++ * item_bytes, 0, item_bytes);
}

static int open_netlink(int protocol)
{
	const int bytes = RECEIVE_BUFFER_BYTES;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	/* The second, capped by rmem_max, is for those without CAP_NET_ADMIN. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct channel *find_channel(struct probe *probe, uint64_t netns_inode, int protocol)
{
	struct channel *channels = probe->channels.items;

	for (size_t i = 0; i < probe->channels.count; i++) {
		if (channels[i].netns_inode == netns_inode && channels[i].protocol == protocol)
			return &channels[i];
	}
	return NULL;
}

static struct channel *get_channel(struct probe *probe, uint64_t netns_inode, int protocol)
{
	struct channel *channel = find_channel(probe, netns_inode, protocol);
	int fd;

	if (channel)
		return channel;
	fd = open_netlink(protocol);
	if (fd < 0) {
		complain("cannot open a netlink socket: %s", strerror(errno));
		return NULL;
	}
	channel = list_add(&probe->channels, sizeof(*channel));
	if (channel)
		*channel = (struct channel){ protocol, fd, netns_inode, 0 };
	return channel;
}

/* What probe_add_flow() and probe_add_hop() have to do inside the namespace. */
struct visit {
	int protocol;
	const char *device; /* NULL: none wanted */
	const char *spec;
	unsigned int channel; /* result */
	int ifindex; /* result, if a device is wanted */
};

static bool resolve_here(struct probe *probe, uint64_t netns_inode, struct visit *visit)
{
	struct channel *channel;

	if (visit->device) {
		visit->ifindex = (int)if_nametoindex(visit->device);
		if (!visit->ifindex) {
			complain("no device '%s' for --hop %s", visit->device, visit->spec);
			return false;
		}
	}
	channel = get_channel(probe, netns_inode, visit->protocol);
	if (!channel)
		return false;
	channel->targets++;
	visit->channel = (unsigned int)(channel - (struct channel *)probe->channels.items);
	return true;
}

static bool resolve_there(struct probe *probe, int there_fd, int home_fd, struct visit *visit)
{
	struct stat there, home;
	bool done;

	if (fstat(there_fd, &there) < 0 || fstat(home_fd, &home) < 0) {
		complain("cannot identify the network namespace of %s: %s", visit->spec,
			 strerror(errno));
		return false;
	}
	if (there.st_ino == home.st_ino)
		return resolve_here(probe, there.st_ino, visit);
	if (setns(there_fd, CLONE_NEWNET) < 0) {
		complain("cannot enter the network namespace of %s: %s%s", visit->spec,
			 strerror(errno), errno == EPERM ? " (root is needed)" : "");
		return false;
	}
	done = resolve_here(probe, there.st_ino, visit);
	if (setns(home_fd, CLONE_NEWNET) < 0) {
		complain("cannot return from the network namespace of %s: %s", visit->spec,
			 strerror(errno));
		return false;
	}
	return done;
}

static bool resolve(struct probe *probe, const char *netns, struct visit *visit)
{
	const char *path = strcmp(netns, "-") ? netns : SELF_NETNS;
	int home_fd = open(SELF_NETNS, O_RDONLY | O_CLOEXEC);
	int there_fd = open(path, O_RDONLY | O_CLOEXEC);
	bool done = false;

	if (home_fd < 0 || there_fd < 0)
		complain("no network namespace '%s' for %s: %s", path, visit->spec,
			 strerror(errno));
	else
		done = resolve_there(probe, there_fd, home_fd, visit);
	if (home_fd >= 0)
		close(home_fd);
	if (there_fd >= 0)
		close(there_fd);
	return done;
}

bool probe_add_flow(struct probe *probe, const char *spec, const char *name, const char *netns,
		    uint16_t source_port, uint8_t protocol)
{
	struct visit visit = { .protocol = NETLINK_SOCK_DIAG, .spec = spec };
	struct flow_target *flow;

	if (!resolve(probe, netns, &visit))
		return false;
	flow = list_add(&probe->flows, sizeof(*flow));
	if (!flow)
		return false;
	flow->name = name;
	flow->channel = visit.channel;
	flow->source_port = source_port;
	flow->protocol = protocol;
	return true;
}

bool probe_add_hop(struct probe *probe, const char *spec, const char *name, const char *netns,
		   const char *device, uint32_t parent)
{
	struct visit visit = { .protocol = NETLINK_ROUTE, .device = device, .spec = spec };
	struct hop_target *hop;

	if (!resolve(probe, netns, &visit))
		return false;
	hop = list_add(&probe->hops, sizeof(*hop));
	if (!hop)
		return false;
	hop->name = name;
	hop->channel = visit.channel;
	hop->ifindex = visit.ifindex;
	hop->parent = parent;
	return true;
}

/* Each reply is an iovec of its own; the iovecs follow the message headers. */
bool probe_prepare(struct probe *probe)
{
	const struct channel *channels = probe->channels.items;
	unsigned int most = 0;
	struct iovec *parts;

	for (size_t i = 0; i < probe->channels.count; i++) {
		if (channels[i].targets > most)
			most = channels[i].targets;
	}
	probe->messages_room = most + DUMP_SLOTS;
	probe->requests_room = (most + 1) * sizeof(struct diag_request);
	probe->requests = malloc(probe->requests_room);
	probe->replies = calloc(probe->messages_room, sizeof(*probe->replies));
	probe->messages = calloc(probe->messages_room, sizeof(*probe->messages) + sizeof(*parts));
	if (!probe->requests || !probe->replies || !probe->messages) {
		complain("out of memory");
		return false;
	}
	parts = (struct iovec *)(probe->messages + probe->messages_room);
	for (unsigned int i = 0; i < probe->messages_room; i++) {
		parts[i].iov_base = probe->replies[i].bytes;
		parts[i].iov_len = sizeof(probe->replies[i].bytes);
		probe->messages[i].msg_hdr.msg_iov = &parts[i];
		probe->messages[i].msg_hdr.msg_iovlen = 1;
	}
	return true;
}

static void diag_request(struct diag_request *request, uint32_t sequence, uint16_t flags,
			 uint8_t protocol, const struct inet_diag_sockid *id)
{
	*request = (struct diag_request){
		.header = { .nlmsg_len = sizeof(*request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			    .nlmsg_seq = sequence },
		/* VEGASINFO stands for BBRINFO and DCTCPINFO, too. */
		.body = { .sdiag_family = AF_INET,
			  .sdiag_protocol = protocol,
			  .idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) |
				       1 << (INET_DIAG_VEGASINFO - 1),
			  .idiag_states = CONNECTED_STATES },
	};
	if (id)
		request->body.id = *id;
}

static size_t batch_flows(const struct probe *probe, unsigned int channel)
{
	const struct flow_target *flows = probe->flows.items;
	struct diag_request *request = (struct diag_request *)probe->requests;
	bool dump = false, dump_sctp = false;

	for (uint32_t i = 0; i < probe->flows.count; i++) {
		if (flows[i].channel != channel)
			continue;
		if (flows[i].located)
			diag_request(request++, i, 0, flows[i].protocol, &flows[i].id);
		else if (flows[i].protocol == IPPROTO_SCTP)
			dump_sctp = true;
		else
			dump = true;
	}
	if (dump)
		diag_request(request++, DUMP_SEQUENCE, NLM_F_DUMP, IPPROTO_TCP, NULL);
	else if (dump_sctp)
		diag_request(request++, DUMP_SEQUENCE, NLM_F_DUMP, IPPROTO_SCTP, NULL);
	return (size_t)((char *)request - probe->requests);
}

static size_t batch_hops(const struct probe *probe, unsigned int channel)
{
	const struct hop_target *hops = probe->hops.items;
	struct qdisc_request *request = (struct qdisc_request *)probe->requests;

	for (uint32_t i = 0; i < probe->hops.count; i++) {
		if (hops[i].channel != channel)
			continue;
		*request++ = (struct qdisc_request){
			.header = { .nlmsg_len = sizeof(*request),
				    .nlmsg_type = RTM_GETQDISC,
				    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO,
				    .nlmsg_seq = i },
			.body = { .tcm_family = AF_UNSPEC,
				  .tcm_ifindex = hops[i].ifindex,
				  .tcm_parent = hops[i].parent },
		};
	}
	return (size_t)((char *)request - probe->requests);
}

static void copy_attribute(void *to, size_t room, const struct rtattr *attribute)
{
	size_t length = RTA_PAYLOAD(attribute);

	memcpy(to, RTA_DATA(attribute), length < room ? length : room);
}

static void take_flow_attribute(struct flow_sample *sample, const struct rtattr *attribute,
				uint8_t protocol)
{
	switch (attribute->rta_type) {
	case INET_DIAG_INFO:
		if (protocol == IPPROTO_SCTP) {
			copy_attribute(&sample->sctp, sizeof(sample->sctp), attribute);
			return;
		}
		sample->tcp_length = RTA_PAYLOAD(attribute);
		copy_attribute(&sample->tcp, sizeof(sample->tcp), attribute);
		return;
	case INET_DIAG_CONG:
		copy_attribute(sample->algorithm, sizeof(sample->algorithm) - 1, attribute);
		return;
	case INET_DIAG_BBRINFO:
		sample->cc_kind = CC_BBR;
		break;
	case INET_DIAG_VEGASINFO:
		sample->cc_kind = CC_VEGAS;
		break;
	case INET_DIAG_DCTCPINFO:
		sample->cc_kind = CC_DCTCP;
		break;
	default:
		return;
	}
	copy_attribute(&sample->cc, sizeof(sample->cc), attribute);
}

static struct flow_target *find_unlocated(struct probe *probe, unsigned int channel,
					  uint16_t source_port)
{
	struct flow_target *flows = probe->flows.items;

	for (size_t i = 0; i < probe->flows.count; i++) {
		if (flows[i].channel == channel && !flows[i].located &&
		    flows[i].source_port == source_port)
			return &flows[i];
	}
	return NULL;
}

/*
 * Whether BODY is of a flow that has a congestion window, and not a remnant of one:
 * a socket that is reset while the kernel waits for its lock to answer is told with
 * the state from before, but with all counts cleared (tcp_disconnect()).
 */
static bool is_flow(const struct flow_target *flow, const struct inet_diag_msg *body,
		    const struct flow_sample *sample)
{
	if (flow->protocol == IPPROTO_SCTP) /* no tag: the socket, not its association */
		return body->idiag_state >= SCTP_ASSOC_ESTABLISHED && sample->sctp.sctpi_tag;
	return CONNECTED_STATES & 1u << body->idiag_state && sample->tcp.segs_out;
}

/* A diag answer: for the target asked about, or, in a dump, for whoever fits. */
static bool take_flow(struct probe *probe, unsigned int channel, uint32_t tick,
		      const struct nlmsghdr *header)
{
	const struct inet_diag_msg *body = NLMSG_DATA(header);
	struct flow_target *flows = probe->flows.items;
	const struct rtattr *attribute = (const struct rtattr *)(body + 1);
	struct flow_sample sample = { .tick = tick };
	struct flow_target *flow;
	struct flow_sample *kept;
	unsigned int left;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*body)))
		return true;
	flow = header->nlmsg_seq == DUMP_SEQUENCE ?
		       find_unlocated(probe, channel, ntohs(body->id.idiag_sport)) :
		       &flows[header->nlmsg_seq];
	if (!flow)
		return true;
	left = header->nlmsg_len - (unsigned int)NLMSG_LENGTH(sizeof(*body));
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		take_flow_attribute(&sample, attribute, flow->protocol);
	if (!is_flow(flow, body, &sample))
		return true;
	flow->id = body->id;
	flow->located = true;
	flow->seen = true;
	sample.flow = (uint32_t)(flow - flows);
	kept = list_add(&probe->flow_samples, sizeof(*kept));
	if (kept)
		*kept = sample;
	return kept != NULL;
}

static void take_qdisc_stats(struct hop_sample *sample, const struct rtattr *stats)
{
	const struct rtattr *attribute = RTA_DATA(stats);
	unsigned int left = (unsigned int)RTA_PAYLOAD(stats);
	struct gnet_stats_basic basic = { 0 };
	struct gnet_stats_queue queue = { 0 };
	uint64_t pkts64 = 0;

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == TCA_STATS_BASIC)
			copy_attribute(&basic, sizeof(basic), attribute);
		else if (attribute->rta_type == TCA_STATS_QUEUE)
			copy_attribute(&queue, sizeof(queue), attribute);
		else if (attribute->rta_type == TCA_STATS_PKT64)
			copy_attribute(&pkts64, sizeof(pkts64), attribute);
	}
	/* The 64-bit count comes only once the 32-bit one has overflowed. */
	sample->sent_pkts = pkts64 ? pkts64 : basic.packets;
	sample->sent_bytes = basic.bytes;
	sample->drops = queue.drops;
	sample->backlog_pkts = queue.qlen;
	sample->backlog_bytes = queue.backlog;
	sample->overlimits = queue.overlimits;
}

/* linux/pkt_sched.h has it from 6.17 on. */
struct dualpi2_xstats {
	uint32_t prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark;
};

/* What an AQM counts besides: the packets that it marked. */
static uint32_t ce_marks(const char *kind, const struct rtattr *stats)
{
	struct dualpi2_xstats dualpi2 = { 0 };
	struct tc_fq_pie_xstats fq_pie = { 0 };
	struct tc_pie_xstats pie = { 0 };
	struct tc_fq_codel_xstats fq_codel = { 0 };
	struct tc_codel_xstats codel = { 0 };

	if (!strcmp(kind, "fq_codel")) {
		copy_attribute(&fq_codel, sizeof(fq_codel), stats);
		return fq_codel.type == TCA_FQ_CODEL_XSTATS_QDISC ?
			       fq_codel.qdisc_stats.ecn_mark : 0;
	}
	if (!strcmp(kind, "pie")) {
		copy_attribute(&pie, sizeof(pie), stats);
		return pie.ecn_mark;
	}
	if (!strcmp(kind, "fq_pie")) {
		copy_attribute(&fq_pie, sizeof(fq_pie), stats);
		return fq_pie.ecn_mark;
	}
	if (!strcmp(kind, "dualpi2")) {
		copy_attribute(&dualpi2, sizeof(dualpi2), stats);
		return dualpi2.ecn_mark;
	}
	if (!strcmp(kind, "codel"))
		copy_attribute(&codel, sizeof(codel), stats);
	return codel.ecn_mark;
}

static bool take_hop(struct probe *probe, uint32_t tick, const struct nlmsghdr *header)
{
	const struct tcmsg *body = NLMSG_DATA(header);
	struct hop_target *hops = probe->hops.items;
	const struct rtattr *attribute = TCA_RTA(body);
	const struct rtattr *stats = NULL, *xstats = NULL;
	char kind[QDISC_KIND_MAX] = "";
	struct hop_sample *sample;
	unsigned int left;

	if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*body)))
		return true;
	left = header->nlmsg_len - (unsigned int)NLMSG_LENGTH(sizeof(*body));
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == TCA_KIND)
			copy_attribute(kind, sizeof(kind) - 1, attribute);
		else if (attribute->rta_type == TCA_STATS2)
			stats = attribute;
		else if (attribute->rta_type == TCA_XSTATS)
			xstats = attribute;
	}
	if (!stats)
		return true;
	sample = list_add(&probe->hop_samples, sizeof(*sample));
	if (!sample)
		return false;
	sample->tick = tick;
	sample->hop = header->nlmsg_seq;
	take_qdisc_stats(sample, stats);
	sample->ce_marks = xstats ? ce_marks(kind, xstats) : 0;
	hops[header->nlmsg_seq].seen = true;
	return true;
}

/* A socket that is gone is looked for afresh; anything else is a failure. */
static bool take_error(struct probe *probe, const struct channel *channel,
		       const struct nlmsghdr *header)
{
	const struct nlmsgerr *body = NLMSG_DATA(header);
	struct flow_target *flows = probe->flows.items;
	struct hop_target *hops = probe->hops.items;
	const char *name;

	if (channel->protocol == NETLINK_ROUTE) {
		if (body->error == -ENOENT) /* no qdisc at the moment */
			return true;
		name = hops[header->nlmsg_seq].name;
	} else if (header->nlmsg_seq == DUMP_SEQUENCE) {
		name = "the socket dump";
	} else {
		flows[header->nlmsg_seq].located = false;
		if (body->error == -ENOENT || body->error == -ESTALE)
			return true;
		name = flows[header->nlmsg_seq].name;
	}
	complain("cannot sample %s: %s", name, strerror(-body->error));
	return false;
}

static bool take_reply(struct probe *probe, unsigned int index, uint32_t tick, const void *bytes,
		       unsigned int length)
{
	const struct channel *channel = (struct channel *)probe->channels.items + index;
	const struct nlmsghdr *header = bytes;
	bool done = true;

	for (; done && NLMSG_OK(header, length); header = NLMSG_NEXT(header, length)) {
		if (header->nlmsg_type == NLMSG_ERROR)
			done = take_error(probe, channel, header);
		else if (header->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			done = take_flow(probe, index, tick, header);
		else if (header->nlmsg_type == RTM_NEWQDISC)
			done = take_hop(probe, tick, header);
	}
	return done;
}

/* More datagrams than there is room for (a long dump) take another round. */
static bool take_replies(struct probe *probe, unsigned int index, uint32_t tick)
{
	const struct channel *channel = (struct channel *)probe->channels.items + index;
	int got;

	do {
		got = recvmmsg(channel->fd, probe->messages, probe->messages_room, MSG_DONTWAIT,
			       NULL);
		if (got < 0 && errno != EAGAIN) {
			complain("cannot read from netlink: %s", strerror(errno));
			return false;
		}
		for (int i = 0; i < got; i++) {
			if (!take_reply(probe, index, tick, probe->replies[i].bytes,
					probe->messages[i].msg_len))
				return false;
		}
	} while (got == (int)probe->messages_room);
	return true;
}

bool probe_sample(struct probe *probe, uint32_t tick)
{
	const struct channel *channels = probe->channels.items;

	for (unsigned int i = 0; i < probe->channels.count; i++) {
		size_t length = channels[i].protocol == NETLINK_ROUTE ? batch_hops(probe, i) :
									batch_flows(probe, i);

		if (send(channels[i].fd, probe->requests, length, 0) < 0) {
			complain("cannot write to netlink: %s", strerror(errno));
			return false;
		}
		if (!take_replies(probe, i, tick))
			return false;
	}
	return true;
}
