# SPDX-License-Identifier: GPL-2.0-only
"""A TCP peer that does what a script says, and the path to it. Standard library only.

    the kernel's sender ==tun==> link (rate, queue, delay) ==> Peer
                        <==tun== way back (delay, aggregation) <==

All of it is one event loop in virtual time. The kernel works through an ACK while it is written
to the tun device, so the state of the socket can be compared from one ACK to the next.
"""

import contextlib
import fcntl
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import guest_net as net

from labtest.guest import write_file
from labtest.wire import TunWire, clock_us

HERE_IP, PEER_IP = "10.1.0.1", "10.1.0.2"
TUNSETOFFLOAD = 0x400454D0
IFF_VNET_HDR = 0x4000
OFFLOAD_CHECKSUM, OFFLOAD_TSO4, OFFLOAD_TSO_ECN = 0x1, 0x2, 0x8
VNET_HEADER_BYTES = 10
SO_SNDBUFFORCE = 32
FIN, SYN, RST, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x10, 0x40, 0x80
CE = 3
TCP_ESTABLISHED = b"\1"
SEQ_MASK = 2**32 - 1
MTU_BYTES = 1500
MSS_BYTES = 1460
SEND_BUFFER_BYTES = 1 << 20
SACK_BLOCKS = 3  # what fits beside a time stamp


