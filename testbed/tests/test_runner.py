# SPDX-License-Identifier: GPL-2.0-only
"""What the runner does with points, whoever runs them."""

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import TESTBED, run_command
from test_scenario import GOOD

from lab.ask import points, scenario
from lab.common import options
from lab.common.errors import BadInput, LabError
from lab.run import build, cpus, ended, runner, runs
from lab.run.backends.base import Backend, Outcome
from lab.run.store import Store, fresh_folder


class Recorder:
    """A backend that runs nothing and remembers what it was given."""

    name, clock, build = "none", "jumps", SimpleNamespace(srcversions=dict, user=())

    def __init__(self):
        self.ran: list[str] = []

    def batches(self, todo, jobs):
        return [todo]

    def cost_s(self, point):
        return 1.0

    def run_batch(self, batch, cpu, on_outcome, stop):
        for point in batch:
            self.ran.append(point.id)
            on_outcome(Outcome(point, Path(), "", ""))

    def describe(self):
        return {}


def test_points_that_are_alike_run_once(tmp_path, monkeypatch):
    """An axis that sets a parameter of jtcp does not change reno's points: one run, two results,
    each at its place."""
    tree = tomllib.loads(GOOD)
    tree["axes"] = {"k": {"sets": "modules.jtcp.k_percent", "values": [50, 100]}}
    loaded = scenario.parse("test", tree)
    sweep = points.expand(loaded, ("jtcp", "reno"), [1], lambda names, *_: "")
    assert len(sweep) == 4 and len({point.id for point in sweep}) == 3
    monkeypatch.setattr(ended, "summarize", lambda point, raw: {"of": point.algorithm})
    monkeypatch.setattr(Store, "_sample_file", lambda *_: tmp_path / "any")
    monkeypatch.setattr(runner, "_keeps_samples", lambda *_: lambda point: False)
    backend = Recorder()
    for reused in (0, 4):
        done = runner.run(loaded, sweep, backend, Store(tmp_path / "out"), jobs=1)
        assert sorted(backend.ran) == sorted({point.id for point in sweep})
        assert done.reused == reused and not done.failures
        assert [(r["algorithm"], r["axes"]["k"]) for r in done.results] == [
            ("jtcp", 50), ("reno", 50), ("jtcp", 100), ("reno", 100),
        ]  # fmt: skip


