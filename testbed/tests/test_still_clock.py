# SPDX-License-Identifier: GPL-2.0-only
"""A program that spins stops the lab's clock: that is said, not left to be found out."""

from lab.run import still_clock

SPIN = "/usr/bin/python3 -c 'for _ in range(3 * 10**8): pass'"


def run(backend, command: str) -> int:
    with still_clock.watched():
        return backend.run_command(still_clock.told(command), 0, None)


def test_a_clock_that_stands_still_is_said_once(backend, monkeypatch, capfd):
    monkeypatch.setattr(still_clock, "STILL_CPU_S", 3.0)
    assert run(backend, f"sleep 25; {SPIN}; echo done") == 0
    said = capfd.readouterr()
    assert "done" in said.out
    (line,) = (line for line in said.err.splitlines() if line.startswith("lab: "))
    assert "clock still is at 2" in line and "spins" in line


def test_a_clock_that_moves_is_not(backend, capfd):
    assert run(backend, "sleep 2000") == 0
    assert "clock" not in capfd.readouterr().err
