# SPDX-License-Identifier: GPL-2.0-only
"""What the scorecard asks: testbed/scorecard/*.toml, one file a section of RFC 9743.

A row is a piece of a scenario file, laid over scorecard/base.toml (or over the scenario that it
names), with the figures that are read off its points and the bounds they are held against. The
bounds are data, written down before anything is measured, and the same for everybody.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lab.ask import scenario as scenarios
from lab.ask.parts import Scenario
from lab.ask.tables import overlay
from lab.common.errors import BadInput, unknown
from lab.judge.scorecard.figures import FIGURES

FOLDER = Path(__file__).resolve().parents[3] / "scorecard"
BASE, KNOWN = "base.toml", "known-failures.toml"  # no sections
# What everybody is held against, in the same run: the two standards, and the algorithm that
# RFC 9743 names as having failed.
REFERENCES = ("reno", "cubic", "bbr")
STANDARDS = ("reno", "cubic")


@dataclass(frozen=True)
class Figure:
    """METRIC of a point, of which LESS or MORE is better. It fails outside FAILS_BELOW to
    FAILS_ABOVE, which is then said in the words BREAKS; with FAILS_TIMES only where it is also
    more than so many times what each standard has at that place, which so no standard can break
    itself. Compared with the references, what is within MARGIN (a share) or FLOOR (absolute) of
    them is no difference."""

    metric: str
    better: str = "less"
    fails_above: float | None = None
    fails_below: float | None = None
    fails_times: float = 0.0
    breaks: str = ""
    margin: float = 0.1
    floor: float = 0.0
    compared: bool = True

    def fails(self, value: float, standards: list[float]) -> bool:
        """Say whether VALUE breaks the bound; STANDARDS: what reno and cubic have there, without
        which nothing is so many times theirs."""
        above = self.fails_above is not None and value > self.fails_above
        if self.fails_times:
            above = above and bool(standards) and value > self.fails_times * max(standards)
        return above or (self.fails_below is not None and value < self.fails_below)

    @property
    def bound(self) -> str:
        """Return the bound as text; nothing without one."""
        times = f" or {self.fails_times:g} times the standards'" if self.fails_times else ""
        parts = [f"at most {self.fails_above:g}{times}"] if self.fails_above is not None else []
        parts += [f"at least {self.fails_below:g}"] if self.fails_below is not None else []
        return " and ".join(parts)


@dataclass(frozen=True)
class Row:
    id: str
    title: str
    section: str
    scenario: Scenario
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Section:
    """A section of the RFC: ASKS says in our words what it wants to know."""

    number: str
    title: str
    asks: str
    rows: tuple[Row, ...]
    not_measured: str = ""  # what of it no row measures


@dataclass(frozen=True)
class Choice:
    """Which part of the scorecard is run, and how."""

    rows: tuple[str, ...] = ()  # sections or rows; nothing: all
    quick: bool = False  # the small subset
    paths: int = 0  # random places; 0: as the row says
    path_seed: int = 0
    overrides: tuple[tuple[str, str], ...] = ()  # as --set gives


def load(choice: Choice, folder: Path = FOLDER) -> list[Section]:
    """Return the sections, in the RFC's order, with those rows that CHOICE wants. One without
    rows has in NOT_MEASURED why."""
    files = [path for path in folder.glob("*.toml") if path.name not in (BASE, KNOWN)]
    base = scenarios.read(folder / BASE)
    sections = [_section(path, base, choice) for path in files]
    sections.sort(key=lambda section: [int(part) for part in section.number.split(".")])
    known = names_of(sections)
    if choice.rows:
        sections = [_wanted(section, choice.rows) for section in sections]
        for name in choice.rows:
            if not any(name == s.number or name in [r.id for r in s.rows] for s in sections):
                raise unknown("row or section" + " of --quick" * choice.quick, name, known)
        sections = [section for section in sections if section.rows]
    return sections


def names_of(sections: Iterable[Section]) -> list[str]:
    """Return what SECTIONS and their rows are called on the command line."""
    return [name for s in sections for name in (s.number, *(row.id for row in s.rows))]


def known_failures(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Return the rows that an algorithm is known to fail, which keep no gate shut."""
    return scenarios.read(folder / KNOWN)


def _wanted(section: Section, names: Iterable[str]) -> Section:
    if section.number in names:
        return section
    return replace(section, rows=tuple(row for row in section.rows if row.id in names))


def _section(path: Path, base: dict[str, Any], choice: Choice) -> Section:
    tree = scenarios.read(path)
    for key in tree:
        if key not in ("section", "title", "asks", "not_measured", "rows"):
            raise unknown(f"key in {path.name}:", key, [f.name for f in fields(Section)])
    _require(path.name, tree, ("section", "title", "asks"))
    number = tree["section"]
    rows = [_row(path.name, number, row, base, choice) for row in tree.get("rows", [])]
    return Section(
        number, tree["title"], " ".join(tree["asks"].split()), tuple(filter(None, rows)),
        " ".join(tree.get("not_measured", "").split()),
    )  # fmt: skip


def _row(
    where: str, section: str, tree: dict[str, Any], base: dict[str, Any], choice: Choice
) -> Row | None:
    """Return a row, or nothing where only the quick ones are wanted and it is none."""
    where = f"{where}: {tree.get('id', 'a row without id')}"
    for key in tree:
        if key not in ("id", "title", "from", "scenario", "quick", "figures"):
            raise unknown(f"key in {where}:", key, ("from", "scenario", "quick", "figures"))
    _require(where, tree, ("id", "title", "figures"))
    if choice.quick and "quick" not in tree:
        return None
    source = deepcopy(base)
    if "from" in tree:
        source = scenarios.read(scenarios.find(tree["from"]))
    overlay(source, {"title": tree["title"]} | tree.get("scenario", {}))
    if choice.quick:
        overlay(source, tree["quick"])
    random = source.get("axes", {}).get("place", {}).get("random", {})
    if random:
        random |= {"count": choice.paths} if choice.paths else {}
        random |= {"seed": choice.path_seed} if choice.path_seed else {}
    source.pop("claims", None)
    wanted = not choice.rows or {section, tree["id"]} & {*choice.rows}
    try:
        for key, text in choice.overrides if wanted else ():
            scenarios.override(source, key, text)
        scenario = scenarios.parse(tree["id"], source)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    figures = tuple(_figure(where, table) for table in tree["figures"])
    return Row(tree["id"], tree["title"], section, scenario, figures)


def _require(where: str, tree: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        if key not in tree:
            raise BadInput(f"{where}: '{key}' is missing; docs/scorecard.md shows a row")


def _figure(where: str, table: dict[str, Any]) -> Figure:
    for key in table:
        if key not in {f.name for f in fields(Figure)}:
            raise unknown(f"key of a figure in {where}:", key, [f.name for f in fields(Figure)])
    _require(f"{where}: a figure", table, ("metric",))
    figure = Figure(**table)
    if figure.metric not in FIGURES:
        raise unknown(f"metric in {where}:", figure.metric, FIGURES)
    if figure.better not in ("less", "more"):
        raise unknown(f"better in {where}:", figure.better, ("less", "more"))
    if bool(figure.bound) != bool(figure.breaks):
        raise BadInput(f"{where}: {figure.metric}: a bound needs words for what breaks it (breaks)")
    if not figure.bound and not figure.compared:
        raise BadInput(f"{where}: {figure.metric}: without a bound it is compared, or says nothing")
    return figure
