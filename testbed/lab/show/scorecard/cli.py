# SPDX-License-Identifier: GPL-2.0-only
"""The command `testbed/run scorecard`."""

import sys
from collections import defaultdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.ask import points
from lab.ask.algorithms import ALGORITHMS, KERNEL_MODULE_PREFIX, is_algorithm_name
from lab.ask.points import Point
from lab.common import options
from lab.common.errors import BadInput, LabError, unknown
from lab.common.exits import EXIT_FAILED, EXIT_GATE, EXIT_INTERRUPTED, tell_interrupted
from lab.common.options import Jobs, Modules, Resume, Scheduler, Settings, Slurm
from lab.judge.scorecard import judge, rows
from lab.judge.scorecard.judge import Card, Gap, Place
from lab.judge.scorecard.rows import REFERENCES, Choice, Row, Section
from lab.measure import harm
from lab.run import completion, runner
from lab.run.backends import BACKENDS, open_backend
from lab.run.backends.base import Backend
from lab.run.backends.virtual import VirtualBackend
from lab.run.cluster import crew as crews
from lab.run.cluster.crew import Crew
from lab.run.store import PROJECT_RESULTS, Store, fresh_folder
from lab.run.usermodules import Refused, addressed
from lab.run.usermodules import add as add_modules
from lab.run.usermodules import check as check_modules
from lab.show.scorecard import page

NAME = "scorecard"
SEEDS, QUICK_SEEDS = 3, 1
LOG_SHOWN = 6000  # characters of a console, from its end
NOT_RUN = "it was not run"
LEGEND = (
    "within: between the references; better/worse: beyond all of them;"
    " fails: breaks a bound of the RFC, docs/scorecard.md"
)

app = options.new_app()


@app.command(context_settings=options.HELP)
def main(
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="What is judged: any TCP algorithm that the kernel has.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
    module: Modules = None,
    rows_: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="A,B",
            help="Only these sections or rows (see --list).",
            autocompletion=completion.listed(lambda: rows.names_of(rows.load(Choice()))),
        ),
    ] = None,
    paths: Annotated[
        int | None, typer.Option(metavar="N", help="So many random places.", show_default="40")
    ] = None,
    path_seed: Annotated[
        int | None, typer.Option(metavar="N", help="The seed that draws them.", show_default="1")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part, one seed: a first look, not a result.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Repeat with seeds 1 to N.", show_default="3")
    ] = None,
    set_: Settings = None,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Exit with 3 if one of --algorithms fails a row that is no known failure of it"
            " (testbed/scorecard/known-failures.toml), or has no result in one that this kernel"
            " can do.",
        ),
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List sections, rows, figures and bounds.")
    ] = False,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="virtual, vm or host, as testbed/run --help says.",
            autocompletion=completion.backends,
        ),
    ] = "virtual",
    kernel: completion.Kernel = "",
    jobs: Jobs = 0,
    scheduler: Scheduler = "",
    slurm: Slurm = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the page (results/scorecard, or scorecard-2, ... if it is there).",
        ),
    ] = None,
    resume: Resume = False,
) -> None:
    """Answer RFC 9743 by measurement: what a new congestion control is asked before it may be used
    on the Internet, held against Reno, CUBIC and BBR in the same run. What --module brings is
    judged, too; --set goes with the rows that --rows names. docs/scorecard.md explains rows and
    verdicts.

    \b
    Examples:
      testbed/run scorecard --module ./my_cc.c --quick
      testbed/run scorecard --algorithms westwood --rows 5.1.3 --seeds 1
      testbed/run scorecard --rows random-paths --paths 10000 --scheduler tcp://10.0.0.5:8786

    Exit status: 0 all points ran, whatever they say; 1 a point failed, or one module of several;
    2 bad input, or nothing to judge but a module that cannot be used; 3 see --gate, 130
    interrupted.
    """
    asked = options.chosen("--algorithms", algorithms, "the usual ones")
    of_rows = options.chosen("--rows", rows_, "all of them")
    settings = options.overrides(set_)
    crews.check(scheduler, slurm, jobs, backend)
    options.check_jobs(jobs)
    _check(asked, of_rows, settings, paths, path_seed, seeds, backend)
    choice = Choice(of_rows, quick, paths or 0, path_seed or 0, tuple(settings.items()))
    sections = rows.load(choice)
    if list_:
        _list(sections)
        return
    folder = out or (PROJECT_RESULTS / NAME if resume else None)
    if folder:
        Store.check(folder, resume, NAME)
    numbers = list(range(1, (seeds or (QUICK_SEEDS if quick else SEEDS)) + 1))
    with crews.gathered(scheduler, slurm) as crew:
        made = open_backend(backend, kernel)
        run = _Run(choice, sections, made, folder, jobs, crew)
        run.resume = resume
        run.given = _given(module or [], backend, kernel, seeds)
        run.prepare(asked, module or [])
        raise typer.Exit(run.go(numbers, gate))