def test_a_new_file_is_a_change_where_it_could_change_results(tmp_path, monkeypatch):
    """A user's scenario beside the checkout's files is none."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "testbed").mkdir()
    (tmp_path / "testbed" / "run").write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(build, "PROJECT", tmp_path)
    (tmp_path / "my-link.toml").write_text("")
    assert not runner.is_dirty()
    new = tmp_path / "testbed" / "new.py"
    new.write_text("")
    assert runner.is_dirty()
    new.unlink()
    (tmp_path / "testbed" / "run").write_text("2")
    assert runner.is_dirty()


def test_what_failed_is_told_in_meta(tmp_path, monkeypatch):
    """For those who make the report again."""
    sweep = points.expand(
        scenario.parse("test", tomllib.loads(GOOD)), ("reno",), [1, 2], lambda *_: ""
    )[:2]
    monkeypatch.setattr(ended, "summarize", lambda point, raw: {})

    class Failing(Recorder):
        def run_batch(self, batch, cpu, on_outcome, stop):
            for point in batch:
                on_outcome(Outcome(point, Path(), "" if point.seed == 1 else "it broke", "log"))

    store = Store(tmp_path)
    done = runner.run_points(sweep, Failing(), store, 1, lambda _: False, {})
    told = store.read_json("meta.json")["failures"]
    assert told == done.failures and len(told) == 1 and "seed 2: it broke (log: " in told[0]


def test_the_time_left_goes_by_what_is_left_and_not_by_the_number_of_points():
    """The costliest points come first: 4 of 100 s each among 400 of half a second. Nothing is taken
    for slow that was expected to be, and a machine that is slower shows."""
    left = runner._Left(600.0, at_once=2)
    assert left.after_s(0.0) == pytest.approx(300)
    left.ended(100.0)
    assert left.after_s(50.0) == pytest.approx(250)
    assert 250 < left.after_s(60.0) < 300  # by points it would be 403 * 60 s
    for _ in range(3):
        left.ended(100.0)
    assert left.after_s(200.0) == pytest.approx(100)
    assert 150 < left.after_s(400.0) < 200
    for _ in range(400):
        left.ended(0.5)
    assert left.after_s(500.0) == pytest.approx(0)


class Scripted(Backend):
    """A backend whose guests are shells. They end every point, but the second, which does not come
    up."""

    name, clock, boot_limit_s, batch_wall_s = "none", "jumps", 60.0, 1.0

    def __init__(self, room: Path):
        kernel = SimpleNamespace(has=lambda _: True)
        self.build = SimpleNamespace(kernel=kernel, stage=room, user=(), user_modules=lambda _: [])
        self.guest_room, self.boots = room, 0

    def guest_command(self, guest, cpu, extra_mb=0):
        self.boots += 1
        wanted = json.loads((guest / "out" / "batch.json").read_text())["points"]
        ends = " ".join(f"{guest}/out/{point['id']}" for point in wanted)
        return ["sh", "-c", "exit 1" if self.boots == 2 else f"touch {guest}/out/up; mkdir {ends}"]

    def cost_s(self, point):
        return 0.1

    def describe(self):
        return {}


def test_a_boot_that_takes_long_gets_more_to_do(tmp_path):
    """A batch is worth several times what its boot costs, which grows with the pairs of hosts; no
    more of it than each of the jobs gets something."""
    tree = tomllib.loads(GOOD)
    few = points.expand(scenario.parse("test", tree), ("reno",), [*range(1, 26)], lambda *_: "")
    tree["flows"][0]["count"] = 8
    many = points.expand(scenario.parse("test", tree), ("reno",), [*range(1, 26)], lambda *_: "")
    backend = Scripted(tmp_path)
    backend.pair_cost_s = 0.05  # eight pairs: 0.4 s a boot, so 8 s, 80 points
    batches = backend.batches(few + many, jobs=2)
    assert [len(batch) for batch in batches] == [50, 50]
    assert {point.pairs for point in batches[0]} == {8}
    backend.pair_cost_s = 0.0
    assert {len(batch) for batch in backend.batches(few + many, jobs=2)} == {10}


def test_a_guest_that_does_not_come_up_costs_its_point_if_others_did(tmp_path):
    """On a machine with too much to do, say: what is left of a long run goes on. The first one of a
    run ends it, since none will come up."""
    sweep = points.expand(
        scenario.parse("test", tomllib.loads(GOOD)), ("reno",), [1, 2, 3], lambda *_: ""
    )[:3]
    backend, said = Scripted(tmp_path), []
    for batch in (sweep[:1], sweep[1:]):
        backend.run_batch(batch, 0, lambda outcome: said.append(outcome.error), threading.Event())
    assert said == ["", "the lab kernel did not come up: the lab kernel stopped", ""]
    backend = Scripted(tmp_path)
    backend.boots = 1
    with pytest.raises(LabError, match="did not come up"):
        backend.run_batch(sweep, 0, lambda outcome: None, threading.Event())


def test_a_guest_without_memory_says_so(tmp_path):
    """What was killed is waited for, and "no end" or "stopped" tells nobody why."""
    backend, said = Scripted(tmp_path), []
    killed = "echo '[ 9.5] Out of memory: Killed process 33 (python3) total-vm:36916kB'"
    backend.guest_command = lambda guest, *_: ["sh", "-c", f"touch {guest}/out/up; {killed}"]
    (point, *_) = points.expand(
        scenario.parse("test", tomllib.loads(GOOD)), ("reno",), [1], lambda *_: ""
    )
    backend.run_batch([point], 0, lambda outcome: said.append(outcome.error), threading.Event())
    assert said == ["the lab kernel ran out of memory: the lab kernel stopped"]


def test_runs_beside_each_other_take_different_processors(tmp_path):
    """Each processor once before any twice; one that is given back is the next."""
    mine = sorted(os.sched_getaffinity(0))
    with ExitStack() as claims:
        first = [claims.enter_context(cpus.claimed(tmp_path)) for _ in mine]
        second = [claims.enter_context(cpus.claimed(tmp_path)) for _ in mine]
        with cpus.claimed(tmp_path) as third:
            assert first == second == mine and third == mine[0]
    with cpus.claimed(tmp_path) as free:
        assert free == mine[0]


def test_runs_that_start_together_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [fresh_folder("demo") for _ in range(3)]
    assert [str(one) for one in folders] == ["results/demo", "results/demo-2", "results/demo-3"]
    assert all(one.is_dir() for one in folders)


HOLDS = "import sys; from lab.run.store import *; s = Store(Path(sys.argv[1])); print(); input()"


def test_a_folder_has_one_run_at_a_time_and_a_killed_one_has_none(tmp_path):
    """A second run would take the first one's half-written files for those of an interrupted."""
    out = tmp_path / "out"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDS, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=TESTBED,
    )  # fmt: skip
    first.stdout.readline()
    half = out / "samples" / "x.part"
    half.touch()
    with pytest.raises(BadInput, match="another run writes there"):
        Store(out)
    assert half.exists()
    first.kill()
    first.communicate()
    Store(out)
    assert not half.exists() and sorted(one.name for one in out.iterdir()) == [
        "logs", "points", "samples"]  # fmt: skip


