// SPDX-License-Identifier: GPL-2.0-only
/*
 * A congestion control that never backs off, to see that the scorecard finds
 * out: it grows as Reno does, paced, but no loss takes anything from its window,
 * and what a timeout took comes back with the next ACK. Not for any network.
 */
#include <linux/module.h>
#include <net/tcp.h>

static void reckless_init(struct sock *sk)
{
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static u32 reckless_keep(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* The window in a smoothed round trip time, which is kept in eighths. */
static void reckless_pace(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 bytes = (u64)tcp_snd_cwnd(tp) * tp->mss_cache;

	sk->sk_pacing_rate = div_u64(bytes * 8 * USEC_PER_SEC, max(tp->srtt_us, 1U));
}

static void reckless_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);

	if (rs->acked_sacked <= 0)
		return;
	if (tcp_in_initial_slowstart(tp))
		tcp_snd_cwnd_set(tp, min(cwnd + rs->acked_sacked, tp->snd_cwnd_clamp));
	else if (cwnd < tp->snd_ssthresh)
		tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
	else
		tcp_cong_avoid_ai(tp, cwnd, rs->acked_sacked);
	reckless_pace(sk);
}

static struct tcp_congestion_ops reckless __read_mostly = {
	.init		= reckless_init,
	.ssthresh	= reckless_keep,
	.undo_cwnd	= reckless_keep,
	.cong_control	= reckless_main,
	.owner		= THIS_MODULE,
	.name		= "reckless",
};

static int __init reckless_register(void)
{
	return tcp_register_congestion_control(&reckless);
}

static void __exit reckless_unregister(void)
{
	tcp_unregister_congestion_control(&reckless);
}

module_init(reckless_register);
module_exit(reckless_unregister);

MODULE_DESCRIPTION("never backs off: an example for the scorecard");
MODULE_LICENSE("GPL");
