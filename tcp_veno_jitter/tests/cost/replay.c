// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's half of the replay: puts one socket into each recorded state
 * and calls the algorithm's own hook on it. Compiled as a kernel object.
 *
 * Real: the algorithm, tcp_cong.c, the arithmetic helpers, all compiled by the
 * kernel's build. Here: the socket's memory, the two pointers in it that hooks
 * follow (namespace, algorithm), the clock and the random numbers.
 *
 * Each hook is called from a function of its own named cost_call_*: what
 * callgrind counts is what these call.
 */

#include <net/tcp.h>

#include "core.h"
#include "recording.h"
#include "replay.h"

/* A step: a record with the whole socket. */
struct replay_step {
	struct cost_record record;
	struct tcp_sock sock;
};

static struct tcp_sock live __aligned(L1_CACHE_BYTES);
static struct sock *const sk = (struct sock *)&live;
static struct net net;
static struct linux_mib net_mib;
static struct tcp_congestion_ops *ops;
static u64 first_mstamp;
static u32 draws;

/* The step whose arguments the next call uses, in the order of the calls. */
static const struct cost_record *now;

/* The kernel's clock. */
typeof(jiffies) jiffies;

/* ktime_get_real() */
ktime_t ktime_get_with_offset(enum tk_offsets offs)
{
	return now->real_ns;
}

/* get_random_u32_below() draws again and again until it likes a number. */
u8 get_random_u8(void)
{
	return 85 * ++draws;
}

/* User Mode Linux' interrupt flag, which statistics counters turn off and on. */
int signals_enabled = 1;

int um_set_signals(int enable)
{
	int before = signals_enabled;

	signals_enabled = enable;
	return before;
}

/* Reno is part of tcp_cong.c and registers in the start of TCP itself. */
int replay_register_reno(void);

int replay_register_reno(void)
{
	return tcp_register_congestion_control(&tcp_reno);
}

/* What the module's own registration function is, the linker says. */
int replay_register_algorithm(void);

static const struct cost_record *first_record(const void *recording)
{
	return recording + sizeof(struct cost_head);
}

static const struct cost_record *record_after(const struct cost_record *record)
{
	return (const void *)(record + 1) + record->words * sizeof(u64);
}

unsigned long replay_step_bytes(void)
{
	return sizeof(struct replay_step);
}

/* Number of steps; 0 if it is no recording of this kernel. */
unsigned long replay_count(const void *recording, unsigned long bytes)
{
	const struct cost_head *head = recording;
	const struct cost_record *record = first_record(recording);
	unsigned long count = 0;

	if (bytes < sizeof(*head) || head->magic != COST_MAGIC ||
	    head->sock_bytes != sizeof(struct tcp_sock))
		return 0;
	for (; (void *)record < recording + bytes; count++)
		record = record_after(record);
	return (void *)record == recording + bytes ? count : 0;
}

static void expand(struct replay_step *step, const struct tcp_sock *before,
		   const struct cost_record *record)
{
	const u64 *changed = (const u64 *)(record + 1);
	u64 *word = (u64 *)&step->sock;
	size_t i;

	step->record = *record;
	if (before)
		step->sock = *before;
	else
		memset(&step->sock, 0, sizeof(step->sock));
	for (i = 0; i < COST_WORDS; i++)
		if (record->changed[i / 8] & 1 << i % 8)
			word[i] = *changed++;
}

/* 0: @steps are filled in, and the algorithm is there. */
int replay_open(const void *recording, unsigned long bytes,
		struct replay_step *steps)
{
	const struct cost_head *head = recording;
	const struct cost_record *record = first_record(recording);
	const struct tcp_sock *before = NULL;
	unsigned long i;

	for (i = 0; (void *)record < recording + bytes; i++) {
		expand(&steps[i], before, record);
		before = &steps[i].sock;
		if (!first_mstamp)
			first_mstamp = before->tcp_mstamp;
		record = record_after(record);
	}
	net = head->net;
	net.mib.net_statistics = (void *)&net_mib;
	if (replay_register_algorithm())
		return -1;
	ops = tcp_ca_find(head->algorithm);
	return ops ? 0 : -1;
}

struct replay_step *replay_at(struct replay_step *steps, unsigned long i)
{
	return &steps[i];
}

struct replay_view replay_view(const struct replay_step *step)
{
	const struct tcp_sock *tp = &step->sock;
	u32 rtt_us = max(tp->rtt_min.s[0].v, 1U);
	struct replay_view view = {
		.hook = step->record.hook,
		.arg = step->record.arg,
		.present = step->record.hook != COST_IN_ACK_EVENT ||
			   ops->in_ack_event,
		.ca_state = tp->inet_conn.icsk_ca_state,
	};

	if (rtt_us != ~0U)
		view.rtts = (u32)(tp->tcp_mstamp - first_mstamp) / rtt_us;
	return view;
}

static struct rate_sample rate_sample;
static struct ack_sample ack_sample;
static u32 result;

void replay_load(const struct replay_step *step)
{
	now = &step->record;
	live = step->sock;
	rate_sample = now->rate_sample;
	ack_sample = now->ack_sample;
	sock_net_set(sk, &net);
	/* what was recorded had a device that cuts nothing, as no route has */
	RCU_INIT_POINTER(sk->sk_dst_cache, NULL);
	inet_csk(sk)->icsk_ca_ops = ops;
	jiffies = now->jiffies;
	draws = 0;
	result = 0;
}

