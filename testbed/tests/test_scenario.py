# SPDX-License-Identifier: GPL-2.0-only
"""A scenario file or --set that makes no sense is refused with one line that names the cure."""

import copy
import math
import re
import tomllib

import pytest

from lab.ask import carries, points, scenario, seeds
from lab.ask.links import Link
from lab.ask.tables import set_dotted
from lab.common.errors import BadInput

GOOD = """
title = "t"
[links.bottleneck]
rate_mbps = 2
queue_pkts = 50
[links.wireless]
delay_ms = 45
loss_pct = 1
[[flows]]
name = "tcp"
[run]
algorithms = ["jtcp", "reno"]
duration_s = 20
seeds = 2
[axes.loss_pct]
sets = "links.wireless.loss_pct"
values = [0, 1]
[[claims]]
id = "c"
text = "c"
metric = "goodput_mbps"
algorithm = "jtcp"
at_least = 1
"""


def source(**changes):
    """Return GOOD parsed, with dotted keys (__ for .) set to other values."""
    tree = tomllib.loads(GOOD)
    for key, value in changes.items():
        set_dotted(tree, key.replace("__", "."), value)
    return tree


BURSTS = """
title = "t"
links.bottleneck = { rate_mbps = 2, queue_pkts = 50 }
links.wireless = { delay_ms = 45 }
flows = [{ name = "tcp" }]
run = { algorithms = ["reno"], duration_s = 20 }
"""


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ("", {"links.wireless.loss_pct": "0"}),
        ('axes.x = { sets = "links.wireless.loss_pct", values = [0, 1] }', {}),
        ("axes.x.choices.a.links.wireless.loss_pct = 1", {}),
        ('events = [{ at_s = 5, link = "wireless", loss_pct = 1 }]', {}),
        ("", {"links.wireless.burst_pkts": "0"}),
    ],
)
def test_losses_that_come_in_bursts_are_asked_for(tmp_path, more, settings):
    """A loss of 0 may be a place of a sweep; of a hop that nothing gives losses it is a mistake."""
    path = tmp_path / "bursts.toml"
    path.write_text(BURSTS + more)
    scenario.load(str(path), {"links.wireless.burst_pkts": "3"} | settings)
    path.write_text(BURSTS)
    with pytest.raises(BadInput, match=r"^links.wireless: burst_pkts needs loss_pct"):
        scenario.load(str(path), {"links.wireless.burst_pkts": "3"})


