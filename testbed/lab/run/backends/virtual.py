# SPDX-License-Identifier: GPL-2.0-only
"""The `virtual` backend: points inside User Mode Linux whose clock jumps from timer to timer.

Needs no root and no KVM. A boot and Mininet's start cost 1.4 seconds, and 0.3 for each pair
of hosts, a point of one flow, 100 virtual seconds and 2 Mb/s a tenth of one (lab.run.costs), so
points that share a topology share a boot.
"""

import subprocess
from functools import cached_property
from pathlib import Path

from lab.ask.points import Point
from lab.common.errors import unknown
from lab.run import build as builds
from lab.run import costs
from lab.run.backends.base import Backend, check_room, folder_with_room

LAB_KERNEL = "lab"
GUEST_MEMORY_MB = {LAB_KERNEL: 256, "debug": 768}  # by kernel
RESULTS_ROOM_MB = 128
SLOWER_BY = {LAB_KERNEL: 1, "debug": 6}
TIME_START_NS = 1_700_000_000_000_000_000  # what the lab's wall clock says at boot


def room_for_memory(memory_mb: int = GUEST_MEMORY_MB[LAB_KERNEL]) -> Path:
    """Return a folder that has room for guests' memory files and allows to execute them."""
    return folder_with_room(memory_mb + RESULTS_ROOM_MB, "a guest's memory", executable=True)


class VirtualBackend(Backend):
    name = "virtual"
    clock = "jumps"
    boot_limit_s = 90.0
    batch_wall_s = 30.0
    boot_cost_s = 1.4
    pair_cost_s = 0.3

    def __init__(self, build: builds.Build | None = None, kernel: str = LAB_KERNEL):
        """KERNEL: lab, or debug, which checks itself and is slower."""
        if kernel not in GUEST_MEMORY_MB:
            raise unknown("kernel of the virtual backend", kernel, GUEST_MEMORY_MB)
        self.kernel = kernel
        self.memory_mb = GUEST_MEMORY_MB[kernel]
        self.build = build or builds.prepare(builds.uml_kernel(kernel), self.name)
        self.guest_room = room_for_memory(self.memory_mb)

    def cost_s(self, point: Point) -> float:
        return SLOWER_BY[self.kernel] * costs.point_s(point.spec)

    def check(self, points: list[Point]) -> None:
        super().check(points)
        most_mb = self.memory_mb + max(point.extra_memory_mb for point in points)
        if most_mb > self.memory_mb:
            check_room(self.guest_room, most_mb + RESULTS_ROOM_MB, "a guest's memory")

    def guest_command(self, guest: Path, cpu: int, extra_mb: int = 0) -> list[str]:
        return [
            "taskset", "-c", str(cpu), str(self.build.kernel.image),
            f"mem={self.memory_mb + extra_mb}M",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "panic=-1",
            "time-travel=inf-cpu", f"time-travel-start={TIME_START_NS}", "norandmaps",
            "con=null", "con0=fd:0,fd:1", f"uml_dir={guest}/", "umid=uml",
            f"init={guest}/init", "LAB_FS=hostfs", f"LAB_DIR={guest}", *self._fast_userspace,
        ]  # fmt: skip

    @cached_property
    def _fast_userspace(self) -> list[str]:
        """From 6.16 on UML can run user code under seccomp, which costs far less than ptrace."""
        told = subprocess.run([self.build.kernel.image, "--help"], capture_output=True, text=True)
        return ["seccomp=auto"] if "seccomp=" in told.stdout + told.stderr else []

    def describe(self) -> dict:
        return {
            "backend": self.name,
            "kernel": self.kernel,
            "kernel_release": self.build.kernel.release,
            "kernel_build": self.build.kernel.key,
            "module_srcversions": self.build.srcversions(),
            "memory_dir": str(self.guest_room),
        }
