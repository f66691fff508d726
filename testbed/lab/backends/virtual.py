# SPDX-License-Identifier: GPL-2.0-only
"""The `virtual` backend: points inside User Mode Linux whose clock jumps from timer to timer.

Needs no root and no KVM. A boot and Mininet's start cost about two seconds, a point of 200
virtual seconds at 2 Mb/s a tenth of one, so points that share a topology share a boot.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote

from lab import build as builds
from lab.algorithms import ALGORITHMS
from lab.errors import LabError
from lab.points import Point

GUEST_MEMORY_MB = 256
ROOM_NEEDED_MB = GUEST_MEMORY_MB + 128  # memory file and results of one boot
TIME_START_NS = 1_700_000_000_000_000_000  # what the lab's wall clock says at boot
BOOT_LIMIT_S = 90.0
BATCH_WALL_S = 15.0  # aim: a batch this long hides the boot and still shows progress
BATCH_MAX_POINTS = 100


@dataclass
class Outcome:
    """A point that ended. ERROR: what went wrong, or nothing; LOG: the boot's console."""

    point: Point
    raw: Path
    error: str
    log: str


OnOutcome = Callable[[Outcome], None]


def cost_s(point: Point) -> float:
    """Guess the wall time of POINT, to cut batches of similar length."""
    rates = [link["rate_mbps"] for link in point.spec["links"].values() if link["rate_mbps"]]
    return 0.1 + point.spec["duration_s"] * (0.0002 + 0.0003 * min(rates))


def wall_limit_s(point: Point) -> float:
    """Return after how much wall time without an end POINT counts as hung."""
    return 60.0 + 30 * cost_s(point)


def room_for_memory() -> Path:
    """Return a folder that has room for guests' memory files and allows to execute them."""
    candidates = [os.environ.get("TMPDIR"), "/dev/shm", "/tmp", os.environ.get("XDG_CACHE_HOME")]
    tried = []
    for folder in filter(None, candidates):
        try:
            stat = os.statvfs(folder)
        except OSError:
            continue
        room_mb = stat.f_bavail * stat.f_frsize >> 20
        usable = os.access(folder, os.W_OK) and not stat.f_flag & os.ST_NOEXEC
        if usable and room_mb >= ROOM_NEEDED_MB:
            return Path(folder)
        tried.append(f"{folder} ({room_mb} MB{'' if usable else ', not writable or noexec'})")
    raise LabError(
        f"no space for a guest's memory: {ROOM_NEEDED_MB} MB are needed in a folder that allows"
        f" exec; tried {', '.join(tried)}; set TMPDIR to one that has it"
    )