def test_every_scenario_of_the_project_is_good():
    assert scenario.list_scenarios()
    for path in scenario.list_scenarios():
        loaded = scenario.load(path.stem)
        assert loaded.id == path.stem and points.expand(
            loaded, loaded.run.algorithms, [1], lambda algorithms, *_: ""
        )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"links__wireless__loss_pct": 120}, "at most 100 %"),
        ({"links__wireless__loss_pct": -1}, "negative"),
        ({"links__bottleneck__rate_mbps": -2}, "negative"),
        ({"links__bottleneck__rate_mbps": 0}, "rate_mbps"),
        ({"links__bottleneck__rate_mbps": "2mbit"}, "must be a number"),
        ({"links__bottleneck__los_pct": 1}, "did you mean 'loss_pct'"),
        ({"links__bottleneck__loss_pct": 1}, "cause of a drop"),
        ({"links__bottleneck__aqm": "codle"}, "did you mean 'codel'"),
        ({"links__wireless__aqm": "codel"}, "needs queue_pkts"),
        ({"links__bottleneck__queue_bdp": 1}, "not both"),
        (
            {"links__bottleneck": {"queue_bdp": 1, "rate_mbps": 2, "loss_pct": 1}},
            "links.bottleneck: queue_bdp and a loss on one hop",
        ),
        ({"links__wireless__queue_bdp": 1}, "queue_bdp needs a rate_mbps above 0"),
        ({"links__wireless__queue_pkts": 1}, "queue_pkts needs a rate_mbps above 0, or a trace"),
        (
            {"links__wireless__loss_pct": [1, 3]},
            'several values are an axis: [axes.NAME] with sets = "links.wireless.loss_pct"',
        ),
        ({"axes": {"loss": {"sets": "links.wireless.loss_pct"}}}, "axes.loss: 'values' is missing"),
        ({"links__bottleneck__policer_burst_ms": 10}, "no queue, loss or delay"),
        ({"links__bottleneck": {"policer_burst_ms": 10}}, "needs rate_mbps"),
        ({"links__bottleneck": {"policer_burst_ms": 10, "rate_mbps": 2}}, "offloads = false"),
        ({"topology": {"offloads": "host"}}, "true, false or 'hosts'"),
        ({"topology": {"offloads": 1}}, "text, or true or false"),
        (
            {"topology": {"offloads": "hosts"}, "links__bottleneck__rate_mbps": 20_000},
            "hosts send 10000 Mb/s",
        ),
        ({"topology": {"offloads": "hosts"}, "flows__0__mss_bytes": 700}, "not fit into one frame"),
        (
            {"topology": {"kind": "wireless-chain", "nodes": 3, "offloads": "hosts"}},
            "only of a dumbbell or chain",
        ),
        (
            {
                "links__bottleneck": {"policer_burst_ms": 1, "rate_mbps": 2},
                "topology": {"offloads": False},
            },
            "passes no frame",
        ),
        (
            {
                "links__bottleneck": {"policer_burst_bytes": 100_000, "rate_mbps": 2},
                "links__wireless": {},
            },
            "needs a delay or a rate",
        ),
        ({"links__wireless__retry_pct": 5}, "needs retry_ms"),
        ({"links__wireless__jitter_ms": 5}, "change the order"),
        ({"links__wireless__reorder_pct": 5, "links__wireless__delay_ms": 0}, "that it spares"),
        ({"links__bottleneck__jitter_reorders": True}, "keeps the order"),
        ({"links__wireless": {"reorder_pct": 5, "delay_ms": 5, "rate_mbps": 1}}, "without rate"),
        ({"flows__0__repeats": 5}, "of the flow's bytes"),
        ({"flows__0__pause_s": 5}, "with repeats"),
        ({"flows__0__delay_ms": -1}, "0 to 60000"),
        ({"flows__0__together": True, "flows__0__every_s": 1}, "not both"),
        ({"flows": [{"name": "a", "mptcp": True, "count": 2, "every_s": 1}]}, "not with every_s"),
        ({"flows__0__mptcp": True, "run__packets": True}, "not with run.packets"),
        ({"flows__0__mptcp": True, "topology": {"homes": 2}}, "with one home"),
        ({"links__wireless__burst_pkts": 0.5}, "1 at least"),
        ({"links__bottleneck__aggregate_ms": 5}, "count as"),
        ({"topology": {"tunnel": "ipp"}}, "did you mean 'ipip'"),
        (
            {
                "topology": {"tunnel": "gre"},
                "flows": [
                    {"name": "a"},
                    {"name": "b", "algorithm": "reno", "last_hop": "bottleneck"},
                ],
            },
            "take all hops",
        ),
        ({"flows__0__reverse": True}, "cannot be reverse"),
        ({"flows__0__first_hop": "wireless"}, "takes all hops"),
        ({"flows__0__last_hop": "wirelss"}, "did you mean 'wireless'"),
        ({"topology": {"hops": ["a", "b"]}}, "those of the dumbbell are bottleneck, wireless"),
        ({"topology": {"kind": "chian"}}, "did you mean 'chain'"),
        ({"topology": {"kind": "chain"}}, "names its hops"),
        ({"topology": {"kind": "chain", "hops": ["a:b"]}}, "letters"),
        ({"topology": {"kind": "chain", "hops": ["reverse_a"]}}, "reverse_ stands for"),
        ({"topology": {"kind": "chain", "hops": ["a"]}}, "unknown hop of the chain"),
        ({"claims__0__flows": "tpc"}, "did you mean 'tcp'"),
        ({"links__wirelss__loss_pct": 1}, "did you mean 'wireless'"),
        ({"run__algorithms": ["a name"]}, "no name of an algorithm"),
        ({"run__algorithms": []}, "no algorithm"),
        ({"run__duration_s": 0}, "duration_s"),
        ({"run__warmup_s": 20}, "warmup_s"),
        ({"run__seeds": 0}, "between 1 and"),
        ({"run__sample_ms": 0}, "sample_ms"),
        ({"run__keep_samples": "some"}, "first-seed"),
        ({"run__sample_ms": 7000}, "multiple of run.sample_ms"),
        ({"run__seeds": math.inf}, "finite"),
        ({"links__wireless__loss_pct": math.nan}, "finite"),
        ({"links__bottleneck__queue_pkts": 1e30}, "whole number"),
        ({"links__bottleneck__delay_ms": 5}, "packets in flight"),
        ({"flows__0__algorithm": "reno"}, "no flow is under test: leave"),
        ({"axes__loss_pct__sets": "run.seeds"}, "cannot be swept"),
        ({"modules": {"jtcp": {"m": math.nan}}}, "finite"),
        ({"modules": {"jtcp": 5}}, "must be a table"),
        ({"topology": {"mtu_bytes": 300}}, "544 to 9000"),
        ({"topology": {"mtu_bytes": 544}}, "it needs its mss_bytes"),
        ({"sctp": {"rwnd_bytes": 1000}}, "1500 to"),
        ({"sctp": {"miss_indications": 2}}, "3 to 255"),
        ({"sctp": {"timestamps": 190}}, "0 to 1"),
        ({"sctp": {"idle_retransmits": 1}}, "did you mean 'idle_retransmit'"),
        ({"sysctl": {"vm.swappiness": 1}}, "of a host's own network"),
        ({"sysctl": {"net": {"ipv4": {"../vm": 1}}}}, "of a host's own network"),
        ({"sysctl": {"net.ipv4.tcp_sack": 0.5}}, "whole number"),
        ({"sysctl": {"net.ipv4.tcp_rmem": "1\n2"}}, "whole number"),
        ({"sysctl": {"net.ipv4.tcp_rmem": ""}}, "whole number"),
        ({"links": 5}, "must be a table"),
        ({"claims": 5}, "[[tables]]"),
        ({"title": 5}, "must be a text"),
        ({"flows__0__count": 101}, "between 0 and 100"),
        ({"flows__0__count": 0}, "no flow is under test: leave"),
        ({"flows__0__name": "a:b"}, "letters"),
        ({"flows__0__rate_mbps": 1}, 'only for transport = "udp"'),
        ({"flows__0__transport": "upd"}, "did you mean 'udp'"),
        ({"flows__0__transport": "udp"}, "no flow has the algorithm under test"),
        ({"claims__0__metric": "classified_random_recall"}, "run.truth = true"),
        ({"claims__0__metric": "jr_zero_pct"}, "run.jitter_ratio = true"),
        ({"flows__0__start_s": 30}, "end by run.duration_s"),
        ({"flows__0__algorithm": "longer_than_the_kernels_names"}, "no name of an algorithm"),
        ({"axes__loss_pct__values": [0, 101]}, "at most 100 %"),
        ({"axes__loss_pct__values": []}, "axes.loss_pct.values"),
        ({"axes__loss_pct__sets": "links.wireless.lss"}, "lss"),
        ({"modules": {"reno": {"x": 1}}}, "built into the kernel"),
        ({"modules": {"jtcp": {"k_percent": "a"}}}, "whole number"),
        ({"claims__0__metric": "goodput"}, "did you mean 'goodput_"),
        ({"claims__0__algorithm": "bound"}, "unknown algorithm"),
        ({"claims__0__where": {"los_pct": 1}}, "did you mean 'loss_pct'"),
    ],
)
def test_nonsense_is_refused(changes, told):
    tree = source(**{k: v for k, v in changes.items() if "__" in k})
    tree |= {k: v for k, v in changes.items() if "__" not in k}
    with pytest.raises(BadInput) as refusal:
        scenario.parse("test", tree)
    assert told in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("run", "links", "told"),
    [
        ({}, {"wireless": {"delay_ms": 20}}, "one of the links needs rate_mbps or trace"),
        ({"packets": True}, {"bottleneck": {"rate_mbps": 2}}, "run.packets needs a flow"),
        ({"truth": True}, {"bottleneck": {"rate_mbps": 2}}, "run.truth needs a flow"),
        ({"jitter_ratio": True}, {"bottleneck": {"rate_mbps": 2}}, "run.jitter_ratio needs a flow"),
    ],
)
def test_udp_alone_is_asked_for_nothing_that_it_has_not(run, links, told):
    flows = [{"name": "u", "transport": "udp", "rate_mbps": 1}]
    run = {"algorithms": ["udp"], "duration_s": 20} | run
    with pytest.raises(BadInput, match=told):
        scenario.parse("test", {"title": "t", "links": links, "flows": flows, "run": run})


