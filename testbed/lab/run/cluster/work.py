# SPDX-License-Identifier: GPL-2.0-only
"""One batch of points on a worker: python -m lab.run.cluster.work FOLDER, an unpacked bundle. The
batch comes by standard input, what is kept of it goes to standard output."""

import os
import pickle
import shutil
import sys
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, call, run
from typing import Any

from lab.ask.points import Point
from lab.common.errors import LabError
from lab.run import guestrooms
from lab.run.backends.base import SAFE_PATH
from lab.run.cpus import claimed
from lab.run.ended import Ended, ended

# what the lab uses of a machine -> the Debian package that it is in
PROGRAMS = {
    "python3": "python3", "mnexec": "mininet", "ip": "iproute2", "tc": "iproute2",
    "ethtool": "ethtool", "ifconfig": "net-tools", "modprobe": "kmod", "taskset": "util-linux",
    "mount": "mount",
}  # fmt: skip


@dataclass
class Batch:
    """POINTS, and the names of those whose samples are kept."""

    points: list[Point]
    keep: set[str]


def pack(what: Any) -> bytes:
    return zlib.compress(pickle.dumps(what), 1)


def unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def main() -> None:
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is said is no answer
    try:
        from lab.run.cluster import bundle

        backend = bundle.backend_in(Path(sys.argv[1]))
        batch = unpack(sys.stdin.buffer.read())
        wireless = any(point.spec["medium"] for point in batch.points)
        check_machine(backend.build.stage / "bin" / "labmedium" if wireless else None)
        guestrooms.sweep()
        backend.guest_room = guestrooms.claim(backend.guest_room)
        answer.write(pack(_run(backend, batch)))
    except LabError as error:
        print(str(error).replace("\n", " "), file=sys.stderr)
        sys.exit(1)


def _run(backend, batch: Batch) -> list[Ended]:
    found: list[Ended] = []

    def on_outcome(outcome) -> None:
        found.append(ended(outcome, outcome.point.id in batch.keep))

    with claimed(cache() / "cpus") as cpu:
        backend.run_batch(batch.points, cpu, on_outcome, threading.Event())
    return found


def cache() -> Path:
    """Return where testbed/setup would keep things, had this machine a checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LAB_CACHE") or Path(base) / "veno-jitter")


def check_machine(medium: Path | None = None) -> None:
    """Refuse a machine that lacks programs which the lab uses, or libraries of the wireless
    MEDIUM, if points have one."""
    missing = {
        package for name, package in PROGRAMS.items() if not shutil.which(name, path=SAFE_PATH)
    }
    if not missing and call(["/usr/bin/python3", "-c", "import mininet"], stderr=DEVNULL):
        missing = {"mininet"}
    if missing:
        raise LabError(f"packages are missing: apt-get install {' '.join(sorted(missing))}")
    if medium:
        told = run([medium, "--help"], capture_output=True, text=True)
        if told.returncode:
            why = (told.stderr.strip().splitlines() or [f"exit status {told.returncode}"])[-1]
            raise LabError(
                f"the wireless medium does not start: {why}: apt-get install libns3-dev, of the"
                " version as at home"
            )


if __name__ == "__main__":
    main()
