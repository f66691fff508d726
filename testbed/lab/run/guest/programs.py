# SPDX-License-Identifier: GPL-2.0-only
"""The programs that run while a point does: what receives, what sends, and what looks on."""

import os
import subprocess
from pathlib import Path

from lab.ask.algorithms import STOCK_SCTP
from lab.ask.links import link_of
from lab.run.guest.namespaces import NetworkNamespaceOf
from lab.run.guest.network import BIN, SUBFLOW_PORT, Network, receiver, sender
from lab.run.guest.turns import (
    FLOW_PRIORITY,
    PROBE_PRIORITY,
    SINK_PRIORITY,
    TAP_PRIORITY,
    with_priority,
)

SINK_PORT = 5001
UDP_SINK_PORT = 6000  # and on, where many share a host
SOURCE_PORT = 20000
UDP_SOURCE_PORT = 30000
SUBFLOW_SUFFIX = ".2"  # of its name in flows.csv
TFRC_PORT = 5100  # each flow has a receiver, and so a port, of its own
TFRC_ALGORITHMS = {"classify": ("uddj", "--law", "classify")}  # of tfrc-send, where not so named


class Programs:
    """Those of POINT, which starts at START_S, on the hosts of NETWORK; what they tell goes to
    files in the folder OUT."""

    def __init__(self, network: Network, point: dict, start_s: float, out: Path):
        self.network, self.point = network, point
        self.start_s, self.out = start_s, out

    def start_receivers(self) -> list[subprocess.Popen]:
        """Start them, and return them once they are ready."""
        flows = self.point["flows"]
        streams = [flow for flow in flows if flow["transport"] != "tfrc"]
        replies = {
            (self.network.topo.host(*receiver(flow)), stream_of(flow)): flow["bytes"]
            if flow.get("repeats")
            else 0
            for flow in streams
        }
        tfrc = [(i, flow) for i, flow in enumerate(flows) if flow["transport"] == "tfrc"]
        return [
            *(self._start_sink(*where, reply_after) for where, reply_after in replies.items()),
            *(self._start_tfrc_sink(i, flow) for i, flow in tfrc),
            *(self._start_udp_sink(i, flow) for i, flow in enumerate(self.point["udp"])),
        ]

    def start_taps(self) -> list[subprocess.Popen]:
        """Record what enters each hop that is to have a tap, and what leaves it; return what does
        once it is ready. See lab.measure.truth."""
        return [self._start_tap(hop) for hop in self.point["taps"]]

    def start_senders(self) -> list[subprocess.Popen]:
        """Start the probe and all that sends; they end with their flows."""
        return [
            *self._start_probe(),
            *(self._start_flow(i, flow) for i, flow in enumerate(self.point["flows"])),
            *(self._start_udp(i, flow) for i, flow in enumerate(self.point["udp"])),
        ]

    def join_samples(self) -> None:
        """Put the time series that TFRC flows wrote of themselves to those of the probe."""
        for samples in sorted(self.out.glob("samples-*.csv")):
            with (self.out / "flows.csv").open("a") as flows:
                flows.write(samples.read_text().partition("\n")[2])  # without the header

    def _start_sink(self, name: str, transport: str, reply_after: int):
        command = [str(BIN / "labflow"), "sink", "--transport", transport,
                   "--port", str(SINK_PORT)]  # fmt: skip
        rwnd_bytes = self.point["sctp_settings"].get("rwnd_bytes")
        if transport == "sctp" and rwnd_bytes:
            command += ["--rcvbuf", str(rwnd_bytes)]
        if reply_after:
            command += ["--reply-after", str(reply_after)]
        return self._start_and_wait(self.network.net[name], command, SINK_PRIORITY)

    def _start_tfrc_sink(self, index: int, flow: dict):
        command = [str(BIN / "tfrc-recv"), "-4", "--discard", "--quiet",
                   "--json", str(self.out / f"tfrc-recv-{index}.json"),
                   "--oracle", self._behind_queues(flow), "--ready-fd", "1",
                   str(TFRC_PORT + index)]  # fmt: skip
        return self._start_and_wait(self.network.node_of(receiver(flow)), command, SINK_PRIORITY)

    def _behind_queues(self, flow: dict) -> str:
        """Return where packets of FLOW come in that got past all queues on its way, as tfrc-recv
        takes it: at the router behind the last hop that has one."""
        first, last = flow["span"]
        hops, links = self.network.hops, self.point["links"]
        span = range(first, last + 1)
        queues = [i for i in span if link_of(links[hops[i]]).drops_for_congestion]
        lossy = [i for i in span if links[hops[i]].get("loss_pct")]
        if queues and lossy and min(lossy) < max(queues):
            raise ValueError(f"{flow['name']}: a hop that loses lies before one that queues")
        router = (max(queues) if queues else first) + 2  # the one a hop (from 0) leads to
        pid = self.network.net[f"r{router}"].pid
        return f"/proc/{pid}/ns/net:r{router}-rev"

    def _udp_port(self, index: int) -> int:
        """Return the port of a UDP flow's sink; those of an access point share the server."""
        return UDP_SINK_PORT + index if self.network.has_ap else SINK_PORT

    def _start_udp_sink(self, index: int, flow: dict):
        port, report = str(self._udp_port(index)), str(self.out / f"udp-sink-{index}.json")
        command = [str(BIN / "labflow"), "sink", "--transport", "udp", "--port", port,
                   "--json", report]  # fmt: skip
        return self._start_and_wait(self.network.node_of(receiver(flow)), command, SINK_PRIORITY)

    def _start_tap(self, hop: str):
        dev, every = self.network.devices[hop], self.point["tap_every"]
        command = [str(BIN / "labtap"), "--dev", dev, "--every", str(every),
                   "--out", str(self.out / f"tap-{hop}")]  # fmt: skip
        return self._start_and_wait(self.network.owner_of(dev), command, TAP_PRIORITY)

    def _start_and_wait(self, node, command: list[str], priority: int):
        """Start COMMAND on NODE and return it once it has said that it is ready."""
        process = start([*command, "--ready-fd", "1"], priority, node.pid)
        line = process.stdout.readline()
        if line.strip() != "ready":
            complaint = line + process.stderr.read()
            raise RuntimeError(f"{Path(command[0]).name} did not come up: {complaint}")
        return process

    def _start_probe(self) -> list[subprocess.Popen]:
        """Sample flows and hops. Where UDP is alone on a wireless chain there are none, and empty
        files."""
        point, out, start_s = self.point, self.out, self.start_s
        targets = self._probe_targets()
        if not targets:
            for name in ("flows.csv", "hops.csv"):
                (out / name).touch()
            return []
        command = [
            str(BIN / "labprobe"), "--interval-ms", str(point["sample_ms"]),
            "--start-at-s", f"{start_s:.9f}", "--end-at-s", f"{start_s + point['duration_s']:.9f}",
            "--flows", str(out / "flows.csv"), "--hops", str(out / "hops.csv"), *targets,
        ]  # fmt: skip
        return [start(command, PROBE_PRIORITY, os.getpid())]

    def _probe_targets(self) -> list[str]:
        """Return labprobe's options for what there is to sample."""
        network, point = self.network, self.point
        targets: list[str] = []
        for i, flow in enumerate(point["flows"]):
            if flow["transport"] == "tfrc":
                continue  # it samples itself
            pid = network.node_of(sender(flow)).pid
            option = "--sctp-sock" if flow["transport"] == "sctp" else "--sock"
            targets += [option, f"{flow['name']}:/proc/{pid}/ns/net:{SOURCE_PORT + i}"]
            if flow.get("mptcp"):
                second = f"{flow['name']}{SUBFLOW_SUFFIX}"
                targets += [option, f"{second}:/proc/{pid}/ns/net:{SUBFLOW_PORT}"]
        may_lose = {event["link"] for event in point["events"] if "loss_pct" in event["changes"]}
        for hop, link in point["links"].items():
            queues = link_of(link).drops_for_congestion
            loses = link.get("loss_pct") or link.get("loss_trace") or hop in may_lose
            if not (queues or loses):
                continue  # it can neither delay nor drop: nothing to sample
            dev = network.devices[hop]
            pid = network.owner_of(dev).pid
            option = "--aqm-hop" if link.get("aqm") else "--hop"
            targets += [option, f"{hop}:/proc/{pid}/ns/net:{dev}"]
        for tap in network.air.taps if network.has_ap else []:
            targets += ["--hop", f"{tap.name}:/proc/{tap.node.pid}/ns/net:{tap.name}"]
        return targets

    def _start_tfrc(self, index: int, flow: dict):
        out, start_s, sample_s = self.out, self.start_s, self.point["sample_ms"] / 1000
        command = [
            str(BIN / "tfrc-send"), "--endless", "--quiet",
            "--algorithm", *TFRC_ALGORITHMS.get(flow["algorithm"], (flow["algorithm"],)),
            "--name", flow["name"], "--source-port", str(SOURCE_PORT + index),
            "--start-at-s", f"{start_s + flow['start_s']:.9f}",
            "--duration", f"{flow['duration_s']:.9f}",
            "--json", str(out / f"flow-{index}.json"), "--interval", f"{sample_s:g}",
            "--samples", str(out / f"samples-{index}.csv"), "--samples-from-s", f"{start_s:.9f}",
        ]  # fmt: skip
        for key, option in (("bytes", "--bytes"), ("mss_bytes", "--payload-bytes")):
            if flow.get(key):
                command += [option, str(flow[key])]
        command += [self.network.topo.address(*receiver(flow)), str(TFRC_PORT + index)]
        return start(command, FLOW_PRIORITY, self.network.node_of(sender(flow)).pid)

    def _start_flow(self, index: int, flow: dict):
        if flow["transport"] == "tfrc":
            return self._start_tfrc(index, flow)
        options = ["--source-port", str(SOURCE_PORT + index), "--transport", stream_of(flow)]
        if flow["algorithm"] != STOCK_SCTP:
            options += ["--algorithm", flow["algorithm"]]
        if flow.get("repeats"):
            options += ["--repeats", str(flow["repeats"])]
            options += ["--pause-s", f"{flow['pause_s']:.9f}"] if flow["pause_s"] else []
        return self._start_sender(flow, f"flow-{index}.json", options)

    def _start_udp(self, index: int, flow: dict):
        options = ["--transport", "udp", "--rate-mbps", f"{flow['rate_mbps']:.9f}",
                   "--source-port", str(UDP_SOURCE_PORT + index)]  # fmt: skip
        if flow["on_s"]:
            options += ["--on-s", f"{flow['on_s']:.9f}", "--off-s", f"{flow['off_s']:.9f}",
                        "--seed", str(flow["seed"])]  # fmt: skip
        port = self._udp_port(index)
        return self._start_sender(flow, f"udp-{index}.json", options, port)

    def _start_sender(self, flow: dict, report: str, options: list[str], port: int = SINK_PORT):
        command = [
            str(BIN / "labflow"), "send", "--connect", self.network.topo.address(*receiver(flow)),
            "--port", str(port), "--name", flow["name"], *options,
            "--start-at-s", f"{self.start_s + flow['start_s']:.9f}",
            "--json", str(self.out / report),
        ]  # fmt: skip
        for key, option in (("duration_s", "--duration-s"), ("bytes", "--bytes"),
                            ("mss_bytes", "--mss")):  # fmt: skip
            if flow.get(key):
                command += [option, str(flow[key])]
        return start(command, FLOW_PRIORITY, self.network.node_of(sender(flow)).pid)


def start(command: list[str], priority: int, pid: int) -> subprocess.Popen:
    """Start COMMAND with PRIORITY in the network namespace of process PID.

    This process goes there and back for it: a child that runs code of its own before COMMAND, or a
    program that enters the namespace first, would each cost User Mode Linux a whole process more.
    """
    with NetworkNamespaceOf(pid), with_priority(priority):
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # who interrupts a command at a terminal means that alone
        )


def stream_of(flow: dict) -> str:
    """Return what labflow calls FLOW's transport."""
    return "mptcp" if flow.get("mptcp") else flow["transport"]
