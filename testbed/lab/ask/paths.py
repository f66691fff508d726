# SPDX-License-Identifier: GPL-2.0-only
"""The path of a scenario, read and checked: topology, links or a medium, what happens to them
during a run, and what hosts are set to."""

import re
from dataclasses import replace
from typing import Any

from lab.ask import linktraces
from lab.ask.carries import CUT_MBPS, ETHERNET_BYTES, TUNNELS
from lab.ask.linkrules import check_link
from lab.ask.links import GSO_FRAME_BYTES, Link
from lab.ask.medium import MTU_MAX_BYTES, RATES_MBPS, RTS_OFF_BYTES, Medium
from lab.ask.parts import AT_HOSTS, SECOND, WIFI_AP, WIRELESS, Event, Scenario, Sctp, Topology
from lab.ask.tables import build, convert, is_name
from lab.ask.wifi import WifiMedium, check_limits, check_wifi
from lab.common.errors import BadInput, unknown

# The forward hops of each topology; None: as the file names them. lab.ask.topologies builds them
# (that module needs Mininet, which the host side does without; a test holds the two against each
# other).
KINDS = {
    "dumbbell": ("bottleneck", "wireless"), "chain": None, WIRELESS: None, WIFI_AP: ("wired",),
}  # fmt: skip
MAX_HOPS = 20
MAX_HOMES = 2
MAX_STATIONS = 20
CARD_MBPS = 10_000  # of a host's network card, as lab.ask.topologies has it
FULL_FRAME_BITS = 8 * (1500 + ETHERNET_BYTES)


def parse_topology(table: dict) -> Topology:
    """Return what [topology] says, its hops named."""
    topology = build(Topology, table, "topology")
    if topology.kind not in KINDS:
        raise unknown("topology", topology.kind, KINDS)
    if not 1 <= topology.homes <= MAX_HOMES:
        raise BadInput(f"topology.homes = {topology.homes}: 1 or {MAX_HOMES}")
    _check_tunnel(topology)
    _check_offloads(topology)
    if not 544 <= topology.mtu_bytes <= 9000:
        raise BadInput(f"topology.mtu_bytes = {topology.mtu_bytes}: 544 to 9000")
    _check_stations(topology)
    if topology.kind == WIRELESS:
        return _wireless(topology)
    if topology.nodes:
        raise BadInput(f"topology.nodes: only a {WIRELESS} has a number of nodes")
    fixed = KINDS[topology.kind]
    if fixed:
        if topology.hops:
            raise BadInput(f"topology.hops: those of the {topology.kind} are {', '.join(fixed)}")
        return replace(topology, hops=fixed)
    if not 1 <= len(topology.hops) <= MAX_HOPS:
        raise BadInput(f"topology.hops: a {topology.kind} names its hops, 1 to {MAX_HOPS}")
    for hop in topology.hops:
        if not is_name(hop) or hop.startswith(("reverse_", SECOND)):
            raise BadInput(
                f"topology.hops: {hop!r}: letters, digits, - and _ only; reverse_ stands for the"
                f" way back of each, {SECOND} for those between second homes"
            )
    return topology


def _check_offloads(topology: Topology) -> None:
    if not isinstance(topology.offloads, bool) and topology.offloads != AT_HOSTS:
        raise BadInput(
            f"topology.offloads = {topology.offloads!r}: this must be true, false or {AT_HOSTS!r}"
        )
    if topology.offloads == AT_HOSTS and topology.is_wireless:
        raise BadInput(f"topology.offloads = {AT_HOSTS!r}: only of a dumbbell or chain")


