# SPDX-License-Identifier: GPL-2.0-only
"""The `host` backend: points on this machine's own kernel, with the modules that are installed.

Needs root, and time is real: a point of 100 s takes 100 s, one runs at a time, and what else the
machine does is felt. The network is Mininet's, in namespaces (network, mounts, processes) that end
with the run; the machine's own network is not touched.
"""

import hashlib
import os
import subprocess
from functools import cached_property
from pathlib import Path

from lab.ask import lablink
from lab.ask.algorithms import ALGORITHMS
from lab.ask.points import Point
from lab.ask.wifi import GATE_MODULE
from lab.common.errors import BadInput, LabError
from lab.run import build as builds
from lab.run.backends.base import SAFE_PATH, Backend, folder_with_room

RESULTS_ROOM_MB = 64
POINT_COST_S = 10.0  # besides its duration
PATCHED_SCTP = Path("/proc/sys/net/sctp/congestion_control")  # there is none in the unpatched
OURS = tuple(a.module for a in ALGORITHMS.values() if a.ours and a.module)


def running_kernel() -> builds.Kernel:
    """Return the kernel that this machine runs, named after its build."""
    told = os.uname()
    build = hashlib.sha256(told.version.encode()).hexdigest()[:12]
    modules = Path("/lib/modules") / told.release
    return builds.Kernel(f"host-{told.release}-{build}", told.release, Path("/"), modules, modules)


def loadable(module: str) -> bool:
    """Load MODULE if this machine has it; say whether it is there then."""
    if Path("/sys/module", module).is_dir():  # loaded, or built in
        return True
    command = ["modprobe", "-q", module]
    environment = os.environ | {"PATH": SAFE_PATH}
    return subprocess.run(command, capture_output=True, env=environment).returncode == 0


class InstalledBuild(builds.Build):
    """The modules that this machine has; only the tools are built."""

    @cached_property
    def _modules_key(self) -> str:
        text = repr(sorted(self.srcversions().items()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _stage_modules(self) -> None:
        """Nothing: modprobe finds what is installed."""

    def module_file(self, name: str) -> str:
        return name

    def our_modules(self) -> list[str]:
        return [name for name in OURS if loadable(name)]


class HostBackend(Backend):
    name = "host"
    clock = "real"
    boot_limit_s = 600.0
    batch_wall_s = 600.0
    side_by_side = False
    guest_modules = ("veth", "sch_netem", "inet_diag", "tcp_diag")
    modprobe_options = ()

    def __init__(self):
        kernel = running_kernel()
        if os.geteuid() != 0:
            raise LabError("the host backend needs root: run it with sudo, or take --backend vm")
        missing = [name for name in self.guest_modules if not loadable(name)]
        if missing:
            raise LabError(
                f"this machine's kernel {kernel.release} has no {', '.join(missing)}, or does not"
                " let modules be loaded: take --backend vm, or virtual"
            )
        self.build = InstalledBuild(kernel, self.name)
        self.build.make_stage()
        self.guest_room = folder_with_room(RESULTS_ROOM_MB, "results", executable=False)

    def cost_s(self, point: Point) -> float:
        return POINT_COST_S + point.spec["duration_s"]

    def modules(self) -> list[str]:
        """Return what there is to load; a flow with an algorithm that is not there says so."""
        return [name for name in super().modules() if loadable(name)]

    def check(self, points: list[Point]) -> None:
        if any(point.spec["lablinks"] for point in points) and not loadable(lablink.MODULE):
            raise BadInput(
                f"this machine has no {lablink.MODULE}, which links with a rate that changes need:"
                " sudo make -C testbed/lablink install, or take --backend virtual"
            )
        if any(point.spec["topology"]["stations"] for point in points) and not loadable(
            GATE_MODULE
        ):
            raise BadInput(
                f"this machine has no {GATE_MODULE}, which an access point needs:"
                " sudo make -C testbed/lablink install, or take --backend virtual"
            )
        super().check(points)

    def sctp_complaint(self, variant: str) -> str:
        if not loadable("sctp"):
            return (
                f"this machine's kernel {self.build.kernel.release} has no SCTP: take --backend vm"
            )
        if variant == "patched" and not (loadable("sctp_jsctp") and PATCHED_SCTP.exists()):
            return "this machine has no patched SCTP (sudo make sctp-install): take --backend vm"
        if variant == "stock" and PATCHED_SCTP.exists():
            return "this machine's SCTP is patched (sudo make sctp-uninstall): take --backend vm"
        return ""

    def guest_command(self, guest: Path, cpu: int, extra_mb: int = 0) -> list[str]:
        """Run the worker as the first process of namespaces of its own, on any processor."""
        (guest / "tmp").mkdir()
        settings = {
            "LAB_OUT": guest / "out", "LAB_BIN": guest / "modules" / "bin",
            "TMPDIR": guest / "tmp", "PYTHONPATH": builds.TESTBED, "PYTHONDONTWRITEBYTECODE": 1,
        }  # fmt: skip
        return [
            "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "env", *(f"{name}={value}" for name, value in settings.items()),
            "/usr/bin/python3", "-m", "lab.run.guest.worker",
        ]  # fmt: skip

    def run_command(self, command: str, cpu: int, out: Path | None) -> int:
        raise NotImplementedError  # lab.run.execute refuses it

    def describe(self) -> dict:
        return {
            "backend": self.name,
            "kernel_release": self.build.kernel.release,
            "kernel_build": os.uname().version,
            "module_srcversions": self.build.srcversions(),
            "processor": "this machine's, in real time",
            "repeatable_to_the_byte": False,
        }
