# SPDX-License-Identifier: GPL-2.0-only
"""The scorecard: its rows are good scenarios, verdicts follow from their bounds, the page says what
is missing, veno_jitter passes the gate, and a module that never backs off does not."""

import json
import re
import shlex
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import run_command
from test_runner import Recorder

from lab.common.errors import BadInput, LabError
from lab.judge.scorecard import judge, rows
from lab.judge.scorecard.figures import FIGURES
from lab.judge.scorecard.judge import BETTER, FAILS, NONE, WITHIN, WORSE, Gap, RowVerdict
from lab.judge.scorecard.rows import Choice, Figure
from lab.run import ended
from lab.run.build import PROJECT
from lab.run.usermodules import Refused
from lab.show import publish
from lab.show.scorecard import cli, page

LESS = Figure("dropped_pct", fails_above=5, breaks="too much", floor=0.5)
MORE = Figure("goodput_mbps", better="more")
HEAD = """
section = "5.9"
title = "t"
asks = "a"
[[rows]]
id = "r"
title = "r"
"""
SECTION = (
    HEAD
    + """
[rows.scenario.axes.loss]
sets = "links.wireless.loss_pct"
values = [0, 1]
[[rows.figures]]
metric = "dropped_pct"
fails_above = 5
breaks = "drops too much"
[[rows.figures]]
metric = "goodput_mbps"
better = "more"
"""
)


def test_every_row_is_a_good_scenario():
    sections = rows.load(Choice())
    ids = [row.id for section in sections for row in section.rows]
    assert len(set(ids)) == len(ids) > 25
    numbers = [section.number for section in sections]
    assert {"5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.2.1", "6.1", "7.1"} <= {*numbers}
    assert numbers.index("7.8") < numbers.index("7.11")
    assert all(section.rows or section.not_measured for section in sections)
    quick = [row.id for section in rows.load(Choice(quick=True)) for row in section.rows]
    assert {*quick} < {*ids} and len(quick) > 10
    assert {row for of in rows.known_failures().values() for row in of} <= {*ids}


def test_rows_are_chosen_by_section_and_by_name():
    chosen = rows.load(Choice(rows=("5.1.3", "call")))
    assert [section.number for section in chosen] == ["5.1.3", "5.2.2"]
    assert [row.id for row in chosen[1].rows] == ["call"]
    with pytest.raises(BadInput, match="did you mean 'shallow-queue'"):
        rows.load(Choice(rows=("shalow-queue",)))
    (section,) = rows.load(Choice(rows=("random-paths",), paths=7, path_seed=9))
    (axis,) = section.rows[0].scenario.axes
    assert (axis.places.count, axis.places.seed, len(axis.values)) == (7, 9, 7)


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ('breaks = "drops too much"', "", "needs words"),
        ('metric = "dropped_pct"', 'metric = "droped_pct"', "did you mean 'dropped_pct'"),
        ('better = "more"', 'better = "moer"', "did you mean 'more'"),
        ('id = "r"', "", "'id' is missing"),
        ('metric = "dropped_pct"', "", "'metric' is missing"),
        ('id = "r"', 'id = "r"\nqiuck = {}', "did you mean 'quick'"),
        ("values = [0, 1]", "values = [0, 101]", "at most 100 %"),
        ("links.wireless.loss_pct", "links.wirless.loss_pct", "wireless"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(tmp_path, was, becomes, told):
    for name in (rows.BASE, rows.KNOWN):
        (tmp_path / name).write_text((rows.FOLDER / name).read_text())
    assert was in SECTION
    (tmp_path / "5.9.toml").write_text(SECTION.replace(was, becomes))
    with pytest.raises(BadInput) as refused:
        rows.load(Choice(), tmp_path)
    assert told in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("figure", "value", "others", "verdict"),
    [
        (LESS, 5.1, [9, 9], FAILS),  # whoever else does, too
        (LESS, 5.0, [1, 2], WORSE),
        (LESS, 2.4, [1, 2], WITHIN),  # within the floor
        (LESS, 0.6, [1, 2], WITHIN),
        (LESS, 0.4, [1, 2], BETTER),
        (LESS, 3.0, [], WITHIN),  # nobody to compare with
        (MORE, 8.9, [10, 20], WORSE),
        (MORE, 9.1, [10, 20], WITHIN),
        (MORE, 22.1, [10, 20], BETTER),
        (replace(LESS, fails_times=3), 8, [3, 1], WORSE),  # above the bound, as others are
        (replace(LESS, fails_times=3), 9.1, [3, 1], FAILS),
        (replace(LESS, compared=False), 4, [1, 2], WITHIN),
    ],
)
def test_a_verdict_follows_from_bound_and_references(figure, value, others, verdict):
    assert judge.compare(figure, value, others, others) == verdict


