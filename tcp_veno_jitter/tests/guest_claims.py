# SPDX-License-Identifier: GPL-2.0-only
"""Claims about the modules: how one is registered, and which modules there are."""

from labtest.claims import Claim

PUBLISHED = ("jtcp", "veno03", "tabe")  # whose window grows as Reno's
ALL = (*PUBLISHED, "veno_jitter")

CLAIMS: list[Claim] = []


def claim(text: str, *algorithms: str):
    """Register a function that raises if TEXT does not hold for one of ALGORITHMS."""

    def register(check):
        CLAIMS.append(Claim(text, check, algorithms or ALL))
        return check

    return register


def claims_about(name: str) -> list[Claim]:
    """Return the claims about the module NAME."""
    return [claim for claim in CLAIMS if name in claim.about]
