# SPDX-License-Identifier: GPL-2.0-only
"""What a shell offers when the user presses Tab. Nothing here is built or run."""

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from lab.ask import linkmodels, scenario
from lab.ask.algorithms import ALGORITHMS
from lab.run.backends import BACKENDS, BOOTED
from lab.run.backends.virtual import GUEST_MEMORY_MB
from lab.run.backends.vm import WATCHED

DEBIAN_KERNELS = ("6.1", "6.12")  # that are named in most cases; others are taken, too


def scenarios(incomplete: str) -> list[str]:
    """Return the names of scenarios that begin with INCOMPLETE."""
    return [p.stem for p in scenario.list_scenarios() if p.stem.startswith(incomplete)]


def listed(known: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what offers lists, with commas, of the names that KNOWN gives."""

    def offered(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        names = [name for name in known() if name.startswith(last) and name not in given]
        return [before + comma + name for name in names]

    return offered


algorithms = listed(lambda: ALGORITHMS)


def backends(incomplete: str) -> list[str]:
    """Return the backends that begin with INCOMPLETE."""
    return [name for name in BACKENDS if name.startswith(incomplete)]


def booted(incomplete: str) -> list[str]:
    """Return the backends that boot a kernel and begin with INCOMPLETE."""
    return [name for name in backends(incomplete) if name in BOOTED]


def models(incomplete: str) -> list[str]:
    """Return the models of links that begin with INCOMPLETE."""
    return [name for name in linkmodels.MODELS if name.startswith(incomplete)]


def kernels(incomplete: str) -> list[str]:
    """Return the kernels of virtual and of vm that begin with INCOMPLETE."""
    names = dict.fromkeys([*GUEST_MEMORY_MB, *WATCHED, *DEBIAN_KERNELS])
    return [name for name in names if name.startswith(incomplete)]


Kernel = Annotated[
    str,
    typer.Option(metavar="KERNEL", help="As testbed/run --help says.", autocompletion=kernels),
]