def test_another_scenario_s_folder_is_refused_and_its_results_stay(tmp_path):
    """More or fewer seeds, other algorithms and other values of the same scenario go on there."""
    out = tmp_path / "out"
    (out / "points").mkdir(parents=True)
    (out / "points" / "x.json").write_text("{}")
    meta = {"scenario": "veno-wan", "seeds": [1, 2], "algorithms": ["reno"], "set": {"a": "1"}}
    (out / "meta.json").write_text(json.dumps(meta))
    told = re.escape(f"{out} holds a run of veno-wan, not of demo: choose another --out")
    for refused in (lambda: Store.check(out, True, "demo"), lambda: Store(out, True, "demo")):
        with pytest.raises(BadInput, match=told):
            refused()
    done = run_command("demo", "--out", str(out), "--resume")
    assert done.returncode == 2 and "holds a run of veno-wan" in done.stderr
    done = run_command("scorecard", "--quick", "--out", str(out), "--resume")
    assert done.returncode == 2 and "holds a run of veno-wan" in done.stderr
    Store(out, True, "veno-wan")
    assert json.loads((out / "meta.json").read_text()) == meta


def swept(**more: object) -> dict:
    """Return a scenario's source with two axes, and with the keys that MORE has, __ for a dot."""
    tree = tomllib.loads(GOOD)
    tree["axes"] = {
        "loss_pct": {"sets": "links.wireless.loss_pct", "values": [0, 1]},
        "path": {"choices": {"1.6 Mb/s": {"links": {"bottleneck": {"rate_mbps": 1.6}}}}},
    }
    for key, value in more.items():
        scenario.set_dotted(tree, key.replace("__", "."), value)
    return tree


