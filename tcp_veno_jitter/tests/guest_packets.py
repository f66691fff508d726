# SPDX-License-Identifier: GPL-2.0-only
"""Each decision of the modules, packet by packet, against a peer that a script drives."""

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import median

import guest_net as net
from guest_claims import ALL, PUBLISHED, claim
from guest_net import Info
from guest_peer import Clock, Link, Peer, Segment, Wire

from labtest.claims import near

FAST_MBPS, SLOW_MBPS = 1000, 10  # a bottleneck that a flow never, always fills
FIRST_LOSS = 60  # in slow start, w about 60
WRAP_S = 1.0  # TSval wraps before the loss that counts
STEADY_S = 1.0
WINDOW_PKTS = 48  # where the receiver's window stops growth
INFINITE_SSTHRESH = 2**31 - 1
TFO_CLIENT, TFO_NO_COOKIE = 0x1, 0x4
SYN_BYTES = 1000
STARTUP, SHARED = 1, 3  # veno_jitter's law, as ss tells it
INITIAL_WINDOW_PKTS = 10


@dataclass(frozen=True)
class Receiver:
    """A kind of receiver, of path or of sender that must not change what is decided."""

    text: str
    algorithms: tuple[str, ...] = ALL
    clock: Callable[[], Clock] = Clock
    link: dict = field(default_factory=dict)
    peer: dict = field(default_factory=dict)  # attributes
    wire: dict = field(default_factory=dict)


def every_other() -> Callable[[], bool]:
    yes = [False]

    def turn() -> bool:
        yes[0] = not yes[0]
        return yes[0]

    return turn


RECEIVERS = (
    Receiver("as usual"),
    *(
        Receiver(f"tick of {tick_us} us, {skew_ppm:+} ppm, {'wrapping' if wrap_s else 'whole'}",
                 clock=partial(Clock, tick_us, skew_ppm, wrap_s))
        for tick_us in (1, 1000, 4000, 10_000)
        for skew_ppm, wrap_s in ((200, WRAP_S), (-200, None))
    ),
    Receiver("no time stamps", wire={"tcp_timestamps": 0}),
    # veno_jitter takes such an ACK's bytes for lost, so that its bandwidth is half the true one
    Receiver("every other ACK has no time stamp", PUBLISHED,
             peer={"stamps": every_other()}),
    Receiver("delayed ACKs", peer={"ack_every": 2}),
    Receiver("stretched ACKs, of 8", peer={"ack_every": 8, "flush_us": 300}),
    Receiver("stretched ACKs, of 32", peer={"ack_every": 32, "flush_us": 300}),
    Receiver("compressed SACKs", peer={"ack_every": 2, "sack_every": 10}),
    Receiver("ACKs in batches 5 ms apart", link={"batch_us": 5000}),
    Receiver("segmentation offload", wire={"offload": True}),
)  # fmt: skip
ECN = Receiver("ECN", wire={"tcp_ecn": 1})


@contextlib.contextmanager
def started(name: str, receiver: Receiver = RECEIVERS[0], rate_mbps=FAST_MBPS, queue_pkts=20):
    """A flow of NAME in congestion avoidance.

    Reno takes it there by a loss on the way up, so that every algorithm starts alike.
    """
    link = Link(rate_mbps=rate_mbps, queue_pkts=queue_pkts, **receiver.link)
    with Wire(link, **receiver.wire) as wire:
        peer = Peer(wire, "reno", clock=receiver.clock())
        for key, value in receiver.peer.items():
            setattr(peer, key, value)
        peer.connect()
        peer.lose = lambda segment: segment.nth == FIRST_LOSS
        peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        peer.wait_for(lambda now: now.ca_state == net.OPEN)
        net.set_algorithm(peer.sock, name)
        yield peer


