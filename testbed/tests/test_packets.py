# SPDX-License-Identifier: GPL-2.0-only
"""What became of each packet, on taps whose packets are known, and in the lab."""

import dataclasses
import os
import threading

import polars as pl
import pytest

from lab.ask import points, scenario
from lab.measure import packets
from lab.measure.metrics import summarize
from lab.measure.truth import TAP_RECORD

TCP, UDP, MS = 6, 17, 1_000_000


def tap(*records: tuple) -> pl.DataFrame:
    """Return a tap's packets from (ms, leaves, ip_id) and, if not 20000, 6 and 1000 bytes a packet
    in order, sport, protocol and sequence number."""
    rows = []
    for ms, leaves, ip_id, *rest in records:
        sport, protocol, seq = rest or (20000, TCP, ip_id * 1000)
        rows.append((int(ms * MS), sport, 5001, ip_id, protocol, leaves, seq, 1000))
    names = TAP_RECORD.names
    types = {"sport": pl.UInt16, "dport": pl.UInt16, "ip_id": pl.UInt16, "protocol": pl.UInt8,
             "leaves": pl.UInt8, "seq": pl.UInt32, "length": pl.UInt32}  # fmt: skip
    frame = pl.DataFrame(rows, schema=names, orient="row").cast(types)
    return frame.sort("time_ns", maintain_order=True)


def crossing(first: pl.DataFrame, last: pl.DataFrame) -> list[tuple]:
    """Return ms under way (None: lost), ms waited and whether it was dropped of each packet."""
    found = packets.follow({"queue": first, "radio": last}, [["queue", "radio"]], ["queue"])
    return [
        ((left - came) / MS if left is not None else None, waited / MS, dropped)
        for came, left, waited, dropped in zip(
            *(found[name] for name in ("time_ns", "left_ns", "waited_ns", "dropped")), strict=True
        )
    ]


def test_each_packet_s_way():
    """1 waits 5 ms, 2 is dropped by the queue, 3 is lost on the radio and waits 4, 4 overtakes
    nobody, and 5 is in the queue when the run ends: that is no drop."""
    first = tap((0, 0, 1), (5, 1, 1), (1, 0, 2), (2, 0, 3), (6, 1, 3), (3, 0, 4), (7, 1, 4),
                (9, 0, 5))  # fmt: skip
    last = tap((5, 0, 1), (25, 1, 1), (6, 0, 3), (7, 0, 4), (27, 1, 4))
    assert crossing(first, last) == [
        (25, 5, False),
        (None, 0, True),
        (None, 4, False),
        (24, 4, False),
        (None, 0, False),
    ]


def test_datagrams_whose_numbers_repeat():
    """A datagram that was dropped is not taken for the one that has its number 65536 later."""
    one = (30000, UDP, 0)
    first = tap((0, 0, 7, *one), (900, 0, 7, *one), (903, 1, 7, *one), (910, 0, 8, *one),
                (912, 1, 8, *one))  # fmt: skip
    last = tap((903, 0, 7, *one), (923, 1, 7, *one), (912, 0, 8, *one), (932, 1, 8, *one))
    assert crossing(first, last) == [(None, 0, True), (23, 3, False), (22, 2, False)]


def test_a_retransmission_is_another_packet():
    first = tap((0, 0, 1), (1, 0, 2), (2, 1, 1), (100, 0, 3, 20000, TCP, 2000),
                (101, 1, 3, 20000, TCP, 2000))  # fmt: skip
    last = tap((2, 0, 1), (22, 1, 1), (101, 0, 3, 20000, TCP, 2000), (121, 1, 3, 20000, TCP, 2000))
    assert [dropped for _, _, dropped in crossing(first, last)] == [False, True, False]


