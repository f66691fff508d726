# SPDX-License-Identifier: GPL-2.0-only
"""From what the probe and the traffic tool wrote about a point to one line of results.jsonl."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from lab.points import Point
from lab.scenario import FORWARD_HOPS
from lab.stats import jain_index

DIGITS = 6  # of every figure in results.jsonl


def summarize(point: Point, raw: Path) -> dict[str, Any]:
    """Return the results of POINT from the folder RAW (flows.csv, hops.csv, flow-*.json).

    Rates are over the time after the warm-up; *_whole_* and the counts over the whole run.
    """
    samples = pl.read_csv(raw / "flows.csv", infer_schema_length=None)
    hops = pl.read_csv(raw / "hops.csv", infer_schema_length=None)
    ends = [json.loads(path.read_text()) for path in flow_files(raw)]
    flows = [
        _flow(point, spec, end, samples.filter(pl.col("flow") == spec["name"]))
        for spec, end in zip(point.spec["flows"], ends, strict=True)
    ]
    steady = samples.filter(pl.col("time_s") > point.warmup_s)
    result = {
        "point": point.id,
        "scenario": point.scenario_id,
        "algorithm": point.algorithm,
        "seed": point.seed,
        "axes": point.axes,
        "bound_mbps": point.bound_mbps,
        "goodput_mbps": sum(flow["goodput_mbps"] for flow in flows),
        "goodput_whole_mbps": sum(flow["goodput_whole_mbps"] for flow in flows),
        "retransmits": sum(end["retransmits"] for end in ends),
        "timeouts": sum(end["timeouts"] for end in ends),
        "jain": jain_index([flow["goodput_mbps"] for flow in flows]),
        "srtt_ms_p50": _quantile(steady["srtt_ms"], 0.5),
        **_queue_delay(point, hops),
        **_losses(point, hops),
        "flows": flows,
        "params": {
            "topology": point.spec["topology"],
            "links": point.spec["links"],
            "duration_s": point.spec["duration_s"],
            "warmup_s": point.warmup_s,
            "sample_ms": point.spec["sample_ms"],
        },
    }
    return rounded(result)


def flow_files(raw: Path) -> list[Path]:
    return sorted(raw.glob("flow-*.json"), key=lambda path: int(path.stem.split("-")[1]))


def _flow(point: Point, spec: dict, end: dict, samples: pl.DataFrame) -> dict[str, Any]:
    start_s = max(point.warmup_s, spec["start_s"])
    stop_s = spec["start_s"] + spec["duration_s"]
    before = samples.filter(pl.col("time_s") <= start_s)
    acked_before = 0
    if len(before):  # count from the last sample of the warm-up, and from its time
        start_s, acked_before = before["time_s"][-1], before["bytes_acked"][-1]
    return {
        "name": spec["name"],
        "algorithm": end["algorithm"],
        "goodput_mbps": (end["bytes_acked"] - acked_before) * 8e-6 / (stop_s - start_s),
        "goodput_whole_mbps": end["bytes_acked"] * 8e-6 / spec["duration_s"],
        "retransmits": end["retransmits"],
        "timeouts": end["timeouts"],
        "min_rtt_ms": end["min_rtt_us"] / 1000,
    }


def _queue_delay(point: Point, hops: pl.DataFrame) -> dict[str, float]:
    """Quantiles over time of the delay in the forward queues: backlog over rate, added up."""
    steady = hops.filter(pl.col("time_s") > point.warmup_s)
    total = None
    for hop in FORWARD_HOPS[point.spec["topology"]["kind"]]:
        link = point.spec["links"][hop]
        if not link["queue_pkts"]:
            continue
        rows = steady.filter(pl.col("hop") == hop)["backlog_bytes"]
        delay_ms = rows * 8e-3 / link["rate_mbps"]
        total = delay_ms if total is None else total + delay_ms
    if total is None:
        return {"queue_delay_ms_p50": 0.0, "queue_delay_ms_p95": 0.0}
    return {
        "queue_delay_ms_p50": _quantile(total, 0.5),
        "queue_delay_ms_p95": _quantile(total, 0.95),
    }


def drop_causes(links: dict[str, dict]) -> dict[str, str]:
    """Return why each hop drops: lab.links lets a hop have one cause only."""
    return {hop: "random" if link["loss_pct"] else "congestion" for hop, link in links.items()}


def _losses(point: Point, hops: pl.DataFrame) -> dict[str, int]:
    counts = {"loss_random": 0, "loss_congestion": 0}
    causes = drop_causes(point.spec["links"])
    for hop in FORWARD_HOPS[point.spec["topology"]["kind"]]:
        drops = hops.filter(pl.col("hop") == hop)["drops"]
        counts[f"loss_{causes[hop]}"] += int(drops[-1]) if len(drops) else 0
    return counts


def _quantile(values: pl.Series, q: float) -> float:
    value = values.drop_nulls().quantile(q, "nearest")
    return float(value) if value is not None else 0.0


def rounded(value: Any) -> Any:
    """Round every float in a nested value, so that equal results are equal bytes."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value
