# SPDX-License-Identifier: GPL-2.0-only
"""The command cc-watch."""

import argparse
import contextlib
import curses
import json
import locale
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cctools import Complaint, option_parser, say
from cctools.connections import OURS, Connection, Losses, Watcher
from cctools.sockdiag import Kernel
from cctools.tracing import Verdicts

PROGRAM = "cc-watch"
DESCRIPTION = """Show what TCP's congestion control does on this machine, connection by connection.

On a terminal it goes on until q; otherwise, and with --once or --json, it is one look."""
EPILOG = """keys: q end, s and S sort by the next or previous column, r turn the order round,
/ filter, o only our modules, p pause, arrows and page keys move

Needs no root. As root it also counts what losses were taken for (noise, congestion). Columns:
docs/values.md of the project. Exit code 0; 1: the log could not be written; 2: something to put
right first."""
SLOWEST_S = 3600.0


@dataclass(frozen=True)
class Column:
    """A column: HEAD above it, VALUE sorts, WIDTH characters, DIGITS after a number's point."""

    name: str
    head: str
    width: int
    value: Callable[[Connection], Any]
    digits: int = 0

    def text(self, one: Connection) -> str:
        value = self.value(one)
        if value is None:
            return "-".rjust(self.width)
        if isinstance(value, str):
            return value[: self.width].ljust(self.width)
        return f"{value:.{self.digits}f}".rjust(self.width)

    def title(self) -> str:
        return self.head.ljust(self.width) if self.width > 10 else self.head.rjust(self.width)


def rate_mbps(one: Connection) -> float | None:
    """What was acknowledged since the last look; at the first, what TCP measured last."""
    return one.rate.sent_mbps if one.rate.sent_mbps is not None else one.delivery_mbps


COLUMNS = (
    Column("algorithm", "algorithm", 12, lambda one: one.algorithm),
    Column("local", "local", 22, lambda one: one.local),
    Column("remote", "remote", 22, lambda one: one.remote),
    Column("state", "state", 11, lambda one: one.state),
    Column("law", "law", 7, lambda one: one.law),
    Column("rate", "Mb/s", 8, rate_mbps, 2),
    Column("bandwidth", "B Mb/s", 8, lambda one: one.bandwidth_mbps, 2),
    Column("rtt", "RTT ms", 8, lambda one: one.srtt_ms, 1),
    Column("base", "base", 8, lambda one: one.base_rtt_ms, 1),
    Column("queue", "queue", 8, lambda one: one.queue_ms, 1),
    Column("backlog", "N pkts", 7, lambda one: one.backlog_pkts, 1),
    Column("jitter", "Jr %", 6, lambda one: one.jitter_percent, 1),
    Column("cwnd", "cwnd", 6, lambda one: one.cwnd_pkts),
    Column("resent", "resent%", 8, lambda one: one.resent_percent, 2),
    Column("noise", "noise", 6, lambda one: one.losses.random),
    Column("congestion", "congest", 8, lambda one: one.losses.congestion),
)
NAMES = [column.name for column in COLUMNS]


@dataclass
class Selection:
    """Which connections, and in which order."""

    sort: str = "rate"
    reverse: bool = True
    algorithms: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def of(self, found: list[Connection]) -> list[Connection]:
        """Return those of FOUND that are wanted, in order; without a value last."""
        if self.algorithms:
            found = [one for one in found if one.algorithm in self.algorithms]
        if self.words:
            found = [one for one in found if self._has_words(one)]
        value = COLUMNS[NAMES.index(self.sort)].value
        known = [(value(one), one.told.cookie, one) for one in found]
        with_value = sorted(
            (key for key in known if key[0] is not None),
            key=lambda key: key[:2],
            reverse=self.reverse,
        )
        return [key[2] for key in with_value] + [key[2] for key in known if key[0] is None]

    def _has_words(self, one: Connection) -> bool:
        text = f"{one.algorithm} {one.local} {one.remote} {one.state} {one.law or ''}".lower()
        return all(word in text for word in self.words)


class Source:
    """Looks at the kernel."""

    def __init__(self):
        self.kernel, self.watcher = Kernel(), Watcher()
        self.verdicts: Verdicts | None = None

    def __enter__(self):
        self.verdicts = Verdicts()
        return self

    def __exit__(self, *_exc):
        if self.verdicts:
            self.verdicts.close()

    def look(self) -> list[Connection]:
        found = self.watcher.look(self.kernel.sockets(), time.monotonic())
        if self.verdicts and self.verdicts.there:
            self.verdicts.read()
            for one in found:
                if one.ours:
                    ports = tuple(int.from_bytes(port, "big") for port in one.told.ports)
                    one.losses = Losses(
                        self.verdicts.random[ports], self.verdicts.congestion[ports]
                    )
        return found


