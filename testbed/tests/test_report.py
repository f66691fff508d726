# SPDX-License-Identifier: GPL-2.0-only
"""The report says what the results say, whatever is missing, and says it the same every time."""

import io
import itertools
import json
import math
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from lab.ask.algorithms import ALGORITHMS
from lab.ask.figures import CLASSIFIED
from lab.ask.parts import Claim, Scenario
from lab.ask.points import bound_mbps, resolve
from lab.ask.scenario import parse
from lab.common.errors import BadInput
from lab.judge import claims, verdicts
from lab.judge.verdicts import scores
from lab.measure import ratios
from lab.show import (
    facts,
    overtime,
    plots,
    publish,
    rates,
    report,
    reports,
    terminal,
    timelines,
    words,
)
from lab.show.tables import metric_table

FLOWS_HEADER = (
    "time_s,flow,algorithm,ca_state,cwnd_pkts,ssthresh_pkts,srtt_ms,rttvar_ms,min_rtt_ms,rto_ms,"
    "inflight_pkts,lost_pkts,retransmits,timeouts,bytes_acked,delivery_rate_mbps,"
    "pacing_rate_mbps,cc_kind,cc_bw_mbps,cc_min_rtt_ms,cc_pacing_gain,cc_cwnd_gain,vegas_rtt_ms,"
    "vegas_minrtt_ms"
)
HOPS_HEADER = "time_s,hop,sent_pkts,sent_bytes,drops,backlog_pkts,backlog_bytes,overlimits,ce_marks"
LOSS_AXIS = {
    "sets": "links.wireless.loss_pct", "values": [0, 0.01, 0.1, 0.3, 1, 3, 10],
    "label": "random loss", "unit": "%", "scale": "log",
}  # fmt: skip
RATE_AXIS = {
    "sets": "links.bottleneck.rate_mbps", "values": [1.6, 10], "label": "rate", "unit": "Mb/s",
}  # fmt: skip
ALL = ["jtcp", "veno03", "tabe", "reno", "cubic", "veno", "westwood", "vegas", "illinois", "cdg",
       "bbr"]  # fmt: skip
CLAIM = {"metric": "goodput_mbps", "algorithm": "jtcp", "against": "reno"}


def make_scenario(axes: dict | None = None, **changes) -> Scenario:
    """Return a scenario of a 1.6 Mb/s path with AXES; CHANGES replace whole sections."""
    delay = {"delay_ms": 60}
    queue = {"rate_mbps": 1.6, "queue_pkts": 12}
    source = {
        "title": "One flow over a slow wireless hop with random loss",
        "paper": "TCP Veno (Fu, Liew, IEEE JSAC 21(2), 2003), single connection experiments",
        "description": "A 1.6 Mb/s bottleneck with room for 12 packets each way, 120 ms.",
        "topology": {"kind": "dumbbell", "offloads": False},
        "links": {
            "bottleneck": queue, "wireless": delay | {"loss_pct": 1.0},
            "reverse_wireless": delay, "reverse_bottleneck": queue,
        },
        "flows": [{"name": "tcp"}],
        "run": {"algorithms": ALL, "duration_s": 200, "warmup_s": 10, "seeds": 10},
        "axes": axes or {},
        "claims": [
            CLAIM | {"id": "more", "text": "More than Reno", "paper": "+80 %", "at_least": 1.01},
            CLAIM | {"id": "triple", "text": "Three times Reno", "at_least": 3},
            CLAIM | {"id": "near", "text": "As much as bbr", "against": "bbr", "at_least": 1.0,
                     "at_most": 1.001},
            CLAIM | {"id": "absent", "text": "Veno carries more", "algorithm": "veno",
                     "at_least": 1},
        ],
    }  # fmt: skip
    return parse("veno-single", source | changes)


def make_result(scenario: Scenario, axes: dict, algorithm: str, seed: int) -> dict:
    """Return a result as metrics.summarize() does, shaped after what real algorithms do."""
    at = resolve(scenario, axes)
    bound = bound_mbps(at)
    loss_pct = at.links["wireless"].loss_pct
    noise = random.Random(f"{algorithm} {seed} {axes}").gauss(1, 0.03)
    strength = {"bbr": 12, "jtcp": 8, "westwood": 2.6, "veno03": 2.2, "veno": 2.1, "tabe": 5}
    goodput = bound / (1 + loss_pct / strength.get(algorithm, 1.4)) * min(noise * 0.98, 1)
    flows = []
    for flow in scenario.flows:
        for i in range(flow.count):
            used = algorithm if flow.under_test else flow.algorithm
            name = flow.name if flow.count == 1 else f"{flow.name}{i + 1}"
            flows.append(
                {"name": name, "kind": flow.name, "under_test": flow.under_test,
                 "algorithm": used, "goodput_mbps": goodput, "min_rtt_ms": 128.0,
                 "start_s": 0.0, "stop_s": 200.0, "bytes_whole": 2000 * 9000,
                 "bytes_steady": goodput * 1e6 / 8 * 190,
                 "cross": flow.is_cross(at.topology)}
            )  # fmt: skip
    links = {
        hop: {
            "rate_mbps": link.rate_mbps, "delay_ms": link.delay_ms, "loss_pct": link.loss_pct,
            "queue_pkts": link.queue_pkts, "seed": seed,
        }
        for hop, link in at.links.items()
    }  # fmt: skip
    place = "-".join(v if isinstance(v, str) else f"{v:g}" for v in axes.values())
    return {
        "point": f"{algorithm}-{place}-{seed}", "scenario": scenario.id, "algorithm": algorithm,
        "seed": seed, "axes": axes, "bound_mbps": bound, "goodput_mbps": goodput,
        "goodput_whole_mbps": goodput * 0.99, "retransmits": int(200 * loss_pct * noise) + 7,
        "timeouts": int(4 * loss_pct), "jain": 0.99, "srtt_ms_p50": 150 * noise,
        "queue_delay_ms_p50": 20.0, "queue_delay_ms_p95": 60 * noise,
        "loss_random": int(190 * loss_pct), "loss_congestion": 40 - seed, "flows": flows,
        "params": {
            "topology": {"kind": "dumbbell", "hops": list(at.topology.hops), "offloads": False},
            "links": links, "duration_s": at.run.duration_s, "warmup_s": 10.0, "sample_ms": 100,
        },
    }  # fmt: skip


def make_results(scenario: Scenario, algorithms=tuple(ALL), seeds: int = 10) -> list[dict]:
    combos = itertools.product(*(axis.values for axis in scenario.axes))
    return [
        make_result(scenario, dict(zip([a.name for a in scenario.axes], values, strict=True)),
                    algorithm, seed)
        for values in combos for algorithm in algorithms for seed in range(1, seeds + 1)
    ]  # fmt: skip


