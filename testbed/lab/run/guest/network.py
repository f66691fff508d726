# SPDX-License-Identifier: GPL-2.0-only
"""The network of a batch's points, and what each of them sets in it."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mininet.net import Mininet

from lab.ask import qdiscs, topologies
from lab.ask.algorithms import ALGORITHMS
from lab.ask.lablink import SCHEDULES, begin_lablink, change_lablink, set_lablink
from lab.ask.links import Link, change_link, link_of, set_link
from lab.run.guest.namespaces import NetworkNamespaceOf
from lab.run.guest.settings import write_sysctl
from lab.run.guest.turns import sleep_until_ns
from lab.run.guest.wireless import Air

OUT = Path(os.environ["LAB_OUT"])
BIN = Path(os.environ["LAB_BIN"])
SCTP_SYSCTLS = Path("/proc/sys/net/sctp")
SCTP_TIMESTAMP_TYPE = 190  # of those that no one else uses
MEDIUM = {"program": str(BIN / "labmedium"), "autostart": False}
SUBFLOW_PORT = 40000  # of an MPTCP flow's second subflow, whose host has no other flow


@contextmanager
def few_files(nodes: int) -> Iterator[None]:
    """Meanwhile no process may open more files than a network of so many NODES asks for: mnexec
    closes each that might be open, and Mininet allows 16384, a second's work for every node."""
    Mininet.init()
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 128 + 8 * nodes), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


