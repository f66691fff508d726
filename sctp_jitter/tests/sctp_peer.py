# SPDX-License-Identifier: GPL-2.0-only
"""An SCTP peer that does what a script says, and the wire to it. Standard library only.

    the kernel's end ==tun==> link (service time, delay) ==> Peer
                     <==tun== way back (delay)           <==

All of it is one event loop in virtual time. The kernel works through a packet while it is written
to the tun device, so what it answers, and the state of its windows, can be compared from one
packet to the next. Both ends have two addresses, all on the one device.
"""

import contextlib
import hmac
import os
import select
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sctp_net import (
    CLIENT_PORT,
    PORT,
    SCTP_AUTH_CHUNK,
    SCTP_BINDX_ADD,
    SCTP_CONG_CONTROL,
    SCTP_NODELAY,
    Chunk,
    Packet,
    addresses,
)

from labtest.guest import abort, write_file
from labtest.wire import TunWire, clock_us

HERE, PEER = ("10.1.0.1", "10.2.0.1"), ("10.1.0.2", "10.2.0.2")
IPPROTO_SCTP = 132
MTU_BYTES, HEADERS_BYTES, DATA_HEADER_BYTES, SACK_BYTES = 1500, 32, 16, 16
PAYLOAD_BYTES = 1440  # of the largest message that leaves room for a TIMESTAMP chunk
MASK = 2**32 - 1

# chunk types
DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT = range(7)
SHUTDOWN, SHUTDOWN_ACK, ERROR, COOKIE_ECHO, COOKIE_ACK, ECNE, CWR, SHUTDOWN_COMPLETE = range(7, 15)
AUTH, I_DATA, ASCONF_ACK, RECONF, PAD = 15, 64, 128, 130, 132
FORWARD_TSN, ASCONF, I_FORWARD_TSN = 192, 193, 194
TIMESTAMP = 190
# flags of DATA and TIMESTAMP chunks
ONE_PIECE, ECHO = 0x03, 0x01
# flag of an ABORT that answers a packet of no association
OF_NOBODY = 0x01
# parameter types
IPV4_ADDRESS, STATE_COOKIE, SUPPORTED_EXTENSIONS, ECN_CAPABLE = 5, 7, 0x8008, 0x8000
FORWARD_TSN_SUPPORTED = 0xC000
RANDOM, CHUNK_LIST, HMAC_ALGORITHM = 0x8002, 0x8003, 0x8004
ADD_ADDRESS, DELETE_ADDRESS, SET_PRIMARY = 0xC001, 0xC002, 0xC004


# --- what packets are made of ---------------------------------------------------


