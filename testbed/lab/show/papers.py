# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab papers`: all experiments of the five papers, one table of their claims.

Each scenario runs by testbed/run into a folder of its own below DIR, so an interrupted run goes on
where it was. The table is made of all runs that are there.
"""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.ask import scenario as scenarios
from lab.ask.parts import Scenario
from lab.common import options
from lab.common.errors import BadInput, unknown
from lab.common.exits import EXIT_BAD_INPUT, EXIT_FAILED
from lab.judge import claims
from lab.judge.enough import ENOUGH_SEEDS, NEEDED
from lab.run import completion, runs
from lab.run.build import TESTBED
from lab.run.children import run_to_end
from lab.run.store import Store, write_atomically
from lab.show import describe, papersindex, resultsindex
from lab.show.listing import WIDTH, point_count

RESULTS, QUICK_RESULTS = Path("results/papers"), Path("results/papers-quick")
QUICK_S = 30.0  # of one core, by an estimate: what costs more is cut short with --quick
MEASURED_S = 20  # that are left of such a run at least, in virtual time
TABLE = "claims.md"

app = options.new_app()


@app.command(context_settings=options.HELP)
def main(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder for each scenario goes here.",
            show_default=f"{RESULTS}; with --quick {QUICK_RESULTS}",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Only these scenarios.",
            autocompletion=completion.listed(papersindex.experiments),
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seeds 1 to N.", show_default="each scenario's own"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="One seed, what claims name, the long ones shorter: does it run? Not a result.",
        ),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Make each run that did not fail its page of docs/results; the table, too.",
        ),
    ] = False,
    jobs: options.Jobs = 0,
    index: Annotated[
        bool,
        typer.Option("--index", help="Run nothing: the table of docs/results, of its pages."),
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List the experiments, with points and cost.")
    ] = False,
) -> None:
    """Run every experiment of the five papers and hold their claims against what came of it: one
    table, DIR/claims.md, of all runs that DIR has. What is finished is not run again, so Ctrl-C
    loses nothing.

    \b
    Examples:
      testbed/veno-lab papers --list
      testbed/veno-lab papers --quick
      testbed/veno-lab papers --only veno-single,veno-wan --seeds 6
      testbed/veno-lab papers --index

    Exit status: 0 all ran, whatever the claims say; 1 one failed, 2 bad input, 130 interrupted.
    """
    options.check_seed(seeds)
    docs = resultsindex.ours() if index or publish else None
    if index:
        _write_index(docs)
        return
    if publish and quick:
        raise BadInput("--quick is no result: nothing of it is published")
    if quick and seeds:
        raise BadInput("--quick is of one seed: leave out --seeds")
    if publish and seeds and seeds < ENOUGH_SEEDS:
        raise BadInput(f"--publish --seeds {seeds}: {NEEDED}")
    jobs = options.job_count(jobs)
    known = papersindex.experiments()
    wanted = _chosen(options.chosen("--only", only, "all scenarios"), known)
    count = 1 if quick else seeds
    settings = {one.id: _quick_settings(one) if quick else {} for one in wanted}
    chosen = [scenarios.load(name, settings[name]) for name in settings]
    if list_:
        _list(chosen, count)
        return
    out = out or (QUICK_RESULTS if quick else RESULTS)
    if quick:
        _check_quick([out / one.id for one in chosen])
    for one in chosen:
        Store.check(out / one.id, True, one.id, one.source)
    failed = [
        one.id for one in chosen if not _run(one, out / one.id, count, jobs, settings[one.id])
    ]
    there = [_as_run(known[name], out / name) for name in known if runs.is_run(out / name)]
    note = _smoke(there, out, known)
    found = papersindex.rows_of_runs([(one, out / one.id) for one in there])
    write_atomically(out / TABLE, papersindex.page(found, note))
    _print(found)
    if note:
        print(note)
    print(f"table: {out / TABLE}")
    if publish:
        ran = [one.id for one in chosen if one.id not in failed]
        _publish([out / one.id for one in there if one.id in ran], docs)
    if failed:
        print(f"papers: failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)


def _chosen(names: tuple[str, ...], known: dict[str, Scenario]) -> list[Scenario]:
    for name in names:
        if name not in known:
            raise unknown("experiment of the papers", name, known, "testbed/veno-lab papers --list")
    return [known[name] for name in names or known]


def _quick_settings(one: Scenario) -> dict[str, str]:
    """Return the settings that leave of ONE what its claims ask about, and of what is expensive
    still a shorter run: key -> text for --set."""
    settings = {name: json.dumps(values) for name, values in claims.asked(one).items()}
    named = {name for claim in one.claims for name in (claim.algorithm, claim.against)}
    algorithms = [name for name in one.run.algorithms if name in named] or one.run.algorithms
    settings["run.algorithms"] = json.dumps(algorithms)
    cost_s = _cost_s(scenarios.load(one.id, settings), 1)
    if cost_s > QUICK_S:
        cut_s = one.run.duration_s * QUICK_S / cost_s
        cut_s = max(cut_s, one.run.warmup_s + MEASURED_S)
        # in tens, so that another estimate seldom means other settings than a folder's
        cut_s = min(10 * math.ceil(cut_s / 10), one.run.duration_s)
        settings["run.duration_s"] = f"{cut_s:g}"
    return settings


def _cost_s(one: Scenario, seeds: int | None) -> float:
    """Return what ONE costs with so many SEEDS, in s of one core, by an estimate."""
    return describe.expected_s(one) * (seeds or one.run.seeds) / one.run.seeds


def _check_quick(folders: list[Path]) -> None:
    """Refuse FOLDERS with runs of several seeds: one seed would be left of them."""
    for folder in folders:
        seeds = runs.read_meta(folder).get("seeds", []) if runs.is_run(folder) else []
        if len(seeds) > 1:
            raise BadInput(
                f"{folder} holds a run of {len(seeds)} seeds, of which --quick would leave one:"
                " choose another --out"
            )


def _as_run(one: Scenario, folder: Path) -> Scenario:
    """Return ONE with the values of its axes, and the length, that the run in FOLDER had."""
    source = runs.read_meta(folder).get("source")
    if not source:
        return one
    had = scenarios.parse(one.id, source)
    return replace(one, axes=had.axes, run=replace(one.run, duration_s=had.run.duration_s))


def _smoke(there: list[Scenario], out: Path, known: dict[str, Scenario]) -> str:
    """Say which of the runs THERE, in folders of OUT, have one seed only, and which are shorter
    than they are meant to be, as KNOWN has them; nothing if none is."""
    single = [one.id for one in there if len(runs.read_meta(out / one.id).get("seeds", [])) == 1]
    short = [one.id for one in there if one.run.duration_s < known[one.id].run.duration_s]
    told = [f"Smoke test, not a result, as it has one seed: {', '.join(single)}."] if single else []
    return " ".join(told + ([f"Cut short: {', '.join(short)}."] if short else []))


def _run(
    one: Scenario, folder: Path, seeds: int | None, jobs: int, settings: dict[str, str]
) -> bool:
    """Run ONE with SETTINGS into FOLDER; say whether all of its points ran."""
    command = [str(TESTBED / "run"), one.id, "--jobs", str(jobs), "--out", str(folder), "--resume"]
    command += ["--seeds", str(seeds)] if seeds else []
    command += [part for key, text in settings.items() for part in ("--set", f"{key}={text}")]
    print(f"papers: {one.id}", file=sys.stderr, flush=True)
    status = run_to_end(command)
    if status == EXIT_BAD_INPUT:  # it has said why
        raise BadInput(f"{one.id} was refused")
    return status == 0


def _publish(folders: list[Path], docs: Path) -> None:
    """Write the pages of the runs in FOLDERS into DOCS, and the table of all claims."""
    from lab.show import publish  # figures: slow to import

    for folder in folders:
        print(publish.write(folder, docs))
    _write_index(docs)


def _write_index(docs: Path) -> None:
    print(papersindex.write(docs))
    print(resultsindex.write(docs))


def _print(found: list[papersindex.Row]) -> None:
    console = Console(width=120, highlight=False)
    table = Table("paper", *papersindex.HEAD, box=None, pad_edge=False)
    for row in found:
        table.add_row(row.paper.split(" (")[0], *row.cells)
    console.print(table)
    console.print(papersindex.score(found))


def _list(chosen: list[Scenario], seeds: int | None) -> None:
    console = Console(width=WIDTH, highlight=False)
    table = Table("paper", "scenario", "points", "core minutes", "what", box=None, pad_edge=False)
    total_s = 0.0
    for one in chosen:
        cost_s = _cost_s(one, seeds)
        total_s += cost_s
        number = point_count(one) * (seeds or one.run.seeds) // one.run.seeds
        name = papersindex.paper_of(one).split(" (")[0]
        minutes = f"{cost_s / 60:.{0 if cost_s > 600 else 1}f}"
        table.add_row(name, one.id, str(number), minutes, one.title)
    console.print(table)
    console.print(f"{total_s / 3600:.1f} hours of one core in all, by an estimate")
