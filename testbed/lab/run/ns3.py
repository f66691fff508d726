# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab ns3`: the points of a finished run again, by ns-3's own models of TCP.

What comes out is a folder like that of a run, for `veno-lab agree`: the same path, seeds and
durations, another TCP. Losses are as likely, but not the same packets.
"""

import datetime
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.ask import points, scenario
from lab.ask.carries import full_frame_bytes
from lab.common import options
from lab.common.errors import BadInput, LabError, writing
from lab.run import runs
from lab.run.build import BUILD, TESTBED, hash_files, locked, make, run_cmd, setup
from lab.run.store import write_atomically

SOURCES = TESTBED / "ns3"
# the lab's name -> ns-3's (3.37); ours are not there, and no one else's model of them is
MODELS = {
    "reno": "TcpLinuxReno",
    "cubic": "TcpCubic",
    "veno": "TcpVeno",
    "westwood": "TcpWestwood",
    "vegas": "TcpVegas",
    "illinois": "TcpIllinois",
    "bbr": "TcpBbr",
    "htcp": "TcpHtcp",
    "hybla": "TcpHybla",
    "highspeed": "TcpHighSpeed",
    "scalable": "TcpScalable",
    "bic": "TcpBic",
    "yeah": "TcpYeah",
    "lp": "TcpLp",
}
HOP_HAS = ("rate_mbps", "delay_ms", "loss_pct", "queue_pkts")
TELL_EVERY_S = 10
OF_THE_LAB = ("seed", "queue_bdp", "aggregate_pkts")  # say nothing more of a hop

app = options.new_app()


@app.command(no_args_is_help=True, context_settings=options.HELP)
def main(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for ns-3's results.")],
    jobs: Annotated[
        int, typer.Option(metavar="N", min=0, help="Points side by side; 0: all cores.")
    ] = 0,
) -> None:
    """Run the points of the run in DIR by ns-3's own TCP (Debian's ns-3, installed if it is not
    there): one TCP flow over hops with a rate, a delay, random loss and a queue. Algorithms that
    ns-3 has no model of are left out.

    \b
    Examples:
      testbed/run veno-single --algorithms reno,veno,westwood,bbr --out /tmp/kernel
      testbed/veno-lab ns3 /tmp/kernel /tmp/ns3
      testbed/veno-lab agree /tmp/kernel /tmp/ns3

    Exit status: 0 done, 2 bad input, 130 interrupted (nothing is kept).
    """
    meta = runs.read_meta(run)
    wanted = wanted_points(meta)
    if runs.is_run(out):
        raise BadInput(f"{out} has results: name another folder, or remove it")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    program, version = build()
    jobs = jobs or len(os.sched_getaffinity(0))
    started = time.time()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            results = pool.map(lambda point: simulate(program, point), wanted)
            found = [*_told(results, len(wanted))]
        except (KeyboardInterrupt, LabError):
            pool.shutdown(cancel_futures=True)
            raise
    about = {key: meta[key] for key in ("scenario", "title", "source", "seeds")} | {
        "command": shlex.join(["testbed/veno-lab", "ns3", str(run), str(out)]),
        "backend": runs.NS3,
        "kernel_release": version,
        "points": len(found),
        "jobs": jobs,
        "algorithms": sorted({point.algorithm for point in wanted}),
        "started": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat(),
        "wall_s": round(time.time() - started, 2),
    }
    write_atomically(out / runs.RESULTS, "".join(json.dumps(one) + "\n" for one in found))
    write_atomically(out / runs.META, json.dumps(about, indent=2) + "\n")
    print(f"{len(found)} points in {about['wall_s']:.0f} s: {out}")


def _told(results: Iterator[dict[str, Any]], total: int) -> Iterator[dict[str, Any]]:
    """Give RESULTS on, and say now and then how many of TOTAL there are."""
    told_s = time.monotonic()
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() - told_s > TELL_EVERY_S:
            told_s = time.monotonic()
            print(f"{done} of {total} points", file=sys.stderr, flush=True)


def wanted_points(meta: dict[str, Any]) -> list[points.Point]:
    """Return the points of the run that META tells of that ns-3 has a model for; BadInput if their
    path is none of its."""
    if "source" not in meta:
        raise BadInput("it is no run of one scenario: it cannot be repeated here")
    names = [name for name in meta["algorithms"] if name in MODELS]
    if left := [name for name in meta["algorithms"] if name not in MODELS]:
        print(f"ns3: left out, as ns-3 has no model of them: {', '.join(left)}", file=sys.stderr)
    if not names:
        raise BadInput(f"none of its algorithms is ns-3's: {', '.join(MODELS)}")
    loaded = scenario.parse(meta["scenario"], meta["source"])
    wanted = points.expand(loaded, tuple(names), meta["seeds"], lambda *_: "ns-3")
    for point in wanted:
        check(point.spec)
    return wanted


def check(spec: dict[str, Any]) -> None:
    """Refuse what SPEC asks beyond one bulk flow over plain hops."""
    flows = spec["flows"]
    if spec["medium"] or spec["udp"] or spec["events"] or spec["lablinks"] or len(flows) != 1:
        raise BadInput("ns3 has one TCP flow over hops that do not change: no other traffic")
    (flow,) = flows
    if flow["transport"] != "tcp" or flow["reverse"] or flow["bytes"] or flow["repeats"]:
        raise BadInput(f"ns3 has one bulk transfer by TCP; {flow['name']} is something else")
    beyond = [f"topology.{key}" for key in ("tunnel", "ecn") if spec["topology"][key]]
    beyond += [f"sysctl.{key}" for key in spec.get("sysctl", {})]
    beyond += [f"modules.{key}" for key in spec.get("modules", {})]
    if beyond:
        raise BadInput(f"ns3 has no {', '.join(beyond)}: its TCP is as it is by default")
    for hop, link in spec["links"].items():
        known = {*HOP_HAS, *OF_THE_LAB}
        if beyond := [key for key, value in link.items() if value and key not in known]:
            raise BadInput(f"ns3 has no {', '.join(beyond)} of a hop, as {hop} has")


def build() -> tuple[Path, str]:
    """Build ns3hops, install ns-3 before where it is missing; return it and ns-3's version."""
    setup("medium")
    package = run_cmd(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"], "asking for ns-3")
    key = hash_files([path for path in SOURCES.iterdir() if path.is_file()])
    folder = BUILD / "ns3" / f"{key}-{package}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        make(SOURCES, "ns3hops", f"OUT={folder}")
    return folder / "ns3hops", re.split(r"[+-]", package)[0]


def simulate(program: Path, point: points.Point) -> dict[str, Any]:
    """Return the result of POINT: its labels, and goodput_mbps."""
    (flow,) = point.spec["flows"]
    payload_bytes, _ = full_frame_bytes("tcp", flow["mss_bytes"])
    there, back = hops(point.spec)
    command = [
        str(program), f"--algorithm={MODELS[point.algorithm]}", f"--there={there}",
        f"--back={back}", f"--seconds={point.spec['duration_s']}", f"--warmup={point.warmup_s}",
        f"--start={flow['start_s']}", f"--mss={payload_bytes}", f"--run={point.seed}",
    ]  # fmt: skip
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise LabError(f"ns3hops failed ({shlex.join(command)}):\n{error.stderr}") from None
    return point.labels() | {"goodput_mbps": float(said)}


def hops(spec: dict[str, Any]) -> tuple[str, str]:
    """Return the hops of SPEC there and back, as ns3hops takes them, in the order in which packets
    meet them."""
    named = {
        hop: ":".join(f"{link.get(key) or 0:g}" for key in HOP_HAS)
        for hop, link in spec["links"].items()
    }
    there = [hop for hop in named if not hop.startswith("reverse_")]
    back = [named[f"reverse_{hop}"] for hop in reversed(there)]
    return ",".join(named[hop] for hop in there), ",".join(back)