class Network:
    """One Mininet network that is up.

    HOPS: those forward, in order; DEVICES: hop -> interface whose queue it is, there and back; AIR:
    its wireless medium, if it has one.
    """

    def __init__(self, topology: dict):
        kind = topologies.KINDS[topology["kind"]]
        self.hops = topology["hops"]
        wireless = kind in (topologies.WirelessChain, topologies.WifiAp)
        self.has_ap = kind is topologies.WifiAp
        if self.has_ap:
            self.devices = kind.devices()
            shape = {"stations": topology["stations"], "medium": MEDIUM}
        elif wireless:
            self.devices = {}
            shape = {key: topology[key] for key in ("nodes", "spans")} | {"medium": MEDIUM}
        else:
            self.devices = topologies.devices(topology["hops"], topology["homes"])
            shape = {key: topology[key] for key in ("hops", "spans", "homes")}
        self.topo = kind(**shape)
        with few_files(len(self.topo.nodes())):
            self.net = Mininet(topo=self.topo, controller=None)
        self.air = Air(self.net, self.has_ap) if wireless else None
        self.net.start()
        topologies.finish(self.net, topology["offloads"], topology["ecn"], topology["mtu_bytes"])
        if topology["tunnel"]:
            mtu_bytes = topology["mtu_bytes"]
            topologies.add_tunnel(self.net, topology["tunnel"], len(self.hops), mtu_bytes)
        self.delayed: list[str] = []  # devices at which a flow's own delay is
        self.multipath: list[tuple[str, int]] = []  # senders of MPTCP flows
        self.sysctls: list[tuple[int, Path, str]] = []  # a host's process, whose value was what

    def node_of(self, host: tuple[str, int]):
        """Return the Mininet node at an end of a pair."""
        return self.net[self.topo.host(*host)]

    def owner_of(self, dev: str):
        """Return the Mininet node that has DEV."""
        return self.net[dev.split("-")[0]]

    def _beside(self, dev: str) -> NetworkNamespaceOf:
        return NetworkNamespaceOf(self.owner_of(dev).pid)

    def set(self, point: dict) -> None:
        """Let all that needs no time of the point's be as POINT says."""
        self._set_links(point["links"], point["lablinks"])
        self._set_own_delays(point["flows"] + point["udp"])
        self._set_subflows(point["flows"])
        self._set_sysctls(point.get("sysctl", {}))
        self._set_sctp(point["flows"], point["sctp_settings"])

    def clear(self) -> None:
        """Take all of it back but SCTP's settings, which each point has."""
        self._set_links({}, {})
        self._set_own_delays([])
        self._set_subflows([])
        self._set_sysctls({})

    def _set_links(self, links: dict, lablinks: dict) -> None:
        for hop, dev in self.devices.items():
            values = links.get(hop, {})
            with self._beside(dev):
                if hop in lablinks:
                    steps = schedules(lablinks[hop])
                    set_lablink(dev, link_of(values), values.get("seed", 0), steps)
                else:
                    set_link(dev, link_of(values), values.get("seed", 0))

    def _set_own_delays(self, flows: list[dict]) -> None:
        """Delay what comes to the hosts of those FLOWS that have a delay of their own; without
        FLOWS nobody's any more."""
        for dev in self.delayed:
            with self._beside(dev):
                qdiscs.delete(dev)
        self.delayed = []
        for flow in flows:
            if flow.get("delay_ms"):
                end, pair = receiver(flow)
                router = self.topo.places[pair - 1][end == "dst"]
                dev = f"r{router}-{self.topo.host(end, pair)}"
                with NetworkNamespaceOf(self.net[f"r{router}"].pid):
                    set_link(dev, Link(delay_ms=flow["delay_ms"]), 0)
                self.delayed.append(dev)

    def _set_subflows(self, flows: list[dict]) -> None:
        """Give those of FLOWS that are MPTCP's a second subflow; without FLOWS nobody any more."""
        for host in self.multipath:
            topologies.drop_subflow(self.net, self.topo, *host)
        self.multipath = [sender(flow) for flow in flows if flow.get("mptcp")]
        for host in self.multipath:
            topologies.add_subflow(self.net, self.topo, *host, SUBFLOW_PORT)

    def _set_sysctls(self, values: dict[str, str]) -> None:
        """Give all hosts these VALUES by name, and back what they had of the others."""
        for pid, path, before in self.sysctls:
            with NetworkNamespaceOf(pid):
                path.write_text(before)
        self.sysctls = []
        for node in self.net.hosts if values else []:
            if isinstance(node, topologies.Host):
                with NetworkNamespaceOf(node.pid):
                    for name, value in values.items():
                        self.sysctls.append((node.pid, *write_sysctl(name, value)))

    def _set_sctp(self, flows: list[dict], settings: dict[str, int]) -> None:
        """Give all hosts the SETTINGS, which an unpatched module does not have, and let those
        exchange TIMESTAMP chunks that have an SCTP flow which wants them, or all."""
        settings = {key: value for key, value in settings.items() if key != "rwnd_bytes"}
        always = bool(settings.pop("timestamps", 0))
        hosts: dict[tuple[str, int], bool] = {}
        for flow in flows:
            for host in (sender(flow), receiver(flow)):
                timed = always or ALGORITHMS[flow["algorithm"]].times_packets
                hosts[host] = hosts.get(host, False) or timed
        for (end, pair), timed in hosts.items():
            with NetworkNamespaceOf(self.node_of((end, pair)).pid):
                if (SCTP_SYSCTLS / "timestamp_chunk").exists():
                    values = settings | {"timestamp_chunk": SCTP_TIMESTAMP_TYPE * timed}
                    for name, value in values.items():
                        (SCTP_SYSCTLS / name).write_text(str(value))

    def begin_lablinks(self, point: dict, start_s: float) -> None:
        """Let traces be where the seed says when the point starts."""
        for hop, of in point["lablinks"].items():
            if of:
                dev = self.devices[hop]
                begin_ns = round(start_s * 1e9) - round(of["offset_s"] * 1e9)
                with self._beside(dev):
                    begin_lablink(dev, link_of(point["links"][hop]), begin_ns)

    def play(self, point: dict, start_s: float) -> None:
        """Change links when the events of POINT say so."""
        links = {hop: dict(link) for hop, link in point["links"].items()}
        for event in point["events"]:
            links[event["link"]] |= event["changes"]
            sleep_until_ns(round(start_s * 1e9) + round(event["at_s"] * 1e9))
            dev = self.devices[event["link"]]
            with self._beside(dev):
                change = change_lablink if event["link"] in point["lablinks"] else change_link
                change(dev, link_of(links[event["link"]]))


def schedules(of: dict) -> dict[str, bytes]:
    """Return the steps of a lablink's schedules, kind -> bytes."""
    digests = of.get("schedules", {})
    return {kind: (OUT / SCHEDULES / digest).read_bytes() for kind, digest in digests.items()}


def sender(flow: dict) -> tuple[str, int]:
    """Return where FLOW's data comes from: the end, src or dst, and the pair."""
    return "dst" if flow.get("reverse") else "src", flow["pair"]


def receiver(flow: dict) -> tuple[str, int]:
    return "src" if flow.get("reverse") else "dst", flow["pair"]
