# SPDX-License-Identifier: GPL-2.0-only
"""sctp_fuzz.py SEED PACKETS: give the kernel's SCTP that many packets that are nearly right, to
associations that live meanwhile; prints TAP and figures. Standard library only, in virtual time.

Each packet is made of one of corpus/seeds.json, which has chunks in hex with the values that the
association is at (<tsn>, <sent>, ...), and of mutations that know chunks and their lengths. The
checksum is right, but for one in a hundred. SEED gives the same packets again.
"""

import contextlib
import json
import random
import re
import socket
import sys
from collections import Counter
from pathlib import Path

import sctp_peer as sp
from sctp_peer import MASK, TIMESTAMP, AuthPeer, Peer, Stamp, Wire

from lab.run.guest.kernel_log import COMPLAINT, KernelLog
from labtest.claims import Claims
from labtest.guest import first_in_line, run_cmd

CLAIMS = Claims()
claim = CLAIMS.add

SEEDS = json.loads((Path(__file__).parent / "corpus" / "seeds.json").read_text())
# what ends an association, right as it is, comes seldom
ENDS = re.compile("init|cookie|abort|shutdown|ack|reconf|I-DATA|fragments|two DATA|nobody")
WEIGHTS = [0.05 if ENDS.search(seed["name"]) else 1 for seed in SEEDS]
TIMES = [seed for seed in SEEDS if seed["name"] in ("an echo alone", "echoes of all kinds")]
PLACE = re.compile(r"<(\w+)(?:\+(\d))?>")
ALGORITHMS = ("rfc9260", "jsctp", "jsctp_abe")
EXTENSIONS = (TIMESTAMP, sp.ASCONF, sp.ASCONF_ACK, sp.FORWARD_TSN, sp.RECONF, sp.I_DATA)
SESSIONS_OF_A_WIRE = 100
PACKETS_OF_A_SESSION = 300
MOST_BYTES = 1480
EDGES = (0, 1, 2, 3, 4, 5, 8, 11, 12, 13, 16, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFB, 0xFFFC,
         0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)  # fmt: skip

Packet = list[bytearray]  # a packet's chunks, each with its padding


# --- mutations --------------------------------------------------------------------


def some(rng: random.Random, packet: Packet) -> bytearray:
    return rng.choice(packet)


def flip_bit(rng: random.Random, packet: Packet) -> None:
    chunk = some(rng, packet)
    chunk[rng.randrange(len(chunk))] ^= 1 << rng.randrange(8)


def set_field(rng: random.Random, packet: Packet) -> None:
    """Put an edge value where a field of 1, 2 or 4 bytes may be."""
    chunk = some(rng, packet)
    size = rng.choice((1, 2, 4))
    at = rng.randrange(0, max(len(chunk) - size, 0) + 1, size)
    value = rng.choice(EDGES) if rng.random() < 0.8 else rng.getrandbits(32)
    chunk[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "big")


def nudge_field(rng: random.Random, packet: Packet) -> None:
    """Change a field of 4 bytes by little: a TSN or a time beside the right one."""
    chunk = some(rng, packet)
    if len(chunk) >= 8:
        at = rng.randrange(4, len(chunk) - 3, 4)
        by = rng.choice((-2, -1, 1, 2, 1000, 1 << 31))
        value = int.from_bytes(chunk[at : at + 4], "big") + by
        chunk[at : at + 4] = (value & MASK).to_bytes(4, "big")


def set_length(rng: random.Random, packet: Packet) -> None:
    chunk = some(rng, packet)
    near = len(chunk) + rng.randrange(-5, 6)
    chunk[2:4] = (rng.choice((near, near, rng.choice(EDGES))) & 0xFFFF).to_bytes(2, "big")


def cut(rng: random.Random, packet: Packet) -> None:
    """Shorten a chunk; half of the time it says so."""
    chunk = some(rng, packet)
    if len(chunk) > 4:
        del chunk[rng.randrange(4, len(chunk)) :]
        if rng.random() < 0.5:
            chunk[2:4] = len(chunk).to_bytes(2, "big")
            chunk += bytes(-len(chunk) % 4)


def grow(rng: random.Random, packet: Packet) -> None:
    """Lengthen a chunk; mostly it says so."""
    chunk = some(rng, packet)
    chunk += rng.randbytes(4 * rng.choice((1, 1, 2, 8, 64)))
    if rng.random() < 0.8:
        chunk[2:4] = (len(chunk) & 0xFFFF).to_bytes(2, "big")


