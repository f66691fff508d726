// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records what the core asks of a congestion control algorithm.
 *
 *   insmod tcp_record.ko algorithm=cubic
 *   ... one connection with TCP_CONGESTION "record" ...
 *   cat /proc/tcp_record >cubic.rec
 *
 * "record" is the algorithm with a note taken before and after each of its
 * hooks; the flow is the one there is without it. The first connection is
 * recorded until the buffer is full. in_ack_event is always there, since it
 * tells where an ACK begins.
 */

#include <linux/module.h>
#include <linux/net.h>
#include <linux/proc_fs.h>
#include <linux/vmalloc.h>
#include <net/tcp.h>

#include "recording.h"

static char *algorithm = "cubic";
module_param(algorithm, charp, 0444);
MODULE_PARM_DESC(algorithm, "the algorithm to record");

static uint buffer_mb = 32;
module_param(buffer_mb, uint, 0444);
MODULE_PARM_DESC(buffer_mb, "room for the recording (MB)");

/* A call under way; none while nothing is recorded. */
#define LARGEST_RECORD	(sizeof(struct cost_record) + sizeof(struct tcp_sock))

static const struct tcp_congestion_ops *inner;
static struct tcp_congestion_ops record_ops;
static struct socket *holder;	/* keeps the inner algorithm's module */
static const struct sock *recorded;
static u64 last[COST_WORDS];
static u8 *buffer;
static size_t used;

static struct cost_record *note_before(const struct sock *sk,
				       enum cost_hook hook)
{
	const u64 *word = (const u64 *)tcp_sk(sk);
	struct cost_record *record = (struct cost_record *)(buffer + used);
	u64 *to = (u64 *)(record + 1);
	size_t i;

	if (sk != recorded || used + LARGEST_RECORD > (size_t)buffer_mb << 20)
		return NULL;
	memset(record, 0, sizeof(*record));
	record->hook = hook;
	record->jiffies = jiffies;
	record->real_ns = ktime_get_real();
	for (i = 0; i < COST_WORDS; i++) {
		if (word[i] == last[i])
			continue;
		record->changed[i / 8] |= 1 << i % 8;
		last[i] = word[i];
		to[record->words++] = word[i];
	}
	return record;
}

static void note_after(const struct sock *sk, struct cost_record *record,
		       u32 result)
{
	if (!record)
		return;
	record->result = result;
	record->after = cost_hash(tcp_sk(sk));
	used += sizeof(*record) + record->words * sizeof(u64);
}

static void record_init(struct sock *sk)
{
	struct cost_record *record;

	if (!recorded) {
		struct cost_head *head = (struct cost_head *)buffer;

		recorded = sk;
		head->magic = COST_MAGIC;
		head->sock_bytes = sizeof(struct tcp_sock);
		strscpy(head->algorithm, inner->name, sizeof(head->algorithm));
		head->net = *sock_net(sk);
		used = sizeof(*head);
	}
	record = note_before(sk, COST_INIT);
	if (inner->init)
		inner->init(sk);
	note_after(sk, record, 0);
}

static void record_release(struct sock *sk)
{
	if (inner->release)
		inner->release(sk);
}

static u32 record_ssthresh(struct sock *sk)
{
	struct cost_record *record = note_before(sk, COST_SSTHRESH);
	u32 result = inner->ssthresh(sk);

	note_after(sk, record, result);
	return result;
}

static void record_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cost_record *record = note_before(sk, COST_CONG_AVOID);

	if (record) {
		record->ack = ack;
		record->arg = acked;
	}
	inner->cong_avoid(sk, ack, acked);
	note_after(sk, record, 0);
}

static void record_set_state(struct sock *sk, u8 new_state)
{
	struct cost_record *record = note_before(sk, COST_SET_STATE);

	if (record)
		record->arg = new_state;
	inner->set_state(sk, new_state);
	note_after(sk, record, 0);
}

static void record_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct cost_record *record = note_before(sk, COST_CWND_EVENT);

	if (record)
		record->arg = event;
	inner->cwnd_event(sk, event);
	note_after(sk, record, 0);
}

static void record_in_ack_event(struct sock *sk, u32 flags)
{
	struct cost_record *record = note_before(sk, COST_IN_ACK_EVENT);

	if (record)
		record->arg = flags;
	if (inner->in_ack_event)
		inner->in_ack_event(sk, flags);
	note_after(sk, record, 0);
}

