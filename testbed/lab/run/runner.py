# SPDX-License-Identifier: GPL-2.0-only
"""Run the points of a scenario side by side, show how far it is, lose nothing on Ctrl-C."""

import datetime
import os
import queue
import shlex
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from lab.ask import lablink
from lab.ask.links import link_of
from lab.ask.parts import Scenario
from lab.ask.points import Point
from lab.common.options import usable_cpus
from lab.measure import harm
from lab.run import git, usermodules
from lab.run.backends.base import Backend
from lab.run.cluster.crew import Crew
from lab.run.cpus import claimed
from lab.run.ended import Ended, ended
from lab.run.store import Store

PLAIN_PROGRESS_S = 10.0
TRUSTED_S = 60.0  # so much of a run's own pace counts as much as the estimate of what points cost
PARTS = ("testbed", "tcp_veno_jitter", "sctp_jitter", "tfrc_uddj_user")


@dataclass
class Sweep:
    """What came of a run."""

    results: list[dict[str, Any]]
    failures: list[str] = field(default_factory=list)
    reused: int = 0
    interrupted: bool = False


def guests_at_once(backend: Backend, jobs: int, points: int) -> int:
    """Return how many guests of BACKEND work at so many POINTS side by side: JOBS, or for 0 as many
    as the machine carries. In real time a guest is late whenever it waits for a processor, and what
    emulates its devices takes a part of one more."""
    if not backend.side_by_side:
        return 1
    if not jobs and backend.clock == "real":
        jobs = max(1, usable_cpus() // (getattr(backend, "cpus", 1) + 1))
    return min(jobs or usable_cpus(), points)


def run(
    scenario: Scenario,
    points: list[Point],
    backend: Backend,
    store: Store,
    jobs: int,
    crew: Crew | None = None,
) -> Sweep:
    """Run those of POINTS that STORE does not have yet, JOBS side by side, or on the machines of a
    CREW; return all that it then has."""
    about = {"scenario": scenario.id, "title": scenario.title, "source": scenario.source}
    keep, finish = _keeps_samples(scenario, points), harm.add if scenario.run.harm else None
    return run_points(points, backend, store, jobs, keep, about, finish, crew)


def run_points(
    points: list[Point],
    backend: Backend,
    store: Store,
    jobs: int,
    keep: Callable[[Point], bool],
    about: dict[str, Any],
    finish: Callable[[list[dict[str, Any]]], None] | None = None,
    crew: Crew | None = None,
) -> Sweep:
    """As run(), with points of any number of scenarios. KEEP: whose samples stay; ABOUT: what
    meta.json says of the run besides how it was made; FINISH: see Store.assemble()."""
    missing = [point for point in points if not store.has(point, keep(point))]
    sweep = Sweep([], reused=len(points) - len(missing))
    todo = list({point.id: point for point in missing}.values())  # an axis may not concern all
    started = time.time()
    about = about | {"jobs": crew.cores() if crew else jobs}
    if crew:
        about |= {"machines": crew.describe()}
    if brought := usermodules.keep(backend.build, store.folder):
        about |= {"user_modules": brought}
    store.write_json("meta.json", _meta(about, points, backend, started, sweep))
    try:
        if todo:
            _run_all(todo, backend, store, jobs, keep, sweep, crew)
    finally:
        sweep.results = store.assemble(points, finish)
        store.write_json("meta.json", _meta(about, points, backend, started, sweep, time.time()))
    return sweep


def _keeps_samples(scenario: Scenario, points: list[Point]) -> Callable[[Point], bool]:
    keep, first_seed = scenario.run.keep_samples, min(point.seed for point in points)
    return lambda point: keep == "all" or (keep == "first-seed" and point.seed == first_seed)


def _run_all(todo, backend, store, jobs: int, keep, sweep: Sweep, crew: Crew | None) -> None:
    outcomes: queue.Queue = queue.Queue()
    stop = threading.Event()
    at_once = crew.cores() if crew else jobs
    costs_s = {point.id: backend.cost_s(point) for point in todo}

    def on_ended(one: Ended) -> None:
        if one.error:
            path = store.add_failure(one.point, one.error, one.log)
            failure = f"{one.point.describe()}: {one.error} (log: {path})"
            outcomes.put((costs_s[one.point.id], failure))
            return
        store.add(one.point, one.result, one.samples)
        outcomes.put((costs_s[one.point.id], None))

    batches = backend.batches(todo, at_once)
    if crew:
        crew.carry(backend, todo)
        tasks = [partial(crew.work, batches, keep, on_ended, stop)]
    else:
        work: queue.SimpleQueue = queue.SimpleQueue()
        for batch in batches:
            work.put(batch)
        tasks = [partial(_work, backend, work, keep, on_ended, stop)] * jobs
    workers = [threading.Thread(target=_or_say, args=(task, outcomes)) for task in tasks]
    for worker in workers:
        worker.start()
    try:
        left = _Left(sum(costs_s.values()), at_once)
        _follow(outcomes, workers, _Progress(len(todo), left), sweep)
    except KeyboardInterrupt:
        sweep.interrupted = True
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def _work(backend, work, keep, on_ended, stop) -> None:
    """Take batches until there are none; report each point."""
    with claimed() as cpu:
        while not stop.is_set():
            try:
                batch = work.get_nowait()
            except queue.Empty:
                return
            backend.run_batch(batch, cpu, lambda out: on_ended(ended(out, keep(out.point))), stop)


def _or_say(task: Callable[[], None], outcomes: queue.Queue) -> None:
    """Do TASK; what breaks it is an outcome, too."""
    try:
        task()
    except BaseException as error:
        outcomes.put(error)


def _follow(outcomes, workers, progress: "_Progress", sweep: Sweep) -> None:
    """Show progress until every point ended; raise what a worker could not handle."""
    with progress:
        while not progress.is_over:
            try:
                outcome = outcomes.get(timeout=0.2)
            except queue.Empty:
                progress.idle()
                if not any(worker.is_alive() for worker in workers) and outcomes.empty():
                    raise RuntimeError("every worker ended, but not every point") from None
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            cost_s, failure = outcome
            if failure:
                sweep.failures.append(failure)
                progress.say(f"failed: {failure}")
            progress.advance(cost_s)


class _Left:
    """How long a run still takes, of which COST_S of one core are estimated, on AT_ONCE cores."""

    def __init__(self, cost_s: float, at_once: int):
        self._whole_s = self._todo_s = cost_s / at_once
        self._at_once = at_once

    def ended(self, cost_s: float) -> None:
        self._todo_s -= cost_s / self._at_once

    def after_s(self, spent_s: float) -> float:
        """Return what is left after SPENT_S. How much slower than estimated the machine is shows in
        what has ended; as that is one point or none at first, the estimate itself counts like
        TRUSTED_S in which it was right."""
        done_s = self._whole_s - self._todo_s
        slower = (spent_s + TRUSTED_S) / (done_s + TRUSTED_S)
        return max(self._todo_s, 0.0) * slower


class _Progress:
    """A live bar with the time left on a terminal; a line now and then elsewhere."""

    def __init__(self, total: int, left: _Left):
        self._total, self._done, self._said_s = total, 0, time.monotonic()
        self._left = left
        self._started_s = self._idle_s = self._said_s
        self._bar = None
        console = Console(stderr=True)
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("left"), TextColumn("{task.fields[left]}", style="cyan"),
                console=console,
            )  # fmt: skip
            self._task = self._bar.add_task("points", total=total, left=self._left_text())

    def __enter__(self):
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_exc):
        if self._bar:
            self._bar.stop()

    @property
    def is_over(self) -> bool:
        return self._done >= self._total

    def say(self, text: str) -> None:
        if self._bar:
            self._bar.console.print(text, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def advance(self, cost_s: float) -> None:
        """A point of COST_S, as estimated, has ended."""
        self._done += 1
        self._left.ended(cost_s)
        if self._bar:
            self._bar.update(self._task, advance=1, left=self._left_text())
        elif self.is_over:
            self._tell()
        elif time.monotonic() - self._idle_s >= PLAIN_PROGRESS_S:
            self.idle()

    def idle(self) -> None:
        """Nothing more has ended yet: say now and then how far it is. Points of other machines come
        many at once, so the first of them says little."""
        self._idle_s = time.monotonic()
        if self._bar:
            self._bar.update(self._task, left=self._left_text())
        elif self._done and self._idle_s - self._said_s >= PLAIN_PROGRESS_S:
            self._tell()

    def _left_s(self) -> float:
        return self._left.after_s(time.monotonic() - self._started_s)

    def _left_text(self) -> str:
        return str(datetime.timedelta(seconds=round(self._left_s())))

    def _tell(self) -> None:
        self._said_s = time.monotonic()
        spent_s = self._said_s - self._started_s
        left_s = 0.0 if self.is_over else self._left_s()
        self.say(f"{self._done} of {self._total} points, {spent_s:.0f} s, {left_s:.0f} s left")


def _meta(
    about, points, backend, started: float, sweep: Sweep, ended: float | None = None
) -> dict[str, Any]:
    """Return what a reader needs to run this again. Wall times are here and nowhere else."""
    first = points[0]
    return {
        **about,
        "command": shlex.join([*sys.argv[0].split(), *sys.argv[1:]]),
        "git_commit": commit(),
        "git_dirty": is_dirty(),
        **backend.describe(),
        "points": len(points),
        "points_of_earlier_runs": sweep.reused,
        "failures": sweep.failures,
        "algorithms": sorted({point.algorithm for point in points}),
        "seeds": sorted({point.seed for point in points}),
        "tc_commands_of_first_point": {
            hop: lablink.describe(hop, link_of(link))
            if hop in first.spec["lablinks"]
            else link_of(link).tc_command(hop, link["seed"])
            for hop, link in first.spec["links"].items()
        },
        "started": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat(),
        "wall_s": None if ended is None else round(ended - started, 2),
        "host_cpus": os.cpu_count(),
    }


def commit() -> str:
    """Return what the checkout is of; nothing where git does not tell."""
    return git.told("rev-parse", "HEAD")


def is_dirty() -> bool:
    """Say whether results may have come of what is in no commit. A new file counts where it could
    be a part of the lab or of our modules, and nowhere else."""
    if git.told("status", "--porcelain", "--untracked-files=no"):
        return True
    return bool(git.told("ls-files", "--others", "--exclude-standard", "--", *PARTS))