def write_samples(folder: Path, result: dict) -> None:
    """Write a sawtooth with losses by both causes as the samples of RESULT."""
    random_loss = random.Random(result["point"])
    names = [(flow["name"], flow["algorithm"]) for flow in result["flows"]]
    cwnd = dict.fromkeys(names, 2.0)
    ssthresh = dict.fromkeys(names, 2147483647)
    dropped = {"bottleneck": 0, "wireless": 0}
    flows, hops = [FLOWS_HEADER], [HOPS_HEADER]
    for tick in range(1, 2001):
        time_s = tick / 10
        backlog = min(max(sum(cwnd.values()) - 16, 0), 12)
        for name in names:
            cwnd[name] += cwnd[name] / 2 if cwnd[name] < ssthresh[name] else 0.8
            lost = random_loss.random() < 0.02
            dropped["wireless"] += lost
            dropped["bottleneck"] += 2 * (backlog >= 12)
            if lost or backlog >= 12:
                ssthresh[name] = max(int(cwnd[name] * (0.8 if lost else 0.5)), 2)
                cwnd[name] = float(ssthresh[name])
            srtt = 125 + backlog * 7.5
            flows.append(
                f"{time_s:.3f},{name[0]},{name[1]},open,{int(cwnd[name])},{ssthresh[name]},"
                f"{srtt:.3f},4.000,121.000,320,{int(cwnd[name])},0,0,0,{tick * 9000},,,,,,,,,"
            )
        for hop, drops in dropped.items():
            waiting = int(backlog) if hop == "bottleneck" else 8
            hops.append(f"{time_s:.3f},{hop},{tick},{tick * 1514},{drops},{waiting},1000,0,0")
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    for kind, lines in (("flows", flows), ("hops", hops)):
        (folder / "samples" / f"{result['point']}.{kind}.csv").write_text("\n".join(lines) + "\n")


def make_meta(results: list[dict], **changes) -> dict:
    return {
        "command": "testbed/run veno-single --seeds 10", "git_commit": "0123abcd" * 5,
        "git_dirty": False, "backend": "virtual", "kernel_release": "7.3.0-lab",
        "kernel_build": "fdcc", "module_srcversions": {"tcp_jtcp": "ABC123"},
        "points": len(results), "algorithms": sorted({r["algorithm"] for r in results}),
        "seeds": sorted({r["seed"] for r in results}), "source": {"title": "as run"},
        "tc_commands_of_first_point": {"wireless": "tc qdisc add dev wireless netem seed 5"},
        "started": "2026-01-02T03:04:05+00:00", "wall_s": 61.25, "host_cpus": 8,
    } | changes  # fmt: skip


def write(scenario: Scenario, results: list[dict], folder: Path, failures=(), **meta) -> str:
    folder.mkdir(exist_ok=True)
    verdicts = claims.judge(scenario, results)
    path = report.write_report(
        scenario, results, folder, make_meta(results, **meta), verdicts, list(failures)
    )
    assert path == folder / "report.html"
    return path.read_text()


def printed(scenario: Scenario, results: list[dict], width: int = 100, **options) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, **options)
    terminal.print_table(scenario, results, claims.judge(scenario, results), console)
    return out.getvalue()