def _given(modules: list[str], backend: str, kernel: str, seeds: int | None) -> list[str]:
    """Return as words those options that change what a place is run with."""
    words = [word for module in modules for word in ("--module", module)]
    words += ["--backend", backend] if backend != VirtualBackend.name else []
    words += ["--kernel", kernel] if kernel else []
    return words + (["--seeds", str(seeds)] if seeds else [])


def _check(names, of_rows, settings, paths, path_seed, seeds, backend) -> None:
    """Refuse what makes no sense before anything is built."""
    for name in names:
        if not is_algorithm_name(name):
            raise BadInput(f"--algorithms: {name!r} is no name of an algorithm")
        if ALGORITHMS[name].transport != "tcp":
            raise BadInput(f"--algorithms {name}: the scorecard is about algorithms of TCP")
    if settings and not of_rows:
        raise BadInput("--set: name the rows that it is for with --rows")
    if paths is not None and not 1 <= paths <= 10_000:
        raise BadInput(f"--paths {paths}: from 1 to 10000")
    if path_seed is not None and path_seed < 1:
        raise BadInput(f"--path-seed {path_seed}: above 0")
    options.check_seed(seeds)
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)


class _Run:
    """One run of the scorecard: what is judged, on what, and where the page goes (no FOLDER: a new
    one)."""

    def __init__(
        self,
        choice: Choice,
        sections: list[Section],
        backend: Backend,
        folder: Path | None,
        jobs: int,
        crew: Crew | None = None,
    ):
        self.choice, self.sections, self.backend = choice, sections, backend
        self.folder, self.jobs, self.crew = folder, jobs, crew
        self.judged: list[str] = []  # what the user wants to know about, as columns
        self.refused: dict[str, Refused] = {}  # column -> why it cannot be run
        self.resume = False  # whether FOLDER may have results
        self.given: list[str] = []  # options that a place is run again with
        self.impossible: dict[tuple, str] = {}  # point -> what this kernel lacks for it

    def prepare(self, names: tuple[str, ...], modules: list[str]) -> None:
        """Build and load the user's MODULES; find out what is judged. Refuse those that cannot be
        used where NAMES has nothing else to judge."""
        refused = add_modules(self.backend, modules)
        brought = [name for user in self.backend.build.user for name in user.algorithms]
        missing = [name for name in names if refused and not self._has(name, brought)]
        if refused and {*names} <= {*missing} and not brought:
            raise BadInput("; ".join(one.keep_log() for one in refused))
        for one in refused:
            print(f"run: {one.line()}; the others go on", file=sys.stderr)
            stem = Path(one.path).stem.removeprefix(KERNEL_MODULE_PREFIX)
            self.refused[missing[0] if len(missing) == 1 else stem] = one
        self.judged = list(dict.fromkeys([*names, *brought, *self.refused])) or ["veno_jitter"]

    def _has(self, name: str, brought: list[str]) -> bool:
        """Say whether an algorithm is there without the modules that were refused."""
        known = name in ALGORITHMS or name in brought
        return known or self.backend.build.kernel.has(ALGORITHMS[name].module)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys([*self.judged, *REFERENCES]))

    def go(self, seeds: list[int], gate: bool) -> int:
        algorithms = tuple(name for name in self.columns if name not in self.refused)
        todo: list[Point] = []
        self.impossible = {}
        for row in (row for section in self.sections for row in section.rows):
            try:
                todo += points.expand(row.scenario, algorithms, seeds, self.backend.build.key)
            except LabError as error:  # what a row alone needs cannot be had here
                # testbed/setup has said already what it could not install
                why = (str(error) or "testbed/setup failed").splitlines()[0]
                for algorithm, place in product(self.columns, judge.places(row.scenario)):
                    self.impossible[row.id, algorithm, place] = why
        for point in todo:
            topology, links = point.spec["topology"], point.spec["links"]
            if complaint := self.backend.link_complaint(links, topology["tunnel"]):
                self.impossible[_key(point)] = complaint
        todo = [point for point in todo if _key(point) not in self.impossible]
        if not todo:
            whys = "; ".join(dict.fromkeys(self.impossible.values()))
            raise BadInput(f"this kernel can do none of these rows: {whys}")
        check_modules(self.backend, todo)
        todo = addressed(self.backend.build, todo)
        self.folder = self.folder or fresh_folder(NAME)
        store = Store(self.folder, self.resume, NAME)
        about = {
            "scenario": NAME,
            "title": "Scorecard",
            "judged": self.judged,
            "quick": self.choice.quick,
            "set": dict(self.choice.overrides),
            "rows": [row.id for section in self.sections for row in section.rows],
        }
        jobs = runner.guests_at_once(self.backend, self.jobs, len(todo))
        sweep = runner.run_points(
            todo, self.backend, store, jobs, lambda _: False, about, harm.add, self.crew
        )
        planned = defaultdict(list)
        for point in todo:
            planned[_key(point)].append(point)
        why = partial(self._why_missing, planned, store)
        card = judge.judge(self.sections, self.columns, sweep.results, seeds, why)
        meta = store.read_json("meta.json")
        troubles = self._troubles(todo, store)
        written = page.write(
            card, self.sections, self.choice, meta, troubles, self.given, self.folder
        )
        self._say(card, sweep, len(todo), written)
        return self._status(card, sweep, gate)

    def _why_missing(self, planned, store: Store, row: Row, algorithm: str, place: Place) -> Gap:
        if algorithm in self.refused:
            return Gap(place, self.refused[algorithm].complaint)
        if complaint := self.impossible.get((row.id, algorithm, place)):
            return Gap(place, complaint, lacking=True)
        for point in planned.get((row.id, algorithm, place), ()):
            log = store.folder / "logs" / f"{point.id}.log"
            if not store.has(point) and log.exists():
                return Gap(place, log.read_text().splitlines()[1])
        return Gap(place, NOT_RUN)

    def _troubles(self, todo: list[Point], store: Store) -> list[tuple[str, str]]:
        """Return (what, console) of each module and point that failed."""
        found = [(one.line(), one.log[-LOG_SHOWN:]) for one in self.refused.values()]
        for point in todo:
            log = store.folder / "logs" / f"{point.id}.log"
            if log.exists() and not store.has(point):
                found.append((point.describe(), log.read_text()[-LOG_SHOWN:]))
        return found

    def _say(self, card: Card, sweep: runner.Sweep, total: int, written: Path) -> None:
        console = Console(width=None if sys.stdout.isatty() else 120)
        if sweep.reused:
            console.print(f"{sweep.reused} of {total} points were already in {self.folder}")
        for algorithms in _fitting(card, console.width):
            console.print(_matrix(card, algorithms))
        console.print(LEGEND, style="dim", soft_wrap=True)
        for algorithm in self.judged:
            for verdict in card.failing(algorithm):
                for sentence in page.sentences(verdict):
                    console.print(Text(f"{algorithm}: {verdict.row.section}: {sentence}"))
        console.print(f"page: {written}", soft_wrap=True)
        for failure in sweep.failures:
            print(f"run: failed: {failure}", file=sys.stderr)

    def _status(self, card: Card, sweep: runner.Sweep, gate: bool) -> int:
        if sweep.interrupted:
            tell_interrupted(
                f"run: interrupted: the same command with --out {self.folder} --resume goes on"
            )
            return EXIT_INTERRUPTED
        if sweep.failures or self.refused:
            return EXIT_FAILED
        return EXIT_GATE if gate and not self._passes(card) else 0

    def _passes(self, card: Card) -> bool:
        """Say whether nothing judged fails a row that it is not known to fail, and each row was
        judged that this kernel can do; name what does not pass, and what is lacking."""
        passes, known = True, rows.known_failures()
        for algorithm in self.judged:
            failing = [verdict.row.id for verdict in card.failing(algorithm)]
            new = [row for row in failing if row not in known.get(algorithm, ())]
            for row in new:
                print(f"run: gate: {algorithm} fails {row}, no known failure", file=sys.stderr)
            passes = passes and not new
            for verdict in card.undone(algorithm):
                row, whys = verdict.row.id, dict.fromkeys(gap.why for gap in verdict.missing)
                of = "; ".join(whys) or "nothing of it was measured"
                print(f"run: gate: {algorithm} cannot be judged in {row}: {of}", file=sys.stderr)
                passes = passes and verdict.kernel_lacks
            ran = [row.id for section in card.sections for row in section.rows]
            for row in known.get(algorithm, ()):
                done = row in ran and card.rows[row, algorithm].verdict != judge.NONE
                if done and row not in failing:
                    print(
                        f"run: gate: {algorithm} no longer fails {row}: take it off {rows.KNOWN}",
                        file=sys.stderr,
                    )
        return passes


