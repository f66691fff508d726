// SPDX-License-Identifier: GPL-2.0-only
/*
 * A link whose rate, delay and loss change over time: tc qdisc add dev eth0 root lablink
 *
 *     loss(t)          FIFO of limit packets        rate(t)          delay(t)
 *   ----------> in ->  [ ] [ ] [ ] [ ] [head]  ->  server  ->  on the way, in order -> out
 *
 * A packet's time is decided when it leaves, not when it comes (as netem does it):
 * what waits while the rate changes leaves at the rate that is then. The server
 * works as a link does, one packet after the other; a packet is out of it when its
 * last byte is, and is part of the queue until then:
 *
 *   rate           begin = max(arrival, end of the packet before)
 *                  end   = the first time t with  integral of rate over begin..t = bytes
 *   opportunities  at each so many bytes pass that wait; what is not used is lost, and
 *                  a packet may need several (Mahimahi's link model, ATC 2015)
 *   out            max(out of the packet before, end + delay(end))
 *
 * At a constant rate these are netem's times, to the ns. Rate (or opportunities),
 * delay and loss are schedules: steps of a duration and a value, in a loop. All is
 * set by netlink (enum lablink_attr), by lab/ask/lablink.py.
 *
 * A change in place keeps the packets: what has been sent of the head stays sent.
 */

#include <linux/bits.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

/**
 * enum lablink_attr - what TCA_OPTIONS holds
 * @LABLINK_UNSPEC: none
 * @LABLINK_LIMIT: u32, packets that wait at most, the one being sent included
 * @LABLINK_SEED: u64, of the random numbers that loss takes; they start anew
 * @LABLINK_BEGIN: u64, CLOCK_MONOTONIC ns at which the schedules begin (began)
 * @LABLINK_MORE: flag, the steps in this message follow those that are there
 * @LABLINK_RATE: steps, values are bytes/s
 * @LABLINK_OPPORTUNITIES: steps, values are bytes that may pass at the end of each;
 *	it replaces a rate, and a rate replaces it
 * @LABLINK_DELAY: steps, values are ns
 * @LABLINK_LOSS: steps, values are probabilities times 2^32
 * @LABLINK_ATTRS: how many
 *
 * What is not there stays as it is. Steps are an array of struct lablink_step.
 */
enum lablink_attr {
	LABLINK_UNSPEC,
	LABLINK_LIMIT,
	LABLINK_SEED,
	LABLINK_BEGIN,
	LABLINK_MORE,
	LABLINK_RATE,
	LABLINK_OPPORTUNITIES,
	LABLINK_DELAY,
	LABLINK_LOSS,
	LABLINK_ATTRS,
};

#define LABLINK_ATTR_MAX	(LABLINK_ATTRS - 1)

/*
 * Work is counted in bytes * ns/s: 10^9 a byte, so that no division rounds what is
 * left of a packet. 2^34 bytes fit; a packet has less than 2^20.
 */
#define LABLINK_WORK_PER_BYTE	((u64)NSEC_PER_SEC)
#define LABLINK_STEPS_MAX	1048576
#define LABLINK_STEP_MIN_NS	((u64)NSEC_PER_USEC)
#define LABLINK_PERIOD_MAX_NS	BIT_ULL(60)	/* 36 years */
#define LABLINK_RATE_MAX	BIT_ULL(40)	/* bytes/s: 8.8 Tb/s */
#define LABLINK_BYTES_MAX	BIT_ULL(30)
#define LABLINK_DELAY_MAX_NS	(3600ULL * NSEC_PER_SEC)
#define LABLINK_LOSS_MAX	BIT_ULL(32)
#define LABLINK_LOOK_AHEAD	4096		/* steps, before others get the processor */
#define LABLINK_LIMIT_PKTS	1000		/* where none is told */

/**
 * struct lablink_step - of a schedule
 * @until_ns: its end, from the loop's begin; in a message: how long it lasts
 * @value: bytes/s, bytes, ns or a probability
 */
