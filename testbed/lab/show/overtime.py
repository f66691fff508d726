# SPDX-License-Identifier: GPL-2.0-only
"""Which points a run's figures over time show, and those figures; lab.show.timelines draws them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from lab.ask.parts import Scenario, axis_text, place_text
from lab.run.store import write_atomically
from lab.show import facts, overplaces, overplacesplot, plots, timelines
from lab.show.facts import Place
from lab.show.words import middle_place

PEERS_OVER_TIME = ("reno", "bbr", "cubic", "veno", "westwood")  # the first two that have samples
GOODPUT_OVER_TIME = "goodput-over-time"
RTT_OVER_TIME = "rtt-over-time"
MAX_COLUMNS, MAX_PANELS = 4, 12  # of goodput over time
Sampled = tuple[dict[str, Any], pl.DataFrame]  # a result and its flows' samples


@dataclass(frozen=True)
class GoodputOverTime:
    """What a figure of it shows, and the figure's lines."""

    caption: str
    grid: timelines.Grid


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
        if overplaces.applies(scenario):
            title = f"{overplaces.metric(name).label}: its distribution over places"
            return self.add(name, title, overplacesplot.figure(scenario, results, name))
        axes = ", ".join(axis.label or axis.name for axis in scenario.axes)
        title = facts.metric(name).label + (f" against {axes}" if axes else "")
        return self.add(name, title, plots.metric_figure(scenario, results, name))


def over_time(
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
                "ours": facts.style(name).ours,
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
        "place": place_text(scenario.axes, middle_place(scenario)),
    }


def goodput_over_time(
    scenario: Scenario, results: list[dict], folder: Path
) -> GoodputOverTime | None:
    """Return the goodput over time of the points that have samples in FOLDER: at every place, if
    it is of one algorithm and there are few places, else of what is compared in the middle."""
    if _fits(scenario, results):
        by_place = {p: _sampled(results, scenario, p, folder) for p in facts.places(scenario)}
        found = {place: of for place, by_name in by_place.items() for of in by_name.values()}
        drawn, at = list(found.values()), ""
        grid = _everywhere(scenario, found)
    else:
        compared = _compared(scenario, results, folder)
        drawn, at = list(compared.values()), place_text(scenario.axes, middle_place(scenario))
        lines = [
            timelines.Line(name, facts.style(name), *timelines.goodput(*of))
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
    at = place_text(scenario.axes, middle_place(scenario))
    shown = ", ".join(filter(None, (", ".join(compared), at, f"seed {seeds}")))
    return f"RTT of the flows under test over time: {shown}", timelines.rtt_figure(compared)


def _sampled(
    results: list[dict], scenario: Scenario, place: Place, folder: Path
) -> dict[str, Sampled]:
    """Return, by algorithm, the first seed at PLACE that has samples."""
    found: dict[str, Sampled] = {}
    here = [result for result in results if facts.place(scenario, result) == place]
    for result in sorted(here, key=lambda result: result["seed"]):
        name = result["algorithm"]
        flows = None if name in found else timelines.read_samples(_samples(folder, result))
        if flows is not None:
            found[name] = result, flows
    return found


def _compared(scenario: Scenario, results: list[dict], folder: Path) -> dict[str, Sampled]:
    """Return, by algorithm, what is shown over time: ours and two peers in the middle."""
    found = _sampled(results, scenario, middle_place(scenario), folder)
    names = facts.algorithms_in(scenario, [result for result, _ in found.values()])
    ours = [name for name in names if facts.style(name).ours]
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
            name, look = result["algorithm"], facts.style(result["algorithm"])
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
    return "\n".join(axis_text(scenario.axes[i], value) for i, value in named)


def ratios(
    scenario: Scenario, results: list[dict], folder: Path, figures: Figures
) -> list[dict[str, Any]]:
    """Return the figures of the jitter ratio: the first seed that has samples, at each place."""

    def draw(result: dict[str, Any], ratios: pl.DataFrame) -> str:
        hops = timelines.read_samples(_samples(folder, result, "hops"))
        return timelines.ratio_figure(result, ratios, hops)

    what = "Jitter ratio of {} over time"
    return _at_each_place(scenario, results, folder, figures, "ratio", "ratios", what, draw)


def agents(
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
        name, place = result["algorithm"], facts.place(scenario, result)
        samples = timelines.read_samples(_samples(folder, result, kind))
        if samples is None or (name, place) in drawn:
            continue
        at = place_text(scenario.axes, place)
        number = facts.places(scenario).index(place)
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