class VirtualBackend:
    name = "virtual"

    def __init__(self, build: builds.Build | None = None):
        self.build = build or builds.prepare()
        self.memory_dir = room_for_memory()

    def batches(self, points: list[Point], jobs: int) -> list[list[Point]]:
        """Cut POINTS into batches that share a topology and take about BATCH_WALL_S each."""
        total_s = sum(map(cost_s, points))
        aim_s = min(BATCH_WALL_S, total_s / jobs)
        by_topology: dict[str, list[Point]] = {}
        for point in points:
            by_topology.setdefault(point.topology_key, []).append(point)
        batches = []
        for group in by_topology.values():
            batch, batch_s = [], 0.0
            for point in group:
                full = batch_s + cost_s(point) / 2 > aim_s or len(batch) == BATCH_MAX_POINTS
                if batch and full:
                    batches.append(batch)
                    batch, batch_s = [], 0.0
                batch.append(point)
                batch_s += cost_s(point)
            batches.append(batch)
        return batches

    def run_batch(
        self, points: list[Point], cpu: int, on_outcome: OnOutcome, stop: threading.Event
    ) -> None:
        """Run POINTS pinned to CPU. A point that fails or hangs costs a new boot for the rest."""
        while points and not stop.is_set():
            done = self._boot(points, cpu, on_outcome, stop)
            points = points[done:]

    def _boot(
        self, points: list[Point], cpu: int, on_outcome: OnOutcome, stop: threading.Event
    ) -> int:
        """Boot once and run POINTS until one fails. Returns how many ended, well or not."""
        batch = {"modules": self._modules(), "points": [p.spec | {"id": p.id} for p in points]}
        with self._guest_dir() as guest:
            out = guest / "out"
            (out / "batch.json").write_text(json.dumps(batch))
            done = 0
            with self._kernel(guest, cpu) as kernel:
                up = False
                progress_s = time.monotonic()
                while not stop.is_set():
                    ended = kernel.poll() is not None
                    while done < len(points) and (out / points[done].id).is_dir():
                        outcome = _outcome(points[done], guest)
                        on_outcome(outcome)
                        done += 1
                        progress_s = time.monotonic()
                        if outcome.error:
                            return done
                    if done == len(points):
                        return done
                    if not up and (out / "up").exists():
                        up, progress_s = True, time.monotonic()
                    limit_s = wall_limit_s(points[done]) if up else BOOT_LIMIT_S
                    if ended or time.monotonic() - progress_s > limit_s:
                        return done + self._blame(points[done], guest, ended, limit_s, on_outcome)
                    time.sleep(0.02)
            return done

    def _blame(self, point, guest: Path, ended: bool, limit_s: float, on_outcome) -> int:
        log = _console(guest)
        if not (guest / "out" / "up").exists():
            raise LabError(f"the lab kernel did not come up; its console said:\n{log[-3000:]}")
        why = "the lab kernel stopped" if ended else f"no end within {limit_s:.0f} s of wall time"
        on_outcome(Outcome(point, guest, why, log))
        return 1

    def run_command(self, command: str, cpu: int, out: Path | None) -> int:
        """Run a shell COMMAND inside the lab, in this folder, its output here.

        What it writes to $LAB_OUT is kept in OUT, if given. Returns its exit status.
        """
        with self._guest_dir() as guest:
            if out:
                (guest / "out").rmdir()
                (guest / "out").symlink_to(out.resolve())
            modules = " ".join(self._modules())
            (guest / "command").write_text(
                f"modprobe -d /run/lab/modules -a {modules}\ncd {quote(os.getcwd())}\n{command}\n"
            )
            with self._kernel(guest, cpu, console=None) as kernel:
                kernel.wait()
            status = guest / "status"
            if not status.exists():
                raise LabError("the lab kernel stopped before the command ended")
            return int(status.read_text())

    def _modules(self) -> list[str]:
        """Return what to load: our algorithms and the peers that are not built in."""
        return [a.module for a in ALGORITHMS.values() if a.module]

    @contextmanager
    def _guest_dir(self) -> Iterator[Path]:
        """A folder whose entries are what the guest mounts; gone when the boot is over."""
        guest = Path(tempfile.mkdtemp(prefix="veno-jitter-", dir=self.memory_dir))
        try:
            (guest / "project").symlink_to(builds.PROJECT)
            (guest / "modules").symlink_to(self.build.stage)
            (guest / "out").mkdir()
            shutil.copy(builds.TESTBED / "lab" / "guest" / "init", guest / "init")
            yield guest
        finally:
            shutil.rmtree(guest, ignore_errors=True)

    @contextmanager
    def _kernel(self, guest: Path, cpu: int, console: str | None = "console"):
        """Boot a lab kernel; whatever happens, none of its processes is left."""
        command = [
            "setpriv", "--pdeathsig", "KILL",  # a killed runner leaves no kernel behind
            "taskset", "-c", str(cpu), str(self.build.linux), f"mem={GUEST_MEMORY_MB}M",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "panic=-1",
            "time-travel=inf-cpu", f"time-travel-start={TIME_START_NS}", "norandmaps",
            "con=null", "con0=fd:0,fd:1", f"uml_dir={guest}/", "umid=uml",
            f"init={guest}/init", f"LAB_DIR={guest}", *self._fast_userspace,
        ]  # fmt: skip
        environment = {"TMPDIR": str(guest), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        output = open(guest / console, "wb") if console else None
        kernel = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            yield kernel
        finally:
            _kill_session(kernel)
            if output:
                output.close()

    @cached_property
    def _fast_userspace(self) -> list[str]:
        """From 6.16 on UML can run user code under seccomp, which costs far less than ptrace."""
        told = subprocess.run([self.build.linux, "--help"], capture_output=True, text=True)
        return ["seccomp=auto"] if "seccomp=" in told.stdout + told.stderr else []

    def describe(self) -> dict:
        """Return what results depend on, for meta.json."""
        return {
            "backend": self.name,
            "kernel_release": self.build.release,
            "kernel_build": self.build.kernel_key,
            "module_srcversions": self.build.srcversions(),
            "memory_dir": str(self.memory_dir),
        }


def _kill_session(kernel: subprocess.Popen) -> None:
    """Kill a UML kernel and its guest processes, which are in its session."""
    with suppress(ProcessLookupError):
        os.killpg(kernel.pid, signal.SIGKILL)
    kernel.wait()


def _console(guest: Path) -> str:
    try:
        return (guest / "console").read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _outcome(point: Point, guest: Path) -> Outcome:
    raw = guest / "out" / point.id
    error = raw / "error"
    said = error.read_text().strip() if error.exists() else ""
    return Outcome(point, raw, said, _console(guest) if said else "")