@dataclass
class Segment:
    """What the sender put on the wire; offsets count bytes from its SYN."""

    start: int
    end: int
    flags: int
    ts_val: int
    ce: bool
    nth: int  # of those with data, from 0; a retransmission counts again
    again: bool  # has been sent before
    sent_us: int

    @property
    def pkts(self) -> int:
        return max(1, -(-(self.end - self.start) // MSS_BYTES))


@dataclass
class Clock:
    """The time stamps of a receiver. WRAP_AT_S: when, counted from the first, TSval wraps."""

    tick_us: int = 1000
    skew_ppm: int = 0
    wrap_at_s: float | None = None

    def __post_init__(self):
        self.start_us = clock_us()
        self.first = 7 if self.wrap_at_s is None else -self._ticks(int(self.wrap_at_s * 1e6))

    def _ticks(self, elapsed_us: int) -> int:
        return elapsed_us * (1_000_000 + self.skew_ppm) // 1_000_000 // self.tick_us

    def ticks(self, now_us: int) -> int:
        return self.first + self._ticks(now_us - self.start_us) & SEQ_MASK


@dataclass
class Link:
    """The path there and back. BATCH_US: ACKs come in batches this far apart (0: one by one)."""

    rate_mbps: float = 1000
    queue_pkts: int = 1000
    delay_us: int = 20_000
    batch_us: int = 0
    back_us: int | None = None  # of the way back, if not the same
    leaves_us: deque[int] = field(default_factory=deque)
    drops: int = 0

    def service_us(self, pkts: int = 1) -> int:
        return round(pkts * MTU_BYTES * 8 / self.rate_mbps)

    def carry_us(self, now_us: int, pkts: int) -> int | None:
        """Return when a segment that is put in now comes out; None: the queue is full."""
        while self.leaves_us and self.leaves_us[0] <= now_us:
            self.leaves_us.popleft()
        if len(self.leaves_us) > self.queue_pkts:
            self.drops += pkts
            return None
        start_us = self.leaves_us[-1] if self.leaves_us else now_us
        for i in range(1, pkts + 1):
            self.leaves_us.append(start_us + self.service_us(i))
        return self.leaves_us[-1] + self.delay_us

    def return_us(self, now_us: int) -> int:
        """Return when an ACK that is sent now comes in."""
        at_us = now_us + (self.delay_us if self.back_us is None else self.back_us)
        return -(-at_us // self.batch_us) * self.batch_us if self.batch_us else at_us

    def bdp_pkts(self) -> float:
        return 2 * self.delay_us / self.service_us() + 1


class Wire(TunWire):
    """A network namespace whose only way out is the tun device that this process holds."""

    def __init__(self, link: Link | None = None, offload: bool = False, **sysctls):
        super().__init__()
        self.link = link or Link()
        self.offload = offload
        self.sysctls = {"tcp_no_metrics_save": 1} | sysctls
        self.flows: dict[int, Peer] = {}
        self.largest_pkts = 0
        self.header = bytes(VNET_HEADER_BYTES) if offload else b""
        self.heard = False  # the sender may have sent

    def __enter__(self):
        self.open([HERE_IP], IFF_VNET_HDR if self.offload else 0)
        if self.offload:
            fcntl.ioctl(self.tun, TUNSETOFFLOAD, OFFLOAD_CHECKSUM | OFFLOAD_TSO4 | OFFLOAD_TSO_ECN)
        for key, value in self.sysctls.items():
            write_file(f"/proc/sys/net/ipv4/{key}", value)
        return self

    def __exit__(self, *_exc):
        for flow in self.flows.values():
            flow.close()
        self.close()

    # --- the event loop ---

    def step(self, until_us: int) -> bool:
        """Let one thing happen; false if nothing is left before UNTIL_US.

        System calls are what costs here: the clock moves in select() only, and the sender sends
        only when it was given something or has waited.
        """
        if self.act():
            return True
        if self.heard:
            self.heard = self._read()
            return True
        idle_s = self.idle_s(until_us)
        if not idle_s:
            return False
        hungry = [flow.sock for flow in self.flows.values() if flow.bulk and not flow.closed]
        readable, writable, _ = select.select([self.tun], hungry, [], idle_s)
        self.now_us = clock_us()
        self.heard = bool(readable or writable)
        for flow in self.flows.values():
            if flow.sock in writable:
                flow.fill()
        return True

    # --- what passes ---

    def _read(self) -> bool:
        try:
            data = os.read(self.tun, 1 << 17)
        except BlockingIOError:
            return False
        packet = data[len(self.header) :]
        if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
            ports = struct.unpack_from("!HH", packet, 20)
            if flow := self.flows.get(ports[0]):
                flow.take(packet)
        return True

    def inject(self, packet: bytes) -> None:
        os.write(self.tun, self.header + packet)
        self.heard = True


class Peer:
    """The receiver of one connection. A subclass or an attribute says how it behaves."""

    port = 5001

    def __init__(self, wire: Wire, algorithm: str, clock: Clock | None = None):
        self.wire, self.bulk, self.closed = wire, False, False
        self.clock = clock or Clock()
        self.time_stamps = self.sack = self.ecn = False  # as negotiated
        self.ack_every = self.sack_every = 1  # segments in order, and with a hole before them
        self.flush_us = 1000  # an ACK waits no longer
        self.dsack = self.takes_syn_data = True
        self.window_pkts = 4000
        self.window_shift = 10
        self.stamps: Callable[[], bool] = lambda: True  # does this ACK have a time stamp?
        self.lose: Callable[[Segment], bool] = lambda _segment: False
        self.mark: Callable[[Segment], bool] = lambda _segment: False
        self.hold_us: Callable[[Segment], int] = lambda _segment: 0  # reordering
        self.isn, self.seq = 0, 1000
        self.next = self.sent_end = 1
        self.islands: list[list[int]] = []  # newest first
        self.duplicate: tuple[int, int] | None = None
        self.ts_recent = 0
        self.echo = self.pending = 0
        self.arrived_pkts = 0
        self.count = self.retransmits = self.delivered_bytes = self.acks = self.sent_acks = 0
        self.segments: list[Segment] = []
        self.sock = socket.socket()
        self.sock.setblocking(False)
        if algorithm:
            net.set_algorithm(self.sock, algorithm)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
        self.sock.bind((HERE_IP, 0))
        self.sender_port = self.sock.getsockname()[1]
        wire.flows[self.sender_port] = self

    def start_connect(self, first: bytes = b"") -> None:
        """Send a SYN, with the data FIRST in it, and leave the socket in SYN_SENT."""
        if first:
            with contextlib.suppress(BlockingIOError):
                self.sock.sendto(first, socket.MSG_FASTOPEN, (PEER_IP, self.port))
        else:
            self.sock.connect_ex((PEER_IP, self.port))
        self.wire.heard = True

    def established(self) -> bool:
        return self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == TCP_ESTABLISHED

    def connect(self, bulk: bool = True) -> "Peer":
        """Connect; from then on the sender sends all it can, unless BULK is false."""
        self.start_connect()
        self.wire.wait(self.established)
        self.bulk = bulk
        return self

    def close(self) -> None:
        if not self.closed:
            net.abort(self.sock)
            self.closed = True

    # --- the sender's side ---

    def fill(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sock.send(bytes(1 << 16))

    def write(self, pkts: int) -> None:
        sent = self.sock.send(bytes(pkts * self.info().mss_bytes))
        self.wire.heard = True
        assert sent == pkts * self.info().mss_bytes, "the send buffer is full"

    def info(self) -> net.Info:
        return net.info_of(self.sock)

    def wait_for(self, wanted: Callable[[net.Info], bool], limit_s=10.0) -> tuple[net.Info, ...]:
        """Return the states before and after the event that made WANTED true."""
        until_us = self.wire.now_us + round(limit_s * 1e6)
        before = now = self.info()
        while not wanted(now):
            assert self.wire.step(until_us), f"not within {limit_s} s: {now}"
            before, now = now, self.info()
            self.seen(now)
        return before, now

    def seen(self, info: net.Info) -> None:
        """A place for scripts: wait_for() has looked."""

    # --- from the wire ---

    def take(self, packet: bytes) -> None:
        """A packet of the sender: put it on the link."""
        total = struct.unpack_from("!H", packet, 2)[0]
        seq, _, offset, flags = struct.unpack_from("!IIBB", packet, 24)
        header_bytes = 20 + (offset >> 4) * 4
        length = (total or len(packet)) - header_bytes
        options = parse_options(packet[40:header_bytes])
        if flags & SYN:
            self.isn = seq
            arrival_us = self.wire.now_us + self.wire.link.delay_us
            self.wire.at(arrival_us, lambda: self._syn(flags, options, length))
            return
        if flags & RST or not length:
            return
        start = (seq - self.isn) & SEQ_MASK
        ts_val = struct.unpack("!I", options[8][:4])[0] if 8 in options else 0
        segment = Segment(start, start + length, flags, ts_val, packet[1] & 3 == CE, self.count,
                          start < self.sent_end, self.wire.now_us)  # fmt: skip
        self.count += 1
        self.retransmits += segment.again
        self.sent_end = max(self.sent_end, segment.end)
        self.wire.largest_pkts = max(self.wire.largest_pkts, segment.pkts)
        self.sent(segment)
        if self.lose(segment):
            return
        segment.ce |= self.ecn and self.mark(segment)
        arrival_us = self.wire.link.carry_us(self.wire.now_us, segment.pkts)
        if arrival_us is not None:
            self.wire.at(arrival_us + self.hold_us(segment), lambda: self._arrive(segment))

    def sent(self, segment: Segment) -> None:
        """A place for scripts: the sender has put SEGMENT on the wire."""

    def _syn(self, flags: int, options: dict[int, bytes], length: int) -> None:
        self.sack, self.time_stamps = 4 in options, 8 in options
        self.ecn = flags & (ECE | CWR) == ECE | CWR
        if self.time_stamps:
            self.ts_recent = struct.unpack("!I", options[8][:4])[0]
        reply = struct.pack("!BBH", 2, 4, MSS_BYTES) + struct.pack(
            "!BBBB", 1, 3, 3, self.window_shift
        )
        if self.sack:
            reply += b"\4\2\1\1"
        if length and self.takes_syn_data:
            self._place(1, 1 + length)
        self.send_ack(SYN | ACK | (ECE if self.ecn else 0), reply)

    def _arrive(self, segment: Segment) -> None:
        self.arrived_pkts += segment.pkts
        self.receive(segment)

    def receive(self, segment: Segment) -> None:
        """SEGMENT has come out of the link."""
        if segment.ce:
            self.echo = ECE
        if segment.flags & CWR:
            self.echo = ECE if segment.ce else 0
        if segment.start <= self.next:
            self.ts_recent = segment.ts_val
        in_order = segment.start == self.next and not self.islands
        self._place(segment.start, segment.end)
        self.pending += segment.pkts
        every = self.ack_every if in_order else self.sack_every
        if self.pending >= every or self.duplicate:
            self.answer()
        elif self.pending == segment.pkts:
            acks = self.sent_acks
            self.wire.at(self.wire.now_us + self.flush_us, lambda: self._flush(acks))

    def _flush(self, acks: int) -> None:
        if self.sent_acks == acks:
            self.answer()

    def answer(self) -> None:
        """A place for scripts: it is time for an ACK."""
        self.send_ack()

    def _place(self, start: int, end: int) -> None:
        known = any(left <= start and end <= right for left, right in self.islands)
        if end <= self.next or known:
            self.duplicate = (start, end)
            return
        self.delivered_bytes += end - start
        merged = [start, end]
        rest = []
        for island in self.islands:
            if island[0] <= merged[1] and merged[0] <= island[1]:
                merged = [min(island[0], merged[0]), max(island[1], merged[1])]
            else:
                rest.append(island)
        if merged[0] <= self.next:
            self.next, self.islands = merged[1], rest
        else:
            self.islands = [merged, *rest]

    # --- to the wire ---

    def ts_val(self) -> int:
        return self.clock.ticks(self.wire.now_us)

    def send_ack(self, flags: int = 0, options: bytes = b"", upto: int | None = None) -> None:
        """Send an ACK of what came, or of all up to the offset UPTO."""
        if self.time_stamps and self.stamps():
            options += struct.pack("!BBBBII", 1, 1, 8, 10, self.ts_val(), self.ts_recent)
        if not flags & SYN:
            options += self._sack_option()
        flags = flags or ACK | self.echo
        ack = (self.isn + (self.next if upto is None else upto)) & SEQ_MASK
        window = 65535 if flags & SYN else self.window_pkts * MSS_BYTES >> self.window_shift
        packet = tcp_packet(self.port, self.sender_port, self.seq - bool(flags & SYN),
                            ack, flags, window, options)  # fmt: skip
        self.pending = 0
        self.sent_acks += 1
        self.wire.at(self.wire.link.return_us(self.wire.now_us), lambda: self._deliver(packet))

    def too_big(self, mtu_bytes: int) -> bytes:
        """A router's word (ICMP 3, 4) that what was sent last does not go through."""
        header = ip_header(20 + 8, socket.IPPROTO_TCP, HERE_IP, PEER_IP)
        seq = (self.isn + self.sent_end - 1) & SEQ_MASK
        of = header + struct.pack("!HHI", self.sender_port, self.port, seq)
        body = struct.pack("!HH", 0, mtu_bytes) + of
        message = struct.pack("!BBH", 3, 4, checksum(b"\3\4\0\0" + body)) + body
        return ip_header(20 + len(message), socket.IPPROTO_ICMP, PEER_IP, HERE_IP) + message

    def _deliver(self, packet: bytes) -> None:
        if not self.closed:
            self.wire.inject(packet)
            self.acks += 1

    def _sack_option(self) -> bytes:
        blocks = list(self.islands)
        if self.duplicate and self.dsack:
            blocks.insert(0, list(self.duplicate))
        self.duplicate = None
        if not blocks or not self.sack:
            return b""
        blocks = blocks[:SACK_BLOCKS]
        body = b"".join(
            struct.pack("!II", *((self.isn + edge) & SEQ_MASK for edge in block))
            for block in blocks
        )
        return struct.pack("!BBBB", 1, 1, 5, 2 + len(body)) + body


def parse_options(data: bytes) -> dict[int, bytes]:
    options, at = {}, 0
    while at < len(data) and data[at]:
        if data[at] == 1:
            at += 1
            continue
        options[data[at]] = data[at + 2 : at + data[at + 1]]
        at += data[at + 1]
    return options


def checksum(data: bytes) -> int:
    """Return the Internet checksum to send (RFC 1071): as 2**16 is 1 modulo 65535, the sum of the
    words is what all of DATA is as one number. (Of zero's two forms, it never is 0.)"""
    return 0xFFFF - int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF


def ip_header(total_bytes: int, protocol: int, source: str, target: str) -> bytes:
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total_bytes, 0, 0, 64, protocol, 0,
                         socket.inet_aton(source), socket.inet_aton(target))  # fmt: skip
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:]


def tcp_packet(sport, dport, seq, ack, flags, window, options: bytes) -> bytes:
    """Return an IPv4 packet from the peer."""
    source, target = socket.inet_aton(PEER_IP), socket.inet_aton(HERE_IP)
    offset = (20 + len(options)) // 4 << 4
    fields = (sport, dport, seq & SEQ_MASK, ack, offset, flags, window)
    tcp = struct.pack("!HHIIBBHHH", *fields, 0, 0) + options
    pseudo = source + target + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = struct.pack("!HHIIBBHHH", *fields, checksum(pseudo + tcp), 0) + options
    return ip_header(20 + len(tcp), socket.IPPROTO_TCP, PEER_IP, HERE_IP) + tcp