struct lablink_step {
	u64 until_ns;
	u64 value;
};

/**
 * struct lablink_schedule - values over time, in a loop
 * @steps: @count of them; none: the schedule is not there
 * @count: how many
 * @sum: of the values, to tell whether there is any
 */
struct lablink_schedule {
	struct lablink_step *steps;
	u32 count;
	u64 sum;
};

/**
 * struct lablink_service - how far the server has come with the packet at the head
 * @time_ns: all up to then is accounted for
 * @work: that is left
 * @loop_ns: when the loop began that @at is in; modulo 2^64
 * @at: the step
 * @taken: bytes of this step's opportunity that are used up
 */
struct lablink_service {
	u64 time_ns;
	u64 work;
	u64 loop_ns;
	u32 at;
	u64 taken;
};

/**
 * struct lablink - private area of the qdisc
 * @rate: bytes/s, or bytes if @opportunities
 * @delay: ns
 * @loss: probabilities
 * @opportunities: what @rate is
 * @begin_ns: of all schedules; modulo 2^64
 * @serving: the packet at the head has begun to leave
 * @service: where the server was when that was last looked at
 * @ahead: where it will be next: at the packet's end, or as far as was looked
 * @way: packets between server and end
 * @out_ns: when the newest of them will be out
 * @random: for loss
 * @watchdog: wakes the device
 */
struct lablink {
	struct lablink_schedule rate;
	struct lablink_schedule delay;
	struct lablink_schedule loss;
	bool opportunities;
	u64 begin_ns;
	bool serving;
	struct lablink_service service;
	struct lablink_service ahead;
	struct sk_buff_head way;
	u64 out_ns;
	struct rnd_state random;
	struct qdisc_watchdog watchdog;
};

/**
 * struct lablink_times - private area of a packet
 * @ns: when it came; on the way: when it will be out
 */
struct lablink_times {
	u64 ns;
};

static struct lablink_times *lablink_times(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct lablink_times));
	return (struct lablink_times *)qdisc_skb_cb(skb)->data;
}

/* --- schedules -------------------------------------------------------------- */

static u64 lablink_period_ns(const struct lablink_schedule *schedule)
{
	return schedule->steps[schedule->count - 1].until_ns;
}

