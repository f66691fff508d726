# SPDX-License-Identifier: GPL-2.0-only
"""Harm to rivals: the arithmetic, which points it needs, and a rival that is starved in the lab."""

import json

import pytest
from conftest import run_command
from test_scenario import source

from lab.ask import points, scenario
from lab.common.errors import BadInput
from lab.measure import harm

RIVAL = {"name": "rival", "algorithm": "cubic"}


@pytest.mark.parametrize(
    ("beside", "own", "much", "expected"),
    [
        (1, 4, True, 0.75),  # of 4 Mb/s it keeps 1
        (4, 1, True, -0.75),  # better off than among its own
        (0, 4, True, 1),
        (0, 0, True, 0),
        (200, 50, False, 0.75),  # four times the delay
        (0, 3, False, -1),
        (None, 3, False, None),
    ],
)
def test_harm(beside, own, much, expected):
    assert harm.harm(beside, own, much) == expected


def result(algorithm: str, rates: list[float], seed: int = 1, **of) -> dict:
    test = {"under_test": True, "cross": False, "kind": "test", "algorithm": algorithm}
    rival = {"under_test": False, "cross": False, "kind": "rival", "algorithm": "cubic",
             "timeouts": 0, "completion_s": None, "limited": False} | of  # fmt: skip
    flows = [test, *(rival | {"goodput_mbps": rate} for rate in rates)]
    place = {"scenario": "t", "seed": seed, "axes": {"loss": 1.0}}
    return place | {"algorithm": algorithm, "flows": flows}


def test_pairs_are_of_one_place_and_seed():
    results = [result("bbr", [1, 2]), result("cubic", [3, 3]), result("bbr", [1, 1], seed=2)]
    harm.add(results)
    bbr, own, alone = results
    assert (bbr["harm_goodput"], bbr["harm_goodput_worst"]) == (0.5, pytest.approx(2 / 3, abs=1e-6))
    assert bbr["harm"]["rival"]["harm_goodput"] == 0.5 and bbr["harm_delay"] is None
    assert own["harm_goodput"] == 0 and alone["harm_goodput"] is None and alone["harm"] == {}


def test_losses_delays_timeouts_and_completion():
    of = {"sent_pkts": 100, "owd_ms_p95": 80.0, "limited": True, "start_s": 1.0, "stop_s": 9.0}
    results = [
        result("bbr", [1], **of | {"queue_drops": 10, "timeouts": 4}),  # it never got ready
        result("cubic", [1], **of | {"queue_drops": 2, "owd_ms_p95": 40.0, "completion_s": 2.0}),
    ]
    harm.add(results)
    names = ("harm_loss", "harm_delay", "harm_timeouts", "harm_completion")
    assert [results[0][name] for name in names] == [0.8, 0.5, 1, 0.75]


def test_a_run_has_the_points_that_harm_needs():
    """The rival's algorithm at each place, once, whether or not it is under test."""
    tree = source()
    tree["flows"].append(dict(RIVAL))
    tree["run"]["harm"] = True
    loaded = scenario.parse("t", tree)
    for wanted, expected in (
        (("reno",), ["reno", "cubic"]),
        (("cubic", "reno"), ["cubic", "reno"]),
    ):
        found = points.expand(loaded, wanted, [1, 2], lambda algorithms, *_: "")
        assert [p.algorithm for p in found] == 2 * [a for a in expected for _ in (1, 2)]
    tree["flows"][1]["first_hop"] = "wireless"
    with pytest.raises(BadInput, match="nobody who could be harmed"):
        scenario.parse("t", tree)


def test_who_never_backs_off_harms(tmp_path):
    """BBR v1 on a shallow queue beside cubic: less is left for cubic than cubic leaves, and queues
    drop more of what it sends. The added points are in the results, with no harm to their own."""
    file = tmp_path / "harm.toml"
    file.write_text("""
title = "harm"
[topology]
offloads = false
[links.bottleneck]
rate_mbps = 10
queue_bdp = 0.2
[links.wireless]
delay_ms = 20
[links.reverse_wireless]
delay_ms = 20
[[flows]]
name = "test"
[[flows]]
name = "rival"
algorithm = "cubic"
[run]
algorithms = ["bbr"]
duration_s = 30
warmup_s = 10
seeds = 1
packets = true
harm = true
[[claims]]
id = "harm"
text = "BBR takes half of what cubic would leave, or more"
metric = "harm_goodput"
algorithm = "bbr"
at_least = 0.5
""")
    done = run_command(str(file), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    found = {(r := json.loads(line))["algorithm"]: r for line in lines}
    assert list(found) == ["bbr", "cubic"]
    assert 0.5 < found["bbr"]["harm_goodput"] <= 1 and found["bbr"]["harm_loss"] > 0.5
    assert found["cubic"]["harm_goodput"] == found["cubic"]["harm_delay"] == 0
    assert "holds" in done.stdout
