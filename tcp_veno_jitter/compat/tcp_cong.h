/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks of struct tcp_congestion_ops that differ between kernels. A module
 * writes each handler once, in the form that it needs:
 *
 *   static void foo_main(struct sock *sk, const struct rate_sample *rs) {...}
 *   static void foo_resume(struct sock *sk) {...}
 *
 *   TCP_CONG_CONTROL(foo_cong_control, foo_main);
 *   TCP_CONG_TX_START(foo_tx_start, foo_resume);
 *
 *   static struct tcp_congestion_ops foo_ops = {
 *	.cong_control	= foo_cong_control,
 *	.TCP_CONG_TX_START_HOOK	= foo_tx_start,
 *	TCP_CONG_MIN_TSO_SEGS(foo_min_tso_segs)
 *
 *   hook          kernels  form
 *   cong_control  to 6.9   (sk, rs)
 *                 6.10 on  (sk, ack, flag, rs)
 *   start of      to 7.0   cwnd_event(sk, CA_EVENT_TX_START)
 *   transmission  7.1 on   cwnd_event_tx_start(sk); a cwnd_event hook still
 *                          builds, but this event passes it by
 *   min_tso_segs  all      (sk); trees that have tso_segs instead: not set
 *
 * Which of them the kernel has is read from its header (compat/Kbuild).
 */
#ifndef COMPAT_TCP_CONG_H
#define COMPAT_TCP_CONG_H

#include <net/tcp.h>

/**
 * TCP_CONG_CONTROL() - define a cong_control hook
 * @name: name of the hook
 * @handler: void (struct sock *, const struct rate_sample *)
 */
#ifdef TCP_CONG_CONTROL_HAS_ACK
#define TCP_CONG_CONTROL(name, handler)					\
	static void name(struct sock *sk, u32 ack, int flag,		\
			 const struct rate_sample *rs)			\
	{								\
		handler(sk, rs);					\
	}								\
	static_assert(true)
#else
#define TCP_CONG_CONTROL(name, handler)					\
	static void name(struct sock *sk, const struct rate_sample *rs)	\
	{								\
		handler(sk, rs);					\
	}								\
	static_assert(true)
#endif

/**
 * TCP_CONG_TX_START() - define the hook for the first packet while none is in flight
 * @name: name of the hook
 * @handler: void (struct sock *)
 *
 * Its place in struct tcp_congestion_ops is TCP_CONG_TX_START_HOOK.
 */
#ifdef TCP_CONG_HAS_TX_START
#define TCP_CONG_TX_START_HOOK	cwnd_event_tx_start
#define TCP_CONG_TX_START(name, handler)				\
	static void name(struct sock *sk)				\
	{								\
		handler(sk);						\
	}								\
	static_assert(true)
#else
#define TCP_CONG_TX_START_HOOK	cwnd_event
#define TCP_CONG_TX_START(name, handler)				\
	static void name(struct sock *sk, enum tcp_ca_event event)	\
	{								\
		if (event == CA_EVENT_TX_START)				\
			handler(sk);					\
	}								\
	static_assert(true)
#endif

/**
 * TCP_CONG_MIN_TSO_SEGS() - set the min_tso_segs hook, where there is one
 * @handler: u32 (struct sock *), __maybe_unused
 */
#ifdef TCP_CONG_HAS_MIN_TSO_SEGS
#define TCP_CONG_MIN_TSO_SEGS(handler)	.min_tso_segs = handler,
#else
#define TCP_CONG_MIN_TSO_SEGS(...)
#endif

#endif /* COMPAT_TCP_CONG_H */
