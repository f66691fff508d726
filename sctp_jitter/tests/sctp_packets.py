# SPDX-License-Identifier: GPL-2.0-only
"""Each rule of the patched SCTP, packet by packet, against a peer that a script drives; prints
TAP. test_sctp.py starts it and reads CLAIMS. Standard library only. All times are virtual."""

import contextlib
import itertools
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import sctp_peer as sp
from sctp_net import SCTP_CONG_CONTROL, SO_SNDBUFFORCE, addresses
from sctp_peer import (
    ECHO,
    MASK,
    MTU_BYTES,
    PAYLOAD_BYTES,
    PEER,
    TIMESTAMP,
    Clock,
    Data,
    Info,
    Link,
    Peer,
    Stamp,
    Wire,
    diag,
    stamps,
    timestamp,
)  # fmt: skip

from lab.run.guest.kernel_log import KernelLog
from labtest.claims import Claims, near
from labtest.guest import first_in_line, run_cmd

CLAIMS = Claims()
claim = CLAIMS.add

OURS = ("jsctp", "jsctp_abe")
SCTP_PEER_ADDR_PARAMS, SCTP_GET_ASSOC_ID_LIST, SPP_PMTUD_DISABLE = 9, 29, 1 << 4
WRONG_LENGTHS = (0, 3, 4, 8, 11, 13, 16, 20, 0xFFFF)


@contextlib.contextmanager
def receiving(**options):
    """The kernel's end receives; its SACK waits for a second packet, or for 200 ms."""
    with Wire() as wire:
        yield Peer(wire, **options).accept()


def ahead_of_us(peer: Peer) -> int:
    """Return how far the times that the kernel tells this peer are ahead of its clock (us)."""
    now_us = sp.clock_us()
    peer.write()
    (stamp,) = (stamp for stamp in stamps(peer.heard[-1]) if not stamp.echo)
    return stamp.sent_us - now_us & MASK


def returned(peer: Peer, *chunks: bytes, **how) -> list[Stamp]:
    """Send chunks, then two packets with DATA, which make a SACK due; return its echoes."""
    before = len(peer.heard)
    peer.send_data(b"a", *chunks, **how)
    peer.send_data(b"b", **how)
    peer.wire.run(0.5)
    return [stamp for packet in peer.since(before) for stamp in stamps(packet) if stamp.echo]


# --- times of the peer: the kernel returns them -----------------------------------


@claim("a time is returned once, as it came, with its path and when it arrived")
def check_echo():
    with receiving() as peer:
        ahead_us = ahead_of_us(peer)
        for sent_us in (1, MASK, 0, 0x80000000, 5):
            for path in (0, 2, 0xFE):
                now_us = sp.clock_us()
                (echo,) = returned(peer, timestamp(sent_us, 99, path))
                assert (echo.sent_us, echo.flags) == (sent_us, path | ECHO), echo
                assert echo.received_us == now_us + ahead_us & MASK, (echo, now_us)
        assert not returned(peer)


@claim("of a wrong length it is ignored, and the packet's other chunks are not")
def check_length():
    with receiving() as peer:
        for length in WRONG_LENGTHS:
            wrong, tsn = timestamp(1, length=length), peer.tsn
            if 4 <= length <= 20:
                assert not returned(peer, wrong), length
                assert arrived(peer, tsn), length
            else:  # it ends nowhere: beyond it there is nothing to be found
                peer.send(wrong, sp.data(tsn, b"x"))
                assert not returned(peer), length
            (echo,) = returned(peer, timestamp(2))
            assert echo.sent_us == 2 and not peer.aborted, length


def arrived(peer: Peer, tsn: int) -> bool:
    """Has the kernel acknowledged TSN?"""
    sacks = [found for packet in peer.heard for found in packet.chunks if found.type == sp.SACK]
    return (struct.unpack_from(">I", sacks[-1].body)[0] - tsn & MASK) < 2**31


@claim("of two in one packet the first counts, of each kind; a good one after a wrong one, too")
def check_two():
    with receiving() as peer:
        (echo,) = returned(peer, timestamp(1), timestamp(2))
        assert echo.sent_us == 1
        (echo,) = returned(peer, timestamp(77, 1, ECHO), timestamp(3), timestamp(78, 1, ECHO))
        assert echo.sent_us == 3
        (echo,) = returned(peer, timestamp(4, length=8), timestamp(5))
        assert echo.sent_us == 5
        peer.send_data(b"x", timestamp(6))
        (echo,) = returned(peer, timestamp(7))
        assert echo.sent_us == 7, "not the newest packet"
        peer.send_data(b"x", timestamp(9))
        (echo,) = returned(peer, timestamp(8))
        assert echo.sent_us == 9, "not the newest time"
        peer.send_data(b"x", timestamp(9))
        (echo,) = returned(peer, timestamp(8, 0, 2))
        assert echo.sent_us == 8, "of another path it is no older one"


@claim("last in its packet, behind a SACK, it does not keep back what the SACK lets go")
def check_last():
    with Wire() as wire:
        peer = Peer(wire, answers=False, rwnd=3 * PAYLOAD_BYTES).connect()
        peer.write(9)
        for chunks in ((timestamp(1),), (timestamp(1, 1, ECHO), timestamp(2))):
            sent = len(peer.sent_tsns)
            peer.receive(Data(tsn, b"") for tsn in peer.sent_tsns[-3:])
            peer.send(peer.sack_chunk(), *chunks)
            assert len(peer.sent_tsns) > sent, chunks


@claim("longer than its packet, behind a HEARTBEAT, it does not keep back the answer to that")
def check_longer_behind_a_heartbeat():
    with receiving() as peer:
        for length in (13, 16, 1000, 0xFFFF):
            before = len(peer.heard)
            peer.send(
                sp.chunk(sp.HEARTBEAT, 0, sp.parameter(1, bytes(8))), timestamp(1, length=length)
            )
            peer.wire.run(0.5)
            answers = [found.type for packet in peer.since(before) for found in packet.chunks]
            assert sp.HEARTBEAT_ACK in answers, length


@claim("with another verification tag it is ignored, and the association goes on")
def check_tag():
    with receiving() as peer:
        for tag in (0, 1, peer.their_tag ^ 1, peer.tag, MASK):
            before = len(peer.heard)
            peer.send(timestamp(1), sp.data(peer.tsn, b"x"), tag=tag)
            peer.send(timestamp(1), tag=tag)
            assert not peer.since(before) and not returned(peer), tag
        (echo,) = returned(peer, timestamp(2))
        assert echo.sent_us == 2


@claim("a type that was not agreed on is no TIMESTAMP chunk: nothing is returned, nor is it sent")
def check_not_agreed():
    for extensions in ((), (TIMESTAMP - 1,), (sp.ASCONF,)):
        with receiving(extensions=extensions) as peer:
            assert not returned(peer, timestamp(1))
            assert not returned(peer, timestamp(1, kind=TIMESTAMP - 1))
            peer.write()
            assert not any(packet.has(TIMESTAMP) for packet in peer.heard)
            assert not peer.aborted


class Meddled(Peer):
    """In the middle of the handshake CHANGES are made to the sysctls."""

    changes: dict = {}  # noqa: RUF012 (set before use)

    def _meddle(self, found: sp.Chunk) -> None:
        for name, value in self.changes.items():
            self.wire.sysctl(name, value)
        Peer.HANDLERS[found.type](self, found)

    HANDLERS = Peer.HANDLERS | {sp.INIT: _meddle, sp.INIT_ACK: _meddle}


CHANGES = (
    (TIMESTAMP, {"timestamp_chunk": 0}),
    (TIMESTAMP, {"timestamp_chunk": TIMESTAMP - 1}),
    (0, {"timestamp_chunk": TIMESTAMP}),
    (TIMESTAMP - 1, {"timestamp_chunk": TIMESTAMP}),
    (TIMESTAMP, {"congestion_control": "jsctp_abe", "miss_indications": 255, "idle_retransmit": 1}),
)


