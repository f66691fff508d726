# SPDX-License-Identifier: GPL-2.0-only
"""Hold what was measured against the rows' bounds and against the references of the same run.

A figure of one place *fails* where its median over seeds breaks the bound. Else it is *better* or
*worse* than all references if it is beyond the best or the worst of them by more than the margin,
and *within* otherwise. A reference is compared with the other references.

A row fails where one place of one figure does. It is worse where one of its figures is worse at a
quarter of its places or more, better where no figure is worse and one is better at half of the
places. Where a place has not all seeds, its own or those of a standard that it is held against, or
not all of a figure that has a bound, a row that fails nowhere cannot be judged. A section is what
the worst of its rows is; better if none is worse and one is better.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from lab.ask import parts
from lab.ask.parts import Scenario
from lab.judge.scorecard.figures import FIGURES, OF_RIVALS, Result, rivals
from lab.judge.scorecard.rows import REFERENCES, STANDARDS, Figure, Row, Section
from lab.measure.stats import Estimate, estimate

FAILS, WORSE, WITHIN, BETTER, NONE = "fails", "worse", "within", "better", "cannot be done"
VERDICTS = (FAILS, WORSE, WITHIN, BETTER, NONE)
WORSE_SHARE, BETTER_SHARE = 0.25, 0.5  # of a row's places
WORST_PLACES = 5

Place = tuple[tuple[str, Any], ...]  # (axis, value), in the scenario's order


@dataclass(frozen=True)
class Gap:
    """A place without all results, and WHY. LACKING: this kernel can do it with no algorithm."""

    place: Place
    why: str
    lacking: bool = False


# says of a row, an algorithm and a place why there is no result
WhyMissing = Callable[[Row, str, Place], Gap]


@dataclass(frozen=True)
class Cell:
    """One figure of one algorithm at one place. REGRET: how many times as bad as the best of the
    others, or as the bound that it breaks."""

    figure: Figure
    place: Place
    verdict: str
    value: Estimate | None = None
    regret: float = 0.0

    @property
    def text(self) -> str:
        if self.value is None:
            return "-"
        reading = FIGURES[self.figure.metric]
        return f"{reading.text(self.value.median)} {reading.unit}".rstrip()

    @property
    def interval(self) -> str:
        if self.value is None or self.value.n < 2:
            return ""
        reading = FIGURES[self.figure.metric]
        return f"[{reading.text(self.value.low)}, {reading.text(self.value.high)}]"


@dataclass(frozen=True)
class RowVerdict:
    """What came of a row for one algorithm."""

    row: Row
    algorithm: str
    verdict: str
    cells: tuple[Cell, ...] = ()
    missing: tuple[Gap, ...] = ()

    @property
    def kernel_lacks(self) -> bool:
        """Say whether what is missing is what the kernel can do with no algorithm."""
        return bool(self.missing) and all(gap.lacking for gap in self.missing)

    @property
    def lacking(self) -> bool:
        """Say whether the kernel can do nothing of the row, whoever is judged."""
        return self.kernel_lacks and len(self.missing) == len(places(self.row.scenario))

    def worst(self, count: int = 1) -> list[Cell]:
        """Return the cells of the COUNT worst places, the worst first."""
        order = {verdict: i for i, verdict in enumerate((FAILS, WORSE, WITHIN, BETTER))}
        there = [cell for cell in self.cells if cell.value is not None]
        there.sort(key=lambda cell: (order[cell.verdict], -cell.regret))
        worst: dict[Place, Cell] = {}
        for cell in there:
            worst.setdefault(cell.place, cell)
        return list(worst.values())[:count]

    def broken(self) -> list[tuple[Figure, list[Cell]]]:
        """Return the figures that break their bound, each with its cells there, worst first."""
        found = []
        for figure in self.row.figures:
            cells = [c for c in self.cells if c.figure is figure and c.verdict == FAILS]
            if cells:
                found.append((figure, sorted(cells, key=lambda cell: -cell.regret)))
        return found

    def tally(self, figure: Figure) -> dict[str, int]:
        """Return at how many places FIGURE came out how."""
        counts = dict.fromkeys((FAILS, WORSE, WITHIN, BETTER), 0)
        for cell in self.cells:
            if cell.figure is figure and cell.verdict in counts:
                counts[cell.verdict] += 1
        return counts


@dataclass
class Card:
    """All verdicts: of rows by (row id, algorithm), of sections by (number, algorithm)."""

    sections: list[Section]
    algorithms: list[str]
    rows: dict[tuple[str, str], RowVerdict] = field(default_factory=dict)
    totals: dict[tuple[str, str], str] = field(default_factory=dict)

    def failing(self, algorithm: str) -> list[RowVerdict]:
        """Return the rows that ALGORITHM fails, in order."""
        return self._with(algorithm, FAILS)

    def undone(self, algorithm: str) -> list[RowVerdict]:
        """Return the rows that could not be done with ALGORITHM, in order."""
        return self._with(algorithm, NONE)

    def _with(self, algorithm: str, verdict: str) -> list[RowVerdict]:
        rows = [self.rows[row.id, algorithm] for s in self.sections for row in s.rows]
        return [row for row in rows if row.verdict == verdict]


def judge(
    sections: list[Section],
    algorithms: Sequence[str],
    results: Iterable[Result],
    seeds: Sequence[int],
    why_missing: WhyMissing,
) -> Card:
    """Return the verdicts about ALGORITHMS, each of which was to have a result of all SEEDS at each
    place."""
    card = Card([section for section in sections if section.rows], list(algorithms))
    by_row = defaultdict(list)
    for result in results:
        by_row[result["scenario"]].append(result)
    for section in card.sections:
        for row in section.rows:
            values = _values(row, by_row[row.id])
            wanted = _wanted(row, by_row[row.id], values, len(seeds))
            there = defaultdict(set)
            for result in by_row[row.id]:
                there[result["algorithm"], _place(row, result)].add(result["seed"])
            short = {
                place: {name for name in STANDARDS if {*seeds} - there[name, place]}
                for place in places(row.scenario)
            }
            for algorithm in algorithms:
                missing = []
                for place in places(row.scenario):
                    count = len({*seeds} - there[algorithm, place])
                    if count:
                        gap = why_missing(row, algorithm, place)
                        of = f"{count} of {len(seeds)} seeds: " * (count < len(seeds))
                        missing.append(replace(gap, why=of + gap.why))
                card.rows[row.id, algorithm] = _row(row, algorithm, values, missing, wanted, short)
        for algorithm in algorithms:
            of = [card.rows[row.id, algorithm] for row in section.rows]
            card.totals[section.number, algorithm] = together(of)
    return card


def together(rows: list[RowVerdict]) -> str:
    """Return what ROWS make of their section. One that could not be done is never counted as
    passed; one that this kernel can do with nobody is left out, unless there is no other."""
    verdicts = {row.verdict for row in rows if not row.lacking} or {NONE}
    for verdict in (FAILS, WORSE, NONE, BETTER):
        if verdict in verdicts:
            return verdict
    return WITHIN


def places(scenario: Scenario) -> list[Place]:
    names = [axis.name for axis in scenario.axes]
    every = product(*(axis.values for axis in scenario.axes))
    return [tuple(zip(names, values, strict=True)) for values in every]


def place_text(scenario: Scenario, place: Place) -> str:
    """Return PLACE in words."""
    return parts.place_text(scenario.axes, [value for _, value in place])


def drawn_text(scenario: Scenario, place: Place) -> str:
    """Return what a seed drew at PLACE, nothing where it draws nothing."""
    parts = []
    for axis, (_, value) in zip(scenario.axes, place, strict=True):
        if axis.random:
            drawn = axis.drawn(value)
            parts += [f"{name} {drawn[name]}" for name in axis.places.draws if name in drawn]
    return ", ".join(parts)


Values = dict[tuple[Figure, Place, str], Estimate]
Wanted = dict[tuple[Figure, Place], int]  # of how many seeds


def _values(row: Row, results: list[Result]) -> Values:
    """Return the estimate over seeds of each figure, at each place, of each algorithm."""
    found = defaultdict(list)
    for result in results:
        for figure in row.figures:
            value = FIGURES[figure.metric].of(result)
            if value is not None:
                found[figure, _place(row, result), result["algorithm"]].append(float(value))
    return {key: estimate(values) for key, values in found.items()}


def _wanted(row: Row, results: list[Result], values: Values, seeds: int) -> Wanted:
    """Return of how many seeds each figure with a bound must have a value at each place: of as many
    as one algorithm has; if it is about rivals, of all where there are any."""
    wanted = defaultdict(int)
    for (figure, place, _), value in values.items():
        if figure.bound:
            wanted[figure, place] = max(wanted[figure, place], value.n)
    of_rivals = [f for f in row.figures if f.bound and f.metric.startswith(OF_RIVALS)]
    if of_rivals:
        contested = {_place(row, result) for result in results if rivals(result)}
        wanted |= dict.fromkeys(product(of_rivals, contested), seeds)
    return wanted


def _place(row: Row, result: Result) -> Place:
    return tuple((axis.name, result["axes"][axis.name]) for axis in row.scenario.axes)


def _row(
    row: Row,
    algorithm: str,
    values: Values,
    missing: list[Gap],
    wanted: Wanted,
    short: dict[Place, set[str]],
) -> RowVerdict:
    """SHORT: which standards have not all seeds at a place."""
    without = {gap.place for gap in missing}
    cells, unknown = [], []
    for place in places(row.scenario):
        if place in without:
            continue
        lacking = {
            figure: _lacking(figure, place, values, wanted, short[place]) for figure in row.figures
        }
        of_place = [
            _cell(figure, place, algorithm, values, bool(lacking[figure])) for figure in row.figures
        ]
        cells += of_place
        labels = [
            FIGURES[cell.figure.metric].label
            for cell in of_place
            if (cell.value.n if cell.value else 0) < wanted.get((cell.figure, place), 0)
        ]
        if labels:
            unknown.append(Gap(place, f"not measured in all seeds: {', '.join(labels)}"))
        if names := sorted(set().union(*lacking.values()) - {algorithm}):
            unknown.append(Gap(place, f"not all seeds of {' and '.join(names)} to be held against"))
    verdict = _row_verdict(row, cells)
    if (missing or unknown) and verdict != FAILS:
        verdict = NONE
    return RowVerdict(row, algorithm, verdict, tuple(cells), (*missing, *unknown))


def _lacking(
    figure: Figure, place: Place, values: Values, wanted: Wanted, short: set[str]
) -> set[str]:
    """Return the standards that FIGURE is held against and that have not all of it at PLACE."""
    lacking = short if figure.compared or figure.fails_times else set()
    if figure.fails_times:
        least = wanted.get((figure, place), 0)
        counts = {name: values.get((figure, place, name)) for name in STANDARDS}
        lacking = lacking | {n for n, value in counts.items() if (value.n if value else 0) < least}
    return lacking


def _row_verdict(row: Row, cells: list[Cell]) -> str:
    counted = [cell for cell in cells if cell.value is not None]
    if not counted:
        return NONE
    if any(cell.verdict == FAILS for cell in counted):
        return FAILS
    shares = []
    for figure in row.figures:
        of = [cell.verdict for cell in counted if cell.figure is figure]
        if of:
            shares.append((of.count(WORSE) / len(of), of.count(BETTER) / len(of)))
    if any(worse >= WORSE_SHARE for worse, _ in shares):
        return WORSE
    return BETTER if any(better >= BETTER_SHARE for _, better in shares) else WITHIN


def _cell(figure: Figure, place: Place, algorithm: str, values: Values, alone: bool) -> Cell:
    """ALONE: the standards have no result to hold it against."""
    value = values.get((figure, place, algorithm))
    if value is None:
        return Cell(figure, place, WITHIN)
    there = {
        name: values[figure, place, name].median
        for name in REFERENCES
        if (figure, place, name) in values
    }
    there = {} if alone else there
    standards = [median for name, median in there.items() if name in STANDARDS]
    others = [median for name, median in there.items() if name != algorithm]
    verdict = compare(figure, value.median, others, standards)
    return Cell(figure, place, verdict, value, _regret(figure, value.median, others, verdict))


def compare(figure: Figure, value: float, others: list[float], standards: list[float]) -> str:
    """Return the verdict about VALUE beside what the references (OTHERS) have, and those of them
    that are STANDARDS."""
    if figure.fails(value, standards):
        return FAILS
    if not figure.compared or not others:
        return WITHIN
    sign = 1 if figure.better == "less" else -1
    costs = [sign * other for other in others]
    worst, best = max(costs), min(costs)
    if sign * value > worst + max(figure.floor, figure.margin * abs(worst)):
        return WORSE
    if sign * value < best - max(figure.floor, figure.margin * abs(best)):
        return BETTER
    return WITHIN


def _regret(figure: Figure, value: float, others: list[float], verdict: str) -> float:
    if verdict == FAILS:
        if figure.fails_above is not None and value > figure.fails_above:
            return value / figure.fails_above if figure.fails_above else value
        return (figure.fails_below or 0.0) / max(value, 1e-9)
    if not others:
        return 0.0
    small = figure.floor or 1e-9
    if figure.better == "less":
        return (value + small) / (min(others) + small)
    return (max(others) + small) / (value + small)
