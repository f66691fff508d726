# SPDX-License-Identifier: GPL-2.0-only
"""Trace files are read as they are meant, wrong ones are told by their line, models are a pure
function of their seed, and links carry what their traces let them."""

import json

import numpy as np
import pytest
from conftest import run_command

from lab.ask import linkmodels, linktraces, points, scenario
from lab.ask.links import Link
from lab.common.errors import BadInput

PATH = """
title = "traces"
[topology]
offloads = false
[links.bottleneck]
queue_pkts = 250
trace = "lte-car"
[links.wireless]
delay_ms = 20
[links.reverse_wireless]
delay_ms = 20
[[flows]]
name = "tcp"
[run]
algorithms = ["cubic"]
duration_s = 40
warmup_s = 10
seeds = 1
"""
# model -> packets that are a deep queue there
CARRIED = {
    "lte-walking": 250,
    "lte-car": 250,
    "lte-uplink": 250,
    "starlink": 1000,
    "wifi-contended": 1000,
}


def write(folder, text: str):
    path = folder / "trace.txt"
    path.write_text(text)
    return path


def test_mahimahi_is_opportunities_of_1500_bytes(tmp_path):
    trace = linktraces.read(write(tmp_path, "0\n0\n3\n10\n10\n10\n"), "rate")
    assert trace.kind == "opportunities" and trace.period_s == 0.01
    assert trace.ns.tolist() == [0, 3_000_000, 7_000_000]
    assert trace.values.tolist() == [3000, 1500, 4500]
    assert trace.mean() == pytest.approx(6 * 1500 * 8e-6 / 0.01)
    carried = trace.bytes_by(np.array([0, 0.0029, 0.003, 0.00999, 0.0101, 0.0131]))
    assert carried.tolist() == [3000, 3000, 4500, 4500, 12000, 13500]
    assert trace.time_of(np.array([1, 3000, 3001, 4501, 9000, 9001])) == pytest.approx(
        [0, 0, 0.003, 0.01, 0.01, 0.01]
    )


def test_csv_is_a_rate_from_its_time_on(tmp_path):
    text = "seconds, Mb/s\n# somewhere\n0, 8\n0.5, 0\n\n2.5\t16\n"
    trace = linktraces.read(write(tmp_path, text), "rate")
    assert trace.kind == "rate" and trace.period_s == 4.5  # the last lasts as the one before
    assert trace.values.tolist() == [10**6, 0, 2 * 10**6]
    assert trace.mean() == pytest.approx((4 + 32) / 4.5)
    assert trace.mean(0.25, 4.5 + 0.25) == pytest.approx(8)
    assert trace.bytes_by(np.array([0.25, 1, 3, 4.75])) == pytest.approx([25e4, 5e5, 1.5e6, 4.75e6])
    assert trace.time_of(np.array([25e4, 5e5, 1.5e6, 4.75e6])) == pytest.approx(
        [0.25, 0.5, 3, 4.75]
    )


def test_delays_and_losses_are_csv(tmp_path):
    delay = linktraces.read(write(tmp_path, "0 10\n1 30\n"), "delay")
    assert delay.values.tolist() == [10**7, 3 * 10**7] and delay.mean() == pytest.approx(20)
    loss = linktraces.read(write(tmp_path, "0 0\n1 100\n"), "loss")
    assert loss.values.tolist() == [0, 2**32] and loss.mean() == pytest.approx(50)


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("rate", "", "it is empty"),
        ("rate", "1\n2\nx\n", "line 3: 'x': one whole number"),
        ("rate", "1\n2.5\n", "line 2: '2.5'"),
        ("rate", "1\n-2\n", "line 2: '-2'"),
        ("rate", "5\n3\n", "line 2: 3 ms comes after 5 ms"),
        ("rate", "0\n0\n", "line 2: a trace ends after 0 ms"),
        ("rate", "1\n2 3\n", "line 2: '2 3': one whole number"),
        ("rate", "0 1\n1\n", "line 2: '1': seconds and Mb/s"),
        ("rate", "0 1\n1 2 3\n", "line 2: '1 2 3': seconds and Mb/s"),
        ("rate", "0 1\n1 nan\n", "line 2: '1 nan'"),
        ("rate", "1\n1700000000000\n", "line 2: 1700000000000 ms: times count from where"),
        ("rate", "0 1\n1 -2\n", "line 2: -2 Mb/s: 0 to 100000"),
        ("rate", "0 1\n0 2\n", "line 2: 0 s does not come after 0 s"),
        ("rate", "0 0\n1 0\n", "nothing ever passes"),
        ("rate", "time rate\n", "no line of seconds and Mb/s"),
        ("delay", "0 10\n1 70000\n", "line 2: 70000 ms: 0 to 60000"),
        ("loss", "0 10\n1 101\n", "line 2: 101 %: 0 to 100"),
        ("delay", "3\n4\n", "line 1: '3': seconds and ms"),
    ],
)
def test_a_broken_file_is_told_by_its_line(tmp_path, kind, text, complaint):
    with pytest.raises(BadInput) as error:
        linktraces.read(write(tmp_path, text), kind)
    assert complaint in str(error.value) and "trace.txt" in str(error.value)


