# SPDX-License-Identifier: GPL-2.0-only
"""What a run found over random places: how a figure is distributed over them, at how many it lies
beyond a mark, and which places are the worst. A column or a tick for each place tells nobody
anything: places have numbers, and no order."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.ask.figures import LIMITS
from lab.ask.parts import Scenario, place_text
from lab.ask.places import Mark
from lab.ask.tables import AxisValue
from lab.measure.stats import Estimate, estimate
from lab.show import facts
from lab.show.facts import Place

FEW = 8  # places that a table can well show one by one
QUANTILES_PCT = (5, 25, 75, 95)  # besides the median
WORST = 5
SHARE = facts.Metric("Goodput over the bound (1-p)C", "", 3, "high")

Values = dict[tuple[str, Place], float]  # (algorithm, place) -> a figure, the median of its seeds


@dataclass(frozen=True)
class Spread:
    """How a figure of one algorithm is distributed over places: VALUES, ascending."""

    values: tuple[float, ...]
    median: Estimate

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def quantiles(self) -> list[float]:
        return [float(q) for q in np.percentile(self.values, QUANTILES_PCT)]


def axis_index(scenario: Scenario) -> int | None:
    """Return which axis of SCENARIO has random places, more than FEW of them; None if none has."""
    for i, axis in enumerate(scenario.axes):
        if axis.random and len(axis.levels) > FEW:
            return i
    return None


def applies(scenario: Scenario) -> bool:
    return axis_index(scenario) is not None


def metric(name: str) -> facts.Metric:
    """Return how the figure NAME is shown over places: a rate as its share of what a path can
    carry, since rates of different paths have no common scale."""
    shown = facts.metric(name)
    if not is_rate(name):
        return shown
    label = SHARE.label.replace("Goodput", shown.label, 1)
    return facts.Metric(label, SHARE.unit, SHARE.digits, shown.better)


def is_rate(name: str) -> bool:
    return facts.metric(name).unit == "Mb/s"


def values(scenario: Scenario, results: Iterable[dict[str, Any]], name: str) -> Values:
    """Return the figure NAME, of rates the share, by algorithm and place."""
    if is_rate(name):
        results = [
            r | {name: r[name] / r["bound_mbps"]}
            for r in results
            if r.get(name) is not None and r["bound_mbps"]
        ]
    cells = facts.estimates(scenario, results, name)
    return {key: cell.median for key, cell in cells.items()}


def rests(scenario: Scenario) -> list[Place]:
    """Return every combination of what further axes have; one empty tuple if there are none."""
    at = axis_index(scenario)
    return list(itertools.product(*(a.levels for i, a in enumerate(scenario.axes) if i != at)))


def rest_text(scenario: Scenario, rest: Place) -> str:
    at = axis_index(scenario)
    others = [axis for i, axis in enumerate(scenario.axes) if i != at]
    return place_text(others, rest)


def _rest(scenario: Scenario, place: Place) -> Place:
    at = axis_index(scenario)
    return tuple(value for i, value in enumerate(place) if i != at)


def spreads(
    scenario: Scenario, results: Iterable[dict[str, Any]], name: str
) -> dict[tuple[str, Place], Spread]:
    """Return how the figure NAME is distributed over places, by algorithm and further axes."""
    found: dict[tuple[str, Place], list[float]] = {}
    for (algorithm, place), value in values(scenario, results, name).items():
        found.setdefault((algorithm, _rest(scenario, place)), []).append(value)
    return {key: Spread(tuple(sorted(of)), estimate(of)) for key, of in found.items()}


# --- marks ----------------------------------------------------------------------------------


def marks(scenario: Scenario, name: str) -> list[Mark]:
    """Return the marks of the figure NAME: what the places declare, and the bounds of claims that
    are about all of them."""
    index = axis_index(scenario)
    if index is None:
        return []
    axis = scenario.axes[index]
    found = [mark for mark in axis.places.marks if mark.metric == name]
    for claim in scenario.claims:
        pinned = {*claim.where, *claim.against_where}
        if claim.metric == name and not claim.flows and not pinned:
            if claim.at_least is not None:
                found.append(Mark(name, below=claim.at_least, against=claim.against))
            if claim.at_most is not None:
                found.append(Mark(name, above=claim.at_most, against=claim.against))
    return list(dict.fromkeys(found))


def marked(scenario: Scenario) -> list[str]:
    """Return the figures that random places of SCENARIO have marks of."""
    index = axis_index(scenario)
    if index is None:
        return []
    return list(dict.fromkeys(mark.metric for mark in scenario.axes[index].places.marks))


def mark_text(mark: Mark) -> str:
    side = f"above {mark.above:g}" if mark.below is None else f"below {mark.below:g}"
    of = "the bound" if mark.against == "bound" else mark.against
    return f"{side} of {of}" if mark.against else side


def beyond(
    scenario: Scenario, results: list[dict[str, Any]], mark: Mark
) -> dict[tuple[str, Place], tuple[int, int]]:
    """Return at how many places each algorithm is beyond MARK, and of how many, by further axes.
    Who a mark is against is not held against itself."""
    name = mark.metric
    if mark.against in LIMITS:
        limit = f"{mark.against}_mbps"
        results = [
            r | {name: r[name] / r[limit]}
            for r in results
            if r.get(name) is not None and r.get(limit)
        ]
    cells = facts.estimates(scenario, results, name)
    found: dict[tuple[str, Place], tuple[int, int]] = {}
    for (algorithm, place), cell in cells.items():
        value = cell.median
        if mark.against and mark.against not in LIMITS:
            other = cells.get((mark.against, place))
            if algorithm == mark.against or other is None or not other.median:
                continue
            value /= other.median
        count, of = found.get((algorithm, _rest(scenario, place)), (0, 0))
        found[algorithm, _rest(scenario, place)] = (count + mark.is_beyond(value), of + 1)
    return found


# --- the worst places -----------------------------------------------------------------------


def worst(
    scenario: Scenario, results: list[dict[str, Any]], name: str, algorithm: str
) -> list[Place]:
    """Return the WORST places of ALGORITHM by the figure NAME, the worst one first."""
    sign = -1 if metric(name).better == "low" else 1
    found = values(scenario, results, name)
    places = [place for (who, place) in found if who == algorithm]
    return sorted(places, key=lambda place: (sign * found[algorithm, place], place))[:WORST]


def drawn_text(scenario: Scenario, place: Place) -> str:
    """Return what was drawn for PLACE, as far as it counts there."""
    index = axis_index(scenario)
    if index is None:
        return ""
    drawn = scenario.axes[index].places.counting(int(place[index]))
    return ", ".join(f"{name} {_drawn_value(value)}" for name, value in drawn.items())


def _drawn_value(value: AxisValue) -> str:
    return value if isinstance(value, str) else f"{value:g}"
