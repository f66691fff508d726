# SPDX-License-Identifier: GPL-2.0-only
"""veno-lab diff: it finds what is worse, and says nothing where nothing is."""

import json
import random
import subprocess
import tomllib
from pathlib import Path

import pytest
from conftest import TESTBED

from lab.ask import scenario
from lab.common.errors import BadInput
from lab.judge import diff, sides
from lab.judge.ttest import p_below, upper_tail

PLACES = [{"loss_pct": loss, "path": path} for loss in (0.1, 1, 5, 10) for path in ("a", "b")]
ALGORITHMS = ("changed", "also", "third")


def results(chance: random.Random, factors: dict[str, float], noise: float, seeds: int = 10):
    """Make up a run: goodputs with NOISE (a standard deviation, as a share) of each point's own."""
    return [
        {
            "algorithm": name,
            "axes": axes,
            "seed": seed,
            "goodput_mbps": 2 * factors.get(name, 1.0) * (1 + chance.gauss(0, noise)),
        }
        for name in ALGORITHMS
        for axes in PLACES
        for seed in range(1, seeds + 1)
    ]


def regressions(before, after, bound: float = 0.01) -> list[diff.Change]:
    changes = diff.compare(before, after, ["goodput_mbps"])
    return [change for change in changes if change.is_regression(bound)]


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.1])
def test_it_is_silent_where_nothing_changed(noise):
    """Twenty of twenty, and 300 tries: at most 1 % of them may alarm, with room for chance."""
    chance = random.Random(1)
    alarms = [
        bool(regressions(results(chance, {}, noise), results(chance, {}, noise)))
        for _ in range(300)
    ]
    assert not any(alarms[:20]) and sum(alarms) <= 8


@pytest.mark.parametrize("noise", [0.005, 0.02])
def test_it_finds_3_percent_of_goodput_with_10_seeds(noise):
    """One algorithm of three lost 3 % everywhere; noise is that of each of two points, in
    the lab about 0.005. The others alarm as seldom as where nothing changed."""
    chance = random.Random(2)
    found, alarms = [], 0
    for _ in range(100):
        bad = regressions(results(chance, {}, noise), results(chance, {"changed": 0.97}, noise))
        found.append(any(change.algorithm == "changed" for change in bad))
        alarms += any(change.algorithm != "changed" for change in bad)
    assert sum(found) >= 98 and alarms <= 4


def test_a_change_within_the_bound_is_told_and_is_no_regression():
    chance = random.Random(3)
    before, after = (results(chance, {"changed": f}, 0.005) for f in (1.0, 0.97))
    assert regressions(before, after, bound=0.01) and not regressions(before, after, bound=0.05)


def test_one_place_alone_is_found_and_named():
    chance = random.Random(4)
    before, after = (results(chance, {}, 0.005) for _ in range(2))
    for result in after:
        if result["algorithm"] == "also" and result["axes"] == PLACES[5]:
            result["goodput_mbps"] *= 0.8
    bad = regressions(before, after)
    assert ("also", "loss_pct 5, b") in [(change.algorithm, change.place) for change in bad]


def test_more_is_worse_of_some_figures_and_a_figure_may_be_zero():
    def run(values):
        return [
            {"algorithm": "x", "axes": {}, "seed": seed, "timeouts": value, "jain": 1.0}
            for seed, value in enumerate(values, 1)
        ]

    before, after = run([0] * 9 + [4]), run([3] * 9 + [9])
    worse, same = diff.compare(before, after, ["timeouts", "jain"])
    assert worse.is_regression(0.01) and worse.estimate.median == -1 and same.same
    better = diff.compare(after, before, ["timeouts"])[0]
    assert not better.is_regression(0.0) and better.estimate.median == 1


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(6.314, 1, 0.05), (2.920, 2, 0.05), (2.821, 9, 0.01), (4.297, 9, 0.001), (1.725, 20, 0.05)],
)
def test_students_t_is_that_of_the_tables(t, freedom, p):
    assert upper_tail(t, freedom) == pytest.approx(p, rel=1e-3)
    assert upper_tail(-t, freedom) == pytest.approx(1 - p, rel=1e-4)
    assert upper_tail(0, freedom) == pytest.approx(0.5)


