# SPDX-License-Identifier: GPL-2.0-only
"""From what the probe and the traffic tool wrote about a point to one line of results.jsonl."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from lab.ask import linktraces
from lab.ask.algorithms import ALGORITHMS
from lab.ask.carries import CUT_MBPS, TUNNELS, carried_after_events, full_frame_bytes, residual_mbps
from lab.ask.figures import CLASSIFIED
from lab.ask.links import link_of
from lab.ask.points import Point
from lab.ask.seeds import START_SPREAD_S
from lab.measure import packets, ratios, trace, transients, truth
from lab.measure.stats import jain_index

UDP_PAYLOAD_BYTES = 1472  # of labflow's datagrams
UDP_HEADER_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP
SUBFLOW_SUFFIX = ".2"  # of the name of an MPTCP flow's second subflow in flows.csv
SUBFLOW_SUMS = ("cwnd_pkts", "bytes_acked", "retransmits", "delivered")
VARIATION_S = 1.0  # goodput_variation is of means over so long
# where UDP is alone on a wireless chain there is neither flow nor hop to sample
NO_SAMPLES = {"flow": pl.String, "hop": pl.String} | dict.fromkeys(
    ("srtt_ms", "drops", "ce_marks", "backlog_pkts", "backlog_bytes"), pl.Float64
)
DIGITS = 6  # of every figure in results.jsonl


def summarize(point: Point, raw: Path) -> dict[str, Any]:
    """Return the results of POINT from the folder RAW (flows.csv, hops.csv, flow-*.json).

    Rates are over the time after the warm-up; *_whole_* and the counts over the whole run. Where
    the scenario asks for the truth, verdicts.csv is left in RAW, and ratios.csv where it asks for
    the jitter ratio.
    """
    samples = read_samples(raw / "flows.csv", bytes_acked=pl.Int64)
    hops = read_samples(raw / "hops.csv")
    ends = [json.loads(path.read_text()) for path in flow_files(raw)]
    flows = [
        _flow(point, spec, end, samples.filter(pl.col("flow") == spec["name"]))
        | _tfrc(raw, i, spec, end)
        for i, (spec, end) in enumerate(zip(point.spec["flows"], ends, strict=True))
    ]
    forward = [flow for flow in flows if not flow["cross"]]
    names = [flow["name"] for flow in forward]
    steady = samples.filter((pl.col("time_s") > point.warmup_s) & pl.col("flow").is_in(names))
    duration_s = point.spec["duration_s"]
    steady_s = duration_s - point.warmup_s
    udp = [_udp(raw, i, spec) for i, spec in enumerate(point.spec["udp"])]
    result = {
        "point": point.id,
        **point.labels(),
        "goodput_mbps": sum(f["bytes_steady"] for f in forward) * 8e-6 / steady_s,
        "goodput_whole_mbps": sum(f["bytes_whole"] for f in forward) * 8e-6 / duration_s,
        "retransmits": sum(flow["retransmits"] for flow in forward),
        "timeouts": _timeouts(forward),
        **_shares(forward),
        "jain": _jain(point, forward),
        **_completion(point, forward),
        "srtt_ms_p50": _quantile(steady["srtt_ms"].cast(pl.Float64), 0.5),
        **_queue_delay(point, hops),
        **_losses(point, hops),
        "timeouts_per_flow": _timeouts_per_flow(forward),
        **_standing_queue(point, hops),
        **_packets(point, raw, ends, flows, udp),
        "queue_drop_pct": _queue_drop_pct(flows),
        **_transients(point, samples, forward),
        "goodput_variation": _variation(point, steady),
        **_medium(point, raw, forward, steady, hops),
        **(_told_by_tfrc(flows) or _classified(point, raw, ends)),
        **_ratios(point, raw, ends),
        "flows": flows,
        "udp": udp,
        **_udp_alone(point, udp),
        "residual_mbps": residual_mbps(
            point.spec, ALGORITHMS[point.algorithm].transport, _offered_mbps(point, udp)
        ),
        "params": {
            "topology": point.spec["topology"],
            "links": point.spec["links"],
            "medium": point.spec["medium"],
            "duration_s": point.spec["duration_s"],
            "warmup_s": point.warmup_s,
            "sample_ms": point.spec["sample_ms"],
        },
    }
    return rounded(result)


def read_samples(path: Path, **types: type[pl.DataType]) -> pl.DataFrame:
    """Return the time series at PATH. TYPES: of columns; where there is no row, none tells them (of
    flows that are over before the first sample, say)."""
    types = {"time_s": pl.Float64} | types
    if not path.stat().st_size:
        return pl.DataFrame(schema=NO_SAMPLES | types)
    samples = pl.read_csv(path, infer_schema_length=None, schema_overrides=types)
    return with_subflows(samples) if "flow" in samples.columns else samples


def with_subflows(samples: pl.DataFrame) -> pl.DataFrame:
    """Return SAMPLES of flows with second subflows as part of them: windows and counts together,
    the rest the first one's."""
    second = pl.col("flow").str.ends_with(SUBFLOW_SUFFIX)
    if not samples.select(second.any()).item():
        return samples
    whole = samples.with_columns(pl.col("flow").str.strip_suffix(SUBFLOW_SUFFIX))
    together = [name for name in SUBFLOW_SUMS if name in samples.columns]
    return whole.group_by("time_s", "flow", maintain_order=True).agg(
        pl.exclude("time_s", "flow", *together).first(), pl.col(together).sum()
    ).select(samples.columns)  # fmt: skip