def check_cards(scenario: Scenario) -> None:
    """Refuse what a host's card cannot do as it is made here: it sends at CARD_MBPS, and two
    segments that fit into one frame leave as one."""
    topology = scenario.topology
    if topology.offloads != AT_HOSTS:
        return
    for hop, link in scenario.links.items():
        if link.rate_mbps >= CARD_MBPS:
            raise BadInput(
                f"links.{hop}.rate_mbps = {link.rate_mbps:g}: with topology.offloads ="
                f" {AT_HOSTS!r} hosts send {CARD_MBPS} Mb/s"
            )
    if any(0 < flow.mss_bytes <= topology.mtu_bytes // 2 for flow in scenario.flows):
        raise BadInput(
            f"mss_bytes: with topology.offloads = {AT_HOSTS!r} two segments must not fit into one"
            f" frame of {topology.mtu_bytes} bytes"
        )


def _check_tunnel(topology: Topology) -> None:
    if topology.tunnel and topology.tunnel not in TUNNELS:
        raise unknown("topology.tunnel", topology.tunnel, TUNNELS)
    if topology.tunnel and (topology.is_wireless or topology.homes > 1):
        raise BadInput("topology.tunnel: only over a dumbbell or chain, with one home")


def _check_stations(topology: Topology) -> None:
    if topology.stations and not topology.has_ap:
        raise BadInput(f"topology.stations: only a {WIFI_AP} has some")
    if not topology.has_ap:
        return
    if topology.homes > 1:
        raise BadInput(f"topology.homes: a node of a {WIFI_AP} has one")
    if not 1 <= topology.stations <= MAX_STATIONS:
        raise BadInput(
            f"topology.stations = {topology.stations}: a {WIFI_AP} has 1 to {MAX_STATIONS}"
        )
    if topology.mtu_bytes > MTU_MAX_BYTES:
        raise BadInput(
            f"topology.mtu_bytes = {topology.mtu_bytes}: 802.11 carries {MTU_MAX_BYTES} at most"
        )


def _wireless(topology: Topology) -> Topology:
    if topology.homes > 1:
        raise BadInput(f"topology.homes: a node of a {WIRELESS} has one")
    if topology.hops:
        raise BadInput(f"topology.hops: those of a {WIRELESS} are hop1, hop2 and so on; give nodes")
    if topology.mtu_bytes > MTU_MAX_BYTES:
        raise BadInput(
            f"topology.mtu_bytes = {topology.mtu_bytes}: 802.11 carries {MTU_MAX_BYTES} at most"
        )
    if not 2 <= topology.nodes <= MAX_HOPS + 1:
        raise BadInput(f"topology.nodes = {topology.nodes}: a {WIRELESS} has 2 to {MAX_HOPS + 1}")
    agents = topology.agents if isinstance(topology.agents, tuple) else ()
    if not all(1 <= node <= topology.nodes for node in agents):
        raise BadInput(f"topology.agents = {list(agents)}: nodes are 1 to {topology.nodes}")
    return replace(topology, hops=tuple(f"hop{i}" for i in range(1, topology.nodes)))


def parse_medium(table: dict | None, topology: Topology) -> Medium | WifiMedium | None:
    """Return what [medium] says, TABLE, which only what shares a medium may have and has."""
    if topology.has_ap:
        wifi = build(WifiMedium, table or {}, "medium")
        check_wifi(wifi, "medium.")
        return wifi
    if not topology.is_wireless:
        if table is not None:
            raise BadInput(f"medium: only a {WIRELESS} or a {WIFI_AP} has one")
        return None
    medium = build(Medium, table or {}, "medium")
    for key in ("rate_mbps", "control_rate_mbps"):
        if getattr(medium, key) not in RATES_MBPS:
            raise BadInput(f"medium.{key} = {getattr(medium, key):g}: 802.11 DSSS has 1 and 2")
    limits = {
        "rts_threshold_bytes": (0, RTS_OFF_BYTES), "short_retry_limit": (1, 255),
        "rts_retry_limit": (1, 255), "long_retry_limit": (1, 255), "queue_pkts": (1, 10_000),
        "spacing_m": (1, 10_000), "range_m": (2, 100_000),
        "carrier_sense_m": (medium.range_m, 100_000), "loss_exponent": (2, 6),
        "capture_db": (6, 30), "circle_radius_m": (0, 10_000),
        "circle_period_s": (0, 100_000),
    }  # fmt: skip
    check_limits(medium, limits, "medium.")
    return medium


def parse_links(tables: dict, topology: Topology) -> dict[str, Link]:
    """Return hop -> what [links.HOP] says."""
    links = {}
    if tables and topology.is_wireless and not topology.has_ap:
        raise BadInput(f"links: a {topology.kind} has a [medium] instead")
    for hop, table in tables.items():
        if hop not in topology.all_hops:
            raise unknown(f"hop of the {topology.kind}", hop, topology.all_hops)
        link = links[hop] = build(Link, table, f"links.{hop}")
        _check_hop(f"links.{hop}", link)
        if link.queue_bdp and link.queue_pkts:
            raise BadInput(f"links.{hop}: give queue_pkts or queue_bdp, not both")
        if 0 < link.bucket_bytes < GSO_FRAME_BYTES and topology.has_bursts:
            raise BadInput(
                f"links.{hop}: a policer of {link.bucket_bytes} bytes would drop every burst of"
                f' offloads: set topology.offloads = false, or "{AT_HOSTS}"'
            )
        if 0 < link.bucket_bytes < topology.mtu_bytes + ETHERNET_BYTES:
            raise BadInput(f"links.{hop}: a policer of {link.bucket_bytes} bytes passes no frame")
    return links


def _check_hop(where: str, link: Link) -> None:
    check_link(where, link)
    linktraces.of_link(link, seed=1)  # which says what is wrong with a file


def sized(links: dict[str, Link], topology: Topology) -> dict[str, Link]:
    """Return LINKS with queue_bdp as queue_pkts, in full frames, one at least."""
    frame_bytes = topology.mtu_bytes + ETHERNET_BYTES
    sized = {}
    for hop, link in links.items():
        if link.queue_bdp:
            bdp_bytes = link.rate_mbps * base_rtt_ms(links, topology, hop) * 125
            pkts = max(round(link.queue_bdp * bdp_bytes / frame_bytes), 1)
            link = replace(link, queue_pkts=pkts)
            _check_hop(f"links.{hop}", link)
        sized[hop] = link
    return sized


def base_rtt_ms(links: dict[str, Link], topology: Topology, hop: str = "") -> float:
    """Return the sum of the hops' delays on the way that HOP is of (nothing: the first homes'),
    there and back."""
    second = hop.removeprefix("reverse_").startswith(SECOND)
    way = [SECOND + name if second else name for name in topology.hops]
    both = [*way, *(f"reverse_{name}" for name in way)]
    return sum(links[name].delay_ms for name in both if name in links)


def parse_sctp(table: dict) -> Sctp:
    """Return what [sctp] says."""
    sctp = build(Sctp, table, "sctp")
    limits = {
        "rwnd_bytes": (1500, 1 << 30), "miss_indications": (3, 255), "idle_retransmit": (0, 1),
        "timestamps": (0, 1),
    }  # fmt: skip
    for key, (least, most) in limits.items():
        if key in table and not least <= getattr(sctp, key) <= most:
            raise BadInput(f"sctp.{key} = {getattr(sctp, key)}: {least} to {most}")
    return sctp


def parse_sysctl(table: dict[str, Any], above: str = "") -> dict[str, str]:
    """Return what [sysctl] says, name -> value. A dot in a TOML key begins a table in a table."""
    found: dict[str, str] = {}
    for key, value in table.items():
        name = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            found |= parse_sysctl(value, name)
        elif not re.fullmatch(r"net(\.[A-Za-z0-9_-]+){2,}", name):
            raise BadInput(f"sysctl.{name}: only those of a host's own network: net.ipv4.tcp_sack")
        elif isinstance(value, str) and value and value.isprintable():
            found[name] = value
        else:
            found[name] = str(convert(int, value, f"sysctl.{name}"))
    return found


def parse_events(tables: list, links: dict[str, Link]) -> tuple[Event, ...]:
    """Return what [[events]] say, in their order in time, each cut as the rate or loss it is."""
    events = (build(Event, table, f"events.{i}") for i, table in enumerate(tables))
    now, resolved = dict(links), []
    for event in sorted(events, key=lambda event: event.at_s):
        link = now.get(event.link, Link())
        if event.cut is None:
            now[event.link] = replace(link, **event.changes)
        elif event.changes:
            raise BadInput(f"event at {event.at_s:g} s: cut goes with no other change")
        elif link.queue_pkts:
            rate_mbps = CUT_MBPS if event.cut else link.rate_mbps
            event = replace(event, rate_mbps=rate_mbps)
        else:
            event = replace(event, loss_pct=100.0 if event.cut else link.loss_pct)
        resolved.append(event)
    return tuple(resolved)


def check_event(scenario: Scenario, event: Event) -> None:
    """Refuse an event outside the run, or on a hop that cannot change so."""
    where = f"event at {event.at_s:g} s"
    if not 0 < event.at_s < scenario.run.duration_s:
        raise BadInput(f"{where}: it must lie within the run")
    if not event.changes:
        raise BadInput(f"{where}: give rate_mbps, loss_pct, delay_ms or cut")
    fixed = (hop for hop, link in scenario.links.items() if link.aqm or link.bucket_bytes)
    hops = [hop for hop in scenario.links if hop not in set(fixed)]
    if event.rate_mbps is not None:
        hops = [hop for hop in hops if scenario.links[hop].rate_mbps]
        hops = [hop for hop in hops if not scenario.links[hop].aggregate_ms]
        if not 0 < event.rate_mbps <= 100_000:
            raise BadInput(f"{where}: rate_mbps = {event.rate_mbps:g}: above 0, at most 100000")
    if event.link not in hops:
        raise unknown(f"{where}: link with a rate_mbps, no aqm and no policer", event.link, hops)
    if event.cut is None:
        _check_hop(f"{where}: {event.link}", replace(scenario.links[event.link], **event.changes))
