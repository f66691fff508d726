/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each sample of a path's jitter ratio as the tracepoint jsctp:sctp_jitter_ratio.
 *
 *   printed      unit
 *   path         the peer's address (IPv4; 0 for others)
 *   cwnd_pkts    packets, w at the end of the span
 *   jr, sjr      1 / 2^JITTER_RATIO_SHIFT: of that span, and smoothed
 *
 * While nobody watches, it costs a jump that is not taken; without
 * CONFIG_TRACEPOINTS nothing. The kernel's tracing headers read this file
 * several times.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM jsctp

#if !defined(SCTP_JITTER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SCTP_JITTER_TRACE_H

#include <linux/tracepoint.h>
#include <net/sctp/sctp.h>

TRACE_EVENT(sctp_jitter_ratio,
	    TP_PROTO(const struct sctp_transport *t, u32 cwnd_pkts, s32 jr,
		     s32 sjr),
	    TP_ARGS(t, cwnd_pkts, jr, sjr),
	    TP_STRUCT__entry(__field(u16, sport)
			     __field(u16, dport)
			     __array(u8, path, 4)
			     __field(u32, cwnd_pkts)
			     __field(s32, jr)
			     __field(s32, sjr)
	    ),
	    TP_fast_assign(__entry->sport = t->asoc->base.bind_addr.port;
			   __entry->dport = t->asoc->peer.port;
			   memset(__entry->path, 0, 4);
			   if (t->ipaddr.sa.sa_family == AF_INET)
				   memcpy(__entry->path,
					  &t->ipaddr.v4.sin_addr, 4);
			   __entry->cwnd_pkts = cwnd_pkts;
			   __entry->jr = jr;
			   __entry->sjr = sjr;
	    ),
	    TP_printk("sport=%u dport=%u path=%pI4 cwnd_pkts=%u jr=%d sjr=%d",
		      __entry->sport, __entry->dport, __entry->path,
		      __entry->cwnd_pkts, __entry->jr, __entry->sjr)
);

#endif /* SCTP_JITTER_TRACE_H */

/* outside of the guard, and last */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE sctp_jitter_trace
#include <trace/define_trace.h>
