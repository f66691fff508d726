/* SPDX-License-Identifier: GPL-2.0-only */
/* What core.c takes out of the kernel's tcp_input.c. */
#ifndef COST_CORE_H
#define COST_CORE_H

#include <net/tcp.h>

extern const int cost_flag_acked;	/* new data was acknowledged */
extern const int cost_flag_advanced;	/* snd_una advanced */

void cost_core_cong_control(struct sock *sk, u32 ack, u32 acked_sacked,
			    int flag, const struct rate_sample *rs);

#endif /* COST_CORE_H */
