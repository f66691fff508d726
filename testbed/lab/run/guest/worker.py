# SPDX-License-Identifier: GPL-2.0-only
"""Runs points one after the other on the kernel it finds. Standard library and Mininet only.

Reads $LAB_OUT/batch.json (a list of points that share a topology), writes $LAB_OUT/<point id>/ with
the probe's and the traffic tool's output, complete or not at all (a folder is renamed into place).

A point must not depend on what ran before it in this boot. So each starts at a virtual time
that is the same to every timer wheel level TCP uses, with fresh queues, the random number
generator in a state given by its seed, no sockets and no routes' metrics left.
"""

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from lab.ask import qdiscs, topologies
from lab.ask.algorithms import ALGORITHMS, STOCK_SCTP
from lab.ask.lablink import SCHEDULES, begin_lablink, change_lablink, set_lablink
from lab.ask.links import Link, change_link, link_of, set_link
from lab.ask.medium import Medium
from lab.ask.wifi import WifiMedium, remove_gate, set_gate
from lab.run.guest.alike import (
    START_GRID_S,
    is_lab_kernel,
    next_start_s,
    set_seed,
    set_wall_clock,
)
from lab.run.guest.kernel_log import KernelLog
from lab.run.guest.namespaces import NetworkNamespaceOf

OUT = Path(os.environ["LAB_OUT"])
TEMPORARY = Path(os.environ["TMPDIR"])
BIN = Path(os.environ["LAB_BIN"])
TRACING = Path("/sys/kernel/tracing")
SCTP_SYSCTLS = Path("/proc/sys/net/sctp")
SCTP_TIMESTAMP_TYPE = 190  # of those that no one else uses
MEDIUM = {"program": str(BIN / "labmedium"), "autostart": False}
TIMER_ABSTIME = 1

SINK_PORT = 5001
UDP_SINK_PORT = 6000  # and on, where many share a host
SOURCE_PORT = 20000
UDP_SOURCE_PORT = 30000
SUBFLOW_PORT = 40000  # of an MPTCP flow's second subflow, whose host has no other flow
SUBFLOW_SUFFIX = ".2"  # of its name in flows.csv
TFRC_PORT = 5100  # each flow has a receiver, and so a port, of its own
TFRC_ALGORITHMS = {"classify": ("uddj", "--law", "classify")}  # of tfrc-send, where not so named
# Time that starting a process may take: where the clock jumps, it does so while the guest waits
# for the host to give it a file.
JUMPING_LEAD_S, REAL_LEAD_S = 20.0, 1.0
SETTLE_S = 2.0  # what is still under way at the end of a point arrives or is dropped
WARM_UP_S = 0.5
# Who goes first when several wake at the same instant must not hang on the fair scheduler's
# memory of what ran before: real-time priorities decide it.
WORKER_PRIORITY, FLOW_PRIORITY, SINK_PRIORITY, PROBE_PRIORITY, TAP_PRIORITY = 1, 10, 20, 30, 40
SOFTIRQ_PRIORITY = 50
MEDIUM_PRIORITY = 5  # it takes what all of them sent in an instant at once


class Parameters:
    """Module parameters: what a point does not set has the module's own value."""

    def __init__(self):
        self.defaults: dict[Path, str] = {}

    def set(self, modules: dict[str, dict[str, int]]) -> None:
        """Set algorithm -> parameter -> value, after taking back what the point before set."""
        for path, value in self.defaults.items():
            path.write_text(value)
        for algorithm, values in modules.items():
            for name, value in values.items():
                path = parameter_file(algorithm, name)
                self.defaults.setdefault(path, path.read_text())
                try:
                    path.write_text(str(value))
                except OSError as error:
                    raise ValueError(f"{algorithm} refuses {name} = {value}: {error}") from None


