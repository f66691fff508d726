# SPDX-License-Identifier: GPL-2.0-only
"""Scenario files: TOML in, checked and typed objects out. docs/scenarios.md is the reference.

Everything a user can get wrong in a file or with --set ends here as BadInput, before anything
runs or is written. What only concerns the path, the flows or the axes is checked in paths, flows
and axes; here is what they must be together.
"""

import copy
import tomllib
from pathlib import Path
from typing import Any

from lab.ask import linktraces
from lab.ask.algorithms import ALGORITHMS, UDP
from lab.ask.axes import CHOICE_SECTIONS, parse_axes
from lab.ask.figures import (
    CLASSIFIED,
    HARM_FIGURES,
    JITTER_RATIOS,
    LIMITS,
    MEDIUM_FIGURES,
    METRICS,
    PACKET_FIGURES,
)
from lab.ask.flows import check_algorithm, check_algorithms, check_way, parse_flows
from lab.ask.linkrules import check_bursts
from lab.ask.links import Link
from lab.ask.parts import WIFI_AP, WIRELESS, Axis, Claim, Flow, Run, Scenario
from lab.ask.paths import (
    check_cards,
    check_event,
    parse_events,
    parse_links,
    parse_medium,
    parse_sctp,
    parse_sysctl,
    parse_topology,
    sized,
)
from lab.ask.questions import QUESTIONS
from lab.ask.tables import build, convert, set_dotted
from lab.common.errors import BadInput, unknown

LISTED = "`testbed/veno-lab list`"
SCENARIO_DIR = Path(__file__).resolve().parents[2] / "scenarios"
TEXTS = ("title", "question", "paper", "description")
SECTION_KINDS = {"flows": list, "events": list, "claims": list}  # the others are tables
KIND_NAMES = {str: "a text", list: "[[tables]]", dict: "a table"}


def list_scenarios() -> list[Path]:
    return sorted(SCENARIO_DIR.glob("*.toml"))