class Tags(HTMLParser):
    """Collects attributes, and fails on tags that do not nest."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def check_page(html: str) -> Tags:
    """Check that HTML nests, has unique ids and fetches nothing."""
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    ids = [value for _, name, value in tags.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for _, name, value in tags.attributes:
        if "://" in value:
            assert name.startswith("xmlns"), (name, value)
        if name in ("src", "href", "xlink:href"):
            assert value.startswith("#") and value[1:] in ids
    assert not re.search(r"@import|url\((?!#)", html)
    return tags


@pytest.fixture(scope="module")
def one_axis(tmp_path_factory) -> tuple[Scenario, list[dict], Path, str]:
    """Return a whole run over one axis: scenario, results, folder, page."""
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [0, 0.1, 1, 3, 10]}})
    results = make_results(scenario, ("jtcp", "veno03", "reno", "bbr"), seeds=7)
    folder = tmp_path_factory.mktemp("run")
    for result in results:
        if result["seed"] == 1 and result["axes"]["loss_pct"] == 1:
            write_samples(folder, result)
    return scenario, results, folder, write(scenario, results, folder)


def test_page_is_whole_and_self_contained(one_axis):
    _, _, folder, html = one_axis
    check_page(html)
    names = {path.stem for path in (folder / "plots").glob("*.svg")}
    assert {"goodput_mbps", "retransmits", "cwnd-jtcp", "cwnd-reno", "goodput-over-time"} <= names
    assert html.count("<svg ") == len(names)


def test_a_figure_in_the_page_says_each_style_once(one_axis):
    """And every mark still has its own."""
    styles = re.compile(r' style="([^"]*)"')
    for path in (one_axis[2] / "plots").glob("*.svg"):
        svg = re.sub(r" font-family: [^;\"]*", "", path.read_text())
        body = plots.inline(svg, path.stem, "a title")
        rules = re.findall(r"^\.(\S+) \{(.*)\}$", body, re.MULTILINE)
        given = styles.findall(body) + [text for _, text in rules]
        assert rules and len(given) == len(set(given))
        for name, text in rules:
            body = body.replace(f' class="{name}"', f' style="{text}"')
        assert styles.findall(body) == styles.findall(svg)


def test_page_has_medians_intervals_and_bounds(one_axis):
    scenario, results, _, html = one_axis
    for (algorithm, place), value in facts.estimates(scenario, results, "goodput_mbps").items():
        assert algorithm in html
        assert f'<span class="median">{value.median:.2f}</span>' in html, place
        assert f"[{value.low:.2f}, {value.high:.2f}]" in html
    for bound in facts.bounds(scenario, results).values():
        assert f"<td>{bound:.2f}</td>" in html


def test_page_has_claims_with_their_verdicts(one_axis):
    scenario, results, _, html = one_axis
    words = {v.claim.id: v.verdict for v in claims.judge(scenario, results)}
    assert words["triple"] == "does not hold" and words["absent"] == "not measured"
    for name, word in words.items():
        row = html[html.index(f'id="claim-{name}"') :].split("</tr>")[0]
        assert word in row
    assert "+80 %" in html


def test_best_is_marked_and_losers_stay(one_axis):
    scenario, results, _, html = one_axis
    table = metric_table(scenario, results, "goodput_mbps", ["jtcp", "veno03", "reno", "bbr"])
    assert [row.name for row in table.rows] == ["jtcp", "veno03", "reno", "bbr"]
    worst = {row.name: row.cells[-1].rank for row in table.rows}
    assert worst == {"jtcp": "", "veno03": "", "reno": "", "bbr": "best"}
    assert '<tr class="ours"><th scope="row">jtcp' in html


def test_what_looks_equal_is_not_ranked():
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno", "bbr"), seeds=6)
    for result in results:
        result["goodput_mbps"] = {"jtcp": 1.4301, "reno": 1.4302, "bbr": 1.2}[result["algorithm"]]
    table = metric_table(scenario, results, "goodput_mbps", ["jtcp", "reno", "bbr"])
    assert [row.cells[0].rank for row in table.rows] == ["best", "best", ""]


def test_how_to_run_it_again(one_axis):
    html = one_axis[3]
    for text in ("testbed/run veno-single --seeds 10", "7.3.0-lab", "tcp_jtcp ABC123",
                 "tc qdisc add dev wireless netem seed 5", "1 to 7", "61.25 s"):  # fmt: skip
        assert text in html


def test_same_input_same_bytes(one_axis, tmp_path):
    scenario, results, folder, html = one_axis
    (tmp_path / "samples").symlink_to(folder / "samples")
    assert write(scenario, results, tmp_path) == html
    for path in (folder / "plots").iterdir():
        assert (tmp_path / "plots" / path.name).read_bytes() == path.read_bytes()


def test_text_from_a_scenario_is_escaped(tmp_path):
    nasty = '<script>alert("x")</script> $\\frac{1}{$ & --> ]]>'
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"label": nasty}}, title=nasty, paper=nasty)
    results = make_results(scenario, ("jtcp", "reno"), seeds=2)
    html = write(scenario, results, tmp_path, [f"point {nasty}"], command=nasty)
    check_page(html)
    assert "<script>alert" not in html and "&lt;script&gt;" in html
    assert html.count("<script") == 2  # the page's own: its data, and what draws it


def test_what_stands_in_backticks_is_code(tmp_path):
    scenario = make_scenario(description="`--set place=17` runs `one` <again>.")
    html = write(scenario, make_results(scenario, ("jtcp", "reno"), seeds=2), tmp_path)
    check_page(html)
    assert "<code>--set place=17</code> runs <code>one</code> &lt;again&gt;." in html


def test_a_copy_that_is_sent_names_no_folder_and_links_to_no_file(one_axis, tmp_path):
    scenario, results, _, _ = one_axis
    folder = tmp_path / "run"
    (folder / "points").mkdir(parents=True)
    command = f"testbed/run veno-single --out {folder} --seeds 7"
    meta = make_meta(results, command=command, scenario=scenario.id, source=scenario.source)
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in results))
    assert '"kept":true' in reports._of_run(folder, None).read_text()
    html = reports._of_run(folder, tmp_path / "copy.html").read_text()
    assert str(folder) not in html and "testbed/run veno-single --seeds 7" in html
    assert '"kept":false' in html


def test_a_report_made_anew_has_the_failures_of_the_run(one_axis, tmp_path):
    """The copy without the folder that their logs are in."""
    scenario, results, _, _ = one_axis
    failed = "jtcp, loss_pct 3, seed 4: the kernel stopped"
    told = {"scenario": scenario.id, "source": scenario.source, "points": len(results) + 1}
    meta = make_meta(results, **told, failures=[f"{failed} (log: {tmp_path}/logs/a.log)"])
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in results))
    html = reports._of_run(tmp_path, None).read_text()
    assert f"<li>{failed} (log: " in html and "1 failure below" in html
    copy = reports._of_run(tmp_path, tmp_path / "copy.html").read_text()
    assert f"<li>{failed}</li>" in copy


def test_where_a_run_was_made_is_left_out_of_its_command():
    """What machines there are, and folders, but nothing that has to do with what came out."""
    words = (
        "testbed/run demo --scheduler tcp://h:1 --seeds 2 --out=/a --slurm 4 --out --resume"
        " --scheduler=x --resume --set rate=1"
    )
    left = publish.without_places(words.split())
    assert left == ["testbed/run", "demo", "--seeds", "2", "--set", "rate=1"]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_any_number_of_axes(count, tmp_path):
    axes = {"loss_pct": LOSS_AXIS, "rate": RATE_AXIS}
    scenario = make_scenario(dict(list(axes.items())[:count]))
    results = make_results(scenario, ("jtcp", "reno"), seeds=3)
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert ('colspan="7"' in html) == (count == 2)
    assert "goodput" in printed(scenario, results)


def test_missing_points_algorithms_and_samples(tmp_path):
    scenario = make_scenario({"loss_pct": LOSS_AXIS})
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)[1:]
    results = [r for r in results if r["axes"]["loss_pct"] != 3 or r["algorithm"] != "jtcp"]
    planned = len(results) + 8
    failure = "veno-single: jtcp, loss_pct 3, seed 1: hung (log: logs/x.log)"
    html = write(scenario, results, tmp_path, [failure], points=planned,
                 algorithms=["bbr", "jtcp", "reno"])  # fmt: skip
    check_page(html)
    assert failure in html
    assert f"8 of {planned} points have no result" in html
    assert '<th scope="row">bbr</th>' in html  # asked for, never measured: a row of its own
    assert "Over time" not in html
    assert "n=5" in html  # the cell that lost a seed


def test_no_results_at_all(tmp_path):
    scenario = make_scenario({"loss_pct": LOSS_AXIS})
    check_page(write(scenario, [], tmp_path, ["everything failed"], points=7))
    assert "not measured" in printed(scenario, [])


def test_half_empty_samples(tmp_path):
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno"), seeds=1)
    (tmp_path / "samples").mkdir()
    for result in results:
        rows = "" if result["algorithm"] == "reno" else "0.100,tcp,jtcp,open" + "," * 20 + "\n"
        path = tmp_path / "samples" / f"{result['point']}.flows.csv"
        path.write_text(FLOWS_HEADER + "\n" + rows)
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert "Window of jtcp" in html and "Window of reno" not in html


def test_several_flows_have_fairness_and_a_table_each(tmp_path):
    flows = [{"name": "tested", "count": 2}, {"name": "beside", "algorithm": "cubic"}]
    scenario = make_scenario(flows=flows)
    results = make_results(scenario, ("jtcp",), seeds=6)
    write_samples(tmp_path, results[0])
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert "Jain" in html and "“tested”" in html and "“beside” (cubic)" in html


def make_mixed(rates: tuple, axes: dict | None = None) -> tuple[Scenario, list[dict]]:
    """Return a run of two jtcp and a cubic that have RATES in Mb/s, and of seeds alike."""
    flows = [{"name": "tested", "count": 2}, {"name": "beside", "algorithm": "cubic"}]
    scenario = make_scenario(axes, flows=flows)
    results = make_results(scenario, ("jtcp",), seeds=6)
    for result in results:
        for flow, mbps in zip(result["flows"], rates, strict=True):
            flow |= {"goodput_mbps": mbps, "bytes_steady": mbps * 1e6 / 8 * 190}
        result |= {"goodput_mbps": sum(rates), "bound_mbps": 20.0, "jain": 0.654}
    return scenario, results


def section(html: str, head: str) -> str:
    return html[html.index(f"<h2>{head}") :].split("</section>")[0]


def test_what_all_carry_together_is_not_said_to_be_of_the_rows_algorithm(tmp_path):
    scenario, results = make_mixed((10.0, 2.5, 6.4))
    text = words.headline(scenario, results)
    assert text == (
        "All flows together carry 18.90 [18.90, 18.90] Mb/s (94 % of the bound):"
        " those of jtcp 12.50 [12.50, 12.50], the others 6.40 [6.40, 6.40]."
    )
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert "of all flows together" in section(html, "Goodput")
    assert "## Goodput of all flows together" in publish.page(
        scenario, results, make_meta(results), {}
    )
    alone = make_scenario()
    assert "together" not in write(alone, make_results(alone, ("jtcp",)), tmp_path / "alone")


def make_rivals(kept: float) -> tuple[Scenario, list[dict]]:
    """Return a run with harm, of jtcp beside which a cubic keeps so many Mb/s of the four that it
    has beside reno and its own kind; the sum is higher with jtcp."""
    flows = [{"name": "tested"}, {"name": "beside", "algorithm": "cubic"}]
    scenario = make_scenario(flows=flows)
    results = make_results(scenario, ("jtcp", "reno", "cubic"), seeds=6)
    for result in results:
        other = kept if result["algorithm"] == "jtcp" else 4.0
        for flow, mbps in zip(result["flows"], (8.4 - other, other), strict=True):
            mbps *= 1 + result["seed"] / 1000
            flow |= {"goodput_mbps": mbps, "bytes_steady": mbps * 1e6 / 8 * 190}
        result |= {"goodput_mbps": 8.4 if result["algorithm"] == "jtcp" else 8.2}
        result |= {"bound_mbps": 9.0, "harm_goodput": 1 - other / 4, "harm_timeouts": 0.25}
    return scenario, results


def test_the_headline_says_what_others_kept_of_what_they_have_beside_the_best():
    scenario, results = make_rivals(3.5)
    text = words.headline(scenario, results)
    assert "; the sum is 2 % above the best with one of the kernel's own, reno with 8.20" in text
    assert re.search(r", where the others have 4\.01 \[[^]]+\]: beside jtcp 12 % less\.$", text)
    assert words.headline(*make_rivals(4.0)).endswith(": beside jtcp as much, by the intervals.")
    assert words.headline(*make_rivals(4.2)).endswith(": beside jtcp 5 % more.")


def test_harm_is_shown_where_a_run_has_it(tmp_path):
    scenario, results = make_rivals(3.0)
    told = printed(scenario, results).split(terminal.HARM_NOTE)[1]
    assert re.search(r"^jtcp +0\.25 \[", told, re.M) and re.search(r"^cubic +\*?0\.00", told, re.M)
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert "Harm to the rivals&#39; goodput" in section(html, "Each kind of flow")
    measures = section(html, "Further measures")
    assert "Harm to the rivals&#39; timeouts" in measures and "rivals&#39; goodput" not in measures
    plain = make_mixed((10.0, 2.5, 6.4))
    assert terminal.HARM_NOTE not in printed(*plain)
    assert "Harm to" not in write(*plain, tmp_path / "plain")


def test_the_headline_goes_by_who_is_at_the_middle():
    """Others may be elsewhere only."""
    scenario, results = make_mixed((10.0, 2.5, 6.4), {"loss_pct": LOSS_AXIS | {"values": [1, 3]}})
    for result in results:
        if result["axes"]["loss_pct"] == 3:
            result["flows"].pop()
    text = words.headline(scenario, results)
    assert text.startswith("At random loss 3 %, jtcp carries 18.90")
    assert "others" not in text


def test_the_terminal_tells_the_flows_under_test_from_the_others():
    """A flow that lasts half the time counts half, so that both parts make up the whole."""
    scenario, results = make_mixed((10.0, 2.5, 6.4))
    for result in results:
        result["flows"][2]["bytes_steady"] /= 2
        result["goodput_mbps"] -= 3.2
    text = printed(scenario, results)
    before, after = text.split("of that, in Mb/s: the flows of the row's algorithm, and the others")
    assert "goodput of all flows together in Mb/s" in before and re.search("jtcp +15.70", before)
    rows = [line.rstrip() for line in after.splitlines()]
    for name, mbps in (("jtcp", "12.50"), ("  least of them", " 2.50"), ("  most of them", "10.00"),
                       ("  the others", " 3.20"), ("  Jain's index", "0.654")):  # fmt: skip
        assert any(re.match(rf"{name} +{mbps.strip()} \[", row) for row in rows), name
    assert "(cubic)" in after
    single = make_scenario()
    text = printed(single, make_results(single, ("jtcp", "reno")))
    assert "together" not in text and "least" not in text and "Jain" not in text


def test_one_of_several_flows_that_starves_is_seen(tmp_path):
    """Neither in a mean nor in a table that is folded away."""
    scenario = make_scenario(flows=[{"name": "tested", "count": 2}])
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    for result in results:
        for flow, mbps in zip(result["flows"], (13.99, 1.71), strict=True):
            flow |= {"goodput_mbps": mbps, "bytes_steady": mbps * 1e6 / 8 * 190}
    html = write(scenario, results, tmp_path)
    check_page(html)
    shown = section(html, "Each kind of flow")
    assert "<details" not in shown and "Jain" in shown and "0.990" in shown
    rows = re.findall(r'<th scope="row">([^<]+)</th><td><span class="median">([^<]+)<', shown)
    for name in ("jtcp", "reno"):
        assert [(name, "7.85"), (f"{name}, least", "1.71"), (f"{name}, most", "13.99")] == [
            row for row in rows if row[0].split(",")[0] == name
        ][:3]
    assert "Jain" not in section(html, "Further measures")
    text = printed(scenario, results)
    assert "all flows together" not in text and "the others" not in text
    assert all(part in text for part in ("least of them", "1.71", "13.99", "Jain's index"))


def test_kinds_of_flows_are_not_folded_away(tmp_path):
    scenario, results = make_mixed((10.0, 2.5, 6.4), {"loss_pct": LOSS_AXIS})
    html = write(scenario, results, tmp_path)
    check_page(html)
    shown = section(html, "Each kind of flow")
    assert "<details" not in shown and "“tested”" in shown and "“beside” (cubic)" in shown
    folded = section(html, "Further measures")
    assert "“tested”" not in folded and "“beside”" not in folded


def test_marks_that_nobody_got_have_no_table(tmp_path):
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno"), seeds=2)
    for result in results:
        result["ce_marks"] = 0
    assert "marked instead of dropped" not in write(scenario, results, tmp_path)
    results[0]["ce_marks"] = 3
    assert "marked instead of dropped" in write(scenario, results, tmp_path)


def test_the_headline_counts_what_is_level_as_the_table_does():
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [0, 0.1, 1, 3]}})
    results = make_results(scenario, ("jtcp", "reno", "bbr"), seeds=6)
    for result in results:
        level = result["axes"]["loss_pct"] == 0 and result["algorithm"] != "bbr"
        best = result["algorithm"] == "jtcp"
        result["goodput_mbps"] = 1.4301 if level else 1.3 + best * 0.1
    text = words.headline(scenario, results)
    assert text.endswith(" The best median is one of ours alone in 3 of 4 conditions, level in 1.")


def test_cross_traffic_has_a_table_and_no_fairness(tmp_path):
    flows = [
        {"name": "tested"},
        {"name": "on-a-hop", "algorithm": "cubic", "last_hop": "bottleneck"},
    ]
    scenario = make_scenario(flows=flows)
    results = make_results(scenario, ("jtcp",), seeds=6)
    html = write(scenario, results, tmp_path)
    assert "Jain" not in html and "“on-a-hop” (cubic)" in html
    page = publish.page(scenario, results, make_meta(results), {})
    assert "“on-a-hop” (cubic)" in page and "“tested”" not in page


def test_a_page_begins_with_a_figure_of_what_its_first_claim_asks(tmp_path):
    scenario = make_scenario()
    results = [{**result, "fair_share": 1.1} for result in make_results(scenario, ("jtcp",))]
    (tmp_path / "plots").mkdir()
    assert publish.asked_first(scenario, tmp_path) == "goodput_mbps"
    (tmp_path / "plots/fair_share.svg").touch()
    asked = replace(scenario, claims=(Claim("c", "c", "fair_share", "jtcp", at_least=0.8),))
    first = publish.asked_first(asked, tmp_path)
    page = publish.page(scenario, results, make_meta(results), {}, first)
    shown = "Goodput of a flow of the row's algorithm over a fair share"
    assert f"![{shown}](./{scenario.id}.svg)" in page and f"## {shown}" in page


def test_a_run_that_was_resumed_does_not_say_how_long_it_took(tmp_path):
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp",), seeds=6)
    assert "6 points in 61 s" in publish.page(scenario, results, make_meta(results), {})
    resumed = {"points_of_earlier_runs": 4}
    assert "6 points. " in publish.page(scenario, results, make_meta(results, **resumed), {})
    assert "6, 4 of them of earlier runs" in write(scenario, results, tmp_path, **resumed)


def test_a_page_of_a_scenario_of_ones_own_has_it():
    """Nobody else has the file that its command names."""
    scenario = replace(make_scenario(), id="of-mine")
    results = make_results(scenario)
    page = publish.page(scenario, results, make_meta(results), {})
    source = page.split("```json\n")[1].split("\n```")[0]
    assert json.loads(source) == scenario.source
    ours = publish.page(replace(scenario, id="demo"), results, make_meta(results), {})
    assert "```json" not in ours


def test_a_published_page_says_what_to_know_before_believing_it():
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp",), seeds=6)
    assert "\n> " not in publish.page(scenario, results, make_meta(results), {})
    few = [result for result in results if result["seed"] < 3]
    page = publish.page(scenario, few, make_meta(results, git_dirty=True), {})
    assert re.findall("^> (.*)", page, re.M) == [
        "Smoke test, not a result: 2 seeds; 5 make a result, 6 a 95 % interval.",
        "4 of 6 points have no result.",
        "The working tree had changes that are in no commit.",
    ]


def test_a_run_with_points_that_failed_is_not_published(tmp_path):
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp",), seeds=6)
    meta = make_meta(results, scenario=scenario.id, source=scenario.source)
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, results[:-2])))
    with pytest.raises(BadInput, match="2 of 6 points have no result"):
        publish.write(tmp_path, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


def test_a_run_of_ns3_is_refused_and_what_is_published_stays(tmp_path):
    """It has goodput and nothing else: no page can be made of it, nor a report."""
    scenario = make_scenario()
    labels = ("algorithm", "axes", "scenario", "seed", "goodput_mbps")
    results = [
        {key: result[key] for key in labels if key in result}
        for result in make_results(scenario, ("reno",), seeds=6)
    ]
    run, docs = tmp_path / "run", tmp_path / "docs"
    for folder in (run, docs):
        folder.mkdir()
    meta = make_meta(results, scenario=scenario.id, source=scenario.source, backend="ns-3")
    (run / "meta.json").write_text(json.dumps(meta))
    (run / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in results))
    figure = docs / f"{scenario.id}-{report.SHARE_DELAY}.svg"
    figure.write_text("published")
    for command in (
        lambda: publish.main(run, docs), lambda: reports.main(run),
        lambda: rates.main(run, tmp_path / "x.svg"), lambda: verdicts.main([run]),
    ):  # fmt: skip
        with pytest.raises(BadInput, match="is of `veno-lab ns3`"):
            command()
    assert [path.name for path in docs.iterdir()] == [figure.name]
    reports.main(tmp_path)  # it is listed among others
    assert "ns-3" in (tmp_path / "index.html").read_text()


def test_what_cannot_be_shown_leaves_the_published_page_whole(tmp_path, monkeypatch):
    """All of it is made before any of it is written."""
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    run, docs = tmp_path / "run", tmp_path / "docs"
    run.mkdir()
    (run / "meta.json").write_text(
        json.dumps(make_meta(results, scenario=scenario.id, source=scenario.source))
    )
    (run / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in results))
    with pytest.raises(BadInput, match=r"has no plots/goodput_mbps\.svg"):
        publish.main(run, docs)
    (run / "plots").mkdir()
    (run / "plots" / "goodput_mbps.svg").write_text("<svg/>")
    stale = docs / f"{scenario.id}-{overtime.RTT_OVER_TIME}.svg"
    docs.mkdir()
    stale.write_text("of a run before")
    publish.main(run, docs)
    assert not stale.exists() and (docs / f"{scenario.id}.svg").read_text() == "<svg/>"
    of_page = {path: path.read_text() for path in docs.iterdir()}
    monkeypatch.setattr(publish, "page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publish.main(run, docs)
    assert {path: path.read_text() for path in docs.iterdir()} == of_page


def test_classification_is_summed_over_seeds(tmp_path):
    """A row a place and one for all; nothing of algorithms that do not classify."""
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [1, 3]}})
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    assert "Loss classification" not in write(scenario, results, tmp_path / "without")
    for result in results:
        known = result["algorithm"] == "jtcp"
        counts = dict(zip(CLASSIFIED, (5, 1, 0, 2, 0, 1), strict=False))
        result |= counts if known else dict.fromkeys(CLASSIFIED)
    found = scores(results)
    assert [(s.algorithm, s.place, s.is_total) for s in found] == [
        ("jtcp", "loss_pct 1", False), ("jtcp", "loss_pct 3", False), ("jtcp", "all", True),
    ]  # fmt: skip
    assert found[2].texts == ["60", "12", "0", "24", "0", "12", "0.833", "1.000", "1.000", "0.667"]
    html = write(scenario, results, tmp_path / "with")
    check_page(html)
    section = html[html.index("Loss classification") :].split("</section>")[0]
    assert section.count("<tr") == 4
    assert all(f"<td>{text}</td>" in section for score in found for text in score.texts)


@pytest.mark.parametrize("smoothed", [0.0, 0.02])
def test_the_jitter_ratio_is_drawn_at_each_place(tmp_path, smoothed):
    """Zeros are counted, and there is no panel of a ratio that the module did not smooth."""
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [1, 3]}})
    results = make_results(scenario, ("jtcp", "reno"), seeds=2)
    assert "Jitter ratio" not in write(scenario, results, tmp_path)
    rows = [(i / 2, "tcp", "jtcp", 50, (0, 0.04, -0.3, 0.5)[i % 4], smoothed) for i in range(100)]
    for result in results:
        samples = pl.DataFrame(rows, schema=ratios.COLUMNS, orient="row")
        if result["algorithm"] == "reno":
            samples = samples.clear()
        (tmp_path / "samples").mkdir(exist_ok=True)
        samples.write_csv(tmp_path / "samples" / f"{result['point']}.ratios.csv")
    html = write(scenario, results, tmp_path)
    check_page(html)
    section = html[html.index("<h2>Jitter ratio") :].split("</section>")[0]
    assert section.count("<figure>") == 2 and section.count("0: 25 of 100 samples") == 2
    assert section.count(">smoothed Jr<") == (2 * 2 if smoothed else 0)  # its axis, its legend
    assert sorted(path.stem for path in (tmp_path / "plots").glob("ratio-*")) == [
        "ratio-jtcp-0", "ratio-jtcp-1",
    ]  # fmt: skip
    caption = publish.ratio_caption(scenario, "ratio-jtcp-1")
    assert caption == "Jitter ratio of jtcp over time, random loss 3 %"


def test_what_nodes_said_is_drawn(tmp_path):
    """Of four nodes the three busiest, and both flows' r_p; nobody else has such a figure."""
    scenario = make_scenario()
    results = make_results(scenario, ("wccp", "reno"), seeds=2)
    assert "What the nodes said" not in write(scenario, results, tmp_path)
    head = "time_s,node,busy_permille,threshold_permille,change_permille,bytes_per_s"
    rows = [f"{i / 5},n{n},{900 + n},950,{5 - n},40000" for i in range(100) for n in range(1, 5)]
    flows = "time_s,flow,algorithm,cc_bw_mbps,cwnd_pkts,ssthresh_pkts,srtt_ms,bytes_acked"
    sent = [f"{i / 5},{f},wccp,0.2,4,,100,{i * 1000}" for i in range(100) for f in ("a", "b")]
    (tmp_path / "samples").mkdir()
    for result in results[:1]:
        stem = tmp_path / "samples" / result["point"]
        Path(f"{stem}.agents.csv").write_text("\n".join([head, *rows, ""]))
        Path(f"{stem}.flows.csv").write_text("\n".join([flows, *sent, ""]))
    html = write(scenario, results, tmp_path)
    check_page(html)
    section = html[html.index("<h2>What the nodes said") :].split("</section>")[0]
    assert section.count("<figure>") == 1
    assert [f">n{n}<" in section for n in range(1, 5)] == [False, True, True, True]
    assert all(f">{flow}<" in section for flow in "ab")