def repeat(rng: random.Random, packet: Packet) -> None:
    at = rng.randrange(len(packet))
    packet[at:at] = [bytearray(packet[at]) for _ in range(rng.choice((1, 1, 2, 40)))]


def drop(rng: random.Random, packet: Packet) -> None:
    if len(packet) > 1:
        del packet[rng.randrange(len(packet))]


def shuffle(rng: random.Random, packet: Packet) -> None:
    rng.shuffle(packet)


def retype(rng: random.Random, packet: Packet) -> None:
    some(rng, packet)[0] = TIMESTAMP if rng.random() < 0.5 else rng.getrandbits(8)


def reflag(rng: random.Random, packet: Packet) -> None:
    some(rng, packet)[1] = rng.choice((0, 1, 2, 3, 4, 0xFE, 0xFF, rng.getrandbits(8)))


MUTATIONS = (flip_bit, set_field, set_field, nudge_field, set_length, cut, grow, repeat, drop,
             shuffle, retype, reflag)  # fmt: skip


def some_time(rng: random.Random, packet: Packet) -> bytearray:
    """Return a TIMESTAMP chunk, new if there is none."""
    times = [chunk for chunk in packet if chunk[0] == TIMESTAMP]
    if not times:
        times = [bytearray(sp.timestamp(rng.getrandbits(32), 0, rng.getrandbits(8)))]
        packet[:0] = times
    return rng.choice(times)


def set_time(rng: random.Random, packet: Packet) -> None:
    """Put something else in the place of a flag or a time."""
    chunk = [some_time(rng, packet)]
    rng.choice((reflag, nudge_field, set_times_edge))(rng, chunk)


def set_times_edge(rng: random.Random, packet: Packet) -> None:
    at = rng.choice((4, 8))
    packet[0][at : at + 4] = rng.choice((rng.choice(EDGES), rng.getrandbits(32))).to_bytes(4, "big")


def resize_time(rng: random.Random, packet: Packet) -> None:
    """Make a TIMESTAMP chunk as long as it says, and that wrong; what follows stays in step."""
    chunk = some_time(rng, packet)
    length = rng.choice((4, 5, 8, 11, 13, 16, 20, 64, 256))
    chunk[2:4] = length.to_bytes(2, "big")
    chunk[:] = sp.padded(bytes(chunk).ljust(length, b"\xa5")[: max(length, 4)])


def break_last(rng: random.Random, packet: Packet) -> None:
    """Make a TIMESTAMP chunk the last one, and its length one that ends nowhere."""
    chunk = some_time(rng, packet)
    packet[:] = [one for one in packet if one is not chunk] + [chunk]
    set_length(rng, [chunk])


def repeat_time(rng: random.Random, packet: Packet) -> None:
    times = [bytearray(some_time(rng, packet)) for _ in range(rng.choice((1, 1, 2, 40)))]
    at = rng.randrange(len(packet) + 1)
    packet[at:at] = times


# what is wrong with TIMESTAMP chunks alone ends no association
OF_TIMES = (set_time, set_time, set_time, resize_time, break_last, repeat_time, shuffle)


def mutated(rng: random.Random, packet: Packet, any_share: float) -> bytes:
    """Return the bytes of a packet after one mutation or a few; one in sixteen stays right.

    ANY_SHARE of the packets have mutations of whatever chunk, others of TIMESTAMP chunks alone.
    """
    kinds = MUTATIONS if rng.random() < any_share else OF_TIMES
    for _ in range(rng.choice((0, *(1,) * 8, 2, 2, 2, 3, 3, 5, 8))):
        rng.choice(kinds)(rng, packet)
    body = b"".join(packet)
    if kinds is MUTATIONS and rng.random() < 0.1:
        body = body[: rng.randrange(len(body) + 1)]
    return body[:MOST_BYTES]


# what a peer that signs wants authenticated; None: what the kernel does
LISTS = (
    (sp.ASCONF,), (), (TIMESTAMP,), (sp.SACK, TIMESTAMP), (sp.DATA, sp.SACK, TIMESTAMP), None,
)  # fmt: skip


# --- an association under fire ------------------------------------------------------