def parameter_file(algorithm: str, name: str) -> Path:
    """Return where the parameter NAME of an ALGORITHM is: in its module, or its agent's."""
    folders = [f"/sys/module/{m}/parameters" for m in ALGORITHMS[algorithm].parameter_modules]
    paths = [Path(folder, name) for folder in folders]
    return next((path for path in paths if path.exists()), paths[0])


def start_time(clock: str, now_s: float, processes: int) -> float:
    """Return when a point starts that has PROCESSES to start first."""
    if clock == "real":
        return now_s + 3 + REAL_LEAD_S * processes
    return next_start_s(max(now_s + START_GRID_S, now_s + JUMPING_LEAD_S * processes))


class Trace:
    """What the modules' tracepoints EVENTS (tcp_*_trace.h) say from now on."""

    def __init__(self, events: list[str]):
        if not (TRACING / "events").is_dir():
            subprocess.run(["mount", "-t", "tracefs", "none", str(TRACING)], check=True)
        self.trace = TRACING / "instances" / "lab"
        self.trace.mkdir(exist_ok=True)
        (self.trace / "trace_clock").write_text("mono")
        folder = self.trace / "events"
        self.enables = [path for name in events for path in folder.glob(f"*/{name}/enable")]
        self._clear()
        self._listen(True)

    def save(self, path: Path) -> None:
        """Write what was said to PATH and stop listening."""
        self._listen(False)
        for stats in self.trace.glob("per_cpu/*/stats"):
            if "overrun: 0\n" not in stats.read_text():
                raise RuntimeError("the trace buffer was too small for all events")
        path.write_text((self.trace / "trace").read_text())
        self._clear()

    def _listen(self, on: bool) -> None:
        for enable in self.enables:
            enable.write_text(str(int(on)))

    def _clear(self) -> None:
        (self.trace / "trace").write_text("")


class AgentSampler(threading.Thread):
    """Writes what the queueing disciplines of NODES (name -> process id) say of themselves in
    /proc/net/wccp to the file PATH, from START_S on, EVERY_MS until END_S."""

    def __init__(self, nodes: dict[str, int], path: Path, start_s: float, end_s: float, every_ms):
        super().__init__(daemon=True)
        self.nodes, self.path = nodes, path
        self.start_ns, self.end_ns = round(start_s * 1e9), round(end_s * 1e9)
        self.every_ns = round(every_ms * 1e6)

    def run(self) -> None:
        head: list[str] = []
        with self.path.open("w") as out:
            for now_ns in range(self.start_ns, self.end_ns + 1, self.every_ns):
                sleep_until_ns(now_ns)
                for name, pid in self.nodes.items():
                    names, *rows = Path(f"/proc/{pid}/net/wccp").read_text().splitlines()
                    if not head:
                        head = names.split()
                        out.write(f"time_s,node,{','.join(head)}\n")
                    for row in rows:
                        time_s = (now_ns - self.start_ns) * 1e-9
                        out.write(f"{time_s:.3f},{name},{','.join(row.split())}\n")


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


