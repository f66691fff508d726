# SPDX-License-Identifier: GPL-2.0-only
"""One direction of a link as netem, as tbf with an AQM, or as a policer: the netlink messages that
set it, and the tc command.

netem is spoken to directly because Debian 12's tc cannot set its seed and pyroute2 cannot
either; without the seed no loss sequence could be repeated. Works with the standard library
alone, since it runs inside the lab.
"""

import errno
import math
import re
import struct
import subprocess
from dataclasses import dataclass

from lab.ask import qdiscs
from lab.ask.qdiscs import attribute

# linux/pkt_sched.h
TCA_NETEM_DELAY_DIST, TCA_NETEM_REORDER, TCA_NETEM_LOSS = 2, 3, 5
TCA_NETEM_RATE, TCA_NETEM_RATE64 = 6, 8
TCA_NETEM_LATENCY64, TCA_NETEM_JITTER64, TCA_NETEM_SLOT, TCA_NETEM_SLOT_DIST = 10, 11, 12, 13
TCA_NETEM_PRNG_SEED, NETEM_LOSS_GE = 14, 2
NETEM_SEEDS_SINCE = (6, 7)
TCA_TBF_PARMS, TCA_TBF_RATE64, TCA_TBF_BURST = 1, 4, 6
TC_LINKLAYER_ETHERNET = 1

# aqm -> (the attribute that is its limit, what switches ECN on: dualpi2 always marks ECT packets)
AQMS = {
    "codel": (2, 4),
    "fq_codel": (2, 4),
    "pie": (2, 6),
    "fq_pie": (1, 10),
    "dualpi2": (1, None),  # L4S; from Linux 6.17 on
}
TBF_BURST_BYTES = 2000  # one full frame, with room for its headers
TBF_LIMIT_BYTES = 1_000_000  # of the fifo that tbf makes and the AQM replaces
QUEUE_UNLIMITED_PKTS = 1_000_000  # a hop whose queue must never drop
GSO_FRAME_BYTES = 70_000  # what offloads may hand over as one, with the headers of its segments
AQM_MODULE = "sch_{}"
POLICER_MODULES = ("sch_prio", "cls_matchall", "act_police")
PSCHED_TICK_NS = 64  # struct tc_netem_qopt counts time in these
# A distribution is a table of 16-bit numbers from which netem picks one: so many times
# jitter / 8192 are added to the delay.
NETEM_DIST_SCALE = 8192
TABLE_LENGTH = 4096  # netem takes four times this, tc cannot send it
RETRY_STEP = NETEM_DIST_SCALE // 4  # of the table, for one retry: up to 15 fit in 16 bits
RETRIES_MAX = 15


def netem_takes_seeds(release: str) -> bool:
    """Say whether netem of that Linux RELEASE (`uname -r`) can be told its loss sequence."""
    major, minor = (int(number) for number in re.findall(r"\d+", release)[:2])
    return (major, minor) >= NETEM_SEEDS_SINCE