def test_a_trace_that_is_not_there_is_one_line(tmp_path):
    path = tmp_path / "mine.toml"
    for name, complaint in (("lte-cra", "did you mean 'lte-car'"), ("no.csv", "No such file")):
        path.write_text(PATH.replace("lte-car", name))
        with pytest.raises(BadInput) as error:
            scenario.load(str(path))
        assert complaint in str(error.value)
    path.write_text(PATH.replace("lte-car", "b.csv"))
    (tmp_path / "b.csv").write_text("0 1\n0 2\n")  # beside the scenario, wherever we are
    with pytest.raises(BadInput, match=r"b\.csv, line 2"):
        scenario.load(str(path))
    done = run_command(str(path), "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"rate_mbps": 3}, "takes the place of rate_mbps"),
        ({"aqm": "codel"}, "has no aqm"),
        ({"loss_trace": "starlink"}, "queue_pkts and a loss on one hop"),
        ({"delay_trace": "lte-car"}, "has no delay"),
    ],
)
def test_what_does_not_go_with_a_trace(tmp_path, changes, complaint):
    text = PATH.replace('trace = "lte-car"', 'trace = "lte-car"\n' + "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in changes.items()))  # fmt: skip
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(BadInput, match=complaint):
        scenario.load(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize("name", linkmodels.MODELS)
def test_a_model_is_a_function_of_its_seed(name):
    first, again, other = (linkmodels.make(name, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert not np.array_equal(first["rate"], other["rate"])
    assert first["seconds"].sum() == pytest.approx(linkmodels.LENGTH_S, rel=1e-3)
    assert min(of.min() for of in first.values()) >= 0


def test_a_spreadsheet_s_file_is_read(tmp_path):
    read = linktraces.read(write(tmp_path, "\ufeff0;5\n1;7\n"), "rate")
    assert read.mean() == pytest.approx(6)


def test_an_outage_as_long_as_the_run_has_a_bound_of_nothing(tmp_path):
    (tmp_path / "outage").write_text("\n".join(map(str, [*range(1, 1000), 200_000])))
    (tmp_path / "mine.toml").write_text(PATH.replace("lte-car", "outage"))
    loaded = scenario.load(str(tmp_path / "mine.toml"))
    assert 0 in [round(points.bound_mbps(loaded, seed=seed), 3) for seed in range(1, 10)]


def test_seeds_give_other_offsets_and_a_bound_of_that_time(tmp_path):
    """Two rates, 10 s each: a run of 10 s after the warm-up meets what its seed says."""
    (tmp_path / "steps.csv").write_text("0 1\n10 3\n")
    text = PATH.replace("lte-car", "steps.csv").replace("duration_s = 40", "duration_s = 20")
    (tmp_path / "mine.toml").write_text(text)
    loaded = scenario.load(str(tmp_path / "mine.toml"))
    bounds = {points.bound_mbps(loaded, seed=seed) * 1514 / 1448 for seed in range(1, 30)}
    assert len(bounds) > 20 and 1 < min(bounds) < 1.5 and 2.5 < max(bounds) < 3
    link = Link(trace=str(tmp_path / "steps.csv"))
    for seed in (1, 2):
        start_s = linktraces.offset_s(seed) % 20
        at_s = (np.arange(10, 20, 0.001) + start_s) % 20
        wanted = np.where(at_s < 10, 1, 3).mean()
        assert linktraces.at_point(link, seed, 10, 20).rate_mbps == pytest.approx(wanted, abs=0.01)


def test_a_backlog_drains_by_the_trace(tmp_path):
    """1 Mb/s for 10 s, nothing for 10 s: 250 kB at 9 s wait 1 s, 10 s of nothing and 1 s."""
    (tmp_path / "stop.csv").write_text("0 1\n10 0\n")
    trace = linktraces.of(str(tmp_path / "stop.csv"), "rate", 1)
    begin_s = -linktraces.offset_s(1) % 20  # of a loop, in the point's time
    waits = linktraces.drain_ms(
        trace, 1, np.array([begin_s + 9, begin_s + 9]), np.array([250e3, 0])
    )
    assert waits == pytest.approx([12_000, 0], abs=0.01)


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """Results of cubic over constant traces and models: name of the link -> result."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "constant.mahi").write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    (folder / "constant.csv").write_text("0 12\n")
    choices = {"rate": 'rate_mbps = 12, trace = ""', "mahimahi": 'trace = "constant.mahi"'}
    choices |= {"csv": 'trace = "constant.csv"'}
    choices |= {model: f'trace = "{model}", queue_pkts = {pkts}' for model, pkts in CARRIED.items()}
    text = PATH + "".join(
        f'[axes.link.choices."{name}"]\nlinks.bottleneck = {{ {keys} }}\n'
        for name, keys in choices.items()
    )
    (folder / "mine.toml").write_text(text)
    results = []
    for out in ("one", "two"):
        more = [] if out == "one" else ["--set", "link=lte-car,starlink"]
        done = run_command(str(folder / "mine.toml"), *more, "--out", str(folder / out))
        assert done.returncode == 0, done.stdout + done.stderr
        lines = (folder / out / "results.jsonl").read_text().splitlines()
        results.append({json.loads(line)["axes"]["link"]: line for line in lines})
    return results


def test_a_constant_trace_is_a_constant_rate(carried):
    """As CSV to the byte; as opportunities, once a ms, within 0.1 % of the same bytes."""
    rate, csv, mahimahi = (json.loads(carried[0][n]) for n in ("rate", "csv", "mahimahi"))
    for result in (rate, csv):
        for key in ("point", "axes", "params"):
            del result[key]
    assert rate == csv
    assert mahimahi["bound_mbps"] == pytest.approx(rate["bound_mbps"], rel=1e-6)
    assert mahimahi["goodput_mbps"] == pytest.approx(rate["goodput_mbps"], rel=1e-3)


@pytest.mark.parametrize("model", CARRIED)
def test_cubic_carries_a_model_on_a_deep_queue(carried, model):
    result = json.loads(carried[0][model])
    assert 0.95 <= result["goodput_mbps"] / result["bound_mbps"] <= 1.05


def test_the_same_seed_gives_the_same_bytes(carried):
    assert carried[1] and all(carried[0][name] == line for name, line in carried[1].items())