class Lab:
    """One Mininet network that is up, and the points that run over it."""

    def __init__(self, topology: dict, sctp: str, clock: str):
        self.clock = clock
        self.sctp = sctp
        kind = topologies.KINDS[topology["kind"]]
        self.hops = topology["hops"]
        self.wireless = kind in (topologies.WirelessChain, topologies.WifiAp)
        self.has_ap = kind is topologies.WifiAp
        self.entry = topology["hops"][topology["spans"][0][0]]  # of the first pair of hosts
        if self.has_ap:
            self.devices = kind.devices()
            shape = {"stations": topology["stations"], "medium": MEDIUM}
        elif self.wireless:
            self.devices = {}
            shape = {key: topology[key] for key in ("nodes", "spans")} | {"medium": MEDIUM}
        else:
            self.devices = topologies.devices(topology["hops"], topology["homes"])
            shape = {key: topology[key] for key in ("hops", "spans", "homes")}
        self.topo = kind(**shape)
        with few_files(len(self.topo.nodes())):
            self.net = Mininet(topo=self.topo, controller=None)
        self.medium = self.net["medium"] if self.wireless else None
        self.net.start()
        topologies.finish(self.net, topology["offloads"], topology["ecn"], topology["mtu_bytes"])
        if topology["tunnel"]:
            mtu_bytes = topology["mtu_bytes"]
            topologies.add_tunnel(self.net, topology["tunnel"], len(self.hops), mtu_bytes)
        self.parameters = Parameters()
        self.agents: set[str] = set()  # stations with queueing disciplines of an algorithm
        self.delayed: list[str] = []  # devices at which a flow's own delay is
        self.multipath: list[tuple[str, int]] = []  # senders of MPTCP flows
        self.sysctls: list[tuple[int, Path, str]] = []  # a host's process, whose value was what
        self.warm_up()

    def channel(self, **values) -> Medium | WifiMedium:
        """Return the medium that a point's VALUES say."""
        return WifiMedium(**values) if self.has_ap else Medium(**values)

    def warm_up(self) -> None:
        """Let the kernel draw the secrets that it draws once, before any point's seed is set."""
        flow = {"name": "warm-up", "pair": 1, "start_s": 0.0, "duration_s": WARM_UP_S}
        flows = [flow | {"algorithm": "cubic", "transport": "tcp"}]
        if self.sctp:
            algorithm = "rfc9260" if self.sctp == "patched" else STOCK_SCTP
            flows.append(flow | {"algorithm": algorithm, "transport": "sctp"})
        point = {
            "topology": {"agents": False},
            "rng_seed": 0,
            "duration_s": WARM_UP_S,
            "sample_ms": 100,
            # without a rate, virtual time would stand still while data flows
            "links": {self.entry: {"rate_mbps": 10.0, "queue_pkts": 100}} if self.devices else {},
            "medium": asdict(self.channel()) | {"seed": 1} if self.medium else None,
            "flows": flows,
            "udp": [],
            "lablinks": {},
            "events": [],
            "modules": {},
            "sctp_settings": {},
            "taps": [],
            "traces": [],
        }
        out = TEMPORARY / "warm-up"
        out.mkdir()
        self.run(point, out)

    def set_links(self, links: dict, lablinks: dict) -> None:
        for hop, dev in self.devices.items():
            values = links.get(hop, {})
            with NetworkNamespaceOf(self.net[dev.split("-")[0]].pid):
                if hop in lablinks:
                    steps = schedules(lablinks[hop])
                    set_lablink(dev, link_of(values), values.get("seed", 0), steps)
                else:
                    set_link(dev, link_of(values), values.get("seed", 0))

    def set_own_delays(self, flows: list[dict]) -> None:
        """Delay what comes to the hosts of those FLOWS that have a delay of their own; without
        FLOWS nobody's any more."""
        for dev in self.delayed:
            with NetworkNamespaceOf(self.net[dev.split("-")[0]].pid):
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

    def set_subflows(self, flows: list[dict]) -> None:
        """Give those of FLOWS that are MPTCP's a second subflow; without FLOWS nobody any more."""
        for host in self.multipath:
            topologies.drop_subflow(self.net, self.topo, *host)
        self.multipath = [sender(flow) for flow in flows if flow.get("mptcp")]
        for host in self.multipath:
            topologies.add_subflow(self.net, self.topo, *host, SUBFLOW_PORT)

    def run(self, point: dict, out: Path) -> None:
        """Run one point, leaving its raw figures in the folder OUT."""
        self.set_links(point["links"], point["lablinks"])
        self.set_own_delays(point["flows"] + point["udp"])
        self.set_subflows(point["flows"])
        self.set_sysctls(point.get("sysctl", {}))
        self.parameters.set(point["modules"])
        self.set_sctp(point["flows"], point["sctp_settings"])
        now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        processes = 1 + 2 * len(point["flows"] + point["udp"]) + len(point["taps"])
        if self.medium:
            processes += 2 * len(self.medium.taps)
        start_s = start_time(self.clock, now_s, processes)
        if self.clock != "real":
            set_wall_clock(point["rng_seed"], start_s)
        self.begin_lablinks(point, start_s)
        if self.medium:
            self.set_gates(point["medium"])
            self.start_medium(point, start_s, out)
            self.set_agents(point)
            self.sample_agents(point, start_s, out)
        streams = [flow for flow in point["flows"] if flow["transport"] != "tfrc"]
        receivers = {
            (self.topo.host(*receiver(flow)), stream_of(flow)): flow["bytes"]
            if flow.get("repeats")
            else 0
            for flow in streams
        }
        rwnd_bytes = point["sctp_settings"].get("rwnd_bytes")
        sinks = [
            self.start_sink(*where, rwnd_bytes, reply_after)
            for where, reply_after in receivers.items()
        ]
        sinks += [
            self.start_tfrc_sink(i, flow, point["links"], out)
            for i, flow in enumerate(point["flows"])
            if flow["transport"] == "tfrc"
        ]
        sinks += [self.start_udp_sink(i, flow, out) for i, flow in enumerate(point["udp"])]
        taps = [self.start_tap(hop, point["tap_every"], out) for hop in point["taps"]]
        trace = Trace(point["traces"]) if point["traces"] else None
        others = [
            *self.start_probe(point, start_s, out),
            *(
                self.start_flow(i, flow, start_s, point["sample_ms"], out)
                for i, flow in enumerate(point["flows"])
            ),
            *(self.start_udp(i, flow, start_s, out) for i, flow in enumerate(point["udp"])),
        ]
        late_s = time.clock_gettime(time.CLOCK_MONOTONIC) - (start_s - 1.0)
        if late_s > 0:
            raise RuntimeError(f"starting the flows took {late_s:.3f} s too long")
        time.sleep(-late_s)
        if is_lab_kernel():
            set_seed(point["rng_seed"])
        self.play(point, start_s)
        errors = [_finish(process) for process in others]
        if not point["flows"]:  # all are UDP: what has arrived by now counts
            for process in sinks:
                process.terminate()
        time.sleep(SETTLE_S)
        if self.medium:
            self.stop_medium(out)
            self.set_gates(None)
        # a goodbye of the sinks that got lost would return in the next point
        self.set_links({}, {})
        self.set_own_delays([])
        self.set_subflows([])
        self.set_sysctls({})
        for process in (*sinks, *taps):
            process.terminate()
            errors.append(_finish(process))
        time.sleep(SETTLE_S)
        join_samples(out)
        if trace:
            trace.save(out / "trace.txt")
        errors = [error for error in errors if error]
        if errors:
            raise RuntimeError("; ".join(errors))

    def set_sysctls(self, values: dict[str, str]) -> None:
        """Give all hosts these VALUES by name, and back what they had of the others."""
        for pid, path, before in self.sysctls:
            with NetworkNamespaceOf(pid):
                path.write_text(before)
        self.sysctls = []
        for node in self.net.hosts if values else []:
            if isinstance(node, topologies.Host):
                with NetworkNamespaceOf(node.pid):
                    for name, value in values.items():
                        self.sysctls.append((node.pid, *_write_sysctl(name, value)))

    def set_sctp(self, flows: list[dict], settings: dict[str, int]) -> None:
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
                with NetworkNamespaceOf(self.net[dev.split("-")[0]].pid):
                    begin_lablink(dev, link_of(point["links"][hop]), begin_ns)

    def play(self, point: dict, start_s: float) -> None:
        """Change links when the events of POINT say so."""
        links = {hop: dict(link) for hop, link in point["links"].items()}
        for event in point["events"]:
            links[event["link"]] |= event["changes"]
            sleep_until_ns(round(start_s * 1e9) + round(event["at_s"] * 1e9))
            dev = self.devices[event["link"]]
            with NetworkNamespaceOf(self.net[dev.split("-")[0]].pid):
                change = change_lablink if event["link"] in point["lablinks"] else change_link
                change(dev, link_of(links[event["link"]]))

    def start_medium(self, point: dict, start_s: float, out: Path) -> None:
        """Let the medium's time begin with the point's, so that every boot has the same one."""
        values = dict(point["medium"])
        seed = values.pop("seed")
        options = [
            "--start-at-s", f"{start_s:.9f}", "--duration-s", str(point["duration_s"]),
            "--sample-ms", str(point["sample_ms"]), "--counters", str(out / "medium.csv"),
            "--summary", str(out / "medium.json"),
        ]  # fmt: skip
        self.medium.begin(
            self.channel(**values), seed, options, lambda: set_priority(MEDIUM_PRIORITY)
        )
        self.dropped_before = self.medium.dropped_by_taps()

    def set_gates(self, medium: dict | None) -> None:
        """Give the devices of an access point and its stations the gates and queues of MEDIUM; take
        them away without one."""
        for tap in self.medium.taps if self.has_ap else []:
            of = "" if tap.node.name == "ap" else "station_"
            with NetworkNamespaceOf(tap.node.pid):
                if medium:
                    set_gate(tap.name, medium[f"{of}queue_pkts"], medium[f"{of}aqm"])
                else:
                    remove_gate(tap.name)

    def set_agents(self, point: dict) -> None:
        """Give all stations the queueing disciplines that the algorithms of POINT want there, and
        take away those of the point before."""
        agents = {ALGORITHMS[flow["algorithm"]].agent for flow in point["flows"]} - {""}
        nodes = point["topology"]["agents"]
        if isinstance(nodes, bool):
            nodes = range(1, len(self.medium.taps) + 1) if nodes else []
        given = {f"n{node}" for node in nodes} if agents else set()
        for tap in self.medium.taps:
            device = f"dev {tap.name} root"
            commands = [f"tc qdisc del {device}"] * (tap.node.name in self.agents)
            if tap.node.name in given:
                commands += [f"tc qdisc add {device} {agent}" for agent in agents]
            if commands:
                topologies.run(tap.node, *commands)
        for agent in agents:
            Path(f"/sys/module/sch_{agent}/parameters/ask_medium").write_text("1")
        self.agents = given

    def sample_agents(self, point: dict, start_s: float, out: Path) -> None:
        """Sample them from now on, if there are any."""
        nodes = {tap.node.name: tap.node.pid for tap in self.medium.taps}
        nodes = {name: pid for name, pid in nodes.items() if name in self.agents}
        if nodes:
            end_s, every_ms = start_s + point["duration_s"], point["sample_ms"]
            AgentSampler(nodes, out / "agents.csv", start_s, end_s, every_ms).start()

    def stop_medium(self, out: Path) -> None:
        dropped = self.medium.dropped_by_taps() - self.dropped_before
        self.medium.end()
        told = json.loads((out / "medium.json").read_text())
        dropped += told["long_frames"]
        if told["refused_frames"]:
            raise RuntimeError(f"a kernel had no room for {told['refused_frames']} frames")
        if dropped:
            raise RuntimeError(f"{dropped} packets were lost before the medium had them")

    def node_of(self, host: tuple[str, int]):
        """Return the Mininet node at an end of a pair."""
        return self.net[self.topo.host(*host)]

    def start_sink(self, name: str, transport: str, rwnd_bytes: int | None, reply_after: int):
        command = [str(BIN / "labflow"), "sink", "--transport", transport,
                   "--port", str(SINK_PORT)]  # fmt: skip
        if transport == "sctp" and rwnd_bytes:
            command += ["--rcvbuf", str(rwnd_bytes)]
        if reply_after:
            command += ["--reply-after", str(reply_after)]
        return self._start_and_wait(self.net[name], command, SINK_PRIORITY)

    def start_tfrc_sink(self, index: int, flow: dict, links: dict, out: Path):
        command = [str(BIN / "tfrc-recv"), "-4", "--discard", "--quiet",
                   "--json", str(out / f"tfrc-recv-{index}.json"),
                   "--oracle", self.behind_queues(flow, links), "--ready-fd", "1",
                   str(TFRC_PORT + index)]  # fmt: skip
        return self._start_and_wait(self.node_of(receiver(flow)), command, SINK_PRIORITY)

    def behind_queues(self, flow: dict, links: dict) -> str:
        """Return where packets of FLOW come in that got past all queues on its way, as tfrc-recv
        takes it: at the router behind the last hop that has one."""
        first, last = flow["span"]
        span = range(first, last + 1)
        queues = [i for i in span if link_of(links[self.hops[i]]).drops_for_congestion]
        lossy = [i for i in span if links[self.hops[i]].get("loss_pct")]
        if queues and lossy and min(lossy) < max(queues):
            raise ValueError(f"{flow['name']}: a hop that loses lies before one that queues")
        router = (max(queues) if queues else first) + 2  # the one a hop (from 0) leads to
        pid = self.net[f"r{router}"].pid
        return f"/proc/{pid}/ns/net:r{router}-rev"

    def udp_port(self, index: int) -> int:
        """Return the port of a UDP flow's sink; those of an access point share the server."""
        return UDP_SINK_PORT + index if self.has_ap else SINK_PORT

    def start_udp_sink(self, index: int, flow: dict, out: Path):
        port, report = str(self.udp_port(index)), str(out / f"udp-sink-{index}.json")
        command = [str(BIN / "labflow"), "sink", "--transport", "udp", "--port", port,
                   "--json", report]  # fmt: skip
        return self._start_and_wait(self.node_of(receiver(flow)), command, SINK_PRIORITY)

    def start_tap(self, hop: str, every: int, out: Path):
        """Record what enters a hop and what leaves it, one packet in EVERY; see
        lab.measure.truth."""
        dev = self.devices[hop]
        command = [str(BIN / "labtap"), "--dev", dev, "--every", str(every),
                   "--out", str(out / f"tap-{hop}")]  # fmt: skip
        return self._start_and_wait(self.net[dev.split("-")[0]], command, TAP_PRIORITY)

    def _start_and_wait(self, node, command: list[str], priority: int):
        """Start COMMAND on NODE and return it once it has said that it is ready."""
        process = node.popen(
            [*command, "--ready-fd", "1"], text=True, preexec_fn=lambda: set_priority(priority)
        )
        line = process.stdout.readline()
        if line.strip() != "ready":
            complaint = line + process.stderr.read()
            raise RuntimeError(f"{Path(command[0]).name} did not come up: {complaint}")
        return process

    def start_probe(self, point: dict, start_s: float, out: Path) -> list[subprocess.Popen]:
        """Sample flows and hops. Where UDP is alone on a wireless chain there are none, and empty
        files."""
        targets = self.probe_targets(point)
        if not targets:
            for name in ("flows.csv", "hops.csv"):
                (out / name).touch()
            return []
        command = [
            str(BIN / "labprobe"), "--interval-ms", str(point["sample_ms"]),
            "--start-at-s", f"{start_s:.9f}", "--end-at-s", f"{start_s + point['duration_s']:.9f}",
            "--flows", str(out / "flows.csv"), "--hops", str(out / "hops.csv"), *targets,
        ]  # fmt: skip
        probe = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: set_priority(PROBE_PRIORITY),
        )
        return [probe]

    def probe_targets(self, point: dict) -> list[str]:
        """Return labprobe's options for what there is to sample."""
        targets: list[str] = []
        for i, flow in enumerate(point["flows"]):
            if flow["transport"] == "tfrc":
                continue  # it samples itself
            pid = self.node_of(sender(flow)).pid
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
            dev = self.devices[hop]
            pid = self.net[dev.split("-")[0]].pid
            option = "--aqm-hop" if link.get("aqm") else "--hop"
            targets += [option, f"{hop}:/proc/{pid}/ns/net:{dev}"]
        for tap in self.medium.taps if self.has_ap else []:
            targets += ["--hop", f"{tap.name}:/proc/{tap.node.pid}/ns/net:{tap.name}"]
        return targets

    def start_tfrc(self, index: int, flow: dict, start_s: float, sample_ms: int, out: Path):
        command = [
            str(BIN / "tfrc-send"), "--endless", "--quiet",
            "--algorithm", *TFRC_ALGORITHMS.get(flow["algorithm"], (flow["algorithm"],)),
            "--name", flow["name"], "--source-port", str(SOURCE_PORT + index),
            "--start-at-s", f"{start_s + flow['start_s']:.9f}",
            "--duration", f"{flow['duration_s']:.9f}",
            "--json", str(out / f"flow-{index}.json"), "--interval", f"{sample_ms / 1000:g}",
            "--samples", str(out / f"samples-{index}.csv"), "--samples-from-s", f"{start_s:.9f}",
        ]  # fmt: skip
        for key, option in (("bytes", "--bytes"), ("mss_bytes", "--payload-bytes")):
            if flow.get(key):
                command += [option, str(flow[key])]
        command += [self.topo.address(*receiver(flow)), str(TFRC_PORT + index)]
        return self.node_of(sender(flow)).popen(
            command, text=True, preexec_fn=lambda: set_priority(FLOW_PRIORITY)
        )

    def start_flow(self, index: int, flow: dict, start_s: float, sample_ms: int, out: Path):
        if flow["transport"] == "tfrc":
            return self.start_tfrc(index, flow, start_s, sample_ms, out)
        options = ["--source-port", str(SOURCE_PORT + index), "--transport", stream_of(flow)]
        if flow["algorithm"] != STOCK_SCTP:
            options += ["--algorithm", flow["algorithm"]]
        if flow.get("repeats"):
            options += ["--repeats", str(flow["repeats"])]
            options += ["--pause-s", f"{flow['pause_s']:.9f}"] if flow["pause_s"] else []
        return self._start_sender(flow, start_s, out / f"flow-{index}.json", options)

    def start_udp(self, index: int, flow: dict, start_s: float, out: Path):
        options = ["--transport", "udp", "--rate-mbps", f"{flow['rate_mbps']:.9f}",
                   "--source-port", str(UDP_SOURCE_PORT + index)]  # fmt: skip
        if flow["on_s"]:
            options += ["--on-s", f"{flow['on_s']:.9f}", "--off-s", f"{flow['off_s']:.9f}",
                        "--seed", str(flow["seed"])]  # fmt: skip
        port = self.udp_port(index)
        return self._start_sender(flow, start_s, out / f"udp-{index}.json", options, port)

    def _start_sender(
        self, flow: dict, start_s: float, report: Path, options: list[str], port: int = SINK_PORT
    ):
        command = [
            str(BIN / "labflow"), "send", "--connect", self.topo.address(*receiver(flow)),
            "--port", str(port), "--name", flow["name"], *options,
            "--start-at-s", f"{start_s + flow['start_s']:.9f}", "--json", str(report),
        ]  # fmt: skip
        for key, option in (("duration_s", "--duration-s"), ("bytes", "--bytes"),
                            ("mss_bytes", "--mss")):  # fmt: skip
            if flow.get(key):
                command += [option, str(flow[key])]
        return self.node_of(sender(flow)).popen(
            command, text=True, preexec_fn=lambda: set_priority(FLOW_PRIORITY)
        )


