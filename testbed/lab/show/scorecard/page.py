# SPDX-License-Identifier: GPL-2.0-only
"""The scorecard as a page that is read in two minutes: scorecard.html and scorecard.md.

A matrix of sections and algorithms; what fails, in words; then a part for each section.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import jinja2

from lab.judge import enough
from lab.judge.enough import ENOUGH_SEEDS, NEEDED
from lab.judge.scorecard import judge
from lab.judge.scorecard.figures import FIGURES
from lab.judge.scorecard.judge import Card, Cell, RowVerdict, drawn_text, place_text
from lab.judge.scorecard.rows import REFERENCES, Choice, Figure, Row, Section
from lab.measure.stats import estimate
from lab.run.store import write_atomically
from lab.show.report import TEMPLATES
from lab.show.words import modules, reproduce

HTML, MARKDOWN = "scorecard.html", "scorecard.md"
NARROW = 6  # columns that need no wide page
NOT_MEASURED = "\N{EN DASH}"  # in the place of a figure, so that the others keep theirs
SUMMED_UP = 3  # algorithms that get a sentence each
CLASSES = {verdict: verdict.replace(" ", "-") for verdict in judge.VERDICTS}
MEANINGS = {
    judge.BETTER: "better than all references by more than a margin",
    judge.WITHIN: "not worse than the worst of the three, which may itself fail the row: look at"
    " the figures",
    judge.WORSE: "worse than all of them by more than the margin",
    judge.FAILS: "breaks the bound that the RFC's own words give",
    judge.NONE: "no result, never counted as passed; not here: this kernel lacks what rows need",
}


def write(
    card: Card,
    sections: list[Section],
    choice: Choice,
    meta: dict[str, Any],
    troubles: list[tuple[str, str]],
    given: list[str],
    folder: Path,
) -> Path:
    """Write both forms of the page into FOLDER and return the path of the HTML. SECTIONS: all
    that were to be run, also those that have no rows; TROUBLES: what
    failed, and its console; GIVEN: options of the run that hold at each place."""
    view = _view(card, choice, meta, troubles, given)
    view["not_measured"] = [section for section in sections if section.not_measured]
    for name, is_html in ((HTML, True), (MARKDOWN, False)):
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=is_html, trim_blocks=True,
            lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        )  # fmt: skip
        text = environment.get_template(f"{name}.j2").render(view)
        write_atomically(folder / name, text.rstrip() + "\n")
    return folder / HTML


def sentences(verdict: RowVerdict) -> list[str]:
    """Return what VERDICT's row fails, in words, with the worst place of each figure."""
    said = []
    total = len(judge.places(verdict.row.scenario))
    for figure, cells in verdict.broken():
        at = place_text(verdict.row.scenario, cells[0].place)
        where = f" at {at}" if at else ""
        count = f"; {len(cells)} of {total} places" if total > 1 else ""
        measured = f"{FIGURES[figure.metric].label} {cells[0].text}{where}"
        said.append(f"{figure.breaks} ({measured}{count})")
    return said


def _view(
    card: Card, choice: Choice, meta: dict[str, Any], troubles: list[tuple[str, str]],
    given: list[str],
) -> dict[str, Any]:  # fmt: skip
    judged = meta.get("judged", card.algorithms)
    return {
        "title": f"Scorecard: {_named(judged)}",
        "wide": len(card.algorithms) > NARROW,
        "algorithms": card.algorithms,
        "judged": judged,
        "references": ", ".join(REFERENCES),
        "warnings": _warnings(card, choice, meta),
        "summary": [(name, _summary(card, name)) for name in judged[:SUMMED_UP]],
        "tallies": [_tally(card, name) for name in card.algorithms],
        "meanings": [(v, CLASSES[v], MEANINGS[v]) for v in MEANINGS],
        "interval_note": _interval_note(len(meta.get("seeds", []))),
        "matrix": [_matrix_row(card, section) for section in card.sections],
        "fails": [(name, _fails(card, name)) for name in card.algorithms],
        "sections": [_section(card, s, choice, given) for s in card.sections],
        "troubles": troubles,
        "reproduce": reproduce(meta),
        "modules": modules(meta),
    }


