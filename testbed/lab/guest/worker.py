# SPDX-License-Identifier: GPL-2.0-only
"""Runs points one after the other inside a lab kernel. Standard library and Mininet only.

Reads out/batch.json (a list of points that share a topology), writes out/<point id>/ with the
probe's and the traffic tool's output, complete or not at all (a folder is renamed into place).

A point must not depend on what ran before it in this boot. So each starts at a virtual time
that is the same to every timer wheel level TCP uses, with fresh queues, the random number
generator in a state given by its seed, no sockets and no routes' metrics left.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from lab import topologies
from lab.links import Link, set_link

OUT = Path("/run/lab/out")
TEMPORARY = Path("/run/tmp")
BIN = Path("/run/lab/modules/bin")
SEED_FILE = Path("/sys/module/random/parameters/lab_seed")
CLONE_NEWNET = 0x40000000

SINK_PORT = 5001
SOURCE_PORT = 20000
# A multiple of 4096 jiffies at 250 Hz: timers up to 262 s are rounded by the kernel's wheel
# to multiples of at most 4096 jiffies, and so in the same way for every point.
START_GRID_S = 65.536
# The kernel's jiffies wrap 300 s after boot; BBR, for one, compares a time of 0 with them.
FIRST_START_S = 10 * START_GRID_S
SETTLE_S = 2.0  # what is still under way at the end of a point arrives or is dropped
WARM_UP_S = 0.5
# Who goes first when several wake at the same instant must not hang on the fair scheduler's
# memory of what ran before: real-time priorities decide it.
WORKER_PRIORITY, FLOW_PRIORITY, SINK_PRIORITY, PROBE_PRIORITY = 1, 10, 20, 30


class NetworkNamespaceOf:
    """A context manager: inside it, this process is in the network namespace of process PID."""

    def __init__(self, pid: int):
        self._pid = pid
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
        target = os.open(f"/proc/{self._pid}/ns/net", os.O_RDONLY)
        self._setns(target)
        os.close(target)

    def __exit__(self, *_exc):
        self._setns(self._home)
        os.close(self._home)

    def _setns(self, fd: int):
        if self._libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


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
                path = Path(f"/sys/module/tcp_{algorithm}/parameters/{name}")
                self.defaults.setdefault(path, path.read_text())
                try:
                    path.write_text(str(value))
                except OSError as error:
                    raise ValueError(f"{algorithm} refuses {name} = {value}: {error}") from None


class Lab:
    """One Mininet network that is up, and the points that run over it."""

    def __init__(self, topology: dict):
        kind = topologies.KINDS[topology["kind"]]
        self.kind = kind
        self.net = Mininet(topo=kind(pairs=topology["pairs"]), controller=None)
        self.net.start()
        topologies.finish(self.net, topology["offloads"])
        self.parameters = Parameters()
        self.warm_up()

    def warm_up(self) -> None:
        """Let the kernel draw the secrets that it draws once, before any point's seed is set."""
        flow = {"name": "warm-up", "pair": 1, "algorithm": "cubic", "start_s": 0.0}
        point = {
            "rng_seed": 0,
            "duration_s": WARM_UP_S,
            "sample_ms": 100,
            # without a rate, virtual time would stand still while data flows
            "links": {"bottleneck": {"rate_mbps": 10.0, "queue_pkts": 100}},
            "flows": [flow | {"duration_s": WARM_UP_S}],
            "modules": {},
        }
        out = TEMPORARY / "warm-up"
        out.mkdir()
        self.run(point, out)

    def set_links(self, links: dict) -> None:
        for hop, dev in self.kind.HOPS.items():
            values = dict(links.get(hop, {}))
            seed = values.pop("seed", 0)
            with NetworkNamespaceOf(self.net[dev.split("-")[0]].pid):
                set_link(dev, Link(**values), seed)

    def run(self, point: dict, out: Path) -> None:
        """Run one point, leaving its raw figures in the folder OUT."""
        self.set_links(point["links"])
        self.parameters.set(point["modules"])
        now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        start_s = max((now_s // START_GRID_S + 2) * START_GRID_S, FIRST_START_S)
        sinks = [self.start_sink(pair) for pair in {flow["pair"] for flow in point["flows"]}]
        others = [
            self.start_probe(point, start_s, out),
            *(self.start_flow(i, flow, start_s, out) for i, flow in enumerate(point["flows"])),
        ]
        sleep_until(start_s - 1.0)
        SEED_FILE.write_text(str(point["rng_seed"]))
        errors = [_finish(process) for process in others]
        for sink in sinks:
            sink.terminate()
            errors.append(_finish(sink))
        time.sleep(SETTLE_S)
        errors = [error for error in errors if error]
        if errors:
            raise RuntimeError("; ".join(errors))

    def start_sink(self, pair: int):
        sink = self.net[f"dst{pair}"].popen(
            [str(BIN / "labflow"), "sink", "--port", str(SINK_PORT), "--ready-fd", "1"],
            text=True,
            preexec_fn=lambda: set_priority(SINK_PRIORITY),
        )
        line = sink.stdout.readline()
        if line.strip() != "ready":
            raise RuntimeError(f"the sink did not come up: {line}{sink.stderr.read()}")
        return sink

    def start_probe(self, point: dict, start_s: float, out: Path):
        command = [
            str(BIN / "labprobe"), "--interval-ms", str(point["sample_ms"]),
            "--start-at-s", f"{start_s:.9f}", "--end-at-s", f"{start_s + point['duration_s']:.9f}",
            "--flows", str(out / "flows.csv"), "--hops", str(out / "hops.csv"),
        ]  # fmt: skip
        for i, flow in enumerate(point["flows"]):
            pid = self.net[f"src{flow['pair']}"].pid
            command += ["--sock", f"{flow['name']}:/proc/{pid}/ns/net:{SOURCE_PORT + i}"]
        for hop, link in point["links"].items():
            if not link.get("queue_pkts") and not link.get("loss_pct"):
                continue  # it can neither delay nor drop: nothing to sample
            dev = self.kind.HOPS[hop]
            pid = self.net[dev.split("-")[0]].pid
            command += ["--hop", f"{hop}:/proc/{pid}/ns/net:{dev}"]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: set_priority(PROBE_PRIORITY),
        )

    def start_flow(self, index: int, flow: dict, start_s: float, out: Path):
        command = [
            str(BIN / "labflow"), "send", "--connect", self.kind.address(flow["pair"]),
            "--port", str(SINK_PORT), "--source-port", str(SOURCE_PORT + index),
            "--algorithm", flow["algorithm"], "--name", flow["name"],
            "--start-at-s", f"{start_s + flow['start_s']:.9f}",
            "--json", str(out / f"flow-{index}.json"),
        ]  # fmt: skip
        for key, option in (("duration_s", "--duration-s"), ("bytes", "--bytes"),
                            ("mss_bytes", "--mss")):  # fmt: skip
            if flow.get(key):
                command += [option, str(flow[key])]
        return self.net[f"src{flow['pair']}"].popen(
            command, text=True, preexec_fn=lambda: set_priority(FLOW_PRIORITY)
        )


def _finish(process) -> str:
    """Wait for PROCESS; return what it said if it failed, else nothing."""
    _, complaint = process.communicate()
    if process.returncode == 0:
        return ""
    return complaint.strip() or f"{process.args} ended with {process.returncode}"


def set_priority(priority: int) -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def sleep_until(time_s: float) -> None:
    time.sleep(max(0.0, time_s - time.clock_gettime(time.CLOCK_MONOTONIC)))


def run_batch(points: list[dict]) -> None:
    started_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    lab = Lab(points[0]["topology"])
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
    subprocess.run(["modprobe", "-d", "/run/lab/modules", "-a", *batch["modules"]], check=True)
    run_batch(batch["points"])
    sys.exit(0)
