# SPDX-License-Identifier: GPL-2.0-only
"""The samples of the jitter ratio are those of the module, and what is said of them is so."""

import dataclasses
import json
import os
import threading

import polars as pl
import pytest

from lab.ask import points, scenario
from lab.ask.figures import JITTER_RATIOS
from lab.measure import ratios, trace
from lab.measure.metrics import summarize

TEXT = """\
# tracer: nop
 labflow-7 [000] ..s.. 1000.250000: tcp_jitter_ratio: sport=20000 dport=5001 cwnd_pkts=4 jr=-4194304 sjr=0
 labflow-7 [000] ..s.. 1000.500000: tcp_verdict: verdict=random at=timeout sport=20000 dport=5001
 labflow-8 [000] ..s.. 1000.750000: tcp_jitter_ratio: sport=20001 dport=5001 cwnd_pkts=8 jr=1 sjr=1
 labflow-7 [000] ..s.. 1001.000001: tcp_jitter_ratio: sport=20000 dport=5001 cwnd_pkts=5 jr=0 sjr=8388608
"""  # noqa: E501


def test_events_are_told_apart_by_their_names():
    (verdict,) = trace.events(TEXT, "tcp_verdict")
    assert verdict["at"] == "timeout" and verdict["time_ns"] == 1_000_500_000_000
    assert [event["jr"] for event in trace.events(TEXT, "tcp_jitter_ratio")] == [-4194304, 1, 0]


def test_a_point_has_the_samples_of_flows_that_take_the_whole_way(tmp_path):
    (tmp_path / "trace.txt").write_text(TEXT)
    flow = {"start_s": 0.5, "algorithm": "jtcp", "cross": False, "name": "tcp"}
    spec = {"flows": [flow, flow | {"cross": True, "name": "cross"}]}
    ends = [{"start_s": 1000.25, "source_port": port} for port in (20000, 20001)]
    rows = ratios.read_point(spec, tmp_path, ends)
    assert rows.schema == ratios.COLUMNS
    assert rows["flow"].to_list() == ["tcp", "tcp"] and rows["cwnd_pkts"].to_list() == [4, 5]
    assert rows["time_s"].to_list() == pytest.approx([0.5, 1.250001])
    assert rows["jitter_ratio"].to_list() == [-0.25, 0]
    assert rows["jitter_ratio_smoothed"].to_list() == [0, 0.5]


def test_an_sctp_flow_has_samples_too(tmp_path):
    event = "sctp_jitter_ratio: sport=20000 dport=5001 path=10.200.1.2 cwnd_pkts=7 jr=8388608 sjr=0"
    (tmp_path / "trace.txt").write_text(f" labflow-3 [000] ..s.. 1000.500000: {event}\n")
    flow = {"start_s": 0.5, "algorithm": "jsctp", "cross": False, "name": "flow"}
    ends = [{"start_s": 1000.25, "source_port": 20000}]
    (row,) = ratios.read_point({"flows": [flow]}, tmp_path, ends).to_dicts()
    assert row["algorithm"] == "jsctp" and row["cwnd_pkts"] == 7 and row["jitter_ratio"] == 0.5


def frame(jr: list[float], sjr: list[float], cwnd_pkts: int = 10) -> pl.DataFrame:
    columns = {"cwnd_pkts": [cwnd_pkts] * len(jr), "jitter_ratio": jr, "jitter_ratio_smoothed": sjr}
    return pl.DataFrame(columns, schema={name: ratios.COLUMNS[name] for name in columns})


def test_figures_are_in_units_of_one_over_w():
    """Of four samples at w = 10 one is 0, one drains, one is just below 1/2w, one is 2/w."""
    rows = frame([0.0, -0.3, 0.049, 0.2], [0.1, 0.1, 0.04, 0.2])
    assert ratios.figures(rows) == {
        "jr_zero_pct": 25.0, "jr_below_pct": 75.0, "sjr_below_pct": 25.0,
        "jr_w_p50": pytest.approx(0.245), "sjr_w_p50": pytest.approx(1.0),
    }  # fmt: skip


def test_what_is_not_there_has_no_figure():
    off = ratios.figures(frame([0.1, 0.0], [0.0, 0.0]))
    assert off["sjr_below_pct"] is None and off["sjr_w_p50"] is None
    assert off["jr_zero_pct"] == 50 and off["jr_w_p50"] == 0.5
    nothing = ratios.figures(frame([], []))
    assert tuple(nothing) == JITTER_RATIOS and set(nothing.values()) == {None}


@pytest.fixture(scope="module")
def measured(backend):
    """A point with its jitter ratio recorded, and the same one without looking."""
    settings = {"run.duration_s": "40", "run.warmup_s": "10", "decides": '["smoothed Jr"]'}
    loaded = scenario.load("jtcp-jr", settings)
    (seen,) = points.expand(loaded, ("jtcp",), [1], backend.build.key)
    unseen = dataclasses.replace(seen, spec=seen.spec | {"taps": [], "traces": []})
    found = {}

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        result = summarize(outcome.point, outcome.raw)
        files = {path.name: path.read_bytes() for path in outcome.raw.iterdir()}
        found["seen" if outcome.point is seen else "unseen"] = (files, result)

    cpu = min(os.sched_getaffinity(0))
    backend.run_batch([seen, unseen], cpu, on_outcome, threading.Event())
    return found


def test_the_tracepoint_and_get_info_agree(measured):
    """What the probe reads every 200 ms is the newest sample's smoothed ratio, in whole 1/256 of a
    percent, and 0 while that is negative."""
    files, _ = measured["seen"]
    samples = pl.read_csv(files["ratios.csv"])
    probed = pl.read_csv(files["flows.csv"], infer_schema_length=None)
    both = probed.join_asof(samples, on="time_s", strategy="backward").drop_nulls("jitter_ratio")
    assert len(samples) > 50 and len(both) > 150
    assert samples["jitter_ratio_smoothed"].min() < 0 < samples["jitter_ratio_smoothed"].max()
    wanted_pct = both["jitter_ratio_smoothed"].clip(lower_bound=0) * 100
    assert (both["cc_pacing_gain"] - wanted_pct).abs().max() < 1 / 256 + 1e-4
    assert (both["cwnd_pkts"] - both["cwnd_pkts_right"]).abs().median() <= 1


def test_the_raw_ratio_dips_to_zero_and_the_smoothed_one_does_not(measured):
    _, result = measured["seen"]
    assert result["jr_zero_pct"] > 10 and result["sjr_below_pct"] < result["jr_below_pct"] / 2


def test_looking_changes_nothing(measured):
    (seen, _), (unseen, result) = measured["seen"], measured["unseen"]
    for name in ("flows.csv", "hops.csv"):
        assert seen[name] == unseen[name]
    assert "ratios.csv" not in unseen and "jr_zero_pct" not in result
    flows = (json.loads(files["flow-0.json"]) for files in (seen, unseen))
    assert len({flow["bytes_acked"] for flow in flows}) == 1
