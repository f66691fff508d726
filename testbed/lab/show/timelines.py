# SPDX-License-Identifier: GPL-2.0-only
"""Figures over time as SVG text: goodput of several points; window, losses, RTT and queues of one;
the jitter ratio of one flow.

Equal input gives equal bytes, as in lab.show.plots, which has the looks.
"""

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lab.measure import ratios
from lab.measure.metrics import drop_causes, with_subflows
from lab.show.facts import Style, style
from lab.show.plots import BOUND_DASH, FAINT, FONT_PT, INK, RC, to_svg

SSTHRESH_NONE_PKTS = 1_000_000  # the kernel's "no threshold yet" is 2^31 - 1
WINDOW_RTTS = 400  # of one point's life that a figure still resolves
MAX_FLOWS_DRAWN = 8
RTTS_DRAWN = 300  # of a flow, about: more are not seen, and make a figure large
AGENTS_DRAWN = 3
QUEUE_SHADES = ("#4b5563", "#3f8fc4", "#b0802a")
RATIO_ROOM = 3.2  # of a figure of the jitter ratio, in 1/w of a small window
LOSS_LOOK = {"random": ("#e08a00", "o"), "congestion": ("#5b1a78", "v")}
BINS, SAMPLES_A_BIN = 40, 5  # of goodput over time: at most, at least
BIN_S = (0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 60)
# Lines that are values of an axis, from the first to the last; no algorithm is drawn beside them.
VALUE_COLOURS = ("#8fb0d3", "#6c93c0", "#4b75a9", "#30588d", "#1d3c6b", "#0d2347")


# --- goodput over time --------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Goodput of one point over time. EDGES_S: n + 1 times, GOODPUT_MBPS: n rates between them."""

    label: str
    look: Style
    edges_s: np.ndarray
    goodput_mbps: np.ndarray


@dataclass(frozen=True)
class Grid:
    """Panels with their lines, ROWS names by COLUMNS names; a row has one scale. LABELS: of all
    lines, as the legend lists them."""

    rows: list[str]
    columns: list[str]
    labels: list[str]
    panels: dict[tuple[int, int], list[Line]]


def value_look(number: int, of: int) -> Style:
    """Return how the NUMBERth of so many values of an axis looks."""
    shade = (len(VALUE_COLOURS) - 1) * number // max(of - 1, 1)
    return Style(VALUE_COLOURS[shade], "", "-" if number else (0, (5, 2)), number > 0)


def bin_s(duration_s: float, sample_ms: float) -> float:
    """Return the width of a bin: a round number, at most BINS of them, each of some samples."""
    wanted = max(duration_s / BINS, SAMPLES_A_BIN * sample_ms / 1000)
    return next((width for width in BIN_S if width >= wanted), wanted)


