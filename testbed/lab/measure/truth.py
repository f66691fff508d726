# SPDX-License-Identifier: GPL-2.0-only
"""Ground truth of loss classification: what an algorithm said against what dropped the packet.

A tap on either side of each forward hop (traffic/labtap.c) has every packet that entered it and
every packet that left it. The sender numbers its packets (IP identification), so one that entered
and did not leave was dropped there, and a hop drops for one reason only (metrics.drop_causes).
A verdict (tcp_verdict.h, sctp_verdict.h) is about the packets of its flow that were dropped and, as
far as the sender could know by then, missing; with SCTP about those sent by the path that it is of,
unless either path has brought them since:

    congestion   a queue dropped at least one of them; also where random loss took others
    random       random loss dropped them
    none         none was dropped: the retransmission was for nothing

Times are whole ns of the lab's CLOCK_MONOTONIC, sequence numbers (TSNs) are unwrapped to 64 bits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lab.ask.parts import SECOND
from lab.ask.points import VERDICT_EVENTS
from lab.measure import trace

TAP_RECORD = np.dtype(
    [
        ("time_ns", "<i8"),
        ("sport", "<u2"),
        ("dport", "<u2"),
        ("ip_id", "<u2"),
        ("protocol", "u1"),
        ("leaves", "u1"),
        ("seq", "<u4"),
        ("length", "<u4"),
    ]
)
PACKET = ["protocol", "sport", "dport", "ip_id", "seq"]  # what a packet is recognised by
TCP, SCTP = 6, 132
SECOND_HOMES = "10.201."  # where receivers have theirs, as lab.ask.topologies has it
CLOCK_ERROR_NS = 2000  # the sender's clock counts whole us, and so does the trace
NEVER = np.iinfo(np.int64).max

BACKLOG_ONE = 1 << 8  # of estimators/veno_backlog.h
SAID = ("random", "congestion")
COLUMNS = {
    "time_s": pl.Float64,
    "flow": pl.String,
    "algorithm": pl.String,
    "said": pl.String,
    "truth": pl.String,
    "at": pl.String,
    "lost_random_pkts": pl.Int64,
    "lost_congestion_pkts": pl.Int64,
    "cwnd_pkts": pl.Int64,
    "rtt_us": pl.Int64,
    "srtt_us": pl.Int64,
    "min_rtt_us": pl.Int64,
    "queue_us": pl.Int64,
    "queue_max_us": pl.Int64,
    "backlog_pkts": pl.Float64,
    "jitter_ratio": pl.Float64,
    "jitter_ratio_smoothed": pl.Float64,
}
FIGURES = [name for name in COLUMNS if name.endswith("_us") or name == "cwnd_pkts"]


# --- what was dropped ---------------------------------------------------------------------


def read_tap(path: Path) -> pl.DataFrame:
    """Return the packets that labtap saw at a hop, in the order of time."""
    records = np.fromfile(path, TAP_RECORD)
    packets = pl.DataFrame({name: records[name] for name in TAP_RECORD.names})
    return packets.sort("time_ns", maintain_order=True)


def find_drops(tap: pl.DataFrame) -> pl.DataFrame:
    """Return those packets of TAP that entered the hop and did not leave it.

    IP identifications repeat after 65536 packets of a flow: a packet has left if its number
    comes out before it goes in again. (A closed port's resets all have the number 0: those are
    told by their counts.)
    """
    inside = pl.len().cast(pl.Int64) - 2 * pl.col("leaves").cast(pl.Int64).sum()
    tap = tap.filter(inside.over(PACKET) > 0)
    entered = tap.filter(pl.col("leaves") == 0)
    entered = entered.with_columns(again_ns=pl.col("time_ns").shift(-1).over(PACKET))
    left = tap.filter(pl.col("leaves") == 1).select(*PACKET, "time_ns", left_ns="time_ns")
    both = entered.join_asof(
        left, on="time_ns", by=PACKET, strategy="forward", check_sortedness=False
    )
    dropped = pl.col("left_ns").is_null() | (pl.col("left_ns") >= pl.col("again_ns"))
    return both.filter(dropped.fill_null(False)).select(tap.columns)


# --- one flow -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Segments:
    """Data segments of one flow: when, and which bytes FIRST to END (excluded) they carry; with
    SCTP which TSNs."""

    time_ns: np.ndarray
    first: np.ndarray
    end: np.ndarray

    def covers(self, first: int, end: int) -> np.ndarray:
        """Say of each segment whether it carries a byte from FIRST to END."""
        return (self.first < end) & (self.end > first)


class Flow:
    """What became of the data segments from source port SPORT, hop by hop.

    TAPS: hop -> packets, in the order in which data meets the hops, then those between second
    homes. CAUSES: hop -> why it drops.
    """

    def __init__(self, sport: int, taps: dict[str, pl.DataFrame], causes: dict[str, str]):
        mine = {hop: _data_of(tap, sport) for hop, tap in taps.items()}
        ways = [way for way in _ways(mine) if way]
        entered = _merge([mine[way[0]].filter(pl.col("leaves") == 0) for way in ways])
        left = _merge([mine[way[-1]].filter(pl.col("leaves") == 1) for way in ways])
        self._clock = _SequenceClock(entered)
        self.sent = self._segments(entered)
        self.delivered = self._segments(left)
        drops = {hop: find_drops(tap) for hop, tap in mine.items()}
        self.dropped = self._segments(pl.concat(drops.values()))
        hops = [hop for hop, found in drops.items() for _ in range(len(found))]
        self.causes = np.array([causes[hop] for hop in hops])
        self.on_second = np.array([hop.startswith(SECOND) for hop in hops], bool)
        self.repaired_ns = self._repairs()
        self._forward = _forward_times(entered, left)
        self._again = self._sent_again()

    def _segments(self, packets: pl.DataFrame) -> Segments:
        time_ns = packets["time_ns"].to_numpy()
        first = self._clock.unwrap(time_ns, packets["seq"].to_numpy())
        return Segments(time_ns, first, first + packets["length"].to_numpy())

    def _repairs(self) -> np.ndarray:
        """Return when the first byte of each drop arrived after all; NEVER if it did not."""
        order = np.argsort(self.delivered.first, kind="stable")  # by time where alike
        first, end, time_ns = (
            values[order] for values in (self.delivered.first, self.delivered.end,
                                         self.delivered.time_ns)
        )  # fmt: skip
        longest = int((end - first).max(initial=0))
        repaired_ns = np.full(len(self.causes), NEVER, np.int64)
        for i, (dropped_ns, byte) in enumerate(
            zip(self.dropped.time_ns, self.dropped.first, strict=True)
        ):
            near = slice(*np.searchsorted(first, (byte - longest + 1, byte + 1)))
            arrivals = time_ns[near][(end[near] > byte) & (time_ns[near] > dropped_ns)]
            repaired_ns[i] = arrivals.min(initial=NEVER)
        return repaired_ns

    def _sent_again(self) -> np.ndarray:
        """Return the indices of the segments sent that carry bytes sent before."""
        highest = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], self.sent.end]))
        return np.flatnonzero(self.sent.first < highest[:-1])

    def lost(self, verdict: dict) -> np.ndarray:
        """Return the causes of the drops that a verdict is about."""
        time_ns = np.array([verdict["time_ns"]])
        una, nxt = (
            int(self._clock.unwrap(time_ns, np.array([verdict[name]], np.uint32))[0])
            for name in ("snd_una", "snd_nxt")
        )
        before = self.dropped.time_ns < verdict["time_ns"]
        if "path" in verdict:
            before &= self.on_second == verdict["path"].startswith(SECOND_HOMES)
        if verdict["at"] == "probe":
            return self.causes[before & self._repaired_by_probe(verdict["time_ns"], una)]
        # what arrived later than this was not acknowledged yet
        missing = self.repaired_ns > verdict["time_ns"] - self._back_ns(verdict)
        return self.causes[before & missing & self.dropped.covers(una, nxt)]

    def _back_ns(self, verdict: dict) -> int:
        """Return how long the newest ACK took: its round trip without its packet's way forward.

        Of packets sent at one instant, the one that took the shortest is as good as any. At a
        timeout there is no such ACK: the shortest time ever.
        """
        sent_ns, took_ns = self._forward
        newest_ns = verdict["time_ns"] - verdict["rtt_us"] * 1000
        around = (newest_ns - CLOCK_ERROR_NS, newest_ns + CLOCK_ERROR_NS)
        newest = slice(*np.searchsorted(sent_ns, around))
        if newest.start < newest.stop:
            return max(verdict["rtt_us"] * 1000 - int(took_ns[newest].min()), 0)
        return max(verdict["min_rtt_us"] * 1000 - int(took_ns.min(initial=NEVER)), 0)

    def _repaired_by_probe(self, time_ns: int, una: int) -> np.ndarray:
        """Say of each drop whether the newest retransmission that is acknowledged repaired it.

        A tail loss probe is known to have repaired something only when it is acknowledged.
        """
        again = self._again[
            (self.sent.time_ns[self._again] < time_ns) & (self.sent.end[self._again] <= una)
        ]
        if not len(again):
            return np.zeros(len(self.causes), bool)
        probe = again[-1]
        earlier = self.dropped.time_ns < self.sent.time_ns[probe]
        return earlier & self.dropped.covers(self.sent.first[probe], self.sent.end[probe])


class _SequenceClock:
    """Unwraps 32-bit sequence numbers by the segment SENT last before a time."""

    def __init__(self, sent: pl.DataFrame):
        self._time_ns = sent["time_ns"].to_numpy()
        self._seq = sent["seq"].to_numpy()
        steps = np.diff(self._seq, prepend=self._seq[:1]).view(np.int32)
        self._position = np.cumsum(steps, dtype=np.int64)

    def unwrap(self, time_ns: np.ndarray, seq: np.ndarray) -> np.ndarray:
        if not len(self._seq):
            return seq.astype(np.int64)
        last = np.maximum(np.searchsorted(self._time_ns, time_ns, "right") - 1, 0)
        return self._position[last] + (seq - self._seq[last]).view(np.int32)


def _ways(hops: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return which of HOPS lie between first homes and which between second ones."""
    hops = list(hops)
    second = [hop for hop in hops if hop.startswith(SECOND)]
    return [hop for hop in hops if hop not in second], second


