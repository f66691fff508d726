# SPDX-License-Identifier: GPL-2.0-only
"""How many seeds are enough, and for what: the same wherever it is said."""

ENOUGH_SEEDS = 5  # below: a smoke test, not a result, and `diff` can be certain of nothing
SEEDS_FOR_95 = 6  # the fewest whose order-statistic interval of a median is a 95 % one
USUAL_SEEDS = 10
NEEDED = f"{ENOUGH_SEEDS} make a result, {SEEDS_FOR_95} a 95 % interval"


def count(seeds: int) -> str:
    return f"{seeds} seed{'s' * (seeds != 1)}"
