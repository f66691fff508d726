# SPDX-License-Identifier: GPL-2.0-only
"""Runs points one after the other on the kernel it finds. Standard library and Mininet only.

Reads $LAB_OUT/batch.json (a list of points that share a topology), writes $LAB_OUT/<point id>/ with
the probe's and the traffic tool's output, complete or not at all (a folder is renamed into place).

A point must not depend on what ran before it in this boot. So each starts at a virtual time
that is the same to every timer wheel level TCP uses, with fresh queues, the random number
generator in a state given by its seed, no sockets and no routes' metrics left.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from mininet.log import setLogLevel

from lab.ask.algorithms import STOCK_SCTP
from lab.run.guest.alike import (
    START_GRID_S,
    is_lab_kernel,
    next_start_s,
    set_seed,
    set_wall_clock,
)
from lab.run.guest.kernel_log import KernelLog
from lab.run.guest.network import OUT, Network
from lab.run.guest.programs import Programs
from lab.run.guest.settings import Parameters
from lab.run.guest.tracing import Trace
from lab.run.guest.turns import WORKER_PRIORITY, let_softirqs_go_first, set_priority

TEMPORARY = Path(os.environ["TMPDIR"])
# Time that starting a process may take: where the clock jumps, it does so while the guest waits
# for the host to give it a file.
JUMPING_LEAD_S, REAL_LEAD_S = 20.0, 1.0
SETTLE_S = 2.0  # what is still under way at the end of a point arrives or is dropped
WARM_UP_S = 0.5


def start_time(clock: str, now_s: float, processes: int) -> float:
    """Return when a point starts that has PROCESSES to start first."""
    if clock == "real":
        return now_s + 3 + REAL_LEAD_S * processes
    return next_start_s(max(now_s + START_GRID_S, now_s + JUMPING_LEAD_S * processes))


class Lab:
    """A network that is up, and the points that run over it; they start when CLOCK allows."""

    def __init__(self, topology: dict, sctp: str, clock: str):
        self.clock = clock
        entry = topology["hops"][topology["spans"][0][0]]  # of the first pair of hosts
        self.network = Network(topology)
        self.parameters = Parameters()
        self._warm_up(sctp, entry)

    def _warm_up(self, sctp: str, entry: str) -> None:
        """Let the kernel draw the secrets that it draws once, before any point's seed is set."""
        network = self.network
        flow = {"name": "warm-up", "pair": 1, "start_s": 0.0, "duration_s": WARM_UP_S}
        flows = [flow | {"algorithm": "cubic", "transport": "tcp"}]
        if sctp:
            algorithm = "rfc9260" if sctp == "patched" else STOCK_SCTP
            flows.append(flow | {"algorithm": algorithm, "transport": "sctp"})
        point = {
            "topology": {"agents": False},
            "rng_seed": 0,
            "duration_s": WARM_UP_S,
            "sample_ms": 100,
            # without a rate, virtual time would stand still while data flows
            "links": {entry: {"rate_mbps": 10.0, "queue_pkts": 100}} if network.devices else {},
            "medium": network.air.usual if network.air else None,
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

    def run(self, point: dict, out: Path) -> None:
        """Run one point, leaving its raw figures in the folder OUT."""
        network, air = self.network, self.network.air
        network.set(point)
        self.parameters.set(point["modules"])
        start_s = self._start_time(point)
        network.begin_lablinks(point, start_s)
        if air:
            air.begin(point, start_s, out)
        programs = Programs(network, point, start_s, out)
        receivers = programs.start_receivers()
        taps = programs.start_taps()
        trace = Trace(point["traces"]) if point["traces"] else None
        senders = programs.start_senders()
        late_s = time.clock_gettime(time.CLOCK_MONOTONIC) - (start_s - 1.0)
        if late_s > 0:
            raise RuntimeError(f"starting the flows took {late_s:.3f} s too long")
        time.sleep(-late_s)
        if is_lab_kernel():
            set_seed(point["rng_seed"])
        network.play(point, start_s)
        errors = [_finish(process) for process in senders]
        if not point["flows"]:  # all are UDP: what has arrived by now counts
            for process in receivers:
                process.terminate()
        time.sleep(SETTLE_S)
        if air:
            air.end(out)
        network.clear()  # a goodbye of the receivers that got lost would return in the next point
        for process in (*receivers, *taps):
            process.terminate()
            errors.append(_finish(process))
        time.sleep(SETTLE_S)
        programs.join_samples()
        if trace:
            trace.save(out / "trace.txt")
        errors = [error for error in errors if error]
        if errors:
            raise RuntimeError("; ".join(errors))

    def _start_time(self, point: dict) -> float:
        """Return when POINT starts, and let the wall clock be its seed's then."""
        processes = 1 + 2 * len(point["flows"] + point["udp"]) + len(point["taps"])
        if self.network.air:
            processes += 2 * len(self.network.air.taps)
        now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        start_s = start_time(self.clock, now_s, processes)
        if self.clock != "real":
            set_wall_clock(point["rng_seed"], start_s)
        return start_s


def _finish(process) -> str:
    """Wait for PROCESS; return what it said if it failed, else nothing."""
    _, complaint = process.communicate()
    if process.returncode == 0:
        return ""
    return complaint.strip() or f"{process.args} ended with {process.returncode}"


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
        lab.network.net.stop()


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
