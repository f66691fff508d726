# SPDX-License-Identifier: GPL-2.0-only
"""The command `testbed/run`, which `testbed/veno-lab run` is, too."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.ask import scenario as scenarios
from lab.ask.flows import check_algorithms
from lab.ask.parts import Scenario
from lab.common import exits, options
from lab.common.errors import BadInput, unknown
from lab.common.exits import EXIT_FAILED, EXIT_INTERRUPTED, tell_interrupted
from lab.common.options import (
    Jobs,
    Modules,
    Resume,
    Scheduler,
    Settings,
    Slurm,
    check_jobs,
    check_seed,
    chosen,
    overrides,
)
from lab.run import completion, execute
from lab.run.backends import BACKENDS, open_backend
from lab.run.backends.base import Backend
from lab.run.cluster import crew as crews
from lab.run.cluster.crew import Crew
from lab.show import listing

PROGRAM = "testbed/run"

app = options.new_app()


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A name from --list, or a .toml file.",
            autocompletion=completion.scenarios,
        ),
    ] = "",
    list_: Annotated[
        bool, typer.Option("--list", help="List the scenarios and the algorithms.")
    ] = False,
    set_: Settings = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Run these instead of the scenario's own; any that the kernel has.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
    module: Modules = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Repeat with seeds 1 to N.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="K", help="Run with seed K alone.")] = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where points run: virtual (a lab kernel whose clock jumps), vm (a"
            " distribution's kernel in QEMU) or host (this machine's kernel; root).",
            autocompletion=completion.backends,
        ),
    ] = "virtual",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="KERNEL",
            help="With virtual: lab, or debug, which checks itself (KASAN, UBSAN, lockdep,"
            " kmemleak). With vm: a Debian kernel, as 6.1, 6.12 or a whole release; debug;"
            " kasan, with KASAN and lockdep alone; or kcsan, which looks for data races.",
            show_default="lab; the newest of this Debian",
            autocompletion=completion.kernels,
        ),
    ] = "",
    cpus: Annotated[
        int,
        typer.Option(
            metavar="N", help="With vm and VM_CLOCK=real: how many processors a guest has."
        ),
    ] = 1,
    jobs: Jobs = 0,
    scheduler: Scheduler = "",
    slurm: Slurm = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the results (results/NAME, or NAME-2, ... if it is there).",
        ),
    ] = None,
    resume: Resume = False,
    exec_: Annotated[
        str,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Run a shell command, such as a Mininet"
            " script of yours, inside the lab kernel as root and in virtual time. The host's files"
            " are there, read-only; what it writes into $LAB_OUT is kept in --out DIR. python3 is"
            " the system's.",
        ),
    ] = "",
) -> None:
    """Run a scenario on the real kernel and report what came of it. `testbed/run scorecard`
    answers RFC 9743 for an algorithm: see its --help.

    \b
    Examples:
      testbed/run demo
      testbed/run veno-single --algorithms jtcp,bbr --set loss_pct=1,5 --seeds 6
      testbed/run ./mine.toml --out /tmp/mine --resume
      testbed/run demo --module ./tcp_mine.c --algorithms mine,cubic,bbr
      testbed/run veno-single --seeds 20 --scheduler tcp://10.0.0.5:8786

    \b
    Environment:
      KERNEL_SRC  A Linux source, folder or tarball (6.7 or newer), for the lab kernel.
      VM_CLOCK    With --backend vm: jumps (time is virtual) or real (KVM, or emulated).
      LAB_CACHE   Where kernels and builds are kept (~/.cache/veno-jitter).

    Exit status: 0 all points ran, 1 a point failed, 2 bad input, 130 interrupted.
    """
    if list_:
        options.check_alone(context, "list_")
        listing.print_all()
        return
    make_backend = partial(open_backend, backend, kernel, cpus)
    if exec_:
        options.check_alone(context, "exec_", "backend", "kernel", "cpus", "out")
        execute.check_backend(backend)
        raise typer.Exit(execute.run(exec_, make_backend, out, kernel))
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    if not name:
        raise BadInput("name a scenario (see --list)")
    scenario = scenarios.load(name, overrides(set_))
    of_run = _algorithms(scenario, algorithms)
    numbers = _seeds(scenario, seeds, seed)
    crews.check(scheduler, slurm, jobs, backend)
    check_jobs(jobs)
    make_backend = partial(_with_modules, make_backend, module or [])
    with crews.gathered(scheduler, slurm) as crew:
        raise typer.Exit(_run(scenario, of_run, numbers, make_backend, jobs, crew, out, resume))


def _with_modules(make_backend: Callable[[], Backend], paths: list[str]) -> Backend:
    """Return a backend that has the user's modules at PATHS; refuse one that it cannot have."""
    from lab.run import usermodules

    backend = make_backend()
    for refused in usermodules.add(backend, paths):
        raise BadInput(refused.keep_log())
    return backend