/* Where is @phase_ns, 0 to the period? Steps end before what begins then. */
static u32 lablink_find(const struct lablink_schedule *schedule, u64 phase_ns)
{
	u32 low = 0, high = schedule->count - 1;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (schedule->steps[middle].until_ns > phase_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The value at a time that is not before the schedules' begin. */
static u64 lablink_value(const struct lablink *link,
			 const struct lablink_schedule *schedule, u64 time_ns)
{
	u64 phase_ns;

	if (!schedule->count)
		return 0;
	div64_u64_rem(time_ns - link->begin_ns, lablink_period_ns(schedule),
		      &phase_ns);
	return schedule->steps[lablink_find(schedule, phase_ns)].value;
}

/* Make @service be at the step that is at @time_ns, which is not before its time. */
static void lablink_seek(const struct lablink *link,
			 struct lablink_service *service, u64 time_ns)
{
	const struct lablink_schedule *rate = &link->rate;
	/* an opportunity can still be taken in the ns in which it is */
	u64 phase_ns = time_ns - link->opportunities - service->loop_ns;
	u64 period_ns = lablink_period_ns(rate), loops;

	service->time_ns = time_ns;
	if ((s64)phase_ns < 0 || rate->steps[service->at].until_ns > phase_ns)
		return;
	loops = div64_u64_rem(phase_ns, period_ns, &phase_ns);
	service->loop_ns += loops * period_ns;
	service->at = lablink_find(rate, phase_ns);
	service->taken = 0;
}

static void lablink_next_step(const struct lablink *link,
			      struct lablink_service *service)
{
	service->taken = 0;
	if (++service->at < link->rate.count)
		return;
	service->at = 0;
	service->loop_ns += lablink_period_ns(&link->rate);
}

/* --- the server ------------------------------------------------------------- */

/* At this step's rate, until its end or @until_ns. */
static void lablink_serve_rate(const struct lablink *link,
			       struct lablink_service *service, u64 until_ns)
{
	const struct lablink_step *step = &link->rate.steps[service->at];
	u64 end_ns = service->loop_ns + step->until_ns, need_ns = U64_MAX;
	bool ends = link->rate.count > 1 &&
		    (s64)(end_ns - service->time_ns) >= 0 && end_ns < until_ns;
	u64 time_ns;

	if (!ends)
		end_ns = until_ns;
	time_ns = end_ns - service->time_ns;
	if (step->value)
		need_ns = div64_u64(service->work, step->value);
	if (need_ns <= time_ns) {
		service->time_ns += need_ns;
		service->work = 0;
		return;
	}
	/* less than the work, so it cannot overflow */
	service->work -= time_ns * step->value;
	service->time_ns = end_ns;
	if (ends)
		lablink_next_step(link, service);
}

/* At this step's opportunity, if that is not after @until_ns. */
static void lablink_serve_opportunity(const struct lablink *link,
				      struct lablink_service *service,
				      u64 until_ns)
{
	const struct lablink_step *step = &link->rate.steps[service->at];
	u64 at_ns = service->loop_ns + step->until_ns, bytes, need;

	if (at_ns > until_ns) {
		service->time_ns = until_ns;
		return;
	}
	service->time_ns = at_ns;
	need = div64_u64(service->work, LABLINK_WORK_PER_BYTE);
	bytes = min(step->value - service->taken, need);
	service->work -= bytes * LABLINK_WORK_PER_BYTE;
	service->taken += bytes;
	if (service->work)
		lablink_next_step(link, service);
}

/*
 * Serve the packet at the head until it is done or time is @until_ns, or for
 * LABLINK_LOOK_AHEAD steps.
 */
static void lablink_serve(const struct lablink *link,
			  struct lablink_service *service, u64 until_ns)
{
	int steps;

	if (!link->rate.count) {
		service->work = 0;
		return;
	}
	if (!link->rate.sum) {
		service->time_ns = until_ns;
		return;
	}
	for (steps = 0; steps < LABLINK_LOOK_AHEAD; steps++) {
		if (!service->work || service->time_ns >= until_ns)
			return;
		if (link->opportunities)
			lablink_serve_opportunity(link, service, until_ns);
		else
			lablink_serve_rate(link, service, until_ns);
	}
}

static void lablink_look_ahead(struct lablink *link)
{
	link->ahead = link->service;
	lablink_serve(link, &link->ahead, U64_MAX);
}

/* The packet at the head begins to leave. */
static void lablink_begin(struct lablink *link, const struct sk_buff *skb)
{
	struct lablink_service *service = &link->service;
	u64 time_ns = max(service->time_ns, lablink_times(skb)->ns);

	if (link->rate.count)
		lablink_seek(link, service, time_ns);
	service->time_ns = time_ns;
	service->work = qdisc_pkt_len(skb) * LABLINK_WORK_PER_BYTE;
	link->serving = true;
	lablink_look_ahead(link);
}

/* The packet at the head has left the server and is on its way. */
static void lablink_send_on(struct Qdisc *sch)
{
	struct lablink *link = qdisc_priv(sch);
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);
	u64 time_ns = link->service.time_ns;

	link->serving = false;
	time_ns += lablink_value(link, &link->delay, time_ns);
	link->out_ns = max(link->out_ns, time_ns);
	lablink_times(skb)->ns = link->out_ns;
	/* it is no backlog any more, but the qdisc has it */
	qdisc_qstats_backlog_dec(sch, skb);
	__skb_queue_tail(&link->way, skb);
	sch->q.qlen++;
}

/* Do all that the server has done by @now_ns. */
static void lablink_advance(struct Qdisc *sch, u64 now_ns)
{
	struct lablink *link = qdisc_priv(sch);

	for (;;) {
		if (!link->serving) {
			if (!sch->q.head)
				return;
			lablink_begin(link, sch->q.head);
		}
		if (link->ahead.time_ns > now_ns)
			return;
		link->service = link->ahead;
		if (link->service.work)
			lablink_look_ahead(link);
		else
			lablink_send_on(sch);
	}
}

/* --- the queueing discipline ------------------------------------------------ */

static bool lablink_loses(struct lablink *link, u64 now_ns)
{
	return link->loss.count && prandom_u32_state(&link->random) <
	       lablink_value(link, &link->loss, now_ns);
}

static int lablink_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	struct lablink *link = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();

	/* as with netem, who sends does not learn of it */
	if (lablink_loses(link, now_ns)) {
		qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	}
	if (sch->q.qlen - skb_queue_len(&link->way) >= sch->limit)
		return qdisc_drop(skb, sch, to_free);
	lablink_times(skb)->ns = now_ns;
	return qdisc_enqueue_tail(skb, sch);
}

