# SPDX-License-Identifier: GPL-2.0-only
"""Figures of a run as SVG text: a metric against the axes; lab.show.timelines has those over time.

Equal input gives equal bytes: no dates, ids salted with a constant, text kept as text.
"""

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass
from html import escape
from io import StringIO

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from lab.ask.parts import Axis, Scenario, axis_text
from lab.ask.tables import AxisValue
from lab.measure.stats import Estimate
from lab.show import facts
from lab.show.facts import Cells, Place, algorithms_in, metric, style

INK, FAINT, GRID = "#1f2430", "#6b7280", "#e6e8ec"
FONT_PT = 9.5
LABEL_GAP = 0.047  # between two direct labels, in heights of the axes
MAX_TICKS = 12
PANEL_CHARS = 38  # that fit side by side below a panel
WIDE_CHARACTERS = 110  # the same below the only one
TITLE_CHARACTERS = 42  # that fit over one panel of three
SPREAD_FOR_LOG = 20.0  # largest over smallest value from which a logarithm shows more
SPREAD_FOR_OWN_SCALE = 4.0  # the same between panels, from which each gets its own scale
BOUND_DASH = (0, (4, 3))

RC = {
    "svg.hashsalt": "lab",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": FONT_PT,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": FONT_PT,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": FONT_PT - 0.5,
    "figure.facecolor": "white",
}


# --- a metric against the axes ------------------------------------------------------------


@dataclass(frozen=True)
class _Data:
    """What one figure shows: METRIC of ALGORITHMS, and the bound where there is one."""

    scenario: Scenario
    metric: str
    algorithms: list[str]
    cells: Cells
    limits: dict[Place, float]


@dataclass
class _Panel:
    """Axes with (label, x, y) of every line's right end, and all heights drawn."""

    axes: Axes
    ends: list[tuple[str, float, float]]
    heights: list[float]


def metric_figure(scenario: Scenario, results: list[dict], name: str) -> str:
    """Return the SVG of the metric NAME: against the first axis that has several values, small
    multiples over further ones, or a dot plot if there is none, or if the only one is of names that
    do not fit side by side."""
    data = _Data(
        scenario, name, algorithms_in(scenario, results), facts.estimates(scenario, results, name),
        facts.bounds(scenario, results) if name == "goodput_mbps" else {},
    )  # fmt: skip
    swept = [i for i, axis in enumerate(scenario.axes) if len(axis.levels) > 1]
    with plt.rc_context(RC):
        if not swept:
            figure = _dot_plot(data)
        elif len(swept) == 1 and _fits_below(scenario.axes[swept[0]]):
            figure = _one_panel(data, swept[0])
        elif len(swept) == 1:
            figure = _choices_plot(data, swept[0])
        else:
            figure = _multiples(data, swept)
        return to_svg(figure)


def _dot_plot(data: _Data) -> Figure:
    by_name = {algorithm: value for (algorithm, _), value in data.cells.items()}
    rows = sorted((n for n in data.algorithms if n in by_name), key=lambda n: by_name[n].median)
    figure, axes = plt.subplots(figsize=(8.2, 1.1 + 0.3 * max(len(rows), 2)))
    for y, algorithm in enumerate(rows):
        value, look = by_name[algorithm], style(algorithm)
        axes.plot([value.low, value.high], [y, y], color=look.colour, lw=look.width + 0.6)
        axes.plot(value.median, y, look.marker, color=look.colour, ms=7, clip_on=False)
        axes.annotate(
            facts.text(value, metric(data.metric)), (1.02, y), xycoords=("axes fraction", "data"),
            va="center", color=look.colour if look.ours else INK, fontsize=FONT_PT - 0.5,
        )  # fmt: skip
    for bound in data.limits.values():
        axes.axvline(bound, color=INK, ls=BOUND_DASH, lw=1.1)
        axes.annotate(
            f"{facts.BOUND} {bound:.2f}", (bound, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 3), textcoords="offset points", ha="right", va="bottom",
            fontsize=FONT_PT - 1,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), rows)
    for label, algorithm in zip(axes.get_yticklabels(), rows, strict=True):
        _name_label(label, algorithm)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, max(len(rows), 1) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel(metric(data.metric).axis_label)
    return figure


def _fits_below(axis: Axis) -> bool:
    return not axis.choices or sum(len(str(v)) + 3 for v in axis.levels) <= WIDE_CHARACTERS


