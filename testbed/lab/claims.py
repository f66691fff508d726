# SPDX-License-Identifier: GPL-2.0-only
"""Hold the claims of a scenario against its results."""

from dataclasses import dataclass
from typing import Any

from lab.scenario import Claim, Scenario
from lab.stats import Estimate, estimate


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
        where = ", ".join(
            value if isinstance(value, str) else f"{name} {value:g}"
            for name, value in self.claim.where.items()
        )
        against = f" / {self.claim.against}" if self.claim.against else ""
        at = f" at {where}" if where else ""
        return f"{self.claim.metric}, {self.claim.algorithm}{against}{at}"


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
    """Return the claim's figure per seed: the metric, or its ratio within one seed."""
    at = [
        result
        for result in results
        if all(result["axes"].get(axis) == value for axis, value in claim.where.items())
    ]
    mine = {_pair(r): r for r in at if r["algorithm"] == claim.algorithm}
    mine = {key: r for key, r in mine.items() if r[claim.metric] is not None}
    if not claim.against:
        return [r[claim.metric] for r in mine.values()]
    if claim.against == "bound":
        return [r[claim.metric] / r["bound_mbps"] for r in mine.values() if r["bound_mbps"]]
    theirs = {_pair(r): r for r in at if r["algorithm"] == claim.against}
    return [
        mine[key][claim.metric] / theirs[key][claim.metric]
        for key in mine
        if key in theirs and theirs[key][claim.metric]
    ]


def _pair(result: dict[str, Any]) -> tuple:
    return (result["seed"], *sorted(result["axes"].items()))