static void record_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct cost_record *record = note_before(sk, COST_PKTS_ACKED);

	if (record)
		record->ack_sample = *sample;
	inner->pkts_acked(sk, sample);
	note_after(sk, record, 0);
}

static u32 record_min_tso_segs(struct sock *sk)
{
	struct cost_record *record = note_before(sk, COST_MIN_TSO_SEGS);
	u32 result = inner->min_tso_segs(sk);

	note_after(sk, record, result);
	return result;
}

static void record_cong_control(struct sock *sk, u32 ack, int flag,
				const struct rate_sample *rs)
{
	struct cost_record *record = note_before(sk, COST_CONG_CONTROL);

	if (record) {
		record->ack = ack;
		record->arg = flag;
		record->rate_sample = *rs;
	}
	inner->cong_control(sk, ack, flag, rs);
	note_after(sk, record, 0);
}

static u32 record_undo_cwnd(struct sock *sk)
{
	struct cost_record *record = note_before(sk, COST_UNDO_CWND);
	u32 result = inner->undo_cwnd(sk);

	note_after(sk, record, result);
	return result;
}

static u32 record_sndbuf_expand(struct sock *sk)
{
	struct cost_record *record = note_before(sk, COST_SNDBUF_EXPAND);
	u32 result = inner->sndbuf_expand(sk);

	note_after(sk, record, result);
	return result;
}

/* The hooks that the inner algorithm has, and in_ack_event. */
static void __init fill_ops(void)
{
	record_ops = *inner;
	record_ops.init = record_init;
	record_ops.release = record_release;
	record_ops.ssthresh = record_ssthresh;
	record_ops.undo_cwnd = record_undo_cwnd;
	record_ops.in_ack_event = record_in_ack_event;
	if (inner->cong_avoid)
		record_ops.cong_avoid = record_cong_avoid;
	if (inner->set_state)
		record_ops.set_state = record_set_state;
	if (inner->cwnd_event)
		record_ops.cwnd_event = record_cwnd_event;
	if (inner->pkts_acked)
		record_ops.pkts_acked = record_pkts_acked;
	if (inner->min_tso_segs)
		record_ops.min_tso_segs = record_min_tso_segs;
	if (inner->cong_control)
		record_ops.cong_control = record_cong_control;
	if (inner->sndbuf_expand)
		record_ops.sndbuf_expand = record_sndbuf_expand;
	strscpy(record_ops.name, "record", sizeof(record_ops.name));
	record_ops.owner = THIS_MODULE;
}

static ssize_t read_recording(struct file *file, char __user *to, size_t count,
			      loff_t *at)
{
	return simple_read_from_buffer(to, count, at, buffer, used);
}

static const struct proc_ops recording_proc_ops = {
	.proc_read	= read_recording,
	.proc_lseek	= default_llseek,
};

/* Nothing exported finds an algorithm by its name, but a socket does. */
static int __init find_inner(void)
{
	int err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP,
				   &holder);

	if (err)
		return err;
	err = holder->ops->setsockopt(holder, SOL_TCP, TCP_CONGESTION,
				      KERNEL_SOCKPTR(algorithm),
				      strlen(algorithm));
	inner = inet_csk(holder->sk)->icsk_ca_ops;
	return err;
}

static int __init record_register(void)
{
	int err;

	buffer = vzalloc((size_t)buffer_mb << 20);
	if (!buffer)
		return -ENOMEM;
	err = find_inner();
	if (err)
		goto out;
	fill_ops();
	err = -ENOMEM;
	if (!proc_create("tcp_record", 0400, NULL, &recording_proc_ops))
		goto out;
	err = tcp_register_congestion_control(&record_ops);
	if (!err)
		return 0;
	remove_proc_entry("tcp_record", NULL);
out:
	if (holder)
		sock_release(holder);
	vfree(buffer);
	return err;
}

static void __exit record_unregister(void)
{
	tcp_unregister_congestion_control(&record_ops);
	remove_proc_entry("tcp_record", NULL);
	sock_release(holder);
	vfree(buffer);
}

module_init(record_register);
module_exit(record_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Recorder of the calls to a congestion control algorithm");
