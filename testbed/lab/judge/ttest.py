# SPDX-License-Identifier: GPL-2.0-only
"""Student's t-test of paired differences, one-sided."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def p_below(differences: Sequence[float]) -> float:
    """Return how likely a mean at least as far below 0 as that of DIFFERENCES is, if the mean were
    0 and they normal. Where all of n are equal, as likely as n signs alike: 2^-n."""
    n = len(differences)
    mean = fmean(differences) if n else 0.0
    if n < 2 or mean == 0:
        return 1.0
    spread = stdev(differences)
    if spread == 0:
        return 2.0**-n if mean < 0 else 1.0
    return upper_tail(-mean / spread * math.sqrt(n), n - 1)


def upper_tail(t: float, freedom: int) -> float:
    """Return the chance that Student's t with FREEDOM (a whole number) is above T: the finite sums
    of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    odd = freedom % 2
    term = total = math.cos(angle) if odd else 1.0
    for i in range(2 + odd, freedom, 2):
        term *= cosine2 * (i - 1) / i
        total += term
    if freedom == 1:
        total = 0.0
    inside = math.sin(angle) * total
    if odd:
        inside = 2 / math.pi * (angle + inside)
    return (1 - inside) / 2
