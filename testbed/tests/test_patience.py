# SPDX-License-Identifier: GPL-2.0-only
"""Whether a guest is hung is told from one that the machine has no time for."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from test_lab import short_points

from lab.run.patience import IDLE_S, Patience, is_willing, used_s

SPINS = "while True: pass"
SLEEPS = "import time; time.sleep(1000)"
CHILD_SPINS = "import os, time\nif not os.fork():\n    e = time.process_time\n" \
    "    while e() < 0.5: pass\n    os._exit(0)\nos.wait()\ntime.sleep(1000)"  # fmt: skip


@pytest.fixture
def session():
    """Start a Python program as a session of its own; all are killed in the end."""
    started = []

    def start(program: str) -> int:
        started.append(subprocess.Popen([sys.executable, "-c", program], start_new_session=True))
        return started[-1].pid

    yield start
    for process in started:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()


def until(holds, limit_s=60.0) -> bool:
    end_s = time.monotonic() + limit_s
    while not (held := holds()) and time.monotonic() < end_s:
        time.sleep(0.02)
    return held


def test_who_spins_has_had_its_time(session):
    pid = session(SPINS)
    patience = Patience(pid, real=False)
    assert until(lambda: patience.ended(0.5))
    assert used_s(pid) > 0.5


def test_who_was_stopped_has_not(session):
    """Nor does it use any meanwhile; when it goes on, it has."""
    pid = session(SPINS)
    assert until(lambda: used_s(pid) > 0)
    os.kill(pid, signal.SIGSTOP)
    patience = Patience(pid, real=False)
    assert is_willing(pid)
    end_s = time.monotonic() + IDLE_S + 1
    while time.monotonic() < end_s:
        assert not patience.ended(0.2)
        time.sleep(0.02)
    os.kill(pid, signal.SIGCONT)
    assert until(lambda: patience.ended(0.2))


def test_who_waits_for_nothing_is_given_up(session):
    """Without having used its time, but not at once."""
    pid = session(SLEEPS)
    assert until(lambda: not is_willing(pid))
    patience, began_s = Patience(pid, real=False), time.monotonic()
    assert until(lambda: patience.ended(0.2))
    assert time.monotonic() - began_s > IDLE_S and used_s(pid) < 5


def test_what_ended_counts(session):
    """A child's time is its parent's when it has ended."""
    pid = session(CHILD_SPINS)
    assert until(lambda: not is_willing(pid) and used_s(pid) >= 0.4)


def test_who_ends_meanwhile_is_left_out(session, monkeypatch):
    """Between two looks at /proc any process may end, also one of somebody else's."""
    pid = session(SPINS)

    def ended(look):
        def looked(path, *arguments, **options):
            if str(path) == f"/proc/{os.getpid()}/stat":
                raise ProcessLookupError(3, "No such process", str(path))
            return look(path, *arguments, **options)

        return looked

    monkeypatch.setattr(os, "stat", ended(os.stat))
    monkeypatch.setattr(os, "lstat", ended(os.lstat))
    assert until(lambda: used_s(pid) > 0) and is_willing(pid)


def test_a_real_clock_goes_on(session):
    patience = Patience(session(SLEEPS), real=True)
    assert until(lambda: patience.ended(0.2), 5)


def test_a_stopped_lab_goes_on_where_it_was(backend, monkeypatch):
    """As by Ctrl-Z, for longer than a point may take: the point ends well."""
    (point,) = short_points(backend, ["reno"], [1], "1")
    monkeypatch.setattr(type(backend), "point_limit_s", lambda *_: 3.0)
    begun = Patience.begin
    kernels, stopped = [], []

    def begin(self):
        begun(self)
        kernels.append(self._session)

    def stop_for_a_while():
        assert until(lambda: len(kernels) == 2)  # booted, and up
        os.kill(kernels[0], signal.SIGSTOP)
        time.sleep(5)
        stopped.append(is_willing(kernels[0]))
        os.kill(kernels[0], signal.SIGCONT)

    monkeypatch.setattr(Patience, "begin", begin)
    ended = []
    thread = threading.Thread(target=stop_for_a_while)
    thread.start()
    backend.run_batch([point], 0, lambda o: ended.append(o.error), threading.Event())
    thread.join()
    assert ended == [""] and stopped == [True]
