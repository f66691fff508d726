# SPDX-License-Identifier: GPL-2.0-only
"""Inside the lab: what lablink claims, held against netem and against models of it in fractions.

Frames of EtherType 0x88b5 go from one end of a veth to the other; the kernel says when each came.
"""

import errno
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

from lab.ask import qdiscs
from lab.ask.lablink import (
    STEP,
    Attribute,
    begin_lablink,
    change_lablink,
    constant_rate,
    set_lablink,
)
from lab.ask.links import Link, set_link
from lab.ask.qdiscs import attribute
from labtest.claims import Claims, near

CLAIMS = Claims()
ETHERTYPE = 0x88B5
SO_TIMESTAMPNS, SO_SNDBUFFORCE, SO_RCVBUFFORCE = 35, 32, 33
MS, S = 10**6, 10**9  # ns
EXACT_NS = 1500  # two timers in the lab fire 0.5 us apart at least, and three may meet
OPPORTUNITY_BYTES = 1500


def steps(*of: tuple[int, int]) -> bytes:
    """Return packed steps from (ns, value)."""
    return b"".join(STEP.pack(ns, value) for ns, value in of)


class Wire:
    """A veth whose one end has the queue under test."""

    def __init__(self):
        subprocess.run(
            "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up",
            shell=True, check=True,
        )  # fmt: skip
        self.sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.sender.bind(("v0", 0))
        self.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
        self.receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self.receiver.bind(("v1", ETHERTYPE))
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def carry(self, load, wait_ns: int = 2 * S, start_ns: int = 0) -> list[tuple[int, int]]:
        """Send LOAD, (ns, bytes) or (ns, function), at its times from START_NS on (default: soon).
        Returns number and ns of arrival of those that came, and keeps the start."""
        from lab.run.guest.turns import sleep_until_ns  # which only the lab can import

        real_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        self.start_ns = start_ns or (time.monotonic_ns() // MS + 10) * MS
        self.refused, number = [], 0
        for ns, what in load:
            if time.monotonic_ns() < self.start_ns + ns:
                sleep_until_ns(self.start_ns + ns)
            if callable(what):
                what()
                continue
            head = bytes(12) + ETHERTYPE.to_bytes(2, "big") + struct.pack("!I", number)
            try:
                self.sender.send(head.ljust(what, b"\0"))
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.refused.append(number)
            number += 1
        sleep_until_ns(time.monotonic_ns() + wait_ns)
        return [self._read(*message, real_ns) for message in self._arrived()]

    def _arrived(self):
        with suppress(BlockingIOError):
            while True:
                yield self.receiver.recvmsg(64, 64, socket.MSG_DONTWAIT)[:2]

    def _read(self, data: bytes, ancillary, real_ns: int) -> tuple[int, int]:
        seconds, ns = struct.unpack("=qq", ancillary[0][2])
        (number,) = struct.unpack_from("!I", data, 14)
        return number, seconds * S + ns - real_ns - self.start_ns


def begin_before(time_ns: int, period_ns: int) -> int:
    """Return when a loop of PERIOD_NS began that begins anew at TIME_NS and began before now."""
    return time_ns - -(-S // period_ns) * period_ns


def show() -> dict:
    """Return what tc says of v0's root."""
    text = subprocess.check_output(["tc", "-j", "-s", "qdisc", "show", "dev", "v0"], text=True)
    return json.loads(text)[0]


def random_load(seed: int, packets: int, mean_ns: float) -> list[tuple[int, int]]:
    """Packets of 60 to 1514 bytes, alone and in bursts, MEAN_NS apart."""
    dice, ns, load = random.Random(seed), 0, []
    while len(load) < packets:
        ns += round(dice.expovariate(1 / mean_ns))
        load += [(ns, dice.randint(60, 1514)) for _ in range(dice.choice((1, 1, 8)))]
    return load[:packets]


def assert_times(arrived: list[tuple[int, int]], wanted: list[Fraction]) -> None:
    assert [number for number, _ in arrived] == list(range(len(wanted)))
    for (number, ns), want in zip(arrived, wanted, strict=True):
        assert abs(ns - want) <= EXACT_NS, f"packet {number} at {ns} ns, not {float(want)}"


def leaving_at_rates(load, schedule: list[tuple[int, int]], phase_ns: int) -> list[Fraction]:
    """When packets leave by piecewise constant rates (ns, bytes/s), the loop at PHASE_NS when
    they begin: the model."""
    period = sum(ns for ns, _ in schedule)
    now, left = Fraction(0), []
    for ns, size in load:
        now, work = max(now, Fraction(ns)), Fraction(size)
        while work:
            phase = (now + phase_ns) % period
            step = 0
            while phase >= schedule[step][0]:
                phase -= schedule[step][0]
                step += 1
            lasts, rate = schedule[step]
            took = min(lasts - phase, work * S / rate) if rate else lasts - phase
            work -= took * rate / S
            now += took
        left.append(now)
    return left


def leaving_at_opportunities(load, times_ns: list[int], period_ns: int) -> list[Fraction]:
    """When packets leave if at each of TIMES_NS of each period 1500 bytes may: the model, which
    walks over opportunities, not over packets."""
    waiting, left, next_in, loop = [], [], 0, 0
    while len(left) < len(load):
        for time_ns in times_ns:
            now, budget = loop + time_ns, OPPORTUNITY_BYTES
            while next_in < len(load) and load[next_in][0] <= now:
                waiting.append(load[next_in][1])
                next_in += 1
            while waiting and budget:
                sent = min(budget, waiting[0])
                budget -= sent
                waiting[0] -= sent
                if not waiting[0]:
                    waiting.pop(0)
                    left.append(Fraction(now))
        loop += period_ns
    return left


@CLAIMS.add("at a constant rate packets leave when netem lets them leave")
def _(wire):
    link = Link(rate_mbps=3.7, queue_pkts=20)
    load = random_load(1, 800, 5 * MS)
    set_link("v0", link, 1)
    theirs, refused = wire.carry(load), wire.refused
    set_lablink("v0", link, 1, {})
    assert wire.carry(load) == theirs
    assert wire.refused == refused and 20 < len(refused) < 400 and len(theirs) > 400


@CLAIMS.add("so they do with a varying delay around it")
def _(wire):
    link = Link(rate_mbps=3.7, delay_ms=20, jitter_ms=15, loss_pct=3)
    load = random_load(2, 400, 5 * MS)
    set_link("v0", link, 1)
    theirs = wire.carry(load)
    set_lablink("v0", link, 1, {})
    ours = wire.carry(load)
    assert [number for number, _ in ours] == [number for number, _ in theirs]
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        near(mine, other, EXACT_NS)


@CLAIMS.add("when the rate steps from 10 to 1 Mb/s what is queued leaves at 1 Mb/s")
def _(wire):
    """Ten of twelve packets of 1000 bytes fit. At 2 ms two are out and half of the third: its 500
    bytes take 4 ms more, each of the other seven 8 ms."""
    link = Link(rate_mbps=10, queue_pkts=10)
    set_lablink("v0", link, 1, {})
    slower = Link(rate_mbps=1, queue_pkts=10)
    load = [(0, 1000)] * 12 + [(2 * MS, lambda: change_lablink("v0", slower))]
    arrived = wire.carry(load)
    assert wire.refused == [10, 11] and show()["drops"] == 2
    first = [Fraction(800_000), Fraction(1_600_000)]
    assert_times(arrived, first + [Fraction((6 + 8 * i) * MS) for i in range(8)])


@CLAIMS.add("and the other way round, and to a stop and on, they leave as fast as it is then")
def _(wire):
    set_lablink("v0", Link(rate_mbps=1, queue_pkts=10), 1, {})
    rates = [(4, 10), (5, 1e-6), (25, 10)]
    load = [(0, 1000)] * 10
    load += [
        (ms * MS, lambda r=r: change_lablink("v0", Link(rate_mbps=r, queue_pkts=10)))
        for ms, r in rates
    ]
    # half of the first takes 4 ms, the other half 0.4, and 0.6 ms are 750 bytes of the second
    wanted = [Fraction(4_400_000), *(Fraction(25_200_000 + i * 800_000) for i in range(9))]
    assert_times(wire.carry(load), wanted)


@CLAIMS.add("it follows rates over time as the model does, over steps, stops and loops")
def _(wire):
    dice = random.Random(3)
    schedule = [(dice.randint(1, 40) * MS, dice.choice((0, 40_000, 250_000, 10**6)))
                for _ in range(30)]  # fmt: skip
    period = sum(ns for ns, _ in schedule)
    load = random_load(4, 600, 12 * MS)
    set_lablink("v0", Link(queue_pkts=1000), 1, {"rate": steps(*schedule)})
    start = (time.monotonic_ns() // MS + 10) * MS
    begin_lablink("v0", Link(queue_pkts=1000), begin_before(start - 7 * MS, period))
    arrived = wire.carry(load, 20 * S, start)
    assert_times(arrived, leaving_at_rates(load, schedule, 7 * MS))


@CLAIMS.add("it follows a trace of opportunities as the model does, partly used ones included")
def _(wire):
    dice = random.Random(5)
    ms = [0, 0, *sorted(dice.randint(1, 400) for _ in range(150))]
    period = max(ms) * MS
    counts = [(0, 0), *sorted(Counter(ms).items())]
    packed = steps(*(
        ((ms - before) * MS, OPPORTUNITY_BYTES * count)
        for (before, _), (ms, count) in pairwise(counts)
    ))  # fmt: skip
    load = random_load(6, 700, 9 * MS)
    set_lablink("v0", Link(queue_pkts=1000), 1, {"opportunities": packed})
    start = (time.monotonic_ns() // MS + 10) * MS
    begin_lablink("v0", Link(queue_pkts=1000), begin_before(start, period))
    arrived = wire.carry(load, 20 * S, start)
    assert_times(arrived, leaving_at_opportunities(load, [m * MS for m in ms], period))


@CLAIMS.add("long traces come in several messages and are one")
def _(wire):
    """9000 opportunities, 1 ms apart: of 12000 packets, 9000 are out after one loop."""
    packed = steps(*[(MS, OPPORTUNITY_BYTES)] * 9000)
    delays, losses = steps(*[(MS, MS)] * 9000), steps(*[(MS, 0)] * 9000)
    link = Link(queue_pkts=20_000)
    set_lablink("v0", link, 1, {"opportunities": packed, "delay": delays, "loss": losses})
    arrived = wire.carry([(0, OPPORTUNITY_BYTES)] * 12_000, 13 * S)
    assert len(arrived) == 12_000
    times = [ns for _, ns in arrived]
    assert max(b - a for a, b in pairwise(times)) <= MS + EXACT_NS
    near(times[-1] - times[0], 11_999 * MS, EXACT_NS)


@CLAIMS.add("a delay over time keeps the order, and is no backlog")
def _(wire):
    link = Link()
    packed = steps((50 * MS, 100 * MS), (50 * MS, 20 * MS))
    set_lablink("v0", link, 1, {"delay": packed})
    start = (time.monotonic_ns() // MS + 10) * MS
    begin_lablink("v0", link, begin_before(start, 100 * MS))
    arrived = wire.carry([(i * MS + MS // 2, 1000) for i in range(100)], 2 * S, start)
    sent = [i * MS + MS // 2 for i in range(100)]
    delays = [100 * MS if ns < 50 * MS else 20 * MS for ns in sent]
    wanted, last = [], 0
    for ns, delay in zip(sent, delays, strict=True):
        last = max(last, ns + delay)
        wanted.append(Fraction(last))
    assert_times(arrived, wanted)
    set_lablink("v0", Link(queue_pkts=5), 1, {"delay": steps((S, S))})
    seen = []
    wire.carry([(0, 1000)] * 9 + [(MS, lambda: seen.append(show()))])
    assert seen[0]["backlog"] == 0 and seen[0]["qlen"] == 9 and not wire.refused


@CLAIMS.add("a change of the delay around it leaves its schedules as they are")
def _(wire):
    """1500 bytes each ms and 10 ms of delay, and 5 ms more from 50 ms on."""
    of = {"opportunities": steps((MS, OPPORTUNITY_BYTES)), "delay": steps((S, 10 * MS))}
    set_lablink("v0", Link(trace="a trace"), 1, of)
    later = Link(trace="a trace", delay_ms=5)
    load = [(i * MS, OPPORTUNITY_BYTES) for i in range(50)]
    load += [(49 * MS + MS // 2, lambda: change_lablink("v0", later))]
    load += [(i * MS, OPPORTUNITY_BYTES) for i in range(50, 100)]
    times = [ns for _, ns in wire.carry(load)]
    assert len(times) == 100
    near(times[49] - times[0], 49 * MS, MS)
    near(times[99] - times[0], (99 + 5) * MS, MS)


@CLAIMS.add("loss over time is where it is told to be, and the same for the same seed")
def _(wire):
    packed = steps((S, 0), (S, 2**32), (S, 2**30))
    load = [(i * MS, 100) for i in range(3000)]
    runs = []
    for seed in (1, 1, 2):
        set_lablink("v0", Link(), seed, {"loss": packed})
        start = (time.monotonic_ns() // MS + 10) * MS
        begin_lablink("v0", Link(), begin_before(start, 3 * S))
        runs.append([number for number, _ in wire.carry(load, S, start)])
    assert runs[0] == runs[1] != runs[2]
    lost = sorted(set(range(3000)) - set(runs[0]))
    assert [number for number in lost if number < 2000] == list(range(1000, 2000))
    near(len(lost) - 1000, 250, 4 * (1000 * 0.25 * 0.75) ** 0.5)


@CLAIMS.add("no packet is lost or overtakes whatever changes meanwhile")
def _(wire):
    dice = random.Random(7)
    link = Link(queue_pkts=10_000)
    set_lablink("v0", link, 1, {"rate": constant_rate(5)})
    load = random_load(8, 2000, 4 * MS)
    for _ in range(400):
        packed = dice.choice((
            {Attribute.RATE: steps(*((dice.randint(1000, 9 * MS), dice.choice((0, 10**5, 10**7)))
                                     for _ in range(dice.randint(2, 9))), (MS, 10**6))},
            {Attribute.OPPORTUNITIES: steps((dice.choice((0, MS)), 900), (3 * MS, 4000))},
            {Attribute.DELAY: steps((dice.randint(1000, S), dice.randint(0, 50 * MS)), (MS, 0))},
            {Attribute.BEGIN: None},
        ))  # fmt: skip
        load.append((dice.randint(0, 4 * S), lambda packed=packed: tell(packed)))
    load.sort(key=lambda item: item[0])
    load.append((5 * S, lambda: tell({Attribute.RATE: constant_rate(50)})))
    arrived = wire.carry(load, 10 * S)
    assert [number for number, _ in arrived] == list(range(2000)) and not wire.refused


def tell(options: dict) -> int:
    """Send OPTIONS, attribute -> payload, to v0's lablink; return the errno."""
    packed = b"".join(
        attribute(kind, struct.pack("=Q", time.monotonic_ns()) if payload is None else payload)
        for kind, payload in options.items()
    )
    return qdiscs.tell("v0", "lablink", packed, nested=True)


@CLAIMS.add("a message that makes no sense is refused and changes nothing")
def _(wire):
    link = Link(rate_mbps=1, queue_pkts=10)
    set_lablink("v0", link, 1, {})
    u64 = struct.Struct("=Q").pack
    one = steps((MS, 1))
    bad = [
        {Attribute.RATE: b""},
        {Attribute.RATE: one[:-1]},
        {Attribute.RATE: one + b"\0"},
        {Attribute.RATE: steps((0, 1))},
        {Attribute.RATE: steps((999, 1))},
        {Attribute.RATE: steps((2**64 - 1, 1))},
        {Attribute.RATE: steps((2**60, 1), (2**60, 1))},
        {Attribute.RATE: steps((MS, 2**64 - 1))},
        {Attribute.OPPORTUNITIES: steps((0, 1))},
        {Attribute.OPPORTUNITIES: steps((MS, 1), (0, 1))},
        {Attribute.OPPORTUNITIES: steps((MS, 2**31))},
        {Attribute.DELAY: steps((MS, 3601 * S))},
        {Attribute.LOSS: steps((MS, 2**32 + 1))},
        {Attribute.RATE: one, Attribute.OPPORTUNITIES: one},
        {Attribute.MORE: b"", Attribute.OPPORTUNITIES: one},
        {Attribute.BEGIN: u64(time.monotonic_ns() + 100 * S)},
        {Attribute.LIMIT: struct.pack("=I", 0)},
        {Attribute.LIMIT: b"1"},
        {9: one},
    ]
    for options in bad:
        assert tell(options) in (errno.EINVAL, errno.ERANGE), options
    assert tell({Attribute.RATE: steps((MS, 10**6), (MS, 2**64 - 1))}) == errno.ERANGE
    dice = random.Random(9)
    for _ in range(3000):
        tell({dice.choice((5, 6, 7, 8)): steps((dice.getrandbits(dice.randint(0, 64)),
              2**64 - 1 - dice.getrandbits(20)))})  # fmt: skip
    assert_times(wire.carry([(0, 1000)] * 3), [Fraction(8 * MS * i) for i in (1, 2, 3)])


@CLAIMS.add("it can go at any time, with what it holds, and its module then")
def _(wire):
    for around in (Link(queue_pkts=100), Link(delay_ms=1)):
        set_lablink("v0", around, 1, {"rate": constant_rate(0.01), "delay": steps((S, S))})
        wire.carry([(i * MS, 1000) for i in range(50)], 0)
        assert subprocess.run(["rmmod", "sch_lablink"], capture_output=True).returncode
        set_link("v0", Link(), 1)
        subprocess.run(["rmmod", "sch_lablink"], check=True)
        subprocess.run(["modprobe", "-d", "/run/lab/modules", "sch_lablink"], check=True)
        assert not wire.carry([], 5 * S)


def main() -> int:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    wire = Wire()
    return not all([claim.holds(wire) for claim in CLAIMS])


if __name__ == "__main__":
    sys.exit(main())
