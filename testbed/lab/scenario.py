# SPDX-License-Identifier: GPL-2.0-only
"""Scenario files: TOML in, checked and typed objects out. docs/scenarios.md is the reference.

Everything a user can get wrong in a file or with --set ends here as BadInput, before anything
runs or is written.
"""

import copy
import math
import tomllib
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lab import linktraces, places
from lab.algorithms import ALGORITHMS, UDP, is_algorithm_name
from lab.errors import BadInput, unknown
from lab.links import AQMS, GSO_FRAME_BYTES, QUEUE_UNLIMITED_PKTS, Link
from lab.medium import MTU_MAX_BYTES, RATES_MBPS, RTS_OFF_BYTES, Medium
from lab.places import Drawn, RandomPlaces
from lab.questions import QUESTIONS

SCENARIO_DIR = Path(__file__).resolve().parent.parent / "scenarios"

# The forward hops of each topology; None: as the file names them. lab.topologies builds them (that
# module needs Mininet, which the host side does without; a test holds the two against each other).
WIRELESS = "wireless-chain"  # its hops are named after its nodes: hop1 is from node 1 to node 2
KINDS = {"dumbbell": ("bottleneck", "wireless"), "chain": None, WIRELESS: None}
MAX_HOPS = 20
# kind -> what it puts around a packet, in bytes, and its kernel module, as lab.topologies has it
TUNNELS = {"vxlan": (50, "vxlan"), "ipip": (20, "ipip"), "gre": (24, "ip_gre")}
ETHERNET_BYTES = 14
CUT_MBPS = 1e-9  # of a hop that queues and is cut; lablink takes it for none
SECOND = "second_"  # of the names of the hops between second homes, as lab.topologies has it
# --set may add to them what the file does not name
OPEN_SECTIONS = ("links", "modules", "medium", "sctp")
CHOICE_SECTIONS = {"topology", "medium", "links", "sctp", "flows", "events", "modules"}
TEXTS = ("title", "question", "paper", "description")
SECTION_KINDS = {"flows": list, "events": list, "claims": list}  # the others are tables
KIND_NAMES = {str: "a text", list: "[[tables]]", dict: "a table"}
MAX_FLOWS = 100
MAX_HOMES = 2
TRANSPORTS = ("tcp", "sctp", "tfrc", "udp")
NOT_SWEPT = ("run.seeds", "run.algorithms", "run.keep_samples", "run.sample_ms")
UNDER_TEST = "$algorithm"  # in a flow: the algorithm that this point is about
# What run.truth adds: how often a loss that was X was said to be Y, and what follows from it.
CLASSIFIED = (
    "classified_random_as_random",
    "classified_random_as_congestion",
    "classified_congestion_as_random",
    "classified_congestion_as_congestion",
    "classified_none_as_random",
    "classified_none_as_congestion",
    "classified_random_recall",
    "classified_random_precision",
    "classified_congestion_recall",
    "classified_congestion_precision",
)
# What run.jitter_ratio adds: what its samples are like.
JITTER_RATIOS = ("jr_zero_pct", "jr_below_pct", "sjr_below_pct", "jr_w_p50", "sjr_w_p50")
# What run.packets adds: how long packets were under way, and how many queues dropped.
PACKET_FIGURES = (
    "owd_ms_p50",
    "owd_ms_p95",
    "owd_ms_p99",
    "self_delay_ms_p50",
    "self_delay_ms_p95",
    "self_delay_ms_p99",
    "standing_queue_ms_p50",
    "standing_queue_ms_p95",
    "queue_drop_start_pct",
    "queue_drop_steady_pct",
    "power_mbps_per_s",
)
# What run.harm adds; lab.harm has them.
HARM_FIGURES = (
    "harm_goodput",
    "harm_goodput_worst",
    "harm_delay",
    "harm_loss",
    "harm_timeouts",
    "harm_completion",
)
# What a claim may hold a metric against besides another algorithm.
LIMITS = ("bound", "residual")
# What a wireless medium adds.
MEDIUM_FIGURES = (
    "rtt_ms_mean",
    "rtt_ms_sd",
    "retry_drops",
    "queue_drops",
    "own_queue_drops",
    "drops_per_s",
    "collisions",
    "busy_pct_max",
    "jain_by_hops_min",
)
METRICS = (
    "goodput_mbps",
    "goodput_whole_mbps",
    "goodput_test_mbps",
    "goodput_other_mbps",
    "fair_share",
    "retransmits",
    "timeouts",
    "queue_delay_ms_p50",
    "queue_delay_ms_p95",
    "srtt_ms_p50",
    "jain",
    "fct_s_p50",
    "fct_s_p95",
    "unfinished",
    "loss_random",
    "loss_congestion",
    "ce_marks",
    "queue_drop_pct",
    "goodput_variation",
    "timeouts_per_flow",
    "standing_queue_pkts_p50",
    "standing_queue_pkts_p95",
    "standing_queue_flow_pkts_p50",
    "recovery_s",
    "unrecovered",
    "time_to_fair_s",
    "never_fair",
    *PACKET_FIGURES,
    *HARM_FIGURES,
    *CLASSIFIED,
    *JITTER_RATIOS,
    *MEDIUM_FIGURES,
)


