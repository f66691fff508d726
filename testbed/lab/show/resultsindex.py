# SPDX-License-Identifier: GPL-2.0-only
"""The index of docs/results: each page under the question that it answers, its figure beside it."""

from pathlib import Path

from lab.ask import scenario as scenarios
from lab.ask.questions import QUESTIONS
from lab.ask.scenario import SCENARIO_DIR
from lab.common.errors import BadInput
from lab.run.build import PROJECT
from lab.run.store import write_atomically
from lab.show import papersindex

OURS = PROJECT / "docs" / "results"
NAME = "README.md"
PAPERS = "Do the five papers' claims hold?"
REST = "Measured beside the scenarios"
HEAD = """# Results

The page of a scenario has a figure, the tables with intervals, the claims with what came of them,
and the command that made it. What was lost stays in. `testbed/veno-lab publish --index` writes this
page. Those at the end are of other tools, each with its commands; `measured` and `yardstick` are
kept by hand, and tests hold `measured` against the docs.

A page is of the commit that it names, and algorithms change. Which pages have an earlier
`veno_jitter`, and what is known of the present one there:
[veno_jitter-measured.md](../veno_jitter-measured.md#which-page-has-which-version).
"""


def ours() -> Path:
    """Return the folder of the project's pages; a package has none."""
    if not OURS.parent.is_dir():
        raise BadInput(f"{OURS} is a checkout's: `publish DIR DOCS` makes a page elsewhere")
    return OURS


def write(docs: Path) -> Path:
    """Write the index of the pages in the folder DOCS; return where it is."""
    groups: dict[str, list[str]] = {text: [] for text in (PAPERS, *QUESTIONS.values(), REST)}
    for page in sorted(docs.glob("*.md")):
        if page.name != NAME:
            groups[_question(page)].append(_row(page))
    parts = [HEAD]
    for question, rows in groups.items():
        if rows:
            parts.append(f"## {question}\n\n| | |\n|---|---|\n" + "\n".join(rows) + "\n")
    path = docs / NAME
    write_atomically(path, "\n".join(parts), "choose another DOCS")
    return path


def _question(page: Path) -> str:
    """Return the question that the scenario of PAGE is about."""
    if page.name == papersindex.NAME:
        return PAPERS
    if not (SCENARIO_DIR / f"{page.stem}.toml").exists():
        return REST
    return QUESTIONS.get(scenarios.load(page.stem).question, REST)


def _row(page: Path) -> str:
    lines = page.read_text().splitlines()
    title = lines[0].lstrip("# ").removeprefix(f"{page.stem}: ")
    if page.name == papersindex.NAME:
        title = lines[2]  # how many hold
    return f"| {papersindex.figure(page).strip()} | [{page.stem}](./{page.name}): {title} |"