def _warnings(card: Card, choice: Choice, meta: dict[str, Any]) -> list[str]:
    found = []
    if choice.quick:
        found.append("A quick look (--quick): few rows, few places, short runs. Not a result.")
    seeds = len(meta.get("seeds", []))
    if seeds < ENOUGH_SEEDS and not choice.quick:
        found.append(f"{enough.count(seeds)}: {NEEDED}.")
    if choice.rows:
        found.append("Only some of the rows were run.")
    lacking = dict.fromkeys(v.row.id for v in card.rows.values() if v.lacking)
    if lacking:
        found.append(f"This kernel cannot do {', '.join(lacking)}.")
    missing = sum(len(v.missing) for v in card.rows.values() if v.row.id not in lacking)
    if missing:
        found.append(f"{missing} places have no result: marked, and counted as passed nowhere.")
    if meta.get("git_dirty"):
        found.append("The working tree had changes that are in no commit.")
    return found


def _interval_note(seeds: int) -> str:
    if seeds < 2:
        return "One seed: there is no interval."
    coverage = 100 * estimate(list(range(seeds))).coverage
    return (
        f"Medians of {seeds} seeds; in brackets the order-statistic interval"
        f" (covers the median with a probability of {coverage:.3g} %)."
    )


def _named(judged: list[str]) -> str:
    return ", ".join(judged) if len(judged) <= SUMMED_UP else f"{len(judged)} algorithms"


def _tally(card: Card, algorithm: str) -> list[tuple[str, str]]:
    """Return (class, text) of how many rows came out how, but for those within."""
    verdicts = [card.rows[row.id, algorithm].verdict for s in card.sections for row in s.rows]
    words = {verdict: verdict for verdict in judge.VERDICTS if verdict != judge.WITHIN}
    words |= {judge.FAILS: "fail", judge.NONE: "without"}
    counts = {verdict: verdicts.count(verdict) for verdict in words}
    return [(CLASSES[v], f"{count} {words[v]}") for v, count in counts.items() if count]


def _summary(card: Card, algorithm: str) -> str:
    """Return one sentence about an algorithm."""
    verdicts = [card.rows[row.id, algorithm].verdict for s in card.sections for row in s.rows]
    parts = []
    for verdict, words in (
        (judge.FAILS, "fails"),
        (judge.WORSE, "is worse than all references in"),
        (judge.WITHIN, "lies between the best and the worst of them in"),
        (judge.BETTER, "is better than all of them in"),
        (judge.NONE, "has no result in"),
    ):
        if count := verdicts.count(verdict):
            of = f" of {len(verdicts)} row{'s' * (len(verdicts) != 1)}" if not parts else ""
            parts.append(f"{words} {count}{of}")
    return ", ".join(parts)


def _matrix_row(card: Card, section: Section) -> dict[str, Any]:
    cells = []
    for algorithm in card.algorithms:
        total = card.totals[section.number, algorithm]
        verdicts = [card.rows[row.id, algorithm] for row in section.rows]
        lacking = sum(verdict.lacking for verdict in verdicts)
        here = len(verdicts) - lacking
        count = sum(verdict.verdict == total and not verdict.lacking for verdict in verdicts)
        parts = [f"{count} of {here}"] * (here > 1) + [f"{lacking} not here"] * (lacking > 0)
        of = ", ".join(parts)
        cells.append({"verdict": total, "class": CLASSES[total], "of": of})
    return {"number": section.number, "title": section.title, "cells": cells}


def _fails(card: Card, algorithm: str) -> list[tuple[str, str, str]]:
    """Return (section, row, sentence) of all that ALGORITHM fails."""
    return [
        (verdict.row.section, verdict.row.id, sentence)
        for verdict in card.failing(algorithm)
        for sentence in sentences(verdict)
    ]


def _section(card: Card, section: Section, choice: Choice, given: list[str]) -> dict[str, Any]:
    return {
        "number": section.number,
        "title": section.title,
        "asks": section.asks,
        "rows": [_row(card, row, choice, given) for row in section.rows],
    }


