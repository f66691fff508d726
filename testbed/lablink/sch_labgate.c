// SPDX-License-Identifier: GPL-2.0-only
/*
 * A gate before a device that takes whatever comes, as a TAP device does:
 * tc qdisc add dev wl0 root handle 1: labgate && tc qdisc add dev wl0 parent 1:1 fq_codel
 *
 *     packets -> child (pfifo, fq_codel, ...) -> gate -> device
 *
 * Who reads the device says how many bytes it may have been given since the qdisc
 * was made; what is more waits in the child, where sockets know of it (TCP small
 * queues) and an AQM works, as it does before a driver that has enough. It says so
 * by a frame that comes in by the device, EtherType 0x88b6 (IEEE 802 local
 * experimental 2), for 01:80:c2:00:00:0e, which also a bridge leaves to the device that
 * is its port; in network byte order:
 *
 *     version (u16, 1), 0 (u16), bytes in all (u64)
 *
 * The packet with which they are reached is given whole. Until the first frame the
 * gate is closed.
 */

#include <linux/atomic.h>
#include <linux/if_ether.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/pkt_sched.h>

#define LABGATE_TYPE	0x88b6
#define LABGATE_VERSION	1

/**
 * struct labgate_frame - what is said
 * @version: LABGATE_VERSION
 * @zero: nothing
 * @bytes: that the device may have been given since the qdisc was made
 */
struct labgate_frame {
	__be16 version;
	__be16 zero;
	__be64 bytes;
} __packed;

/**
 * struct labgate - private area of the qdisc
 * @child: where packets wait
 * @allowed: bytes, in all, that may pass
 * @passed: bytes that have; under the qdisc's lock
 * @tap: hears what is allowed
 * @sch: the qdisc
 */
struct labgate {
	struct Qdisc *child;
	atomic64_t allowed;
	u64 passed;
	struct packet_type tap;
	struct Qdisc *sch;
};

static int labgate_hear(struct sk_buff *skb, struct net_device *dev,
			struct packet_type *tap, struct net_device *orig_dev)
{
	struct labgate *gate = container_of(tap, struct labgate, tap);
	const struct labgate_frame *frame;
	struct labgate_frame buffer;

	frame = skb_header_pointer(skb, 0, sizeof(buffer), &buffer);
	if (skb->pkt_type == PACKET_MULTICAST && frame &&
	    frame->version == htons(LABGATE_VERSION)) {
		atomic64_set(&gate->allowed, be64_to_cpu(frame->bytes));
		__netif_schedule(qdisc_root(gate->sch));
	}
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

static int labgate_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct labgate *gate = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int result = qdisc_enqueue(skb, gate->child, to_free);

	if (result != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(result))
			qdisc_qstats_drop(sch);
		return result;
	}
	sch->qstats.backlog += bytes;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *labgate_dequeue(struct Qdisc *sch)
{
	struct labgate *gate = qdisc_priv(sch);
	struct sk_buff *skb;

	if (gate->passed >= (u64)atomic64_read(&gate->allowed))
		return NULL;
	skb = qdisc_dequeue_peeked(gate->child);
	if (!skb)
		return NULL;
	gate->passed += qdisc_pkt_len(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void labgate_reset(struct Qdisc *sch)
{
	struct labgate *gate = qdisc_priv(sch);

	qdisc_reset(gate->child);
}

static int labgate_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct labgate *gate = qdisc_priv(sch);

	gate->child = &noop_qdisc;
	if (sch->parent != TC_H_ROOT) {
		NL_SET_ERR_MSG(extack, "labgate is a device's root qdisc");
		return -EOPNOTSUPP;
	}
	gate->child = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
					TC_H_MAKE(sch->handle, 1), extack);
	if (!gate->child) {
		gate->child = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(gate->child, true);
	gate->sch = sch;
	gate->tap.type = htons(LABGATE_TYPE);
	gate->tap.dev = qdisc_dev(sch);
	gate->tap.func = labgate_hear;
	gate->tap.ignore_outgoing = true;
	dev_add_pack(&gate->tap);
	return 0;
}

/* Also after an init that failed. */
static void labgate_destroy(struct Qdisc *sch)
{
	struct labgate *gate = qdisc_priv(sch);

	if (gate->sch)
		dev_remove_pack(&gate->tap);
	qdisc_put(gate->child);
}

static int labgate_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return skb->len;
}

/* --- its one class, 1:1 ------------------------------------------------------ */

static int labgate_graft(struct Qdisc *sch, unsigned long class,
			 struct Qdisc *child, struct Qdisc **old,
			 struct netlink_ext_ack *extack)
{
	struct labgate *gate = qdisc_priv(sch);

	*old = qdisc_replace(sch, child ?: &noop_qdisc, &gate->child);
	return 0;
}

static struct Qdisc *labgate_leaf(struct Qdisc *sch, unsigned long class)
{
	struct labgate *gate = qdisc_priv(sch);

	return gate->child;
}

static unsigned long labgate_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void labgate_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static int labgate_dump_class(struct Qdisc *sch, unsigned long class,
			      struct sk_buff *skb, struct tcmsg *tcm)
{
	struct labgate *gate = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = gate->child->handle;
	return 0;
}

static const struct Qdisc_class_ops labgate_class_ops = {
	.graft	= labgate_graft,
	.leaf	= labgate_leaf,
	.find	= labgate_find,
	.walk	= labgate_walk,
	.dump	= labgate_dump_class,
};

static struct Qdisc_ops labgate_qdisc_ops __read_mostly = {
	.cl_ops		= &labgate_class_ops,
	.id		= "labgate",
	.priv_size	= sizeof(struct labgate),
	.enqueue	= labgate_enqueue,
	.dequeue	= labgate_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= labgate_init,
	.reset		= labgate_reset,
	.destroy	= labgate_destroy,
	.dump		= labgate_dump,
	.owner		= THIS_MODULE,
};

/* how the core asks for it from 6.9 on; before, by the module's own name */
MODULE_ALIAS("net-sch-labgate");

static int __init labgate_module_init(void)
{
	return register_qdisc(&labgate_qdisc_ops);
}

static void __exit labgate_module_exit(void)
{
	unregister_qdisc(&labgate_qdisc_ops);
}

module_init(labgate_module_init);
module_exit(labgate_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A gate before a device that takes whatever comes");