def card(tmp_path, values: dict[str, list[float]], failed: str = "", section: str = SECTION):
    """Judge SECTION. VALUES: algorithm -> dropped_pct at its places; FAILED: who has no result at
    the last place, and why."""
    for name in (rows.BASE, rows.KNOWN):
        (tmp_path / name).write_text((rows.FOLDER / name).read_text())
    (tmp_path / "5.9.toml").write_text(section)
    sections = rows.load(Choice(), tmp_path)
    results = [
        {
            "scenario": "r", "algorithm": name, "seed": 1, "axes": {"loss": place},
            "queue_drop_pct": of[place], "goodput_mbps": 1.0, "flows": [],
        }
        for name, of in values.items()
        for place in range(2)
        if not (name == failed and place)
    ]  # fmt: skip
    return judge.judge(sections, list(values), results, [1], stopped)


def stopped(_row, _algorithm, place):
    return Gap(place, "the lab kernel stopped")


def test_a_row_fails_where_one_place_does_and_says_where(tmp_path):
    names = {"mine": [1.0, 9.0], "reno": [1.0, 1.0], "cubic": [1.0, 1.0], "bbr": [1.0, 9.5]}
    judged = card(tmp_path, names)
    assert [judged.totals["5.9", name] for name in names] == [FAILS, WITHIN, WITHIN, FAILS]
    (verdict,) = judged.failing("mine")
    (sentence,) = page.sentences(verdict)
    assert sentence.startswith("drops too much (share of packets that queues dropped 9.00 % at ")
    assert sentence.endswith("; 1 of 2 places)")
    (worst,) = verdict.worst()
    given = cli._given(["./my_cc.c"], "virtual", "", None)
    again = page.command(verdict.row, "mine", worst, Choice(quick=True), given)
    assert again == (
        "testbed/run scorecard --algorithms mine --rows r --module ./my_cc.c --quick --set loss=1"
    )
    choice = Choice(overrides=(("loss", "0,1"), ("run.duration_s", "30")))
    given = cli._given([], "vm", "6.1", 6)
    assert page.command(verdict.row, "mine", worst, choice, given) == (
        "testbed/run scorecard --algorithms mine --rows r --backend vm --kernel 6.1 --seeds 6"
        " --set run.duration_s=30 --set loss=1"
    )


def test_a_bound_that_is_the_standards_own_is_none_for_them(tmp_path):
    times = SECTION.replace("fails_above = 5", "fails_above = 5\nfails_times = 3")
    values = {"mine": [1.0, 31.0], "reno": [1.0, 10.0], "cubic": [1.0, 1.0], "bbr": [1.0, 1.0]}
    judged = card(tmp_path, values, section=times)
    assert [judged.totals["5.9", name] for name in values] == [FAILS, WORSE, WITHIN, WITHIN]


@pytest.mark.parametrize("lost", ["reno", "cubic"])
@pytest.mark.parametrize(("mine", "times", "verdict"), [
    (6.0, "", FAILS), (6.0, "fails_times = 3", NONE), (1.0, "fails_times = 3", NONE),
])  # fmt: skip
def test_without_the_standards_nothing_is_so_many_times_theirs(
    tmp_path, lost, mine, times, verdict
):
    """Their point at the last place failed: what is just above the bound there may be as theirs. A
    bound without them is one, whoever else has a result."""
    section = SECTION.replace("fails_above = 5", f"fails_above = 5\n{times}")
    values = {"mine": [1.0, mine], "reno": [1.0, 4.0], "cubic": [1.0, 4.0], "bbr": [1.0, 1.0]}
    judged = card(tmp_path, values, failed=lost, section=section)
    of = judged.rows["r", "mine"]
    assert of.verdict == verdict
    assert [gap.why for gap in of.missing] == [f"not all seeds of {lost} to be held against"]
    assert judged.rows["r", lost].verdict == NONE