def test_what_a_run_may_go_on_with():
    """All that adds points or changes none; the others are named, with what they were."""
    before = swept()
    more = {"run__seeds": 20, "run__algorithms": ["bbr"], "axes__loss_pct__values": [5]}
    fine = swept(**more, axes__loss_pct__label="loss") | {"title": "Another", "claims": []}
    assert runs.digest(before) == runs.digest(fine)
    fine["run"]["harm"] = True
    fine["axes"]["path"]["choices"]["another 2.5"] = {"links": {"bottleneck": {"rate_mbps": 2.5}}}
    assert runs.changes(json.loads(json.dumps(before)), fine) == []
    longer = swept(run__duration_s=60, links__wireless__delay_ms=1.5)
    assert runs.changes(before, longer) == [
        f"links.wireless.delay_ms 1.5, was {before['links']['wireless']['delay_ms']}",
        f"run.duration_s 60, was {before['run']['duration_s']}",
    ]
    slower = swept()
    slower["axes"]["path"]["choices"]["1.6 Mb/s"]["links"]["bottleneck"]["queue_pkts"] = 9
    key = "axes.path.choices.1.6 Mb/s.links.bottleneck.queue_pkts"
    assert runs.changes(before, slower) == [f"{key} 9, was not set"]
    assert runs.digest(before) != runs.digest(slower)
    traced = [
        swept(links__bottleneck__trace=f"{place}/rates.csv") for place in ("mine", "/my/mine")
    ]
    assert runs.changes(*traced) == []


def test_results_of_other_settings_are_not_replaced(tmp_path):
    out = tmp_path / "out"
    (out / "points").mkdir(parents=True)
    meta = {"scenario": "demo", "source": scenario.load("demo").source}
    (out / "meta.json").write_text(json.dumps(meta))
    longer = scenario.load("demo", {"run.duration_s": "60"}).source
    Store.check(out, True, "demo", longer)  # nothing has been measured yet
    (out / "points" / "x.json").write_text("{}")
    Store.check(out, True, "demo", meta["source"])
    with pytest.raises(BadInput, match=r"other settings \(run.duration_s 60, was 100\): choose"):
        Store(out, True, "demo", longer)
    done = run_command("demo", "--set", "run.duration_s=60", "--out", str(out), "--resume")
    assert done.returncode == 2 and "run.duration_s 60, was 100" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert json.loads((out / "meta.json").read_text()) == meta


def resumed(folder: Path, before: dict, now: dict, **more: object) -> None:
    """Look whether a run of the source BEFORE may go on as NOW."""
    (folder / "points").mkdir(parents=True, exist_ok=True)
    (folder / "points" / "x.json").write_text("{}")
    (folder / "meta.json").write_text(json.dumps({"scenario": "mine", "source": before} | more))
    Store.check(folder, True, "mine", now)


DELAY = "links.wireless.delay_ms"


def delayed(*ms: float, name: str = "ms", **more: object) -> dict:
    """Return a scenario's source that has these delays, by an axis."""
    return swept(**{f"axes__{name}": {"sets": DELAY, "values": list(ms)}} | more)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (swept(links__wireless__delay_ms=4), delayed(4, 9)),
        (delayed(4, 9), swept(links__wireless__delay_ms=4)),
        (swept(), swept() | {"topology": {"kind": "dumbbell"}}),
        (swept(), swept(run__sample_ms=200)),
        (swept(), swept(run__duration_s=float(swept()["run"]["duration_s"]))),
        (delayed(4, 9), delayed(9, 12, name="d")),
        (delayed(4), delayed(9)),
        (swept(), swept() | {"modules": {"tabe": {"alpha": 1}}}),
    ],
)
def test_a_run_goes_on_where_its_points_are_the_same(tmp_path, before, now):
    """However what they are is written; and where others come beside them."""
    resumed(tmp_path, before, now)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (delayed(4, 9), delayed(4, 9, run__duration_s=60), "run.duration_s 60, was"),
        (delayed(4), delayed(9, run__duration_s=60), "run.duration_s 60, was"),
        (delayed(4), delayed(4, name="d", run__duration_s=60), "run.duration_s 60, was"),
        (swept() | {"no_section": 1}, swept(run__sample_ms=100), "no_section not set, was 1"),
        (
            swept(),
            swept() | {"modules": {"jtcp": {"alpha": 1}}},
            "modules.jtcp.alpha 1, was not set",
        ),
    ],
)
def test_a_run_does_not_go_on_where_its_points_are_others(tmp_path, before, now, told):
    with pytest.raises(BadInput, match=re.escape(told)):
        resumed(tmp_path, before, now, algorithms=["reno", "jtcp"])


