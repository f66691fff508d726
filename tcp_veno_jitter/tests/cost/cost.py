# SPDX-License-Identifier: GPL-2.0-only
"""What an algorithm costs for each ACK, in instructions and cache misses (`make bench-cost`).

  build   the algorithms and the replay, by the lab kernel's own build
  record  flows of each algorithm in the lab: every call with all it can see
  replay  the recorded calls under callgrind, which counts

What has not changed since the last time is neither built nor recorded again.
"""

import json
import os
import queue
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer
from callgrind import PLAIN_OUTPUT, PREFIX, Part, parse
from harness import KERNELS, OURS, OUT, PROJECT, RUN, Builder, CostError, record, run_cmd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

FLOWS = ["bulk", "lossy", "chunks"]  # of guest_record.py
APP_LIMITED = "chunks"  # the flow of which every open ACK is of that phase
# They give a connection other hooks while it lasts: the recording would lose its own.
SWITCHES = {"wccp"}
DOCS = PROJECT / "docs" / "results" / "cost.md"
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"
RECORDINGS = OUT / "recordings"
FLOW_S = 12.0
ACKS = 300  # of each phase of each flow
PHASES = ["start", "steady", "recovery", "app_limited"]
ALL = "all"
LINES, WIDTH = 40, 150
LOSS_HOOKS = ["ssthresh", "set_state", "cwnd_event", "undo_cwnd"]
EVENTS = {"instructions": ("Ir",), "d1_misses": ("D1mr", "D1mw"), "i1_misses": ("I1mr",),
          "ll_misses": ("ILmr", "DLmr", "DLmw"), "branches": ("Bc", "Bi"),
          "mispredicted": ("Bcm", "Bim")}  # fmt: skip
DIVISIONS = "divisions"  # div and idiv: one instruction each, but of 10 to 40 cycles
# Not this machine's caches, or the figures would not repeat on another.
CACHES = ["--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
          "--LL=1048576,16,64"]  # fmt: skip


# --- replay -----------------------------------------------------------------


Events = dict[str, int]  # names of EVENTS and DIVISIONS -> how many


@dataclass
class Cost:
    """What one algorithm cost.

    HOOKS, CORE, COLD_HOOKS: phase -> events of each ACK: in its hooks; in the core's call with the
    last hook in it; in its hooks with the first-level caches emptied. CALLS, INSTRUCTIONS: hook ->
    how many, of the hooks that are not of an ACK. LINES: phase -> source line -> instructions.
    """

    algorithm: str
    private_bytes: int
    checked: Counter = field(default_factory=Counter)
    hooks: dict[str, list[Events]] = field(default_factory=lambda: defaultdict(list))
    total: dict[str, list[Events]] = field(default_factory=lambda: defaultdict(list))
    cold: dict[str, list[Events]] = field(default_factory=lambda: defaultdict(list))
    calls: Counter = field(default_factory=Counter)
    instructions: Counter = field(default_factory=Counter)
    lines: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))

    def per_call(self) -> dict[str, float]:
        """Return hook -> mean instructions of a call, of the hooks that are not of an ACK."""
        return {hook: self.instructions[hook] / n for hook, n in sorted(self.calls.items())}

    def per_loss(self) -> float:
        """Return the mean instructions of all hooks of an answer to a loss."""
        return sum(self.instructions[h] for h in LOSS_HOOKS) / max(self.calls["ssthresh"], 1)

    def add(self, phase: str, ack: tuple[Part, Part, Part], divisions: set[int]) -> None:
        """Add an ACK."""
        before, control, core = ack
        events = [events_of(part, divisions) for part in (before, control, core)]
        self.hooks[phase].append(added(events[0], events[1]))
        self.total[phase].append(added(events[0], events[2]))
        self.lines[phase].update(before.instructions)
        self.lines[phase].update(control.instructions)


def events_of(part: Part, divisions: set[int]) -> Events:
    counts = sum(part.costs.values(), Counter())
    events = {name: sum(counts[short] for short in shorts) for name, shorts in EVENTS.items()}
    divided = sum(n for place, n in part.instructions.items() if place.address in divisions)
    return events | {DIVISIONS: divided}


def added(a: Events, b: Events) -> Events:
    return {name: a[name] + b[name] for name in a}


def check(builder: Builder, algorithm: str, recording: Path) -> dict[str, int]:
    """Replay all calls; return how many did as recorded. CostError if one did not."""
    said = run_cmd(builder.replay(algorithm), "check", recording, what=f"replaying {algorithm}")
    return json.loads(said)


