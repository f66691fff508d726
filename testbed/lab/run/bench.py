# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab bench` (`make bench-lab`): virtual seconds per wall second on one core.

Boot, Mininet's start and the warm-up are counted and shown apart from the points. Not a test:
wall times depend on the machine.
"""

import dataclasses
import json
import os
import threading
import time
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.ask import points, scenario
from lab.ask.paths import FULL_FRAME_BITS
from lab.common import options
from lab.common.errors import LabError
from lab.measure.stats import estimate
from lab.run.backends import open_backend
from lab.run.backends.base import Backend

# rate in Mb/s -> the bound of the lab's specification, virtual s per wall s
BOUNDS = {2.0: 300.0, 100.0: 40.0, 1000.0: 20.0}

app = options.new_app()


@dataclasses.dataclass
class Timing:
    """Wall seconds of one batch: until its network was up, and of each point."""

    start_s: float
    point_s: list[float]


def time_batch(backend: Backend, batch: list[points.Point], cpu: int) -> Timing:
    ends_s: list[float] = []

    def on_outcome(outcome) -> None:
        if outcome.error:
            raise LabError(f"{outcome.point.describe()}: {outcome.error}\n{outcome.log}")
        ends_s.append((outcome.raw / "flow-0.json").stat().st_ctime)
        up_s.append((outcome.raw.parent / "up").stat().st_ctime)

    up_s: list[float] = []
    started_s = time.time()
    backend.run_batch(batch, cpu, on_outcome, threading.Event())
    return Timing(
        up_s[0] - started_s, [b - a for a, b in zip([up_s[0], *ends_s], ends_s, strict=False)]
    )


@app.command(context_settings=options.HELP)
def main(
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="Points a rate, in one boot.")
    ] = 5,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure the lab's speed on one core at 2, 100 and 1000 Mb/s.

    \b
    Examples:
      testbed/veno-lab bench
      testbed/veno-lab bench --repeats 2 --json
    """
    backend = open_backend("virtual")
    cpu = max(os.sched_getaffinity(0))
    speed = scenario.load("lab-speed")
    rows = []
    for rate_mbps, bound in BOUNDS.items():
        at = scenario.load("lab-speed", {"rate_mbps": f"{rate_mbps:g}"} | _queue(rate_mbps))
        batch = points.expand(at, speed.run.algorithms, list(range(1, repeats + 1)),
                              backend.build.key)  # fmt: skip
        timing = time_batch(backend, batch, cpu)
        speeds = [at.run.duration_s / wall_s for wall_s in timing.point_s]
        rows.append(
            {
                "rate_mbps": rate_mbps,
                "bound_virtual_s_per_wall_s": bound,
                "virtual_s_per_wall_s": dataclasses.asdict(estimate(speeds)),
                "point_wall_s": median(timing.point_s),
                "boot_and_mininet_wall_s": timing.start_s,
                "points": repeats,
                "virtual_s_per_point": at.run.duration_s,
            }
        )
    if json_:
        print(json.dumps(rows, indent=2))
        return
    _print(rows, backend.build.kernel.release)


def _queue(rate_mbps: float) -> dict[str, str]:
    frames_in_50_ms = max(60, round(rate_mbps * 1e6 * 0.05 / FULL_FRAME_BITS))
    return {"links.bottleneck.queue_pkts": str(frames_in_50_ms)}


def _print(rows: list[dict], release: str) -> None:
    table = Table(
        "rate (Mb/s)", "virtual s / wall s", "wanted", "a point (s)", "boot + Mininet (s)",
        title=f"one flow, one core, Linux {release}, {rows[0]['points']} points of"
        f" {rows[0]['virtual_s_per_point']:g} virtual s in one boot", box=None,
    )  # fmt: skip
    for row in rows:
        e = row["virtual_s_per_wall_s"]
        table.add_row(
            f"{row['rate_mbps']:g}",
            f"{e['median']:.0f} [{e['low']:.0f}, {e['high']:.0f}]",
            f">= {row['bound_virtual_s_per_wall_s']:.0f}",
            f"{row['point_wall_s']:.2f}",
            f"{row['boot_and_mininet_wall_s']:.2f}",
        )
    Console(width=110).print(table)
