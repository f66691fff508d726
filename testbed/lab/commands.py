# SPDX-License-Identifier: GPL-2.0-only
"""The command `testbed/veno-lab`: everything the lab does, each by a subcommand.

A subcommand is a module with an application of its own, `app`, which is imported only when it is
asked for. `testbed/run` and `testbed/traces` are two of them by another name.
"""

import sys
import tomllib
import traceback
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperGroup

from lab.common import exits, options
from lab.common.errors import unknown
from lab.common.names import NAME, PROGRAM, TESTBED, as_called

BISECT = "--bisect"
SETUP = TESTBED / "setup"


@dataclass(frozen=True)
class Command:
    """MODULE has the application; WHAT it does and an EXAMPLE, in a few words."""

    module: str
    what: str
    example: str


COMMANDS = {
    "run": Command("lab.cli", "Run a scenario and report what came of it.", "run demo"),
    "list": Command("lab.show.listing", "List scenarios by what they ask.", "list tfrc"),
    "show": Command("lab.show.describe", "What a scenario asks, its path, its cost.",
                    "show veno-wan"),
    "exec": Command("lab.run.execute", "Run your own command inside the lab kernel.",
                    "exec python3 my_mininet.py"),
    "scorecard": Command("lab.show.scorecard.cli", "Answer RFC 9743 for an algorithm.",
                         "scorecard --module ./my_cc.c"),
    "papers": Command("lab.show.papers", "Run the papers' experiments; one table of their claims.",
                      "papers --quick"),
    "diff": Command("lab.judge.diff", "Is B worse than A? Runs, commits, kernels, modules.",
                    "diff results/before results/after"),
    "agree": Command("lab.judge.agree", "Do two backends measure the same?", "agree DIR DIR"),
    "ns3": Command("lab.run.ns3", "A run's points again, by ns-3's own TCP.", "ns3 DIR OUT"),
    "verdicts": Command("lab.judge.verdicts", "How often was a loss taken for what it was?",
                        "verdicts DIR --csv all.csv"),
    "rates": Command("lab.show.rates", "Draw flows' rates over time, and their losses.",
                     "rates DIR FIGURE.svg"),
    "report": Command("lab.show.reports", "The report of a run anew, or a page over many runs.",
                      "report results"),
    "publish": Command("lab.show.publish", "Make a run a page of docs/results.", "publish DIR"),
    "bench": Command("lab.run.bench", "How fast is the lab on this machine?", "bench"),
    "traces": Command("lab.show.tracestats", "What traces of links are like.", "traces starlink"),
    "doctor": Command("lab.run.doctor_app", "What this machine can do, and what is missing.",
                      "doctor"),
    "clean": Command("lab.run.clean", "Take away what killed runs left.", "clean"),
}  # fmt: skip


class Commands(TyperGroup):
    """The subcommands, each imported when it is wanted."""

    def list_commands(self, ctx) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx, cmd_name: str):
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(COMMANDS[cmd_name].module).app)
        command.name = cmd_name
        command.help = as_called(command.help)
        for parameter in command.params:
            if getattr(parameter, "help", None):
                parameter.help = as_called(parameter.help)
        return command

    def resolve_command(self, ctx, args: list[str]):
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise unknown("command", args[0], COMMANDS, f"{PROGRAM} --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.what) for name, command in COMMANDS.items()])
        with formatter.section("Examples"):
            examples = (f"{PROGRAM} {command.example}" for command in COMMANDS.values())
            formatter.write_text("\b\n" + as_called("\n".join(examples)))


app = typer.Typer(
    cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True,
    context_settings=options.HELP,
)  # fmt: skip


def _tell_version(asked: bool) -> None:
    """What to write into a report of a bug."""
    if not asked:
        return
    from lab.run import build, runner

    project = tomllib.loads((build.TESTBED / "pyproject.toml").read_text())["project"]
    of = f", commit {runner.commit()[:12]}" if runner.commit() else ""
    print(f"{NAME} {project['version']}{of}{' and changes' * runner.is_dirty()}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which, and end."),
]


@app.callback()
def main(version: Version = False) -> None:
    """The lab: the real kernel's network stack in virtual time, told by scenarios. COMMAND --help
    says more of each. `--install-completion` teaches your shell the names."""


def entry() -> None:
    """What testbed/veno-lab and the installed `veno-lab` start. `git bisect run` takes every status
    for a bad commit but 0, 125 and those that end it."""
    try:
        _start()
    except SystemExit as ended:
        if _bisects() and ended.code not in exits.ANSWERS:
            sys.exit(exits.EXIT_CANNOT_TELL)
        raise
    except Exception:
        if not _bisects():
            raise
        traceback.print_exc()
        sys.exit(exits.EXIT_CANNOT_TELL)


def _bisects() -> bool:
    return BISECT in sys.argv and sys.argv[1] != "exec"  # which may run anything


def _start() -> None:
    if not SETUP.exists():
        told = "this is a copy without the checkout that it needs: pip install -e CHECKOUT/testbed"
        print(f"{NAME}: {told}", file=sys.stderr)
        sys.exit(exits.EXIT_BAD_INPUT)
    if sys.argv[1:3] == ["run", "scorecard"]:  # as testbed/run has it
        del sys.argv[1]
    name = next((word for word in sys.argv[1:] if word in COMMANDS), NAME)
    exits.run(app, name, PROGRAM, NAME)  # completion is by the name alone


if __name__ == "__main__":
    entry()
