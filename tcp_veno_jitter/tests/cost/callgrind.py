# SPDX-License-Identifier: GPL-2.0-only
"""Reads what callgrind wrote, run with PLAIN_OUTPUT.

A part is what was counted between two dumps. In it, `fl=`, `fi=` and `fe=` name the source file
and `fn=` the function of the lines that follow: address, line, costs. After `calls=N ...` the
next line has instead what those calls cost, with all that they called. The costs are in the order
of the `events:` line; zeros at the end are left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

PLAIN_OUTPUT = ["--combine-dumps=yes", "--compress-strings=no", "--compress-pos=no",
                "--dump-instr=yes"]  # fmt: skip
PREFIX = "cost_call_"
TRIGGER = "desc: Trigger: Client Request: "
UNKNOWN = "???"


@dataclass(frozen=True)
class Place:
    """An instruction: its address, and the source line that it comes from.

    Without line numbers, FILE is the function's name and LINE is 0.
    """

    address: int
    file: str
    line: int


@dataclass
class Part:
    """What was counted until the program asked for a dump, and called it NAME.

    COSTS: hook -> events of what cost_call_HOOK called. CALLS: hook -> number of calls.
    INSTRUCTIONS: how often each instruction below the cost_call_* functions ran.
    """

    name: str
    costs: dict[str, Counter] = field(default_factory=dict)
    calls: Counter = field(default_factory=Counter)
    instructions: Counter = field(default_factory=Counter)


def parse(lines: Iterable[str]) -> Iterator[Part]:
    """Yield the parts that a client request ended."""
    for is_head, group in groupby(lines, lambda line: line.startswith("part: ")):
        name, body = "", []
        for line in [] if is_head else group:
            if line.startswith(TRIGGER):
                name = line[len(TRIGGER) :].rstrip("\n")
            elif name:
                body.append(line.rstrip("\n"))
        if name:
            yield _part(name, body)


def _part(name: str, body: list[str]) -> Part:
    part, events, file, function, inclusive = Part(name), [], "", "", False
    for line in body:
        key, _, value = line.partition("=")
        hook = function.removeprefix(PREFIX) if function.startswith(PREFIX) else ""
        if line.startswith("events: "):
            events = line.split()[1:]
        elif key in ("fl", "fi", "fe"):
            file = value
        elif key == "fn":
            function = value
        elif key == "calls":
            inclusive = True
            if hook:
                part.calls[hook] += int(value.split()[0])
        elif line.startswith("0x"):
            address, number, *costs = line.split()
            counts = dict(zip(events, map(int, costs), strict=False))
            if inclusive and hook:
                part.costs.setdefault(hook, Counter()).update(counts)
            elif not inclusive and not hook and counts:
                where = file if file != UNKNOWN else f"{function}()"
                part.instructions[Place(int(address, 16), where, int(number))] += counts["Ir"]
            inclusive = False
    return part
