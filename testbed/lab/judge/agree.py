# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab agree`: two runs of one scenario, each on a backend of its own.

It prints a page with both medians at each place of the sweep and the second's over the first's. The
seeds' losses are the same in both where netem takes a seed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.ask.figures import METRICS
from lab.common import options
from lab.common.errors import BadInput, unknown
from lab.measure.stats import Estimate, estimate
from lab.run import completion
from lab.run.runs import NS3, check_alike, place_of, read_meta, read_whole

WITHIN = 0.03  # of the first run's median

app = options.new_app()


@dataclass(frozen=True)
class Run:
    meta: dict[str, Any]
    values: dict[tuple[str, str], dict[int, float]]  # (place, algorithm) -> seed -> value

    @property
    def where(self) -> str:
        kernel = self.meta["kernel_release"]
        linux = "" if self.meta["backend"] == NS3 else "Linux "
        return f"{self.meta['backend']}, {linux}{kernel}"

    @property
    def point_s(self) -> float | None:
        """Seconds of one core that a point took, boots included; None if they are not known."""
        if not {"wall_s", "jobs", "points"} <= self.meta.keys() or not self.meta["wall_s"]:
            return None
        if self.meta.get("points_of_earlier_runs") or not self.meta["points"]:
            return None
        return self.meta["wall_s"] * self.meta["jobs"] / self.meta["points"]


@dataclass(frozen=True)
class Pair:
    """What both runs measured at one PLACE for one ALGORITHM."""

    place: str
    algorithm: str
    first: Estimate
    second: Estimate
    by_seed: Estimate  # of the ratios within each seed

    @property
    def ratio(self) -> float:
        return self.second.median / self.first.median

    @property
    def agrees(self) -> bool:
        return abs(self.ratio - 1) <= WITHIN

    def row(self) -> str:
        cells = (
            self.place, self.algorithm, self.first.text(), self.second.text(),
            f"{self.ratio:.3f}", self.by_seed.text(3), "yes" if self.agrees else "**no**",
        )  # fmt: skip
        return f"| {' | '.join(cells)} |"


def load(folder: Path, metric: str) -> Run:
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    meta = read_meta(folder)
    values: dict[tuple[str, str], dict[int, float]] = {}
    for result in read_whole(folder):
        if not result.get(metric):
            at = place_of(result, meta["scenario"])
            raise BadInput(f"{folder} has no {metric} at {at}: there is no ratio")
        key = (place_of(result, meta["scenario"]), result["algorithm"])
        values.setdefault(key, {})[result["seed"]] = result[metric]
    return Run(meta, values)


def compare(first: Run, second: Run) -> list[Pair]:
    """Return what both runs have in common, over the seeds that both ran."""
    check_alike(first.meta, second.meta)
    pairs = []
    for key in first.values.keys() & second.values.keys():
        a, b = first.values[key], second.values[key]
        seeds = sorted(a.keys() & b.keys())
        if not seeds:
            raise BadInput(f"the two runs have no seed in common at {key[0]}, {key[1]}")
        pairs.append(
            Pair(
                *key,
                estimate([a[seed] for seed in seeds]),
                estimate([b[seed] for seed in seeds]),
                estimate([b[seed] / a[seed] for seed in seeds]),
            )
        )
    if not pairs:
        raise BadInput("the two runs have no point in common")
    order = list(first.values)
    return sorted(pairs, key=lambda pair: order.index((pair.place, pair.algorithm)))


def page(first: Run, second: Run, metric: str) -> str:
    """Return what is printed: how both runs were made, and a table."""
    pairs = compare(first, second)
    agreeing = sum(pair.agrees for pair in pairs)
    worst = max(abs(pair.ratio - 1) for pair in pairs)
    head = f"| | | {first.where} | {second.where} | ratio | ratio within a seed | within 3 % |"
    lines = [
        f"# {first.meta['scenario']}: {first.meta['title']}",
        "",
        *(f"    {run.meta['command']}" for run in (first, second)),
        "",
        *_alone(first, second),
        f"{metric}, median and interval ({pairs[0].first.coverage:.1%}) of {pairs[0].first.n}"
        f" seeds. {agreeing} of {len(pairs)} medians agree within {WITHIN:.0%}, the worst is off by"
        f" {worst:.1%}.",
        "",
        head,
        "|---" * 7 + "|",
        *(pair.row() for pair in pairs),
        *_took(first, second),
    ]
    return "\n".join(lines)


def _alone(first: Run, second: Run) -> list[str]:
    """Return a paragraph that names what the first run has and the second has not."""
    alone = [", ".join(key) for key in first.values if key not in second.values]
    return [f"Not compared, as the second has it not: {'; '.join(alone)}.", ""] if alone else []


def _took(first: Run, second: Run) -> list[str]:
    """Return the row of what a point cost, if both runs know it."""
    if first.point_s is None or second.point_s is None:
        return []
    ratio = f"{second.point_s / first.point_s:.3f}"
    cells = ("wall time of a point, s of one core", "all", f"{first.point_s:.2f}",
             f"{second.point_s:.2f}", ratio, "", "")  # fmt: skip
    return [f"| {' | '.join(cells)} |"]


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run, the reference.")],
    other: Annotated[Path, typer.Argument(metavar="DIR", help="On another backend, or of ns3.")],
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What is compared.",
            autocompletion=completion.listed(lambda: METRICS),
        ),
    ] = "goodput_mbps",
) -> None:
    """Compare two runs of a scenario on two backends or kernels, as a page.

    \b
    Examples:
      testbed/run kernels-agree --out /tmp/virtual
      testbed/run kernels-agree --backend vm --out /tmp/vm
      testbed/veno-lab agree /tmp/virtual /tmp/vm

    Exit status: 0 they agree, 1 a median differs by more than 3 %, 2 bad input, as where points
    have no result.
    """
    first, second = load(run, metric), load(other, metric)
    print(page(first, second, metric))
    raise typer.Exit(0 if all(pair.agrees for pair in compare(first, second)) else 1)
