# SPDX-License-Identifier: GPL-2.0-only
"""What wccp-2 and wccp-3 are held against are the fair shares of their chains.

Clique model: of any four hops in a row one is used at a time, so a flow's byte costs such a row as
many uses as it crosses of its hops, and four uses take what one flow over all eight hops carries.
"""

import pytest

from lab.ask import scenario
from lab.measure.stats import jain_index

ONE_FLOW_MBPS = 0.347  # measured: wccp-chains, nine nodes, median of ten seeds (docs/wccp.md)
ROW_HOPS = 4


def uses_of(name):
    """Return, for each row of four hops, how many of them each flow of the scenario crosses."""
    at = scenario.load(name)
    spans = [set(range(first, last + 1)) for first, last in (f.span(at.topology) for f in at.flows)]
    rows = [set(range(i, i + ROW_HOPS)) for i in range(len(at.topology.hops) - ROW_HOPS + 1)]
    return [[len(row & span) for span in spans] for row in rows]


def loads(uses, rates):
    return [sum(map(float.__mul__, map(float, row), rates)) for row in uses]


def proportionally_fair(uses):
    """Return the rates (Mb/s) whose logarithms' sum is the largest; rows have prices (Kelly)."""
    capacity, prices = ROW_HOPS * ONE_FLOW_MBPS, [1.0] * len(uses)
    for _ in range(20_000):
        costs = [sum(p * row[i] for p, row in zip(prices, uses, strict=True)) for i in flows(uses)]
        rates = [1 / cost for cost in costs]
        used = loads(uses, rates)
        prices = [p * (load / capacity) ** 0.2 for p, load in zip(prices, used, strict=True)]
    assert max(loads(uses, rates)) < 1.001 * capacity
    return rates


def max_min(uses):
    """Return the rate (Mb/s) that all flows can have at once, if no flow can have more."""
    rate = ROW_HOPS * ONE_FLOW_MBPS / max(map(sum, uses))
    full = [row for row in uses if sum(row) == max(map(sum, uses))]
    assert all(any(row[i] for row in full) for i in flows(uses)), "some could have more"
    return [rate for _ in flows(uses)]


def flows(uses):
    return range(len(uses[0]))


@pytest.mark.parametrize(
    ("name", "equal_mbps", "fair_mbps", "fair_jain"),
    [("wccp-2", 0.521, 0.578, 0.926), ("wccp-3", 0.521, 0.646, 0.841)],
)
def test_claims_are_held_against_the_fair_shares(name, equal_mbps, fair_mbps, fair_jain):
    uses = uses_of(name)
    equal, fair = max_min(uses), proportionally_fair(uses)
    assert sum(equal) == pytest.approx(equal_mbps, abs=0.0006)
    assert sum(fair) == pytest.approx(fair_mbps, abs=0.0006)
    assert jain_index(fair) == pytest.approx(fair_jain, abs=0.001)
    claims = {claim.id: claim for claim in scenario.load(name).claims}
    asked = {"max-min": equal_mbps, "proportionally-fair": fair_mbps}
    for claim, bound in asked.items():
        assert claims[claim].at_least == pytest.approx(0.95 * bound, abs=0.001)
        assert f"{bound:.3f} Mb/s" in claims[claim].text
