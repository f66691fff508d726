# SPDX-License-Identifier: GPL-2.0-only
"""A command in the virtual lab that spins stops the lab's clock, and with it everything: say so.

The lab's time moves only while everybody waits. So the guest tells its time now and then, and what
runs the command looks whether that goes on while the guest uses its processor.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from lab.run.patience import used_s

TOLD_EVERY_S = 10  # of the lab's time
STILL_CPU_S = 60.0  # of processor time, in which the lab's ought to have moved so far
LOOKS = 30  # in that time
GUEST_ARGUMENT = b"uml_dir="


def told(command: str) -> str:
    """Return a shell COMMAND beside which the guest tells its time."""
    tell = "read -r up rest </proc/uptime; echo $up >/run/lab/job/clock"
    return f"(while sleep {TOLD_EVERY_S}; do {tell}; done) &\n{command}"


def _guest() -> tuple[int, Path] | None:
    """Return the process of the guest that is our child, and its folder."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            with contextlib.suppress(OSError):
                for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    if word.startswith(GUEST_ARGUMENT):
                        return int(pid), Path(os.fsdecode(word.removeprefix(GUEST_ARGUMENT)))
    return None


def _watch(stop: threading.Event) -> None:
    seen, since_s = "0", 0.0
    while not stop.wait(STILL_CPU_S / LOOKS):
        if not (guest := _guest()):
            continue
        pid, folder = guest
        now_used_s = used_s(pid)
        now = "0"
        with contextlib.suppress(OSError):
            now = (folder / "clock").read_text().strip() or seen
        if now != seen:
            seen, since_s = now, now_used_s
        elif now_used_s - since_s > STILL_CPU_S:
            print(
                f"lab: {now_used_s - since_s:.0f} s of processor time, and the lab's clock still is"
                f" at {seen} s, or less than {TOLD_EVERY_S} s after: it moves only while everybody"
                " waits. A program spins (iperf3 3.12 --sctp can), or data flows where no link"
                " has a rate. Ctrl-C ends it",
                file=sys.stderr,
                flush=True,
            )
            return


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Within the block, a guest of ours whose clock stands still is told of, once."""
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
