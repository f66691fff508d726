# SPDX-License-Identifier: GPL-2.0-only
"""The flows of a scenario, read and checked, and the algorithms that they may have."""

from lab.ask.algorithms import ALGORITHMS, UDP, is_algorithm_name
from lab.ask.links import Link
from lab.ask.parts import UNDER_TEST, WIFI_AP, WIRELESS, Flow, Scenario, Topology
from lab.ask.tables import build, is_name
from lab.common.errors import BadInput, unknown

MAX_FLOWS = 100
# What somebody may have meant who misspelled a name: not the two that are there for experiments
# with TFRC alone, nor the name of none.
OFFERED = tuple(name for name in ALGORITHMS if name not in ("classify", "wireless", UDP))
TRANSPORTS = ("tcp", "sctp", "tfrc", "udp")


def parse_flows(tables: list) -> tuple[Flow, ...]:
    """Return what [[flows]] say."""
    if not isinstance(tables, list) or not tables:
        raise BadInput("flows must be one or more [[flows]] tables")
    flows = tuple(build(Flow, table, f"flows.{i}") for i, table in enumerate(tables))
    for i, flow in enumerate(flows):
        _check_flow(f"flows.{i}", flow)
    names = [name for flow in flows for name in flow.names()]
    if len(set(names)) < len(names):
        raise BadInput("two flows have the same name (name1, name2 and so on where count is given)")
    if len(names) > MAX_FLOWS:
        raise BadInput(f"{len(names)} flows: at most {MAX_FLOWS}")
    alone = all(flow.is_udp for flow in flows)
    if not alone and not any(flow.under_test and flow.count for flow in flows):
        raise BadInput(
            'no flow is under test: leave "algorithm" out of those that are, and name theirs in'
            ' run.algorithms = ["veno_jitter"]'
        )
    return flows


def _check_flow(where: str, flow: Flow) -> None:
    if not 0 <= flow.count <= 100:
        raise BadInput(f"{where}.count = {flow.count}: between 0 and 100 flows")
    if flow.start_s < 0 or flow.bytes < 0 or (flow.stop_s and flow.stop_s <= flow.start_s):
        raise BadInput(f"{where}: start_s and bytes cannot be negative, stop_s follows start_s")
    if flow.repeats and not (flow.bytes and 0 < flow.repeats <= 1_000_000):
        raise BadInput(f"{where}.repeats: 1 to 1000000 requests, each of the flow's bytes")
    if flow.pause_s < 0 or (flow.pause_s and not flow.repeats):
        raise BadInput(f"{where}.pause_s: not negative, and with repeats")
    if flow.together and flow.every_s:
        raise BadInput(f"{where}: together or every_s, not both")
    if flow.mptcp and (flow.is_udp or (flow.share_hosts and flow.count > 1)):
        raise BadInput(
            f"{where}.mptcp: of TCP, and of flows between hosts of their own: not with every_s or"
            " together"
        )
    if not 0 <= flow.delay_ms <= 60_000:
        raise BadInput(f"{where}.delay_ms = {flow.delay_ms:g}: 0 to 60000")
    if flow.every_s < 0:
        raise BadInput(f"{where}.every_s = {flow.every_s:g}: it cannot be negative")
    if flow.mss_bytes and not 88 <= flow.mss_bytes <= 32767:
        raise BadInput(f"{where}.mss_bytes = {flow.mss_bytes}: between 88 and 32767")
    _check_transport(where, flow)
    if not is_name(flow.name):
        raise BadInput(f"{where}.name = {flow.name!r}: letters, digits, - and _ only")
    if flow.algorithm != UNDER_TEST:
        check_algorithm(f"{where}.algorithm", flow.algorithm)


def _check_transport(where: str, flow: Flow) -> None:
    if flow.transport and flow.transport not in TRANSPORTS:
        raise unknown(f"{where}.transport", flow.transport, TRANSPORTS)
    if flow.is_udp and flow.algorithm != UNDER_TEST:
        raise BadInput(f"{where}: a udp flow has a rate_mbps and no algorithm")
    if not flow.is_udp and (flow.rate_mbps or flow.on_s or flow.off_s):
        raise BadInput(f'{where}.rate_mbps, on_s, off_s: only for transport = "udp"')
    if flow.on_s < 0 or flow.off_s < 0 or bool(flow.on_s) != bool(flow.off_s):
        raise BadInput(f"{where}: on_s and off_s are both above 0, or both left out")
    if not 0 <= flow.rate_mbps <= 10_000:
        raise BadInput(f"{where}.rate_mbps = {flow.rate_mbps:g}: between 0 and 10000")


