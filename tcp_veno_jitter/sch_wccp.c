// SPDX-License-Identifier: GPL-2.0-only
/*
 * WCCP between IP and the device: tc qdisc add dev wlan0 root wccp
 *
 * Every node of a wireless path has this queue on its device. There it
 *
 *   - puts the option on segments of sockets that use tcp_wccp,
 *   - lowers fb of all that pass, as busy as the channel is (wccp_share.h),
 *   - remembers fb of segments that end here and puts it on their ACKs,
 *   - lets ACKs wait for each other, so that there are fewer,
 *   - tells tcp_wccp's sockets what came back.
 *
 * How busy the channel is, it asks the medium of docs/medium.md by a frame of
 * EtherType 0x88b5 (ask_medium), or is told through /proc/net/wccp by who reads
 * the driver's survey: "wlan0 BUSY_NS TIME_NS", two counters that only grow, and
 * behind them, if it knows, how many packets wait at the device.
 * While it does not know, segments pass as they are.
 *
 * A queueing discipline is what there is between IP and a device: it has the
 * device's name, namespace and life, sees what is sent from here and forwarded,
 * after TCP and before segmentation, and needs no firewall. It is a FIFO.
 *
 * Nothing in a segment is trusted. An option can do no more than change other
 * numbers of this kind, for a while: what a node adds up is bounded, an echo's
 * place is one of a fixed number, and expires; the sender has limits of its own.
 *
 *   enqueue (bottom halves off, queue's lock)   tap (softirq)   timer (softirq)
 *                  \                              |               |
 *                   +---------- agent->lock ------+---------------+
 */

#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/siphash.h>
#include <linux/uaccess.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>
#include <net/route.h>
#include <net/tcp.h>

#include "compat/inet_lookup.h"
#include "compat/net_sch.h"
#include "compat/timer.h"
#include "estimators/wccp_option.h"
#include "estimators/wccp_share.h"
#include "tcp_param.h"
#include "tcp_wccp.h"

static struct tcp_param wccp_threshold_percent = { .value = 95, .min = 10, .max = 99 };
module_param_cb(threshold_percent, &tcp_param_ops, &wccp_threshold_percent,
		0644);
MODULE_PARM_DESC(threshold_percent,
		 "th_b to begin with: channel busyness that is aimed at, percent (10-99)");

static struct tcp_param wccp_gain_percent = { .value = 50, .min = 1, .max = 100 };
module_param_cb(gain_percent, &tcp_param_ops, &wccp_gain_percent, 0644);
MODULE_PARM_DESC(gain_percent,
		 "how much of the difference an interval makes up for, percent (1-100)");

static struct tcp_param wccp_shuffle_percent = { .value = 10, .min = 0, .max = 50 };
module_param_cb(shuffle_percent, &tcp_param_ops, &wccp_shuffle_percent, 0644);
MODULE_PARM_DESC(shuffle_percent,
		 "h: how much of the rates is shared out anew, percent (0-50)");

static struct tcp_param wccp_ack_segments = { .value = 3, .min = 1, .max = 3 };
module_param_cb(ack_segments, &tcp_param_ops, &wccp_ack_segments, 0644);
MODULE_PARM_DESC(ack_segments,
		 "an ACK waits for others until it is for so many segments (1-3); 1: does not wait");

static struct tcp_param wccp_share_by_hops = { .value = 0, .min = 0, .max = 1 };
module_param_cb(share_by_hops, &tcp_param_ops, &wccp_share_by_hops, 0644);
MODULE_PARM_DESC(share_by_hops,
		 "a flow's share is by 1 / hops of its way; 0: all the same (0-1)");

static struct tcp_param wccp_ask_medium = { .value = 0, .min = 0, .max = 1 };
module_param_cb(ask_medium, &tcp_param_ops, &wccp_ask_medium, 0644);
MODULE_PARM_DESC(ask_medium,
		 "ask a simulated medium for its counters, EtherType 0x88b5 (0-1)");

#define WCCP_ECHO_SETS		64	/* of flows that end here: 256 */
#define WCCP_ECHO_WAYS		4
#define WCCP_ECHO_INTERVALS	4	/* an echo lives as many T_c */
#define WCCP_ECHO_MIN_MS	500
#define WCCP_ECHO_MAX_MS	5000
#define WCCP_SHARE_INTERVALS	4	/* and what is given as many of the node's */
#define WCCP_DEAF_MS		2000	/* without a word about the channel */
#define WCCP_CROWDED_MS		60000	/* others are remembered while nobody looks */
#define WCCP_ASK_AGAIN_MS	200
#define WCCP_WAIT_MAX_MS	200	/* TCP itself may delay ACKs as long */
#define WCCP_WAITING_MAX	64
#define WCCP_QUEUE_PKTS		1000	/* where the device does not say */

/* EtherType 0x88b5: docs/medium.md */
#define WCCP_MEDIUM_TYPE	0x88b5
#define WCCP_MEDIUM_VERSION	1
#define WCCP_MEDIUM_BUSY_NS	0	/* which counter */
#define WCCP_MEDIUM_QUEUE_PKTS	16
#define WCCP_MEDIUM_COUNTERS	17	/* so many are read; there may be more */

struct wccp_answer {
	__be16 version;
	__be16 counters;
	__be64 time_ns;
	__be64 values[WCCP_MEDIUM_COUNTERS];
} __packed;

/* One direction of a connection. */
struct wccp_tuple {
	__be32 saddr;
	__be32 daddr;
	__be16 sport;
	__be16 dport;
};

/**
 * struct wccp_echo - what goes back to a sender
 * @tuple: of the data
 * @feedback: fb of the newest segment (bytes/s)
 * @until: it counts until then (jiffies)
 * @acked: the newest ACK that has been let go has this number
 * @segment_bytes: the newest segment's payload, 0: nothing follows it for now
 * @largest_bytes: the largest payload there was
 * @wait_ms: so long an ACK may wait for the next
 * @acks: @acked is valid
 */
struct wccp_echo {
	struct wccp_tuple tuple;
	s32 feedback;
	unsigned long until;
	u32 acked;
	u32 segment_bytes;
	u32 largest_bytes;
	u32 wait_ms;
	bool acks;
};

/**
 * struct wccp_channel - what is known of the channel
 * @time_ns: when the interval began, by the clock of who tells
 * @busy_ns: and how busy the channel had been
 * @told_ns: the last time that was told while that clock ran
 * @told: when that was (jiffies)
 * @known: there is such a time
 * @runs: the clock did then
 */
