# SPDX-License-Identifier: GPL-2.0-only
"""Medians, intervals, fairness, and verdicts on claims."""

import math
import random
from dataclasses import replace
from statistics import median

import pytest

from lab.ask.parts import Claim
from lab.ask.scenario import parse
from lab.common.errors import BadInput
from lab.judge import claims
from lab.measure.stats import estimate, jain_index
from lab.show import words


@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    # order statistics of the 95 % interval for a median, as in published tables (k-th smallest)
    [(6, 1, 6, 0.969), (8, 1, 8, 0.992), (9, 2, 8, 0.961), (10, 2, 9, 0.979), (20, 6, 15, 0.959)],
)
def test_intervals_match_the_published_ranks(n, low, high, coverage):
    values = list(range(1, n + 1))
    random.Random(1).shuffle(values)
    result = estimate(values)
    assert (result.low, result.high) == (low, high)
    assert result.median == median(values) and result.coverage == pytest.approx(coverage, abs=1e-3)


def test_few_values_give_their_range_and_say_so():
    result = estimate([3.0, 1.0, 2.0])
    assert (result.low, result.high) == (1.0, 3.0) and result.coverage == 0.75
    assert estimate([2.0]).coverage == 0.0
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_the_interval_covers_as_often_as_it_says():
    draw = random.Random(7)
    hits = 0
    for _ in range(2000):
        result = estimate([draw.expovariate(1) for _ in range(10)])
        hits += result.low <= 0.6931 <= result.high
    assert 0.965 <= hits / 2000 <= 0.99  # 0.979 less and more three standard errors


def test_jain_index():
    assert jain_index([1, 1, 1]) == pytest.approx(1)
    assert jain_index([5, 0, 0, 0]) == pytest.approx(0.25)
    assert jain_index([0, 0]) == 1


def result(algorithm, seed, goodput, loss_pct=1.0):
    return {"algorithm": algorithm, "seed": seed, "axes": {"loss_pct": loss_pct},
            "goodput_mbps": goodput, "bound_mbps": 2.0}  # fmt: skip


def verdict(mine, theirs=None, **claim):
    tree = {
        "title": "t",
        "links": {"bottleneck": {"rate_mbps": 2}, "wireless": {"loss_pct": 1}},
        "flows": [{"name": "tcp"}],
        "run": {"algorithms": ["jtcp"], "duration_s": 9},
        "axes": {"loss_pct": {"sets": "links.wireless.loss_pct", "values": [1, 5]}},
        "claims": [{"id": "c", "text": "c", "metric": "goodput_mbps", "algorithm": "jtcp"} | claim],
    }
    results = [result("jtcp", i, value) for i, value in enumerate(mine)]
    results += [result("reno", i, value) for i, value in enumerate(theirs or [])]
    results += [result("jtcp", i, value / 4, 5.0) for i, value in enumerate(mine)]
    return claims.judge(parse("t", tree), results)[0]


SIX = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]


def test_claims_hold_fail_or_stay_open():
    at = {"where": {"loss_pct": 1}}
    assert verdict(SIX, at_least=0.9, **at).verdict == "holds"
    assert verdict(SIX, at_least=1.6, **at).verdict == "does not hold"
    assert verdict(SIX, at_least=1.25, **at).verdict == "undecided"
    assert verdict(SIX, at_most=1.5, at_least=1.0, **at).verdict == "holds"
    assert verdict(SIX, at_least=1).value.n == 12
    assert verdict(SIX, at_least=1, where={"loss_pct": 2}).verdict == "not measured"


def test_ratios_are_taken_seed_by_seed():
    twice = verdict(SIX, [value / 2 for value in SIX], against="reno", at_least=2, at_most=2)
    assert twice.verdict == "holds" and twice.value.low == twice.value.high == 2
    assert verdict(SIX, SIX[:2], against="reno", at_least=1).value.n == 2
    assert verdict(SIX, against="bound", at_most=0.75, where={"loss_pct": 1}).value.high == 0.75
    assert verdict(SIX, against="reno", at_least=1).verdict == "not measured"


def test_a_ratio_to_nothing_counts():
    """The other side has none in eight of ten seeds: what is left is no verdict about all."""
    mine, theirs = [1.0] * 2 + [500.0] * 7 + [0.0], [2.0] * 2 + [0.0] * 8
    more = verdict(mine, theirs, against="reno", at_most=1)
    assert more.verdict == "undecided" and more.value.n == 10 and more.value.median == math.inf
    assert verdict([0.0] * 6, [0.0] * 6, against="reno", at_most=1, at_least=1).verdict == "holds"
    row = words.claim_row(more)
    assert (row["median"], row["interval"]) == ("inf", "[0.50, inf]")


def test_a_claim_may_be_about_some_of_the_flows():
    def of_flows(algorithm, seed, rates):
        kinds = [("tcp", rates[0]), *(("cross", rate) for rate in rates[1:])]
        flows = [{"kind": kind, "goodput_mbps": rate} for kind, rate in kinds]
        return result(algorithm, seed, 9.0) | {"flows": flows}

    claim = Claim("c", "c", "goodput_mbps", "jtcp", flows="cross", against="reno", at_least=0.5)
    results = [of_flows("jtcp", seed, [8, 1, 2, None]) for seed in range(6)]
    results += [of_flows("reno", seed, [1, 2, 4]) for seed in range(6)]
    found = claims._judge(claim, results)
    assert found.verdict == "holds" and (found.value.low, found.value.high) == (0.5, 0.5)
    assert found.subject == "goodput_mbps of cross, jtcp / reno"
    alone = claims._judge(replace(claim, flows="none", against=""), results)
    assert alone.verdict == "not measured"


def test_an_algorithm_against_itself_elsewhere():
    moved = {"where": {"loss_pct": 5}, "against": "jtcp", "against_where": {"loss_pct": 1}}
    found = verdict(SIX, at_least=0.25, at_most=0.25, **moved)
    assert found.verdict == "holds" and found.value.n == 6
    assert found.subject == "goodput_mbps, jtcp at loss_pct 5 / jtcp at loss_pct 1"
    with pytest.raises(BadInput, match="against_where needs an algorithm"):
        verdict(SIX, at_least=1, against_where={"loss_pct": 1})
