# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab diff`: is B worse than A? Two runs, commits, kernels or modules.

The runs are compared seed by seed: seeds are paired, the same losses on both sides. The change of a
figure from a to b is (b - a) / max(a, b): 3 % less is -0.03, and a figure may be zero. Whether it
is worse is asked of each algorithm over all places (each seed's mean over them), and of each place,
by a paired t-test, with Holm's correction for how often it is asked. A regression is what is worse
by that test (ALPHA), in the whole interval of its median, and by more than the bound there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.ask.figures import METRICS
from lab.common import options
from lab.common.errors import BadInput, LabError, unknown
from lab.judge import sides
from lab.judge.sides import SEEDS_MIN
from lab.judge.ttest import p_below
from lab.measure.stats import Estimate, estimate
from lab.run import completion
from lab.run.runs import place_text, read_meta, read_results

ALPHA = 0.01  # chance of one false alarm or more in a whole comparison, halved between the two
EVERYWHERE = "all places"
TABLE_WIDTH = 140  # characters: a row is one line, for scripts that read it
LESS_IS_BETTER = (
    "retransmits", "timeouts", "queue_delay_", "standing_queue_", "srtt_", "owd_", "self_delay_",
    "fct_", "unfinished", "queue_drop", "loss_congestion", "harm", "recovery_", "unrecovered",
    "time_to_fair_", "never_fair", "rtt_ms_", "retry_drops", "own_queue_drops", "drops_per_s",
    "goodput_variation", "ce_marks", "collisions",
)  # fmt: skip
EXIT_REGRESSION, EXIT_CANNOT_TELL = 1, 125  # the second: what `git bisect run` skips

app = options.new_app()

Values = dict[tuple[str, str], dict[int, float]]  # (algorithm, place) -> seed -> figure


@dataclass(frozen=True)
class Change:
    """What became of METRIC for ALGORITHM at PLACE. CHANGES: of each seed, above 0 where it is
    better; P: of a t-test that it is worse; WORSE: that stands Holm's correction."""

    metric: str
    algorithm: str
    place: str
    before: Estimate | None  # not over all places: they have no common figure
    after: Estimate | None
    changes: tuple[float, ...]
    p: float
    worse: bool = False

    @property
    def estimate(self) -> Estimate:
        return estimate(list(self.changes))

    @property
    def same(self) -> bool:
        return not any(self.changes)

    def is_regression(self, bound: float) -> bool:
        return self.worse and self.estimate.high < 0 and self.estimate.median < -bound


def compare(
    first: Iterable[dict[str, Any]], second: Iterable[dict[str, Any]], metrics: Iterable[str]
) -> list[Change]:
    """Return the change of each of METRICS from the FIRST results to the SECOND, for each algorithm
    over all places, and at each place that both have, over the seeds that both have."""
    first, second = list(first), list(second)
    overall: list[Change] = []
    places: list[Change] = []
    for metric in metrics:
        a, b = _values(first, metric), _values(second, metric)
        of_metric = [_change(metric, key, a[key], b[key]) for key in a if key in b]
        of_metric = [change for change in of_metric if change.changes]
        places += of_metric
        for algorithm in dict.fromkeys(change.algorithm for change in of_metric):
            overall += _over_all(metric, algorithm, a, b)
    if not places:
        raise BadInput(f"the two have no point in common that has {' or '.join(metrics)}")
    seeds = min(len(change.changes) for change in places)
    if seeds < SEEDS_MIN:
        raise BadInput(f"{seeds} seeds in common: with fewer than {SEEDS_MIN} nothing is certain")
    return [*_corrected(overall), *_corrected(places)]


def _values(results: list[dict[str, Any]], metric: str) -> Values:
    found: Values = {}
    for result in results:
        if result.get(metric) is not None:
            key = (result["algorithm"], place_text(result["axes"]))
            found.setdefault(key, {})[result["seed"]] = float(result[metric])
    return found


def _relative(metric: str, a: float, b: float) -> float:
    """Return the change from A to B as a share of the larger, above 0 where it is better."""
    change = (b - a) / max(abs(a), abs(b)) if a != b else 0.0
    return -change if metric.startswith(LESS_IS_BETTER) else change


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
    """Return FAMILY with those marked that are worse: Holm's steps, at ALPHA / 2 in all. What is
    the same on both sides was not asked about."""
    asked = sorted((change for change in family if not change.same), key=lambda c: c.p)
    worse = set()
    for i, change in enumerate(asked):
        if change.p > ALPHA / 2 / (len(asked) - i):
            break
        worse.add(id(change))
    return [replace(change, worse=id(change) in worse) for change in family]


def table(changes: list[Change], bound: float, console: Console, everything: bool) -> None:
    """Print what changed, better above 0: each algorithm over all places, and those places that are
    regressions; with EVERYTHING every place."""
    shown = Table(box=None, pad_edge=False)
    for head in ("algorithm", "at", "metric"):
        shown.add_column(head, no_wrap=True)
    for head in ("A", "B", "change, %", "p (worse)", ""):
        shown.add_column(head, justify="right", no_wrap=True)
    single = {c.algorithm for c in changes} - {c.algorithm for c in changes if not c.before}
    rows = 0
    for change in changes:
        bad = change.is_regression(bound)
        overall = change.place == EVERYWHERE or change.algorithm in single
        if change.same or not (everything or bad or overall):
            continue
        rows += 1
        before, after = (e.text() if e else "" for e in (change.before, change.after))
        e = change.estimate
        better = f"{100 * e.median:+.1f} [{100 * e.low:+.1f}, {100 * e.high:+.1f}]"
        shown.add_row(
            change.algorithm, change.place, change.metric, before, after, better,
            f"{change.p:.2g}", "REGRESSION" if bad else "",
        )  # fmt: skip
    if rows:
        console.print(shown)


def summary(changes: list[Change], bound: float) -> str:
    """Return the last line: what was found."""
    same = sum(change.same for change in changes)
    bad = [change for change in changes if change.is_regression(bound)]
    seeds = min(len(change.changes) for change in changes)
    told = f"{seeds} seeds. {same} of {len(changes)} comparisons are the same to the last digit. "
    if bad:
        worst = min(median(change.changes) for change in bad)
        return told + f"{len(bad)} regressions beyond {bound:.1%}, the worst {-worst:.1%}."
    return told + f"No regression beyond {bound:.1%} is certain."


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
        str, typer.Option("--metrics", metavar="A,B", help="What is compared.")
    ] = "goodput_mbps",
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
        str,
        typer.Option(
            metavar="A,B",
            help="Of the scenario, these only.",
            autocompletion=completion.algorithms,
        ),
    ] = "",
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Seeds 1 to N, where neither is a folder.")
    ] = 10,
    jobs: options.Jobs = 0,
    all_: Annotated[bool, typer.Option("--all", help="Show every place.")] = False,
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

    Exit status: 0 no regression, 1 a regression, 2 bad input, 125 with --bisect: cannot be told.
    docs/bisect.md says how to find the commit.
    """
    try:
        share = parse_bound(bound)
        of_metrics = options.names(metrics)
        for metric in of_metrics:
            if metric not in METRICS:
                raise unknown("metric", metric, METRICS)
        wanted = sides.Wanted(scenario, set_ or [], algorithms, seeds, options.job_count(jobs))
        folders = sides.measure(a, b, wanted)
        regressions = _report(folders, of_metrics, share, all_)
    except (BadInput, LabError) as error:
        if not bisect:
            raise
        typer.echo(f"diff: {error}", err=True)
        raise typer.Exit(EXIT_CANNOT_TELL) from None
    raise typer.Exit(EXIT_REGRESSION if regressions else 0)


def _report(folders: tuple[Path, Path], metrics: tuple[str, ...], bound: float, all_: bool) -> int:
    """Print the comparison of two runs; return how many regressions there are."""
    changes = compare(*map(read_results, folders), metrics)
    console = Console(width=TABLE_WIDTH, highlight=False)
    for name, folder in zip("AB", folders, strict=True):
        meta = read_meta(folder)
        of = f"Linux {meta['kernel_release']}, commit {meta['git_commit'][:12]}"
        console.print(f"{name}: {folder} ({of})", markup=False, soft_wrap=True)
    table(changes, bound, console, all_)
    console.print(summary(changes, bound), markup=False, soft_wrap=True)
    return sum(change.is_regression(bound) for change in changes)