def summary(found: list[Connection], shown: list[Connection]) -> str:
    """Return a line on all of them."""
    counts: dict[str, int] = {}
    for one in found:
        counts[one.algorithm or "?"] = counts.get(one.algorithm or "?", 0) + 1
    each = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    rate = sum(rate_mbps(one) or 0.0 for one in shown if one.rate.sent_mbps is not None)
    text = f"{len(shown)} of {len(found)} connections ({each})"
    return f"{text}, {rate:.1f} Mb/s acknowledged" if rate else text


def heading() -> str:
    return " ".join(column.title() for column in COLUMNS)


def line(one: Connection) -> str:
    return " ".join(column.text(one) for column in COLUMNS)


# --- the terminal ------------------------------------------------------------


class Screen:
    """The live view: draws what is seen of it, and nothing else."""

    def __init__(self, window: Any, source: Source, selection: Selection, interval_s: float):
        self.window, self.source, self.selection = window, source, selection
        self.interval_s = interval_s
        self.top, self.paused, self.typing = 0, False, None
        self.only_ours = False
        self.found: list[Connection] = []
        self.shown: list[Connection] = []

    def _put(self, row: int, text: str, style: int = 0) -> None:
        height, width = self.window.getmaxyx()
        if row < height:
            with contextlib.suppress(curses.error):  # the last cell of the screen
                self.window.addnstr(row, 0, text.ljust(width), width, style)

    def draw(self) -> None:
        height, _ = self.window.getmaxyx()
        rows = max(height - 3, 1)
        self.top = max(min(self.top, len(self.shown) - rows), 0)
        self.window.erase()
        self._put(0, f"{PROGRAM}: {summary(self.found, self.shown)}", curses.A_BOLD)
        self._put(1, heading(), curses.A_REVERSE)
        for row, one in enumerate(self.shown[self.top : self.top + rows]):
            lossy = one.state in ("Recovery", "Loss")
            style = curses.A_BOLD if one.ours else 0
            self._put(2 + row, line(one), style | (curses.A_STANDOUT if lossy else 0))
        self._put(height - 1, self._foot())
        self.window.refresh()

    def _foot(self) -> str:
        if self.typing is not None:
            return f"filter: {self.typing}_  (Enter takes it, Esc leaves it)"
        order = "falling" if self.selection.reverse else "rising"
        words = f"  filter: {' '.join(self.selection.words)}" if self.selection.words else ""
        paused = "  PAUSED" if self.paused else ""
        keys = "q end  s sort  r turn  / filter  o ours  p pause"
        return f"by {self.selection.sort}, {order}{words}{paused}  |  {keys}"

    def _select(self) -> None:
        found = [one for one in self.found if one.ours] if self.only_ours else self.found
        self.shown = self.selection.of(found)

    def refresh(self) -> None:
        if not self.paused:
            self.found = self.source.look()
        self._select()
        self.draw()

    def _type(self, key: int) -> None:
        if key in (10, 13, curses.KEY_ENTER):
            self.selection.words = tuple((self.typing or "").lower().split())
            self.typing = None
        elif key == 27:
            self.typing = None
        elif key in (8, 127, curses.KEY_BACKSPACE):
            self.typing = (self.typing or "")[:-1]
        elif 32 <= key < 127:
            self.typing = (self.typing or "") + chr(key)

    def press(self, key: int) -> bool:
        """Do what KEY asks for; false: end."""
        if self.typing is not None:
            self._type(key)
            return True
        if key in (ord("q"), ord("Q")):
            return False
        height, _ = self.window.getmaxyx()
        moves = {curses.KEY_UP: -1, curses.KEY_DOWN: 1, curses.KEY_PPAGE: 3 - height,
                 curses.KEY_NPAGE: height - 3, curses.KEY_HOME: -(1 << 30),
                 curses.KEY_END: 1 << 30}  # fmt: skip
        if key in moves:
            self.top = max(self.top + moves[key], 0)
        elif key in (ord("s"), ord("S")):
            step = 1 if key == ord("s") else -1
            self.selection.sort = NAMES[(NAMES.index(self.selection.sort) + step) % len(NAMES)]
        elif key == ord("r"):
            self.selection.reverse = not self.selection.reverse
        elif key == ord("/"):
            self.typing = " ".join(self.selection.words)
        elif key == ord("o"):
            self.only_ours = not self.only_ours
        elif key == ord("p"):
            self.paused = not self.paused
        return True

    def run(self) -> None:
        next_s = time.monotonic()
        while True:
            if time.monotonic() >= next_s:
                self.refresh()
                next_s = time.monotonic() + self.interval_s
            self.window.timeout(max(int((next_s - time.monotonic()) * 1000), 1))
            key = self.window.getch()
            if key == -1:
                continue
            if not self.press(key):
                return
            self._select()
            self.draw()


