# SPDX-License-Identifier: GPL-2.0-only
"""The command cc-compare."""

import argparse
import json
import math
import os
import platform
import random
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cctools import Complaint, algorithms, option_parser, rounds, say
from cctools.connections import OURS
from cctools.page import page
from cctools.pinging import family_of, pinging
from cctools.rounds import Plan, Run, Slot, run_rounds
from cctools.transfers import (
    FORWARD,
    REVERSE,
    Command,
    Failed,
    Iperf3,
    Refused,
    Traffic,
    refused_there,
)
from cctools.verdict import (
    Judge,
    Verdict,
    advice,
    bounds,
    figure,
    harm_sentence,
    judge,
    unsettled,
)

PROGRAM = "cc-compare"
TRIED_FIRST = ("veno_jitter", "bbr")  # beside the machine's default, where they can be had
USUAL = "cubic"  # what a machine has whose default is none of ours
WARM_UP_S = 1.0
IDLE_PING_S = 2.0
INTERRUPTED = 130
DESCRIPTION = """Compare congestion control algorithms over your own path to HOST.

Each round runs every algorithm once, in random order, with idle gaps between; rounds go on until
each has its answer or a limit is reached. The machine's default is not touched."""
EPILOG = """examples:
  iperf3 -s                                              on HOST, first
  cc-compare HOST                                        the default against veno_jitter and bbr
  cc-compare HOST -a cubic,veno_jitter --both            both directions
  cc-compare HOST --command 'mycopy --tcp {algorithm}'   any transfer that takes the name

Ctrl-C ends it and keeps what there is. Exit code 0: measured; 1: the path or the other end failed;
2: something to put right first; 130: interrupted."""


@dataclass
class Record:
    """All of a comparison, as it goes into the JSON file."""

    host: str
    traffic: str
    plan: Plan
    by: Judge
    began: str
    idle_rtt_ms: float | None
    runs: list[Run]

    def verdicts(self) -> list[Verdict]:
        return judge(self.runs, self.plan, self.by)

    def document(self) -> dict[str, Any]:
        verdicts = self.verdicts()
        return {
            "tool": PROGRAM,
            "host": self.host,
            "traffic": self.traffic,
            "began": self.began,
            "kernel": platform.release(),
            "machine_default": algorithms.default(),
            "idle_rtt_ms": self.idle_rtt_ms,
            "plan": asdict(self.plan),
            "judge": asdict(self.by),
            "advice": advice(verdicts, self.by),
            "verdicts": [asdict(one) | {"harm_words": harm_sentence(one)} for one in verdicts],
            "runs": [run.row() for run in self.runs],
        }


def finite(value: Any) -> Any:
    """Return VALUE as JSON has it: what is no number is null."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_whole(path: Path, text: str) -> None:
    """Write TEXT so that PATH is the old or the new one at any time."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError as error:
        raise Complaint(f"{path}: {error.strerror}: give --out another place") from None


def keep(record: Record, out: str) -> None:
    """Write the files; nothing where OUT is empty."""
    if out:
        document = finite(record.document())
        write_whole(Path(f"{out}.json"), json.dumps(document, indent=1) + "\n")
        write_whole(
            Path(f"{out}.html"), page(record.document(), record.runs, record.plan, record.by)
        )


# --- options -----------------------------------------------------------------


def between(low: float, high: float):
    """Return what argparse reads a number of that range with."""

    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text}: between {low:g} and {high:g}")
        return value

    return number


def parser() -> argparse.ArgumentParser:
    made = option_parser(PROGRAM, DESCRIPTION, EPILOG)
    add = made.add_argument
    add("host", metavar="HOST", help="where `iperf3 -s` runs (with --command: what is pinged)")
    add("-a", "--algorithms", metavar="A,B", help="which (default: this machine's default, and"
        " veno_jitter and bbr where they can be had; cubic, too, if the default is one of"
        " ours)")  # fmt: skip
    add("-b", "--baseline", metavar="A", help="what the others are compared with (default: this"
        " machine's default, or the first named)")  # fmt: skip
    ways = made.add_mutually_exclusive_group()
    ways.add_argument("-R", "--reverse", action="store_true", help="HOST sends: its kernel has to"
                      " have the algorithms")  # fmt: skip
    ways.add_argument("--both", action="store_true", help="both directions")
    add("-t", "--seconds", type=between(1, 3600), default=10, help="of a transfer"
        " (default: 10)")  # fmt: skip
    add("--gap", type=between(0, 600), default=2, metavar="SECONDS", help="idle before each"
        " transfer (default: 2)")  # fmt: skip
    add("-n", "--rounds", type=int, default=30, help="at most (default: 30)")
    add("--minutes", type=between(0.1, 1e5), help="begin no round after so"
        " many (at 99 %% nothing is answered before the tenth round)")  # fmt: skip
    add("--confidence", type=between(50, 99.99), default=99, metavar="PERCENT", help="of all"
        " verdicts together, at any time one looks (default: 99)")  # fmt: skip
    add("--same-within", type=between(0.1, 100), default=5, metavar="PERCENT", help="a"
        " difference below this does not matter (default: 5)")  # fmt: skip
    add("--command", metavar="'... {algorithm} ...'", help="a transfer of your own instead of"
        " iperf3: the time it takes is compared")  # fmt: skip
    add("-p", "--port", type=int, default=5201, help="of the iperf3 server (default: 5201)")
    family = made.add_mutually_exclusive_group()
    family.add_argument("-4", dest="family", action="store_const", const="-4", default="",
                        help="IPv4 only")  # fmt: skip
    family.add_argument("-6", dest="family", action="store_const", const="-6", help="IPv6 only")
    add("--iperf3", metavar="'OPTIONS'", default="", help="more options for iperf3, such as"
        " '-P 4'")  # fmt: skip
    add("--no-ping", action="store_true", help="do not ping HOST beside the transfers")
    add("--load", action="store_true", help="load modules that are missing (root)")
    add("--seed", type=int, help="of the random order (default: another each time)")
    add("-o", "--out", metavar="NAME", help="write NAME.json and NAME.html (default:"
        " cc-compare-HOST-TIME); '' for no files")  # fmt: skip
    add("-q", "--quiet", action="store_true", help="the verdict only")
    return made