def test_choices_have_no_logarithm():
    tree = source() | {"axes": {"path": {"choices": CHOICES, "scale": "log"}}}
    with pytest.raises(BadInput, match="choices are no numbers"):
        scenario.parse("test", tree)


def test_a_claim_that_cannot_fail_is_refused():
    tree = source()
    del tree["claims"][0]["at_least"]
    with pytest.raises(BadInput, match="could not fail"):
        scenario.parse("test", tree)


def test_names_and_values_count_once():
    tree = source(run__algorithms=["reno", "reno"], axes__loss_pct__values=[1, 1])
    loaded = scenario.parse("test", tree)
    assert loaded.run.algorithms == ("reno",) and loaded.axes[0].values == (1.0,)
    tree["flows"] = [{"name": "a", "count": 2}, {"name": "a1"}]
    with pytest.raises(BadInput, match="same name"):
        scenario.parse("test", tree)


@pytest.mark.parametrize("missing", ["title", "links", "flows", "run"])
def test_a_missing_section_is_named(missing):
    tree = source()
    del tree[missing]
    with pytest.raises(BadInput, match=f"'{missing}' is missing"):
        scenario.parse("test", tree)


@pytest.mark.parametrize(
    ("place", "key"),
    [("run", "duration_s"), ("run", "algorithms"), ("flows.0", "name"), ("claims.0", "metric")],
)
def test_a_missing_key_is_named(place, key):
    tree = source()
    section, _, number = place.partition(".")
    del (tree[section][int(number)] if number else tree[section])[key]
    with pytest.raises(BadInput, match=f"^{place}: '{key}' is missing"):
        scenario.parse("test", tree)


