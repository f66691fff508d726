# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a scenario file: changed by dotted keys, laid over each other, made typed objects."""

import copy
import math
from dataclasses import MISSING, fields
from typing import Any

from lab.common.errors import BadInput, unknown

# --set may add to them what the file does not name
OPEN_SECTIONS = ("links", "modules", "medium", "sctp")
SWEPT = ("links", "flows", "topology", "medium", "sctp")  # what has keys that an axis may set
SYSCTL = "sysctl"  # of any depth: sysctl.net.ipv4.tcp_sack
AxisValue = float | str
# Keys that take a list, which is not empty, and of what.
SOME = bool | tuple[int, ...]  # all, none, or those with these numbers
LISTS = {tuple[AxisValue, ...]: AxisValue, SOME: int}


def set_dotted(source: dict, key: str, value: Any) -> None:
    """Set the value at a dotted key (links.wireless.loss_pct, flows.0.count)."""
    *parents, last = key.split(".")
    place: Any = source
    for i, part in enumerate(parents):
        try:
            if isinstance(place, list):
                place = place[int(part)]
            elif part in place or _is_open(parents[0], i):
                place = place.setdefault(part, {})
            else:
                raise KeyError(part)
        except (KeyError, IndexError, ValueError, TypeError):
            raise unknown("key", ".".join([*parents[: i + 1]]), _dotted_keys(source)) from None
    if isinstance(place, list) or not isinstance(place, dict):
        raise unknown("key", key, _dotted_keys(source))
    if place is source:
        raise unknown("key or axis", key, [*_dotted_keys(source), *source.get("axes", {})])
    place[last] = value


def _is_open(section: str, depth: int) -> bool:
    """Say whether --set may add tables of that DEPTH to SECTION."""
    return section == SYSCTL or (section in OPEN_SECTIONS and depth < 2)


def overlay(source: dict, piece: dict) -> None:
    """Lay PIECE over SOURCE: tables merge, everything else is replaced. A table laid over a
    list names the items it changes by their place (flows.1.count)."""
    for key, value in piece.items():
        if isinstance(value, dict) and isinstance(source.get(key), dict):
            overlay(source[key], value)
        elif isinstance(value, dict) and isinstance(source.get(key), list):
            places = {str(i): item for i, item in enumerate(source[key])}
            for place in value.keys() - places.keys():
                raise unknown(f"place in {key}:", place, places)
            overlay(places, value)
        else:
            source[key] = copy.deepcopy(value)


def _dotted_keys(source: dict) -> list[str]:
    """Return the keys of SOURCE that --set and axes are most likely meant to name."""
    keys = []
    for section in ("topology", "run"):
        keys += [f"{section}.{key}" for key in source.get(section, {})]
    for hop, link in source.get("links", {}).items():
        keys += [f"links.{hop}.{key}" for key in link] if isinstance(link, dict) else []
    for i, flow in enumerate(source.get("flows", [])):
        keys += [f"flows.{i}.{key}" for key in flow] if isinstance(flow, dict) else []
    return keys


def build(cls: type, table: Any, where: str, **given: Any):
    """Make a CLS of the TOML TABLE, naming what is unknown, missing or of the wrong type."""
    if not isinstance(table, dict):
        raise BadInput(f"{where} must be a table")
    known = {f.name: f for f in fields(cls)}
    for key in table:
        if key not in known or key in given:
            raise unknown(f"key in {where}:", key, known.keys() - given.keys())
    values = dict(given)
    for key, value in table.items():
        values[key] = convert(known[key].type, value, f"{where}.{key}")
    for name, f in known.items():
        if name not in values and f.default is MISSING and f.default_factory is MISSING:
            raise BadInput(f"{where}: '{name}' is missing; docs/scenarios.md shows a file")
    return cls(**values)


def convert(kind: Any, value: Any, where: str) -> Any:
    """Return VALUE, as TOML has it, as a KIND (a field's type); refuse what is none."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and not math.isfinite(value):
        raise BadInput(f"{where} = {value}: this must be a finite number")
    if kind in (float, float | None) and number:
        return float(value)
    if kind is int and number and value == int(value) and abs(value) < 2**53:
        return int(value)
    if kind in (bool, bool | None, bool | str, SOME) and isinstance(value, bool):
        return value
    if kind in (str, bool | str) and isinstance(value, str):
        return value
    if kind == tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(dict.fromkeys(value))
    if kind == AxisValue and (number or isinstance(value, str)):
        return float(value) if number else value
    if isinstance(value, list) and value and kind in LISTS:
        return tuple(convert(LISTS[kind], v, where) for v in value)
    if kind == dict[str, AxisValue] and isinstance(value, dict):
        return {key: convert(AxisValue, v, f"{where}.{key}") for key, v in value.items()}
    if kind == dict[str, Any] and isinstance(value, dict):
        return value
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    names[bool | str] = "a text, or true or false"
    names[dict[str, Any]] = "a table"
    names[SOME] = "a list of whole numbers, or true or false"
    wanted = names.get(kind, "a list" if "tuple" in str(kind) else "a number")
    axis = f'; several values are an axis: [axes.NAME] with sets = "{where}"'
    several = isinstance(value, list) and kind in (float, int) and where.split(".")[0] in SWEPT
    raise BadInput(f"{where} = {value!r}: this must be {wanted}{axis if several else ''}")


def is_name(text: str) -> bool:
    """Say whether TEXT can name files and hosts: letters, digits, - and _."""
    return text.replace("-", "").replace("_", "").isalnum()
