# SPDX-License-Identifier: GPL-2.0-only
"""Random places are shown as distributions, by what the scenario declares, and never one by one."""

import copy
import io

import pytest
from rich.console import Console
from test_places import source

from lab.ask import points, scenario
from lab.common.errors import BadInput
from lab.judge import claims
from lab.show import overplacesplot, publish, report, terminal, words
from lab.show.tables import metric_table, worst_tables

PLACES = 20
MARKS = [
    {"metric": "goodput_mbps", "against": "reno", "below": 0.8},
    {"metric": "retransmits", "above": 12},
]


def tree(**changes):
    """Return a scenario of PLACES random places that declares MARKS."""
    found = source(axes__place__random__count=PLACES, axes__place__random__marks=MARKS)
    found["run"]["algorithms"] = ["jtcp", "reno"]
    return found | changes


def results_of(loaded):
    """Return of each place what carries 1/20, 2/20, ... of the bound; jtcp 0.5 of that at the
    first five places, and as much at the others."""
    found = []
    for number in range(1, PLACES + 1):
        for name in ("jtcp", "reno"):
            share = number / PLACES * (0.5 if name == "jtcp" and number <= 5 else 1)
            flow = {
                "name": "tcp", "kind": "tcp", "under_test": True, "algorithm": name,
                "cross": False, "goodput_mbps": 10 * share, "min_rtt_ms": 90.0, "start_s": 0.0,
                "bytes_steady": 1000,
            }  # fmt: skip
            links = {"bottleneck": {"delay_ms": 0.0}, "wireless": {"delay_ms": 45.0}}
            found.append(
                {"algorithm": name, "axes": {"place": float(number)}, "seed": 1,
                 "point": f"{number}", "bound_mbps": 10.0, "goodput_mbps": 10 * share,
                 "retransmits": number, "timeouts": 0, "queue_delay_ms_p95": 1.0,
                 "flows": [flow], "udp": [], "jain": 1.0, "drawn": loaded.axes[0].drawn(number),
                 "params": {"links": links, "duration_s": 100.0, "warmup_s": 10.0}}
            )  # fmt: skip
    return found


META = {
    "command": "testbed/run test", "kernel_release": "6.12", "backend": "virtual", "wall_s": 1.0,
    "git_commit": "0123456789abcdef", "seeds": [1], "points": 2 * PLACES, "scenario": "test",
}  # fmt: skip


def test_a_table_has_quantiles_the_mean_and_the_marks_and_no_places():
    loaded = scenario.parse("test", tree())
    table = metric_table(loaded, results_of(loaded), "goodput_mbps", ["jtcp", "reno"])
    assert table.columns == [
        "5 %", "25 %", "median [interval]", "75 %", "95 %", "mean", "below 0.8 of reno", "places",
    ]  # fmt: skip
    jtcp, reno = ([cell.text for cell in row.cells] for row in table.rows)
    # of 0.025, 0.05, ... 0.125, 0.3, 0.35, ... 1: sixth smallest to sixth largest is 95.9 %
    assert jtcp == [
        "0.049", "0.256", "0.525 [0.300, 0.750]", "0.762", "0.953", "0.506", "5 (25 %)", "20",
    ]  # fmt: skip
    assert reno[2] == "0.525 [0.300, 0.750]" and reno[-2:] == ["-", "20"]
    retransmits = metric_table(loaded, results_of(loaded), "retransmits", ["jtcp"])
    assert retransmits.columns[-2] == "above 12"
    assert retransmits.rows[0].cells[-2].text == "8 (40 %)"


def test_bounds_of_claims_about_all_places_are_marks_as_well():
    claim = {"id": "a", "text": "half", "metric": "goodput_mbps", "algorithm": "jtcp"}
    claim |= {"against": "bound", "at_least": 0.5}
    pinned = claim | {"id": "b", "at_least": 0.9, "where": {"place": 1}}
    loaded = scenario.parse("test", tree(claims=[claim, pinned]))
    table = metric_table(loaded, results_of(loaded), "goodput_mbps", ["jtcp", "reno"])
    assert table.columns[6:8] == ["below 0.8 of reno", "below 0.5 of the bound"]
    assert [row.cells[7].text for row in table.rows] == ["9 (45 %)", "9 (45 %)"]


def test_the_worst_places_come_with_what_counts_of_what_was_drawn():
    loaded = scenario.parse("test", tree())
    jtcp, reno = worst_tables(loaded, results_of(loaded), ["jtcp", "reno"])
    assert [row.name for row in jtcp.rows] == ["1", "2", "3", "4", "5"]
    assert [cell.text for cell in jtcp.rows[1].cells[:2]] == ["0.050", "0.100"]
    for row in jtcp.rows:
        drawn = loaded.axes[0].drawn(int(row.name))
        told = row.cells[-1].text
        assert f"rate_mbps {drawn['rate_mbps']:g}" in told and f"rival {drawn['rival']}" in told
        assert ("loss_pct" in told) == (drawn["rival"] == "reno")  # it is set there alone
        assert "bdp_pkts" not in told  # follows from the others
    assert reno.columns == ["reno", "jtcp", "drawn"]


