// SPDX-License-Identifier: GPL-2.0
/* sctp_cong_ends WHAT ALGORITHM NS1 NS2
 *
 * SCTP's congestion control where sockets and associations come, go and change.
 * NS1 has 10.0.0.1 and 10.0.1.1 on veth0, NS2 10.0.0.2 and 10.0.1.2. WHAT is one of
 * those at the end of this file. Exit: 0 if all is as it should be, 1 with a line
 * that says what is not.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sctp.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT		5001
#define CLIENT_PORT	7001
#define BURSTS		10
#define BURST		20	/* messages; they fit into the buffers */
#define DATA_CHUNK	0
#define DEFAULT_NAME	"rfc9260"

#define check(fact)							\
	do {								\
		if (!(fact)) {						\
			fprintf(stderr, "line %d: not so: %s (%s)\n",	\
				__LINE__, #fact, strerror(errno));	\
			exit(1);					\
		}							\
	} while (0)

static const char *algorithm, *ns1, *ns2;

/* --- sockets -------------------------------------------------------------- */

static void enter(const char *ns)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY);
	check(fd >= 0);
	check(!setns(fd, CLONE_NEWNET));
	close(fd);
}

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	check(inet_pton(AF_INET, host, &sin.sin_addr) == 1);
	return sin;
}

static int bindx(int fd, int option, const char *host, int port)
{
	struct sockaddr_in sin = address(host, port);

	return setsockopt(fd, IPPROTO_SCTP, option, &sin, sizeof(sin));
}

static void subscribe(int fd, int type)
{
	struct sctp_event event = {
		.se_assoc_id = SCTP_ALL_ASSOC,
		.se_type = type,
		.se_on = 1,
	};

	if (setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof(event))) {
		event.se_assoc_id = SCTP_FUTURE_ASSOC;
		check(!setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event,
				  sizeof(event)));
	}
}

static int new_socket(const char *ns, int type, const char *host, int port)
{
	struct sockaddr_in sin = address(host, port);
	struct timeval limit = { .tv_sec = 30 };
	int fd;

	enter(ns);
	fd = socket(AF_INET, type, IPPROTO_SCTP);
	check(fd >= 0);
	check(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	check(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	check(!bind(fd, (struct sockaddr *)&sin, sizeof(sin)));
	return fd;
}

static int listening(int type)
{
	int fd = new_socket(ns2, type, "10.0.0.2", PORT);

	if (type == SOCK_SEQPACKET) {
		subscribe(fd, SCTP_ASSOC_CHANGE);
		subscribe(fd, SCTP_PEER_ADDR_CHANGE);
	}
	check(!listen(fd, 1));
	return fd;
}

static int client(void)
{
	return new_socket(ns1, SOCK_STREAM, "10.0.0.1", CLIENT_PORT);
}

static void associate(int fd)
{
	struct sockaddr_in sin = address("10.0.0.2", PORT);

	check(!connect(fd, (struct sockaddr *)&sin, sizeof(sin)));
}

/* Read a message; return its length, or 0 and the notification. */
static ssize_t take(int fd, union sctp_notification *told)
{
	char buffer[2048];
	struct iovec iov = { buffer, sizeof(buffer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t length = recvmsg(fd, &msg, 0);

	check(length > 0);
	if (!(msg.msg_flags & MSG_NOTIFICATION))
		return length;
	memcpy(told, buffer, sizeof(*told));
	return 0;
}

static void transfer(int from, int to)
{
	union sctp_notification told;
	static char message[1000];
	int burst, n;

	for (burst = 0; burst < BURSTS; burst++) {
		for (n = 0; n < BURST; n++)
			check(send(from, message, sizeof(message), 0) ==
			      sizeof(message));
		for (n = 0; n < BURST;)
			n += take(to, &told) > 0;
	}
}

/* Wait for a change of an association, or of an address of the peer. */
static void wait_for(int fd, int type, int state)
{
	union sctp_notification told;

	for (;;) {
		if (take(fd, &told) || told.sn_header.sn_type != type)
			continue;
		if (type == SCTP_ASSOC_CHANGE &&
		    told.sn_assoc_change.sac_state == state)
			return;
		if (type == SCTP_PEER_ADDR_CHANGE &&
		    told.sn_paddr_change.spc_state == state)
			return;
	}
}

static sctp_assoc_t only_association(int fd)
{
	struct {
		struct sctp_assoc_ids list;
		sctp_assoc_t one;
	} ids;
	socklen_t length = sizeof(ids);

	check(!getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &ids, &length));
	check(ids.list.gaids_number_of_ids == 1);
	return ids.list.gaids_assoc_id[0];
}

/* --- algorithms ------------------------------------------------------------ */

static int choose(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, name, strlen(name));
}

static int choose_for(int fd, sctp_assoc_t id, const char *name)
{
	struct sctp_cong_control wanted = { .scc_assoc_id = id };

	strncpy(wanted.scc_name, name, sizeof(wanted.scc_name) - 1);
	return setsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, &wanted,
			  sizeof(wanted));
}

static bool uses(int fd, const char *name)
{
	char used[16] = "";
	socklen_t length = sizeof(used);

	check(!getsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, used, &length));
	return !strcmp(used, name);
}

