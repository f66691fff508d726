# SPDX-License-Identifier: GPL-2.0-only
"""Beginnings that are alike: of points, and of claims, that share a boot of a lab kernel. Runs in
the guest; standard library only."""

import time
from pathlib import Path

SEED_FILE = Path("/sys/module/random/parameters/lab_seed")
# A multiple of 4096 jiffies at 250 Hz: timers up to 262 s are rounded by the kernel's wheel
# to multiples of at most 4096 jiffies, and so in the same way for every beginning.
START_GRID_S = 65.536
# The kernel's jiffies wrap 300 s after boot; BBR, for one, compares a time of 0 with them.
FIRST_START_S = 10 * START_GRID_S
# Where the wall clock is then, by the seed: 2024-01-01, and up to a minute later
WALL_EPOCH_S, WALL_SPAN_MS = 1704067200, 60000


def is_lab_kernel() -> bool:
    """Is it one whose random numbers can be a seed's? Its time is virtual, too."""
    return SEED_FILE.exists()


def set_seed(seed: int) -> None:
    """Let all random numbers that the kernel draws from now on be the SEED's."""
    SEED_FILE.write_text(str(seed))


def set_wall_clock(seed: int, start_s: float) -> None:
    """Let the wall clock be the SEED's at START_S, whatever ran before in this boot."""
    ahead_s = start_s - time.clock_gettime(time.CLOCK_MONOTONIC)
    at_start_s = WALL_EPOCH_S + seed % WALL_SPAN_MS * 1e-3
    time.clock_settime(time.CLOCK_REALTIME, at_start_s - ahead_s)


def next_start_s(ready_s: float) -> float:
    """Return the first time to begin at after READY_S (monotonic)."""
    return max((ready_s // START_GRID_S + 1) * START_GRID_S, FIRST_START_S)


def start_alike(seed: int = 1) -> None:
    """Wait for a time that is like any other that this returns at; from then on the same random
    numbers are drawn and the wall clock shows the same, by the SEED. Lab kernels only."""
    now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    start_s = next_start_s(now_s + START_GRID_S)
    time.sleep(start_s - now_s)
    set_seed(seed)
    set_wall_clock(seed, start_s)
