# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a run: a metric's medians with their intervals, algorithms against places."""

from dataclasses import dataclass, replace

from lab.ask.parts import Axis, Flow, Scenario, axis_text
from lab.measure.metrics import mean_goodput_mbps
from lab.measure.stats import Estimate
from lab.show import plots
from lab.show.plots import Cells, Metric, Place

HEADLINE = "goodput_mbps"


@dataclass(frozen=True)
class Cell:
    """One table cell. RANK: best, tied (its interval meets the best's), or nothing."""

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


def metric_table(
    scenario: Scenario, results: list[dict], name: str, names: list[str]
) -> MetricTable:
    """Return the table of one metric: a row per algorithm, a column per place."""
    shown, cells = plots.metric(name), plots.estimates(scenario, results, name)
    limits = plots.bounds(scenario, results) if name == HEADLINE else {}
    columns = _columns(scenario)
    rows = [Row(n, plots.style(n).ours, _row(n, columns, cells, shown)) for n in names]
    bound = [plots.number(limits[p], shown.digits) if p in limits else "-" for p in columns]
    better = {"high": "higher is better", "low": "lower is better"}.get(shown.better, "")
    first = scenario.axes[0] if scenario.axes else None
    return MetricTable(
        id=name,
        title=shown.label,
        note=", ".join(filter(None, (shown.unit, better))),
        groups=_groups(scenario, columns),
        columns=[_column_text(first, place) for place in columns],
        corner=axis_text(first) if first else "",
        bound=bound if limits else [],
        rows=rows,
    )


def _columns(scenario: Scenario) -> list[Place]:
    """Return the places with the first axis running fastest, further axes as groups."""
    levels = [axis.levels for axis in scenario.axes]

    def rank(place: Place) -> list[int]:
        return [known.index(value) for known, value in zip(levels, place, strict=True)]

    return sorted(plots.places(scenario), key=lambda place: (rank(place)[1:], rank(place)[:1]))


def _groups(scenario: Scenario, columns: list[Place]) -> list[tuple[str, int]]:
    if len(scenario.axes) < 2:
        return []
    span = len(scenario.axes[0].levels)
    heads = list(dict.fromkeys(place[1:] for place in columns))
    return [
        (", ".join(axis_text(a, v) for a, v in zip(scenario.axes[1:], h, strict=True)), span)
        for h in heads
    ]


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
                plots.number(value.median, shown.digits),
                plots.interval(value, shown),
                _rank(as_shown(value, shown), peers, shown.better),
                value.n if value.n < usual else 0,
            )
        )
    return row


def as_shown(value: Estimate, shown: Metric) -> Estimate:
    """Return VALUE as a reader sees it: what looks equal is not ranked."""
    median, low, high = (
        float(plots.number(figure, shown.digits))
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
    """Return the table of the mean goodput of the flows that one [[flows]] entry stands for."""
    alone = []
    for result in results:
        rate_mbps = mean_goodput_mbps(result, flow.name)
        if rate_mbps is not None:
            alone.append(result | {"goodput_mbps": rate_mbps})
    members = [[f for f in r["flows"] if f["kind"] == flow.name] for r in results]
    found = dict.fromkeys(f["algorithm"] for of in members for f in of)
    kind = "the row's algorithm" if flow.under_test else " or ".join(found) or flow.algorithm
    most = max(map(len, members), default=0)
    count = f"mean of {'up to ' if most != flow.count else ''}{most} flows, " if most > 1 else ""
    table = metric_table(scenario, alone, HEADLINE, names)
    title = f"Goodput of “{flow.name}” ({count}{kind})"
    return replace(table, id=f"flow-{flow.name}", title=title, bound=[])