def _timeouts(ends: list[dict]) -> int | None:
    """Return how many there were; null where the kernel does not count them (before 6.7)."""
    counts = [end["timeouts"] for end in ends]
    return None if None in counts else sum(counts)


def flow_files(raw: Path) -> list[Path]:
    return sorted(raw.glob("flow-*.json"), key=lambda path: int(path.stem.split("-")[1]))


def _flow(point: Point, spec: dict, end: dict, samples: pl.DataFrame) -> dict[str, Any]:
    """Return one flow's figures. Its goodput_mbps is over the time it was active after the
    warm-up, null if there was none; bytes_steady counts what it got through in that time."""
    stop_s = spec["start_s"] + (end["end_s"] - end["start_s"])
    stop_s = min(stop_s, spec["start_s"] + spec["duration_s"])
    before = samples.filter(pl.col("time_s") <= point.warmup_s)["bytes_acked"]
    active_s = stop_s - max(point.warmup_s, spec["start_s"])
    # the probe counts the SYN, the end does not: of a starved flow nothing is left, not -1
    steady = max(end["bytes_acked"] - (before[-1] if len(before) else 0), 0) if active_s > 0 else 0
    return {
        "name": spec["name"],
        "kind": spec["kind"],
        "under_test": spec["under_test"],
        "reverse": spec["reverse"],
        "cross": spec["cross"],
        "algorithm": end["algorithm"],
        "start_s": spec["start_s"],
        "stop_s": stop_s,
        "bytes_steady": steady,
        "bytes_whole": end["bytes_acked"],
        "goodput_mbps": steady * 8e-6 / active_s if active_s > 0 else None,
        "goodput_whole_mbps": end["bytes_acked"] * 8e-6 / (stop_s - spec["start_s"]),
        "retransmits": end["retransmits"],
        "timeouts": end["timeouts"],
        "limited": bool(spec["bytes"]),
        "completion_s": end["completion_time_s"],
        **_answers(spec, end),
        "min_rtt_ms": None if end["min_rtt_us"] is None else end["min_rtt_us"] / 1000,
    }


def _answers(spec: dict, end: dict) -> dict[str, Any]:
    """Return of a flow of requests how long each took, and as its completion_s their mean; one that
    was not answered when the flow ended counts with the time it had."""
    if not spec.get("repeats"):
        return {}
    took_s = end["answers_s"] + ([] if end["unanswered_s"] is None else [end["unanswered_s"]])
    return {
        "answers_s": end["answers_s"],
        "unanswered_s": end["unanswered_s"],
        "completion_s": sum(took_s) / len(took_s) if took_s else None,
    }


