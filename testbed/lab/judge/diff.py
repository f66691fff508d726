# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab diff`: is B worse than A? Two runs, commits, kernels or modules.

The runs are compared seed by seed: seeds are paired, the same losses on both sides. The change of a
figure from a to b is (b - a) / max(a, b): 3 % less is -0.03, and a figure may be zero. Whether it
is worse is asked of each algorithm over all places (each seed's mean over them), and of each place,
by a paired t-test, with Holm's correction for how often it is asked. A regression is what is worse
by that test (ALPHA), in the whole interval of its median, and by more than the bound there. What is
worse there but not certain by that test is told of, with how many seeds may be enough.
"""

import math
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.ask.figures import LESS, METRICS, NEITHER
from lab.common import options
from lab.common.errors import BadInput, LabError, unknown
from lab.common.exits import EXIT_CANNOT_TELL, EXIT_NOT_MEASURED, EXIT_REGRESSION
from lab.judge import enough, sides
from lab.judge.enough import ENOUGH_SEEDS, NEEDED, USUAL_SEEDS
from lab.judge.ttest import p_below, upper_tail
from lab.measure.stats import Estimate, estimate
from lab.run import completion
from lab.run.runs import NS3, check_alike, place_of, read_meta, read_whole, user_modules

ALPHA = 0.01  # chance of one false alarm or more in a whole comparison
FAMILIES = 2  # all places together, and each place, have the half of it each
SEEDS_MOST = 1000  # with which nothing would be certain that is not certain with fewer
EVERYWHERE = "all places"
TABLE_WIDTH = 160  # characters: a row is one line, for scripts that read it
USUAL_METRICS = ("goodput_mbps",)
# A sum hides who has it: what a rival lost the flows under test may have taken.
BESIDE_RIVALS = ("goodput_test_mbps", "goodput_other_mbps")

app = options.new_app()

Values = dict[tuple[str, str], dict[int, float]]  # (algorithm, place) -> seed -> figure


@dataclass(frozen=True)
class Change:
    """What became of METRIC for ALGORITHM at PLACE. CHANGES: of each seed, above 0 where it is
    better; P: of a t-test that it is worse; CORRECTED: the same for how often it was asked, ASKED
    in its family, so that ALPHA is what it is held against."""

    metric: str
    algorithm: str
    place: str
    before: Estimate | None  # not over all places: they have no common figure
    after: Estimate | None
    changes: tuple[float, ...]
    p: float
    corrected: float = 1.0
    asked: int = 1

    @property
    def estimate(self) -> Estimate:
        return estimate(list(self.changes))

    @property
    def same(self) -> bool:
        return not any(self.changes)

    @property
    def worse(self) -> bool:
        return self.corrected <= ALPHA

    def looks_worse(self, bound: float) -> bool:
        """Say whether it is worse beyond BOUND by its median, and in the whole interval of that."""
        return self.estimate.high < 0 and self.estimate.median < -bound

    def is_regression(self, bound: float) -> bool:
        return self.worse and self.looks_worse(bound)

    def is_open(self, bound: float) -> bool:
        """Say whether it looks worse, and is not certain."""
        return not self.worse and self.looks_worse(bound)

    def is_gain(self, bound: float) -> bool:
        """Say whether it is better beyond BOUND, as certainly as it would have to be worse: by the
        same test the other way round, with Bonferroni's correction for the asked."""
        if not self.estimate.low > 0 or self.estimate.median <= bound:
            return False
        return FAMILIES * self.asked * p_below([-change for change in self.changes]) <= ALPHA

    @property
    def is_even(self) -> bool:
        """Whether it is the same in every seed, as from nothing to something is."""
        return all(change == self.changes[0] for change in self.changes)

    def seeds_needed(self) -> int:
        """Return with how many seeds this would be certain, if all were as those there are; 0 if
        not even SEEDS_MOST were enough."""
        enough = ALPHA / FAMILIES / self.asked
        if self.is_even:
            return math.ceil(-math.log2(enough))
        effect = -fmean(self.changes) / stdev(self.changes)
        counts = range(len(self.changes) + 1, SEEDS_MOST + 1)
        certain = (n for n in counts if upper_tail(effect * math.sqrt(n), n - 1) <= enough)
        return next(certain, 0)


def compare(
    first: Iterable[dict[str, Any]], second: Iterable[dict[str, Any]], metrics: Iterable[str]
) -> list[Change]:
    """Return the change of each of METRICS from the FIRST results to the SECOND, for each algorithm
    over all places, and at each place that both have, over the seeds that both have."""
    first, second = list(first), list(second)
    _check_drawn(first, second)
    overall: list[Change] = []
    places: list[Change] = []
    for metric in metrics:
        a, b = _sides(first, second, metric)
        of_metric = [_change(metric, key, a[key], b[key]) for key in a if key in b]
        of_metric = [change for change in of_metric if change.changes]
        places += of_metric
        for algorithm in dict.fromkeys(change.algorithm for change in of_metric):
            overall += _over_all(metric, algorithm, a, b)
    if not places:
        raise BadInput(f"the two have no point in common that has {' or '.join(metrics)}")
    seeds = min(len(change.changes) for change in places)
    if seeds < ENOUGH_SEEDS:
        raise BadInput(f"{enough.count(seeds)} in common; {NEEDED}")
    return [*_corrected(overall), *_corrected(places)]


def usual_metrics(*runs: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return what is compared of RUNS where nobody says: goodput; where all of them have rivals
    that of a flow under test, and that of a flow beside it."""
    rivals = (any(r.get("goodput_other_mbps") is not None for r in run) for run in runs)
    return BESIDE_RIVALS if all(rivals) else USUAL_METRICS


def alone(
    first: list[dict[str, Any]], second: list[dict[str, Any]], metrics: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return what cannot be compared, as the FIRST results have it and the SECOND have not: METRICS
    of algorithms and seeds that both have, and algorithms."""
    seeds = {result["seed"] for result in second}
    asked = {result["algorithm"] for result in second}
    values, algorithms = [], []
    for metric in metrics:
        a, b = _sides(first, second, metric)
        for (algorithm, place), of_seed in a.items():
            if algorithm not in asked:
                algorithms.append(algorithm)
            elif of_seed.keys() & seeds - b.get((algorithm, place), {}).keys():
                values.append(f"{metric} of {algorithm} at {place}")
    return values, list(dict.fromkeys(algorithms))


def _sides(
    first: list[dict[str, Any]], second: list[dict[str, Any]], metric: str
) -> tuple[Values, Values]:
    """Return what is known of METRIC on both sides."""
    scenarios = {result.get("scenario", "") for result in (*first, *second)}
    run = scenarios.pop() if len(scenarios) == 1 else ""
    a, b = {}, {}
    for found, results in ((a, first), (b, second)):
        for result in results:
            if result.get(metric) is not None:
                key = (result["algorithm"], place_of(result, run))
                found.setdefault(key, {})[result["seed"]] = float(result[metric])
    return a, b


def _check_drawn(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    """Refuse random places that are not the same places."""
    drawn = {(r.get("scenario"), place_of(r, "")): r.get("drawn") for r in first}
    for result in second:
        scenario, place = result.get("scenario"), place_of(result, "")
        if drawn.get((scenario, place), result.get("drawn")) != result.get("drawn"):
            raise BadInput(f"{place} is another place in each run: they were drawn by other seeds")


def _relative(metric: str, a: float, b: float) -> float:
    """Return the change from A to B as a share of the larger, above 0 where it is better."""
    change = (b - a) / max(abs(a), abs(b)) if a != b else 0.0
    return -change if METRICS[metric] == LESS else change


def _change(metric: str, key: tuple[str, str], a: dict[int, float], b: dict[int, float]) -> Change:
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return Change(metric, *key, None, None, (), 1.0)
    before, after = (estimate([side[seed] for seed in seeds]) for side in (a, b))
    changes = tuple(_relative(metric, a[seed], b[seed]) for seed in seeds)
    return Change(metric, *key, before, after, changes, p_below(changes))


def _over_all(metric: str, algorithm: str, a: Values, b: Values) -> list[Change]:
    """Return the change of ALGORITHM over all places, where it has several: each seed's mean."""
    keys = [key for key in a if key in b and key[0] == algorithm]
    by_seed: dict[int, list[float]] = {}
    for key in keys:
        for seed in a[key].keys() & b[key].keys():
            change = _relative(metric, a[key][seed], b[key][seed])
            by_seed.setdefault(seed, []).append(change)
    if len(keys) < 2:
        return []
    whole = [fmean(by_seed[s]) for s in sorted(by_seed) if len(by_seed[s]) == len(keys)]
    if not whole:
        return []
    return [Change(metric, algorithm, EVERYWHERE, None, None, tuple(whole), p_below(whole))]


def _corrected(family: list[Change]) -> list[Change]:
    """Return FAMILY with what p is after Holm's correction, and that for there being FAMILIES. What
    is the same on both sides was not asked about."""
    asked = sorted((change for change in family if not change.same), key=lambda c: c.p)
    corrected, most = {}, 0.0
    for i, change in enumerate(asked):
        most = max(most, min(1.0, FAMILIES * (len(asked) - i) * change.p))
        corrected[id(change)] = most
    return [replace(c, corrected=corrected.get(id(c), 1.0), asked=len(asked)) for c in family]


def table(changes: list[Change], bound: float, console: Console, everything: bool) -> None:
    """Print what changed, better above 0: each algorithm over all places, and those places that are
    regressions; with EVERYTHING every place."""
    shown = Table(box=None, pad_edge=False)
    for head in ("algorithm", "at", "metric"):
        shown.add_column(head, no_wrap=True)
    for head in ("A", "B", "change, %", "p, corrected", ""):  # p of its being worse
        shown.add_column(head, justify="right", no_wrap=True)
    rows, whole = 0, wholes(changes)
    for change in changes:
        bad, good = change.is_regression(bound), change.is_gain(bound)
        if change.same or not (everything or bad or good or change in whole):
            continue
        rows += 1
        before, after = (e.text() if e else "" for e in (change.before, change.after))
        e = change.estimate
        better = f"{100 * e.median:+.1f} [{100 * e.low:+.1f}, {100 * e.high:+.1f}]"
        shown.add_row(
            change.algorithm, change.place, change.metric, before, after, better,
            f"{change.corrected:.2g}", "REGRESSION" if bad else "better" * good,
        )  # fmt: skip
    if rows:
        console.print(shown)


def wholes(changes: list[Change]) -> list[Change]:
    """Return those of CHANGES that are of an algorithm as a whole: over all places, or at its only
    one."""
    several = {(c.algorithm, c.metric) for c in changes if c.place == EVERYWHERE}
    return [c for c in changes if c.place == EVERYWHERE or (c.algorithm, c.metric) not in several]


def undecided(changes: list[Change], bound: float) -> list[Change]:
    """Return those of CHANGES that look worse beyond BOUND, and that more seeds may make certain.
    Of many places some look so where nothing changed: one counts if it were certain alone, with
    no other asked about, or if it is worse by as much in every seed."""
    whole = wholes(changes)
    likely = (c for c in changes if c.is_open(bound))
    return [c for c in likely if c.is_even or c in whole or FAMILIES * c.p <= ALPHA]


def summary(changes: list[Change], bound: float) -> str:
    """Return the last line: what was found."""
    same = sum(change.same for change in changes)
    bad = [change for change in changes if change.is_regression(bound)]
    seeds = min(len(change.changes) for change in changes)
    told = f"{seeds} seeds. {same} of {len(changes)} comparisons are the same to the last digit. "
    if bad:
        worst = min(median(change.changes) for change in bad)
        told += f"{len(bad)} regressions beyond {bound:.1%}, the worst {-worst:.1%}."
    else:
        told += f"No regression beyond {bound:.1%} is certain: that takes a p of {ALPHA:g} or less."
    if gains := [change for change in changes if change.is_gain(bound)]:
        most = max(median(change.changes) for change in gains)
        told += f" {len(gains)} better beyond {bound:.1%}, by {most:.1%} at most."
    return f"{told}{_open_text(changes, bound)}"


def _open_text(changes: list[Change], bound: float) -> str:
    """Return what is to be said of those CHANGES that more seeds may make certain."""
    found, told = undecided(changes, bound), ""
    if even := [change.seeds_needed() for change in found if change.is_even]:
        seeds = min(len(change.changes) for change in found)
        told += f" What is worse by as much in every seed cannot be told with {seeds}:"
        told += f" {max(even)} are needed."
    if uneven := [change for change in found if not change.is_even]:
        first = uneven[0]  # as a whole, if any is
        needed = max(change.seeds_needed() for change in uneven)
        told += f" Not certain: more seeds{f' ({needed})' if needed else ''} may tell whether"
        told += f" {first.algorithm} is worse"
        told += f" at {first.place}" if first.place not in (EVERYWHERE, "-") else ""
        told += f" ({first.metric} {first.estimate.median:.1%}"
        told += f", and {len(uneven) - 1} more)." if len(uneven) > 1 else ")."
    return told


def parse_bound(text: str) -> float:
    """Return the share that TEXT is: 3% or 0.03."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    share = number / 100 if text.endswith("%") else number
    if not 0 <= share < 1:
        raise BadInput(f"--bound {text}: a share, as 3% or 0.03")
    return share


def _comparable() -> list[str]:
    """Return the metrics of which more or less is worse."""
    return [name for name, better in METRICS.items() if better != NEITHER]


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="The reference: a run's folder, commit, kernel, module."),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What may be worse, one of the same.")],
    bound: Annotated[
        str, typer.Option(metavar="SHARE", help="What is no regression yet, at the median.")
    ] = "1%",
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="A,B",
            help="What is compared.",
            autocompletion=completion.listed(_comparable),
            show_default=f"{USUAL_METRICS[0]}; beside rivals {','.join(BESIDE_RIVALS)}",
        ),
    ] = None,
    scenario: Annotated[
        str,
        typer.Option(
            metavar="SCENARIO",
            help="What to run, where neither is a folder.",
            autocompletion=completion.scenarios,
        ),
    ] = "",
    set_: options.Settings = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="These only, where not both are folders.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Seeds 1 to N, where neither is a folder.",
            show_default=str(USUAL_SEEDS),
        ),
    ] = None,
    jobs: options.Jobs = 0,
    all_: Annotated[bool, typer.Option("--all", help="Show every place that differs.")] = False,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect", help="Exit with 125 where it cannot be told: git bisect run skips that."
        ),
    ] = False,
) -> None:
    """Say whether B is worse than A: two finished runs; or a run and a commit, kernel source or
    module, which is measured as the run was; or two of those with --scenario. Seeds are paired. A
    regression is worse for certain (1 % chance of a false alarm in all) and by more than --bound.

    \b
    Examples:
      testbed/veno-lab diff results/before results/after
      testbed/veno-lab diff HEAD~1 HEAD --scenario demo --algorithms veno_jitter
      testbed/veno-lab diff results/good ./tcp_mine.c --bound 3%
      testbed/veno-lab diff ~/linux-6.12 ~/linux --scenario veno-single --algorithms bbr

    Exit status: 0 no regression for certain, 1 a regression, 2 bad input, 4 could not be measured
    (a commit that does not build, a value that B has no more), 125 with --bisect: cannot be told,
    whatever the reason; 130 interrupted.
    docs/bisect.md says how to find the commit.
    """
    try:
        share = parse_bound(bound)
        asked = options.chosen("--algorithms", algorithms, "all")
        of_metrics = options.chosen("--metrics", metrics, "goodput")
        for metric in of_metrics:
            if metric not in METRICS:
                raise unknown("metric", metric, METRICS)
            if METRICS[metric] == NEITHER:
                raise BadInput(f"--metrics {metric}: neither more nor less of it is worse")
        options.check_seed(seeds)
        jobs = options.job_count(jobs)
        wanted = sides.Wanted(scenario, set_ or [], asked, seeds or 0, jobs)
        folders = sides.measure(a, b, wanted)
        status = _report(folders, of_metrics, asked, share, all_)
    except Exception as error:  # nothing but a regression may end with a regression's status
        if isinstance(error, BadInput) and not bisect:
            raise
        told = str(error) if isinstance(error, BadInput | LabError) else traceback.format_exc()
        typer.echo(f"diff: {told}", err=True)
        status = EXIT_NOT_MEASURED
    if bisect:
        status = EXIT_CANNOT_TELL if status == EXIT_NOT_MEASURED else status
    elif status == EXIT_CANNOT_TELL:
        status = 0
    raise typer.Exit(status)


def _report(
    folders: tuple[Path, Path],
    metrics: tuple[str, ...],
    algorithms: tuple[str, ...],
    bound: float,
    all_: bool,
) -> int:
    """Print the comparison of two runs by METRICS, or the usual ones, of these ALGORITHMS alone if
    any are named; return the exit status."""
    metas = [read_meta(folder) for folder in folders]
    check_alike(*metas)
    first, second = (
        [r for r in read_whole(folder) if not algorithms or r["algorithm"] in algorithms]
        for folder in folders
    )
    metrics = metrics or usual_metrics(first, second)
    changes = compare(first, second, metrics)
    console = Console(width=TABLE_WIDTH, highlight=False)
    for name, folder, meta in zip("AB", folders, metas, strict=True):
        linux = "" if meta.get("backend") == NS3 else "Linux "
        commit = f", commit {meta['git_commit'][:12]}" if meta.get("git_commit") else ""
        of = f"{linux}{meta['kernel_release']}{commit}"
        of += "".join(f", {module} {version}" for module, version in user_modules(meta))
        console.print(f"{name}: {folder} ({of})", markup=False, soft_wrap=True)
    table(changes, bound, console, all_)
    values, not_asked = alone(first, second, metrics)
    if values or not_asked:
        told = "; ".join([*values, *not_asked])
        console.print(f"Not compared, as B has it not: {told}.", markup=False)
    console.print(summary(changes, bound), markup=False, soft_wrap=True)
    if any(change.is_regression(bound) for change in changes):
        return EXIT_REGRESSION
    if values:
        console.print(f"Status {EXIT_NOT_MEASURED}: B lacks {len(values)} of A's figures.")
        return EXIT_NOT_MEASURED
    return EXIT_CANNOT_TELL if not_asked or undecided(changes, bound) else 0
