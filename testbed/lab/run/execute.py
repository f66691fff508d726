# SPDX-License-Identifier: GPL-2.0-only
"""Run a command of the user's inside a booted kernel: `veno-lab exec`, `testbed/run --exec`."""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lab.common import options
from lab.common.errors import BadInput, unknown
from lab.run import completion, still_clock
from lab.run.backends import BACKENDS, open_backend
from lab.run.backends.base import Backend
from lab.run.cpus import claimed

PYTHON = "LAB_PYTHON"  # where programs inside find the Python that has the lab's packages

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
        typer.Option(metavar="DIR", help="Where what it writes to $LAB_OUT is kept."),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(metavar="NAME", help="virtual or vm.", autocompletion=completion.backends),
    ] = "virtual",
    kernel: Annotated[str, typer.Option(metavar="KERNEL", help="As testbed/run --help says.")] = "",
    cpus: Annotated[int, typer.Option(metavar="N", help="As testbed/run --help says.")] = 1,
) -> None:
    """Run a command, such as a Mininet script of yours, inside the lab kernel as root and in
    virtual time. The host's files are there, read-only. Options go before the command.

    \b
    Examples:
      testbed/veno-lab exec python3 my_mininet.py
      testbed/veno-lab exec --out /tmp/mine 'ss -ti | tee $LAB_OUT/ss'
      testbed/veno-lab exec --backend vm --kernel 6.1 uname -a

    Exit status: the command's own; 2 bad input.
    """
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    text = command[0] if len(command) == 1 else shlex.join(command)
    raise typer.Exit(run(text, partial(open_backend, backend, kernel, cpus), out))


def run(command: str, make_backend: Callable[[], Backend], out: Path | None) -> int:
    """Run a shell COMMAND on the backend that MAKE_BACKEND gives; return its exit status. What it
    writes to $LAB_OUT is kept in OUT, if given."""
    if out:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write {out}: {error.strerror}; choose another --out") from None
    backend = make_backend()
    command = f"export {PYTHON}={shlex.quote(sys.executable)}\n{command}"
    with claimed() as cpu:
        if backend.clock != "jumps" or backend.name != "virtual":
            return backend.run_command(command, cpu, out)
        with still_clock.watched():
            return backend.run_command(still_clock.told(command), cpu, out)
