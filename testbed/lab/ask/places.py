# SPDX-License-Identifier: GPL-2.0-only
"""Random places: values of an axis that a seed draws from stated ranges.

    [axes.place.random]
    count = 100                                           # places 1 to 100
    seed = 1

    [axes.place.random.draws]
    rate_mbps = { from = 0.5, to = 1000, scale = "log" }  # log-uniform
    rtt_ms = { from = 2, to = 400 }                       # uniform
    own = { from = 1, to = 20, whole = true }
    rival = { choice = ["reno", "cubic"] }
    bdp_pkts = "rate_mbps * rtt_ms / 12.112"              # of what is drawn above it

    [axes.place.random.sets]                              # key of the scenario = formula
    "links.bottleneck.rate_mbps" = "rate_mbps"
    "links.wireless.delay_ms" = "rtt_ms / 2"

    [[axes.place.random.marks]]                           # reports count places beyond it
    metric = "goodput_mbps"
    against = "bbr"                                       # or "bound", or nothing
    below = 0.8                                           # or above

What is drawn for place number i depends on the seed, i and the name of what is drawn, on nothing
else: places may be run alone, in any order and on any machine, and a range added or removed leaves
what the others give.
"""

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.ask.algorithms import ALGORITHMS
from lab.ask.figures import LIMITS, METRICS
from lab.ask.seeds import fraction
from lab.ask.tables import build
from lab.common.errors import BadInput, unknown

Drawn = float | int | str

MAX_PLACES = 100_000
DIGITS = 3  # significant ones of what is drawn, so that a place can be read and typed
SCALES = ("linear", "log")
LAST = math.nextafter(1.0, 0.0)  # the end of what fractions are drawn from
TABLE_KEYS = ("count", "seed", "draws", "sets", "marks")


@dataclass(frozen=True)
class Range:
    """What one name is drawn from: LOW to HIGH, uniform or log-uniform, WHOLE: integers alone; or
    CHOICE, one of these, each as likely."""

    low: float = 0.0
    high: float = 0.0
    scale: str = "linear"
    whole: bool = False
    choice: tuple[Drawn, ...] = ()

    def at(self, u: float) -> Drawn:
        """Return the value that a U, uniform in [0, 1), stands for."""
        if self.choice:
            return self.choice[int(u * len(self.choice))]
        # a whole number n is drawn as what rounds down to it, so that both ends are as likely
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = low * (high / low) ** u if self.scale == "log" else low + (high - low) * u
        return min(int(value), int(self.high)) if self.whole else _rounded(value)

    @property
    def is_switch(self) -> bool:
        """Say whether it is no quantity, but whether something else counts."""
        return bool(self.choice) and set(self.choice) <= {0, 1}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True)
class Mark:
    """Places where METRIC, or its ratio to what AGAINST has there (an algorithm, or one of LIMITS),
    is BELOW a value, or ABOVE it, are counted in reports. It changes no point."""

    metric: str
    below: float | None = None
    above: float | None = None
    against: str = ""

    @property
    def at(self) -> float:
        return self.above if self.below is None else self.below

    def is_beyond(self, value: float) -> bool:
        return value > self.at if self.below is None else value < self.at


@dataclass(frozen=True)
class RandomPlaces:
    """COUNT places that SEED draws; SETS: dotted key of a scenario -> formula of what is drawn;
    MARKS: what reports count."""

    count: int
    seed: int
    draws: dict[str, Range | str]
    sets: dict[str, str]
    marks: tuple[Mark, ...] = ()

    def drawn(self, place: int) -> dict[str, Drawn]:
        """Return what is drawn for PLACE (1 and up; also above COUNT), and what follows from it."""
        return self._drawn({n: fraction(self.seed, f"place {place} {n}") for n in self._ranges})

    @property
    def _ranges(self) -> dict[str, Range]:
        return {name: of for name, of in self.draws.items() if isinstance(of, Range)}

    def _drawn(self, fractions: dict[str, float]) -> dict[str, Drawn]:
        """Return what FRACTIONS of the ranges give, and what follows from it."""
        drawn: dict[str, Drawn] = {}
        for name, of in self.draws.items():
            drawn[name] = of.at(fractions[name]) if isinstance(of, Range) else evaluate(of, drawn)
        return drawn

    def settings(self, place: int) -> dict[str, Any]:
        """Return the values of the keys that PLACE sets."""
        return self._settings(self.drawn(place))

    def _settings(self, drawn: dict[str, Drawn]) -> dict[str, Any]:
        return {key: evaluate(formula, drawn) for key, formula in self.sets.items()}

    def counting(self, place: int) -> dict[str, Drawn]:
        """Return what of that drawn for PLACE is a quantity that counts there: a loss rate, say,
        does not where another draw says that nothing is lost. It counts if with an end of its range
        instead something else of the network or its flows would be set."""
        ranges = self._ranges
        here = {name: fraction(self.seed, f"place {place} {name}") for name in ranges}

        def network(**other: float) -> dict[str, Any]:
            found = self._settings(self._drawn(here | other))
            absent = [
                k.removesuffix("count") for k, v in found.items() if v == 0 and k.endswith(".count")
            ]
            absent = tuple(k for k in absent if k.startswith("flows."))
            return {k: v for k, v in found.items() if not k.startswith(("run.", *absent))}

        drawn, settings = self._drawn(here), network()
        return {
            name: drawn[name]
            for name, of in ranges.items()
            if not of.is_switch and any(network(**{name: end}) != settings for end in (0.0, LAST))
        }


