/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sch_wccp, which reads and writes segments, has to say to the sockets of
 * tcp_wccp and to hear from them.
 */
#ifndef TCP_WCCP_H
#define TCP_WCCP_H

#include <net/sock.h>

#include "estimators/wccp_option.h"

bool tcp_wccp_is_used(const struct sock *sk);
void tcp_wccp_request(const struct sock *sk, struct wccp_request *request);
void tcp_wccp_feedback(struct sock *sk, u32 ack_seq, s32 feedback, u8 hops);
void tcp_wccp_note_data(struct sock *sk);
void tcp_wccp_note_agents(struct net *net, int more);

#endif /* TCP_WCCP_H */
