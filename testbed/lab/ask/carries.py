# SPDX-License-Identifier: GPL-2.0-only
"""What a path carries as payload: frames, tunnels, losses, cuts. Figures of results follow from it,
so it is part of each point's key (RESULT_SOURCES in lab.run.build)."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lab.ask import linktraces
from lab.ask.algorithms import UDP
from lab.ask.links import Link, link_of

ETHERNET_BYTES = 14
CUT_MBPS = 1e-9  # of a hop that queues and is cut; lablink takes it for none
# kind -> bytes that it puts around a packet, and its kernel module, as lab.ask.topologies has it
TUNNELS = {"vxlan": (50, "vxlan"), "ipip": (20, "ipip"), "gre": (24, "ip_gre")}
# transport -> of a full frame: the bytes that --mss counts, if not told; how many of them are
# options (TCP's timestamps, on every segment); what netem's rate counts besides: Ethernet, IPv4,
# and TCP, SCTP with its DATA chunk, UDP with TFRC's header, or UDP
FRAMES = {
    "tcp": (1460, 12, 14 + 20 + 20),
    "sctp": (1440, 0, 14 + 20 + 12 + 16),
    "tfrc": (1400, 0, 14 + 20 + 8 + 52),
    UDP: (1472, 0, 14 + 20 + 8),
}


def full_frame_bytes(transport: str, mss_bytes: int = 0) -> tuple[int, int]:
    """Return the payload of a full frame of TRANSPORT, and all of it."""
    default_bytes, option_bytes, header_bytes = FRAMES[transport]
    mss_bytes = mss_bytes or default_bytes
    return mss_bytes - option_bytes, mss_bytes + header_bytes


def payload_share(transport: str, mss_bytes: int = 0, tunnel: str = "") -> float:
    """Return which share of a full frame of TRANSPORT is payload, also in a TUNNEL."""
    payload_bytes, frame_bytes = full_frame_bytes(transport, mss_bytes)
    around_bytes = TUNNELS[tunnel][0] if tunnel else 0
    if mss_bytes:
        frame_bytes += around_bytes
    else:  # the path's MTU takes it from the payload
        payload_bytes -= around_bytes
    return payload_bytes / frame_bytes


def best_mss(transport: str, sizes: Iterable[int], tunnel: str = "") -> int:
    """Return which of the SIZES of segments of a path's flows carries most as payload."""
    return max(sizes, key=lambda mss_bytes: payload_share(transport, mss_bytes, tunnel))


def _best_share(spec: dict[str, Any], transport: str) -> float:
    """Return the largest share of payload that a flow of SPEC has, of UDP's where it is alone."""
    tunnel = spec["topology"]["tunnel"]
    sizes = [flow["mss_bytes"] for flow in spec["flows"] or spec["udp"]]
    return payload_share(transport, best_mss(transport, sizes, tunnel), tunnel)


def mean_links(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the links of SPEC, of what is traced with the mean rate and loss after the warm-up."""
    return {hop: link | spec["lablinks"].get(hop, {}) for hop, link in spec["links"].items()}


def least_mbps(links: dict[str, Link], seed: int, from_s: float, to_s: float) -> float:
    """Return the least of a hop's rate times what survives from there on, from FROM_S to TO_S."""
    hops = [
        linktraces.at_point(link, seed, from_s, to_s) if link.is_traced else link
        for link in links.values()
    ]
    return min(
        hop.rate_mbps * math.prod(1 - later.loss_pct / 100 for later in hops[i:])
        for i, (hop, link) in enumerate(zip(hops, links.values(), strict=True))
        if hop.rate_mbps or link.is_traced  # which may carry nothing for as long
    )


def carried_after_events(
    spec: dict[str, Any], transport: str, seed: int
) -> list[tuple[float, float]]:
    """Return when each event of a point's SPEC is, and what the way between first homes carries
    until the next one, in Mb/s of payload; 0 while a hop of it is cut."""
    share = _best_share(spec, transport)
    links = {hop: link_of(spec["links"][hop]) for hop in spec["topology"]["hops"]}
    found = []
    ends_s = [event["at_s"] for event in spec["events"][1:]] + [spec["duration_s"]]
    for event, end_s in zip(spec["events"], ends_s, strict=False):
        if event["link"] in links:
            links[event["link"]] = replace(links[event["link"]], **event["changes"])
        cut = any(0 < link.rate_mbps <= CUT_MBPS for link in links.values())
        mbps = 0.0 if cut else least_mbps(links, seed, event["at_s"], end_s) * share
        found.append((event["at_s"], mbps))
    return found


def residual_mbps(spec: dict[str, Any], transport: str, offered_mbps: list[float]) -> float:
    """Return what UDP leaves of the hops' rates as goodput of TRANSPORT, in Mb/s: as
    the bound, but less what each UDP flow of SPEC has OFFERED on the hops that it takes."""
    hops = spec["topology"]["hops"]
    links = mean_links(spec)
    least = math.inf
    for i, hop in enumerate(hops):
        survives = math.prod(1 - links[later]["loss_pct"] / 100 for later in hops[i:])
        taken = sum(
            offered
            for flow, offered in zip(spec["udp"], offered_mbps, strict=True)
            if not flow["reverse"] and flow["span"][0] <= i <= flow["span"][1]
        )
        if links[hop]["rate_mbps"]:
            least = min(least, (links[hop]["rate_mbps"] - taken) * survives)
    return max(least, 0.0) * _best_share(spec, transport) if math.isfinite(least) else 0.0
