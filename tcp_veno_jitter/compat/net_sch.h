/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a queueing discipline's module is found by its name.
 *
 *   kernels   the core asks for  alias
 *   to 6.8    sch_NAME           none: the module's own name
 *   6.9 on    net-sch-NAME       MODULE_ALIAS_NET_SCH("NAME")
 */
#ifndef COMPAT_NET_SCH_H
#define COMPAT_NET_SCH_H

#include <net/pkt_sched.h>

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)
#endif

#endif /* COMPAT_NET_SCH_H */
