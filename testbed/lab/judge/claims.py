# SPDX-License-Identifier: GPL-2.0-only
"""Hold the claims of a scenario against its results."""

import math
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from lab.ask.figures import LIMITS
from lab.ask.parts import Claim, Scenario
from lab.ask.tables import AxisValue
from lab.measure.metrics import mean_goodput_mbps
from lab.measure.stats import Estimate, estimate


@dataclass(frozen=True)
class Verdict:
    """VALUE is the metric, or its ratio to the other side's seed by seed; None: no such points."""

    claim: Claim
    value: Estimate | None
    verdict: str  # holds, does not hold, undecided, not measured

    @property
    def bound(self) -> str:
        parts = []
        if self.claim.at_least is not None:
            parts.append(f">= {self.claim.at_least:g}")
        if self.claim.at_most is not None:
            parts.append(f"<= {self.claim.at_most:g}")
        return " and ".join(parts)

    @property
    def subject(self) -> str:
        at, base = _at(self.claim.where), _at(self.claim.against_where)
        against = f" / {self.claim.against}{base}" if self.claim.against else ""
        of = f" of {self.claim.flows}" if self.claim.flows else ""
        if base:
            return f"{self.claim.metric}{of}, {self.claim.algorithm}{at}{against}"
        return f"{self.claim.metric}{of}, {self.claim.algorithm}{against}{at}"


def _at(where: dict[str, AxisValue]) -> str:
    values = (v if isinstance(v, str) else f"{name} {v:g}" for name, v in where.items())
    return f" at {', '.join(values)}" if where else ""


def judge(scenario: Scenario, results: list[dict[str, Any]]) -> list[Verdict]:
    return [_judge(claim, results) for claim in scenario.claims]


def _judge(claim: Claim, results: list[dict[str, Any]]) -> Verdict:
    values = _values(claim, results)
    if not values:
        return Verdict(claim, None, "not measured")
    value = estimate(values)
    low = claim.at_least if claim.at_least is not None else float("-inf")
    high = claim.at_most if claim.at_most is not None else float("inf")
    if low <= value.low and value.high <= high:
        verdict = "holds"
    elif value.high < low or value.low > high:
        verdict = "does not hold"
    else:
        verdict = "undecided"
    return Verdict(claim, value, verdict)


def _values(claim: Claim, results: list[dict[str, Any]]) -> list[float]:
    """Return the claim's figure per seed: the metric, or its ratio within one seed. What is more
    than nothing is infinitely more, and nothing is as much as nothing."""
    pinned = claim.where.keys() | claim.against_where.keys()
    mine = _paired(claim.algorithm, claim.where, pinned, results)
    mine = {key: r for key, r in mine.items() if _figure(claim, r) is not None}
    if not claim.against:
        return [_figure(claim, r) for r in mine.values()]
    if claim.against in LIMITS:
        limit = f"{claim.against}_mbps"
        return [_ratio(_figure(claim, r), r[limit]) for r in mine.values()]
    theirs = _paired(claim.against, claim.where | claim.against_where, pinned, results)
    return [
        _ratio(_figure(claim, mine[key]), _figure(claim, theirs[key]))
        for key in mine
        if key in theirs and _figure(claim, theirs[key]) is not None
    ]


def _ratio(a: float, b: float) -> float:
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else 1.0


def _figure(claim: Claim, result: dict[str, Any]) -> float | None:
    if claim.flows:
        return mean_goodput_mbps(result, claim.flows)
    return result.get(claim.metric)


def _paired(
    algorithm: str, where: dict[str, AxisValue], pinned: Set[str], results: list[dict[str, Any]]
) -> dict[tuple, dict[str, Any]]:
    """Return ALGORITHM's results at WHERE by what pairs them: the seed and all axes that the
    claim has not PINNED."""
    return {
        (r["seed"], *sorted((a, v) for a, v in r["axes"].items() if a not in pinned)): r
        for r in results
        if r["algorithm"] == algorithm
        and all(r["axes"].get(axis) == value for axis, value in where.items())
    }
