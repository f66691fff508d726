/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding the socket of a connection.
 *
 *   kernels   __inet_lookup_established()
 *   to 6.17   (net, hashinfo, saddr, ...)
 *   6.18 on   (net, saddr, ...)
 *
 * Which of them the kernel has is read from its header (compat/Kbuild).
 */
#ifndef COMPAT_INET_LOOKUP_H
#define COMPAT_INET_LOOKUP_H

#include <net/inet_hashtables.h>
#include <net/tcp.h>

/**
 * compat_inet_lookup_established() - find a TCP socket by its four numbers
 * @net: namespace
 * @saddr: the peer's
 * @sport: the peer's
 * @daddr: ours
 * @dport: ours
 * @ifindex: where the segment came in
 *
 * Return: a socket of any kind with a reference (sock_gen_put()), or NULL.
 */
static inline struct sock *
compat_inet_lookup_established(struct net *net, __be32 saddr, __be16 sport,
			       __be32 daddr, __be16 dport, int ifindex)
{
#ifdef INET_LOOKUP_HAS_HASHINFO
	return __inet_lookup_established(net, net->ipv4.tcp_death_row.hashinfo,
					 saddr, sport, daddr, ntohs(dport),
					 ifindex, 0);
#else
	return __inet_lookup_established(net, saddr, sport, daddr,
					 ntohs(dport), ifindex, 0);
#endif
}

#endif /* COMPAT_INET_LOOKUP_H */