def live(source: Source, selection: Selection, interval_s: float) -> None:
    def inside(window: Any) -> None:
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        Screen(window, source, selection, interval_s).run()

    locale.setlocale(locale.LC_ALL, "")
    os.environ.setdefault("ESCDELAY", "25")
    try:
        curses.wrapper(inside)
    except curses.error as error:
        raise Complaint(f"this terminal cannot show it ({error}): --once, or TERM=xterm") from None


# --- one look, and the log ---------------------------------------------------


def rows(found: list[Connection]) -> list[dict[str, Any]]:
    return [one.row() for one in found]


def looks(source: Source, selection: Selection, interval_s: float) -> Iterator[list[Connection]]:
    """Give what is wanted, every INTERVAL_S."""
    while True:
        yield selection.of(source.look())
        time.sleep(interval_s)


def log(file: TextIO, source: Source, selection: Selection, interval_s: float) -> None:
    """Write a line of JSON for each look, until interrupted."""
    for shown in looks(source, selection, interval_s):
        stamp = {"time": time.time(), "connections": rows(shown)}
        file.write(json.dumps(stamp) + "\n")
        file.flush()


def parser() -> argparse.ArgumentParser:
    made = option_parser(PROGRAM, DESCRIPTION, EPILOG)
    add = made.add_argument
    add("words", nargs="*", metavar="WORD", help="only connections whose addresses, algorithm,"
        " state or law have all of these")  # fmt: skip
    add("-a", "--algorithms", metavar="A,B", help="only connections with these")
    add("--ours", action="store_true", help=f"only {', '.join(OURS)}")
    add("-s", "--sort", choices=NAMES, default="rate", metavar="COLUMN", help="one of"
        f" {', '.join(NAMES)} (default: rate); -r turns the order round")  # fmt: skip
    add("-r", "--rising", action="store_true", help="the smallest first")
    add("-i", "--interval", type=float, default=1.0, metavar="SECONDS", help="between looks"
        " (default: 1)")  # fmt: skip
    ways = made.add_mutually_exclusive_group()
    ways.add_argument("--once", action="store_true", help="one look as a table")
    ways.add_argument("--json", action="store_true", help="one look as JSON")
    ways.add_argument("--log", metavar="FILE", help="a line of JSON for each look, added to FILE"
                      " (-: to the output), until Ctrl-C")  # fmt: skip
    return made


def opened(name: str) -> TextIO:
    if name == "-":
        return sys.stdout
    try:
        return Path(name).open("a")
    except OSError as error:
        raise Complaint(f"{name}: {error.strerror}: give --log another file") from None


def watch(options: argparse.Namespace) -> None:
    if not 0.1 <= options.interval <= SLOWEST_S:
        raise Complaint(f"--interval {options.interval:g}: between 0.1 and {SLOWEST_S:g}")
    algorithms = OURS if options.ours else tuple((options.algorithms or "").split(","))
    selection = Selection(
        sort=options.sort,
        reverse=not options.rising,
        algorithms=tuple(name.strip() for name in algorithms if name.strip()),
        words=tuple(word.lower() for word in options.words),
    )
    with Source() as source:
        if options.log:
            with opened(options.log) as file:
                log(file, source, selection, options.interval)
        elif options.json:
            print(json.dumps(rows(selection.of(source.look())), indent=1))
        elif options.once or not sys.stdout.isatty():
            found = source.look()
            shown = selection.of(found)
            print("\n".join([summary(found, shown), heading(), *map(line, shown)]))
        else:
            live(source, selection, options.interval)


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was begun is taken back
    try:
        watch(options)
    except Complaint as complaint:
        say(PROGRAM, str(complaint))
        return 2
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")
        return 0
    except OSError as error:
        say(PROGRAM, f"{options.log or 'output'}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        pass
    return 0
