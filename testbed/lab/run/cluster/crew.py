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
RETRIES = 2  # of a batch whose machine could not run it


class Crew:
    """The workers of a scheduler. A worker that is killed costs time, nothing else: what it was at
    is run again by another, and what is finished is here."""

    def __init__(self, client, expected: int = 0):
        """CLIENT: distributed's; EXPECTED: threads that are to come."""
        self._client, self._expected = client, expected
        self._bundle, self._carrier, self._run_batch = "", "", None
        self._counted, self._counted_s = 0, -COUNTED_S

    def cores(self) -> int:
        """Return how many points run side by side, by what is known yet."""
        return max(self._threads(), self._expected, 1)

    def describe(self) -> dict[str, Any]:
        """Return what is run on, for meta.json."""
        return {"scheduler": self._client.scheduler.address, "threads": self._threads()}

    def carry(self, backend: Backend, points: list[Point]) -> None:
        """Send every worker, once, what BACKEND needs to run POINTS."""
        from lab.run.cluster import bundle, carried

        made = bundle.make(backend, points)
        carrier = carried.Carrier(made.name, made.packed)
        self._bundle, self._carrier = made.name, carrier.name
        self._run_batch = _ByValue(carried.run_batch)
        size_mb = len(made.packed) / 1e6
        threads = self._threads()
        print(
            f"run: {threads} threads of workers; kernel, modules and tools go to each machine once"
            f" ({size_mb:.1f} MB, {made.name})" + (": waiting for a worker" if not threads else ""),
            file=sys.stderr,
            flush=True,
        )
        try:
            self._client.register_plugin(carrier)
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
        from distributed import KilledWorker

        from lab.run.cluster.work import Batch, pack, unpack

        waiting, running = deque(batches), {}
        ready: queue.SimpleQueue = queue.SimpleQueue()
        try:
            while (waiting or running) and not stop.is_set():
                while waiting and len(running) < AHEAD * self.cores():
                    batch = waiting.popleft()
                    packed = pack(Batch(batch, {point.id for point in batch if keep(point)}))
                    future = self._client.submit(
                        self._run_batch, self._bundle, packed, pure=False, retries=RETRIES
                    )
                    running[future] = batch
                    future.add_done_callback(ready.put)
                try:
                    future = ready.get(timeout=0.2)
                except queue.Empty:
                    continue
                batch = running.pop(future)
                try:
                    ends = unpack(future.result())
                except KilledWorker:
                    why = "workers ended while they ran it, or points beside it"
                    ends = [Ended(point, error=why) for point in batch]
                except Exception as broken:
                    raise LabError(_in_words(broken)) from None
                for one in ends:
                    on_ended(one)
        finally:
            with suppress(Exception):  # where the scheduler is gone, so are they
                self._client.cancel(list(running))

    def leave(self) -> None:
        """Take back what the scheduler keeps for workers that are to come."""
        if self._carrier and self._client.status == "running":
            with suppress(Exception):  # it may go this very moment
                self._client.unregister_worker_plugin(self._carrier)

    def _threads(self) -> int:
        if time.monotonic() - self._counted_s >= COUNTED_S:
            self._counted = sum(self._client.nthreads().values())
            self._counted_s = time.monotonic()
        return self._counted


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


def _in_words(broken: Exception) -> str:
    from concurrent.futures import CancelledError

    if isinstance(broken, (CancelledError, OSError)):
        return "the scheduler is gone; what is finished is kept, and --resume goes on"
    return str(broken) or repr(broken)


def check(scheduler: str, slurm_jobs: int, jobs: int, backend: str) -> None:
    """Refuse what makes no sense before anything is built."""
    if not scheduler and not slurm_jobs:
        return
    if scheduler and slurm_jobs:
        raise BadInput("--scheduler takes machines that are there, --slurm asks for some: give one")
    if slurm_jobs < 0:
        raise BadInput(f"--slurm {slurm_jobs}: at least 1")
    if backend != "virtual":
        raise BadInput(f"--backend {backend} runs on this machine alone: leave out --scheduler")
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
def _connected(address, expected: int = 0) -> Iterator[Crew]:
    """The crew at ADDRESS, as text or a cluster of Dask's."""
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
        crew = Crew(client, expected)
        try:
            yield crew
        finally:
            crew.leave()


@contextmanager
def _slurm(jobs: int) -> Iterator[Crew]:
    """A scheduler here, and JOBS jobs of Slurm with a worker each; they end with the block."""
    import dask.config
    from dask_jobqueue import SLURMCluster

    _quiet()
    try:
        cluster = SLURMCluster()
    except ValueError as error:
        raise BadInput(
            f"what a Slurm job has is not told ({error}): write cores, memory and walltime below"
            " 'jobqueue: slurm:' in ~/.config/dask/jobqueue.yaml"
        ) from None
    with cluster:
        cluster.scale(jobs=jobs)
        with _connected(cluster, jobs * dask.config.get("jobqueue.slurm.cores")) as crew:
            yield crew


def _quiet() -> None:
    """Dask's own words about connections are not the user's business."""
    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
