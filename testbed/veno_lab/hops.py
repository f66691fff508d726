# SPDX-License-Identifier: GPL-2.0-only
"""Links for Mininet: `net.addLink(a, b, cls=WirelessHop, rate_mbps=2, delay_ms=45, loss_pct=1)`.

What packets meet is set by netlink (lab.ask.links, lab.ask.lablink), as in the lab's own
topologies: tc of Debian 12 cannot set netem's seed. The page is docs/mininet.md; `mn --custom`
takes this file.
"""

import base64
import json
import os
import platform
import subprocess
import time
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import mininet.link
from mininet.log import warn

from lab.ask import lablink, links
from lab.ask.linkrules import check_bursts, check_link
from lab.ask.seeds import derived_seed
from lab.ask.topologies import Chain
from lab.common.errors import BadInput
from lab.run.guest.namespaces import NetworkNamespaceOf
from veno_lab import keywords
from veno_lab.wifi import OneAccessPoint

PYTHON = "LAB_PYTHON"  # set by lab.run.execute
TESTBED = Path(links.__file__).resolve().parents[2]  # mn gives this file no name
TRACES = ("trace", "delay_trace", "loss_trace")
LINK_KEYS = {field.name for field in fields(links.Link)} - {"queue_bdp", *TRACES}
# what makes a bottleneck; the rest is of the air
BOTTLENECK_KEYS = {
    "rate_mbps", "trace", "queue_pkts", "aqm", "policer_burst_ms", "policer_burst_bytes"
}  # fmt: skip
HOP_KEYS = {"seed", "back"}
RANDOM_KEYS = {"loss_pct", "jitter_ms", "retry_pct", "aggregate_ms"}


class WirelessHop(mininet.link.Link):
    """A link whose packets meet, in both directions, what the keywords say, in the units of their
    names: rate_mbps and queue_pkts (aqm, policer_burst_ms), delay_ms and jitter_ms, loss_pct in
    runs of burst_pkts, retry_pct and retry_ms, aggregate_ms. BACK: a dict of what is different from
    the second node to the first. SEED: of all that is random. What else there is goes to Mininet.
    What cannot be on one hop is ValueError, as in the lab's scenarios.
    """

    keys = LINK_KEYS
    holds_delayed = True  # one netem does it all

    def __init__(self, node1, node2, *, seed: int = 1, back: dict | None = None, **options):
        seed = keywords.of_kind(type(self).__name__, int, "seed", seed)
        back = keywords.of_kind(type(self).__name__, dict[str, Any], "back", back or {})
        for direction in ({}, back):
            self._check({**options, **direction})
        of_hop = {key: options.pop(key) for key in self.keys & options.keys()}
        super().__init__(node1, node2, **options)
        self.seed = seed
        self.there, self.back = of_hop, of_hop | back
        self._set(self.intf1, self.there)
        self._set(self.intf2, self.back)

    @classmethod
    def _check(cls, options: dict) -> None:
        keywords.refuse_unknown(cls.__name__, options, cls.keys | keywords.LINK_KEYS)
        cls._link({key: options[key] for key in cls.keys & options.keys()})

    @classmethod
    def _link(cls, of_hop: dict) -> links.Link:
        """Return what OF_HOP says, checked."""
        link = keywords.made(cls.__name__, links.Link, of_hop)
        try:
            check_link(cls.__name__, link, cls.holds_delayed)
            check_bursts(cls.__name__, bool(link.burst_pkts), "loss_pct" in of_hop)
        except BadInput as error:  # which names the class
            raise ValueError(str(error)) from None
        return link

    def _seed_of(self, intf) -> int:
        """Return the seed of one direction: not the other's, and the same wherever it runs."""
        return derived_seed(self.seed, intf.name)

    def _set(self, intf, of_hop: dict) -> None:
        link = self._link(of_hop)
        if any(getattr(link, key) for key in RANDOM_KEYS):
            _tell_if_seeds_are_ignored()
        with NetworkNamespaceOf(intf.node.pid):
            links.set_link(intf.name, link, self._seed_of(intf))