struct wccp_channel {
	u64 time_ns;
	u64 busy_ns;
	u64 told_ns;
	unsigned long told;
	bool known;
	bool runs;
};

/**
 * struct wccp_word - somebody tells of the channel
 * @time_ns: by a clock of its own
 * @busy_ns: so long has it been busy; grows
 * @queue_pkts: what waits at this node, behind the queueing discipline
 * @told: @queue_pkts is known
 */
struct wccp_word {
	u64 time_ns;
	u64 busy_ns;
	u32 queue_pkts;
	bool told;
};

/**
 * struct wccp_counts - for people, in /proc/net/wccp
 * @inserted: options put on segments
 * @no_room: segments that had no room for one
 * @lowered: segments whose fb was lowered
 * @echoed: ACKs that took one back
 * @told: echoes that sockets were told
 * @joined: ACKs that were left out, as a newer one says the same
 */
struct wccp_counts {
	u64 inserted;
	u64 no_room;
	u64 lowered;
	u64 echoed;
	u64 told;
	u64 joined;
};

/**
 * struct wccp_agent - a device
 * @lock: of @load, @share, @channel, @echoes, @counts and what is between them
 * @dev: the device
 * @list: of those in its namespace
 * @tap: hears what comes in
 * @timer: ends an interval
 * @load: what passed in this interval
 * @share: what is given
 * @share_until: that long (jiffies)
 * @edge: th_b
 * @backlog_pkts: what the device has not taken yet
 * @others: what passes without the option
 * @crowded_until: others fill the channel, as far as is known then (jiffies)
 * @crowded: they do
 * @shares: @share is valid
 * @asked: the medium has been asked and has not answered yet
 * @channel: what is known of it
 * @echoes: sets of WCCP_ECHO_WAYS
 * @key: of the hash that chooses a set
 * @counts: for people
 * @waiting: ACKs that wait for the next of their kind, under the queue's lock
 * @watchdog: lets the first of them go
 */
struct wccp_agent {
	spinlock_t lock;	/* of what changes */
	struct net_device *dev;
	struct list_head list;
	struct packet_type tap;
	struct timer_list timer;
	struct wccp_load load;
	struct wccp_share share;
	unsigned long share_until;
	struct wccp_edge edge;
	u32 backlog_pkts;
	struct wccp_others others;
	unsigned long crowded_until;
	bool crowded;
	bool shares;
	bool asked;
	struct wccp_channel channel;
	struct wccp_echo *echoes;
	siphash_key_t key;
	struct wccp_counts counts;
	struct sk_buff_head waiting;
	struct qdisc_watchdog watchdog;
};

/**
 * struct wccp_net - a namespace
 * @mutex: of @agents
 * @agents: its devices
 */
struct wccp_net {
	struct mutex mutex;	/* of the list */
	struct list_head agents;
};

/**
 * struct wccp_segment - a TCP segment over IPv4
 * @tuple: its connection
 * @tcp: offset of the TCP header, from where skb->data is
 * @header_bytes: of the TCP header
 * @payload_bytes: all of them, also if it will be cut into many
 * @seq: of its first byte
 * @ack_seq: what it acknowledges
 * @ttl: what is left of it
 * @acks: it does
 * @opens: SYN
 * @plain: of the flags, ACK and no other
 * @ends: PSH or FIN: its sender has nothing more for now
 * @options: behind the 20 bytes
 * @found: ours in them
 */
struct wccp_segment {
	struct wccp_tuple tuple;
	u32 tcp;
	u32 header_bytes;
	u32 payload_bytes;
	u32 seq;
	u32 ack_seq;
	u8 ttl;
	bool acks;
	bool opens;
	bool plain;
	bool ends;
	u8 options[WCCP_OPTIONS_MAX];
	struct wccp_found found;
};

static unsigned int wccp_net_id __read_mostly;

/* --- segments --------------------------------------------------------------- */

/* Payload of a segment on the air: a buffer may be several (GSO, GRO). */
static u32 wccp_segment_bytes(const struct sk_buff *skb,
			      const struct wccp_segment *segment)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_size :
				 segment->payload_bytes;
}

/* Is there one at offset @ip? All that is read is copied: it may be anything. */
static bool wccp_read_segment(const struct sk_buff *skb, u32 ip,
			      struct wccp_segment *segment)
{
	struct iphdr iph_buffer;
	struct tcphdr th_buffer;
	const struct iphdr *iph = skb_header_pointer(skb, ip, sizeof(*iph),
						     &iph_buffer);
	const struct tcphdr *th;
	u32 ip_bytes;

	if (!iph || iph->version != 4 || iph->ihl < 5 ||
	    iph->protocol != IPPROTO_TCP || ip_is_fragment(iph))
		return false;
	ip_bytes = ntohs(iph->tot_len);
	segment->tcp = ip + iph->ihl * 4;
	th = skb_header_pointer(skb, segment->tcp, sizeof(*th), &th_buffer);
	if (!th || th->doff < 5)
		return false;
	segment->header_bytes = th->doff * 4;
	/* what is longer than the field says (padding) is no part; GSO may say 0 */
	if (!ip_bytes && skb_is_gso(skb))
		ip_bytes = skb->len - ip;
	if (ip_bytes > skb->len - ip ||
	    ip_bytes < iph->ihl * 4 + segment->header_bytes)
		return false;
	segment->payload_bytes = ip_bytes - iph->ihl * 4 -
				 segment->header_bytes;
	segment->ttl = iph->ttl;
	segment->tuple.saddr = iph->saddr;
	segment->tuple.daddr = iph->daddr;
	segment->tuple.sport = th->source;
	segment->tuple.dport = th->dest;
	segment->seq = ntohl(th->seq);
	segment->ack_seq = ntohl(th->ack_seq);
	segment->acks = th->ack && !th->rst && !th->syn;
	segment->opens = th->syn;
	segment->plain = tcp_flag_byte(th) == TCPHDR_ACK;
	segment->ends = th->psh || th->fin;
	if (skb_copy_bits(skb, segment->tcp + sizeof(*th), segment->options,
			  segment->header_bytes - sizeof(*th)))
		return false;
	segment->found = wccp_option_find(segment->options,
					  segment->header_bytes - sizeof(*th));
	return true;
}