def test_rtt_over_time_is_drawn_of_a_wireless_chain(tmp_path):
    """As WCCP's paper plots it, of all that is compared; of wires the links' delay says it."""
    chain = {"kind": "wireless-chain", "nodes": 3, "offloads": False}
    wireless = make_scenario(topology=chain, medium={"rate_mbps": 2}, links={})
    results = make_results(make_scenario(), ("jtcp", "reno"), seeds=2)
    for scenario, drawn in ((wireless, True), (make_scenario(), False)):
        folder = tmp_path / scenario.topology.kind
        for result in results:
            write_samples(folder, result)
        html = write(scenario, results, folder)
        check_page(html)
        caption = "RTT of the flows under test over time: jtcp, reno, seed 1"
        assert (caption in html) == drawn
        path = folder / "plots" / f"{overtime.RTT_OVER_TIME}.svg"
        assert path.is_file() == drawn
    svg = (tmp_path / "wireless-chain" / "plots" / f"{overtime.RTT_OVER_TIME}.svg").read_text()
    assert [svg.count(f">{name}<") for name in ("jtcp", "reno")] == [1, 1]
    folder = tmp_path / "wireless-chain"
    meta = make_meta(results, scenario=wireless.id, source=wireless.source)
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "results.jsonl").write_text("\n".join(map(json.dumps, results)))
    publish.main(folder, folder / "docs")
    name = f"{wireless.id}-{overtime.RTT_OVER_TIME}.svg"
    assert f"](./{name})" in (folder / "docs" / f"{wireless.id}.md").read_text()
    assert (folder / "docs" / name).read_text() == svg


