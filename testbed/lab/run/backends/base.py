# SPDX-License-Identifier: GPL-2.0-only
"""What all backends share: batches of points, the guest's folder, and watching a guest at work.

A guest is a process that runs lab.run.guest.worker on a kernel of its own (or on this machine's).
It sees one folder: what it is to do in, and its results out. A backend says how to start it and how
long things take; everything else is here.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from subprocess import TimeoutExpired
from typing import Any, ClassVar

from lab.ask import lablink, linktraces
from lab.ask.algorithms import ALGORITHMS, KERNEL_MODULE_PREFIX, STOCK_SCTP
from lab.ask.carries import TUNNELS
from lab.ask.links import AQM_MODULE, AQMS, POLICER_MODULES, link_of
from lab.ask.points import Point
from lab.ask.wifi import GATE_MODULE
from lab.common.errors import BadInput, LabError, unknown
from lab.run import build as builds
from lab.run.cpus import claimed
from lab.run.patience import Patience

BATCH_MAX_POINTS = 100
BOOTS_WORTH = 20  # so many times what a boot costs, a batch should
PAIR_LIMIT_S = 5.0  # a boot may take so much longer for each pair of hosts
OUT_OF_MEMORY = "Out of memory: Killed process"  # what the kernel says of it
USER_FOLDER = "user"  # in a guest's folder: the modules that a user brought
SAFE_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Outcome:
    """A point that ended. ERROR: what went wrong, or nothing; LOG: the boot's console."""

    point: Point
    raw: Path
    error: str
    log: str


@dataclass
class Offered:
    """What a kernel says of a user's module: the ALGORITHMS that it registers, or the COMPLAINT;
    LOG: the kernel's words."""

    algorithms: tuple[str, ...] = ()
    complaint: str = ""
    log: str = ""


OnOutcome = Callable[[Outcome], None]


def _room_mb(stat: os.statvfs_result) -> int:
    return stat.f_bavail * stat.f_frsize >> 20


def folder_with_room(needed_mb: int, wanted_for: str, executable: bool) -> Path:
    """Return a folder, in memory if possible, with room for NEEDED_MB and, if EXECUTABLE, the
    right to execute what is in it."""
    candidates = [os.environ.get("TMPDIR"), "/dev/shm", "/tmp", os.environ.get("XDG_CACHE_HOME")]
    tried = []
    for folder in filter(None, candidates):
        try:
            stat = os.statvfs(folder)
        except OSError:
            continue
        room_mb = _room_mb(stat)
        noexec = executable and stat.f_flag & os.ST_NOEXEC
        usable = os.access(folder, os.W_OK) and not noexec
        if usable and room_mb >= needed_mb:
            return Path(folder)
        tried.append(f"{folder} ({room_mb} MB{'' if usable else ', not writable or noexec'})")
    raise LabError(
        f"no space for {wanted_for}: {needed_mb} MB are needed in a folder that allows"
        f" {'exec' if executable else 'writing'}; tried {', '.join(tried)};"
        " set TMPDIR to one that has it"
    )


def check_room(folder: Path, needed_mb: int, wanted_for: str) -> None:
    """Refuse a FOLDER for guests that has no room for NEEDED_MB."""
    room_mb = _room_mb(os.statvfs(folder))
    if room_mb < needed_mb:
        raise LabError(
            f"no space for {wanted_for}: the largest of these points needs {needed_mb} MB in"
            f" {folder}, which has {room_mb}; set TMPDIR to a folder that has it"
        )


