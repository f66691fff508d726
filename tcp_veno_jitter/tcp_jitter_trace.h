/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each sample of the jitter ratio (estimators/jitter_ratio.h) as a tracepoint:
 * the lab draws what get_info, which shows the newest without its sign, cannot.
 *
 *   printed      unit
 *   cwnd_pkts    packets, w at the end of the span
 *   jr, sjr      1 / 2^JITTER_RATIO_SHIFT: of that span, and smoothed
 *
 * A module defines CREATE_TRACE_POINTS and TCP_JITTER_SYSTEM, say as jtcp,
 * includes this, and has the event jtcp:tcp_jitter_ratio. While nobody watches,
 * it costs a jump that is not taken; without CONFIG_TRACEPOINTS nothing. The
 * kernel's tracing headers read this file several times.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM TCP_JITTER_SYSTEM

/* TRACE_SYSTEM itself names what tcp_verdict_trace.h has defined already */
#undef TRACE_SYSTEM_VAR
#define TRACE_SYSTEM_VAR tcp_jitter

#if !defined(TCP_JITTER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TCP_JITTER_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>

TRACE_EVENT(tcp_jitter_ratio,
	    TP_PROTO(const struct sock *sk, s32 jr, s32 sjr),
	    TP_ARGS(sk, jr, sjr),
	    TP_STRUCT__entry(__field(u16, sport)
			     __field(u16, dport)
			     __field(u32, cwnd_pkts)
			     __field(s32, jr)
			     __field(s32, sjr)
	    ),
	    TP_fast_assign(__entry->sport = inet_sk(sk)->inet_num;
			   __entry->dport = ntohs(inet_sk(sk)->inet_dport);
			   __entry->cwnd_pkts = tcp_snd_cwnd(tcp_sk(sk));
			   __entry->jr = jr;
			   __entry->sjr = sjr;
	    ),
	    TP_printk("sport=%u dport=%u cwnd_pkts=%u jr=%d sjr=%d",
		      __entry->sport, __entry->dport, __entry->cwnd_pkts,
		      __entry->jr, __entry->sjr)
);

#endif /* TCP_JITTER_TRACE_H */

/* outside of the guard, and last */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tcp_jitter_trace
#include <trace/define_trace.h>