def _choices_plot(data: _Data, of_axis: int) -> Figure:
    """A row for each choice of an axis. Where what a link can carry is another thing in each, the
    share of it is shown: on one scale of Mb/s the slow ones would look alike."""
    axes_of = data.scenario.axes
    choices = list(axes_of[of_axis].levels)
    place = {c: tuple(c if i == of_axis else a.values[0] for i, a in enumerate(axes_of))
             for c in choices}  # fmt: skip
    bounds = [data.limits.get(place[choice], 0) for choice in choices]
    is_bounded = bool(data.limits) and min(bounds) > 0
    by_share = is_bounded and max(bounds) > min(bounds)
    unit = bounds if by_share else [1] * len(choices)
    figure, axes = plt.subplots(figsize=(9.2, 1.4 + 0.27 * len(choices)))
    everything = [1 if by_share else bounds[0]] * is_bounded
    for name in sorted(data.algorithms, key=lambda n: style(n).ours):  # ours on top
        look = style(name)
        for y, choice in enumerate(choices):
            if value := data.cells.get((name, place[choice])):
                low, median, high = (v / unit[y] for v in (value.low, value.median, value.high))
                axes.plot([low, high], [y, y], color=look.colour, lw=look.width, alpha=0.8)
                axes.plot(median, y, look.marker, color=look.colour, ms=6 if look.ours else 5)
                everything += [low, high]
    if is_bounded:
        axes.axvline(everything[0], color=INK, ls=BOUND_DASH, lw=1.1, zorder=1)
    label = metric(data.metric).axis_label
    axes.set_xlabel(f"{label.split(' (')[0]} over the {facts.BOUND}" if by_share else label)
    least, most = min(everything, default=0), max(everything, default=0)
    axes.set_xlim(min(0, 1.06 * least), 1.06 * most if most > 0 else 1)
    if not by_share and 0 < least < most / SPREAD_FOR_LOG:
        axes.set_xscale("log")
        axes.set_xlim(least / 1.3, most * 1.3)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(range(len(choices)), [str(choice) for choice in choices])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(choices) - 0.4, -0.6)  # the first on top
    figure.subplots_adjust(
        left=0.01 + 0.0078 * max(len(str(choice)) for choice in choices), right=0.98, top=0.99,
        bottom=0.95 / figure.get_figheight(),
    )  # fmt: skip
    legend(figure, data.algorithms, is_bounded)
    return figure


def _name_label(label, algorithm: str) -> None:
    look = style(algorithm)
    label.set_color(look.colour if look.ours else INK)
    label.set_fontweight("bold" if look.ours else "normal")


def _one_panel(data: _Data, x_axis: int) -> Figure:
    figure, axes = plt.subplots(figsize=(9.2, 4.7))
    fixed = {i: axis.values[0] for i, axis in enumerate(data.scenario.axes) if i != x_axis}
    panel = _panel(axes, data, x_axis, fixed)
    _y_limits([panel], data.metric)
    axes.set_ylabel(metric(data.metric).axis_label)
    axes.set_xlabel(axis_text(data.scenario.axes[x_axis]))
    figure.subplots_adjust(left=0.075, right=0.845, bottom=0.12, top=0.97)
    _direct_labels(panel)
    return figure


def _multiples(data: _Data, swept: list[int]) -> Figure:
    x_axis, *others = swept
    all_axes = data.scenario.axes
    combos = list(itertools.product(*(all_axes[i].levels for i in others)))
    columns = min(3, len(combos))
    rows = math.ceil(len(combos) / columns)
    titles = [[axis_text(all_axes[i], v) for i, v in zip(others, c, strict=True)] for c in combos]
    stacked = max(len(", ".join(title)) for title in titles) > TITLE_CHARACTERS
    height = (2.9 if stacked else 2.7) * rows + 1.3
    figure, grid = plt.subplots(rows, columns, figsize=(10.2, height), squeeze=False)
    single = {i: axis.values[0] for i, axis in enumerate(all_axes) if i not in swept}
    panels = []
    for axes, combo, title in zip(grid.flat, combos, titles, strict=False):
        fixed = single | dict(zip(others, combo, strict=True))
        panels.append(_panel(axes, data, x_axis, fixed))
        axes.set_title((",\n" if stacked else ", ").join(title), loc="left")
    for axes in list(grid.flat)[len(combos) :]:
        axes.set_visible(False)
    _y_limits(panels, data.metric)
    figure.supxlabel(axis_text(all_axes[x_axis]), y=0.72 / height, fontsize=FONT_PT)
    figure.supylabel(metric(data.metric).axis_label, x=0.008, fontsize=FONT_PT)
    figure.subplots_adjust(
        left=0.065, right=0.985, bottom=1.15 / height, top=1 - (0.45 if stacked else 0.3) / height,
        wspace=0.17, hspace=0.45 if stacked else 0.4,
    )  # fmt: skip
    legend(figure, data.algorithms, bool(data.limits))
    return figure


