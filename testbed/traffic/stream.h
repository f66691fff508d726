/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What transports over stream sockets share: operations of struct transport that are
 * the same for all, and parts of the others. Like those, all return 0, or -1 after
 * writing one line into error[]. What stands there already stays: it is the cause.
 */
#ifndef LABFLOW_STREAM_H
#define LABFLOW_STREAM_H

#include "transport.h"

#include <sys/types.h>
#include <sys/uio.h>

/* Where a transport's congestion control is chosen, and the prefix of its sysctls. */
struct stream_algorithms {
	int level;
	int option;
	const char *sysctls;
};

__attribute__((format(printf, 2, 3))) int stream_fail(char error[FLOW_ERROR_MAX],
						      const char *format, ...);
int stream_set_int(int fd, int level, int option, int value);

/* A sender: open the socket, choose what the options say, bind. */
int stream_open(struct flow *flow, int protocol);
int stream_set_algorithm(struct flow *flow, const struct stream_algorithms *algorithms);
int stream_bind(struct flow *flow);
int stream_connect(struct flow *flow);

/* Half-close and sleep until the peer, having read everything, closes too. */
int stream_await_peer_close(struct flow *flow);

/* Hands over some of LEFT_BYTES: how many, or -1 and errno. */
typedef ssize_t stream_send_some(struct flow *flow, uint64_t left_bytes);

/*
 * Hand over all that the options say, or so many requests, each when the sink has answered the one
 * before and the pause is over; 0 also when it is time to stop.
 */
int stream_send(struct flow *flow, stream_send_some *send_some);

/* Without completion nothing may drain afterwards: reset the connection. */
void stream_close(struct flow *flow);

int stream_listen(const struct sink_options *options, int protocol, char error[FLOW_ERROR_MAX]);

/* recvmsg() that also tells when the last byte reached this host, in CLOCK_REALTIME. */
ssize_t stream_receive(int fd, struct iovec *where, int flags, int64_t *last_byte_real_ns);

#endif