def test_a_published_table_says_what_each_column_is():
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [1, 3]}, "rate": RATE_AXIS})
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    table = metric_table(scenario, results, "goodput_mbps", ["jtcp", "reno"])
    text = publish.markdown_table(table)
    assert [part.splitlines()[0] for part in text.split("\n\n")] == [
        "rate 1.6 Mb/s:", "| random loss (%) | 1 % | 3 % |",
        "rate 10 Mb/s:", "| random loss (%) | 1 % | 3 % |",
    ]  # fmt: skip
    assert all(cell.text in text for row in table.rows for cell in row.cells)


def test_few_seeds_or_short_runs_are_no_results(tmp_path):
    scenario = make_scenario()
    few = make_results(scenario, ("jtcp",), seeds=5)
    html = write(scenario, few, tmp_path)
    assert "Smoke test" not in html and "93.75 %, not 95 %" in html
    assert "Smoke test" in write(scenario, few[:4], tmp_path)
    told = "range] of 4 seeds: a smoke test, not a result (5 make a result, 6 a 95 % interval)"
    assert told in printed(scenario, few[:4], width=120)
    assert "no interval" in write(scenario, few[:1], tmp_path)
    for result in few:
        result["params"]["duration_s"] = 5.0
    assert "39 round trips" in write(scenario, few, tmp_path)


