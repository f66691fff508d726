# SPDX-License-Identifier: GPL-2.0-only
"""How often cc-compare says what, on simulated paths: the table of docs/results/cc-compare.md.

    PYTHONPATH=testbed python tcp_veno_jitter/tests/compare_power.py [PATHS]

The paths are those of test_compare.py: noise that hangs together, a rate that changes in mid-run.
"""

import sys
from statistics import fmean

from test_compare import BY, compared, verdict

TIMES = (1.0, 1.1, 1.3, 1.8, 3.0, 0.3)


def row(times: float, paths: int) -> str:
    """Return what is said of an algorithm that carries so many TIMES the baseline's."""
    runs = [compared(seed, {"b": times}) for seed in range(paths)]
    found = [verdict.judge(*one, BY)[0] for one in runs]
    share = [
        sum(one.kind == kind for one in found) / paths
        for kind in (verdict.MORE, verdict.LESS, verdict.SAME, verdict.CANNOT_TELL)
    ]
    holds = sum(one.speed.low <= times <= one.speed.high for one in found) / paths
    rounds = fmean(len(one) / 2 for one, _ in runs)
    cells = [f"{times:g}", *(f"{100 * one:.1f} %" for one in (*share, holds)), f"{rounds:.1f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("| true ratio | more | less | same | cannot tell | interval holds it | rounds |")
    print("|---|---|---|---|---|---|---|")
    for ratio in TIMES:
        print(row(ratio, int((sys.argv[1:] or [1000])[0])), flush=True)
