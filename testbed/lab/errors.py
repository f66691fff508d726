# SPDX-License-Identifier: GPL-2.0-only
"""The two ways in which a run can end badly."""

import difflib
from collections.abc import Iterable


class BadInput(Exception):
    """What the user asked for makes no sense. One line that names the cure; exit 2."""


class LabError(Exception):
    """The lab could not do what it was asked. One line and where to look; exit 1."""


def unknown(kind: str, name: str, known: Iterable[str]) -> BadInput:
    """Say that NAME is not one of KNOWN, and which one was probably meant: one that it is the
    beginning of, or else the closest."""
    choices = sorted(known)
    longer = [choice for choice in choices if name and choice.startswith(name)]
    close = sorted(longer, key=len)[:1] or difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return BadInput(f"unknown {kind} '{name}': {hint}there are {', '.join(choices) or 'none'}")
