# SPDX-License-Identifier: GPL-2.0-only
"""What our modules tell while a point runs: their tracepoints, and queueing disciplines."""

import subprocess
import threading
from pathlib import Path

from lab.run.guest.turns import sleep_until_ns

TRACING = Path("/sys/kernel/tracing")


class Trace:
    """What the modules' tracepoints EVENTS (tcp_*_trace.h) say from now on."""

    def __init__(self, events: list[str]):
        if not (TRACING / "events").is_dir():
            subprocess.run(["mount", "-t", "tracefs", "none", str(TRACING)], check=True)
        self.trace = TRACING / "instances" / "lab"
        self.trace.mkdir(exist_ok=True)
        (self.trace / "trace_clock").write_text("mono")
        folder = self.trace / "events"
        self.enables = [path for name in events for path in folder.glob(f"*/{name}/enable")]
        self._clear()
        self._listen(True)

    def save(self, path: Path) -> None:
        """Write what was said to PATH and stop listening."""
        self._listen(False)
        for stats in self.trace.glob("per_cpu/*/stats"):
            if "overrun: 0\n" not in stats.read_text():
                raise RuntimeError("the trace buffer was too small for all events")
        path.write_text((self.trace / "trace").read_text())
        self._clear()

    def _listen(self, on: bool) -> None:
        for enable in self.enables:
            enable.write_text(str(int(on)))

    def _clear(self) -> None:
        (self.trace / "trace").write_text("")


class AgentSampler(threading.Thread):
    """Writes what the queueing disciplines of NODES (name -> process id) say of themselves in
    /proc/net/wccp to the file PATH, from START_S on, EVERY_MS until END_S."""

    def __init__(self, nodes: dict[str, int], path: Path, start_s: float, end_s: float, every_ms):
        super().__init__(daemon=True)
        self.nodes, self.path = nodes, path
        self.start_ns, self.end_ns = round(start_s * 1e9), round(end_s * 1e9)
        self.every_ns = round(every_ms * 1e6)

    def run(self) -> None:
        head: list[str] = []
        with self.path.open("w") as out:
            for now_ns in range(self.start_ns, self.end_ns + 1, self.every_ns):
                sleep_until_ns(now_ns)
                for name, pid in self.nodes.items():
                    names, *rows = Path(f"/proc/{pid}/net/wccp").read_text().splitlines()
                    if not head:
                        head = names.split()
                        out.write(f"time_s,node,{','.join(head)}\n")
                    for row in rows:
                        time_s = (now_ns - self.start_ns) * 1e-9
                        out.write(f"{time_s:.3f},{name},{','.join(row.split())}\n")
