# SPDX-License-Identifier: GPL-2.0-only
"""veno-lab papers: which experiments there are, and the table of what came of their claims."""

import json
import subprocess
from dataclasses import replace

import pytest
import typer
from conftest import TESTBED

from lab.ask import scenario
from lab.common.errors import BadInput
from lab.judge import claims
from lab.run.build import PROJECT
from lab.show import papers, papersindex, publish

# every figure and table of the five papers that is an experiment, SCTP's and its form over TCP
WANTED = """
veno-single veno-accuracy veno-coexist veno-mix5 veno-wan
jsctp-jr jsctp-k jsctp-primary jsctp-both jsctp-multihop jsctp-delay jsctp-fairness jsctp-friendly
jtcp-jr jtcp-k jtcp-multihop jtcp-delay jtcp-fairness jtcp-friendly
sctp-chain sctp-smallwin tfrc-single tfrc-path tfrc-fair wccp-1 wccp-2 wccp-3 wccp-mobile
"""


def test_every_experiment_of_the_papers_is_there_once():
    assert sorted(papersindex.experiments()) == sorted(WANTED.split())


def test_the_table_has_each_claim_with_the_papers_figure_and_ours(tmp_path):
    """Made of results: Veno at 1 % loss carries 1.9 times what Reno does, where 1.8 was claimed."""
    one = scenario.load("veno-single")
    claim = next(claim for claim in one.claims if claim.algorithm == "veno03" and claim.against)
    lines = [
        {
            "algorithm": name,
            "axes": {"loss_pct": claim.where["loss_pct"]},
            "seed": seed,
            claim.metric: value * (1 + seed / 1000),
        }
        for name, value in ((claim.algorithm, 9.0), (claim.against, 1.0))
        for seed in range(1, 11)
    ]
    (tmp_path / "meta.json").write_text("{}")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "results.jsonl").write_text(text)
    found = papersindex.rows_of_runs([(one, tmp_path)])
    assert len(found) == len(one.claims)
    row = next(row for row in found if row.cells[1] == claim.text)
    assert row.paper.startswith("TCP Veno") and row.cells[2] == claim.paper
    assert row.cells[3].startswith("9.00 [")
    page = papersindex.page(found)
    assert page.count("\n| veno-single |") == len(found) and "## TCP Veno (Fu, Liew, 2003)" in page
    assert f"{len(found)} claims: " in page and "not measured" in page


def test_the_table_of_docs_results_is_that_of_its_pages_and_says_why_a_claim_does_not_hold():
    """testbed/veno-lab papers --index writes it."""
    docs = PROJECT / "docs" / "results"
    found = papersindex.rows_of_pages(docs)
    assert (docs / papersindex.NAME).read_text() == papersindex.page(found, papersindex.NOTE)
    assert len(found) == sum(len(one.claims) for one in papersindex.experiments().values())
    assert [row.cells for row in found if row.verdict != "holds" and not row.cells[-1]] == []
    assert [row.cells for row in found if row.verdict == "holds" and row.cells[-1]] == []


def test_claims_are_read_from_the_pages_that_publish_writes():
    one = scenario.load("veno-wan")
    page = (PROJECT / "docs" / "results" / "veno-wan.md").read_text()
    there = papersindex.read_claims(page)
    assert [claim.text for claim in there] == [claim.text for claim in one.claims]
    (first, *_) = there
    assert first.measured == "0.99 [0.98, 0.99]" and first.verdict == "does not hold"
    table = publish.claims_table(claims.judge(one, []))
    (first, *_) = papersindex.read_claims(f"# A\n\n## Claims\n\n{table}\n")
    assert first.subject == there[0].subject and first.verdict == "not measured"


def test_a_page_says_why_a_claim_does_not_hold_and_is_read_all_the_same():
    one = scenario.load("veno-wan")
    verdicts = claims.judge(one, [])
    why = publish.reasons(one, verdicts)
    assert "- Over 290 ms Veno carries at least 21 % more than Reno: not measured. Why: as" in why
    page = f"## Claims\n\n{publish.claims_table(verdicts)}\n\n{why}\n"
    assert len(papersindex.read_claims(f"# A\n\n{page}")) == len(one.claims)
    early = replace(one, claims=tuple(replace(claim, why_not="") for claim in one.claims))
    assert publish.reasons(early, claims.judge(early, [])) == why
    assert publish.reasons(replace(early, id="of-a-user"), claims.judge(early, [])) == ""


