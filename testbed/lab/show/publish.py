# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab publish`: turn a finished run into a page of docs/results: tables, a
figure, and how to get it again."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.ask.figures import JITTER_RATIOS, MEDIUM_FIGURES
from lab.ask.parts import Scenario, place_text
from lab.ask.scenario import list_scenarios, load, parse
from lab.common import options
from lab.common.errors import BadInput, writing
from lab.judge import claims
from lab.judge.enough import ENOUGH_SEEDS, NEEDED, count
from lab.judge.verdicts import HEAD, Score
from lab.run.runs import check_measured, read_meta, read_whole, without_options
from lab.run.store import write_atomically
from lab.show import (
    facts,
    overplaces,
    overplacesplot,
    overtime,
    papersindex,
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
        lines.append(
            f"| {row['text']} (`{row['subject']}`) | {row['paper']} | {row['measured']}"
            f" | {row['bound']} | {row['verdict']} |"
        )
    return "\n".join(lines)


def reasons(scenario: Scenario, verdicts: list[claims.Verdict]) -> str:
    """Return why claims do not hold or are not decided, as far as it is known: it often is not
    before a run has been looked at, so the lab's own scenario as it is today may know more."""
    ours = {path.stem for path in list_scenarios()}
    today = load(scenario.id).claims if scenario.id in ours else ()
    known = {claim.id: claim.why_not for claim in (*scenario.claims, *today) if claim.why_not}
    return "\n".join(
        f"- {verdict.claim.text}: {verdict.verdict}. Why: {known[verdict.claim.id]}."
        for verdict in verdicts
        if verdict.verdict != claims.HOLDS and verdict.claim.id in known
    )


def scores_table(found: list[Score]) -> str:
    head = ["algorithm", "at", *HEAD]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join([s.algorithm, s.place, *s.texts])} |" for s in found]
    return "\n".join(lines)


def asked_first(scenario: Scenario, run: Path) -> str:
    """Return the metric that a page shows first: that of the first claim, if the run has a figure
    of it. One of the sum of goodput says nothing of who had it."""
    asked = scenario.claims[0].metric if scenario.claims else HEADLINE
    return asked if (run / f"plots/{asked}.svg").is_file() else HEADLINE


def page(
    scenario: Scenario, results: list[dict[str, Any]], meta: dict[str, Any],
    figures: dict[str, str], first: str = HEADLINE,
) -> str:  # fmt: skip
    """Return the page of a run, with a figure and a table of the metric FIRST. FIGURES: those
    besides, file name -> what it shows."""
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
        f"![{facts.metric(first).label}](./{scenario.id}.svg)",
        *(f"{caption}:\n\n![{caption}](./{name})" for name, caption in figures.items()),
    ]
    shown = tuple(dict.fromkeys((HEADLINE, first, *METRICS, *METRICS_IF_THERE)))
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
        verdicts = claims.judge(scenario, results, meta["seeds"])
        parts += ["## Claims", claims_table(verdicts)]
        parts += filter(None, [reasons(scenario, verdicts)])
    if scenario.id not in {path.stem for path in list_scenarios()}:
        source = json.dumps(scenario.source, indent=2, ensure_ascii=False)
        parts += ["<details><summary>Scenario as run</summary>", f"```json\n{source}\n```"]
        parts += ["</details>"]
    return "\n\n".join(parts) + "\n"


def ratio_caption(scenario: Scenario, stem: str) -> str:
    """Return what the figure STEM of a report shows: ratio-ALGORITHM-number of the place."""
    _, algorithm, number = stem.split("-")
    at = place_text(scenario.axes, facts.places(scenario)[int(number)])
    return f"Jitter ratio of {algorithm} over time" + (f", {at}" if at else "")


def _took(meta: dict[str, Any]) -> str:
    """Return how long the run took, nothing if some of its points are of an earlier one."""
    return "" if meta.get("points_of_earlier_runs") else f" in {meta['wall_s']:.0f} s"


def without_places(arguments: list[str]) -> list[str]:
    """Drop where the results went, and which machines ran it: it means nothing to a reader."""
    return without_options(arguments, OF_PLACES, ("--resume",))


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
    docs = docs or resultsindex.ours()
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
    check_measured(run)
    meta = read_meta(run)
    _check_enough(run, meta, docs)
    if meta["scenario"] == SCORECARD:
        command = shlex.join(without_places(shlex.split(meta["command"])))
        text = _made(run, f"{SCORECARD}.md").replace(meta["command"], command)
        return _replace(docs, f"{SCORECARD}.md", {f"{SCORECARD}.md": text})
    scenario = parse(meta["scenario"], meta["source"])
    results = read_whole(run)
    over_time, rtt_over_time, share_delay = (
        f"{scenario.id}-{name}.svg"
        for name in (overtime.GOODPUT_OVER_TIME, overtime.RTT_OVER_TIME, report.SHARE_DELAY)
    )
    captions, files = {}, {}  # of the figures besides the first; name -> text
    if goodput := overtime.goodput_over_time(scenario, results, run):
        captions[over_time] = goodput.caption
        files[over_time] = timelines.goodput_figure(goodput.grid)
    if rtt := overtime.rtt_over_time(scenario, results, run):
        captions[rtt_over_time], files[rtt_over_time] = rtt
    over_places = overplaces.applies(scenario)
    if any(scatter.shares(results)) and not over_places:
        captions[share_delay] = scatter.CAPTION
        files[share_delay] = scatter.scatter_figure(scenario, results)
    for path in sorted((run / "plots").glob("ratio-*.svg")):
        captions[f"{scenario.id}-{path.name}"] = ratio_caption(scenario, path.stem)
        files[f"{scenario.id}-{path.name}"] = path.read_text()
    first = HEADLINE if over_places else asked_first(scenario, run)
    files[f"{scenario.id}.svg"] = (
        overplacesplot.figure(scenario, results, first)
        if over_places
        else _made(run, f"plots/{first}.svg")
    )
    files[f"{scenario.id}.md"] = page(scenario, results, meta, captions, first)
    return _replace(docs, f"{scenario.id}.md", files, (over_time, rtt_over_time, share_delay))


def _check_enough(run: Path, meta: dict[str, Any], docs: Path) -> None:
    """Refuse to make a run of too few seeds a page of the project's: it would take a result's
    place. A scenario of random places may have one seed, as each place is a draw."""
    if docs.resolve() != resultsindex.OURS or meta["scenario"] == SCORECARD:
        return
    ours = {path.stem for path in list_scenarios()}
    wanted = load(meta["scenario"]).run.seeds if meta["scenario"] in ours else ENOUGH_SEEDS
    seeds = len(meta["seeds"])
    if seeds < min(ENOUGH_SEEDS, wanted):
        raise BadInput(f"{run} has {count(seeds)}: {NEEDED}; name a folder for a look at its page")


def _made(run: Path, name: str) -> str:
    """Return the text of the file NAME that the run in RUN has written."""
    if not (run / name).is_file():
        raise BadInput(f"{run} has no {name}: run its command again with --resume")
    return (run / name).read_text()


def _replace(docs: Path, shown: str, files: dict[str, str], of_before: Sequence[str] = ()) -> Path:
    """Write FILES (name -> text), which are all there are to write, into DOCS; take away those
    OF_BEFORE that are not among them. Return where the page SHOWN is."""
    with writing(docs):
        docs.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(docs / name, text, "free space or choose another DOCS")
    for name in of_before:
        if name not in files:
            (docs / name).unlink(missing_ok=True)
    return docs / shown
