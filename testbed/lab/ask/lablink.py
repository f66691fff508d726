# SPDX-License-Identifier: GPL-2.0-only
"""One direction of a link whose rate, delay or loss change over time: the netlink messages that
set lablink (testbed/lablink/sch_lablink.c), which gives packets their time when they leave.

It is the queue and the rate of a hop; what else the hop has (a constant delay, its variation,
random loss) is a netem's around it. Works with the standard library alone, since it runs inside
the lab.
"""

import errno
import struct
from dataclasses import replace
from enum import IntEnum

from lab.ask import qdiscs
from lab.ask.links import Link, change_link, set_link
from lab.ask.qdiscs import attribute

MODULE = "sch_lablink"
SCHEDULES = "schedules"  # the folder of $LAB_OUT with their steps, by digest
STEP = struct.Struct("=QQ")  # how long it lasts, ns; its value
STEPS_A_MESSAGE = 4000  # an attribute has 65535 bytes at most
ORDER_MBPS = 100_000.0  # netem keeps the order of packets if it has a rate, whichever


class Attribute(IntEnum):
    """enum lablink_attr: what can be told."""

    LIMIT = 1
    SEED = 2
    BEGIN = 3
    MORE = 4
    RATE = 5  # bytes/s
    OPPORTUNITIES = 6  # bytes that may pass at the end of a step
    DELAY = 7  # ns
    LOSS = 8  # probability times 2^32


def constant_rate(rate_mbps: float) -> bytes:
    """Return the steps of a rate that stays, in Mb/s."""
    return STEP.pack(10**9, round(rate_mbps * 1e6 / 8))


def set_lablink(dev: str, link: Link, seed: int, schedules: dict[str, bytes]) -> None:
    """Give DEV of the current network namespace a new lablink with the queue of LINK, and its rate
    where SCHEDULES (name of an Attribute -> steps) has none; and the netem that it needs."""
    if link.queue_pkts:
        qdiscs.delete(dev)
    else:
        set_link(dev, _around(link), seed)
    steps = {Attribute[name.upper()]: packed for name, packed in schedules.items()}
    if link.rate_mbps and not steps.keys() & {Attribute.RATE, Attribute.OPPORTUNITIES}:
        steps[Attribute.RATE] = constant_rate(link.rate_mbps)
    options = attribute(Attribute.LIMIT, struct.pack("=I", link.limit_pkts))
    options += attribute(Attribute.SEED, struct.pack("=Q", seed))
    _tell(dev, link, options, new=True)
    size = STEP.size * STEPS_A_MESSAGE
    for kind, packed in steps.items():
        for start in range(0, len(packed), size):
            options = attribute(kind, packed[start : start + size])
            options += attribute(Attribute.MORE, b"") if start else b""
            _tell(dev, link, options)


def change_lablink(dev: str, link: Link) -> None:
    """Give the lablink of DEV the constant rate of LINK, if it has one, and the netem around it its
    loss and delay. What is queued stays, and leaves at the new rate; traces go on."""
    if link.rate_mbps:
        _tell(dev, link, attribute(Attribute.RATE, constant_rate(link.rate_mbps)))
    if not link.queue_pkts:
        change_link(dev, _around(link))


def begin_lablink(dev: str, link: Link, begin_ns: int) -> None:
    """Let the schedules of DEV's lablink begin at BEGIN_NS (CLOCK_MONOTONIC), before now."""
    packed = struct.pack("=Q", begin_ns % 2**64)
    _tell(dev, link, attribute(Attribute.BEGIN, packed))


def describe(dev: str, link: Link) -> str:
    """Say what set_lablink() does, for which tc has no words."""
    traces = {"rate": link.trace, "delay": link.delay_trace, "loss": link.loss_trace}
    said = [f"{kind} {name}" for kind, name in traces.items() if name]
    said += [f"rate {link.rate_mbps:g}mbit"] * bool(link.rate_mbps)
    lablink = " ".join([f"lablink limit {link.limit_pkts}", *said])
    if link.queue_pkts:
        return f"{dev} root: {lablink} (by netlink)"
    return f"{_around(link).tc_command(dev, 0)} && {dev} parent 1:1: {lablink} (by netlink)"


def _around(link: Link) -> Link:
    """Return what netem does before lablink: all but the rate, which here is for order only."""
    return replace(link, rate_mbps=ORDER_MBPS if link.spread_ms else 0.0)


def _tell(dev: str, link: Link, options: bytes, new: bool = False) -> None:
    place = qdiscs.ROOT if link.queue_pkts else qdiscs.CHILD
    error = qdiscs.tell(dev, "lablink", options, place, new=new, nested=True)
    if error == errno.ENOENT:
        raise OSError(error, f"no {MODULE} in this kernel: sudo make -C testbed/lablink install")
    if error:
        raise OSError(error, f"lablink on {dev}: {link}")
