# SPDX-License-Identifier: GPL-2.0-only
"""sctp_smp.py ROUNDS [FIRST]: a peer that takes 200 addresses back in each round while their timers
run on another processor; prints TAP and figures. Needs two processors and real time.
Standard library only.

    spare addresses (10.77.0.0/16) ==> a device that swallows all
    the peer's own (10.1.0.2, .3)  ==tun==> this process

Timers run on the processor that they were started on, so what starts them is done on one of them,
which is kept busy, and what takes the addresses away on another, when they are due: the first
HEARTBEATs of new paths come 200 ms after them, all in one tick, as the RTO has no more. Each
removal holds the socket; a timer that expires meanwhile waits for it, and comes to a path that is
gone. In every second round ten associations with a socket each share the addresses, else one has
them all.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
PATHS = 40 if WATCHED else 200  # of all associations, but for their first ones
FORMS = (1, 4 if WATCHED else 10)  # associations that share them
SHOWN_ROUNDS, MOST_ROUNDS, UNLOADED_OF = 20, 10, 4
MESSAGES = 40 if WATCHED else 100  # that wait to be acknowledged, of all associations
HERE, PEER, SECOND = "10.1.0.1", "10.1.0.2", "10.1.0.3"
PORT, PEER_PORT = 5001, 7001
HEARTBEAT_S, RTO_MS = 0.2, 4  # Linux sends none earlier
# before they are due; and what half a handshake may take
LEAD_S, SHAKE_S = 0.03, 0.02 if WATCHED else 0.005
SYSCTLS = {
    "addip_enable": 1, "addip_noauth_enable": 1, "hb_interval": 1, "rto_min": RTO_MS,
    "rto_initial": RTO_MS, "rto_max": 2 * RTO_MS, "association_max_retrans": 65535,
    "path_max_retrans": 65535, "timestamp_chunk": sp.TIMESTAMP,
}  # fmt: skip
TRACING = Path("/sys/kernel/tracing")
HANDLER = "sctp_generate_heartbeat_event"
OUR_TIMERS = f"function={HANDLER}".encode()


def spare(count: int) -> list[str]:
    """Return addresses of the peer that nothing ever answers from, but for the first one."""
    return [SECOND, *(f"10.77.{n >> 8}.{n & 255}" for n in range(1, count))]


Span = tuple[float, float]  # when something began and when it was done, monotonic s


@dataclass
class Removal:
    """What a round has done: when each association got its paths, on which processor, and when it
    lost them on another."""

    started: list[Span]
    removed: list[Span]
    paths: int  # of each association, that were removed
    staying: int  # that were begun before those
    cpu: int
    late: bool  # the timers may all have expired before


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
    """Which HEARTBEAT timers expired when, on which processor, as the kernel's tracer saw it."""

    def __init__(self):
        if not TRACING.joinpath("trace").exists():
            run_cmd("mount", "-t", "tracefs", "none", str(TRACING))
        write_file(f"{TRACING}/trace_clock", "mono")
        if TRACING.joinpath("options/hash-ptr").exists():
            write_file(f"{TRACING}/options/hash-ptr", 0)
        for event in ("timer_start", "timer_expire_entry"):
            write_file(f"{TRACING}/events/timer/{event}/filter", f"function == {self.handler()}")
            write_file(f"{TRACING}/events/timer/{event}/enable", 1)

    @staticmethod
    def handler() -> str:
        """Return the address of what such a timer calls: other timers need not be told of."""
        for line in Path("/proc/kallsyms").read_text().splitlines():
            address, _, name = line.split()[:3]
            if name == HANDLER:
                return f"0x{address}"
        raise AssertionError(f"the kernel has no {HANDLER}")

    def watch(self) -> None:
        """Forget all, and watch from now on."""
        TRACING.joinpath("trace").write_bytes(b"")
        write_file(f"{TRACING}/tracing_on", 1)

    def stop(self) -> None:
        write_file(f"{TRACING}/tracing_on", 0)

    def waited(self, removal: Removal) -> int:
        """Return of how many associations a timer of a path that was removed expired meanwhile, on
        the processor that it was started on."""
        begun: list[dict[bytes, None]] = [{} for _ in removal.started]
        met = set()
        for line in TRACING.joinpath("trace").read_bytes().splitlines():
            if OUR_TIMERS not in line:
                continue
            head, _, what = line.partition(b" timer_")
            at_s, cpu = float(head.rstrip(b":").split()[-1]), int(head.split(b"[")[1][:3])
            in_interrupt = head.split(b"] ")[1].split()[0][2:3] in b"ZzHhs"
            timer = what.split(b"timer=")[1].split()[0]
            if what.startswith(b"start:"):
                for number, (start_s, end_s) in enumerate(removal.started):
                    if start_s <= at_s <= end_s and not in_interrupt:
                        begun[number][timer] = None
            elif cpu == removal.cpu:
                for number, (start_s, end_s) in enumerate(removal.removed):
                    if start_s <= at_s <= end_s and timer in [*begun[number]][removal.staying :]:
                        met.add(number)
        assert all(len(timers) == removal.staying + removal.paths for timers in begun), (
            f"not all timers were seen to start: {[len(timers) for timers in begun]}"
        )
        return len(met)


