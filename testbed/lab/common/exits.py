# SPDX-License-Identifier: GPL-2.0-only
"""How every command of the lab ends: one line and an exit status for what can go wrong."""

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from typer import Abort
from typer.exceptions import TyperException

from lab.common.errors import BadInput, LabError
from lab.common.names import as_called

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_GATE, EXIT_NOT_MEASURED, EXIT_INTERRUPTED = 1, 2, 3, 4, 130
EXIT_REGRESSION, EXIT_CANNOT_TELL = 1, 125  # of diff; the second: what `git bisect run` skips
ANSWERS = (0, EXIT_REGRESSION, EXIT_INTERRUPTED)  # of `diff --bisect`, besides that


def run(command: Callable[..., object], name: str, program: str, shown: str = "") -> NoReturn:
    """Run COMMAND, a typer application, and end. NAME: what begins a line of complaint; PROGRAM:
    what the user typed, for what results say of how they were made; SHOWN: the same for help."""
    signal.signal(signal.SIGTERM, _end_once)
    sys.argv[0] = program
    status = 0
    try:
        status = command(prog_name=shown or program, standalone_mode=False) or 0
    except TyperException as error:
        _misused(error, name, shown or program, program)
        status = EXIT_BAD_INPUT
    except Abort as error:  # of typer, for the end of a file amid it
        _say(name, f"aborted: {error.__cause__ or 'by the command'}")
        status = EXIT_FAILED
    except BadInput as error:
        _say(name, error)
        status = EXIT_BAD_INPUT
    except LabError as error:
        _say(name, error)
        status = EXIT_FAILED
    except SystemExit as ended:
        status = ended.code
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    if status == EXIT_INTERRUPTED and not _told:  # typer makes that of Ctrl-C, without a word
        print(f"{name}: interrupted; what was built or finished so far is kept", file=sys.stderr)
    sys.exit(status)


_told: list[str] = []  # what was said of an interruption


def tell_interrupted(line: str) -> None:
    """Say LINE, of what has been interrupted and how it goes on."""
    print(line, file=sys.stderr)
    _told.append(line)


def _end_once(_number: int, _frame: object) -> None:
    """End as by Ctrl-C. `timeout` sends SIGTERM to a process and to its group: the second would
    break off what the first has begun, which is to keep what is finished."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _misused(error: TyperException, name: str, shown: str, program: str) -> None:
    """Say in one line what typer would say in four. A command that needs arguments and got none
    shows its help instead."""
    context = getattr(error, "ctx", None)
    told = error.format_message()
    if context and told == context.get_help():
        print(as_called(told), file=sys.stderr)
        return
    told = " ".join(told.split()).rstrip(".")
    if context:
        path = program + context.command_path.removeprefix(shown)
        told = f"{told[0].lower()}{told[1:]}: see {path} {context.help_option_names[0]}"
    _say(name, told)


def _say(name: str, error: Exception | str) -> None:
    if str(error):
        print(f"{name}: {as_called(str(error))}", file=sys.stderr)
