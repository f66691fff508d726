# SPDX-License-Identifier: GPL-2.0-only
"""What packets under way may take of a guest's memory, from what a point's spec says.

All hosts and routers of a point are in one guest. What fills it is the packets that its path holds,
by its rate, delays and queues, and for each flow what its sockets may buffer, whichever is less:

    packets = 2 * least rate * round trip time / frame + queue_pkts of all hops that have a rate
    MB      = min(packets * PKT_BYTES, flows * FLOW_MB)

Twice, as BBR has up to two round trips' worth under way, whether a queue takes them or not.

Measured as the memory that guests have touched (the blocks of their memory's file) beyond the 55 MB
of one with hardly any packet, BBR on places of random-paths with path seed 20261125; the table is
in testbed/tests/test_memory.py. Where the queue is deep: place 54 (8 flows, 41185 packets of a
round trip and the queue) 5.1 kB for each, place 931 (18 flows, 38356) 4.9 kB. Where it is short:
place 33 (16 flows, a round trip of 13656 packets) 11 kB. Place 777, one flow with room for 255712
packets: 36 MB, which is what 16 MB of tcp_wmem and 16 MB of tcp_rmem (lab.ask.topologies) leave it.
A packet is in its sender's queue and, on its way, a clone, or beyond a loss in its receiver's.
"""

import math
from typing import Any

from lab.ask.paths import FULL_FRAME_BITS

PKT_BYTES = 5300
FLOW_MB = 40
SPARE_MB = 160  # of the 256 that every guest has, for packets: the kernel and programs take 60
SEGMENT_PKTS = 45  # full frames in one packet of the queue where segmentation is offloaded


def packets_mb(spec: dict[str, Any], links: dict[str, dict[str, Any]]) -> float:
    """Return how many MB packets of a point may take at once, at most. LINKS: those of SPEC, with
    the mean rate of traces."""
    flows = len(spec["flows"]) + len(spec["udp"])
    if spec["medium"]:  # the queues of nodes are short
        return 0.0
    events = spec["events"]
    rates = {
        hop: max(
            [link["rate_mbps"], *(_changed(e, "rate_mbps") for e in events if e["link"] == hop)]
        )
        for hop, link in links.items()
    }
    rtt_ms = sum(link["delay_ms"] for link in links.values())
    rtt_ms += max((flow["delay_ms"] for flow in [*spec["flows"], *spec["udp"]]), default=0.0)
    least_mbps = min((rate for rate in rates.values() if rate), default=0.0)
    on_path = least_mbps * 1e3 * rtt_ms / FULL_FRAME_BITS
    each = SEGMENT_PKTS if spec["topology"]["offloads"] is True else 1
    queued = sum(link["queue_pkts"] for hop, link in links.items() if rates[hop])
    return min((2 * on_path + queued * each) * PKT_BYTES * 1e-6, flows * FLOW_MB)


def _changed(event: dict[str, Any], key: str) -> float:
    return event["changes"].get(key) or 0.0


def extra_mb(needed_mb: float, guest_mb: int = 256) -> int:
    """Return how much more than GUEST_MB a guest is given whose packets need so much: nothing if
    they fit in SPARE_MB, else that it has twice, four times, ... as much, so that few sizes share
    boots."""
    if needed_mb <= SPARE_MB:
        return 0
    times = (needed_mb - SPARE_MB + guest_mb) / guest_mb
    return guest_mb * (2 ** math.ceil(math.log2(times)) - 1)
