# SPDX-License-Identifier: GPL-2.0-only
"""Throughput against delay: a point for each algorithm and place, of those that have both."""

import pytest

from lab.ask import scenario
from lab.show import facts, scatter

SOURCE = {
    "title": "scatter",
    "links": {"bottleneck": {"trace": "lte-car", "queue_pkts": 100}, "wireless": {"delay_ms": 20}},
    "flows": [{"name": "tcp"}],
    "run": {"algorithms": ["cubic", "jtcp"], "duration_s": 20, "seeds": 3, "packets": True},
    "axes": {"loss_pct": {"sets": "links.wireless.loss_pct", "values": [0, 1], "unit": "%"}},
}


def result(algorithm: str, loss_pct: float, seed: int, **figures) -> dict:
    common = {"algorithm": algorithm, "axes": {"loss_pct": loss_pct}, "seed": seed}
    return common | {"goodput_mbps": 3.0, "bound_mbps": 4.0, "owd_ms_p95": 50.0} | figures


@pytest.fixture
def results() -> list[dict]:
    return [
        result(algorithm, loss_pct, seed, goodput_mbps=seed * 1.0, bound_mbps=seed * 2.0)
        for algorithm in ("cubic", "jtcp")
        for loss_pct in (0.0, 1.0)
        for seed in (1, 2, 4)
    ]


def test_a_share_is_of_the_seeds_own_bound(results):
    assert {of["share"] for of in scatter.shares(results)} == {0.5}
    without = [result("cubic", 0.0, 1, owd_ms_p95=None), result("cubic", 0.0, 2, bound_mbps=0.0)]
    assert scatter.shares(without) == []


def test_the_figure_has_a_panel_for_each_place_and_names_everybody(results):
    svg = scatter.scatter_figure(scenario.parse("scatter", SOURCE), results)
    assert svg.count("Share of the bound") == 1
    for text in ("loss_pct 0 %", "loss_pct 1 %", "cubic", "jtcp", "One-way delay"):
        assert text in svg


def test_the_bound_of_a_place_is_the_median_of_its_seeds(results):
    found = facts.bounds(scenario.parse("scatter", SOURCE), results)
    assert found == {(0.0,): 4.0, (1.0,): 4.0}