def test_what_is_alike_is_no_certainty():
    assert p_below([0.0, 0.0]) == 1.0 and p_below([-1.0]) == 1.0
    assert p_below([-1.0] * 10) == 2**-10 and p_below([1.0] * 10) == 1.0


def test_too_few_seeds_are_refused():
    runs = [results(random.Random(i), {}, 0.01, seeds=4) for i in (1, 2)]
    with pytest.raises(BadInput, match="4 seeds in common"):
        diff.compare(*runs, ["goodput_mbps"])


def write_run(folder: Path, factor: float) -> Path:
    folder.mkdir()
    lines = results(random.Random(folder.name), {"changed": factor}, 0.005)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "results.jsonl").write_text(text)
    meta = {"kernel_release": "6.12", "git_commit": "0123456789abcdef"}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def command(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [TESTBED / "veno-lab", "diff", *map(str, arguments)], capture_output=True, text=True
    )


def test_the_command_ends_with_1_for_a_regression_alone(tmp_path):
    good, as_good, bad = (
        write_run(tmp_path / name, factor)
        for name, factor in (("good", 1.0), ("as-good", 1.0), ("bad", 0.97))
    )
    silent = command(good, as_good)
    assert silent.returncode == 0 and "No regression beyond 1.0% is certain" in silent.stdout
    found = command(good, bad)
    assert found.returncode == 1, found.stderr
    row = next(line for line in found.stdout.splitlines() if "REGRESSION" in line)
    assert row.startswith("changed") and "all places" in row and "-3." in row
    assert command(good, bad, "--bound", "5%").returncode == 0
    assert command(bad, good).returncode == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("no-such-thing", "."), "no-such-thing is none of these"),
        (("HEAD", "HEAD"), "say what to run with --scenario"),
        (("HEAD", "HEAD", "--bound", "x"), "--bound x: a share, as 3% or 0.03"),
        (("HEAD", "HEAD", "--metrics", "godput_mbps"), "did you mean 'goodput_mbps'"),
        (("HEAD", "./no_such.c"), "no module ./no_such.c"),
    ],
)
def test_what_is_wrong_is_one_line(wrong, told):
    done = command(*wrong)
    assert done.returncode == 2 and told in done.stderr and len(done.stderr.splitlines()) == 1
    assert command(*wrong, "--bisect").returncode == 125


def test_a_run_is_repeated_from_what_it_says_of_itself():
    """A scenario written as TOML again is the same scenario, whatever is in it."""
    for path in scenario.list_scenarios():
        source = scenario.load(path.stem).source
        assert tomllib.loads(sides.as_toml(source)) == source
    odd = {"a b": 'x"\\\n\x7fé', "t": {"n": [1, 2.5, True, {"k": "v"}], "e": {}}}
    assert tomllib.loads(sides.as_toml(odd)) == odd


def test_a_run_of_too_few_seeds_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    run = write_run(tmp_path / "mine", 1.0)
    meta = {"scenario": "demo", "source": {}, "algorithms": ["reno"], "seeds": [1, 2]}
    (run / "meta.json").write_text(json.dumps(meta))
    monkeypatch.setattr(sides, "_run", lambda *_: pytest.fail("it was measured"))
    wanted = sides.Wanted("", [], "", 10, 1)
    with pytest.raises(BadInput) as refused:
        sides.measure(str(run), "HEAD", wanted)
    assert str(refused.value) == (
        f"{run} has 2 seeds, 5 are needed: run it again with --seeds 6 --out {run} --resume"
    )
    with pytest.raises(BadInput, match="--seeds 4: 5 are needed"):
        sides.measure("HEAD", "HEAD", sides.Wanted("demo", [], "", 4, 1))


def test_runs_without_a_common_point_are_refused():
    with pytest.raises(BadInput, match="no point in common"):
        diff.compare(results(random.Random(1), {}, 0.01), [], ["goodput_mbps"])
