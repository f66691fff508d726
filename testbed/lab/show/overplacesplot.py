# SPDX-License-Identifier: GPL-2.0-only
"""The figure of a run over random places: how what was measured is distributed over them."""

import math
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from lab.ask.parts import Scenario
from lab.show import facts, overplaces, plots


def figure(scenario: Scenario, results: list[dict[str, Any]], name: str) -> str:
    """Return the SVG of the distribution of NAME over places: at which share of them it is at most
    so much. A panel for each combination of further axes."""
    found, names = (
        overplaces.spreads(scenario, results, name),
        facts.algorithms_in(scenario, results),
    )
    combos = overplaces.rests(scenario)
    columns = min(3, len(combos))
    rows = math.ceil(len(combos) / columns)
    size = (9.2, 4.7) if len(combos) == 1 else (10.2, 2.9 * rows + 0.9)
    with plt.rc_context(plots.RC):
        drawn, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharex=True)
        for axes, rest in zip(grid.flat, combos, strict=False):
            axes.set_title(overplaces.rest_text(scenario, rest), loc="left")
            _draw(axes, {who: found[who, rest] for who in names if (who, rest) in found})
            for mark in overplaces.marks(scenario, name):
                if not mark.against or mark.against == "bound":
                    axes.axvline(mark.at, color=plots.INK, ls=plots.BOUND_DASH, lw=1.1)
            axes.set_ylim(0, 1)
            _x_scale(axes, name, [v for spread in found.values() for v in spread.values])
        for axes in list(grid.flat)[len(combos) :]:
            axes.set_visible(False)
        count = max((len(spread.values) for spread in found.values()), default=0)
        foot = 1.05 / size[1]
        drawn.supxlabel(overplaces.metric(name).axis_label, y=foot * 0.62, fontsize=plots.FONT_PT)
        drawn.supylabel(f"Share of {count} places at or below", x=0.008, fontsize=plots.FONT_PT)
        drawn.subplots_adjust(left=0.075, right=0.985, bottom=foot, top=0.95, hspace=0.3)
        plots.legend(drawn, names, with_bound=False)
        return plots.to_svg(drawn)


def _draw(axes: plt.Axes, found: dict[str, overplaces.Spread]) -> None:
    for who in sorted(found, key=lambda name: facts.style(name).ours):  # ours on top
        look, at = facts.style(who), found[who].values
        heights = np.arange(len(at) + 1) / len(at)
        axes.step([at[0], *at], heights, where="post", color=look.colour, ls=look.dash,
                  lw=look.width)  # fmt: skip
        middle = len(at) // 2
        axes.plot(at[middle], heights[middle + 1], look.marker, color=look.colour, ms=6)


def _x_scale(axes: plt.Axes, name: str, shown: list[float]) -> None:
    """A logarithmic scale where values are of several orders, but for shares, which end at 1."""
    low, high = min(shown, default=0), max(shown, default=1)
    if not overplaces.is_rate(name) and 0 < low < high / plots.SPREAD_FOR_LOG:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(1.02 * high, 1.02 if overplaces.is_rate(name) else 0) or 1)
