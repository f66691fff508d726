# SPDX-License-Identifier: GPL-2.0-only
"""Two paths between two hosts, SCTP sockets and what packets say. Runs inside the lab kernel.

    a (10.0.1.1) --- r1 ==> b (10.0.2.1)        a namespace each; what a hop does to packets
    a (10.1.1.1) --- r2 ==> b (10.1.2.1)        is set on the routers, never on a or b

Standard library only.
"""

import contextlib
import ctypes
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lab.ask.links import Link, set_link
from labtest.guest import LIBC, abort, inside, run_cmd, write_file

PORT, CLIENT_PORT = 5001, 7001

# linux/sctp.h
SCTP_NODELAY, SCTP_MAXSEG, SCTP_DELAYED_SACK = 3, 13, 16
SCTP_BINDX_ADD, SCTP_SOCKOPT_PEELOFF, SCTP_CONNECTX = 100, 102, 110
SCTP_AUTH_CHUNK = 21
SCTP_CONG_CONTROL = 1000
DATA, INIT, INIT_ACK, SACK, HEARTBEAT, ABORT, COOKIE_ECHO, AUTH = 0, 1, 2, 3, 4, 6, 10, 15
SUPPORTED_EXTENSIONS = 0x8008

ETH_P_ALL, ETH_HEADER = 3, 14
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35


def sysctl(namespace: str, name: str, value) -> None:
    with inside(namespace):
        write_file(f"/proc/sys/net/{name.replace('.', '/')}", value)


def sysctl_of(namespace: str, name: str) -> str:
    with inside(namespace):
        return Path(f"/proc/sys/net/{name.replace('.', '/')}").read_text().strip()


class Net:
    """The network above. FORWARD, BACK: of the first path's router; the second only delays."""

    def __init__(self, forward: Link | None = None, back: Link | None = None, seed: int = 1,
                 offloads: bool = False):  # fmt: skip
        self.forward = forward or Link(rate_mbps=100, delay_ms=10, queue_pkts=1000)
        self.back = back or Link(delay_ms=10)
        self.seed, self.offloads = seed, offloads

    def __enter__(self):
        for name in ("a", "b", "r1", "r2"):
            run_cmd("ip", "netns", "add", name)
            run_cmd("ip", "-n", name, "link", "set", "lo", "up")
        for path in (1, 2):
            self._wire("a", f"r{path}", f"10.{path - 1}.1")
            self._wire("b", f"r{path}", f"10.{path - 1}.2")
            sysctl(f"r{path}", "ipv4.ip_forward", 1)
            run_cmd("ip", "-n", "a", "route", "add", f"10.{path - 1}.2.0/24", "via",
                    f"10.{path - 1}.1.2")  # fmt: skip
            run_cmd("ip", "-n", "b", "route", "add", f"10.{path - 1}.1.0/24", "via",
                    f"10.{path - 1}.2.2")  # fmt: skip
        self.set_path(1, self.forward, self.back)
        self.set_path(2, Link(rate_mbps=100, delay_ms=10, queue_pkts=1000), Link(delay_ms=10))
        return self

    def __exit__(self, *_exc):
        for name in ("a", "b", "r1", "r2"):
            run_cmd("ip", "netns", "del", name)

    def set_path(self, path: int, forward: Link, back: Link) -> None:
        with inside(f"r{path}"):
            set_link("to-b", forward, self.seed)
            set_link("to-a", back, self.seed + 1)

    def _wire(self, host: str, router: str, subnet: str) -> None:
        run_cmd("ip", "link", "add", f"to-{router}", "netns", host, "type", "veth",
                "peer", "name", f"to-{host}", "netns", router)  # fmt: skip
        for name, dev, address in (
            (host, f"to-{router}", f"{subnet}.1/24"),
            (router, f"to-{host}", f"{subnet}.2/24"),
        ):
            run_cmd("ip", "-n", name, "address", "add", address, "dev", dev)
            run_cmd("ip", "-n", name, "link", "set", dev, "up")
            switch = "on" if self.offloads else "off"
            run_cmd("ip", "netns", "exec", name, "ethtool", "-K", dev, "gso", switch, "gro",
                    switch, "tx", switch)  # fmt: skip
        self._know(host, f"to-{router}", f"{subnet}.2", router, f"to-{host}")
        self._know(router, f"to-{host}", f"{subnet}.1", host, f"to-{router}")

    @staticmethod
    def _know(name: str, dev: str, address: str, of: str, of_dev: str) -> None:
        """Make a neighbour permanent: no address resolution in mid-run."""
        mac = run_cmd("ip", "netns", "exec", of, "cat", f"/sys/class/net/{of_dev}/address").strip()
        run_cmd("ip", "-n", name, "neigh", "replace", address, "lladdr", mac, "dev", dev,
                "nud", "permanent")  # fmt: skip


# --- sockets -----------------------------------------------------------------


def sctp_socket(namespace: str) -> socket.socket:
    with inside(namespace):
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)


def set_algorithm(sock: socket.socket, name: str) -> None:
    sock.setsockopt(socket.IPPROTO_SCTP, SCTP_CONG_CONTROL, name.encode())


