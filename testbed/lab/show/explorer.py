# SPDX-License-Identifier: GPL-2.0-only
"""What the report's live figures are drawn from: every point with its figures, how delays are
distributed, and what happened over time. templates/explorer.js draws it.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.markers import MarkerStyle

from lab.ask.parts import Scenario, place_text
from lab.show import facts, timelines
from lab.show.facts import Place

QUANTILES = 100  # steps of a distribution
TIMES_MAX = 22_000  # numbers over time that a page may have
MARK_PX = 8.0


def data(
    scenario: Scenario,
    results: list[dict[str, Any]],
    folder: Path,
    metrics: Iterable[str],
    middle: Place,
    linked: bool,
) -> dict[str, Any]:
    """Return it for JSON. METRICS: which may be looked at, the first one is shown first; MIDDLE:
    the place that is shown over time first. LINKED: whether the page will lie in FOLDER, where
    points and samples are."""
    places, names = facts.places(scenario), facts.algorithms_in(scenario, results)
    shown = [name for name in dict.fromkeys(metrics) if _has(results, name)]
    rows = []
    for result in results:
        rows.append([
            names.index(result["algorithm"]), places.index(facts.place(scenario, result)),
            result["seed"], result["point"],
            *(_number(result.get(name), facts.metric(name).digits + 2) for name in shown),
        ])  # fmt: skip
    sampled = _sampled(scenario, results, folder)
    return {
        "algorithms": [_look(name) for name in names],
        "places": [place_text(scenario.axes, place) for place in places],
        "metrics": [[n, facts.metric(n).label, facts.metric(n).unit] for n in shown],
        "points": rows,
        "sampled": [result["point"] for result, _ in sampled],
        "kept": linked and (folder / "points").is_dir(),
        "delays": [_delays(scenario, names, places, *of) for of in sampled],
        "times": _times(scenario, names, places, sampled, folder, middle),
        "causes": {cause: colour for cause, (colour, _) in timelines.LOSS_LOOK.items()},
    }


def _has(results: list[dict[str, Any]], name: str) -> bool:
    return any(isinstance(result.get(name), (int, float)) for result in results)


def _number(value: Any, digits: int) -> float | None:
    """Return VALUE as JSON has it: short, and nothing where there is no number."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return round(value, digits)


def _look(name: str) -> dict[str, Any]:
    style = facts.style(name)
    dash = "" if style.dash == "-" else " ".join(f"{2 * part:g}" for part in style.dash[1])
    return {
        "name": name,
        "colour": style.colour,
        "dash": dash,
        "ours": style.ours,
        "mark": _outline(style.marker),
    }


def _outline(marker: str) -> str:
    """Return a MARKER of plots as an SVG path from its middle, MARK_PX wide or high."""
    shape = MarkerStyle(marker)
    (corners,) = shape.get_path().transformed(shape.get_transform()).to_polygons()
    low, high = corners.min(axis=0), corners.max(axis=0)
    corners = (corners - (low + high) / 2) * MARK_PX / (high - low).max()
    at, steps = (0.0, 0.0), []
    for x, y in ((round(x, 1), round(-y, 1)) for x, y in corners):
        steps.append(f"{x - at[0]:.1f} {y - at[1]:.1f}")
        at = x, y
    return f"m{'l'.join(steps)}z"


Sampled = tuple[dict[str, Any], pl.DataFrame]


def _sampled(scenario: Scenario, results: list[dict[str, Any]], folder: Path) -> list[Sampled]:
    """Return the points whose flows' samples are in FOLDER, of each algorithm and place the first
    seed's."""
    found: dict[tuple[str, Place], Sampled] = {}
    for result in sorted(results, key=lambda result: result["seed"]):
        key = result["algorithm"], facts.place(scenario, result)
        path = folder / "samples" / f"{result['point']}.flows.csv"
        if key not in found and (flows := timelines.read_samples(path)) is not None:
            found[key] = result, flows
    return list(found.values())


def _which(scenario, names, places, result) -> dict[str, int]:
    place = places.index(facts.place(scenario, result))
    return {"algorithm": names.index(result["algorithm"]), "place": place, "seed": result["seed"]}


def _delays(scenario, names, places, result: dict[str, Any], flows: pl.DataFrame) -> dict[str, Any]:
    """Return the quantiles of the round-trip time (ms) that the flows under test saw after the
    warm-up."""
    tested = [flow["name"] for flow in result["flows"] if flow["under_test"]]
    seen = flows.filter(
        pl.col("flow").is_in(tested), pl.col("time_s") >= result["params"]["warmup_s"]
    )["srtt_ms"].drop_nulls()
    steps = [i / QUANTILES for i in range(QUANTILES + 1)] if len(seen) else []
    quantiles = [round(float(seen.quantile(step, "linear")), 2) for step in steps]
    return _which(scenario, names, places, result) | {"ms": quantiles}


def _times(
    scenario, names, places, sampled: list[Sampled], folder: Path, middle: Place
) -> list[dict[str, Any]]:
    """Return what happened over time, of the points at MIDDLE and of others while there is room."""
    found, room = [], TIMES_MAX
    for result, flows in sorted(sampled, key=lambda of: facts.place(scenario, of[0]) != middle):
        one = _over_time(result, flows, folder)
        room -= sum(map(len, [one["s"], *one["series"].values()]))
        if room < 0 and found:
            break
        found.append(_which(scenario, names, places, result) | one)
    return found


def _over_time(result: dict[str, Any], flows: pl.DataFrame, folder: Path) -> dict[str, Any]:
    """Return window, round-trip time and rate of the first flow under test, at the times S, and the
    losses on the path by cause."""
    tested = next(flow["name"] for flow in result["flows"] if flow["under_test"])
    rows = flows.filter(pl.col("flow") == tested).sort("time_s", maintain_order=True)
    seconds = rows["time_s"].to_list()
    acked = rows["bytes_acked"].fill_null(0).to_list()
    rates = [0.0] + [
        8e-6 * (acked[i] - acked[i - 1]) / max(seconds[i] - seconds[i - 1], 1e-9)
        for i in range(1, len(seconds))
    ]
    hops = timelines.read_samples(folder / "samples" / f"{result['point']}.hops.csv")
    losses = timelines.losses(hops, result["params"]) if hops is not None else {}
    return {
        "s": [round(second, 3) for second in seconds],
        "series": {
            "Window (packets)": [_number(value, 1) for value in rows["cwnd_pkts"]],
            "Round-trip time (ms)": [_number(value, 1) for value in rows["srtt_ms"]],
            "Goodput (Mb/s)": [_number(value, 3) for value in rates],
        },
        "losses": {
            cause: [[round(time_s, 3), count] for time_s, count in at]
            for cause, at in losses.items()
        },
    }