static bool association_uses(int fd, sctp_assoc_t id, const char *name)
{
	struct sctp_cong_control used = { .scc_assoc_id = id };
	socklen_t length = sizeof(used);

	check(!getsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, &used, &length));
	return !strcmp(used.scc_name, name);
}

/* The only association of a socket, asked for in both ways. */
static bool flow_uses(int fd, const char *name)
{
	return association_uses(fd, SCTP_FUTURE_ASSOC, name) && uses(fd, name);
}

/* --- inet_diag -------------------------------------------------------------- */

struct told {
	int associations;
	int paths;
	bool named;		/* all use the algorithm */
	int windows;		/* paths with one */
	unsigned int timestamp;	/* type of the chunks in use */
	int timed;		/* paths of which their times have taught something */
};

static void read_path(struct nlattr *path, struct told *told)
{
	int left = path->nla_len - NLA_HDRLEN;
	struct nlattr *attr = (void *)((char *)path + NLA_HDRLEN);

	told->paths++;
	for (; left >= NLA_HDRLEN;
	     left -= NLA_ALIGN(attr->nla_len),
	     attr = (void *)((char *)attr + NLA_ALIGN(attr->nla_len))) {
		char *value = (char *)attr + NLA_HDRLEN;

		switch (attr->nla_type & NLA_TYPE_MASK) {
		case SCTP_DIAG_PATH_CWND:
			told->windows += *(__u32 *)value > 0;
			break;
		case SCTP_DIAG_PATH_TIMESTAMP:
			told->timestamp = *(__u8 *)value;
			break;
		case SCTP_DIAG_PATH_JSCTP:
			told->timed += ((struct sctp_jsctp_info *)value)->min_rtt_us > 0;
			break;
		}
	}
}

static void read_association(struct nlmsghdr *nlh, struct told *told)
{
	struct inet_diag_msg *msg = NLMSG_DATA(nlh);
	int left = NLMSG_PAYLOAD(nlh, sizeof(*msg));
	struct nlattr *attr = (void *)(msg + 1);
	bool associated = false;

	for (; left >= NLA_HDRLEN;
	     left -= NLA_ALIGN(attr->nla_len),
	     attr = (void *)((char *)attr + NLA_ALIGN(attr->nla_len))) {
		char *value = (char *)attr + NLA_HDRLEN;
		char *end = (char *)attr + attr->nla_len;

		switch (attr->nla_type & NLA_TYPE_MASK) {
		case INET_DIAG_CONG:
			associated = true;
			told->named &= !strcmp(value, algorithm);
			break;
		case INET_DIAG_SCTP_PATHS:
			while (value < end) {
				struct nlattr *path = (void *)value;

				read_path(path, told);
				value += NLA_ALIGN(path->nla_len);
			}
			break;
		}
	}
	told->associations += associated;
}

