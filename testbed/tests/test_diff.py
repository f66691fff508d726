# SPDX-License-Identifier: GPL-2.0-only
"""veno-lab diff: it finds what is worse, and says nothing where nothing is."""

import json
import os
import random
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer
from conftest import TESTBED

from lab.ask import scenario
from lab.ask.figures import LESS, METRICS, NEITHER
from lab.common.errors import BadInput, LabError
from lab.judge import diff, sides
from lab.judge.ttest import p_below, upper_tail
from lab.run import runs
from lab.show import facts

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


def write_run(folder: Path, factor: float, **more) -> Path:
    lines = results(random.Random(folder.name), {"changed": factor}, 0.005)
    return write_results(folder, lines, git_commit="0123456789abcdef", **more)


def write_results(folder: Path, lines: list[dict], **more) -> Path:
    folder.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "results.jsonl").write_text(text)
    meta = {"kernel_release": "6.12", "points": len(lines)} | more
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
        (("HEAD", "HEAD", "--metrics", "loss_random"), "neither more nor less of it is worse"),
        (("HEAD", "HEAD", "--metrics", ","), "--metrics ',': it names none"),
    ],
)
def test_what_is_wrong_is_one_line(wrong, told):
    done = command(*wrong)
    assert done.returncode == 2 and told in done.stderr and len(done.stderr.splitlines()) == 1
    assert command(*wrong, "--bisect").returncode == 125


@pytest.mark.parametrize(
    "typed", [("--boundd", "3%"), ("--seeds", "ten"), ("--scenario",), ("more", "than", "two")]
)
def test_what_was_typed_wrong_convicts_no_commit(typed):
    """`git bisect run` takes every status but 0 and 125 for a bad commit."""
    assert command("HEAD", "HEAD", *typed).returncode == 2
    assert command("HEAD", "HEAD", *typed, "--bisect").returncode == 125


