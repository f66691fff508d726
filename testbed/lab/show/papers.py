# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab papers`: all experiments of the five papers, one table of their claims.

Each scenario runs by testbed/run into a folder of its own below DIR, so an interrupted run goes on
where it was. The table is made of all runs that are there.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.ask import scenario
from lab.ask.parts import Scenario
from lab.common import options
from lab.common.errors import BadInput, LabError, unknown
from lab.common.exits import EXIT_FAILED
from lab.judge import claims
from lab.run import runs
from lab.run.build import PROJECT, TESTBED
from lab.run.store import write_atomically
from lab.show import describe, words
from lab.show.listing import point_count

# what a scenario's `paper` begins with -> the paper
PAPERS = {
    "TCP Veno": "TCP Veno (Fu, Liew, 2003)",
    "JSCTP": "JSCTP (Chen et al., 2011), and JTCP by it",
    "Ye, Saadawi, Lee": "SCTP's small windows (Ye, Saadawi, Lee)",
    "UDDJ-TFRC": "UDDJ-TFRC (Kumar, Sharma)",
    "WCCP": "WCCP (Zhai, Chen, Fang, 2007)",
}
QUICK_S = 40.0  # of one core, that a scenario with one seed may cost with --quick
TABLE, PUBLISHED = "claims.md", "papers.md"
HEAD = ("scenario", "claim", "the paper's figure", "measured", "needed", "verdict")

app = options.new_app()


@dataclass(frozen=True)
class Row:
    """One claim of a paper, and what came of it."""

    paper: str
    cells: tuple[str, ...]  # as HEAD