def test_unknown_sections_and_files(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="did you mean 'links'"):
        scenario.parse("test", source() | {"link": {}})
    with pytest.raises(BadInput, match="did you mean 'veno-single'"):
        scenario.load("veno-singel")
    with pytest.raises(BadInput, match="no scenario file"):
        scenario.load(str(tmp_path / "none.toml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mix.toml").write_text(GOOD)
    with pytest.raises(BadInput, match=r"^unknown scenario 'mix': did you mean \./mix\.toml\?$"):
        scenario.load("mix")
    broken = tmp_path / "broken.toml"
    broken.write_text("title = \n")
    with pytest.raises(BadInput, match="not valid TOML"):
        scenario.load(str(broken))


def test_set_reaches_axes_and_keys(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(GOOD)
    settings = {"loss_pct": "2,5", "run.duration_s": "60", "links.reverse_wireless.delay_ms": "7"}
    loaded = scenario.load(str(path), settings | {"modules.jtcp.k_percent": "75"})
    assert loaded.axes[0].values == (2.0, 5.0)
    assert loaded.run.duration_s == 60
    assert loaded.links["reverse_wireless"] == Link(delay_ms=7)
    assert loaded.modules == {"jtcp": {"k_percent": 75}}
    for key in ("loss", "run.durtion_s", "links.wireless.loss_pct", "a.b.c"):
        with pytest.raises(BadInput):
            scenario.load(str(path), {key: "1"})


CHOICES = {
    "slow": {"links": {"bottleneck": {"rate_mbps": 1}}},
    "fast": {"topology": {"offloads": True}},
}


def test_a_choice_is_laid_over_the_rest():
    tree = source()
    tree["axes"]["path"] = {"choices": CHOICES}
    loaded = scenario.parse("test", tree)
    assert loaded.axes[1].levels == ["slow", "fast"]
    slow, fast = (points.resolve(loaded, {"loss_pct": 1, "path": p}) for p in ("slow", "fast"))
    assert slow.links["bottleneck"] == Link(rate_mbps=1, queue_pkts=50)
    assert fast.links["bottleneck"] == Link(rate_mbps=2, queue_pkts=50) and fast.topology.offloads
    tree["axes"]["path"]["values"] = ["fast"]
    assert scenario.parse("test", tree).axes[1].levels == ["fast"]
    for wrong, told in (
        ({"values": ["fats"], "choices": CHOICES}, "did you mean 'fast'"),
        ({"choices": {"a": {"run": {"seeds": 1}}}}, "tables of topology"),
        ({"choices": {"a": {"links": {"bottleneck": {"loss_pct": 1}}}}}, "cause of a drop"),
        ({"choices": CHOICES, "sets": "run.seeds"}, "either sets"),
        ({"sets": "run.seeds", "values": [1]}, "cannot be swept"),
        ({"sets": "links.wireless.loss_pct", "values": ["a"]}, "must be a number"),
    ):
        tree["axes"]["path"] = wrong
        with pytest.raises(BadInput, match=told):
            scenario.parse("test", tree)


@pytest.mark.parametrize("text", ["2", "2,10", '["2"]', "all"])
def test_a_choice_may_be_named_by_a_number(text):
    tree = source()
    tree["axes"]["flows"] = {"choices": {name: CHOICES["slow"] for name in ("2", "10", "all")}}
    scenario.override(tree, "flows", text)
    assert scenario.parse("test", tree).axes[1].levels == re.findall(r"\w+", text)


def test_a_choice_changes_flows_by_their_place():
    tree = source()
    tree["flows"].append({"name": "rival", "algorithm": "cubic"})
    mixes = {
        "2 beside 1": {"flows": {"0": {"count": 2}}},
        "all": {"flows": {"1": {"count": 0, "algorithm": "bbr"}}},
    }
    tree["axes"]["mix"] = {"choices": mixes}
    loaded = scenario.parse("test", tree)
    point = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "")
    two, alone = (p.spec["flows"] for p in point if p.axes["loss_pct"] == 0)
    assert [(f["name"], f["kind"], f["algorithm"]) for f in two] == [
        ("tcp1", "tcp", "jtcp"), ("tcp2", "tcp", "jtcp"), ("rival", "rival", "cubic"),
    ]  # fmt: skip
    assert [f["under_test"] for f in two] == [True, True, False]
    assert [f["name"] for f in alone] == ["tcp"]
    for wrong, told in (
        ({"2": {"count": 1}}, "place in flows"),
        ({"0": {"count": 0}}, "no flow is under test: leave"),
        ({"1": {"algorthm": "bbr"}}, "did you mean 'algorithm'"),
    ):
        tree["axes"]["mix"] = {"choices": {"a": {"flows": wrong}}}
        with pytest.raises(BadInput, match=told):
            scenario.parse("test", tree)


def expand(**changes):
    loaded = scenario.parse("test", source(**changes))
    return points.expand(loaded, loaded.run.algorithms, [1, 2], lambda names, *_: "-".join(names))


def test_a_queue_may_be_a_share_of_the_path_s_bdp():
    """2 Mb/s and 45 ms there, 55 ms back: 25000 bytes, 16.5 frames; the sweep resizes it."""
    tree = source(
        links__bottleneck={"rate_mbps": 2, "queue_bdp": 1.0},
        links__reverse_wireless={"delay_ms": 55},
    )
    tree["axes"] = {"rtt": {"sets": "links.reverse_wireless.delay_ms", "values": [55, 355]}}
    loaded = scenario.parse("t", tree)
    assert loaded.links["bottleneck"].queue_pkts == round(25_000 / 1514) == 17
    assert points.resolve(loaded, {"rtt": 355.0}).links["bottleneck"].queue_pkts == 66
    tree["links"]["bottleneck"]["queue_bdp"] = 0.001
    assert scenario.parse("t", tree).links["bottleneck"].queue_pkts == 1


def test_points_are_paired_and_named_by_content():
    sweep = expand()
    assert len(sweep) == 2 * 2 * 2 and len({point.id for point in sweep}) == 8
    assert [point.id for point in sweep] == [point.id for point in expand()]
    by = {(p.axes["loss_pct"], p.algorithm, p.seed): p for p in sweep}
    for seed in (1, 2):  # every algorithm meets the same losses
        assert by[1.0, "jtcp", seed].spec["links"] == by[1.0, "reno", seed].spec["links"]
    seeds = {link["seed"] for p in sweep for link in p.spec["links"].values()}
    assert len(seeds) == 2 * 4  # each hop and each seed its own
    changed = expand(run__duration_s=21)
    assert not {point.id for point in changed} & {point.id for point in sweep}


def test_flows_get_pairs_of_their_own():
    tree = source(flows__0__count=3)
    tree["flows"].append({"name": "x", "algorithm": "cubic", "start_s": 5, "stop_s": 15})
    loaded = scenario.parse("test", tree)
    point = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "")[0]
    flows = point.spec["flows"]
    assert [f["name"] for f in flows] == ["tcp1", "tcp2", "tcp3", "x"]
    assert [f["pair"] for f in flows] == [1, 2, 3, 4]
    assert point.spec["topology"]["spans"] == [(0, 1)] * 4
    assert [f["algorithm"] for f in flows] == ["jtcp"] * 3 + ["cubic"]
    for flow, (start_s, stop_s) in zip(flows, [(0, 20)] * 3 + [(5, 15)], strict=True):
        assert 0 <= flow["start_s"] - start_s <= seeds.START_SPREAD_S
        assert flow["start_s"] + flow["duration_s"] == pytest.approx(stop_s)
    assert len({flow["start_s"] % 1 for flow in flows}) == 4  # not in step


