# SPDX-License-Identifier: GPL-2.0-only
"""An access point for Mininet: `net.addSwitch("ap1", cls=WifiAp, standard="ac")` and, for each
station, `net.addLink(host, "ap1", cls=WifiLink, distance_m=20)`.

The medium, its process and the queues before the MAC are those of the lab (lab.ask.topologies,
lab.ask.wifi, docs/medium.md); the access point itself is a bridge. The page is docs/mininet.md.
"""

import errno
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path

from mininet.link import Link
from mininet.log import error
from mininet.topo import Topo

from lab.ask import topologies
from lab.ask.seeds import derived_seed
from lab.ask.topologies import add_tap, run
from lab.ask.wifi import GATE_MODULE, Place, WifiMedium, check_place, check_wifi, set_gate
from lab.run.guest.namespaces import NetworkNamespaceOf
from veno_lab.keywords import LINK_KEYS, SWITCH_KEYS, from_mn, made, of_kind, refuse_unknown

CHANNEL_KEYS = {field.name for field in fields(WifiMedium)}
PLACE_KEYS = {field.name for field in fields(Place)}
QUEUE_KEYS = {"aqm", "station_aqm", "station_queue_pkts"}  # that only a gate can keep apart
SEED_BITS = 31  # of labmedium's seed
UP_ROUNDS, UP_POLL_S = 1000, 0.01


class WifiAp(topologies.WifiChannel):
    """An access point of 802.11n, ac or ax, with its channel: a switch whose stations are those
    hosts that a WifiLink ties to it. The keywords are those of lab.ask.wifi.WifiMedium, in the
    units of their names; SEED: of all that is random on the channel. GATE: the queues before the
    MAC are the kernel's, for which it needs a module of ours; without they are in the MAC,
    drop-tail. OFFLOADS: what comes by wire may be bursts of segmentation offload. What else there
    is goes to Mininet.
    """

    controlIntf = None  # Mininet gives one only to switches of the root namespace, and asks all

    def __init__(
        self, name, *, seed: int = 1, gate: bool = True, offloads: bool = False, **options
    ):
        known = {*CHANNEL_KEYS, *SWITCH_KEYS, "seed", "gate", "offloads"}
        refuse_unknown("WifiAp", options, known)
        gate, offloads = (
            of_kind("WifiAp", bool, *given) for given in (("gate", gate), ("offloads", offloads))
        )
        seed = of_kind("WifiAp", int, "seed", seed)
        of_channel = {key: options.pop(key) for key in CHANNEL_KEYS & options.keys()}
        channel = _channel(of_channel, gate)
        program = labmedium()
        options |= {"inNamespace": True}  # what it makes ends with it
        super().__init__(
            name, channel=channel, program=program, seed=derived_seed(seed, name) % 2**SEED_BITS,
            **options,
        )  # fmt: skip
        self.gate, self.offloads = gate, offloads

    @property
    def stations(self) -> list[str]:
        """Return the names of the stations, in the order in which the medium counts them."""
        return [tap.node.name for tap in self.taps[1::2]]

    def node_options(self, channel, taps):
        return channel.node_options(taps, [tap.link.place for tap in self.taps[1::2]])

    def start(self, controllers) -> None:
        """Bridge all interfaces, and let frames flow: Mininet's net.start() does it."""
        if not self.taps:
            raise ValueError(
                f"{self.name} has no station: addLink(HOST, {self.name}, cls=WifiLink)"
            )
        self._bridge()
        for tap in self.taps:
            self._set_queue(tap)
        options = [] if self.gate else ["--queue-pkts", str(self.channel.queue_pkts)]
        try:
            self.begin(self.channel, self.seed, options)
        except RuntimeError as complaint:
            self.process.wait()
            self.process = None
            raise RuntimeError(f"{self.name}: {self._with_names(str(complaint))}") from None
        for tap in self.taps:
            self._wait_until_up(tap)

    def stop(self, deleteIntfs=True) -> None:
        """Let no more frames flow: Mininet's net.stop() does it, and has more to stop if this
        fails."""
        try:
            super().stop(deleteIntfs)
        except RuntimeError as complaint:
            self.process = None
            error(f"*** {self.name}: {complaint}\n")
            super().stop(deleteIntfs)

    @property
    def bridge(self) -> str:
        return f"{self.name}-br"

    def _bridge(self) -> None:
        own = self.taps[::2]
        wired = [intf for intf in self.intfList() if intf not in own and intf.name != "lo"]
        for intf in wired:
            ends = (intf.link.intf1, intf.link.intf2) if intf.link else (intf,)
            for end in () if self.offloads else ends:
                run(end.node, topologies.offload_command(end.name, False))
        quiet = "[ ! -d /proc/sys/net/ipv6 ] || sysctl -qw net.ipv6.conf.all.disable_ipv6=1"
        run(
            self,
            quiet,
            f"ip link add {self.bridge} type bridge mcast_snooping 0",
            f"ip link set {self.bridge} up",
            *(f"ip link set {intf.name} master {self.bridge} up" for intf in (*wired, *own)),
        )

    def _set_queue(self, tap) -> None:
        """Set what waits before the MAC at TAP, packet by packet."""
        run(tap.node, topologies.offload_command(tap.name, False))
        if not self.gate:
            return
        of = self.channel
        queue = of.station_queue_pkts, of.station_aqm
        if tap.node is self:
            queue = of.queue_pkts, of.aqm
        try:
            with NetworkNamespaceOf(tap.node.pid):
                set_gate(tap.name, *queue)
        except OSError as complaint:
            if complaint.errno != errno.ENOENT:
                raise
            raise RuntimeError(
                f"WifiAp: this kernel has no {GATE_MODULE}: sudo make -C testbed/lablink install;"
                " or take gate=False, with drop-tail queues in the MAC"
            ) from None

    def _wait_until_up(self, tap) -> None:
        """Wait until the kernel knows that somebody reads from TAP."""
        state = f"/sys/class/net/{tap.name}/operstate"
        seen = f'[ "$(cat {state})" = up ]'
        if tap.node is self:
            seen += f' && [ "$(cat /sys/class/net/{tap.name}/brport/state)" = 3 ]'
        run(
            tap.node,
            f"for _ in $(seq {UP_ROUNDS}); do {{ {seen} ; }} && break; sleep {UP_POLL_S}; done",
        )

    def _with_names(self, complaint: str) -> str:
        """Return a COMPLAINT of labmedium's with the names of the stations that it counts."""
        named = self.stations
        text = re.sub(r"\bstation (\d+)\b", lambda at: named[int(at[1]) - 1], complaint)
        return text.removeprefix("labmedium did not come up: ")


