# SPDX-License-Identifier: GPL-2.0-only
"""docs/tutorial.md does what it says: its files are saved, its commands run, in their order."""

import re
import subprocess

import pytest
from conftest import TESTBED

from lab.run.build import PROJECT

PAGE = (PROJECT / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.S)
SAVED_AS = re.compile(r"Save this as `([^`]+)`:\s*$")


def steps() -> list[tuple[str, str]]:
    """Return (name of a file or nothing, its text or commands), in the order of the page."""
    found = []
    for block in BLOCK.finditer(PAGE):
        if block[1] == "sh":
            found.append(("", block[2]))
        elif block[1]:
            name = SAVED_AS.search(PAGE[: block.start()].rstrip())
            assert name, f"where does this {block[1]} go?"
            found.append((name[1], block[2]))
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Do all of it in an empty folder that has the testbed; return the folder and each output."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "testbed").symlink_to(TESTBED)
    told = []
    for name, text in steps():
        if name:
            (folder / name).write_text(text)
            continue
        ran = subprocess.run(["bash", "-e", "-c", text], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
        told.append(ran.stdout)
    return folder, told


def test_its_commands_work_and_answer_what_it_says(done):
    folder, told = done
    machine, shown, first, _, with_mine, compared = told
    assert "Ready" in machine and "bottleneck" in shown and "BBR carries at least" in shown
    assert "does not hold" in first and "mine" in with_mine
    assert re.search(r"^mine .*REGRESSION$", compared, re.M) and "\nreno" not in compared
    assert (folder / "my-first" / "report.html").exists()


def test_its_table_is_what_one_gets(done):
    """The lab gives the same bytes anywhere, so the figures on the page can be held to."""
    shown = re.search(r"^loss_pct \(%\) .*?(?=^```)", PAGE, re.M | re.S)[0]
    printed = {" ".join(line.split()) for line in done[1][2].splitlines()}
    assert [row for row in shown.splitlines() if " ".join(row.split()) not in printed] == []
