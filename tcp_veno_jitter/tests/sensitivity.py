#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What each constant of veno_jitter's law matters: halved and doubled, on random places.

    make bench-law          DOCS=1: and put the table into docs/results/sensitivity.md
    tcp_veno_jitter/tests/sensitivity.py [--places 25] [--path-seed 501] [--out DIR] [NAME ...]

Each variant is the checkout with one number changed, built and run as any other. The table names
the means over all places, and on how many places it did worse and better than the law as it is.
What has been run in DIR is not run again.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

PROJECT = Path(__file__).resolve().parents[2]
LAW = Path("tcp_veno_jitter/tcp_veno_jitter.c")
TUNED = re.compile(r"/\* What the law is tuned by.*?\n\n", re.DOTALL)
DEFINE = re.compile(r"^#define (VJ_\w+)\s+(\d+)\b", re.MULTILINE)
PARAMETER = re.compile(
    r"struct tcp_param (vj_\w+) = \{ \.value = (\d+), \.min = (\d+), \.max = (\d+) \}"
)
PAGE, BEGIN, END = (
    PROJECT / "docs/results/sensitivity.md",
    "<!-- table -->\n",
    "<!-- end of table -->\n",
)
HEAD = """| constant | value | carried, alone | dropped % | rivals keep | unfair | worse | better |
|---|---|---|---|---|---|---|---|"""
# of their fields, by which the module's BUILD_BUG_ON() go
LARGEST = {
    "VJ_CALM_ROUNDS": 15, "VJ_FEW_PKTS": 15, "VJ_FILLS": 5, "VJ_HOLD_ROUNDS": 3, "VJ_PATTERN": 3,
    "VJ_TOP_PERCENT": 99,
}  # fmt: skip
WORSE, WORSE_DROP_PCT = 0.05, 1.0  # of a place's share or a rival's, and of the packets dropped


@dataclass(frozen=True)
class Constant:
    """A number of the law. SMALLEST, LARGEST: what there is room for. Of a shift, 1/2^value is
    halved and doubled."""

    name: str
    value: int
    smallest: int
    largest: int

    @property
    def is_shift(self) -> bool:
        return self.name.endswith("_SHIFT")

    def said(self, value: int) -> str:
        return f"1/{1 << value}" if self.is_shift else str(value)

    def halved(self) -> int:
        return self.value + 1 if self.is_shift else max(self.value // 2, self.smallest)

    def doubled(self) -> int:
        return self.value - 1 if self.is_shift else min(self.value * 2, self.largest)

    def put(self, source: str, value: int) -> str:
        """Return SOURCE with this constant set to VALUE."""
        for pattern in (rf"(#define {self.name}\s+)\d+", rf"({self.name} = \{{ \.value = )\d+"):
            source, found = re.subn(pattern, rf"\g<1>{value}", source)
            if found:
                return source
        raise ValueError(f"{self.name} is not in {LAW}")


def constants(source: str) -> list[Constant]:
    """Return what the law in SOURCE is tuned by; switches (0 to 1, 0 to 2) are none."""
    parameters = [
        Constant(name, *map(int, numbers)) for name, *numbers in PARAMETER.findall(source)
    ]
    defines = [
        Constant(name, int(value), not name.endswith("_SHIFT"), LARGEST.get(name, sys.maxsize))
        for name, value in DEFINE.findall(TUNED.search(source)[0])
    ]
    return [one for one in parameters if one.largest > 2] + defines


def copied(to: Path) -> Path:
    """Copy what the checkout tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (PROJECT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, to / name, follow_symlinks=False)
    return to


def measured(tree: Path, out: Path, places: int, path_seed: int) -> dict[int, dict]:
    """Return each place's figures with the module of TREE."""
    if not (out / "report.html").exists():
        drawn = "axes.place.random"
        command = [
            tree / "testbed" / "run", "random-paths", "--algorithms", "veno_jitter",
            "--set", "run.packets=true", "--set", f"{drawn}.count={places}",
            "--set", f"{drawn}.seed={path_seed}", "--seeds", "1",
            "--out", out, *(["--resume"] if out.exists() else []),
        ]  # fmt: skip
        with (out.parent / f"{out.name}.log").open("w") as log:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)
    rows = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    return {int(float(row["axes"]["place"])): row for row in rows}


def share(row: dict) -> float:
    return row["goodput_mbps"] / row["bound_mbps"]


def line(constant: str, value: str, found: dict[int, dict], shipped: dict[int, dict]) -> str:
    """Return a line of the table."""
    rivals = {
        n: row["goodput_other_mbps"] for n, row in shipped.items() if row["goodput_other_mbps"]
    }
    left = {n: (found[n]["goodput_other_mbps"] or 0) / rivals[n] for n in rivals}
    more = {n: share(found[n]) / share(shipped[n]) for n in shipped if n not in rivals}
    dropped = {
        n: found[n]["queue_drop_steady_pct"] - shipped[n]["queue_drop_steady_pct"] for n in shipped
    }
    ratios = {**more, **left}
    worse = sum(ratios[n] < 1 - WORSE or dropped[n] > WORSE_DROP_PCT for n in shipped)
    better = sum(ratios[n] > 1 + WORSE or dropped[n] < -WORSE_DROP_PCT for n in shipped)
    alone = [share(found[n]) for n in more]
    drops = fmean(row["queue_drop_steady_pct"] for row in found.values())
    unfair = sum(row["jain"] < 0.9 for row in found.values())
    cells = (constant, value, f"{fmean(alone):.3f}", f"{drops:.2f}", f"{fmean(left.values()):.2f}",
             unfair, worse, better)  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these constants")
    parser.add_argument("--places", type=int, default=25)
    parser.add_argument("--path-seed", type=int, default=501)
    parser.add_argument("--out", type=Path, default=PROJECT / "results" / "sensitivity")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {PAGE.name}")
    asked = parser.parse_args()
    source = (PROJECT / LAW).read_text()
    known = {one.name: one for one in constants(source)}
    if unknown := set(asked.names) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(known)}")
    asked.out.mkdir(parents=True, exist_ok=True)
    tree = copied(asked.out / "tree")

    def run(name: str, text: str) -> dict[int, dict]:
        (tree / LAW).write_text(text)
        return measured(tree, asked.out / name, asked.places, asked.path_seed)

    shipped = run("shipped", source)
    table = []

    def say(text: str) -> None:
        print(text, flush=True)
        table.append(text)

    say(HEAD)
    say(line("as shipped", "", shipped, shipped))
    for one in [known[name] for name in asked.names] or known.values():
        for value in dict.fromkeys((one.halved(), one.doubled())):
            if value != one.value:
                name = one.name.removeprefix("vj_").removeprefix("VJ_")
                found = run(f"{name}-{value}", one.put(source, value))
                say(line(f"`{name}` ({one.said(one.value)})", one.said(value), found, shipped))
    if asked.docs:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        text = "\n".join(table)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