def test_headline_names_the_middle_and_who_leads():
    scenario = make_scenario({"loss_pct": LOSS_AXIS})
    results = make_results(scenario, ("jtcp", "reno", "bbr"))
    text = words.headline(scenario, results)
    assert text.startswith("At random loss 0.3 %, jtcp carries")
    assert re.search(r"one of ours in (\d|none) of 7 conditions", text)
    ours_only = words.headline(scenario, [r for r in results if r["algorithm"] == "jtcp"])
    assert "kernel" not in ours_only and "best" not in ours_only


@pytest.mark.parametrize("width", [60, 100, 120, 200])
def test_terminal_table_fits(width):
    scenario = make_scenario({"loss_pct": LOSS_AXIS})
    results = make_results(scenario)
    text = printed(scenario, results, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text and "\x1b" not in text
    assert sum(line.startswith("bound (1-p)C") for line in lines) >= 1
    for (algorithm, _), value in facts.estimates(scenario, results, "goodput_mbps").items():
        shown = f"{value.median:.2f} [{value.low:.2f}, {value.high:.2f}]"
        assert any(line.startswith(algorithm) and shown in line for line in lines)


def test_terminal_colours_only_on_a_terminal():
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    assert "\x1b[" in printed(scenario, results, force_terminal=True, color_system="standard")


def test_terminal_without_unicode():
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    scenario = make_scenario()
    results = make_results(scenario, ("jtcp", "reno"), seeds=6)
    verdicts = claims.judge(scenario, results)
    terminal.print_table(scenario, results, verdicts, Console(file=out, width=100))
    out.flush()
    assert b"holds" in out.buffer.getvalue() and b">= 1.01" in out.buffer.getvalue()


def test_figures_hold_no_code_of_the_plotting_library(tmp_path):
    """A logarithm's small ticks come as TeX, which nobody reads here."""
    scenario = make_scenario({"loss_pct": LOSS_AXIS | {"values": [1, 3]}})
    results = make_results(scenario, ("jtcp", "reno"))
    for result in results:
        result["goodput_mbps"] = 1.3 if result["axes"]["loss_pct"] == 1 else 0.06
    svg = plots.metric_figure(scenario, results, "goodput_mbps")
    assert (
        "\\math" not in svg
        and "$" not in svg
        and all(f">{mbps}<" in svg for mbps in (0.1, 0.2, 0.5, 1))
    )


def test_titles_that_do_not_fit_are_stacked():
    """Otherwise they run into each other."""
    long = "a label that takes its room over a panel"
    axes = {"loss_pct": LOSS_AXIS | {"values": [1, 3]}, "rate": RATE_AXIS,
            "queue": {"sets": "links.bottleneck.queue_pkts", "values": [12, 50]}}  # fmt: skip
    for label, wanted in (("rate", ">rate 10 Mb/s, queue 50<"), (long, f">{long} 10 Mb/s,<")):
        scenario = make_scenario(axes | {"rate": RATE_AXIS | {"label": label}})
        results = make_results(scenario, ("jtcp",), seeds=1)
        assert wanted in plots.metric_figure(scenario, results, "goodput_mbps")


def test_choices_whose_names_do_not_fit_side_by_side_are_rows():
    """And what a link can carry is one line over all of them, as a place may have another link."""
    names = [f"a place with a long name, {i}" for i in range(6)]
    rates = {name: {"bottleneck": {"rate_mbps": 1 + i}} for i, name in enumerate(names)}
    for shown, rows in ((names, True), (names[:3], False)):
        choices = {name: {"links": rates[name]} for name in shown}
        scenario = make_scenario({"place": {"choices": choices}})
        results = make_results(scenario, ("jtcp", "reno"))
        svg = plots.metric_figure(scenario, results, "goodput_mbps")
        assert all(f">{name}<" in svg for name in shown)
        assert (">Goodput over the bound (1-p)C<" in svg) is rows
        assert (">Goodput (Mb/s)<" in svg) is not rows


@pytest.mark.parametrize("value", [0.0, 0.5, -1.0])
def test_rows_of_choices_show_what_there_is(value, monkeypatch, recwarn):
    """The bound far from all, nothing but zeros, or less."""
    choices = {f"a place with a long name, {i}": {"links": {"bottleneck": {"rate_mbps": 9 + i}}}
               for i in range(6)}  # fmt: skip
    scenario = make_scenario({"place": {"choices": choices}})
    results = [{**result, "goodput_mbps": value} for result in make_results(scenario, ("jtcp",))]
    limits = []
    monkeypatch.setattr(plots, "to_svg", lambda figure: limits.append(figure.axes[0].get_xlim()))
    plots.metric_figure(scenario, results, "goodput_mbps")
    [(left, right)] = limits
    assert left <= value / 9 and right >= 1 and not recwarn


def test_zero_has_a_place_on_a_logarithmic_axis():
    axis = make_scenario({"loss_pct": LOSS_AXIS}).axes[0]
    x_of = plots._positions(axis)
    assert list(x_of) == sorted(axis.values)
    assert list(x_of.values()) == sorted(x_of.values())
    assert all(map(math.isfinite, x_of.values()))


def test_labels_are_spread_as_little_as_it_takes():
    assert plots._spread([0.2, 0.5], 0.1) == [0.2, 0.5]
    spread = plots._spread([0.5, 0.5, 0.5, 1.0, 1.0], 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(spread))
    assert spread[1] == pytest.approx(0.5) and max(spread) <= 1.0
    assert plots._spread([], 0.1) == []


def test_losses_are_counted_by_cause(tmp_path):
    scenario = make_scenario()
    result = make_result(scenario, {}, "jtcp", 1)
    write_samples(tmp_path, result)
    hops = timelines.read_samples(tmp_path / "samples" / f"{result['point']}.hops.csv")
    found = timelines.losses(hops, result["params"])
    for cause, hop in (("random", "wireless"), ("congestion", "bottleneck")):
        last = hops.filter(hops["hop"] == hop)["drops"].max()
        assert sum(count for _, count in found[cause]) == last > 0


def test_a_table_of_verdicts_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "results.jsonl").touch()
    monkeypatch.setattr(verdicts, "collect", lambda _: pl.DataFrame({"a": [1]}))
    with pytest.raises(BadInput, match=r"x\.csv: No such file"):
        verdicts.main([tmp_path], Path("/nowhere/x.csv"))