/* How many bytes of options this outgoing segment can still take. */
static u32 wccp_room(const struct sk_buff *skb,
		     const struct wccp_segment *segment)
{
	u32 header_bytes = sizeof(struct tcphdr) + WCCP_OPTIONS_MAX;
	u32 ip_bytes = segment->tcp - skb_network_offset(skb) +
		       segment->header_bytes;
	u32 mtu;

	if (!skb_dst(skb))
		return 0;
	mtu = min(skb->dev->mtu, dst_mtu(skb_dst(skb)));
	ip_bytes += wccp_segment_bytes(skb, segment);
	if (ip_bytes >= mtu ||
	    ntohs(ip_hdr(skb)->tot_len) + WCCP_OPTIONS_MAX > U16_MAX)
		return 0;
	return min(mtu - ip_bytes, header_bytes - segment->header_bytes);
}

/*
 * Only segments that a socket of this host has just made: their header is
 * theirs, and what is left to do of the checksum is the same for any header.
 */
static bool wccp_may_insert(const struct sk_buff *skb,
			    const struct wccp_segment *segment)
{
	return skb->sk && sk_fullsock(skb->sk) &&
	       skb->ip_summed == CHECKSUM_PARTIAL &&
	       skb_transport_offset(skb) == segment->tcp &&
	       skb_checksum_start_offset(skb) == segment->tcp &&
	       ip_hdr(skb)->tot_len && !segment->found.sealed;
}

/* Put @bytes bytes of options, a multiple of 4, behind those there are. */
static bool wccp_insert(struct sk_buff *skb, struct wccp_segment *segment,
			const u8 *options, u32 bytes)
{
	u32 before = segment->tcp + segment->header_bytes;
	__be16 old_bytes, new_bytes;
	struct tcphdr *th;
	struct iphdr *iph;

	if (!pskb_may_pull(skb, before) || skb_cow_head(skb, bytes))
		return false;
	skb_push(skb, bytes);
	memmove(skb->data, skb->data + bytes, before);
	memcpy(skb->data + before, options, bytes);
	skb->mac_header -= bytes;
	skb->network_header -= bytes;
	skb->transport_header -= bytes;
	skb->csum_start -= bytes;
	qdisc_skb_cb(skb)->pkt_len += bytes;

	iph = ip_hdr(skb);
	th = tcp_hdr(skb);
	iph->tot_len = htons(ntohs(iph->tot_len) + bytes);
	ip_send_check(iph);
	/* the pseudo header's length is all that the sum is of by now */
	old_bytes = htons(segment->header_bytes + segment->payload_bytes);
	new_bytes = htons(segment->header_bytes + segment->payload_bytes +
			  bytes);
	inet_proto_csum_replace2(&th->check, skb, old_bytes, new_bytes, true);
	th->doff += bytes / 4;

	memcpy(segment->options + segment->header_bytes - sizeof(*th), options,
	       bytes);
	segment->header_bytes += bytes;
	segment->found = wccp_option_find(segment->options,
					  segment->header_bytes - sizeof(*th));
	return true;
}

/* Write another fb into a segment that passes. */
static void wccp_write_feedback(struct sk_buff *skb,
				const struct wccp_segment *segment,
				s32 feedback)
{
	u32 offset = segment->tcp + sizeof(struct tcphdr) +
		     segment->found.data + WCCP_FEEDBACK_OFFSET;
	__be32 old, new = cpu_to_be32(feedback);
	struct tcphdr *th;

	if (skb_ensure_writable(skb, offset + sizeof(new)))
		return;
	th = (struct tcphdr *)(skb->data + segment->tcp);
	memcpy(&old, skb->data + offset, sizeof(old));
	memcpy(skb->data + offset, &new, sizeof(new));
	inet_proto_csum_replace4(&th->check, skb, old, new, false);
}

/* --- the node --------------------------------------------------------------- */

/* Somebody tells how busy the channel is. */
static bool wccp_is_alive(const struct wccp_agent *agent)
{
	return agent->channel.runs &&
	       time_before(jiffies, agent->channel.told +
			   msecs_to_jiffies(WCCP_DEAF_MS));
}

/*
 * Others fill the channel. While a flow waits for a timeout, or has nothing to send,
 * nothing passes by which the node could see that they still do.
 */
static bool wccp_is_crowded(const struct wccp_agent *agent)
{
	return agent->crowded && time_before(jiffies, agent->crowded_until);
}

/* There is something to give. */
static bool wccp_is_giving(const struct wccp_agent *agent)
{
	return agent->shares && time_before(jiffies, agent->share_until);
}

/* What was told and has run out would be news again once jiffies wrap. */
static void wccp_forget_old(struct wccp_agent *agent)
{
	if (!wccp_is_alive(agent))
		agent->channel.runs = false;
	if (!wccp_is_giving(agent))
		agent->shares = false;
	if (agent->crowded && !wccp_is_crowded(agent)) {
		agent->crowded = false;
		memset(&agent->others, 0, sizeof(agent->others));
	}
}

static void wccp_arm(struct wccp_agent *agent, u32 delay_ms)
{
	if (!timer_pending(&agent->timer))
		mod_timer(&agent->timer, jiffies + msecs_to_jiffies(delay_ms));
}

/* There is traffic: the channel will be asked. */
static void wccp_wake(struct wccp_agent *agent)
{
	if (tcp_param_get(&wccp_ask_medium) && !wccp_is_alive(agent))
		wccp_arm(agent, agent->asked ? WCCP_ASK_AGAIN_MS : 0);
}

/* A segment passes; returns what its fb is from here on. */
static s32 wccp_pass(struct wccp_agent *agent,
		     const struct wccp_request *request, u32 payload_bytes)
{
	s32 feedback = request->feedback, given = 0;
	u32 weight = wccp_weight(request->hops,
				 tcp_param_get(&wccp_share_by_hops));

	wccp_forget_old(agent);
	wccp_wake(agent);
	/* it may have been deaf since nothing of ours has passed for a while */
	if (!wccp_is_alive(agent))
		return wccp_is_crowded(agent) ? WCCP_OTHERS : feedback;
	if (tcp_param_get(&wccp_ask_medium))
		wccp_arm(agent, wccp_load_interval_ms(&agent->load));
	wccp_load_note(&agent->load, request->rate, request->interval_ms,
		       payload_bytes, weight);
	/* of an interval that has just begun nothing is known: stay as it is */
	if (wccp_is_crowded(agent))
		given = WCCP_OTHERS;
	else if (wccp_is_giving(agent))
		given = wccp_share_feedback(&agent->share, request->rate,
					    request->interval_ms, weight);
	return min(feedback, given);
}