@contextlib.contextmanager
def quiet(name: str, receiver: Receiver = RECEIVERS[0]):
    """A flow of NAME whose window stands still, on a path without a queue."""
    mbps = SLOW_MBPS if name == "veno_jitter" else FAST_MBPS
    with started(name, receiver, mbps, queue_pkts=100) as peer:
        if name == "veno_jitter":  # leaves its first slow start when it sees a queue
            peer.wait_for(lambda now: now.ssthresh_pkts < INFINITE_SSTHRESH)
            peer.wire.run(0.2)
            peer.wire.link.rate_mbps = FAST_MBPS
        peer.window_pkts = WINDOW_PKTS
        peer.wire.run(STEADY_S)
        peer.retransmits = 0
        yield peer


@contextlib.contextmanager
def congested(name: str, receiver: Receiver = RECEIVERS[0]):
    """A flow of NAME whose path has just become half as fast, so that a queue stands."""
    with started(name, receiver, 2 * SLOW_MBPS, queue_pkts=40) as peer:
        peer.wire.run(STEADY_S)
        peer.wire.link.rate_mbps, peer.wire.link.queue_pkts = SLOW_MBPS, 1000
        peer.wire.run(0.2 if name == "veno_jitter" else 0.06)  # it looks once a round trip
        yield peer


class Turns(Link):
    """ACKs wait for the turn of who sends them, which comes 10 to 30 ms after the last one."""

    def __init__(self, dice: random.Random, **words):
        super().__init__(**words)
        self.dice, self.turn_us = dice, 0

    def return_us(self, now_us: int) -> int:
        self.turn_us = max(self.turn_us, now_us - 60_000)
        while self.turn_us < now_us:
            self.turn_us += self.dice.randrange(10_000, 30_000)
        return self.turn_us + self.delay_us


@dataclass(frozen=True)
class Answer:
    """The states before the loss was seen, at the start and after the end of the reaction."""

    before: Info
    now: Info
    after: Info
    measured_pkts: float  # what the flow's own estimate said, at the start, that the path holds

    @classmethod
    def wait(cls, peer: Peer) -> "Answer":
        before, now = peer.wait_for(lambda now: now.ca_state >= net.CWR)
        bytes_per_s = net.cc_info_of(peer.sock)["bw_bps"] / 8
        _, after = peer.wait_for(lambda now: now.ca_state == net.OPEN)
        measured = bytes_per_s * now.min_rtt_us / 1e6 / now.mss_bytes
        return cls(before, now, after, measured)


def lose_next(peer: Peer, count: int = 1, apart: int = 1) -> Answer:
    """Lose COUNT segments once."""
    mss = peer.info().mss_bytes
    left = [peer.sent_end + apart * i * mss for i in range(count)]

    def lose(segment: Segment) -> bool:
        hit = [start for start in left if segment.start <= start < segment.end]
        for start in hit:
            left.remove(start)
        return bool(hit)

    peer.lose = lose
    answer = Answer.wait(peer)
    assert not left
    return answer


# --- a random loss -----------------------------------------------------------

