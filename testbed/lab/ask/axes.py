# SPDX-License-Identifier: GPL-2.0-only
"""What a scenario sweeps, read and checked."""

from dataclasses import replace
from typing import Any

from lab.ask.parts import Axis
from lab.ask.tables import SYSCTL, build, convert
from lab.common.errors import BadInput, unknown

CHOICE_SECTIONS = {
    "topology", "medium", "links", "sctp", "flows", "events", "modules", SYSCTL
}  # fmt: skip
NOT_SWEPT = ("run.seeds", "run.algorithms", "run.keep_samples", "run.sample_ms")


def parse_axes(tables: dict) -> tuple[Axis, ...]:
    """Return what [axes.NAME] say."""
    return tuple(_axis(name, table) for name, table in tables.items())


def _is_fixed(key: str) -> bool:
    """Say whether a dotted key is one that no axis may set."""
    return key.split(".")[0] in ("axes", "claims") or key in NOT_SWEPT


def _axis(name: str, table: Any) -> Axis:
    axis = build(Axis, table, f"axes.{name}", name=name)
    if [bool(axis.sets), bool(axis.choices), bool(axis.random)].count(True) != 1:
        raise BadInput(f"axes.{name}: give either sets and values, or choices, or random")
    if _is_fixed(axis.sets):
        raise BadInput(f"axes.{name}.sets = {axis.sets}: this cannot be swept")
    if axis.random:
        return _random_axis(axis)
    if axis.sets and not axis.values:
        raise BadInput(f"axes.{name}: 'values' is missing, those that {axis.sets} is to have")
    if not axis.choices:
        for value in axis.values:
            convert(float, value, f"axes.{name}.values")
        return replace(axis, values=tuple(dict.fromkeys(axis.values)))
    for value in axis.values:
        if value not in axis.choices:
            raise unknown(f"choice of {name}:", str(value), axis.choices)
    for choice, piece in axis.choices.items():
        if not isinstance(piece, dict) or not piece.keys() <= CHOICE_SECTIONS:
            raise BadInput(
                f"axes.{name}.choices.{choice}: a choice is tables of topology, medium, links,"
                " sctp, sysctl, flows, events and modules"
            )
    return replace(axis, values=axis.values or tuple(axis.choices))


def _random_axis(axis: Axis) -> Axis:
    """Check an AXIS of random places; without values it has all of them."""
    for key in axis.places.sets:
        if _is_fixed(key):
            raise BadInput(f"axes.{axis.name}.random.sets: {key} cannot be drawn")
    for value in axis.values:
        if isinstance(value, str) or value != int(value) or value < 1:
            raise BadInput(f"axes.{axis.name}: {value} is no place: they are numbered from 1")
    every = tuple(float(place) for place in range(1, axis.places.count + 1))
    return replace(axis, values=tuple(dict.fromkeys(axis.values)) or every)