def test_rates_are_drawn_beside_their_losses(tmp_path):
    scenario = make_scenario()
    results = [
        make_result(scenario, {}, name, seed) for seed in (1, 2) for name in ("tfrc", "reno")
    ]
    write_samples(tmp_path, results[0])
    write_samples(tmp_path, results[1])
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(r) + "\n" for r in results))
    points = rates.points_of(tmp_path)
    assert [(result["algorithm"], result["seed"]) for result, *_ in points] == [
        ("tfrc", 1), ("reno", 1)]  # fmt: skip
    svg = rates.figure(points)
    assert svg == rates.figure(points)
    assert all(word in svg for word in ("goodput (Mb/s)", "lost"))
    with pytest.raises(BadInput, match=r"x\.svg: No such file"):
        rates.main(tmp_path, Path("/nowhere/x.svg"))
    for result, _, hops in points:
        lost = hops.group_by("hop").agg(pl.col("drops").max())["drops"].sum()
        assert lost > 0 and f">{result['algorithm']}: {int(lost)}<" in svg


def flow_of(name: str, start_s: float, stop_s: float, bytes_whole: float, **more) -> dict:
    return {"name": name, "under_test": True, "start_s": start_s, "stop_s": stop_s,
            "bytes_whole": bytes_whole} | more  # fmt: skip


def goodput(samples: list[tuple], flows: list[dict], duration_s: float, sample_ms: float = 200):
    result = {"flows": flows, "params": {"duration_s": duration_s, "sample_ms": sample_ms}}
    frame = pl.DataFrame(samples, schema=["time_s", "flow", "bytes_acked"], orient="row")
    return timelines.goodput(result, frame)


def test_goodput_over_time_is_what_was_acknowledged():
    """Of flows under test alone; a stall is nothing, and what a flow has at its end it keeps."""
    flows = [flow_of("a", 0, 24, 125_000 * 19), flow_of("b", 20, 22, 250_000),
             flow_of("cross", 0, 24, 24e6, under_test=False)]  # fmt: skip
    acked = {"a": lambda t: 125_000 * (t if t <= 10 else max(10, t - 5)),  # 1 Mb/s, 10-15 s none
             "b": lambda t: 125_000 * min(max(t - 20, 0), 2),  # 20-22 s
             "cross": lambda t: 1e6 * t}  # fmt: skip
    rows = [(i / 5, name, of(i / 5)) for i in range(1, 121) for name, of in acked.items()]
    edges, rates = goodput(rows, flows, 24)
    assert list(edges) == [*map(float, range(25))]
    expected = [1] * 10 + [0] * 5 + [1] * 5 + [2] * 2 + [1] * 2
    assert list(rates) == pytest.approx(expected)