/* Ask what there is in a namespace. */
static struct told diag(const char *ns)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req_v2 req;
	} ask = {
		.nlh = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_SCTP,
			.idiag_states = ~0U,
			.idiag_ext = 1 << (INET_DIAG_CONG - 1) |
				     1 << (INET_DIAG_VEGASINFO - 1),
		},
	};
	struct told told = { .named = true };
	static char buffer[1 << 16];
	struct nlmsghdr *nlh;
	bool done = false;
	ssize_t length;
	int fd;

	enter(ns);
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	check(fd >= 0);
	check(send(fd, &ask, sizeof(ask), 0) == sizeof(ask));
	while (!done) {
		length = recv(fd, buffer, sizeof(buffer), 0);
		check(length > 0);
		for (nlh = (void *)buffer; NLMSG_OK(nlh, length);
		     nlh = NLMSG_NEXT(nlh, length)) {
			check(nlh->nlmsg_type != NLMSG_ERROR);
			done |= nlh->nlmsg_type == NLMSG_DONE;
			if (nlh->nlmsg_type == SOCK_DIAG_BY_FAMILY)
				read_association(nlh, &told);
		}
	}
	close(fd);
	return told;
}

/* Have times gone there and back? Only these algorithms tell. A SACK may be late. */
static bool times_came(const char *ns)
{
	int tries = strncmp(algorithm, "jsctp", 5) ? 0 : 20;

	while (tries && !diag(ns).timed) {
		tries--;
		if (!tries)
			return false;
		usleep(100000);
	}
	return true;
}

/* --- what is tested --------------------------------------------------------- */

static void setsockopt_names(void)
{
	int one = client(), many = listening(SOCK_SEQPACKET);

	check(uses(one, DEFAULT_NAME));
	check(!choose(one, algorithm) && uses(one, algorithm));
	check(choose(one, "no_such_thing") && errno == ENOENT);
	check(choose(one, "") && errno == EINVAL);
	check(uses(one, algorithm));

	check(!choose_for(many, SCTP_FUTURE_ASSOC, algorithm));
	check(association_uses(many, SCTP_FUTURE_ASSOC, algorithm));
	check(choose_for(many, 1000000, DEFAULT_NAME) && errno == EINVAL);
	check(!choose_for(many, SCTP_ALL_ASSOC, DEFAULT_NAME));
	check(uses(many, DEFAULT_NAME));
}

static void setsockopt_associations(void)
{
	int many = listening(SOCK_SEQPACKET), one = client();
	sctp_assoc_t id;

	associate(one);
	transfer(one, many);
	id = only_association(many);
	check(association_uses(many, id, DEFAULT_NAME));
	check(!choose_for(many, SCTP_FUTURE_ASSOC, algorithm));
	check(association_uses(many, id, DEFAULT_NAME));
	check(!choose_for(many, SCTP_CURRENT_ASSOC, algorithm));
	check(association_uses(many, id, algorithm));
	check(!choose_for(many, id, DEFAULT_NAME));
	check(association_uses(many, id, DEFAULT_NAME) && uses(many, algorithm));
	check(!choose(one, algorithm));
	transfer(one, many);
	check(flow_uses(one, algorithm));
}

static void accepted(void)
{
	int listener = listening(SOCK_STREAM), one = client(), server;

	check(!choose(listener, algorithm));
	associate(one);
	server = accept(listener, NULL, NULL);
	check(server >= 0 && flow_uses(server, algorithm));
	check(flow_uses(one, DEFAULT_NAME));
	transfer(one, server);
	transfer(server, one);
}

static void peeled_off(void)
{
	int many = listening(SOCK_SEQPACKET), one = client();
	sctp_peeloff_arg_t peel;
	socklen_t length = sizeof(peel);

	associate(one);
	transfer(one, many);
	check(!choose_for(many, SCTP_CURRENT_ASSOC, algorithm));
	check(uses(many, DEFAULT_NAME));
	peel.associd = only_association(many);
	enter(ns2);
	/* it returns the new socket, too */
	check(getsockopt(many, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &peel, &length) >= 0);
	check(flow_uses(peel.sd, algorithm));
	check(!choose(many, algorithm));
	check(!choose_for(many, SCTP_ALL_ASSOC, DEFAULT_NAME));
	check(flow_uses(peel.sd, algorithm));
	transfer(one, peel.sd);
	check(!choose(peel.sd, DEFAULT_NAME));
	check(flow_uses(peel.sd, DEFAULT_NAME));
	transfer(peel.sd, one);
}

