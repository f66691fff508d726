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
 *
 * MPTCP is the same but for the socket's protocol and what it says at its end: the sums over its
 * subflows, whose number is its namespaces' business (ip mptcp).
 */
#include "common.h"
#include "stream.h"
#include "tcp_info_abi.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const struct stream_algorithms algorithms = {
	.level = IPPROTO_TCP,
	.option = TCP_CONGESTION,
	.sysctls = "/proc/sys/net/ipv4/tcp_",
};

#define CHUNK_BYTES (256u << 10)
#define CHUNKS_MAX 256u /* at most UIO_MAXIOV, 1024 */
#define DISCARD_BYTES ((size_t)1 << 30) /* below the kernel's MAX_RW_COUNT */
#define SUBFLOWS_MAX 9u /* of a connection: the first, and MPTCP_PM_ADDR_MAX more */

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif

static char zeroes[CHUNK_BYTES];

static int configure(struct flow *flow)
{
	const struct flow_options *options = flow->options;

	if (stream_set_algorithm(flow, &algorithms) < 0)
		return -1;
	if (options->mss_bytes &&
	    stream_set_int(flow->fd, IPPROTO_TCP, TCP_MAXSEG, options->mss_bytes) < 0)
		return stream_fail(flow->error, "cannot set --mss %d: %s", options->mss_bytes,
			    strerror(errno));
	if (options->sndbuf_bytes &&
	    stream_set_int(flow->fd, SOL_SOCKET, SO_SNDBUF, options->sndbuf_bytes) < 0)
		return stream_fail(flow->error, "cannot set --sndbuf %d: %s", options->sndbuf_bytes,
			    strerror(errno));
	return 0;
}

static int open_as(struct flow *flow, int protocol)
{
	if (stream_open(flow, protocol) < 0 || configure(flow) < 0)
		return -1;
	return stream_bind(flow);
}

static int tcp_open(struct flow *flow)
{
	return open_as(flow, IPPROTO_TCP);
}

static int mptcp_open(struct flow *flow)
{
	return open_as(flow, IPPROTO_MPTCP);
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

static ssize_t send_chunks(struct flow *flow, uint64_t left_bytes)
{
	static struct iovec chunks[CHUNKS_MAX];
	struct msghdr message = {
		.msg_iov = chunks,
		.msg_iovlen = gather_zeroes(chunks, left_bytes),
	};

	return sendmsg(flow->fd, &message, MSG_NOSIGNAL);
}

static int tcp_send(struct flow *flow)
{
	if (stream_send(flow, send_chunks) < 0)
		return -1;
	if (stop_signal)
		return 0;
	return stream_await_peer_close(flow);
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

static int short_info(struct flow *flow)
{
	return stream_fail(flow->error, "this kernel's TCP_INFO is too short: Linux 4.19 or newer is needed");
}

/* INFO from what the kernel filled in, LENGTH bytes of TCP; of bytes_acked all that it counts. */
static struct flow_info info_of(const struct tcp_info_abi *tcp, socklen_t length)
{
	return (struct flow_info){
		.bytes_acked = tcp->bytes_acked,
		.bytes_sent = tcp->bytes_sent,
		.bytes_retrans = tcp->bytes_retrans,
		.segs_out = tcp->segs_out,
		.data_segs_out = tcp->data_segs_out,
		.retransmits = tcp->total_retrans_pkts,
		.timeouts = TCP_INFO_HAS(length, total_rto) ? tcp->total_rto : -1,
		.mss_bytes = tcp->snd_mss_bytes,
		.min_rtt_us = tcp->min_rtt_us == TCP_INFO_MIN_RTT_NONE ? -1 :
								    (int64_t)tcp->min_rtt_us,
		.srtt_us = tcp->srtt_us,
		.cwnd_pkts = tcp->cwnd_pkts,
		.delivered_pkts = tcp->delivered_pkts,
		.delivered_ce_pkts = tcp->delivered_ce_pkts,
		.reord_seen = tcp->reord_seen,
	};
}

/* The algorithm and the port, which are the socket's. */
static int socket_state(struct flow *flow, struct flow_info *info)
{
	struct sockaddr_in local = { 0 };
	socklen_t local_length = sizeof(local);
	socklen_t name_length = sizeof(info->algorithm) - 1;

	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, info->algorithm, &name_length) < 0 ||
	    getsockname(flow->fd, (struct sockaddr *)&local, &local_length) < 0)
		return stream_fail(flow->error, "cannot read the socket's state: %s", strerror(errno));
	info->source_port = ntohs(local.sin_port);
	return 0;
}

static int tcp_info(struct flow *flow, struct flow_info *info)
{
	struct tcp_info_abi tcp = { 0 };
	socklen_t length = sizeof(tcp);

	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &tcp, &length) < 0)
		return stream_fail(flow->error, "cannot read TCP_INFO: %s", strerror(errno));
	if (!TCP_INFO_HAS(length, reord_seen))
		return short_info(flow);
	*info = info_of(&tcp, length);
	info->bytes_acked = payload_acked(flow, info->bytes_acked);
	return socket_state(flow, info);
}

