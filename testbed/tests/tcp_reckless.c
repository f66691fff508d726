// SPDX-License-Identifier: GPL-2.0-only
/*
 * A congestion control that never backs off, to see that the lab finds out: the
 * window grows by what is acknowledged, in any state, and a loss takes nothing
 * from it. Not for any network.
 */
#include <linux/module.h>
#include <net/tcp.h>

static u32 reckless_keep(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void reckless_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (rs->acked_sacked > 0)
		tcp_snd_cwnd_set(tp, min_t(u32, tcp_snd_cwnd(tp) + rs->acked_sacked,
					   tp->snd_cwnd_clamp));
}

static struct tcp_congestion_ops reckless __read_mostly = {
	.ssthresh	= reckless_keep,
	.undo_cwnd	= reckless_keep,
	.cong_control	= reckless_main,
	.owner		= THIS_MODULE,
	.name		= "reckless",
};

static int __init reckless_init(void)
{
	return tcp_register_congestion_control(&reckless);
}

static void __exit reckless_exit(void)
{
	tcp_unregister_congestion_control(&reckless);
}

module_init(reckless_init);
module_exit(reckless_exit);

MODULE_DESCRIPTION("never backs off: for tests of the lab alone");
MODULE_LICENSE("GPL");
