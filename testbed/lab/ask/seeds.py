# SPDX-License-Identifier: GPL-2.0-only
"""What a seed means: a number of its own for each purpose, the same on every machine."""

import hashlib

SEED_BITS = 63
START_SPREAD_S = 0.1  # flows start this much later at most, as the seed says


def derived_seed(seed: int, purpose: str) -> int:
    """Return a 63-bit seed for PURPOSE. The algorithm is not in it: all see the same losses."""
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def fraction(seed: int, purpose: str) -> float:
    """Return a number for PURPOSE that is uniform in [0, 1)."""
    return derived_seed(seed, purpose) / 2.0**SEED_BITS