@dataclass(frozen=True)
class Link:
    """What a packet meets on one hop. Zero means: not there.

    A hop either queues or polices (rate and a finite queue, or a bucket: its drops are congestion)
    or loses (loss: its drops are random), never both, so that the cause of every drop is known.
    """

    rate_mbps: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # delay_ms -+ this, uniform
    jitter_reorders: bool = False  # each packet its own delay, whoever is before it
    reorder_pct: float = 0.0  # so many leave at once, without the delay, before all others
    loss_pct: float = 0.0
    burst_pkts: float = 0.0  # mean length of a run of losses; 0: independent ones
    queue_pkts: int = 0
    queue_bdp: float = 0.0  # the same as a share of the path's BDP; queue_pkts follows from it
    policer_burst_ms: float = 0.0  # no queue: what finds no token in a bucket of rate x this,
    policer_burst_bytes: int = 0  # or of so many bytes, is dropped
    aqm: str = ""  # one of AQMS instead of drop-tail
    retry_pct: float = 0.0  # each transmission fails with this probability and is repeated,
    retry_ms: float = 0.0  # this much later; what follows waits
    aggregate_ms: float = 0.0  # packets leave together, from half to 1.5 of this apart
    aggregate_pkts: int = 64  # at most so many together
    trace: str = ""  # of the rate, over time: a file or a model (lab.ask.linktraces)
    delay_trace: str = ""  # of a delay besides delay_ms
    loss_trace: str = ""  # of a loss besides loss_pct

    @property
    def is_traced(self) -> bool:
        return bool(self.trace or self.delay_trace or self.loss_trace)

    @property
    def has_rate(self) -> bool:
        return bool(self.rate_mbps or self.trace)

    @property
    def limit_pkts(self) -> int:
        return self.queue_pkts or QUEUE_UNLIMITED_PKTS

    @property
    def bucket_bytes(self) -> int:
        """How many bytes a policer lets through at once; 0: there is none."""
        return self.policer_burst_bytes or round(self.policer_burst_ms * self.rate_mbps * 125)

    @property
    def drops_for_congestion(self) -> bool:
        """Whether what this hop drops found no room; otherwise its drops are random."""
        return bool(self.queue_pkts or self.bucket_bytes)

    @property
    def is_endless(self) -> bool:
        """Whether it has a rate, and nothing that waits for it is ever dropped."""
        return bool(self.rate_mbps) and not self.drops_for_congestion

    @property
    def spread_ms(self) -> float:
        """The jitter that netem is told: of a uniform delay, or the unit of its table."""
        if self.retry_pct:
            return self.retry_ms * NETEM_DIST_SCALE / RETRY_STEP
        return self.jitter_ms

    @property
    def distributions(self) -> dict[str, list[int]]:
        """The tables that netem uses here, by the names tc_command() gives them. tc would read
        them from NAME.dist in the folder TC_LIB_DIR."""
        tables = {}
        if self.retry_pct:
            tables[f"retry-{self.retry_pct:g}"] = _retry_table(self.retry_pct / 100)
        if self.aggregate_ms:
            tables["uniform"] = list(
                range(-NETEM_DIST_SCALE, NETEM_DIST_SCALE, 2 * NETEM_DIST_SCALE // TABLE_LENGTH)
            )
        return tables

    @property
    def gilbert(self) -> tuple[float, float]:
        """The probabilities p, to begin a run of losses, and r, to end it, of each packet.

        Every packet of a run is lost, none outside: runs of 1/r and gaps of 1/p on average.
        """
        r = 1 / self.burst_pkts
        loss = self.loss_pct / 100
        return r * loss / (1 - loss), r

    def tc_command(self, dev: str, seed: int) -> str:
        """Return the tc command (iproute2 6.6 or newer) that does what set_link() does."""
        if self.bucket_bytes:  # prio counts what its filter drops, and adds nothing
            return (
                f"tc qdisc add dev {dev} root handle 1: prio &&"
                f" tc filter add dev {dev} parent 1: protocol all prio 1 matchall action police"
                f" rate {self.rate_mbps:g}mbit burst {self.bucket_bytes} mtu {GSO_FRAME_BYTES}"
                " conform-exceed drop/ok"
            )
        if self.aqm:
            return (
                f"tc qdisc add dev {dev} root handle 1: tbf rate {self.rate_mbps:g}mbit"
                f" burst {TBF_BURST_BYTES} limit {TBF_LIMIT_BYTES} &&"
                f" tc qdisc add dev {dev} parent 1:1 handle 10: {self.aqm}"
                f" limit {self.queue_pkts}{' ecn' if AQMS[self.aqm][1] else ''}"
            )
        parts = [f"tc qdisc add dev {dev} root handle 1: netem limit {self.limit_pkts}"]
        if self.delay_ms or self.spread_ms:
            parts.append(f"delay {self.delay_ms:g}ms")
        if self.spread_ms:
            parts.append(f"{self.spread_ms:g}ms")
        if self.reorder_pct:
            parts.append(f"reorder {self.reorder_pct:g}%")
        if self.retry_pct:
            parts.append(f"distribution retry-{self.retry_pct:g}")
        if self.loss_pct and self.burst_pkts:
            p, r = self.gilbert
            parts.append(f"loss gemodel {100 * p:.9g}% {100 * r:.9g}%")
        elif self.loss_pct:
            parts.append(f"loss {self.loss_pct:g}%")
        if self.rate_mbps:
            parts.append(f"rate {self.rate_mbps:g}mbit")
        if self.aggregate_ms:
            parts.append(f"slot distribution uniform {self.aggregate_ms:g}ms")
            parts.append(f"{self.aggregate_ms / 2:g}ms packets {self.aggregate_pkts}")
        return " ".join([*parts, f"seed {seed}"])

    def tbf_options(self) -> bytes:
        """Return the payload of TCA_OPTIONS of a tbf: the rate, one frame after the other."""
        rate_bytes_per_s = round(self.rate_mbps * 1e6 / 8)
        small = min(rate_bytes_per_s, 2**32 - 1)
        rate = struct.pack("=BBHhHI", 0, TC_LINKLAYER_ETHERNET, 0, -1, 0, small)
        rates = rate + bytes(len(rate))  # no peak rate
        options = attribute(TCA_TBF_PARMS, rates + struct.pack("=III", TBF_LIMIT_BYTES, 0, 0))
        options += attribute(TCA_TBF_BURST, struct.pack("=I", TBF_BURST_BYTES))
        if rate_bytes_per_s > small:
            options += attribute(TCA_TBF_RATE64, struct.pack("=Q", rate_bytes_per_s))
        return options

    def aqm_options(self) -> bytes:
        limit, ecn = AQMS[self.aqm]
        options = attribute(limit, struct.pack("=I", self.queue_pkts))
        return options + (attribute(ecn, struct.pack("=I", 1)) if ecn else b"")

    def netem_options(self, seed: int | None = None) -> bytes:
        """Return the payload of TCA_OPTIONS: struct tc_netem_qopt and nested attributes. Without
        a SEED a generator that runs goes on."""
        delay_ns, jitter_ns = round(self.delay_ms * 1e6), round(self.spread_ms * 1e6)
        loss = 0 if self.burst_pkts else _probability(self.loss_pct / 100)
        ticks = [min(ns // PSCHED_TICK_NS, 2**32 - 1) for ns in (delay_ns, jitter_ns)]
        gap = int(self.reorder_pct > 0)  # of so many packets one may overtake
        options = struct.pack("=IIIIII", ticks[0], self.limit_pkts, loss, gap, 0, ticks[1])
        options += attribute(TCA_NETEM_LATENCY64, struct.pack("=q", delay_ns))
        options += attribute(TCA_NETEM_JITTER64, struct.pack("=q", jitter_ns))
        if self.retry_pct:
            options += _table(TCA_NETEM_DELAY_DIST, _retry_table(self.retry_pct / 100))
        if self.reorder_pct:
            packed = struct.pack("=II", _probability(self.reorder_pct / 100), 0)
            options += attribute(TCA_NETEM_REORDER, packed)
        if self.loss_pct and self.burst_pkts:
            p, r = map(_probability, self.gilbert)
            model = attribute(NETEM_LOSS_GE, struct.pack("=IIII", p, r, 0, 0))
            options += attribute(TCA_NETEM_LOSS, model)
        if self.rate_mbps:
            rate_bytes_per_s = round(self.rate_mbps * 1e6 / 8)
            small = min(rate_bytes_per_s, 2**32 - 1)
            options += attribute(TCA_NETEM_RATE, struct.pack("=IiIi", small, 0, 0, 0))
            if rate_bytes_per_s > small:
                options += attribute(TCA_NETEM_RATE64, struct.pack("=Q", rate_bytes_per_s))
        if self.aggregate_ms:
            mean_ns = round(self.aggregate_ms * 1e6)
            slot = struct.pack("=qqiiqq", 0, 0, self.aggregate_pkts, 0, mean_ns, mean_ns // 2)
            options += attribute(TCA_NETEM_SLOT, slot)
            options += _table(TCA_NETEM_SLOT_DIST, self.distributions["uniform"])
        if seed is not None:
            options += attribute(TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed))
        return options


def link_of(values: dict) -> Link:
    """Return the link of a point's spec, where VALUES has its seed as well."""
    return Link(**{key: value for key, value in values.items() if key != "seed"})


def _retry_table(fails: float) -> list[int]:
    """Return the table of how many times a packet is sent again that FAILS each time."""
    picks = ((i + 0.5) / TABLE_LENGTH for i in range(TABLE_LENGTH))
    retries = (min(int(math.log(pick) / math.log(fails)), RETRIES_MAX) for pick in picks)
    return [RETRY_STEP * n for n in retries]


def _probability(p: float) -> int:
    return min(round(p * 2**32), 2**32 - 1)


def _table(kind: int, values: list[int]) -> bytes:
    return attribute(kind, struct.pack(f"={len(values)}h", *values))


def set_link(dev: str, link: Link, seed: int) -> None:
    """Give DEV of the current network namespace a new netem that starts from SEED, its AQM or its
    policer.

    The old one goes first: a change in place would keep its random state and its packets.
    """
    qdiscs.delete(dev)
    if link.bucket_bytes:
        subprocess.run(link.tc_command(dev, seed), shell=True, check=True)
        return
    steps = [("netem", qdiscs.ROOT, link.netem_options(seed))]
    if link.aqm:
        steps = [
            ("tbf", qdiscs.ROOT, link.tbf_options()),
            (link.aqm, qdiscs.CHILD, link.aqm_options()),
        ]
    for kind, place, options in steps:
        error = qdiscs.tell(dev, kind, options, place, new=True, nested=kind == link.aqm)
        if error == errno.ENOENT:  # what the kernel says of a kind of qdisc that it has not
            raise OSError(error, f"this kernel has no sch_{kind}, which {dev} needs")
        if error:
            raise OSError(error, f"{kind} on {dev}: {link.tc_command(dev, seed)}")


def change_link(dev: str, link: Link) -> None:
    """Make the netem of DEV what LINK says, in place: packets in it leave when they were to, and
    its random numbers go on. (A run of losses, if one is under way, ends.)"""
    if error := qdiscs.tell(dev, "netem", link.netem_options()):
        raise OSError(error, f"changing netem on {dev}: {link}")