def test_what_cannot_be_set_up_convicts_no_commit(tmp_path):
    (tmp_path / "file").touch()
    command = [TESTBED / "veno-lab", "diff", "HEAD", "HEAD", "--bisect"]
    environment = os.environ | {"LAB_CACHE": str(tmp_path / "file")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 125 and "file" in done.stderr


def test_a_run_is_repeated_from_what_it_says_of_itself():
    """A scenario written as TOML again is the same scenario, whatever is in it."""
    for path in scenario.list_scenarios():
        source = scenario.load(path.stem).source
        assert tomllib.loads(sides.as_toml(source)) == source
    odd = {"a b": 'x"\\\n\x7fé', "t": {"n": [1, 2.5, True, {"k": "v"}], "e": {}}}
    assert tomllib.loads(sides.as_toml(odd)) == odd


def test_an_older_run_may_have_asked_for_bursts_of_nothing(tmp_path, monkeypatch):
    """It is a reference still: what did nothing is not asked for again, and is no difference."""
    source = scenario.load("veno-single").source
    del source["axes"], source["claims"]
    hop = next(hop for hop in source["links"] if "loss_pct" in source["links"][hop])
    lossy = json.loads(json.dumps(source))
    lossy["links"][hop]["burst_pkts"] = 3
    assert scenario.without_idle_bursts(lossy) == lossy
    del source["links"][hop]["loss_pct"]
    older = json.loads(json.dumps(source))
    older["links"][hop]["burst_pkts"] = 3
    monkeypatch.setattr(sides, "RESULTS", tmp_path)
    monkeypatch.setattr(sides, "run_to_end", lambda *_: 0)
    out = sides._run(sides.Side("x", tmp_path), "mine", older, "reno", [1, 2], 1)
    assert scenario.load(str(out / "mine.toml")).source["links"] == source["links"]
    runs.check_alike({"source": older}, {"source": source})
    assert older["links"][hop]["burst_pkts"] == 3


def test_a_run_of_too_few_seeds_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    run = write_run(tmp_path / "mine", 1.0)
    meta = {"scenario": "demo", "source": {}, "algorithms": ["reno"], "seeds": [1, 2]}
    meta["command"] = f"testbed/run demo --module './my cc.c' --seeds 2 --out {run} --set a=1"
    (run / "meta.json").write_text(json.dumps(meta))
    monkeypatch.setattr(sides, "_run", lambda *_: pytest.fail("it was measured"))
    wanted = sides.Wanted("", [], "", 0, 1)
    with pytest.raises(BadInput) as refused:
        sides.measure(str(run), "HEAD", wanted)
    assert str(refused.value) == (
        f"{run} has 2 seeds; 5 make a result, 6 a 95 % interval: testbed/run demo --module"
        f" './my cc.c' --set a=1 --seeds 6 --out {run} --resume"
    )
    with pytest.raises(BadInput, match="--seeds 4: 5 make a result, 6 a 95 % interval"):
        sides.measure("HEAD", "HEAD", sides.Wanted("demo", [], "", 4, 1))


def test_runs_without_a_common_point_are_refused():
    with pytest.raises(BadInput, match="no point in common"):
        diff.compare(results(random.Random(1), {}, 0.01), [], ["goodput_mbps"])


def test_a_run_with_points_that_failed_is_refused(tmp_path):
    """The place that got worse has no result: nothing else differs."""
    lines = results(random.Random(1), {}, 0.01)
    whole = write_results(tmp_path / "whole", lines)
    failed = write_results(tmp_path / "failed", lines[:-10], points=len(lines))
    done = command(whole, failed)
    assert done.returncode == 2
    assert "10 of 240 points have no result" in done.stderr and len(done.stderr.splitlines()) == 1
    assert command(whole, failed, "--bisect").returncode == 125


def test_what_b_has_not_is_named_and_is_no_answer(tmp_path):
    a = [line | {"fct_s_p50": 1.0} for line in results(random.Random(1), {}, 0.01)]
    lost = {("changed", 7): {"fct_s_p50": None}}
    b = [
        line | lost.get((line["algorithm"], PLACES.index(line["axes"])), {})
        for line in a
        if line["algorithm"] != "third"
    ]
    folders = write_results(tmp_path / "a", a), write_results(tmp_path / "b", b)
    done = command(*folders, "--metrics", "fct_s_p50")
    assert done.returncode == 4, done.stderr  # a flow that ends no more is no success
    told = "Not compared, as B has it not: fct_s_p50 of changed at loss_pct 10, b; third."
    assert told in done.stdout.splitlines()
    assert command(*folders, "--metrics", "fct_s_p50", "--bisect").returncode == 125
    # another algorithm was not asked for
    assert command(*folders).returncode == 0
    assert command(*folders, "--bisect").returncode == 125


def test_what_a_rival_lost_is_a_regression_whatever_the_sum_says(tmp_path):
    """The module under test takes a fifth of the rival's, and more than that for itself."""

    def run(name: str, mine: float, rival: float) -> Path:
        chance = random.Random(name)
        lines = [
            {"algorithm": "mine", "axes": {}, "seed": seed, "goodput_mbps": test + other}
            | {"goodput_test_mbps": test, "goodput_other_mbps": other}
            for seed in range(1, 11)
            for test, other in [(chance.gauss(mine, 0.01), chance.gauss(rival, 0.01))]
        ]
        return write_results(tmp_path / name, lines)

    mild, harmful = run("mild", 5.0, 4.0), run("harmful", 6.2, 3.2)
    done = command(mild, harmful)
    assert done.returncode == 1, done.stderr
    (bad,) = [line for line in done.stdout.splitlines() if "REGRESSION" in line]
    assert bad.startswith("mine") and "goodput_other_mbps" in bad and "-20." in bad
    assert "goodput_test_mbps" in done.stdout and "goodput_mbps" not in done.stdout
    assert command(mild, harmful, "--metrics", "goodput_mbps").returncode == 0


def test_rows_of_a_scorecard_are_not_mixed_up():
    def card(of_first: float) -> list[dict]:
        return [
            {"scenario": row, "algorithm": "x", "axes": {}, "seed": seed, "goodput_mbps": mbps}
            for row, mbps in (("first", of_first), ("second", 5.0))
            for seed in range(1, 11)
        ]

    bad = [change.place for change in regressions(card(10.0), card(1.0))]
    assert bad == [diff.EVERYWHERE, "first: -"]


def test_runs_that_did_not_ask_the_same_are_refused(tmp_path):
    def run(name: str, scenario: str = "demo", seconds: int = 9, draws: int = 1, **run_) -> Path:
        axes = {
            "loss_pct": {"sets": "x", "values": [seconds]},
            "place": {"random": {"seed": draws}},
        }
        source = {"title": name, "run": {"duration_s": seconds} | run_, "axes": axes}
        return write_run(tmp_path / name, 1.0, scenario=scenario, source=source)

    first = run("first", seeds=3)
    for other, told in (
        (run("another", "veno-wan"), "one is a run of demo, the other of veno-wan"),
        (run("longer", seconds=10), "they differ in run.duration_s"),
        (run("elsewhere", draws=2), "they differ in axes.place.random.seed"),
    ):
        done = command(first, other)
        assert done.returncode == 2 and told in done.stderr and len(done.stderr.splitlines()) == 1
    assert command(first, run("more", seeds=9, algorithms=["x"])).returncode == 0


def test_random_places_of_other_draws_are_refused():
    drawn = [
        [line | {"drawn": {"rate": n}} for line in results(random.Random(n), {}, 0.01)]
        for n in (1, 2)
    ]
    with pytest.raises(BadInput, match="drawn by other seeds"):
        diff.compare(*drawn, ["goodput_mbps"])


@pytest.mark.parametrize("places", [1, 6])
@pytest.mark.parametrize("seeds", [5, 6, 7])
def test_a_change_from_nothing_asks_for_seeds_enough(places, seeds):
    """From 0 to something is the same change in every seed, so chance alone is as likely as that
    all seeds agree; with as many as are asked for it is a regression."""

    def compared(count: int) -> list[diff.Change]:
        a, b = (
            [
                {"algorithm": "x", "axes": {"p": float(p)}, "seed": s, "unfinished": of * s}
                for p in range(places)
                for s in range(1, count + 1)
            ]
            for of in (0, 1)
        )
        return diff.compare(a, b, ["unfinished"])

    changes = compared(seeds)
    needed = max(change.seeds_needed() for change in diff.undecided(changes, 0.01))
    assert not any(change.is_regression(0.01) for change in changes) and needed > seeds
    assert f"cannot be told with {seeds}: {needed} are needed" in diff.summary(changes, 0.01)
    assert all(change.is_regression(0.01) for change in compared(needed))
    assert diff.undecided(compared(needed), 0.01) == []


def one_place(shares: list[float], name: str = "x") -> list[dict]:
    return [
        {"algorithm": name, "axes": {}, "seed": seed, "goodput_mbps": share}
        for seed, share in enumerate(shares, 1)
    ]


def test_a_gain_is_said_as_certainly_as_a_regression(tmp_path):
    """The same figures compared the other way round."""
    worse = [0.951, 0.77, 0.914, 0.93, 0.90, 0.914, 0.89, 0.9, 0.92, 0.9]
    a = write_results(tmp_path / "a", one_place([1.0] * 10))
    b = write_results(tmp_path / "b", one_place(worse))
    lost, gained = command(a, b), command(b, a)
    assert lost.returncode == 1 and "REGRESSION" in lost.stdout and "better" not in lost.stdout
    assert gained.returncode == 0 and "REGRESSION" not in gained.stdout
    row, said = gained.stdout.splitlines()[-2:]
    assert row.endswith("better") and said.endswith("1 better beyond 1.0%, by 9.3% at most.")
    within = command(b, a, "--bound", "0.2")
    assert "better" not in within.stdout.splitlines()[-2]


def test_p_is_the_corrected_one_and_what_looks_worse_is_told_of(tmp_path):
    """Six seeds, all worse, by 5 to 23 %: p is 0.0055 uncorrected, and halved it is not enough.
    With as many seeds as are named, of the same kind, it is certain."""
    worse = [0.951, 0.77, 0.914, 0.93, 0.90, 0.914]
    a = write_results(tmp_path / "a", one_place([1.0] * 6))
    b = write_results(tmp_path / "b", one_place(worse))
    done = command(a, b)
    assert done.returncode == 0, done.stderr
    head, row, said = done.stdout.splitlines()[2:]
    assert "p, corrected" in head and "REGRESSION" not in row and row.split()[-1] == "0.011"
    assert "is certain: that takes a p of 0.01 or less." in said
    more = "Not certain: more seeds (7) may tell whether x is worse (goodput_mbps -8.6%)."
    assert said.endswith(more)
    assert command(a, b, "--bisect").returncode == 125
    with_7 = diff.compare(one_place([1.0] * 7), one_place([*worse, 0.89]), ["goodput_mbps"])
    assert [change.is_regression(0.01) for change in with_7] == [True]


def test_the_corrected_p_is_holms():
    """Three are asked about, in one of two families; one that is the same is not."""
    shares = {"a": [0.9, 0.91, 0.89, 0.9, 0.92], "b": [0.8, 0.99, 0.9, 0.9, 0.9],
              "c": [1.1, 0.9, 1.0, 1.0, 1.01], "same": [1.0] * 5}  # fmt: skip
    before = [line for name in shares for line in one_place([1.0] * 5, name)]
    after = [line for name, of in shares.items() for line in one_place(of, name)]
    a, b, c, same = diff.compare(before, after, ["goodput_mbps"])
    assert a.corrected == pytest.approx(2 * 3 * a.p) and b.corrected == pytest.approx(2 * 2 * b.p)
    assert c.corrected == 1.0 and same.corrected == 1.0 and same.asked == 3


def test_single_places_of_many_do_not_ask_for_more_seeds_by_chance():
    """At 24 places six seeds agree somewhere in a third of all comparisons."""
    chance = random.Random(5)
    runs = [[results(chance, {}, 0.03, seeds=6) for _ in range(2)] for _ in range(100)]
    compared = [diff.compare(*pair, ["goodput_mbps"]) for pair in runs]
    assert sum(any(c.is_open(0.01) for c in changes) for changes in compared) > 20
    assert sum(bool(diff.undecided(changes, 0.01)) for changes in compared) <= 12


def test_a_table_ranks_no_figure_the_other_way_round():
    """And calls each by a name for people, not by its key."""
    assert METRICS.keys() == facts.METRICS.keys()
    for name, shown in facts.METRICS.items():
        if shown.better:
            assert (shown.better == "low") == (METRICS[name] == LESS), name
            assert METRICS[name] != NEITHER


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scenario": "demo", "settings": ["x=1"]}, "--scenario, --set: beside a run"),
        ({"seeds": 6}, "--seeds: beside a run"),
        ({"algorithms": ("reno",)}, "--algorithms: beside a run"),
    ],
)
def test_what_would_be_ignored_beside_two_runs_is_refused(tmp_path, options, told):
    one, other = (str(write_run(tmp_path / name, 1.0)) for name in ("one", "other"))
    nothing = {"scenario": "", "settings": [], "algorithms": (), "seeds": 0, "jobs": 1}
    with pytest.raises(BadInput, match=told):
        sides.measure(one, other, sides.Wanted(**nothing | options))


