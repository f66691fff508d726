# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a run: a metric's medians with their intervals, algorithms against places."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from lab.ask.parts import Axis, Flow, Scenario, axis_text, place_text
from lab.ask.places import Mark
from lab.measure.metrics import mean_goodput_mbps
from lab.measure.stats import Estimate
from lab.show import facts, overplaces
from lab.show.facts import Cells, Metric, Place

HEADLINE = "goodput_mbps"
HARM = "harm_goodput"


@dataclass(frozen=True)
class Cell:
    """One table cell. RANK: best, tied (its interval meets the best's), or nothing; words, if it is
    no figure."""

    median: str
    interval: str = ""
    rank: str = ""
    n: int = 0  # seeds, where fewer than elsewhere in the table

    @property
    def text(self) -> str:
        return f"{self.median} {self.interval}".rstrip()


MISSING = Cell("-")


@dataclass(frozen=True)
class Row:
    name: str
    ours: bool
    cells: list[Cell]


@dataclass(frozen=True)
class MetricTable:
    """Algorithms against places. GROUPS: spanning heads (text, columns) of further axes."""

    id: str
    title: str
    note: str
    groups: list[tuple[str, int]]
    columns: list[str]
    corner: str
    bound: list[str]
    rows: list[Row]

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """The heads of the columns, and whether what is below is words."""
        cells = self.rows[0].cells if self.rows else [MISSING] * len(self.columns)
        return [
            (text, cell.rank == "words") for text, cell in zip(self.columns, cells, strict=True)
        ]


def metric_table(
    scenario: Scenario, results: list[dict], name: str, names: list[str], *, whole: bool = True
) -> MetricTable:
    """Return the table of one metric: a row per algorithm, a column per place; over random places
    how it is distributed, and, if it is of the WHOLE of the flows, how often beyond marks."""
    if overplaces.applies(scenario):
        marks = overplaces.marks(scenario, name) if whole else []
        return _distribution_table(scenario, results, name, names, marks)
    shown, cells = facts.metric(name), facts.estimates(scenario, results, name)
    limits = facts.bounds(scenario, results) if name == HEADLINE else {}
    columns = _columns(scenario)
    rows = [Row(n, facts.style(n).ours, _row(n, columns, cells, shown)) for n in names]
    bound = [facts.number(limits[p], shown.digits) if p in limits else "-" for p in columns]
    better = {"high": "higher is better", "low": "lower is better"}.get(shown.better, "")
    first = scenario.axes[0] if scenario.axes else None
    together = " of all flows together" if name == HEADLINE and is_mixed(results) else ""
    return MetricTable(
        id=name,
        title=shown.label + together,
        note=", ".join(filter(None, (shown.unit, better))),
        groups=_groups(scenario, columns),
        columns=[_column_text(first, place) for place in columns],
        corner=axis_text(first) if first else "",
        bound=bound if limits else [],
        rows=rows,
    )


def _distribution_table(
    scenario: Scenario, results: list[dict], name: str, names: list[str], marks: list[Mark]
) -> MetricTable:
    """Return the table of how one metric is distributed over random places, by algorithm."""
    shown, found = overplaces.metric(name), overplaces.spreads(scenario, results, name)
    beyond = [overplaces.beyond(scenario, results, mark) for mark in marks]
    below, above = overplaces.QUANTILES_PCT[:2], overplaces.QUANTILES_PCT[2:]
    heads = [f"{pct} %" for pct in below] + ["median [interval]"] + [f"{pct} %" for pct in above]
    heads += ["mean", *map(overplaces.mark_text, marks), "places"]
    groups = [
        (overplaces.rest_text(scenario, rest), len(heads)) for rest in overplaces.rests(scenario)
    ]
    rows = []
    for who in names:
        cells = []
        for rest in overplaces.rests(scenario):
            spread = found.get((who, rest))
            if spread is None:
                cells += [MISSING] * len(heads)
                continue
            peers = [as_shown(of.median, shown) for (_, at), of in found.items() if at == rest]
            median = Cell(
                facts.number(spread.median.median, shown.digits),
                facts.interval(spread.median, shown),
                _rank(as_shown(spread.median, shown), peers, shown.better),
            )
            low, lower, higher, high = (
                Cell(facts.number(value, shown.digits)) for value in spread.quantiles
            )
            mean = Cell(facts.number(spread.mean, shown.digits))
            counts = [_count_cell(of.get((who, rest))) for of in beyond]
            places = Cell(str(len(spread.values)))
            cells += [low, lower, median, higher, high, mean, *counts, places]
        rows.append(Row(who, facts.style(who).ours, cells))
    better = {"high": "higher is better", "low": "lower is better"}.get(shown.better, "")
    together = " of all flows together" if name == HEADLINE and is_mixed(results) else ""
    return MetricTable(
        id=name,
        title=shown.label + together,
        note=", ".join(filter(None, (shown.unit, "over all places", better))),
        groups=groups if len(groups) > 1 else [],
        columns=heads * len(groups),
        corner="algorithm",
        bound=[],
        rows=rows,
    )


