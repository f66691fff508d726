# SPDX-License-Identifier: GPL-2.0-only
"""What a shell offers when the user presses Tab. Nothing here is built or run."""

from lab.ask import scenario
from lab.ask.algorithms import ALGORITHMS
from lab.run.backends import BACKENDS


def scenarios(incomplete: str) -> list[str]:
    """Return the names of scenarios that begin with INCOMPLETE."""
    return [p.stem for p in scenario.list_scenarios() if p.stem.startswith(incomplete)]


def algorithms(incomplete: str) -> list[str]:
    """Return lists of algorithms, with commas, whose last one INCOMPLETE begins."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    names = [name for name in ALGORITHMS if name.startswith(last) and name not in given]
    return [before + comma + name for name in names]


def backends(incomplete: str) -> list[str]:
    """Return the backends that begin with INCOMPLETE."""
    return [name for name in BACKENDS if name.startswith(incomplete)]