def check_way(scenario: Scenario, flow: Flow) -> None:
    """Refuse a flow whose way makes no sense, or has nothing that limits it."""
    for key in ("first_hop", "last_hop"):
        hop = getattr(flow, key)
        if hop and hop not in scenario.topology.hops:
            raise unknown(f"hop in {key} of flow {flow.name}:", hop, scenario.topology.hops)
    first, last = flow.span(scenario.topology)
    if first > last:
        raise BadInput(f"flow {flow.name}: {flow.first_hop} comes after {flow.last_hop}")
    if flow.under_test and flow.is_cross(scenario.topology):
        raise BadInput(
            "a flow under test cannot be reverse: its figures are of the way forward"
            if flow.reverse
            else f"flow {flow.name}: a flow under test takes all hops, not first_hop to last_hop:"
            " its figures are of the whole way"
        )
    if scenario.topology.tunnel and (first, last) != (0, len(scenario.topology.hops) - 1):
        raise BadInput(f"flow {flow.name}: with topology.tunnel flows take all hops, in it")
    if flow.mptcp:
        _check_mptcp(scenario, flow)
    _check_on_medium(scenario, flow)
    way = flow.way(scenario.topology)
    if scenario.topology.mtu_bytes != Topology.mtu_bytes and not flow.mss_bytes:
        raise BadInput(f"flow {flow.name}: with topology.mtu_bytes it needs its mss_bytes")
    if scenario.medium or flow.is_udp:
        return
    links = [scenario.links.get(hop, Link()) for hop in way]
    back = [scenario.links.get(_opposite(hop), Link()) for hop in way]
    if any(link.bucket_bytes for link in links) and not any(
        link.delay_ms or (link.rate_mbps and not link.bucket_bytes) for link in (*links, *back)
    ):
        raise BadInput(
            f"flow {flow.name}: besides a policer its way {', '.join(way)} needs a delay or a rate,"
            " or it would lose without end in no time"
        )
    if not any(link.has_rate for link in links):
        raise BadInput(
            f"flow {flow.name}: none of the links {', '.join(way)} has rate_mbps or trace: data"
            " would flow without end in no time"
        )


def _check_on_medium(scenario: Scenario, flow: Flow) -> None:
    if flow.delay_ms and scenario.medium:
        raise BadInput(
            f"flow {flow.name}: delay_ms: a {WIRELESS} or {WIFI_AP} has no router for it"
        )
    if flow.station and not scenario.topology.has_ap:
        raise BadInput(f"flow {flow.name}: station: only a {WIFI_AP} has some")
    if not 0 <= flow.station <= scenario.topology.stations:
        raise BadInput(
            f"flow {flow.name}: station = {flow.station}: there are {scenario.topology.stations}"
        )


def _check_mptcp(scenario: Scenario, flow: Flow) -> None:
    if scenario.medium or scenario.topology.homes > 1:
        raise BadInput(f"flow {flow.name}: mptcp: on a dumbbell or chain with one home")
    if scenario.run.packets or scenario.run.truth:
        raise BadInput(
            f"flow {flow.name}: mptcp: not with run.packets or run.truth, which know a flow by one"
            " port"
        )


def _opposite(hop: str) -> str:
    return hop.removeprefix("reverse_") if hop.startswith("reverse_") else f"reverse_{hop}"


def check_algorithms(names: tuple[str, ...]) -> None:
    """Refuse NAMES that cannot be run."""
    if not names:
        raise BadInput("no algorithm to run")
    for name in names:
        check_algorithm("algorithms", name)


def check_algorithm(where: str, name: str) -> None:
    """Refuse what no kernel can have as a name; whether the one in use has it, it is asked."""
    if not is_algorithm_name(name):
        raise BadInput(f"{where}: {name!r} is no name of an algorithm")