# smallest and largest threshold after a random loss
KEPT = {
    "jtcp": lambda w: (w, w),
    "veno03": lambda w: (w * 80 // 100, w * 80 // 100),
    "tabe": lambda w: (min(w, WINDOW_PKTS) * 3 // 4, w),  # what was measured
    "veno_jitter": lambda w: (w, w),
}


def check_random(name, receiver):
    with quiet(name, receiver) as peer:
        answer = lose_next(peer)
        low, high = KEPT[name](answer.before.cwnd_pkts)
        assert low <= answer.now.ssthresh_pkts <= high, answer
        # what the receiver's window leaves unused may be given up (RFC 7661), no more
        least = min(WINDOW_PKTS, answer.now.ssthresh_pkts)
        assert least <= answer.after.cwnd_pkts <= answer.now.ssthresh_pkts, answer
        assert peer.retransmits == 1


for receiver in RECEIVERS:
    claim(
        f"a random loss is known and repaired by one packet: {receiver.text}", *receiver.algorithms
    )(partial(check_random, receiver=receiver))


# --- congestion --------------------------------------------------------------


def assert_reduced(name: str, answer: Answer) -> None:
    threshold_pkts, w = answer.now.ssthresh_pkts, answer.before.cwnd_pkts
    if name in ("jtcp", "veno03"):
        assert threshold_pkts == w // 2, answer
    else:
        near(threshold_pkts, answer.measured_pkts, 2)
    assert answer.after.cwnd_pkts == threshold_pkts < w, answer


def check_congestion(name, receiver):
    with congested(name, receiver) as peer:
        assert_reduced(name, lose_next(peer))


for receiver in RECEIVERS:
    claim(f"a loss while a queue stands is congestion: {receiver.text}", *PUBLISHED)(
        partial(check_congestion, receiver=receiver)
    )


def assert_sunk(answer: Answer) -> None:
    """To what was measured, or to 0.85 w if that is less; a queue of others may be left."""
    threshold_pkts, most_pkts = answer.now.ssthresh_pkts, answer.before.cwnd_pkts * 85 // 100
    assert min(most_pkts, int(answer.measured_pkts)) <= threshold_pkts <= most_pkts, answer
    assert answer.after.cwnd_pkts == threshold_pkts, answer


def check_full(name, receiver):
    with congested(name, receiver) as peer:
        assert_sunk(lose_next(peer))


for receiver in RECEIVERS:
    claim(f"a loss of the fullest queue yet is congestion: {receiver.text}", "veno_jitter")(
        partial(check_full, receiver=receiver)
    )


@claim("four losses of a full queue in one round trip are answered once", "veno_jitter")
def check_full_once(name):
    with congested(name) as peer:
        thresholds = [peer.info().ssthresh_pkts]
        peer.seen = lambda info: thresholds.append(info.ssthresh_pkts)
        assert_sunk(lose_next(peer, count=4, apart=5))
        changes = [b for a, b in pairwise(thresholds) if a != b]
        assert len(changes) <= 1, changes


@claim("a drop of a queue that the flow itself has filled is congestion", "jtcp", "veno03", "tabe")
def check_overflow(name):
    with started(name, rate_mbps=SLOW_MBPS) as peer:
        for _ in range(2):
            drops = peer.wire.link.drops
            peer.wire.wait(lambda: peer.wire.link.drops > drops)  # noqa: B023
            answer = Answer.wait(peer)
            assert_reduced(name, answer)
            if name == "tabe":
                near(answer.now.ssthresh_pkts, peer.wire.link.bdp_pkts(), 3)


@claim("four losses in one round trip are answered once", *PUBLISHED)
def check_once(name):
    with congested(name) as peer:
        thresholds = [peer.info().ssthresh_pkts]
        peer.seen = lambda info: thresholds.append(info.ssthresh_pkts)
        answer = lose_next(peer, count=4, apart=5)
        assert_reduced(name, answer)
        changes = [b for a, b in pairwise(thresholds) if a != b]
        assert len(changes) <= 1 and thresholds[-1] == answer.now.ssthresh_pkts, changes


@claim("BaseRTT after a repair is one that this host's clock has measured, not whole ms", "veno03")
def check_base_after_repair(name):
    delay_us = 20_250
    with quiet(name, Receiver("half a ms", link={"delay_us": delay_us})) as peer:
        found_us = []
        for _ in range(8):
            lose_next(peer)
            found_us.append(net.cc_info_of(peer.sock)["base_rtt_us"])
            peer.wire.run(0.1003)  # at another part of a ms
        # four were 40000: that is what the core makes of the time stamp of a retransmission
        assert min(found_us) >= 2 * delay_us, found_us


# --- ECN ---------------------------------------------------------------------


@claim("marks without a queue are congestion, however many in a round trip: one reduction")
def check_marks(name):
    for count in (1, 10):
        with quiet(name, ECN) as peer:
            first = peer.count
            peer.mark = lambda segment, first=first, n=count: first <= segment.nth < first + n
            answer = Answer.wait(peer)
            assert answer.after.delivered_ce_pkts >= count and not peer.retransmits
            assert_marked(name, answer)
            near(answer.after.cwnd_pkts, answer.now.ssthresh_pkts, 1)


@claim("a mark beside a random loss makes it congestion")
def check_mark_and_loss(name):
    with quiet(name, ECN) as peer:
        peer.window_pkts = 4000  # the answer to a mark rides on new data
        first = peer.count
        peer.mark = lambda segment: segment.nth < first + 10
        answer = lose_next(peer)
        assert peer.retransmits == 1
        assert_marked(name, answer)
        # the ACK that ends recovery may still echo the mark, which the core answers again
        assert answer.after.cwnd_pkts <= answer.now.ssthresh_pkts + 1, answer


@claim("a mark told while a random loss is repaired is answered once", "jtcp", "veno03",
       "veno_jitter")  # fmt: skip
def check_mark_in_repair(name):
    """The echo ends before recovery does, where there is a second hole, or with it."""
    for holes in (1, 2):
        with quiet(name, ECN) as peer:
            peer.window_pkts = 4000  # the answer to a mark rides on new data
            late = peer.count + 10  # recovery begins before it arrives
            peer.mark = lambda segment, late=late: segment.nth == late
            answer = lose_next(peer, count=holes, apart=25)
            assert peer.retransmits == holes
            w = answer.before.cwnd_pkts
            assert KEPT[name](w)[0] <= answer.now.ssthresh_pkts, "it was told before"
            assert answer.after.delivered_ce_pkts, answer
            if name != "veno_jitter":
                near(answer.after.cwnd_pkts, w // 2, 1)
                continue
            # the window, which has grown since the loss, sinks from there
            sent = answer.after.delivered_pkts + w
            _, then = peer.wait_for(lambda now, sent=sent: now.delivered_pkts > sent)
            assert then.cwnd_pkts <= w + 1, (answer, then)


def assert_marked(name: str, answer: Answer) -> None:
    threshold_pkts, w = answer.now.ssthresh_pkts, answer.before.cwnd_pkts
    if name in ("jtcp", "veno03"):
        assert threshold_pkts == w // 2, answer
    elif name == "veno_jitter":
        assert threshold_pkts <= w * 85 // 100, answer
    else:  # what was measured
        assert w * 3 // 4 <= threshold_pkts <= w, answer


# --- timeouts ----------------------------------------------------------------


@claim("a timeout without a queue: half or what was measured; jtcp does not start over")
def check_timeout(name):
    with quiet(name) as peer:
        before, now = lose_all(peer)
        w = before.cwnd_pkts
        if name in ("jtcp", "veno03"):
            assert now.ssthresh_pkts == w // 2, (before, now)
        else:
            near(now.ssthresh_pkts, w, w / 4)
        if name == "jtcp":
            near(now.cwnd_pkts, now.ssthresh_pkts, w / 4)
        else:
            assert now.cwnd_pkts == 1
        assert_goes_on(peer)


@claim("a timeout while a queue stands: half or what was measured, slow start from 1", *PUBLISHED)
def check_congestion_timeout(name):
    with congested(name) as peer:
        before, now = lose_all(peer)
        if name in ("jtcp", "veno03"):
            assert now.ssthresh_pkts == before.cwnd_pkts // 2, (before, now)
        else:
            holds_pkts = peer.wire.link.bdp_pkts()
            near(now.ssthresh_pkts, holds_pkts, 0.25 * holds_pkts)
        assert now.cwnd_pkts == 1, now
        assert_goes_on(peer)


@claim("a timeout while a queue stands: no larger a window than before", "veno_jitter")
def check_queue_timeout(name):
    with congested(name) as peer:
        before, now = lose_all(peer)
        assert now.cwnd_pkts <= before.cwnd_pkts, (before, now)
        assert now.ssthresh_pkts <= before.cwnd_pkts, (before, now)
        assert_goes_on(peer)


@claim("a second timeout in a row, without an ACK between them: slow start from 1")
def check_second_timeout(name):
    with quiet(name) as peer:
        _, now = lose_all(peer)
        _, again = peer.wait_for(lambda info: info.backoffs > now.backoffs)
        assert again.cwnd_pkts == 1 and again.ssthresh_pkts <= now.ssthresh_pkts, (now, again)
        assert_goes_on(peer)


def lose_all(peer: Peer) -> tuple[Info, ...]:
    """Lose all until a timeout; return the states around it."""
    peer.lose = lambda _segment: True
    return peer.wait_for(lambda now: now.ca_state == net.LOSS)


def assert_goes_on(peer: Peer) -> None:
    """The path is well again: all that was sent arrives, and new data."""
    peer.lose = lambda _segment: False
    peer.wait_for(lambda now: now.ca_state == net.OPEN)
    sent_bytes, arrived_bytes = peer.sent_end, peer.delivered_bytes
    peer.wire.run(0.3)
    assert peer.next > sent_bytes and peer.delivered_bytes > arrived_bytes


# --- a station that waits for its turn ---------------------------------------


@claim("ACKs in bursts 10 to 30 ms apart, as over Wi-Fi: random losses are noise", "veno_jitter")
def check_bursts(name):
    carried_mbps = []
    time.sleep(-time.time() % 5)  # hushes go by the wall clock: the same ones each time
    for seed in range(1, 7):
        dice = random.Random(seed)
        link = Turns(dice, rate_mbps=SLOW_MBPS, queue_pkts=50)
        with Wire(link) as wire:
            peer = Peer(wire, name)
            peer.lose = lambda _segment, dice=dice: dice.random() < 0.01
            peer.connect()
            wire.run(20)
            before_bytes = peer.delivered_bytes
            wire.run(20)
            carried_mbps.append((peer.delivered_bytes - before_bytes) * 8 / 20e6)
            assert not link.drops, (seed, link.drops)
    # one that hears too little at first answers losses until the next hush or two: of 51, begun
    # at any time of a turn, two have less than 8, one of them 4.5
    assert median(carried_mbps) > 0.9 * SLOW_MBPS, carried_mbps
    assert sum(mbps < 0.8 * SLOW_MBPS for mbps in carried_mbps) <= 2, carried_mbps


# --- undo --------------------------------------------------------------------


def undos() -> int:
    """How often the kernel has found in this namespace that what it took for losses were none."""
    names, values = (
        line.split() for line in open("/proc/self/net/netstat") if line.startswith("TcpExt:")
    )
    counts = dict(zip(names[1:], map(int, values[1:]), strict=True))
    return counts["TCPFullUndo"] + counts["TCPPartialUndo"] + counts["TCPDSACKUndo"]


def check_undo(name, receiver):
    """A segment comes 30 ms late: the window is reduced, then the core learns of its mistake."""
    with congested(name, receiver) as peer:
        late = peer.count
        # the retransmission overtakes what waits in the queue
        peer.hold_us = lambda segment: (segment.nth == late) * 30_000 - segment.again * 20_000
        before, now = peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        assert now.ssthresh_pkts < before.cwnd_pkts, (before, now)
        _, after = peer.wait_for(lambda now: now.ca_state < net.CWR)
        near(after.cwnd_pkts, before.cwnd_pkts, 1)
        if name != "veno_jitter":  # which goes on answering the queue itself
            assert after.ssthresh_pkts >= before.ssthresh_pkts, (before, after)
        assert_goes_on(peer)


claim("a loss that was a delay is undone: seen by time stamps")(
    partial(check_undo, receiver=Receiver("time stamps", peer={"dsack": False}))
)
claim("a loss that was a delay is undone: seen by DSACK")(
    partial(check_undo, receiver=Receiver("no time stamps", wire={"tcp_timestamps": 0}))
)


@claim("a loss right after one that was a delay is answered", "jtcp")
def check_loss_after_undo(name):
    with congested(name, Receiver("time stamps", peer={"dsack": False})) as peer:
        late = peer.count
        peer.hold_us = lambda segment: (segment.nth == late) * 15_000
        peer.lose = lambda segment: segment.nth == late + 20
        undone = undos()
        before, _ = peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        begun_us = peer.wire.now_us
        peer.wait_for(lambda now: undos() > undone)
        _, now = peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        assert peer.wire.now_us - begun_us < now.srtt_us, "it was long after"
        near(now.ssthresh_pkts, before.cwnd_pkts // 2, 1)


@claim("losses that were a delay take nothing of what was known of the path", "veno_jitter")
def check_undo_all(name):
    """More comes late than noise explains, beside others: a path with room must not become one
    without, where the next random loss would be congestion."""
    with congested(name, Receiver("no time stamps", wire={"tcp_timestamps": 0})) as peer:
        link = peer.wire.link
        link.delay_us *= 2  # a queue that no drain and no dip empties: others'
        peer.wire.run(8)
        w, undone, again = peer.info().cwnd_pkts, undos(), peer.retransmits
        until_us = peer.wire.now_us + 200_000
        peer.hold_us = lambda segment: (
            (segment.sent_us < until_us and not segment.again and segment.nth % 3 > 0) * 150_000
        )
        peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        peer.wait_for(lambda now: undos() > undone)
        assert peer.retransmits - again > 2 * w // 5, "fewer than noise explains"
        peer.wait_for(lambda now: now.ca_state == net.OPEN)
        peer.wire.run(0.3)
        link.delay_us, link.rate_mbps = link.delay_us // 2, FAST_MBPS
        peer.window_pkts = peer.info().cwnd_pkts
        peer.wire.run(0.3)
        answer = lose_next(peer)
        assert answer.after.cwnd_pkts >= answer.before.cwnd_pkts - 1, answer


@claim("a loss in a dip that was a delay gives the window before the dip back", "veno_jitter")
def check_undo_in_dip(name):
    with congested(name) as peer:
        peer.wire.link.delay_us *= 2  # a queue that no drain and no dip empties: others'
        peer.wire.run(8)
        last, w = peer.info(), 0

        def dips(now: Info) -> bool:
            nonlocal last, w
            w, last = last.cwnd_pkts, now
            return now.cwnd_pkts < 0.8 * w and now.ssthresh_pkts == w

        peer.wait_for(dips)
        undone, late = undos(), peer.count
        peer.hold_us = lambda segment: (segment.nth == late) * 15_000
        peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        peer.wait_for(lambda now: undos() > undone)
        assert peer.info().cwnd_pkts >= w, (peer.info(), w)


@claim("a smaller MTU, found while a probe lasts, leaves nothing of the probe", "veno_jitter")
def check_mtu_in_probe(name):
    """Where only losses tell how full the path is, and then none are left."""
    with Wire(Link(rate_mbps=SLOW_MBPS, queue_pkts=2)) as wire:
        peer = Peer(wire, name).connect()
        wire.run(20)
        wire.link.rate_mbps = FAST_MBPS
        last, w = peer.info(), 0

        def probes(now: Info) -> bool:
            nonlocal last, w
            w, last = last.cwnd_pkts, now
            return w >= 16 and now.cwnd_pkts >= 1.2 * w and now.ssthresh_pkts == w

        peer.wait_for(probes, limit_s=30)
        wire.inject(peer.too_big(1400))
        _, now = peer.wait_for(lambda now: now.ca_state == net.LOSS)
        assert now.mss_bytes < 1400 and now.cwnd_pkts <= w, (now, w)
        _, now = peer.wait_for(lambda now: now.ca_state == net.OPEN)
        assert now.cwnd_pkts <= 1.1 * w, (now, w)


@claim(
    "undo in a probe, of a timeout and then of a loss, leaves a window for the path", "veno_jitter"
)
def check_undo_in_probe(name):
    """The timeout was in startup, whose threshold is infinite: a late DSACK undoes it."""
    link = Link(rate_mbps=FAST_MBPS, delay_us=40_000, back_us=0)
    with Wire(link, tcp_early_retrans=0) as wire:
        peer = Peer(wire, name).connect()
        wire.run(0.1)
        before, _ = lose_all(peer)
        assert before.ssthresh_pkts == INFINITE_SSTHRESH, before
        sent_again = (peer.next, peer.sent_end)
        assert_goes_on(peer)
        assert net.cc_info_of(peer.sock)["law"] == SHARED
        probe = wait_for_probe(peer)
        undone, late = undos(), peer.count
        peer.duplicate = sent_again
        peer.send_ack()
        peer.wait_for(lambda now: undos() > undone)
        peer.hold_us = lambda segment: (segment.nth == late) * 6_000
        peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        peer.wait_for(lambda now: undos() > undone + 1)
        windows = [peer.info().cwnd_pkts]
        peer.seen = lambda now: windows.append(now.cwnd_pkts)
        until_us = wire.now_us + 2 * link.delay_us
        peer.wait_for(lambda now: wire.now_us > until_us)
        # no more has been delivered than the probe; the threshold of before came back: 2^31 - 1
        assert max(windows) <= 4 * probe.cwnd_pkts, (probe, max(windows))


def wait_for_probe(peer: Peer) -> Info:
    """Return the state when a probe begins: a quarter above the threshold, which rises."""
    last = peer.info()

    def probes(now: Info) -> bool:
        nonlocal last
        raised, last = now.ssthresh_pkts > last.ssthresh_pkts, now
        return raised and now.cwnd_pkts >= 1.2 * now.ssthresh_pkts

    return peer.wait_for(probes, limit_s=30)[1]


@claim("undo after startup has met a queue does not begin it again", "veno_jitter")
def check_undo_startup(name):
    """Segments come late while the window doubles, and a queue shows before the core knows."""
    with Wire(Link(rate_mbps=SLOW_MBPS), tcp_timestamps=0) as wire:
        peer = Peer(wire, name)
        peer.hold_us = lambda segment: (
            (30 <= segment.nth < 60 and segment.nth % 3 == 0 and not segment.again) * 250_000
        )
        peer.connect()
        peer.wait_for(lambda now: undos() > 0)
        largest_pkts = 0
        for _ in range(100):
            wire.run(0.02)
            largest_pkts = max(largest_pkts, peer.info().cwnd_pkts)
        assert largest_pkts < 4 * wire.link.bdp_pkts(), largest_pkts


@claim("a timeout that was a delay is undone")
def check_undo_timeout(name):
    with quiet(name) as peer:
        held = peer.wire.now_us + 1_000_000
        peer.hold_us = lambda segment: max(0, held - segment.sent_us)
        before, now = peer.wait_for(lambda now: now.ca_state == net.LOSS)
        assert now.cwnd_pkts < before.cwnd_pkts or name == "jtcp"
        _, after = peer.wait_for(lambda now: now.ca_state == net.OPEN)
        assert after.cwnd_pkts >= before.cwnd_pkts, (before, after)
        assert after.ssthresh_pkts >= before.ssthresh_pkts, (before, after)
        peer.hold_us = lambda _segment: 0
        assert_goes_on(peer)


# --- another algorithm in mid-flow -------------------------------------------


def into_disorder(peer: Peer) -> None:
    late = peer.count
    peer.hold_us = lambda segment: 2_000 if segment.nth == late else 0
    peer.wait_for(lambda now: now.ca_state == net.DISORDER)


def into_cwr(peer: Peer) -> None:
    first = peer.count
    peer.mark = lambda segment: segment.nth == first
    peer.wait_for(lambda now: now.ca_state == net.CWR)


def into_recovery(peer: Peer) -> None:
    first = peer.count
    peer.lose = lambda segment: first <= segment.nth < first + 3
    peer.wait_for(lambda now: now.ca_state == net.RECOVERY)


def into_loss(peer: Peer) -> None:
    lose_all(peer)
    peer.lose = lambda _segment: False


STATES = (into_disorder, into_cwr, into_recovery, into_loss)


def check_switch(name, first, second):
    for enter in STATES:
        with quiet(name, ECN) as peer:
            net.set_algorithm(peer.sock, first)
            peer.wire.run(0.1)
            enter(peer)
            net.set_algorithm(peer.sock, second)
            assert net.algorithm_of(peer.sock) == second
            assert_goes_on(peer)


@claim("selected in Disorder, CWR, Recovery and Loss, it goes on and loses nothing")
def check_switch_to(name):
    check_switch(name, "cubic", name)


@claim("left in Disorder, CWR, Recovery and Loss, the other goes on and loses nothing")
def check_switch_from(name):
    check_switch(name, name, "cubic")


@claim("selected amid a recovery, it takes the end of that for no mark", "veno_jitter")
def check_switch_in_recovery(name):
    with quiet(name) as peer:
        net.set_algorithm(peer.sock, "cubic")
        peer.wire.run(0.1)
        lost = peer.count
        peer.lose = lambda segment: segment.nth == lost
        peer.wait_for(lambda now: now.ca_state == net.RECOVERY)
        acks = peer.acks + 1
        peer.wire.wait(lambda: peer.acks >= acks)
        net.set_algorithm(peer.sock, name)
        before, _ = peer.wait_for(lambda now: now.ca_state == net.OPEN)
        assert net.cc_info_of(peer.sock)["law"] == STARTUP, peer.info()
        peer.wire.run(0.1)
        assert peer.info().cwnd_pkts >= before.cwnd_pkts, (before, peer.info())


# --- before the connection is up ---------------------------------------------


@claim("selected in SYN_SENT with data in the SYN, taken or not: all arrives, a loss is known")
def check_syn_sent(name):
    for taken in (True, False):
        with Wire(Link(rate_mbps=FAST_MBPS), tcp_fastopen=TFO_CLIENT | TFO_NO_COOKIE) as wire:
            peer = Peer(wire, "")
            peer.takes_syn_data = taken
            peer.start_connect(bytes(SYN_BYTES))
            assert not peer.established() and net.algorithm_of(peer.sock) == "cubic"
            net.set_algorithm(peer.sock, name)
            wire.wait(peer.established)
            assert net.algorithm_of(peer.sock) == name
            wire.run(STEADY_S)
            assert peer.delivered_bytes == SYN_BYTES
            assert peer.count == (0 if taken else 1), "the data went twice"
            peer.window_pkts, peer.bulk = WINDOW_PKTS, True
            wire.run(STEADY_S)
            answer = lose_next(peer)
            # in slow start; a window is what was in flight, if the threshold is not known
            assert answer.after.cwnd_pkts >= WINDOW_PKTS * 3 // 4, answer
            assert peer.retransmits == 1


# --- an application that sends little ----------------------------------------


@claim("a flow that the application limits keeps a window of what it uses, at most three times")
def check_app_limited(name):
    with Wire(Link(rate_mbps=FAST_MBPS)) as wire:
        peer = Peer(wire, name).connect(bulk=False)
        for used_pkts, most_pkts in ((4, INITIAL_WINDOW_PKTS), (12, 3 * 12)):
            for _ in range(40):
                peer.write(used_pkts)
                wire.run(0.05)
                assert peer.info().cwnd_pkts <= most_pkts


@claim("after a long pause it starts with the initial window, and a random loss is known")
def check_idle(name):
    with quiet(name) as peer:
        peer.bulk = False
        peer.wire.run(15)  # what is in the send buffer goes out first
        first = peer.count
        peer.write(4 * WINDOW_PKTS)
        peer.wire.run(0.001)
        assert 0 < peer.count - first <= INITIAL_WINDOW_PKTS
        peer.bulk = True
        peer.wire.run(STEADY_S)
        answer = lose_next(peer)
        assert answer.after.cwnd_pkts >= WINDOW_PKTS * 3 // 4, answer
        assert peer.retransmits == 1