def chain(**flow):
    """Return a scenario over hops a, b and c with one more flow, of reno."""
    tree = source()
    tree.pop("axes")
    tree["topology"] = {"kind": "chain", "hops": ["a", "b", "c"]}
    tree["links"] = {
        "a": {"rate_mbps": 15, "queue_pkts": 50},
        "b": {"rate_mbps": 2, "queue_pkts": 50},
        "c": {"delay_ms": 5, "loss_pct": 10},
    }
    tree["flows"].append({"name": "x", "algorithm": "reno"} | flow)
    return tree


@pytest.mark.parametrize(
    ("flow", "span", "way", "cross"),
    [
        ({}, (0, 2), ("a", "b", "c"), False),
        ({"first_hop": "a", "last_hop": "c"}, (0, 2), ("a", "b", "c"), False),
        ({"last_hop": "a"}, (0, 0), ("a",), True),
        ({"first_hop": "b"}, (1, 2), ("b", "c"), True),
    ],
)
def test_a_flow_takes_its_part_of_a_chain(flow, span, way, cross):
    loaded = scenario.parse("test", chain(**flow))
    assert loaded.flows[1].way(loaded.topology) == way
    spec = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "")[0].spec
    assert spec["topology"]["spans"] == [(0, 2), span]
    assert [f["cross"] for f in spec["flows"]] == [False, cross]
    assert list(spec["links"]) == ["a", "b", "c", "reverse_c", "reverse_b", "reverse_a"]
    assert points.bound_mbps(loaded) == pytest.approx(2 * 0.9 * 1448 / 1514)


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        ({"first_hop": "c", "last_hop": "a"}, "c comes after a"),
        ({"first_hop": "c"}, "none of the links c has rate_mbps"),
        ({"reverse": True, "last_hop": "a"}, "none of the links reverse_a has rate_mbps"),
        ({"first_hop": "d"}, "unknown hop in first_hop of flow x"),
    ],
)
def test_a_way_that_is_none_is_refused(flow, told):
    with pytest.raises(BadInput, match=told):
        scenario.parse("test", chain(**flow))