def _count_cell(count: tuple[int, int] | None) -> Cell:
    return Cell(f"{count[0]} ({100 * count[0] / count[1]:.0f} %)") if count else MISSING


def worst_tables(scenario: Scenario, results: list[dict], names: list[str]) -> list[MetricTable]:
    """Return for each algorithm the random places at which it carries the least of what could be,
    what others carry there, and what was drawn."""
    if not overplaces.applies(scenario):
        return []
    shown, found = overplaces.metric(HEADLINE), overplaces.values(scenario, results, HEADLINE)
    tables = []
    for who in names:
        order = [who, *(name for name in names if name != who)]
        rows = []
        for place in overplaces.worst(scenario, results, HEADLINE, who):
            there = [found.get((name, place)) for name in order]
            cells = [MISSING if v is None else Cell(facts.number(v, shown.digits)) for v in there]
            cells.append(Cell(overplaces.drawn_text(scenario, place), rank="words"))
            where = zip(scenario.axes, place, strict=True)
            text = ", ".join(axis.text(value) for axis, value in where)
            rows.append(Row(text, False, cells))
        if rows:
            tables.append(
                MetricTable(
                    id=f"worst-{who}",
                    title=f"Where {who} carries least of the bound",
                    note="what counts of what was drawn there",
                    groups=[],
                    columns=[*order, "drawn"],
                    corner=", ".join(axis.label or axis.name for axis in scenario.axes),
                    bound=[],
                    rows=rows,
                )
            )
    return tables


def _columns(scenario: Scenario) -> list[Place]:
    """Return the places with the first axis running fastest, further axes as groups."""
    levels = [axis.levels for axis in scenario.axes]

    def rank(place: Place) -> list[int]:
        return [known.index(value) for known, value in zip(levels, place, strict=True)]

    return sorted(facts.places(scenario), key=lambda place: (rank(place)[1:], rank(place)[:1]))


def _groups(scenario: Scenario, columns: list[Place]) -> list[tuple[str, int]]:
    if len(scenario.axes) < 2:
        return []
    span = len(scenario.axes[0].levels)
    heads = list(dict.fromkeys(place[1:] for place in columns))
    return [(place_text(scenario.axes[1:], h), span) for h in heads]


def _column_text(first: Axis | None, place: Place) -> str:
    return first.text(place[0]) if first else "median [interval]"


def _row(name: str, columns: list[Place], cells: Cells, shown: Metric) -> list[Cell]:
    usual = max((value.n for value in cells.values()), default=0)
    row = []
    for place in columns:
        value = cells.get((name, place))
        if value is None:
            row.append(MISSING)
            continue
        peers = [as_shown(other, shown) for (_, at), other in cells.items() if at == place]
        row.append(
            Cell(
                facts.number(value.median, shown.digits),
                facts.interval(value, shown),
                _rank(as_shown(value, shown), peers, shown.better),
                value.n if value.n < usual else 0,
            )
        )
    return row


def as_shown(value: Estimate, shown: Metric) -> Estimate:
    """Return VALUE as a reader sees it: what looks equal is not ranked."""
    median, low, high = (
        float(facts.number(figure, shown.digits))
        for figure in (value.median, value.low, value.high)
    )
    return replace(value, median=median, low=low, high=high)


def _rank(value: Estimate, peers: list[Estimate], better: str) -> str:
    """Say whether VALUE is the best of PEERS, or its interval meets the best one's."""
    if not better:
        return ""
    sign = 1 if better == "high" else -1
    best = max(peers, key=lambda other: sign * other.median)
    if all(other.median == best.median for other in peers):
        return ""
    if value.median == best.median:
        return "best"
    return "tied" if value.low <= best.high and best.low <= value.high else ""


def cross_tables(scenario: Scenario, results: list[dict], names: list[str]) -> list[MetricTable]:
    """Return the goodput of each kind of TCP cross traffic, which no other figure has; on a
    wireless chain of each kind of flow, if there are several."""
    cross = [flow for flow in scenario.flows if flow.is_cross(scenario.topology)]
    if scenario.medium and len(scenario.flows) > 1:
        cross = list(scenario.flows)
    return [flow_table(scenario, results, f, names) for f in cross if not f.is_udp]


