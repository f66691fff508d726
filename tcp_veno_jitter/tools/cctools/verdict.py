# SPDX-License-Identifier: GPL-2.0-only
"""What rounds say of an algorithm and the baseline, in words. Nothing is said that the interval
does not say."""

import math
from dataclasses import dataclass

from cctools import rounds
from cctools.rounds import Plan, Run, Slot
from cctools.sequence import Interval, interval
from cctools.transfers import REVERSE

MORE, LESS, SAME, CANNOT_TELL = "more", "less", "same", "cannot tell"
NARROW = math.log(1.25)  # high over low of an interval that is narrow enough, or:
NARROW_OF_EFFECT = 0.5  # of the logarithm of the ratio itself
HARM_RTT = 1.25  # times the baseline's
HARM_LOSS_POINTS = 1.0  # more pings lost, in percent of all, than beside the baseline,
HARM_LOSS_ERRORS = 3.0  # and more than so many standard errors
HARM_RETRANSMITTED = 2.0  # times the baseline's share, and
HARM_RETRANSMITTED_POINTS = 1.0  # percent more of its packets


@dataclass(frozen=True)
class Judge:
    """How to judge. ALPHA: chance that any verdict of the whole run is wrong, at most; SAME_WITHIN:
    a difference by less than this share is none that matters."""

    baseline: str
    alpha: float
    same_within: float


@dataclass(frozen=True)
class Verdict:
    """Of one algorithm in one direction, against the baseline."""

    direction: str
    algorithm: str
    kind: str
    speed: Interval
    rtt: Interval
    settled: bool
    words: str
    harm: tuple[str, ...]


def settled(ratio: Interval, same_within: float) -> str:
    """Return what the interval RATIO says: MORE, LESS, SAME or CANNOT_TELL."""
    band = math.log1p(same_within)
    if ratio.low > 0 and -band <= math.log(ratio.low) and math.log(ratio.high) <= band:
        return SAME
    return MORE if ratio.above else LESS if ratio.below else CANNOT_TELL


def narrow(ratio: Interval) -> bool:
    """Is it known well enough how much?"""
    if not 0 < ratio.ratio < math.inf:
        return ratio.above or ratio.below
    return ratio.log_width <= max(NARROW, NARROW_OF_EFFECT * abs(math.log(ratio.ratio)))


def rtt_column(runs: list[Run]) -> rounds.Column:
    """Return the RTT that there is: the flow's own, or that of pings beside it."""
    return rounds.tcp_rtt_ms if any(rounds.tcp_rtt_ms(run) for run in runs) else rounds.ping_rtt_ms


def judge(runs: list[Run], plan: Plan, by: Judge) -> list[Verdict]:
    """Return a verdict for each algorithm and direction. All speeds together are wrong with chance
    BY.alpha at most, however often one looks; so is each RTT by itself."""
    found = rounds.pairs(plan.algorithms, plan.directions, by.baseline)
    return [_judge_pair(runs, *pair, by, by.alpha / len(found)) for pair in found]


def _judge_pair(
    runs: list[Run], direction: str, algorithm: str, by: Judge, alpha: float
) -> Verdict:
    of = (direction, algorithm, by.baseline)
    here = rounds.in_common(runs, direction, algorithm)
    speed = interval(rounds.log_ratios(here, *of, rounds.speed), alpha)
    rtt = interval(rounds.log_ratios(here, *of, rtt_column(here)), by.alpha)
    kind = settled(speed, by.same_within)
    words = [_speed_words(here, direction, algorithm, by, kind, speed)]
    words += _rtt_words(here, direction, algorithm, by, rtt)
    harm = tuple(_harm(here, direction, algorithm, by, rtt))
    return Verdict(
        direction,
        algorithm,
        kind,
        speed,
        rtt,
        kind == SAME or (kind != CANNOT_TELL and narrow(speed)),
        "; ".join(words) + ".",
        harm,
    )


def unsettled(runs: list[Run], plan: Plan, by: Judge) -> set[Slot]:
    """Return what has no answer yet, and the baseline beside it."""
    asked = [one for one in judge(runs, plan, by) if not one.settled]
    return {
        (one.direction, algorithm) for one in asked for algorithm in (one.algorithm, by.baseline)
    }


# --- words -------------------------------------------------------------------


def figure(value: float) -> str:
    """Return VALUE with about three digits that count."""
    if not math.isfinite(value):
        return "any number"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


def bounds(ratio: Interval) -> str:
    return f"[{figure(ratio.low)}, {figure(ratio.high)}]"


