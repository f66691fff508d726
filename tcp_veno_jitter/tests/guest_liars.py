# SPDX-License-Identifier: GPL-2.0-only
"""Receivers that lie, to get more than their share of a bottleneck.

A flow to a liar shares a link with a flow of reno to an honest receiver. What the two then get is
compared with what they get if the liar's sender is reno, and if the receiver is honest.

Bounds, before any measurement of a module: a quarter more than the larger of the two for the liar,
and six tenths of the smaller of the two for its neighbour. A receiver that stamps its ACKs with the
sender's own times hides its queue, and no sender can tell that from a congested way back by
looking. So veno_jitter lets the receiver's clock excuse a longer round trip, but no loss, and does
not use one any more that denies the queue which losses come from; jtcp believes it, as its paper
does, unless peer_clock is 0.

Each is left out of a claim that it does not meet: veno_jitter of an Optimist, to whom every sender
sends a full receiver's window at any rate of loss, as that is paced, which leaves reno's bursts
beside it no room in a short queue; jtcp of a Draining one that it believes.

What a Shortcut gains shows where its flow is alone: beside reno, in a short queue, what it asks for
again costs more.

It does not help to know when flows look for base, as TruthfulAtTimes and HoldsInDips do, nor to
hold ACKs back, so that round trips get no shorter when less is sent: losses tell all the same. Nor
does one gain that Feigns random losses as well: its clock excuses none. guest_liars.py MODULE KIND
MBPS PKTS [PEER_CLOCK] says what one has (1: a fair share).
"""

import contextlib
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import guest_net as net
from guest_claims import ALL, PUBLISHED, claim
from guest_peer import SEQ_MASK, Link, Peer, Segment, Wire

from labtest.guest import first_in_line, run_cmd, write_file

RATE_MBPS, QUEUE_PKTS, DELAY_US = 4, 20, 20_000
SHORTCUT_MBPS, SHORTCUT_QUEUE_PKTS = 10, 60
LARGE_MBPS, LARGE_QUEUE_PKTS = 16, 80  # where there is more to gain
OTHERS_BACK_US = 20_000  # what others' packets wait on the way back
RUN_S = 75.0  # of one run each: in 25 s a slow clock is above the bound in 1 of 16, by chance
HONEST_RUN_S = 25.0  # tens of losses, of which three in a row would end an honest clock
ACKS_RUN_S = 30.0  # who lies by ACKs alone is a fifth and more below it by then
MOST, LEAST = 1.25, 0.6
PIECES = 8  # ACKs for one segment
OPTIMIST_PKTS = 40  # nothing is seen to be lost: the receiver's window is the only bound
BACKWARDS_TICKS = 40
LEAP_AT = 12  # ACKs: in the first round trips
HESITATES_US, PROMPT_ACKS = 20_000, 10
HOLDS_AS_US = 1_000_000  # the round trips of so long before
FAST_PART, FEIGNED_PART = 1.08, 0.05
WALL_AHEAD_S = time.time() - time.monotonic()


class Honest(Peer):
    """A receiver as it should be."""


class ConstantStamp(Peer):
    """TSval never moves: is the queue always the same?"""

    def ts_val(self) -> int:
        return 1


class FrozenLater(Peer):
    """TSval stops once the sender knows the clock's tick."""

    def ts_val(self) -> int:
        return min(super().ts_val(), 5000)


class NoJitter(Peer):
    """TSval is made from the sender's own: all packets seem to take the same time."""

    newest = 0

    def receive(self, segment: Segment) -> None:
        self.newest = max(self.newest, segment.sent_us)
        super().receive(segment)

    def ts_val(self) -> int:
        return self.newest // 1000 & SEQ_MASK


