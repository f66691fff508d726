# SPDX-License-Identifier: GPL-2.0-only
"""sctp_smp.py ROUNDS [FIRST]: a peer that takes its addresses back while their timers run on
another processor; prints TAP and figures. Needs two processors and real time.
Standard library only.

    spare addresses (10.77.0.0/16) ==> a device that swallows all
    the peer's own (10.1.0.2, .3)  ==tun==> this process

Timers run on the processor that they were started on, so what starts them is done on one of them,
which is kept busy, and what takes the addresses away on another, when they are due: the first
HEARTBEATs of new paths come 200 ms after them, all in one tick, as the RTO has no more. Each
removal holds the socket; a timer that expires meanwhile waits for it, and comes to a path that is
gone.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import sctp_peer as sp
from sctp_net import addresses

from labtest.claims import Claims, check_log
from labtest.guest import run_cmd, write_file
from labtest.wire import TunWire

CLAIMS = Claims()
claim = CLAIMS.add

WATCHED = Path("/proc/lockdep").exists()  # a kernel that checks all it does takes its time
PATHS = 40 if WATCHED else 200
SHOWN_ROUNDS, MOST_ROUNDS, UNLOADED_OF = 10, 10, 4
HERE, PEER, SECOND = "10.1.0.1", "10.1.0.2", "10.1.0.3"
PORT, PEER_PORT = 5001, 7001
HEARTBEAT_S, RTO_MS, BATCH_S = 0.2, 4, 0.012  # Linux sends none earlier; what so many take
SYSCTLS = {
    "addip_enable": 1, "addip_noauth_enable": 1, "hb_interval": 1, "rto_min": RTO_MS,
    "rto_initial": RTO_MS, "rto_max": 2 * RTO_MS, "association_max_retrans": 65535,
    "path_max_retrans": 65535, "timestamp_chunk": sp.TIMESTAMP,
}  # fmt: skip
TRACING = Path("/sys/kernel/tracing")
OUR_TIMERS = b"function=sctp_generate_"


def spare(count: int) -> list[str]:
    """Return addresses of the peer that nothing ever answers from, but for the first one."""
    return [SECOND, *(f"10.77.{n >> 8}.{n & 255}" for n in range(1, count))]


def address(host: str) -> bytes:
    return sp.parameter(sp.IPV4_ADDRESS, socket.inet_aton(host))


def on_cpu(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})


@contextlib.contextmanager
def busy(cpu: int) -> Iterator[None]:
    """Keep CPU from idling, whose timers another one would take over."""
    child = os.fork()
    if not child:
        on_cpu(cpu)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while True:
            pass
    try:
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


class Timers:
    """Which SCTP timers expired when, on which processor, as the kernel's tracer saw it."""

    def __init__(self):
        if not TRACING.joinpath("trace").exists():
            run_cmd("mount", "-t", "tracefs", "none", str(TRACING))
        write_file(f"{TRACING}/trace_clock", "mono")
        write_file(f"{TRACING}/events/timer/timer_expire_entry/enable", 1)

    def waited(self, start_s: float, end_s: float) -> int:
        """Return how many expired between START_S and END_S on other processors than this one's,
        and forget all."""
        (here,) = os.sched_getaffinity(0)
        found = 0
        for line in TRACING.joinpath("trace").read_bytes().splitlines():
            if OUR_TIMERS in line:
                fields = line.split(b" timer_expire_entry:")[0].rstrip(b":").split()
                found += start_s <= float(fields[-1]) <= end_s and fields[-3] != b"[%03d]" % here
        TRACING.joinpath("trace").write_bytes(b"")
        return found


