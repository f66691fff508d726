# SPDX-License-Identifier: GPL-2.0-only
"""What the documentation points at exists, and its example is a scenario that works."""

import re
import subprocess
import tomllib

import pytest

from lab.ask import scenario
from lab.ask.algorithms import ALGORITHMS
from lab.commands import COMMANDS
from lab.run.build import PROJECT

PAGES = sorted(
    PROJECT / name
    for name in subprocess.run(
        ["git", "-C", str(PROJECT), "ls-files", "*.md"], capture_output=True, text=True
    ).stdout.split()
)


# what a newcomer reads first: short lines, and commands that are there
NAMES = ("tutorial", "faq", "bisect", "mininet", "lab", "contributing")
FIRST = ("README.md", *(f"docs/{name}.md" for name in NAMES))
LINE_MAX = 120


PROSE = ("CHANGELOG.md", *(f"docs/{path.name}" for path in (PROJECT / "docs").glob("*.md")))


def is_prose(line: str) -> bool:
    """Say whether LINE can be broken: no row of a table, no code, no span that is a command."""
    span = re.search(r"`([^`]{60,})`", line)
    return len(line) > LINE_MAX and not line.startswith(("|", "    ")) and not span


@pytest.mark.parametrize("name", PROSE)
def test_sentences_are_read_without_scrolling(name):
    prose = re.sub(r"^```.*?^```", "", (PROJECT / name).read_text(), flags=re.M | re.S)
    assert [line for line in prose.splitlines() if is_prose(line)] == []


def test_a_release_in_the_changelog_has_each_section_once():
    for release in re.split(r"^## ", (PROJECT / "CHANGELOG.md").read_text(), flags=re.M)[1:]:
        named = re.findall(r"^### (.*)", release, flags=re.M)
        order = ["Security", "Changed", "Fixed", "Added", "Removed"]
        assert named == [one for one in order if one in named], release.splitlines()[0]


@pytest.mark.parametrize("name", FIRST)
def test_the_first_pages_have_short_lines_and_commands_that_there_are(name):
    text = (PROJECT / name).read_text()
    assert [line for line in text.splitlines() if len(line) > LINE_MAX] == []
    used = set(re.findall(r"testbed/veno-lab ([a-z]+[0-9]?)", text))
    assert used <= COMMANDS.keys()
    named = re.findall(r"testbed/run ([a-z][a-z0-9-]+)", text)
    known = {path.stem for path in scenario.list_scenarios()}
    assert set(named) <= known | {"scorecard"}


def test_the_table_of_the_readme_is_that_of_the_published_run():
    """Row by row: the same bound, medians and intervals as in docs/results/demo.md, at the losses
    that are shown."""
    page = (PROJECT / "docs" / "results" / "demo.md").read_text()
    published = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in page[page.index("2 Mb/s 90 ms:") :].splitlines()
        if line.startswith("|")
    ]
    block = re.search(r"```\n(random loss.*?)```", (PROJECT / "README.md").read_text(), re.S)[1]
    rows = [re.split(r"  +", line.strip()) for line in block.splitlines()]
    columns = [published[0].index(head) for head in rows[0][1:]]
    results = {row[0]: row for row in reversed(published)}
    for name, *cells in rows[1:]:
        assert cells == [results[name][column] for column in columns], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [
        link for link in links if not link.startswith("http") and not (page.parent / link).exists()
    ]
    assert not missing


def anchors(page):
    """Return those of PAGE's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_into_pages_lead_to_a_heading(page):
    links = re.findall(r"\]\(([^)#:]*)#([\w-]+)\)", page.read_text())
    assert [
        f"{to}#{at}" for to, at in links if at not in anchors(page.parent / to if to else page)
    ] == []


def test_every_result_is_in_their_index_and_every_figure_on_a_page():
    """testbed/veno-lab publish --index writes it."""
    folder = PROJECT / "docs" / "results"
    index = (folder / "README.md").read_text()
    pages = {path.name: path.read_text() for path in folder.glob("*.md")}
    assert [name for name in pages if name != "README.md" and f"](./{name})" not in index] == []
    everywhere = "".join(path.read_text() for path in (PROJECT / "docs").rglob("*.md"))
    figures = [path.name for path in folder.glob("*.svg")]
    assert [name for name in figures if f"/{name})" not in everywhere] == []


def test_no_result_names_a_folder_of_the_machine_that_made_it():
    """As an --out that its reader has not; /tmp is everywhere."""
    results = PROJECT / "docs" / "results"
    pages = [*results.glob("*.md"), *results.glob("*.html")]
    assert len(pages) > 40
    assert [page.name for page in pages if re.search(r"--out[ =]/(?!tmp/)", page.read_text())] == []


def test_the_example_of_the_scenario_page_is_good():
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    example = tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.S)[1])
    loaded = scenario.parse("example", example)
    assert loaded.axes and loaded.claims and len(loaded.flows) == 2


def test_the_second_example_of_the_scenario_page_is_two_flows_beside_a_rival():
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    section = text[text.index("## Who gets what") :]
    example = tomllib.loads(re.search(r"```toml\n(.*?)```", section, re.S)[1])
    loaded = scenario.parse("shares", example)
    assert [(flow.name, flow.count) for flow in loaded.flows] == [("a", 2), ("b", 1)]


def test_what_the_scenario_page_speaks_of_is_explained():
    """Where a command comes from that Debian does not bring, and what the samples' columns hold."""
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    assert "jq -r" in text and "`apt-get install jq`" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| `samples/POINT.flows.csv`")]
    assert "`cc_kind`" in row and "(values.md)" in row
    probe = (PROJECT / "testbed" / "traffic" / "probe_csv.c").read_text()
    columns = set(re.findall(r"\bcc_[a-z_]+(?=,)", probe))
    assert {"cc_kind", "cc_bw_mbps", "cc_pacing_gain"} <= columns
    values = (PROJECT / "docs" / "values.md").read_text()
    assert [name for name in columns if f"`{name}`" not in values] == []


def test_the_scenario_page_lists_every_scenario():
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    table = text.split("## What there is")[1].split("##")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", table)) == {p.stem for p in scenario.list_scenarios()}


def test_every_scenario_has_a_page_of_results():
    """What has none is a question without an answer."""
    folder = PROJECT / "docs" / "results"
    names = [path.stem for path in scenario.list_scenarios()]
    assert len(names) > 60
    assert [name for name in names if not (folder / f"{name}.md").exists()] == []


def test_every_algorithm_of_ours_has_a_page():
    for algorithm in ALGORITHMS.values():
        if algorithm.ours and algorithm.transport == "sctp":
            assert f"`{algorithm.name}`" in (PROJECT / "docs" / "sctp.md").read_text()
        elif algorithm.ours and algorithm.transport == "tfrc":
            assert f"`{algorithm.name}`" in (PROJECT / "docs" / "tfrc.md").read_text()
        elif algorithm.ours:
            assert (PROJECT / "docs" / f"{algorithm.name}.md").is_file()
            assert algorithm.name in (PROJECT / "README.md").read_text()