/*
 * Does the clock of who tells run at half the speed of ours, at least? A driver may
 * renew its counters seldom; where they stand or creep for so long that the agent
 * is deaf, the next word is held against the last one.
 */
static void wccp_hear_clock(struct wccp_channel *channel, u64 time_ns)
{
	u64 advance_ns = time_ns - channel->told_ns;
	u32 since_ms = jiffies_to_msecs(jiffies - channel->told);
	bool runs = !channel->known ||
		    (advance_ns && advance_ns >= (u64)since_ms *
						 (WCCP_NSEC_PER_MSEC / 2));

	if (!runs && since_ms < WCCP_DEAF_MS)
		return;
	channel->runs = runs;
	channel->told_ns = time_ns;
	channel->told = jiffies;
}

/* What passes without the option is of others: here so many bytes. */
static void wccp_pass_other(struct wccp_agent *agent, u32 bytes)
{
	agent->others.bytes += bytes;
}

/* Does a packet that cannot be read, or is no segment, bring anything? */
static bool wccp_is_other(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) ||
	       skb->protocol == htons(ETH_P_IPV6);
}

/* An interval in which something passed is over: do others fill the channel? */
static void wccp_judge_others(struct wccp_agent *agent)
{
	wccp_forget_old(agent);
	agent->crowded = wccp_others_update(&agent->others, &agent->share,
					    &agent->load, agent->edge.stands);
	agent->crowded_until = jiffies + msecs_to_jiffies(WCCP_CROWDED_MS);
}

/* An interval of so many ns is over, the channel was busy for @busy_ns. */
static void wccp_share_anew(struct wccp_agent *agent, u64 passed_ns, u64 busy_ns,
			    const struct wccp_word *word)
{
	u32 percent = tcp_param_get(&wccp_threshold_percent);
	struct wccp_law law = {
		.gain_percent = tcp_param_get(&wccp_gain_percent),
		.shuffle_percent = tcp_param_get(&wccp_shuffle_percent),
	};
	u32 lives_ms = min_t(u64, WCCP_INTERVAL_MAX_MS,
			     div_u64(passed_ns, WCCP_NSEC_PER_MSEC));

	/* what the device does not take waits here */
	wccp_edge_update(&agent->edge, wccp_busy(passed_ns, busy_ns),
			 word->queue_pkts + READ_ONCE(agent->backlog_pkts),
			 word->told, percent);
	law.threshold = agent->edge.threshold;
	wccp_share_update(&agent->share, &agent->load, passed_ns, busy_ns, &law);
	wccp_judge_others(agent);
	agent->share_until = jiffies +
			     msecs_to_jiffies(WCCP_SHARE_INTERVALS * lives_ms);
	agent->shares = true;
}

/*
 * Can this word be held against the last one? An agent that asks does so when its interval
 * is over, which may be as long as it takes to be deaf, and begins with a segment that may
 * come as long after the last word.
 */
static bool wccp_is_next_word(const struct wccp_agent *agent, u32 interval_ms)
{
	u32 waits_ms = WCCP_DEAF_MS;

	if (agent->asked)
		waits_ms += interval_ms;
	return agent->channel.known && agent->channel.runs &&
	       time_before_eq(jiffies, agent->channel.told +
			      msecs_to_jiffies(waits_ms));
}

/* Somebody tells of the channel. */
static void wccp_hear_channel(struct wccp_agent *agent,
			      const struct wccp_word *word)
{
	struct wccp_channel *channel = &agent->channel;
	u32 interval_ms = wccp_load_interval_ms(&agent->load);
	u64 passed_ns = word->time_ns - channel->time_ns;
	bool known = wccp_is_next_word(agent, interval_ms) &&
		     word->time_ns >= channel->time_ns &&
		     word->busy_ns >= channel->busy_ns &&
		     passed_ns <= WCCP_TIME_MAX_NS;

	wccp_hear_clock(channel, word->time_ns);
	agent->asked = false;
	if (known && passed_ns < (u64)interval_ms * WCCP_NSEC_PER_MSEC)
		return;
	if (known && agent->load.pkts)
		wccp_share_anew(agent, passed_ns,
				word->busy_ns - channel->busy_ns, word);
	memset(&agent->load, 0, sizeof(agent->load));
	agent->others.bytes = 0;
	channel->time_ns = word->time_ns;
	channel->busy_ns = word->busy_ns;
	channel->known = true;
}

/* Ask the medium; it answers at once, by the same device. */
static void wccp_ask(struct wccp_agent *agent)
{
	struct net_device *dev = agent->dev;
	struct sk_buff *skb;

	skb = alloc_skb(LL_RESERVED_SPACE(dev) + ETH_ZLEN, GFP_ATOMIC);
	if (!skb)
		return;
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	skb_reset_network_header(skb);
	skb_put_zero(skb, ETH_ZLEN - ETH_HLEN);
	skb->dev = dev;
	skb->protocol = htons(WCCP_MEDIUM_TYPE);
	if (dev_hard_header(skb, dev, WCCP_MEDIUM_TYPE, dev->dev_addr,
			    dev->dev_addr, skb->len) < 0) {
		kfree_skb(skb);
		return;
	}
	dev_queue_xmit(skb);
}

/* An interval is over, or there was no answer; without traffic nobody asks. */
static void wccp_timeout(struct timer_list *timer)
{
	struct wccp_agent *agent = container_of(timer, struct wccp_agent,
						timer);
	bool asks;

	spin_lock(&agent->lock);
	asks = tcp_param_get(&wccp_ask_medium) &&
	       (agent->load.pkts || !wccp_is_alive(agent));
	agent->asked |= asks;
	spin_unlock(&agent->lock);
	if (asks)
		wccp_ask(agent);
}

/* What is being sent does not wait. */
static u32 wccp_queue(u64 pkts)
{
	return min_t(u64, pkts, WCCP_QUEUE_PKTS) - !!pkts;
}

