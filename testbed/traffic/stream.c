// SPDX-License-Identifier: GPL-2.0-only
/* What transports over stream sockets share; see stream.h. */
#include "stream.h"
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int stream_fail(char error[FLOW_ERROR_MAX],
						      const char *format, ...)
{
	va_list arguments;

	if (error[0])
		return -1;
	va_start(arguments, format);
	vsnprintf(error, FLOW_ERROR_MAX, format, arguments);
	va_end(arguments);
	return -1;
}

static const char *endpoint_text(const struct sockaddr_in *address, char text[32])
{
	char host[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
	snprintf(text, 32, "%s:%u", host, ntohs(address->sin_port));
	return text;
}

static int fail_algorithm(struct flow *flow, const struct stream_algorithms *algorithms, int reason)
{
	const char *name = flow->options->algorithm;
	char available[200] = "unknown";
	char path[96];
	FILE *list;

	if (reason == EPERM)
		return stream_fail(flow->error, "algorithm '%s' needs CAP_NET_ADMIN or a place in %sallowed_congestion_control",
			    name, algorithms->sysctls);
	snprintf(path, sizeof(path), "%savailable_congestion_control", algorithms->sysctls);
	list = fopen(path, "re");
	if (list) {
		if (fgets(available, sizeof(available), list))
			available[strcspn(available, "\n")] = '\0';
		fclose(list);
	}
	return stream_fail(flow->error,
		    "algorithm '%s' is not available in this kernel (available: %s; is its module loaded?)",
		    name, available);
}

int stream_set_algorithm(struct flow *flow, const struct stream_algorithms *algorithms)
{
	const char *name = flow->options->algorithm;

	if (!name ||
	    setsockopt(flow->fd, algorithms->level, algorithms->option, name, strlen(name)) == 0)
		return 0;
	return fail_algorithm(flow, algorithms, errno);
}

int stream_set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

/* The first option goes beyond the system's limit, for those who may. */
static int set_buffer(int fd, int force, int option, int bytes)
{
	if (stream_set_int(fd, SOL_SOCKET, force, bytes) == 0)
		return 0;
	return stream_set_int(fd, SOL_SOCKET, option, bytes);
}

static int fail_open(char error[FLOW_ERROR_MAX], int protocol)
{
	return stream_fail(error, "cannot open %s socket: %s",
		    protocol == IPPROTO_SCTP ? "an SCTP" : protocol == IPPROTO_TCP ? "a TCP" : "an MPTCP",
		    strerror(errno));
}

int stream_open(struct flow *flow, int protocol)
{
	flow->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
	return flow->fd < 0 ? fail_open(flow->error, protocol) : 0;
}

static int bind_local(int fd, const struct sockaddr_in *local, char error[FLOW_ERROR_MAX])
{
	char text[32];

	if (stream_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0 ||
	    bind(fd, (const struct sockaddr *)local, sizeof(*local)) < 0)
		return stream_fail(error, "cannot bind to %s: %s", endpoint_text(local, text),
			    strerror(errno));
	return 0;
}

int stream_bind(struct flow *flow)
{
	const struct sockaddr_in *local = &flow->options->local;

	if (!local->sin_port && local->sin_addr.s_addr == htonl(INADDR_ANY))
		return 0;
	return bind_local(flow->fd, local, flow->error);
}

/* A flow that finds no way through in its time has starved: a finding, no error. */
int stream_connect(struct flow *flow)
{
	const struct sockaddr_in *peer = &flow->options->peer;
	char text[32];

	if (connect(flow->fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0)
		return 0;
	if (errno == EINTR && stop_signal == SIGALRM)
		return 1;
	if (errno == EINTR)
		return stream_fail(flow->error, "no connection to %s before the flow was stopped",
			    endpoint_text(peer, text));
	return stream_fail(flow->error, "cannot connect to %s: %s", endpoint_text(peer, text),
		    strerror(errno));
}

/* Hand over bytes until LIMIT of them have been; 0 also when it is time to stop. */
static int send_until(struct flow *flow, uint64_t limit, stream_send_some *send_some)
{
	while (!stop_signal && flow->written_bytes < limit) {
		ssize_t sent = send_some(flow, limit - flow->written_bytes);

		if (sent >= 0)
			flow->written_bytes += (uint64_t)sent;
		else if (errno != EINTR)
			return stream_fail(flow->error, "connection lost: %s", strerror(errno));
	}
	return 0;
}

static int await_answer(struct flow *flow)
{
	char answer;
	ssize_t got;

	do {
		got = recv(flow->fd, &answer, 1, 0);
	} while (got < 0 && errno == EINTR && !stop_signal);
	if (got <= 0 && !stop_signal)
		return stream_fail(flow->error, "no answer: %s",
				   got ? strerror(errno) : "the sink has closed");
	return 0;
}

/* Requests and the sink's answers, with pauses between. */
static int send_requests(struct flow *flow, stream_send_some *send_some)
{
	const struct flow_options *options = flow->options;

	flow->answers_ns = calloc(options->repeats, sizeof(*flow->answers_ns));
	if (!flow->answers_ns)
		return stream_fail(flow->error, "no memory for %u requests", options->repeats);
	while (flow->answers < options->repeats) {
		int64_t now_ns = clock_read_ns(CLOCK_MONOTONIC);

		flow->waiting_since_ns = now_ns;
		if (send_until(flow, flow->written_bytes + options->bytes, send_some) < 0 ||
		    await_answer(flow) < 0)
			return -1;
		if (stop_signal)
			return 0;
		now_ns = clock_read_ns(CLOCK_MONOTONIC);
		flow->answers_ns[flow->answers++] = now_ns - flow->waiting_since_ns;
		flow->waiting_since_ns = 0;
		if (options->pause_ns && !sleep_until_ns(now_ns + options->pause_ns))
			return 0;
	}
	return 0;
}

int stream_send(struct flow *flow, stream_send_some *send_some)
{
	const struct flow_options *options = flow->options;

	if (options->repeats)
		return send_requests(flow, send_some);
	return send_until(flow, options->bytes ? options->bytes : UINT64_MAX, send_some);
}

/* Half-close and sleep until the peer, having read everything, closes too. */
int stream_await_peer_close(struct flow *flow)
{
	char byte;
	ssize_t got;

	if (shutdown(flow->fd, SHUT_WR) < 0)
		return stream_fail(flow->error, "cannot finish sending: %s", strerror(errno));
	do {
		got = recv(flow->fd, &byte, sizeof(byte), 0);
	} while (got > 0 || (got < 0 && errno == EINTR && !stop_signal));
	if (got < 0 && errno != EINTR)
		return stream_fail(flow->error, "connection lost before all bytes were acknowledged: %s",
			    strerror(errno));
	flow->completed = got == 0;
	return 0;
}

void stream_close(struct flow *flow)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	if (!flow->completed &&
	    setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0)
		stream_fail(flow->error, "cannot reset the connection: %s", strerror(errno));
	close(flow->fd);
	flow->fd = -1;
}

int stream_listen(const struct sink_options *options, int protocol, char error[FLOW_ERROR_MAX])
{
	char text[32];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return fail_open(error, protocol);
	if (options->rcvbuf_bytes &&
	    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options->rcvbuf_bytes) < 0) {
		stream_fail(error, "cannot set --rcvbuf %d: %s", options->rcvbuf_bytes, strerror(errno));
		goto failed;
	}
	if (bind_local(fd, &options->local, error) < 0)
		goto failed;
	/* Accepted sockets inherit the timestamps, at no call of their own. */
	if (stream_set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) < 0 || listen(fd, SOMAXCONN) < 0) {
		stream_fail(error, "cannot listen on %s: %s", endpoint_text(&options->local, text),
		     strerror(errno));
		goto failed;
	}
	return fd;
failed:
	close(fd);
	return -1;
}

/* When the last byte of MESSAGE reached this host, in CLOCK_REALTIME. */
static int64_t arrival_real_ns(struct msghdr *message)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg;
	     cmsg = CMSG_NXTHDR(message, cmsg)) {
		struct timespec stamp;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(cmsg), sizeof(stamp));
		return stamp.tv_sec * NSEC_PER_SEC + stamp.tv_nsec;
	}
	/* It came before the kernel had switched its timestamps on. */
	return clock_read_ns(CLOCK_REALTIME);
}

ssize_t stream_receive(int fd, struct iovec *where, int flags, int64_t *last_byte_real_ns)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct msghdr message = {
		.msg_iov = where,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t got = recvmsg(fd, &message, flags);

	if (got > 0)
		*last_byte_real_ns = arrival_real_ns(&message);
	return got;
}