def _tfrc(raw: Path, i: int, spec: dict, end: dict) -> dict[str, Any]:
    """Return what became of a TFRC flow's packets, and what its receiver took lost ones for."""
    if spec["transport"] != "tfrc":
        return {}
    of = json.loads((raw / f"tfrc-recv-{i}.json").read_text())
    judged = {
        f"{was}_as_{said}": of[f"{was}_as_{said}"]
        for was in ("congestion", "random")
        for said in ("congestion", "random")
    }
    dropped = judged["congestion_as_congestion"] + judged["congestion_as_random"]
    return {"sent_pkts": end["segs_out"], "queue_drops": dropped, **judged}


def _queue_drop_pct(flows: list[dict]) -> float | None:
    """Return the share of the packets of flows under test that queues dropped: of TFRC's, which
    count them, and, where each packet is recorded, of all."""
    mine = [flow for flow in flows if flow["under_test"] and "queue_drops" in flow]
    sent = sum(flow["sent_pkts"] for flow in mine)
    return 100 * sum(flow["queue_drops"] for flow in mine) / sent if sent else None


def _variation(point: Point, steady: pl.DataFrame) -> float | None:
    """Return the mean, over the flows under test, of their goodput's coefficient of variation:
    standard deviation over mean of its means over VARIATION_S."""
    stride = max(round(VARIATION_S * 1000 / point.spec["sample_ms"]), 1)
    of = []
    for spec in point.spec["flows"]:
        if spec["under_test"]:
            bytes_acked = steady.filter(pl.col("flow") == spec["name"])["bytes_acked"]
            rates = bytes_acked.gather_every(stride).diff().drop_nulls()
            if len(rates) > 1 and rates.mean():
                of.append(rates.std() / rates.mean())
    return sum(of) / len(of) if of else None


def _offered_mbps(point: Point, udp: list[dict]) -> list[float]:
    """Return the mean rate of each UDP flow after the warm-up, in Mb/s of whole frames: as it sent
    while it lasted, for as long as it did then."""
    tunnel, duration_s = point.spec["topology"]["tunnel"], point.spec["duration_s"]
    offered = []
    for flow, spec in zip(udp, point.spec["udp"], strict=True):
        payload_bytes = spec["mss_bytes"] or UDP_PAYLOAD_BYTES
        frame_bytes = payload_bytes + UDP_HEADER_BYTES + (TUNNELS[tunnel][0] if tunnel else 0)
        end_s = min(spec["start_s"] + spec["duration_s"], duration_s)
        steady_s = max(end_s - max(spec["start_s"], point.warmup_s), 0.0)
        share = steady_s / spec["duration_s"] / (duration_s - point.warmup_s)
        offered.append(flow["sent_pkts"] * frame_bytes * 8e-6 * share)
    return offered


def _udp(raw: Path, i: int, spec: dict) -> dict[str, Any]:
    """Return how many datagrams of a UDP flow were sent and how many arrived, and their payload
    over the time that it lasted."""
    sent, received = (json.loads((raw / f"{n}-{i}.json").read_text()) for n in ("udp", "udp-sink"))
    payload_bytes = spec["mss_bytes"] or UDP_PAYLOAD_BYTES
    return {
        "name": spec["name"],
        "rate_mbps": spec["rate_mbps"],
        "goodput_mbps": received["datagrams_received"] * payload_bytes * 8e-6 / spec["duration_s"],
        "sent_pkts": sent["segs_out"],
        "received_pkts": received["datagrams_received"],
        "lost_pct": 100 * (1 - received["datagrams_received"] / sent["segs_out"])
        if sent["segs_out"]
        else None,
    }


def _udp_alone(point: Point, udp: list[dict]) -> dict[str, Any]:
    """Return what differs where all flows are UDP: goodput is theirs, over the whole run, and
    nothing is sent again."""
    if point.spec["flows"]:
        return {}
    lasted_s = [spec["duration_s"] for spec in point.spec["udp"]]
    mbit = sum(flow["goodput_mbps"] * s for flow, s in zip(udp, lasted_s, strict=True))
    mbps = mbit / point.spec["duration_s"]
    return {
        "goodput_mbps": mbps,
        "goodput_whole_mbps": mbps,
        "jain": jain_index([flow["goodput_mbps"] for flow in udp]),
        **dict.fromkeys(("retransmits", "timeouts")),
    }