def test_quick_runs_what_claims_name_and_cuts_short_what_is_expensive():
    """One of no claims: the first place of all."""
    known = papersindex.experiments()
    quick = {name: scenario.load(name, papers._quick_settings(known[name])) for name in known}
    assert {axis.name: axis.levels for axis in quick["veno-wan"].axes} == {
        "path": ["20 ms", "45 ms", "290 ms"]
    }
    (decides,) = quick["jtcp-jr"].axes
    assert decides.levels == ["raw Jr", "raw Jr, m = 4", "smoothed Jr"]  # a comma in a name
    assert quick["veno-single"].run.algorithms == ("veno03", "reno")
    assert quick["veno-single"].run.duration_s == known["veno-single"].run.duration_s
    assert quick["wccp-1"].run.duration_s < known["wccp-1"].run.duration_s
    assert [len(axis.levels) for axis in quick["sctp-chain"].axes] == [1, 1, 1]
    assert quick["sctp-chain"].run.algorithms == known["sctp-chain"].run.algorithms
    for one in quick.values():
        asked = [claim for claim in one.claims if claim.algorithm not in one.run.algorithms]
        assert asked == [] and papers._cost_s(one, 1) < 2 * papers.QUICK_S, one.id


def test_a_part_that_is_run_again_leaves_the_others_in_the_table(tmp_path, monkeypatch):
    """And what names no experiment is no way to name all of them."""
    ran, published = [], []
    for name in ("jtcp-jr", "jtcp-k"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.json").write_text(json.dumps({"seeds": [1, 2]}))
        (tmp_path / name / "results.jsonl").touch()
    monkeypatch.setattr(papers, "_run", lambda one, *_: bool(ran.append(one.id)) or True)
    monkeypatch.setattr(papers, "_publish", lambda folders, _docs: published.extend(folders))
    papers.main(out=tmp_path, only="jtcp-k", seeds=None, publish=True)
    table = (tmp_path / "claims.md").read_text()
    assert "| jtcp-jr |" in table and "| jtcp-k |" in table and "Smoke" not in table
    assert ran == ["jtcp-k"] and [folder.name for folder in published] == ["jtcp-k"]
    with pytest.raises(BadInput, match="--only ',': it names none; leave it out for all scenarios"):
        papers.main(out=tmp_path, only=",", seeds=None)


def test_quick_leaves_the_seeds_of_a_whole_run_alone(tmp_path, monkeypatch):
    """It has a folder of its own, and refuses one that was given and has more."""
    ran = []

    def run(one, folder, *_):
        folder.mkdir(parents=True)
        ran.append(folder)
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papers, "_run", run)
    for quick in (False, True):
        papers.main(only="jtcp-jr", seeds=None, quick=quick, out=None)
    assert [str(path) for path in ran] == ["results/papers/jtcp-jr", "results/papers-quick/jtcp-jr"]
    whole = tmp_path / "results" / "papers" / "jtcp-jr"
    (whole / "meta.json").write_text(json.dumps({"seeds": [1, 2, 3]}))
    (whole / "results.jsonl").touch()
    with pytest.raises(BadInput, match="holds a run of 3 seeds, of which --quick would leave one"):
        papers.main(only="jtcp-jr", seeds=None, quick=True, out=papers.RESULTS)
    assert len(ran) == 2


