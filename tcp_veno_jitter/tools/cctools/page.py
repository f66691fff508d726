# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as one HTML page that needs nothing else: no script, no font, no other file."""

import math
from collections.abc import Iterable
from html import escape
from statistics import median
from typing import Any

from cctools import rounds
from cctools.rounds import Plan, Run
from cctools.sequence import Interval
from cctools.verdict import Judge, bounds, figure

COLOURS = ("#5b6472", "#c24f00", "#1d4ed8", "#15803d", "#7e22ce", "#be123c", "#0e7490", "#a16207")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 260, 64, 34, 12
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
STYLE = """
:root { --page: #fbfbfa; --ink: #1f2430; --soft: #5b6472; --line: #e2e4e8; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --ink: #e6e8ec; --soft: #a0a8b4; --line: #2d333c; }
}
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .7rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.advice { font-size: 1.15rem; font-weight: 600; border-left: 4px solid #c24f00;
  padding-left: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child { text-align: left; }
figure { margin: 1rem 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem; color: #1f2430; }
figcaption { color: #5b6472; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
"""


def _colour(plan: Plan, algorithm: str) -> str:
    return COLOURS[plan.algorithms.index(algorithm) % len(COLOURS)]


def _text(x: float, y: float, text: str, anchor: str = "middle", fill: str = "#5b6472") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )


def _rule(y: float, colour: str = "#e2e4e8") -> str:
    return f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>'


def _dot(x: float, y: float, colour: str, title: str) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity=".75">'
        f"<title>{escape(title)}</title></circle>"
    )


def _figure(label: str, parts: Iterable[str], caption: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {WIDTH + 8} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg><figcaption>{escape(caption)}</figcaption></figure>"
    )


def _ratio_figure(runs: list[Run], plan: Plan, by: Judge, verdicts: list[dict[str, Any]]) -> str:
    """Draw the ratio of each round, and beside it the interval of all."""
    direction = verdicts[0]["direction"]
    dots = {
        one["algorithm"]: [
            math.exp(value)
            for value in rounds.log_ratios(
                runs, direction, one["algorithm"], by.baseline, rounds.speed
            )
            if math.isfinite(value)
        ]
        for one in verdicts
    }
    shown = [1.0, *(value for found in dots.values() for value in found)]
    low, high = min(shown) / 1.15, max(shown) * 1.15

    def y(ratio: float) -> float:
        part = math.log(min(max(ratio, low), high) / low) / math.log(high / low)
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)

    parts = []
    for tick in (tick for tick in TICKS if low <= tick <= high):
        parts += [_rule(y(tick), "#1f2430" if tick == 1 else "#e2e4e8")]
        parts += [_text(LEFT - 8, y(tick) + 4, f"{tick:g}", "end")]
    step = (WIDTH - LEFT) / len(verdicts)
    for place, one in enumerate(verdicts):
        colour, speed = _colour(plan, one["algorithm"]), one["speed"]
        left, found = LEFT + place * step, dots[one["algorithm"]]
        for number, ratio in enumerate(found):
            x = left + step * (0.08 + 0.64 * (number + 0.5) / len(found))
            parts.append(_dot(x, y(ratio), colour, f"round {number + 1}: {figure(ratio)}"))
        x = left + step * 0.86
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(speed.low):.1f}" y2="{y(speed.high):.1f}"'
            f' stroke="{colour}" stroke-width="5" stroke-linecap="round" stroke-opacity=".5"/>'
        )
        parts.append(_dot(x, y(speed.ratio), colour, f"median {figure(speed.ratio)}"))
        parts.append(_text(left + step / 2, HEIGHT - 10, one["algorithm"], fill=colour))
    caption = f"Times {by.baseline}, a dot for each round; the bar is the interval of all rounds."
    return _figure("ratios of rounds", parts, caption)


def _time_figure(runs: list[Run], plan: Plan, direction: str) -> str:
    """Draw each transfer when it was: a path that changed meanwhile is seen here."""
    shown = [
        (run.at_s, value, run.algorithm)
        for run in runs
        if run.direction == direction and (value := rounds.speed(run)) is not None
    ]
    if not shown:
        return ""
    end_s = max(at_s for at_s, _, _ in shown) or 1.0
    top = max(value for _, value, _ in shown) * 1.05 or 1.0
    timed = not any(rounds.goodput_mbps(run) for run in runs)
    unit = "transfers/s" if timed else "Mb/s"

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP)

    parts = []
    for quarter in range(5):
        value = top * quarter / 4
        parts += [_rule(y(value)), _text(LEFT - 8, y(value) + 4, figure(value), "end")]
    for at_s, value, algorithm in shown:
        x = LEFT + 8 + at_s / end_s * (WIDTH - LEFT - 16)
        colour = _colour(plan, algorithm)
        parts.append(_dot(x, y(value), colour, f"{algorithm}: {figure(value)} {unit}"))
    step = (WIDTH - LEFT) / max(len(plan.algorithms), 6)
    for place, algorithm in enumerate(plan.algorithms):
        colour = _colour(plan, algorithm)
        parts.append(_text(LEFT + step * place, HEIGHT - 10, f"● {algorithm}", "start", colour))
    caption = f"{unit}, each transfer in its place in time, from 0 to {end_s / 60:.0f} min."
    return _figure("transfers over time", parts, caption)


