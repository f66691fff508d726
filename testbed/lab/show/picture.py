# SPDX-License-Identifier: GPL-2.0-only
"""A scenario's path as a drawing in characters: hosts, routers, and what each hop does."""

from lab.ask.links import Link
from lab.ask.parts import SECOND, Flow, Scenario

ARROW, BACK = "==", "<--"


def lines(at: Scenario) -> list[str]:
    """Return the drawing of AT, a scenario whose axes have one value each (points.resolve)."""
    if at.topology.has_ap:
        return _access_point(at)
    if at.medium:
        return _chain(at)
    drawn = _way(at, "", "src", "dst", "r")
    if at.topology.homes > 1:
        drawn += ["", "second homes:", *_way(at, SECOND, "src", "dst", "s")]
    return drawn


def _way(at: Scenario, prefix: str, first: str, last: str, router: str) -> list[str]:
    """Return the forward hops with what each does under its name, and the way back below."""
    hops = [prefix + hop for hop in at.topology.hops]
    columns = [[hop, *properties(at.links.get(hop, Link()))] for hop in hops]
    widths = [max(map(len, column)) for column in columns]
    path, notes = f"{first} -- ", []
    starts = []
    for i, (hop, width) in enumerate(zip(hops, widths, strict=True), 1):
        path += f"{router}{i} {ARROW}"
        starts.append(len(path))
        path += f"{hop.center(width, '=')}{ARROW}> "
    path += f"{router}{len(hops) + 1} -- {last}"
    for row in range(1, max(map(len, columns))):
        line = ""
        for start, width, column in zip(starts, widths, columns, strict=True):
            cell = column[row] if row < len(column) else ""
            line = line.ljust(start) + cell.center(width)
        notes.append(line.rstrip())
    drawn = [path, *notes]
    for hop in reversed(hops):
        told = properties(at.links.get(f"reverse_{hop}", Link()))
        if told:
            drawn.append(f"{BACK} reverse_{hop}: {', '.join(told)}")
    return drawn


def _chain(at: Scenario) -> list[str]:
    """Return the nodes of a wireless chain, and its one channel."""
    medium, nodes = at.medium, at.topology.nodes
    spacing = f"{medium.spacing_m:g} m"
    row = f" ~~{spacing}~~ ".join(map(str, range(1, nodes + 1)))
    if len(row) > 90:
        row = f"1 ~~{spacing}~~ 2 ~~{spacing}~~ 3 ... {nodes}"
    rts = "RTS/CTS" if medium.rts_threshold_bytes < at.topology.mtu_bytes else "no RTS/CTS"
    return [
        row,
        f"one 802.11b channel at {medium.rate_mbps:g} Mb/s, {rts}",
        f"decoded to {medium.range_m:g} m, sensed to {medium.carrier_sense_m:g} m",
        f"queue {medium.queue_pkts} pkts at each node",
    ]


def _access_point(at: Scenario) -> list[str]:
    """Return the wire to the access point, its stations, and the channel."""
    medium, count = at.medium, at.topology.stations
    last = f"sta1 ... sta{count}" if count > 1 else "sta1"
    drawn = [f"server -- r1 {ARROW}wired{ARROW}> ap ~~{medium.distance_m:g} m~~ {last}"]
    for hop in at.topology.all_hops:
        told = properties(at.links.get(hop, Link()))
        if told:
            drawn.append(
                f"{BACK if hop.startswith('reverse_') else '-->'} {hop}: {', '.join(told)}"
            )
    streams = f", {medium.streams} streams" if medium.streams > 1 else ""
    drawn.append(
        f"one 802.11{medium.standard} channel of {medium.channel_width_mhz} MHz{streams},"
        f" {medium.phy_mbps:.4g} Mb/s at most; rates by Minstrel-HT"
    )
    for where, pkts, aqm in (
        ("at the access point for each station", medium.queue_pkts, medium.aqm),
        ("at each station", medium.station_queue_pkts, medium.station_aqm),
    ):
        drawn.append(f"queue {pkts} pkts, {aqm or 'drop-tail'} {where}")
    if medium.circle_radius_m:
        drawn.append(
            f"stations move on circles of {medium.circle_radius_m:g} m in"
            f" {medium.circle_period_s:g} s"
        )
    return drawn


def properties(link: Link) -> list[str]:
    """Return what LINK does to packets, one thing a text; nothing for a plain wire."""
    told = []
    if link.trace:
        told.append(f"rate of {_name(link.trace)}")
    elif link.rate_mbps:
        told.append(f"{link.rate_mbps:g} Mb/s")
    if link.bucket_bytes:
        told.append(f"policer, {link.bucket_bytes} bytes")
    elif link.queue_pkts:
        told.append(f"queue {link.queue_pkts} pkts{f', {link.aqm}' if link.aqm else ''}")
    if link.delay_ms or link.jitter_ms:
        spread = f" -+ {link.jitter_ms:g}" if link.jitter_ms else ""
        told.append(f"{link.delay_ms:g}{spread} ms")
    if link.delay_trace:
        told.append(f"delay of {_name(link.delay_trace)}")
    if link.loss_trace:
        told.append(f"loss of {_name(link.loss_trace)}")
    if link.loss_pct:
        runs = f" in runs of {link.burst_pkts:g}" if link.burst_pkts else ""
        told.append(f"loses {link.loss_pct:g} %{runs}")
    if link.reorder_pct:
        told.append(f"reorders {link.reorder_pct:g} %")
    if link.retry_pct:
        told.append(f"repeats {link.retry_pct:g} %, {link.retry_ms:g} ms each")
    if link.aggregate_ms:
        told.append(f"lets go every {link.aggregate_ms:g} ms")
    return told


def _name(trace: str) -> str:
    return trace.rpartition("/")[2]


def flow_text(flow: Flow) -> str:
    """Return one line about FLOW: how many, of what, from when, over which hops."""
    what = "the algorithm under test" if flow.under_test else flow.algorithm
    if flow.is_udp:
        what = f"UDP, {flow.rate_mbps:g} Mb/s" if flow.rate_mbps else "UDP, silent"
    told = [f"{flow.count} x {what}" if flow.count > 1 else what]
    if flow.bytes:
        told.append(f"{flow.bytes} bytes" + (f", {flow.repeats} times" if flow.repeats else ""))
    if flow.start_s:
        told.append(f"from {flow.start_s:g} s")
    if flow.stop_s:
        told.append(f"until {flow.stop_s:g} s")
    if flow.reverse:
        told.append("on the way back")
    if flow.station:
        told.append(f"from station {flow.station} on")
    if flow.first_hop or flow.last_hop:
        told.append(f"from {flow.first_hop or 'the begin'} to {flow.last_hop or 'the end'}")
    return f"{flow.name}: {', '.join(told)}"