class SmpPeer(TunWire):
    """The peer of one listening socket, which knows just enough to have associations with it."""

    def __init__(self, **sysctls):
        super().__init__()
        self.tag, self.their_tag, self.serial = 1, 0, 1
        self.sysctls = SYSCTLS | sysctls

    def __enter__(self):
        self.open([HERE])
        run_cmd("ip", "link", "add", "nowhere", "type", "dummy")
        run_cmd("ip", "link", "set", "nowhere", "up")
        run_cmd("ip", "link", "set", "wire", "mtu", "9000")
        run_cmd("ip", "route", "add", "10.77.0.0/16", "dev", "nowhere")
        for name, value in self.sysctls.items():
            write_file(f"/proc/sys/net/sctp/{name}", value)
        self.listen()
        return self

    def __exit__(self, *_exc):
        self.sock.close()
        self.close()

    def listen(self) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, sp.IPPROTO_SCTP)
        self.sock.setsockopt(sp.IPPROTO_SCTP, sp.SCTP_BINDX_ADD, addresses(HERE, port=PORT))
        self.sock.setblocking(False)
        self.sock.listen(8)

    def step(self, until_us: int) -> bool:
        raise NotImplementedError

    # --- packets ---

    def packet(self, *chunks: bytes, tag: int | None = None, source: str = PEER) -> bytes:
        """The module is loaded without checksums: they would take most of the time."""
        tag = self.their_tag if tag is None else tag
        body = struct.pack(">HHII", PEER_PORT, PORT, tag, 0) + b"".join(chunks)
        return sp.ip_packet(source, HERE, body)

    def send(self, *chunks: bytes, **how) -> None:
        os.write(self.tun, self.packet(*chunks, **how))

    def heard(self) -> Iterator[tuple[str, sp.Chunk]]:
        """Yield what the kernel has sent: to which address, and the first chunk."""
        while True:
            try:
                raw = os.read(self.tun, 1 << 16)
            except BlockingIOError:
                return
            if raw[0] >> 4 == 4 and raw[9] == sp.IPPROTO_SCTP:
                kind, flags, length = struct.unpack_from(">BBH", raw, 32)
                found = sp.Chunk(kind, flags, length, raw[36 : 32 + length])
                yield socket.inet_ntoa(raw[16:20]), found

    def until(self, end_s: float) -> None:
        """Let time pass; HEARTBEATs are answered, which makes a path fit for data."""
        while (left_s := end_s - time.monotonic()) > 0:
            for where, found in self.heard():
                if found.type == sp.HEARTBEAT:
                    self.send(sp.chunk(sp.HEARTBEAT_ACK, 0, found.body), source=where)
            time.sleep(min(left_s, 0.01))

    # --- associations ---

    def shake(self, hosts: list[str]) -> bytes:
        """Start an association of an end with HOSTS besides its first address; return the packet
        that ends the handshake."""
        self.tag += 1
        body = struct.pack(">IIHHI", self.tag, 1 << 20, 10, 10, self.serial)
        body += sp.parameter(sp.SUPPORTED_EXTENSIONS, bytes((sp.ASCONF, sp.ASCONF_ACK)))
        body += b"".join(map(address, hosts))
        for _ in self.heard():
            pass
        self.send(sp.chunk(sp.INIT, 0, body), tag=0)
        answer = next(found for _, found in self.heard() if found.type == sp.INIT_ACK)
        (self.their_tag,) = struct.unpack_from(">I", answer.body)
        cookie = sp.parameters(answer.body[16:])[sp.STATE_COOKIE]
        return self.packet(sp.chunk(sp.COOKIE_ECHO, 0, cookie))

    def asconf(self, kind: int, hosts: list[str]) -> bytes:
        """Return a packet that adds or deletes HOSTS."""
        wanted = b"".join(
            sp.parameter(kind, struct.pack(">I", n) + address(host)) for n, host in enumerate(hosts)
        )
        body = struct.pack(">I", self.serial) + address(PEER) + wanted
        self.serial += 1
        return self.packet(sp.chunk(sp.ASCONF, 0, body))

    def load(self) -> None:
        """The application writes as much as it may; nothing of it is ever acknowledged."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.sendto(bytes(1000), (PEER, PEER_PORT))

    def abort(self) -> None:
        self.send(sp.chunk(sp.ABORT))

    def inject(self, packet: bytes) -> tuple[float, float]:
        """Give the kernel a packet on this processor; return when it began and when it was done."""
        start_s = time.monotonic()
        os.write(self.tun, packet)
        return start_s, time.monotonic()


def processors(number: int) -> tuple[int, int]:
    """Return two processors for round NUMBER: where timers start, where paths are removed."""
    cpus = os.cpu_count() or 1
    first = number % cpus
    return first, (first + 1 + number // cpus % (cpus - 1)) % cpus


def due_s(number: int) -> float:
    """Return how long after the paths those of round NUMBER are removed."""
    return HEARTBEAT_S + number % 8 / 8 * BATCH_S


def paths_now() -> int:
    lines = Path("/proc/net/sctp/remaddr").read_text().splitlines()
    return len(lines) - 1


def wanted() -> int:
    return int(sys.argv[1])


def first() -> int:
    """Return the number of the first round: another one, other moments."""
    return int(sys.argv[2]) if len(sys.argv) > 2 else 0


def restart_once(peer: SmpPeer, timers: Timers, number: int) -> int:
    """Have 201 addresses, restart with one; return how many timers waited meanwhile."""
    started, removed = processors(number)
    with busy(started):
        on_cpu(started)
        packet = peer.shake(spare(PATHS))
        start_s, _ = peer.inject(packet)
        assert paths_now() == PATHS + 1
        peer.load()
        peer.until(start_s + due_s(number) - 0.05)
        on_cpu(removed)
        packet = peer.shake([])
        peer.until(start_s + due_s(number))
        waited = timers.waited(*peer.inject(packet))
        assert paths_now() == 1
        peer.load()
        peer.abort()
    return waited


def asconf_once(peer: SmpPeer, timers: Timers, number: int) -> int:
    """Add addresses and delete them again; return how many timers waited meanwhile."""
    started, removed = processors(number)
    with busy(started):
        on_cpu(started)
        start_s, _ = peer.inject(peer.asconf(sp.ADD_ADDRESS, spare(PATHS)))
        assert paths_now() == PATHS + 1
        peer.load()
        peer.until(start_s + due_s(number))
        on_cpu(removed)
        waited = timers.waited(*peer.inject(peer.asconf(sp.DELETE_ADDRESS, spare(PATHS))))
        assert paths_now() == 1
    return waited


def repeat(what: str, rounds: int, once: Callable[[int], int]) -> None:
    """Do it ROUNDS times, and on until it came to what is tested; ONCE returns how many timers
    waited."""
    met = done = 0
    while done < rounds or (not met and done < MOST_ROUNDS * rounds):
        met += once(first() + done) > 0
        done += 1
        if done == rounds or not done % SHOWN_ROUNDS:
            print(f"# {done} {what}; a timer waited in {met}", flush=True)
    assert met, "the processors never met, so nothing was tested"


@claim("a peer that restarts with fewer addresses while their timers run on another processor")
def check_restart():
    timers = Timers()
    with SmpPeer(congestion_control="jsctp_abe") as peer:
        repeat("restarts", wanted(), partial(restart_once, peer, timers))


@claim("ASCONF that deletes addresses under load while their timers run on another processor")
def check_asconf():
    timers = Timers()
    with SmpPeer(congestion_control="jsctp_abe") as peer:
        peer.inject(peer.shake([]))
        repeat("deletions", wanted(), partial(asconf_once, peer, timers))
        peer.abort()


@claim("the algorithm's module goes as soon as its last association, with timers still to come")
def check_unload():
    timers = Timers()

    def unload_once(number: int) -> int:
        with SmpPeer(congestion_control="jsctp_abe") as peer:
            write_file("/proc/sys/net/sctp/congestion_control", "rfc9260")
            waited = restart_once(peer, timers, number)
        run_cmd("rmmod", "sctp_jsctp")
        run_cmd("modprobe", "-d", "/run/lab/modules", "sctp_jsctp")
        return waited

    repeat("modules unloaded", -(-wanted() // UNLOADED_OF), unload_once)


claim("the kernel log holds no complaint after all of it")(check_log)


if __name__ == "__main__":
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "dummy")
    run_cmd("modprobe", "-d", "/run/lab/modules", "sctp", "no_checksums=1")
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp_diag", "sctp_jsctp")
    assert (os.cpu_count() or 1) > 1, "needs two processors: testbed/run --cpus 2"
    CLAIMS.settle()
