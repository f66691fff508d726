# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab show`: what a scenario asks, its path as a picture, what it costs."""

import textwrap
from typing import Annotated

import typer

from lab.ask import points
from lab.ask import scenario as scenarios
from lab.ask.parts import Axis, Scenario
from lab.ask.questions import QUESTIONS
from lab.common import options
from lab.common.options import Settings, usable_cpus
from lab.judge import claims
from lab.run import completion
from lab.run.backends.base import BOOTS_WORTH
from lab.run.backends.virtual import VirtualBackend
from lab.show import picture
from lab.show.listing import WIDTH, point_count

VALUES_SHOWN = 12  # of an axis

app = options.new_app()


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A name from `veno-lab list`, or a .toml file.",
            autocompletion=completion.scenarios,
        ),
    ],
    set_: Settings = None,
) -> None:
    """Show what a scenario asks, its path as a picture, what is swept, what it claims and what it
    costs. Nothing is built or run.

    \b
    Examples:
      testbed/veno-lab show veno-wan
      testbed/veno-lab show ./mine.toml --set loss_pct=1,5
    """
    scenario = scenarios.load(name, options.overrides(set_))
    print("\n".join(page(scenario, name)))


def page(scenario: Scenario, name: str) -> list[str]:
    """Return the lines that are shown of SCENARIO, which is NAME on the command line."""
    shown = [f"{scenario.id}: {scenario.title}", ""]
    if scenario.question:
        shown += [QUESTIONS[scenario.question], ""]
    shown += textwrap.wrap(" ".join(scenario.description.split()), WIDTH)
    shown += textwrap.wrap(f"From: {scenario.paper}", WIDTH) if scenario.paper else []
    place = next(points.grid(scenario))
    at = points.resolve(scenario, place)
    where = ", ".join(axis.text(place[axis.name]) for axis in scenario.axes)
    shown += ["", f"The path{f' at {where}' if where else ''}:", ""]
    shown += [f"  {line}".rstrip() for line in picture.lines(at)]
    shown += ["", "Flows:", *(f"  {picture.flow_text(flow)}" for flow in at.flows)]
    if scenario.axes:
        shown += ["", "Swept:"]
        for axis in scenario.axes:
            shown += _indented(_axis_text(axis))
    shown += ["", *textwrap.wrap(f"Algorithms: {', '.join(scenario.run.algorithms)}", WIDTH)]
    if scenario.claims:
        shown += ["", "Claims:"]
        for claim in scenario.claims:
            bound = claims.Verdict(claim, None, "").bound
            shown += _indented(f"{claim.text} ({bound})")
    return [*shown, "", *textwrap.wrap(_cost_text(scenario), WIDTH), "", f"  testbed/run {name}"]


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _axis_text(axis: Axis) -> str:
    values = [axis.text(value) for value in axis.levels]
    if len(values) > VALUES_SHOWN:
        values = [*values[:3], f"... {len(values)} in all ...", values[-1]]
    return f"{axis.name}: {', '.join(values)}"


def _cost_text(scenario: Scenario) -> str:
    run = scenario.run
    count = point_count(scenario)
    return (
        f"Cost: {count} points of {run.duration_s:g} virtual s with {run.seeds} seeds; about"
        f" {_duration_text(expected_s(scenario) / usable_cpus())} on this machine's"
        f" {usable_cpus()} cores, by an estimate (the virtual lab's)."
    )


def expected_s(scenario: Scenario) -> float:
    """Return what all points of SCENARIO cost in the virtual lab, in s of one core: of each the
    estimate, and the boots that they share."""
    todo = points.expand(scenario, scenario.run.algorithms, [1], lambda *_: "")
    backend = VirtualBackend.__new__(VirtualBackend)  # it is asked only: nothing is built
    backend.kernel = "lab"
    points_s = sum(map(backend.cost_s, todo)) * scenario.run.seeds
    boot_s = {p.topology_key: backend.boot_cost_s + backend.pair_cost_s * p.pairs for p in todo}
    batches = max(points_s / (BOOTS_WORTH * sum(boot_s.values()) / len(boot_s)), len(boot_s))
    return points_s + batches * sum(boot_s.values()) / len(boot_s)


def _duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
