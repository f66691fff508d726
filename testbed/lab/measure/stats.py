# SPDX-License-Identifier: GPL-2.0-only
"""Medians with intervals that assume nothing of the distribution."""

import math
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Estimate:
    """A median over N seeds and its interval; COVERAGE is the chance that LOW..HIGH holds it."""

    median: float
    low: float
    high: float
    n: int
    coverage: float

    def text(self, digits: int = 2) -> str:
        return f"{self.median:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def estimate(values: list[float], confidence: float = 0.95) -> Estimate:
    """Return the median of VALUES with its order-statistic interval (sign test inverted).

    The interval between the k-th smallest and k-th largest value covers the median with
    probability 1 - 2 P(Binomial(n, 1/2) < k). The largest k that still reaches CONFIDENCE is
    taken; below six values none does, and the whole range is given with its true coverage.
    """
    if not values:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    n = len(ordered)
    k = 1
    while k + 1 <= n // 2 and _coverage(n, k + 1) >= confidence:
        k += 1
    return Estimate(median(ordered), ordered[k - 1], ordered[n - k], n, _coverage(n, k))


def _coverage(n: int, k: int) -> float:
    return max(0.0, 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n)


def jain_index(rates: list[float]) -> float:
    """Return Jain's fairness index of the flows' rates: 1 is equal, 1/n is one takes all."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0