def _key(point: Point) -> tuple:
    return point.scenario_id, point.algorithm, tuple(point.axes.items())


def _fitting(card: Card, width: int) -> list[list[str]]:
    """Cut the columns of the matrix into runs that fit WIDTH characters."""
    titles = max(len(f"{section.number} {section.title}") for section in card.sections)
    widest = max(map(len, [*card.algorithms, *judge.VERDICTS]))
    fit = max(1, (width - titles - 2) // (widest + 3))
    return [card.algorithms[i : i + fit] for i in range(0, len(card.algorithms), fit)]


def _matrix(card: Card, algorithms: list[str]) -> Table:
    """Return the columns ALGORITHMS of the matrix."""
    colours = {
        judge.FAILS: "bold red", judge.WORSE: "yellow", judge.WITHIN: "", judge.BETTER: "green",
        judge.NONE: "dim",
    }  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    table.add_column("section", no_wrap=True)
    for algorithm in algorithms:
        table.add_column(algorithm, no_wrap=True)
    for section in card.sections:
        totals = [card.totals[section.number, algorithm] for algorithm in algorithms]
        cells = [Text(total, style=colours[total]) for total in totals]
        table.add_row(Text(f"{section.number} {section.title}"), *cells)
    return table


def _list(sections: list[Section]) -> None:
    console = Console()
    for section in sections:
        console.print(Text(f"{section.number} {section.title}", style="bold"))
        console.print(Text(section.asks))
        if section.not_measured:
            console.print(Text(f"  not measured: {section.not_measured}", style="dim"))
        for row in section.rows:
            console.print(Text(f"  {row.id}: {row.title}"))
            for figure in row.figures:
                bound = f", {figure.bound} or it fails" if figure.bound else ""
                console.print(Text(f"    {figure.metric} ({figure.better} is better){bound}"))
        console.print()
