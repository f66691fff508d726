# SPDX-License-Identifier: GPL-2.0-only
"""The command `testbed/veno-lab list`: scenarios by what they ask, and the algorithms."""

import math
import shutil
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.ask import scenario as scenarios
from lab.ask.algorithms import ALGORITHMS
from lab.ask.parts import Scenario
from lab.ask.questions import OWN, QUESTIONS
from lab.common import options
from lab.common.errors import unknown

WIDTH = 100  # characters, at most

app = options.new_app()


@app.command(context_settings=options.HELP)
def main(
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="Only scenarios that have it in name or title.")
    ] = "",
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of docs/scenarios.md.")
    ] = False,
) -> None:
    """List the scenarios by what they ask, with how many points each has, and the algorithms.

    \b
    Examples:
      testbed/veno-lab list
      testbed/veno-lab list tfrc
    """
    if markdown:
        print(markdown_table())
        return
    print_all(word)


def width() -> int:
    """Return how wide what is printed may be: as the terminal is, WIDTH at most."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)


def print_all(word: str = "") -> None:
    """Print the scenarios that have WORD in name or title, and, without one, the algorithms."""
    console = Console(width=width(), highlight=False)
    found = {question: _matching(group, word) for question, group in by_question().items()}
    if not any(found.values()):
        names = [path.stem for path in scenarios.list_scenarios()]
        raise unknown("scenario by name or title", word, names, scenarios.LISTED)
    widest = max(len(one.id) for group in found.values() for one in group)
    for question, group in found.items():
        if group:
            console.print(question, style="bold", markup=False)
            console.print(_scenarios(group, widest))
            console.print()
    if not word:
        console.print("Algorithms", style="bold")
        console.print(_algorithms())


def by_question() -> dict[str, list[Scenario]]:
    """Return the project's scenarios, by the question that they are about."""
    groups: dict[str, list[Scenario]] = {text: [] for text in (*QUESTIONS.values(), OWN)}
    for path in scenarios.list_scenarios():
        loaded = scenarios.load(path.stem)
        groups[QUESTIONS.get(loaded.question, OWN)].append(loaded)
    return {question: group for question, group in groups.items() if group}


def point_count(scenario: Scenario) -> int:
    """Return how many points SCENARIO has with its own algorithms and seeds."""
    places = math.prod(len(axis.values) for axis in scenario.axes)
    return places * len(scenario.run.algorithms) * scenario.run.seeds


def markdown_table() -> str:
    """Return the table of scenarios that docs/scenarios.md has."""
    rows = (
        f"| {question} | {', '.join(f'`{one.id}`' for one in group)} |"
        for question, group in by_question().items()
    )
    return "\n".join(["| question | scenarios |", "|---|---|", *rows])


def _matching(group: list[Scenario], word: str) -> list[Scenario]:
    return [one for one in group if word.lower() in f"{one.id} {one.title}".lower()]


def _scenarios(group: list[Scenario], widest: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, expand=True)
    table.add_column(width=widest + 2, no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(justify="right", width=12, no_wrap=True)
    for one in group:
        table.add_row(f"  {one.id}", one.title, f"{point_count(one)} points")
    return table


def _algorithms() -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for algorithm in ALGORITHMS.values():
        ours = "this project" if algorithm.ours else ""
        table.add_row(f"  {algorithm.name}", algorithm.summary, ours)
    return table