static void wccp_hear_answer(struct wccp_agent *agent,
			     const struct sk_buff *skb)
{
	struct wccp_answer buffer;
	const struct wccp_answer *answer;
	struct wccp_word word;

	if (!tcp_param_get(&wccp_ask_medium))
		return;
	answer = skb_header_pointer(skb, 0, sizeof(buffer), &buffer);
	if (!answer || answer->version != htons(WCCP_MEDIUM_VERSION) ||
	    ntohs(answer->counters) < WCCP_MEDIUM_COUNTERS)
		return;
	word = (struct wccp_word){
		.time_ns = be64_to_cpu(answer->time_ns),
		.busy_ns = be64_to_cpu(answer->values[WCCP_MEDIUM_BUSY_NS]),
		.queue_pkts = wccp_queue(be64_to_cpu(answer->values[WCCP_MEDIUM_QUEUE_PKTS])),
		.told = true,
	};
	spin_lock(&agent->lock);
	wccp_hear_channel(agent, &word);
	spin_unlock(&agent->lock);
}

/* --- the receiver ----------------------------------------------------------- */

static struct wccp_echo *wccp_echo_set(struct wccp_agent *agent,
				       const struct wccp_tuple *tuple)
{
	u64 hash = siphash(tuple, sizeof(*tuple), &agent->key);

	return agent->echoes + hash % WCCP_ECHO_SETS * WCCP_ECHO_WAYS;
}

static struct wccp_echo *wccp_echo_find(struct wccp_agent *agent,
					const struct wccp_tuple *tuple)
{
	struct wccp_echo *echo = wccp_echo_set(agent, tuple);
	int i;

	for (i = 0; i < WCCP_ECHO_WAYS; i++)
		if (!memcmp(&echo[i].tuple, tuple, sizeof(*tuple)))
			return echo + i;
	return NULL;
}

/* The place of a flow; a new one takes that which expires first. */
static struct wccp_echo *wccp_echo_place(struct wccp_agent *agent,
					 const struct wccp_tuple *tuple)
{
	struct wccp_echo *echo = wccp_echo_find(agent, tuple);
	struct wccp_echo *set = wccp_echo_set(agent, tuple);
	int i;

	if (echo)
		return echo;
	echo = set;
	for (i = 1; i < WCCP_ECHO_WAYS; i++)
		if (time_before(set[i].until, echo->until))
			echo = set + i;
	echo->tuple = *tuple;
	echo->largest_bytes = 0;
	echo->acks = false;
	return echo;
}

static void wccp_echo_note(struct wccp_agent *agent, const struct sk_buff *skb,
			   const struct wccp_segment *segment)
{
	struct wccp_request request =
		wccp_option_read(segment->options + segment->found.data);
	u32 lives_ms = clamp(WCCP_ECHO_INTERVALS * request.interval_ms,
			     WCCP_ECHO_MIN_MS, WCCP_ECHO_MAX_MS);
	u32 wait_ms = min_t(u32, request.interval_ms, WCCP_WAIT_MAX_MS);
	u32 segment_bytes = wccp_segment_bytes(skb, segment);
	struct wccp_echo *echo;

	spin_lock(&agent->lock);
	echo = wccp_echo_place(agent, &segment->tuple);
	echo->feedback = wccp_pass(agent, &request, segment->payload_bytes);
	echo->until = jiffies + msecs_to_jiffies(lives_ms);
	echo->segment_bytes = segment->ends ? 0 : segment_bytes;
	echo->largest_bytes = max(echo->largest_bytes, segment_bytes);
	/* the next one comes L / r_p later, if the sender's window lets it: is it of use? */
	echo->wait_ms = (u64)segment_bytes * MSEC_PER_SEC <=
			(u64)request.rate * wait_ms ? wait_ms : 0;
	spin_unlock(&agent->lock);
}

/* What the sender of what this segment acknowledges is to be told, if anything. */
static struct wccp_echo *wccp_echo_of(struct wccp_agent *agent,
				      const struct wccp_segment *segment)
{
	const struct wccp_tuple data = {
		.saddr = segment->tuple.daddr,
		.daddr = segment->tuple.saddr,
		.sport = segment->tuple.dport,
		.dport = segment->tuple.sport,
	};
	struct wccp_echo *echo = wccp_echo_find(agent, &data);

	if (!segment->acks || !echo || time_after_eq(jiffies, echo->until))
		return NULL;
	return echo;
}

/*
 * How long an ACK may wait for the next (ms). It must be plain, and for less than
 * ack_segments segments that have not been acknowledged; what a segment is, this
 * host's socket has seen, but it takes none for smaller than 536 bytes if each ends
 * a write, and options for payload. So many again must fit its window meanwhile.
 */
static u32 wccp_ack_wait_ms(const struct wccp_echo *echo,
			    const struct sock *sk,
			    const struct wccp_segment *segment)
{
	u32 fresh = segment->ack_seq - echo->acked;
	u32 segments = tcp_param_get(&wccp_ack_segments);
	u32 segment_bytes;
	u64 enough;

	if (!sk_is_tcp(sk) || !segment->plain || segment->payload_bytes ||
	    segment->found.others || segment->found.echo < 0 ||
	    segment->seq != READ_ONCE(tcp_sk(sk)->snd_nxt))
		return 0;
	segment_bytes = min_t(u32, READ_ONCE(inet_csk(sk)->icsk_ack.rcv_mss),
			      echo->largest_bytes);
	enough = (u64)segments * segment_bytes;
	/* beside others the ACKs clock a window, and theirs do not wait */
	if (segments == 1 || echo->feedback == WCCP_OTHERS ||
	    echo->segment_bytes < segment_bytes ||
	    READ_ONCE(tcp_sk(sk)->rcv_wnd) < 2 * enough)
		return 0;
	if (!echo->acks || !fresh || fresh >= enough)
		return 0;
	return echo->wait_ms;
}

/* An ACK leaves; the echo of what it acknowledges may be gone. */
static void wccp_ack_note(struct wccp_echo *echo, u32 ack_seq)
{
	if (!echo)
		return;
	echo->acked = ack_seq;
	echo->acks = true;
}

/* --- what comes in ---------------------------------------------------------- */

/* The socket of this host that a segment is for, with a reference; NULL: none. */
static struct sock *wccp_socket_of(const struct sk_buff *skb,
				   const struct wccp_segment *segment)
{
	const struct wccp_tuple *tuple = &segment->tuple;

	return compat_inet_lookup_established(dev_net(skb->dev), tuple->saddr,
					      tuple->sport, tuple->daddr,
					      tuple->dport, skb->dev->ifindex);
}