@dataclass(frozen=True)
class Topology:
    kind: str = "dumbbell"
    hops: tuple[str, ...] = ()  # those that data takes, in order
    homes: int = 1  # of each host; between the second ones there is a way of its own
    nodes: int = 0  # of a wireless chain
    mtu_bytes: int = 1500  # of every interface
    tunnel: str = ""  # one of TUNNELS, over all hops
    agents: bool | tuple[int, ...] = True  # which nodes help those algorithms that want help
    offloads: bool = True
    ecn: bool = False

    @property
    def is_wireless(self) -> bool:
        return self.kind == WIRELESS

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
        take all of the way forward. On a wireless chain none is: all share one medium."""
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


AxisValue = float | str


@dataclass(frozen=True)
class Axis:
    """What is swept: a number, written to the dotted key SETS (links.wireless.loss_pct); a choice,
    a piece of a scenario file laid over the rest (CHOICES: name -> piece); or the numbers of
    places that a seed draws (RANDOM: the table that lab.places reads)."""

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


@dataclass(frozen=True)
class Claim:
    """METRIC of ALGORITHM where axes have the values WHERE, relative to AGAINST if given, there
    or where AGAINST_WHERE differs. With FLOWS it is the mean goodput of one of those flows."""

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


@dataclass(frozen=True)
class Scenario:
    id: str
    title: str
    question: str  # one of QUESTIONS, or nothing
    paper: str
    description: str
    topology: Topology
    medium: Medium | None  # of a wireless chain
    links: dict[str, Link]
    modules: dict[str, dict[str, int]]  # algorithm -> module parameter -> value
    sctp: Sctp
    flows: tuple[Flow, ...]
    events: tuple[Event, ...]
    run: Run
    axes: tuple[Axis, ...]
    claims: tuple[Claim, ...]
    source: dict[str, Any]  # the parsed file with --set applied: what axes write into


def list_scenarios() -> list[Path]:
    return sorted(SCENARIO_DIR.glob("*.toml"))


def find(name: str) -> Path:
    """Return the file of the scenario NAME, which may also be a path."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise BadInput(f"no scenario file {name}: check the path, or see --list")
        return path
    path = SCENARIO_DIR / f"{name}.toml"
    if not path.is_file():
        raise unknown("scenario", name, [p.stem for p in list_scenarios()], "--list")
    return path


def read(path: Path) -> dict[str, Any]:
    """Return the file at PATH, parsed, not yet checked."""
    try:
        source = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None
    _find_traces(source, path.parent)
    return source


def load(name: str, overrides: dict[str, str] | None = None) -> Scenario:
    """Read and check a scenario. OVERRIDES: dotted key or axis name -> text, as --set gives."""
    path = find(name)
    source = read(path)
    for key, text in (overrides or {}).items():
        override(source, key, text)
    return parse(path.stem, source)


def _find_traces(source: Any, folder: Path) -> None:
    """Let trace files in SOURCE be where the scenario file is, in FOLDER, not where we are."""
    for key, value in source.items() if isinstance(source, dict) else enumerate(source):
        if isinstance(value, (dict, list)):
            _find_traces(value, folder)
        elif (
            key in linktraces.KEYS and isinstance(value, str) and linktraces.is_file(value, folder)
        ):
            source[key] = str(folder / value)


def override(source: dict, key: str, text: str) -> None:
    """Set KEY of SOURCE, a parsed file, to what TEXT says: an axis' values, or a dotted key's."""
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        parts = text.split(",")
        try:
            value = [float(part) for part in parts] if len(parts) > 1 else text
        except ValueError:
            value = parts
    axes = source.get("axes", {})
    if key in axes:
        axes[key]["values"] = value if isinstance(value, list) else [value]
        return
    for name, axis in axes.items():
        if isinstance(axis, dict) and axis.get("sets") == key:
            raise BadInput(f"--set {key}: this is what the axis '{name}' sweeps; --set {name}=...")
        if isinstance(axis, dict) and isinstance(axis.get("random"), dict):
            axis["random"].get("sets", {}).pop(key, None)  # one value for all places
    set_dotted(source, key, value)


def set_dotted(source: dict, key: str, value: Any) -> None:
    """Set the value at a dotted key (links.wireless.loss_pct, flows.0.count)."""
    *parents, last = key.split(".")
    place: Any = source
    for i, part in enumerate(parents):
        try:
            if isinstance(place, list):
                place = place[int(part)]
            elif part in place or (parents[0] in OPEN_SECTIONS and i < 2):
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
    keys = []
    for section in ("topology", "run"):
        keys += [f"{section}.{key}" for key in source.get(section, {})]
    for hop, link in source.get("links", {}).items():
        keys += [f"links.{hop}.{key}" for key in link] if isinstance(link, dict) else []
    return keys


def _build(cls: type, table: Any, where: str, **given: Any):
    """Make a CLS of the TOML TABLE, naming what is unknown, missing or of the wrong type."""
    if not isinstance(table, dict):
        raise BadInput(f"{where} must be a table")
    known = {f.name: f for f in fields(cls)}
    for key in table:
        if key not in known or key in given:
            raise unknown(f"key in {where}:", key, known.keys() - given.keys())
    values = dict(given)
    for key, value in table.items():
        values[key] = _convert(known[key].type, value, f"{where}.{key}")
    try:
        return cls(**values)
    except TypeError as error:
        raise BadInput(f"{where}: {str(error).split('__init__() ')[-1]}") from None


