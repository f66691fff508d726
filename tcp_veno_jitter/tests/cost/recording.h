/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording: every call that the core made to one connection's congestion
 * control, with all that the call could see.
 *
 *   file   = head, record, record, ...
 *   record = cost_record, then the words of struct tcp_sock that differ from
 *            the record before (the first: from zero)
 *
 * The layout is of the kernel that recorded; only a replay built for the same
 * kernel reads it, which head.sock_bytes and head.magic guard.
 */
#ifndef COST_RECORDING_H
#define COST_RECORDING_H

#include <net/tcp.h>

#define COST_MAGIC	0x74736f63	/* "cost" */
#define COST_WORDS	(sizeof(struct tcp_sock) / sizeof(u64))
#define COST_NAME_BYTES	TCP_CA_NAME_MAX

/* The hooks; the order is that of cost_names in replay_main.c. */
enum cost_hook {
	COST_INIT,
	COST_IN_ACK_EVENT,
	COST_PKTS_ACKED,
	COST_CONG_CONTROL,
	COST_CONG_AVOID,
	COST_SSTHRESH,
	COST_SET_STATE,
	COST_CWND_EVENT,
	COST_UNDO_CWND,
	COST_MIN_TSO_SEGS,
	COST_SNDBUF_EXPAND,
	COST_HOOKS
};

/**
 * struct cost_head - the start of a recording
 * @magic: COST_MAGIC
 * @sock_bytes: size of struct tcp_sock
 * @algorithm: what was recorded
 * @net: the connection's namespace, for its sysctls
 */
struct cost_head {
	u32 magic;
	u32 sock_bytes;
	char algorithm[COST_NAME_BYTES];
	struct net net;
};

/**
 * struct cost_record - one call
 * @after: cost_hash() of the socket when the hook had returned
 * @jiffies: the kernel's clock
 * @real_ns: the time of day
 * @hook: enum cost_hook
 * @words: how many words follow
 * @ack: argument of cong_control and cong_avoid
 * @arg: the last integer argument: flag, acked, new_state, event, flags
 * @result: what the hook returned
 * @ack_sample: argument of pkts_acked
 * @rate_sample: argument of cong_control
 * @changed: bit map of the words that follow
 */
struct cost_record {
	u64 after;
	u64 jiffies;
	ktime_t real_ns;
	u32 hook;
	u32 words;
	u32 ack;
	u32 arg;
	u32 result;
	struct ack_sample ack_sample;
	struct rate_sample rate_sample;
	u8 changed[round_up(DIV_ROUND_UP(COST_WORDS, 8), sizeof(u64))];
};

/* FNV-1a over words: tells any changed word with near certainty. */
static inline u64 cost_hash(const struct tcp_sock *tp)
{
	const u64 *word = (const u64 *)tp;
	u64 hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < COST_WORDS; i++)
		hash = (hash ^ word[i]) * 0x100000001b3ULL;
	return hash;
}

#endif /* COST_RECORDING_H */
