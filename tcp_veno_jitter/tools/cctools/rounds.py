# SPDX-License-Identifier: GPL-2.0-only
"""Rounds of transfers: each algorithm once a round, in random order, with idle gaps between."""

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from cctools.pinging import pinging
from cctools.sequence import log_ratio
from cctools.transfers import Failed, Refused, Run, Traffic

FAILURES_IN_A_ROW = 3  # then the path is gone, not one transfer
Slot = tuple[str, str]  # direction and algorithm


@dataclass(frozen=True)
class Plan:
    """What to run. SECONDS: of a transfer; GAP_S: idle before each; ROUNDS: at most so many;
    LIMIT_S: no round begins after it. PING: the host to ping beside, or nothing."""

    algorithms: tuple[str, ...]
    directions: tuple[str, ...]
    seconds: float
    gap_s: float
    rounds: int
    limit_s: float | None
    ping: str
    family: str
    seed: int

    def slots(self) -> set[Slot]:
        """Return each algorithm in each direction."""
        return set(itertools.product(self.directions, self.algorithms))

    def order(self, number: int, wanted: set[Slot]) -> list[Slot]:
        """Return the slots of round NUMBER, of those WANTED: all orders of the algorithms are
        equally likely, one direction after the other in a random order as well."""
        chance = random.Random(f"{self.seed}/{number}")
        directions = chance.sample(self.directions, len(self.directions))
        return [
            (direction, algorithm)
            for direction in directions
            for algorithm in chance.sample(self.algorithms, len(self.algorithms))
            if (direction, algorithm) in wanted
        ]


def run_once(traffic: Traffic, plan: Plan, run: Run) -> Run:
    """Return RUN with what came of it."""
    place = (run.round, run.slot, run.direction, run.algorithm, run.at_s)
    told = []
    try:
        if plan.ping:
            with pinging(plan.ping, plan.family) as told:
                transfer = traffic.transfer(run.algorithm, run.direction, plan.seconds)
        else:
            transfer = traffic.transfer(run.algorithm, run.direction, plan.seconds)
    except Refused:
        raise
    except Failed as failure:
        return Run(*place, failure=str(failure))
    return Run(*place, transfer=transfer, ping=told[0] if told else None)


def run_rounds(
    traffic: Traffic,
    plan: Plan,
    unsettled: Callable[[list[Run]], set[Slot]],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Run]:
    """Give each run as it ends, until no slot is UNSETTLED after the whole rounds so far, or the
    plan's limit. What is settled is left out from then on.

    Failed: nothing gets through any more.
    """
    done: list[Run] = []
    wanted = plan.slots()
    began_s = clock()
    for number in range(plan.rounds):
        if plan.limit_s is not None and clock() - began_s >= plan.limit_s:
            return
        for slot, (direction, algorithm) in enumerate(plan.order(number, wanted)):
            sleep(plan.gap_s)
            at_s = clock() - began_s
            run = run_once(traffic, plan, Run(number, slot, direction, algorithm, at_s))
            done.append(run)
            yield run
            last = done[-FAILURES_IN_A_ROW:]
            if len(last) == FAILURES_IN_A_ROW and all(one.failure for one in last):
                raise Failed(f"{FAILURES_IN_A_ROW} transfers in a row failed: {run.failure}")
        wanted = unsettled(done)
        if not wanted:
            return


# --- what they say, as columns -----------------------------------------------


def speed(run: Run) -> float | None:
    return run.transfer.speed if run.transfer else None


def goodput_mbps(run: Run) -> float | None:
    return run.transfer.goodput_mbps if run.transfer else None


def seconds(run: Run) -> float | None:
    return run.transfer.seconds if run.transfer else None


def tcp_rtt_ms(run: Run) -> float | None:
    """The flow's own RTT under load, as its TCP_INFO has it."""
    return run.transfer.rtt_ms if run.transfer else None


def ping_rtt_ms(run: Run) -> float | None:
    """What anybody else's packets have beside the flow."""
    return run.ping.rtt_ms if run.ping else None


def retransmits(run: Run) -> float | None:
    return run.transfer.retransmits if run.transfer else None


def retransmitted_percent(run: Run) -> float | None:
    return run.transfer.retransmitted_percent if run.transfer else None


Column = Callable[[Run], float | None]


def in_common(runs: list[Run], direction: str, algorithm: str) -> list[Run]:
    """Return the runs of DIRECTION in the rounds that ALGORITHM was in."""
    here = [run for run in runs if run.direction == direction]
    numbers = {run.round for run in here if run.algorithm == algorithm}
    return [run for run in here if run.round in numbers]


def values(runs: list[Run], direction: str, algorithm: str, column: Column) -> list[float]:
    """Return the figures of COLUMN that there are, in the order in which they were measured."""
    found = (
        column(run) for run in runs if (run.direction, run.algorithm) == (direction, algorithm)
    )
    return [value for value in found if value is not None]


def middle(runs: list[Run], direction: str, algorithm: str, column: Column) -> float | None:
    """Return the median of COLUMN; None if it has no figure."""
    found = values(runs, direction, algorithm, column)
    return median(found) if found else None


def log_ratios(
    runs: list[Run], direction: str, algorithm: str, baseline: str, column: Column
) -> list[float]:
    """Return log(algorithm / baseline) of each round that has both."""
    rounds: dict[int, dict[str, float]] = defaultdict(dict)
    for run in runs:
        value = column(run)
        if run.direction == direction and value is not None:
            rounds[run.round][run.algorithm] = value
    return [
        log_ratio(found[algorithm], found[baseline])
        for found in rounds.values()
        if algorithm in found and baseline in found
    ]


def pings(runs: list[Run], direction: str, algorithm: str) -> tuple[int, int]:
    """Return how many pings beside ALGORITHM got no answer, and how many there were."""
    found = [
        run.ping
        for run in runs
        if run.ping and (run.direction, run.algorithm) == (direction, algorithm)
    ]
    return sum(ping.lost for ping in found), sum(ping.sent for ping in found)


def spread(figures: list[float]) -> float | None:
    """Return by what factor FIGURES of one and the same algorithm differ: upper over lower
    quartile."""
    ordered = sorted(figures)
    if len(ordered) < 4 or ordered[0] <= 0:
        return None
    lower, upper = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    return upper / lower


def pairs(algorithms: tuple[str, ...], directions: tuple[str, ...], baseline: str):
    """Give direction and algorithm of each comparison with BASELINE."""
    return [pair for pair in itertools.product(directions, algorithms) if pair[1] != baseline]