REGISTERS = {"tcp_a.c": ("r07", "more"), "tcp_b.c": ("r07",), "tcp_c.c": ("r08",),
             "tcp_d.c": ("fixed",), "tcp_e.c": ("chosen",), "tcp_in.c": ("reno",)}  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ("tcp_a.c", "tcp_b.c", ""),
        ("tcp_a.c", "tcp_c.c", "A registers r07, more; B registers r08: both versions of a module"),
        ("run", "tcp_b.c", ""),
        (
            "run",
            "tcp_c.c",
            "B registers r08; A has r07, reno, fixed, chosen: both versions of a module must",
        ),
        ("run", "tcp_d.c", ""),
        ("run", "tcp_e.c", ""),
        ("tcp_c.c", "HEAD", "A registers r08, which is not asked of B: a commit has no module of"),
        ("linux", "tcp_c.c", "B registers r08, which is not asked of A: give --algorithms r08 if"),
        ("linux", "tcp_in.c", ""),
    ],
)
def test_two_versions_of_a_module_are_known_by_the_same_name(tmp_path, monkeypatch, a, b, told):
    """Whether they are is asked before either is measured."""
    (tmp_path / "linux" / "arch" / "um").mkdir(parents=True)
    choices = {"x": {"flows": [{"name": "a", "algorithm": "chosen"}]}, "y": {"flows": {"0": {}}}}
    source = {"flows": [{"name": "a", "algorithm": "fixed"}], "axes": {"x": {"choices": choices}}}
    about = {"scenario": "demo", "source": source, "algorithms": ["r07", "reno"]}
    about["seeds"] = [*range(6)]
    write_run(tmp_path / "run", 1.0, **about)
    for name in REGISTERS:
        (tmp_path / name).touch()
    measured = []
    monkeypatch.setattr(sides, "_run", lambda side, *_: measured.append(side) or Path())
    monkeypatch.setattr(sides, "_registered", lambda module: REGISTERS[Path(module).name])
    monkeypatch.setattr(sides, "_work_tree", lambda commit: Path())
    one, other = (text if text == "HEAD" else str(tmp_path / text) for text in (a, b))
    algorithms = ("reno",) if b == "tcp_in.c" else ()
    wanted = sides.Wanted("" if a == "run" else "demo", [], algorithms, 0, 1)
    if not told:
        sides.measure(one, other, wanted)
        assert len(measured) == (1 if a == "run" else 2)
        return
    with pytest.raises(BadInput) as refused:
        sides.measure(one, other, wanted)
    assert told in str(refused.value).replace(one, "A").replace(other, "B") and not measured


