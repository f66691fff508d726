# SPDX-License-Identifier: GPL-2.0-only
"""A program that spins stops the lab's clock: that is said, not left to be found out."""

import os
import signal
import subprocess
import sys

import pytest

from lab.run import execute, still_clock

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


def in_a_shell(text: str) -> tuple[int, str]:
    """Run TEXT as the guest's shell would and return its status and what it printed; what it leaves
    behind ends with it."""
    shell = subprocess.Popen(
        ["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    shell.stdin.write(text + "\n")
    shell.stdin.close()
    try:
        status = shell.wait(timeout=5)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
    return status, shell.stdout.read()


@pytest.mark.parametrize("kernel", ["", "debug"])
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("", 0, ""),
        ("# nothing", 0, ""),
        ("cat <<END\nas far as it goes", 0, "as far as it goes"),
        ("alias hello='echo hi'\nhello", 0, "hi"),
        ("echo 'it is open", 2, ""),
        ("echo a)", 2, ""),
        ("true & true & wait; echo both", 0, "both"),
        ("echo \"it's\" '$HOME'", 0, "it's $HOME"),
        ("-no-such-command", 127, ""),
        ("exit 7", 7, ""),
        ("exec sh -c 'exit 7'", 7, ""),
        ("echo $LAB_PYTHON", 0, sys.executable),
    ],
)
def test_a_command_is_all_that_its_shell_reads(monkeypatch, kernel, command, status, said):
    """Beside the clock, for which its `wait` does not wait; and the kernel is silent after it, but
    for one that watches itself."""
    monkeypatch.setattr(execute, "SILENCE", "echo silent")
    text = still_clock.told(execute.shell_text(command, kernel))
    ended, found = in_a_shell(text)
    assert found.replace("\n", "") == said + ("" if kernel else "silent")
    assert ended == status