class Backend(ABC):
    """Where points run. A subclass starts guests; see its docstring for what time is there."""

    name: ClassVar[str]
    clock: str  # "jumps": waiting costs nothing; "real": it costs what it takes
    boot_limit_s: ClassVar[float]  # after so much a guest that is not up counts as hung
    batch_wall_s: ClassVar[float]  # aim: so long that it hides the boot and still shows progress
    boot_cost_s: ClassVar[float] = 0.0  # what a guest takes to be up, and for each pair of hosts
    pair_cost_s: ClassVar[float] = 0.0
    guest_modules: ClassVar[tuple[str, ...]] = ()  # what the network needs besides algorithms
    slack: ClassVar[float] = 30.0  # so many times what it is expected to cost a point may take
    side_by_side: ClassVar[bool] = True  # several guests at once do not disturb each other
    modprobe_options: ClassVar[tuple[str, ...]] = ("-d", "/run/lab/modules")

    build: builds.Build
    guest_room: Path  # where guests' folders are made
    _came_up = False  # whether a guest of this run has

    @abstractmethod
    def cost_s(self, point: Point) -> float:
        """Guess the wall time of POINT, to cut batches of similar length."""

    @abstractmethod
    def guest_command(self, guest: Path, cpu: int, extra_mb: int = 0) -> list[str]:
        """Return the command that starts a guest over the folder GUEST, pinned to CPU, with so much
        more memory than usual."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what results depend on, for meta.json."""

    @property
    def limits_of(self) -> str:
        """What time the limits are of, in words."""
        return "wall time" if self.clock == "real" else "processor time"

    def point_limit_s(self, point: Point) -> float:
        """Return after how much time without an end POINT counts as hung: of the processor, or with
        a real clock of the wall (lab.run.patience)."""
        return 60.0 + self.slack * self.cost_s(point)

    def batches(self, points: list[Point], jobs: int) -> list[list[Point]]:
        """Cut POINTS into batches that share a topology and take about batch_wall_s each, or
        BOOTS_WORTH times what their boot takes. The first of a batch has the most pairs of hosts.
        What a user's module does to a kernel, no point without it shares."""
        total_s = sum(map(self.cost_s, points))
        by_topology: dict[tuple, list[Point]] = {}
        for point in points:
            key = (point.topology_key, *self.user_modules([point]))
            by_topology.setdefault(key, []).append(point)
        batches = []
        for group in by_topology.values():
            batch, batch_s = [], 0.0
            for point in sorted(group, key=lambda point: -point.pairs):
                if not batch:
                    boot_s = self.boot_cost_s + self.pair_cost_s * point.pairs
                    aim_s = min(max(self.batch_wall_s, BOOTS_WORTH * boot_s), total_s / jobs)
                full = batch_s + self.cost_s(point) / 2 > aim_s or len(batch) == BATCH_MAX_POINTS
                if batch and full:
                    batches.append(batch)
                    batch, batch_s = [], 0.0
                batch.append(point)
                batch_s += self.cost_s(point)
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
        batch = {
            "clock": self.clock,
            "modules": [
                *self.modules(),
                *self.unknown_modules(points),
                *(["tun"] if points[0].spec["medium"] else []),
                *([GATE_MODULE] if points[0].spec["topology"]["stations"] else []),
                *self.tunnel_modules(points[0].spec["topology"]["tunnel"]),
            ],
            "insmod": [
                f"/run/lab/job/{USER_FOLDER}/{m.file.name}" for m in self.user_modules(points)
            ],
            "modprobe_options": self.modprobe_options,
            "sctp_modprobe": self.sctp_modprobe(points[0].spec["sctp"]),
            "points": [p.spec | {"id": p.id} for p in points],
        }
        with self._guest_dir() as guest:
            out = guest / "out"
            _write_schedules(points, out)
            (out / "batch.json").write_text(json.dumps(batch))
            done = 0
            boot_limit_s = self.boot_limit_s + PAIR_LIMIT_S * points[0].pairs
            extra_mb = points[0].extra_memory_mb  # that of all: it is in their topology's key
            with self._guest(guest, cpu, extra_mb=extra_mb) as kernel:
                up = False
                patience = Patience(kernel.pid, real=self.clock == "real")
                while not stop.is_set():
                    ended = kernel.poll() is not None
                    self._came_up = self._came_up or (out / "up").exists()
                    while done < len(points) and (out / points[done].id).is_dir():
                        outcome = _outcome(points[done], guest)
                        on_outcome(outcome)
                        done += 1
                        patience.begin()
                        if outcome.error:
                            return done
                    if done == len(points):
                        return done
                    if not up and (out / "up").exists():
                        up = True
                        patience.begin()
                    limit_s = self.point_limit_s(points[done]) if up else boot_limit_s
                    if ended or patience.ended(limit_s):
                        return done + self._blame(points[done], guest, ended, limit_s, on_outcome)
                    time.sleep(0.02)
            return done

    def _blame(self, point, guest: Path, ended: bool, limit_s: float, on_outcome) -> int:
        log = _console(guest)
        up = (guest / "out" / "up").exists()
        if not up and not self._came_up:  # nor will it next time
            raise LabError(f"the lab kernel did not come up; its console said:\n{log[-3000:]}")
        why = (
            "the lab kernel stopped"
            if ended
            else f"no end within {limit_s:.0f} s of {self.limits_of}"
        )
        if OUT_OF_MEMORY in log:  # who was killed was waited for
            why = f"the lab kernel ran out of memory: {why}"
        why = why if up else f"the lab kernel did not come up: {why}"
        on_outcome(Outcome(point, guest, why, log))
        return 1

    def run_command(self, command: str, cpu: int, out: Path | None) -> int:
        """Run a shell COMMAND inside the lab, in this folder, its output here.

        What it writes to $LAB_OUT is kept in OUT, if given. Returns its exit status.
        """
        self.build.offer_medium()
        with self._guest_dir() as guest:
            if out:
                (guest / "out").rmdir()
                (guest / "out").symlink_to(out.resolve())
            modules = " ".join([*self.modules(), "tun"])
            (guest / "command").write_text(
                f"modprobe -d /run/lab/modules -a {modules}\ncd {quote(os.getcwd())}\n{command}\n"
            )
            with self._guest(guest, cpu, console=None) as kernel:
                _pass_on(kernel)
                kernel.wait()
            status = guest / "status"
            if not status.exists():
                raise LabError("the lab kernel stopped before the command ended")
            return int(status.read_text())

    def offer(self, module: builds.UserModule) -> Offered:
        """Boot once and load a user's MODULE: what does it register, or what went wrong?"""
        build = self.build
        self.build = replace(build, user=(module,))
        available = "/proc/sys/net/ipv4/tcp_available_congestion_control"
        job = f"/run/lab/job/{USER_FOLDER}"
        try:
            with self._guest_dir() as guest:
                (guest / "command").write_text(
                    f"modprobe {' '.join(self.modprobe_options)} -a {' '.join(self.modules())}\n"
                    f"cat {available} >{job}/before\n"
                    f"insmod {job}/{module.file.name} 2>{job}/complaint || dmesg >{job}/log\n"
                    f"cat {available} >{job}/after\n"
                )
                with claimed() as cpu, self._guest(guest, cpu) as kernel, suppress(TimeoutExpired):
                    kernel.wait(self.boot_limit_s)
                files = [p for p in (guest / USER_FOLDER).iterdir() if p.suffix != ".ko"]
                said = {path.name: path.read_text(errors="replace") for path in files}
                return _offered(said, _console(guest))
        finally:
            self.build = build

    def modules(self) -> list[str]:
        """Return what to load: the network's, our algorithms and the peers not built in."""
        aqms = (AQM_MODULE.format(aqm) for aqm in AQMS)
        queues = [lablink.MODULE, "sch_tbf"]
        queues += filter(self.build.kernel.has, [*POLICER_MODULES, *aqms])
        tcp = [a.module for a in ALGORITHMS.values() if a.module and a.transport == "tcp"]
        agents = [f"sch_{a.agent}" for a in ALGORITHMS.values() if a.agent]
        return [*self.guest_modules, *queues, *tcp, *agents]

    def user_modules(self, points: list[Point]) -> list[builds.UserModule]:
        """Return what POINTS need of the modules that a user brought."""
        return self.build.user_modules(_algorithms(points))

    def unknown_modules(self, points: list[Point]) -> list[str]:
        """Return the kernel's modules of those algorithms of POINTS that the lab does not know."""
        names = _algorithms(points) - ALGORITHMS.keys()
        names -= {name for module in self.build.user for name in module.algorithms}
        return sorted(ALGORITHMS[name].module for name in names)

    def check(self, points: list[Point]) -> None:
        """Refuse points that this backend cannot run."""
        for module in self.unknown_modules(points):
            if not self.build.kernel.has(module):
                raise self._no_algorithm(module.removeprefix(KERNEL_MODULE_PREFIX))
        specs = (point.spec for point in points)
        complaints = {self.link_complaint(s["links"], s["topology"]["tunnel"]) for s in specs}
        for complaint in sorted(complaints - {""}):
            raise BadInput(complaint)
        for variant in sorted({point.spec["sctp"] for point in points} - {""}):
            if complaint := self.sctp_complaint(variant):
                raise BadInput(complaint)

    def _no_algorithm(self, name: str) -> BadInput:
        """Return what to say of a NAME that neither the kernel nor a user's module has."""
        if self.build.user:
            told = (f"{m.file.name} registers {', '.join(m.algorithms)}" for m in self.build.user)
            return BadInput(f"no algorithm '{name}': {'; '.join(told)}")
        kernel = self.build.kernel
        names = {*ALGORITHMS, *kernel.algorithms()}
        return unknown(f"algorithm of Linux {kernel.release}", name, names)

    def link_complaint(self, links: dict[str, dict], tunnel: str = "") -> str:
        """Say what the kernel lacks for LINKS and TUNNEL (of a point's spec); nothing if it has
        all."""
        kernel = self.build.kernel
        wanted = self.tunnel_modules(tunnel)
        for link in map(link_of, links.values()):
            wanted += [AQM_MODULE.format(link.aqm)] if link.aqm else []
            wanted += POLICER_MODULES if link.bucket_bytes else []
        for module in wanted:
            if not kernel.has(module):
                return (
                    f"kernel {kernel.release} has no {module}: take another (KERNEL_SRC=, or"
                    " --backend vm)"
                )
        return ""

    @staticmethod
    def tunnel_modules(tunnel: str) -> list[str]:
        return [TUNNELS[tunnel][1]] if tunnel else []

    def sctp_complaint(self, variant: str) -> str:
        """Say why there is no such VARIANT of SCTP here; nothing if there is."""
        if variant == "stock" or self.build.patches_sctp:
            return ""
        return (
            f"no patched SCTP for kernel {self.build.kernel.release}: {self.build.no_sctp_because};"
            " take the lab's own (--backend virtual without KERNEL_SRC), or"
            f" --algorithms {STOCK_SCTP}"
        )

    def sctp_modprobe(self, variant: str) -> list[str]:
        """Return how to load the VARIANT of SCTP (algorithms.sctp_variant); nothing for none."""
        if not variant:
            return []
        if variant == "stock":
            options = ["-d", "/run/lab/modules/stock"] if self.build.patches_sctp else []
            return ["modprobe", *(options or self.modprobe_options), "-a", "sctp", "sctp_diag"]
        ours = {a.module for a in ALGORITHMS.values() if a.ours and a.transport == "sctp"}
        return ["modprobe", *self.modprobe_options, "-a", "sctp_diag", *sorted(ours)]

    @contextmanager
    def _guest_dir(self) -> Iterator[Path]:
        """A folder whose entries are what the guest mounts; gone when the boot is over."""
        guest = Path(tempfile.mkdtemp(prefix="veno-jitter-", dir=self.guest_room))
        try:
            (guest / "project").symlink_to(builds.PROJECT)
            (guest / "modules").symlink_to(self.build.stage)
            (guest / "out").mkdir()
            (guest / USER_FOLDER).mkdir()
            for module in self.build.user:
                shutil.copy(module.file, guest / USER_FOLDER)
            shutil.copy(builds.TESTBED / "lab" / "run" / "guest" / "init", guest / "init")
            yield guest
        finally:
            shutil.rmtree(guest, ignore_errors=True)

    @contextmanager
    def _guest(
        self, guest: Path, cpu: int, console: str | None = "console", extra_mb: int = 0
    ) -> Iterator[subprocess.Popen]:
        """Start a guest; whatever happens, none of its processes is left."""
        # a killed runner leaves no guest behind
        command = ["setpriv", "--pdeathsig", "KILL", *self.guest_command(guest, cpu, extra_mb)]
        # by a pipe: a kernel that has the terminal itself makes Ctrl-C a character of its own
        output = open(guest / console, "wb") if console else subprocess.PIPE
        kernel = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={"TMPDIR": str(guest), "PATH": SAFE_PATH}, start_new_session=True,
        )  # fmt: skip
        try:
            yield kernel
        finally:
            _kill_session(kernel)
            (kernel.stdout or output).close()


