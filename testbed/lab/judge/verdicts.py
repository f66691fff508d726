# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab verdicts`: how often algorithms were right about losses, over whole runs.

It prints the confusion matrix of each algorithm and place of the sweep, and writes all verdicts,
with what was known at each (lab.measure.truth) and what was true, into one table, on which rules
can be tried.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from lab.ask.figures import CLASSIFIED
from lab.common import options
from lab.common.errors import BadInput, writing
from lab.measure import truth
from lab.run.runs import check_measured, place_text, read_results
from lab.run.store import VERDICTS

COUNTS = tuple(name for name in CLASSIFIED if "_as_" in name)
HEAD = (
    "random, said random", "random, said congestion", "congestion, said random",
    "congestion, said congestion", "none, said random", "none, said congestion",
    "random: recall", "random: precision", "congestion: recall", "congestion: precision",
)  # fmt: skip
EVERYWHERE = "all"

app = options.new_app()


@dataclass(frozen=True)
class Score:
    """The confusion matrix of one algorithm at one place, summed over the seeds."""

    algorithm: str
    place: str
    counts: dict[str, int]

    @property
    def is_total(self) -> bool:
        return self.place == EVERYWHERE

    @property
    def texts(self) -> list[str]:
        """Return the cells of a table, in the order of HEAD."""
        rates = truth.rates(self.counts)
        values = [*(self.counts[name] for name in COUNTS), *(rates[n] for n in CLASSIFIED[6:])]
        return [_text(value) for value in values]


def _text(value: int | float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def scores(results: Iterable[dict[str, Any]]) -> list[Score]:
    """Return each algorithm's matrix at each place, and over all of them if there are several."""
    summed: dict[str, dict[str, dict[str, int]]] = {}
    for result in results:
        if result.get(COUNTS[0]) is None:
            continue
        places = summed.setdefault(result["algorithm"], {EVERYWHERE: dict.fromkeys(COUNTS, 0)})
        here = places.setdefault(place_text(result["axes"]), dict.fromkeys(COUNTS, 0))
        for counts in (here, places[EVERYWHERE]):
            for name in COUNTS:
                counts[name] += result[name]
    found = []
    for algorithm, places in summed.items():
        everywhere = places.pop(EVERYWHERE)
        if len(places) > 1:
            places[EVERYWHERE] = everywhere
        found += [Score(algorithm, place, counts) for place, counts in places.items()]
    return found


def collect(folders: Sequence[Path]) -> pl.DataFrame:
    """Return the verdicts of all points of the runs in FOLDERS: the columns of verdicts.csv after
    those that name the point (scenario, under_test, seed, and one for each axis)."""
    tables = []
    for folder in folders:
        for result in read_results(folder):
            path = folder / "samples" / f"{result['point']}.{VERDICTS}"
            if not path.is_file():
                continue
            point = {
                "scenario": result["scenario"],
                "under_test": result["algorithm"],
                "seed": result["seed"],
            } | result["axes"]
            rows = pl.read_csv(path, schema=truth.COLUMNS)
            tables.append(rows.select(*(pl.lit(v).alias(k) for k, v in point.items()), pl.all()))
    if not tables:
        names = ", ".join(map(str, folders))
        raise BadInput(f"no verdicts in {names}: run with --set run.truth=true")
    merged = pl.concat(tables, how="diagonal_relaxed")
    own = list(truth.COLUMNS)
    return merged.select([name for name in merged.columns if name not in own] + own)


def print_scores(found: list[Score], console: Console) -> None:
    table = Table("algorithm", "at", *HEAD, box=None, pad_edge=False)
    for score in found:
        table.add_row(score.algorithm, score.place, *score.texts)
    console.print(table)


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR", help="Of finished runs.")],
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all verdicts to this file.")
    ] = None,
) -> None:
    """Print how often each algorithm took a loss for what it was: noise for noise, congestion for
    congestion. The runs must have been made with run.truth, which records what dropped each packet.

    \b
    Examples:
      testbed/run demo --set run.truth=true --algorithms jtcp,veno03 --out /tmp/demo
      testbed/veno-lab verdicts /tmp/demo --csv /tmp/verdicts.csv

    Exit status: 0 done, 2 bad input.
    """
    for folder in runs:
        check_measured(folder)
    results = [result for folder in runs for result in read_results(folder)]
    rows = collect(runs)
    console = Console(width=200)
    for scenario in dict.fromkeys(result["scenario"] for result in results):
        console.print(f"{scenario} (columns: what the loss was, what it was said to be)")
        print_scores(scores(r for r in results if r["scenario"] == scenario), console)
    if csv:
        with writing(csv):
            rows.write_csv(csv)
        console.print(f"{len(rows)} verdicts: {csv}")
