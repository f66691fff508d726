# SPDX-License-Identifier: GPL-2.0-only
"""Hold the claims of a scenario against its results.

A claim that does not name a value of an axis has to hold at each, and is what came of the worst of
these places. Where a seed that was planned has no figure, it is undecided.
"""

import math
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from lab.ask.figures import LIMITS
from lab.ask.parts import Claim, Scenario
from lab.ask.tables import AxisValue
from lab.measure.metrics import mean_goodput_mbps
from lab.measure.stats import Estimate, estimate

HOLDS, FAILS, UNDECIDED, NOT_MEASURED = "holds", "does not hold", "undecided", "not measured"

Place = tuple[tuple[str, AxisValue], ...]  # (axis, value)


@dataclass(frozen=True)
class Verdict:
    """VALUE is the metric, or its ratio to the other side's seed by seed; None: no such points.
    PLACE: where that is, the worst of those that the claim is about; MISSING: so many seeds have
    no figure there."""

    claim: Claim
    value: Estimate | None
    verdict: str  # one of those above
    place: dict[str, AxisValue] = field(default_factory=dict)
    missing: int = 0

    @property
    def bound(self) -> str:
        parts = []
        if self.claim.at_least is not None:
            parts.append(f">= {self.claim.at_least:g}")
        if self.claim.at_most is not None:
            parts.append(f"<= {self.claim.at_most:g}")
        return " and ".join(parts)

    @property
    def at(self) -> str:
        """Return the worst place in words, nothing if there is one only."""
        return _at(self.place).strip()

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


def judge(
    scenario: Scenario, results: list[dict[str, Any]], seeds: Collection[int] = ()
) -> list[Verdict]:
    """Return what came of each claim. SEEDS: those that were to run, if not those of RESULTS."""
    return [_judge(claim, results, seeds, *_places(scenario, claim)) for claim in scenario.claims]


def unasked(scenario: Scenario, claim: Claim) -> str:
    """Return why no point of SCENARIO has what CLAIM is about; nothing if there are such points."""
    axes = {axis.name: axis for axis in scenario.axes}
    for name, value in [*claim.where.items(), *claim.against_where.items()]:
        if value not in axes[name].levels:
            return f"{name} has no {axes[name].text(value)}"
    for name in (claim.algorithm, claim.against):
        if name and name not in (*LIMITS, *scenario.run.algorithms):
            return f"{name} is not among the algorithms"
    return ""


def asked(scenario: Scenario) -> dict[str, list[AxisValue]]:
    """Return for each axis of SCENARIO the values that its claims name, of one that none of them
    names the first."""
    named = [at for claim in scenario.claims for at in (claim.where, claim.against_where)]
    return {
        axis.name: [value for value in axis.levels if value in [at.get(axis.name) for at in named]]
        or axis.levels[:1]
        for axis in scenario.axes
    }


def _places(scenario: Scenario, claim: Claim) -> tuple[list[Place], int]:
    """Return each place at which CLAIM has to hold, and how many points of a seed each is: a
    random place is a draw, as a seed is, and so are all places of a claim about them together."""
    pinned = claim.where.keys() | claim.against_where.keys()
    free = [axis for axis in scenario.axes if axis.name not in pinned]
    apart = [axis for axis in free if not (axis.random or claim.together)]
    places = product(*([(axis.name, value) for value in axis.values] for axis in apart))
    return list(places), math.prod(len(axis.values) for axis in free if axis not in apart)


def _judge(
    claim: Claim,
    results: list[dict[str, Any]],
    seeds: Collection[int] = (),
    places: Sequence[Place] = ((),),
    draws: int = 1,
) -> Verdict:
    values = _values(claim, results)
    if not values:
        return Verdict(claim, None, NOT_MEASURED)
    planned = len({*seeds} or {result["seed"] for result in results}) * draws
    found = []
    for place in places:
        here = [value for (_, *at), value in values.items() if {*place} <= {*at}]
        found.append(_verdict(claim, here, planned - len(here), place))
    return min(found, key=_from_worst)


def _verdict(claim: Claim, values: list[float], missing: int, place: Place) -> Verdict:
    """Return what VALUES say of CLAIM at PLACE; nothing is certain where some are MISSING."""
    value = estimate(values) if values else None
    low = claim.at_least if claim.at_least is not None else float("-inf")
    high = claim.at_most if claim.at_most is not None else float("inf")
    verdict = UNDECIDED
    if value and missing <= 0:
        if low <= value.low and value.high <= high:
            verdict = HOLDS
        elif value.high < low or value.low > high:
            verdict = FAILS
    return Verdict(claim, value, verdict, dict(place), max(missing, 0))


def _from_worst(verdict: Verdict) -> tuple[float, ...]:
    """Return what verdicts of places are ordered by: what came of them, whether there is a figure,
    and how far its median is from the bound."""
    order = (FAILS, UNDECIDED, HOLDS).index(verdict.verdict)
    if verdict.value is None:
        return order, 1, 0
    median, claim = verdict.value.median, verdict.claim
    below = [claim.at_least - median] if claim.at_least is not None else []
    above = [median - claim.at_most] if claim.at_most is not None else []
    return order, 0, -max(below + above)


def _values(claim: Claim, results: list[dict[str, Any]]) -> dict[tuple, float]:
    """Return the claim's figure by seed and values of those axes that it does not name: the metric,
    or its ratio within one seed. What is more than nothing is infinitely more, and nothing is as
    much as nothing."""
    pinned = claim.where.keys() | claim.against_where.keys()
    mine = _paired(claim.algorithm, claim.where, pinned, results)
    mine = {key: r for key, r in mine.items() if _figure(claim, r) is not None}
    if not claim.against:
        return {key: _figure(claim, r) for key, r in mine.items()}
    if claim.against in LIMITS:
        limit = f"{claim.against}_mbps"
        return {key: _ratio(_figure(claim, r), r[limit]) for key, r in mine.items()}
    theirs = _paired(claim.against, claim.where | claim.against_where, pinned, results)
    return {
        key: _ratio(_figure(claim, mine[key]), _figure(claim, theirs[key]))
        for key in mine
        if key in theirs and _figure(claim, theirs[key]) is not None
    }


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
