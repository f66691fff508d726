# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab report`: the report of a finished run anew, or a page that many runs are
found on."""

import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from lab.ask.parts import Scenario
from lab.ask.scenario import parse
from lab.common import options
from lab.common.errors import BadInput
from lab.judge import claims
from lab.run.runs import NS3, check_measured, is_run, read_meta, read_results
from lab.run.store import write_atomically
from lab.show import publish, report, words
from lab.show.tables import HEADLINE

INDEX = "index.html"
PAGES = ("report.html", "scorecard.html")  # what a run's own page may be called
FIGURE = Path("plots") / f"{HEADLINE}.svg"

app = options.new_app()


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A finished run, or a folder of runs.")
    ],
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a run's report there, to be sent without its raw data."
        ),
    ] = None,
) -> None:
    """Write the report of the run in DIR anew; or, where DIR has runs below it, DIR/index.html,
    which shows each of them with its headline, claims and figure, the newest first.

    \b
    Examples:
      testbed/veno-lab report results
      testbed/veno-lab report results/demo
      testbed/veno-lab report results/demo --copy /tmp/demo.html

    Exit status: 0 done, 2 bad input.
    """
    if is_run(folder):
        print(_of_run(folder, copy))
        return
    if copy:
        raise BadInput(f"{folder} is no finished run: --copy is for one")
    found = runs_below(folder)
    if not found:
        raise BadInput(f"{folder} is no finished run and has none below it")
    print(write_index(folder, found))


def _of_run(folder: Path, copy: Path | None) -> Path:
    check_measured(folder)
    meta, results = read_meta(folder), read_results(folder)
    if "source" not in meta:
        raise BadInput(f"{folder} is no run of one scenario: its page is {PAGES[1]}")
    scenario = parse(meta["scenario"], meta["source"])
    verdicts = claims.judge(scenario, results, meta.get("seeds", ()))
    failures = meta.get("failures", [])
    if copy:  # who gets it has no such folder
        meta["command"] = shlex.join(publish.without_places(shlex.split(meta["command"])))
        failures = [re.sub(r" \(log: .*\)$", "", failure) for failure in failures]
    return report.write_report(scenario, results, folder, meta, verdicts, failures, copy)


@dataclass(frozen=True)
class Run:
    """What the index says of one run. PAGE and FIGURE: links from the index."""

    name: str
    title: str
    page: str
    figure: str
    about: str
    headline: str = ""
    tally: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def runs_below(folder: Path) -> list[Path]:
    """Return the finished runs below FOLDER, the newest first; say which are damaged."""
    started = {}
    for run in [path.parent for path in folder.glob("**/meta.json")]:
        try:
            if is_run(run):
                started[run] = read_meta(run).get("started", "")
        except BadInput as error:
            print(f"report: left out: {error}", file=sys.stderr)
    return sorted(started, key=lambda run: (started[run], run), reverse=True)


def write_index(folder: Path, found: list[Path]) -> Path:
    """Write FOLDER/index.html over the runs FOUND and return where it is."""
    html = (
        report.templates()
        .get_template("index.html.j2")
        .render(runs=[_described(run, folder) for run in found], folder=folder.resolve().name)
    )
    write_atomically(folder / INDEX, html + "\n")
    return folder / INDEX


def _described(run: Path, folder: Path) -> Run:
    meta = read_meta(run)
    name = run.relative_to(folder)
    page = next((page for page in PAGES if (run / page).is_file()), "")
    figure = quote(str(name / FIGURE)) if (run / FIGURE).is_file() else ""
    link = quote(str(name / page)) if page else ""
    title = meta.get("title") or meta.get("scenario", "")
    one = Run(str(name), title, link, figure, _about(meta))
    of_lab = "source" in meta and meta.get("backend") != NS3
    return _judged(one, meta, run) if of_lab else one


def _judged(one: Run, meta: dict[str, Any], run: Path) -> Run:
    results = read_results(run)
    try:
        scenario: Scenario = parse(meta["scenario"], meta["source"])
    except BadInput as refused:  # of an earlier version of the lab
        return replace(one, headline=f"Its scenario is not read any more: {refused}")
    return replace(
        one,
        headline=words.headline(scenario, results) if results else "No point has a result.",
        tally=tuple(words.tally(claims.judge(scenario, results, meta.get("seeds", ())))),
        warnings=tuple(words.warnings(results, meta, [])),
    )


def _about(meta: dict[str, Any]) -> str:
    """Return when the run was made, of how much, and on what."""
    seeds = meta.get("seeds", [])
    parts = [
        str(meta.get("started", ""))[:16].replace("T", " "),
        f"{meta.get('points', '?')} points",
        f"{len(seeds)} seed{'s' * (len(seeds) != 1)}",
        ", ".join(meta.get("algorithms", [])),
        f"{meta.get('backend', '')}, Linux {meta.get('kernel_release', '?')}",
        f"commit {meta.get('git_commit', '')[:12]}",
    ]
    return " · ".join(filter(None, parts))
