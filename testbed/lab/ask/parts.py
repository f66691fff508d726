# SPDX-License-Identifier: GPL-2.0-only
"""What a scenario consists of, as typed objects: the topology, flows, events, axes and claims."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lab.ask import places
from lab.ask.links import Link
from lab.ask.medium import Medium
from lab.ask.places import Drawn, RandomPlaces
from lab.ask.tables import AxisValue, overlay, set_dotted
from lab.ask.wifi import WifiMedium

WIRELESS = "wireless-chain"  # its hops are named after its nodes: hop1 is from node 1 to node 2
WIFI_AP = "wifi-ap"  # stations of an access point, which a wire leads to
SECOND = "second_"  # of the names of the hops between second homes, as lab.ask.topologies has it
AT_HOSTS = "hosts"  # of offloads: segments leave a host one by one, as from a network card
UNDER_TEST = "$algorithm"  # in a flow: the algorithm that this point is about


@dataclass(frozen=True)
class Topology:
    kind: str = "dumbbell"
    hops: tuple[str, ...] = ()  # those that data takes, in order
    homes: int = 1  # of each host; between the second ones there is a way of its own
    nodes: int = 0  # of a wireless chain
    stations: int = 0  # of an access point
    mtu_bytes: int = 1500  # of every interface
    tunnel: str = ""  # one of TUNNELS, over all hops
    agents: bool | tuple[int, ...] = True  # which nodes help those algorithms that want help
    offloads: bool | str = True  # or AT_HOSTS
    ecn: bool = False

    @property
    def is_wireless(self) -> bool:
        """Say whether flows share a medium."""
        return self.kind in (WIRELESS, WIFI_AP)

    @property
    def has_bursts(self) -> bool:
        """Say whether what crosses a hop may be a burst of segments that nobody has cut."""
        return self.offloads is True

    @property
    def has_ap(self) -> bool:
        return self.kind == WIFI_AP

    @property
    def forward_hops(self) -> tuple[str, ...]:
        """Return the hops that data takes between any two homes, the first homes' first."""
        return sum(self._ways(), ())

    @property
    def all_hops(self) -> tuple[str, ...]:
        """Return the hops of every way, each way's as it meets them, there and back."""
        back = (tuple(f"reverse_{hop}" for hop in reversed(way)) for way in self._ways())
        both = zip(self._ways(), back, strict=True)
        return sum((hop for ways in both for hop in ways), ())

    def _ways(self) -> list[tuple[str, ...]]:
        prefixes = ("", SECOND)[: self.homes]
        return [tuple(prefix + hop for hop in self.hops) for prefix in prefixes]


@dataclass(frozen=True)
class Sctp:
    """What every host's SCTP is set to (docs/sctp.md). All but the window is of the patched one."""

    rwnd_bytes: int = 0  # the receivers' window; 0: labflow's, which limits nothing
    miss_indications: int = 3
    idle_retransmit: int = 0
    timestamps: int = 0  # 1: TIMESTAMP chunks also where the algorithm has no use for them

    @property
    def is_patched(self) -> bool:
        """Say whether an unpatched kernel cannot be set to this."""
        return replace(self, rwnd_bytes=0) != Sctp()


@dataclass(frozen=True)
class Flow:
    """COUNT flows alike, each between a source and a receiver of its own; with EVERY_S or TOGETHER
    all of them between the same two."""

    name: str
    algorithm: str = UNDER_TEST
    count: int = 1
    every_s: float = 0.0  # between the starts of the COUNT flows, which then share one pair
    start_s: float = 0.0
    stop_s: float = 0.0  # 0: until the point ends
    bytes: int = 0  # 0: no limit
    mss_bytes: int = 0  # 0: as the MTU allows
    station: int = 0  # of an access point: of the first of COUNT; 0: the first, or the next
    reverse: bool = False  # from the receivers' side to the senders'
    repeats: int = 0  # requests of BYTES, each when the one before has been answered
    pause_s: float = 0.0  # between an answer and the next request
    delay_ms: float = 0.0  # on its own way, behind the last hop
    together: bool = False  # the COUNT flows start at one instant
    mptcp: bool = False  # a connection of two subflows, each from an address of its own
    first_hop: str = ""  # where it enters the way forward; nothing: at its begin
    last_hop: str = ""  # the last that it takes; nothing: to the end
    transport: str = ""  # tcp or sctp, as its algorithm; or udp: a rate that nothing slows down
    rate_mbps: float = 0.0  # udp: of whole frames; 0: silent
    on_s: float = 0.0  # udp: means of bursts and of the gaps between them; 0: no gaps
    off_s: float = 0.0

    @property
    def under_test(self) -> bool:
        return self.algorithm == UNDER_TEST and not self.is_udp

    @property
    def share_hosts(self) -> bool:
        return self.together or bool(self.every_s)

    @property
    def is_udp(self) -> bool:
        return self.transport == "udp"

    def span(self, topology: Topology) -> tuple[int, int]:
        """Return which of the topology's forward hops it takes, the first and the last (from 0)."""
        first = topology.hops.index(self.first_hop) if self.first_hop else 0
        last = topology.hops.index(self.last_hop) if self.last_hop else len(topology.hops) - 1
        return first, last

    def is_cross(self, topology: Topology) -> bool:
        """Say whether it is cross traffic: it takes another way than the flows under test, who
        take all of the way forward. Where all share one medium none is."""
        if topology.is_wireless:
            return False
        return self.reverse or self.span(topology) != (0, len(topology.hops) - 1)

    def way(self, topology: Topology) -> tuple[str, ...]:
        """Return the hops that its data takes."""
        first, last = self.span(topology)
        forward = topology.hops[first : last + 1]
        return tuple(f"reverse_{hop}" for hop in reversed(forward)) if self.reverse else forward

    def names(self) -> list[str]:
        """Return the names of the COUNT flows that this entry stands for."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}{i + 1}" for i in range(self.count)]


@dataclass(frozen=True)
class Event:
    """At AT_S the hop LINK gets another rate, loss or delay; what it has queued stays. CUT: nothing
    leaves a hop that queues, and all is lost on one that does not; or as it was before."""

    at_s: float
    link: str
    rate_mbps: float | None = None
    loss_pct: float | None = None
    delay_ms: float | None = None
    cut: bool | None = None

    @property
    def changes(self) -> dict[str, float]:
        """Return what the link's keys become."""
        new = {key: getattr(self, key) for key in ("rate_mbps", "loss_pct", "delay_ms")}
        return {key: value for key, value in new.items() if value is not None}