def _shares(flows: list[dict]) -> dict[str, float | None]:
    """Return the mean goodput of a flow under test and of one of the others, and what a flow
    under test has of a fair share, that is of the mean of all; null where there is none."""
    rates = {kind: [] for kind in (True, False)}
    for flow in flows:
        if flow["goodput_mbps"] is not None:
            rates[flow["under_test"]].append(flow["goodput_mbps"])
    test, other, both = (
        sum(of) / len(of) if of else None
        for of in (rates[True], rates[False], rates[True] + rates[False])
    )
    mixed = test is not None and other is not None and both
    return {
        "goodput_test_mbps": test,
        "goodput_other_mbps": other,
        "fair_share": test / both if mixed else None,
    }


def mean_goodput_mbps(result: dict[str, Any], kind: str) -> float | None:
    """Return the mean goodput in RESULT of the flows that the [[flows]] table KIND stands for."""
    rates = [flow["goodput_mbps"] for flow in result["flows"] if flow["kind"] == kind]
    rates = [rate for rate in rates if rate is not None]
    return sum(rates) / len(rates) if rates else None


def _jain(point: Point, flows: list[dict]) -> float | None:
    """Return the index of those flows that were active all the time after the warm-up."""
    end_s = point.spec["duration_s"] - 1e-3
    rates = [
        flow["goodput_mbps"]
        for flow in flows
        if flow["start_s"] <= point.warmup_s + START_SPREAD_S and flow["stop_s"] >= end_s
    ]
    return jain_index(rates) if rates else None


def _completion(point: Point, flows: list[dict]) -> dict[str, float | int | None]:
    """Return how long those flows under test took that had so many bytes to send, from the
    connect to the last acknowledgement; one that was not ready counts with the time it had."""
    limited = {spec["name"] for spec in point.spec["flows"] if spec["bytes"]}
    of = [flow for flow in flows if flow["name"] in limited and flow["under_test"]]
    if not of:
        return {"fct_s_p50": None, "fct_s_p95": None, "unfinished": None}
    took, unfinished = [], 0
    for flow in of:
        if "answers_s" in flow:  # a flow of requests: each is one
            took += flow["answers_s"]
            waits_s = flow["unanswered_s"]
        else:
            took += [flow["completion_s"]] if flow["completion_s"] else []
            waits_s = None if flow["completion_s"] else flow["stop_s"] - flow["start_s"]
        took += [] if waits_s is None else [waits_s]
        unfinished += waits_s is not None
    took_s = pl.Series(took, dtype=pl.Float64)
    return {
        "fct_s_p50": _quantile(took_s, 0.5),
        "fct_s_p95": _quantile(took_s, 0.95),
        "unfinished": unfinished,
    }


def _queue_delay(point: Point, hops: pl.DataFrame) -> dict[str, float | None]:
    """Quantiles over time of the delay in the forward queues, added up: backlog over rate; of a
    trace the time until it has carried the backlog away. Null of no sample, 0 without a queue."""
    steady = hops.filter(pl.col("time_s") > point.warmup_s)
    total = None
    for hop in point.spec["topology"]["hops"]:
        link = point.spec["links"][hop]
        if not link["queue_pkts"]:
            continue
        rows = steady.filter(pl.col("hop") == hop)
        if link.get("trace"):
            delay_ms = _drain_ms(link["trace"], point.seed, rows)
            total = delay_ms if total is None else total + delay_ms
            continue
        rate_mbps = pl.lit(link["rate_mbps"])
        for event in point.spec["events"]:
            if event["link"] == hop and "rate_mbps" in event["changes"]:
                later = pl.col("time_s") > event["at_s"]
                changed = event["changes"]["rate_mbps"]
                changed = changed if changed > CUT_MBPS else None  # for so long nobody knows
                rate_mbps = pl.when(later).then(changed).otherwise(rate_mbps)
        delay_ms = rows.select(pl.col("backlog_bytes") * 8e-3 / rate_mbps).to_series()
        total = delay_ms if total is None else total + delay_ms
    if total is None:
        return {"queue_delay_ms_p50": 0.0, "queue_delay_ms_p95": 0.0}
    return {
        "queue_delay_ms_p50": _quantile(total, 0.5),
        "queue_delay_ms_p95": _quantile(total, 0.95),
    }