def why_not(name: str) -> str:
    """Return why NAME cannot be had, and what helps."""
    try:
        algorithms.check(name)
    except Complaint as complaint:
        return str(complaint)
    return ""


def chosen(options: argparse.Namespace) -> tuple[tuple[str, ...], str]:
    """Return the algorithms and the baseline. Complaint if one cannot be had."""
    default = algorithms.default()
    if options.algorithms is None:
        if options.load:
            algorithms.load(TRIED_FIRST[0])
        others = (USUAL, *TRIED_FIRST) if default in OURS else TRIED_FIRST
        names = [default, *(name for name in others if algorithms.usable(name))]
        names = list(dict.fromkeys(names))
        if len(names) < 2:
            algorithms.check(TRIED_FIRST[0])
        if TRIED_FIRST[0] not in names:
            say(PROGRAM, f"without {TRIED_FIRST[0]}: {why_not(TRIED_FIRST[0])}")
    else:
        names = [name.strip() for name in options.algorithms.split(",") if name.strip()]
    baseline = options.baseline or (default if default in names else (names or [""])[0])
    if baseline not in names:
        names.insert(0, baseline)
    if len(set(names)) < 2 or len(set(names)) != len(names):
        raise Complaint("--algorithms: two or more different ones, as in -a cubic,veno_jitter")
    for name in names:  # with -R, too: iperf3 sets it at both ends
        if options.load:
            algorithms.load(name)
        algorithms.check(name)
    return tuple(names), baseline