/* The sender's socket hears what came back. */
static void wccp_tell_socket(struct wccp_agent *agent,
			     const struct sk_buff *skb,
			     const struct wccp_segment *segment)
{
	struct sock *sk = wccp_socket_of(skb, segment);

	if (!sk)
		return;
	if (sk_fullsock(sk) && tcp_wccp_is_used(sk)) {
		tcp_wccp_feedback(sk, segment->ack_seq,
				  wccp_echo_read(segment->options +
						 segment->found.echo),
				  wccp_hops(segment->ttl));
		spin_lock(&agent->lock);
		agent->counts.told++;
		spin_unlock(&agent->lock);
	}
	sock_gen_put(sk);
}

/* Our socket that data has come to is to answer in its own data, too. */
static void wccp_note_data(const struct sk_buff *skb,
			   const struct wccp_segment *segment)
{
	struct sock *sk = wccp_socket_of(skb, segment);

	if (!sk)
		return;
	if (sk_fullsock(sk) && tcp_wccp_is_used(sk))
		tcp_wccp_note_data(sk);
	sock_gen_put(sk);
}

/* What is to be forwarded is seen when it leaves. */
static bool wccp_ends_here(const struct sk_buff *skb)
{
	struct iphdr buffer;
	const struct iphdr *iph = skb_header_pointer(skb, 0, sizeof(buffer),
						     &buffer);

	return iph && inet_addr_type(dev_net(skb->dev), iph->daddr) == RTN_LOCAL;
}

static void wccp_incoming(struct wccp_agent *agent, const struct sk_buff *skb)
{
	struct wccp_segment segment;
	bool is_segment;

	if (!wccp_ends_here(skb))
		return;
	is_segment = wccp_read_segment(skb, 0, &segment) &&
		     !segment.found.sealed;
	if (!is_segment || (segment.found.data < 0 && segment.payload_bytes)) {
		spin_lock(&agent->lock);
		wccp_pass_other(agent, is_segment ? segment.payload_bytes :
						    skb->len);
		spin_unlock(&agent->lock);
	}
	if (!is_segment)
		return;
	if (segment.found.data >= 0 && segment.payload_bytes) {
		wccp_echo_note(agent, skb, &segment);
		wccp_note_data(skb, &segment);
	}
	if (segment.found.echo >= 0 && segment.acks)
		wccp_tell_socket(agent, skb, &segment);
}

/* Only looks: who is next gets the packet. */
static int wccp_hear(struct sk_buff *skb, struct net_device *dev,
		     struct packet_type *tap, struct net_device *orig_dev)
{
	struct wccp_agent *agent = container_of(tap, struct wccp_agent, tap);

	if (skb->pkt_type == PACKET_HOST && skb->protocol == htons(ETH_P_IP))
		wccp_incoming(agent, skb);
	else if (skb->pkt_type == PACKET_HOST &&
		 skb->protocol == htons(WCCP_MEDIUM_TYPE))
		wccp_hear_answer(agent, skb);
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

/* --- what goes out ---------------------------------------------------------- */

/* What a socket of this host is to have in its segment; returns the bytes. */
static u32 wccp_compose(struct wccp_agent *agent, const struct sk_buff *skb,
			const struct wccp_segment *segment, u8 *options)
{
	u32 room = wccp_room(skb, segment), bytes = 0;
	struct wccp_request request;
	const struct wccp_echo *echo;

	if (tcp_wccp_is_used(skb->sk)) {
		wccp_wake(agent);
		if (wccp_is_alive(agent) && segment->payload_bytes) {
			if (room < WCCP_DATA_BYTES) {
				agent->counts.no_room++;
			} else {
				tcp_wccp_request(skb->sk, &request);
				wccp_option_write(options, &request);
				bytes = WCCP_DATA_BYTES;
				agent->counts.inserted++;
			}
		}
	}
	echo = wccp_echo_of(agent, segment);
	if (room - bytes >= WCCP_ECHO_BYTES && echo) {
		wccp_echo_write(options + bytes, echo->feedback);
		bytes += WCCP_ECHO_BYTES;
		agent->counts.echoed++;
	}
	return bytes;
}

/*
 * What the options of this packet are to say, and how long it may wait (ms).
 * Without a socket of this host it is only passing.
 */
static u32 wccp_outgoing(struct wccp_agent *agent, struct sk_buff *skb,
			 struct wccp_segment *segment)
{
	u8 options[WCCP_DATA_BYTES + WCCP_ECHO_BYTES];
	struct wccp_request request;
	struct wccp_echo *echo;
	u32 bytes, wait_ms = 0;
	s32 feedback;

	if (wccp_may_insert(skb, segment)) {
		bytes = wccp_compose(agent, skb, segment, options);
		if (bytes && !wccp_insert(skb, segment, options, bytes))
			return 0;
		echo = wccp_echo_of(agent, segment);
		if (echo && skb_queue_len(&agent->waiting) < WCCP_WAITING_MAX)
			wait_ms = wccp_ack_wait_ms(echo, skb->sk, segment);
		if (!wait_ms)
			wccp_ack_note(echo, segment->ack_seq);
	}
	if (segment->found.data < 0)
		wccp_pass_other(agent, segment->payload_bytes);
	if (segment->found.data < 0 || !segment->payload_bytes)
		return wait_ms;
	request = wccp_option_read(segment->options + segment->found.data);
	feedback = wccp_pass(agent, &request, segment->payload_bytes);
	if (feedback < request.feedback) {
		wccp_write_feedback(skb, segment, feedback);
		agent->counts.lowered++;
	}
	return 0;
}

/* --- ACKs that wait ---------------------------------------------------------- */

/*
 * On this channel an ACK costs a fifth of what a segment does, and where segments
 * are further apart than TCP delays an ACK (40 ms), each has its own. The sender
 * paces, and its rate changes once per T_c: it need not hear of each segment.
 */

/**
 * struct wccp_wait - private area of a packet that waits
 * @until_ns: it leaves then
 * @ack_seq: what it acknowledges
 */
struct wccp_wait {
	u64 until_ns;
	u32 ack_seq;
};

static struct wccp_wait *wccp_wait(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct wccp_wait));
	return (struct wccp_wait *)qdisc_skb_cb(skb)->data;
}

/* @skb waits no more. */
static void wccp_wait_end(struct Qdisc *sch, struct sk_buff *skb)
{
	struct wccp_agent *agent = qdisc_priv(sch);

	__skb_unlink(skb, &agent->waiting);
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
}