def find(name: str) -> Path:
    """Return the file of the scenario NAME, which may also be a path."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise BadInput(f"no scenario file {name}: check the path, or see {LISTED}")
        return path
    path = SCENARIO_DIR / f"{name}.toml"
    if not path.is_file() and Path(f"{name}.toml").is_file():
        raise BadInput(f"unknown scenario '{name}': did you mean ./{name}.toml?")
    if not path.is_file():
        raise unknown("scenario", name, [p.stem for p in list_scenarios()], LISTED)
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
    scenario = parse(path.stem, source)
    _check_bursts(scenario)
    return scenario


def _check_bursts(scenario: Scenario) -> None:
    """Refuse a hop whose losses are to come in runs and that nothing gives losses: neither its own
    table nor an axis nor an event."""
    for hop in scenario.topology.all_hops:
        check_bursts(f"links.{hop}", *_bursts_and_losses(scenario, hop))


def _bursts_and_losses(scenario: Scenario, hop: str) -> tuple[bool, bool]:
    """Say whether somebody asks for bursts on HOP, and whether for losses."""
    pieces = pieces_of(scenario.source)
    swept = {axis.sets for axis in scenario.axes}
    swept |= {key for axis in scenario.axes for key in axis.random.get("sets", {})}
    lossy = {event.link for event in scenario.events if "loss_pct" in event.changes}
    tables = [piece.get("links", {}).get(hop, {}) for piece in pieces]
    bursts = any(of.get("burst_pkts") for of in tables) or f"links.{hop}.burst_pkts" in swept
    losses = any("loss_pct" in of for of in tables) or f"links.{hop}.loss_pct" in swept
    eventful = hop in lossy or any("events" in piece for piece in pieces[1:])
    return bursts, losses or eventful


def pieces_of(source: dict[str, Any]) -> list[dict[str, Any]]:
    """Return SOURCE and all choices of its axes, which may each have what it has."""
    axes = source.get("axes", {}).values()
    return [source, *(of for axis in axes for of in axis.get("choices", {}).values())]


def without_idle_bursts(source: dict[str, Any]) -> dict[str, Any]:
    """Return SOURCE, which an older run has, without the burst_pkts that did nothing: they were not
    refused then, and what they are of would be refused as a file of today."""
    try:
        scenario = parse("", source)
    except BadInput:
        return source
    source = copy.deepcopy(source)
    for hop in scenario.topology.all_hops:
        if _bursts_and_losses(scenario, hop) == (True, False):
            for piece in pieces_of(source):
                piece.get("links", {}).get(hop, {}).pop("burst_pkts", None)
    return source


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
        values = value if isinstance(value, list) else [value]
        names = "choices" in axes[key] and not all(isinstance(name, str) for name in values)
        axes[key]["values"] = text.split(",") if names else values  # a name may be a number
        return
    for name, axis in axes.items():
        if isinstance(axis, dict) and axis.get("sets") == key:
            raise BadInput(f"--set {key}: this is what the axis '{name}' sweeps; --set {name}=...")
        if isinstance(axis, dict) and isinstance(axis.get("random"), dict):
            axis["random"].get("sets", {}).pop(key, None)  # one value for all places
    set_dotted(source, key, value)


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
    topology = parse_topology(source.get("topology", {}))
    for key in ("title", "flows", "run", *([] if topology.is_wireless else ["links"])):
        if key not in source:
            raise BadInput(f"{scenario_id}: '{key}' is missing; docs/scenarios.md shows a file")
    links = sized(parse_links(source.get("links", {}), topology), topology)
    scenario = Scenario(
        id=scenario_id,
        title=source["title"],
        question=_question(source.get("question", "")),
        paper=source.get("paper", ""),
        description=source.get("description", ""),
        topology=topology,
        medium=parse_medium(source.get("medium"), topology),
        links=links,
        modules=_modules(source.get("modules", {})),
        sctp=parse_sctp(source.get("sctp", {})),
        sysctl=parse_sysctl(source.get("sysctl", {})),
        flows=parse_flows(source["flows"]),
        events=parse_events(source.get("events", []), links),
        run=build(Run, source["run"], "run"),
        axes=parse_axes(source.get("axes", {})),
        claims=_claims(source.get("claims", [])),
        source=source,
    )
    _check(scenario)
    return scenario


def _question(name: str) -> str:
    if name and name not in QUESTIONS:
        raise unknown("question", name, QUESTIONS)
    return name


def _modules(tables: dict) -> dict[str, dict[str, int]]:
    for name, table in tables.items():
        check_algorithm(f"modules.{name}", name)
        if not isinstance(table, dict):
            raise BadInput(f"modules.{name} must be a table of the module's parameters")
        if not ALGORITHMS[name].module:
            raise BadInput(f"modules.{name}: it is built into the kernel and has no parameters")
        for key, value in table.items():
            convert(int, value, f"modules.{name}.{key}")
    return {name: {k: int(v) for k, v in table.items()} for name, table in tables.items()}


def _claims(tables: list) -> tuple[Claim, ...]:
    return tuple(build(Claim, table, f"claims.{i}") for i, table in enumerate(tables))


def _check(scenario: Scenario) -> None:
    """Refuse what each table allows but all together do not."""
    _check_run(scenario.run)
    _check_udp_alone(scenario)
    if scenario.medium and scenario.run.truth:
        kind = scenario.topology.kind
        raise BadInput(f"run.truth: not on a {kind}, where no hop has one cause of drops")
    _check_packets(scenario)
    check_cards(scenario)
    _check_harm(scenario)
    for event in scenario.events:
        check_event(scenario, event)
    for flow in scenario.flows:
        check_way(scenario, flow)
        stop_s = flow.stop_s or scenario.run.duration_s
        last_start_s = flow.start_s + flow.every_s * max(flow.count - 1, 0)
        if stop_s > scenario.run.duration_s or last_start_s + 1 > stop_s:
            raise BadInput(
                f"flow {flow.name}: it must last a second at least and end by run.duration_s"
            )
    for axis in scenario.axes:
        _check_axis(scenario, axis)
    _check_claims(scenario)


def _check_claims(scenario: Scenario) -> None:
    """Refuse claims about what is not there, or not measured."""
    axes = {axis.name: axis for axis in scenario.axes}
    choices = (piece for axis in scenario.axes for piece in axis.choices.values())
    changes = scenario.events or any("events" in piece for piece in choices)
    for claim in scenario.claims:
        _check_claim(claim, axes, scenario.flows, {*ALGORITHMS, *scenario.run.algorithms})
        if claim.against == "residual" and changes:
            raise BadInput(f"claim {claim.id}: with events there is no one residual")
        if claim.metric in CLASSIFIED and not scenario.run.truth:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.truth = true")
        if claim.metric in PACKET_FIGURES and not scenario.run.packets:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.packets = true")
        if claim.metric in HARM_FIGURES and not scenario.run.harm:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.harm = true")
        if claim.metric in JITTER_RATIOS and not scenario.run.jitter_ratio:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs run.jitter_ratio = true")
        if claim.metric in MEDIUM_FIGURES and not scenario.medium:
            raise BadInput(f"claim {claim.id}: {claim.metric} needs a {WIRELESS} or {WIFI_AP}")


def _check_udp_alone(scenario: Scenario) -> None:
    if not all(flow.is_udp for flow in scenario.flows):
        return
    if scenario.run.algorithms != (UDP,):
        raise BadInput(
            f'no flow has the algorithm under test: where all are UDP, run.algorithms is ["{UDP}"]'
        )
    for name in ("packets", "truth", "jitter_ratio"):
        if getattr(scenario.run, name):
            raise BadInput(f"run.{name} needs a flow with an algorithm: all are UDP")
    hops = (scenario.links.get(hop, Link()) for hop in scenario.topology.hops)
    if not scenario.medium and not any(hop.rate_mbps or hop.is_traced for hop in hops):
        raise BadInput("where all flows are UDP one of the links needs rate_mbps or trace")


def _check_packets(scenario: Scenario) -> None:
    if not scenario.run.packets:
        return
    if scenario.medium:
        kind = scenario.topology.kind
        raise BadInput(f"run.packets: not on a {kind}, whose nodes count for themselves")
    if scenario.topology.has_bursts and any(link.aqm for link in scenario.links.values()):
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
    if axis.scale == "log" and axis.choices:
        raise BadInput(f'axes.{axis.name}.scale = "log": choices are no numbers')
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
