/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an algorithm said about a loss, and what it knew then, as a tracepoint:
 * the lab compares it with what became of the packet.
 *
 * A module defines TCP_VERDICT_SYSTEM, say as jtcp, includes this, and has the
 * event jtcp:tcp_verdict; each module has its own, so all can be loaded at once.
 * In the ssthresh hook, before cwnd and the estimates change, and only if
 * tcp_verdict_is_watched(), it fills a struct tcp_verdict_features and calls
 * tcp_verdict().
 *
 * An event is a judgement of the algorithm's own. A CE mark or a drop in the
 * host's own queue is none, and neither is a loss that it answers without
 * judging anew, nor a SYN that is sent again.
 *
 *   printed                    unit
 *   snd_una, snd_nxt           sequence numbers; the loss lies between them,
 *                              or, at a probe, just below snd_una
 *   cwnd_pkts                  packets, before the answer
 *   rtt_us                     us, newest sample
 *   srtt_us, min_rtt_us        us, as the core has them
 *   the rest                   see struct tcp_verdict_features
 *
 * While nobody watches, it costs a jump that is not taken; without
 * CONFIG_TRACEPOINTS nothing.
 */
#ifndef TCP_VERDICT_H
#define TCP_VERDICT_H

#include <net/tcp.h>

enum tcp_verdict {
	TCP_VERDICT_RANDOM,
	TCP_VERDICT_CONGESTION,
};

/* What made the core ask. */
enum tcp_verdict_at {
	TCP_VERDICT_AT_FAST_RETRANSMIT,
	TCP_VERDICT_AT_TIMEOUT,
	TCP_VERDICT_AT_PROBE,
};

/**
 * struct tcp_verdict_features - what the algorithm knew; 0: has no such number
 * @jr: jitter ratio of the last span, 1 / 2^JITTER_RATIO_SHIFT
 * @sjr: smoothed jitter ratio, same unit
 * @backlog: packets in the queue, 1 / 2^VENO_BACKLOG_SHIFT packet
 * @queue_us: queueing delay (us)
 * @queue_max_us: largest queueing delay seen (us)
 */
struct tcp_verdict_features {
	s32 jr;
	s32 sjr;
	u32 backlog;
	u32 queue_us;
	u32 queue_max_us;
};

#define CREATE_TRACE_POINTS
#include "tcp_verdict_trace.h"

/* Does anybody listen? If not, the features need not be worked out. */
static inline bool tcp_verdict_is_watched(void)
{
	return trace_tcp_verdict_enabled();
}

/*
 * The ssthresh hook is not told why it is called. The retransmission timer
 * alone runs with no timer pending: it clears that first, and an ACK sets its
 * timer last.
 */
static inline enum tcp_verdict_at tcp_verdict_occasion(const struct sock *sk,
						       bool probed)
{
	if (probed)
		return TCP_VERDICT_AT_PROBE;
	return inet_csk(sk)->icsk_pending ? TCP_VERDICT_AT_FAST_RETRANSMIT :
					    TCP_VERDICT_AT_TIMEOUT;
}

/**
 * tcp_verdict() - tell a verdict
 * @sk: socket, inside the ssthresh hook
 * @congestion: the verdict; false: random
 * @probed: tcp_loss_is_probed() of this ACK
 * @features: what led to it
 */
static inline void tcp_verdict(const struct sock *sk, bool congestion,
			       bool probed,
			       const struct tcp_verdict_features *features)
{
	if ((1 << sk->sk_state) & (TCPF_SYN_SENT | TCPF_SYN_RECV))
		return;
	trace_tcp_verdict(sk,
			  congestion ? TCP_VERDICT_CONGESTION :
				       TCP_VERDICT_RANDOM,
			  tcp_verdict_occasion(sk, probed), features);
}

#endif /* TCP_VERDICT_H */