/* Of several subflows: counts and windows together, the RTTs and the MSS of the first. */
static void add_subflow(struct flow_info *all, const struct flow_info *one)
{
	all->bytes_sent += one->bytes_sent;
	all->bytes_retrans += one->bytes_retrans;
	all->segs_out += one->segs_out;
	all->data_segs_out += one->data_segs_out;
	all->retransmits += one->retransmits;
	all->timeouts = all->timeouts < 0 ? -1 : all->timeouts + one->timeouts;
	all->cwnd_pkts += one->cwnd_pkts;
	all->delivered_pkts += one->delivered_pkts;
	all->delivered_ce_pkts += one->delivered_ce_pkts;
	all->reord_seen += one->reord_seen;
}

/*
 * What the connection as a whole has acknowledged is what was written less what is between its
 * two sequence numbers: subflows may carry a byte twice.
 */
static int mptcp_info(struct flow *flow, struct flow_info *info)
{
	struct mptcp_info connection = { 0 };
	struct {
		struct mptcp_subflow_data of;
		struct tcp_info_abi tcp[SUBFLOWS_MAX];
	} each = {
		.of.size_subflow_data = sizeof(each.of),
		.of.size_user = sizeof(each.tcp[0]),
	};
	socklen_t length = sizeof(connection), each_length = sizeof(each);
	uint64_t outstanding;

	if (getsockopt(flow->fd, SOL_MPTCP, MPTCP_INFO, &connection, &length) < 0 ||
	    getsockopt(flow->fd, SOL_MPTCP, MPTCP_TCPINFO, &each, &each_length) < 0)
		return stream_fail(flow->error, "cannot read MPTCP_INFO: %s (Linux 5.16 or newer is needed)",
				   strerror(errno));
	length = each.of.size_kernel < sizeof(each.tcp[0]) ? each.of.size_kernel :
							     sizeof(each.tcp[0]);
	if (!TCP_INFO_HAS(length, reord_seen))
		return short_info(flow);
	*info = info_of(&each.tcp[0], length);
	for (uint32_t i = 1; i < each.of.num_subflows && i < SUBFLOWS_MAX; i++) {
		struct flow_info subflow = info_of(&each.tcp[i], length);

		add_subflow(info, &subflow);
	}
	outstanding = connection.mptcpi_write_seq - connection.mptcpi_snd_una;
	info->bytes_acked = flow->written_bytes > outstanding ? flow->written_bytes - outstanding : 0;
	return socket_state(flow, info);
}

/* MSG_TRUNC discards: nothing is ever stored. */
static ssize_t discard(int fd, size_t most_bytes, int flags, int64_t *last_byte_real_ns)
{
	struct iovec nowhere = { .iov_base = NULL, .iov_len = most_bytes };

	return stream_receive(fd, &nowhere, MSG_TRUNC | flags, last_byte_real_ns);
}

/*
 * The watermark is raised only after the first bytes, which so wake us at
 * once. End of stream, reset and shutdown() all deliver the tail below the
 * watermark first, and only then end the loop.
 */
static void receive_all(int fd, const struct sink_options *options, struct arrival *arrival)
{
	ssize_t got = discard(fd, DISCARD_BYTES, 0, &arrival->last_byte_real_ns);

	arrival->first_byte_real_ns = arrival->last_byte_real_ns;
	if (got > 0 && stream_set_int(fd, SOL_SOCKET, SO_RCVLOWAT, options->lowat_bytes) < 0)
		complain("cannot set --lowat-bytes %d: %s", options->lowat_bytes,
			 strerror(errno));
	while (got > 0) {
		arrival->bytes += (uint64_t)got;
		got = discard(fd, DISCARD_BYTES, MSG_WAITALL, &arrival->last_byte_real_ns);
	}
}

/* Without a watermark: the rest of a request may be less than any. */
static void receive_requests(int fd, const struct sink_options *options, struct arrival *arrival)
{
	uint64_t left_bytes = options->reply_after_bytes;
	ssize_t got;

	do {
		size_t most = left_bytes < DISCARD_BYTES ? (size_t)left_bytes : DISCARD_BYTES;

		got = discard(fd, most, 0, &arrival->last_byte_real_ns);
		if (got <= 0)
			return;
		if (!arrival->bytes)
			arrival->first_byte_real_ns = arrival->last_byte_real_ns;
		arrival->bytes += (uint64_t)got;
		left_bytes -= (uint64_t)got;
		if (!left_bytes) {
			left_bytes = options->reply_after_bytes;
			got = send(fd, "", 1, MSG_NOSIGNAL);
		}
	} while (got > 0);
}

static void tcp_receive(int fd, const struct sink_options *options, struct arrival *arrival)
{
	if (options->reply_after_bytes)
		receive_requests(fd, options, arrival);
	else
		receive_all(fd, options, arrival);
}

static int tcp_listen(const struct sink_options *options, char error[FLOW_ERROR_MAX])
{
	return stream_listen(options, IPPROTO_TCP, error);
}

static int mptcp_listen(const struct sink_options *options, char error[FLOW_ERROR_MAX])
{
	return stream_listen(options, IPPROTO_MPTCP, error);
}

const struct transport transport_mptcp = {
	.name = "mptcp",
	.open = mptcp_open,
	.connect = stream_connect,
	.send = tcp_send,
	.info = mptcp_info,
	.close = stream_close,
	.listen = mptcp_listen,
	.receive = tcp_receive,
};

const struct transport transport_tcp = {
	.name = "tcp",
	.open = tcp_open,
	.connect = stream_connect,
	.send = tcp_send,
	.info = tcp_info,
	.close = stream_close,
	.listen = tcp_listen,
	.receive = tcp_receive,
};
