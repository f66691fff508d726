# SPDX-License-Identifier: GPL-2.0-only
"""Recovery after events and time to fair, on rates that are known, and outages in the lab."""

import os
import threading

import polars as pl
import pytest

from lab.ask import points, scenario
from lab.ask.carries import TUNNELS
from lab.measure import transients
from lab.measure.metrics import summarize

SAMPLE_S = 0.2


def samples(**rates_mbps: list[float]) -> pl.DataFrame:
    """Return samples of flows that have these rates in each second, one after the other."""
    rows = []
    for flow, rates in rates_mbps.items():
        acked = 0.0
        for i in range(5 * len(rates)):
            acked += rates[i // 5] * 1e6 / 8 * SAMPLE_S
            rows.append({"time_s": (i + 1) * SAMPLE_S, "flow": flow, "bytes_acked": int(acked)})
    return pl.DataFrame(rows)


def test_recovery_is_of_what_there_is_then():
    """8 Mb/s until the cut at 3 s, back at 5 s; 1 s later it has 4 Mb/s, and 7 from 8 s on: of
    8 Mb/s it has 0.8 in the second from 7.8 s on (0.2 s at 4, 0.8 s at 7)."""
    seen = samples(a=[8, 8, 8, 0, 0, 0, 4, 4, 7, 7])
    steps = [(3.0, 0.0), (5.0, 8.0)]
    found = transients.recoveries(seen, ["a"], SAMPLE_S, 10.0, steps)
    assert found["recovery_s"] == pytest.approx(2.8) and found["unrecovered"] == 0
    found = transients.recoveries(seen, ["a"], SAMPLE_S, 10.0, [*steps[:1], (5.0, 9.0)])
    assert found["recovery_s"] == 5 and found["unrecovered"] == 1
    assert found["recoveries"] == [{"at_s": 5.0, "recovery_s": None, "had_s": 5.0}]
    # two flows together, a step down that costs nothing, and no event at all
    both = samples(a=[1] * 10, b=[3] * 10)
    assert transients.recoveries(both, ["a", "b"], SAMPLE_S, 10, [(4, 5)])["recovery_s"] == 0
    assert transients.recoveries(both, ["a"], SAMPLE_S, 10, [(4, 5)])["unrecovered"] == 1
    assert transients.recoveries(both, ["a"], SAMPLE_S, 10, [])["recovery_s"] is None


def test_fair_is_five_seconds_in_a_row():
    """b begins at 2 s and has what a has from 5 s on, but for the 8th second."""
    a, b = [4] * 16, [0, 0, 1, 1, 1, 4, 4, 4, 1, 4, 4, 4, 4, 4, 4, 4]
    seen = samples(a=a, b=b)
    found = transients.time_to_fair(seen, ["a", "b"], 2.0, 16.0)
    assert found == {"time_to_fair_s": 7.0, "never_fair": 0}
    assert transients.time_to_fair(seen, ["a", "b"], 2.0, 12.0) == {
        "time_to_fair_s": 10.0, "never_fair": 1,
    }  # fmt: skip
    assert set(transients.time_to_fair(seen, ["a"], 2.0, 16.0).values()) == {None}


def run(backend, tree: dict) -> dict:
    loaded = scenario.parse("t", tree)
    (point,) = points.expand(loaded, ("reno",), [1], backend.build.key)
    found = []

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        series = pl.read_csv(outcome.raw / "flows.csv", infer_schema_length=None)
        found.append(summarize(point, outcome.raw) | {"series": series})

    backend.run_batch([point], min(os.sched_getaffinity(0)), on_outcome, threading.Event())
    return found[0]


def path(**more) -> dict:
    return {
        "title": "t",
        "topology": {"offloads": False},
        "links": {
            "bottleneck": {"rate_mbps": 4, "queue_pkts": 30},
            "wireless": {"delay_ms": 20},
            "reverse_wireless": {"delay_ms": 20},
        },
        "flows": [{"name": "a"}],
        "run": {"algorithms": ["reno"], "duration_s": 30, "warmup_s": 2, "packets": True},
    } | more


def acked(series: pl.DataFrame, from_s: float, to_s: float, flow: str = "a") -> float:
    times = series.filter(pl.col("flow") == flow)
    at = {round(t, 1): b for t, b in zip(times["time_s"], times["bytes_acked"], strict=True)}
    return at[to_s] - at[from_s]


def test_a_cut_queue_holds_and_a_cut_radio_loses(backend):
    """For 4 s nothing is acknowledged. A queue that was cut keeps what it has: its packets are
    under way for as long, and then it goes on at once; on a radio they are lost, and the sender
    waits for its timer, which has doubled."""
    for hop in ("bottleneck", "wireless"):
        events = [{"at_s": 10, "link": hop, "cut": True}, {"at_s": 14, "link": hop, "cut": False}]
        result = run(backend, path(events=events))
        assert acked(result["series"], 10.2, 14.0) == 0
        assert result["timeouts"] >= 1 and result["unrecovered"] == 0
        assert [one["at_s"] for one in result["recoveries"]] == [14.0]
        at_once = acked(result["series"], 14.0, 14.2)
        if hop == "bottleneck":
            assert at_once > 20 * 1448 and result["loss_random"] == 0
            assert result["recovery_s"] < 1
        else:
            assert at_once == 0 and result["loss_random"] > 0
            assert 0.2 < result["recovery_s"] < 15


def test_a_step_of_delay(backend):
    """From 20 to 120 ms there at 15 s: the round trip grows by 100, and no self-inflicted delay
    with it."""
    step = [{"at_s": 15, "link": "wireless", "delay_ms": 120}]
    plain, stepped = run(backend, path()), run(backend, path(events=step))
    late = stepped["series"].filter(pl.col("time_s") > 25)["srtt_ms"].min()
    early = stepped["series"].filter(pl.col("time_s") < 15)["srtt_ms"].min()
    assert 90 < late - early < 200
    assert stepped["owd_ms_p99"] > plain["owd_ms_p99"] + 50
    assert stepped["self_delay_ms_p99"] <= plain["self_delay_ms_p99"] + 1


def test_delays_of_their_own_and_a_common_start(backend):
    """Two flows alike start at one instant; one beside them has 150 ms more of its own, which its
    round trip shows and the path's delay does not."""
    flows = [{"name": "a", "count": 2, "together": True},
             {"name": "far", "algorithm": "cubic", "delay_ms": 150}]  # fmt: skip
    result = run(backend, path(flows=flows))
    a1, a2, far = result["flows"]
    assert a1["start_s"] == a2["start_s"] != far["start_s"]
    assert 150 <= far["min_rtt_ms"] - a1["min_rtt_ms"] < 170
    assert abs(far["owd_ms_p50"] - a1["owd_ms_p50"]) < 50
    assert result["time_to_fair_s"] > 0


@pytest.mark.parametrize("kind", TUNNELS)
def test_a_tunnel_takes_from_the_mtu_and_keeps_ecn(backend, kind):
    """In a tunnel over all hops a segment is smaller, after the router has said so; what the taps
    see is the packet inside; and marks of an AQM in the middle come out: Reno hears of congestion
    without a loss."""
    if complaint := backend.link_complaint({}, kind):
        pytest.skip(complaint)
    links = path()["links"]
    links["bottleneck"] = {"rate_mbps": 4, "queue_pkts": 200, "aqm": "fq_codel"}
    tunnel = {"offloads": False, "ecn": True, "tunnel": kind}
    result = run(backend, path(topology=tunnel, links=links))
    assert result["ce_marks"] > 10 and result["loss_congestion"] == 0
    # Reno that halves has three quarters at the least
    assert 0.75 * result["bound_mbps"] < result["goodput_mbps"] < result["bound_mbps"]
    (flow,) = result["flows"]
    assert flow["sent_pkts"] * (1448 - TUNNELS[kind][0]) == pytest.approx(
        flow["bytes_whole"], rel=0.02
    )
    assert result["owd_ms_p50"] > 20


def test_two_subflows_are_one_flow(backend):
    """MPTCP beside Reno, 18 s in a queue that holds a round trip: both subflows carry, together
    they and the rival fill the link, and no byte counts twice. The flow after them has one."""
    flows = [{"name": "a", "mptcp": True}, {"name": "b", "algorithm": "reno"}]
    values = path(flows=flows)
    values["run"] |= {"packets": False, "duration_s": 20}
    result = run(backend, values)
    series = result["series"]
    last = {name: series.filter(pl.col("flow") == name)["bytes_acked"][-1] for name in ("a", "a.2")}
    assert min(last.values()) > 500_000
    a, b = result["flows"]
    assert a["bytes_whole"] == pytest.approx(sum(last.values()), rel=0.02)
    assert a["bytes_whole"] <= sum(last.values()) + 2
    assert 0.9 < result["goodput_mbps"] / result["bound_mbps"] <= 1
    assert 0.4 < a["goodput_mbps"] / (a["goodput_mbps"] + b["goodput_mbps"]) < 0.95
    values["flows"][0]["bytes"] = 400_000
    (again, _) = run(backend, values)["flows"]
    assert again["bytes_whole"] == 400_000 and again["completion_s"] < 5


def test_requests_and_pauses(backend):
    """Requests of 20 segments with a second between them: each takes some round trips, and what was
    sent is what was answered; nothing flows in the pauses."""
    flows = [{"name": "a", "bytes": 28960, "repeats": 5, "pause_s": 1}]
    result = run(backend, path(flows=flows))
    (flow,) = result["flows"]
    assert len(flow["answers_s"]) == 5 and flow["unanswered_s"] is None
    assert flow["bytes_whole"] == 5 * 28960 and result["unfinished"] == 0
    assert all(0.04 + 20 * 1514 * 8 / 4e6 < took < 0.3 for took in flow["answers_s"])
    assert min(flow["answers_s"]) <= result["fct_s_p50"] <= result["fct_s_p95"] < 0.3
    steps = result["series"]["bytes_acked"].diff().drop_nulls()
    assert (steps == 0).sum() >= 12
