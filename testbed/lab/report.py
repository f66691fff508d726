# SPDX-License-Identifier: GPL-2.0-only
"""What a run found, for people: report.html with its figures, and a table for the terminal.

Every number is a median over seeds with its interval. What lost is shown beside what won.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab import explorer, plots, scatter, timelines
from lab.claims import Verdict
from lab.metrics import mean_goodput_mbps
from lab.plots import Cells, Metric, Place
from lab.scenario import JITTER_RATIOS, MEDIUM_FIGURES, Axis, Flow, Scenario
from lab.stats import Estimate, estimate
from lab.store import write_atomically
from lab.verdicts import HEAD as SCORE_HEAD
from lab.verdicts import scores

TEMPLATES = Path(__file__).resolve().parent / "templates"
HEADLINE = "goodput_mbps"
DETAILS = (
    "goodput_whole_mbps", "fair_share", "retransmits", "timeouts", "queue_delay_ms_p95",
    "srtt_ms_p50", "owd_ms_p95", "power_mbps_per_s", "loss_random", "loss_congestion",
    "ce_marks", "jain",
    "fct_s_p50", "fct_s_p95", "unfinished", *JITTER_RATIOS, *MEDIUM_FIGURES,
)  # fmt: skip
WITH_FIGURE = ("fair_share", "retransmits", "timeouts", "queue_delay_ms_p95", "jain", "fct_s_p95")
PEERS_OVER_TIME = ("reno", "bbr", "cubic", "veno", "westwood")  # the first two that have samples
ENOUGH_SEEDS, ENOUGH_RTTS = 5, 100  # below: a smoke test, not a result
SEEDS_FOR_95 = 6
GOODPUT_OVER_TIME = "goodput-over-time"
RTT_OVER_TIME = "rtt-over-time"
SHARE_DELAY = "share-delay"
MAX_COLUMNS, MAX_PANELS = 4, 12  # of goodput over time
MARKS = {"holds": "✓", "does not hold": "✗", "undecided": "?", "not measured": "·"}
COLOURS = {
    "holds": "green", "does not hold": "red", "undecided": "yellow", "not measured": "dim",
}  # fmt: skip


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


# --- the report ---------------------------------------------------------------------------


def write_report(
    scenario: Scenario,
    results: list[dict[str, Any]],
    store_folder: Path,
    meta: dict[str, Any],
    verdicts: Sequence[Verdict],
    failures: Sequence[str],
    copy: Path | None = None,
) -> Path:
    """Write report.html and plots/*.svg into STORE_FOLDER and return the report's path. COPY: where
    to write it instead, without links to the raw data."""
    figures = Figures(store_folder / "plots")
    names = _algorithms(scenario, results, meta)
    html = (
        templates()
        .get_template("report.html.j2")
        .render(
            scenario=scenario,
            headline=headline(scenario, results),
            tally=tally(verdicts),
            warnings=warnings(results, meta, failures),
            interval_note=interval_note(results, scenario),
            main_figure=figures.add_metric(scenario, results, HEADLINE),
            lines=any(len(axis.levels) > 1 for axis in scenario.axes),
            main_table=metric_table(scenario, results, HEADLINE, names),
            classification=_classification(results),
            details=_details(scenario, results, names, figures),
            claims=[claim_row(verdict) for verdict in verdicts],
            over_time=_over_time(scenario, results, store_folder, figures),
            ratios=_ratios(scenario, results, store_folder, figures),
            agents=_agents(scenario, results, store_folder, figures),
            explorer=_explorer(scenario, results, store_folder, linked=copy is None),
            failures=list(failures),
            reproduce=reproduce(meta),
            tc=sorted(meta.get("tc_commands_of_first_point", {}).items()),
            modules=sorted((meta.get("module_srcversions") or {}).items()),
            source=json.dumps(meta.get("source", scenario.source), indent=2, ensure_ascii=False),
        )
    )
    path = copy or store_folder / "report.html"
    write_atomically(path, html + "\n")
    return path


def templates() -> jinja2.Environment:
    """Return what pages are made of."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    return environment


class Figures:
    """Draws, keeps each figure as a file in FOLDER, and hands it out for the page."""

    def __init__(self, folder: Path):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, title: str, svg: str) -> Markup:
        write_atomically(self._folder / f"{name}.svg", svg)
        return Markup(plots.inline(svg, name, title))

    def add_metric(self, scenario: Scenario, results: list[dict], name: str) -> Markup | None:
        if not any(result.get(name) is not None for result in results):
            return None
        axes = ", ".join(axis.label or axis.name for axis in scenario.axes)
        title = plots.metric(name).label + (f" against {axes}" if axes else "")
        return self.add(name, title, plots.metric_figure(scenario, results, name))


def _algorithms(scenario: Scenario, results: list[dict], meta: dict[str, Any]) -> list[str]:
    """Return what was to be run, ours first, whether or not it has results."""
    found = plots.algorithms_in(scenario, results)
    planned = meta.get("algorithms", found)
    missing = [name for name in scenario.run.algorithms if name in planned and name not in found]
    return sorted([*found, *missing], key=lambda name: not plots.style(name).ours)


def _details(
    scenario: Scenario, results: list[dict], names: list[str], figures: Figures
) -> list[dict[str, Any]]:
    """Return the further tables: per group of flows, then per metric, some with a figure."""
    details = []
    if sum(not flow.is_udp for flow in scenario.flows) > 1:
        for flow in [flow for flow in scenario.flows if not flow.is_udp]:
            details.append({"table": _flow_table(scenario, results, flow, names), "figure": None})
    for name in _details_of(results):
        if any(result.get(name) is not None for result in results):
            figure = figures.add_metric(scenario, results, name) if name in WITH_FIGURE else None
            if name == scatter.DELAY:
                svg = scatter.scatter_figure(scenario, results)
                figure = figures.add(SHARE_DELAY, scatter.CAPTION, svg)
            details.append(
                {"table": metric_table(scenario, results, name, names), "figure": figure}
            )
    return details


def _details_of(results: list[dict]) -> list[str]:
    """Return which further measures mean something here."""
    several = any(sum(not flow["cross"] for flow in r["flows"]) > 1 for r in results)
    return [name for name in DETAILS if several or name != "jain"]


def _classification(results: list[dict]) -> dict[str, Any] | None:
    """Return the confusion matrices, if the run has them."""
    found = scores(results)
    return {"head": SCORE_HEAD, "scores": found} if found else None


def cross_tables(scenario: Scenario, results: list[dict], names: list[str]) -> list[MetricTable]:
    """Return the goodput of each kind of TCP cross traffic, which no other figure has; on a
    wireless chain of each kind of flow, if there are several."""
    cross = [flow for flow in scenario.flows if flow.is_cross(scenario.topology)]
    if scenario.medium and len(scenario.flows) > 1:
        cross = list(scenario.flows)
    return [_flow_table(scenario, results, f, names) for f in cross if not f.is_udp]


def _flow_table(
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


def _explorer(
    scenario: Scenario, results: list[dict], folder: Path, linked: bool
) -> dict[str, Any] | None:
    """Return what the live figures are drawn from; nothing without results. LINKED: whether the
    raw data will lie beside the page."""
    if not results:
        return None
    metrics, middle = (HEADLINE, *_details_of(results)), middle_place(scenario)
    return explorer.data(scenario, results, folder, metrics, middle, linked)


# --- tables -------------------------------------------------------------------------------


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
        corner=plots.axis_text(first) if first else "",
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
        (", ".join(plots.axis_text(a, v) for a, v in zip(scenario.axes[1:], h, strict=True)), span)
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
        peers = [_as_shown(other, shown) for (_, at), other in cells.items() if at == place]
        row.append(
            Cell(
                plots.number(value.median, shown.digits),
                plots.interval(value, shown),
                _rank(_as_shown(value, shown), peers, shown.better),
                value.n if value.n < usual else 0,
            )
        )
    return row


def _as_shown(value: Estimate, shown: Metric) -> Estimate:
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


# --- sentences ----------------------------------------------------------------------------


def middle_place(scenario: Scenario) -> Place:
    """Return the middle value of every axis (the upper one of two): fixed before any result."""
    values = [axis.levels for axis in scenario.axes]
    return tuple(v[len(v) // 2] for v in values)


def place_text(scenario: Scenario, place: Place) -> str:
    return ", ".join(plots.axis_text(a, v) for a, v in zip(scenario.axes, place, strict=True))


def headline(scenario: Scenario, results: list[dict]) -> str:
    """Return one sentence: our best against the kernel's best where all axes are in the middle,
    and how often ours is best everywhere."""
    cells, shown = plots.estimates(scenario, results, HEADLINE), plots.metric(HEADLINE)
    place = middle_place(scenario)
    here = {name: value for (name, at), value in cells.items() if at == place}
    ours = {name: value for name, value in here.items() if plots.style(name).ours}
    peers = {name: value for name, value in here.items() if name not in ours}
    if not here:
        return "No point at the middle of the axes has a result."
    mine, theirs = _best(ours), _best(peers)
    lead, first = (mine, ours) if mine else (theirs, peers)
    at = place_text(scenario, place)
    sentence = f"At {at}, {lead}" if at else lead
    sentence += f" carries {plots.text(first[lead], shown)} Mb/s"
    bound = plots.bounds(scenario, results).get(place)
    if bound:
        sentence += f" ({100 * first[lead].median / bound:.0f} % of the bound)"
    if mine and theirs:
        sentence += "; " + _against(ours[mine], theirs, peers[theirs], shown)
    return sentence + "." + _wins(cells)


def _best(values: dict[str, Estimate]) -> str:
    return max(values, key=lambda name: values[name].median) if values else ""


def _against(mine: Estimate, name: str, other: Estimate, shown: Metric) -> str:
    best = f"the best of the kernel's own, {name} with {plots.text(other, shown)}"
    if mine.low <= other.high and other.low <= mine.high:
        return f"its interval meets that of {best}"
    if not other.median:
        return f"this is above {best}"
    percent = 100 * (mine.median / other.median - 1)
    return f"this is {abs(percent):.0f} % {'above' if percent > 0 else 'below'} {best}"


def _wins(cells: Cells) -> str:
    """Return in how many places one of ours has a median above all of the kernel's own."""
    won = both = 0
    for place in {at for _, at in cells}:
        medians: dict[bool, list[float]] = {True: [], False: []}
        for (name, at), value in cells.items():
            if at == place:
                shown = _as_shown(value, plots.metric(HEADLINE))
                medians[plots.style(name).ours].append(shown.median)
        if all(medians.values()):
            both += 1
            won += max(medians[True]) > max(medians[False])
    if both < 2:
        return ""
    return f" The best median is one of ours in {won or 'none'} of {both} conditions."


def tally(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return (verdict, words) for each verdict that occurs: how many claims have it."""
    found = []
    for word in MARKS:
        count = sum(verdict.verdict == word for verdict in verdicts)
        plural = {"holds": "hold", "does not hold": "do not hold"}.get(word, word)
        if count:
            found.append((word, f"{count} {word if count == 1 else plural}"))
    return found


def interval_note(results: list[dict], scenario: Scenario) -> str:
    """Return what the intervals are, from the fewest seeds that any cell has."""
    cells = plots.estimates(scenario, results, HEADLINE)
    if not cells:
        return "No point has a result."
    worst = min(cells.values(), key=lambda value: value.n)
    if worst.n == 1:
        return "At least one figure comes from a single seed, so there is no interval for it."
    if worst.n < SEEDS_FOR_95:
        return (
            f"With {worst.n} seeds an interval is the range of all runs; it covers the median"
            f" with a probability of {100 * worst.coverage:.4g} %, not 95 %."
        )
    return (
        f"Median over {worst.n} or more seeds, and the order-statistic interval for it"
        f" (coverage {100 * estimate(list(range(worst.n))).coverage:.1f} %)."
    )


def warnings(results: list[dict], meta: dict[str, Any], failures: Sequence[str]) -> list[str]:
    """Return what a reader must know before believing a number."""
    found = []
    seeds: dict[tuple, set[int]] = {}
    for result in results:
        key = (result["algorithm"], *sorted(result["axes"].items()))
        seeds.setdefault(key, set()).add(result["seed"])
    fewest = min(map(len, seeds.values()), default=0)
    if fewest < ENOUGH_SEEDS:
        found.append(f"Smoke test, not a result: {_count(fewest, 'seed')}, {ENOUGH_SEEDS} needed.")
    rtts = min(map(_rtts, results), default=math.inf)
    if rtts < ENOUGH_RTTS:
        found.append(
            f"Smoke test, not a result: a run lasts {rtts:.0f} round trips, {ENOUGH_RTTS} needed."
        )
    missing = meta.get("points", len(results)) - len(results)
    if missing > 0:
        failed = f", {_count(len(failures), 'failure')} below" if failures else ""
        found.append(f"{missing} of {meta['points']} points have no result{failed}.")
    if meta.get("git_dirty"):
        found.append("The working tree had changes that are in no commit.")
    return found


def _rtts(result: dict[str, Any]) -> float:
    """Return how many round trips a point lasted, by its longest path."""
    params = result["params"]
    path_ms = sum(link["delay_ms"] for link in params["links"].values())
    rtt_ms = max([path_ms, *(flow.get("min_rtt_ms") or 0 for flow in result["flows"])])
    return params["duration_s"] * 1000 / rtt_ms if rtt_ms else math.inf


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# --- claims -------------------------------------------------------------------------------


def claim_row(verdict: Verdict) -> dict[str, Any]:
    """Return what the claims tables show of one claim, both on the page and the terminal."""
    claim, value = verdict.claim, verdict.value
    shown = Metric("", "", 2 if claim.against else plots.metric(claim.metric).digits)
    return {
        "id": claim.id,
        "text": claim.text,
        "subject": verdict.subject,
        "paper": claim.paper,
        "median": plots.number(value.median, shown.digits) if value else "-",
        "interval": plots.interval(value, shown) if value else "",
        "bound": verdict.bound.replace(">=", "≥").replace("<=", "≤"),
        "verdict": verdict.verdict,
        "class": verdict.verdict.replace(" ", "-"),
        "mark": MARKS[verdict.verdict],
        "why": _why(verdict),
    }


def _why(verdict: Verdict) -> str:
    """Return how the interval lies to the claim's bounds, in words."""
    if verdict.value is None:
        return "no such points in this run"
    one = verdict.value.n < 2
    subject = "the single run" if one else "the interval"
    if verdict.verdict == "holds":
        return f"{subject} lies within the bound"
    claim = verdict.claim
    if verdict.verdict == "does not hold":
        below = claim.at_least is not None and verdict.value.high < claim.at_least
        return f"{subject} lies {'below' if below else 'above'} the bound"
    return f"{subject} reaches across the bound: more seeds may decide"


# --- over time ----------------------------------------------------------------------------


Sampled = tuple[dict[str, Any], pl.DataFrame]  # a result and its flows' samples


@dataclass(frozen=True)
class GoodputOverTime:
    """What a figure of it shows, and the figure's lines."""

    caption: str
    grid: timelines.Grid


def _over_time(
    scenario: Scenario, results: list[dict], folder: Path, figures: Figures
) -> dict[str, Any]:
    """Return the figures over time, of points that have samples: the goodput, and the windows of
    ours and two peers, at one place and seed."""
    goodput, windows = goodput_over_time(scenario, results, folder), []
    for name, (result, flows) in _compared(scenario, results, folder).items():
        hops = timelines.read_samples(_samples(folder, result, "hops"))
        svg = timelines.cwnd_figure(result, flows, hops)
        windows.append(
            {
                "name": name,
                "ours": plots.style(name).ours,
                "seed": result["seed"],
                "shown_s": timelines.window_s(result, flows),
                "duration_s": result["params"]["duration_s"],
                "svg": figures.add(f"cwnd-{name}", f"Window of {name} over time", svg),
            }
        )
    figure = None
    if goodput:
        svg = timelines.goodput_figure(goodput.grid)
        figure = figures.add(GOODPUT_OVER_TIME, goodput.caption, svg)
    rtt = rtt_over_time(scenario, results, folder)
    return {
        "goodput": figure,
        "caption": goodput.caption if goodput else "",
        "rtt": figures.add(RTT_OVER_TIME, *rtt) if rtt else None,
        "rtt_caption": rtt[0] if rtt else "",
        "windows": windows,
        "place": place_text(scenario, middle_place(scenario)),
    }


def goodput_over_time(
    scenario: Scenario, results: list[dict], folder: Path
) -> GoodputOverTime | None:
    """Return the goodput over time of the points that have samples in FOLDER: at every place, if
    it is of one algorithm and there are few places, else of what is compared in the middle."""
    if _fits(scenario, results):
        by_place = {p: _sampled(results, scenario, p, folder) for p in plots.places(scenario)}
        found = {place: of for place, by_name in by_place.items() for of in by_name.values()}
        drawn, at = list(found.values()), ""
        grid = _everywhere(scenario, found)
    else:
        compared = _compared(scenario, results, folder)
        drawn, at = list(compared.values()), place_text(scenario, middle_place(scenario))
        lines = [
            timelines.Line(name, plots.style(name), *timelines.goodput(*of))
            for name, of in compared.items()
        ]
        grid = timelines.Grid([""], [""], list(compared), {(0, 0): lines})
    if not drawn:
        return None
    names = ", ".join(dict.fromkeys(result["algorithm"] for result, _ in drawn))
    seeds = sorted({result["seed"] for result, _ in drawn})
    which = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    shown = ", ".join(filter(None, (names, at, which)))
    return GoodputOverTime(f"Goodput of the flows under test over time: {shown}", grid)


def rtt_over_time(scenario: Scenario, results: list[dict], folder: Path) -> tuple[str, str] | None:
    """Return caption and SVG of the RTT over time on a wireless chain, as WCCP's paper plots it: of
    what is compared in the middle, from the samples in FOLDER."""
    compared = _compared(scenario, results, folder) if scenario.medium else {}
    if not compared:
        return None
    seeds = ", ".join(str(seed) for seed in sorted({r["seed"] for r, _ in compared.values()}))
    at = place_text(scenario, middle_place(scenario))
    shown = ", ".join(filter(None, (", ".join(compared), at, f"seed {seeds}")))
    return f"RTT of the flows under test over time: {shown}", timelines.rtt_figure(compared)


def _sampled(
    results: list[dict], scenario: Scenario, place: Place, folder: Path
) -> dict[str, Sampled]:
    """Return, by algorithm, the first seed at PLACE that has samples."""
    found: dict[str, Sampled] = {}
    here = [result for result in results if plots.place(scenario, result) == place]
    for result in sorted(here, key=lambda result: result["seed"]):
        name = result["algorithm"]
        flows = None if name in found else timelines.read_samples(_samples(folder, result))
        if flows is not None:
            found[name] = result, flows
    return found


def _compared(scenario: Scenario, results: list[dict], folder: Path) -> dict[str, Sampled]:
    """Return, by algorithm, what is shown over time: ours and two peers in the middle."""
    found = _sampled(results, scenario, middle_place(scenario), folder)
    names = plots.algorithms_in(scenario, [result for result, _ in found.values()])
    ours = [name for name in names if plots.style(name).ours]
    peers = [name for name in PEERS_OVER_TIME if name in found]
    peers += [name for name in found if name not in ours and name not in peers]
    return {name: found[name] for name in ours + peers[:2]}


def _panel_axes(scenario: Scenario) -> tuple[list[int], list[int], list[int]]:
    """Return which of the swept axes are rows, columns and lines of goodput over time."""
    swept = [i for i, axis in enumerate(scenario.axes) if len(axis.levels) > 1]
    return swept[:-2], swept[-2:-1], swept[-1:]


def _levels(scenario: Scenario, axes: list[int]) -> list[Place]:
    return list(itertools.product(*(scenario.axes[i].levels for i in axes)))


def _fits(scenario: Scenario, results: list[dict]) -> bool:
    """Say whether the goodput over time can be shown at every place."""
    rows, columns, lines = (len(_levels(scenario, axes)) for axes in _panel_axes(scenario))
    return (
        len({result["algorithm"] for result in results}) == 1
        and lines <= len(timelines.VALUE_COLOURS)
        and columns <= MAX_COLUMNS
        and rows * columns <= MAX_PANELS
    )


def _everywhere(scenario: Scenario, found: dict[Place, Sampled]) -> timelines.Grid:
    """Return the goodput over time of one algorithm by place: a line for each value of the last
    axis that is swept, a column for each of the one before, a row for the others'."""
    of_row, of_column, of_line = _panel_axes(scenario)
    rows, columns, values = (_levels(scenario, axes) for axes in (of_row, of_column, of_line))
    panels: dict[tuple[int, int], list[timelines.Line]] = {}
    for place, (result, flows) in found.items():
        row, column, value = (
            tuple(place[i] for i in axes) for axes in (of_row, of_column, of_line)
        )
        name, number = _values_text(scenario, of_line, value), values.index(value)
        look = timelines.value_look(number, len(values))
        if not of_line:
            name, look = result["algorithm"], plots.style(result["algorithm"])
        line = timelines.Line(name, look, *timelines.goodput(result, flows))
        panels.setdefault((rows.index(row), columns.index(column)), []).append(line)
    return timelines.Grid(
        [_values_text(scenario, of_row, row) for row in rows],
        [_values_text(scenario, of_column, column) for column in columns],
        [_values_text(scenario, of_line, value) for value in values],
        panels,
    )


def _values_text(scenario: Scenario, axes: list[int], values: Place) -> str:
    named = zip(axes, values, strict=True)
    return "\n".join(plots.axis_text(scenario.axes[i], value) for i, value in named)


def _ratios(
    scenario: Scenario, results: list[dict], folder: Path, figures: Figures
) -> list[dict[str, Any]]:
    """Return the figures of the jitter ratio: the first seed that has samples, at each place."""

    def draw(result: dict[str, Any], ratios: pl.DataFrame) -> str:
        hops = timelines.read_samples(_samples(folder, result, "hops"))
        return timelines.ratio_figure(result, ratios, hops)

    what = "Jitter ratio of {} over time"
    return _at_each_place(scenario, results, folder, figures, "ratio", "ratios", what, draw)


def _agents(
    scenario: Scenario, results: list[dict], folder: Path, figures: Figures
) -> list[dict[str, Any]]:
    """Return the figures of what nodes said: the first seed that has samples, at each place."""

    def draw(result: dict[str, Any], agents: pl.DataFrame) -> str:
        flows = timelines.read_samples(_samples(folder, result))
        return timelines.agents_figure(result, agents, flows)

    what = "What nodes and senders of {} knew over time"
    return _at_each_place(scenario, results, folder, figures, "nodes", "agents", what, draw)


def _at_each_place(
    scenario: Scenario, results: list[dict], folder: Path, figures: Figures, file: str,
    kind: str, caption: str, draw: Callable[[dict[str, Any], pl.DataFrame], str],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return, for each algorithm and place, what DRAW makes of the first seed's samples of KIND."""
    drawn: dict[tuple[str, Place], dict[str, Any]] = {}
    for result in sorted(results, key=lambda result: result["seed"]):
        name, place = result["algorithm"], plots.place(scenario, result)
        samples = timelines.read_samples(_samples(folder, result, kind))
        if samples is None or (name, place) in drawn:
            continue
        at = place_text(scenario, place)
        number = plots.places(scenario).index(place)
        text = ", ".join(filter(None, (caption.format(name), at)))
        drawn[name, place] = {
            "name": name,
            "place": at,
            "seed": result["seed"],
            "svg": figures.add(f"{file}-{name}-{number}", text, draw(result, samples)),
        }
    return list(drawn.values())


def _samples(folder: Path, result: dict[str, Any], kind: str = "flows") -> Path:
    return folder / "samples" / f"{result['point']}.{kind}.csv"


# --- how to run it again ------------------------------------------------------------------


def reproduce(meta: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (label, text) of what a reader needs to run this again; empty ones are left out."""
    seeds = meta.get("seeds", [])
    contiguous = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    commit = meta.get("git_commit", "")
    wall_s, cpus = meta.get("wall_s"), meta.get("host_cpus")
    entries = [
        ("Command", meta.get("command", "")),
        ("Commit", commit + (" and uncommitted changes" if meta.get("git_dirty") else "")),
        ("Backend", meta.get("backend", "")),
        ("Kernel", meta.get("kernel_release", "")),
        ("Kernel build", meta.get("kernel_build", "")),
        ("Seeds", f"{seeds[0]} to {seeds[-1]}" if contiguous else ", ".join(map(str, seeds))),
        ("Points", _points_text(meta)),
        ("Started", str(meta.get("started", ""))[:19].replace("T", " ") + " UTC"),
        ("Wall time", f"{wall_s:g} s on {cpus} CPUs" if wall_s is not None else "not finished"),
    ]
    if not meta.get("started"):
        entries = [entry for entry in entries if entry[0] not in ("Started", "Wall time")]
    return [(label, str(text)) for label, text in entries if str(text).strip()]


def _points_text(meta: dict[str, Any]) -> str:
    earlier = meta.get("points_of_earlier_runs")
    return f"{meta.get('points', '')}" + (f", {earlier} of them of earlier runs" if earlier else "")


# --- the terminal -------------------------------------------------------------------------


def print_table(
    scenario: Scenario, results: list[dict], verdicts: Sequence[Verdict], console: Console
) -> None:
    """Print the headline comparison and the claims to CONSOLE, as wide as it is."""
    names = plots.algorithms_in(scenario, results)
    table = metric_table(scenario, results, HEADLINE, names)
    console.print(Text(scenario.title, style="bold"))
    console.print(Text(f"goodput in Mb/s, {_cell_note(results, scenario)}; * best"))
    for columns in _fitting(table, console.width):
        console.print()
        console.print(_terminal_table(table, columns))
    if verdicts:
        console.print()
        console.print(_claims_table(verdicts, console))
    console.print()


def _cell_note(results: list[dict], scenario: Scenario) -> str:
    cells = plots.estimates(scenario, results, HEADLINE)
    fewest = min((value.n for value in cells.values()), default=0)
    if fewest < 2:
        return "one seed: a smoke test, not a result"
    what = "95 % interval" if fewest >= SEEDS_FOR_95 else "range"
    note = f"median [{what}] of {fewest} seeds"
    return note if fewest >= ENOUGH_SEEDS else f"{note}: a smoke test, not a result"


def _fitting(table: MetricTable, width: int) -> list[list[int]]:
    """Cut the columns of each group into as few runs of equal length as fit WIDTH characters."""
    names = [row.name for row in table.rows]
    corner = max(map(len, [*names, plots.BOUND, table.corner, *(text for text, _ in table.groups)]))
    cells = [f"{cell.text}*" for row in table.rows for cell in row.cells]
    widest = max(map(len, [*cells, *table.columns]))
    fit = max(1, (width - corner - 1) // (widest + 2))
    runs, start = [], 0
    for _, span in table.groups or [("", len(table.columns))]:
        size = math.ceil(span / math.ceil(span / fit))
        end = start + span
        runs += [list(range(i, min(i + size, end))) for i in range(start, end, size)]
        start = end
    return runs


def _terminal_table(table: MetricTable, columns: list[int]) -> Table:
    """Return COLUMNS, all of one group, as a table."""
    groups = [text for text, span in table.groups for _ in range(span)]
    corner = f"{groups[columns[0]]}\n{table.corner}" if groups else table.corner
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column(Text(corner), no_wrap=True)
    for i in columns:
        grid.add_column(Text(f" {table.columns[i]}"), no_wrap=True, vertical="bottom")
    digits = {i: max(len(row.cells[i].median) for row in table.rows) for i in columns if table.rows}
    if table.bound:
        cells = [Text(f" {table.bound[i]:>{digits.get(i, 0)}}", style="dim") for i in columns]
        grid.add_row(Text(plots.BOUND, style="dim"), *cells)
    for row in table.rows:
        name = Text(row.name, style="bold" if row.ours else "")
        grid.add_row(name, *(_terminal_cell(row.cells[i], digits[i]) for i in columns))
    return grid


def _terminal_cell(cell: Cell, digits: int) -> Text:
    """Return CELL with its median in DIGITS characters, so that points stand below each other."""
    best = cell.rank == "best"
    text = Text(f"{'*' if best else ' '}{cell.median:>{digits}}")
    text.stylize("bold green" if best else "")
    return text.append(f" {cell.interval}".rstrip())


def _claims_table(verdicts: Sequence[Verdict], console: Console) -> Table:
    symbols = console.encoding.lower().startswith("utf")
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("claim", overflow="fold", ratio=1)
    grid.add_column("measured", no_wrap=True)
    grid.add_column("needed", no_wrap=True)
    grid.width = min(console.width, 120)
    for verdict in verdicts:
        row = claim_row(verdict)
        text = Text(row["text"])
        text.append(f"\n{row['subject']}", style="dim")
        if row["paper"]:
            text.append(f"\npaper: {row['paper']}", style="dim")
        measured = f"{row['median']} {row['interval']}".rstrip()
        word = f"{row['mark']} {row['verdict']}" if symbols else row["verdict"]
        bound = row["bound"] if symbols else verdict.bound
        grid.add_row(Text(word, style=COLOURS[row["verdict"]]), text, Text(measured), Text(bound))
    return grid
