# SPDX-License-Identifier: GPL-2.0-only
"""What is computed from a point's flows and hops, on figures whose result is known."""

from types import SimpleNamespace

import polars as pl
import pytest

from lab.measure.metrics import (
    _completion,
    _flow,
    _offered_mbps,
    _quantile,
    _queue_delay,
    _shares,
    _standing_queue,
    _variation,
    read_samples,
)


def flow(goodput_mbps: float | None, under_test: bool) -> dict:
    return {"goodput_mbps": goodput_mbps, "under_test": under_test}


@pytest.mark.parametrize(
    ("flows", "test_mbps", "other_mbps", "fair_share"),
    [
        ([flow(2, True), flow(6, False)], 2, 6, 0.5),
        ([flow(4, True), flow(8, True), flow(1.5, False), flow(2.5, False)], 6, 2, 1.5),
        ([flow(4, True), flow(8, True)], 6, None, None),  # nobody beside it
        ([flow(4, True), flow(None, False)], 4, None, None),  # never active after the warm-up
        ([flow(0, True), flow(0, False)], 0, 0, None),  # nothing to share
    ],
)
def test_shares(flows, test_mbps, other_mbps, fair_share):
    assert _shares(flows) == {
        "goodput_test_mbps": test_mbps,
        "goodput_other_mbps": other_mbps,
        "fair_share": fair_share,
    }


def test_completion_times_are_of_limited_flows_under_test():
    def short(name, completion_s, under_test=True):
        return {"name": name, "under_test": under_test, "completion_s": completion_s,
                "start_s": 1.0, "stop_s": 9.0}  # fmt: skip

    flows = [short("a", 2.0), short("b", None), short("c", 1.0), short("d", 5.0, False),
             short("e", 3.0)]  # fmt: skip
    limits = {
        "a": 1000,
        "b": 1000,
        "c": 0,
        "d": 1000,
        "e": 1000,
    }  # c has no limit, d is not under test
    spec = {"flows": [{"name": name, "bytes": limit} for name, limit in limits.items()]}
    assert _completion(SimpleNamespace(spec=spec), flows) == {
        "fct_s_p50": 3.0, "fct_s_p95": 8.0, "unfinished": 1,
    }  # fmt: skip
    none = {"flows": [{"name": "c", "bytes": 0}]}
    assert set(_completion(SimpleNamespace(spec=none), flows[2:3]).values()) == {None}


def test_what_was_never_sampled_is_no_zero():
    """SCTP tells no smoothed RTT: 0 ms ranked best of all."""
    assert _quantile(pl.Series([None, None], dtype=pl.Float64), 0.5) is None
    assert _quantile(pl.Series([0.0, None]), 0.5) == 0.0
    hops = pl.DataFrame(schema={"time_s": pl.Float64, "hop": pl.String, "backlog_bytes": pl.Int64})
    link = {"queue_pkts": 20, "rate_mbps": 2.0}
    for links, delay_ms in (({"a": link}, None), ({"a": link | {"queue_pkts": 0}}, 0.0)):
        spec = {"topology": {"hops": ["a"]}, "links": links, "events": []}
        found = _queue_delay(SimpleNamespace(spec=spec, warmup_s=1.0), hops)
        assert found == dict.fromkeys(("queue_delay_ms_p50", "queue_delay_ms_p95"), delay_ms)


@pytest.mark.parametrize(
    ("begins_s", "lasts_s", "of_steady"),
    [(0, 100, 1), (0, 10, 0), (0, 30, 0.125), (60, 40, 0.5), (50, 10, 0.125)],
)
def test_what_udp_offers_is_of_the_time_after_the_warm_up(begins_s, lasts_s, of_steady):
    """80 s from 20 s on; 1000 full frames in each second that it lasts."""
    udp = {"mss_bytes": 0, "start_s": float(begins_s), "duration_s": float(lasts_s)}
    spec = {"duration_s": 100.0, "topology": {"tunnel": ""}, "udp": [udp]}
    sent = {"sent_pkts": 1000 * lasts_s}
    offered = _offered_mbps(SimpleNamespace(spec=spec, warmup_s=20.0), [sent])
    assert offered == [pytest.approx(1514 * 8e-3 * of_steady)]


def test_a_starved_flow_has_no_goodput_and_no_less():
    """The probe counts the SYN as a byte, the flow's end does not."""
    spec = {"name": "a", "kind": "a", "under_test": True, "reverse": False, "cross": False,
            "start_s": 0.0, "duration_s": 10.0, "bytes": 0}  # fmt: skip
    end = {"start_s": 0.0, "end_s": 10.0, "bytes_acked": 0, "algorithm": "reno", "retransmits": 5,
           "timeouts": 5, "completion_time_s": None, "min_rtt_us": None}  # fmt: skip
    samples = pl.DataFrame({"time_s": [1.0, 5.0], "bytes_acked": [1, 1]})
    found = _flow(SimpleNamespace(warmup_s=2.0), spec, end, samples)
    assert f"{found['goodput_mbps']:.2f}" == "0.00" and found["bytes_steady"] == 0


def test_where_no_hop_has_a_queue_none_stands():
    """A wireless chain: the probe's file has a header and no row, so no column is of numbers."""
    hops = pl.DataFrame(schema={"time_s": pl.Float64, "hop": pl.String, "backlog_pkts": pl.String})
    spec = {"topology": {"hops": ["hop1"]}, "links": {"hop1": {"queue_pkts": 0}}, "flows": []}
    found = _standing_queue(SimpleNamespace(warmup_s=2.0, spec=spec), hops)
    assert set(found.values()) == {None}


def test_queue_delay_follows_the_rate():
    """A backlog of 12500 bytes is 100 ms at 1 Mb/s and 10 ms at 10 Mb/s."""
    hops = pl.DataFrame(
        [{"time_s": t, "hop": "bottleneck", "backlog_bytes": 12500} for t in range(1, 101)]
    )
    link = {"rate_mbps": 1.0, "queue_pkts": 50}
    spec = {
        "topology": {"hops": ["bottleneck", "wireless"]},
        "links": {"bottleneck": link, "wireless": {"queue_pkts": 0}},
        "events": [{"at_s": 20.0, "link": "bottleneck", "changes": {"rate_mbps": 10.0}}],
    }
    point = SimpleNamespace(spec=spec, warmup_s=0.0)
    assert _queue_delay(point, hops) == {"queue_delay_ms_p50": 10.0, "queue_delay_ms_p95": 100.0}


def test_flows_that_no_sample_saw_have_no_variation(tmp_path):
    """Over before the first sample: a table without rows, whose columns have their types still."""
    path = tmp_path / "flows.csv"
    path.write_text("time_s,flow,bytes_acked\n")
    flows = [{"name": "tcp", "under_test": True}]
    point = SimpleNamespace(spec={"sample_ms": 200, "flows": flows})
    assert _variation(point, read_samples(path, bytes_acked=pl.Int64)) is None