def _speed_words(
    runs: list[Run], direction: str, algorithm: str, by: Judge, kind: str, speed: Interval
) -> str:
    baseline, times = by.baseline, figure(speed.ratio)
    timed = not any(rounds.goodput_mbps(run) for run in runs)
    if kind == SAME:
        share = 100 * (max(speed.high, 1 / speed.low) - 1)
        return f"cannot tell {algorithm} from {baseline}: any difference is below {share:.1f} %"
    if kind == CANNOT_TELL:
        return f"cannot tell {algorithm} from {baseline}: " + _why(runs, direction, baseline, speed)
    did = "was" if timed else "carried"
    of = f"as fast as {baseline}" if timed else f"{baseline}'s"
    return f"{algorithm} {did} {times} times {of} {bounds(speed)}"


def _why(runs: list[Run], direction: str, baseline: str, speed: Interval) -> str:
    """Return why it cannot be told, with the cure."""
    if not speed.n:
        return "no round has a figure of both"
    if not speed.low or math.isinf(speed.high):
        return f"{speed.n} rounds are too few for an answer"
    within = f"between {figure(speed.low)} and {figure(speed.high)} times as much"
    noise = rounds.spread(rounds.values(runs, direction, baseline, rounds.speed))
    if noise and noise > 1.1:
        within += f"; {baseline} alone differs by a factor of {figure(noise)} from round to round"
    return f"{within}; more rounds or longer transfers would tell more"


def _rtt_words(
    here: list[Run], direction: str, algorithm: str, by: Judge, rtt: Interval
) -> list[str]:
    column = rtt_column(here)
    own = rounds.middle(here, direction, algorithm, column)
    others = rounds.middle(here, direction, by.baseline, column)
    if own is None or others is None:
        return []
    what = "RTT under load" if column is rounds.tcp_rtt_ms else "pings beside it took"
    sure = "" if rtt.above or rtt.below else " (no difference that is certain)"
    return [f"{what} {figure(own)} against {figure(others)} ms{sure}"]


def _harm(runs: list[Run], direction: str, algorithm: str, by: Judge, rtt: Interval):
    """Give what others may suffer from, as far as it can be seen from here."""
    if rtt.above and rtt.ratio > HARM_RTT:
        yield f"its queue delays others: RTT {figure(rtt.ratio)} times {by.baseline}'s"
    lost, sent = rounds.pings(runs, direction, algorithm)
    lost_base, sent_base = rounds.pings(runs, direction, by.baseline)
    if sent and sent_base and _lost_more(lost, sent, lost_base, sent_base):
        yield (
            f"{100 * lost / sent:.1f} % of the pings beside it were lost,"
            f" {100 * lost_base / sent_base:.1f} % beside {by.baseline}"
        )
    again = rounds.middle(runs, direction, algorithm, rounds.retransmitted_percent)
    again_base = rounds.middle(runs, direction, by.baseline, rounds.retransmitted_percent)
    if (
        again is not None
        and again_base is not None
        and again > HARM_RETRANSMITTED * again_base
        and again > again_base + HARM_RETRANSMITTED_POINTS
    ):
        yield (
            f"it sent {again:.1f} % of its packets again, {by.baseline} {again_base:.1f} %:"
            " it may drive others' packets out of a queue"
        )


def _lost_more(lost: int, sent: int, lost_base: int, sent_base: int) -> bool:
    """Were pings lost more often than beside the baseline, by more than a point and more than their
    number alone could make it?"""
    more = lost / sent - lost_base / sent_base
    share = (lost + lost_base) / (sent + sent_base)
    error = math.sqrt(share * (1 - share) * (1 / sent + 1 / sent_base))
    return more > HARM_LOSS_POINTS / 100 and more > HARM_LOSS_ERRORS * error


def harm_sentence(verdict: Verdict) -> str:
    """Return what is to be said of harm; nothing where nothing is known."""
    if verdict.harm:
        return "But: " + "; ".join(verdict.harm) + "."
    if verdict.kind == CANNOT_TELL:
        return ""
    return "Nothing else was harmed that could be seen from here."


def advice(verdicts: list[Verdict], by: Judge) -> list[str]:
    """Return what follows, a sentence for each direction."""
    said = []
    for direction in dict.fromkeys(one.direction for one in verdicts):
        here = [one for one in verdicts if one.direction == direction]
        better = sorted((one for one in here if one.kind == MORE), key=lambda one: -one.speed.ratio)
        clean = [one for one in better if not one.harm]
        unsure = [one.algorithm for one in here if one.kind == CANNOT_TELL]
        where = " there, at the other end" if direction == REVERSE else " on this path"
        if clean:
            each = (
                f"{one.algorithm} ({figure(one.speed.ratio)} times {by.baseline}'s)"
                for one in clean
            )
            text = f"Worth switching{where}: {', '.join(each)}."
        elif better:
            text = f"{better[0].algorithm} carries more{where}, but at a price that others pay."
        elif unsure:
            text = f"No reason to switch{where} was found; {', '.join(unsure)}: cannot tell."
        else:
            text = f"No reason to switch{where}."
        said.append(text)
    return said
