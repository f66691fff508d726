# SPDX-License-Identifier: GPL-2.0-only
"""What is read off a point: results of results.jsonl to one number each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.points import full_frame_bytes

Result = dict[str, Any]
RIVAL = "rival"  # the name of the [[flows]] table that is done harm


@dataclass(frozen=True)
class Reading:
    """How a figure is called and read: OF takes a result."""

    label: str
    unit: str
    digits: int
    of: Callable[[Result], float | None]

    def text(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


def rivals(result: Result) -> list[dict[str, Any]]:
    return [flow for flow in result["flows"] if flow["kind"] == RIVAL]


def _sent_pkts(flow: dict[str, Any]) -> float:
    payload_bytes, _ = full_frame_bytes("tcp")
    return flow["bytes_whole"] / payload_bytes + flow["retransmits"]


def dropped_pct(result: Result) -> float | None:
    """Return which share of the packets of the flows under test queues dropped, in %; without
    run.packets that of all flows together."""
    if result["queue_drop_pct"] is not None:
        return result["queue_drop_pct"]
    sent = sum(_sent_pkts(flow) for flow in result["flows"])
    return 100 * min(result["loss_congestion"] / sent, 1.0) if sent else None


def sent_share_pct(result: Result) -> float:
    """Return how much of the bottleneck's rate was sent by flows under test, lost or not, in %."""
    _, frame_bytes = full_frame_bytes("tcp")
    sent = sum(_sent_pkts(flow) for flow in result["flows"] if flow["under_test"])
    rates = [link["rate_mbps"] for link in result["params"]["links"].values() if link["rate_mbps"]]
    sent_mbps = sent * frame_bytes * 8e-6 / result["params"]["duration_s"]
    return 100 * sent_mbps / min(rates)


def used_pct(result: Result) -> float | None:
    """Return which share of what the path can carry all flows carried together, in %."""
    return 100 * result["goodput_mbps"] / result["bound_mbps"] if result["bound_mbps"] else None


def harm_pct(result: Result) -> float | None:
    """Return how much less the rivals carried than beside their own kind, in % (lab.harm)."""
    return None if result.get("harm_goodput") is None else 100 * result["harm_goodput"]


def starved_flows(result: Result) -> float:
    """Return how many flows got less than a tenth of the mean of all that ran to the end."""
    end_s = result["params"]["duration_s"] - 1e-3
    rates = [flow["goodput_mbps"] or 0.0 for flow in result["flows"] if flow["stop_s"] >= end_s]
    mean = _mean(rates)
    return float(sum(rate < mean / 10 for rate in rates)) if mean else float(len(rates))


def rival_timeouts(result: Result) -> float | None:
    counts = [flow["timeouts"] for flow in rivals(result)]
    return None if None in counts or not counts else float(sum(counts))


def rival_fct_s(result: Result) -> float | None:
    """Return the 95 % quantile of how long rivals took that had so many bytes to send."""
    took_s = sorted(f["completion_s"] or f["stop_s"] - f["start_s"] for f in rivals(result))
    return took_s[int(0.95 * (len(took_s) - 1))] if took_s else None


def udp_worst(name: str) -> Callable[[Result], float | None]:
    """Return what reads the largest figure NAME of the UDP flows."""

    def worst(result: Result) -> float | None:
        values = [flow.get(name) for flow in result["udp"]]
        return max((value for value in values if value is not None), default=None)

    return worst


def _mean(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _plain(name: str) -> Callable[[Result], float | None]:
    return lambda result: result.get(name)


FIGURES = {
    "goodput_mbps": Reading("goodput", "Mb/s", 2, _plain("goodput_mbps")),
    "goodput_test_mbps": Reading("goodput of a flow", "Mb/s", 2, _plain("goodput_test_mbps")),
    "used_pct": Reading("share of the path used", "%", 1, used_pct),
    "dropped_pct": Reading("share of packets that queues dropped", "%", 2, dropped_pct),
    "sent_share_pct": Reading("share of the link's rate sent", "%", 2, sent_share_pct),
    "queue_delay_ms_p50": Reading("queueing delay, median", "ms", 1, _plain("queue_delay_ms_p50")),
    "standing_queue_ms_p50": Reading("standing queue", "ms", 1, _plain("standing_queue_ms_p50")),
    "queue_delay_ms_p95": Reading("queueing delay, 95 %", "ms", 1, _plain("queue_delay_ms_p95")),
    "self_delay_ms_p95": Reading("wait in queues, 95 %", "ms", 1, _plain("self_delay_ms_p95")),
    "power_mbps_per_s": Reading("power: goodput / delay", "Mb/s/s", 1, _plain("power_mbps_per_s")),
    "jain": Reading("Jain's index", "", 3, _plain("jain")),
    "time_to_fair_s": Reading("time to fair", "s", 0, _plain("time_to_fair_s")),
    "recovery_s": Reading("time to recover", "s", 1, _plain("recovery_s")),
    "starved_flows": Reading("flows with under a tenth of the mean", "", 0, starved_flows),
    "fct_s_p50": Reading("completion time, median", "s", 2, _plain("fct_s_p50")),
    "fct_s_p95": Reading("completion time, 95 %", "s", 2, _plain("fct_s_p95")),
    "unfinished": Reading("flows that were not done", "", 0, _plain("unfinished")),
    "harm_pct": Reading("harm to the rivals' goodput", "%", 1, harm_pct),
    "rival_mbps": Reading("goodput of a rival", "Mb/s", 2, _plain("goodput_other_mbps")),
    "rival_timeouts": Reading("timeouts of the rivals", "", 0, rival_timeouts),
    "rival_fct_s_p95": Reading("rivals' completion time, 95 %", "s", 2, rival_fct_s),
    "udp_lost_pct": Reading("datagrams lost", "%", 2, udp_worst("lost_pct")),
    "udp_owd_ms_p95": Reading("datagrams' way, 95 %", "ms", 1, udp_worst("owd_ms_p95")),
    "retransmits": Reading("retransmissions", "", 0, _plain("retransmits")),
    "timeouts": Reading("timeouts", "", 0, _plain("timeouts")),
}  # fmt: skip
