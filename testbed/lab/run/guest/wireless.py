# SPDX-License-Identifier: GPL-2.0-only
"""A wireless medium, and what its stations have, for the time of a point."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mininet.net import Mininet

from lab.ask import topologies
from lab.ask.algorithms import ALGORITHMS
from lab.ask.medium import Medium
from lab.ask.wifi import WifiMedium, remove_gate, set_gate
from lab.run.guest.namespaces import NetworkNamespaceOf
from lab.run.guest.tracing import AgentSampler
from lab.run.guest.turns import MEDIUM_PRIORITY, with_priority


class Air:
    """The medium of NET: of an access point and its stations if it HAS_AP, else of a chain."""

    def __init__(self, net: Mininet, has_ap: bool):
        self.switch = net["medium"]
        self.has_ap = has_ap
        self.agents: set[str] = set()  # stations with queueing disciplines of an algorithm

    @property
    def taps(self) -> list:
        return self.switch.taps

    @property
    def usual(self) -> dict[str, Any]:
        """What a point says of a medium that is as it comes."""
        return asdict(self._channel()) | {"seed": 1}

    def _channel(self, **values) -> Medium | WifiMedium:
        return WifiMedium(**values) if self.has_ap else Medium(**values)

    def begin(self, point: dict, start_s: float, out: Path) -> None:
        """Let all be as POINT says, and the medium's time begin with the point's."""
        self._set_gates(point["medium"])
        self._start(point, start_s, out)
        self._set_agents(point)
        self._sample_agents(point, start_s, out)

    def end(self, out: Path) -> None:
        self._stop(out)
        self._set_gates(None)

    def _start(self, point: dict, start_s: float, out: Path) -> None:
        """Let the medium's time begin with the point's, so that every boot has the same one."""
        values = dict(point["medium"])
        seed = values.pop("seed")
        options = [
            "--start-at-s", f"{start_s:.9f}", "--duration-s", str(point["duration_s"]),
            "--sample-ms", str(point["sample_ms"]), "--counters", str(out / "medium.csv"),
            "--summary", str(out / "medium.json"),
        ]  # fmt: skip
        with with_priority(MEDIUM_PRIORITY):
            self.switch.begin(self._channel(**values), seed, options)
        self.dropped_before = self.switch.dropped_by_taps()

    def _set_gates(self, medium: dict | None) -> None:
        """Give the devices of an access point and its stations the gates and queues of MEDIUM; take
        them away without one."""
        for tap in self.taps if self.has_ap else []:
            of = "" if tap.node.name == "ap" else "station_"
            with NetworkNamespaceOf(tap.node.pid):
                if medium:
                    set_gate(tap.name, medium[f"{of}queue_pkts"], medium[f"{of}aqm"])
                else:
                    remove_gate(tap.name)

    def _set_agents(self, point: dict) -> None:
        """Give all stations the queueing disciplines that the algorithms of POINT want there, and
        take away those of the point before."""
        agents = {ALGORITHMS[flow["algorithm"]].agent for flow in point["flows"]} - {""}
        nodes = point["topology"]["agents"]
        if isinstance(nodes, bool):
            nodes = range(1, len(self.taps) + 1) if nodes else []
        given = {f"n{node}" for node in nodes} if agents else set()
        for tap in self.taps:
            device = f"dev {tap.name} root"
            commands = [f"tc qdisc del {device}"] * (tap.node.name in self.agents)
            if tap.node.name in given:
                commands += [f"tc qdisc add {device} {agent}" for agent in agents]
            if commands:
                topologies.run(tap.node, *commands)
        for agent in agents:
            Path(f"/sys/module/sch_{agent}/parameters/ask_medium").write_text("1")
        self.agents = given

    def _sample_agents(self, point: dict, start_s: float, out: Path) -> None:
        """Sample them from now on, if there are any."""
        nodes = {tap.node.name: tap.node.pid for tap in self.taps}
        nodes = {name: pid for name, pid in nodes.items() if name in self.agents}
        if nodes:
            end_s, every_ms = start_s + point["duration_s"], point["sample_ms"]
            AgentSampler(nodes, out / "agents.csv", start_s, end_s, every_ms).start()

    def _stop(self, out: Path) -> None:
        dropped = self.switch.dropped_by_taps() - self.dropped_before
        self.switch.end()
        told = json.loads((out / "medium.json").read_text())
        dropped += told["long_frames"]
        if told["refused_frames"]:
            raise RuntimeError(f"a kernel had no room for {told['refused_frames']} frames")
        if dropped:
            raise RuntimeError(f"{dropped} packets were lost before the medium had them")