class Target:
    """An association whose peer sends nonsense between what is right."""

    def __init__(self, wire: Wire, rng: random.Random, number: int, signs: bool):
        self.rng, self.wire = rng, wire
        kind, how = (AuthPeer, {"lists": rng.choice(LISTS)}) if signs else (Peer, {})
        self.peer = kind(wire, **how, port=2000 + number % 50_000, own_port=1000 + number % 60_000,
                         extensions=EXTENSIONS, rwnd=rng.choice((1 << 20, 6000)),
                         tag=rng.getrandbits(32) or 1, first_tsn=rng.getrandbits(32))  # fmt: skip
        self.peer.more_parameters += b"".join(
            sp.parameter(sp.IPV4_ADDRESS, socket.inet_aton(address)) for address in sp.PEER
        )
        self.stamp = Stamp(0, 0, 0)
        self.sent = b""
        self.heartbeat = "000004"
        self.serial = self.peer.first_tsn
        self.packets = 0
        self.any_share = rng.choice((0, 0.02, 0.5))  # to live long, or to see much

    def start(self) -> bool:
        """Set it up one way or the other, with packets before it is; true if it came up."""
        peer, rng = self.peer, self.rng
        passive = rng.random() < 0.5
        if passive:
            peer.start_accept(homes=2)
        else:
            peer.collides = sp.INIT if rng.random() < 0.3 else -1
            peer.start_connect(homes=2)
        if rng.random() < 0.2:
            self.fire(5)
        self.wire.run(0.01)
        if not peer.up:
            return False
        if passive:
            try:
                peer.sock, _ = peer.listener.accept()
            except OSError:
                return False
            peer.sock.setblocking(False)
        if hasattr(peer, "signs"):
            peer.signs = rng.random() < 0.8
        with contextlib.suppress(OSError):
            peer.choose(rng.choice(ALGORITHMS))
        return True

    def live(self) -> bool:
        """Let the application and the honest part of the peer do something; false: it is gone."""
        peer, rng = self.peer, self.rng
        try:
            with contextlib.suppress(BlockingIOError):
                peer.sock.recv(1 << 16)
            with contextlib.suppress(BlockingIOError):
                peer.write(rng.randrange(3), rng.choice((1, 100, 1440, 1452, 3000)))
        except OSError:
            return False
        if rng.random() < 0.4:
            self.wire.run(rng.choice((0.001, 0.05, 0.3)))
        return not peer.aborted

    def look(self) -> None:
        """Take from what was heard what a good answer would have."""
        for packet in self.peer.heard:
            self.sent = packet.raw
            for found in packet.chunks:
                if found.type == TIMESTAMP and not found.flags & sp.ECHO and found.length == 12:
                    self.stamp = sp.stamps(packet)[-1]
                elif found.type == sp.HEARTBEAT:
                    self.heartbeat = f"00{found.length:04x}{found.body.hex()}"
        self.peer.heard.clear()
        del self.peer.sent_tsns[:-1]

    def value(self, place: re.Match) -> str:
        peer, now_us = self.peer, sp.clock_us()
        if place[1] == "heartbeat":
            return self.heartbeat
        if place[1] == "cookie":
            cookie = getattr(peer, "cookie", b"none")
            return f"{len(cookie) + 4:04x}{cookie.hex()}"
        values = {
            "tag": peer.tag, "rwnd": peer.rwnd, "small": 1440, "tsn": peer.tsn, "ctsn": peer.ctsn,
            "sent": self.stamp.sent_us, "received": peer.clock.us(now_us), "now": now_us,
            "serial": self.serial,
        }  # fmt: skip
        return f"{values[place[1]] + int(place[2] or 0) & MASK:08x}"

    def chunks_of(self, seed: dict) -> Packet:
        made = [bytes.fromhex(PLACE.sub(self.value, text)) for text in seed["chunks"]]
        return [bytearray(sp.padded(chunk)) for chunk in made]

    def fire(self, count: int) -> None:
        """Send COUNT packets."""
        peer, rng = self.peer, self.rng
        for _ in range(count):
            (seed,) = rng.choices(SEEDS, WEIGHTS)
            packet = self.chunks_of(seed)
            if rng.random() < 0.5:
                packet[:0] = self.chunks_of(rng.choice(TIMES))
            tag = seed.get("tag", peer.their_tag)
            if rng.random() < 0.06:
                tag = rng.choice((0, peer.tag, peer.their_tag, rng.getrandbits(32)))
            body = mutated(rng, packet, self.any_share)
            raw = bytearray(peer.build(body, tag=tag, path=rng.random() < 0.1))
            if rng.random() < 0.01:
                raw[28 + rng.randrange(4)] ^= 1 << rng.randrange(8)
            self.wire.inject(bytes(raw))
            self.packets += 1
            if self.sent and rng.random() < 0.03:
                self.wire.inject(sp.too_long(self.sent, rng.choice((0, 68, 512, 600, 1400, 1499))))
            if rng.random() < 0.1:  # as if it had been taken
                peer.tsn = peer.tsn + 1 & MASK
                self.serial += 1
        self.wire.drain()
        self.look()

    def run(self) -> None:
        """Attack it until it is gone, or long enough."""
        if self.start():
            while self.packets < PACKETS_OF_A_SESSION and self.live():
                self.fire(self.rng.randrange(1, 17))
        if self.rng.random() < 0.05:
            self.wire.run(5)  # its timers, too
        self.peer.close()
        self.wire.drain()
        del self.wire.peers[self.peer.port]
        self.wire.events.clear()


