# SPDX-License-Identifier: GPL-2.0-only
"""Runs of the lab that a command of the lab starts, each a process of its own."""

import signal
import subprocess
from collections.abc import Mapping, Sequence

from lab.common.exits import EXIT_INTERRUPTED, tell_interrupted


def run_to_end(command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """Run COMMAND without its output and return its exit status. Whatever comes meanwhile, it is
    waited for: it keeps what is finished, which takes it a moment. Ctrl-C reaches it, too, as all
    of a terminal's job; SIGTERM is passed on. Then, and where it was interrupted itself, that is
    KeyboardInterrupt."""
    child: subprocess.Popen | None = None
    received: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        received.append(number)
        if child and received.count(signal.SIGTERM) == 1 and number == signal.SIGTERM:
            child.send_signal(number)

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
        if signal.SIGTERM in received:
            child.send_signal(signal.SIGTERM)
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received or status == EXIT_INTERRUPTED:
        tell_interrupted("interrupted: the same command goes on")
        raise KeyboardInterrupt
    return status
