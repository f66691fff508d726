# SPDX-License-Identifier: GPL-2.0-only
"""What a run prints when it ends: the headline comparison and the claims."""

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.ask.parts import Scenario
from lab.ask.points import rivals
from lab.judge.claims import Verdict
from lab.judge.enough import ENOUGH_SEEDS, NEEDED, SEEDS_FOR_95
from lab.show import facts, overplaces
from lab.show.tables import (
    HEADLINE,
    Cell,
    MetricTable,
    harm_table,
    is_mixed,
    kinds_table,
    metric_table,
)
from lab.show.words import claim_row

COLOURS = {
    "holds": "green", "does not hold": "red", "undecided": "yellow", "not measured": "dim",
}  # fmt: skip


HARM_NOTE = "harm to the others' goodput: 0 is as beside their own kind, 1 takes all"


def print_table(
    scenario: Scenario, results: list[dict], verdicts: Sequence[Verdict], console: Console
) -> None:
    """Print the headline comparison and the claims to CONSOLE, as wide as it is."""
    names = facts.algorithms_in(scenario, results)
    table = metric_table(scenario, results, HEADLINE, names)
    console.print(Text(scenario.title, style="bold"))
    of = " of all flows together" if is_mixed(results) else ""
    what = f"goodput{of} in Mb/s, {_cell_note(results, scenario)}"
    if overplaces.applies(scenario):
        what = f"goodput{of} over the bound (1-p)C: how it is distributed over places"
    console.print(Text(f"{what}; * best"))
    _print_columns(table, console)
    if kinds := kinds_table(scenario, results, names):
        console.print()
        console.print(Text(_kinds_note(results, over_places=overplaces.applies(scenario))))
        _print_columns(kinds, console)
    if harm := harm_table(scenario, results, names):
        console.print()
        console.print(Text(f"{HARM_NOTE}; * least"))
        _print_columns(harm, console)
    if verdicts:
        console.print()
        console.print(_claims_table(verdicts, console))
    console.print()


def _print_columns(table: MetricTable, console: Console) -> None:
    for columns in _fitting(table, console.width):
        console.print()
        console.print(_terminal_table(table, columns))


def _kinds_note(results: list[dict], *, over_places: bool) -> str:
    if not is_mixed(results):
        return "the same by flow: what those of the row's algorithm have together, and each"
    beside = " or ".join(dict.fromkeys(f["algorithm"] for r in results for f in rivals(r["flows"])))
    unit = "" if over_places else ", in Mb/s"
    return f"of that{unit}: the flows of the row's algorithm, and the others ({beside})"


def _cell_note(results: list[dict], scenario: Scenario) -> str:
    cells = facts.estimates(scenario, results, HEADLINE)
    fewest = min((value.n for value in cells.values()), default=0)
    if fewest < 2:
        return "one seed: a smoke test, not a result"
    what = "95 % interval" if fewest >= SEEDS_FOR_95 else "range"
    note = f"median [{what}] of {fewest} seeds"
    few = f": a smoke test, not a result ({NEEDED})"
    return note if fewest >= ENOUGH_SEEDS else f"{note}{few}"


def _fitting(table: MetricTable, width: int) -> list[list[int]]:
    """Cut the columns of each group into as few runs of equal length as fit WIDTH characters."""
    names = [row.name for row in table.rows]
    corner = max(map(len, [*names, facts.BOUND, table.corner, *(text for text, _ in table.groups)]))
    cells = [f"{cell.text}*" for row in table.rows for cell in row.cells]
    widest = max(map(len, [*cells, *table.columns]))
    fit = max(1, (width - corner - 1) // (widest + 2))
    runs, start = [], 0
    for _, span in table.groups or [("", len(table.columns))]:
        size = math.ceil(span / math.ceil(span / fit))
        end = start + span
        runs += [list(range(i, min(i + size, end))) for i in range(start, end, size)]
        start = end
    return runs


def _terminal_table(table: MetricTable, columns: list[int]) -> Table:
    """Return COLUMNS, all of one group, as a table."""
    groups = [text for text, span in table.groups for _ in range(span)]
    corner = f"{groups[columns[0]]}\n{table.corner}" if groups else table.corner
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column(Text(corner), no_wrap=True)
    for i in columns:
        grid.add_column(Text(f" {table.columns[i]}"), no_wrap=True, vertical="bottom")
    digits = {i: max(len(row.cells[i].median) for row in table.rows) for i in columns if table.rows}
    if table.bound:
        cells = [Text(f" {table.bound[i]:>{digits.get(i, 0)}}", style="dim") for i in columns]
        grid.add_row(Text(facts.BOUND, style="dim"), *cells)
    for row in table.rows:
        name = Text(row.name, style="bold" if row.ours else "")
        grid.add_row(name, *(_terminal_cell(row.cells[i], digits[i]) for i in columns))
    return grid


def _terminal_cell(cell: Cell, digits: int) -> Text:
    """Return CELL with its median in DIGITS characters, so that points stand below each other."""
    best = cell.rank == "best"
    text = Text(f"{'*' if best else ' '}{cell.median:>{digits}}")
    text.stylize("bold green" if best else "")
    return text.append(f" {cell.interval}".rstrip())


def _claims_table(verdicts: Sequence[Verdict], console: Console) -> Table:
    symbols = console.encoding.lower().startswith("utf")
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("claim", overflow="fold", ratio=1)
    grid.add_column("measured", no_wrap=True)
    grid.add_column("needed", no_wrap=True)
    grid.width = min(console.width, 120)
    for verdict in verdicts:
        row = claim_row(verdict)
        text = Text(row["text"])
        text.append(f"\n{row['subject']}", style="dim")
        if row["at"]:
            text.append(f"\nworst {row['at']}", style="dim")
        if row["paper"]:
            text.append(f"\npaper: {row['paper']}", style="dim")
        measured = f"{row['median']} {row['interval']}".rstrip()
        word = f"{row['mark']} {row['verdict']}" if symbols else row["verdict"]
        bound = row["bound"] if symbols else verdict.bound
        grid.add_row(Text(word, style=COLOURS[row["verdict"]]), text, Text(measured), Text(bound))
    return grid
