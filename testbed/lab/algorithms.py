# SPDX-License-Identifier: GPL-2.0-only
"""The congestion control algorithms a scenario can name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Algorithm:
    """NAME is what sysctl takes; OURS: built here; MODULE: what modprobe loads (None: built in);
    CLASSIFIES: its module tells what it takes each loss for (tcp_verdict.h)."""

    name: str
    ours: bool
    module: str | None
    summary: str
    classifies: bool = False


ALGORITHMS = {
    algorithm.name: algorithm
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
        Algorithm("reno", False, None, "the kernel's NewReno"),
        Algorithm("cubic", False, None, "the kernel's default"),
        Algorithm("veno", False, "tcp_veno", "the kernel's Veno"),
        Algorithm("westwood", False, "tcp_westwood", "the kernel's Westwood+"),
        Algorithm("vegas", False, "tcp_vegas", "the kernel's Vegas"),
        Algorithm("illinois", False, "tcp_illinois", "the kernel's Illinois"),
        Algorithm("cdg", False, "tcp_cdg", "the kernel's CAIA delay gradient"),
        Algorithm("bbr", False, "tcp_bbr", "the kernel's BBR v1"),
    )
}