def parse(where: str, table: dict[str, Any]) -> RandomPlaces:
    """Check the table [axes.NAME.random], which WHERE names, and return it typed."""
    for key in table:
        if key not in TABLE_KEYS:
            raise unknown(f"key in {where}:", key, TABLE_KEYS)
    for key in ("draws", "sets"):
        if not isinstance(table.get(key), dict) or not table[key]:
            raise BadInput(f"{where}.{key}: a table is needed; docs/scenarios.md shows one")
    count = _whole(f"{where}.count", table.get("count"), MAX_PLACES)
    seed = _whole(f"{where}.seed", table.get("seed", 1), 2**53)
    draws = {name: _draw(f"{where}.draws.{name}", of) for name, of in table["draws"].items()}
    marks = _marks(f"{where}.marks", table.get("marks", []))
    places = RandomPlaces(count, seed, draws, table["sets"], marks)
    for key, formula in places.sets.items():
        if not isinstance(formula, str):
            raise BadInput(f'{where}.sets."{key}" = {formula!r}: write a formula as a text')
    places.settings(1)
    return places


def _marks(where: str, tables: Any) -> tuple[Mark, ...]:
    if not isinstance(tables, list):
        raise BadInput(f"{where}: a list of tables is needed; docs/scenarios.md shows one")
    marks = [build(Mark, table, f"{where}.{i}") for i, table in enumerate(tables)]
    for i, mark in enumerate(marks):
        if mark.metric not in METRICS:
            raise unknown(f"metric in {where}.{i}:", mark.metric, METRICS)
        if mark.against not in ("", *LIMITS, *ALGORITHMS):
            raise unknown(f"against in {where}.{i}:", mark.against, (*LIMITS, *ALGORITHMS))
        if (mark.below is None) == (mark.above is None):
            raise BadInput(f"{where}.{i}: give either below or above")
    return tuple(marks)


def _whole(where: str, value: Any, most: int) -> int:
    """Return a whole number from 1 to MOST that a file or --set gives."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or value != int(value) or not 1 <= value <= most:
        raise BadInput(f"{where} = {value!r}: a whole number from 1 to {most}")
    return int(value)


def _draw(where: str, table: Any) -> Range | str:
    if isinstance(table, str):
        return table
    if not isinstance(table, dict):
        raise BadInput(f"{where}: a range, a choice or a formula; docs/scenarios.md shows them")
    keys = ("from", "to", "scale", "whole", "choice")
    for key in table:
        if key not in keys:
            raise unknown(f"key in {where}:", key, keys)
    return _choice(where, table) if "choice" in table else _range(where, table)


def _choice(where: str, table: dict[str, Any]) -> Range:
    choice = table["choice"]
    if len(table) > 1 or not isinstance(choice, list) or not choice:
        raise BadInput(f"{where}: choice is a list of values, and no other key goes with it")
    if not all(_is_number(value) or isinstance(value, str) for value in choice):
        raise BadInput(f"{where}.choice: numbers and texts only")
    return Range(choice=tuple(choice))


def _range(where: str, table: dict[str, Any]) -> Range:
    low, high = table.get("from"), table.get("to")
    scale, whole = table.get("scale", "linear"), table.get("whole", False)
    if not _is_number(low) or not _is_number(high):
        raise BadInput(f"{where}: from and to are needed, two numbers; or choice")
    if low >= high:
        raise BadInput(
            f"{where}: from = {low:g} is not below to = {high:g}: the range is upside down"
        )
    if scale not in SCALES:
        raise unknown(f"{where}.scale", scale, SCALES)
    if scale == "log" and low <= 0:
        raise BadInput(f"{where}: from = {low:g}: above 0 on a logarithmic scale")
    if not isinstance(whole, bool) or (whole and (low != int(low) or high != int(high))):
        raise BadInput(f"{where}.whole: true or false; with true from and to are whole numbers")
    return Range(float(low), float(high), scale, whole)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


# --- formulas -------------------------------------------------------------------------------

_BINARY: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}  # fmt: skip
_COMPARED: dict[type, Callable] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable] = {
    "min": min, "max": max, "round": round, "ceil": math.ceil, "floor": math.floor,
}  # fmt: skip


def evaluate(formula: str, names: dict[str, Drawn]) -> Any:
    """Return what FORMULA gives with NAMES: numbers, texts, + - * /, comparisons, A if B else C,
    min, max, round, ceil and floor."""
    try:
        value = _value(ast.parse(formula.strip(), mode="eval").body, names)
    except (SyntaxError, TypeError, ValueError, ArithmeticError) as error:
        raise BadInput(f"formula '{formula}': {error}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"formula '{formula}': {value} is no finite number")
    return value


def _value(node: ast.expr, names: dict[str, Drawn]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise unknown("name in a formula:", name, names)
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in _COMPARED:
            return _COMPARED[type(op)](_value(left, names), _value(right, names))
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]):
            if function not in _FUNCTIONS:
                raise unknown("function in a formula:", function, _FUNCTIONS)
            return _FUNCTIONS[function](*(_value(arg, names) for arg in args))
    raise ValueError(f"no part of a formula: {ast.unparse(node)}")
