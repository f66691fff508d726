# SPDX-License-Identifier: GPL-2.0-only
"""For what losses were taken: the verdict tracepoint of our modules (tcp_verdict.h), for root.

In a tracing instance of its own, so nobody else's tracing is disturbed, that goes with it.
"""

import contextlib
import os
import re
from collections import Counter
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
EVENT = re.compile(rb"tcp_verdict: verdict=(random|congestion) .*? sport=(\d+) dport=(\d+) ")
READ_BYTES = 1 << 16
Ports = tuple[int, int]


class Verdicts:
    """Counts verdicts by the ports of connections, from now on. `there` is false where this user
    may not read them, or no module that is loaded tells any."""

    def __init__(self, tracing: Path = TRACING):
        self.random: Counter[Ports] = Counter()
        self.congestion: Counter[Ports] = Counter()
        self.instance = tracing / "instances" / f"cc-watch-{os.getpid()}"
        self.rest = b""
        self.pipe: int | None = None
        with contextlib.suppress(OSError):
            self.instance.mkdir()
            self._open()
        if self.pipe is None:
            self.close()

    @property
    def there(self) -> bool:
        return self.pipe is not None

    def _open(self) -> None:
        switches = list((self.instance / "events").glob("*/tcp_verdict/enable"))
        for switch in switches:
            switch.write_text("1")
        if switches:
            self.pipe = os.open(self.instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> None:
        """Count what came since the last time."""
        if self.pipe is None:
            return
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while data := os.read(self.pipe, READ_BYTES):
                self._count(data)

    def _count(self, data: bytes) -> None:
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            found = EVENT.search(line)
            if found:
                counter = self.random if found[1] == b"random" else self.congestion
                counter[int(found[2]), int(found[3])] += 1

    def close(self) -> None:
        """Take the instance away again."""
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        with contextlib.suppress(OSError):
            self.instance.rmdir()
