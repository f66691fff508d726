# SPDX-License-Identifier: GPL-2.0-only
"""Throughput against delay: what was carried of what could be, and how long packets were under way.
One panel for each place of a sweep; up and to the left is better."""

import math
from collections.abc import Iterable
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from lab.ask.parts import Scenario, place_text
from lab.show import facts, plots

DELAY = "owd_ms_p95"
CAPTION = "Share of the bound against the 95th percentile of one-way delay; up and left is better"
COLUMNS = 3


def shares(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return RESULTS with the share of the bound that each carried."""
    return [
        result | {"share": result["goodput_mbps"] / result["bound_mbps"]}
        for result in results
        if result.get("bound_mbps") and result.get(DELAY) is not None
    ]


def scatter_figure(scenario: Scenario, results: list[dict[str, Any]]) -> str:
    """Return the SVG: a point for each algorithm with its intervals (of a few seeds: ranges)."""
    results = shares(results)
    carried = facts.estimates(scenario, results, "share")
    delays = facts.estimates(scenario, results, DELAY)
    names = facts.algorithms_in(scenario, results)
    places = facts.places(scenario)
    rows = math.ceil(len(places) / COLUMNS)
    height = 2.5 * rows + 0.9
    with plt.rc_context(plots.RC):
        figure, grid = plt.subplots(
            rows, min(COLUMNS, len(places)), figsize=(10.2, height), squeeze=False
        )
        for axes, place in zip(grid.flat, places, strict=False):
            for name in names:
                if (name, place) in carried:
                    _point(axes, name, delays[name, place], carried[name, place])
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylim(0, 1.08)
            axes.axhline(1, color=plots.INK, ls=plots.BOUND_DASH, lw=0.8)
            axes.set_title(place_text(scenario.axes, place), loc="left")
        for axes in list(grid.flat)[len(places) :]:
            axes.set_visible(False)
        figure.supxlabel(facts.metric(DELAY).axis_label, y=0.42 / height, fontsize=plots.FONT_PT)
        figure.supylabel("Share of the bound", x=0.008, fontsize=plots.FONT_PT)
        figure.subplots_adjust(
            left=0.065, right=0.985, bottom=0.95 / height, top=1 - 0.3 / height,
            wspace=0.17, hspace=0.42,
        )  # fmt: skip
        plots.legend(figure, names, with_bound=False)
        return plots.to_svg(figure)


def _point(axes, name: str, delay, share) -> None:
    look = facts.style(name)
    axes.plot([delay.low, delay.high], [share.median] * 2, color=look.colour, lw=look.width)
    axes.plot([delay.median] * 2, [share.low, share.high], color=look.colour, lw=look.width)
    axes.plot(delay.median, share.median, look.marker, color=look.colour, ms=6.5, clip_on=False)
