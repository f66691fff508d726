# SPDX-License-Identifier: GPL-2.0-only
"""Is a guest hung, or has the machine no time for it?

Where the guest's clock jumps, how long a point takes on the wall says little: other work, a low
priority, Ctrl-Z or a closed lid make it longer, and nothing is wrong. What counts is the processor
time that the guest has used, and whether it would use more.
"""

import contextlib
import glob
import os
import time
from collections.abc import Iterator
from pathlib import Path

WILLING = "RT"  # a task's states: runs or would, if it were let (T: somebody stopped it)
LOOK_S = 0.5  # between looks at what there is to see of processes, which take a while themselves
IDLE_S = 5.0  # of nobody willing, after which there is nothing to wait for


def _stats(pattern: str) -> Iterator[list[str]]:
    """Give the fields after the name, state first, of each /proc/PATTERN/stat that there is."""
    # Path.glob() raises where a process ends between its look at the folder and at the file
    for stat in glob.iglob(f"/proc/{pattern}/stat"):
        with contextlib.suppress(OSError):
            yield Path(stat).read_text().rpartition(")")[2].split()


def used_s(session: int) -> float:
    """Return what the processes of a SESSION, and those that ended, have used of processors."""
    ticks = sum(
        sum(map(int, fields[11:15])) for fields in _stats("[0-9]*") if int(fields[3]) == session
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def is_willing(session: int) -> bool:
    """Say whether a thread of a SESSION waits for nothing but a processor, or has one."""
    return any(
        fields[0] in WILLING for fields in _stats("[0-9]*/task/[0-9]*") if int(fields[3]) == session
    )


class Patience:
    """How long to wait for what a guest is at now: its processes are a SESSION of their own. With
    a REAL clock it is wall time that counts."""

    def __init__(self, session: int, real: bool):
        self._session, self._real = session, real
        self.begin()

    def begin(self) -> None:
        """Something came of it; wait for the next."""
        self._since_s = time.monotonic()
        self._used_s = 0.0 if self._real else used_s(self._session)
        self._idle_since_s: float | None = None
        self._looked_s = 0.0

    def ended(self, limit_s: float) -> bool:
        """Say whether the guest has had LIMIT_S for what it is at, and more cannot help."""
        now_s = time.monotonic()
        if now_s - self._since_s <= limit_s or now_s - self._looked_s < LOOK_S:
            return False
        self._looked_s = now_s
        if self._real or used_s(self._session) - self._used_s > limit_s:
            return True
        if is_willing(self._session):
            self._idle_since_s = None
            return False
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        return now_s - self._idle_since_s > IDLE_S
