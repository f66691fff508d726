# SPDX-License-Identifier: GPL-2.0-only
"""Several processes at the kernel at once, and modules that come and go under them. Runs inside the
lab, on several processors, in real time. Standard library only."""

import contextlib
import ctypes
import errno
import itertools
import mmap
import os
import random
import resource
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labtest.guest import LIBC, run_cmd

UNLOADED_WITHIN_S = 30.0
WORKER_LIMIT_S = 60.0
COUNTER_BYTES = 8


def allow_files(count: int) -> None:
    """Let this process have so many files open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(count, most)))


def unload(module: str) -> int:
    """Unload MODULE as rmmod does; return the errno, 0 if it is gone."""
    ctypes.set_errno(0)
    return ctypes.get_errno() if LIBC.delete_module(module.encode(), os.O_NONBLOCK) else 0


def unload_unused(module: str) -> None:
    """Unload MODULE, which nobody chooses any more, as soon as the last who had it is gone."""
    end_s = time.monotonic() + UNLOADED_WITHIN_S
    while error := unload(module):
        assert error in (errno.EAGAIN, errno.EBUSY), errno.errorcode[error]
        assert time.monotonic() < end_s, f"{module} is still in use"
        time.sleep(0.001)


def load(module: str) -> None:
    run_cmd("modprobe", "-d", "/run/lab/modules", module)


def assert_held(module: str) -> None:
    """MODULE is in use, and so cannot be unloaded."""
    error = unload(module)
    assert error == errno.EAGAIN, f"{module}, in use: {errno.errorcode.get(error, 'unloaded')}"


@dataclass(frozen=True)
class Worker:
    """A process that does one thing over and over. COUNTER: in memory that is shared with it."""

    name: str
    pid: int
    counter: mmap.mmap

    @property
    def done(self) -> int:
        """How often it has done its thing."""
        return struct.unpack("=Q", self.counter)[0]


def _work(action: Callable[[], None], counter: mmap.mmap, cpu: int) -> None:
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    random.seed(os.getpid())
    cpus = os.cpu_count() or 1
    for done in itertools.count(1):
        if ending:
            return
        if done % 64 == 1:
            os.sched_setaffinity(0, {(cpu + done // 64) % cpus})
        action()
        struct.pack_into("=Q", counter, 0, done)


def _start(cpu: int, action: Callable[[], None]) -> Worker:
    counter = mmap.mmap(-1, COUNTER_BYTES)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            _work(action, counter, cpu)
            status = 0
        except BaseException:
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
        os._exit(status)
    return Worker(action.__name__, pid, counter)


@contextlib.contextmanager
def meanwhile(*actions: Callable[[], None]) -> Iterator[list[Worker]]:
    """Within the block each of ACTIONS is done over and over in a process of its own, on one
    processor after the other. AssertionError at the end if one failed, or was never done."""
    workers = [_start(cpu, action) for cpu, action in enumerate(actions)]
    try:
        yield workers
    finally:
        for worker in workers:
            os.kill(worker.pid, signal.SIGTERM)
        failed = [worker.name for worker in workers if os.waitpid(worker.pid, 0)[1]]
    idle = [worker.name for worker in workers if not worker.done]
    assert not failed and not idle, f"failed: {failed}; never done: {idle}"
    print("# meanwhile: " + ", ".join(f"{each.name} {each.done}" for each in workers), flush=True)


def wait_for_work(workers: list[Worker]) -> None:
    """Wait until each of them has done its thing once."""
    end_s = time.monotonic() + WORKER_LIMIT_S
    while not all(worker.done for worker in workers):
        assert time.monotonic() < end_s, [worker.name for worker in workers if not worker.done]
        time.sleep(0.01)