def _crc_table() -> tuple[int, ...]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Return the checksum of RFC 9260 appendix A."""
    crc, table = MASK, CRC_TABLE
    for octet in data:
        crc = crc >> 8 ^ table[(crc ^ octet) & 0xFF]
    return crc ^ MASK


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def chunk(kind: int, flags: int = 0, body: bytes = b"", length: int | None = None) -> bytes:
    """Return a chunk; LENGTH: what it says of itself, if that is not true."""
    said = len(body) + 4 if length is None else length
    return padded(struct.pack(">BBH", kind, flags, said) + body)


def parameter(kind: int, body: bytes) -> bytes:
    return padded(struct.pack(">HH", kind, len(body) + 4) + body)


def sack(ctsn: int, rwnd: int, gaps: Iterable[tuple[int, int]] = (), dups=()) -> bytes:
    """GAPS: first and last TSN of each block, as offsets from CTSN."""
    gaps, dups = list(gaps), list(dups)
    body = struct.pack(">IIHH", ctsn & MASK, rwnd, len(gaps), len(dups))
    body += b"".join(struct.pack(">HH", first & 0xFFFF, last & 0xFFFF) for first, last in gaps)
    return chunk(SACK, 0, body + b"".join(struct.pack(">I", tsn) for tsn in dups))


def data(tsn: int, payload: bytes, stream: int = 0, ssn: int = 0, flags: int = ONE_PIECE) -> bytes:
    return chunk(DATA, flags, struct.pack(">IHHI", tsn & MASK, stream, ssn & 0xFFFF, 0) + payload)


def timestamp(
    sent_us: int, received_us: int = 0, flags: int = 0, length: int = 12, kind: int = TIMESTAMP
) -> bytes:
    """Return a TIMESTAMP chunk with as many bytes as it says, if those are 4 to 20."""
    body = struct.pack(">II", sent_us & MASK, received_us & MASK) + bytes(8)
    return chunk(kind, flags, body[: min(max(length, 4), 20) - 4], length)


def packet_of(ports: tuple[int, int], vtag: int, chunks: bytes) -> bytes:
    head = struct.pack(">HHI", *ports, vtag)
    return head + struct.pack("<I", crc32c(head + bytes(4) + chunks)) + chunks


def ip_packet(source: str, to: str, payload: bytes, protocol: int = IPPROTO_SCTP) -> bytes:
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0x02, 20 + len(payload), 0, 0, 64, protocol, 0,
        socket.inet_aton(source), socket.inet_aton(to),
    )  # fmt: skip
    return head[:10] + internet_checksum(head) + head[12:] + payload


def internet_checksum(octets: bytes) -> bytes:
    """Return the checksum of an even number of OCTETS (RFC 1071)."""
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def too_long(packet: bytes, mtu_bytes: int) -> bytes:
    """Return what a router says that cannot forward the IP PACKET (RFC 1191)."""
    said = struct.pack(">BBHHH", 3, 4, 0, 0, mtu_bytes) + packet[:28]
    said = said[:2] + internet_checksum(said) + said[4:]
    return ip_packet(PEER[0], HERE[0], said, socket.IPPROTO_ICMP)


def parameters(body: bytes) -> dict[int, bytes]:
    """Return type and value of each parameter of BODY."""
    found = {}
    while len(body) >= 4:
        kind, length = struct.unpack_from(">HH", body)
        if length < 4:
            break
        found[kind] = body[4:length]
        body = body[length + 3 & ~3 :]
    return found


@dataclass(frozen=True)
class Data:
    tsn: int
    payload: bytes

    @classmethod
    def of(cls, found: Chunk) -> "Data":
        return cls(struct.unpack_from(">I", found.body)[0], found.body[12:])


@dataclass(frozen=True)
class Stamp:
    """A TIMESTAMP chunk."""

    flags: int
    sent_us: int
    received_us: int

    @property
    def echo(self) -> bool:
        return bool(self.flags & ECHO)


def stamps(packet: Packet) -> list[Stamp]:
    return [
        Stamp(found.flags, *struct.unpack_from(">II", found.body))
        for found in packet.chunks
        if found.type == TIMESTAMP
    ]


def data_of(packet: Packet) -> list[Data]:
    return [Data.of(found) for found in packet.chunks if found.type == DATA]


# --- the wire -------------------------------------------------------------------


@dataclass
class Link:
    """SERVICE_US: what the bottleneck takes for a packet; its queue has no end."""

    delay_us: int = 20_000
    service_us: int = 0
    idle_us: int = 0  # when the bottleneck has sent all

    def carry_us(self, now_us: int) -> int:
        """Return when a packet that is put in now comes out."""
        self.idle_us = max(self.idle_us, now_us) + self.service_us
        return self.idle_us + self.delay_us


class Wire(TunWire):
    """A network namespace whose only way out is the tun device that this process holds.

    SYSCTLS are those of net.sctp.
    """

    def __init__(self, link: Link | None = None, **sysctls):
        super().__init__()
        self.link = link or Link()
        self.sysctls = {"timestamp_chunk": TIMESTAMP} | sysctls
        self.peers: dict[int, Peer] = {}

    def __enter__(self):
        self.open(HERE)
        for name, value in self.sysctls.items():
            self.sysctl(name, value)
        return self

    def __exit__(self, *_exc):
        for peer in self.peers.values():
            peer.close()
        self.close()

    @staticmethod
    def sysctl(name: str, value) -> None:
        write_file(f"/proc/sys/net/sctp/{name}", value)

    def step(self, until_us: int) -> bool:
        if self.act() or self.read():
            return True
        idle_s = self.idle_s(until_us)
        if not idle_s:
            return False
        hungry = [peer.sock for peer in self.peers.values() if peer.bulk]
        _, writable, _ = select.select([self.tun], hungry, [], idle_s)
        self.now_us = clock_us()
        for peer in self.peers.values():
            if peer.sock in writable:
                peer.fill()
        return True

    def read(self) -> bool:
        """Take one packet that the kernel sent; false if there is none."""
        try:
            raw = os.read(self.tun, 1 << 16)
        except BlockingIOError:
            return False
        if raw[0] >> 4 == 4 and raw[9] == IPPROTO_SCTP:
            self.now_us = clock_us()
            packet = Packet(self.now_us * 1000, raw, socket.inet_ntoa(raw[12:16]))
            peer = self.peers.get(packet.ports[1])
            if peer and socket.inet_ntoa(raw[16:20]) in PEER:
                peer.take(packet)
        return True

    def drain(self) -> None:
        """Take all packets that the kernel has sent, without letting time pass."""
        while self.read():
            pass

    def inject(self, packet: bytes) -> None:
        os.write(self.tun, packet)


# --- the peer -------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """What inet_diag says of an association and its primary path. Windows in bytes."""

    cwnd: int
    ssthresh: int
    flight: int
    retransmits: int
    state: int

    @classmethod
    def of(cls, raw: bytes) -> "Info":  # struct sctp_info
        cwnd, ssthresh, flight = (struct.unpack_from("=I", raw, at)[0] for at in (300, 328, 336))
        return cls(cwnd, ssthresh, flight, *struct.unpack_from("=Q", raw, 88),
                   *struct.unpack_from("=I", raw, 4))  # fmt: skip


SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, INET_DIAG_INFO, NLMSG_DONE = 20, 0x301, 2, 3
NETLINK_SOCK_DIAG, DIAG_MSG_BYTES = 4, 72


def diag() -> dict[tuple[int, int], Info]:
    """Return each association of this namespace, by its local and remote port."""
    request = struct.pack("=BBBxI48x", socket.AF_INET, IPPROTO_SCTP, 1 << INET_DIAG_INFO - 1, MASK)
    found = {}
    kind = (socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
    with contextlib.closing(socket.socket(*kind)) as sock:
        head = (16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0)
        sock.send(struct.pack("=IHHII", *head) + request)
        while True:
            answer = sock.recv(1 << 16)
            while answer:
                length, what = struct.unpack_from("=IH", answer)
                if what == NLMSG_DONE:
                    return found
                assert what == SOCK_DIAG_BY_FAMILY, answer[:length]
                ports = struct.unpack_from(">HH", answer, 16 + 4)
                rest = answer[16 + DIAG_MSG_BYTES : length]
                while rest:
                    size, attribute = struct.unpack_from("=HH", rest)
                    if attribute == INET_DIAG_INFO and size > 340:
                        found[ports] = Info.of(rest[4:size])
                    rest = rest[size + 3 & ~3 :]
                answer = answer[length + 3 & ~3 :]


@dataclass
class Clock:
    """The peer's: AHEAD_US of ours when it starts, wraps."""

    ahead_us: int = 123_456_789

    def us(self, at_us: int) -> int:
        return at_us + self.ahead_us & MASK


