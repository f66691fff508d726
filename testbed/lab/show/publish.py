# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab publish`: turn a finished run into a page of docs/results: tables, a
figure, and how to get it again."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.ask.figures import JITTER_RATIOS, MEDIUM_FIGURES
from lab.ask.parts import Scenario
from lab.ask.scenario import parse
from lab.common import exits, options
from lab.common.errors import BadInput
from lab.judge import claims
from lab.judge.verdicts import HEAD, Score
from lab.run import build
from lab.run.runs import read_meta, read_whole
from lab.show import (
    overplaces,
    overtime,
    papersindex,
    plots,
    report,
    resultsindex,
    scatter,
    timelines,
    words,
)
from lab.show.tables import (
    HEADLINE,
    MetricTable,
    cross_tables,
    metric_table,
    worst_tables,
)

SCORES_NOTE = (
    "Losses of all seeds: what they were (which queue dropped the packets), and what the algorithm"
    " said. docs/scenarios.md explains it."
)
METRICS = ("goodput_mbps", "retransmits", "timeouts", "queue_delay_ms_p95")
OF_PLACES = ("--out", "--scheduler", "--slurm")  # each with a value
SCORECARD = "scorecard"  # a run that has its page already
METRICS_IF_THERE = ("owd_ms_p95", "power_mbps_per_s", *JITTER_RATIOS, *MEDIUM_FIGURES)

app = options.new_app()


def markdown_table(table: MetricTable) -> str:
    """Return one table for each group of columns, under the group's name."""
    parts, start = [], 0
    for name, span in table.groups or [("", len(table.columns))]:
        columns = slice(start, start + span)
        parts += [f"{name}:"] * bool(name) + [_markdown_columns(table, columns)]
        start += span
    return "\n\n".join(parts)


def _markdown_columns(table: MetricTable, columns: slice) -> str:
    head = [table.corner, *table.columns[columns]]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    if table.bound:
        lines.append(f"| *bound (1-p)C* | {' | '.join(table.bound[columns])} |")
    for row in table.rows:
        cells = [f"**{c.text}**" if c.rank == "best" else c.text for c in row.cells[columns]]
        lines.append(f"| {f'**{row.name}**' if row.ours else row.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def claims_table(verdicts: list[claims.Verdict]) -> str:
    lines = ["| claim | paper | measured | needed | verdict |", "|---|---|---|---|---|"]
    for row in map(words.claim_row, verdicts):
        measured = f"{row['median']} {row['interval']}".strip()
        lines.append(
            f"| {row['text']} (`{row['subject']}`) | {row['paper']} | {measured} | {row['bound']}"
            f" | {row['verdict']} |"
        )
    return "\n".join(lines)


def scores_table(found: list[Score]) -> str:
    head = ["algorithm", "at", *HEAD]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join([s.algorithm, s.place, *s.texts])} |" for s in found]
    return "\n".join(lines)


def page(
    scenario: Scenario, results: list[dict[str, Any]], meta: dict[str, Any], figures: dict[str, str]
) -> str:
    """Return the page of a run. FIGURES: those besides goodput, file name -> what it shows."""
    names = list(dict.fromkeys(result["algorithm"] for result in results))
    command = shlex.join(without_places(shlex.split(meta["command"])))
    parts = [
        f"# {scenario.id}: {scenario.title}",
        *(f"> {warning}" for warning in words.warnings(results, meta, ())),
        scenario.description.strip(),
        f"    {command}",
        f"Linux {meta['kernel_release']}, backend {meta['backend']},"
        f" commit `{meta['git_commit'][:12]}`,"
        f" {len(meta['seeds'])} seeds, {meta['points']} points{_took(meta)}."
        f" {words.interval_note(results, scenario)} Best median of a column in bold;"
        " ours in bold on the left.",
        f"![goodput](./{scenario.id}.svg)",
        *(f"{caption}:\n\n![{caption}](./{name})" for name, caption in figures.items()),
    ]
    shown = (*METRICS, *METRICS_IF_THERE)
    if overplaces.applies(scenario):
        shown = tuple(dict.fromkeys((*shown, *overplaces.marked(scenario))))
    there = [name for name in shown if any(r.get(name) is not None for r in results)]
    tables = [metric_table(scenario, results, name, names) for name in there]
    tables[1:1] = worst_tables(scenario, results, names)
    for table in [*tables, *cross_tables(scenario, results, names)]:
        parts += [f"## {table.title}" + (f" ({table.note})" if table.note else "")]
        parts += [markdown_table(table)]
    if found := report.shown_scores(scenario, results):
        parts += ["## Loss classification", SCORES_NOTE, scores_table(found)]
    if scenario.claims:
        parts += ["## Claims", claims_table(claims.judge(scenario, results))]
    return "\n\n".join(parts) + "\n"