def _row(card: Card, row: Row, choice: Choice, given: list[str]) -> dict[str, Any]:
    verdicts = [card.rows[row.id, algorithm] for algorithm in card.algorithms]
    worst = []
    for verdict in verdicts:
        count = judge.WORST_PLACES if any(axis.random for axis in row.scenario.axes) else 1
        bad = [c for c in verdict.worst(count) if c.verdict in (judge.FAILS, judge.WORSE)]
        worst += [_worst(row, verdict.algorithm, cell, choice, given) for cell in bad]
    return {
        "id": row.id,
        "title": row.title,
        "cells": [
            {"verdict": v.verdict, "class": CLASSES[v.verdict], "figures": _headlines(v)}
            for v in verdicts
        ],
        "figures": [_figure(row, figure, verdicts) for figure in row.figures],
        "worst": worst,
        "missing": _missing(row, verdicts),
    }


def _missing(row: Row, verdicts: list[RowVerdict]) -> list[tuple[str, str]]:
    """Return (who and where, why) of what has no result, once for those who share both."""
    every = judge.places(row.scenario)
    who: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        where: dict[str, list[str]] = {}
        for gap in verdict.missing:
            where.setdefault(gap.why, []).append(place_text(row.scenario, gap.place))
        for why, places in where.items():
            at = "" if len(places) == len(every) else f" at {'; '.join(places)}"
            who.setdefault((at, why), []).append(verdict.algorithm)
    return [(f"{', '.join(names)}{at}", why) for (at, why), names in who.items()]


def _headlines(verdict: RowVerdict) -> list[str]:
    """Return each figure's worst value in a few words, NOT_MEASURED where it has none; nothing
    where no figure has one."""
    found = []
    for figure in verdict.row.figures:
        cells = [c for c in verdict.cells if c.figure is figure and c.value is not None]
        pick = max if figure.better == "less" else min
        worst = pick(cells, key=lambda cell: cell.value.median, default=None)
        found.append(worst.text if worst else NOT_MEASURED)
    return found if {*found} - {NOT_MEASURED} else []


def _figure(row: Row, figure: Figure, verdicts: list[RowVerdict]) -> dict[str, Any]:
    """Return the table of one figure: places against algorithms."""
    by_place: dict[Any, dict[str, Cell]] = {}
    for verdict in verdicts:
        for cell in verdict.cells:
            if cell.figure is figure:
                by_place.setdefault(cell.place, {})[verdict.algorithm] = cell
    lines = []
    for place in judge.places(row.scenario):
        cells = [by_place.get(place, {}).get(v.algorithm) for v in verdicts]
        texts = [
            {"text": c.text, "interval": c.interval, "class": CLASSES[c.verdict]}
            if c is not None and c.value is not None
            else {"text": "-", "interval": "", "class": CLASSES[judge.NONE]}
            for c in cells
        ]
        named = place_text(row.scenario, place) or "measured"
        drawn = drawn_text(row.scenario, place)
        lines.append({"place": named, "drawn": drawn, "cells": texts})
    reading = FIGURES[figure.metric]
    return {
        "label": reading.label + (f" ({reading.unit})" if reading.unit else ""),
        "better": figure.better,
        "bound": figure.bound,
        "lines": lines,
    }


def _worst(
    row: Row, algorithm: str, cell: Cell, choice: Choice, given: list[str]
) -> dict[str, str]:
    """Return one of the worst places of ALGORITHM and the command that runs it again."""
    return {
        "algorithm": algorithm,
        "place": place_text(row.scenario, cell.place),
        "drawn": drawn_text(row.scenario, cell.place),
        "verdict": cell.verdict,
        "class": CLASSES[cell.verdict],
        "measured": f"{FIGURES[cell.figure.metric].label} {cell.text} {cell.interval}".strip(),
        "command": command(row, algorithm, cell, choice, given),
    }


def command(row: Row, algorithm: str, cell: Cell, choice: Choice, given: list[str]) -> str:
    """Return the one command that runs a place of a row again."""
    words = ["testbed/run", "scorecard", "--algorithms", algorithm, "--rows", row.id, *given]
    words += ["--quick"] * choice.quick
    axes = {axis.name for axis in row.scenario.axes}
    for name, text in choice.overrides:
        words += ["--set", f"{name}={text}"] * (name not in axes)
    for axis, (name, value) in zip(row.scenario.axes, cell.place, strict=True):
        text = f"{value:g}" if isinstance(value, float) else json.dumps(value)
        words += ["--set", f"{name}={text}"]
        if axis.random:
            words += ["--path-seed", str(axis.places.seed)]
    return shlex.join(words)