static void link_is(bool up)
{
	struct ifreq ifr = { .ifr_name = "veth0" };
	int fd;

	enter(ns1);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	check(!ioctl(fd, SIOCGIFFLAGS, &ifr));
	ifr.ifr_flags = up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP;
	check(!ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

/* The peer forgets the association, and what ends it does not arrive; it comes
 * again with one address less.
 */
static void restarted(void)
{
	struct linger abort = { .l_onoff = 1 };
	int many = listening(SOCK_SEQPACKET), one = client();
	sctp_assoc_t id;

	check(!bindx(one, SCTP_SOCKOPT_BINDX_ADD, "10.0.1.1", CLIENT_PORT));
	associate(one);
	transfer(one, many);
	id = only_association(many);
	check(!choose_for(many, id, algorithm));

	link_is(false);
	check(!setsockopt(one, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	close(one);
	link_is(true);
	one = client();
	associate(one);
	wait_for(many, SCTP_ASSOC_CHANGE, SCTP_RESTART);
	check(only_association(many) == id);
	check(association_uses(many, id, algorithm));
	transfer(one, many);
}

static void reconfigured(void)
{
	int many = listening(SOCK_SEQPACKET), one = client(), n;
	sctp_assoc_t id;

	check(!choose(one, algorithm));
	associate(one);
	transfer(one, many);
	id = only_association(many);
	check(!choose_for(many, id, algorithm));
	for (n = 0; n < 5; n++) {
		check(!bindx(one, SCTP_SOCKOPT_BINDX_ADD, "10.0.1.1",
			     CLIENT_PORT));
		wait_for(many, SCTP_PEER_ADDR_CHANGE, SCTP_ADDR_ADDED);
		transfer(one, many);
		check(!bindx(one, SCTP_SOCKOPT_BINDX_REM, "10.0.1.1",
			     CLIENT_PORT));
		wait_for(many, SCTP_PEER_ADDR_CHANGE, SCTP_ADDR_REMOVED);
		transfer(one, many);
	}
	check(flow_uses(one, algorithm));
	check(association_uses(many, id, algorithm));
}

/* Both ends want DATA authenticated, and with it TIMESTAMP chunks. */
static void authenticated(void)
{
	struct sctp_authchunk data = { .sauth_chunk = DATA_CHUNK };
	int many = listening(SOCK_SEQPACKET), one = client();

	check(!setsockopt(many, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, sizeof(data)));
	check(!setsockopt(one, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, sizeof(data)));
	check(!choose(one, algorithm));
	associate(one);
	transfer(one, many);
	check(flow_uses(one, algorithm));
	check(diag(ns1).timestamp == 190);
	check(times_came(ns1));
}

static void told_by_diag(void)
{
	int many = listening(SOCK_SEQPACKET), one = client();
	struct told told;

	check(!bindx(many, SCTP_SOCKOPT_BINDX_ADD, "10.0.1.2", PORT));
	check(!choose(one, algorithm));
	associate(one);
	transfer(one, many);
	told = diag(ns1);
	check(told.associations == 1 && told.paths == 2);
	check(told.named && told.windows == told.paths);
	check(times_came(ns1));
}

static const struct {
	const char *name;
	void (*test)(void);
} tests[] = {
	{ "setsockopt", setsockopt_names },
	{ "assoc_id", setsockopt_associations },
	{ "accept", accepted },
	{ "peeloff", peeled_off },
	{ "restart", restarted },
	{ "asconf", reconfigured },
	{ "auth", authenticated },
	{ "diag", told_by_diag },
};

int main(int argc, char **argv)
{
	size_t n;

	check(argc == 5);
	algorithm = argv[2];
	ns1 = argv[3];
	ns2 = argv[4];
	for (n = 0; n < sizeof(tests) / sizeof(*tests); n++) {
		if (!strcmp(tests[n].name, argv[1])) {
			tests[n].test();
			return 0;
		}
	}
	fprintf(stderr, "no test %s\n", argv[1]);
	return 1;
}