# Keys that take a list, which is not empty, and of what.
SOME = bool | tuple[int, ...]  # all, none, or those with these numbers
LISTS = {tuple[AxisValue, ...]: AxisValue, SOME: int}


def _convert(kind: Any, value: Any, where: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and not math.isfinite(value):
        raise BadInput(f"{where} = {value}: this must be a finite number")
    if kind in (float, float | None) and number:
        return float(value)
    if kind is int and number and value == int(value) and abs(value) < 2**53:
        return int(value)
    if kind in (bool, bool | None, SOME) and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind == tuple[str, ...]:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(dict.fromkeys(value))
    if kind == AxisValue and (number or isinstance(value, str)):
        return float(value) if number else value
    if isinstance(value, list) and value and kind in LISTS:
        return tuple(_convert(LISTS[kind], v, where) for v in value)
    if kind == dict[str, AxisValue] and isinstance(value, dict):
        return {key: _convert(AxisValue, v, f"{where}.{key}") for key, v in value.items()}
    if kind == dict[str, Any] and isinstance(value, dict):
        return value
    names = {float: "number", int: "whole number", str: "text", bool: "true or false"}
    names[SOME] = "list of whole numbers, or true or false"
    wanted = names.get(kind, "list" if "tuple" in str(kind) else "number")
    raise BadInput(f"{where} = {value!r}: this must be a {wanted}")


def parse(scenario_id: str, source: dict) -> Scenario:
    """Check a parsed scenario file and return it typed."""
    source = copy.deepcopy(source)
    sections = {*TEXTS, "run", "axes", "claims"} | CHOICE_SECTIONS
    for key in source:
        if key not in sections:
            raise unknown(f"section in {scenario_id}", key, sections)
    for key, value in source.items():
        kind = str if key in TEXTS else SECTION_KINDS.get(key, dict)
        if not isinstance(value, kind):
            raise BadInput(f"{scenario_id}: {key} must be {KIND_NAMES[kind]}")
    topology = _topology(source.get("topology", {}))
    for key in ("title", "flows", "run", *([] if topology.is_wireless else ["links"])):
        if key not in source:
            raise BadInput(f"{scenario_id}: '{key}' is missing; docs/scenarios.md shows a file")
    links = _sized(_links(source.get("links", {}), topology), topology)
    scenario = Scenario(
        id=scenario_id,
        title=source["title"],
        question=_question(source.get("question", "")),
        paper=source.get("paper", ""),
        description=source.get("description", ""),
        topology=topology,
        medium=_medium(source.get("medium"), topology),
        links=links,
        modules=_modules(source.get("modules", {})),
        sctp=_sctp(source.get("sctp", {})),
        flows=_flows(source["flows"]),
        events=_events(source.get("events", []), links),
        run=_build(Run, source["run"], "run"),
        axes=_axes(source.get("axes", {})),
        claims=_claims(source.get("claims", [])),
        source=source,
    )
    _check(scenario)
    return scenario


def _question(name: str) -> str:
    if name and name not in QUESTIONS:
        raise unknown("question", name, QUESTIONS)
    return name


def _topology(table: dict) -> Topology:
    topology = _build(Topology, table, "topology")
    if topology.kind not in KINDS:
        raise unknown("topology", topology.kind, KINDS)
    if not 1 <= topology.homes <= MAX_HOMES:
        raise BadInput(f"topology.homes = {topology.homes}: 1 or {MAX_HOMES}")
    _check_tunnel(topology)
    if not 544 <= topology.mtu_bytes <= 9000:
        raise BadInput(f"topology.mtu_bytes = {topology.mtu_bytes}: 544 to 9000")
    if topology.is_wireless:
        return _wireless(topology)
    if topology.nodes:
        raise BadInput(f"topology.nodes: only a {WIRELESS} has a number of nodes")
    fixed = KINDS[topology.kind]
    if fixed:
        if topology.hops:
            raise BadInput(f"topology.hops: those of the {topology.kind} are {', '.join(fixed)}")
        return replace(topology, hops=fixed)
    if not 1 <= len(topology.hops) <= MAX_HOPS:
        raise BadInput(f"topology.hops: a {topology.kind} names its hops, 1 to {MAX_HOPS}")
    for hop in topology.hops:
        if not is_name(hop) or hop.startswith(("reverse_", SECOND)):
            raise BadInput(
                f"topology.hops: {hop!r}: letters, digits, - and _ only; reverse_ stands for the"
                f" way back of each, {SECOND} for those between second homes"
            )
    return topology


def _check_tunnel(topology: Topology) -> None:
    if topology.tunnel and topology.tunnel not in TUNNELS:
        raise unknown("topology.tunnel", topology.tunnel, TUNNELS)
    if topology.tunnel and (topology.is_wireless or topology.homes > 1):
        raise BadInput("topology.tunnel: only over a dumbbell or chain, with one home")


def _wireless(topology: Topology) -> Topology:
    if topology.homes > 1:
        raise BadInput(f"topology.homes: a node of a {WIRELESS} has one")
    if topology.hops:
        raise BadInput(f"topology.hops: those of a {WIRELESS} are hop1, hop2 and so on; give nodes")
    if topology.mtu_bytes > MTU_MAX_BYTES:
        raise BadInput(
            f"topology.mtu_bytes = {topology.mtu_bytes}: 802.11 carries {MTU_MAX_BYTES} at most"
        )
    if not 2 <= topology.nodes <= MAX_HOPS + 1:
        raise BadInput(f"topology.nodes = {topology.nodes}: a {WIRELESS} has 2 to {MAX_HOPS + 1}")
    agents = topology.agents if isinstance(topology.agents, tuple) else ()
    if not all(1 <= node <= topology.nodes for node in agents):
        raise BadInput(f"topology.agents = {list(agents)}: nodes are 1 to {topology.nodes}")
    return replace(topology, hops=tuple(f"hop{i}" for i in range(1, topology.nodes)))


def _medium(table: dict | None, topology: Topology) -> Medium | None:
    if not topology.is_wireless:
        if table is not None:
            raise BadInput(f"medium: only a {WIRELESS} has one")
        return None
    medium = _build(Medium, table or {}, "medium")
    for key in ("rate_mbps", "control_rate_mbps"):
        if getattr(medium, key) not in RATES_MBPS:
            raise BadInput(f"medium.{key} = {getattr(medium, key):g}: 802.11 DSSS has 1 and 2")
    limits = {
        "rts_threshold_bytes": (0, RTS_OFF_BYTES), "short_retry_limit": (1, 255),
        "rts_retry_limit": (1, 255), "long_retry_limit": (1, 255), "queue_pkts": (1, 10_000),
        "spacing_m": (1, 10_000), "range_m": (2, 100_000),
        "carrier_sense_m": (medium.range_m, 100_000), "loss_exponent": (2, 6),
        "capture_db": (6, 30), "circle_radius_m": (0, 10_000),
        "circle_period_s": (0, 100_000),
    }  # fmt: skip
    for key, (least, most) in limits.items():
        if not least <= getattr(medium, key) <= most:
            raise BadInput(f"medium.{key} = {getattr(medium, key):g}: {least:g} to {most:g}")
    if bool(medium.circle_radius_m) != bool(medium.circle_period_s):
        raise BadInput("medium: a circle takes both circle_radius_m and circle_period_s")
    return medium


def is_name(text: str) -> bool:
    """Say whether TEXT can name files and hosts: letters, digits, - and _."""
    return text.replace("-", "").replace("_", "").isalnum()


def _links(tables: dict, topology: Topology) -> dict[str, Link]:
    links = {}
    if tables and topology.is_wireless:
        raise BadInput(f"links: a {topology.kind} has a [medium] instead")
    for hop, table in tables.items():
        if hop not in topology.all_hops:
            raise unknown(f"hop of the {topology.kind}", hop, topology.all_hops)
        link = links[hop] = _build(Link, table, f"links.{hop}")
        _check_link(f"links.{hop}", link)
        if link.queue_bdp and link.queue_pkts:
            raise BadInput(f"links.{hop}: give queue_pkts or queue_bdp, not both")
        if 0 < link.bucket_bytes < GSO_FRAME_BYTES and topology.offloads:
            raise BadInput(
                f"links.{hop}: a policer of {link.bucket_bytes} bytes would drop every burst of"
                " offloads: set topology.offloads = false"
            )
        if 0 < link.bucket_bytes < topology.mtu_bytes + ETHERNET_BYTES:
            raise BadInput(f"links.{hop}: a policer of {link.bucket_bytes} bytes passes no frame")
    return links


def _sized(links: dict[str, Link], topology: Topology) -> dict[str, Link]:
    """Return LINKS with queue_bdp as queue_pkts, in full frames, one at least."""
    frame_bytes = topology.mtu_bytes + ETHERNET_BYTES
    sized = {}
    for hop, link in links.items():
        if link.queue_bdp:
            bdp_bytes = link.rate_mbps * base_rtt_ms(links, topology, hop) * 125
            pkts = max(round(link.queue_bdp * bdp_bytes / frame_bytes), 1)
            link = replace(link, queue_pkts=pkts)
            _check_link(f"links.{hop}", link)
        sized[hop] = link
    return sized


def base_rtt_ms(links: dict[str, Link], topology: Topology, hop: str = "") -> float:
    """Return the sum of the hops' delays on the way that HOP is of (nothing: the first homes'),
    there and back."""
    second = hop.removeprefix("reverse_").startswith(SECOND)
    way = [SECOND + name if second else name for name in topology.hops]
    both = [*way, *(f"reverse_{name}" for name in way)]
    return sum(links[name].delay_ms for name in both if name in links)


def _check_link(where: str, link: Link) -> None:
    for key, value in vars(link).items():
        if not isinstance(value, str) and value < 0:
            raise BadInput(f"{where}.{key} = {value:g}: it cannot be negative")
    if link.loss_pct > 100:
        raise BadInput(f"{where}.loss_pct = {link.loss_pct:g}: loss is at most 100 %")
    if link.rate_mbps > 100_000:
        raise BadInput(f"{where}.rate_mbps = {link.rate_mbps:g}: at most 100000")
    if link.delay_ms > 60_000:
        raise BadInput(f"{where}.delay_ms = {link.delay_ms:g}: at most 60000")
    if link.queue_pkts > QUEUE_UNLIMITED_PKTS:
        raise BadInput(f"{where}.queue_pkts = {link.queue_pkts}: at most {QUEUE_UNLIMITED_PKTS}")
    _check_loss_and_delay(where, link)
    _check_policer(where, link)
    if link.queue_bdp > 1000 or (link.queue_bdp and not link.rate_mbps):
        raise BadInput(f"{where}.queue_bdp = {link.queue_bdp:g}: at most 1000, with rate_mbps")
    if link.aqm and link.aqm not in AQMS:
        raise unknown(f"{where}.aqm", link.aqm, AQMS)
    if link.aqm and not (link.queue_pkts or link.queue_bdp):
        raise BadInput(f"{where}: aqm needs queue_pkts, the most it may hold")
    _check_traces(where, link)
    if link.queue_pkts and (link.loss_pct or link.loss_trace or not link.has_rate):
        raise BadInput(
            f"{where}: queue_pkts needs rate_mbps or trace, and no loss_pct on the same hop, or the"
            " cause of a drop would be unknown; put the loss on the wireless hop"
        )
    if link.queue_pkts and (link.delay_ms or link.spread_ms or link.aggregate_ms):
        raise BadInput(
            f"{where}: queue_pkts and a delay on one hop, where packets in flight would count as"
            " queued; put the delay on the wireless hop"
        )


def _check_traces(where: str, link: Link) -> None:
    if link.trace and (link.rate_mbps or link.aqm):
        raise BadInput(f"{where}: a trace takes the place of rate_mbps, and has no aqm")
    if link.is_traced and (link.aqm or link.aggregate_ms):
        raise BadInput(f"{where}: traces go with neither aqm nor aggregate_ms")
    linktraces.of_link(link, seed=1)  # which says what is wrong with a file


def _check_order(where: str, link: Link) -> None:
    if link.reorder_pct > 100 or (link.reorder_pct and not link.delay_ms):
        raise BadInput(
            f"{where}: reorder_pct is at most 100, and needs the delay_ms that it spares"
        )
    if link.reorder_pct and link.has_rate:
        raise BadInput(f"{where}: reorder_pct needs a hop without rate_mbps, which keeps the order")
    if link.jitter_reorders and (link.has_rate or not link.jitter_ms):
        raise BadInput(
            f"{where}: jitter_reorders needs jitter_ms and no rate_mbps, which keeps the order; put"
            " the rate on another hop"
        )
    if link.spread_ms and not (link.has_rate or link.jitter_reorders):
        raise BadInput(
            f"{where}: jitter_ms and retry_pct need rate_mbps on the same hop, or netem would"
            " change the order of packets (which jitter_reorders allows)"
        )


def _check_policer(where: str, link: Link) -> None:
    if not (link.policer_burst_ms or link.policer_burst_bytes):
        return
    if link.policer_burst_ms and link.policer_burst_bytes:
        raise BadInput(f"{where}: give policer_burst_ms or policer_burst_bytes, not both")
    if not link.rate_mbps:
        raise BadInput(f"{where}: a policer needs rate_mbps")
    if link.bucket_bytes > 1 << 31:
        raise BadInput(f"{where}: a policer's bucket is at most {1 << 31} bytes")
    if replace(link, rate_mbps=0, policer_burst_ms=0, policer_burst_bytes=0) != Link():
        raise BadInput(
            f"{where}: a policer has no queue, loss or delay on its hop; put them on another"
        )


def _check_loss_and_delay(where: str, link: Link) -> None:
    if link.burst_pkts and link.burst_pkts < 1:
        raise BadInput(f"{where}.burst_pkts = {link.burst_pkts:g}: a run of losses has 1 at least")
    if link.burst_pkts and link.loss_pct > 50:
        raise BadInput(f"{where}: with burst_pkts loss_pct is at most 50")
    if link.retry_pct and not link.retry_ms:
        raise BadInput(f"{where}: retry_pct needs retry_ms, what a repeated transmission costs")
    if link.retry_pct > 90 or link.retry_ms > 500:
        raise BadInput(f"{where}: retry_pct is at most 90, retry_ms at most 500")
    if link.jitter_ms and link.retry_pct:
        raise BadInput(f"{where}: give jitter_ms or retry_pct, not both")
    if link.jitter_ms > 2000 or link.aggregate_ms > 2000:
        raise BadInput(f"{where}: jitter_ms and aggregate_ms are at most 2000")
    if link.aggregate_pkts < 1:
        raise BadInput(f"{where}.aggregate_pkts = {link.aggregate_pkts}: 1 at least")
    if link.jitter_ms > link.delay_ms:
        raise BadInput(f"{where}: jitter_ms is at most delay_ms, or packets would leave too early")
    _check_order(where, link)


def _sctp(table: dict) -> Sctp:
    sctp = _build(Sctp, table, "sctp")
    limits = {
        "rwnd_bytes": (1500, 1 << 30), "miss_indications": (3, 255), "idle_retransmit": (0, 1),
        "timestamps": (0, 1),
    }  # fmt: skip
    for key, (least, most) in limits.items():
        if key in table and not least <= getattr(sctp, key) <= most:
            raise BadInput(f"sctp.{key} = {getattr(sctp, key)}: {least} to {most}")
    return sctp


def _modules(tables: dict) -> dict[str, dict[str, int]]:
    for name, table in tables.items():
        _check_algorithm(f"modules.{name}", name)
        if not isinstance(table, dict):
            raise BadInput(f"modules.{name} must be a table of the module's parameters")
        if not ALGORITHMS[name].module:
            raise BadInput(f"modules.{name}: it is built into the kernel and has no parameters")
        for key, value in table.items():
            _convert(int, value, f"modules.{name}.{key}")
    return {name: {k: int(v) for k, v in table.items()} for name, table in tables.items()}


def _check_flow(where: str, flow: Flow) -> None:
    if not 0 <= flow.count <= 100:
        raise BadInput(f"{where}.count = {flow.count}: between 0 and 100 flows")
    if flow.start_s < 0 or flow.bytes < 0 or (flow.stop_s and flow.stop_s <= flow.start_s):
        raise BadInput(f"{where}: start_s and bytes cannot be negative, stop_s follows start_s")
    if flow.repeats and not (flow.bytes and 0 < flow.repeats <= 1_000_000):
        raise BadInput(f"{where}.repeats: 1 to 1000000 requests, each of the flow's bytes")
    if flow.pause_s < 0 or (flow.pause_s and not flow.repeats):
        raise BadInput(f"{where}.pause_s: not negative, and with repeats")
    if flow.together and flow.every_s:
        raise BadInput(f"{where}: together or every_s, not both")
    if flow.mptcp and (flow.is_udp or (flow.share_hosts and flow.count > 1)):
        raise BadInput(
            f"{where}.mptcp: of TCP, and of flows between hosts of their own: not with every_s or"
            " together"
        )
    if not 0 <= flow.delay_ms <= 60_000:
        raise BadInput(f"{where}.delay_ms = {flow.delay_ms:g}: 0 to 60000")
    if flow.every_s < 0:
        raise BadInput(f"{where}.every_s = {flow.every_s:g}: it cannot be negative")
    if flow.mss_bytes and not 88 <= flow.mss_bytes <= 32767:
        raise BadInput(f"{where}.mss_bytes = {flow.mss_bytes}: between 88 and 32767")
    _check_transport(where, flow)
    if not is_name(flow.name):
        raise BadInput(f"{where}.name = {flow.name!r}: letters, digits, - and _ only")
    if flow.algorithm != UNDER_TEST:
        _check_algorithm(f"{where}.algorithm", flow.algorithm)


def _flows(tables: list) -> tuple[Flow, ...]:
    if not isinstance(tables, list) or not tables:
        raise BadInput("flows must be one or more [[flows]] tables")
    flows = tuple(_build(Flow, table, f"flows.{i}") for i, table in enumerate(tables))
    for i, flow in enumerate(flows):
        _check_flow(f"flows.{i}", flow)
    names = [name for flow in flows for name in flow.names()]
    if len(set(names)) < len(names):
        raise BadInput("two flows have the same name (name1, name2 and so on where count is given)")
    if len(names) > MAX_FLOWS:
        raise BadInput(f"{len(names)} flows: at most {MAX_FLOWS}")
    alone = all(flow.is_udp for flow in flows)
    if not alone and not any(flow.under_test and flow.count for flow in flows):
        raise BadInput(f"no flow has the algorithm under test ({UNDER_TEST}): nothing to compare")
    return flows


def _events(tables: list, links: dict[str, Link]) -> tuple[Event, ...]:
    events = (_build(Event, table, f"events.{i}") for i, table in enumerate(tables))
    now, resolved = dict(links), []
    for event in sorted(events, key=lambda event: event.at_s):
        link = now.get(event.link, Link())
        if event.cut is None:
            now[event.link] = replace(link, **event.changes)
        elif event.changes:
            raise BadInput(f"event at {event.at_s:g} s: cut goes with no other change")
        elif link.queue_pkts:
            rate_mbps = CUT_MBPS if event.cut else link.rate_mbps
            event = replace(event, rate_mbps=rate_mbps)
        else:
            event = replace(event, loss_pct=100.0 if event.cut else link.loss_pct)
        resolved.append(event)
    return tuple(resolved)


def _check_event(scenario: Scenario, event: Event) -> None:
    where = f"event at {event.at_s:g} s"
    if not 0 < event.at_s < scenario.run.duration_s:
        raise BadInput(f"{where}: it must lie within the run")
    if not event.changes:
        raise BadInput(f"{where}: give rate_mbps, loss_pct, delay_ms or cut")
    fixed = (hop for hop, link in scenario.links.items() if link.aqm or link.bucket_bytes)
    hops = [hop for hop in scenario.links if hop not in set(fixed)]
    if event.rate_mbps is not None:
        hops = [hop for hop in hops if scenario.links[hop].rate_mbps]
        hops = [hop for hop in hops if not scenario.links[hop].aggregate_ms]
        if not 0 < event.rate_mbps <= 100_000:
            raise BadInput(f"{where}: rate_mbps = {event.rate_mbps:g}: above 0, at most 100000")
    if event.link not in hops:
        raise unknown(f"{where}: link with a rate_mbps, no aqm and no policer", event.link, hops)
    if event.cut is None:
        _check_link(f"{where}: {event.link}", replace(scenario.links[event.link], **event.changes))


def _axes(tables: dict) -> tuple[Axis, ...]:
    return tuple(_axis(name, table) for name, table in tables.items())


def _check_transport(where: str, flow: Flow) -> None:
    if flow.transport and flow.transport not in TRANSPORTS:
        raise unknown(f"{where}.transport", flow.transport, TRANSPORTS)
    if flow.is_udp and flow.algorithm != UNDER_TEST:
        raise BadInput(f"{where}: a udp flow has a rate_mbps and no algorithm")
    if not flow.is_udp and (flow.rate_mbps or flow.on_s or flow.off_s):
        raise BadInput(f'{where}.rate_mbps, on_s, off_s: only for transport = "udp"')
    if flow.on_s < 0 or flow.off_s < 0 or bool(flow.on_s) != bool(flow.off_s):
        raise BadInput(f"{where}: on_s and off_s are both above 0, or both left out")
    if not 0 <= flow.rate_mbps <= 10_000:
        raise BadInput(f"{where}.rate_mbps = {flow.rate_mbps:g}: between 0 and 10000")


def _is_fixed(key: str) -> bool:
    """Say whether a dotted key is one that no axis may set."""
    return key.split(".")[0] in ("axes", "claims") or key in NOT_SWEPT


def _axis(name: str, table: Any) -> Axis:
    axis = _build(Axis, table, f"axes.{name}", name=name)
    if [bool(axis.sets), bool(axis.choices), bool(axis.random)].count(True) != 1:
        raise BadInput(f"axes.{name}: give either sets and values, or choices, or random")
    if _is_fixed(axis.sets):
        raise BadInput(f"axes.{name}.sets = {axis.sets}: this cannot be swept")
    if axis.random:
        return _random_axis(axis)
    if not axis.choices:
        for value in axis.values or ("no values",):
            _convert(float, value, f"axes.{name}.values")
        return replace(axis, values=tuple(dict.fromkeys(axis.values)))
    for value in axis.values:
        if value not in axis.choices:
            raise unknown(f"choice of {name}:", str(value), axis.choices)
    for choice, piece in axis.choices.items():
        if not isinstance(piece, dict) or not piece.keys() <= CHOICE_SECTIONS:
            raise BadInput(
                f"axes.{name}.choices.{choice}: a choice is tables of topology, medium, links,"
                " sctp, flows, events and modules"
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


def _claims(tables: list) -> tuple[Claim, ...]:
    return tuple(_build(Claim, table, f"claims.{i}") for i, table in enumerate(tables))


def _check(scenario: Scenario) -> None:
    """Refuse what each table allows but all together do not."""
    _check_run(scenario.run)
    _check_udp_alone(scenario)
    if scenario.medium and scenario.run.truth:
        raise BadInput(f"run.truth: not on a {WIRELESS}, where no hop has one cause of drops")
    _check_packets(scenario)
    _check_harm(scenario)
    for event in scenario.events:
        _check_event(scenario, event)
    for flow in scenario.flows:
        _check_way(scenario, flow)
        stop_s = flow.stop_s or scenario.run.duration_s
        last_start_s = flow.start_s + flow.every_s * max(flow.count - 1, 0)
        if stop_s > scenario.run.duration_s or last_start_s + 1 > stop_s:
            raise BadInput(
                f"flow {flow.name}: it must last a second at least and end by run.duration_s"
            )
    for axis in scenario.axes:
        _check_axis(scenario, axis)
    axes = {axis.name: axis for axis in scenario.axes}
    for claim in scenario.claims:
        _check_claim(claim, axes, scenario.flows, {*ALGORITHMS, *scenario.run.algorithms})
        if claim.metric in CLASSIFIED and not scenario.run.truth:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.truth = true")
        if claim.metric in PACKET_FIGURES and not scenario.run.packets:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.packets = true")
        if claim.metric in HARM_FIGURES and not scenario.run.harm:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.harm = true")
        if claim.metric in JITTER_RATIOS and not scenario.run.jitter_ratio:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.jitter_ratio = true")
        if claim.metric in MEDIUM_FIGURES and not scenario.medium:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs a {WIRELESS}")


def _check_udp_alone(scenario: Scenario) -> None:
    if all(flow.is_udp for flow in scenario.flows) and scenario.run.algorithms != (UDP,):
        raise BadInput(
            f'no flow has the algorithm under test: where all are UDP, run.algorithms is ["{UDP}"]'
        )


def _check_packets(scenario: Scenario) -> None:
    if not scenario.run.packets:
        return
    if scenario.medium:
        raise BadInput(f"run.packets: not on a {WIRELESS}, whose nodes count for themselves")
    if scenario.topology.offloads and any(link.aqm for link in scenario.links.values()):
        raise BadInput(
            "run.packets with an aqm needs topology.offloads = false, or bursts that come in would"
            " leave as single packets"
        )


def _check_harm(scenario: Scenario) -> None:
    rivals = (
        flow
        for flow in scenario.flows
        if not (flow.under_test or flow.is_udp or flow.is_cross(scenario.topology))
    )
    if scenario.run.harm and not any(rivals):
        raise BadInput(
            "run.harm: there is nobody who could be harmed: it needs a flow with an algorithm of"
            " its own that takes the whole way"
        )


def _check_way(scenario: Scenario, flow: Flow) -> None:
    for key in ("first_hop", "last_hop"):
        hop = getattr(flow, key)
        if hop and hop not in scenario.topology.hops:
            raise unknown(f"hop in {key} of flow {flow.name}:", hop, scenario.topology.hops)
    first, last = flow.span(scenario.topology)
    if first > last:
        raise BadInput(f"flow {flow.name}: {flow.first_hop} comes after {flow.last_hop}")
    if flow.under_test and flow.is_cross(scenario.topology):
        raise BadInput(
            "a flow under test cannot be reverse: its figures are of the way forward"
            if flow.reverse
            else f"flow {flow.name}: a flow under test takes all hops, not first_hop to last_hop:"
            " its figures are of the whole way"
        )
    if scenario.topology.tunnel and (first, last) != (0, len(scenario.topology.hops) - 1):
        raise BadInput(f"flow {flow.name}: with topology.tunnel flows take all hops, in it")
    if flow.mptcp:
        _check_mptcp(scenario, flow)
    if flow.delay_ms and scenario.medium:
        raise BadInput(f"flow {flow.name}: delay_ms: a {WIRELESS} has no router for it")
    way = flow.way(scenario.topology)
    if scenario.topology.mtu_bytes != Topology.mtu_bytes and not flow.mss_bytes:
        raise BadInput(f"flow {flow.name}: with topology.mtu_bytes it needs its mss_bytes")
    if scenario.medium or flow.is_udp:
        return
    links = [scenario.links.get(hop, Link()) for hop in way]
    back = [scenario.links.get(_opposite(hop), Link()) for hop in way]
    if any(link.bucket_bytes for link in links) and not any(
        link.delay_ms or (link.rate_mbps and not link.bucket_bytes) for link in (*links, *back)
    ):
        raise BadInput(
            f"flow {flow.name}: besides a policer its way {', '.join(way)} needs a delay or a rate,"
            " or it would lose without end in no time"
        )
    if not any(link.has_rate for link in links):
        raise BadInput(
            f"flow {flow.name}: none of the links {', '.join(way)} has rate_mbps or trace: data"
            " would flow without end in no time"
        )


def _check_mptcp(scenario: Scenario, flow: Flow) -> None:
    if scenario.medium or scenario.topology.homes > 1:
        raise BadInput(f"flow {flow.name}: mptcp: on a dumbbell or chain with one home")
    if scenario.run.packets or scenario.run.truth:
        raise BadInput(
            f"flow {flow.name}: mptcp: not with run.packets or run.truth, which know a flow by one"
            " port"
        )


def _opposite(hop: str) -> str:
    return hop.removeprefix("reverse_") if hop.startswith("reverse_") else f"reverse_{hop}"


def _check_run(run: Run) -> None:
    check_algorithms(run.algorithms)
    if not 1 <= run.sample_ms <= 60_000:
        raise BadInput(f"run.sample_ms = {run.sample_ms}: between 1 and 60000")
    if not 0 < run.duration_s <= 100_000 or not 0 <= run.warmup_s < run.duration_s:
        raise BadInput("run: 0 <= warmup_s < duration_s <= 100000 must hold")
    for key in ("warmup_s", "duration_s"):
        samples = getattr(run, key) * 1000 / run.sample_ms
        if abs(samples - round(samples)) > 1e-6:
            raise BadInput(f"run.{key} must be a multiple of run.sample_ms ({run.sample_ms} ms)")
    if not 1 <= run.seeds <= 10_000:
        raise BadInput(f"run.seeds = {run.seeds}: between 1 and 10000")
    if run.keep_samples not in ("first-seed", "all", "none"):
        raise unknown("run.keep_samples", run.keep_samples, ("first-seed", "all", "none"))


def _check_axis(scenario: Scenario, axis: Axis) -> None:
    """Refuse an axis with a value at which the scenario would be nonsense."""
    if axis.scale not in ("linear", "log"):
        raise unknown(f"axes.{axis.name}.scale", axis.scale, ("linear", "log"))
    for value in axis.values:
        probe = copy.deepcopy(scenario.source)
        probe.pop("axes")
        axis.apply(probe, value)
        probe["claims"] = []
        parse(scenario.id, probe)


def _check_claim(
    claim: Claim, axes: dict[str, Axis], flows: tuple[Flow, ...], named: set[str]
) -> None:
    """Refuse a claim about what is not there; NAMED: the algorithms that it may be about."""
    if claim.metric not in METRICS:
        raise unknown(f"metric in claim {claim.id}:", claim.metric, METRICS)
    for name in (claim.algorithm, claim.against):
        if name and name not in named and not (name in LIMITS and name == claim.against):
            raise unknown(f"algorithm in claim {claim.id}:", name, [*named, *LIMITS])
    if claim.flows:
        names = [flow.name for flow in flows if not flow.is_udp]
        if claim.flows not in names:
            raise unknown(f"flows in claim {claim.id}:", claim.flows, names)
        if claim.metric != "goodput_mbps" or claim.against in LIMITS:
            raise BadInput(f"claim {claim.id}: of flows there is goodput_mbps only, and no bound")
    if claim.against_where and claim.against in ("", *LIMITS):
        raise BadInput(f"claim {claim.id}: against_where needs an algorithm in against")
    for axis, value in [*claim.where.items(), *claim.against_where.items()]:
        if axis not in axes:
            raise unknown(f"axis in claim {claim.id}:", axis, axes)
        if isinstance(value, str) and value not in axes[axis].choices:
            raise unknown(f"choice in claim {claim.id}:", value, axes[axis].choices)
    if claim.at_least is None and claim.at_most is None:
        raise BadInput(f"claim {claim.id}: give at_least or at_most, or it could not fail")


def check_algorithms(names: tuple[str, ...]) -> None:
    if not names:
        raise BadInput("no algorithm to run")
    for name in names:
        _check_algorithm("algorithms", name)


def _check_algorithm(where: str, name: str) -> None:
    """Refuse what no kernel can have as a name; whether the one in use has it, it is asked."""
    if not is_algorithm_name(name):
        raise BadInput(f"{where}: {name!r} is no name of an algorithm")