@claim("sysctls that change during the handshake do no harm; what was offered is what counts")
def check_meddled():
    for offered, changes in CHANGES:
        for way in ("connect", "accept"):
            with Wire(timestamp_chunk=offered) as wire:
                peer = Meddled(wire)
                peer.changes = changes
                getattr(peer, way)()
                agreed = offered == TIMESTAMP
                known = sp.parameters(peer.their_init.body[16:])
                listed = known.get(sp.SUPPORTED_EXTENSIONS, b"")
                assert (TIMESTAMP in listed) == agreed, (changes, way)
                peer.write()
                wire.run(0.5)
                assert not peer.aborted and len(peer.delivered) == 1, (changes, way)
                assert bool(stamps(peer.heard[-1])) == agreed, (changes, way)
                assert len(returned(peer, timestamp(7))) == agreed, (changes, way)
                assert not any(packet.has(TIMESTAMP - 1) for packet in peer.heard)
                assert peer.info().state == 3, "not established"


# --- times of the kernel -----------------------------------------------------------


def one_sent(peer: Peer, octets: int) -> list[sp.Stamp]:
    """Let a message of so many OCTETS be sent; return the times in its one packet."""
    before = len(peer.heard)
    peer.write(1, octets)
    (packet,) = peer.since(before)
    assert len(packet.raw) <= MTU_BYTES and len(sp.data_of(packet)) == 1
    peer.acknowledge(packet)
    return stamps(packet)


@claim("a message of 1440 bytes has a time beside it, one of 1441 to 1452 is whole without")
def check_pmtu():
    with Wire() as wire:
        peer = Peer(wire, answers=False).connect()
        for octets in (1, 700, *range(1420, 1453)):
            found = one_sent(peer, octets)
            assert len(found) == (octets <= PAYLOAD_BYTES), (octets, found)
        before = len(peer.heard)
        peer.write(1, 1453)
        packets = peer.since(before)
        assert sum(len(sp.data_of(packet)) for packet in packets) == 2
        assert all(stamps(packet) for packet in packets), "a fragment has no time"