def test_a_hop_has_one_name():
    tree = chain()
    tree["topology"]["hops"] = ["a", "b", "c", "b"]
    assert scenario.parse("test", tree).topology.hops == ("a", "b", "c")


def test_udp_flows_have_a_rate_and_no_algorithm():
    tree = source(run__truth=True)
    tree["flows"].append({"name": "u", "transport": "udp", "rate_mbps": 0.5, "count": 2})
    tree["axes"]["udp"] = {"sets": "flows.1.rate_mbps", "values": [0, 0.5]}
    loaded = scenario.parse("test", tree)
    silent, loud = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "-".join(names))[:2]
    assert silent.spec["udp"] == [] and len(silent.spec["topology"]["spans"]) == 1
    assert [f["name"] for f in loud.spec["flows"]] == ["tcp"] and loud.build == "jtcp"
    udp = loud.spec["udp"]
    assert [(f["name"], f["pair"], f["rate_mbps"]) for f in udp] == [("u1", 2, 0.5), ("u2", 3, 0.5)]
    assert len(loud.spec["topology"]["spans"]) == 3 and loud.bound_mbps == silent.bound_mbps
    assert loud.spec["taps"] == ["bottleneck", "wireless"]
    for wrong, told in (({"algorithm": "reno"}, "no algorithm"), ({"rate_mbps": -1}, "between 0")):
        tree["flows"][1] |= wrong
        with pytest.raises(BadInput, match=told):
            scenario.parse("test", tree)
        tree["flows"][1].pop("algorithm", None)