static struct sk_buff *lablink_dequeue(struct Qdisc *sch)
{
	struct lablink *link = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns(), next_ns = U64_MAX;
	struct sk_buff *skb;

	lablink_advance(sch, now_ns);
	skb = skb_peek(&link->way);
	if (skb && lablink_times(skb)->ns <= now_ns) {
		__skb_unlink(skb, &link->way);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (skb)
		next_ns = lablink_times(skb)->ns;
	if (link->serving)
		next_ns = min(next_ns, link->ahead.time_ns);
	/* the rate may be 0 for ever */
	if (next_ns != U64_MAX)
		qdisc_watchdog_schedule_ns(&link->watchdog, next_ns);
	return NULL;
}

static void lablink_reset(struct Qdisc *sch)
{
	struct lablink *link = qdisc_priv(sch);

	qdisc_watchdog_cancel(&link->watchdog);
	__skb_queue_purge(&link->way);
	qdisc_reset_queue(sch);
	link->serving = false;
	link->out_ns = 0;
}

/* --- settings --------------------------------------------------------------- */

static const struct nla_policy lablink_policy[LABLINK_ATTRS] = {
	[LABLINK_LIMIT]		= NLA_POLICY_MIN(NLA_U32, 1),
	[LABLINK_SEED]		= { .type = NLA_U64 },
	[LABLINK_BEGIN]		= { .type = NLA_U64 },
	[LABLINK_MORE]		= { .type = NLA_FLAG },
	[LABLINK_RATE]		= { .type = NLA_BINARY },
	[LABLINK_OPPORTUNITIES]	= { .type = NLA_BINARY },
	[LABLINK_DELAY]		= { .type = NLA_BINARY },
	[LABLINK_LOSS]		= { .type = NLA_BINARY },
};

static u64 lablink_value_max(int attr)
{
	switch (attr) {
	case LABLINK_RATE:
		return LABLINK_RATE_MAX;
	case LABLINK_OPPORTUNITIES:
		return LABLINK_BYTES_MAX;
	case LABLINK_DELAY:
		return LABLINK_DELAY_MAX_NS;
	default:
		return LABLINK_LOSS_MAX;
	}
}

/* Turn what the steps from @from on last into when they end, and add them up. */
static int lablink_add_up(struct lablink_schedule *schedule, u32 from, int attr,
			  struct netlink_ext_ack *extack)
{
	u64 end_ns = from ? schedule->steps[from - 1].until_ns : 0;
	u32 i;