@dataclass
class End:
    """The peer's side of one association, and the listening socket at the other side."""

    number: int
    sock: socket.socket
    tag: int = 1
    their_tag: int = 0
    serial: int = 1

    def packet(self, *chunks: bytes, tag: int | None = None, source: str = PEER) -> bytes:
        """The module is loaded without checksums: they would take most of the time."""
        tag = self.their_tag if tag is None else tag
        ports = PEER_PORT + self.number, PORT + self.number
        body = struct.pack(">HHII", *ports, tag, 0) + b"".join(chunks)
        return sp.ip_packet(source, HERE, body)

    def init(self, hosts: list[str]) -> bytes:
        """Return a first packet that has HOSTS besides the first address."""
        self.tag += 1
        body = struct.pack(">IIHHI", self.tag, 1 << 20, 10, 10, self.serial)
        body += sp.parameter(sp.SUPPORTED_EXTENSIONS, bytes((sp.ASCONF, sp.ASCONF_ACK)))
        body += b"".join(map(address, hosts))
        return self.packet(sp.chunk(sp.INIT, 0, body), tag=0)

    def asconf(self, kind: int, hosts: list[str]) -> bytes:
        """Return a packet that adds or deletes HOSTS."""
        wanted = b"".join(
            sp.parameter(kind, struct.pack(">I", n) + address(host)) for n, host in enumerate(hosts)
        )
        body = struct.pack(">I", self.serial) + address(PEER) + wanted
        self.serial += 1
        return self.packet(sp.chunk(sp.ASCONF, 0, body))

    def load(self, messages: int) -> None:
        """The application writes MESSAGES, or as much as it may; nothing of it is ever
        acknowledged."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(messages):
                self.sock.sendto(bytes(1000), (PEER, PEER_PORT + self.number))


class SmpPeer(TunWire):
    """The peer of listening sockets, which knows just enough to have associations with them."""

    def __init__(self, **sysctls):
        super().__init__()
        self.sysctls = SYSCTLS | sysctls
        self.ends: list[End] = []

    def __enter__(self):
        self.open([HERE])
        run_cmd("ip", "link", "add", "nowhere", "type", "dummy")
        run_cmd("ip", "link", "set", "nowhere", "up")
        run_cmd("ip", "link", "set", "wire", "mtu", "9000")
        run_cmd("ip", "route", "add", "10.77.0.0/16", "dev", "nowhere")
        for name, value in self.sysctls.items():
            write_file(f"/proc/sys/net/sctp/{name}", value)
        self.ends = [End(number, self.listen(PORT + number)) for number in range(max(FORMS))]
        return self

    def __exit__(self, *_exc):
        for end in self.ends:
            end.sock.close()
        self.close()

    def listen(self, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, sp.IPPROTO_SCTP)
        sock.setsockopt(sp.IPPROTO_SCTP, sp.SCTP_BINDX_ADD, addresses(HERE, port=port))
        sock.setblocking(False)
        sock.listen(8)
        return sock

    def step(self, until_us: int) -> bool:
        raise NotImplementedError

    # --- packets ---

    def send(self, packet: bytes) -> None:
        os.write(self.tun, packet)

    def heard(self) -> Iterator[tuple[End, str, sp.Chunk]]:
        """Yield what the kernel has sent: of which association, to which address, and the first
        chunk."""
        while True:
            try:
                raw = os.read(self.tun, 1 << 16)
            except BlockingIOError:
                return
            if raw[0] >> 4 == 4 and raw[9] == sp.IPPROTO_SCTP:
                (port,) = struct.unpack_from(">H", raw, 20)
                kind, flags, length = struct.unpack_from(">BBH", raw, 32)
                found = sp.Chunk(kind, flags, length, raw[36 : 32 + length])
                yield self.ends[port - PORT], socket.inet_ntoa(raw[16:20]), found

    def until(self, end_s: float) -> None:
        """Let time pass; HEARTBEATs are answered, which makes a path fit for data."""
        while (left_s := end_s - time.monotonic()) > 0:
            for end, where, found in self.heard():
                if found.type == sp.HEARTBEAT:
                    self.send(end.packet(sp.chunk(sp.HEARTBEAT_ACK, 0, found.body), source=where))
            time.sleep(min(left_s, 0.01))

    def shake(self, end: End, hosts: list[str]) -> bytes:
        """Start an association of END with HOSTS besides its first address; return the packet
        that ends the handshake."""
        for _ in self.heard():
            pass
        self.send(end.init(hosts))
        answer = self.init_ack()
        (end.their_tag,) = struct.unpack_from(">I", answer.body)
        cookie = sp.parameters(answer.body[16:])[sp.STATE_COOKIE]
        return end.packet(sp.chunk(sp.COOKIE_ECHO, 0, cookie))

    def init_ack(self) -> sp.Chunk:
        """Wait for one: a processor that sends takes what another one wants to send along."""
        end_s = time.monotonic() + 0.1
        while time.monotonic() < end_s:
            for _, _, found in self.heard():
                if found.type == sp.INIT_ACK:
                    return found
        raise AssertionError("an INIT was not answered")

    def inject(self, packets: list[bytes]) -> list[Span]:
        """Give the kernel PACKETS on this processor; return when each began and when it was
        done."""
        spans = []
        for packet in packets:
            start_s = time.monotonic()
            os.write(self.tun, packet)
            spans.append((start_s, time.monotonic()))
        return spans


def processors(number: int) -> tuple[int, int]:
    """Return two processors for round NUMBER: where timers start, where paths are removed."""
    cpus, number = os.cpu_count() or 1, number // len(FORMS)
    first = number % cpus
    return first, (first + 1 + number // cpus % (cpus - 1)) % cpus


def due_s(number: int, begun: list[Span]) -> Span:
    """Return from when until when the removal of round NUMBER may begin: while the timers expire
    of the paths that came at BEGUN, which takes as long as their start did."""
    first_s, batch_s = begun[0][0] + HEARTBEAT_S, begun[-1][1] - begun[0][0]
    at_s = first_s + number // len(FORMS) % 8 / 8 * batch_s
    return at_s, at_s + batch_s


def assert_paths(count: int) -> None:
    """Wait for COUNT paths to be told: a read may miss some while the kernel's table grows."""
    end_s = time.monotonic() + 0.1
    while True:
        now = len(Path("/proc/net/sctp/remaddr").read_text().splitlines()) - 1
        if now == count:
            return
        assert time.monotonic() < end_s, f"{now} paths, not {count}"


