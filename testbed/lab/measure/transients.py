# SPDX-License-Identifier: GPL-2.0-only
"""How long flows take to find their rate again after an event, and to share it fairly.

Both count in windows of WINDOW_S, from the bytes acknowledged as they were sampled; between samples
a flow is taken for steady. What never happens counts with the time that it had.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from lab.measure.stats import jain_index

WINDOW_S = 1.0
RECOVERED = 0.8  # of what the path can carry after the event
FAIR, FAIR_WINDOWS = 0.95, 5  # Jain's index, in so many windows in a row


def acknowledged(samples: pl.DataFrame, flow: str, times_s: np.ndarray) -> np.ndarray:
    """Return the bytes that FLOW had acknowledged at TIMES_S."""
    mine = samples.filter(pl.col("flow") == flow).sort("time_s")
    if not len(mine):
        return np.zeros(len(times_s))
    known = mine["bytes_acked"].cast(pl.Float64).to_numpy()
    return np.interp(times_s, mine["time_s"].to_numpy(), known, left=0.0)


def recovery_s(
    samples: pl.DataFrame, flows: list[str], sample_s: float, from_s: float, to_s: float,
    wanted_mbps: float,
) -> float | None:  # fmt: skip
    """Return how long after FROM_S the FLOWS together first had RECOVERED of WANTED_MBPS for
    WINDOW_S, before TO_S; None if they did not."""
    begins_s = np.arange(from_s, to_s - WINDOW_S + 1e-9, sample_s)
    got = sum(
        acknowledged(samples, flow, begins_s + WINDOW_S) - acknowledged(samples, flow, begins_s)
        for flow in flows
    )
    found = np.flatnonzero(np.asarray(got) * 8e-6 / WINDOW_S >= RECOVERED * wanted_mbps)
    return float(begins_s[found[0]] - from_s) if len(found) else None


def recoveries(
    samples: pl.DataFrame, flows: list[str], sample_s: float, duration_s: float,
    steps: list[tuple[float, float]],
) -> dict[str, Any]:  # fmt: skip
    """Return recovery_s (the longest), unrecovered (how many) and recoveries (of each) of STEPS:
    when, and what the path can carry from then on in Mb/s; a step to nothing is none."""
    found = []
    for (at_s, mbps), (end_s, _) in pairwise([*steps, (duration_s, 0.0)]):
        if mbps > 0 and end_s - at_s > WINDOW_S:
            took_s = recovery_s(samples, flows, sample_s, at_s, end_s, mbps)
            found.append({"at_s": at_s, "recovery_s": took_s, "had_s": end_s - at_s})
    took = [one["had_s"] if one["recovery_s"] is None else one["recovery_s"] for one in found]
    return {
        "recovery_s": max(took, default=None),
        "unrecovered": sum(one["recovery_s"] is None for one in found) if found else None,
        "recoveries": found,
    }


def time_to_fair(
    samples: pl.DataFrame, flows: list[str], last_start_s: float, duration_s: float
) -> dict[str, float | int | None]:
    """Return time_to_fair_s, how long after LAST_START_S Jain's index of the FLOWS was FAIR in
    FAIR_WINDOWS windows in a row, and never_fair (1: it was not); null of fewer than two flows."""
    edges_s = np.arange(last_start_s, duration_s + 1e-9, WINDOW_S)
    if len(flows) < 2 or len(edges_s) <= FAIR_WINDOWS:
        return {"time_to_fair_s": None, "never_fair": None}
    rates = np.diff([acknowledged(samples, flow, edges_s) for flow in flows], axis=1)
    fair = [bool(sum(of) > 0 and jain_index(list(of)) >= FAIR) for of in rates.T]
    for i in range(len(fair) - FAIR_WINDOWS + 1):
        if all(fair[i : i + FAIR_WINDOWS]):
            return {"time_to_fair_s": i * WINDOW_S, "never_fair": 0}
    return {"time_to_fair_s": duration_s - last_start_s, "never_fair": 1}