@pytest.mark.parametrize("made", [{"backend": "vm"}, {"backend": "virtual", "kernel": "debug"}])
def test_a_run_on_another_kernel_is_no_measure(tmp_path, monkeypatch, made):
    monkeypatch.setattr(sides, "_run", lambda *_: pytest.fail("it was measured"))
    about = {"scenario": "demo", "source": {}, "algorithms": ["reno"], "seeds": [1, 2, 3, 4, 5]}
    run = write_run(tmp_path / "mine", 1.0, **about, **made)
    with pytest.raises(BadInput, match="give two folders"):
        sides.measure(str(run), "HEAD", sides.Wanted("", [], "", 0, 1))


def test_which_version_of_a_users_module_each_side_has_is_said(tmp_path):
    lines = results(random.Random(1), {}, 0.01)
    a, b = (
        write_results(tmp_path / name, lines, user_modules=[{"name": "tcp_par"} | told])
        for name, told in (
            ("a", {"srcversion": "AB12", "sha256": "0123456789abcdef" * 4}),
            ("b", {"srcversion": "", "sha256": "fedcba9876543210" * 4}),
        )
    )
    heads = command(a, b).stdout.splitlines()[:2]
    assert heads == [
        f"A: {a} (Linux 6.12, tcp_par AB12 (sha256 0123456789ab))",
        f"B: {b} (Linux 6.12, tcp_par (sha256 fedcba987654))",
    ]