static void wccp_wait_begin(struct Qdisc *sch, struct sk_buff *skb,
			    u64 until_ns, u32 ack_seq)
{
	struct wccp_agent *agent = qdisc_priv(sch);

	*wccp_wait(skb) = (struct wccp_wait){
		.until_ns = until_ns,
		.ack_seq = ack_seq,
	};
	__skb_queue_tail(&agent->waiting, skb);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_watchdog_schedule_ns(&agent->watchdog, until_ns);
}

/* Those whose time has come leave. */
static void wccp_release(struct Qdisc *sch)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns(), next_ns = U64_MAX;
	struct wccp_segment segment;
	struct sk_buff *skb, *next;

	skb_queue_walk_safe(&agent->waiting, skb, next) {
		if (wccp_wait(skb)->until_ns > now_ns) {
			next_ns = min(next_ns, wccp_wait(skb)->until_ns);
			continue;
		}
		wccp_wait_end(sch, skb);
		if (wccp_read_segment(skb, skb_network_offset(skb), &segment)) {
			spin_lock(&agent->lock);
			wccp_ack_note(wccp_echo_of(agent, &segment),
				      segment.ack_seq);
			spin_unlock(&agent->lock);
		}
		qdisc_enqueue_tail(skb, sch);
	}
	if (next_ns != U64_MAX)
		qdisc_watchdog_schedule_ns(&agent->watchdog, next_ns);
}

/* The ACK of the same socket that waits. */
static struct sk_buff *wccp_waiting_of(struct wccp_agent *agent,
				       const struct sock *sk)
{
	struct sk_buff *skb;

	if (!sk)
		return NULL;
	skb_queue_walk(&agent->waiting, skb)
		if (skb->sk == sk)
			return skb;
	return NULL;
}

/*
 * An ACK that waits leaves before what its socket sends now, or not at all, where
 * this says more. Returns when it would have had to leave.
 */
static u64 wccp_join(struct Qdisc *sch, const struct sk_buff *skb,
		     const struct wccp_segment *segment,
		     struct sk_buff **to_free)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	struct sk_buff *old = wccp_waiting_of(agent, skb->sk);
	u64 until_ns;

	if (!old)
		return U64_MAX;
	until_ns = wccp_wait(old)->until_ns;
	wccp_wait_end(sch, old);
	if (segment->acks && after(segment->ack_seq, wccp_wait(old)->ack_seq)) {
		__qdisc_drop(old, to_free);
		agent->counts.joined++;
	} else {
		wccp_ack_note(wccp_echo_of(agent, segment),
			      wccp_wait(old)->ack_seq);
		qdisc_enqueue_tail(old, sch);
	}
	return until_ns;
}

/* --- the queueing discipline ------------------------------------------------ */

static int wccp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	struct wccp_segment segment;
	u64 until_ns;
	u32 wait_ms;

	if (unlikely(sch->q.qlen - skb_queue_len(&agent->waiting) >=
		     READ_ONCE(sch->limit)))
		return qdisc_drop(skb, sch, to_free);
	if (skb->protocol != htons(ETH_P_IP) || skb_network_offset(skb) < 0 ||
	    !wccp_read_segment(skb, skb_network_offset(skb), &segment) ||
	    segment.found.sealed) {
		if (wccp_is_other(skb)) {
			spin_lock(&agent->lock);
			wccp_pass_other(agent, skb->len);
			spin_unlock(&agent->lock);
		}
		return qdisc_enqueue_tail(skb, sch);
	}
	WRITE_ONCE(agent->backlog_pkts,
		   sch->q.qlen - skb_queue_len(&agent->waiting));
	spin_lock(&agent->lock);
	until_ns = wccp_join(sch, skb, &segment, to_free);
	wait_ms = wccp_outgoing(agent, skb, &segment);
	spin_unlock(&agent->lock);
	if (!wait_ms)
		return qdisc_enqueue_tail(skb, sch);
	until_ns = min(until_ns, ktime_get_ns() + wait_ms * NSEC_PER_MSEC);
	wccp_wait_begin(sch, skb, until_ns, segment.ack_seq);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *wccp_dequeue(struct Qdisc *sch)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	struct sk_buff *skb;

	if (!skb_queue_empty(&agent->waiting))
		wccp_release(sch);
	skb = qdisc_dequeue_head(sch);
	WRITE_ONCE(agent->backlog_pkts,
		   sch->q.qlen - skb_queue_len(&agent->waiting));
	return skb;
}

static void wccp_reset(struct Qdisc *sch)
{
	struct wccp_agent *agent = qdisc_priv(sch);

	qdisc_watchdog_cancel(&agent->watchdog);
	__skb_queue_purge(&agent->waiting);
	qdisc_reset_queue(sch);
}

static int wccp_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	struct net_device *dev = qdisc_dev(sch);
	struct wccp_net *wn = net_generic(dev_net(dev), wccp_net_id);
	int i;

	spin_lock_init(&agent->lock);
	INIT_LIST_HEAD(&agent->list);
	timer_setup(&agent->timer, wccp_timeout, 0);
	__skb_queue_head_init(&agent->waiting);
	qdisc_watchdog_init(&agent->watchdog, sch);
	agent->dev = dev;
	if (sch->parent != TC_H_ROOT) {
		NL_SET_ERR_MSG(extack, "wccp is a device's root qdisc");
		return -EOPNOTSUPP;
	}
	agent->echoes = kvcalloc(WCCP_ECHO_SETS * WCCP_ECHO_WAYS,
				 sizeof(*agent->echoes), GFP_KERNEL);
	if (!agent->echoes)
		return -ENOMEM;
	for (i = 0; i < WCCP_ECHO_SETS * WCCP_ECHO_WAYS; i++)
		agent->echoes[i].until = jiffies;
	get_random_bytes(&agent->key, sizeof(agent->key));
	sch->limit = dev->tx_queue_len ?: WCCP_QUEUE_PKTS;
	/* each packet has to come by: none may go around an empty queue */
	sch->flags &= ~TCQ_F_CAN_BYPASS;
	/* it tells the path's MTU */
	netif_keep_dst(dev);

	agent->tap.type = htons(ETH_P_ALL);
	agent->tap.dev = dev;
	agent->tap.func = wccp_hear;
	agent->tap.ignore_outgoing = true;
	dev_add_pack(&agent->tap);
	mutex_lock(&wn->mutex);
	list_add_tail(&agent->list, &wn->agents);
	mutex_unlock(&wn->mutex);
	tcp_wccp_note_agents(dev_net(dev), 1);
	return 0;
}