def algorithm_of(sock: socket.socket) -> str:
    name = sock.getsockopt(socket.IPPROTO_SCTP, SCTP_CONG_CONTROL, 16)
    return name.split(b"\0")[0].decode()


def peeled_off(sock: socket.socket, number: int) -> socket.socket | None:
    """Return a socket of its own for an association of SOCK, if it still is one."""
    value = ctypes.create_string_buffer(struct.pack("=ii", number, 0), 8)
    length = ctypes.c_int(8)
    asked = sock.fileno(), socket.IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, value, ctypes.byref(length)
    if LIBC.getsockopt(*asked) < 0:  # it returns the new socket, too
        return None
    peeled = socket.socket(fileno=struct.unpack("=ii", value)[1])
    peeled.setblocking(False)
    return peeled


def addresses(*hosts: str, port: int = PORT) -> bytes:
    """Return struct sockaddr_in of HOSTS, one after the other, as bindx takes them."""
    return b"".join(
        struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host)
        + bytes(8) for host in hosts
    )  # fmt: skip


@contextlib.contextmanager
def listening(namespace: str = "b", hosts: tuple[str, ...] = ("10.0.2.1",), prepare=None):
    """A listening socket; PREPARE is called with it before it is bound."""
    sock = sctp_socket(namespace)
    if prepare:
        prepare(sock)
    sock.setsockopt(socket.IPPROTO_SCTP, SCTP_BINDX_ADD, addresses(*hosts))
    sock.listen(8)
    try:
        yield sock
    finally:
        sock.close()


HOMES = {"a": ("10.0.1.1", "10.1.1.1"), "b": ("10.0.2.1", "10.1.2.1")}


@contextlib.contextmanager
def association(prepare=None, prepare_listener=None, homes: int = 1):
    """Two connected sockets, from a to b, with so many addresses of each. PREPARE is called with
    a's before it connects."""
    with listening(hosts=HOMES["b"][:homes], prepare=prepare_listener) as listener:
        client = sctp_socket("a")
        if prepare:
            prepare(client)
        own = addresses(*HOMES["a"][:homes], port=CLIENT_PORT)
        client.setsockopt(socket.IPPROTO_SCTP, SCTP_BINDX_ADD, own)
        client.setsockopt(socket.IPPROTO_SCTP, SCTP_CONNECTX, addresses(*HOMES["b"][:homes]))
        server, _ = listener.accept()
        server.settimeout(60)
        try:
            yield client, server
        finally:
            abort(client, server)


def receive(sock: socket.socket, count: int) -> int:
    """Read COUNT bytes; return how many were not the zeroes that this module's senders send."""
    wrong = 0
    while count:
        got = sock.recv(1 << 18)
        assert got, "the peer closed too early"
        wrong += len(got) - got.count(0)
        count -= len(got)
    return wrong


# --- packets -----------------------------------------------------------------


@dataclass(frozen=True)
class Chunk:
    type: int
    flags: int
    length: int
    body: bytes


@dataclass(frozen=True)
class Packet:
    """An SCTP packet as it passed a device. TIME_NS: CLOCK_REALTIME."""

    time_ns: int
    raw: bytes  # from the IP header on
    source: str

    @property
    def vtag(self) -> int:
        return struct.unpack_from(">I", self._sctp, 4)[0]

    @property
    def ports(self) -> tuple[int, int]:
        return struct.unpack_from(">HH", self._sctp)

    @property
    def _sctp(self) -> bytes:
        return self.raw[(self.raw[0] & 15) * 4 :]

    @property
    def chunks(self) -> list[Chunk]:
        found, rest = [], self._sctp[12:]
        while len(rest) >= 4:
            kind, flags, length = struct.unpack_from(">BBH", rest)
            found.append(Chunk(kind, flags, length, rest[4 : max(length, 4)]))
            rest = rest[(max(length, 4) + 3) & ~3 :]
        return found

    def has(self, kind: int) -> bool:
        return any(chunk.type == kind for chunk in self.chunks)


class Capture:
    """All SCTP packets that pass a device, both ways."""

    def __init__(self, namespace: str, device: str):
        with inside(namespace):
            self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self._sock.bind((device, ETH_P_ALL))
        self._sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        time.sleep(0.1)  # the kernel switches its timestamps on a little later
        self.packets: list[Packet] = []

    def __enter__(self):
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()
        return self

    def _follow(self) -> None:
        self._sock.settimeout(0.5)
        self._stop = False
        while True:
            try:
                frame, control, _, _ = self._sock.recvmsg(1 << 16, 64)
            except TimeoutError:
                if self._stop:
                    return
                continue
            raw = frame[ETH_HEADER:]
            if len(raw) < 32 or raw[0] >> 4 != 4 or raw[9] != socket.IPPROTO_SCTP:
                continue
            seconds, ns = struct.unpack("ll", control[0][2])
            self.packets.append(Packet(seconds * 10**9 + ns, raw, socket.inet_ntoa(raw[12:16])))

    def __exit__(self, *_exc):
        time.sleep(0.2)
        self._stop = True
        self._thread.join()
        self._sock.close()

    def sent_by(self, host: str) -> list[Packet]:
        return [packet for packet in self.packets if packet.source == host]