class Draining(NoJitter):
    """As that, but a fiftieth slow, and right again every 2 s: a queue seems to drain."""

    def ts_val(self) -> int:
        return (self.newest - self.newest % 2_000_000 // 50) // 1000 & SEQ_MASK


class SlowClock(Peer):
    """TSval runs 20 % slow: data seems to arrive faster than it does."""

    def ts_val(self) -> int:
        return super().ts_val() * 4 // 5


class Backwards(Peer):
    """Every fourth TSval is older than the one before."""

    def ts_val(self) -> int:
        return (super().ts_val() - BACKWARDS_TICKS * (self.sent_acks % 4 == 0)) & SEQ_MASK


class FromTheFuture(Peer):
    """One early ACK has a TSval far ahead, out of order, so that PAWS does not keep it: whoever
    does finds all that follow older."""

    leap = 0

    def send_ack(self, *arguments, **options) -> None:
        early = self.sent_acks == LEAP_AT
        self.leap, self.seq = 2**30 * early, self.seq + 5 * early
        super().send_ack(*arguments, **options)
        self.leap, self.seq = 0, self.seq - 5 * early

    def ts_val(self) -> int:
        return (super().ts_val() + self.leap) & SEQ_MASK


class Divider(Peer):
    """Each segment is acknowledged in pieces."""

    acked = 1

    def answer(self) -> None:
        step = max(1, (self.next - self.acked) // PIECES)
        for upto in range(self.acked + step, self.next, step):
            self.send_ack(upto=upto)
        self.acked = self.next
        self.send_ack()


class Hesitant(Peer):
    """Holds its ACKs back but for one in ten: what waits seems to come and go by itself."""

    def answer(self) -> None:
        if self.sent_acks % PROMPT_ACKS == 0:
            self.send_ack()
        else:
            self.wire.at(self.wire.now_us + HESITATES_US, self.send_ack)


class Optimist(Peer):
    """Acknowledges what has been sent, whether it has arrived or not."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.window_pkts, self.window_shift = OPTIMIST_PKTS, 0

    def sent(self, segment: Segment) -> None:
        if segment.end > self.next:
            self._place(segment.start, segment.end)
            self.wire.at(self.wire.now_us + self.wire.link.delay_us, self.send_ack)

    def receive(self, segment: Segment) -> None:
        self.ts_recent = segment.ts_val


class DsackFlood(Peer):
    """Every ACK says that the newest segment came twice."""

    def answer(self) -> None:
        if self.next > 3000:
            self.duplicate = (self.next - 1448, self.next)
        self.send_ack()


class Shortcut(Peer):
    """Asks for a segment again once a round trip, and acknowledges that with a newer one, by a time
    that leaves out what the newer one has waited: of such an ACK the core goes by the time."""

    lies = held = False  # so far; the ACK of what was asked for waits for a newer segment

    def receive(self, segment: Segment) -> None:
        plain = segment.start == self.next and not (segment.again or self.islands)
        if self.lies and plain and not self.held:
            return  # as if it had been lost
        self.newest = segment
        super().receive(segment)

    def answer(self) -> None:
        repaired = self.newest.again and not self.islands
        if self.lies and repaired and not self.held:
            self.held = True
            return
        if self.held and not (repaired or self.islands):
            link = self.wire.link
            shortest_us = link.delay_us + link.service_us()
            waited_us = self.wire.now_us - self.newest.sent_us - shortest_us
            self.ts_recent = self.newest.ts_val + waited_us // 1000 & SEQ_MASK
        self.held = False
        self.send_ack()


def is_near(now_us: int, period_s: float, before_s: float, after_s: float) -> bool:
    """Is NOW_US so near a multiple of PERIOD_S of the wall clock, at which flows look for base?"""
    since_s = (now_us * 1e-6 + WALL_AHEAD_S) % period_s
    return since_s < after_s or since_s >= period_s - before_s


class TruthfulAtTimes(NoJitter):
    """As that, but honest near every third of these."""

    def ts_val(self) -> int:
        return Peer.ts_val(self) if is_near(self.wire.now_us, 15, 0.25, 0.4) else super().ts_val()


class Holds(NoJitter):
    """As that, and its ACKs are as late as the latest one of a while before: no round trip is
    shorter, however little is sent."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.sent_us: deque[int] = deque()  # of the segment that each ACK on its way is for
        # when an ACK was there, and its round trip; but those before a longer one
        self.lately: deque[tuple[int, int]] = deque()
        self.last_us = 0

    def least_us(self) -> int:
        """Return how long a round trip has to be."""
        return self.lately[0][1]

    def note(self, rtt_us: int) -> None:
        now_us = self.wire.now_us
        while self.lately and self.lately[-1][1] <= rtt_us:
            self.lately.pop()
        self.lately.append((now_us, rtt_us))
        while self.lately[0][0] < now_us - HOLDS_AS_US:
            self.lately.popleft()

    def send_ack(self, *arguments, **options) -> None:
        self.sent_us.append(self.newest)
        super().send_ack(*arguments, **options)

    def _deliver(self, packet: bytes) -> None:
        sent_us, now_us = self.sent_us.popleft(), self.wire.now_us
        due_us = max(now_us, self.last_us)
        if sent_us:
            self.note(now_us - sent_us)
        if self.lately:
            due_us = max(due_us, sent_us + self.least_us())
        self.last_us = due_us
        if due_us == now_us:
            super()._deliver(packet)
        else:
            self.wire.at(due_us, lambda: Peer._deliver(self, packet))


class HoldsInDips(Holds):
    """As that, while flows look for base."""

    def least_us(self) -> int:
        return super().least_us() if is_near(self.wire.now_us, 5, 0.2, 0.6) else 0

    def note(self, rtt_us: int) -> None:
        if not is_near(self.wire.now_us, 5, 0.2, 0.6):
            super().note(rtt_us)


class Slews(Holds):
    """As that, but only so late that no round trip gets much shorter at once: it need not know
    when dips come, and pays in them alone."""

    least_rtt_us = 0

    def least_us(self) -> int:
        self.least_rtt_us = max(self.lately[-1][1], self.least_rtt_us)
        return self.least_rtt_us

    def note(self, rtt_us: int) -> None:
        before_us = self.lately[-1][0] if self.lately else 0
        super().note(rtt_us)
        # a twentieth in a round trip
        since_us = self.wire.now_us - before_us
        self.least_rtt_us -= min(self.least_rtt_us, since_us // 20)


class Feigns(NoJitter):
    """As that, and asks again for some of what came fast, as if it had been lost at random."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.shortest_us = SEQ_MASK
        self.chance = random.Random(1)

    def receive(self, segment: Segment) -> None:
        rtt_us = self.wire.now_us - segment.sent_us + self.wire.link.delay_us
        self.shortest_us = min(self.shortest_us, rtt_us)
        is_fast = rtt_us < FAST_PART * self.shortest_us
        if segment.again or not is_fast or self.chance.random() >= FEIGNED_PART:
            super().receive(segment)


# which reno does not look at
BY_STAMPS = (ConstantStamp, FrozenLater, NoJitter, SlowClock, FromTheFuture)
BY_ACKS = (Backwards, Divider, Hesitant, Optimist, DsackFlood)


@dataclass(frozen=True)
class Shares:
    """Packets a second that came out of the link, new or not."""

    liar_pps: float
    other_pps: float


@cache
def shares(
    name: str,
    kind: Callable[..., Peer],
    rate_mbps: float = RATE_MBPS,
    queue_pkts: int = QUEUE_PKTS,
    peer_clock: int = 1,
) -> Shares:
    link = Link(rate_mbps=rate_mbps, queue_pkts=queue_pkts, delay_us=DELAY_US)
    with Wire(link) as wire, clock_of(name, peer_clock):
        other = Peer(wire, "reno").connect()
        wire.run(2)
        liar = kind(wire, name).connect()
        wire.run(3)
        run_s = ACKS_RUN_S if kind in BY_ACKS else RUN_S
        before = liar.arrived_pkts, other.arrived_pkts
        wire.run(run_s)
        return Shares(
            (liar.arrived_pkts - before[0]) / run_s, (other.arrived_pkts - before[1]) / run_s
        )


@contextlib.contextmanager
def clock_of(name: str, peer_clock: int) -> Iterator[None]:
    """Set how far the module believes a receiver's clock, if that is not the default."""
    parameter = f"/sys/module/tcp_{name}/parameters/peer_clock"
    if peer_clock != 1:
        write_file(parameter, peer_clock)
    try:
        yield
    finally:
        if peer_clock != 1:
            write_file(parameter, 1)


def check_liar(name, kind, peer_clock=1):
    lied, honest = (shares(name, one, peer_clock=peer_clock) for one in (kind, Honest))
    reno = shares("reno", Honest if kind in BY_STAMPS else kind)
    told = f"liar {lied}, honest {honest}, reno {reno}"
    assert lied.liar_pps <= MOST * max(honest.liar_pps, reno.liar_pps), told
    assert lied.other_pps >= LEAST * min(honest.other_pps, reno.other_pps), told


def check_denied_queue(name, kind):
    told = shares(name, kind, LARGE_MBPS, LARGE_QUEUE_PKTS)
    fair_pps = (told.liar_pps + told.other_pps) / 2
    assert told.liar_pps <= MOST * fair_pps, told  # 1.64 if believed, 1.75 if it Feigns
    assert told.other_pps >= LEAST * fair_pps, told


def told_too_much_pkts(name, peer_clock=1):
    """Return how much longer than the queue there the module tells it to be, where others' packets
    wait on the way back, after a time beside reno."""
    link = Link(rate_mbps=LARGE_MBPS, queue_pkts=LARGE_QUEUE_PKTS, delay_us=DELAY_US)
    with Wire(link) as wire, clock_of(name, peer_clock):
        other = Peer(wire, "reno").connect()
        flow = Peer(wire, name).connect()
        wire.run(4)
        link.back_us = DELAY_US + OTHERS_BACK_US
        wire.run(HONEST_RUN_S)
        other.lose = lambda _segment: True  # before the queue
        wire.run(2)
        too_much_pkts = []
        for _ in range(20):
            wire.run(0.1)
            told_pkts = net.cc_info_of(flow.sock)["backlog_pkts"]
            too_much_pkts.append(told_pkts - len(link.leaves_us))
    return statistics.median(too_much_pkts)


@claim("a queue of others on the way back costs no honest receiver its clock", "veno_jitter")
def check_honest_clock(name):
    believed_pkts, unused_pkts = (told_too_much_pkts(name, clock) for clock in (1, 0))
    assert believed_pkts < 9, (believed_pkts, unused_pkts)
    assert unused_pkts > 15, unused_pkts  # OTHERS_BACK_US are 27


@claim("a round trip made of a forged time excuses no loss of a full queue", "veno_jitter")
def check_shortcut(name):
    link = Link(rate_mbps=SHORTCUT_MBPS, queue_pkts=SHORTCUT_QUEUE_PKTS, delay_us=DELAY_US)
    with Wire(link) as wire:
        liar = Shortcut(wire, name).connect()
        wire.run(2)
        liar.lies = True
        wire.run(1)
        drops, queued_pkts = link.drops, []
        for _ in range(300):
            wire.run(0.05)
            queued_pkts.append(len(link.leaves_us))
    drops, queued_pkts = link.drops - drops, sum(queued_pkts) / len(queued_pkts)
    # what was asked for, and then dropped, was noise: 272 drops and 40 packets
    assert drops <= 5, (drops, queued_pkts)
    assert queued_pkts < SHORTCUT_QUEUE_PKTS / 3, (drops, queued_pkts)


for kind in (NoJitter, HoldsInDips, Slews, Feigns):
    claim(f"a queue that only a forged clock denies is shared: {kind.__name__}", "veno_jitter")(
        partial(check_denied_queue, kind=kind)
    )

for kind, algorithm in ((NoJitter, "veno_jitter"), (Draining, "jtcp")):
    claim(
        f"a lying receiver gains little and starves nobody: {kind.__name__}, not believed",
        algorithm,
    )(partial(check_liar, kind=kind, peer_clock=0))

for kind in (*BY_STAMPS, *BY_ACKS):
    algorithms = PUBLISHED if kind is Optimist else ALL
    claim(f"a lying receiver gains little and starves nobody: {kind.__name__}", *algorithms)(
        partial(check_liar, kind=kind)
    )


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "tun")
    module, kind, rate_mbps, queue_pkts, *peer_clock = sys.argv[1:]
    told = shares(module, globals()[kind], float(rate_mbps), int(queue_pkts), *map(int, peer_clock))
    share = 2 * told.liar_pps / (told.liar_pps + told.other_pps)
    print(f"{kind}, {rate_mbps} Mb/s, {queue_pkts} packets: {share:.2f} of a fair share")