enum replay_verdict replay_check(const struct replay_step *step)
{
	const struct sock *recorded = (const struct sock *)&step->sock;

	if (draws)
		return REPLAY_DRAWN;
	sk->sk_net = recorded->sk_net;
	sk->sk_dst_cache = recorded->sk_dst_cache;
	inet_csk(sk)->icsk_ca_ops = inet_csk(recorded)->icsk_ca_ops;
	return cost_hash(&live) == now->after && result == now->result ?
		       REPLAY_SAME : REPLAY_DIFFERS;
}

/* barrier(): the call is no tail call, and its return comes back to here. */
static noinline void cost_call_init(void)
{
	if (ops->init)
		ops->init(sk);
	barrier();
}

static noinline void cost_call_in_ack_event(void)
{
	if (ops->in_ack_event)
		ops->in_ack_event(sk, now->arg);
	barrier();
}

static noinline void cost_call_pkts_acked(void)
{
	ops->pkts_acked(sk, &ack_sample);
	barrier();
}

static noinline void cost_call_cong_control(void)
{
	ops->cong_control(sk, now->ack, now->arg, &rate_sample);
	barrier();
}

static noinline void cost_call_cong_avoid(void)
{
	ops->cong_avoid(sk, now->ack, now->arg);
	barrier();
}

static noinline void cost_call_ssthresh(void)
{
	result = ops->ssthresh(sk);
	barrier();
}

static noinline void cost_call_set_state(void)
{
	ops->set_state(sk, now->arg);
	barrier();
}

static noinline void cost_call_tx_start(void)
{
	ops->cwnd_event(sk, CA_EVENT_TX_START);
	barrier();
}

static noinline void cost_call_cwnd_event(void)
{
	ops->cwnd_event(sk, now->arg);
	barrier();
}

static noinline void cost_call_undo_cwnd(void)
{
	result = ops->undo_cwnd(sk);
	barrier();
}

static noinline void cost_call_min_tso_segs(void)
{
	result = ops->min_tso_segs(sk);
	barrier();
}

static noinline void cost_call_sndbuf_expand(void)
{
	result = ops->sndbuf_expand(sk);
	barrier();
}

void replay_call(const struct replay_step *step)
{
	static void (*const calls[COST_HOOKS])(void) = {
		[COST_INIT] = cost_call_init,
		[COST_IN_ACK_EVENT] = cost_call_in_ack_event,
		[COST_PKTS_ACKED] = cost_call_pkts_acked,
		[COST_CONG_CONTROL] = cost_call_cong_control,
		[COST_CONG_AVOID] = cost_call_cong_avoid,
		[COST_SSTHRESH] = cost_call_ssthresh,
		[COST_SET_STATE] = cost_call_set_state,
		[COST_CWND_EVENT] = cost_call_cwnd_event,
		[COST_UNDO_CWND] = cost_call_undo_cwnd,
		[COST_MIN_TSO_SEGS] = cost_call_min_tso_segs,
		[COST_SNDBUF_EXPAND] = cost_call_sndbuf_expand,
	};

	if (now->hook == COST_CWND_EVENT && now->arg == CA_EVENT_TX_START)
		cost_call_tx_start();
	else
		calls[now->hook]();
}

/* What the core passes to tcp_cong_control(). */
static struct {
	u32 ack;
	u32 acked_sacked;
	int flag;
} core;

/**
 * replay_load_core() - the state in which the core comes to tcp_cong_control()
 * @ack: where the ACK begins
 * @next: where the next one begins
 * @control: its call of cong_control or cong_avoid; NULL: it had none
 *
 * With @control everything is as recorded. Without one no state was recorded
 * at that point (the core reduces the window itself, or leaves it): that of
 * @next is taken, with what the counters tell of the arguments.
 */
void replay_load_core(const struct replay_step *ack,
		      const struct replay_step *next,
		      const struct replay_step *control)
{
	const struct tcp_sock *from = &ack->sock, *to = &next->sock;

	replay_load(control ?: next);
	core.ack = live.snd_una;
	if (!control) {
		core.acked_sacked = to->prr_delivered - from->prr_delivered;
		if ((s32)core.acked_sacked < 0)
			core.acked_sacked = to->prr_delivered;
		live.prr_delivered -= core.acked_sacked;
		rate_sample.losses = to->lost - from->lost;
		core.flag = to->snd_una != from->snd_una ?
				    cost_flag_advanced : 0;
		if (!tcp_in_cwnd_reduction(sk))
			core.flag = 0;
	} else if (now->hook == COST_CONG_CONTROL) {
		core.flag = now->arg;
		core.acked_sacked = rate_sample.acked_sacked;
	} else {
		core.flag = cost_flag_acked;
		core.acked_sacked = now->arg;
	}
}

static noinline void cost_call_core(void)
{
	cost_core_cong_control(sk, core.ack, core.acked_sacked, core.flag,
			       &rate_sample);
	barrier();
}

void replay_call_core(void)
{
	cost_call_core();
}