def ratio_caption(scenario: Scenario, stem: str) -> str:
    """Return what the figure STEM of a report shows: ratio-ALGORITHM-number of the place."""
    _, algorithm, number = stem.split("-")
    at = words.place_text(scenario, plots.places(scenario)[int(number)])
    return f"Jitter ratio of {algorithm} over time" + (f", {at}" if at else "")


def _took(meta: dict[str, Any]) -> str:
    """Return how long the run took, nothing if some of its points are of an earlier one."""
    return "" if meta.get("points_of_earlier_runs") else f" in {meta['wall_s']:.0f} s"


def without_places(arguments: list[str]) -> list[str]:
    """Drop where the results went, and which machines ran it: it means nothing to a reader."""
    kept, skip = [], False
    for argument in arguments:
        if not skip and argument.split("=")[0] not in (*OF_PLACES, "--resume"):
            kept.append(argument)
        skip = not skip and argument in OF_PLACES
    return kept


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    run: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder of a finished run.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Argument(metavar="DOCS", help="Where the page goes; docs/results."),
    ] = None,
    index: Annotated[
        bool, typer.Option("--index", help="Write the index of docs/results alone.")
    ] = False,
) -> None:
    """Write DOCS/SCENARIO.md and its figures, DOCS/SCENARIO*.svg, from the run in DIR, and the
    index of all pages, DOCS/README.md. A run with points that have no result is refused.

    \b
    Examples:
      testbed/veno-lab publish results/veno-wan
      testbed/veno-lab publish results/veno-wan /tmp/pages
      testbed/veno-lab publish --index

    Exit status: 0 done, 2 bad input.
    """
    docs = docs or build.PROJECT / "docs" / "results"
    if not index:
        if not run:
            raise BadInput("name the folder of a run, or --index")
        print(write(run, docs))
        if (docs / papersindex.NAME).exists():
            print(papersindex.write(docs))
    print(resultsindex.write(docs))


def write(run: Path, docs: Path) -> Path:
    """Write the page of the run in RUN, and its figures, into DOCS; return where it is. A run with
    points that have no result is refused; a scorecard says so itself."""
    meta = read_meta(run)
    if meta["scenario"] == SCORECARD:
        command = shlex.join(without_places(shlex.split(meta["command"])))
        text = (run / f"{SCORECARD}.md").read_text().replace(meta["command"], command)
        docs.mkdir(parents=True, exist_ok=True)
        (docs / f"{SCORECARD}.md").write_text(text)
        return docs / f"{SCORECARD}.md"
    scenario = parse(meta["scenario"], meta["source"])
    results = read_whole(run)
    docs.mkdir(parents=True, exist_ok=True)
    figures = {}
    over_time = docs / f"{scenario.id}-{overtime.GOODPUT_OVER_TIME}.svg"
    over_time.unlink(missing_ok=True)
    if goodput := overtime.goodput_over_time(scenario, results, run):
        figures[over_time.name] = goodput.caption
        over_time.write_text(timelines.goodput_figure(goodput.grid))
    rtt_path = docs / f"{scenario.id}-{overtime.RTT_OVER_TIME}.svg"
    rtt_path.unlink(missing_ok=True)
    if rtt := overtime.rtt_over_time(scenario, results, run):
        figures[rtt_path.name], svg = rtt
        rtt_path.write_text(svg)
    share_delay = docs / f"{scenario.id}-{report.SHARE_DELAY}.svg"
    share_delay.unlink(missing_ok=True)
    over_places = overplaces.applies(scenario)
    if any(scatter.shares(results)) and not over_places:
        figures[share_delay.name] = scatter.CAPTION
        share_delay.write_text(scatter.scatter_figure(scenario, results))
    for path in sorted((run / "plots").glob("ratio-*.svg")):
        figures[f"{scenario.id}-{path.name}"] = ratio_caption(scenario, path.stem)
        shutil.copy(path, docs / f"{scenario.id}-{path.name}")
    (docs / f"{scenario.id}.md").write_text(page(scenario, results, meta, figures))
    if over_places:
        figure = overplaces.figure(scenario, results, HEADLINE)
        (docs / f"{scenario.id}.svg").write_text(figure)
    else:
        shutil.copy(run / "plots" / "goodput_mbps.svg", docs / f"{scenario.id}.svg")
    return docs / f"{scenario.id}.md"


if __name__ == "__main__":
    exits.run(app, "publish", "publish")