@app.command(context_settings=options.HELP)
def main(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A folder for each scenario goes here.")
    ] = Path("results/papers"),
    only: Annotated[str, typer.Option(metavar="A,B", help="Only these scenarios.")] = "",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seeds 1 to N.", show_default="each scenario's own"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="One seed, and only what is cheap: does it run? Not a result."
        ),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Make each run its page of docs/results, the table, too."),
    ] = False,
    jobs: options.Jobs = 0,
    list_: Annotated[
        bool, typer.Option("--list", help="List the experiments, with points and cost.")
    ] = False,
) -> None:
    """Run every experiment of the five papers and hold their claims against what came of it: one
    table, DIR/claims.md. What is finished is not run again, so Ctrl-C loses nothing.

    \b
    Examples:
      testbed/veno-lab papers --list
      testbed/veno-lab papers --quick
      testbed/veno-lab papers --only veno-single,veno-wan --seeds 6

    Exit status: 0 all ran, whatever the claims say; 1 one failed, 2 bad input, 130 interrupted.
    """
    options.check_seed(seeds)
    if publish and quick:
        raise BadInput("--quick is no result: nothing of it is published")
    jobs = options.job_count(jobs)
    chosen = _chosen(options.names(only))
    count = 1 if quick else seeds
    if list_:
        _list(chosen, count)
        return
    if quick:
        chosen = _cheap(chosen)
    failed = [one.id for one in chosen if not _run(one, out / one.id, count, jobs)]
    there = [one for one in chosen if runs.is_run(out / one.id)]
    found = rows([(one, out / one.id) for one in there])
    write_atomically(out / TABLE, page(found))
    _print(found)
    print(f"table: {out / TABLE}")
    if publish:
        _publish([out / one.id for one in there], page(found))
    if failed:
        print(f"papers: failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)


def experiments() -> dict[str, Scenario]:
    """Return the scenarios that are of one of the papers, the papers in their order."""
    loaded = [scenario.load(path.stem) for path in scenario.list_scenarios()]
    return {one.id: one for start in PAPERS for one in loaded if one.paper.startswith(start)}


def _paper(one: Scenario) -> str:
    return next(text for start, text in PAPERS.items() if one.paper.startswith(start))


def _chosen(names: tuple[str, ...]) -> list[Scenario]:
    known = experiments()
    for name in names:
        if name not in known:
            raise unknown("experiment of the papers", name, known, "veno-lab papers --list")
    return [known[name] for name in names or known]


def _cost_s(one: Scenario, seeds: int | None) -> float:
    """Return what ONE costs with so many SEEDS, in s of one core, by an estimate."""
    return describe.expected_s(one) * (seeds or one.run.seeds) / one.run.seeds


def _cheap(chosen: list[Scenario]) -> list[Scenario]:
    cheap = [one for one in chosen if _cost_s(one, 1) <= QUICK_S]
    left = [one.id for one in chosen if one not in cheap]
    if left:
        print(f"papers: left out, as they cost more: {', '.join(left)}", file=sys.stderr)
    if not cheap:
        raise BadInput("nothing of this is cheap enough for --quick")
    return cheap


def _run(one: Scenario, folder: Path, seeds: int | None, jobs: int) -> bool:
    """Run ONE into FOLDER; say whether all of its points ran."""
    command = [str(TESTBED / "run"), one.id, "--jobs", str(jobs), "--out", str(folder), "--resume"]
    command += ["--seeds", str(seeds)] if seeds else []
    print(f"papers: {one.id}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode == 2:  # it has said why
        raise LabError(f"{one.id} was refused")
    return done.returncode == 0


def _publish(folders: list[Path], table: str) -> None:
    """Write the pages of the runs in FOLDERS, and the TABLE of claims, into docs/results."""
    from lab.show import publish, resultsindex  # figures: slow to import

    docs = PROJECT / "docs" / "results"
    for folder in folders:
        print(publish.write(folder, docs))
    write_atomically(docs / PUBLISHED, table)
    print(resultsindex.write(docs))


def rows(found: list[tuple[Scenario, Path]]) -> list[Row]:
    """Return the claims of the runs FOUND, judged."""
    judged = []
    for one, folder in found:
        for verdict in claims.judge(one, runs.read_results(folder)):
            row = words.claim_row(verdict)
            judged.append(Row(_paper(one), _cells(one, row)))
    return judged


def _cells(one: Scenario, row: dict[str, Any]) -> tuple[str, ...]:
    measured = f"{row['median']} {row['interval']}".strip()
    return (one.id, row["text"], row["paper"], measured, row["bound"], row["verdict"])


def page(found: list[Row]) -> str:
    """Return the table of claims as Markdown, a part for each paper."""
    parts = ["# The papers' claims", _score(found)]
    for paper in dict.fromkeys(row.paper for row in found):
        lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
        lines += [f"| {' | '.join(row.cells)} |" for row in found if row.paper == paper]
        parts += [f"## {paper}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _score(found: list[Row]) -> str:
    verdicts = [row.cells[-1] for row in found]
    counted = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    told = ", ".join(f"{number} {verdict}" for verdict, number in counted.items())
    return f"{len(found)} claims: {told or 'none'}."


def _print(found: list[Row]) -> None:
    console = Console(width=120, highlight=False)
    table = Table("paper", *HEAD, box=None, pad_edge=False)
    for row in found:
        table.add_row(row.paper.split(" (")[0], *row.cells)
    console.print(table)
    console.print(_score(found))


def _list(chosen: list[Scenario], seeds: int | None) -> None:
    console = Console(width=110, highlight=False)
    table = Table("paper", "scenario", "points", "core minutes", "what", box=None, pad_edge=False)
    total_s = 0.0
    for one in chosen:
        cost_s = _cost_s(one, seeds)
        total_s += cost_s
        number = point_count(one) * (seeds or one.run.seeds) // one.run.seeds
        name = _paper(one).split(" (")[0]
        table.add_row(name, one.id, str(number), f"{cost_s / 60:.0f}", one.title)
    console.print(table)
    console.print(f"{total_s / 3600:.1f} hours of one core in all, by an estimate")