def test_flows_one_after_the_other_share_a_pair():
    tree = source(flows__0__count=3, flows__0__every_s=4, flows__0__bytes=1000)
    tree["flows"].append({"name": "x", "algorithm": "cubic"})
    loaded = scenario.parse("test", tree)
    point = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "")[0]
    flows = point.spec["flows"]
    assert [f["pair"] for f in flows] == [1, 1, 1, 2]
    assert len(point.spec["topology"]["spans"]) == 2
    assert [round(f["start_s"] - 0.05) for f in flows] == [0, 4, 8, 0]
    tree["flows"][0]["count"] = 6
    with pytest.raises(BadInput, match="a second at least"):
        scenario.parse("test", tree)


@pytest.mark.parametrize(
    ("own", "rival", "tunnel", "share"),
    [
        (0, 536, "", 1448 / 1514),  # the larger of both, which is the default
        (536, 536, "", 524 / 590),
        (0, 0, "vxlan", 1398 / 1514),
        (536, 1000, "gre", 988 / (1054 + 24)),
    ],
)
def test_bound_and_residual_go_by_the_largest_segments(own, rival, tunnel, share):
    flows = [{"name": "a", "mss_bytes": own}, {"name": "b", "mss_bytes": rival}]
    tree = source() | {"flows": flows, "topology": {"tunnel": tunnel}}
    point = points.expand(scenario.parse("test", tree), ("jtcp",), [1], lambda *_: "")[0]
    assert point.axes == {"loss_pct": 0}
    assert point.bound_mbps == pytest.approx(2 * share)
    assert carries.residual_mbps(point.spec, "tcp", []) == pytest.approx(2 * share)


def test_with_events_nothing_is_held_against_the_residual():
    event = {"at_s": 15, "link": "wireless", "loss_pct": 5}
    claim = {"id": "c", "text": "c", "metric": "goodput_mbps", "algorithm": "jtcp",
             "against": "residual", "at_least": 1}  # fmt: skip
    claimed = source() | {"claims": [claim]}
    scenario.parse("test", claimed)
    late = {"when": {"choices": {"never": {}, "late": {"events": [event]}}}}
    for tree in (claimed | {"events": [event]}, claimed | {"axes": late}):
        with pytest.raises(BadInput, match="no one residual"):
            scenario.parse("test", tree)


def test_events_change_rates_and_the_bound():
    tree = source(run__warmup_s=10)
    tree.pop("axes")
    events = [{"at_s": 15, "link": "bottleneck", "rate_mbps": 4},
              {"at_s": 12.5, "link": "bottleneck", "rate_mbps": 1}]  # fmt: skip
    loaded = scenario.parse("test", tree | {"events": events})
    # of the 10 s after the warm-up: 2.5 s at 2, 2.5 s at 1 and 5 s at 4 Mb/s
    assert loaded.run.duration_s == 20
    assert points.bound_mbps(loaded) == pytest.approx(2.75 * 0.99 * 1448 / 1514)
    point = points.expand(loaded, ("jtcp",), [1], lambda names, *_: "")[0]
    assert [event["at_s"] for event in point.spec["events"]] == [12.5, 15]
    lossy = {"at_s": 15, "link": "wireless", "loss_pct": 51}
    loaded = scenario.parse("test", tree | {"events": [lossy]})
    assert points.bound_mbps(loaded) == pytest.approx((0.99 + 0.49) * 1448 / 1514)
    for wrong, told in (
        ({"link": "bottlneck"}, "did you mean 'bottleneck'"),
        ({"loss_pct": 1}, "queue_pkts and a loss on one hop"),
        ({"link": "wireless", "rate_mbps": None, "loss_pct": 101}, "at most 100"),
        ({"link": "reverse_wireless"}, "link with a rate_mbps"),
        ({"rate_mbps": 0}, "above 0"),
        ({"at_s": 20}, "within the run"),
    ):
        with pytest.raises(BadInput, match=told):
            event = {k: v for k, v in (events[0] | wrong).items() if v is not None}
            scenario.parse("test", tree | {"events": [event]})
    with pytest.raises(BadInput, match="give rate_mbps, loss_pct, delay_ms or cut"):
        scenario.parse("test", tree | {"events": [{"at_s": 15, "link": "wireless"}]})