def join_samples(out: Path) -> None:
    """Put the time series that TFRC flows wrote of themselves to those of the probe."""
    for samples in sorted(out.glob("samples-*.csv")):
        with (out / "flows.csv").open("a") as flows:
            flows.write(samples.read_text().partition("\n")[2])  # without the header


def schedules(of: dict) -> dict[str, bytes]:
    """Return the steps of a lablink's schedules, kind -> bytes."""
    digests = of.get("schedules", {})
    return {kind: (OUT / SCHEDULES / digest).read_bytes() for kind, digest in digests.items()}


def stream_of(flow: dict) -> str:
    """Return what labflow calls FLOW's transport."""
    return "mptcp" if flow.get("mptcp") else flow["transport"]


def sender(flow: dict) -> tuple[str, int]:
    """Return where FLOW's data comes from: the end, src or dst, and the pair."""
    return "dst" if flow.get("reverse") else "src", flow["pair"]


def receiver(flow: dict) -> tuple[str, int]:
    return "src" if flow.get("reverse") else "dst", flow["pair"]


def _finish(process) -> str:
    """Wait for PROCESS; return what it said if it failed, else nothing."""
    _, complaint = process.communicate()
    if process.returncode == 0:
        return ""
    return complaint.strip() or f"{process.args} ended with {process.returncode}"


