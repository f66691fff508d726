# SPDX-License-Identifier: GPL-2.0-only
"""The jitter ratio as a module sees it, sample by sample (tcp_jitter_trace.h, sctp_jitter_trace.h).

Its papers say: on a saturated path Jr is 1/w, but for samples where a queue of equal length at
both ends of the span gives 0, which says nothing; sjr, which leaves those out, follows 1/w. So
samples are measured in 1/w, and those below half of it count: there a loss would be called random.
"""

from pathlib import Path
from typing import Any

import polars as pl

from lab.ask.points import RATIO_EVENTS
from lab.measure import trace

BELOW = 0.5  # of 1/w: jtcp's own k (docs/jtcp.md)
COLUMNS = {
    "time_s": pl.Float64,
    "flow": pl.String,
    "algorithm": pl.String,
    "cwnd_pkts": pl.Int64,
    "jitter_ratio": pl.Float64,
    "jitter_ratio_smoothed": pl.Float64,
}


def read_point(spec: dict[str, Any], raw: Path, ends: list[dict]) -> pl.DataFrame:
    """Return every sample of the point in the folder RAW, with COLUMNS. ENDS: what labflow said of
    each of SPEC's flows."""
    flows, start_ns = trace.flows_by_port(spec, ends), trace.start_ns(spec, ends)
    rows = [
        {
            "time_s": (event["time_ns"] - start_ns) / 1e9,
            "flow": flows[event["sport"]][0],
            "algorithm": flows[event["sport"]][1],
            "cwnd_pkts": event["cwnd_pkts"],
            "jitter_ratio": round(event["jr"] / trace.JITTER_RATIO_ONE, 6),
            "jitter_ratio_smoothed": round(event["sjr"] / trace.JITTER_RATIO_ONE, 6),
        }
        for event in trace.events((raw / "trace.txt").read_text(), *RATIO_EVENTS)
        if event["sport"] in flows
    ]
    return pl.DataFrame(rows, schema=COLUMNS)


def figures(rows: pl.DataFrame) -> dict[str, float | None]:
    """Return JITTER_RATIOS (lab.ask.figures) of the samples in ROWS: shares in %, medians in 1/w;
    None if there are none."""
    smoothed = rows if is_smoothed(rows) else rows.clear()
    jr = rows["jitter_ratio"] * rows["cwnd_pkts"]
    sjr = smoothed["jitter_ratio_smoothed"] * smoothed["cwnd_pkts"]
    return {
        "jr_zero_pct": _percent(jr == 0),
        "jr_below_pct": _percent(jr < BELOW),
        "sjr_below_pct": _percent(sjr < BELOW),
        "jr_w_p50": jr.median(),
        "sjr_w_p50": sjr.median(),
    }


def is_smoothed(rows: pl.DataFrame) -> bool:
    """Say whether the module smoothed at all: with a weight of 0 its smoothed ratio stays 0."""
    return bool((rows["jitter_ratio_smoothed"] != 0).any())


def _percent(found: pl.Series) -> float | None:
    return 100 * found.mean() if len(found) else None