	for (i = from; i < schedule->count; i++) {
		struct lablink_step *step = &schedule->steps[i];
		u64 lasts_ns = step->until_ns;
		/* one opportunity may be at the loop's very begin */
		bool begins = !i && attr == LABLINK_OPPORTUNITIES;

		if (lasts_ns > LABLINK_PERIOD_MAX_NS ||
		    (lasts_ns < LABLINK_STEP_MIN_NS && !(begins && !lasts_ns)) ||
		    step->value > lablink_value_max(attr)) {
			NL_SET_ERR_MSG(extack, "a step or its value is out of range");
			return -ERANGE;
		}
		end_ns += lasts_ns;
		if (end_ns > LABLINK_PERIOD_MAX_NS) {
			NL_SET_ERR_MSG(extack, "the loop is too long");
			return -ERANGE;
		}
		step->until_ns = end_ns;
		schedule->sum += step->value;
	}
	if (!end_ns) {
		NL_SET_ERR_MSG(extack, "a loop takes time");
		return -ERANGE;
	}
	return 0;
}

/*
 * Make @schedule what @attr says, behind the steps of @before if there are any.
 * Whatever comes of it, its steps are the caller's to free.
 */
static int lablink_parse(struct lablink_schedule *schedule,
			 const struct nlattr *attr,
			 const struct lablink_schedule *before,
			 struct netlink_ext_ack *extack)
{
	u32 count = nla_len(attr) / sizeof(*schedule->steps);
	u32 from = before ? before->count : 0;

	if (!count || nla_len(attr) % sizeof(*schedule->steps) ||
	    count > LABLINK_STEPS_MAX - from) {
		NL_SET_ERR_MSG(extack, "no steps, a part of one, or too many");
		return -EINVAL;
	}
	schedule->count = from + count;
	schedule->sum = from ? before->sum : 0;
	schedule->steps = kvmalloc_array(schedule->count,
					 sizeof(*schedule->steps),
					 GFP_KERNEL_ACCOUNT);
	if (!schedule->steps)
		return -ENOMEM;
	if (from)
		memcpy(schedule->steps, before->steps,
		       from * sizeof(*schedule->steps));
	memcpy(schedule->steps + from, nla_data(attr), nla_len(attr));
	return lablink_add_up(schedule, from, nla_type(attr), extack);
}

/**
 * struct lablink_change - what a message asks for
 * @rate: with steps, if it does
 * @delay: the same
 * @loss: the same
 * @opportunities: what @rate is
 */
struct lablink_change {
	struct lablink_schedule rate;
	struct lablink_schedule delay;
	struct lablink_schedule loss;
	bool opportunities;
};

static void lablink_free(struct lablink_change *change)
{
	kvfree(change->rate.steps);
	kvfree(change->delay.steps);
	kvfree(change->loss.steps);
}

static int lablink_parse_all(struct lablink_change *change,
			     const struct lablink *link, struct nlattr **tb,
			     struct netlink_ext_ack *extack)
{
	bool more = nla_get_flag(tb[LABLINK_MORE]);
	const struct nlattr *rate = tb[LABLINK_RATE] ?: tb[LABLINK_OPPORTUNITIES];
	int error = 0;

	if (tb[LABLINK_RATE] && tb[LABLINK_OPPORTUNITIES]) {
		NL_SET_ERR_MSG(extack, "a rate or opportunities, not both");
		return -EINVAL;
	}
	change->opportunities = !tb[LABLINK_RATE];
	if (more && rate && change->opportunities != link->opportunities) {
		NL_SET_ERR_MSG(extack, "rates cannot follow opportunities, nor they rates");
		return -EINVAL;
	}
	if (rate)
		error = lablink_parse(&change->rate, rate,
				      more ? &link->rate : NULL, extack);
	if (!error && tb[LABLINK_DELAY])
		error = lablink_parse(&change->delay, tb[LABLINK_DELAY],
				      more ? &link->delay : NULL, extack);
	if (!error && tb[LABLINK_LOSS])
		error = lablink_parse(&change->loss, tb[LABLINK_LOSS],
				      more ? &link->loss : NULL, extack);
	return error;
}

/* The server goes on with another rate, or its schedule from another begin. */
static void lablink_change_rate(struct lablink *link,
				struct lablink_change *change, u64 now_ns)
{
	struct lablink_service *service = &link->service;

