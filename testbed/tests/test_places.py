# SPDX-License-Identifier: GPL-2.0-only
"""Places that a seed draws: where they lie, that they repeat, and what is refused."""

import math
import tomllib

import pytest
from test_scenario import GOOD

from lab.ask import places, points, scenario
from lab.ask.tables import set_dotted
from lab.common.errors import BadInput

AXIS = """
[axes.place.random]
count = 5
seed = 3
[axes.place.random.draws]
rate_mbps = { from = 1, to = 100, scale = "log" }
loss_pct = { from = 0, to = 10 }
own = { from = 1, to = 4, whole = true }
rival = { choice = ["reno", "cubic"] }
bdp_pkts = "rate_mbps * 90 / 12.112"
[axes.place.random.sets]
"links.bottleneck.rate_mbps" = "rate_mbps"
"links.bottleneck.queue_pkts" = "max(2, round(bdp_pkts))"
"links.wireless.loss_pct" = "loss_pct if rival == 'reno' else 0"
"flows.0.count" = "own"
"""


def source(**changes):
    """Return GOOD with AXIS instead of its own, and dotted keys (__ for .) set to other values."""
    tree = tomllib.loads(GOOD)
    tree.pop("claims")
    tree["axes"] = tomllib.loads(AXIS)["axes"]
    for key, value in changes.items():
        set_dotted(tree, key.replace("__", "."), value)
    return tree


def expand(tree):
    loaded = scenario.parse("test", tree)
    return points.expand(loaded, ("reno",), [1], lambda *_: "")


def test_a_place_is_what_was_drawn_for_it():
    for point in expand(source()):
        drawn = point.drawn
        bottleneck = point.spec["links"]["bottleneck"]
        assert bottleneck["rate_mbps"] == drawn["rate_mbps"] and 1 <= drawn["rate_mbps"] <= 100
        assert bottleneck["queue_pkts"] == max(2, round(drawn["bdp_pkts"]))
        lossy = drawn["rival"] == "reno"
        assert point.spec["links"]["wireless"]["loss_pct"] == lossy * drawn["loss_pct"]
        assert len(point.spec["flows"]) == drawn["own"]
        assert point.labels()["drawn"] == drawn


def test_a_place_depends_on_its_number_the_seed_and_the_names_alone():
    """Alone, in another order, with more places or another range beside it: the same points."""
    all_five = {point.axes["place"]: point.id for point in expand(source())}
    some = expand(source(axes__place__values=[4, 2]))
    assert [point.axes["place"] for point in some] == [4, 2]
    assert all(point.id == all_five[point.axes["place"]] for point in some)
    more = expand(source(axes__place__random__count=50))
    assert [point.id for point in more[:5]] == list(all_five.values())
    beside = source()
    beside["axes"]["place"]["random"]["draws"] = {"new": {"from": 1, "to": 2}} | beside["axes"][
        "place"
    ]["random"]["draws"]
    assert [point.id for point in expand(beside)] == list(all_five.values())
    other = expand(source(axes__place__random__seed=4))
    assert not {point.id for point in other} & set(all_five.values())


def test_draws_have_their_distribution():
    """2000 draws: means within four standard errors of what the ranges say."""
    drawn = places.parse("axes.place.random", source()["axes"]["place"]["random"])
    many = [drawn.drawn(place) for place in range(1, 2001)]

    def near(values, mean, sd):
        assert abs(sum(values) / 2000 - mean) < 4 * sd / math.sqrt(2000)

    near([math.log10(d["rate_mbps"]) for d in many], 1, 2 / math.sqrt(12))
    near([d["loss_pct"] for d in many], 5, 10 / math.sqrt(12))
    near([d["own"] for d in many], 2.5, math.sqrt(15 / 12))
    near([d["rival"] == "reno" for d in many], 0.5, 0.5)
    assert {d["own"] for d in many} == {1, 2, 3, 4}


def test_set_of_a_key_that_is_drawn_fixes_it():
    loaded = scenario.load("random-paths", {"run.duration_s": "90", "place": "17"})
    (point,) = points.expand(loaded, ("reno",), [1], lambda *_: "")
    assert point.spec["duration_s"] == 90 and point.axes == {"place": 17}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"draws__loss_pct": {"from": 9, "to": 1}}, "the range is upside down"),
        ({"draws__loss_pct": {"from": 0, "to": 1, "scale": "log"}}, "above 0 on a logarithmic"),
        ({"draws__loss_pct": {"from": 0, "to": 1, "scale": "lin"}}, "did you mean 'linear'"),
        ({"draws__loss_pct": {"form": 0, "to": 1}}, "did you mean 'from'"),
        ({"draws__loss_pct": {"from": 0}}, "from and to are needed"),
        ({"draws__loss_pct": {"choice": []}}, "choice is a list"),
        ({"draws__own": {"from": 1.5, "to": 4, "whole": True}}, "whole numbers"),
        ({"draws": {}}, "a table is needed"),
        ({"count": 0}, "a whole number from 1"),
        ({"seed": "x"}, "a whole number from 1"),
        ({"sed": 1}, "did you mean 'seed'"),
        ({"sets": {"links.bottleneck.rate_mbps": "rat_mbps"}}, "did you mean 'rate_mbps'"),
        ({"sets": {"links.bottleneck.rate_mbps": "rate_mbps / 0"}}, "division by zero"),
        ({"sets": {"links.bottleneck.rate_mbps": "open('x')"}}, "unknown function"),
        ({"sets": {"links.bottleneck.rate_mbps": "().__class__"}}, "no part of a formula"),
        ({"sets": {"links.bottleneck.rate_mbps": "1 +"}}, "formula '1 +'"),
        ({"sets": {"links.bottleneck.rate_mbps": 5}}, "write a formula as a text"),
        ({"sets": {"links.bottlneck.rate_mbps": "5"}}, "did you mean 'bottleneck'"),
        ({"sets": {"run.seeds": "5"}}, "cannot be drawn"),
        ({"sets": {"links.wireless.loss_pct": "loss_pct * 100"}}, "at most 100 %"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(changes, told):
    changes = {f"axes__place__random__{key}": value for key, value in changes.items()}
    with pytest.raises(BadInput) as refused:
        scenario.parse("test", source(**changes))
    assert told in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("place", [0, 1.5, "x"])
def test_what_is_no_place_is_refused(place):
    with pytest.raises(BadInput, match="numbered from 1"):
        scenario.parse("test", source(axes__place__values=[place]))