def goodput(result: dict[str, Any], flows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the bins' edges (s) and the rate in each (Mb/s) at which the payload of the flows
    under test was acknowledged, together. Between samples a flow is taken for steady."""
    params = result["params"]
    end_s, least_s = float(params["duration_s"]), SAMPLES_A_BIN * params["sample_ms"] / 1000
    edges = np.arange(0.0, end_s - 1e-9, bin_s(end_s, params["sample_ms"]))
    if len(edges) > 1 and end_s - edges[-1] < least_s:
        edges = edges[:-1]
    edges = np.append(edges, end_s)
    total = np.zeros(len(edges))
    for flow in [flow for flow in result["flows"] if flow["under_test"]]:
        rows = flows.filter(pl.col("flow") == flow["name"]).drop_nulls("bytes_acked")
        inside = rows.filter(pl.col("time_s").is_between(flow["start_s"], flow["stop_s"], "none"))
        inside = inside.sort("time_s")
        time_s = [flow["start_s"], *inside["time_s"], flow["stop_s"]]
        total += np.interp(edges, time_s, [0, *inside["bytes_acked"], flow["bytes_whole"]])
    return edges, np.diff(total) * 8e-6 / np.diff(edges)


def goodput_figure(grid: Grid) -> str:
    """Return the SVG of GRID."""
    rows, columns = len(grid.rows), len(grid.columns)
    alone = rows * columns == 1
    height = 3.4 if alone else 1.75 * rows + 1.1
    with plt.rc_context(RC):
        figure, all_axes = plt.subplots(
            rows, columns, figsize=(9.2, height), squeeze=False, sharex=True, sharey="row"
        )
        named: dict[str, Line2D] = {}
        for (row, column), lines in grid.panels.items():
            for line in lines:
                (drawn,) = all_axes[row, column].step(
                    line.edges_s, np.append(line.goodput_mbps, line.goodput_mbps[-1:]),
                    where="post", color=line.look.colour, ls=line.look.dash,
                    lw=1.6 if line.look.ours else 1.2, label=line.label,
                    zorder=3 if line.look.ours else 4,  # dashes hide less of what they cover
                )  # fmt: skip
                named.setdefault(line.label, drawn)
        for axes, name in zip(all_axes[0], grid.columns, strict=True):
            axes.set_title(name, loc="left")
        for axes, name in zip(all_axes[:, 0], grid.rows, strict=True):
            axes.set_ylabel(name, fontsize=FONT_PT)
            axes.set_ylim(bottom=0)
        last_s = max(line.edges_s[-1] for lines in grid.panels.values() for line in lines)
        all_axes[0, 0].set_xlim(0, last_s)
        figure.supxlabel("time (s)", y=0.42 / height, fontsize=FONT_PT)
        figure.supylabel("goodput (Mb/s)", x=0.005, fontsize=FONT_PT)
        figure.align_ylabels(all_axes[:, 0])
        figure.subplots_adjust(
            left=0.085 if alone else 0.11, right=0.985, bottom=0.9 / height,
            top=1 - 0.3 / height, wspace=0.06, hspace=0.16,
        )  # fmt: skip
        order = [*grid.labels, *named]
        figure.legend(
            handles=sorted(named.values(), key=lambda line: order.index(line.get_label())),
            loc="lower center", ncol=min(len(named), 7), handlelength=3.2,
        )  # fmt: skip
        return to_svg(figure)


# --- RTT over time ------------------------------------------------------------------------


def rtt_figure(compared: dict[str, tuple[dict[str, Any], pl.DataFrame]]) -> str:
    """Return the SVG of the smoothed RTT over time of some points' flows under test, each point
    with its flows' samples, by the algorithm's name: a line a flow, MAX_FLOWS_DRAWN at most."""
    with plt.rc_context(RC):
        figure, axes = plt.subplots(figsize=(9.2, 3.4))
        for name, (result, flows) in compared.items():
            look = style(name)
            tested = [flow["name"] for flow in result["flows"] if flow["under_test"]]
            for number, flow in enumerate(tested[:MAX_FLOWS_DRAWN]):
                rows = flows.filter(pl.col("flow") == flow).sort("time_s")
                rows = rows.gather_every(max(1, len(rows) // RTTS_DRAWN))
                axes.plot(
                    rows["time_s"], rows["srtt_ms"].fill_null(math.nan), color=look.colour,
                    ls=look.dash, lw=1.6 if look.ours else 1.2, label=None if number else name,
                )  # fmt: skip
        axes.set_xlim(0, max(result["params"]["duration_s"] for result, _ in compared.values()))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("smoothed RTT (ms)")
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.005, 0.985), ncol=len(compared), handlelength=3.2,
            borderaxespad=0,
        )  # fmt: skip
        figure.subplots_adjust(left=0.085, right=0.985, bottom=0.15, top=0.9)
        return to_svg(figure)


# --- one point over time ------------------------------------------------------------------


def read_samples(path: Path) -> pl.DataFrame | None:
    """Return a sample file as numbers (names stay text), flows with their second subflows, or
    nothing if it has no rows."""
    if not path.is_file() or not path.stat().st_size:
        return None
    frame = pl.read_csv(path, infer_schema_length=None)
    names = {"flow", "algorithm", "ca_state", "cc_kind", "hop", "node", "device", "channel"}
    frame = frame.with_columns(pl.exclude(*names).cast(pl.Float64, strict=False))
    if not len(frame):
        return None
    return with_subflows(frame) if "flow" in frame.columns else frame


def losses(hops: pl.DataFrame, params: dict[str, Any]) -> dict[str, list[tuple[float, int]]]:
    """Return, by cause, the sample times (s) that saw drops on the forward path and how many."""
    causes = drop_causes(params["links"])
    found: dict[str, dict[float, int]] = {cause: defaultdict(int) for cause in LOSS_LOOK}
    for hop in params["topology"]["hops"]:
        rows = hops.filter(pl.col("hop") == hop).sort("time_s")
        new = np.diff(rows["drops"].fill_null(0).to_numpy(), prepend=0.0)
        for time_s, count in zip(rows["time_s"], new, strict=True):
            if count > 0:
                found[causes[hop]][time_s] += int(count)
    return {cause: sorted(at.items()) for cause, at in found.items()}


def window_s(result: dict[str, Any], flows: pl.DataFrame) -> float:
    """Return how many seconds of a point to draw: WINDOW_RTTS, or all if a flow starts late or the
    RTT is not the links' but the medium's."""
    params = result["params"]
    if params.get("medium"):
        return params["duration_s"]
    rtt_s = sum(link["delay_ms"] for link in params["links"].values()) / 1000
    wanted = max(WINDOW_RTTS * rtt_s, 100 * params["sample_ms"] / 1000)
    last_start_s = flows.group_by("flow").agg(pl.col("time_s").min())["time_s"].max() or 0.0
    return params["duration_s"] if last_start_s > 1 else min(params["duration_s"], wanted)


def cwnd_figure(result: dict[str, Any], flows: pl.DataFrame, hops: pl.DataFrame | None) -> str:
    """Return the SVG of one point's beginning: window, losses by cause, RTT, queue."""
    end_s = window_s(result, flows)
    flows = flows.filter(pl.col("time_s") <= end_s).sort("time_s", maintain_order=True)
    with plt.rc_context(RC):
        figure, (window, rug, rtt, queue) = plt.subplots(
            4, 1, figsize=(9.2, 4.9), sharex=True, height_ratios=(3.2, 0.62, 1.25, 1.0)
        )
        _draw_windows(window, flows, result["algorithm"])
        _draw_srtt(rtt, flows)
        if hops is None:
            rug.text(0.5, 0.5, "no samples of the queues", transform=rug.transAxes, ha="center")
        else:
            hops = hops.filter(pl.col("time_s") <= end_s)
            _draw_losses(rug, window, losses(hops, result["params"]))
            _draw_queue(queue, hops, result["params"])
        _losses_only(rug)
        queue.set_xlim(0, end_s)
        queue.set_xlabel("time (s)")
        figure.align_ylabels([window, rtt, queue])
        figure.subplots_adjust(left=0.085, right=0.985, bottom=0.1, top=0.93, hspace=0.17)
        return to_svg(figure)


def _flows_drawn(flows: pl.DataFrame, algorithm: str) -> list[tuple[str, str]]:
    """Return (flow, algorithm) of those to draw, the flows under test first."""
    pairs = list(dict.fromkeys(zip(flows["flow"], flows["algorithm"], strict=True)))
    return sorted(pairs, key=lambda pair: pair[1] != algorithm)[:MAX_FLOWS_DRAWN]


def _draw_windows(axes: Axes, flows: pl.DataFrame, algorithm: str) -> None:
    drawn = _flows_drawn(flows, algorithm)
    named: set[str] = set()
    for name, kind in drawn:
        rows, look = flows.filter(pl.col("flow") == name), style(kind)
        axes.plot(
            rows["time_s"], rows["cwnd_pkts"], color=look.colour, lw=1.5 if look.ours else 1.2,
            drawstyle="steps-post", alpha=1 if len(drawn) == 1 else 0.75,
            label=None if kind in named else (kind if len(drawn) > 1 else "cwnd"),
        )  # fmt: skip
        named.add(kind)
    rows = flows.filter(pl.col("flow") == drawn[0][0])
    ssthresh = rows.with_columns(
        pl.when(pl.col("ssthresh_pkts") < SSTHRESH_NONE_PKTS).then(pl.col("ssthresh_pkts"))
    )
    label = "ssthresh" if len(drawn) == 1 else f"ssthresh of {drawn[0][0]}"
    axes.plot(
        rows["time_s"], ssthresh["ssthresh_pkts"].fill_null(math.nan), color=FAINT, lw=0.9,
        ls=(0, (3, 1.5)), drawstyle="steps-post", label=label,
    )  # fmt: skip
    top = flows["cwnd_pkts"].max() or 1
    axes.set_ylim(0, 1.08 * top)
    axes.set_ylabel("window\n(packets)")
    axes.legend(loc="lower right", bbox_to_anchor=(1.005, 0.985), ncol=4, borderaxespad=0)


def _draw_losses(rug: Axes, window: Axes, found: dict[str, list[tuple[float, int]]]) -> None:
    handles = []
    for y, (cause, (colour, marker)) in enumerate(reversed(LOSS_LOOK.items())):
        times = [time_s for time_s, _ in found[cause]]
        total = sum(count for _, count in found[cause])
        rug.plot(times, [y] * len(times), marker, color=colour, ms=3.6, mew=0, clip_on=False)
        handles.append(
            Line2D([], [], ls="", marker=marker, color=colour, ms=5, label=f"{cause} loss: {total}")
        )
    legend = window.get_legend()
    window.add_artist(legend)
    window.legend(
        handles=handles[::-1], loc="lower left", bbox_to_anchor=(-0.008, 0.985), ncol=2,
        borderaxespad=0, handletextpad=0.2,
    )  # fmt: skip


def _draw_srtt(axes: Axes, flows: pl.DataFrame) -> None:
    for name, kind in _flows_drawn(flows, ""):
        rows = flows.filter(pl.col("flow") == name)
        axes.plot(rows["time_s"], rows["srtt_ms"].fill_null(math.nan), color=style(kind).colour,
                  lw=1.1)  # fmt: skip
    axes.set_ylim(0, 1.1 * (flows["srtt_ms"].max() or 1))
    axes.set_ylabel("srtt\n(ms)")


def _draw_queue(axes: Axes, hops: pl.DataFrame, params: dict[str, Any]) -> None:
    links = params["links"]
    queues = [h for h in params["topology"]["hops"] if links[h]["queue_pkts"]]
    top = 1.0
    for hop, shade in zip(queues, itertools.cycle(QUEUE_SHADES)):
        rows = hops.filter(pl.col("hop") == hop).sort("time_s")
        backlog_pkts = rows["backlog_pkts"].fill_null(0)
        if len(queues) == 1:
            axes.fill_between(rows["time_s"], backlog_pkts, step="post", color=shade, lw=0,
                              alpha=0.75)  # fmt: skip
        else:  # one would hide the other
            axes.step(rows["time_s"], backlog_pkts, where="post", color=shade, lw=0.9, label=hop)
        room = links[hop]["queue_pkts"]
        axes.axhline(room, color=INK, ls=BOUND_DASH, lw=0.9)
        top = max(top, room, rows["backlog_pkts"].max() or 0)
    axes.set_ylim(0, 1.12 * top)
    axes.set_ylabel("queue\n(packets)")
    if len(queues) > 1:
        axes.legend(loc="upper right", bbox_to_anchor=(1.005, -0.5), ncol=len(queues),
                    borderaxespad=0)  # fmt: skip


# --- what nodes say over time --------------------------------------------------------------


def agents_figure(result: dict[str, Any], agents: pl.DataFrame, flows: pl.DataFrame | None) -> str:
    """Return the SVG of what the nodes of a wireless chain (AGENTS: /proc/net/wccp of each) and the
    flows' senders knew: busyness r_b and what is aimed at, the bandwidth that is left BW_a, what
    the rates together are to change by dS, and the rates r_p. Of nodes those are drawn that have
    been busiest, AGENTS_DRAWN of them. FLOWS: none if no flow ever had a connection."""
    means = agents.group_by("node").agg(pl.col("busy_permille").mean()).sort("busy_permille")
    drawn = sorted(means["node"].tail(AGENTS_DRAWN), key=lambda name: int(name[1:]))
    one_hop_mbps = result["bound_mbps"]
    with plt.rc_context(RC):
        figure, (busy, left, change, rate) = plt.subplots(4, 1, figsize=(9.2, 6.0), sharex=True)
        for number, name in enumerate(drawn):
            rows = agents.filter(pl.col("node") == name).sort("time_s")
            look = {"color": value_look(number, len(drawn)).colour, "lw": 1.0, "label": name}
            r_b, th_b = (rows[f"{what}_permille"] / 1000 for what in ("busy", "threshold"))
            busy.plot(rows["time_s"], r_b, **look)
            busy.plot(rows["time_s"], th_b, color=look["color"], lw=0.8, ls=BOUND_DASH)
            left.plot(rows["time_s"], (th_b - r_b).clip(0) * one_hop_mbps, **look)
            d_s = rows["change_permille"] / 1000 * rows["bytes_per_s"] * 8e-6
            change.plot(rows["time_s"], d_s, **look)
        for name, _ in [] if flows is None else _flows_drawn(flows, result["algorithm"]):
            rows = flows.filter(pl.col("flow") == name).sort("time_s")
            rate.plot(rows["time_s"], rows["cc_bw_mbps"].fill_null(0), lw=1.0, label=name)
        for axes, what in zip(
            (busy, left, change, rate), ("r_b, th_b", "BW_a (Mb/s)", "dS (Mb/s)", "r_p (Mb/s)"),
            strict=True,
        ):  # fmt: skip
            axes.set_ylabel(what)
        busy.legend(loc="lower right", bbox_to_anchor=(1.005, 0.985), ncol=5, borderaxespad=0)
        if flows is not None:
            rate.legend(loc="lower right", bbox_to_anchor=(1.005, 0.9), ncol=6, borderaxespad=0)
        rate.set_xlim(0, result["params"]["duration_s"])
        rate.set_xlabel("time (s)")
        figure.align_ylabels([busy, left, change, rate])
        figure.subplots_adjust(left=0.085, right=0.985, bottom=0.09, top=0.94, hspace=0.2)
        return to_svg(figure)


# --- the jitter ratio over time -----------------------------------------------------------


def ratio_figure(result: dict[str, Any], samples: pl.DataFrame, hops: pl.DataFrame | None) -> str:
    """Return the SVG of one flow's jitter ratio over time, raw and, where it is, smoothed, each
    against 1/w, and of the losses. SAMPLES: of lab.measure.ratios; of several flows the first is
    drawn."""
    samples = samples.filter(pl.col("flow") == samples["flow"][0]).sort("time_s")
    time_s, inverse = samples["time_s"], 1 / samples["cwnd_pkts"]
    top = RATIO_ROOM * inverse.quantile(0.95)
    shown = {"jitter_ratio": "raw Jr"}
    if ratios.is_smoothed(samples):
        shown["jitter_ratio_smoothed"] = "smoothed Jr"
    with plt.rc_context(RC):
        figure, (*panels, rug) = plt.subplots(
            len(shown) + 1, 1, figsize=(9.2, 0.7 + 2.1 * len(shown)), sharex=True,
            height_ratios=(*[2.3] * len(shown), 0.45),
        )  # fmt: skip
        for axes, (column, name) in zip(panels, shown.items(), strict=True):
            colour = style(samples["algorithm"][0]).colour
            _draw_ratio(axes, time_s, samples[column], colour, name, (-top / 2, top))
            axes.plot(time_s, inverse, color=INK, lw=1.1, ls=BOUND_DASH, label="1/w")
            axes.set_ylabel(name)
            axes.legend(loc="lower right", bbox_to_anchor=(1.005, 0.985), ncol=4, borderaxespad=0)
        _losses_only(rug)
        if hops is not None:
            _draw_losses(rug, panels[0], losses(hops, result["params"]))
        rug.set_xlim(0, result["params"]["duration_s"])
        rug.set_xlabel("time (s)")
        figure.align_ylabels(panels)
        figure.subplots_adjust(left=0.085, right=0.985, bottom=0.1, top=0.93, hspace=0.24)
        return to_svg(figure)


def _draw_ratio(
    axes: Axes, time_s: pl.Series, ratio: pl.Series, colour: str, name: str,
    limits: tuple[float, float],
) -> None:  # fmt: skip
    """Draw RATIO over time: samples of 0 as rings, those beyond LIMITS as arrows at the edge."""
    low, high = limits
    axes.plot(time_s, ratio, color=colour, lw=0.7, alpha=0.55)
    inside = (ratio > low) & (ratio < high) & (ratio != 0)
    axes.plot(time_s.filter(inside), ratio.filter(inside), "o", color=colour, ms=2.6, mew=0,
              label=name)  # fmt: skip
    zero = time_s.filter(ratio == 0)
    if len(zero):
        axes.plot(zero, [0] * len(zero), "o", mfc="white", mec=colour, mew=0.9, ms=3.6, ls="",
                  label=f"0: {len(zero)} of {len(ratio)} samples")  # fmt: skip
    for beyond, edge, marker in ((ratio >= high, high, 6), (ratio <= low, low, 7)):
        at = time_s.filter(beyond)
        axes.plot(at, [edge] * len(at), marker=marker, color=colour, ms=4.5, ls="", clip_on=False)
    axes.set_ylim(low, high)


def _losses_only(rug: Axes) -> None:
    """Make RUG a strip for marks of losses, without a scale."""
    rug.set_yticks([])
    rug.set_ylim(-0.6, 1.6)
    rug.grid(False)
    rug.set_ylabel("losses", rotation=0, ha="right", va="center")
    for spine in rug.spines.values():
        spine.set_visible(False)
    rug.tick_params(axis="x", length=0)
