# SPDX-License-Identifier: GPL-2.0-only
"""What tables and figures show: metrics by their names, algorithms by their looks, what was
measured at each place, and numbers as text. Nothing here draws."""

import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.ask.algorithms import ALGORITHMS
from lab.ask.parts import Scenario
from lab.ask.tables import AxisValue
from lab.measure.stats import Estimate, estimate

BOUND = "bound (1-p)C"


@dataclass(frozen=True)
class Metric:
    """How a key of results.jsonl is shown. BETTER: high, low, or nothing if neither is."""

    label: str
    unit: str
    digits: int
    better: str = ""

    @property
    def axis_label(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label


METRICS = {
    "goodput_mbps": Metric("Goodput", "Mb/s", 2, "high"),
    "goodput_whole_mbps": Metric("Goodput of the whole run", "Mb/s", 2, "high"),
    "goodput_test_mbps": Metric("Goodput of a flow of the row's algorithm", "Mb/s", 2, "high"),
    "goodput_other_mbps": Metric("Goodput of a flow beside it", "Mb/s", 2),
    "fair_share": Metric("Goodput of a flow of the row's algorithm over a fair share", "", 2),
    "retransmits": Metric("Retransmitted segments", "", 0),  # few: also who sends little
    "timeouts": Metric("Retransmission timeouts", "", 0, "low"),
    "queue_delay_ms_p50": Metric("Queueing delay, median", "ms", 1, "low"),
    "queue_delay_ms_p95": Metric("Queueing delay, 95th percentile", "ms", 1, "low"),
    "srtt_ms_p50": Metric("Smoothed RTT, median", "ms", 1, "low"),
    **{
        f"{key}_p{share}": Metric(f"{label}, {text}", "ms", 1, "low")
        for key, label in (
            ("owd_ms", "One-way delay of packets"),
            ("self_delay_ms", "One-way delay in queues"),
        )
        for share, text in ((50, "median"), (95, "95th percentile"), (99, "99th percentile"))
    },
    **{
        f"standing_queue_{key}_p{share}": Metric(f"Standing queue, {text}", unit, 1, "low")
        for key, unit in (("ms", "ms"), ("pkts", "packets"))
        for share, text in ((50, "median"), (95, "95th percentile"))
    },
    "standing_queue_flow_pkts_p50": Metric("Standing queue, median", "packets a flow", 1, "low"),
    "power_mbps_per_s": Metric("Power: goodput over that delay", "Mb/s/s", 1, "high"),
    "loss_random": Metric("Packets lost at random", "", 0),
    "loss_congestion": Metric("Packets dropped by a full queue", "", 0),
    "queue_drop_pct": Metric("Packets dropped by queues", "%", 2, "low"),
    "queue_drop_start_pct": Metric("Packets dropped by queues, of a flow's start", "%", 2, "low"),
    "queue_drop_steady_pct": Metric("Packets dropped by queues, after the start", "%", 2, "low"),
    "goodput_variation": Metric("Goodput, standard deviation over mean", "", 2, "low"),
    "timeouts_per_flow": Metric("Retransmission timeouts of a flow", "", 1, "low"),
    "recovery_s": Metric("Time until 0.8 of a new rate is carried", "s", 1, "low"),
    "unrecovered": Metric("Changes of the path after which it never was", "", 0, "low"),
    "time_to_fair_s": Metric("Time until the shares are fair", "s", 1, "low"),
    "never_fair": Metric("Runs whose shares were never fair", "", 0, "low"),
    "ce_marks": Metric("Packets marked instead of dropped (ECN)", "", 0),
    "jain": Metric("Jain's fairness index", "", 3, "high"),
    "fct_s_p50": Metric("Completion time, median flow", "s", 2, "low"),
    "fct_s_p95": Metric("Completion time, 95th percentile", "s", 2, "low"),
    "unfinished": Metric("Flows that were not ready at the end", "", 0, "low"),
    **{
        f"harm_{key}": Metric(f"Harm to the rivals' {what}", "", 2, "low")
        for key, what in (
            ("goodput", "goodput"),
            ("goodput_worst", "goodput, of the flow that has least"),
            ("delay", "delay"),
            ("loss", "losses"),
            ("timeouts", "timeouts"),
            ("completion", "completion times"),
        )
    },
    **{
        f"classified_{truth}_as_{said}": Metric(f"Losses ({truth}) said to be {said}", "", 0)
        for truth in ("random", "congestion", "none")
        for said in ("random", "congestion")
    },
    **{
        f"classified_{kind}_{rate}": Metric(f"{rate.capitalize()} of {kind} loss", "", 3, "high")
        for kind in ("random", "congestion")
        for rate in ("recall", "precision")
    },
    "jr_zero_pct": Metric("Samples of the jitter ratio that are 0", "%", 1),
    "jr_below_pct": Metric("Samples of the raw jitter ratio below 1/2w", "%", 1),
    "sjr_below_pct": Metric("Samples of the smoothed jitter ratio below 1/2w", "%", 1),
    "jr_w_p50": Metric("Raw jitter ratio, median", "1/w", 2),
    "sjr_w_p50": Metric("Smoothed jitter ratio, median", "1/w", 2),
    "rtt_ms_mean": Metric("Smoothed RTT, mean", "ms", 0, "low"),
    "rtt_ms_p95": Metric("Smoothed RTT, 95th percentile", "ms", 0, "low"),
    "rtt_ms_sd": Metric("Smoothed RTT, standard deviation in a flow", "ms", 0, "low"),
    "retry_drops": Metric("Packets given up at a retry limit", "", 0, "low"),
    "queue_drops": Metric("Packets dropped by a full queue on their way", "", 0, "low"),
    "own_queue_drops": Metric("Packets dropped by their sender's own full queue", "", 0, "low"),
    "drops_per_s": Metric("Packets given up or dropped", "1/s", 2, "low"),
    "collisions": Metric("Frames from a node in range that could not be decoded", "", 0),
    "busy_pct_max": Metric("Channel busy, at the node where it is most", "%", 1),
    "jain_by_hops_min": Metric("Jain's index of flows with as many hops, least", "", 3, "high"),
}


@dataclass(frozen=True)
class Style:
    colour: str
    marker: str
    dash: Any
    ours: bool

    @property
    def width(self) -> float:
        return 2.3 if self.ours else 1.2


# Ours: the saturated colours of Okabe and Ito's set, which colour-blind readers tell apart, in
# solid lines. The kernel's: muted, told apart by marker and dash.
OURS = {
    "jtcp": ("#d55e00", "o"),
    "veno03": ("#0072b2", "s"),
    "tabe": ("#009e73", "^"),
    "veno_jitter": ("#c2187a", "D"),
    "wccp": ("#e0a000", "v"),
    "uddj": ("#7a3fb0", "P"),
    "classify": ("#3f51b5", "p"),
    "tfrc": ("#00838f", "X"),
    "wireless": ("#8a6d1a", "*"),
    "jsctp_abe": ("#b02020", "<"),
    "jsctp": ("#c98b00", ">"),
    "rfc9260": ("#4b4a8f", "d"),
}
PEERS = {
    "reno": ("#7f8792", "o", (0, (5, 2))),
    "cubic": ("#5f7288", "s", (0, (3, 1.5))),
    "veno": ("#86a8c4", "^", (0, (1, 1.2))),
    "westwood": ("#8f9a6b", "v", (0, (6, 2, 1, 2))),
    "vegas": ("#a68aa8", "D", (0, (2, 2))),
    "illinois": ("#b0906c", "P", (0, (4, 2, 1, 2, 1, 2))),
    "cdg": ("#88a89c", "X", (0, (1, 2.5))),
    "bbr": ("#33383f", "*", (0, (7, 1.5))),
    "sctp": ("#7a7f5f", "d", (0, (4, 1, 1, 1))),
}
SPARE = ("#56b4e9", "#b8860b", "#8c564b", "#6a51a3", "#2f6f4f")

Place = tuple[AxisValue, ...]  # one value for each axis, in the scenario's order
Cells = dict[tuple[str, Place], Estimate]


def style(name: str) -> Style:
    """Return how NAME looks, in every figure alike."""
    known = ALGORITHMS.get(name)
    ours = known.ours if known else name in OURS
    spare = SPARE[hashlib.sha256(name.encode()).digest()[0] % len(SPARE)]
    if ours:
        colour, marker = OURS.get(name, (spare, "h"))
        return Style(colour, marker, "-", True)
    colour, marker, dash = PEERS.get(name, (spare, "p", (0, (3, 2))))
    return Style(colour, marker, dash, False)


def metric(name: str) -> Metric:
    return METRICS.get(name) or Metric(name, "", 2)


def place(scenario: Scenario, result: dict[str, Any]) -> Place:
    return tuple(result["axes"].get(axis.name, math.nan) for axis in scenario.axes)


def places(scenario: Scenario) -> list[Place]:
    """Return every combination of axis values, sorted; one empty tuple without axes."""
    return list(itertools.product(*(axis.levels for axis in scenario.axes)))


def estimates(scenario: Scenario, results: Iterable[dict], name: str) -> Cells:
    """Return the metric NAME per algorithm and place, estimated over the seeds."""
    values: dict[tuple[str, Place], list[float]] = defaultdict(list)
    for result in results:
        if result.get(name) is not None:
            values[result["algorithm"], place(scenario, result)].append(result[name])
    return {key: estimate(found) for key, found in values.items()}


def bounds(scenario: Scenario, results: Iterable[dict]) -> dict[Place, float]:
    """Return the bound (1-p)C per place, in Mb/s of goodput: of traces, whose seeds differ, the
    median."""
    found: dict[Place, list[float]] = defaultdict(list)
    for result in results:
        found[place(scenario, result)].append(result["bound_mbps"])
    return {at: median(values) for at, values in found.items()}


def algorithms_in(scenario: Scenario, results: Iterable[dict]) -> list[str]:
    """Return the algorithms that have results, ours first, in the scenario's order."""
    found = dict.fromkeys(result["algorithm"] for result in results)
    order = [*scenario.run.algorithms, *found]
    return sorted((name for name in dict.fromkeys(order) if name in found), key=_ours_first)


def _ours_first(name: str) -> bool:
    return not style(name).ours


# --- text ---------------------------------------------------------------------------------


def number(value: float, digits: int) -> str:
    """Return VALUE with DIGITS decimals, fewer for large values; halves of counts are kept."""
    if digits == 0 and value != round(value) and abs(value) < 100:
        return f"{value:.1f}"
    if abs(value) >= 1000:
        digits = 0
    elif abs(value) >= 100:
        digits = min(digits, 1)
    return f"{value:.{digits}f}"


def interval(value: Estimate, shown: Metric) -> str:
    """Return [low, high], or nothing where one run is all there is."""
    if value.n < 2:
        return ""
    return f"[{number(value.low, shown.digits)}, {number(value.high, shown.digits)}]"


def text(value: Estimate, shown: Metric) -> str:
    return f"{number(value.median, shown.digits)} {interval(value, shown)}".rstrip()
