# SPDX-License-Identifier: GPL-2.0-only
"""Which processor a kernel of the lab runs on: it is held to one, so that switches stay on it."""

import fcntl
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.run.build import setup_paths


@contextmanager
def claimed(folder: Path | None = None) -> Iterator[int]:
    """Give one of the processors that this process may use, for as long as the block lasts.

    It is one of those with the fewest claims of any run, whatever started it: runs beside each
    other take different ones. Locks in FOLDER tell, by default in the cache, where no other user
    can lay traps; they end with their process.
    """
    folder = folder or Path(setup_paths()["cache"]) / "cpus"
    folder.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    for depth, cpu in ((depth, cpu) for depth in itertools.count() for cpu in cpus):
        with open(folder / f"{cpu}.{depth}", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield cpu
            return
