// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP for labflow, in as few system calls as the kernel allows: in virtual
 * time each one costs tens of microseconds of wall time.
 *
 * Sender: one sendmsg() hands over up to 64 MiB by naming the same 256 KiB
 * of zeroes 256 times, so the process sleeps inside the kernel for whole
 * seconds of a transfer and touches no more memory than fits a cache. A signal
 * only ends a call that waits for room, so on a path that never makes it wait
 * this size also bounds how late the end can come (8 ms at 64 Gb/s).
 *
 * Sink: recvmsg(MSG_TRUNC | MSG_WAITALL) discards up to 1 GiB a call without
 * copying. SO_RCVLOWAT decides how often the sleeping task is woken to do so.
 * The kernel's receive timestamps come along with the data, so neither the
 * first nor the last byte needs a clock read, and the last one is exact even
 * if the connection ends much later by a reset.
 */
#include "common.h"
#include "tcp_info_abi.h"
#include "transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define AVAILABLE_ALGORITHMS "/proc/sys/net/ipv4/tcp_available_congestion_control"

#define CHUNK_BYTES (256u << 10)
#define CHUNKS_MAX 256u /* at most UIO_MAXIOV, 1024 */
#define DISCARD_BYTES ((size_t)1 << 30) /* below the kernel's MAX_RW_COUNT */

static char zeroes[CHUNK_BYTES];

__attribute__((format(printf, 2, 3))) static int fail(char error[FLOW_ERROR_MAX],
						      const char *format, ...)
{
	va_list arguments;

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

static int fail_algorithm(struct flow *flow, int reason)
{
	const char *name = flow->options->algorithm;
	char available[200] = "unknown";
	FILE *list;

	if (reason == EPERM)
		return fail(flow->error,
			    "algorithm '%s' needs CAP_NET_ADMIN or a place in net.ipv4.tcp_allowed_congestion_control",
			    name);
	list = fopen(AVAILABLE_ALGORITHMS, "re");
	if (list) {
		if (fgets(available, sizeof(available), list))
			available[strcspn(available, "\n")] = '\0';
		fclose(list);
	}
	return fail(flow->error,
		    "algorithm '%s' is not available in this kernel (available: %s; is its module loaded?)",
		    name, available);
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

static int configure(struct flow *flow)
{
	const struct flow_options *options = flow->options;

	if (options->algorithm && setsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION,
					     options->algorithm, strlen(options->algorithm)) < 0)
		return fail_algorithm(flow, errno);
	if (options->mss_bytes &&
	    set_int(flow->fd, IPPROTO_TCP, TCP_MAXSEG, options->mss_bytes) < 0)
		return fail(flow->error, "cannot set --mss %d: %s", options->mss_bytes,
			    strerror(errno));
	if (options->sndbuf_bytes &&
	    set_int(flow->fd, SOL_SOCKET, SO_SNDBUF, options->sndbuf_bytes) < 0)
		return fail(flow->error, "cannot set --sndbuf %d: %s", options->sndbuf_bytes,
			    strerror(errno));
	return 0;
}

static int bind_local(int fd, const struct sockaddr_in *local, char error[FLOW_ERROR_MAX])
{
	char text[32];

	if (set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0 ||
	    bind(fd, (const struct sockaddr *)local, sizeof(*local)) < 0)
		return fail(error, "cannot bind to %s: %s", endpoint_text(local, text),
			    strerror(errno));
	return 0;
}

static int tcp_open(struct flow *flow)
{
	const struct sockaddr_in *local = &flow->options->local;

	flow->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		return fail(flow->error, "cannot open a TCP socket: %s", strerror(errno));
	if (configure(flow) < 0)
		return -1;
	if (!local->sin_port && local->sin_addr.s_addr == htonl(INADDR_ANY))
		return 0;
	return bind_local(flow->fd, local, flow->error);
}

static int tcp_connect(struct flow *flow)
{
	const struct sockaddr_in *peer = &flow->options->peer;
	char text[32];

	if (connect(flow->fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0)
		return 0;
	if (errno == EINTR)
		return fail(flow->error, "no connection to %s before the flow was stopped",
			    endpoint_text(peer, text));
	return fail(flow->error, "cannot connect to %s: %s", endpoint_text(peer, text),
		    strerror(errno));
}

/* Point CHUNKS at as many zeroes as LEFT_BYTES allows; returns their number. */
static size_t gather_zeroes(struct iovec chunks[CHUNKS_MAX], uint64_t left_bytes)
{
	size_t count = 0;

	while (left_bytes && count < CHUNKS_MAX) {
		size_t length = left_bytes < CHUNK_BYTES ? (size_t)left_bytes : CHUNK_BYTES;

		chunks[count++] = (struct iovec){ .iov_base = zeroes, .iov_len = length };
		left_bytes -= length;
	}
	return count;
}

/* Half-close and sleep until the peer, having read everything, closes too. */
static int await_peer_close(struct flow *flow)
{
	char byte;
	ssize_t got;

	if (shutdown(flow->fd, SHUT_WR) < 0)
		return fail(flow->error, "cannot finish sending: %s", strerror(errno));
	do {
		got = recv(flow->fd, &byte, sizeof(byte), 0);
	} while (got > 0 || (got < 0 && errno == EINTR && !stop_signal));
	if (got < 0 && errno != EINTR)
		return fail(flow->error, "connection lost before all bytes were acknowledged: %s",
			    strerror(errno));
	flow->completed = got == 0;
	return 0;
}

static int tcp_send(struct flow *flow)
{
	const uint64_t limit = flow->options->bytes ? flow->options->bytes : UINT64_MAX;
	static struct iovec chunks[CHUNKS_MAX];
	struct msghdr message = { .msg_iov = chunks };

	while (!stop_signal && flow->written_bytes < limit) {
		ssize_t sent;

		message.msg_iovlen = gather_zeroes(chunks, limit - flow->written_bytes);
		sent = sendmsg(flow->fd, &message, MSG_NOSIGNAL);
		if (sent >= 0)
			flow->written_bytes += (uint64_t)sent;
		else if (errno != EINTR)
			return fail(flow->error, "connection lost: %s", strerror(errno));
	}
	if (stop_signal)
		return 0;
	return await_peer_close(flow);
}

/*
 * The kernel counts the SYN, and the FIN once it is acknowledged, as a byte
 * each. What the application wrote bounds the latter.
 */
static uint64_t payload_acked(const struct flow *flow, uint64_t bytes_acked)
{
	uint64_t payload = bytes_acked ? bytes_acked - 1 : 0;

	return payload < flow->written_bytes ? payload : flow->written_bytes;
}

static int tcp_info(struct flow *flow, struct flow_info *info)
{
	struct sockaddr_in local = { 0 };
	struct tcp_info_abi tcp = { 0 };
	socklen_t tcp_length = sizeof(tcp);
	socklen_t local_length = sizeof(local);
	socklen_t name_length = sizeof(info->algorithm) - 1;

	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &tcp, &tcp_length) < 0)
		return fail(flow->error, "cannot read TCP_INFO: %s", strerror(errno));
	if (!TCP_INFO_HAS(tcp_length, reord_seen))
		return fail(flow->error, "this kernel's TCP_INFO is too short: Linux 4.19 or newer is needed");
	*info = (struct flow_info){
		.bytes_acked = payload_acked(flow, tcp.bytes_acked),
		.bytes_sent = tcp.bytes_sent,
		.bytes_retrans = tcp.bytes_retrans,
		.segs_out = tcp.segs_out,
		.data_segs_out = tcp.data_segs_out,
		.retransmits = tcp.total_retrans_pkts,
		.timeouts = TCP_INFO_HAS(tcp_length, total_rto) ? tcp.total_rto : -1,
		.mss_bytes = tcp.snd_mss_bytes,
		.min_rtt_us = tcp.min_rtt_us == TCP_INFO_MIN_RTT_NONE ? -1 :
								  (int64_t)tcp.min_rtt_us,
		.srtt_us = tcp.srtt_us,
		.cwnd_pkts = tcp.cwnd_pkts,
		.delivered_pkts = tcp.delivered_pkts,
		.delivered_ce_pkts = tcp.delivered_ce_pkts,
		.reord_seen = tcp.reord_seen,
	};
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, info->algorithm, &name_length) < 0 ||
	    getsockname(flow->fd, (struct sockaddr *)&local, &local_length) < 0)
		return fail(flow->error, "cannot read the socket's state: %s", strerror(errno));
	info->source_port = ntohs(local.sin_port);
	return 0;
}