/* Also after an init that failed. */
static void wccp_destroy(struct Qdisc *sch)
{
	struct wccp_agent *agent = qdisc_priv(sch);
	struct wccp_net *wn;

	if (!agent->echoes)
		return;
	wn = net_generic(dev_net(agent->dev), wccp_net_id);
	mutex_lock(&wn->mutex);
	list_del(&agent->list);
	mutex_unlock(&wn->mutex);
	tcp_wccp_note_agents(dev_net(agent->dev), -1);
	dev_remove_pack(&agent->tap);
	qdisc_watchdog_cancel(&agent->watchdog);
	compat_timer_shutdown_sync(&agent->timer);
	kvfree(agent->echoes);
}

static int wccp_change_tx_queue_len(struct Qdisc *sch, unsigned int pkts)
{
	WRITE_ONCE(sch->limit, pkts ?: WCCP_QUEUE_PKTS);
	return 0;
}

static struct Qdisc_ops wccp_qdisc_ops __read_mostly = {
	.id		= "wccp",
	.priv_size	= sizeof(struct wccp_agent),
	.enqueue	= wccp_enqueue,
	.dequeue	= wccp_dequeue,
	.peek		= qdisc_peek_head,
	.init		= wccp_init,
	.reset		= wccp_reset,
	.destroy	= wccp_destroy,
	.change_tx_queue_len = wccp_change_tx_queue_len,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("wccp");

/* --- /proc/net/wccp --------------------------------------------------------- */

static void wccp_show_agent(struct seq_file *seq, struct wccp_agent *agent)
{
	struct wccp_counts counts;
	struct wccp_share share;
	bool alive, shares, crowded;
	struct wccp_edge edge;

	spin_lock_bh(&agent->lock);
	counts = agent->counts;
	share = agent->share;
	alive = wccp_is_alive(agent);
	shares = wccp_is_giving(agent);
	crowded = wccp_is_crowded(agent);
	edge = agent->edge;
	spin_unlock_bh(&agent->lock);
	if (!shares)
		memset(&share, 0, sizeof(share));
	seq_printf(seq, "%s %s %u %u %u %d %llu %llu %llu %llu %llu %llu %u %u %u\n",
		   agent->dev->name, alive ? "alive" : "deaf",
		   share.busy * 1000 >> WCCP_SHIFT, share.rate,
		   (u32)((u64)share.flows * 1000 >> WCCP_SHIFT),
		   (int)((s64)share.factor * 1000 / WCCP_ONE), counts.inserted,
		   counts.no_room, counts.lowered, counts.echoed, counts.told,
		   counts.joined, edge.threshold * 1000 >> WCCP_SHIFT,
		   (u32)((u64)edge.mean_pkts * 1000 >> WCCP_SHIFT), crowded);
}

static int wccp_show(struct seq_file *seq, void *unused)
{
	struct wccp_net *wn = net_generic(seq_file_single_net(seq),
					  wccp_net_id);
	struct wccp_agent *agent;

	seq_puts(seq, "device channel busy_permille bytes_per_s flows_permille change_permille inserted no_room lowered echoed told joined threshold_permille queue_permille crowded\n");
	mutex_lock(&wn->mutex);
	list_for_each_entry(agent, &wn->agents, list)
		wccp_show_agent(seq, agent);
	mutex_unlock(&wn->mutex);
	return 0;
}

/* "DEVICE BUSY_NS TIME_NS [QUEUE_PKTS]": what a driver says. */
static int wccp_write(struct file *file, char *text, size_t size)
{
	struct seq_file *seq = file->private_data;
	struct net *net = seq_file_single_net(seq);
	struct wccp_net *wn = net_generic(net, wccp_net_id);
	unsigned long long busy_ns, time_ns, queue_pkts;
	struct wccp_agent *agent;
	struct wccp_word word;
	char name[IFNAMSIZ], rest[2];
	bool told = false;
	int error = -ENODEV;

	if (!file_ns_capable(file, net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	BUILD_BUG_ON(IFNAMSIZ != 16);
	if (sscanf(text, "%15s %llu %llu %llu %1s", name, &busy_ns, &time_ns,
		   &queue_pkts, rest) == 4)
		told = true;
	else if (sscanf(text, "%15s %llu %llu %1s", name, &busy_ns, &time_ns,
			rest) != 3)
		return -EINVAL;
	word = (struct wccp_word){
		.time_ns = time_ns,
		.busy_ns = busy_ns,
		.queue_pkts = told ? wccp_queue(queue_pkts) : 0,
		.told = told,
	};
	mutex_lock(&wn->mutex);
	list_for_each_entry(agent, &wn->agents, list) {
		if (strcmp(agent->dev->name, name))
			continue;
		spin_lock_bh(&agent->lock);
		wccp_hear_channel(agent, &word);
		spin_unlock_bh(&agent->lock);
		error = 0;
	}
	mutex_unlock(&wn->mutex);
	return error;
}

static int __net_init wccp_net_init(struct net *net)
{
	struct wccp_net *wn = net_generic(net, wccp_net_id);

	mutex_init(&wn->mutex);
	INIT_LIST_HEAD(&wn->agents);
	if (IS_ENABLED(CONFIG_PROC_FS) &&
	    !proc_create_net_single_write("wccp", 0644, net->proc_net,
					  wccp_show, wccp_write, NULL))
		return -ENOMEM;
	return 0;
}

static void __net_exit wccp_net_exit(struct net *net)
{
	remove_proc_entry("wccp", net->proc_net);
}

static struct pernet_operations wccp_net_ops = {
	.init = wccp_net_init,
	.exit = wccp_net_exit,
	.id = &wccp_net_id,
	.size = sizeof(struct wccp_net),
};

static int __init wccp_module_init(void)
{
	int error = register_pernet_subsys(&wccp_net_ops);

	if (error)
		return error;
	error = register_qdisc(&wccp_qdisc_ops);
	if (error)
		unregister_pernet_subsys(&wccp_net_ops);
	return error;
}

static void __exit wccp_module_exit(void)
{
	unregister_qdisc(&wccp_qdisc_ops);
	unregister_pernet_subsys(&wccp_net_ops);
}

module_init(wccp_module_init);
module_exit(wccp_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("WCCP between IP and the device: a node lowers the rates that pass it");
MODULE_VERSION("0.1");