def test_what_has_no_result_is_never_counted_as_passed(tmp_path):
    names = {"mine": [0.1, 0.1], "reno": [1.0, 1.0], "cubic": [1.0, 1.0], "bbr": [1.0, 1.0]}
    assert card(tmp_path, names).totals["5.9", "mine"] == BETTER
    judged = card(tmp_path, names, failed="mine")
    assert judged.totals["5.9", "mine"] == NONE
    meta = {"judged": ["mine"], "seeds": [1], "points": 8, "git_commit": "x", "command": "c"}
    page.write(
        judged, judged.sections, Choice(), meta, [("mine, seed 1", "panic <here>")], [], tmp_path
    )
    html = (tmp_path / page.HTML).read_text()
    assert "cannot be done" in html and "the lab kernel stopped" in html
    assert "panic &lt;here&gt;" in html and "src=" not in html and 'href="http' not in html
    assert "| 5.9 t | cannot be done | within |" in (tmp_path / page.MARKDOWN).read_text()


def test_a_row_that_this_kernel_can_do_with_nobody_is_left_out_and_said(tmp_path):
    """But one that failed with this algorithm is not."""
    (row,) = card(tmp_path, {"mine": [1.0, 1.0]}).sections[0].rows
    at = judge.places(row.scenario)
    passed = RowVerdict(row, "mine", WITHIN)
    lacking = RowVerdict(row, "mine", NONE, (), tuple(Gap(p, "no sch_x", True) for p in at))
    failed = RowVerdict(row, "mine", NONE, (), (Gap(at[0], "no sch_x", True), Gap(at[1], "panic")))
    assert judge.together([passed, lacking]) == WITHIN
    assert judge.together([passed, failed]) == judge.together([lacking]) == NONE


RIVALS = (
    HEAD
    + """
[[rows.figures]]
metric = "harm_pct"
fails_above = 90
breaks = "starves"
[[rows.figures]]
metric = "goodput_mbps"
better = "more"
"""
)


def contested(tmp_path, harms: dict[str, list[float | None]]) -> judge.Card:
    """Judge RIVALS. HARMS: algorithm -> harm_goodput in its seeds, of which there are two."""
    for name in (rows.BASE, rows.KNOWN):
        (tmp_path / name).write_text((rows.FOLDER / name).read_text())
    (tmp_path / "5.9.toml").write_text(RIVALS)
    results = [
        {
            "scenario": "r", "algorithm": name, "seed": seed, "axes": {}, "goodput_mbps": 1.0,
            "harm_goodput": harm, "flows": [{"kind": "rival"}],
        }
        for name, of in harms.items()
        for seed, harm in enumerate(of, 1)
    ]  # fmt: skip
    return judge.judge(rows.load(Choice(), tmp_path), list(harms), results, [1, 2], stopped)


@pytest.mark.parametrize(
    ("mine", "others", "verdict", "why"),
    [
        ([0.1, 0.1], [0.1, 0.1], WITHIN, ""),
        ([0.1], [0.1, 0.1], NONE, "1 of 2 seeds: the lab kernel stopped"),  # of those that failed
        ([None, None], [0.1, 0.1], NONE, "not measured in all seeds: harm to the rivals' goodput"),
        ([0.1, None], [0.1, 0.1], NONE, "not measured in all seeds: harm to the rivals' goodput"),
        # the points beside their own kind failed, so nobody's harm is known
        (
            [None, None],
            [None, None],
            NONE,
            "not measured in all seeds: harm to the rivals' goodput",
        ),
        ([0.95, None], [0.1, 0.1], FAILS, "not measured in all seeds: harm to the rivals' goodput"),
    ],
)
def test_what_is_not_known_whole_is_never_counted_as_passed(tmp_path, mine, others, verdict, why):
    judged = contested(tmp_path, {"mine": mine, "reno": others, "cubic": others, "bbr": others})
    of = judged.rows["r", "mine"]
    assert of.verdict == verdict and [gap.why for gap in of.missing] == [why] * bool(why)


def test_a_gate_is_shut_where_a_row_has_no_result_that_the_kernel_can_do(tmp_path, capsys):
    judged = contested(tmp_path, {"mine": [None, None]})
    run = cli._Run(Choice(), judged.sections, None, tmp_path, 1)
    run.judged = ["mine"]
    assert not run._passes(judged)
    assert "mine cannot be judged in r: not measured in all seeds" in capsys.readouterr().err
    (row,) = judged.sections[0].rows
    lacking = Gap(judge.places(row.scenario)[0], "no sch_x here", lacking=True)
    judged.rows["r", "mine"] = RowVerdict(row, "mine", NONE, (), (lacking,))
    assert run._passes(judged)
    assert "mine cannot be judged in r: no sch_x here" in capsys.readouterr().err


