# SPDX-License-Identifier: GPL-2.0-only
"""What a run found, for people: report.html with its figures.

Every number is a median over seeds with its interval. What lost is shown beside what won.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from lab.ask.figures import JITTER_RATIOS, MEDIUM_FIGURES
from lab.ask.parts import Scenario
from lab.judge.claims import Verdict
from lab.judge.verdicts import HEAD as SCORE_HEAD
from lab.judge.verdicts import scores
from lab.run.store import write_atomically
from lab.show import explorer, plots, scatter
from lab.show.overtime import Figures, agents, over_time, ratios
from lab.show.tables import HEADLINE, flow_table, metric_table
from lab.show.words import (
    claim_row,
    headline,
    interval_note,
    middle_place,
    reproduce,
    tally,
    warnings,
)

TEMPLATES = Path(__file__).resolve().parent / "templates"
DETAILS = (
    "goodput_whole_mbps", "fair_share", "retransmits", "timeouts", "queue_delay_ms_p95",
    "srtt_ms_p50", "owd_ms_p95", "power_mbps_per_s", "loss_random", "loss_congestion",
    "ce_marks", "jain",
    "fct_s_p50", "fct_s_p95", "unfinished", *JITTER_RATIOS, *MEDIUM_FIGURES,
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
            main_table=metric_table(scenario, results, HEADLINE, names),
            classification=_classification(results),
            details=_details(scenario, results, names, figures),
            claims=[claim_row(verdict) for verdict in verdicts],
            over_time=over_time(scenario, results, store_folder, figures),
            ratios=ratios(scenario, results, store_folder, figures),
            agents=agents(scenario, results, store_folder, figures),
            explorer=_explorer(scenario, results, store_folder, linked=copy is None),
            failures=list(failures),
            reproduce=reproduce(meta),
            tc=sorted(meta.get("tc_commands_of_first_point", {}).items()),
            modules=sorted((meta.get("module_srcversions") or {}).items()),
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
    return environment


def _algorithms(scenario: Scenario, results: list[dict], meta: dict[str, Any]) -> list[str]:
    """Return what was to be run, ours first, whether or not it has results."""
    found = plots.algorithms_in(scenario, results)
    planned = meta.get("algorithms", found)
    missing = [name for name in scenario.run.algorithms if name in planned and name not in found]
    return sorted([*found, *missing], key=lambda name: not plots.style(name).ours)


def _details(
    scenario: Scenario, results: list[dict], names: list[str], figures: Figures
) -> list[dict[str, Any]]:
    """Return the further tables: per group of flows, then per metric, some with a figure."""
    details = []
    if sum(not flow.is_udp for flow in scenario.flows) > 1:
        for flow in [flow for flow in scenario.flows if not flow.is_udp]:
            details.append({"table": flow_table(scenario, results, flow, names), "figure": None})
    for name in _details_of(results):
        if any(result.get(name) is not None for result in results):
            figure = figures.add_metric(scenario, results, name) if name in WITH_FIGURE else None
            if name == scatter.DELAY:
                svg = scatter.scatter_figure(scenario, results)
                figure = figures.add(SHARE_DELAY, scatter.CAPTION, svg)
            details.append(
                {"table": metric_table(scenario, results, name, names), "figure": figure}
            )
    return details


def _details_of(results: list[dict]) -> list[str]:
    """Return which further measures mean something here."""
    several = any(sum(not flow["cross"] for flow in r["flows"]) > 1 for r in results)
    return [name for name in DETAILS if several or name != "jain"]


def _classification(results: list[dict]) -> dict[str, Any] | None:
    """Return the confusion matrices, if the run has them."""
    found = scores(results)
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
