# SPDX-License-Identifier: GPL-2.0-only
"""Run a command of the user's inside a booted kernel: `veno-lab exec`, `testbed/run --exec`."""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from lab.common import options
from lab.common.errors import BadInput, unknown
from lab.run import completion, still_clock
from lab.run.backends import BACKENDS, BOOTED, open_backend
from lab.run.backends.base import Backend
from lab.run.backends.vm import WATCHED
from lab.run.cpus import claimed

PYTHON = "LAB_PYTHON"  # where programs inside find the Python that has the lab's packages
# Once a command has ended, its output has nothing to come but the kernel's "Power down", which has
# the highest level there is.
SILENCE = "echo 0 >/proc/sys/kernel/printk"

app = options.new_app()


@app.command(
    no_args_is_help=True, context_settings=options.HELP | {"allow_interspersed_args": False}
)
def main(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="One text for the shell, or a command's words."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep what it writes into $LAB_OUT here."),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(metavar="NAME", help="virtual or vm.", autocompletion=completion.booted),
    ] = "virtual",
    kernel: completion.Kernel = "",
    cpus: Annotated[int, typer.Option(metavar="N", help="As testbed/run --help says.")] = 1,
) -> None:
    """Run a command, such as a Mininet script of yours, inside the lab kernel as root and in
    virtual time. The host's files are there, read-only, and `python3` is the system's. What the
    command writes into the folder $LAB_OUT is kept with --out DIR; all else that it writes is gone
    when it ends. There is nothing that it could read (standard input). Options go before the
    command.

    \b
    Examples:
      testbed/veno-lab exec python3 my_mininet.py
      testbed/veno-lab exec --out /tmp/mine 'ss -ti | tee $LAB_OUT/ss'
      testbed/veno-lab exec --backend vm --kernel 6.1 uname -a

    Exit status: the command's own; 2 bad input.
    """
    check_backend(backend)
    text = command[0] if len(command) == 1 else shlex.join(command)
    raise typer.Exit(run(text, partial(open_backend, backend, kernel, cpus), out, kernel))


def check_backend(name: str) -> None:
    """Refuse a backend that a command cannot run on."""
    if name not in BACKENDS:
        raise unknown("backend", name, BACKENDS)
    if name not in BOOTED:
        raise BadInput(f"--backend {name}: a command needs no lab there, run it as it is")


def shell_text(command: str, kernel: str) -> str:
    """Return what the guest's shell does for COMMAND on KERNEL. The command has a shell of its own:
    whatever its text is, even no whole command, nothing else is read as a part of it, and its
    `wait`, `exit` and `exec` concern nothing else. It has nothing to read."""
    silence = [] if kernel in WATCHED else [SILENCE]
    lines = [
        f"export {PYTHON}={shlex.quote(sys.executable)}",
        f"sh -c -- {shlex.quote(command)} </dev/null",
        "ended=$?",
        *silence,
        "exit $ended",
    ]
    return "\n".join(lines)


def run(
    command: str, make_backend: Callable[[], Backend], out: Path | None, kernel: str = ""
) -> int:
    """Run a shell COMMAND on the backend that MAKE_BACKEND gives; return its exit status. What it
    writes to $LAB_OUT is kept in OUT, if given. A KERNEL that watches itself is heard to the
    end."""
    if out:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write {out}: {error.strerror}; choose another --out") from None
    backend = make_backend()
    command = shell_text(command, kernel)
    room = TemporaryDirectory(dir=backend.guest_room, ignore_cleanup_errors=True)
    with claimed() as cpu, room as spare:
        kept = out or Path(spare)
        if backend.clock != "jumps" or backend.name != "virtual":
            status = backend.run_command(command, cpu, kept)
        else:
            with still_clock.watched():
                status = backend.run_command(still_clock.told(command), cpu, kept)
        if not out and (lost := sorted(path.name for path in kept.iterdir())):
            print(
                f"lab: gone with $LAB_OUT: {', '.join(lost)}; --out DIR keeps it", file=sys.stderr
            )
    return status
