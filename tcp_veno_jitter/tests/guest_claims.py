# SPDX-License-Identifier: GPL-2.0-only
"""Claims about the modules: how one is registered, and what they have in common."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

PUBLISHED = ("jtcp", "veno03", "tabe")  # whose window grows as Reno's
ALL = (*PUBLISHED, "veno_jitter")


@dataclass(frozen=True)
class Claim:
    text: str
    check: Callable[[str], None]
    algorithms: tuple[str, ...]


CLAIMS: list[Claim] = []


def claim(text: str, *algorithms: str):
    """Register a function that raises if TEXT does not hold for one of ALGORITHMS."""

    def register(check):
        CLAIMS.append(Claim(text, check, algorithms or ALL))
        return check

    return register


def near(value: float, wanted: float, by: float) -> None:
    assert abs(value - wanted) <= by, f"{value}, not {wanted} +- {by}"


def run_claims(name: str) -> int:
    """Check all claims about the module NAME and print TAP; return how many do not hold."""
    failed = 0
    for entry in CLAIMS:
        if name not in entry.algorithms:
            continue
        try:
            entry.check(name)
            print(f"ok - {entry.text}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok - {entry.text}", flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    return failed
