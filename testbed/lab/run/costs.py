# SPDX-License-Identifier: GPL-2.0-only
"""What a point costs in the virtual lab, in seconds of one processor, by an estimate: to cut
batches, to say how long a run takes, and when a guest is hung. It is no part of a point's key.

    FLOW_START_S a flow, as two processes start,
    + duration * (SECOND_S + FLOW_SECOND_S a flow), as samples are taken of each,
    + PACKET_S a packet, as many as the slowest hop can carry.

Fitted to the processor time that guests used for a point, and the lab for its figures (least
squares of the relative error), at 22 points of TCP of five scenarios: flows 1 to 19, 13 to 240 s,
0.8 to 538 Mb/s, with and without taps, on two cores of a machine beside other work. Estimated over
measured at these: median 1.03, 0.80 to 1.16; what there was before had 0.18 by the median. With 12
others of seven scenarios: median 1.0, 32 of 34 within 0.80 to 1.41. The constants of SCTP, of
access points and of chains are from one, two and two points, so these say nothing of how good they
are; that of TFRC is from before. testbed/tests/test_costs.py has all 36. A faster machine takes
less, in the same proportions.
"""

from typing import Any

from lab.ask.paths import FULL_FRAME_BITS
from lab.ask.points import least_rate_mbps

FLOW_START_S, SECOND_S, FLOW_SECOND_S = 0.11, 0.004, 0.0009
PACKET_S = 12e-6
SCTP_PACKET_S = 70e-6
TFRC_PACKET_S = 180e-6  # two programs wake for each packet; from before, not measured again
PER_PACKET_S = {"sctp": SCTP_PACKET_S, "tfrc": TFRC_PACKET_S}  # of TCP and UDP: PACKET_S
WIRELESS_SECOND_S = 0.09  # of a chain, whatever the rates
WIFI_SECOND_S, STATION_SECOND_S = 0.33, 0.062  # of an access point, and of each of its stations


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
        per_second += packet_s * least_rate_mbps(spec) * 1e6 / FULL_FRAME_BITS
    return started_s + duration_s * per_second