def test_a_trace_is_known_by_its_steps_wherever_it_is(tmp_path):
    def traced(folder: str, rate: int) -> dict:
        path = tmp_path / folder / "rates.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"0,{rate}\n1,3\n")
        source = swept(links__bottleneck={"trace": str(path), "queue_pkts": 50})
        del source["axes"]
        return source

    here, there, other = traced("here", 2), traced("there", 2), traced("other", 5)
    resumed(tmp_path / "out", here, there)
    with pytest.raises(BadInput, match="a trace file of the same name has other steps"):
        resumed(tmp_path / "out", here, other)
    (tmp_path / "here" / "rates.csv").unlink()
    resumed(tmp_path / "out", here, there)


def test_what_has_ended_since_a_run_looked_is_not_overwritten(tmp_path):
    """Building comes between the look at a folder and its lock, and takes minutes."""
    Store.check(tmp_path, False, "demo")
    first = Store(tmp_path, False, "demo")
    (tmp_path / "points" / "x.json").write_text("{}")
    del first
    with pytest.raises(BadInput, match="already holds results"):
        Store(tmp_path, False, "demo")


KEEPS = """
import pathlib, signal, sys, time
out = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    (out / "up").touch()
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(1)  # longer than what subprocess.run() waits before it kills
    (out / "kept").touch()
    sys.exit(130)
"""
WAITS = """
import sys
from lab.common import exits, options
from lab.run.children import run_to_end
app = options.new_app()
@app.command()
def main(script: str, out: str) -> None:
    run_to_end([sys.executable, "-c", script, out])
exits.run(app, "papers", "papers")
"""


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "timeout"])
def test_what_a_command_runs_keeps_what_it_has_when_that_is_interrupted(tmp_path, how):
    """Ctrl-C reaches both, SIGTERM the command alone, and twice if `timeout` does it."""
    outer = subprocess.Popen(
        [sys.executable, "-c", WAITS, KEEPS, tmp_path], cwd=TESTBED, start_new_session=True,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "up").exists():
        assert outer.poll() is None
        time.sleep(0.02)
    if how == "Ctrl-C":
        os.killpg(outer.pid, signal.SIGINT)
    else:
        outer.terminate()
    if how == "timeout":
        time.sleep(0.2)
        outer.terminate()
    _, told = outer.communicate()
    assert outer.returncode == 130 and (tmp_path / "kept").exists()
    assert told == "interrupted: the same command goes on\n"


@pytest.mark.parametrize(
    ("clock", "cpus", "jobs", "at_once"),
    [
        ("jumps", 1, 0, 8), ("jumps", 1, 3, 3), ("jumps", 1, 99, 20), ("real", 1, 0, 4),
        ("real", 4, 0, 1), ("real", 3, 0, 2), ("real", 16, 0, 1), ("real", 4, 8, 8),
    ],
)  # fmt: skip
def test_guests_in_real_time_have_the_processors_that_they_need(
    monkeypatch, clock, cpus, jobs, at_once
):
    """On eight processors, which are those that the process may use; who asks for more gets it."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    backend = SimpleNamespace(side_by_side=True, clock=clock, cpus=cpus)
    assert runner.guests_at_once(backend, jobs, 20) == at_once
    assert runner.guests_at_once(SimpleNamespace(side_by_side=False), jobs, 20) == 1
    assert options.job_count(0) == 8


def test_machines_that_share_a_folder_do_not_share_processors(tmp_path, monkeypatch):
    with cpus.claimed(tmp_path) as here:
        monkeypatch.setattr(socket, "gethostname", lambda: "another")
        with cpus.claimed(tmp_path) as there:
            assert here == there


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    code = errno.ENOLCK
    with cpus.claimed(tmp_path) as cpu:
        assert cpu in os.sched_getaffinity(0)
    code = errno.EIO
    with pytest.raises(OSError, match="Input/output"), cpus.claimed(tmp_path):
        pass