def _table(runs: list[Run], plan: Plan, direction: str) -> str:
    columns: list[tuple[str, rounds.Column]] = [
        ("Mb/s", rounds.goodput_mbps),
        ("seconds", rounds.seconds),
        ("RTT under load, ms", rounds.tcp_rtt_ms),
        ("ping beside, ms", rounds.ping_rtt_ms),
        ("sent again", rounds.retransmits),
        ("sent again, %", rounds.retransmitted_percent),
    ]
    head = "".join(f"<th>{escape(name)}</th>" for name, _ in columns)
    rows = []
    for algorithm in plan.algorithms:
        cells = []
        for _, column in columns:
            found = rounds.values(runs, direction, algorithm, column)
            cells.append(f"<td>{figure(median(found)) if found else '-'}</td>")
        lost, sent = rounds.pings(runs, direction, algorithm)
        cells.append(f"<td>{figure(100 * lost / sent) if sent else '-'}</td>")
        here = [run for run in runs if (run.direction, run.algorithm) == (direction, algorithm)]
        failed = sum(bool(run.failure) for run in here)
        cells.append(f"<td>{len(here)}{f' ({failed} failed)' if failed else ''}</td>")
        rows.append(f"<tr><th>{escape(algorithm)}</th>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr><th></th>{head}<th>pings lost, %</th>'
        f"<th>transfers</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _direction(
    runs: list[Run], plan: Plan, by: Judge, direction: str, verdicts: list[dict[str, Any]]
) -> Iterable[str]:
    if len(plan.directions) > 1:
        yield f"<h2>{direction.capitalize()}</h2>"
    for one in verdicts:
        yield f"<p>{escape(one['words'])} {escape(one['harm_words'])}</p>"
    yield _ratio_figure(runs, plan, by, verdicts)
    yield _time_figure(runs, plan, direction)
    yield _table(runs, plan, direction)
    intervals = "; ".join(
        f"{escape(one['algorithm'])}: {one['speed'].n} rounds, speed {bounds(one['speed'])},"
        f" RTT {bounds(one['rtt'])} times {escape(by.baseline)}'s"
        for one in verdicts
    )
    yield f'<p class="soft">Medians of all transfers. {intervals}.</p>'


def page(document: dict[str, Any], runs: list[Run], plan: Plan, by: Judge) -> str:
    """Return the page of a Record's DOCUMENT."""
    verdicts = [
        one | {"speed": Interval(**one["speed"]), "rtt": Interval(**one["rtt"])}
        for one in document["verdicts"]
    ]
    idle = document["idle_rtt_ms"]
    body = [
        f"<h1>{escape(', '.join(plan.algorithms))} to {escape(document['host'])}</h1>",
        f'<p class="soft">{escape(document["traffic"])}; {escape(document["began"])}; Linux'
        f" {escape(document['kernel'])}; {len(runs)} transfers"
        f"{f'; RTT when idle {figure(idle)} ms' if idle else ''}.</p>",
        *(f'<p class="advice">{escape(sentence)}</p>' for sentence in document["advice"]),
    ]
    for direction in plan.directions:
        here = [one for one in verdicts if one["direction"] == direction]
        body += _direction(runs, plan, by, direction, here)
    body.append(
        f'<h2>How</h2><p class="soft">Each round ran every algorithm without an answer yet once, in'
        f" random order (seed {plan.seed}), with {plan.gap_s:g} s idle before each transfer"
        f" of {plan.seconds:g} s. The intervals are confidence sequences of the median ratio within"
        " rounds: by signs, whose chance is the random order's, so they hold whatever the path did"
        f" meanwhile and however often one looks. With {100 * (1 - by.alpha):g} % confidence no"
        " verdict on speed on this page is wrong.</p>"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width, initial-scale=1"><title>cc-compare:'
        f" {escape(document['host'])}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )
