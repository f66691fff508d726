# SPDX-License-Identifier: GPL-2.0-only
"""The command `testbed/traces`: what a trace is like, in figures and in a picture."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from lab.ask import linkmodels, linktraces
from lab.ask.linktraces import NS, SCALES, Schedule
from lab.common import exits, options
from lab.common.errors import BadInput, writing
from lab.run import completion

OUTAGE_S = 0.1  # so long without anything that passes is an outage
BARS = " ▁▂▃▄▅▆▇█"
PICTURE_COLUMNS = 72

app = options.new_app()


@dataclass(frozen=True)
class Statistics:
    """Of one loop of a rate. cv: standard deviation over mean, of means over so long; p5 and p95 of
    means over 1 s; an outage is OUTAGE_S or more without anything that could pass."""

    length_s: float
    mean_mbps: float
    cv_100ms: float
    cv_1s: float
    p5_mbps: float
    p95_mbps: float
    outages_per_min: float
    outage_s_mean: float
    outage_s_max: float
    outage_pct: float


def rates_mbps(trace: Schedule, every_s: float) -> np.ndarray:
    """Return the means of TRACE over EVERY_S each, of whole ones in a loop."""
    count = max(int(trace.period_s / every_s + 1e-9), 1)
    carried = trace.bytes_by(np.arange(count + 1) * every_s * (1 - 1e-12))
    return np.diff(carried) * 8e-6 / every_s


def outages_s(trace: Schedule) -> np.ndarray:
    """Return how long each outage of a loop lasts."""
    if trace.kind == "opportunities":
        gaps = trace.ns / NS
    else:
        idle = np.concatenate([[False], trace.values == 0, [False]])
        edges = np.flatnonzero(np.diff(idle.astype(int)))
        ends_s = np.concatenate([[0], np.cumsum(trace.ns)]) / NS
        gaps = ends_s[edges[1::2]] - ends_s[edges[::2]]
    return gaps[gaps >= OUTAGE_S]


def statistics(trace: Schedule) -> Statistics:
    outages = outages_s(trace)
    seconds = rates_mbps(trace, 1.0)
    cv_100ms, cv_1s = (of.std() / of.mean() for of in (rates_mbps(trace, 0.1), seconds))
    return Statistics(
        length_s=trace.period_s,
        mean_mbps=trace.mean(),
        cv_100ms=float(cv_100ms),
        cv_1s=float(cv_1s),
        p5_mbps=float(np.percentile(seconds, 5)),
        p95_mbps=float(np.percentile(seconds, 95)),
        outages_per_min=60 * len(outages) / trace.period_s,
        outage_s_mean=float(outages.mean()) if len(outages) else 0.0,
        outage_s_max=float(outages.max()) if len(outages) else 0.0,
        outage_pct=100 * float(outages.sum()) / trace.period_s,
    )


def line(trace: Schedule) -> str:
    """Return a picture of TRACE in one line: its rate over the loop, from none to the largest."""
    rates = rates_mbps(trace, trace.period_s / PICTURE_COLUMNS)
    top = rates.max() or 1.0
    return "".join(BARS[int(np.ceil(rate / top * (len(BARS) - 1)))] for rate in rates)


def picture(traces: dict[str, Schedule], path: Path) -> None:
    """Draw the rate of each of TRACES over its loop into the SVG or PNG file PATH."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "traces"
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(
        len(traces), figsize=(9, 0.4 + 1.3 * len(traces)), squeeze=False, layout="constrained"
    )
    for (name, trace), axes in zip(traces.items(), rows[:, 0], strict=True):
        for every_s, colour, width in ((0.1, "#9ecae1", 0.5), (1.0, "#08519c", 1.0)):
            rates = rates_mbps(trace, every_s)
            axes.plot(np.arange(len(rates)) * every_s, rates, color=colour, linewidth=width)
        axes.set_title(f"{name}, Mb/s in 100 ms and in 1 s", fontsize=8, loc="left")
        axes.set_xlim(0, trace.period_s)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=7)
    rows[-1, 0].set_xlabel("s", fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _lines(name: str, kind: str, seed: int) -> Iterator[str]:
    trace = linktraces.of(name, kind, seed)
    yield f"# seconds, {linktraces.UNITS[kind]}: {kind} of the model {name}, seed {seed}"
    ends_s = np.cumsum(trace.ns) / NS
    for start_s, value in zip(np.append(0.0, ends_s), trace.values, strict=False):
        yield f"{start_s:.9g},{value / SCALES[kind]:.9g}"


def write(name: str, seed: int, path: Path) -> list[Path]:
    """Write what the model NAME makes of SEED as CSV: the rate into PATH, a delay and a loss, if it
    has them, into PATH.delay and PATH.loss. Returns the files."""
    if name not in linkmodels.MODELS:
        raise BadInput(f"--write takes a model, and {name} is none")
    made = []
    for kind in linkmodels.make(name, 0).keys() & linktraces.UNITS.keys():
        place = path if kind == "rate" else path.with_name(f"{path.name}.{kind}")
        with writing(place):
            place.write_text("\n".join(_lines(name, kind, seed)) + "\n")
        made.append(place)
    return sorted(made)


def _table(traces: dict[str, Schedule]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("trace", no_wrap=True)
    for field in fields(Statistics):
        table.add_column(field.name, justify="right", no_wrap=True)
    for name, trace in traces.items():
        table.add_row(Path(name).name, *(f"{v:.3g}" for v in asdict(statistics(trace)).values()))
    return table


@app.command(context_settings=options.HELP)
def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRACE",
            help="Files (Mahimahi or CSV) or models; all models.",
            autocompletion=completion.models,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the models.")] = False,
    seed: Annotated[int, typer.Option(metavar="K", help="What models make of this seed.")] = 1,
    svg: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw them: .svg or .png.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="FILE",
            help="Write a model's rate as CSV; its delay and loss go to FILE.delay and FILE.loss.",
        ),
    ] = None,
) -> None:
    """Print what traces of links are like: mean, variation, outages, and a picture of each.

    \b
    Examples:
      testbed/veno-lab traces
      testbed/veno-lab traces walk.down lte-car --picture rates.svg
      testbed/veno-lab traces starlink --seed 3 --write star.csv

    Exit status: 0 done, 2 bad input.
    """
    if list_:
        for name, (about, _) in linkmodels.MODELS.items():
            print(f"{name:20}{about}")
        return
    names = names or list(linkmodels.MODELS)
    if svg and svg.suffix not in (".svg", ".png"):
        raise BadInput(f"--picture {svg}: an .svg or a .png file")
    if out:
        if len(names) > 1:
            raise BadInput("--write takes one model")
        print(*write(names[0], seed, out), sep="\n")
        return
    traces = {name: linktraces.of(name, "rate", seed) for name in names}
    console = Console(width=max(Console().width, 150), highlight=False)
    console.print(_table(traces))
    for name, trace in traces.items():
        console.print(f"\n{name}, 0 to {rates_mbps(trace, 1.0).max():.3g} Mb/s", markup=False)
        console.print(line(trace), markup=False)
    if svg:
        with writing(svg):
            picture(traces, svg)
        print(f"\npicture: {svg}")


if __name__ == "__main__":
    exits.run(app, "traces", "testbed/traces")
