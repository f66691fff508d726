# SPDX-License-Identifier: GPL-2.0-only
"""Echo requests beside a transfer: what packets of others meet on the same path.

Of our own, as ping of iputils polls before each packet and so cannot run where the lab's clock
waits for everybody, and as its output would have to be read. A ping socket where
net.ipv4.ping_group_range lets this user have one, a raw one for root.
"""

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

INTERVAL_S = 0.2
ANSWER_S = 2.0  # what has not come back so long after the last one is lost
DATA = bytes(48)  # as ping: 56 bytes with the header
ECHO = struct.Struct("!BBHHH")
REQUEST = {socket.AF_INET: 8, socket.AF_INET6: 128}
REPLY = {socket.AF_INET: 0, socket.AF_INET6: 129}
PROTOCOL = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}


@dataclass(frozen=True)
class Ping:
    """The median round trip time of echo requests, and how many went and got no answer."""

    rtt_ms: float | None
    sent: int
    lost: int


def checksum(message: bytes) -> int:
    """Return the Internet checksum of MESSAGE, of an even number of bytes (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(message) // 2}H", message))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def family_of(option: str) -> socket.AddressFamily:
    """Return the address family that -4, -6 or nothing means."""
    return {"-4": socket.AF_INET, "-6": socket.AF_INET6}.get(option, socket.AF_UNSPEC)


def _open(family: int) -> tuple[socket.socket, bool]:
    """Return a socket for echo requests, and whether it is a raw one; PermissionError."""
    with contextlib.suppress(PermissionError):
        return socket.socket(family, socket.SOCK_DGRAM, PROTOCOL[family]), False
    return socket.socket(family, socket.SOCK_RAW, PROTOCOL[family]), True


class Pinger:
    """Sends an echo request to HOST every 0.2 s, in a thread of its own, until told to end.

    OSError if HOST has no address or this user may not.
    """

    def __init__(self, host: str, family: str = ""):
        found = socket.getaddrinfo(host, None, family_of(family), socket.SOCK_STREAM)
        self.family, _, _, _, self.address = found[0]
        self.sock, self.raw = _open(self.family)
        self.identity = os.getpid() & 0xFFFF  # the kernel puts its own into a ping socket's
        self.sent_at: dict[int, float] = {}
        self.rtts_ms: list[float] = []
        self.sequence = 0
        self.awake, self.wake = os.pipe()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _send(self) -> None:
        self.sequence = (self.sequence + 1) & 0xFFFF
        kind = REQUEST[self.family]
        message = ECHO.pack(kind, 0, 0, self.identity, self.sequence) + DATA
        if self.family == socket.AF_INET:  # for IPv6 the kernel does it
            sum_ = checksum(message)
            message = ECHO.pack(kind, 0, sum_, self.identity, self.sequence) + DATA
        self.sent_at[self.sequence] = time.monotonic()
        with contextlib.suppress(OSError):  # no route for a while: lost
            self.sock.sendto(message, self.address)

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            data, source = self.sock.recvfrom(2048, socket.MSG_DONTWAIT)
            self._read(data, source[0])

    def _read(self, data: bytes, source: str) -> None:
        """Take an answer of ours out of DATA, if it is one."""
        if self.raw and self.family == socket.AF_INET and data:
            data = data[(data[0] & 15) * 4 :]
        if len(data) < ECHO.size or source != self.address[0]:
            return
        kind, _, _, identity, sequence = ECHO.unpack_from(data)
        if kind != REPLY[self.family] or (self.raw and identity != self.identity):
            return
        if sequence in self.sent_at:
            self.rtts_ms.append((time.monotonic() - self.sent_at.pop(sequence)) * 1000)

    def _wait(self, until_s: float, ends_at_once: bool) -> bool:
        """Receive until then; false if told to end meanwhile, or nothing more is to come."""
        while (left_s := until_s - time.monotonic()) > 0:
            watched = [self.sock] + [self.awake] * ends_at_once
            ready, _, _ = select.select(watched, [], [], left_s)
            if self.awake in ready:
                return False
            if ready:
                self._receive()
            if not ends_at_once and not self.sent_at:
                return False
        return True

    def _run(self) -> None:
        next_s = time.monotonic()
        going = True
        while going:
            self._send()
            next_s += INTERVAL_S
            going = self._wait(next_s, ends_at_once=True)
        self._wait(time.monotonic() + ANSWER_S, ends_at_once=False)

    def end(self) -> Ping:
        """Wait for what is on its way, and return what it all was."""
        os.write(self.wake, b".")
        self.thread.join()
        for fd in (self.awake, self.wake):
            os.close(fd)
        self.sock.close()
        answered = len(self.rtts_ms)
        rtt_ms = median(self.rtts_ms) if self.rtts_ms else None
        return Ping(rtt_ms, answered + len(self.sent_at), len(self.sent_at))


@contextlib.contextmanager
def pinging(host: str, family: str = "") -> Iterator[list[Ping]]:
    """Within the block HOST is pinged; after it, what that told is in the list. None where this
    user may not."""
    told: list[Ping] = []
    try:
        pinger = Pinger(host, family)
    except OSError:
        yield told
        return
    pinger.thread.start()
    try:
        yield told
    finally:
        told.append(pinger.end())
