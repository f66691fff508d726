# SPDX-License-Identifier: GPL-2.0-only
"""Keywords of links and nodes: Mininet passes over in silence what it does not know; these do
not."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from lab.ask.tables import convert
from lab.common.errors import BadInput, nearest

# what Mininet's own Link and interfaces take
LINK_KEYS = {
    "port1", "port2", "intfName1", "intfName2", "addr1", "addr2", "intf", "cls1", "cls2", "params1",
    "params2", "fast", "ip", "mac", "ifconfig", "up",
}  # fmt: skip
# and its switches; the last ones it gives by itself
SWITCH_KEYS = {"dpid", "opts", "privateDirs", "listenPort", "inNamespace", "isSwitch", "batch"}


# Mininet's TCLink's, and what is called otherwise here as its unit is in its name
TCLINK = {
    "bw": "rate_mbps", "delay": "delay_ms", "jitter": "jitter_ms", "loss": "loss_pct",
    "max_queue_size": "queue_pkts",
}  # fmt: skip


def refuse_unknown(who: str, given: Iterable[str], known: Iterable[str], cure: str = "") -> None:
    """Refuse the first of the keywords GIVEN to WHO that is not KNOWN: TypeError, with CURE if
    there is one for it, or with those that were probably meant."""
    for key in given:
        if key not in known:
            ours = TCLINK.get(key)
            near = [ours] if ours in known else nearest(key, known)
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            raise TypeError(f"{who} takes no {key}{hint or cure}")


def made(
    who: str, cls: type, given: dict[str, Any], check: Callable[[Any], None] = lambda _: None
) -> Any:
    """Return a CLS of what was GIVEN to WHO, checked; ValueError, in one line, if there is none."""
    kinds = {field.name: field.type for field in fields(cls)}
    try:
        made = cls(**{key: convert(kinds[key], value, key) for key, value in given.items()})
        check(made)
    except BadInput as complaint:
        raise ValueError(f"{who}: {complaint}") from None
    return made


def of_kind(who: str, kind: type, name: str, value: Any) -> Any:
    """Return VALUE, which WHO takes as NAME, as a KIND; ValueError, in one line, if it is none."""
    try:
        return convert(kind, value, name)
    except BadInput as complaint:
        raise ValueError(f"{who}: {complaint}") from None


def from_mn(options: dict[str, Any]) -> dict[str, Any]:
    """Return the OPTIONS of `mn --topo`, which gives numbers as such and all else as text."""
    said = {"True": True, "False": False}
    return {
        key: said.get(value, value) if isinstance(value, str) else value
        for key, value in options.items()
    }
