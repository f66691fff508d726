# SPDX-License-Identifier: GPL-2.0-only
"""From a scenario to points: one per combination of axis values, algorithm and seed."""

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from lab.ask import linktraces, memory
from lab.ask import scenario as scenarios
from lab.ask.algorithms import ALGORITHMS, STOCK_SCTP, UDP, sctp_variant
from lab.ask.carries import (
    ETHERNET_BYTES,
    best_mss,
    full_frame_bytes,
    least_mbps,
    mean_links,
    payload_share,
)
from lab.ask.links import Link
from lab.ask.parts import UNDER_TEST, WIFI_AP, WIRELESS, Flow, Scenario
from lab.ask.places import Drawn
from lab.ask.seeds import START_SPREAD_S, derived_seed
from lab.ask.tables import AxisValue
from lab.common.errors import BadInput

TAP_PKTS, TAP_EVERY_MAX_BITS = 400_000, 8  # what run.packets may cost a point
# what the modules' tracepoints are called that a point asks for
RATIO_EVENTS = ("tcp_jitter_ratio", "sctp_jitter_ratio")  # alike but for SCTP's path
VERDICT_EVENTS = ("tcp_verdict", "sctp_verdict")
UNKNOWN_MBPS = 100.0


@dataclass(frozen=True)
class Point:
    """One run: a pure function of SPEC (what the lab is told) and BUILD (what it is made of)."""

    scenario_id: str
    algorithm: str
    seed: int
    axes: dict[str, AxisValue]
    spec: dict[str, Any]
    warmup_s: float
    bound_mbps: float
    build: str
    drawn: dict[str, Drawn] = field(default_factory=dict)  # at a random place: what the seed gave

    @cached_property
    def id(self) -> str:
        """Return the content hash that names this point's results."""
        text = json.dumps([self.spec, self.warmup_s, self.build], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def topology_key(self) -> str:
        """What a network must be like for this point. Where all pairs of hosts are at the same
        two places, it does for fewer pairs as well: a host that sends nothing is not there."""
        topology, spans = self.spec["topology"], self.spec["topology"]["spans"]
        if all(span == spans[0] for span in spans):
            topology = topology | {"spans": spans[:1]}
        return json.dumps([topology, self.spec["sctp"], self.extra_memory_mb], sort_keys=True)

    @property
    def extra_memory_mb(self) -> int:
        """What a guest must have for this point beyond what every guest has."""
        return self.spec.get("extra_memory_mb", 0)

    @property
    def pairs(self) -> int:
        """How many pairs of hosts the network must have."""
        return len(self.spec["topology"]["spans"])

    @property
    def has_verdicts(self) -> bool:
        return not set(VERDICT_EVENTS).isdisjoint(self.spec["traces"])

    def labels(self) -> dict[str, Any]:
        """Return what a result says of its point besides what was measured."""
        return {
            "scenario": self.scenario_id,
            "algorithm": self.algorithm,
            "seed": self.seed,
            "axes": self.axes,
            "bound_mbps": round(self.bound_mbps, 6),
            **({"drawn": self.drawn} if self.drawn else {}),
        }

    def describe(self) -> str:
        axes = "".join(
            f", {value}" if isinstance(value, str) else f", {name} {value:g}"
            for name, value in self.axes.items()
        )
        return f"{self.scenario_id}: {self.algorithm}{axes}, seed {self.seed}"


def expand(
    scenario: Scenario,
    algorithms: tuple[str, ...],
    seeds: list[int],
    build_key: Callable[[set[str], bool, bool], str],
) -> list[Point]:
    """Return every point of SCENARIO in a fixed order: axes, then algorithm, then seed. With
    run.harm each place has its rivals' own algorithms besides.

    BUILD_KEY names what a point with a set of algorithms is made of, whether it is wireless, and
    whether it has lablinks.
    """
    points = []
    for axes in grid(scenario):
        at = resolve(scenario, axes)
        drawn = {}
        for axis in scenario.axes:
            drawn |= axis.drawn(axes[axis.name])
        added = rival_algorithms(_spec(at, algorithms[0], 0)["flows"]) if at.run.harm else []
        for algorithm in dict.fromkeys((*algorithms, *added)):
            for seed in seeds:
                spec = _spec(at, algorithm, seed)
                points.append(
                    Point(
                        scenario_id=scenario.id,
                        algorithm=algorithm,
                        seed=seed,
                        axes=axes,
                        spec=spec,
                        warmup_s=at.run.warmup_s,
                        bound_mbps=bound_mbps(at, ALGORITHMS[algorithm].transport, seed),
                        build=build_key(
                            {flow["algorithm"] for flow in spec["flows"]},
                            at.medium is not None,
                            bool(spec["lablinks"]) or at.topology.has_ap,
                        ),
                        drawn=drawn,
                    )
                )
    return points


def rivals(flows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rivals among FLOWS, of a point's spec or of its result."""
    return [flow for flow in flows if not flow["under_test"] and not flow["cross"]]


def rival_algorithms(flows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the algorithms of the rivals among FLOWS of a point's spec, each once."""
    return list(dict.fromkeys(flow["algorithm"] for flow in rivals(flows)))


def grid(scenario: Scenario) -> Iterator[dict[str, AxisValue]]:
    """Give every combination of the axes' values, the last axis fastest."""
    for values in itertools.product(*(axis.values for axis in scenario.axes)):
        yield {axis.name: value for axis, value in zip(scenario.axes, values, strict=True)}


def resolve(scenario: Scenario, axes: dict[str, AxisValue]) -> Scenario:
    """Return SCENARIO with the axes set to one value each."""
    source = copy.deepcopy(scenario.source)
    for axis in scenario.axes:
        axis.apply(source, axes[axis.name])
    source.pop("axes", None)
    source["claims"] = []
    return scenarios.parse(scenario.id, source)


def start_shift_s(seed: int, flow: str) -> float:
    """Return how much later FLOW starts, in s. Without it seeds would be the same run again
    where nothing else is random, and flows would always meet in the same phase."""
    return derived_seed(seed, f"start {flow}") % 10**6 * 1e-6 * START_SPREAD_S


def _spec(at: Scenario, algorithm: str, seed: int) -> dict[str, Any]:
    links = {}
    for hop in at.topology.all_hops:
        link = at.links.get(hop, Link())
        links[hop] = vars(link) | {"seed": derived_seed(seed, hop)}  # a flat one: asdict() is slow
    flows: list[dict[str, Any]] = []
    udp: list[dict[str, Any]] = []
    spans: list[tuple[int, int]] = []  # of each pair of hosts: the hops between them
    for flow in at.flows:
        if flow.is_udp and not flow.rate_mbps:
            continue
        for i, name in enumerate(flow.names()):
            if not (i and flow.share_hosts):
                spans.append(flow.span(at.topology))
            pair = _station(at, flow, len(spans)) if at.topology.has_ap else len(spans)
            start_s = flow.start_s + i * flow.every_s
            start_s = round(start_s + start_shift_s(seed, flow.name if flow.together else name), 6)
            common = {
                "name": name,
                "pair": pair,
                "start_s": start_s,
                "duration_s": round((flow.stop_s or at.run.duration_s) - start_s, 6),
                "bytes": flow.bytes,
                "mss_bytes": flow.mss_bytes,
                "reverse": flow.reverse,
                "delay_ms": flow.delay_ms,
                "cross": flow.is_cross(at.topology),
                "span": flow.span(at.topology),
            }
            if flow.is_udp:
                bursts = {"on_s": flow.on_s, "off_s": flow.off_s}
                bursts["seed"] = derived_seed(seed, f"bursts {name}")
                udp.append(common | {"rate_mbps": flow.rate_mbps} | bursts)
                continue
            chosen = algorithm if flow.algorithm == UNDER_TEST else flow.algorithm
            _check_algorithm(flow, chosen, at)
            of_algorithm = {
                "repeats": flow.repeats,
                "pause_s": flow.pause_s,
                "mptcp": flow.mptcp,
                "kind": flow.name,
                "under_test": flow.under_test,
                "algorithm": chosen,
                "transport": ALGORITHMS[chosen].transport,
            }
            flows.append(common | of_algorithm)
    if at.topology.has_ap:  # whose stations are there, whoever sends
        spans = [(0, len(at.topology.hops) - 1)] * at.topology.stations
    if not flows and algorithm != UDP:
        raise BadInput(f"no flow has an algorithm: all are UDP, so --algorithms {UDP}")
    variant = sctp_variant({flow["algorithm"] for flow in flows})
    if variant == "stock" and at.sctp.is_patched:
        raise BadInput(f"sctp: only rwnd_bytes can be set for {STOCK_SCTP}, the unpatched module")
    traced = dict.fromkeys(VERDICT_EVENTS, at.run.truth)
    traced |= dict.fromkeys(RATIO_EVENTS, at.run.jitter_ratio)
    spec = {
        "topology": asdict(at.topology) | {"spans": spans},
        "medium": asdict(at.medium) | {"seed": _short_seed(seed)} if at.medium else None,
        "sctp": variant,
        "sctp_settings": asdict(at.sctp) if variant else {},
        "links": links,
        "lablinks": _lablinks(at, seed),
        "flows": flows,
        "udp": udp,
        "events": [
            {"at_s": event.at_s, "link": event.link, "changes": event.changes}
            for event in at.events
        ],
        "modules": {
            name: at.modules[name]
            for name in sorted({flow["algorithm"] for flow in flows} & at.modules.keys())
        },
        "packets": at.run.packets,
        "taps": list(at.topology.forward_hops) if at.run.truth or at.run.packets else [],
        "tap_every": _tap_every(at) if at.run.packets and not at.run.truth else 1,
        "traces": [name for name, on in traced.items() if on],
        "duration_s": at.run.duration_s,
        "sample_ms": at.run.sample_ms,
        "rng_seed": derived_seed(seed, "rng"),
    }
    extra_mb = memory.extra_mb(memory.packets_mb(spec, mean_links(spec)))
    seldom = {"extra_memory_mb": extra_mb, "sysctl": at.sysctl}
    return spec | {key: value for key, value in seldom.items() if value}  # others' ids stay


def _station(at: Scenario, flow: Flow, hosts: int) -> int:
    """Return the station (from 1) of the latest of so many HOSTS that flows have so far."""
    first = flow.station or 1
    before = sum(
        1 if other.share_hosts else other.count for other in at.flows[: at.flows.index(flow)]
        if not (other.is_udp and not other.rate_mbps)
    )  # fmt: skip
    return (first - 1 + hosts - 1 - before) % at.topology.stations + 1


def _check_algorithm(flow: Flow, chosen: str, at: Scenario) -> None:
    """Refuse for FLOW what the CHOSEN algorithm's transport cannot do there."""
    transport = ALGORITHMS[chosen].transport
    if transport == UDP:
        raise BadInput(f'flow {flow.name}: {UDP} is no algorithm: say transport = "{UDP}"')
    if flow.transport not in ("", transport):
        raise BadInput(f"flow {flow.name}: {chosen} is no algorithm of {flow.transport}")
    if at.medium and transport == "tfrc":
        raise BadInput(f"flow {flow.name}: {chosen} needs routers, a {at.topology.kind} has none")
    if at.topology.has_ap and ALGORITHMS[chosen].agent:
        raise BadInput(f"flow {flow.name}: {chosen} is for a {WIRELESS}, not a {WIFI_AP}")
    if flow.repeats and transport not in ("tcp", "sctp"):
        raise BadInput(f"flow {flow.name}: requests (repeats) are not for {chosen}")
    if flow.mptcp and transport != "tcp":
        raise BadInput(f"flow {flow.name}: mptcp: {chosen} is no algorithm of TCP")


def _lablinks(at: Scenario, seed: int) -> dict[str, dict]:
    """Return the hops whose packets get their time when they leave: where the rate changes, by
    events or a trace: its schedules (kind -> digest of the steps), how long before the point they
    begin, and the means of rate and loss after the warm-up."""
    hops: dict[str, dict] = {event.link: {} for event in at.events if event.rate_mbps is not None}
    for hop, link in at.links.items():
        if link.is_traced:
            schedules = linktraces.of_link(link, seed).values()
            mean = linktraces.at_point(link, seed, at.run.warmup_s, at.run.duration_s)
            hops[hop] = {
                "schedules": {schedule.kind: schedule.digest for schedule in schedules},
                "offset_s": linktraces.offset_s(seed),
                "rate_mbps": round(mean.rate_mbps, 6),
                "loss_pct": round(mean.loss_pct, 6),
            }
    return hops


def _tap_every(at: Scenario) -> int:
    """Return which share of the packets taps see: one in so many, a power of two, that they are
    TAP_PKTS or so at most."""
    rates = [
        max([at.links[hop].rate_mbps, *(event.rate_mbps or 0.0 for event in at.events)])
        for hop in at.topology.hops
        if hop in at.links and at.links[hop].rate_mbps
    ]
    if at.topology.tunnel:  # a packet in it has another identification
        return 1
    frame_bits = 8 * (at.topology.mtu_bytes + ETHERNET_BYTES)
    pkts = min(rates, default=UNKNOWN_MBPS) * 1e6 * at.run.duration_s / frame_bits
    return 1 << min(max(math.ceil(math.log2(pkts / TAP_PKTS)), 0), TAP_EVERY_MAX_BITS)


def _short_seed(seed: int) -> int:
    """Return the seed of the stations' backoffs, which ns-3 wants in 32 bits."""
    return derived_seed(seed, "medium") >> 32 | 1


def least_rate_mbps(spec: dict[str, Any]) -> float:
    """Return the least rate of a hop of SPEC that has one, as what a point costs goes by it."""
    rates = (link["rate_mbps"] for link in mean_links(spec).values() if link["rate_mbps"])
    return min(rates, default=0.0)  # of an outage as long as the point


def endless_text(at: Scenario) -> str:
    """Return what is to be said if the narrowest hop of the way never drops, else nothing."""
    links = {hop: at.links[hop] for hop in at.topology.hops if hop in at.links}  # not of a medium
    rated = {hop: link for hop, link in links.items() if link.rate_mbps}
    hop = min(rated, key=lambda name: rated[name].rate_mbps, default="")
    if not hop or not rated[hop].is_endless:
        return ""
    return (
        f"{hop} is the narrowest hop and has no queue_pkts: what waits there is never dropped, and"
        " in no figure of queues; put a hop with rate_mbps and queue_pkts before it"
    )


def bound_mbps(at: Scenario, transport: str = "tcp", seed: int = 1) -> float:
    """Return (1-p)C as goodput of TRANSPORT in Mb/s: the least, over the forward hops between first
    homes, of a hop's rate times what survives the losses from there on, times the largest payload's
    share of a frame that a flow has; where events or traces (at SEED) change a link, the mean over
    the time after the warm-up. What UDP takes of it is not subtracted: a flow that pushes it aside
    gets more. SCTP can exceed it where there are second homes, which carry its retransmissions. Of
    a wireless chain it is what one sender would get over one hop if nothing came back, as over the
    air of an access point."""
    measured = [flow for flow in at.flows if not flow.is_udp] or at.flows
    sizes = [flow.mss_bytes for flow in measured]
    mss_bytes = best_mss(transport, sizes, at.topology.tunnel)
    if at.medium:
        payload_bytes, frame_bytes = full_frame_bytes(transport, mss_bytes)
        return at.medium.one_hop_mbps(payload_bytes, frame_bytes - ETHERNET_BYTES)
    links = {hop: at.links.get(hop, Link()) for hop in at.topology.hops}
    since_s, mbit = 0.0, 0.0
    for event in at.events:
        from_s = max(since_s, at.run.warmup_s)
        if event.at_s > from_s:
            mbit += (event.at_s - from_s) * least_mbps(links, seed, from_s, event.at_s)
        since_s = event.at_s
        if event.link in links:
            links[event.link] = replace(links[event.link], **event.changes)
    from_s = max(since_s, at.run.warmup_s)
    mbit += (at.run.duration_s - from_s) * least_mbps(links, seed, from_s, at.run.duration_s)
    share = payload_share(transport, mss_bytes, at.topology.tunnel)
    return mbit / (at.run.duration_s - at.run.warmup_s) * share