def _offered(said: dict[str, str], console: str) -> Offered:
    """Make sense of what the commands of Backend.offer() left."""
    if "before" not in said:
        raise LabError(f"the lab kernel did not come up; its console said:\n{console[-3000:]}")
    if "after" not in said:
        return Offered((), "the kernel stopped when it loaded the module", console)
    if "log" in said:
        reason = said["complaint"].strip().splitlines() or ["it was killed"]
        why = f"the kernel does not load it: {reason[-1]}"
        if "File exists" in why:
            why = "it registers a name that the kernel has already"
        return Offered((), why, said["log"][-5000:])
    before = said["before"].split()
    names = tuple(name for name in said["after"].split() if name not in before)
    if not names:
        return Offered((), "it registers no congestion control that the kernel did not have")
    return Offered(names)


def _algorithms(points: list[Point]) -> set[str]:
    return {flow["algorithm"] for point in points for flow in point.spec["flows"]}


def _write_schedules(points: list[Point], out: Path) -> None:
    """Leave the steps of all traces of POINTS in OUT, where the guest looks for them."""
    folder = out / lablink.SCHEDULES
    folder.mkdir()
    for point in points:
        for hop in point.spec["lablinks"]:
            link = link_of(point.spec["links"][hop])
            for schedule in linktraces.of_link(link, point.seed).values():
                (folder / schedule.digest).write_bytes(schedule.packed)


def _pass_on(kernel: subprocess.Popen) -> None:
    """Print what KERNEL says until it ends, or nobody reads it any more. Polars has Ctrl-C handled
    so that a read goes on, and select() does not."""
    said = kernel.stdout.fileno()
    try:
        while select.select([said], [], []) and (piece := os.read(said, 1 << 16)):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None


def _kill_session(kernel: subprocess.Popen) -> None:
    """Kill a guest and all its processes, which are in its session."""
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
