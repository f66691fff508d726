# SPDX-License-Identifier: GPL-2.0-only
"""What a run found, for people: report.html with its figures.

Every number is a median over seeds with its interval. What lost is shown beside what won.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from lab.ask.figures import HARM_FIGURES, JITTER_RATIOS, MEDIUM_FIGURES
from lab.ask.parts import Scenario
from lab.judge.claims import Verdict
from lab.judge.verdicts import HEAD as SCORE_HEAD
from lab.judge.verdicts import Score, scores
from lab.run.store import write_atomically
from lab.show import explorer, facts, overplaces, scatter
from lab.show.overtime import Figures, agents, over_time, ratios
from lab.show.tables import (
    HARM,
    HEADLINE,
    flow_table,
    harm_table,
    is_mixed,
    metric_table,
    worst_tables,
)
from lab.show.words import (
    claim_row,
    headline,
    interval_note,
    middle_place,
    modules,
    reproduce,
    tally,
    warnings,
)

TEMPLATES = Path(__file__).resolve().parent / "templates"
DETAILS = (
    "goodput_whole_mbps", "fair_share", "retransmits", "timeouts", "queue_delay_ms_p95",
    "srtt_ms_p50", "owd_ms_p95", "power_mbps_per_s", "loss_random", "loss_congestion",
    "ce_marks", "jain",
    "fct_s_p50", "fct_s_p95", "unfinished", *HARM_FIGURES, *JITTER_RATIOS, *MEDIUM_FIGURES,
)  # fmt: skip
WITH_FIGURE = ("fair_share", "retransmits", "timeouts", "queue_delay_ms_p95", "jain", "fct_s_p95")
SHARE_DELAY = "share-delay"


def write_report(
    scenario: Scenario,
    results: list[dict[str, Any]],
    store_folder: Path,
    meta: dict[str, Any],
    verdicts: Sequence[Verdict],
    failures: Sequence[str],
    copy: Path | None = None,
) -> Path:
    """Write report.html and plots/*.svg into STORE_FOLDER and return the report's path. COPY: where
    to write it instead, without links to the raw data."""
    figures = Figures(store_folder / "plots")
    names = _algorithms(scenario, results, meta)
    html = (
        templates()
        .get_template("report.html.j2")
        .render(
            scenario=scenario,
            headline=headline(scenario, results),
            tally=tally(verdicts),
            warnings=warnings(results, meta, failures),
            interval_note=interval_note(results, scenario),
            main_figure=figures.add_metric(scenario, results, HEADLINE),
            lines=any(len(axis.levels) > 1 for axis in scenario.axes),
            over_places=overplaces.applies(scenario),
            worst=worst_tables(scenario, results, facts.algorithms_in(scenario, results)),
            main_table=metric_table(scenario, results, HEADLINE, names),
            classification=_classification(scenario, results),
            together=is_mixed(results),
            kinds=_kinds(scenario, results, names, figures),
            details=_details(scenario, results, names, figures),
            claims=[claim_row(verdict) for verdict in verdicts],
            over_time=over_time(scenario, results, store_folder, figures),
            ratios=ratios(scenario, results, store_folder, figures),
            agents=agents(scenario, results, store_folder, figures),
            explorer=_explorer(scenario, results, store_folder, linked=copy is None),
            linked=copy is None,
            failures=list(failures),
            reproduce=reproduce(meta),
            tc=sorted(meta.get("tc_commands_of_first_point", {}).items()),
            modules=modules(meta),
            source=json.dumps(meta.get("source", scenario.source), indent=2, ensure_ascii=False),
        )
    )
    path = copy or store_folder / "report.html"
    write_atomically(path, html + "\n")
    return path


def templates() -> jinja2.Environment:
    """Return what pages are made of."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters["prose"] = _prose
    return environment


def _prose(text: str) -> Markup:
    """Return the TEXT of a scenario file, with what is in `backticks` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _algorithms(scenario: Scenario, results: list[dict], meta: dict[str, Any]) -> list[str]:
    """Return what was to be run, ours first, whether or not it has results."""
    found = facts.algorithms_in(scenario, results)
    planned = meta.get("algorithms", found)
    missing = [name for name in scenario.run.algorithms if name in planned and name not in found]
    return sorted([*found, *missing], key=lambda name: not facts.style(name).ours)


def _kinds(
    scenario: Scenario, results: list[dict], names: list[str], figures: Figures
) -> list[dict[str, Any]]:
    """Return the tables that say who has what, if there are several flows: one for each kind of
    them, and Jain's index."""
    tcp = [flow for flow in scenario.flows if not flow.is_udp]
    most = max((len(result["flows"]) for result in results), default=0)
    if len(tcp) < 2 and most < 2:
        return []
    kinds = [{"table": flow_table(scenario, results, f, names), "figure": None} for f in tcp]
    if _has_fairness(results):
        figure = figures.add_metric(scenario, results, "jain")
        kinds.append({"table": metric_table(scenario, results, "jain", names), "figure": figure})
    if harm := harm_table(scenario, results, names):
        kinds.append({"table": harm, "figure": None})
    return kinds


def _has_fairness(results: list[dict]) -> bool:
    several = any(sum(not flow["cross"] for flow in r["flows"]) > 1 for r in results)
    return several and any(result.get("jain") is not None for result in results)


def _details(
    scenario: Scenario, results: list[dict], names: list[str], figures: Figures
) -> list[dict[str, Any]]:
    """Return the further tables: one for each metric, some with a figure."""
    details = []
    with_figure = (*WITH_FIGURE, scatter.DELAY) if overplaces.applies(scenario) else WITH_FIGURE
    shown = [*_details_of(results), *overplaces.marked(scenario)]
    above = ("jain", HEADLINE, HARM)  # shown there
    shown = [name for name in dict.fromkeys(shown) if name not in above]
    for name in shown:
        if any(result.get(name) is not None for result in results):
            figure = figures.add_metric(scenario, results, name) if name in with_figure else None
            if name == scatter.DELAY and not overplaces.applies(scenario):
                svg = scatter.scatter_figure(scenario, results)
                figure = figures.add(SHARE_DELAY, scatter.CAPTION, svg)
            details.append(
                {"table": metric_table(scenario, results, name, names), "figure": figure}
            )
    return details


def _details_of(results: list[dict]) -> list[str]:
    """Return which further measures mean something here."""
    left_out = set() if _has_fairness(results) else {"jain"}
    if not any(result.get("ce_marks") for result in results):
        left_out.add("ce_marks")
    return [name for name in DETAILS if name not in left_out]


def shown_scores(scenario: Scenario, results: list[dict]) -> list[Score]:
    """Return the confusion matrices, of random places those over all of them."""
    found = scores(results)
    totals = [score for score in found if score.is_total]
    return totals if totals and overplaces.applies(scenario) else found


def _classification(scenario: Scenario, results: list[dict]) -> dict[str, Any] | None:
    """Return the confusion matrices, if the run has them."""
    found = shown_scores(scenario, results)
    return {"head": SCORE_HEAD, "scores": found} if found else None


def _explorer(
    scenario: Scenario, results: list[dict], folder: Path, linked: bool
) -> dict[str, Any] | None:
    """Return what the live figures are drawn from; nothing without results. LINKED: whether the
    raw data will lie beside the page."""
    if not results:
        return None
    metrics, middle = (HEADLINE, *_details_of(results)), middle_place(scenario)
    return explorer.data(scenario, results, folder, metrics, middle, linked)