def _write_sysctl(name: str, value: str) -> tuple[Path, str]:
    """Give the sysctl NAME of this network namespace a VALUE; return its file, and what it was."""
    path = Path("/proc/sys", *name.split("."))
    try:
        before = path.read_text()
        path.write_text(value)
    except OSError as error:
        raise RuntimeError(f"sysctl {name} = {value}: {error.strerror}") from None
    return path, before


def sleep_until_ns(time_ns: int) -> None:
    """Sleep until CLOCK_MONOTONIC is TIME_NS, to the ns: time.sleep() of a difference of floats
    may be one off, and by how much would hang on when the point runs."""
    until = (ctypes.c_long * 2)(*divmod(time_ns, 10**9))
    clock_nanosleep = ctypes.CDLL(None).clock_nanosleep
    error = clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(until), None)
    if error:
        raise OSError(error, "clock_nanosleep")


def set_priority(priority: int, pid: int = 0) -> None:
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(priority))


def let_softirqs_go_first() -> None:
    """What a burst leaves to ksoftirqd goes on before any program, as what it did not leave."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if comm.read_text().startswith("ksoftirqd/"):
                set_priority(SOFTIRQ_PRIORITY, int(comm.parent.name))


def run_batch(points: list[dict], clock: str) -> None:
    started_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    log = KernelLog()
    log.new_lines()  # a distribution's kernel has its opinion of the processor
    largest = max(points, key=lambda point: len(point["topology"]["spans"]))
    lab = Lab(largest["topology"], largest["sctp"], clock)
    print(f"lab: network up at {time.clock_gettime(time.CLOCK_MONOTONIC) - started_s:.3f} s",
          flush=True)  # fmt: skip
    (OUT / "up").touch()
    for point in points:
        print(f"lab: point {point['id']}", flush=True)
        work = TEMPORARY / point["id"]
        work.mkdir()
        failed = False
        try:
            lab.run(point, work)
            if complaint := log.complaint():
                raise RuntimeError(f"the kernel complains:\n{complaint}")
        except Exception as error:
            traceback.print_exc()
            (work / "error").write_text(f"{type(error).__name__}: {error}")
            failed = True
        part = OUT / f"{point['id']}.part"
        shutil.copytree(work, part)
        part.rename(OUT / point["id"])
        shutil.rmtree(work)
        if failed:  # what it left running would disturb the next: those get a new boot
            break
    else:
        lab.net.stop()


if __name__ == "__main__":
    setLogLevel("warning")
    set_priority(WORKER_PRIORITY)
    batch = json.loads((OUT / "batch.json").read_text())
    if batch["clock"] != "real":
        let_softirqs_go_first()
    subprocess.run(["modprobe", *batch["modprobe_options"], "-a", *batch["modules"]], check=True)
    for module in batch["insmod"]:
        subprocess.run(["insmod", module], check=True)
    if batch["sctp_modprobe"]:
        subprocess.run(batch["sctp_modprobe"], check=True)
    run_batch(batch["points"], batch["clock"])
    sys.exit(0)