def test_start_and_standing_queue():
    """Flow 0 loses one of 2 packets in its start and one of 4 later; the shortest wait of the two
    seconds after the warm-up is 3 and 8 ms; 2 Mb/s over the p95 delay of 30 ms is 66.7."""
    rows = [(0.5, 20, 1, False), (0.9, None, 0, True), (3.1, 25, 3, False), (3.2, 30, 9, False),
            (4.5, 28, 8, False), (4.9, None, 0, True)]  # fmt: skip
    seen = pl.DataFrame(
        [
            {"flow": 0, "time_ns": int(s * 1000 * MS), "waited_ns": waited * MS, "dropped": dropped,
             "left_ns": None if ms is None else int((s * 1000 + ms) * MS),
             "self_ns": float(waited * MS)}
            for s, ms, waited, dropped in rows
        ],
        schema_overrides={"left_ns": pl.Int64},
    )  # fmt: skip
    found = packets.of_point(seen, seen, {0: 0}, 2.0, 3000 * MS, 2.0)
    assert (found["queue_drop_start_pct"], found["queue_drop_steady_pct"]) == (50, 25)
    assert (found["owd_ms_p50"], found["owd_ms_p95"]) == (28, 30)
    assert (found["self_delay_ms_p50"], found["self_delay_ms_p99"]) == (8, 9)
    assert (found["standing_queue_ms_p50"], found["standing_queue_ms_p95"]) in ((3, 8), (8, 8))
    assert found["power_mbps_per_s"] == pytest.approx(2 / 0.03)
    flow = packets.of_flow(seen, 4)
    assert (flow["sent_pkts"], flow["queue_drops"]) == (24, 8)
    assert flow["lost_pct"] == flow["queue_drop_pct"] == pytest.approx(100 / 3)


def run(backend, *some: points.Point) -> list[dict]:
    found = []

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        csv = [(outcome.raw / name).read_bytes() for name in ("flows.csv", "hops.csv")]
        found.append(summarize(outcome.point, outcome.raw) | {"csv": csv})

    backend.run_batch(list(some), min(os.sched_getaffinity(0)), on_outcome, threading.Event())
    return found


def test_in_the_lab(backend):
    """Two flows and CBR through a queue of 12 packets, a delay of 45 ms and 1 % random loss: what
    the taps say a queue dropped is what it counted, of every flow; a datagram was dropped or lost
    or came; nothing is faster than the path; watching changes no packet. One packet in four gives
    the same figures, nearly."""
    settings = {"run.duration_s": "30", "run.warmup_s": "5", "loss_pct": "1",
                "links.bottleneck.queue_pkts": "12", "flows.0.count": "2"}  # fmt: skip
    loaded = scenario.load("jsctp-primary", settings)
    source = loaded.source
    source["flows"].append({"name": "voice", "transport": "udp", "rate_mbps": 0.2})
    watched = scenario.parse("t", source | {"run": source["run"] | {"packets": True}})
    plain, all_seen = (
        points.expand(of, ("cubic",), [1], backend.build.key)[0]
        for of in (scenario.parse("t", source), watched)
    )
    some_seen = dataclasses.replace(all_seen, spec=all_seen.spec | {"tap_every": 4})
    without, every, quarter = run(backend, plain, all_seen, some_seen)
    assert without["csv"] == every["csv"] == quarter["csv"]
    flows = [*every["flows"], *every["udp"]]
    assert sum(flow["queue_drops"] for flow in flows) == every["loss_congestion"] > 50
    lost = every["loss_congestion"] + every["loss_random"]
    assert sum(f["lost_pct"] * f["sent_pkts"] for f in flows) / 100 == pytest.approx(lost, abs=5)
    test = every["flows"]
    drops, sent = (sum(flow[key] for flow in test) for key in ("queue_drops", "sent_pkts"))
    assert every["queue_drop_pct"] == pytest.approx(100 * drops / sent, abs=1e-4)
    assert every["queue_drop_start_pct"] > every["queue_drop_pct"] > every["queue_drop_steady_pct"]
    queue, radio = (all_seen.spec["links"][hop] for hop in ("bottleneck", "wireless"))
    frame_ms, radio_ms = (1514 * 8e-3 / link["rate_mbps"] for link in (queue, radio))
    one_way_ms = queue["delay_ms"] + radio["delay_ms"] + radio_ms
    assert one_way_ms + frame_ms <= every["owd_ms_p50"] <= one_way_ms + 12.1 * frame_ms
    waits_ms = every["owd_ms_p95"] - one_way_ms - frame_ms
    assert every["self_delay_ms_p95"] == pytest.approx(waits_ms, abs=0.01)
    assert every["udp"][0]["owd_ms_p50"] > one_way_ms
    assert quarter["queue_drop_pct"] == pytest.approx(every["queue_drop_pct"], rel=0.5)
    assert quarter["owd_ms_p50"] == pytest.approx(every["owd_ms_p50"], rel=0.1)
