// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module's two handlers behind compat/tcp_cong.h, called by a kernel that
 * test_compat.py makes up. Prints how often each ran.
 */

#include <stdio.h>

#include "compat/tcp_cong.h"

static int acks, starts;

static void foo_main(struct sock *sk, const struct rate_sample *rs)
{
	acks += sk && rs;
}

static void foo_resume(struct sock *sk)
{
	starts += !!sk;
}

TCP_CONG_CONTROL(foo_cong_control, foo_main);
TCP_CONG_TX_START(foo_tx_start, foo_resume);

static const struct tcp_congestion_ops foo_ops = {
	.cong_control	= foo_cong_control,
	.TCP_CONG_TX_START_HOOK	= foo_tx_start,
};

int main(void)
{
	struct rate_sample rs = { 0 };
	struct sock sk = { 0 };

	kernel_ack(&foo_ops, &sk, &rs);
	kernel_ack(&foo_ops, &sk, &rs);
	kernel_event(&foo_ops, &sk, CA_EVENT_LOSS);
	kernel_event(&foo_ops, &sk, CA_EVENT_TX_START);
	printf("acks %d, starts %d\n", acks, starts);
	return 0;
}