def test_flows_that_are_not_there_have_nothing_that_counts():
    """Of the rivals of random-paths nothing does where there are none."""
    places = scenario.load("random-paths", {}).axes[0].places
    for number in range(1, 20):
        drawn, counting = places.drawn(number), places.counting(number)
        rivals = {"rivals", "rival", "rival_start_s"}
        assert rivals & counting.keys() == (rivals if drawn["has_rivals"] else set())
        assert ("loss_pct" in counting) == bool(drawn["is_lossy"])
        assert {"rate_mbps", "rtt_ms", "queue_bdp", "own"} <= counting.keys()
        assert not {"is_lossy", "has_rivals"} & counting.keys()


def test_pages_reports_and_the_terminal_show_distributions(tmp_path):
    loaded = scenario.parse("test", tree())
    results = results_of(loaded)
    svg = overplacesplot.figure(loaded, results, "goodput_mbps")
    assert "Share of 20 places at or below" in svg and "jtcp" in svg
    page = publish.page(loaded, results, META, {})
    assert "| 5 % | 25 % | median [interval] |" in page
    assert "Where jtcp carries least of the bound" in page
    assert max(len(line.split("|")) for line in page.splitlines()) < 12  # no column a place
    path = report.write_report(
        loaded, results, tmp_path, META, claims.judge(loaded, results), failures=[]
    )
    html = path.read_text()
    assert html.count("below 0.8 of reno") == 1 and "worst-jtcp" in html
    assert html.count("above 12") == 1 and page.count("| above 12 |") == 1
    dropped = copy.deepcopy(loaded.source)
    dropped["axes"]["place"]["random"]["marks"] = [{"metric": "queue_drop_steady_pct", "above": 1}]
    for result in results:
        result["queue_drop_steady_pct"] = 2.0
    declared = scenario.parse("test", dropped)  # a figure that no page has of itself
    assert "| above 1 |" in publish.page(declared, results, META, {})
    write = report.write_report(declared, results, tmp_path, META, [], failures=[])
    assert "above 1<" in write.read_text()
    console = Console(width=120, file=io.StringIO())
    terminal.print_table(loaded, results, [], console)
    assert "how it is distributed over places" in console.file.getvalue()
    assert words.headline(loaded, results).startswith("Over 20 random places, of the bound are")
    assert not any("seed" in text for text in words.warnings(results, META, []))


def test_a_few_places_are_shown_one_by_one():
    """Who runs three of them again wants to see these."""
    few = tree()
    few["axes"]["place"]["values"] = [2, 5, 9]
    loaded = scenario.parse("test", few)
    results = [r for r in results_of(loaded) if r["axes"]["place"] in (2.0, 5.0, 9.0)]
    table = metric_table(loaded, results, "goodput_mbps", ["jtcp", "reno"])
    assert table.columns == ["2", "5", "9"] and not worst_tables(loaded, results, ["jtcp"])


def test_a_further_axis_gives_groups():
    more = tree()
    more["axes"]["delay"] = {"sets": "links.wireless.delay_ms", "values": [10, 20], "unit": "ms"}
    loaded = scenario.parse("test", more)
    results = []
    for result in results_of(loaded):
        for delay_ms in (10.0, 20.0):
            results.append(copy.deepcopy(result))
            results[-1]["axes"]["delay"] = delay_ms
            results[-1]["goodput_mbps"] /= delay_ms / 10
    table = metric_table(loaded, results, "goodput_mbps", ["reno"])
    assert table.groups == [("delay 10 ms", 8), ("delay 20 ms", 8)] and len(table.columns) == 16
    (row,) = table.rows
    assert (row.cells[2].median, row.cells[10].median) == ("0.525", "0.263")
    assert "delay 20 ms" in overplacesplot.figure(loaded, results, "goodput_mbps")


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ({"metric": "goodput", "below": 1}, "did you mean 'goodput_mbps'"),
        ({"metric": "jain"}, "give either below or above"),
        ({"metric": "jain", "below": 1, "above": 0}, "give either below or above"),
        ({"metric": "jain", "below": 1, "against": "rino"}, "did you mean 'reno'"),
        ({"metric": "jain", "bellow": 1}, "did you mean 'below'"),
    ],
)
def test_marks_that_mean_nothing_are_refused(mark, told):
    wrong = tree()
    wrong["axes"]["place"]["random"]["marks"] = [mark]
    with pytest.raises(BadInput, match=told):
        scenario.parse("test", wrong)


def test_marks_change_no_point():
    with_marks, without = tree(), tree()
    del without["axes"]["place"]["random"]["marks"]
    one, other = (
        points.expand(scenario.parse("test", of), ("reno",), [1], lambda *_: "")
        for of in (with_marks, without)
    )
    assert [point.id for point in one] == [point.id for point in other]


def test_the_headline_says_what_the_others_have_where_there_are_some():
    """At every second place a rival has a tenth of what can be carried."""
    loaded = scenario.parse("test", tree())
    results = results_of(loaded)
    for result in results:
        if result["axes"]["place"] % 2:
            bytes_steady = 0.1 * result["bound_mbps"] * 90 * 1e6 / 8
            other = {"under_test": False, "kind": "rival", "bytes_steady": bytes_steady}
            result["flows"].append(result["flows"][0] | other)
    text = words.headline(loaded, results)
    assert text.startswith("Over 20 random places, with all flows beside it, of the bound")
    assert text.count("(the others 0.100, where there are some)") == 2
    assert "the others" not in words.headline(loaded, results_of(loaded))
