# SPDX-License-Identifier: GPL-2.0-only
"""When a process of the guest goes on, and who goes first of several that wake at an instant.

That must not hang on the fair scheduler's memory of what ran before: real-time priorities decide.
"""

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TIMER_ABSTIME = 1
WORKER_PRIORITY, FLOW_PRIORITY, SINK_PRIORITY, PROBE_PRIORITY, TAP_PRIORITY = 1, 10, 20, 30, 40
SOFTIRQ_PRIORITY = 50
MEDIUM_PRIORITY = 5  # it takes what all of them sent in an instant at once


def sleep_until_ns(time_ns: int) -> None:
    """Sleep until CLOCK_MONOTONIC is TIME_NS, to the ns: time.sleep() of a difference of floats
    may be one off, and by how much would hang on when the point runs."""
    until = (ctypes.c_long * 2)(*divmod(time_ns, 10**9))
    clock_nanosleep = ctypes.CDLL(None).clock_nanosleep
    error = clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, ctypes.byref(until), None)
    if error:
        raise OSError(error, "clock_nanosleep")


def set_priority(priority: int, pid: int = 0) -> None:
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(priority))


@contextmanager
def with_priority(priority: int) -> Iterator[None]:
    """Meanwhile this thread has PRIORITY, and what it starts will keep it."""
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    set_priority(priority)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, param)


def let_softirqs_go_first() -> None:
    """What a burst leaves to ksoftirqd goes on before any program, as what it did not leave."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if comm.read_text().startswith("ksoftirqd/"):
                set_priority(SOFTIRQ_PRIORITY, int(comm.parent.name))