class WifiLink(Link):
    """What ties a station to its WifiAp. DISTANCE_M: how far it is away; CIRCLE_RADIUS_M and
    CIRCLE_PERIOD_S: it moves on a circle around its place; without one of these it is as the access
    point's keywords of that name say."""

    def __init__(self, node1, node2, **options):  # Link's own would make a wire
        refuse_unknown("WifiLink", options, PLACE_KEYS | LINK_KEYS)
        ends = [isinstance(node, WifiAp) for node in (node1, node2)]
        if sum(ends) != 1:
            which = "both are" if all(ends) else "neither is"
            raise TypeError(f"WifiLink ties a host to a WifiAp; of {node1}, {node2} {which} one")
        ap = node1 if ends[0] else node2
        if ap.process:
            raise RuntimeError(f"{ap} has started: tie all its stations to it before net.start()")
        given = {key: options[key] for key in PLACE_KEYS & options.keys()}
        place = vars(ap.channel.place) | given
        self.place = made("WifiLink", Place, place, check_place)
        self.intf1, self.intf2 = (
            self._end(node, str(end), is_ap, options)
            for end, (node, is_ap) in enumerate(zip((node1, node2), ends, strict=True), 1)
        )
        ap.taps += [self.intf1, self.intf2] if ends[0] else [self.intf2, self.intf1]

    def _end(self, node, end: str, is_ap: bool, options: dict):
        port = options.get(f"port{end}")
        port = node.newPort() if port is None else port
        default = f"{node.name}-wlan{port}"
        if is_ap:
            default = f"{node.name}-wl{len(node.taps) // 2 + 1}"
        name = options.get(f"intfName{end}") or default
        params = options.get(f"params{end}") or {}
        return add_tap(node, name, self, port, options.get(f"addr{end}"), **params)


class OneAccessPoint(Topo):
    """A server, an access point and so many STATIONS: `mn --custom testbed/veno_lab/hops.py --topo
    wifi,stations=5,standard=ac,distance_m=20`. DISTANCE_M may have one for each: 5/20/40."""

    def build(self, stations: int = 0, distance_m: float | str = "", **options):
        places = [float(text) for text in str(distance_m).split("/") if text]
        count = int(stations) or len(places) or 1
        if len(places) > 1 and len(places) != count:
            raise ValueError(f"distance_m = {distance_m}: {len(places)} for {count} stations")
        options = from_mn(options)
        self.addLink(self.addHost("server"), self.addSwitch("ap1", cls=WifiAp, **options))
        for i in range(count):
            place = {"distance_m": places[i % len(places)]} if places else {}
            self.addLink(self.addHost(f"sta{i + 1}"), "ap1", cls=WifiLink, **place)


def labmedium() -> str:
    """Return where labmedium is; RuntimeError with the command that builds it."""
    if folder := os.environ.get("LAB_BIN"):  # inside the lab, which cannot build it there
        if (Path(folder) / "labmedium").exists():
            return str(Path(folder) / "labmedium")
        raise RuntimeError("WifiAp needs ns-3: testbed/setup medium, then run it again")
    from lab.run import build

    default = build.BUILD / "medium" / "labmedium"
    sources = [path.stat().st_mtime for path in build.MEDIUM_SOURCES.iterdir()]
    if (build.medium_folder() / "labmedium").exists():
        return str(build.medium_folder() / "labmedium")
    if default.exists() and default.stat().st_mtime > max(sources):
        return str(default)
    if found := shutil.which("labmedium"):
        return found
    raise RuntimeError(
        "WifiAp needs labmedium, which is not built: testbed/setup medium && make -C testbed/medium"
    )


def _channel(of_channel: dict, gate: bool) -> WifiMedium:
    """Return the channel that keywords describe."""
    if not gate:
        if own := sorted(QUEUE_KEYS & of_channel.keys()):
            raise ValueError(
                f"WifiAp: {own[0]} goes with a gate; with gate=False all queues are drop-tail, of"
                " queue_pkts"
            )
        of_channel = of_channel | {"aqm": "", "station_aqm": ""}
    aqms = {key: value or "" for key, value in of_channel.items() if key.endswith("aqm")}
    given = {key: value for key, value in of_channel.items() if value is not None}
    return made("WifiAp", WifiMedium, given | aqms, check_wifi)
