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
    claim.setdefault("where", {"loss_pct": 1})
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
    assert verdict(SIX, at_least=1, where={"loss_pct": 2}).verdict == "not measured"


def test_a_claim_about_several_places_has_to_hold_at_each():
    """At 5 % there is a quarter of what there is at 1 %; the median of both says nothing of it."""
    everywhere = {"where": {}, "at_least": 0.3}
    assert verdict(SIX, **everywhere).verdict == "undecided"
    found = verdict(SIX, **everywhere | {"at_least": 0.5})
    assert found.verdict == "does not hold" and found.at == "at loss_pct 5"
    assert (found.value.low, found.value.high, found.value.n) == (0.25, 0.375, 6)
    row = words.claim_row(found)
    assert row["measured"] == "0.31 [0.25, 0.38] at loss_pct 5"
    assert row["why"] == "worst at loss_pct 5: the interval lies below the bound"
    assert verdict(SIX, **everywhere | {"at_least": 0.2}).verdict == "holds"
    together = verdict(SIX, **everywhere | {"at_least": 0.2}, together=True)
    assert together.value.n == 12 and together.at == "" and together.verdict == "holds"


def test_random_places_are_draws_as_seeds_are():
    tree = {
        "title": "t",
        "links": {"bottleneck": {"rate_mbps": 2}, "wireless": {"delay_ms": 20}},
        "flows": [{"name": "tcp"}],
        "run": {"algorithms": ["jtcp"], "duration_s": 9},
        "axes": {"place": {"random": {"count": 7, "draws": {"rate": {"from": 1, "to": 9}},
                                      "sets": {"links.bottleneck.rate_mbps": "rate"}}}},
        "claims": [{"id": "c", "text": "c", "metric": "goodput_mbps", "algorithm": "jtcp",
                    "at_least": 1}],
    }  # fmt: skip
    results = [
        {"algorithm": "jtcp", "seed": 1, "axes": {"place": float(n)}, "goodput_mbps": float(n)}
        for n in range(1, 8)
    ]
    (found,) = claims.judge(parse("t", tree), results)
    assert found.value.n == 7 and found.verdict == "holds"
    (found,) = claims.judge(parse("t", tree), results[:-1])
    assert found.verdict == "undecided" and found.missing == 1


def test_what_has_no_figure_is_not_left_out():
    """One seed of ten on a side, or a place without a result: that could not be undecided."""
    ten = [1.0 + seed / 100 for seed in range(10)]
    found = verdict(ten[:1], ten, against="reno", at_most=1.05)
    assert found.verdict == "undecided" and found.missing == 9
    assert words.claim_row(found)["why"] == ("9 of 10 points have no figure: none may be left out")
    assert verdict(ten, ten[:9], against="reno", at_most=1.05).verdict == "undecided"
    assert verdict(ten, ten, against="reno", at_most=1.05).verdict == "holds"
    found = verdict(ten, ten, against="reno", at_most=1.05, where={})  # reno has none at 5 %
    assert found.verdict == "undecided" and found.at == "at loss_pct 5" and found.value is None
    assert words.claim_row(found)["measured"] == "- at loss_pct 5"


def test_seeds_that_were_to_run_count_where_all_sides_lack_them():
    claim = Claim("c", "c", "goodput_mbps", "jtcp", at_least=0.5)
    results = [result("jtcp", seed, 1.0) for seed in range(6)]
    assert claims._judge(claim, results).verdict == "holds"
    assert claims._judge(claim, results, range(7)).verdict == "undecided"


def test_one_seed_says_what_it_says():
    """A smoke run, which says itself that it is one."""
    found = verdict([1.0], [1.0], against="reno", at_least=1)
    assert found.verdict == "holds" and "the single run" in words.claim_row(found)["why"]


def test_ratios_are_taken_seed_by_seed():
    twice = verdict(SIX, [value / 2 for value in SIX], against="reno", at_least=2, at_most=2)
    assert twice.verdict == "holds" and twice.value.low == twice.value.high == 2
    assert verdict(SIX, SIX[:2], against="reno", at_least=1).value.n == 2
    assert verdict(SIX, against="bound", at_most=0.75).value.high == 0.75
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