def wanted() -> int:
    return int(sys.argv[1])


def first() -> int:
    """Return the number of the first round: another one, other moments."""
    return int(sys.argv[2]) if len(sys.argv) > 2 else 0


def form(peer: SmpPeer, number: int) -> tuple[list[End], list[str]]:
    """Return the associations of round NUMBER and the addresses that each has besides its first."""
    count = FORMS[number % len(FORMS)]
    return peer.ends[:count], spare(PATHS // count)


def removal_order(ends: int, number: int) -> list[int]:
    """Return in which order the associations of round NUMBER lose their paths: of one tick the
    kernel takes the last timer first."""
    return [*range(ends)] if number // len(FORMS) % 2 else [*reversed(range(ends))]


def remove(
    peer: SmpPeer,
    timers: Timers,
    number: int,
    begun: list[Span],
    packets: list[bytes],
    staying: int,
) -> Removal:
    """Give the kernel the PACKETS that take away, when it is time, the paths that it got at
    BEGUN."""
    at_s, until_s = due_s(number, begun)
    peer.until(at_s)
    late = time.monotonic() > until_s
    order = removal_order(len(packets), number)
    spans = dict(zip(order, peer.inject([packets[index] for index in order]), strict=True))
    timers.stop()
    return Removal(
        started=begun,
        removed=[spans[index] for index in range(len(packets))],
        paths=PATHS // len(packets),
        staying=staying,
        cpu=processors(number)[0],
        late=late,
    )


def restart_once(peer: SmpPeer, timers: Timers, number: int) -> Removal:
    """Associations with many addresses restart with one."""
    started, removed = processors(number)
    ends, hosts = form(peer, number)
    timers.watch()
    with busy(started):
        on_cpu(started)
        begun = peer.inject([peer.shake(end, hosts) for end in ends])
        assert_paths(len(ends) * (len(hosts) + 1))
        for end in ends:
            end.load(MESSAGES // len(ends))
        peer.until(due_s(number, begun)[0] - LEAD_S - SHAKE_S * len(ends))
        on_cpu(removed)
        packets = [peer.shake(end, []) for end in ends]
        done = remove(peer, timers, number, begun, packets, staying=1)
        assert_paths(len(ends))
        for end in ends:
            end.load(MESSAGES // len(ends))
            peer.send(end.packet(sp.chunk(sp.ABORT)))
    return done


def asconf_once(peer: SmpPeer, timers: Timers, number: int) -> Removal:
    """Associations add addresses and delete them again."""
    started, removed = processors(number)
    ends, hosts = form(peer, number)
    timers.watch()
    with busy(started):
        on_cpu(started)
        begun = peer.inject([end.asconf(sp.ADD_ADDRESS, hosts) for end in ends])
        assert_paths(len(peer.ends) + len(ends) * len(hosts))
        for end in ends:
            end.load(MESSAGES // len(ends))
        packets = [end.asconf(sp.DELETE_ADDRESS, hosts) for end in ends]
        peer.until(due_s(number, begun)[0] - LEAD_S)
        on_cpu(removed)
        done = remove(peer, timers, number, begun, packets, staying=0)
        assert_paths(len(peer.ends))
    return done


@dataclass
class Met:
    """Rounds of one form: how many associations lost paths in time, and of how many a timer
    waited."""

    associations: int = 0
    waited: int = 0


def repeat(what: str, rounds: int, timers: Timers, once: Callable[[int], Removal]) -> None:
    """Do it in ROUNDS rounds, and on until each form has come to what is tested. Rounds that were
    late do not count."""
    of = [Met() for _ in FORMS]
    done = late = 0
    number = first()
    while done < rounds or (not all(met.waited for met in of) and done < MOST_ROUNDS * rounds):
        removal = once(number)
        if removal.late:
            late += 1
            assert late < MOST_ROUNDS * (rounds + 1), (
                "this machine is too slow: all rounds are late"
            )
            continue
        met = of[number % len(FORMS)]
        met.associations += len(removal.removed)
        met.waited += timers.waited(removal)
        done, number = done + 1, number + 1
        if done == rounds or not done % SHOWN_ROUNDS:
            told = " and ".join(f"{met.waited} of {met.associations}" for met in of)
            print(f"# {done} rounds of {what} ({late} late); a timer waited in {told}", flush=True)
    assert all(met.waited for met in of), "the processors never met, so nothing was tested"


@claim("a peer that restarts with fewer addresses while their timers run on another processor")
def check_restart():
    timers = Timers()
    with SmpPeer(congestion_control="jsctp_abe") as peer:
        repeat("restarts", wanted(), timers, partial(restart_once, peer, timers))


@claim("ASCONF that deletes addresses under load while their timers run on another processor")
def check_asconf():
    timers = Timers()
    with SmpPeer(congestion_control="jsctp_abe") as peer:
        for end in peer.ends:
            peer.inject([peer.shake(end, [])])
        repeat("deletions", wanted(), timers, partial(asconf_once, peer, timers))
        for end in peer.ends:
            peer.send(end.packet(sp.chunk(sp.ABORT)))


@claim("the algorithm's module goes as soon as its last association, with timers still to come")
def check_unload():
    timers = Timers()

    def unload_once(number: int) -> Removal:
        with SmpPeer(congestion_control="jsctp_abe") as peer:
            write_file("/proc/sys/net/sctp/congestion_control", "rfc9260")
            done = restart_once(peer, timers, number)
        run_cmd("rmmod", "sctp_jsctp")
        run_cmd("modprobe", "-d", "/run/lab/modules", "sctp_jsctp")
        return done

    repeat("restarts, then the module unloaded", -(-wanted() // UNLOADED_OF), timers, unload_once)


claim("the kernel log holds no complaint after all of it")(check_log)


if __name__ == "__main__":
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "dummy")
    run_cmd("modprobe", "-d", "/run/lab/modules", "sctp", "no_checksums=1")
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp_diag", "sctp_jsctp")
    assert (os.cpu_count() or 1) > 1, "needs two processors: testbed/run --cpus 2"
    CLAIMS.settle()
