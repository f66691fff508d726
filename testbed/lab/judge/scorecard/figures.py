# SPDX-License-Identifier: GPL-2.0-only
"""What is read off a point: results of results.jsonl to one number each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.ask.carries import full_frame_bytes

Result = dict[str, Any]
RIVAL = "rival"  # the name of the [[flows]] table that is done harm
OF_RIVALS = ("harm_", "rival_")  # what the figures about it begin with


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


def spurious_pct(result: Result) -> float | None:
    """Return which share of what was sent was sent again though no hop had dropped it, in %."""
    sent = sum(_sent_pkts(flow) for flow in result["flows"])
    for_nothing = result["retransmits"] - result["loss_congestion"] - result["loss_random"]
    return 100 * max(for_nothing, 0) / sent if sent else None


def _pct(name: str) -> Callable[[Result], float | None]:
    """Return what reads the share NAME in %."""
    return lambda result: None if result.get(name) is None else 100 * result[name]


def starved_pct(result: Result) -> float | None:
    """Return how many of the flows that ran to the end got less than a tenth of their mean, in
    %."""
    end_s = result["params"]["duration_s"] - 1e-3
    rates = [flow["goodput_mbps"] or 0.0 for flow in result["flows"] if flow["stop_s"] >= end_s]
    mean = _mean(rates)
    if not rates:
        return None
    return 100 * sum(rate < mean / 10 for rate in rates) / len(rates) if mean else 100.0


def rival_timeouts(result: Result) -> float | None:
    counts = [flow["timeouts"] for flow in rivals(result)]
    return None if None in counts or not counts else float(sum(counts))


def rival_dropped_pct(result: Result) -> float | None:
    """Return which share of the rivals' packets queues dropped, in %."""
    sent = sum(flow.get("sent_pkts") or 0 for flow in rivals(result))
    return 100 * sum(flow["queue_drops"] for flow in rivals(result)) / sent if sent else None


def rival_fct_s(result: Result) -> float | None:
    """Return the 95 % quantile of how long rivals took that had so many bytes to send."""
    took_s = sorted(f["completion_s"] or f["stop_s"] - f["start_s"] for f in rivals(result))
    return took_s[int(0.95 * (len(took_s) - 1))] if took_s else None


def _worst(name: str, of: Callable[[Result], list[dict[str, Any]]]):
    """Return what reads the largest figure NAME of the flows that OF returns."""

    def worst(result: Result) -> float | None:
        values = [flow.get(name) for flow in of(result)]
        return max((value for value in values if value is not None), default=None)

    return worst


def _datagrams(result: Result) -> list[dict[str, Any]]:
    return result["udp"]


def _value(name: str) -> Callable[[Result], float | None]:
    return lambda result: result.get(name)


def _mean(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


# figures of results.jsonl as they are: label, unit, digits
PLAIN = {
    "goodput_mbps": ("goodput", "Mb/s", 2),
    "goodput_test_mbps": ("goodput of a flow", "Mb/s", 2),
    "fair_share": ("goodput as a share of the mean of all", "", 2),
    "queue_delay_ms_p50": ("queueing delay, median", "ms", 1),
    "queue_delay_ms_p95": ("queueing delay, 95 %", "ms", 1),
    "standing_queue_ms_p50": ("standing queue", "ms", 1),
    "self_delay_ms_p95": ("wait in queues, 95 %", "ms", 1),
    "power_mbps_per_s": ("power: goodput / delay", "Mb/s/s", 1),
    "jain": ("Jain's index", "", 3),
    "time_to_fair_s": ("time to fair", "s", 0),
    "recovery_s": ("time to recover", "s", 1),
    "fct_s_p50": ("completion time, median", "s", 2),
    "fct_s_p95": ("completion time, 95 %", "s", 2),
    "unfinished": ("flows that were not done", "", 0),
    "retransmits": ("retransmissions", "", 0),
    "timeouts": ("timeouts", "", 0),
}
# and those that follow from them
DERIVED = {
    "used_pct": Reading("share of the path used", "%", 1, used_pct),
    "dropped_pct": Reading("share of packets that queues dropped", "%", 2, dropped_pct),
    "spurious_pct": Reading("share sent again for nothing", "%", 2, spurious_pct),
    "sent_share_pct": Reading("share of the link's rate sent", "%", 2, sent_share_pct),
    "starved_pct": Reading("flows with under a tenth of the mean", "%", 0, starved_pct),
    "harm_pct": Reading("harm to the rivals' goodput", "%", 1, _pct("harm_goodput")),
    "harm_delay_pct": Reading("harm to the rivals' delay", "%", 1, _pct("harm_delay")),
    "harm_loss_pct": Reading("harm to the rivals' loss", "%", 1, _pct("harm_loss")),
    "rival_mbps": Reading("goodput of a rival", "Mb/s", 2, _value("goodput_other_mbps")),
    "rival_dropped_pct": Reading("queue drops of the rivals", "%", 2, rival_dropped_pct),
    "rival_owd_ms_p95": Reading("the rivals' way, 95 %", "ms", 1, _worst("owd_ms_p95", rivals)),
    "rival_timeouts": Reading("timeouts of the rivals", "", 0, rival_timeouts),
    "rival_fct_s_p95": Reading("rivals' completion time, 95 %", "s", 2, rival_fct_s),
    "udp_lost_pct": Reading("datagrams lost", "%", 2, _worst("lost_pct", _datagrams)),
    "udp_owd_ms_p95": Reading("datagrams' way, 95 %", "ms", 1, _worst("owd_ms_p95", _datagrams)),
}
FIGURES = {name: Reading(*words, _value(name)) for name, words in PLAIN.items()} | DERIVED