def test_a_run_by_ns3_has_no_commit(tmp_path):
    lines = results(random.Random(1), {}, 0.01)
    ours = write_results(tmp_path / "ours", lines, git_commit="0123456789abcdef")
    theirs = write_results(tmp_path / "theirs", lines, backend="ns-3", kernel_release="3.37")
    done = command(ours, theirs)
    assert done.returncode == 0, done.stderr
    assert "(Linux 6.12, commit 0123456789ab)" in done.stdout and "(3.37)" in done.stdout


def test_what_breaks_is_no_answer_to_git(tmp_path):
    run = write_run(tmp_path / "run", 1.0)
    broken = write_run(tmp_path / "broken", 1.0)
    whole = (run / "results.jsonl").read_text()
    (broken / "results.jsonl").write_text(whole[:-9])
    done = command(run, broken)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"{broken}/results.jsonl, line 240: no JSON" in done.stderr
    assert command(run, broken, "--bisect").returncode == 125
    (broken / "meta.json").write_text('{"points":\n')
    with pytest.raises(BadInput, match=r"meta\.json, line 2: no JSON"):
        runs.read_meta(broken)


@pytest.mark.parametrize("broken", [LabError("x could not be measured"), KeyError("x")])
def test_what_could_not_be_measured_is_no_regression(monkeypatch, capsys, broken):
    """As a commit that does not build: scripts take status 1 for a regression."""

    def fail(*_):
        raise broken

    monkeypatch.setattr(sides, "measure", fail)
    for bisect, status in ((False, 4), (True, 125)):
        with pytest.raises(typer.Exit) as ended:
            diff.main("HEAD~1", "HEAD", scenario="demo", jobs=1, bisect=bisect)
        assert ended.value.exit_code == status
        assert "x could not be measured" in (told := capsys.readouterr().err) or "KeyError" in told
