# SPDX-License-Identifier: GPL-2.0-only
"""What commands of the lab have in common: how they are made, and some options."""

import os
from typing import Annotated

import typer

from lab.common.errors import BadInput

HELP = {"help_option_names": ["-h", "--help"]}


def new_app() -> typer.Typer:
    """Return an application for one command, whose help is plain text."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set an axis (loss_pct=1,5) or a key (run.duration_s=60). May be given more than"
        " once.",
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--module",
        metavar="PATH",
        help="A TCP module of your own: tcp_mine.c, a folder with a Kbuild (both are built"
        " against the kernel in use), or tcp_mine.ko. What it registers is run, also where no"
        " list names it. May be given more than once.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Points side by side.",
        show_default="all cores it may use; fewer in real time",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on in DIR; finished points are not run again.")
]
Scheduler = Annotated[
    str,
    typer.Option(
        metavar="tcp://HOST:PORT",
        help="Run points on the workers of this Dask scheduler (docs/cluster.md).",
    ),
]
Slurm = Annotated[
    int,
    typer.Option(
        metavar="N", help="Run points in N jobs of Slurm, each a Dask worker (docs/cluster.md)."
    ),
]


def check_alone(context: typer.Context, option: str, *beside: str) -> None:
    """Refuse what was given on the command line that OPTION has no use for: all but the parameters
    BESIDE it. Both by the names that the command's function has for them."""
    shown = {
        one.name: one.opts[-1] if one.param_type_name == "option" else one.metavar
        for one in context.command.params
    }
    for name in shown:
        given = context.get_parameter_source(name).name == "COMMANDLINE"
        if given and name not in (option, *beside):
            raise BadInput(f"{shown[option]} goes without {shown[name]}")


def overrides(settings: list[str] | None) -> dict[str, str]:
    """Return what --set gives: key -> text."""
    found = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise BadInput(f"--set {setting}: write it as KEY=VALUE")
        found[key] = value
    return found


def job_count(jobs: int) -> int:
    """Return how many points run side by side, in virtual time."""
    check_jobs(jobs)
    return jobs or usable_cpus()


def check_jobs(jobs: int) -> None:
    if jobs < 0:
        raise BadInput(f"--jobs {jobs}: at least 1")


def usable_cpus() -> int:
    """Return how many processors this process may use: by `taskset`, or in a container, fewer than
    the machine has."""
    return len(os.sched_getaffinity(0))


def check_seed(number: int | None) -> None:
    if number is not None and not 1 <= number <= 10_000:
        raise BadInput("seeds are numbers from 1 to 10000")


def names(text: str) -> tuple[str, ...]:
    """Return what is listed in TEXT with commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def chosen(option: str, text: str | None, usual: str) -> tuple[str, ...]:
    """Return what OPTION's TEXT lists, nothing where it was not given; that means USUAL."""
    if text is not None and not names(text):
        raise BadInput(f"{option} '{text}': it names none; leave it out for {usual}")
    return names(text or "")
