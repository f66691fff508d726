# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab rates`: the rate of flows over time beside the losses that they had."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from matplotlib import pyplot as plt

from lab.common import options
from lab.common.errors import BadInput, writing
from lab.run.runs import check_measured, read_results
from lab.show import facts, plots, timelines

Point = tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]  # a result; its flows', its hops' samples


app = options.new_app()


def points_of(run: Path) -> list[Point]:
    """Return the first point of each algorithm in RUN that has samples."""
    found: dict[str, Point] = {}
    for result in read_results(run):
        flows, hops = (
            timelines.read_samples(run / "samples" / f"{result['point']}.{kind}.csv")
            for kind in ("flows", "hops")
        )
        if flows is not None and hops is not None:
            found.setdefault(result["algorithm"], (result, flows, hops))
    return list(found.values())


def figure(points: list[Point]) -> str:
    """Return an SVG: goodput of POINTS above, below it a mark for each time that lost packets."""
    with plt.rc_context(plots.RC):
        drawn, (rate, rug) = plt.subplots(
            2, 1, figsize=(9.2, 3.9), sharex=True, height_ratios=(5, 1)
        )
        names = []
        for row, (result, flows, hops) in enumerate(points):
            name = result["algorithm"]
            look = facts.style(name)
            edges_s, goodput_mbps = timelines.goodput(result, flows)
            found = timelines.losses(hops, result["params"])
            lost = [at for cause in found.values() for at in cause]
            names.append(f"{name}: {sum(count for _, count in lost)}")
            rate.step(edges_s, np.append(goodput_mbps, goodput_mbps[-1:]), where="post",
                      color=look.colour, ls=look.dash, lw=1.6, label=name)  # fmt: skip
            rug.plot([time_s for time_s, _ in lost], [-row] * len(lost), "|", color=look.colour,
                     ms=9)  # fmt: skip
        rate.set_ylabel("goodput (Mb/s)")
        rate.set_ylim(bottom=0)
        rate.legend(loc="upper right", ncol=len(points))
        rug.set_ylabel("lost")
        rug.set_yticks([-row for row in range(len(points))], names)
        rug.set_ylim(-len(points) + 0.4, 0.6)
        rug.set_xlabel("time (s)")
        rug.set_xlim(0, max(float(result["params"]["duration_s"]) for result, *_ in points))
        drawn.tight_layout()
        return plots.to_svg(drawn)


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
    svg: Annotated[Path, typer.Argument(metavar="FIGURE.svg", help="The figure to write.")],
) -> None:
    """Draw the goodput over time, and the losses, of each algorithm's first seed in DIR.

    \b
    Examples:
      testbed/run tfrc-reno --set loss_pct=1 --seed 1 --out /tmp/run
      testbed/veno-lab rates /tmp/run rates.svg

    Exit status: 0 done, 2 bad input.
    """
    check_measured(run)
    points = points_of(run)
    if not points:
        raise BadInput(f"{run} has no samples: only the first seeds keep theirs")
    with writing(svg):
        svg.write_text(figure(points))
