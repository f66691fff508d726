// SPDX-License-Identifier: GPL-2.0-only
/*
 * SCTP for labflow: one-to-one sockets, all data on stream 0.
 *
 * Sender: messages of many whole chunks, so that a call hands over much and no
 * chunk but the last of a byte limit is short. A chunk has 1440 bytes of payload
 * if --mss says nothing else: 1456 with its header, as in the JSCTP paper, and an
 * Ethernet frame's worth with a TIMESTAMP chunk. SCTP counts chunks, not bytes;
 * as all are alike, bytes follow from that. What the newest SACK left missing is
 * not acknowledged; the few chunks sent since then pass for acknowledged. Where there
 * are several requests, the short chunk that each answered one ends with is known.
 *
 * Sink: SCTP cannot discard what is not copied, and gives one message a call. None is
 * of two requests.
 */
#include "common.h"
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/sctp.h> /* needs the line above */

#ifndef SCTP_CONG_CONTROL
#define SCTP_CONG_CONTROL 1000 /* of the patched kernel */
#endif

#define CHUNK_BYTES 1440
#define MESSAGE_CHUNKS 64u
#define MESSAGE_BYTES_MAX (256u << 10)
#define SEND_BUFFER_BYTES (1 << 20)
#define RECEIVE_BUFFER_BYTES (8 << 20)
#define COUNTERS "/proc/net/sctp/snmp"
#define TIMEOUT_COUNTER "SctpT3Retransmits"

static const struct stream_algorithms algorithms = {
	.level = IPPROTO_SCTP,
	.option = SCTP_CONG_CONTROL,
	.sysctls = "/proc/sys/net/sctp/",
};

static char zeroes[MESSAGE_BYTES_MAX];
static long timeouts_before; /* a process has one flow */

static uint32_t chunk_bytes(const struct flow *flow)
{
	return flow->options->mss_bytes ? (uint32_t)flow->options->mss_bytes : CHUNK_BYTES;
}

/* T3-rtx timeouts in this network namespace since boot; -1: not told. */
static long read_timeouts(void)
{
	char name[64];
	long value, found = -1;
	FILE *counters = fopen(COUNTERS, "re");

	if (!counters)
		return -1;
	while (found < 0 && fscanf(counters, "%63s %ld", name, &value) == 2) {
		if (!strcmp(name, TIMEOUT_COUNTER))
			found = value;
	}
	fclose(counters);
	return found;
}

static int sctp_configure(struct flow *flow)
{
	const struct flow_options *options = flow->options;
	struct sctp_assoc_value maxseg = { .assoc_value = chunk_bytes(flow) };
	int sndbuf_bytes = options->sndbuf_bytes ? options->sndbuf_bytes : SEND_BUFFER_BYTES;

	if (stream_set_algorithm(flow, &algorithms) < 0)
		return -1;
	if (setsockopt(flow->fd, IPPROTO_SCTP, SCTP_MAXSEG, &maxseg, sizeof(maxseg)) < 0 ||
	    stream_set_int(flow->fd, IPPROTO_SCTP, SCTP_NODELAY, 1) < 0)
		return stream_fail(flow->error, "cannot set --mss %d: %s", maxseg.assoc_value,
				   strerror(errno));
	if (stream_set_int(flow->fd, SOL_SOCKET, SO_SNDBUFFORCE, sndbuf_bytes) < 0 &&
	    stream_set_int(flow->fd, SOL_SOCKET, SO_SNDBUF, sndbuf_bytes) < 0)
		return stream_fail(flow->error, "cannot set --sndbuf %d: %s", sndbuf_bytes,
				   strerror(errno));
	return 0;
}

static int sctp_open(struct flow *flow)
{
	if (stream_open(flow, IPPROTO_SCTP) < 0 || sctp_configure(flow) < 0)
		return -1;
	timeouts_before = read_timeouts();
	return stream_bind(flow);
}

/* As much as a message may be: whole chunks, and room for it in the buffer. */
static uint32_t message_bytes(const struct flow *flow)
{
	uint32_t chunk = chunk_bytes(flow);
	uint32_t chunks = MESSAGE_BYTES_MAX / chunk;

	return chunk * (chunks < MESSAGE_CHUNKS ? chunks : MESSAGE_CHUNKS);
}

/*
 * Sleep until all is acknowledged, which the kernel tells by a notification. A
 * shutdown would tell it, too, but leave no association to read the counters of.
 */
static int await_all_acked(struct flow *flow)
{
	struct sctp_event dry = { .se_type = SCTP_SENDER_DRY_EVENT, .se_on = 1 };
	union sctp_notification notification;
	ssize_t got;

	if (setsockopt(flow->fd, IPPROTO_SCTP, SCTP_EVENT, &dry, sizeof(dry)) < 0)
		return stream_fail(flow->error, "cannot ask when all is acknowledged: %s",
				   strerror(errno));
	do {
		got = recv(flow->fd, &notification, sizeof(notification), 0);
	} while (got < 0 && errno == EINTR && !stop_signal);
	if (got <= 0 && !stop_signal)
		return stream_fail(flow->error,
				   "connection lost before all bytes were acknowledged: %s",
				   got ? strerror(errno) : "closed by the peer");
	flow->completed = got > 0;
	return 0;
}