def resolved(host: str, family: str) -> None:
    """Complain if HOST has no address."""
    try:
        socket.getaddrinfo(host, None, family_of(family), socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise Complaint(f"{host}: {reason}") from None


def traffic_of(options: argparse.Namespace) -> Traffic:
    if options.command is not None:
        if options.reverse or options.both:
            raise Complaint("--command says itself which way data goes: leave out -R and --both")
        return Command(options.command)
    if not shutil.which("iperf3"):
        raise Complaint("no iperf3 here: apt install iperf3, or give a transfer with --command")
    try:
        extra = shlex.split(options.iperf3)
    except ValueError as error:
        raise Complaint(f"--iperf3 {options.iperf3}: {error}") from None
    return Iperf3(options.host, options.port, options.family, extra)


def out_of(options: argparse.Namespace) -> str:
    """Return the beginning of the files' names. Complaint if none can be written there."""
    if options.out is None:
        host = re.sub(r"[^\w.-]+", "_", options.host)
        options.out = f"{PROGRAM}-{host}-{time.strftime('%Y%m%d-%H%M%S')}"
    if options.out:
        folder = Path(options.out).parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise Complaint(f"{folder}: nothing can be written there: give --out another place")
    return options.out


# --- the run -----------------------------------------------------------------


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def run_line(run: Run, plan: Plan) -> str:
    """Return what a run told, as a line."""
    way = f"{run.direction:8} " if len(plan.directions) > 1 else ""
    start = f"{run.round + 1:3}  {way}{run.algorithm:16}"
    if not run.transfer:
        return f"{start} failed: {run.failure}"
    columns = []
    if run.transfer.goodput_mbps is not None:
        columns.append(f"{figure(run.transfer.goodput_mbps):>7} Mb/s")
    else:
        columns.append(f"{figure(run.transfer.seconds):>7} s")
    for name, value in (("RTT", rounds.tcp_rtt_ms(run)), ("ping", rounds.ping_rtt_ms(run))):
        if value is not None:
            columns.append(f"{name} {figure(value):>5} ms")
    if run.transfer.retransmits is not None:
        columns.append(f"{run.transfer.retransmits} sent again")
    return f"{start} " + "  ".join(columns)


def warm_up(traffic: Traffic, plan: Plan) -> None:
    """Try each algorithm each way for a second, so that what cannot work is said now. A server
    that cannot set one just hangs up."""
    if not isinstance(traffic, Iperf3):
        return
    for direction in plan.directions:
        for algorithm in plan.algorithms:
            try:
                traffic.transfer(algorithm, direction, WARM_UP_S)
            except Failed as failure:
                if direction == REVERSE and "closed unexpectedly" in str(failure):
                    raise refused_there(algorithm, failure) from None
                raise


def measure(record: Record, traffic: Traffic, tell: Callable[[str], None]) -> Iterator[Run]:
    """Run the rounds into RECORD, and give each run. TELL: what is known after each round."""
    if record.plan.ping:
        with pinging(record.host, record.plan.family) as told:
            time.sleep(IDLE_PING_S)
        if told:
            record.idle_rtt_ms = told[0].rtt_ms
        if record.idle_rtt_ms is None:
            why = "answers no ping" if told else "cannot be pinged (net.ipv4.ping_group_range)"
            say(PROGRAM, f"{record.host} {why}: what others feel beside is not measured")
            record.plan = replace(record.plan, ping="")
    warm_up(traffic, record.plan)

    def after_round(runs: list[Run]) -> set[Slot]:
        tell(so_far(record))
        return unsettled(runs, record.plan, record.by)

    for run in run_rounds(traffic, record.plan, after_round):
        record.runs.append(run)
        yield run


def report(record: Record) -> str:
    """Return the verdicts in words."""
    if not record.runs:
        return "Nothing was measured."
    verdicts = record.verdicts()
    lines = []
    for one in verdicts:
        way = f"[{one.direction}] " if len(record.plan.directions) > 1 else ""
        lines.append(f"{way}{one.words}")
        if harm := harm_sentence(one):
            lines.append(f"    {harm}")
    lines += ["", *advice(verdicts, record.by)]
    if REVERSE in record.plan.directions:
        lines.append(
            f"Reverse: {record.host} sends, so it is its kernel that has to have and choose the"
            " algorithm; nothing on this machine changes that."
        )
    return "\n".join(lines)


def so_far(record: Record) -> str:
    """Return a line on how much each carries against the baseline, as far as it is known."""
    found = []
    for one in record.verdicts():
        way = f" {one.direction}" if len(record.plan.directions) > 1 else ""
        if one.speed.low > 0 or math.isfinite(one.speed.high):
            found.append(f"{one.algorithm}{way} {figure(one.speed.ratio)} {bounds(one.speed)}")
        else:
            found.append(f"{one.algorithm}{way} {figure(one.speed.ratio)} [?]")
        if one.settled:
            found[-1] += " (settled)"
    return f"     so far {', '.join(found)} times {record.by.baseline}"


def compare(options: argparse.Namespace) -> int:
    if not 1 <= options.rounds <= 10000:
        raise Complaint(f"--rounds {options.rounds}: between 1 and 10000")
    if not 1 <= options.port <= 65535:
        raise Complaint(f"--port {options.port}: between 1 and 65535")
    traffic = traffic_of(options)
    names, baseline = chosen(options)
    resolved(options.host, options.family)
    out = out_of(options)
    directions = (FORWARD, REVERSE) if options.both else (REVERSE if options.reverse else FORWARD,)
    plan = Plan(
        algorithms=names,
        directions=directions,
        seconds=options.seconds,
        gap_s=options.gap,
        rounds=options.rounds,
        limit_s=options.minutes * 60 if options.minutes else None,
        ping="" if options.no_ping else options.host,
        family=options.family,
        seed=options.seed if options.seed is not None else random.SystemRandom().randrange(2**31),
    )
    by = Judge(baseline, 1 - options.confidence / 100, options.same_within / 100)
    began = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    record = Record(options.host, traffic.describe(), plan, by, began, None, [])
    return run_and_report(record, traffic, out, options.quiet)


def run_and_report(record: Record, traffic: Traffic, out: str, quiet: bool) -> int:
    plan = record.plan
    tell = (lambda _text: None) if quiet else (lambda text: print(text, flush=True))
    round_s = len(plan.algorithms) * len(plan.directions) * (plan.seconds + plan.gap_s)
    each = "" if isinstance(traffic, Command) else f" of {minutes(round_s)}"
    tell(
        f"{record.traffic}: {', '.join(plan.algorithms)}; at most {plan.rounds} rounds{each};"
        f" order by seed {plan.seed}; Ctrl-C keeps what there is"
    )
    status = 0
    try:
        for run in measure(record, traffic, tell):
            tell(run_line(run, plan))
            keep(record, out)
    except Failed as failure:
        say(PROGRAM, str(failure))
        status = 2 if isinstance(failure, Refused) and not record.runs else 1
        if not record.runs:
            return status
    except KeyboardInterrupt:
        say(PROGRAM, "interrupted: this is what there is")
        status = INTERRUPTED
    tell("")
    print(report(record))
    if out and record.runs:
        keep(record, out)
        tell(f"\n{out}.html, {out}.json")
    return status


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: what runs is ended, the rest kept
        signal.signal(ending, signal.default_int_handler)
    try:
        return compare(options)
    except Complaint as complaint:
        say(PROGRAM, str(complaint))
        return 2
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