def legend(figure: Figure, names: list[str], with_bound: bool) -> None:
    handles = []
    if with_bound:
        handles.append(Line2D([], [], color=INK, ls=BOUND_DASH, lw=1.1, label=facts.BOUND))
    for name in names:
        look = style(name)
        handles.append(
            Line2D([], [], color=look.colour, ls=look.dash, lw=look.width, marker=look.marker,
                   ms=5.5, label=name)
        )  # fmt: skip
    legend = figure.legend(
        handles=handles, loc="lower center", ncol=min(len(handles), 7), handlelength=3.2
    )
    for label in legend.get_texts():
        if label.get_text() in names:
            _name_label(label, label.get_text())


def _panel(axes: Axes, data: _Data, x_axis: int, fixed: dict[int, AxisValue]) -> _Panel:
    """Draw the metric against one axis, with the other axes at the values FIXED."""
    axis = data.scenario.axes[x_axis]
    x_of = _positions(axis)
    at = {v: tuple((fixed | {x_axis: v})[i] for i in range(len(data.scenario.axes))) for v in x_of}
    panel = _Panel(axes, [], [])
    for algorithm in sorted(data.algorithms, key=lambda n: style(n).ours):  # ours on top
        found = {v: data.cells[algorithm, p] for v, p in at.items() if (algorithm, p) in data.cells}
        if found:
            _line(axes, algorithm, [x_of[v] for v in found], list(found.values()))
            last = list(found)[-1]
            panel.ends.append((algorithm, x_of[last], found[last].median))
            panel.heights += [edge for e in found.values() for edge in (e.low, e.high)]
    bound = {v: data.limits[p] for v, p in at.items() if p in data.limits}
    if bound:
        axes.plot([x_of[v] for v in bound], list(bound.values()), color=INK, ls=BOUND_DASH, lw=1.1)
        last = list(bound)[-1]
        panel.ends.append((facts.BOUND, x_of[last], bound[last]))
        panel.heights += bound.values()
    _x_ticks(axes, axis, x_of)
    return panel


def _line(axes: Axes, algorithm: str, x: list[float], values: list[Estimate]) -> None:
    look = style(algorithm)
    median = [value.median for value in values]
    low, high = [value.low for value in values], [value.high for value in values]
    if look.ours and len(x) > 1:
        axes.fill_between(x, low, high, color=look.colour, alpha=0.16, lw=0)
    else:
        axes.vlines(x, low, high, color=look.colour, lw=1.0, alpha=0.8)
    mark = {"ms": 6 if look.ours else 4.5, "mec": "white", "mew": 0.6}
    if look.marker == "*":
        mark = {"ms": 7, "mew": 0}  # an edge would take all of it
    axes.plot(
        x, median, color=look.colour, ls=look.dash, lw=look.width, marker=look.marker,
        zorder=4 if look.ours else 3, **mark,
    )  # fmt: skip


def _positions(axis: Axis) -> dict[AxisValue, float]:
    """Return where each value of AXIS lies. Zero on a logarithmic axis lies left of a break."""
    values = axis.levels
    if axis.choices:
        return {value: float(i) for i, value in enumerate(values)}
    positive = [value for value in values if value > 0]
    if axis.scale != "log" or not positive:
        return {value: value for value in values}
    logs = [math.log10(value) for value in positive]
    step = max((logs[-1] - logs[0]) / max(len(logs) - 1, 1), 0.3)
    return {v: math.log10(v) if v > 0 else logs[0] - step for v in values}


def _x_ticks(axes: Axes, axis: Axis, x_of: dict[AxisValue, float]) -> None:
    x = list(x_of.values())
    span = (max(x) - min(x)) or 1.0
    shown: list[AxisValue] = []
    for value in reversed(x_of):
        if all(abs(x_of[value] - x_of[other]) >= span / MAX_TICKS for other in shown):
            shown.append(value)
    texts = [v if isinstance(v, str) else f"{v:g}" for v in shown]
    axes.set_xticks([x_of[v] for v in shown], texts)
    if (chars := sum(len(text) + 2 for text in texts)) > PANEL_CHARS:
        size = axes.xaxis.get_ticklabels()[0].get_fontsize()
        axes.tick_params(axis="x", labelsize=max(size * PANEL_CHARS / chars, 5))
    axes.set_xlim(min(x) - 0.035 * span, max(x) + 0.035 * span)
    if axis.scale == "log" and min(x_of) <= 0 < max(x_of):
        for shift in (-0.006, 0.006):  # the two strokes of a break
            axes.plot(
                [(x[0] + x[1]) / 2 + shift * span], [0], marker=[(-1, -1.6), (1, 1.6)], ms=9,
                color=FAINT, mew=1.2, clip_on=False, transform=axes.get_xaxis_transform(),
            )  # fmt: skip