class WithoutMedium(Recorder):
    """A backend that runs nothing, on a machine that cannot have labmedium."""

    side_by_side = True

    @property
    def build(self):
        return SimpleNamespace(key=self.key, user=())

    def key(self, _algorithms, wireless, _lablinks):
        if wireless:
            raise LabError("no ns-3 here\napt said so")
        return ""

    def link_complaint(self, *_):
        return ""

    def check(self, _points):
        pass


def test_what_a_row_alone_needs_and_cannot_have_stops_no_other(tmp_path, monkeypatch):
    def summarize(point, _raw):
        return point.labels() | {"flows": [], "queue_drop_pct": 1.0, "goodput_mbps": 1.0}

    monkeypatch.setattr(ended, "summarize", summarize)
    choice = Choice(rows=("hops", "shallow-slow"))
    run = cli._Run(choice, rows.load(choice), WithoutMedium(), tmp_path, 1)
    run.prepare(("vegas",), [])
    assert run.go([1], gate=False) == 0
    text = (tmp_path / page.MARKDOWN).read_text()
    assert "| 6.4 Wireless paths | cannot be done (1 not here) | cannot be done" in text
    assert "| 5.1.3 Protection against high packet loss | within | within |" in text
    html = (tmp_path / page.HTML).read_text()
    assert "vegas, reno, cubic, bbr: no ns-3 here" in html and "apt said so" not in html
    assert "- vegas, reno, cubic, bbr: no ns-3 here" in text
    assert "> This kernel cannot do hops." in text and "places have no result" not in text


def test_rows_that_this_kernel_cannot_do_at_all_are_refused(tmp_path):
    choice = Choice(rows=("hops",))
    run = cli._Run(choice, rows.load(choice), WithoutMedium(), tmp_path / "out", 1)
    run.prepare(("vegas",), [])
    with pytest.raises(BadInput, match=r"^this kernel can do none of these rows: no ns-3 here$"):
        run.go([1], gate=False)
    assert not (tmp_path / "out").exists()


class Kernels(WithoutMedium):
    """A backend whose kernel has dctcp besides what the lab knows."""

    @property
    def build(self):
        kernel = SimpleNamespace(has=lambda module: module == "tcp_dctcp")
        return SimpleNamespace(key=self.key, user=(), kernel=kernel)


@pytest.mark.parametrize(
    ("names", "judged"),
    [
        ((), None),
        (("my_cc",), None),  # the name that the module was to register
        (("dctcp",), ["dctcp", "tcp_my"]),
        (("vegas", "my_cc"), ["vegas", "my_cc"]),
    ],
)
def test_a_module_that_cannot_be_used_stops_what_is_about_nothing_else(
    tmp_path, monkeypatch, capsys, names, judged
):
    refused = Refused("err/tcp_my.c", "it does not build: x.c:3: error")
    monkeypatch.setattr(cli, "add_modules", lambda *_: [refused])
    run = cli._Run(Choice(), [], Kernels(), tmp_path / "out", 1)
    if judged is None:
        with pytest.raises(BadInput, match=r"^module err/tcp_my\.c: it does not build: .*error$"):
            run.prepare(names, ["err/tcp_my.c"])
        assert not capsys.readouterr().err and not (tmp_path / "out").exists()
        return
    run.prepare(names, ["err/tcp_my.c"])
    assert run.judged == [name.removeprefix("tcp_") for name in judged]
    assert "the others go on" in capsys.readouterr().err


def test_a_module_alone_that_does_not_build_is_bad_input(tmp_path):
    (tmp_path / "my_cc.c").write_text("#error no\n")
    done = run_command("scorecard", "--quick", "--module", "./my_cc.c", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("run: ")]
    assert line.startswith("run: module ./my_cc.c: it does not build: ") and "go on" not in line
    assert not (tmp_path / "results").exists()