class TraceHop(WirelessHop):
    """A WirelessHop whose rate, and delay and loss, follow traces: TRACE, DELAY_TRACE, LOSS_TRACE
    are files (Mahimahi or CSV) or models (testbed/traces --list). They begin when the link is made,
    and again with begin()."""

    keys = LINK_KEYS | set(TRACES)
    holds_delayed = False

    @classmethod
    def _check(cls, options: dict) -> None:
        super()._check(options)
        if not any(options.get(key) for key in TRACES):
            raise ValueError(f"{cls.__name__} wants one of {', '.join(TRACES)}")

    def _set(self, intf, of_hop: dict) -> None:
        link = self._link(of_hop)
        seed = self._seed_of(intf)
        steps = _schedules({key: of_hop[key] for key in TRACES if of_hop.get(key)}, self.seed)
        with NetworkNamespaceOf(intf.node.pid):
            lablink.set_lablink(intf.name, link, seed, steps)
            lablink.begin_lablink(intf.name, link, time.monotonic_ns())

    def begin(self) -> None:
        """Let all traces of this link begin now."""
        now_ns = time.monotonic_ns()
        for intf, of_hop in ((self.intf1, self.there), (self.intf2, self.back)):
            with NetworkNamespaceOf(intf.node.pid):
                lablink.begin_lablink(intf.name, self._link(of_hop), now_ns)


@cache
def _tell_if_seeds_are_ignored() -> None:
    release = platform.release()
    if not links.netem_takes_seeds(release):
        warn(f"*** netem of Linux {release} takes no seed: losses differ from run to run\n")


def _schedules(traces: dict[str, str], seed: int) -> dict[str, bytes]:
    """Return the steps of TRACES, kind -> bytes, as lablink takes them. The lab's own Python reads
    them: it has numpy."""
    python = os.environ.get(PYTHON)  # inside the lab, which tells where it is
    start = [python, "-m"] if python else [str(TESTBED / "in-venv")]
    command = [*start, "lab.ask.schedule", json.dumps(traces), str(seed)]
    environment = os.environ | {"PYTHONPATH": str(TESTBED)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["the trace cannot be read"])[-1])
    return {kind: base64.b64decode(text) for kind, text in json.loads(done.stdout).items()}


class OneHop(Chain):
    """Senders, a router, one hop, a router, receivers: `mn --custom testbed/veno_lab/hops.py --topo
    hop,rate_mbps=2,queue_pkts=20,delay_ms=45,loss_pct=1`. The hop lies between routers, never on an
    end host. With a queue it is two, the bottleneck and the air, and a router between them."""

    def build(self, pairs: int = 1, **options):
        self.hops = _bottleneck_and_air(keywords.from_mn(options))
        super().build(pairs, hops=len(self.hops))

    def _wire(self, a, b, name_a, name_b, ip_a, ip_b):
        if not (name_a.endswith("-fwd") and name_b.endswith("-rev")):
            super()._wire(a, b, name_a, name_b, ip_a, ip_b)
            return
        hop = self.hops[int(name_a.removeprefix("r").removesuffix("-fwd")) - 1]
        cls = TraceHop if hop.keys() & set(TRACES) else WirelessHop
        self.addLink(
            a, b, cls=cls, intfName1=name_a, intfName2=name_b, params1={"ip": ip_a},
            params2={"ip": ip_b}, **hop,
        )  # fmt: skip


def _bottleneck_and_air(options: dict) -> list[dict]:
    """Return the keywords of the hops that do together what OPTIONS say: one where that is
    possible. What varies by itself needs a rate to keep the order: the bottleneck's, at which
    nothing queues behind it."""
    both = options | (options.get("back") or {})
    queues = both.keys() & BOTTLENECK_KEYS - {"rate_mbps", "trace"}
    if not queues or not both.keys() - BOTTLENECK_KEYS - HOP_KEYS:
        return [options]

    def part(wanted) -> dict:
        hop = {key: value for key, value in options.items() if wanted(key)}
        back = {key: value for key, value in (options.get("back") or {}).items() if wanted(key)}
        return hop | ({"back": back} if back else {}) | {"seed": options.get("seed", 1)}

    paced = {"rate_mbps"} if both.keys() & {"jitter_ms", "retry_pct"} else set()
    bottleneck = part(lambda key: key in BOTTLENECK_KEYS)
    return [bottleneck, part(lambda key: key in paced or key not in BOTTLENECK_KEYS | HOP_KEYS)]


topos = {"hop": OneHop, "wifi": OneAccessPoint}
