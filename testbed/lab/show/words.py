# SPDX-License-Identifier: GPL-2.0-only
"""A run in sentences: what was found, what to know before believing it, how to run it again."""

import math
from collections.abc import Sequence
from typing import Any

from lab.ask.parts import Scenario, place_text
from lab.judge import enough
from lab.judge.claims import Verdict
from lab.judge.enough import ENOUGH_SEEDS, NEEDED, SEEDS_FOR_95
from lab.measure.stats import Estimate, estimate
from lab.run.runs import user_modules
from lab.show import facts, overplaces
from lab.show.facts import Cells, Metric, Place
from lab.show.tables import HEADLINE, as_shown, carried, is_mixed

ENOUGH_RTTS = 100  # below: a smoke test, not a result
MARKS = {"holds": "✓", "does not hold": "✗", "undecided": "?", "not measured": "·"}


def middle_place(scenario: Scenario) -> Place:
    """Return the middle value of every axis (the upper one of two): fixed before any result."""
    values = [axis.levels for axis in scenario.axes]
    return tuple(v[len(v) // 2] for v in values)


def headline(scenario: Scenario, results: list[dict]) -> str:
    """Return one sentence: our best against the kernel's best where all axes are in the middle,
    and how often ours is best everywhere."""
    cells, shown = facts.estimates(scenario, results, HEADLINE), facts.metric(HEADLINE)
    if overplaces.applies(scenario):
        return _over_places(scenario, results) + _wins(cells, is_mixed(results))
    place = middle_place(scenario)
    here = {name: value for (name, at), value in cells.items() if at == place}
    ours = {name: value for name, value in here.items() if facts.style(name).ours}
    peers = {name: value for name, value in here.items() if name not in ours}
    if not here:
        return "No point at the middle of the axes has a result."
    mine, theirs = _best(ours), _best(peers)
    lead, first = (mine, ours) if mine else (theirs, peers)
    at = place_text(scenario.axes, place)
    mixed = is_mixed([result for result in results if facts.place(scenario, result) == place])
    sentence = f"At {at}, " if at else ""
    sentence += f"{'all' if at else 'All'} flows together carry" if mixed else f"{lead} carries"
    sentence += f" {facts.text(first[lead], shown)} Mb/s"
    bound = facts.bounds(scenario, results).get(place)
    if bound:
        sentence += f" ({100 * first[lead].median / bound:.0f} % of the bound)"
    if mixed:
        sentence += _kinds(scenario, results, lead, place)
    if mine and theirs:
        sentence += "; " + _against(ours[mine], theirs, peers[theirs], shown, mixed)
        sentence += _kept(scenario, results, mine, theirs, place) if mixed else ""
    return sentence + "." + _wins(cells, is_mixed(results))


def _over_places(scenario: Scenario, results: list[dict]) -> str:
    """Return what our best and the kernel's best carry over all places, by the mean."""
    found, rest = overplaces.spreads(scenario, results, HEADLINE), overplaces.rests(scenario)[0]
    here = {name: spread for (name, at), spread in found.items() if at == rest}
    if not here:
        return "No place has a result."
    shown, told = overplaces.metric(HEADLINE), []
    of_others = carried(results, under_test=False) if is_mixed(results) else []
    others = overplaces.spreads(scenario, of_others, HEADLINE)
    for ours in (True, False):
        side = {name: of for name, of in here.items() if facts.style(name).ours == ours}
        if side:
            name = max(side, key=lambda name: side[name].mean)
            mean, median = side[name].mean, side[name].median
            told.append(
                f"{name} {facts.number(mean, shown.digits)} by the mean and"
                f" {facts.text(median, shown)} by the median"
            )
            if (name, rest) in others:
                others_mean = facts.number(others[name, rest].mean, shown.digits)
                told[-1] += f" (the others {others_mean}, where there are some)"
    at = overplaces.rest_text(scenario, rest)
    whole = "with all flows beside it, " if is_mixed(results) else ""
    count = max(len(spread.values) for spread in here.values())
    return (
        f"{f'At {at}, over' if at else 'Over'} {count} random places, {whole}"
        f"of the bound are carried: {'; '.join(told)}."
    )


def _kinds(scenario: Scenario, results: list[dict], name: str, place: Place) -> str:
    """Return what those of NAME and what the others have of what all carry together."""
    found = []
    for under_test, whose in ((True, f"those of {name}"), (False, "the others")):
        valued = carried(results, under_test=under_test)
        if value := facts.estimates(scenario, valued, HEADLINE).get((name, place)):
            found.append(f"{whose} {facts.text(value, facts.metric(HEADLINE))}")
    return f": {', '.join(found)}" if found else ""


def _kept(scenario: Scenario, results: list[dict], mine: str, theirs: str, place: Place) -> str:
    """Return what the others have beside THEIRS, and how much less or more they keep beside MINE: a
    sum may be high for what was taken from them."""
    of_others = facts.estimates(scenario, carried(results, under_test=False), HEADLINE)
    kept, usual = of_others.get((mine, place)), of_others.get((theirs, place))
    if not kept or not usual:
        return ""
    told = f", where the others have {facts.text(usual, facts.metric(HEADLINE))}: beside {mine}"
    if kept.low <= usual.high and usual.low <= kept.high:
        return f"{told} as much, by the intervals"
    if not usual.median:
        return f"{told} more"
    percent = 100 * (kept.median / usual.median - 1)
    return f"{told} {abs(percent):.0f} % {'more' if percent > 0 else 'less'}"


def _best(values: dict[str, Estimate]) -> str:
    return max(values, key=lambda name: values[name].median) if values else ""


def _against(mine: Estimate, name: str, other: Estimate, shown: Metric, mixed: bool) -> str:
    one = "with one of" if mixed else "of"
    best = f"the best {one} the kernel's own, {name} with {facts.text(other, shown)}"
    if mine.low <= other.high and other.low <= mine.high:
        return f"{'the interval of the sum' if mixed else 'its interval'} meets that of {best}"
    this = "the sum" if mixed else "this"
    if not other.median:
        return f"{this} is above {best}"
    percent = 100 * (mine.median / other.median - 1)
    return f"{this} is {abs(percent):.0f} % {'above' if percent > 0 else 'below'} {best}"


def _wins(cells: Cells, mixed: bool) -> str:
    """Return in how many places one of ours has a median above all of the kernel's own, and in how
    many as high a one, which the table marks as well. MIXED: the medians are of all flows."""
    won = level = both = 0
    for place in {at for _, at in cells}:
        medians: dict[bool, list[float]] = {True: [], False: []}
        for (name, at), value in cells.items():
            if at == place:
                shown = as_shown(value, facts.metric(HEADLINE))
                medians[facts.style(name).ours].append(shown.median)
        if all(medians.values()):
            both += 1
            won += max(medians[True]) > max(medians[False])
            level += max(medians[True]) == max(medians[False])
    if both < 2:
        return ""
    whose = "The best median of the sum is with one" if mixed else "The best median is one"
    if not level:
        return f" {whose} of ours in {won or 'none'} of {both} conditions."
    return f" {whose} of ours alone in {won or 'none'} of {both} conditions, level in {level}."


def tally(verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return (verdict, words) for each verdict that occurs: how many claims have it."""
    found = []
    for word in MARKS:
        count = sum(verdict.verdict == word for verdict in verdicts)
        plural = {"holds": "hold", "does not hold": "do not hold"}.get(word, word)
        if count:
            found.append((word, f"{count} {word if count == 1 else plural}"))
    return found


def interval_note(results: list[dict], scenario: Scenario) -> str:
    """Return what the intervals are, from the fewest seeds that any cell has."""
    cells = facts.estimates(scenario, results, HEADLINE)
    if not cells:
        return "No point has a result."
    if overplaces.applies(scenario):
        return _places_note(scenario, results)
    worst = min(cells.values(), key=lambda value: value.n)
    if worst.n == 1:
        return "At least one figure comes from a single seed, so there is no interval for it."
    if worst.n < SEEDS_FOR_95:
        return (
            f"With {worst.n} seeds an interval is the range of all runs; it covers the median"
            f" with a probability of {100 * worst.coverage:.4g} %, not 95 %."
        )
    return (
        f"Median over {worst.n} or more seeds, and the order-statistic interval for it"
        f" (coverage {100 * estimate(list(range(worst.n))).coverage:.1f} %)."
    )


def _places_note(scenario: Scenario, results: list[dict]) -> str:
    """Return what the intervals are where they are over places."""
    found = overplaces.spreads(scenario, results, HEADLINE)
    fewest = min((spread.median for spread in found.values()), key=lambda of: of.n)
    seeds = len({result["seed"] for result in results})
    each = "one seed each" if seeds == 1 else f"of {seeds} seeds the median at each"
    return (
        f"Over {fewest.n} or more places, {each}. Intervals are the order-statistic ones of the"
        f" median over places (coverage {100 * fewest.coverage:.1f} %)."
    )


def warnings(results: list[dict], meta: dict[str, Any], failures: Sequence[str]) -> list[str]:
    """Return what a reader must know before believing a number."""
    found = []
    seeds: dict[tuple, set] = {}
    places = {tuple(sorted(result["axes"].items())) for result in results}
    drawn = len(places) > overplaces.FEW and all(result.get("drawn") for result in results)
    for result in results:
        place = tuple(sorted(result["axes"].items()))
        if drawn:  # a place is a draw like another seed
            seeds.setdefault((result["algorithm"],), set()).add((place, result["seed"]))
        else:
            seeds.setdefault((result["algorithm"], *place), set()).add(result["seed"])
    fewest = min(map(len, seeds.values()), default=0)
    if fewest < ENOUGH_SEEDS:
        found.append(f"Smoke test, not a result: {enough.count(fewest)}; {NEEDED}.")
    rtts = min(map(_rtts, results), default=math.inf)
    if rtts < ENOUGH_RTTS:
        found.append(
            f"Smoke test, not a result: a run lasts {rtts:.0f} round trips, {ENOUGH_RTTS} needed."
        )
    missing = meta.get("points", len(results)) - len(results)
    if missing > 0:
        failed = f", {_count(len(failures), 'failure')} below" if failures else ""
        found.append(f"{missing} of {meta['points']} points have no result{failed}.")
    if meta.get("git_dirty"):
        found.append("The working tree had changes that are in no commit.")
    return found


def _rtts(result: dict[str, Any]) -> float:
    """Return how many round trips a point lasted, by its longest path."""
    params = result["params"]
    path_ms = sum(link["delay_ms"] for link in params["links"].values())
    rtt_ms = max([path_ms, *(flow.get("min_rtt_ms") or 0 for flow in result["flows"])])
    return params["duration_s"] * 1000 / rtt_ms if rtt_ms else math.inf


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def claim_row(verdict: Verdict) -> dict[str, Any]:
    """Return what the claims tables show of one claim, both on the page and the terminal."""
    claim, value = verdict.claim, verdict.value
    shown = Metric("", "", 2 if claim.against else facts.metric(claim.metric).digits)
    median = facts.number(value.median, shown.digits) if value else "-"
    interval = facts.interval(value, shown) if value else ""
    return {
        "id": claim.id,
        "text": claim.text,
        "subject": verdict.subject,
        "paper": claim.paper,
        "median": median,
        "interval": interval,
        "measured": " ".join(filter(None, (median, interval, verdict.at))),
        "at": verdict.at,
        "bound": verdict.bound.replace(">=", "≥").replace("<=", "≤"),
        "verdict": verdict.verdict,
        "class": verdict.verdict.replace(" ", "-"),
        "mark": MARKS[verdict.verdict],
        "why": _why(verdict),
    }


def _why(verdict: Verdict) -> str:
    """Return how the interval lies to the claim's bounds, in words, and at which place."""
    return f"worst {verdict.at}: {_lies(verdict)}" if verdict.at else _lies(verdict)


def _lies(verdict: Verdict) -> str:
    if verdict.value is None:
        return "no such points in this run"
    if verdict.missing:
        planned = verdict.value.n + verdict.missing
        return (
            f"{verdict.missing} of {_count(planned, 'point')} have no figure: none may be left out"
        )
    one = verdict.value.n < 2
    subject = "the single run" if one else "the interval"
    if verdict.verdict == "holds":
        return f"{subject} lies within the bound"
    claim = verdict.claim
    if verdict.verdict == "does not hold":
        below = claim.at_least is not None and verdict.value.high < claim.at_least
        return f"{subject} lies {'below' if below else 'above'} the bound"
    return f"{subject} reaches across the bound: more seeds may decide"


def reproduce(meta: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (label, text) of what a reader needs to run this again; empty ones are left out."""
    seeds = meta.get("seeds", [])
    contiguous = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    commit = meta.get("git_commit", "")
    wall_s, cpus = meta.get("wall_s"), meta.get("host_cpus")
    entries = [
        ("Command", meta.get("command", "")),
        ("Commit", commit + (" and uncommitted changes" if meta.get("git_dirty") else "")),
        ("Backend", meta.get("backend", "")),
        ("Kernel", meta.get("kernel_release", "")),
        ("Kernel build", meta.get("kernel_build", "")),
        ("Seeds", f"{seeds[0]} to {seeds[-1]}" if contiguous else ", ".join(map(str, seeds))),
        ("Points", _points_text(meta)),
        ("Started", str(meta.get("started", ""))[:19].replace("T", " ") + " UTC"),
        ("Wall time", f"{wall_s:g} s on {cpus} CPUs" if wall_s is not None else "not finished"),
    ]
    if not meta.get("started"):
        entries = [entry for entry in entries if entry[0] not in ("Started", "Wall time")]
    return [(label, str(text)) for label, text in entries if str(text).strip()]


def modules(meta: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (name, version) of the modules that a run had: the user's, with where their source is,
    then ours."""
    sources = [one.get("source") for one in meta.get("user_modules", [])]
    brought = [
        (name, f"{version}, its source in {source}" if source else version)
        for (name, version), source in zip(user_modules(meta), sources, strict=True)
    ]
    return brought + sorted((meta.get("module_srcversions") or {}).items())


def _points_text(meta: dict[str, Any]) -> str:
    earlier = meta.get("points_of_earlier_runs")
    return f"{meta.get('points', '')}" + (f", {earlier} of them of earlier runs" if earlier else "")