static ssize_t send_message(struct flow *flow, uint64_t left_bytes)
{
	uint32_t whole = message_bytes(flow);

	return send(flow->fd, zeroes, left_bytes < whole ? left_bytes : whole, MSG_NOSIGNAL);
}

static int sctp_send(struct flow *flow)
{
	if (stream_send(flow, send_message) < 0)
		return -1;
	if (stop_signal)
		return 0;
	return await_all_acked(flow);
}

/* By how much whole chunks are more than the requests that they were: each one's last is short. */
static uint64_t padding_bytes(const struct flow *flow)
{
	uint64_t rest = flow->options->bytes % chunk_bytes(flow);

	return rest ? flow->answers * (chunk_bytes(flow) - rest) : 0;
}

/* The unpatched kernel has one algorithm and no name for it. */
static void read_algorithm(int fd, char name[ALGORITHM_NAME_MAX])
{
	socklen_t length = ALGORITHM_NAME_MAX - 1;

	if (getsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, name, &length) < 0)
		strcpy(name, "sctp");
}

/* The kernel tells a round trip in jiffies; its coarse clocks step once in one. */
static uint32_t jiffies_to_us(uint32_t jiffies)
{
	struct timespec step = { 0 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &step);
	return jiffies * (uint32_t)(step.tv_nsec / 1000);
}

static int sctp_info(struct flow *flow, struct flow_info *info)
{
	struct sctp_status status = { 0 };
	struct sctp_assoc_stats stats = { 0 };
	struct sockaddr_in local = { 0 };
	socklen_t status_length = sizeof(status), stats_length = sizeof(stats);
	socklen_t local_length = sizeof(local);
	uint64_t acked, payload = chunk_bytes(flow);
	long timeouts = read_timeouts();

	*info = (struct flow_info){ .timeouts = -1, .min_rtt_us = -1 };
	read_algorithm(flow->fd, info->algorithm);
	if (timeouts >= 0 && timeouts_before >= 0)
		info->timeouts = timeouts - timeouts_before;
	info->mss_bytes = (uint32_t)payload;
	if (getsockname(flow->fd, (struct sockaddr *)&local, &local_length) < 0)
		return stream_fail(flow->error, "cannot read the socket's address: %s",
				   strerror(errno));
	info->source_port = ntohs(local.sin_port);
	if (!flow->connected)
		return 0; /* until the handshake is over the kernel tells nothing of it */
	if (getsockopt(flow->fd, IPPROTO_SCTP, SCTP_STATUS, &status, &status_length) < 0 ||
	    getsockopt(flow->fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &stats_length) < 0)
		return stream_fail(flow->error, "cannot read the association's state: %s",
				   strerror(errno));
	acked = (stats.sas_oodchunks - status.sstat_unackdata) * payload - padding_bytes(flow);
	info->bytes_acked = flow->completed || acked > flow->written_bytes ? flow->written_bytes :
									     acked;
	info->bytes_sent = (stats.sas_oodchunks + stats.sas_rtxchunks) * payload -
			   padding_bytes(flow);
	info->bytes_retrans = stats.sas_rtxchunks * payload;
	info->segs_out = (uint32_t)stats.sas_opackets;
	info->data_segs_out = (uint32_t)(stats.sas_oodchunks + stats.sas_rtxchunks);
	info->retransmits = (uint32_t)stats.sas_rtxchunks;
	info->srtt_us = jiffies_to_us(status.sstat_primary.spinfo_srtt);
	info->cwnd_pkts = status.sstat_primary.spinfo_cwnd / (uint32_t)payload;
	info->delivered_pkts = (uint32_t)(acked / payload);
	return 0;
}

static int sctp_listen(const struct sink_options *options, char error[FLOW_ERROR_MAX])
{
	struct sink_options wide = *options;

	if (!wide.rcvbuf_bytes)
		wide.rcvbuf_bytes = RECEIVE_BUFFER_BYTES;
	return stream_listen(&wide, IPPROTO_SCTP, error);
}

static void sctp_receive(int fd, const struct sink_options *options, struct arrival *arrival)
{
	struct iovec where = { .iov_base = malloc(MESSAGE_BYTES_MAX),
			       .iov_len = MESSAGE_BYTES_MAX };
	uint64_t answered_bytes = 0;
	ssize_t got;

	if (!where.iov_base) {
		complain("out of memory");
		return;
	}
	while ((got = stream_receive(fd, &where, 0, &arrival->last_byte_real_ns)) > 0) {
		arrival->bytes += (uint64_t)got;
		if (!arrival->first_byte_real_ns)
			arrival->first_byte_real_ns = arrival->last_byte_real_ns;
		if (!options->reply_after_bytes ||
		    arrival->bytes - answered_bytes < options->reply_after_bytes)
			continue;
		answered_bytes += options->reply_after_bytes;
		if (send(fd, "", 1, MSG_NOSIGNAL) < 0)
			break;
	}
	free(where.iov_base);
}

const struct transport transport_sctp = {
	.name = "sctp",
	.open = sctp_open,
	.connect = stream_connect,
	.send = sctp_send,
	.info = sctp_info,
	.close = stream_close,
	.listen = sctp_listen,
	.receive = sctp_receive,
};
