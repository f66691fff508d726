# SPDX-License-Identifier: GPL-2.0-only
"""The machines of a sweep, as a Dask scheduler knows them: `--scheduler`, `--slurm`."""

import logging
import queue
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lab.ask.points import Point
from lab.common.errors import BadInput, LabError
from lab.run.backends.base import Backend
from lab.run.ended import Ended

CONNECT_S = 15.0
AHEAD = 2  # so many batches for each thread are with the scheduler: more would only lie there
COUNTED_S = 2.0  # workers come and go: so often they are counted
RESULT_S = 60.0  # so long a result may be on its way; then its worker took it along
GONE = "the scheduler is gone; what is finished is kept, and --resume goes on"


class Crew:
    """The workers of a scheduler. A worker that is killed costs time, nothing else: what it was at
    is run again by another, and what is finished is here. One that cannot run points is left out,
    as long as there are others."""

    def __init__(self, client, expected: int = 0, summon: Callable[[], None] = lambda: None):
        """CLIENT: distributed's; EXPECTED: threads that are to come once SUMMON was called."""
        self._client, self._expected, self._summon = client, expected, summon
        self._carrier, self._run_batch = "", None
        self._threads: dict[str, int] = {}  # of each worker, by its address
        self._counted_s = -COUNTED_S
        self._refused: dict[str, str] = {}  # worker -> why it can run no points

    def cores(self) -> int:
        """Return how many points run side by side, by what is known yet."""
        return max(self._able(), self._expected, 1)

    def describe(self) -> dict[str, Any]:
        """Return what is run on, for meta.json."""
        address = self._asked(lambda: self._client.scheduler.address)
        return {"scheduler": address, "threads": self._able()}

    def carry(self, backend: Backend, points: list[Point]) -> None:
        """Send every worker, once, what BACKEND needs to run POINTS."""
        from lab.run.cluster import bundle, carried

        self._check_python()
        made = bundle.make(backend, points)
        self._summon()
        carrier = carried.Carrier(made.name, made.packed)
        self._carrier, self._run_batch = carrier.name, _ByValue(carried.run_batch)
        size_mb = len(made.packed) / 1e6
        threads = self._able()
        print(
            f"run: {threads} threads of workers; kernel, modules and tools go to each machine once"
            f" ({size_mb:.1f} MB, {made.name})" + (": waiting for a worker" if not threads else ""),
            file=sys.stderr,
            flush=True,
        )
        try:
            self._asked(lambda: self._client.register_plugin(carrier))
        except LabError:
            raise
        except Exception as refused:
            raise LabError(f"a worker cannot take the lab: {refused}") from None

    def work(
        self,
        batches: list[list[Point]],
        keep: Callable[[Point], bool],
        on_ended: Callable[[Ended], None],
        stop: threading.Event,
    ) -> None:
        """Have BATCHES run, and report each point; until STOP is set."""
        flow = _Flow(self, batches, keep, on_ended)
        try:
            while flow.goes_on() and not stop.is_set():
                flow.send()
                with suppress(queue.Empty):
                    flow.take(flow.ready.get(timeout=0.2))
        finally:
            flow.close()

    def leave(self) -> None:
        """Take back what the scheduler keeps for workers that are to come."""
        if self._carrier and self._client.status == "running":
            with suppress(Exception):  # it may go this very moment
                self._client.unregister_worker_plugin(self._carrier)

    def submit(self, batch: bytes, able: list[str] | None):
        """Have a packed BATCH run by one of the workers ABLE, or by any; return the future of
        (worker, what it lacks, what is kept)."""
        return self._asked(lambda: self._client.submit(
            self._run_batch, self._carrier, batch, pure=False, retries=0, workers=able
        ))  # fmt: skip

    def cancel(self, futures: list) -> None:
        with suppress(Exception):  # where the scheduler is gone, so are they
            self._client.cancel(futures)

    def refuse(self, worker: str, lack: str) -> None:
        """Send WORKER no more, as it LACKs something; the others go on."""
        if worker not in self._refused:
            print(f"run: {lack}; this worker is left out", file=sys.stderr, flush=True)
        self._refused[worker] = lack

    def able(self) -> list[str] | None:
        """Return the workers that can run points: None, where there is nothing against any, and
        none as long as others may come; LabError if there is none and none is to come."""
        threads = self._count()
        if not self._refused:
            return None
        able = [worker for worker in threads if worker not in self._refused]
        if not able and sum(threads.values()) >= self._expected:
            *_, last = self._refused.values()
            raise LabError(f"no worker is left that can run points: {last}")
        return able

    def in_words(self, broken: Exception) -> str:
        """Return what BROKEN, which Dask has raised, means for the run."""
        if self._is_gone(broken):
            return GONE
        self._check_python()  # who has another one may fail in any way
        return str(broken) or repr(broken)

    def _is_gone(self, error: Exception) -> bool:
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError

        lost = isinstance(error, (CancelledError, CommClosedError))
        return lost or self._client.status != "running"

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Return the answer to a QUESTION to the scheduler, which may have gone meanwhile."""
        try:
            return question()
        except Exception as error:
            if self._is_gone(error):
                raise LabError(GONE) from None
            raise

    def _check_python(self) -> None:
        """Refuse workers of another Python: what goes there is compiled, and means something else
        there."""
        told = self._asked(lambda: self._client.get_versions())
        own = _minor(told["client"])
        other = {at: _minor(one) for at, one in told["workers"].items() if _minor(one) != own}
        for worker, version in sorted(other.items()):
            raise LabError(
                f"the worker {worker} has Python {version}: start it with {own}, as it is here"
            )

    def _able(self) -> int:
        """Return how many threads the workers have that can run points."""
        threads = self._count().items()
        return sum(count for worker, count in threads if worker not in self._refused)

    def _count(self) -> dict[str, int]:
        if time.monotonic() - self._counted_s >= COUNTED_S:
            self._threads = self._asked(lambda: self._client.nthreads())
            self._counted_s = time.monotonic()
        return self._threads


class _Flow:
    """The batches of a run: those that wait, those with the scheduler, and what comes back."""

    def __init__(self, crew: Crew, batches, keep, on_ended):
        self._crew, self._keep, self._on_ended = crew, keep, on_ended
        self._waiting = deque(batches)
        # future -> its batch, and the workers that may run it, where that is not any
        self._running: dict[Any, tuple[list[Point], list[str] | None]] = {}
        self.ready: queue.SimpleQueue = queue.SimpleQueue()

    def goes_on(self) -> bool:
        return bool(self._waiting or self._running)

    def send(self) -> None:
        """Give the scheduler as much as the workers have before them, and what is only for workers
        that are no more to others."""
        from lab.run.cluster.work import Batch, pack

        able = self._crew.able()
        if able is not None:
            for future, (_, of) in list(self._running.items()):
                if of is not None and not set(of) & set(able):
                    self._put_back(future)
        while self._waiting and able != [] and len(self._running) < AHEAD * self._crew.cores():
            batch = self._waiting.popleft()
            packed = pack(Batch(batch, {point.id for point in batch if self._keep(point)}))
            future = self._crew.submit(packed, able)
            self._running[future] = batch, able
            future.add_done_callback(self.ready.put)

    def take(self, future) -> None:
        """Report the points of FUTURE, which is done; put them back if its worker cannot run
        them."""
        from distributed import KilledWorker

        from lab.run.cluster.work import unpack

        if future not in self._running:
            return  # it was put back
        batch, _ = self._running[future]
        try:
            worker, lack, kept = future.result(timeout=RESULT_S)
            ends = [] if lack else unpack(kept)
        except KilledWorker:
            why = "workers ended while they ran it, or points beside it"
            worker, lack, ends = "", "", [Ended(point, error=why) for point in batch]
        except TimeoutError:
            self._put_back(future)
            return
        except Exception as broken:
            raise LabError(self._crew.in_words(broken)) from None
        del self._running[future]
        if lack:
            self._crew.refuse(worker, lack)
            self._waiting.appendleft(batch)
        for one in ends:
            self._on_ended(one)

    def _put_back(self, future) -> None:
        batch, _ = self._running.pop(future)
        self._crew.cancel([future])
        self._waiting.appendleft(batch)

    def close(self) -> None:
        """Keep what has come back, and take back the rest."""
        while not self.ready.empty():
            future = self.ready.get_nowait()
            if future.status == "finished":
                with suppress(Exception):  # the run ends by what came first
                    self.take(future)
        self._crew.cancel(list(self._running))


def _minor(told: dict[str, Any]) -> str:
    """Return the Python of one of those that Client.get_versions() tells of, as 3.11."""
    return ".".join(told["host"]["python"].split(".")[:2])


class _ByValue:
    """What is pickled whole, as neither scheduler nor workers have the lab."""

    def __init__(self, what: Any):
        import cloudpickle

        from lab.run.cluster import carried

        cloudpickle.register_pickle_by_value(carried)
        self._packed = cloudpickle.dumps(what)

    def __reduce__(self):
        import cloudpickle

        return cloudpickle.loads, (self._packed,)

    def __call__(self, *arguments):
        """Never called here: for Dask to see that it can be."""
        raise NotImplementedError


def check(scheduler: str, slurm_jobs: int, jobs: int, backend: str) -> None:
    """Refuse what makes no sense before anything is built."""
    if not scheduler and not slurm_jobs:
        return
    if scheduler and slurm_jobs:
        raise BadInput("--scheduler takes machines that are there, --slurm asks for some: give one")
    if slurm_jobs < 0:
        raise BadInput(f"--slurm {slurm_jobs}: at least 1")
    if backend != "virtual":
        raise BadInput(f"--backend {backend} is of this machine alone: no --scheduler, no --slurm")
    if jobs:
        raise BadInput("--jobs is of this machine; each worker says its own (dask worker --help)")
    if slurm_jobs and not shutil.which("sbatch"):
        raise BadInput("no sbatch here: --slurm is for a login node of a Slurm cluster")


@contextmanager
def gathered(scheduler: str, slurm_jobs: int) -> Iterator[Crew | None]:
    """The crew at SCHEDULER, or in so many jobs of Slurm; nothing where neither is asked for."""
    if slurm_jobs:
        with _slurm(slurm_jobs) as crew:
            yield crew
    elif scheduler:
        with _connected(scheduler) as crew:
            yield crew
    else:
        yield None


@contextmanager
def _connected(
    address, expected: int = 0, summon: Callable[[], None] = lambda: None
) -> Iterator[Crew]:
    """The crew at ADDRESS, as text or a cluster of Dask's; EXPECTED, SUMMON: see Crew."""
    from distributed import Client

    _quiet()
    try:
        client = Client(address, timeout=CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(
            f"no Dask scheduler answers at {address} ({error}): start one with 'dask scheduler',"
            " or check the address, tcp://HOST:PORT"
        ) from None
    with client:
        crew = Crew(client, expected, summon)
        try:
            yield crew
        finally:
            crew.leave()


@contextmanager
def _slurm(jobs: int) -> Iterator[Crew]:
    """A scheduler here, and JOBS jobs of Slurm with a worker each, which are asked for when there
    is something to run, and end with the block. Others have accounts on such a machine: the
    scheduler and the workers know each other by certificates of this run, which the nodes find in
    the folder of builds, and what shows the scheduler's state is of this machine alone."""
    import dask.config
    from dask_jobqueue import SLURMCluster

    from lab.run.cluster.work import cache

    _quiet()
    of_user = dask.config.get("jobqueue.slurm.scheduler-options", None) or {}
    shared = dask.config.get("jobqueue.slurm.shared-temp-directory", None) or str(cache())
    try:
        cluster = SLURMCluster(
            processes=dask.config.get("jobqueue.slurm.processes") or 1,
            security=True,
            shared_temp_directory=shared,
            scheduler_options={"dashboard_address": "127.0.0.1:0", **of_user},
        )
    except ValueError as error:
        raise BadInput(
            f"what a Slurm job has is not told ({error}): write cores, memory and walltime below"
            " 'jobqueue: slurm:' in ~/.config/dask/jobqueue.yaml"
        ) from None
    with cluster:
        threads = jobs * dask.config.get("jobqueue.slurm.cores")
        with _connected(cluster, threads, lambda: cluster.scale(jobs=jobs)) as crew:
            yield crew


def _quiet() -> None:
    """Dask's own words about connections are not the user's business."""
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
