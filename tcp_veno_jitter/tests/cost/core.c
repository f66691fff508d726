// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core's share of an ACK: its own tcp_cong_control(), which is static and
 * merged into tcp_ack(). The kernel's file is compiled here as it is, from the
 * kernel's tree; the linker drops what the function below does not reach.
 */

#include "net/ipv4/tcp_input.c"

#include "core.h"

const int cost_flag_acked = FLAG_DATA_ACKED | FLAG_SND_UNA_ADVANCED;
const int cost_flag_advanced = FLAG_SND_UNA_ADVANCED;

void cost_core_cong_control(struct sock *sk, u32 ack, u32 acked_sacked,
			    int flag, const struct rate_sample *rs)
{
	tcp_cong_control(sk, ack, acked_sacked, flag, rs);
}
