# SPDX-License-Identifier: GPL-2.0-only
"""What the documentation points at exists, and its example is a scenario that works."""

import re
import subprocess
import tomllib

import pytest

from lab import scenario
from lab.algorithms import ALGORITHMS
from lab.build import PROJECT

PAGES = sorted(
    PROJECT / name
    for name in subprocess.run(
        ["git", "-C", str(PROJECT), "ls-files", "*.md"], capture_output=True, text=True
    ).stdout.split()
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [
        link for link in links if not link.startswith("http") and not (page.parent / link).exists()
    ]
    assert not missing


def test_the_example_of_the_scenario_page_is_good():
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    example = tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.S)[1])
    loaded = scenario.parse("example", example)
    assert loaded.axes and loaded.claims and len(loaded.flows) == 2


def test_the_scenario_page_lists_every_scenario():
    text = (PROJECT / "docs" / "scenarios.md").read_text()
    table = text.split("## What there is")[1].split("##")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", table)) == {p.stem for p in scenario.list_scenarios()}


def test_every_algorithm_of_ours_has_a_page():
    for algorithm in ALGORITHMS.values():
        if algorithm.ours and algorithm.transport == "sctp":
            assert f"`{algorithm.name}`" in (PROJECT / "docs" / "sctp.md").read_text()
        elif algorithm.ours and algorithm.transport == "tfrc":
            assert f"`{algorithm.name}`" in (PROJECT / "docs" / "tfrc.md").read_text()
        elif algorithm.ours:
            assert (PROJECT / "docs" / f"{algorithm.name}.md").is_file()
            assert algorithm.name in (PROJECT / "README.md").read_text()