def _merge(packets: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(packets).sort("time_ns", maintain_order=True)


def _forward_times(entered: pl.DataFrame, left: pl.DataFrame) -> tuple[np.ndarray, ...]:
    """Return of all packets that went through when they ENTERED a first hop, and how long after
    that they LEFT a last one."""
    both = entered.join(left, on=PACKET).filter(pl.col("time_ns_right") >= pl.col("time_ns"))
    both = both.sort("time_ns")
    sent_ns = both["time_ns"].to_numpy()
    return sent_ns, both["time_ns_right"].to_numpy() - sent_ns


def _data_of(tap: pl.DataFrame, sport: int) -> pl.DataFrame:
    stream = pl.col("protocol").is_in([TCP, SCTP])
    return tap.filter((pl.col("sport") == sport) & stream & (pl.col("length") > 0))


# --- verdicts -----------------------------------------------------------------------------


def judge(
    verdicts: list[dict],
    taps: dict[str, pl.DataFrame],
    causes: dict[str, str],
    flows: dict[int, tuple[str, str]],
    start_ns: int,
) -> pl.DataFrame:
    """Return a row for each of VERDICTS: what was said, what was true, what was known.

    FLOWS: source port -> name, algorithm. Columns: COLUMNS.
    """
    known = {sport: Flow(sport, taps, causes) for sport in {one["sport"] for one in verdicts}}
    rows = []
    for verdict in verdicts:
        lost = list(known[verdict["sport"]].lost(verdict))
        name, algorithm = flows[verdict["sport"]]
        rows.append(
            {
                "time_s": (verdict["time_ns"] - start_ns) / 1e9,
                "flow": name,
                "algorithm": algorithm,
                "said": verdict["verdict"],
                "truth": truth_of(lost),
                "at": verdict["at"],
                "lost_random_pkts": lost.count("random"),
                "lost_congestion_pkts": lost.count("congestion"),
                "backlog_pkts": verdict["backlog"] / BACKLOG_ONE,
                "jitter_ratio": round(verdict["jr"] / trace.JITTER_RATIO_ONE, 6),
                "jitter_ratio_smoothed": round(verdict["sjr"] / trace.JITTER_RATIO_ONE, 6),
            }
            | {name: verdict[name] for name in FIGURES}
        )
    return pl.DataFrame(rows, schema=COLUMNS)


def truth_of(causes: list[str]) -> str:
    """Return what a loss of packets dropped for CAUSES is."""
    return next((cause for cause in ("congestion", "random") if cause in causes), "none")


def judge_point(spec: dict, raw: Path, ends: list[dict], causes: dict[str, str]) -> pl.DataFrame:
    """Return judge() of the folder RAW of a point. ENDS: what labflow said of each flow at its
    end, in the order of SPEC's flows."""
    flows = trace.flows_by_port(spec, ends)  # the taps are on the whole way forward
    text = (raw / "trace.txt").read_text()
    return judge(
        [told for told in trace.events(text, *VERDICT_EVENTS) if told["sport"] in flows],
        {hop: read_tap(raw / f"tap-{hop}") for hop in spec["taps"]},
        causes,
        flows,
        trace.start_ns(spec, ends),
    )


# --- figures ------------------------------------------------------------------------------


def matrix(rows: pl.DataFrame) -> dict[str, int]:
    """Return the confusion matrix of ROWS: how often a loss that was X was said to be Y."""
    return {
        f"classified_{truth}_as_{said}": len(
            rows.filter((pl.col("truth") == truth) & (pl.col("said") == said))
        )
        for truth in ("random", "congestion", "none")
        for said in SAID
    }


def rates(counts: dict[str, int]) -> dict[str, float | None]:
    """Return recall (share of the losses that were X that were said to be X) and precision
    (share of the losses said to be X that were) from a matrix; None where there were none.
    Losses that were none are left out."""
    found = {}
    for name, other in (SAID, SAID[::-1]):
        right = counts[f"classified_{name}_as_{name}"]
        missed = counts[f"classified_{name}_as_{other}"]
        wrong = counts[f"classified_{other}_as_{name}"]
        found[f"classified_{name}_recall"] = right / (right + missed) if right + missed else None
        found[f"classified_{name}_precision"] = right / (right + wrong) if right + wrong else None
    return found
