# SPDX-License-Identifier: GPL-2.0-only
"""The two ways in which a run can end badly."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FEW = 12  # so many choices are listed whole
NEAR = 3  # so many names are offered instead of one that is not there


class BadInput(Exception):
    """What the user asked for makes no sense. One line that names the cure; exit 2."""


class LabError(Exception):
    """The lab could not do what it was asked. One line and where to look; exit 1."""


@contextmanager
def writing(path: Path, cure: str = "choose another place") -> Iterator[None]:
    """Within the block PATH is written: if that cannot be, it is the user's choice of a place."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}; {cure}") from None


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """Return those of CHOICES that NAME was probably meant to be, the likeliest first: what it is
    the beginning of, what is spelled nearly so, what it is a part of."""
    ordered = sorted(choices)
    longer = [choice for choice in ordered if name and choice.startswith(name)]
    alike = difflib.get_close_matches(name, ordered, n=NEAR)
    around = [choice for choice in ordered if len(name) > 2 and name in choice]
    return list(dict.fromkeys([*sorted(longer, key=len), *alike, *around]))[:NEAR]


def unknown(kind: str, name: str, known: Iterable[str], see: str = "") -> BadInput:
    """Say that NAME is not one of KNOWN, and which ones were probably meant. SEE: what lists all
    of them, where they are many."""
    choices = sorted(known)
    near = [f"'{choice}'" for choice in nearest(name, choices)]
    meant = " or ".join([", ".join(near[:-1])] * bool(near[:-1]) + near[-1:])
    hint = f"did you mean {meant}?" if near else ""
    if len(choices) > FEW and (near or see):
        rest = f"{see} lists all {len(choices)}" if see else ""
    else:
        rest = f"there are {', '.join(choices) or 'none'}"
    return BadInput(f"unknown {kind} '{name}': {' '.join(filter(None, [hint, rest]))}")