	if (link->serving)
		lablink_serve(link, service, now_ns);
	if (change->rate.count) {
		swap(link->rate, change->rate);
		link->opportunities = change->opportunities;
	}
	service->loop_ns = link->begin_ns;
	service->at = 0;
	service->taken = 0;
	if (!link->serving)
		return;
	if (link->rate.count)
		lablink_seek(link, service, service->time_ns);
	lablink_look_ahead(link);
}

static int lablink_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct lablink *link = qdisc_priv(sch);
	struct lablink_change change = {};
	struct nlattr *tb[LABLINK_ATTRS];
	u64 now_ns, begin_ns = link->begin_ns;
	int error;

	if (!opt)
		return -EINVAL;
	error = nla_parse_nested(tb, LABLINK_ATTR_MAX, opt, lablink_policy,
				 extack);
	if (error)
		return error;
	if (tb[LABLINK_BEGIN])
		begin_ns = nla_get_u64(tb[LABLINK_BEGIN]);
	if ((s64)(ktime_get_ns() - begin_ns) < 0) {
		NL_SET_ERR_MSG(extack, "the schedules' begin is not before now");
		return -EINVAL;
	}
	error = lablink_parse_all(&change, link, tb, extack);
	if (error)
		goto free;

	sch_tree_lock(sch);
	now_ns = ktime_get_ns();
	lablink_advance(sch, now_ns);
	if (tb[LABLINK_LIMIT])
		sch->limit = nla_get_u32(tb[LABLINK_LIMIT]);
	if (tb[LABLINK_SEED])
		prandom_seed_state(&link->random,
				   nla_get_u64(tb[LABLINK_SEED]));
	link->begin_ns = begin_ns;
	if (change.rate.count || tb[LABLINK_BEGIN])
		lablink_change_rate(link, &change, now_ns);
	if (change.delay.count)
		swap(link->delay, change.delay);
	if (change.loss.count)
		swap(link->loss, change.loss);
	sch_tree_unlock(sch);
	/* what leaves next may do so at another time now */
	if (sch->q.qlen)
		qdisc_watchdog_schedule_ns(&link->watchdog, now_ns);
free:
	lablink_free(&change);
	return error;
}

static int lablink_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct lablink *link = qdisc_priv(sch);

	qdisc_watchdog_init(&link->watchdog, sch);
	__skb_queue_head_init(&link->way);
	prandom_seed_state(&link->random, 0);
	link->begin_ns = ktime_get_ns();
	link->service.loop_ns = link->begin_ns;
	sch->limit = LABLINK_LIMIT_PKTS;
	return opt ? lablink_change(sch, opt, extack) : 0;
}

/* Also after an init that failed. */
static void lablink_destroy(struct Qdisc *sch)
{
	struct lablink *link = qdisc_priv(sch);

	qdisc_watchdog_cancel(&link->watchdog);
	kvfree(link->rate.steps);
	kvfree(link->delay.steps);
	kvfree(link->loss.steps);
}

static struct Qdisc_ops lablink_qdisc_ops __read_mostly = {
	.id		= "lablink",
	.priv_size	= sizeof(struct lablink),
	.enqueue	= lablink_enqueue,
	.dequeue	= lablink_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= lablink_init,
	.change		= lablink_change,
	.reset		= lablink_reset,
	.destroy	= lablink_destroy,
	.owner		= THIS_MODULE,
};

/* how the core asks for it from 6.9 on; before, by the module's own name */
MODULE_ALIAS("net-sch-lablink");

static int __init lablink_module_init(void)
{
	return register_qdisc(&lablink_qdisc_ops);
}

static void __exit lablink_module_exit(void)
{
	unregister_qdisc(&lablink_qdisc_ops);
}

module_init(lablink_module_init);
module_exit(lablink_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A link whose rate, delay and loss change over time");
