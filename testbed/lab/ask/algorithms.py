# SPDX-License-Identifier: GPL-2.0-only
"""The congestion control algorithms a scenario can name."""

import re
from dataclasses import dataclass

from lab.common.errors import BadInput

STOCK_SCTP = "sctp"
UDP = "udp"
KERNEL_MODULE_PREFIX = "tcp_"  # what the kernel itself puts before a name to find its module
NAME_MAX = 15  # TCP_CA_NAME_MAX, without the end


@dataclass(frozen=True)
class Algorithm:
    """NAME is what sysctl takes; OURS: built here; MODULE: what modprobe loads (None: built in);
    CLASSIFIES: its module tells what it takes each loss for (tcp_verdict.h, sctp_verdict.h);
    TIMES_PACKETS: it wants TIMESTAMP chunks (SCTP); AGENT: the queueing discipline that it has on
    the nodes of a wireless path, whose module is sch_AGENT."""

    name: str
    ours: bool
    module: str | None
    summary: str
    classifies: bool = False
    transport: str = "tcp"
    times_packets: bool = False
    agent: str = ""

    @property
    def parameter_modules(self) -> list[str]:
        """Return the modules that have its parameters."""
        return [name for name in (self.module, self.agent and f"sch_{self.agent}") if name]


class Algorithms(dict[str, Algorithm]):
    """Those that the lab knows, by name. Any other name is one of TCP that the kernel in use may
    have, or a user's own module: lab.run.backends asks."""

    def __missing__(self, name: str) -> Algorithm:
        return Algorithm(name, False, f"{KERNEL_MODULE_PREFIX}{name}", "of the kernel in use")


ALGORITHMS = Algorithms(
    (algorithm.name, algorithm)
    for algorithm in (
        Algorithm(
            "veno_jitter",
            True,
            "tcp_veno_jitter",
            "backlog and jitter ratio tell, bandwidth says where to go",
            True,
        ),
        Algorithm("jtcp", True, "tcp_jtcp", "jitter ratio tells random loss from congestion", True),
        Algorithm("veno03", True, "tcp_veno03", "TCP Veno as published in 2003", True),
        Algorithm("tabe", True, "tcp_tabe", "receiver-clocked bandwidth estimate (New Jersey)"),
        Algorithm(
            "wccp",
            True,
            "tcp_wccp",
            "the nodes of a wireless path say how fast to send (WCCP)",
            agent="wccp",
        ),
        Algorithm("reno", False, None, "the kernel's NewReno"),
        Algorithm("cubic", False, None, "the kernel's default"),
        Algorithm("veno", False, "tcp_veno", "the kernel's Veno"),
        Algorithm("westwood", False, "tcp_westwood", "the kernel's Westwood+"),
        Algorithm("vegas", False, "tcp_vegas", "the kernel's Vegas"),
        Algorithm("illinois", False, "tcp_illinois", "the kernel's Illinois"),
        Algorithm("cdg", False, "tcp_cdg", "the kernel's CAIA delay gradient"),
        Algorithm("bbr", False, "tcp_bbr", "the kernel's BBR v1"),
        Algorithm(
            "jsctp_abe",
            True,
            "sctp_jsctp",
            "JSCTP: jitter ratio tells losses apart, goes to the measured bandwidth",
            True,
            transport="sctp",
            times_packets=True,
        ),
        Algorithm(
            "jsctp",
            True,
            "sctp_jsctp",
            "JSCTP with the jitter ratio alone",
            True,
            transport="sctp",
            times_packets=True,
        ),
        Algorithm("rfc9260", True, "sctp", "SCTP, patched: what sctp does", transport="sctp"),
        Algorithm(
            "uddj",
            True,
            None,
            "TFRC whose losses one-way delay jitter tells apart",
            True,
            transport="tfrc",
        ),
        Algorithm(
            "classify",
            True,
            None,
            "UDDJ as its paper has it: TFRC's rate control, and losses told apart",
            True,
            transport="tfrc",
        ),
        Algorithm("tfrc", True, None, "TFRC, RFC 5348", transport="tfrc"),
        Algorithm(
            "wireless",
            True,
            None,
            "TFRC with an oracle: it is told which losses are random",
            True,
            transport="tfrc",
        ),
        Algorithm(STOCK_SCTP, False, "sctp", "the kernel's SCTP, unpatched", transport="sctp"),
        Algorithm(UDP, False, None, "none: of scenarios whose flows are all UDP", transport="udp"),
    )
)


def is_algorithm_name(name: str) -> bool:
    """Say whether a kernel could have an algorithm of this NAME."""
    return bool(re.fullmatch(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}", name))


def sctp_variant(names: set[str]) -> str:
    """Return which sctp.ko flows of these algorithms need: stock, patched or, for none, nothing."""
    variants = {
        "stock" if name == STOCK_SCTP else "patched"
        for name in names
        if ALGORITHMS[name].transport == "sctp"
    }
    if len(variants) > 1:
        raise BadInput(f"{STOCK_SCTP} is an unpatched module: no other SCTP can run beside it")
    return variants.pop() if variants else ""