# --- a slice -------------------------------------------------------------------------


def sysctls(rng: random.Random) -> dict[str, int]:
    """Return settings for a namespace."""
    return {
        "auth_enable": rng.random() < 0.3, "addip_enable": 1, "addip_noauth_enable": 1,
        "intl_enable": rng.random() < 0.3, "reconf_enable": 1,
        "idle_retransmit": rng.random() < 0.7, "miss_indications": rng.choice((3, 3, 4, 255)),
        "timestamp_chunk": TIMESTAMP, "rto_min": 200, "rto_initial": 500,
    }  # fmt: skip


def counters() -> Counter:
    """Return what the kernel has counted in this namespace."""
    text = Path("/proc/net/sctp/snmp").read_text()
    return Counter({name: int(value) for name, value in map(str.split, text.splitlines())})


class Slice:
    """So many packets of a SEED. Each namespace has its own settings."""

    def __init__(self, seed: int, packets: int):
        self.seed, self.wanted = seed, packets
        self.rng = random.Random(seed)
        self.log = KernelLog()
        self.packets = self.sessions = self.came_up = 0
        self.counted: Counter = Counter()

    def run(self) -> None:
        while self.packets < self.wanted:
            options = {name: int(value) for name, value in sysctls(self.rng).items()}
            with Wire(**options) as wire:
                for _ in range(SESSIONS_OF_A_WIRE):
                    self._session(wire, bool(options["auth_enable"]))
                    if self.packets >= self.wanted:
                        break
                self.counted += counters()

    def _session(self, wire: Wire, signs: bool) -> None:
        target = Target(wire, self.rng, self.sessions, signs)
        target.run()
        self.sessions += 1
        self.packets += target.packets
        self.came_up += target.peer.up
        bad = [line for line in self.log.new_lines() if COMPLAINT.search(line)]
        assert not bad, f"seed {self.seed}, session {self.sessions - 1}: {bad[0]}"

    def figures(self) -> str:
        names = ("SctpInSCTPPacks", "SctpInCtrlChunks", "SctpOutCtrlChunks", "SctpOutOfBlues",
                 "SctpChecksumErrors", "SctpInPktDiscards", "SctpAborteds")  # fmt: skip
        counted = " ".join(f"{name}={self.counted[name]}" for name in names)
        return (f"seed {self.seed}: {self.packets} packets, {self.sessions} sessions, "
                f"{self.came_up} came up, {counted}")  # fmt: skip


@claim("mutated packets: the kernel complains of none, and goes on as before")
def check_fuzz():
    run = Slice(int(sys.argv[1]), int(sys.argv[2]))
    run.run()
    print(f"# {run.figures()}", flush=True)
    # it was an attack: associations came up, and their state machines saw the packets
    assert run.came_up > run.sessions / 2, run.figures()
    assert run.counted["SctpInCtrlChunks"] > run.packets, run.figures()
    with Wire() as wire:
        peer = Peer(wire).connect()
        peer.choose("jsctp_abe")
        peer.bulk = True
        wire.run(1)
        assert len(peer.delivered) > 100 and not peer.beyond and not peer.aborted


@claim("after mutated packets no memory is lost, and nothing holds the algorithms")
def check_leaks():
    complaint = KernelLog().complaint()
    assert not complaint, complaint
    run_cmd("rmmod", "sctp_jsctp")


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "sctp", "sctp_diag", "sctp_jsctp")
    CLAIMS.settle()
