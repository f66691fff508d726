# SPDX-License-Identifier: GPL-2.0-only
"""An interval for a ratio that may be looked at after each round, and stopped on.

Each round runs all algorithms once, in random order, and gives one difference d of logarithms for
each pair. If A carries theta times what B would have carried in the same slot, then d - log(theta)
is as often above 0 as below, by the random order alone: whatever the path did meanwhile, however
its noise hangs together from round to round. So a bet on these signs is a fair game. The capital
of the Krichevsky-Trofimov bettor, who starts with 1,

    M(above, below) = 2^n B(above + 1/2, below + 1/2) / B(1/2, 1/2),   n = above + below

ever reaches 1 / alpha with probability alpha at most (Ville 1939). The interval is of all theta
against which it has not: between two order statistics of d, and right at all times together, so
stopping when it looks good does not spoil it (a confidence sequence: Darling, Robbins 1967;
Howard, Ramdas 2022). No distribution is assumed.
"""

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median


@dataclass(frozen=True)
class Interval:
    """A ratio: the median of N rounds (or what is nearest to it between LOW and HIGH), and between
    what it is; LOW 0 and HIGH inf: not known."""

    ratio: float
    low: float
    high: float
    n: int

    @property
    def above(self) -> bool:
        return self.low > 1

    @property
    def below(self) -> bool:
        return self.high < 1

    @property
    def log_width(self) -> float:
        return math.log(self.high / self.low) if self.low > 0 else math.inf


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_capital(above: int, below: int) -> float:
    """Return log M, above."""
    return (above + below) * math.log(2) + _log_beta(above + 0.5, below + 0.5) - _log_beta(0.5, 0.5)


def log_ratio(value: float, reference: float) -> float:
    """Return log(VALUE / REFERENCE) of two that are not negative; 0 if both are 0."""
    if value <= 0 or reference <= 0:
        return math.inf if value > reference else -math.inf if value < reference else 0.0
    return math.log(value / reference)


def interval(log_ratios: Iterable[float], alpha: float) -> Interval:
    """Return the interval of the ratio that is wrong at any time with probability ALPHA at most.

    LOG_RATIOS: in the order of the rounds. What was excluded after any of them stays so; where
    nothing is left, as the ratio itself has changed, it is what all rounds together say.
    """
    ordered: list[float] = []
    low = lowest = -math.inf
    high = highest = math.inf
    for value in log_ratios:
        insort(ordered, value)
        n, beyond = len(ordered), _beyond(len(ordered), alpha)
        if beyond:
            low, high = ordered[beyond - 1], ordered[n - beyond]
            lowest, highest = max(lowest, low), min(highest, high)
    if not ordered:
        return Interval(math.nan, 0.0, math.inf, 0)
    if lowest <= highest:
        low, high = lowest, highest
    middle = min(max(median(ordered), low), high)
    return Interval(_exp(middle), _exp(low), _exp(high), len(ordered))


@cache
def _beyond(n: int, alpha: float) -> int:
    """Return how many of the smallest of N lie below every ratio that is left: against what is
    smaller still, the capital has come to 1 / ALPHA."""
    beyond = 0
    while beyond <= n // 2 and log_capital(n - beyond, beyond) >= math.log(1 / alpha):
        beyond += 1
    return beyond


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