def test_second_homes_have_hops_of_their_own():
    tree = source() | {"topology": {"homes": 2}}
    tree.pop("axes")
    tree["links"]["reverse_second_wireless"] = {"delay_ms": 7}
    loaded = scenario.parse("test", tree)
    (point,) = points.expand(loaded, ("rfc9260",), [1], lambda names, *_: "")
    assert list(point.spec["links"]) == [
        "bottleneck", "wireless", "reverse_wireless", "reverse_bottleneck",
        "second_bottleneck", "second_wireless", "reverse_second_wireless",
        "reverse_second_bottleneck",
    ]  # fmt: skip
    assert point.spec["links"]["reverse_second_wireless"]["delay_ms"] == 7
    assert point.bound_mbps == pytest.approx(2 * 0.99 * 1440 / 1502)
    with pytest.raises(BadInput, match=r"there are .* reverse_second_wireless"):
        scenario.parse("test", tree | {"links": tree["links"] | {"second_reverse_wireless": {}}})
    for homes in (0, 3):
        with pytest.raises(BadInput, match="homes"):
            scenario.parse("test", tree | {"topology": {"homes": homes}})


@pytest.mark.parametrize("algorithm", ["reno", "rfc9260", "sctp"])
def test_requests_are_of_tcp_and_sctp(algorithm):
    tree = source()
    tree.pop("axes")
    tree["flows"][0] |= {"bytes": 1000, "repeats": 3, "pause_s": 1}
    loaded = scenario.parse("test", tree)
    (point,) = points.expand(loaded, (algorithm,), [1], lambda *_: "")
    assert (point.spec["flows"][0]["repeats"], point.spec["flows"][0]["pause_s"]) == (3, 1)
    with pytest.raises(BadInput, match=r"requests .* not for tfrc"):
        points.expand(loaded, ("tfrc",), [1], lambda *_: "")


def test_a_sysctl_is_of_the_point_and_can_be_swept_chosen_and_set():
    tree = source() | {"sysctl": {"net": {"ipv4": {"tcp_sack": 0, "tcp_rmem": "4096 8192 8192"}}}}
    loaded = scenario.parse("test", tree)
    assert loaded.sysctl == {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_rmem": "4096 8192 8192"}
    tree = source()
    scenario.override(tree, "sysctl.net.ipv4.tcp_sack", "0")
    tree["axes"] = {
        "stamps": {"sets": "sysctl.net.ipv4.tcp_timestamps", "values": [0, 1]},
        "ecn": {"choices": {"no": {"sysctl": {"net": {"ipv4": {"tcp_ecn": 0}}}}, "as it is": {}}},
    }
    tree["claims"] = []
    batch = points.expand(scenario.parse("test", tree), ("reno",), [1], lambda *_: "")
    always, ecn = {"net.ipv4.tcp_sack": "0"}, {"net.ipv4.tcp_ecn": "0"}
    assert [point.spec["sysctl"] for point in batch] == [
        always | {"net.ipv4.tcp_timestamps": str(on)} | no for on in (0, 1) for no in (ecn, {})
    ]
    assert "sysctl" not in points.expand(
        scenario.parse("test", source()), ("reno",), [1], lambda *_: ""
    )[0].spec  # fmt: skip


def test_the_unpatched_sctp_has_a_window_and_nothing_else():
    tree = source() | {"sctp": {"rwnd_bytes": 6000}}
    tree.pop("axes")
    (point,) = points.expand(scenario.parse("test", tree), ("sctp",), [1], lambda *_: "")
    assert point.spec["sctp_settings"]["rwnd_bytes"] == 6000
    patched = scenario.parse("test", tree | {"sctp": {"idle_retransmit": 1}})
    points.expand(patched, ("rfc9260",), [1], lambda *_: "")
    with pytest.raises(BadInput, match="only rwnd_bytes"):
        points.expand(patched, ("sctp",), [1], lambda *_: "")


@pytest.mark.parametrize(
    ("changes", "bound_mbps"),
    [
        ({}, 2 * 0.99),
        ({"links__wireless__rate_mbps": 1}, 1 * 0.99),
        ({"links__wireless__loss_pct": 100}, 0),
        ({"links__reverse_wireless__rate_mbps": 0.1}, 2 * 0.99),
    ],
)
def test_the_bound_is_what_the_forward_path_can_carry(changes, bound_mbps):
    tree = copy.deepcopy(source(**changes))
    tree.pop("axes")
    loaded = scenario.parse("test", tree)
    assert points.bound_mbps(loaded) == pytest.approx(bound_mbps * 1448 / 1514)
