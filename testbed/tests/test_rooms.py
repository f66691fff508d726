# SPDX-License-Identifier: GPL-2.0-only
"""The lab's rooms import one way only (docs/contributing.md has the picture)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.run.build import PROJECT, RESULT_SOURCES

LAB = PROJECT / "testbed" / "lab"
# Each may import from itself and from those before it; what is on top may import from all.
ROOMS = ("common", "ask", "measure", "run", "judge", "show")
# Of measure: what is nothing, and what is made anew of all results each time.
DERIVED = ("__init__", "harm")
# What measuring takes from files that are in no key: names that specs have, too.
NAMES = {"figures.CLASSIFIED", "parts.SECOND", "points.Point", "points.RATIO_EVENTS"}
NAMES |= {"points.VERDICT_EVENTS"}
ON_TOP = {"__init__", "__main__", "cli", "commands"}


def module_name(path: Path, lab: Path) -> str:
    parts = ("lab", *path.relative_to(lab).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def named(path: Path, lab: Path) -> Iterator[tuple[int, str]]:
    """Give each module that a file imports, wherever in it, with its line; and each that it names
    in a text of its own, as import_module and python -m take it."""
    package = ["lab", *path.relative_to(lab).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join(filter(None, [*above, node.module]))
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"lab(\.\w+)+", str(node.value)):
            yield node.lineno, node.value


def upward(lab: Path) -> list[str]:
    """Return the imports of LAB's modules that go to a later room, or to what is on top."""
    found = []
    for path in sorted(lab.glob("*/**/*.py")):
        allowed = ROOMS[: ROOMS.index(path.relative_to(lab).parts[0]) + 1]
        for line, name in named(path, lab):
            first, *rest = name.split(".")
            if first == "lab" and not (rest and rest[0] in allowed):
                found.append(f"{module_name(path, lab)}:{line}: {name}")
    return found


def test_everything_is_in_a_room():
    assert {path.stem for path in LAB.glob("*.py")} == ON_TOP
    assert {path.parent.name for path in LAB.glob("*/__init__.py")} == set(ROOMS)
    assert {path.relative_to(LAB).parts[0] for path in LAB.glob("*/**/*.py")} == set(ROOMS)


def test_imports_go_one_way():
    assert upward(LAB) == []


def test_what_results_follow_from_is_part_of_their_key():
    """A change of how a figure is made must not meet results of before: --resume would mix them."""
    keyed = {path for path in (LAB / name for name in RESULT_SOURCES) if path.exists()}
    assert len(keyed) == len(RESULT_SOURCES)
    measure = {*LAB.glob("measure/*.py")} - {LAB / "measure" / f"{n}.py" for n in DERIVED}
    assert measure <= keyed
    found = set()
    for path in measure | {path for path in keyed if path.parent.name == "ask"}:
        for _, name in named(path, LAB):
            parts = name.split(".")
            module = LAB.joinpath(*parts[1:-1]).with_suffix(".py")
            if parts[:2] == ["lab", "ask"] and module.exists() and module not in keyed:
                found.add(".".join(parts[2:]))
    assert found == NAMES


def test_the_picture_has_the_rooms_in_their_order():
    rows = re.findall(r"^\| `lab\.(\w+)` \|", (PROJECT / "docs/contributing.md").read_text(), re.M)
    assert tuple(rows) == ROOMS


@pytest.mark.parametrize(
    "put_in",
    [
        "import lab.show.plots",
        "from lab import show",
        "from lab.show import plots",
        "from lab.show.plots import style",
        "from ..show import plots",
        "def late():\n    from lab.judge import claims",
        "if TYPE_CHECKING:\n    from lab.run.store import Store",
        'importlib.import_module("lab.measure.metrics")',
        'run("python3", "-m", "lab.run.guest.worker")',
        "from lab import cli",
        'MODULE = "lab.commands"',
    ],
)
def test_an_upward_import_is_found(tmp_path, put_in):
    lab = tmp_path / "lab"
    for room in ROOMS:
        (lab / room).mkdir(parents=True)
        (lab / room / "__init__.py").touch()
    fine = "import json\nfrom lab.common import errors\nfrom . import links\n"
    (lab / "ask" / "points.py").write_text(fine)
    (lab / "show" / "plots.py").write_text(
        "from lab.ask import points\nfrom lab.run import store\n"
    )
    assert upward(lab) == []
    (lab / "ask" / "points.py").write_text(fine + put_in + "\n")
    assert [line.split(":")[0] for line in upward(lab)] == ["lab.ask.points"]