@dataclass
class Peer:
    """One end of one association. Attributes, or a subclass, say how it behaves."""

    wire: Wire
    port: int = PORT
    own_port: int = CLIENT_PORT  # the kernel's
    extensions: tuple[int, ...] = (TIMESTAMP, ASCONF, ASCONF_ACK)
    more_parameters: bytes = b""
    rwnd: int = 1 << 20
    clock: Clock = field(default_factory=Clock)
    tag: int = 0x50454552  # ours, which its packets have
    first_tsn: int = 0x01000000  # ours
    answers: bool = True  # DATA by a SACK
    collides: int = -1  # the type of chunk that it answers by an INIT of its own, once
    loses: Callable[[Data], bool] = lambda _data: False
    # what it returns of a time, before a SACK; None: the truth
    echoes: Callable[["Peer", Stamp], Iterable[bytes]] | None = None

    def __post_init__(self):
        self.wire.peers[self.port] = self
        self.sock = self.listener = None
        self.bulk = self.up = self.aborted = False
        self.their_tag = 0
        self.their_init: Chunk | None = None
        self.tsn = self.first_tsn  # of the next DATA that we send
        self.ssn = 0
        self.ctsn = 0
        self.beyond: set[int] = set()  # TSNs that came beyond a hole
        self.dups: list[int] = []
        self.newest: Stamp | None = None  # to be returned
        self.heard: list[Packet] = []
        self.sent_tsns: list[int] = []  # each DATA chunk that the kernel sent, in order
        self.delivered: dict[int, bytes] = {}

    # --- how the association comes and goes ---

    def _socket(self, prepare, style=socket.SOCK_STREAM) -> socket.socket:
        sock = socket.socket(socket.AF_INET, style, IPPROTO_SCTP)
        sock.setsockopt(IPPROTO_SCTP, SCTP_NODELAY, 1)
        if prepare:
            prepare(sock)
        return sock

    def start_connect(self, prepare=None, homes: int = 1) -> "Peer":
        """The kernel's socket starts to connect to us; PREPARE is called with it before."""
        self.sock = self._socket(prepare)
        self.sock.setsockopt(
            IPPROTO_SCTP, SCTP_BINDX_ADD, addresses(*HERE[:homes], port=self.own_port)
        )
        self.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.sock.connect((PEER[0], self.port))
        return self

    def connect(self, prepare=None, homes: int = 1) -> "Peer":
        self.start_connect(prepare, homes)
        self.wire.wait(lambda: self.up)
        return self

    def connect_by(self, octets: int) -> "Peer":
        """A one-to-many socket of the kernel connects because a message is to be sent."""
        self.sock = self._socket(None, socket.SOCK_SEQPACKET)
        self.sock.setsockopt(IPPROTO_SCTP, SCTP_BINDX_ADD, addresses(HERE[0], port=self.own_port))
        self.sock.setblocking(False)
        self.write_to(octets)
        self.wire.wait(lambda: self.up)
        return self

    def start_accept(self, prepare=None, homes: int = 1) -> "Peer":
        """We start to connect to the kernel's listening socket."""
        self.listener = self._socket(prepare)
        self.listener.setsockopt(
            IPPROTO_SCTP, SCTP_BINDX_ADD, addresses(*HERE[:homes], port=self.own_port)
        )
        self.listener.listen(8)
        self.send_init()
        return self

    def accept(self, prepare=None, homes: int = 1) -> "Peer":
        self.start_accept(prepare, homes)
        self.wire.wait(lambda: self.up)
        self.sock, _ = self.listener.accept()
        self.sock.setsockopt(IPPROTO_SCTP, SCTP_NODELAY, 1)
        self.sock.setblocking(False)
        return self

    def close(self) -> None:
        for sock in (self.sock, self.listener):
            if sock:
                abort(sock)
        self.sock = self.listener = None
        self.bulk = False

    def restart(self, tag: int, first_tsn: int) -> None:
        """We have forgotten all, and start anew with the same ports."""
        self.tag, self.first_tsn, self.tsn, self.ssn = tag, first_tsn, first_tsn, 0
        self.up, self.newest = False, None
        for known in (self.beyond, self.dups, self.delivered):
            known.clear()
        self.send_init()

    # --- what it sends ---

    def send(self, *chunks: bytes, tag: int | None = None, path: int = 0) -> None:
        """Give the kernel a packet, and take what it has to say to that at once."""
        self.wire.inject(self.build(*chunks, tag=tag, path=path))
        self.wire.drain()

    def build(self, *chunks: bytes, tag: int | None = None, path: int = 0) -> bytes:
        body = packet_of((self.port, self.own_port), self.their_tag if tag is None else tag,
                         b"".join(chunks))  # fmt: skip
        return ip_packet(PEER[path], HERE[path], body)

    def send_data(self, payload: bytes = b"x", *before: bytes, path: int = 0) -> int:
        """Send DATA with chunks BEFORE it; return its TSN."""
        tsn = self.tsn
        self.tsn = tsn + 1 & MASK
        self.ssn += 1
        self.send(*before, data(tsn, payload, ssn=self.ssn - 1), path=path)
        return tsn

    def init_body(self) -> bytes:
        body = struct.pack(">IIHHI", self.tag, self.rwnd, 10, 10, self.first_tsn)
        return body + parameter(SUPPORTED_EXTENSIONS, bytes(self.extensions)) + self.more_parameters

    def send_init(self) -> None:
        self.send(chunk(INIT, 0, self.init_body()), tag=0)

    def sack(self, *before: bytes, rwnd: int | None = None, path: int = 0) -> None:
        """Send a SACK of what is here, with chunks BEFORE it."""
        self.send(*before, self.sack_chunk(rwnd), path=path)

    def sack_chunk(self, rwnd: int | None = None) -> bytes:
        offsets = sorted(tsn - self.ctsn & MASK for tsn in self.beyond)
        gaps: list[list[int]] = []
        for offset in offsets:
            if gaps and gaps[-1][1] + 1 == offset:
                gaps[-1][1] = offset
            else:
                gaps.append([offset, offset])
        made = sack(self.ctsn, self.rwnd if rwnd is None else rwnd, gaps, self.dups)
        self.dups.clear()
        return made

    # --- what it hears ---

    def take(self, packet: Packet) -> None:
        """A packet of the kernel is on the wire."""
        self.heard.append(packet)
        self.path = PEER.index(socket.inet_ntoa(packet.raw[16:20]))
        for found in packet.chunks:
            if handler := self.HANDLERS.get(found.type):
                handler(self, found)
        sent = data_of(packet)
        self.sent_tsns += [one.tsn for one in sent]
        if not sent or not self.answers:
            return
        sent = [one for one in sent if not self.loses(one)]
        if sent:
            stamp = next((one for one in stamps(packet) if not one.echo), None)
            at_us = self.wire.link.carry_us(self.wire.now_us)
            path = self.path
            self.wire.at(at_us, lambda: self.arrive(sent, stamp, at_us, path))

    def arrive(self, sent: list[Data], stamp: Stamp | None, at_us: int, path: int) -> None:
        """DATA has come through the link: answer it."""
        self.receive(sent)
        if stamp:
            self.newest = Stamp(stamp.flags | ECHO, stamp.sent_us, self.clock.us(at_us))
        answer = self.build(*self.echo(), self.sack_chunk(), path=path)
        self.wire.at(at_us + self.wire.link.delay_us, lambda: self.wire.inject(answer))

    def receive(self, sent: Iterable[Data]) -> None:
        for one in sent:
            if one.tsn in self.delivered:
                self.dups.append(one.tsn)
            else:
                self.beyond.add(one.tsn)
            self.delivered[one.tsn] = one.payload
        while self.ctsn + 1 & MASK in self.beyond:
            self.ctsn = self.ctsn + 1 & MASK
            self.beyond.remove(self.ctsn)

    def acknowledge(self, packet: Packet) -> None:
        """Take the DATA of a packet and say so, at once."""
        self.receive(data_of(packet))
        self.sack()

    def echo(self) -> Iterable[bytes]:
        """Return the chunks that return a time, before a SACK."""
        stamp, self.newest = self.newest, None
        if not stamp:
            return ()
        if self.echoes:
            return self.echoes(self, stamp)
        return (timestamp(stamp.sent_us, stamp.received_us, stamp.flags),)

    def _take_init(self, found: Chunk) -> None:
        self.their_init = found
        self.their_tag, _, _, _, tsn = struct.unpack_from(">IIHHI", found.body)
        self.ctsn = tsn - 1 & MASK
        if self.collides == INIT:
            self.send_init()
        else:
            self.send(chunk(INIT_ACK, 0, self.init_body() + parameter(STATE_COOKIE, b"our cookie")))

    def _take_init_ack(self, found: Chunk) -> None:
        self.their_init = found
        self.their_tag, _, _, _, tsn = struct.unpack_from(">IIHHI", found.body)
        self.ctsn = tsn - 1 & MASK
        self.cookie = parameters(found.body[16:])[STATE_COOKIE]
        self.send(chunk(COOKIE_ECHO, 0, self.cookie))

    def _take_cookie_echo(self, _found: Chunk) -> None:
        if self.collides == COOKIE_ECHO:
            self.send_init()
        else:
            self.send(chunk(COOKIE_ACK))
            self.up = True

    def _take_cookie_ack(self, _found: Chunk) -> None:
        self.up = True

    def _take_heartbeat(self, found: Chunk) -> None:
        self.send(chunk(HEARTBEAT_ACK, 0, found.body), path=self.path)

    def _take_shutdown(self, _found: Chunk) -> None:
        self.send(chunk(SHUTDOWN_ACK))

    def _take_shutdown_ack(self, _found: Chunk) -> None:
        self.send(chunk(SHUTDOWN_COMPLETE))

    def _take_abort(self, found: Chunk) -> None:
        if not found.flags & OF_NOBODY:
            self.aborted = True

    HANDLERS = {  # noqa: RUF012 (not changed)
        INIT: _take_init,
        INIT_ACK: _take_init_ack,
        COOKIE_ECHO: _take_cookie_echo,
        COOKIE_ACK: _take_cookie_ack,
        HEARTBEAT: _take_heartbeat,
        SHUTDOWN: _take_shutdown,
        SHUTDOWN_ACK: _take_shutdown_ack,
        ABORT: _take_abort,
    }

    # --- the kernel's side of it ---

    def fill(self) -> None:
        """Give the kernel as many whole messages as it takes."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.send(bytes(PAYLOAD_BYTES))

    def write(self, count: int = 1, octets: int = PAYLOAD_BYTES) -> None:
        """Let the kernel send COUNT messages, and take what it sends of them at once."""
        for _ in range(count):
            self.sock.send(bytes(octets))
        self.wire.drain()

    def write_to(self, octets: int) -> None:
        """The same of a one-to-many socket, one message."""
        self.sock.sendto(bytes(octets), (PEER[0], self.port))
        self.wire.drain()

    def info(self) -> Info:
        return diag()[self.own_port, self.port]

    def choose(self, algorithm: str) -> None:
        self.sock.setsockopt(IPPROTO_SCTP, SCTP_CONG_CONTROL, algorithm.encode())

    def since(self, packets: int) -> list[Packet]:
        """Return what was heard after the first so many PACKETS."""
        return self.heard[packets:]


def wants_signed(*kinds: int) -> Callable[[socket.socket], None]:
    """Return what has a socket of the kernel want such chunks of its peers with AUTH."""

    def prepare(sock: socket.socket) -> None:
        for kind in kinds:
            sock.setsockopt(IPPROTO_SCTP, SCTP_AUTH_CHUNK, bytes((kind,)))

    return prepare


@dataclass
class AuthPeer(Peer):
    """A peer that can authenticate packets (RFC 4895), with HMAC-SHA1. LISTS: the chunks that it
    wants authenticated; None: those that the kernel does, which has to connect then."""

    signs: bool = False
    shared: bytes = b""
    lists: tuple[int, ...] | None = (ASCONF,)

    def __post_init__(self):
        self.extensions += (AUTH,)
        self._list(bytes(self.lists or ()))
        super().__post_init__()

    def _list(self, kinds: bytes) -> None:
        self.own = {RANDOM: bytes(range(32)), CHUNK_LIST: kinds, HMAC_ALGORITHM: b"\0\1"}
        self.more_parameters = b"".join(parameter(*each) for each in self.own.items())

    def _take_init(self, found: Chunk) -> None:
        if self.lists is None:
            self._list(parameters(found.body[16:]).get(CHUNK_LIST, b""))
        super()._take_init(found)

    HANDLERS = Peer.HANDLERS | {INIT: _take_init}

    def key(self) -> bytes:
        """Section 6.1: both ends' parameters, the smaller vector first."""
        theirs = parameters(self.their_init.body[16:])
        vectors = [
            b"".join(
                struct.pack(">HH", kind, len(of[kind]) + 4) + of[kind]
                for kind in self.own
                if kind in of
            )
            for of in (self.own, theirs)
        ]
        vectors.sort(key=lambda vector: (int.from_bytes(vector), len(vector)))
        return self.shared + b"".join(vectors)

    def build(self, *chunks: bytes, **how) -> bytes:
        if self.signs:
            ids = struct.pack(">HH", 0, 1)
            covered = chunk(AUTH, 0, ids + bytes(20)) + b"".join(chunks)
            digest = hmac.digest(self.key(), covered, "sha1")
            chunks = (chunk(AUTH, 0, ids + digest), *chunks)
        return super().build(*chunks, **how)