static void tcp_close(struct flow *flow)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	if (!flow->completed &&
	    setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0)
		fail(flow->error, "cannot reset the connection: %s", strerror(errno));
	close(flow->fd);
	flow->fd = -1;
}

static int tcp_listen(const struct sink_options *options, char error[FLOW_ERROR_MAX])
{
	char text[32];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return fail(error, "cannot open a TCP socket: %s", strerror(errno));
	if (bind_local(fd, &options->local, error) < 0)
		goto failed;
	/* Accepted sockets inherit the timestamps, at no call of their own. */
	if (set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) < 0 || listen(fd, SOMAXCONN) < 0) {
		fail(error, "cannot listen on %s: %s", endpoint_text(&options->local, text),
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

static ssize_t discard(int fd, int flags, int64_t *last_byte_real_ns)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct timespec))];
	} control;
	/* MSG_TRUNC discards: nothing is ever stored at iov_base. */
	struct iovec nowhere = { .iov_base = NULL, .iov_len = DISCARD_BYTES };
	struct msghdr message = {
		.msg_iov = &nowhere,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t got = recvmsg(fd, &message, MSG_TRUNC | flags);

	if (got > 0)
		*last_byte_real_ns = arrival_real_ns(&message);
	return got;
}

/*
 * The watermark is raised only after the first bytes, which so wake us at
 * once. End of stream, reset and shutdown() all deliver the tail below the
 * watermark first, and only then end the loop.
 */
static void tcp_receive(int fd, const struct sink_options *options, struct arrival *arrival)
{
	ssize_t got = discard(fd, 0, &arrival->last_byte_real_ns);

	arrival->first_byte_real_ns = arrival->last_byte_real_ns;
	if (got > 0 && set_int(fd, SOL_SOCKET, SO_RCVLOWAT, options->lowat_bytes) < 0)
		complain("cannot set --lowat-bytes %d: %s", options->lowat_bytes,
			 strerror(errno));
	while (got > 0) {
		arrival->bytes += (uint64_t)got;
		got = discard(fd, MSG_WAITALL, &arrival->last_byte_real_ns);
	}
}

const struct transport transport_tcp = {
	.name = "tcp",
	.open = tcp_open,
	.connect = tcp_connect,
	.send = tcp_send,
	.info = tcp_info,
	.close = tcp_close,
	.listen = tcp_listen,
	.receive = tcp_receive,
};