def _drain_ms(trace: str, seed: int, rows: pl.DataFrame) -> pl.Series:
    schedule = linktraces.of(trace, "rate", seed)
    backlog = rows["backlog_bytes"].to_numpy()
    return pl.Series(linktraces.drain_ms(schedule, seed, rows["time_s"].to_numpy(), backlog))


def _transients(point: Point, samples: pl.DataFrame, flows: list[dict]) -> dict[str, Any]:
    """Return how long all flows that take the whole way took to recover after events, and those of
    no limit that were there to the end to share fairly."""
    spec = point.spec
    duration_s, transport = spec["duration_s"], ALGORITHMS[point.algorithm].transport
    lasting = [f for f in flows if not f["limited"] and f["stop_s"] >= duration_s - 1e-3]
    return {
        **transients.recoveries(
            samples, [flow["name"] for flow in flows], spec["sample_ms"] / 1000, duration_s,
            carried_after_events(spec, transport, point.seed),
        ),
        **transients.time_to_fair(
            samples, [flow["name"] for flow in lasting],
            max((flow["start_s"] for flow in lasting), default=0.0), duration_s,
        ),
    }  # fmt: skip


def _timeouts_per_flow(flows: list[dict]) -> float | None:
    """Return the mean number of a flow under test; null where the kernel does not count them."""
    tested = [flow for flow in flows if flow["under_test"]]
    total = _timeouts(tested)
    return None if total is None or not tested else total / len(tested)


