# SPDX-License-Identifier: GPL-2.0-only
"""What a point costs in the virtual lab, in seconds of one processor, by an estimate: to cut
batches, to say how long a run takes, and when a guest is hung. It is no part of a point's key.

    FLOW_START_S a flow, as two processes start,
    + duration * (SECOND_S + FLOW_SECOND_S a flow), as samples are taken of each,
    + PACKET_S a packet, as many as the slowest hop can carry or the flows have to send.

Fitted to what points took on a core of their own, the lab's time for their figures included (least
squares of the relative error), at 30 points of TCP of ten scenarios: flows 1 to 19, 13 to 240 s,
0.8 to 538 Mb/s, with and without taps. Estimated over measured at these: median 1.0, 26 of 30
within 0.7 to 1.4. The constants of SCTP, TFRC, access points and chains are from one to three
points each, so these say nothing of how good they are. testbed/tests/test_costs.py has all of
them. A slower machine takes longer, in the same proportions.
"""

import math
from typing import Any

from lab.ask.paths import FULL_FRAME_BITS
from lab.ask.points import least_rate_mbps

FLOW_START_S, SECOND_S, FLOW_SECOND_S = 0.018, 0.0001, 0.00019
PACKET_S = 5.6e-6
SCTP_PACKET_S = 18e-6
TFRC_PACKET_S = 35e-6  # two programs wake for each packet
PER_PACKET_S = {"sctp": SCTP_PACKET_S, "tfrc": TFRC_PACKET_S}  # of TCP and UDP: PACKET_S
WIRELESS_SECOND_S = 0.068  # of a chain, whatever the rates
WIFI_SECOND_S, STATION_SECOND_S = 0.23, 0.037  # of an access point, and of each of its stations


def point_s(spec: dict[str, Any]) -> float:
    """Return what a point of SPEC costs besides the boot that it shares."""
    duration_s = spec["duration_s"]
    flows = len(spec["flows"]) + len(spec["udp"])
    started_s = FLOW_START_S * flows
    per_second = SECOND_S + FLOW_SECOND_S * flows
    if stations := spec["topology"]["stations"]:
        per_second += WIFI_SECOND_S + STATION_SECOND_S * stations
    elif spec["medium"]:  # a fair part of it goes into processes that wake each other
        per_second += WIRELESS_SECOND_S
    else:
        transports = {flow["transport"] for flow in spec["flows"]}
        packet_s = max(PER_PACKET_S.get(transport, PACKET_S) for transport in transports | {"tcp"})
        pkts = duration_s * least_rate_mbps(spec) * 1e6 / FULL_FRAME_BITS
        return started_s + duration_s * per_second + packet_s * min(pkts, _most_pkts(spec))
    return started_s + duration_s * per_second


def _most_pkts(spec: dict[str, Any]) -> float:
    """Return how many full packets the flows of SPEC have to send, if all have an end."""
    if spec["udp"] or not all(flow["bytes"] for flow in spec["flows"]):
        return math.inf
    most_bytes = sum(flow["bytes"] * max(1, flow["repeats"]) for flow in spec["flows"])
    return most_bytes * 8 / FULL_FRAME_BITS