def test_a_folder_of_other_settings_is_refused_before_anything_runs(tmp_path, monkeypatch):
    """As of a scenario that has changed since: its results would be replaced, hours into a run."""
    monkeypatch.setattr(papers, "_run", lambda *_: pytest.fail("it ran"))
    source = json.loads(json.dumps(papersindex.experiments()["jtcp-k"].source))
    source["run"]["duration_s"] = 7
    (tmp_path / "jtcp-k" / "points").mkdir(parents=True)
    (tmp_path / "jtcp-k" / "points" / "x.json").write_text("{}")
    meta = {"scenario": "jtcp-k", "source": source}
    (tmp_path / "jtcp-k" / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(BadInput, match=r"jtcp-k holds results of other settings \(run.duration_s"):
        papers.main(out=tmp_path, only="jtcp-jr,jtcp-k", seeds=None, quick=False)


def test_the_command_runs_experiments_and_goes_on_with_what_is_there(tmp_path):
    """The second time nothing runs again, and the table is the same."""
    names = ("veno-single", "jsctp-k", "jtcp-jr", "sctp-smallwin")
    command = [TESTBED / "veno-lab", "papers", "--quick", "--only", ",".join(names)]
    command += ["--out", tmp_path]
    tables = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        tables.append((tmp_path / "claims.md").read_text())
    assert tables[0] == tables[1] and all(f"| {name} |" in tables[0] for name in names)
    assert "not measured" not in tables[0] and "points," not in done.stderr
    smoke = "Smoke test, not a result, as it has one seed"
    assert f"\n{smoke}: {', '.join(names)}.\n" in tables[0]
    for options, told in (
        ((*command[2:], "--publish"), "--quick is no result"),
        ((*command[2:], "--seeds", "3"), "--quick is of one seed"),
        (
            ("--only", "jtcp-jr", "--seeds", "1", "--publish"),
            "--publish --seeds 1: 5 make a result",
        ),
    ):
        refused = subprocess.run([*command[:2], *options], capture_output=True, text=True)
        assert refused.returncode == 2 and told in refused.stderr


def test_runs_of_one_folder_are_each_judged_by_what_they_ran(tmp_path):
    """A quick one, which is told of, and a whole one: a claim has to hold where that has been."""
    known = papersindex.experiments()
    quick = papers._quick_settings(known["tfrc-single"])
    for name, settings in (("veno-mix5", {}), ("tfrc-single", quick)):
        source = scenario.load(name, settings).source
        (tmp_path / name).mkdir()
        meta = {"seeds": [1] if settings else [1, 2], "source": source}
        (tmp_path / name / "meta.json").write_text(json.dumps(meta))
    there = [papers._as_run(known[p.name], p) for p in tmp_path.iterdir()]
    of = {one.id: one for one in there}
    assert of["veno-mix5"].axes == known["veno-mix5"].axes
    assert len(of["tfrc-single"].axes[0].levels) < 5
    told = papers._smoke(there, tmp_path, known)
    assert "one seed: tfrc-single." in told and told.endswith("Cut short: tfrc-single.")


def test_too_few_seeds_are_no_page_of_the_projects(tmp_path):
    """Where a page of ten seeds may be; elsewhere anybody may look at it."""
    source = papersindex.experiments()["jtcp-jr"].source
    (tmp_path / "results.jsonl").write_text("{}\n")
    meta = {"scenario": "jtcp-jr", "source": source, "seeds": [1, 2], "points": 1}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(BadInput, match="has 2 seeds: 5 make a result"):
        publish.write(tmp_path, PROJECT / "docs" / "results")
    publish._check_enough(tmp_path, meta, tmp_path / "docs")
    draws = meta | {"scenario": "random-paths", "seeds": [1]}
    publish._check_enough(tmp_path, draws, PROJECT / "docs" / "results")


def test_what_failed_is_not_published(tmp_path, monkeypatch):
    """The folder of a run that failed has the files that a run leaves, too."""
    names = ("jtcp-jr", "jtcp-k")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.json").write_text("{}")
        (tmp_path / name / "results.jsonl").touch()
    published = []
    monkeypatch.setattr(papers, "_run", lambda one, *_: one.id != "jtcp-k")
    monkeypatch.setattr(papers, "_publish", lambda folders, _docs: published.extend(folders))
    with pytest.raises(typer.Exit) as ended:
        papers.main(out=tmp_path, only=",".join(names), seeds=None, quick=False, publish=True)
    assert ended.value.exit_code == 1 and [folder.name for folder in published] == ["jtcp-jr"]
