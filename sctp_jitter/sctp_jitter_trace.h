/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints. Each sample of a path's jitter ratio, jsctp:sctp_jitter_ratio:
 *
 *   printed      unit
 *   path         the peer's address (IPv4; 0 for others)
 *   cwnd_pkts    packets, w at the end of the span
 *   jr, sjr      1 / 2^JITTER_RATIO_SHIFT: of that span, and smoothed
 *
 * What an algorithm said about a loss, jsctp:sctp_verdict; the lab compares it
 * with what became of the packet. ECNE is none, and neither is a timeout that
 * follows another one, which is answered without judging anew.
 *
 *   path              as above: the loss is one of this path
 *   snd_una, snd_nxt  TSN: the loss lies between them
 *   the rest          see struct sctp_verdict_features
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

#include "sctp_verdict.h"

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
			   sctp_verdict_path(t, __entry->path);
			   __entry->cwnd_pkts = cwnd_pkts;
			   __entry->jr = jr;
			   __entry->sjr = sjr;
	    ),
	    TP_printk("sport=%u dport=%u path=%pI4 cwnd_pkts=%u jr=%d sjr=%d",
		      __entry->sport, __entry->dport, __entry->path,
		      __entry->cwnd_pkts, __entry->jr, __entry->sjr)
);

TRACE_EVENT(sctp_verdict,
	    TP_PROTO(const struct sctp_transport *t, bool congestion,
		     bool timeout, const struct sctp_verdict_features *features),
	    TP_ARGS(t, congestion, timeout, features),
	    TP_STRUCT__entry(__field(u16, sport)
			     __field(u16, dport)
			     __array(u8, path, 4)
			     __field(bool, congestion)
			     __field(bool, timeout)
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
	    TP_fast_assign(__entry->sport = t->asoc->base.bind_addr.port;
			   __entry->dport = t->asoc->peer.port;
			   sctp_verdict_path(t, __entry->path);
			   __entry->congestion = congestion;
			   __entry->timeout = timeout;
			   __entry->snd_una = t->asoc->ctsn_ack_point + 1;
			   __entry->snd_nxt = t->asoc->next_tsn;
			   __entry->cwnd_pkts = features->cwnd_pkts;
			   __entry->rtt_us = features->rtt_us;
			   __entry->srtt_us = features->srtt_us;
			   __entry->min_rtt_us = features->min_rtt_us;
			   __entry->queue_us = features->queue_us;
			   __entry->queue_max_us = features->queue_max_us;
			   __entry->backlog = features->backlog;
			   __entry->jr = features->jr;
			   __entry->sjr = features->sjr;
	    ),
	    TP_printk("verdict=%s at=%s sport=%u dport=%u path=%pI4 snd_una=%u snd_nxt=%u cwnd_pkts=%u rtt_us=%u srtt_us=%u min_rtt_us=%u queue_us=%u queue_max_us=%u backlog=%u jr=%d sjr=%d",
		      __entry->congestion ? "congestion" : "random",
		      __entry->timeout ? "timeout" : "fast_retransmit",
		      __entry->sport, __entry->dport, __entry->path,
		      __entry->snd_una, __entry->snd_nxt, __entry->cwnd_pkts,
		      __entry->rtt_us, __entry->srtt_us, __entry->min_rtt_us,
		      __entry->queue_us, __entry->queue_max_us,
		      __entry->backlog, __entry->jr, __entry->sjr)
);

#endif /* SCTP_JITTER_TRACE_H */

/* outside of the guard, and last */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE sctp_jitter_trace
#include <trace/define_trace.h>