def flow_table(
    scenario: Scenario, results: list[dict], flow: Flow, names: list[str]
) -> MetricTable:
    """Return the table of the mean goodput of the flows that one [[flows]] entry stands for, and
    of the least and the most of them if there are several: a mean hides who got nothing."""

    def rates_of(result: dict[str, Any]) -> list[float]:
        return _rates(f for f in result["flows"] if f["kind"] == flow.name)

    mean = _valued(results, lambda result: mean_goodput_mbps(result, flow.name))
    members = [[f for f in r["flows"] if f["kind"] == flow.name] for r in results]
    found = dict.fromkeys(f["algorithm"] for of in members for f in of)
    kind = "the row's algorithm" if flow.under_test else " or ".join(found) or flow.algorithm
    most = max(map(len, members), default=0)
    several = f"{'up to ' if most != flow.count else ''}{most} flows"
    count = f"mean, least and most of {several}, " if most > 1 else ""
    table = metric_table(scenario, mean, HEADLINE, names, whole=False)
    title = f"Goodput of “{flow.name}” ({count}{kind})"
    rows = table.rows
    if most > 1:
        extremes = [
            _unranked(scenario, results, _extreme(of, rates_of), names) for of in (min, max)
        ]
        rows = [
            row
            for mean_row, least, greatest in zip(table.rows, *extremes, strict=True)
            for row in (
                mean_row,
                replace(least, name=f"{mean_row.name}, least"),
                replace(greatest, name=f"{mean_row.name}, most"),
            )
        ]
    return replace(table, id=f"flow-{flow.name}", title=title, bound=[], rows=rows)


def kinds_table(scenario: Scenario, results: list[dict], names: list[str]) -> MetricTable | None:
    """Return what the headline's figure is made of, for the terminal: under each algorithm what
    its flows have together, and the others; of several flows the least, the most, and Jain's index.
    Nothing if there is one flow."""
    mixed = is_mixed(results)
    tested = max((sum(map(_is_tested, r["flows"])) for r in results), default=0)
    if not mixed and tested < 2:
        return None

    def rates_of(result: dict[str, Any]) -> list[float]:
        return _rates(filter(_is_tested, result["flows"]))

    parts: list[tuple[str, list[Row]]] = [
        ("", _unranked(scenario, results, lambda r: carried_mbps(r, under_test=True), names))
    ]
    if tested > 1:
        for text, of in (("  least of them", min), ("  most of them", max)):
            parts.append((text, _unranked(scenario, results, _extreme(of, rates_of), names)))
    if mixed:
        others = _unranked(scenario, results, lambda r: carried_mbps(r, under_test=False), names)
        parts.append(("  the others", others))
    if tested > 1:
        jain = metric_table(scenario, results, "jain", names, whole=False).rows
        parts.append(("  Jain's index", [_without_ranks(row) for row in jain]))
    table = metric_table(scenario, results, HEADLINE, names, whole=False)
    rows = [
        replace(of[i], name=text or of[i].name) for i in range(len(names)) for text, of in parts
    ]
    return replace(table, id="kinds", bound=[], rows=rows)


def harm_table(scenario: Scenario, results: list[dict], names: list[str]) -> MetricTable | None:
    """Return the table of what is taken from rivals, if the run has that (run.harm)."""
    if not any(result.get(HARM) is not None for result in results):
        return None
    return metric_table(scenario, results, HARM, names, whole=False)


def is_mixed(results: list[dict]) -> bool:
    """Say whether the headline's goodput is of flows under test and of others beside them."""
    counted = [[f for f in r["flows"] if not f.get("cross")] for r in results]
    return any(len({bool(flow["under_test"]) for flow in flows}) > 1 for flows in counted)


def carried_mbps(result: dict[str, Any], *, under_test: bool) -> float | None:
    """Return the part of RESULT's goodput that is of the flows UNDER_TEST, or of those beside
    them: over the same time, so that both make up the whole."""
    flows = [flow for flow in result["flows"] if not flow.get("cross")]
    of = [flow["bytes_steady"] for flow in flows if flow["under_test"] == under_test]
    steady_s = result["params"]["duration_s"] - result["params"]["warmup_s"]
    return sum(of) * 8e-6 / steady_s if of else None


def carried(results: list[dict], *, under_test: bool) -> list[dict]:
    """Return RESULTS with that part as their goodput, without those that have none."""
    return _valued(results, lambda result: carried_mbps(result, under_test=under_test))


def _is_tested(flow: dict[str, Any]) -> bool:
    return flow["under_test"] and not flow.get("cross")


def _rates(flows: Iterable[dict[str, Any]]) -> list[float]:
    return [flow["goodput_mbps"] for flow in flows if flow["goodput_mbps"] is not None]


def _extreme(
    of: Callable[[list[float]], float], rates_of: Callable[[dict], list[float]]
) -> Callable[[dict], float | None]:
    """Return what gives the least or the most of a result's rates, nothing if there are none."""
    return lambda result: of(rates) if (rates := rates_of(result)) else None


def _valued(results: list[dict], value: Callable[[dict], float | None]) -> list[dict]:
    """Return RESULTS with VALUE of each as its goodput, without those that have none."""
    found = [(result, value(result)) for result in results]
    return [result | {HEADLINE: mbps} for result, mbps in found if mbps is not None]


def _unranked(
    scenario: Scenario, results: list[dict], value: Callable[[dict], float | None], names: list[str]
) -> list[Row]:
    """Return the rows of VALUE in Mb/s, without saying which is best: each is a part of a whole."""
    rows = metric_table(scenario, _valued(results, value), HEADLINE, names, whole=False).rows
    return [_without_ranks(row) for row in rows]


def _without_ranks(row: Row) -> Row:
    return replace(row, cells=[replace(cell, rank="") for cell in row.cells])
