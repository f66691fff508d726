# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab show`: what a scenario asks, its path as a picture, what it costs."""

import textwrap
from dataclasses import replace
from typing import Annotated

import typer

from lab.ask import points
from lab.ask import scenario as scenarios
from lab.ask.algorithms import ALGORITHMS
from lab.ask.flows import OFFERED, check_algorithms
from lab.ask.parts import Axis, Scenario
from lab.ask.questions import QUESTIONS
from lab.common import options
from lab.common.errors import nearest
from lab.common.names import as_called
from lab.common.options import Settings, usable_cpus
from lab.judge import claims
from lab.run import build as builds
from lab.run import completion
from lab.run.backends.base import BOOTS_WORTH
from lab.run.backends.virtual import VirtualBackend
from lab.show import picture
from lab.show.listing import WIDTH, point_count

VALUES_SHOWN = 12  # of an axis
SEVERAL = (
    "Segmentation offload is on, as on real hosts: what a link loses at random may be several"
    " packets at once, and then rarer. One by one: topology.offloads = false."
)

app = options.new_app()


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A name from `testbed/veno-lab list`, or a .toml file.",
            autocompletion=completion.scenarios,
        ),
    ],
    set_: Settings = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="As if these were run instead of the scenario's own.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
) -> None:
    """Show what a scenario asks, its path as a picture, what is swept, what it claims and what it
    costs. Nothing is built or run.

    \b
    Examples:
      testbed/veno-lab show veno-wan
      testbed/veno-lab show ./mine.toml --set loss_pct=1,5
    """
    scenario = scenarios.load(name, options.overrides(set_))
    if chosen := options.chosen("--algorithms", algorithms, "the scenario's own"):
        check_algorithms(chosen)
        scenario = replace(scenario, run=replace(scenario.run, algorithms=chosen))
    kernel = builds.built_uml_kernel()
    print("\n".join(page(scenario, name, kernel, _first_text(kernel))))


def _first_text(kernel: builds.Kernel | None) -> str:
    """Return what the next run takes besides, if things are still to be built; KERNEL: the lab's,
    if that has been."""
    if kernel is None:
        return " The first run builds the lab's kernel and modules, which takes some minutes."
    if not builds.Build(kernel, VirtualBackend.name).is_made:
        return " The first run here builds modules (a minute or two)."
    return ""


def page(
    scenario: Scenario, name: str, kernel: builds.Kernel | None = None, first: str = ""
) -> list[str]:
    """Return the lines that are shown of SCENARIO, which is NAME on the command line. KERNEL: the
    lab's, if it is known; FIRST: what is to be said of what the first run takes."""
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
    if endless := points.endless_text(at):
        shown += ["", *textwrap.wrap(endless, WIDTH)]
    if _loses_several(scenario):
        shown += ["", *textwrap.wrap(SEVERAL, WIDTH)]
    shown += ["", "Flows:", *(f"  {picture.flow_text(flow)}" for flow in at.flows)]
    if scenario.axes:
        shown += ["", "Swept:"]
        for axis in scenario.axes:
            shown += _indented(_axis_text(axis))
    shown += ["", *textwrap.wrap(f"Algorithms: {', '.join(scenario.run.algorithms)}", WIDTH)]
    for name_ in _unknown(scenario, kernel):
        shown += _indented(_unknown_text(name_, kernel))
    if scenario.claims:
        shown += ["", "Claims:"]
        for claim in scenario.claims:
            bound = claims.Verdict(claim, None, "").bound
            why = claims.unasked(scenario, claim)
            shown += _indented(f"{claim.text} ({bound}{f'; not measured: {why}' if why else ''})")
    cost = textwrap.wrap(_cost_text(scenario) + first, WIDTH)
    return [*shown, "", *cost, "", f"  {as_called('testbed/run')} {name}"]


def _loses_several(scenario: Scenario) -> bool:
    """Say whether a link that loses at random sees several packets of a host as one."""
    links = (link for point in _expanded(scenario) for link in point.spec["links"].values())
    return scenario.topology.offloads is True and any(link.get("loss_pct") for link in links)


def _unknown(scenario: Scenario, kernel: builds.Kernel | None) -> list[str]:
    """Return the algorithms of SCENARIO that neither the lab nor KERNEL, if it is given, has."""
    flows = (flow for point in _expanded(scenario) for flow in point.spec["flows"])
    names = dict.fromkeys(flow["algorithm"] for flow in flows)
    unknown = [name for name in names if name not in ALGORITHMS]
    return [n for n in unknown if not (kernel and kernel.has(ALGORITHMS[n].module))]


def _unknown_text(name: str, kernel: builds.Kernel | None) -> str:
    near = nearest(name, OFFERED)
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    lacks = f"neither the lab nor Linux {kernel.release} has it" if kernel else "the lab has it not"
    return f"{name}: {lacks}{meant}; one of yours: --module"


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
    todo = _expanded(scenario)
    backend = VirtualBackend.__new__(VirtualBackend)  # it is asked only: nothing is built
    backend.kernel = "lab"
    points_s = sum(map(backend.cost_s, todo)) * scenario.run.seeds
    boot_s = {p.topology_key: backend.boot_cost_s + backend.pair_cost_s * p.pairs for p in todo}
    batches = max(points_s / (BOOTS_WORTH * sum(boot_s.values()) / len(boot_s)), len(boot_s))
    return points_s + batches * sum(boot_s.values()) / len(boot_s)


def _expanded(scenario: Scenario) -> list[points.Point]:
    """Return the points of one seed."""
    return points.expand(scenario, scenario.run.algorithms, [1], lambda *_: "")


def _duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
