/* SPDX-License-Identifier: GPL-2.0-only */
/* Which way a socket's packets go out, and what waits for them there. */
#ifndef TFRC_TOOLS_QDISC_H
#define TFRC_TOOLS_QDISC_H

#include <net/if.h>
#include <stdbool.h>

struct egress {
	char device[IF_NAMESIZE];
	char qdisc[16];	  /* the one that is not fq, if there is any */
	bool keeps_times; /* fq, and nothing else, holds packets there */
};

/* Of FD, a connected socket; false if the kernel does not tell. */
bool egress_of(int fd, struct egress *egress);

#endif
