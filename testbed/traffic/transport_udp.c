// SPDX-License-Identifier: GPL-2.0-only
/*
 * UDP at a constant rate for labflow: cross traffic that nothing slows down.
 *
 * Sender: one datagram at a time, at start + i * gap; two system calls each.
 * A datagram that the local queue refuses is as gone as any other. With gaps
 * bursts and gaps have Pareto distributed lengths of shape 1.5, whose variance
 * would be infinite: traffic that many such sources make is self-similar
 * (Willinger et al., 1997). Both end at 100 times their mean.
 *
 * Sink: its filter refuses every datagram, which the kernel counts as a drop
 * of the socket, so nothing wakes the process until it is told to stop.
 */
#include "common.h"
#include "transport.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

#define DEFAULT_PAYLOAD_BYTES 1472 /* an Ethernet frame's worth */
#define HEADER_BYTES (14 + 20 + 8) /* Ethernet, IPv4, UDP: what a link's rate counts, too */

static int udp_fail(char error[FLOW_ERROR_MAX], const char *what)
{
	snprintf(error, FLOW_ERROR_MAX, "%s: %s", what, strerror(errno));
	return -1;
}

static int udp_bind(int fd, const struct sockaddr_in *local, char error[FLOW_ERROR_MAX])
{
	if (bind(fd, (const struct sockaddr *)local, sizeof(*local)) == 0)
		return 0;
	return udp_fail(error, "cannot bind to the local UDP port");
}

static int udp_open(struct flow *flow)
{
	if (!flow->options->rate_bps || flow->options->algorithm) {
		snprintf(flow->error, sizeof(flow->error),
			 "UDP needs --rate-mbps and has no --algorithm");
		return -1;
	}
	flow->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		return udp_fail(flow->error, "cannot open a UDP socket");
	return udp_bind(flow->fd, &flow->options->local, flow->error);
}

static int udp_connect(struct flow *flow)
{
	const struct sockaddr_in *peer = &flow->options->peer;

	if (connect(flow->fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0)
		return 0;
	return udp_fail(flow->error, "no route to the sink");
}

/* From the start of one datagram to that of the next. */
static int64_t gap_ns(const struct flow_options *options, size_t payload_bytes)
{
	uint64_t frame_bits = 8 * (payload_bytes + HEADER_BYTES);

	return (int64_t)(frame_bits * NSEC_PER_SEC / options->rate_bps);
}

#define PARETO_SHAPE 1.5
#define PARETO_MOST 100 /* means */

/* SplitMix64, uniform in [0, 1). */
static double draw(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static int64_t pareto_ns(uint64_t *state, int64_t mean_ns)
{
	double least = (double)mean_ns * (PARETO_SHAPE - 1) / PARETO_SHAPE;
	double length = least / pow(1 - draw(state), 1 / PARETO_SHAPE);
	double most = PARETO_MOST * (double)mean_ns;

	return (int64_t)(length < most ? length : most);
}

static int udp_send(struct flow *flow)
{
	static const char zeroes[UINT16_MAX];
	const struct flow_options *options = flow->options;
	const size_t payload_bytes =
		options->mss_bytes ? (size_t)options->mss_bytes : DEFAULT_PAYLOAD_BYTES;
	int64_t next_ns = clock_read_ns(CLOCK_MONOTONIC);
	uint64_t random = options->seed;
	int64_t off_at_ns = options->off_ns ? next_ns + pareto_ns(&random, options->on_ns) : 0;

	while (!stop_signal && (!options->bytes || flow->written_bytes < options->bytes)) {
		if (send(flow->fd, zeroes, payload_bytes, 0) >= 0) {
			flow->written_bytes += payload_bytes;
			flow->datagrams++;
		} else if (errno != ENOBUFS && errno != EINTR) {
			return udp_fail(flow->error, "cannot send a datagram");
		}
		next_ns += gap_ns(options, payload_bytes);
		if (options->off_ns && next_ns > off_at_ns) {
			next_ns = off_at_ns + pareto_ns(&random, options->off_ns);
			off_at_ns = next_ns + pareto_ns(&random, options->on_ns);
		}
		sleep_until_ns(next_ns);
	}
	flow->completed = !stop_signal;
	return 0;
}

static int udp_info(struct flow *flow, struct flow_info *info)
{
	struct sockaddr_in local = { 0 };
	socklen_t length = sizeof(local);

	if (getsockname(flow->fd, (struct sockaddr *)&local, &length) < 0)
		return udp_fail(flow->error, "cannot read the socket's state");
	*info = (struct flow_info){
		.source_port = ntohs(local.sin_port),
		.bytes_sent = flow->written_bytes,
		.segs_out = flow->datagrams,
		.data_segs_out = flow->datagrams,
		.timeouts = -1,
		.min_rtt_us = -1,
	};
	return 0;
}

static void udp_close(struct flow *flow)
{
	close(flow->fd);
	flow->fd = -1;
}

static int udp_listen(const struct sink_options *options, char error[FLOW_ERROR_MAX])
{
	struct sock_filter refuse[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	const struct sock_fprog program = { .len = 1, .filter = refuse };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return udp_fail(error, "cannot open a UDP socket");
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0 &&
	    udp_bind(fd, &options->local, error) == 0)
		return fd;
	if (!*error)
		udp_fail(error, "cannot set the socket's filter");
	close(fd);
	return -1;
}

/* Sleeps until shutdown(); then the drops are what has arrived. */
static void udp_receive(int fd, const struct sink_options *options, struct arrival *arrival)
{
	uint32_t numbers[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(numbers);
	char byte;

	(void)options;
	while (recv(fd, &byte, sizeof(byte), 0) < 0 && errno == EINTR)
		;
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, numbers, &length) < 0)
		complain("cannot read the socket's counters: %s", strerror(errno));
	arrival->datagrams = numbers[SK_MEMINFO_DROPS];
}

const struct transport transport_udp = {
	.name = "udp",
	.connectionless = true,
	.open = udp_open,
	.connect = udp_connect,
	.send = udp_send,
	.info = udp_info,
	.close = udp_close,
	.listen = udp_listen,
	.receive = udp_receive,
};