@claim("a SACK and DATA in one packet: both times, or what there is room for, up to the path MTU")
def check_bundled():
    room = MTU_BYTES - sp.HEADERS_BYTES - sp.SACK_BYTES - sp.DATA_HEADER_BYTES
    with Wire() as wire:
        peer = Peer(wire, answers=False).connect()
        returned(peer)
        for octets in (1, *range(room - 40, room + 1, 4)):
            before = len(peer.heard)
            peer.send_data(b"x", timestamp(octets))  # its SACK waits for 200 ms, or for DATA
            peer.write(1, octets)
            (packet,) = peer.since(before)
            kinds = [found.type for found in packet.chunks if found.type != TIMESTAMP]
            assert kinds == [sp.SACK, sp.DATA] and len(packet.raw) <= MTU_BYTES, kinds
            wanted = [True, False][: (room - octets) // 12]  # the echo first
            assert [stamp.echo for stamp in stamps(packet)] == wanted, octets
            peer.acknowledge(packet)
            if not wanted:  # it is not lost
                assert [echo.sent_us for echo in returned(peer)] == [octets]


@claim("two messages in one packet have one time, and none where it would not fit")
def check_two_messages():
    room = MTU_BYTES - sp.HEADERS_BYTES - 2 * sp.DATA_HEADER_BYTES - 700
    for octets in range(room - 24, room + 1, 4):
        with Wire() as wire:
            peer = Peer(wire, answers=False, rwnd=0x10000).connect()
            peer.write()
            peer.sack(rwnd=0)
            before = len(peer.heard)
            peer.write(1, 700)
            peer.write(1, octets)
            assert len(peer.heard) == before
            peer.acknowledge(peer.heard[-1])
            (packet,) = peer.since(before)
            assert len(sp.data_of(packet)) == 2, packet.chunks
            assert len(packet.raw) <= MTU_BYTES, (octets, packet.raw)
            assert len(stamps(packet)) == (octets <= room - 12), octets


def by_our_clock(peer: Peer) -> list[tuple[int, int]]:
    """Return when packets were heard, and when the kernel says that they were sent, by the clock
    that starts where the first of them was sent (us, wraps)."""
    found = [(packet.time_ns // 1000, stamp.sent_us) for packet in peer.heard
             for stamp in stamps(packet)]  # fmt: skip
    ahead_us = found[0][1] - found[0][0]
    return [(heard_us, sent_us - ahead_us & MASK) for heard_us, sent_us in found]


@claim("no two packets have the same time, and each is that of the clock to 1 ms")
def check_times_differ():
    with flowing("rfc9260") as peer:
        times = by_our_clock(peer)
        assert len(times) == len({sent_us for _, sent_us in times}) > 200
        for heard_us, sent_us in times:
            assert (sent_us - heard_us + 1000 & MASK) < 2000


@claim("times of one packet after the other grow, of 1500 that leave at one instant, too")
def check_times_grow():
    with waiting(1500, 1) as (peer, _):
        sent = [stamp.sent_us for packet in peer.heard for stamp in stamps(packet)]
        steps = {later - earlier & MASK for earlier, later in itertools.pairwise(sent)}
        assert len(sent) == 1500 and max(steps) < 1000 and 0 not in steps, sorted(steps)[-5:]


@claim("times start anywhere: they tell neither how long we are up nor which associations are ours")
def check_offset():
    with Wire() as wire:
        peers = [Peer(wire, port=2000 + n, own_port=4000 + n).connect() for n in range(4)]
        clocks = [0, *(ahead_of_us(peer) for peer in peers)]
        apart = [one - other & MASK for one, other in itertools.combinations(clocks, 2)]
        assert all(10**5 < us < MASK - 10**5 for us in apart), clocks


# --- what the algorithms learn of returned times ------------------------------------


# us for a packet: on the first link slow start leaves no queue behind, on the second one it does
FAST, NARROW = 100, 2000
WINDOW = 40 * 1456
RTT_US, OTHERS_US = 40_000, 10_000  # of a Link, and what a queue of others adds
ALPHA = Path("/sys/module/sctp_jsctp/parameters/alpha_percent")


@contextlib.contextmanager
def flowing(algorithm: str, run_s: float = 0.35, service_us: int = FAST, rwnd: int = WINDOW,
            **options):  # fmt: skip
    """A flow of ALGORITHM that has filled the receiver's window, or a bottleneck's queue."""
    with Wire(Link(service_us=service_us)) as wire:
        peer = Peer(wire, rwnd=rwnd, **options).connect()
        peer.choose(algorithm)
        peer.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
        peer.bulk = True
        wire.run(run_s)
        yield peer


def queueing(algorithm: str, **options):
    """A flow in slow start whose queue grows."""
    return flowing(algorithm, 0.22, NARROW, 1 << 20, **options)


@dataclass(frozen=True)
class Answer:
    """The windows just before and after a loss was answered."""

    before: Info
    after: Info

    @property
    def kept(self) -> bool:
        return self.after.cwnd >= self.before.cwnd


def lose(peer: Peer, *nth: int) -> int:
    """Lose those of the TSNs to come, once each; return the first of them."""
    following = peer.sent_tsns[-1] + 1
    left = {following + n & MASK for n in nth}

    def loses(one: Data) -> bool:
        if one.tsn not in left:
            return False
        left.remove(one.tsn)
        return True

    peer.loses = loses
    return following + min(nth) & MASK


def lose_one(peer: Peer, *nth: int) -> Answer:
    """Lose the next TSN, or those; return what came of it when one is sent again."""
    first = lose(peer, *(nth or (0,)))
    peer.wire.wait(lambda: peer.beyond and peer.ctsn == first - 1 & MASK)
    return answer_to(peer)


def answer_to(peer: Peer) -> Answer:
    """Wait for a retransmission."""
    infos = [peer.info()]

    def again() -> bool:
        infos.append(peer.info())
        return infos[-1].retransmits > infos[0].retransmits

    peer.wire.wait(again)
    return Answer(infos[-2], infos[-1])


@claim("a loss on a path without a queue keeps the window: jsctp, jsctp_abe; rfc9260 halves it")
def check_random_loss():
    for algorithm in OURS:
        with flowing(algorithm) as peer:
            answer = lose_one(peer)
            assert answer.after.cwnd == answer.before.cwnd, answer
            assert answer.after.ssthresh == answer.before.ssthresh, answer
            assert_whole(peer)
    with flowing("rfc9260") as peer:
        assert_halved(lose_one(peer))


@claim("a loss while a queue grows: jsctp halves, jsctp_abe goes to bandwidth x smallest RTT")
def check_congestion():
    with queueing("jsctp") as peer:
        assert_halved(lose_one(peer))
        assert_whole(peer)
    with queueing("jsctp_abe") as peer:
        answer = lose_one(peer)
        assert answer.after.cwnd == answer.after.ssthresh
        near(answer.after.cwnd, bdp(peer), 0.05 * bdp(peer))
        assert answer.before.cwnd > 2 * bdp(peer)
        assert_whole(peer)


@contextlib.contextmanager
def raw_ratio():
    """Losses are decided by the last Jr: the smoothed one remembers how the queue was filled."""
    before = ALPHA.read_text()
    ALPHA.write_text("0")
    try:
        yield
    finally:
        ALPHA.write_text(before)


@claim("a full queue that grows no more has Jr = 0: noise for jsctp, congestion for jsctp_abe")
def check_standing_queue():
    with raw_ratio():
        with flowing("jsctp", 1.5, NARROW) as peer:
            answer = lose_one(peer)
            assert answer.after.cwnd == answer.before.cwnd, answer
            assert_whole(peer)
        with flowing("jsctp_abe", 1.5, NARROW) as peer:
            answer = lose_one(peer)
            assert answer.after.cwnd == answer.after.ssthresh < answer.before.cwnd, answer
            near(answer.after.cwnd, bdp(peer), 0.05 * bdp(peer))
            assert_whole(peer)


@claim("in a queue that others fill jsctp_abe halves and grows by half; alone again it does not")
def check_contested():
    with flowing("jsctp_abe", 1.0) as peer:
        peer.wire.link.delay_us += OTHERS_US
        peer.wire.run(0.3)
        first = lose_one(peer)
        assert first.before.cwnd / 2 < first.after.cwnd < first.before.cwnd
        assert_whole(peer)
        peer.wire.run(0.5)
        second = lose_one(peer)
        assert_halved(second)
        assert_whole(peer)
        rounds = 12
        peer.wire.run(rounds * (RTT_US + OTHERS_US) / 1e6)
        near(peer.info().cwnd - second.after.cwnd, rounds * MTU_BYTES / 2, 2 * MTU_BYTES)
        lose_one(peer)
        assert_whole(peer)
        peer.wire.link.delay_us -= OTHERS_US
        peer.wire.run(0.5)
        answer = lose_one(peer)
        assert answer.kept, answer


def bdp(peer: Peer) -> float:
    """Return what the bottleneck carries in the shortest round trip, bytes."""
    link = peer.wire.link
    return PAYLOAD_BYTES * (2 * link.delay_us + link.service_us) / link.service_us


def assert_halved(answer: Answer) -> None:
    assert answer.after.cwnd == answer.after.ssthresh, answer
    near(answer.after.cwnd, answer.before.cwnd / 2, MTU_BYTES / 2)


def assert_whole(peer: Peer) -> None:
    """What is sent arrives: no hole stays, and there is new data."""
    peer.loses = lambda _one: False
    before = len(peer.delivered)
    peer.wire.wait(lambda: not peer.beyond and len(peer.delivered) > before)
    assert not peer.aborted
    assert peer.info().state == 3, "not established"


@claim("several losses of one window are answered once, the next window's again")
def check_once():
    for algorithm in (*OURS, "rfc9260"):
        with queueing(algorithm) as peer:
            first = lose_one(peer, 0, 3, 4, 9, 20).after
            peer.wire.wait(lambda: not peer.beyond)
            assert peer.info().ssthresh == first.ssthresh, algorithm
            assert peer.info().retransmits == 5
            peer.wire.run(0.3)
            peer.wire.link.service_us *= 2  # a queue again
            peer.wire.run(0.5)
            before = peer.info()
            after = lose_one(peer).after
            assert after.ssthresh != first.ssthresh and after.cwnd < before.cwnd + 3 * MTU_BYTES


@claim("a timeout on a path without a queue: slow start from the reduced window, not from 1 MTU")
def check_timeout():
    for algorithm in OURS:
        with flowing(algorithm) as peer:
            answer = lose_all(peer)
            assert answer.after.cwnd == answer.after.ssthresh, answer
            if algorithm == "jsctp":
                near(answer.after.cwnd, answer.before.cwnd / 2, MTU_BYTES / 2)
            else:
                near(answer.after.cwnd, answer.before.cwnd, 0.1 * answer.before.cwnd)
            assert_whole(peer)


def lose_all(peer: Peer) -> Answer:
    peer.loses = lambda _one: True
    peer.wire.run(0.5)
    peer.wire.events.clear()
    return answer_to(peer)


@claim("a timeout while a queue grows, or a second one in a row: 1 MTU")
def check_congested_timeout():
    for algorithm in OURS:
        with queueing(algorithm) as peer:
            answer = lose_all(peer)
            wanted = bdp(peer) if algorithm == "jsctp_abe" else answer.before.cwnd / 2
            assert answer.after.cwnd == MTU_BYTES, answer
            near(answer.after.ssthresh, wanted, 0.05 * wanted)
            assert_whole(peer)
        with flowing(algorithm) as peer:
            assert lose_all(peer).after.cwnd > MTU_BYTES
            peer.wire.wait(lambda: peer.info().cwnd == MTU_BYTES)
            assert_whole(peer)


@claim("ECN-Echo halves the window on any path, once a window")
def check_ecn():
    for algorithm in OURS:
        with flowing(algorithm, more_parameters=sp.parameter(sp.ECN_CAPABLE, b"")) as peer:
            before = peer.info()
            tsn = struct.pack(">I", peer.sent_tsns[-1])
            peer.send(sp.chunk(sp.ECNE, 0, tsn))
            after = peer.info()
            near(after.cwnd, before.cwnd / 2, MTU_BYTES / 2)
            assert after.cwnd == after.ssthresh < before.ssthresh, (before, after)
            for _ in range(5):
                peer.send(sp.chunk(sp.ECNE, 0, tsn))
            assert peer.info().cwnd == after.cwnd
            assert_whole(peer)


# --- what is not believed ---------------------------------------------------------------


def truth(stamp: Stamp) -> bytes:
    return timestamp(stamp.sent_us, stamp.received_us, stamp.flags)


def changed(**by) -> Callable[[Stamp], bytes]:
    """Return a chunk with differences to the true one, or a length."""
    length = by.pop("length", 12)

    def make(stamp: Stamp) -> bytes:
        fields = {name: getattr(stamp, name) + add for name, add in by.items()}
        lie = replace(stamp, **fields)
        return timestamp(lie.sent_us, lie.received_us, lie.flags, length)

    return make


def first_one() -> Callable[[Stamp], bytes]:
    """Return the oldest time again and again, with when the newest packet came."""
    known: list[Stamp] = []

    def make(stamp: Stamp) -> bytes:
        known.append(stamp)
        return timestamp(known[0].sent_us, stamp.received_us, stamp.flags)

    return make


IGNORED = {
    "times to come": changed(sent_us=10**6),
    "times before the first": changed(sent_us=-(10**6)),
    "times half the clock away": changed(sent_us=2**31),
    "times between two that were sent": changed(sent_us=37),
    "one time again and again": first_one(),
    "another path's name": changed(flags=2),
    "the flag of an echo missing": changed(flags=-1),
    **{f"length {length}": changed(length=length) for length in WRONG_LENGTHS if length != 12},
}


@claim("an echo that cannot be true teaches nothing: each loss is congestion as in RFC 9260")
def check_ignored():
    for n, (name, make) in enumerate(IGNORED.items()):
        separate = "length" in name  # a length that ends nowhere takes the SACK with it
        with flowing(OURS[n % 2], echoes=apart(make) if separate else one(make)) as peer:
            answer = lose_one(peer)
            assert not answer.kept, (name, answer)
            assert_halved(answer)
            assert_whole(peer)


@claim("a time that comes after the SACK of its packet teaches nothing, as it may be invented")
def check_late():
    def late(peer: Peer, stamp: Stamp) -> list[bytes]:
        peer.send(peer.sack_chunk())
        return [truth(stamp)]

    for algorithm in OURS:
        with flowing(algorithm, echoes=late) as peer:
            assert_halved(lose_one(peer))
            assert_whole(peer)


def one(make: Callable[[Stamp], bytes]):
    return lambda _peer, stamp: [make(stamp)]


def apart(make: Callable[[Stamp], bytes], tag: int | None = None):
    """Send the chunk in a packet of its own, now."""

    def send(peer: Peer, stamp: Stamp) -> list[bytes]:
        peer.send(make(stamp), tag=tag)
        return []

    return send


def grows() -> Callable[[Stamp], bytes]:
    """The truth but for a queue that grows all the time: the lie that is to be seen if believed."""
    start: list[int] = []

    def make(stamp: Stamp) -> bytes:
        start.append(stamp.sent_us)
        late_us = (stamp.sent_us - start[0] & MASK) // 2
        return timestamp(stamp.sent_us, stamp.received_us + late_us, stamp.flags)

    return make


def beside_truth(lie: Callable[[Stamp], bytes], tag: int | None = None, before: bool = False):
    """Each packet has the truth; LIE comes after it in the packet, or before it in another."""

    def make(peer: Peer, stamp: Stamp) -> list[bytes]:
        if before:
            peer.send(lie(stamp), tag=tag)
        return [truth(stamp)] if before else [truth(stamp), lie(stamp)]

    return make


@claim("the second echo of a packet, and one with another tag, change nothing; alone it would")
def check_second_echo():
    with flowing("jsctp", echoes=one(grows())) as peer:
        assert_halved(lose_one(peer))
    with flowing("jsctp", echoes=beside_truth(grows())) as peer:
        assert lose_one(peer).kept
    with flowing("jsctp", echoes=beside_truth(grows(), tag=1, before=True)) as peer:
        assert lose_one(peer).kept
        assert_whole(peer)


def slow_clock() -> Callable[[Stamp], bytes]:
    """The peer's clock goes at half the speed: twice the bandwidth, and no queue ever grows."""
    start: list[int] = []

    def make(stamp: Stamp) -> bytes:
        start.append(stamp.received_us)
        passed_us = stamp.received_us - start[0] & MASK
        return timestamp(stamp.sent_us, start[0] + passed_us // 2, stamp.flags)

    return make


def no_jitter(stamp: Stamp) -> bytes:
    """All packets take the same time, says the peer, whatever queue they meet."""
    return timestamp(stamp.sent_us, stamp.sent_us, stamp.flags)


@claim("a peer that hides its queue by forged times: a loss is congestion, as the round trips say")
def check_hidden_queue():
    for make in (lambda: no_jitter, slow_clock):
        with flowing("jsctp", 1.5, NARROW, echoes=one(make())) as peer:
            assert_halved(lose_one(peer))
            assert_whole(peer)
        with flowing("jsctp_abe", 1.5, NARROW, echoes=one(make())) as peer:
            answer = lose_one(peer)
            assert answer.after.cwnd == answer.after.ssthresh < answer.before.cwnd, answer
            assert answer.after.cwnd <= 1.05 * bdp(peer), (answer, bdp(peer))
            assert_whole(peer)


QUEUE_US = 100_000  # of the bottleneck that two flows share, 6 Mb/s


class Sharing(Peer):
    """One of several whose packets a full queue drops; it does not keep what it hears."""

    lost = 0

    def __post_init__(self):
        super().__post_init__()
        self.loses = self.overflows

    def take(self, packet: sp.Packet) -> None:
        super().take(packet)
        self.heard.clear()

    def overflows(self, _one: Data) -> bool:
        full = self.wire.link.idle_us - self.wire.now_us > QUEUE_US
        self.lost += full
        return full


class Delaying(Sharing):
    """All of its answers come so long after the packet was sent that no queue shows; it says that
    each packet arrived as late after it was sent."""

    total_us = RTT_US + QUEUE_US + 5000
    ahead_us: int | None = None  # the kernel's clock of its queue's

    def arrive(self, sent: list[Data], stamp: Stamp | None, at_us: int, path: int) -> None:
        self.receive(sent)
        back_us = at_us + self.wire.link.delay_us
        if stamp:
            if self.ahead_us is None:
                self.ahead_us = stamp.sent_us - at_us + self.wire.link.delay_us
            sent_us = at_us - (at_us - stamp.sent_us + self.ahead_us & MASK)
            back_us = max(back_us, sent_us + self.total_us)
            self.newest = replace(stamp, flags=stamp.flags | ECHO,
                                  received_us=self.clock.us(sent_us))  # fmt: skip
        answer = self.build(*self.echo(), self.sack_chunk(), path=path)
        self.wire.at(back_us, lambda: self.wire.inject(answer))


def shares(*flows: tuple[type[Sharing], str], run_s: float = 30) -> list[float]:
    """Return which part of the path each of the flows carries; say how much the queue drops."""
    with Wire(Link(service_us=NARROW)) as wire:
        peers = []
        for n, (kind, algorithm) in enumerate(flows):
            peer = kind(wire, port=2000 + n, own_port=4000 + n)
            peer.connect().choose(algorithm)
            peer.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
            peers.append(peer)
        for peer in peers:
            peer.bulk = True
        wire.run(5)
        before = [(len(peer.delivered), peer.lost, len(peer.sent_tsns)) for peer in peers]
        wire.run(run_s)
        parts = []
        for peer, (kind, name), (delivered, lost, sent) in zip(peers, flows, before, strict=True):
            parts.append((len(peer.delivered) - delivered) * NARROW / 1e6 / run_s)
            dropped = (peer.lost - lost) / (len(peer.sent_tsns) - sent)
            print(f"# {kind.__name__} {name}: {parts[-1]:.2f} of the path, {dropped:.1%} dropped")
        if Delaying in (kind for kind, _ in flows):
            assert told("min_rtt_us") > RTT_US + QUEUE_US, "the queue shows in the round trips"
        return parts


@claim("a peer that delays all answers hides its queue: it pays by its round trip, and takes more")
def check_delayed_answers():
    """A limit, not a virtue: docs/sctp-internals.md has the figures."""
    fair, _ = shares((Sharing, "rfc9260"), (Sharing, "rfc9260"))
    honest, _ = shares((Sharing, "rfc9260"), (Sharing, "jsctp_abe"))
    left, taken = shares((Sharing, "rfc9260"), (Delaying, "jsctp_abe"))
    assert honest > fair - 0.05 and 0.1 < left < fair and taken < 0.8, (fair, honest, left, taken)
    (alone,), (whole,) = (shares((kind, "jsctp_abe")) for kind in (Delaying, Sharing))
    assert alone < 0.9 < whole, (alone, whole)


@claim("a peer that stops returning times: what they said is not held against later losses")
def check_stops():
    for algorithm in OURS:
        with flowing(algorithm) as peer:
            assert lose_one(peer).kept
            assert_whole(peer)
            peer.echoes = lambda _peer, _stamp: []
            peer.wire.run(0.3)
            assert_halved(lose_one(peer))
            assert_whole(peer)
            peer.echoes = None
            peer.wire.run(1)
            assert lose_one(peer).kept


@claim(
    "times that stop while jsctp_abe listens: the window grows on, as without times, and what is"
    " lost then is no noise"
)
def check_stops_listening():
    with flowing("jsctp_abe") as peer:
        lose(peer, *range(0, 80, 3))
        peer.wire.wait(lambda: told("listens"), 1)
        assert_whole(peer)
        peer.wire.run(0.1)  # until what is lost counts as noise
        assert told("listens") and told("noise_ppm") == 0
        peer.echoes = lambda _peer, _stamp: []
        before = peer.info().cwnd
        peer.wire.run(1)
        assert peer.info().cwnd > before + 4 * MTU_BYTES, (before, peer.info())
        lose(peer, *range(0, 40, 5))
        peer.wire.run(1)
        assert_whole(peer)
        peer.echoes = None
        peer.wire.run(1)
        assert told("noise_ppm") == 0 and not told("listens"), told("noise_ppm")


@claim(
    "times that stop after a queue has overflowed: jsctp_abe grows by a packet a round trip again"
)
def check_stops_growing_slowly():
    with flowing("jsctp_abe", 1.5, NARROW, 1 << 18) as peer:
        lose_one(peer)
        assert_whole(peer)
        peer.echoes = lambda _peer, _stamp: []
        peer.wire.run(0.5)
        assert_halved(lose_one(peer))
        assert_whole(peer)
        peer.wire.run(0.5)
        before, rounds = peer.info(), 20
        peer.wire.link.service_us = 1  # no queue: a round trip is RTT_US
        peer.wire.run(0.3)
        before = peer.info()
        peer.wire.run(rounds * RTT_US / 1e6)
        grown = (peer.info().cwnd - before.cwnd) / MTU_BYTES
        assert before.cwnd >= before.ssthresh and grown >= 0.9 * rounds, (grown, before)


@claim("a pause is no slower path, where a SACK that acknowledges nothing tells of it first, too")
def check_pause():
    with flowing("jsctp") as peer:
        peer.bulk = False
        peer.wire.run(2)
        bandwidth = told("bw_bytes_per_s")
        peer.answers = False
        peer.wire.run(10)
        before = len(peer.heard)
        peer.write(2)
        packets = [packet for packet in peer.since(before) if packet.has(sp.DATA)]
        times = [replace(stamp, flags=stamp.flags | ECHO, received_us=peer.clock.us(sp.clock_us()))
                 for packet in packets for stamp in stamps(packet)]  # fmt: skip
        peer.wire.run(RTT_US / 1e6)
        peer.sack(truth(times[0]))
        for packet in packets:
            peer.receive(sp.data_of(packet))
        peer.sack(truth(times[1]))
        assert told("sent_us") and told("bw_bytes_per_s") > bandwidth / 2, bandwidth


@claim("20 minutes without an echo, and times are learnt again")
def check_silence():
    with flowing("jsctp", echoes=lambda _peer, _stamp: []) as peer:
        peer.bulk = False
        for _ in range(20):
            peer.wire.run(60)
            peer.write()
        peer.echoes = None
        peer.bulk = True
        peer.wire.run(1)
        assert lose_one(peer).kept
        assert_whole(peer)


@claim("an echo that comes more than half the clock, 36 minutes, later is no short round trip")
def check_age():
    day = {name: 86_400_000 for name in ("rto_max", "rto_initial")}
    with Wire(**day) as wire:
        peer = Peer(wire, answers=False).connect()
        peer.choose("jsctp")
        peer.write()
        (stamp,) = stamps(peer.heard[-1])
        wire.run(2400)
        assert len(peer.sent_tsns) == 1, "it was sent again"
        peer.receive([Data(peer.sent_tsns[0], b"")])
        peer.sack(timestamp(stamp.sent_us, 7, stamp.flags | ECHO))
        assert told("min_rtt_us") == 0


@claim("where the peer's clock wraps nothing is different")
def check_peer_wraps():
    for ahead_s in (0.2, 0.36, 0.4):  # before, in and after the span that the loss falls into
        ahead_us = -sp.clock_us() - round(ahead_s * 1e6)
        with flowing("jsctp", clock=Clock(ahead_us)) as peer:
            assert lose_one(peer).kept, ahead_s
            assert_whole(peer)


class TakesBack(Peer):
    """Behind a gap it takes back what it has reported and reports it again, so many TIMES. Each
    twentieth TSN is lost once."""

    times = 0

    def arrive(self, sent, stamp, at_us: int, path: int) -> None:
        super().arrive(sent, stamp, at_us, path)
        if self.beyond:
            again = self.build(sp.sack(self.ctsn, self.rwnd)), self.build(self.sack_chunk())
            for answer in again * self.times:
                self.wire.at(at_us + self.wire.link.delay_us, partial(self.wire.inject, answer))

    def once(self, one: Data) -> bool:
        return one.tsn % 20 == 0 and self.sent_tsns.count(one.tsn) == 1


@claim("what a receiver takes back and reports again is not delivered twice: no more bandwidth")
def check_taken_back():
    bandwidths = {}
    for times in (0, 5):
        with Wire(Link(service_us=NARROW)) as wire:
            peer = TakesBack(wire, rwnd=1 << 20).connect()
            peer.times, peer.loses = times, peer.once
            peer.choose("jsctp_abe")
            peer.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
            peer.bulk = True
            wire.run(5)
            bandwidths[times] = told("bw_bytes_per_s")
    assert 0 < bandwidths[5] <= 1.1 * bandwidths[0], bandwidths


@claim("what a receiver takes back is no reason for the window to grow, nor that it comes again")
def check_window_of_taken_back():
    grown = {}
    for algorithm, back in itertools.product(("rfc9260", *OURS), (False, True)):
        with Wire() as wire:
            peer = Peer(wire, answers=False, rwnd=1 << 22).connect()
            peer.choose(algorithm)
            peer.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 22)
            peer.bulk = True
            acknowledge_next(peer, 6)
            for last in (2, 3, 4, 5):  # a loss: congestion avoidance from then on
                peer.send(sp.sack(peer.ctsn, 1 << 22, [(2, last)]))
            acknowledge_next(peer, 90)
            before = peer.info()
            assert before.cwnd > before.ssthresh
            for _ in range(14):
                acknowledge_next(peer)
                for gaps in ([(3, 4)], []) * back:
                    peer.send(sp.sack(peer.ctsn, 1 << 22, gaps))
                    peer.fill()
            acknowledge_next(peer, 60)
            grown[algorithm, back] = peer.info().cwnd - before.cwnd
    for algorithm in ("rfc9260", *OURS):
        assert 0 < grown[algorithm, True] <= grown[algorithm, False] + MTU_BYTES, grown


def acknowledge_next(peer: Peer, count: int = 1) -> None:
    """One TSN by each SACK, of a flight that is kept full."""
    for _ in range(count):
        peer.ctsn = peer.ctsn + 1 & MASK
        peer.wire.run(0.001)
        peer.sack()
        peer.fill()
        peer.wire.drain()


# --- sending again --------------------------------------------------------------------


@contextlib.contextmanager
def waiting(messages: int, octets: int = PAYLOAD_BYTES, sysctls: dict | None = None, **options):
    """MESSAGES that are sent and not answered; yields the peer and the first TSN."""
    with Wire(**(sysctls or {})) as wire:
        peer = Peer(wire, answers=False, **options).connect()
        peer.sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)
        peer.write(messages, octets)
        first = peer.ctsn + 1 & MASK
        assert peer.sent_tsns == [first + n & MASK for n in range(messages)], "not all were sent"
        yield peer, first


def resent(peer: Peer) -> list[int]:
    """Return which TSNs were sent again, in order."""
    seen: set[int] = set()
    again = []
    for tsn in peer.sent_tsns:
        if tsn in seen:
            again.append(tsn)
        seen.add(tsn)
    return again


@claim("a TSN is sent again with exactly as many reports as net.sctp.miss_indications says")
def check_miss_indications():
    for wanted in (3, 4, 7, 255):
        with waiting(wanted + 2, 8, {"miss_indications": wanted}) as (peer, first):
            for n in range(1, wanted + 2):
                assert resent(peer) == ([first] if n > wanted else []), (wanted, n)
                peer.beyond.add(first + n & MASK)
                peer.sack()
            assert resent(peer) == [first]


@claim("miss_indications lowered under a flow: what is acknowledged by now is not sent again")
def check_fewer_indications():
    with waiting(9, 8, {"miss_indications": 9}) as (peer, first):
        for n in (2, 3, 4, 5, 1):  # the second has four reports when it comes
            peer.beyond.add(first + n & MASK)
            peer.sack()
        peer.wire.sysctl("miss_indications", 3)
        for n in (6, 7):
            peer.beyond.add(first + n & MASK)
            peer.sack()
            assert resent(peer) == [first], n
        peer.receive([Data(first + n & MASK, b"") for n in range(9)])
        peer.sack()
        assert peer.info().flight == 0
        peer.write()
        assert peer.sent_tsns[-1] == first + 9 & MASK


@claim("a gap beyond what was sent reports nothing, and is no reason to retransmit or to stop")
def check_invented_gap():
    for idle in (0, 1):
        with waiting(3, sysctls={"idle_retransmit": idle}, rwnd=3 * PAYLOAD_BYTES) as (peer, first):
            ctsn = first - 1
            for gaps in ([(4, 9)], [(4, 0xFFFF)], [(100, 200), (300, 400)], [(0xFFFF, 0xFFFF)],
                         [(9, 4)], [(0, 0)]):  # fmt: skip
                for _ in range(4):
                    peer.send(sp.sack(ctsn, PAYLOAD_BYTES, gaps))
                    assert not resent(peer) and not peer.aborted, gaps
            peer.receive([Data(first + n & MASK, b"") for n in range(3)])
            peer.sack()
            before = len(peer.sent_tsns)
            peer.write(2)
            assert peer.sent_tsns[before:] == [first + 3 & MASK, first + 4 & MASK]


SMALL = 3 * PAYLOAD_BYTES
ROOM = MTU_BYTES - sp.HEADERS_BYTES - sp.DATA_HEADER_BYTES  # of a chunk: frag_point


@claim("idle_retransmit: no room for a chunk, the highest TSN is here: the lowest goes again, once")
def check_idle():
    for left in (PAYLOAD_BYTES, PAYLOAD_BYTES + ROOM - 1):  # one is outstanding
        with idling() as (peer, first):
            for _ in range(5):
                peer.send(sp.sack(first - 1, left, [(2, 3)]))
                assert resent(peer) == [first], "not once"
                info = peer.info()  # as with any other loss
                assert info.cwnd == info.ssthresh == 4 * MTU_BYTES, info
            peer.wire.run(4)
            assert resent(peer)[:2] == [first, first], "no timeout after it"
            assert_takes_more(peer, first)


def idling(on: int = 1):
    return waiting(3, sysctls={"idle_retransmit": on}, rwnd=SMALL)


def assert_takes_more(peer: Peer, first: int) -> None:
    """All is acknowledged, and new data goes."""
    peer.receive([Data(first + n & MASK, b"") for n in range(3)])
    peer.sack()
    peer.write()
    assert peer.sent_tsns[-1] == first + 3 & MASK


@claim("idle_retransmit: not if off, with room, or with the highest TSN still on its way")
def check_not_idle():
    for on, left, gaps in (
        (0, PAYLOAD_BYTES, [(2, 3)]),
        (1, PAYLOAD_BYTES + ROOM, [(2, 3)]),
        (1, 1 << 20, [(2, 3)]),
        (1, PAYLOAD_BYTES, [(2, 2)]),
        (1, 0, [(2, 2)]),
        (1, 0, [(2, 2), (4, 9)]),
        (1, 0, []),
    ):
        with idling(on) as (peer, first):
            for _ in range(2):
                peer.send(sp.sack(first - 1, left, gaps))
                assert not resent(peer), (on, left, gaps)
            assert_takes_more(peer, first)


@claim("idle_retransmit: a chunk that was sent again by reports of its loss is not sent once more")
def check_idle_after_fast():
    with waiting(5, 100, {"idle_retransmit": 1}) as (peer, first):
        for n in range(1, 4):
            peer.send(sp.sack(first - 1, 1 << 20, [(2, 1 + n)]))
        assert resent(peer) == [first]
        peer.send(sp.sack(first - 1, 0, [(2, 5)]))
        assert resent(peer) == [first]


@claim("idle_retransmit: not once it was sent again by a timeout, nor by what came on another path")
def check_idle_on_its_way():
    with idling() as (peer, first):
        peer.wire.wait(lambda: resent(peer))
        for _ in range(3):
            peer.send(sp.sack(first - 1, PAYLOAD_BYTES, [(2, 3)]))
            assert resent(peer) == [first]
    with Wire(idle_retransmit=1, **DYNAMIC) as wire:
        peer = Peer(wire, answers=False, rwnd=SMALL).connect(homes=2)
        asconf(peer, peer.first_tsn, change(sp.ADD_ADDRESS))
        peer.write(2)
        asconf(peer, peer.first_tsn + 1, change(sp.SET_PRIMARY))
        peer.write()
        assert socket.inet_ntoa(peer.heard[-1].raw[16:20]) == PEER[1] and len(peer.sent_tsns) == 3
        for _ in range(3):
            peer.send(sp.sack(peer.sent_tsns[0] - 1, PAYLOAD_BYTES, [(3, 3)]))
            assert not resent(peer)


# --- associations that do not come as usual ----------------------------------------------


@claim("INIT collision, before and after INIT ACK: one association, with times both ways")
def check_collision():
    for answered in (sp.INIT, sp.COOKIE_ECHO):
        with Wire() as wire:
            peer = Peer(wire, collides=answered, answers=False).connect()
            peer.write()
            assert stamps(peer.heard[-1]), answered
            (stamp,) = stamps(peer.heard[-1])
            peer.sack(timestamp(stamp.sent_us, 7, stamp.flags | ECHO))
            (echo,) = returned(peer, timestamp(5))
            assert echo.sent_us == 5 and not peer.aborted
            assert list(diag()) == [(peer.own_port, peer.port)]


@claim("the peer restarts, with and without TIMESTAMP chunks: what was agreed on last holds")
def check_restart():
    with Wire() as wire:
        peer = Peer(wire, answers=False).connect()
        peer.choose("jsctp")
        for n, extensions in enumerate(((TIMESTAMP,), (), (TIMESTAMP,), (), (TIMESTAMP,)), 2):
            peer.write(2)
            old = [stamp for packet in peer.heard[-2:] for stamp in stamps(packet)]
            peer.extensions = extensions
            peer.restart(peer.tag + n, n << 24)
            assert peer.up and not peer.aborted
            for stamp in old:  # of before the restart
                peer.send(timestamp(stamp.sent_us, 7, stamp.flags | ECHO))
            peer.write()
            assert bool(stamps(peer.heard[-1])) == bool(extensions), extensions
            peer.acknowledge(peer.heard[-1])
            assert len(returned(peer, timestamp(n))) == len(extensions)
            peer.sock.recv(1 << 16)


@claim("what was learnt of a path is forgotten when the peer restarts")
def check_restart_forgets():
    with flowing("jsctp") as peer:
        assert lose_one(peer).kept
        assert_whole(peer)
        peer.bulk = False
        peer.wire.run(2)
        peer.restart(peer.tag + 1, 0x2000)
        peer.echoes = lambda _peer, _stamp: []
        peer.bulk = True
        peer.wire.run(0.5)
        assert_halved(lose_one(peer))


def told(name: str) -> int:
    """Return a figure that /proc tells of the only path that uses one of our algorithms."""
    _, *lines = Path("/proc/net/sctp/cong").read_text().splitlines()
    values = [line.split(f" {name}=")[1].split()[0] for line in lines if f" {name}=" in line]
    assert len(values) == 1, lines
    return int(values[0])


@claim("without times the protocol's round trips are learnt; a change of algorithm keeps them")
def check_untimed_round_trips():
    """The kernel measures them in ticks, 4 ms here; a restart makes a path a new one."""
    with flowing("jsctp", extensions=()) as peer:
        near(told("min_rtt_us"), RTT_US, 8000)
        assert told("srtt_us") >= told("min_rtt_us")
        for name in ("rfc9260", "jsctp_abe"):
            peer.choose(name)
        kept_us = told("srtt_us")
        near(kept_us, RTT_US, 20_000)
        assert not told("sampled")
        assert_halved(lose_one(peer))
        peer.bulk = False
        peer.wire.run(2)
        peer.restart(peer.tag + 1, 0x2000)
        peer.wire.run(0.05)
        assert told("min_rtt_us") == told("srtt_us") == 0
    with flowing("jsctp") as peer:
        for name in ("rfc9260", "jsctp_abe"):
            peer.choose(name)
        assert told("min_rtt_us") == 0, "with times it is they that count"


@claim("to choose what an association has already, by its id, too, forgets nothing of its path")
def check_same_choice():
    with Wire() as wire:
        peer = Peer(wire).connect_by(100)
        count, number = struct.unpack(
            "=Ii", peer.sock.getsockopt(socket.IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, 8)
        )
        assert count == 1
        for name, is_new in (("jsctp", True), ("jsctp", False), ("jsctp_abe", True)):
            learnt_us = 0 if is_new else told("min_rtt_us")
            choice = struct.pack("=i16s", number, name.encode())
            peer.sock.setsockopt(socket.IPPROTO_SCTP, SCTP_CONG_CONTROL, choice)
            assert told("min_rtt_us") == learnt_us, name
            for _ in range(3):
                peer.write_to(100)
                wire.run(0.3)
            assert told("min_rtt_us")


def asconf(peer: Peer, serial: int, *wanted: bytes) -> None:
    """Ask for a change of our addresses, from the first one."""
    own = sp.parameter(sp.IPV4_ADDRESS, socket.inet_aton(PEER[0]))
    before = len(peer.heard)
    peer.send(sp.chunk(sp.ASCONF, 0, struct.pack(">I", serial & MASK) + own + b"".join(wanted)))
    peer.wire.run(0.1)
    answers = [found for packet in peer.since(before) for found in packet.chunks
               if found.type == sp.ASCONF_ACK]  # fmt: skip
    assert len(answers) == 1 and answers[0].length == 8, "refused"


def change(kind: int, path: int = 1) -> bytes:
    address = sp.parameter(sp.IPV4_ADDRESS, socket.inet_aton(PEER[path]))
    return sp.parameter(kind, struct.pack(">I", 1) + address)


def newest_stamp(peer: Peer) -> tuple[str, Stamp]:
    """Let a message be sent and acknowledged; return where to and with what time."""
    peer.write()
    packet = peer.heard[-1]
    peer.acknowledge(packet)
    return socket.inet_ntoa(packet.raw[16:20]), stamps(packet)[0]


DYNAMIC = {"addip_enable": 1, "addip_noauth_enable": 1}


@claim("a path that is added while times are exchanged has a name of its own, and its own times")
def check_asconf():
    with Wire(**DYNAMIC) as wire:
        peer = Peer(wire, answers=False).connect(homes=2)
        peer.choose("jsctp_abe")
        assert newest_stamp(peer)[1].flags == 0
        serial = peer.first_tsn
        asconf(peer, serial, change(sp.ADD_ADDRESS))
        asconf(peer, serial + 1, change(sp.SET_PRIMARY))
        where, stamp = newest_stamp(peer)
        assert (where, stamp.flags) == (PEER[1], 2)
        for flags in (2, 0, 4, 0xFE):
            peer.send(timestamp(stamp.sent_us, 1, flags | ECHO))
        (echo,) = returned(peer, timestamp(9, 0, 6), path=1)
        assert (echo.sent_us, echo.flags) == (9, 6 | ECHO)


@claim("a path goes and comes back with times on their way: what they say is no longer of it")
def check_asconf_again():
    with Wire(**DYNAMIC) as wire:
        peer = Peer(wire, answers=False).connect(homes=2)
        peer.choose("jsctp_abe")
        serial = peer.first_tsn
        names = []
        for _ in range(140):
            asconf(peer, serial, change(sp.ADD_ADDRESS))
            asconf(peer, serial + 1, change(sp.SET_PRIMARY))
            where, stamp = newest_stamp(peer)
            assert where == PEER[1]
            names.append(stamp.flags)
            asconf(peer, serial + 2, change(sp.SET_PRIMARY, 0), change(sp.DELETE_ADDRESS))
            peer.send(timestamp(stamp.sent_us, 1, stamp.flags | ECHO))
            assert newest_stamp(peer)[0] == PEER[0]
            serial += 3
        assert not peer.aborted
        assert len(set(names[:127])) == 127, "a name is used again too early"
        assert 0 not in names, "two paths of one name"


class HalfDeaf(Peer):
    """From some time on it does not hear HEARTBEATs to its second address."""

    deaf = False

    def _take_heartbeat(self, found: sp.Chunk) -> None:
        if not self.deaf or not self.path:
            super()._take_heartbeat(found)

    HANDLERS = Peer.HANDLERS | {sp.HEARTBEAT: _take_heartbeat}


@claim("a SACK that has to leave by another path than its DATA came from has no echo")
def check_other_way_back():
    soon = {"path_max_retrans": 1, "hb_interval": 500, "rto_initial": 500, "rto_min": 200,
            "rto_max": 1000}  # fmt: skip
    with Wire(**DYNAMIC, **soon) as wire:
        peer = HalfDeaf(wire, answers=False).connect(homes=2)
        asconf(peer, peer.first_tsn, change(sp.ADD_ADDRESS))
        for failed in (False, True):
            peer.deaf = failed
            wire.run(10)
            before = len(peer.heard)
            assert len(returned(peer, timestamp(9 + failed), path=1)) == (not failed)
            to = {packet.raw[16:20] for packet in peer.since(before) if packet.has(sp.SACK)}
            assert to == {socket.inet_aton(PEER[not failed])}, to


@claim("SACKs that have to be authenticated: times without AUTH are ignored, with it returned")
def check_auth():
    with Wire(auth_enable=1, addip_enable=1) as wire:
        peer = sp.AuthPeer(wire, answers=False).accept(sp.wants_signed(sp.SACK))
        listed = sp.parameters(peer.their_init.body[16:])[sp.CHUNK_LIST]
        assert {TIMESTAMP, sp.SACK, sp.ASCONF} <= set(listed)
        assert not returned(peer, timestamp(1))
        peer.signs = True
        (echo,) = returned(peer, timestamp(2))
        assert echo.sent_us == 2
        peer.shared = b"wrong"
        assert not returned(peer, timestamp(3))
        peer.shared = b""
        (echo,) = returned(peer, timestamp(4))
        assert echo.sent_us == 4 and not peer.aborted


@claim("authentication that is possible and that nobody asks for: times without AUTH, both ways")
def check_no_auth():
    with Wire(auth_enable=1) as wire:
        peer = sp.AuthPeer(wire, answers=False).accept()
        assert TIMESTAMP not in sp.parameters(peer.their_init.body[16:]).get(sp.CHUNK_LIST, b"")
        (echo,) = returned(peer, timestamp(2))
        assert echo.sent_us == 2
        peer.write()
        assert stamps(peer.heard[-1]) and not any(packet.has(sp.AUTH) for packet in peer.heard)


WITH_ASCONF = {"auth_enable": 1, "addip_enable": 1}


def waited(peer: sp.AuthPeer) -> list[sp.Packet]:
    """Let a message of 3000 bytes wait for the association; return the packets it then makes."""
    peer.connect_by(3000)
    packets = [packet for packet in peer.heard if packet.has(sp.DATA)]
    assert whole(packets) and not any(packet.has(sp.AUTH) for packet in packets)
    assert sum(len(one.payload) for packet in packets for one in sp.data_of(packet)) == 3000
    peer.acknowledge(packets[-1])
    return packets


def written(peer: sp.AuthPeer, octets: int) -> list[sp.Packet]:
    """Let a message be sent; return its packets."""
    before = len(peer.heard)
    peer.write_to(octets)
    packets = peer.since(before)
    for packet in packets:
        peer.acknowledge(packet)
    return packets


def whole(packets: list[sp.Packet]) -> bool:
    """Is none of them longer than the path MTU, and none a fragment of IP?"""
    return all(
        len(packet.raw) <= MTU_BYTES and not struct.unpack_from(">H", packet.raw, 6)[0] & 0x3FFF
        for packet in packets
    )


@claim("ASCONF alone has to be authenticated: DATA has times and no AUTH, that which waited, too")
def check_auth_of_asconf():
    with Wire(**WITH_ASCONF) as wire:
        peer = sp.AuthPeer(wire, answers=False, lists=None)
        packets = waited(peer)
        listed = sp.parameters(peer.their_init.body[16:])[sp.CHUNK_LIST]
        assert sp.ASCONF in listed and TIMESTAMP not in listed, listed
        assert stamps(packets[-1]), "it had room for one"
        for octets in (1, 1440, 1452):
            (packet,) = written(peer, octets)
            assert len(stamps(packet)) == (octets <= PAYLOAD_BYTES), octets
        (echo,) = returned(peer, timestamp(2))
        assert echo.sent_us == 2 and whole(peer.heard)
        assert not any(packet.has(sp.AUTH) for packet in peer.heard)


@claim(
    "times alone have to be authenticated: DATA and SACKs have no AUTH for their sake, nor times"
)
def check_auth_of_times():
    with Wire(**WITH_ASCONF) as wire:
        peer = sp.AuthPeer(wire, answers=False, lists=(sp.ASCONF, TIMESTAMP))
        waited(peer)
        for octets in (1, 1452):
            assert len(written(peer, octets)) == 1
        assert not returned(peer, timestamp(2)) and whole(peer.heard)
        assert not any(packet.has(kind) for packet in peer.heard for kind in (sp.AUTH, TIMESTAMP))


@claim("SACKs have to be authenticated: DATA is, too, for its time, but not that which waited")
def check_auth_of_sacks():
    with Wire(**WITH_ASCONF) as wire:
        peer = sp.AuthPeer(wire, answers=False, lists=(sp.SACK, TIMESTAMP))
        assert not any(packet.has(TIMESTAMP) for packet in waited(peer))
        (packet,) = written(peer, 1000)
        assert [found.type for found in packet.chunks] == [sp.AUTH, TIMESTAMP, sp.DATA]
        (echo,) = returned(peer, timestamp(2))
        kinds = [[found.type for found in packet.chunks] for packet in peer.heard]
        assert [sp.AUTH, TIMESTAMP, sp.SACK] in kinds, kinds
        assert echo.sent_us == 2 and whole(peer.heard)


@claim("SACKs have to be authenticated: full DATA that meets one makes no packet too long")
def check_full_data_beside_sack():
    with Wire(**WITH_ASCONF) as wire:
        peer = sp.AuthPeer(wire, answers=False, lists=(sp.SACK, TIMESTAMP))
        waited(peer)
        before = len(peer.heard)
        for _ in range(20):
            peer.write_to(1412)  # more than the window holds
        peer.receive(one for packet in peer.since(before) for one in sp.data_of(packet))
        assert len(peer.sent_tsns) < 20, "nothing waits"
        peer.send_data(b"a")
        peer.send_data(b"b", peer.sack_chunk())  # DATA may leave, and a SACK is due
        packets = peer.since(before)
        assert any(packet.has(sp.SACK) for packet in packets) and whole(packets)
        assert all(stamps(packet) for packet in packets if packet.has(sp.DATA))


@claim("SACKs have to be authenticated: DATA that has become too long for the path is sent")
def check_path_that_shrinks():
    """What waits for a SACK, and what waits to be sent: with AUTH it would fit no packet."""

    def router(wire: Wire, peer: Peer, packet) -> None:
        wire.inject(sp.too_long(packet.raw, 600))

    def application(wire: Wire, peer: Peer, packet) -> None:
        of_all = addresses("0.0.0.0", port=0).ljust(128, b"\0")
        params = struct.pack("=i128sIHIII", 0, of_all, 0, 0, 600, 0, SPP_PMTUD_DISABLE)
        peer.sock.setsockopt(sp.IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, params.ljust(156, b"\0"))

    for shrink, count in itertools.product((router, application), (1, 20)):
        with Wire(**WITH_ASCONF) as wire:
            peer = sp.AuthPeer(wire, answers=False, lists=(sp.SACK, TIMESTAMP)).connect()
            peer.write(count, 1400)
            (first, *_) = sent = [packet for packet in peer.heard if packet.has(sp.DATA)]
            assert all(packet.has(sp.AUTH) for packet in sent)
            before = len(peer.heard)
            shrink(wire, peer, first)
            wire.run(5)
            assert any(packet.has(sp.DATA) for packet in peer.since(before)), (shrink, count)


FRAGMENT_INTERLEAVE, INTERLEAVING_SUPPORTED = 18, 125  # socket options


@claim("what is authenticated of DATA and of I-DATA may differ: either is sent")
def check_auth_of_i_data():
    def interleaves(sock: socket.socket) -> None:
        sock.setsockopt(sp.IPPROTO_SCTP, FRAGMENT_INTERLEAVE, 1)
        sock.setsockopt(sp.IPPROTO_SCTP, INTERLEAVING_SUPPORTED, struct.pack("=iI", 0, 1))

    extensions = (TIMESTAMP, sp.I_DATA, sp.I_FORWARD_TSN, sp.FORWARD_TSN)
    for timestamp_chunk, wanted in itertools.product((0, TIMESTAMP), (sp.I_DATA, sp.DATA)):
        with Wire(timestamp_chunk=timestamp_chunk, auth_enable=1, intl_enable=1) as wire:
            peer = sp.AuthPeer(wire, answers=False, lists=(wanted,), extensions=extensions)
            peer.more_parameters += sp.parameter(sp.FORWARD_TSN_SUPPORTED, b"")
            peer.connect(interleaves)
            peer.write(1, 1000)
            assert peer.heard[-1].has(sp.I_DATA)
            assert peer.heard[-1].has(sp.AUTH) == (wanted == sp.I_DATA)


# --- at the end ---------------------------------------------------------------------------


@claim("where our own clock wraps, or the one that the peer sees, nothing is different")
def check_wrap():
    """Times are 32 bits, which are 0 again after 71.6 minutes."""
    time.sleep((-sp.clock_us() & MASK) / 1e6 - 0.3)
    with flowing("jsctp", 0.6) as peer:
        assert_wrapped([sent_us for _, sent_us in by_our_clock(peer)])
        assert lose_one(peer).kept
        assert_whole(peer)
        peer.bulk = False
        peer.wire.run(2)
        seen_us = ahead_of_us(peer) + sp.clock_us()
        # after so long a pause the window has shrunk to the least: a larger one that is sent at
        # once is a jitter ratio of 1
        peer.wire.run((600_000_000 + (-seen_us - 600_000_000 & MASK)) / 1e6 - 0.5)
        before = len(peer.heard)
        peer.bulk = True
        peer.wire.run(1)
        assert_wrapped([stamp.sent_us for packet in peer.since(before) for stamp in stamps(packet)])
        assert lose_one(peer).kept
        assert_whole(peer)


def assert_wrapped(sent: list[int]) -> None:
    assert min(sent) < 2**20 and max(sent) > MASK - 2**20, "it did not wrap"


@claim("the kernel log holds no complaint after all packets, and no memory was lost")
def check_log():
    complaint = KernelLog().complaint()
    assert not complaint, complaint


def main() -> int:
    """Check all claims, or those whose text has the argument; return how many do not hold."""
    chosen = [entry for entry in CLAIMS if not sys.argv[1:] or sys.argv[1] in entry.text]
    return sum(not entry.holds() for entry in chosen)


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "sctp", "sctp_diag", "sctp_jsctp")
    sys.exit(1 if main() else 0)