@dataclass(frozen=True)
class Run:
    algorithms: tuple[str, ...]
    duration_s: float
    warmup_s: float = 0.0
    seeds: int = 10
    sample_ms: int = 200
    keep_samples: str = "first-seed"  # or all, none
    packets: bool = False  # record when each packet enters and leaves hops: delays and drops
    harm: bool = False  # hold rivals against points in which they are among their own kind
    jitter_ratio: bool = False  # record every sample of it
    truth: bool = False  # hold what algorithms say about losses against what dropped the packets


@dataclass(frozen=True)
class Axis:
    """What is swept: a number, written to the dotted key SETS (links.wireless.loss_pct); a choice,
    a piece of a scenario file laid over the rest (CHOICES: name -> piece); or the numbers of
    places that a seed draws (RANDOM: the table that lab.ask.places reads)."""

    name: str
    sets: str = ""
    values: tuple[AxisValue, ...] = ()
    choices: dict[str, Any] = field(default_factory=dict)
    random: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    unit: str = ""
    scale: str = "linear"

    @property
    def levels(self) -> list[AxisValue]:
        """Return the different values, numbers ascending, choices as the file lists them."""
        if self.choices:
            return [name for name in self.choices if name in self.values]
        return sorted(set(self.values))

    def text(self, value: AxisValue) -> str:
        """Return VALUE with its unit."""
        return value if isinstance(value, str) else f"{value:g} {self.unit}".rstrip()

    @cached_property
    def places(self) -> RandomPlaces:
        """Return the places of a RANDOM axis."""
        return places.parse(f"axes.{self.name}.random", self.random)

    def drawn(self, value: AxisValue) -> dict[str, Drawn]:
        """Return what the seed gave at VALUE, nothing where it draws nothing."""
        return self.places.drawn(int(value)) if self.random else {}

    def apply(self, source: dict, value: AxisValue) -> None:
        """Change SOURCE, a parsed scenario file, to what it is at VALUE."""
        if self.choices:
            overlay(source, self.choices[value])
        elif self.random:
            for key, setting in self.places.settings(int(value)).items():
                set_dotted(source, key, setting)
        else:
            set_dotted(source, self.sets, value)


def axis_text(axis: Axis, value: AxisValue | None = None) -> str:
    """Return an axis' label with its unit, or with VALUE and its unit. A choice of an axis without
    a label speaks for itself."""
    label = axis.label or axis.name
    if value is None:
        return f"{label} ({axis.unit})" if axis.unit else label
    alone = isinstance(value, str) and not axis.label
    return axis.text(value) if alone else f"{label} {axis.text(value)}"


def place_text(axes: Sequence[Axis], values: Iterable[AxisValue]) -> str:
    """Return the place where each of AXES has its one of VALUES, in words."""
    return ", ".join(axis_text(axis, value) for axis, value in zip(axes, values, strict=True))


@dataclass(frozen=True)
class Claim:
    """METRIC of ALGORITHM where axes have the values WHERE, relative to AGAINST if given, there
    or where AGAINST_WHERE differs. With FLOWS it is the mean goodput of one of those flows. Where
    an axis is not in WHERE it has to hold at each of its values, or by the median of all TOGETHER.
    """

    id: str
    text: str
    metric: str
    algorithm: str
    where: dict[str, AxisValue] = field(default_factory=dict)
    against: str = ""  # an algorithm, or one of LIMITS
    against_where: dict[str, AxisValue] = field(default_factory=dict)
    flows: str = ""  # the name of a [[flows]] table
    paper: str = ""
    at_least: float | None = None
    at_most: float | None = None
    together: bool = False
    why_not: str = ""  # if it is known: the reason why it does not hold, or is not decided


@dataclass(frozen=True)
class Scenario:
    id: str
    title: str
    question: str  # one of QUESTIONS, or nothing
    paper: str
    description: str
    topology: Topology
    medium: Medium | WifiMedium | None  # of a wireless chain, or an access point
    links: dict[str, Link]
    modules: dict[str, dict[str, int]]  # algorithm -> module parameter -> value
    sctp: Sctp
    sysctl: dict[str, str]  # of all hosts: name -> value
    flows: tuple[Flow, ...]
    events: tuple[Event, ...]
    run: Run
    axes: tuple[Axis, ...]
    claims: tuple[Claim, ...]
    source: dict[str, Any]  # the parsed file with --set applied: what axes write into