def _standing_queue(point: Point, hops: pl.DataFrame) -> dict[str, float | None]:
    """Quantiles over time of the standing queue: the smallest backlog of all forward queues in
    each STANDING_S after the warm-up, as sampled; also for each flow that takes the whole way."""
    if not len(hops):  # a wireless chain's queues are the medium's
        hops = hops.cast({"backlog_pkts": pl.Float64})
    queues = [h for h in point.spec["topology"]["hops"] if point.spec["links"][h]["queue_pkts"]]
    steady = (pl.col("time_s") > point.warmup_s) & pl.col("hop").is_in(queues)
    backlog = hops.filter(steady).group_by("time_s").agg(pl.col("backlog_pkts").sum())
    second = ((pl.col("time_s") - point.warmup_s - 1e-6) // packets.STANDING_S).alias("second")
    smallest = backlog.group_by(second).agg(pl.col("backlog_pkts").min())["backlog_pkts"]
    if not len(smallest):
        names = ("standing_queue_pkts_p50", "standing_queue_pkts_p95")
        return dict.fromkeys((*names, "standing_queue_flow_pkts_p50"))
    p50 = _quantile(smallest.cast(pl.Float64), 0.5)
    flows = sum(not flow["cross"] for flow in point.spec["flows"])
    return {
        "standing_queue_pkts_p50": p50,
        "standing_queue_pkts_p95": _quantile(smallest.cast(pl.Float64), 0.95),
        "standing_queue_flow_pkts_p50": p50 / flows if flows else None,
    }


def _packets(
    point: Point, raw: Path, ends: list[dict], flows: list[dict], udp: list[dict]
) -> dict[str, Any]:
    """Return the figures of lab.measure.packets, and give those of each flow to FLOWS and UDP."""
    spec = point.spec
    if not spec["packets"]:
        return {}
    datagrams = [json.loads((raw / f"udp-{i}.json").read_text()) for i in range(len(udp))]
    specs, results = [*spec["flows"], *spec["udp"]], [*flows, *udp]
    ports = {
        end["source_port"]: i for i, end in enumerate([*ends, *datagrams]) if not specs[i]["cross"]
    }
    start_ns = trace.start_ns(spec, ends)
    seen = packets.read(spec, raw, ports)
    parts = []
    for i in ports.values():
        frame_bytes = (specs[i]["mss_bytes"] or UDP_PAYLOAD_BYTES) + UDP_HEADER_BYTES
        if "transport" in specs[i]:
            frame_bytes = full_frame_bytes(specs[i]["transport"], specs[i]["mss_bytes"])[1]
        own_ns = packets.own_frame_ns(spec, frame_bytes, start_ns)
        self_ns = pl.max_horizontal(pl.col("waited_ns") - own_ns, 0.0)
        mine = seen.filter(pl.col("flow") == i).with_columns(self_ns=self_ns)
        results[i] |= packets.of_flow(mine, spec["tap_every"]) | _counted(results[i])
        parts.append(mine)
    forward = pl.concat(parts)
    tested = [i for i, of in enumerate(spec["flows"]) if of["under_test"]]
    return packets.of_point(
        forward.filter(pl.col("flow").is_in(tested)),
        forward,
        {i: start_ns + round(specs[i]["start_s"] * 1e9) for i in ports.values()},
        packets.start_s(spec),
        start_ns + round(point.warmup_s * 1e9),
        sum(flows[i]["bytes_steady"] for i in tested)
        * 8e-6
        / (spec["duration_s"] - point.warmup_s),
    )


def _counted(flow: dict) -> dict:
    """Return what the ends of a flow counted themselves, which is exact also where taps sample."""
    return {key: flow[key] for key in ("sent_pkts", "queue_drops", "lost_pct") if key in flow}


def _rtt(samples: pl.DataFrame) -> dict[str, float | None]:
    """Return mean and standard deviation of the smoothed RTT: of all flows' samples, and of a
    flow's around its own mean; and the 95th percentile of all samples."""
    rtt = samples.select("flow", pl.col("srtt_ms").cast(pl.Float64)).drop_nulls()
    if not len(rtt):
        return {"rtt_ms_mean": None, "rtt_ms_sd": None, "rtt_ms_p95": None}
    around = rtt["srtt_ms"] - rtt.select(pl.col("srtt_ms").mean().over("flow")).to_series()
    return {
        "rtt_ms_mean": float(rtt["srtt_ms"].mean()),
        "rtt_ms_sd": float((around**2).mean() ** 0.5),
        "rtt_ms_p95": _quantile(rtt["srtt_ms"], 0.95),
    }


def _medium(
    point: Point, raw: Path, flows: list[dict], samples: pl.DataFrame, queues: pl.DataFrame
) -> dict[str, Any]:
    """Return what the stations of a wireless medium counted over the whole run, busy times after
    the warm-up, Jain's index of those flows that cross as many hops, and what SAMPLES say of
    the RTT. QUEUES: samples of those that an access point's and stations' kernels have."""
    if not point.spec["medium"]:
        return {}
    duration_s = point.spec["duration_s"]
    rows = pl.read_csv(raw / "medium.csv", infer_schema_length=None)
    if rows["time_s"].max() < duration_s - 1e-6:
        raise ValueError("the medium ended before the point")
    end = rows.filter(pl.col("time_s") == pl.col("time_s").max())
    begin = rows.filter((pl.col("time_s") - point.warmup_s).abs() < 1e-6)
    steady_ns = (duration_s - point.warmup_s) * 1e9
    shares = {
        name.replace("_ns", "_pct"): ((end[name] - begin[name]) / steady_ns * 100).to_list()
        for name in ("busy_ns", "transmit_ns", "receive_ns", "sense_ns", "nav_ns")
    }
    counts = [
        {name: value for name, value in row.items() if not name.endswith(("_ns", "_s", "_pkts"))}
        for row in end.to_dicts()
    ]
    nodes = [
        row | {name: values[i] for name, values in shares.items()} for i, row in enumerate(counts)
    ]
    if point.spec["topology"]["stations"]:
        for node, dropped in zip(nodes, _dropped_before_macs(point, queues), strict=True):
            node["own_queue_drops" if node["node"] > 1 else "queue_drops"] += dropped
    sums = {
        name: sum(node[name] for node in nodes)
        for name in ("retry_drops", "queue_drops", "own_queue_drops", "collisions")
    }
    by_hops = _jain_by_hops(point, flows)
    return {
        # what hops of wires drop: there are none
        **dict.fromkeys(("queue_delay_ms_p50", "queue_delay_ms_p95")),
        **dict.fromkeys(("loss_random", "loss_congestion", "ce_marks")),
        **_rtt(samples),
        **sums,
        "drops_per_s": sum(sums[name] for name in sums if name.endswith("drops")) / duration_s,
        "busy_pct_max": max(shares["busy_pct"]),
        "jain_by_hops": by_hops,
        "jain_by_hops_min": min(by_hops.values(), default=None),
        "nodes": nodes,
        "medium_run": json.loads((raw / "medium.json").read_text()),
    }


def _dropped_before_macs(point: Point, queues: pl.DataFrame) -> list[int]:
    """Return what the kernels' queues before the MACs dropped: the access point's, and each
    station's."""
    last = queues.group_by("hop").agg(pl.col("drops").last())
    drops = {hop: int(count or 0) for hop, count in last.select("hop", "drops").iter_rows()}
    numbers = range(1, point.spec["topology"]["stations"] + 1)
    own = sum(drops[f"ap-wl{i}"] for i in numbers)
    return [own, *(drops[f"sta{i}-wl0"] for i in numbers)]


def _jain_by_hops(point: Point, flows: list[dict]) -> dict[str, float]:
    """Return Jain's index by the number of hops, of those that two flows or more cross."""
    rates: dict[int, list[float]] = {}
    for flow, spec in zip(flows, point.spec["flows"], strict=True):
        first, last = point.spec["topology"]["spans"][spec["pair"] - 1]
        rates.setdefault(last - first + 1, []).append(flow["goodput_mbps"] or 0.0)
    return {str(hops): jain_index(of) for hops, of in sorted(rates.items()) if len(of) > 1}


def drop_causes(links: dict[str, dict]) -> dict[str, str]:
    """Return why each hop drops: lab.ask.links lets a hop have one cause only."""
    congested = {hop: link_of(values).drops_for_congestion for hop, values in links.items()}
    return {hop: "congestion" if congested[hop] else "random" for hop in links}


def _losses(point: Point, hops: pl.DataFrame) -> dict[str, int]:
    counts = {"loss_random": 0, "loss_congestion": 0, "ce_marks": 0}
    causes = drop_causes(point.spec["links"])
    for hop in (hop for hop in causes if not hop.startswith("reverse_")):
        drops = hops.filter(pl.col("hop") == hop)["drops"]
        counts[f"loss_{causes[hop]}"] += int(drops[-1]) if len(drops) else 0
        marks = hops.filter(pl.col("hop") == hop)["ce_marks"]
        counts["ce_marks"] += int(marks[-1]) if len(marks) else 0
    return counts


def _classified(point: Point, raw: Path, ends: list[dict]) -> dict[str, int | float | None]:
    """Return the confusion matrix of the algorithm under test, null if it does not classify."""
    if not point.has_verdicts:
        return {}
    rows = truth.judge_point(point.spec, raw, ends, drop_causes(point.spec["links"]))
    rows.write_csv(raw / "verdicts.csv")
    if not ALGORITHMS[point.algorithm].classifies:
        return dict.fromkeys(CLASSIFIED)
    counts = truth.matrix(rows.filter(pl.col("algorithm") == point.algorithm))
    return counts | truth.rates(counts)


def _told_by_tfrc(flows: list[dict]) -> dict[str, int | float | None]:
    """Return the confusion matrix of the flows under test if they are TFRC's: their receivers know
    which packets got past the queues. Nothing that came is said to be lost."""
    mine = [flow for flow in flows if flow["under_test"] and "random_as_random" in flow]
    if not mine:
        return {}
    counts = {
        f"classified_{was}_as_{said}": sum(flow.get(f"{was}_as_{said}", 0) for flow in mine)
        for was in ("random", "congestion", "none")
        for said in truth.SAID
    }
    return counts | truth.rates(counts)


def _ratios(point: Point, raw: Path, ends: list[dict]) -> dict[str, float | None]:
    """Return what the samples of the jitter ratio are like after the warm-up, those of the
    algorithm under test, and leave them all in ratios.csv."""
    if "tcp_jitter_ratio" not in point.spec["traces"]:
        return {}
    rows = ratios.read_point(point.spec, raw, ends)
    rows.write_csv(raw / "ratios.csv")
    steady = pl.col("time_s") > point.warmup_s
    return ratios.figures(rows.filter(steady & (pl.col("algorithm") == point.algorithm)))


def _quantile(values: pl.Series, q: float) -> float | None:
    value = values.drop_nulls().quantile(q, "nearest")
    return None if value is None else float(value)


def rounded(value: Any) -> Any:
    """Round every float in a nested value, so that equal results are equal bytes."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value