def run_replay(
    builder: Builder, algorithm: str, recording: Path, acks: int, cold: bool
) -> list[Part]:
    """Return what was counted, as replay_main.c cuts it into parts.

    An environment would be read before that, and branch prediction would remember it.
    """
    out = OUT / f"callgrind-{algorithm}-{recording.stem}{'-cold' * cold}"
    run_cmd("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *PLAIN_OUTPUT, *CACHES,
            f"--toggle-collect={PREFIX}*", builder.replay(algorithm), "measure", recording,
            str(acks), *["cold"] * cold, what=f"counting {algorithm}",
            env={"PATH": os.environ["PATH"]})  # fmt: skip
    with open(out) as lines:
        parts = list(parse(lines))
    out.unlink()
    return parts


def acks_of(parts: list[Part]) -> Iterable[tuple[Part, Part, Part]]:
    """Return the three parts of each ACK."""
    return zip(parts[::3], parts[1::3], parts[2::3], strict=True)


def phase_of(ack: tuple[Part, Part, Part], flow: str) -> str:
    phase = ack[-1].name.split()[1]
    return "app_limited" if flow == APP_LIMITED and phase != "recovery" else phase


def measure(builder: Builder, algorithm: str, folder: Path, acks: int) -> Cost:
    cost = Cost(algorithm, builder.private_bytes(algorithm))
    divisions = builder.divisions(algorithm)
    for flow in FLOWS:
        recording = folder / f"{flow}.rec"
        cost.checked.update(check(builder, algorithm, recording))
        *parts, events = run_replay(builder, algorithm, recording, acks, cold=False)
        for ack in acks_of(parts):
            cost.add(phase_of(ack, flow), ack, divisions)
        cost.calls.update(events.calls)
        cost.instructions.update({hook: counts["Ir"] for hook, counts in events.costs.items()})
        *parts, events = run_replay(builder, algorithm, recording, acks, cold=True)
        for ack in acks_of(parts):
            events = added(events_of(ack[0], divisions), events_of(ack[1], divisions))
            cost.cold[phase_of(ack, flow)].append(events)
    return cost


# --- report -----------------------------------------------------------------


@dataclass
class Row:
    """One line of the table: an algorithm in a phase. All but ACKS is of one ACK."""

    algorithm: str
    phase: str
    acks: int
    hooks_instructions_median: float
    hooks_instructions_mean: float
    total_instructions_median: float
    total_instructions_mean: float
    hooks_divisions_mean: float
    total_divisions_mean: float
    branches_mean: float
    mispredicted_mean: float
    d1_misses_mean: float
    d1_misses_cold_mean: float
    i1_misses_cold_mean: float


def rows_of(cost: Cost) -> list[Row]:
    rows = []
    for phase in [*PHASES, ALL]:
        hooks, total, cold = (
            by_phase.get(phase, []) if phase != ALL else [*chain(*by_phase.values())]
            for by_phase in (cost.hooks, cost.total, cost.cold)
        )
        if not hooks:
            continue
        row = Row(
            cost.algorithm, phase, len(hooks),
            median(events["instructions"] for events in hooks), mean_of(hooks, "instructions"),
            median(events["instructions"] for events in total), mean_of(total, "instructions"),
            mean_of(hooks, DIVISIONS), mean_of(total, DIVISIONS),
            mean_of(hooks, "branches"), mean_of(hooks, "mispredicted"), mean_of(hooks, "d1_misses"),
            mean_of(cold, "d1_misses"), mean_of(cold, "i1_misses"),
        )  # fmt: skip
        rows.append(row)
    return rows


def mean_of(acks: list[Events], name: str) -> float:
    return mean(events[name] for events in acks)


HEADS = ["algorithm", "phase", "ACKs", "hooks: median", "mean", "with core: median", "mean",
         "divisions", "with core", "branches", "mispredicted", "D1 misses", "D1 misses, cold",
         "I1 misses, cold"]  # fmt: skip


def row_texts(row: Row) -> list[str]:
    values = list(asdict(row).values())
    instructions, others = values[3:7], values[7:]
    return [row.algorithm, row.phase, str(row.acks), *(f"{value:.0f}" for value in instructions),
            *(f"{value:.1f}" for value in others)]  # fmt: skip


OTHER_HEADS = ["algorithm", "private bytes", "a loss", "each call of other hooks (calls)",
               "replayed exactly"]  # fmt: skip


