# SPDX-License-Identifier: GPL-2.0-only
"""What the runner does with points, whoever runs them."""

import os
import tomllib
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

from test_scenario import GOOD

from lab import cpus, points, runner, scenario
from lab.backends.base import Outcome
from lab.store import Store


class Recorder:
    """A backend that runs nothing and remembers what it was given."""

    name, clock, build = "none", "jumps", SimpleNamespace(srcversions=dict)

    def __init__(self):
        self.ran: list[str] = []

    def batches(self, todo, jobs):
        return [todo]

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
    monkeypatch.setattr(runner, "summarize", lambda point, raw: {"of": point.algorithm})
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