@pytest.mark.parametrize("duration_s", [1, 7, 20.1, 24.5, 24.9, 300.5])
def test_goodput_over_time_has_every_byte(duration_s):
    """Also those between the last sample and the end, and of flows too short for any sample; an
    end off the grid makes no dent."""
    short = flow_of("short", 0.31, 0.35, 100_000)
    flows = [flow_of("a", 0, duration_s, 125_000 * duration_s), short]
    rows = [(i / 5, "a", 25_000 * i) for i in range(1, int(duration_s * 5) + 1)]
    rows += [(0.4, "short", 100_000)]
    edges, rates = goodput(rows, flows, duration_s)
    carried = sum(rates * (edges[1:] - edges[:-1])) / 8e-6
    assert carried == pytest.approx(125_000 * duration_s + 100_000)
    assert edges[-1] == duration_s and all(edges[1:] - edges[:-1] > 0.99)
    assert list(rates[1:]) == pytest.approx([1] * (len(rates) - 1))


def test_goodput_over_time_has_both_subflows(tmp_path):
    """Each has a megabit a second: the second one's bytes came all at the end."""
    path = tmp_path / "flows.csv"
    rows = [f"{i},{name},{125_000 * i}" for i in range(1, 30) for name in ("a", "a.2")]
    path.write_text("\n".join(["time_s,flow,bytes_acked", *rows]))
    result = {
        "params": {"duration_s": 30, "sample_ms": 1000}, "flows": [flow_of("a", 0, 30, 7_500_000)]
    }  # fmt: skip
    _, rates = timelines.goodput(result, timelines.read_samples(path))
    assert list(rates) == pytest.approx([2] * len(rates))


@pytest.mark.parametrize("duration_s", [0.3, 5, 30, 100, 300, 9000])
@pytest.mark.parametrize("sample_ms", [10, 100, 1000])
def test_bins_are_few_and_of_several_samples(duration_s, sample_ms):
    width_s = timelines.bin_s(duration_s, sample_ms)
    assert duration_s / width_s <= timelines.BINS
    assert width_s >= timelines.SAMPLES_A_BIN * sample_ms / 1000


def test_goodput_over_time_of_one_algorithm_is_drawn_everywhere(tmp_path):
    """Rows, columns and lines are the axes; a place without samples is left out."""
    axes = {
        "loss_pct": LOSS_AXIS | {"values": [1, 3]}, "rate": RATE_AXIS | {"values": [1, 2, 4]},
        "queue": {"sets": "links.bottleneck.queue_pkts", "values": [12, 50], "label": "queue"},
    }  # fmt: skip
    scenario = make_scenario(axes)
    results = make_results(scenario, ("jtcp",), seeds=2)
    for number, result in enumerate(results):
        write_samples(tmp_path, result)
        path = tmp_path / "samples" / f"{result['point']}.flows.csv"
        rows = pl.read_csv(path).with_columns(pl.col("bytes_acked") * (number + 1))
        rows.write_csv(path)
        result["flows"][0]["bytes_whole"] *= number + 1
    (tmp_path / "samples" / f"{results[0]['point']}.flows.csv").unlink()  # its second seed serves
    for result in results[2:4]:
        (tmp_path / "samples" / f"{result['point']}.flows.csv").unlink()
    found = overtime.goodput_over_time(scenario, results, tmp_path)
    assert found.caption == "Goodput of the flows under test over time: jtcp, seeds 1, 2"
    assert found.grid.rows == ["random loss 1 %", "random loss 3 %"]
    assert found.grid.columns == ["rate 1 Mb/s", "rate 2 Mb/s", "rate 4 Mb/s"]
    assert found.grid.labels == ["queue 12", "queue 50"]
    drawn = {
        (row, column, line.label): (round(line.goodput_mbps[5] / 0.72), line.look)
        for (row, column), lines in found.grid.panels.items()
        for line in lines
    }
    looks = [timelines.value_look(i, 2) for i in range(2)]
    assert looks[0] != looks[1]
    assert drawn == {
        (row, column, f"queue {(12, 50)[i]}"): (place * 2 + 1 + (place == 0), looks[i])
        for place, (row, column, i) in enumerate(itertools.product(range(2), range(3), range(2)))
        if place != 1
    }
    check_page(write(scenario, results, tmp_path))
    svg = (tmp_path / "plots" / f"{overtime.GOODPUT_OVER_TIME}.svg").read_text()
    assert svg.index(">queue 12<") < svg.index(">queue 50<") and svg.count('id="axes_') == 6


@pytest.mark.parametrize(
    ("axes", "algorithms", "shown"),
    [
        ({"loss_pct": LOSS_AXIS | {"values": [1, 3]}}, ("jtcp", "reno"),
         "jtcp, reno, random loss 3 %, seed 1"),
        ({"loss_pct": LOSS_AXIS}, ("jtcp",), "jtcp, random loss 0.3 %, seed 1"),  # too many lines
        ({}, ("jtcp",), "jtcp, seed 1"),
    ],
)  # fmt: skip
def test_goodput_over_time_of_a_comparison_is_drawn_in_the_middle(
    axes, algorithms, shown, tmp_path
):
    scenario = make_scenario(axes)
    results = make_results(scenario, algorithms, seeds=2)
    for result in results:
        write_samples(tmp_path, result)
    caption = f"Goodput of the flows under test over time: {shown}"
    html = write(scenario, results, tmp_path)
    check_page(html)
    assert caption in html
    svg = (tmp_path / "plots" / f"{overtime.GOODPUT_OVER_TIME}.svg").read_text()
    assert [svg.count(f">{name}<") for name in algorithms] == [1] * len(algorithms)
    meta = make_meta(results, scenario=scenario.id, source=scenario.source)
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, results)))
    publish.main(tmp_path, tmp_path / "docs")
    page = (tmp_path / "docs" / f"{scenario.id}.md").read_text()
    name = f"{scenario.id}-{overtime.GOODPUT_OVER_TIME}.svg"
    assert f"![{caption}](./{name})" in page and (tmp_path / "docs" / name).read_text() == svg


def test_an_algorithm_looks_the_same_everywhere():
    assert facts.style("jtcp") == facts.style("jtcp")
    assert facts.style("jtcp").ours and not facts.style("bbr").ours
    looks = {(s.colour, s.marker) for s in map(facts.style, ALL)}
    assert len(looks) == len(ALL)
    told_apart = {(s.marker, s.ours) for s in map(facts.style, ALGORITHMS)}
    assert len(told_apart) == len(ALGORITHMS)  # without colours, too
    assert facts.style("not-known-yet").colour.startswith("#")


def test_a_damaged_run_is_left_out_of_the_page_over_many(tmp_path, capsys):
    for name, meta in (("good", '{"started": "2026"}'), ("bad", "{"), ("unfinished", None)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_text("")
        if meta:
            (tmp_path / name / "meta.json").write_text(meta)
    assert reports.runs_below(tmp_path) == [tmp_path / "good"]
    told = capsys.readouterr().err
    assert told.startswith("report: left out: ") and "bad" in told and told.count("\n") == 1