def other_texts(cost: Cost) -> list[str]:
    calls = ", ".join(
        f"{hook} {instructions:.0f} ({cost.calls[hook]})"
        for hook, instructions in cost.per_call().items()
    )
    checked = f"{cost.checked['same']} of {sum(cost.checked.values())}"
    return [cost.algorithm, str(cost.private_bytes), f"{cost.per_loss():.0f}", calls, checked]


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    table = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def print_table(heads: list[str], lines: list[list[str]]) -> None:
    table = Table(*heads, box=None, pad_edge=False)
    for line in lines:
        table.add_row(*map(escape, line))
    Console(width=WIDTH).print(table, "")


def publish(costs: list[Cost], docs: bool) -> None:
    """Print the tables; leave them as text and JSON in OUT, and in the documentation if DOCS."""
    tables = [
        (HEADS, [row_texts(row) for cost in costs for row in rows_of(cost)]),
        (OTHER_HEADS, [other_texts(cost) for cost in costs]),
    ]
    for heads, lines in tables:
        print_table(heads, lines)
    text = "\n".join(markdown(*table) for table in tables)
    (OUT / "cost.md").write_text(text)
    if docs:
        head, _, rest = DOCS.read_text().partition(BEGIN)
        DOCS.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    result = [
        {"algorithm": cost.algorithm, "private_bytes": cost.private_bytes,
         "checked": cost.checked, "loss_instructions_mean": cost.per_loss(),
         "call_instructions_mean": cost.per_call(), "calls": dict(cost.calls),
         "acks": [asdict(row) for row in rows_of(cost)]}
        for cost in costs
    ]  # fmt: skip
    (OUT / "cost.json").write_text(json.dumps(result, indent=2) + "\n")


def line_rows(cost: Cost, phase: str, divisions: set[int]) -> list[list[str]]:
    """Return the source lines that cost most in PHASE: per ACK, file and line, text."""
    acks = len(cost.hooks[phase])
    counts, divided = Counter(), Counter()
    for place, count in cost.lines[phase].items():
        counts[place.file, place.line] += count
        divided[place.file, place.line] += count * (place.address in divisions)
    rows = []
    for (file, line), count in counts.most_common(LINES):
        text = source_line(Path(file), line)
        rows.append([f"{count / acks:.1f}", f"{divided[file, line] / acks:.1f}",
                     f"{Path(file).name}:{line or ''}", text])  # fmt: skip
    return rows


def source_line(path: Path, line: int) -> str:
    lines = path.read_text().splitlines() if path.is_file() else []
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def cost_of_all(builder: Builder, algorithms: list[str], flow_s: float, acks: int) -> list[Cost]:
    """Build, record and count, one algorithm for each core at a time."""
    builder.build(algorithms)
    cpus = queue.SimpleQueue()
    for cpu in os.sched_getaffinity(0):
        cpus.put(cpu)

    def one(algorithm: str) -> Cost:
        cpu = cpus.get()
        try:
            return measure(
                builder, algorithm, record(builder, algorithm, flow_s, cpu, RECORDINGS), acks
            )
        finally:
            cpus.put(cpu)

    run_cmd(RUN, "--exec", "true", what="the lab", stdin=subprocess.DEVNULL)  # builds it once
    with ThreadPoolExecutor(cpus.qsize()) as pool:
        return list(pool.map(one, algorithms))


def main(
    algorithms: Annotated[
        str, typer.Argument(metavar="A,B", help="Algorithms to measure.")
    ] = ",".join(name for name in [*OURS, *KERNELS] if name not in SWITCHES),
    lines: Annotated[
        str,
        typer.Option(
            metavar="PHASE",
            help="Show the source lines that cost most in start, steady, recovery or app_limited.",
        ),
    ] = "",
    docs: Annotated[
        bool, typer.Option("--docs", help="Put the tables into the docs page.")
    ] = False,
) -> None:
    """Count what algorithms cost for each ACK. Tables also in build/cost/cost.md and cost.json."""
    names = [name.strip() for name in algorithms.split(",")]
    if switched := ", ".join(SWITCHES & set(names)):
        raise CostError(f"{switched} changes the hooks of a connection: they cannot be recorded")
    for name in names:
        if name not in [*OURS, *KERNELS]:
            raise CostError(f"unknown algorithm {name}: one of {', '.join([*OURS, *KERNELS])}")
    if lines and lines not in PHASES:
        raise CostError(f"unknown phase {lines}: one of {', '.join(PHASES)}")
    builder = Builder()
    costs = cost_of_all(builder, names, FLOW_S, ACKS)
    publish(costs, docs)
    for cost in costs if lines else []:
        rows = line_rows(cost, lines, builder.divisions(cost.algorithm))
        print_table(["instructions", "divisions", f"{cost.algorithm}, {lines}", ""], rows)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    try:
        app()
    except CostError as error:
        sys.exit(f"cost: {error}")
