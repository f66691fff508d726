# SPDX-License-Identifier: GPL-2.0-only
"""A tun device behind which a script plays the peer, and when it does what."""

import fcntl
import heapq
import itertools
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from labtest.guest import leave_namespace, return_to_namespace, run_cmd

# linux/if_tun.h
IFF_TUN, IFF_NO_PI, TUNSETIFF = 0x0001, 0x1000, 0x400454CA


def clock_us() -> int:
    return time.monotonic_ns() // 1000


class TunWire(ABC):
    """A network namespace whose only way out is the tun device that this process holds, and
    actions at times of clock_us(), which is read where time can pass alone."""

    def __init__(self):
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.now_us = clock_us()

    def open(self, addresses: Iterable[str], tun_flags: int = 0) -> None:
        """Enter the namespace and bring the device up; TUN_FLAGS: more of IFF_*."""
        self.home = leave_namespace()
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = IFF_TUN | IFF_NO_PI | tun_flags
        fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH22x", b"wire", flags))
        added = "".join(f"addr add {address}/24 dev wire\n" for address in addresses)
        run_cmd("ip", "-batch", "-", input=(
            f"link set lo up\n{added}link set wire up txqueuelen 10000\n"))  # fmt: skip

    def close(self) -> None:
        os.close(self.tun)
        return_to_namespace(self.home)

    @abstractmethod
    def step(self, until_us: int) -> bool:
        """Let one thing happen; false if nothing is left before UNTIL_US."""

    def at(self, when_us: int, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when_us, next(self.order), action))

    def act(self) -> bool:
        """Do the first of what is due; false if nothing is."""
        if not self.events or self.events[0][0] > self.now_us:
            return False
        heapq.heappop(self.events)[2]()
        return True

    def idle_s(self, until_us: int) -> float:
        """Return how long nothing is due, UNTIL_US at most; 0: no time is left."""
        next_us = min(until_us, self.events[0][0]) if self.events else until_us
        return max(next_us - self.now_us, 0) / 1e6

    def run(self, duration_s: float) -> None:
        until_us = self.now_us + round(duration_s * 1e6)
        while self.step(until_us):
            pass

    def wait(self, wanted: Callable[[], bool], limit_s: float = 10.0) -> None:
        until_us = self.now_us + round(limit_s * 1e6)
        while not wanted():
            if not self.step(until_us):
                raise AssertionError(f"not within {limit_s} s")