def test_a_figure_that_was_not_measured_keeps_its_place(tmp_path):
    names = {"mine": [1.0, 1.0], "reno": [1.0, 1.0]}
    verdict = card(tmp_path, names).rows["r", "mine"]
    assert page._headlines(verdict) == ["1.00 %", "1.00 Mb/s"]
    blank = tuple(replace(c, value=None) for c in verdict.cells if c.figure.better == "less")
    rest = tuple(cell for cell in verdict.cells if cell.figure.better == "more")
    for cells in (rest, blank + rest):
        assert page._headlines(replace(verdict, cells=cells)) == ["\N{EN DASH}", "1.00 Mb/s"]
    assert page._headlines(replace(verdict, cells=blank)) == []


def test_within_is_said_to_be_no_praise(tmp_path, capsys):
    """One of those it lies between may fail the row."""
    names = {"mine": [1.0, 4.0], "reno": [1.0, 1.0], "cubic": [1.0, 1.0], "bbr": [1.0, 9.5]}
    judged = card(tmp_path, names)
    said = page._summary(judged, "mine")
    assert said == "lies between the best and the worst of them in 1 of 1 row"
    words = "worst of the three, which may itself fail the row: look at the figures"
    assert words in page.MEANINGS[WITHIN]
    assert words in (PROJECT / "docs" / "scorecard.md").read_text()
    run = cli._Run(Choice(), judged.sections, None, tmp_path, 1)
    run._say(judged, SimpleNamespace(reused=0, failures=[]), 8, tmp_path / "page")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2] == (
        "within: between the references; better/worse: beyond all of them; fails: breaks a bound of"
        " the RFC, docs/scorecard.md"
    )


def test_a_page_is_published_without_where_it_was_made(tmp_path):
    command = "testbed/run scorecard --quick --out /somewhere --resume"
    (tmp_path / "meta.json").write_text(json.dumps({"scenario": "scorecard", "command": command}))
    (tmp_path / page.MARKDOWN).write_text(f"# Scorecard\n\n- Command: {command}\n")
    publish.main(tmp_path, tmp_path / "docs")
    written = (tmp_path / "docs" / "scorecard.md").read_text()
    assert written == "# Scorecard\n\n- Command: testbed/run scorecard --quick\n"


def test_figures_of_a_result():
    """From counts by hand: 900 packets arrived, 100 were sent again, the queue dropped 50."""
    flow = {
        "name": "own", "kind": "own", "under_test": True, "bytes_whole": 900 * 1448,
        "retransmits": 100, "goodput_mbps": 4.0, "stop_s": 10.0, "start_s": 0.0,
        "completion_s": None, "timeouts": 2,
    }  # fmt: skip
    rival = flow | {"kind": "rival", "under_test": False, "goodput_mbps": 0.1, "bytes_whole": 0,
                    "retransmits": 0, "sent_pkts": 40, "queue_drops": 1,
                    "owd_ms_p95": 30.0}  # fmt: skip
    result = {
        "flows": [flow, rival], "udp": [{"lost_pct": 3.0}, {"lost_pct": 1.0}],
        "loss_congestion": 50, "queue_drop_pct": None, "goodput_mbps": 4.1, "bound_mbps": 8.2,
        "retransmits": 100, "loss_random": 20, "harm_goodput": 0.25, "harm_delay": -0.5,
        "params": {"duration_s": 10, "links": {"a": {"rate_mbps": 12.112}}},
    }  # fmt: skip
    expected = {
        "dropped_pct": 5.0, "sent_share_pct": 10.0, "used_pct": 50.0, "harm_pct": 25.0,
        "harm_delay_pct": -50.0, "spurious_pct": 3.0, "rival_dropped_pct": 2.5,
        "rival_owd_ms_p95": 30.0, "starved_pct": 50.0, "rival_timeouts": 2.0,
        "rival_fct_s_p95": 10.0, "udp_lost_pct": 3.0,
    }  # fmt: skip
    for name, value in expected.items():
        assert FIGURES[name].of(result) == pytest.approx(value), name
    assert FIGURES["dropped_pct"].of(result | {"queue_drop_pct": 7.0}) == 7.0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--algorithms", "jsctp"], "algorithms of TCP"),
        (["--rows", "9.9"], "unknown row or section"),
        (["--set", "queue=1"], "with --rows"),
        (["--seeds", "0"], "from 1"),
        (["--paths", "-1"], "--paths -1: from 1"),
        (["--paths", "0"], "--paths 0: from 1"),
        (["--path-seed", "0"], "--path-seed 0: above 0"),
    ],
)
def test_bad_input_is_refused_with_one_line(arguments, told, tmp_path):
    done = run_command("scorecard", *arguments, "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and told in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A quick scorecard of veno_jitter: the folder, and how the command ended."""
    folder = tmp_path_factory.mktemp("scorecard") / "out"
    return folder, run_command("scorecard", "--quick", "--gate", "--algorithms", "veno_jitter",
                               "--out", str(folder))  # fmt: skip


def test_veno_jitter_fails_no_row_but_those_listed(gate):
    """The gate. What is mended is taken off testbed/scorecard/known-failures.toml."""
    folder, done = gate
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / page.MARKDOWN).read_text()
    assert "| 5.1.3 Protection against high packet loss |" in text
    bbr = text.split("**bbr**")[-1].split("## 5.1.1")[0]
    assert "5.1.3, `shallow-queue`: keeps causing loss" in bbr  # RFC 9743 says so of BBR v1


