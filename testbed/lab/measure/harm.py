# SPDX-License-Identifier: GPL-2.0-only
"""Harm to a rival (Ware et al., "Beyond Jain's Fairness Index", HotNets 2019): how a flow fares
beside the algorithm under test, against beside its own kind.

The other side is a point of the same run, at the same place with the same seed, in which the flows
under test run the rival's algorithm: lab.ask.points adds it where the run has it not. With x beside
the one under test and y beside its own kind the harm is

    (y - x) / max(x, y)   of what should be much: goodput
    (x - y) / max(x, y)   of what should be little: delay, loss, timeouts, completion times

So 0 is as good a neighbour as its own kind, 1 takes all, and below 0 the rival is better off. A
rival is a [[flows]] table that is not under test, takes the whole way and has an algorithm. Its
figure is the mean over its flows; where there are several rivals, the worst off counts.
"""

from collections.abc import Callable
from statistics import fmean
from typing import Any

from lab.ask.points import rivals

Flows = list[dict[str, Any]]


def _mean(name: str) -> Callable[[Flows], float | None]:
    def figure(flows: Flows) -> float | None:
        values = [flow.get(name) for flow in flows]
        return None if None in values else fmean(values)

    return figure


def _goodput_mbps(flows: Flows) -> float | None:
    return fmean(flow["goodput_mbps"] or 0.0 for flow in flows)


def _least_mbps(flows: Flows) -> float | None:
    return min(flow["goodput_mbps"] or 0.0 for flow in flows)


def _dropped_pct(flows: Flows) -> float | None:
    sent = sum(flow.get("sent_pkts", 0) for flow in flows)
    return 100 * sum(flow["queue_drops"] for flow in flows) / sent if sent else None


def _completion_s(flows: Flows) -> float | None:
    """Of flows with so many bytes; one that was not ready counts with the time it had."""
    if any(flow["completion_s"] is None and not flow["limited"] for flow in flows):
        return None
    return fmean(flow["completion_s"] or flow["stop_s"] - flow["start_s"] for flow in flows)


# figure -> how it follows from the flows of a rival, and whether it should be much
MEASURES: dict[str, tuple[Callable[[Flows], float | None], bool]] = {
    "harm_goodput": (_goodput_mbps, True),
    "harm_goodput_worst": (_least_mbps, True),
    "harm_delay": (_mean("owd_ms_p95"), False),
    "harm_loss": (_dropped_pct, False),
    "harm_timeouts": (_mean("timeouts"), False),
    "harm_completion": (_completion_s, False),
}


def harm(beside: float | None, own: float | None, much: bool) -> float | None:
    """Return the harm of a figure that is BESIDE the one under test, and OWN beside its own kind;
    None if one of them is not there."""
    if beside is None or own is None:
        return None
    most = max(beside, own)
    if not most:
        return 0.0
    return (own - beside if much else beside - own) / most


def add(results: list[dict[str, Any]]) -> None:
    """Give each of RESULTS its MEASURES, and "harm": those of each rival; null where the other
    side, or the figure, is missing."""
    at = {_place(result) + (result["algorithm"],): result for result in results}
    for result in results:
        found = {}
        kinds: dict[str, Flows] = {}
        for flow in rivals(result["flows"]):
            kinds.setdefault(flow["kind"], []).append(flow)
        for kind, flows in kinds.items():
            other = at.get((*_place(result), flows[0]["algorithm"]))
            if other:
                own = [flow for flow in other["flows"] if flow["kind"] == kind]
                found[kind] = {
                    name: _rounded(harm(figure(flows), figure(own), much))
                    for name, (figure, much) in MEASURES.items()
                }
        result["harm"] = found
        for name in MEASURES:
            values = [of[name] for of in found.values() if of[name] is not None]
            result[name] = max(values, default=None)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _place(result: dict[str, Any]) -> tuple:
    return result["scenario"], result["seed"], *sorted(result["axes"].items())
