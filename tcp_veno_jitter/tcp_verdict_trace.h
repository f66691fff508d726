/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoint of tcp_verdict.h, which explains it. The kernel's tracing
 * headers read this file several times, each time with other macros.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM TCP_VERDICT_SYSTEM

#if !defined(TCP_VERDICT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TCP_VERDICT_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(tcp_verdict,
	    TP_PROTO(const struct sock *sk, enum tcp_verdict verdict,
		     enum tcp_verdict_at at,
		     const struct tcp_verdict_features *features),
	    TP_ARGS(sk, verdict, at, features),
	    TP_STRUCT__entry(__field(u16, sport)
			     __field(u16, dport)
			     __field(u8, verdict)
			     __field(u8, at)
			     __field(u32, snd_una)
			     __field(u32, snd_nxt)
			     __field(u32, cwnd_pkts)
			     __field(u32, rtt_us)
			     __field(u32, srtt_us)
			     __field(u32, min_rtt_us)
			     __field(u32, queue_us)
			     __field(u32, queue_max_us)
			     __field(u32, backlog)
			     __field(s32, jr)
			     __field(s32, sjr)
	    ),
	    TP_fast_assign(const struct tcp_sock *tp = tcp_sk(sk);
			   __entry->sport = inet_sk(sk)->inet_num;
			   __entry->dport = ntohs(inet_sk(sk)->inet_dport);
			   __entry->verdict = verdict;
			   __entry->at = at;
			   __entry->snd_una = tp->snd_una;
			   __entry->snd_nxt = tp->snd_nxt;
			   __entry->cwnd_pkts = tcp_snd_cwnd(tp);
			   __entry->rtt_us = tp->rack.rtt_us;
			   __entry->srtt_us = tp->srtt_us >> 3;
			   __entry->min_rtt_us = tcp_min_rtt(tp);
			   __entry->queue_us = features->queue_us;
			   __entry->queue_max_us = features->queue_max_us;
			   __entry->backlog = features->backlog;
			   __entry->jr = features->jr;
			   __entry->sjr = features->sjr;
	    ),
	    TP_printk("verdict=%s at=%s sport=%u dport=%u snd_una=%u snd_nxt=%u cwnd_pkts=%u rtt_us=%u srtt_us=%u min_rtt_us=%u queue_us=%u queue_max_us=%u backlog=%u jr=%d sjr=%d",
		      __print_symbolic(__entry->verdict,
				       { TCP_VERDICT_RANDOM, "random" },
				       { TCP_VERDICT_CONGESTION, "congestion" }),
		      __print_symbolic(__entry->at,
				       { TCP_VERDICT_AT_FAST_RETRANSMIT,
					 "fast_retransmit" },
				       { TCP_VERDICT_AT_TIMEOUT, "timeout" },
				       { TCP_VERDICT_AT_PROBE, "probe" }),
		      __entry->sport, __entry->dport, __entry->snd_una,
		      __entry->snd_nxt, __entry->cwnd_pkts, __entry->rtt_us,
		      __entry->srtt_us, __entry->min_rtt_us, __entry->queue_us,
		      __entry->queue_max_us, __entry->backlog, __entry->jr,
		      __entry->sjr)
);

#endif /* TCP_VERDICT_TRACE_H */

/* outside of the guard, and last */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tcp_verdict_trace
#include <trace/define_trace.h>