def test_the_walk_of_the_documentation(gate, tmp_path):
    """From my_cc.c to the page, by the command of docs/scorecard.md, with the module that it has as
    an example: which never backs off, fails 5.1.1, 5.1.3 and 5.2.1, and the page says so in the
    words of the documentation."""
    folder, _ = gate
    text = (PROJECT / "docs" / "scorecard.md").read_text()
    command = r"^    testbed/run (scorecard --module (\S+) --quick)\b"
    (mine, _), (_, example) = re.findall(command, text, re.M)
    assert mine.split()[2] == "./my_cc.c"
    (tmp_path / "my_cc.c").write_text((PROJECT / example).read_text())
    chosen = ["persistent-loss", "shallow-slow", "against-few"]
    done = run_command(*shlex.split(mine), "--rows", ",".join(chosen), "--gate",
                       "--out", str(folder), "--resume", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"page: {folder / page.HTML}"
    written = (folder / page.MARKDOWN).read_text()
    said = re.findall(r"^    reckless: ([0-9.]+): (.*)$", text, re.M)
    assert [section for section, _ in said] == ["5.1.1", "5.1.3", "5.2.1"]
    for (section, words), row in zip(said, chosen, strict=True):
        assert f"- {section}, `{row}`: {words}" in written
        assert f"reckless fails {row}, no known failure" in done.stderr
    again = re.findall(r"^- reckless \*fails\* .*`(testbed/run .*)`$", written, re.M)
    assert all("--module ./my_cc.c" in command for command in again) and len(again) == 3


def test_the_others_go_on_where_a_module_stops_the_kernel(gate, tmp_path):
    """One that panics when its window grows, and one that does not build: the page has the consoles
    and calls nothing passed; the references' points are as they were."""
    folder, _ = gate
    good = (rows.FOLDER / "example" / "tcp_reckless.c").read_text()
    grows = "	if (rs->acked_sacked <= 0)\n"
    assert grows in good
    panics = grows.replace("rs->acked_sacked <= 0", "cwnd > 20")
    text = good.replace(grows, f'{panics}		panic("out of road");\n{grows}')
    (tmp_path / "tcp_panics.c").write_text(text.replace('"reckless"', '"panics"'))
    (tmp_path / "tcp_broken.c").write_text(good.replace("MODULE_LICENSE", "MODULE"))
    done = run_command(
        "scorecard", "--quick", "--rows", "shallow-slow", "--out", str(folder), "--resume",
        "--module", str(tmp_path / "tcp_panics.c"), "--module", str(tmp_path / "tcp_broken.c"),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "tcp_broken.c: it does not build: " in done.stderr
    assert "3 of 4 points were already in" in done.stdout
    text = (folder / page.MARKDOWN).read_text()
    (line,) = re.findall(r"^\| 5.1.3 .*$", text, re.M)
    assert line.split(" | ")[1:3] == ["cannot be done", "cannot be done"]
    html = (folder / page.HTML).read_text()
    assert "out of road" in html and "the lab kernel stopped" in html


def test_the_row_of_the_documentation_is_one_of_the_rows():
    text = (PROJECT / "docs" / "scorecard.md").read_text()
    (row,) = tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.S)[1])["rows"]
    there = tomllib.loads((rows.FOLDER / "5.1.3-loss.toml").read_text())["rows"]
    (real,) = [of for of in there if of["id"] == row["id"]]
    assert row["title"] == real["title"]
    assert row["figures"][0].items() - real["figures"][0].items() <= {
        ("better", "less"), ("margin", 0.1),
    }  # fmt: skip