def _y_limits(panels: list[_Panel], name: str) -> None:
    """Give the panels one scale, or each its own where they differ too much to share."""
    tops = [top for top in (max(panel.heights, default=0) for panel in panels) if top > 0]
    own = tops and max(tops) > SPREAD_FOR_OWN_SCALE * min(tops)
    everything = [height for panel in panels for height in panel.heights]
    for panel in panels:
        heights = panel.heights if own else everything
        low, high = min(heights, default=0), max(heights, default=0) or 1
        if name == "jain":
            panel.axes.set_ylim(0, 1.03)
        elif name.startswith("goodput") and 0 < low < high / SPREAD_FOR_LOG:
            panel.axes.set_yscale("log")
            panel.axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.axes.yaxis.set_minor_formatter(NullFormatter())
            panel.axes.set_ylim(low / 1.3, high * 1.3)
        else:
            panel.axes.set_ylim(0, 1.06 * high)


def _direct_labels(panel: _Panel) -> None:
    """Name each line at its right end, apart from one another, with a thin leader."""
    axes = panel.axes
    to_axes = axes.transData + axes.transAxes.inverted()
    spots = [(label, *to_axes.transform((x, y))) for label, x, y in panel.ends]
    spots.sort(key=lambda spot: (spot[2], spot[0]))
    heights = _spread([spot[2] for spot in spots], LABEL_GAP)
    for (label, x, y), height in zip(spots, heights, strict=True):
        look = None if label == facts.BOUND else style(label)
        colour = look.colour if look else INK
        axes.plot(
            [x + 0.008, 1.012, 1.03], [y, height, height], transform=axes.transAxes,
            color=colour, lw=0.6, alpha=0.7, clip_on=False,
        )  # fmt: skip
        if look:
            axes.plot(
                1.037, height, look.marker, color=colour, ms=5, transform=axes.transAxes,
                clip_on=False,
            )  # fmt: skip
        name = axes.text(
            1.05 if look else 1.037, height, label, transform=axes.transAxes, va="center"
        )
        if look:
            _name_label(name, label)


def _spread(wanted: list[float], gap: float) -> list[float]:
    """Move the ascending heights WANTED apart by GAP, as little as it takes.

    Neighbours that are too close merge into a block centred on what its members wanted.
    """
    blocks: list[tuple[float, int]] = []  # centre, members
    for height in wanted:
        blocks.append((height, 1))
        while len(blocks) > 1:
            (below, n), (above, m) = blocks[-2:]
            if above - below >= gap * (n + m) / 2:
                break
            blocks[-2:] = [((below * n + above * m) / (n + m), n + m)]
    heights = [centre + gap * (i - (n - 1) / 2) for centre, n in blocks for i in range(n)]
    ceiling, floor = 1.0, gap / 2
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], ceiling)
        ceiling = heights[i] - gap
    for i in range(len(heights)):
        heights[i] = max(heights[i], floor)
        floor = heights[i] + gap
    return heights


# --- SVG ----------------------------------------------------------------------------------


def to_svg(figure: Figure) -> str:
    out = StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing, bbox_inches="tight", pad_inches=0.12)
    plt.close(figure)
    return out.getvalue()


def inline(svg: str, prefix: str, title: str) -> str:
    """Return SVG for use inside a page: no prologue, only the ids that it uses, its own, and named
    for screen readers."""
    body = svg[svg.index("<svg") :]
    used = set(re.findall(r"#([^\s\")]+)", body))
    body = re.sub(r' id="([^"]*)"', lambda name: name[0] * (name[1] in used), body)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(r'href="#', f'href="#{prefix}-', body)
    body = re.sub(r' (?:width|height)="[\d.]+pt"', "", body, count=2)
    body = re.sub(r"font-family: ('DejaVu Sans',)[^;\"]*", r"font-family: \1 sans-serif", body)
    body = re.sub(r'\b[dxy]="[^"]*"', lambda at: re.sub(r"(\.\d\d)\d+", r"\1", at[0]), body)
    body = re.sub(r"\n +", "\n", body)
    body = _with_style_sheet(body, prefix)
    return body.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _with_style_sheet(svg: str, prefix: str) -> str:
    """Return SVG with each style that stands in it more than once written once: matplotlib repeats
    them in every mark, which is a seventh of a report."""
    counts = Counter(re.findall(r' style="([^"]*)"', svg))
    repeated = [text for text, count in counts.items() if count > 1]
    classes = {text: f"{prefix}-s{i}" for i, text in enumerate(repeated)}
    rules = "\n".join(f".{name} {{{text}}}" for text, name in classes.items())

    def shared(found: re.Match) -> str:
        return f' class="{classes[found[1]]}"' if found[1] in classes else found[0]

    head, marks = re.sub(r' style="([^"]*)"', shared, svg).split(">", 1)
    return f"{head}>\n<style>\n{rules}\n</style>{marks}"