def _algorithms(scenario: Scenario, text: str | None) -> tuple[str, ...]:
    listed = chosen("--algorithms", text, "the scenario's own") or scenario.run.algorithms
    check_algorithms(listed)
    return listed


def _seeds(scenario: Scenario, count: int | None, single: int | None) -> list[int]:
    if count is not None and single is not None:
        raise BadInput("--seeds N runs seeds 1 to N and --seed K only K: give one of them")
    for number in (count, single):
        check_seed(number)
    return [single] if single else list(range(1, (count or scenario.run.seeds) + 1))


def _run(
    scenario: Scenario,
    algorithms: tuple[str, ...],
    seeds: list[int],
    make_backend: Callable[[], Backend],
    jobs: int,
    crew: Crew | None,
    out: Path | None,
    resume: bool,
) -> int:
    from lab.ask import points
    from lab.judge import claims
    from lab.run import runner, usermodules
    from lab.run.store import PROJECT_RESULTS, Store, fresh_folder
    from lab.show import report, terminal

    folder = out or (PROJECT_RESULTS / scenario.id if resume else None)
    if folder:
        Store.check(folder, resume, scenario.id, scenario.source)
    backend = make_backend()
    todo = points.expand(scenario, algorithms, seeds, backend.build.key)
    usermodules.check(backend, todo)
    if idle := usermodules.idle(backend.build, todo):
        for module in idle:
            print(
                f"run: {module.file.name} brings {', '.join(module.algorithms)}, which no list of"
                " algorithms names, so it is run as well",
                file=sys.stderr,
            )
        algorithms += tuple(name for module in idle for name in module.algorithms)
        todo = points.expand(scenario, algorithms, seeds, backend.build.key)
    resolved = [points.resolve(scenario, axes) for axes in points.grid(scenario)]
    for at in resolved:
        backend.build.check_parameters(at.modules)
    if endless := next(filter(None, map(points.endless_text, resolved)), ""):
        print(f"run: {endless}", file=sys.stderr)
    todo = usermodules.addressed(backend.build, todo)
    folder = folder or fresh_folder(scenario.id)
    store = Store(folder, resume, scenario.id, scenario.source)
    jobs = runner.guests_at_once(backend, jobs, len(todo))
    sweep = runner.run(scenario, todo, backend, store, jobs, crew)
    verdicts = claims.judge(scenario, sweep.results, seeds)
    console = Console(width=None if sys.stdout.isatty() else 120)
    if sweep.reused:
        console.print(f"{sweep.reused} of {len(todo)} points were already in {folder}")
    if sweep.results:
        terminal.print_table(scenario, sweep.results, verdicts, console)
        path = report.write_report(
            scenario, sweep.results, folder, store.read_json("meta.json"), verdicts, sweep.failures
        )
        console.print(f"report: {path}", soft_wrap=True)
    if sweep.interrupted:
        done = len(sweep.results)
        tell_interrupted(
            f"run: interrupted: {done} of {len(todo)} points are kept in {folder};"
            f" the same command with --out {folder} --resume goes on"
        )
        return EXIT_INTERRUPTED
    for failure in sweep.failures:
        print(f"run: failed: {failure}", file=sys.stderr)
    return EXIT_FAILED if sweep.failures else 0


def entry() -> None:
    """What testbed/run starts."""
    if sys.argv[1:2] == ["scorecard"]:
        from lab.show.scorecard.cli import app as scorecard

        del sys.argv[1]
        exits.run(scorecard, "run", f"{PROGRAM} scorecard")
    exits.run(app, "run", PROGRAM)
