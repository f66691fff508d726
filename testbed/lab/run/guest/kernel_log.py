# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel of a guest complains of. Standard library only; runs inside."""

import os
import re
import subprocess
import time
from pathlib import Path

COMPLAINT = re.compile(
    r"\bWARNING\b|\bBUG\b|Oops|Call Trace|refcount|UBSAN|KASAN|suspicious RCU|ODEBUG"
    r"|stack-protector|INFO: trying to register|general protection|hung task"
)
# A report of KCSAN ends at a line of its own; functions of modules have their module's name behind.
# "Tainted: [O]=OOT_MODULE" is no function.
RACE, RACE_END = re.compile(r"BUG: KCSAN: "), "=" * 20
MODULE = re.compile(r" \[\w+\](?!=)")
SHOWN_LINES = 60
RECORD_BYTES = 8192
DEBUGFS = Path("/sys/kernel/debug")
LEAKS = DEBUGFS / "kmemleak"
LEAK_AGE_S = 6.0  # the kernel suspects nothing younger than 5 s


class KernelLog:
    """The kernel's log from its first line on."""

    def __init__(self):
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        if "debugfs" in Path("/proc/filesystems").read_text() and not any(DEBUGFS.iterdir()):
            subprocess.run(["mount", "-t", "debugfs", "none", str(DEBUGFS)], check=True)

    def new_lines(self) -> list[str]:
        """Return what was logged since the last call."""
        lines = []
        while True:
            try:
                record = os.read(self._fd, RECORD_BYTES).decode(errors="replace")
            except BlockingIOError:
                return lines
            except BrokenPipeError:
                lines.append("(lines were lost)")
                continue
            lines.append(record.split(";", 1)[-1].splitlines()[0])

    def complaint(self) -> str:
        """Return the first complaint since the last call with what follows it, or nothing."""
        lines = without_races_of_the_kernel(self.new_lines())
        for i, line in enumerate(lines):
            if COMPLAINT.search(line):
                return "\n".join(lines[i : i + SHOWN_LINES])
        return leaks()


def without_races_of_the_kernel(lines: list[str]) -> list[str]:
    """Leave out KCSAN's reports about the kernel alone, which has some: of one that a module has a
    part in some line, the title or a call, names it in brackets."""
    kept, report = [], []
    for line in lines:
        if report or RACE.search(line):
            report.append(line)
        else:
            kept.append(line)
        if report and line.startswith(RACE_END):
            kept += report if any(MODULE.search(line) for line in report) else []
            report = []
    return kept + report


def leaks() -> str:
    """Return what kmemleak, if the kernel has it, takes for lost memory."""
    if not LEAKS.exists():
        return ""
    time.sleep(LEAK_AGE_S)
    for _ in range(2):  # it believes what it has seen twice
        LEAKS.write_text("scan")
        time.sleep(0.1)
    return "\n".join(LEAKS.read_text().splitlines()[:SHOWN_LINES])
