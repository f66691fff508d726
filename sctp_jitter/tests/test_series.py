# SPDX-License-Identifier: GPL-2.0-only
"""The patches are what kernel people would take: style, subject, sign-off; and they apply, to each
kernel line as it is in its package.

That they build is shown by matrix_sctp.py and, that they run, by test_sctp.py and test_vm.py.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SETUP = FOLDER.parent / "testbed" / "setup"
SERIES = FOLDER / "patches" / "series"
BASE = "6.12"
PATCHES = sorted(FOLDER.glob("patches/*/*.patch"))
OVERRIDES = [patch for patch in PATCHES if patch.parent.name != BASE]
SOURCES = sorted(FOLDER.glob("*.c"))
# every new file lies in a folder that MAINTAINERS gives to the SCTP protocol
# and the newest checkpatch wants const tables of sysctls, which 6.12 and 6.1 cannot register
IGNORED = "FILE_PATH_CHANGES,CONST_STRUCT"
TREES = ("stable", "lab", "newest")  # as testbed/setup trees calls them
GIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "test"), ("EMAIL", "test@localhost"))
} | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def named(patch: Path) -> str:
    return f"{patch.parent.name}/{patch.name[:40]}"


def run(*command: str | Path, **options) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@cache
def lab_paths() -> dict[str, Path]:
    """Return where the testbed keeps things, as its setup names them."""
    said = subprocess.run([SETUP, "paths"], capture_output=True, text=True).stdout
    return {name: Path(path) for name, path in (line.split("=", 1) for line in said.splitlines())}


def pristine(tree: str) -> Path:
    """Return the files that the series changes, as the package of TREE has them."""
    folder = lab_paths()["cache"] / "trees" / tree / "series"
    if not (folder / ".complete").exists():
        pytest.skip("no kernel sources: testbed/setup trees")
    return folder


def version_of(source: Path) -> str:
    fields = re.findall(
        r"^(?:VERSION|PATCHLEVEL) = (\d+)$", (source / "Makefile").read_text(), re.M
    )
    return ".".join(fields)


def patches_for(version: str) -> list[Path]:
    return [Path(line) for line in run(SERIES, version).splitlines()]


def copied(tree: str, to: Path) -> Path:
    """Make a git repository of the pristine files of TREE."""
    shutil.copytree(pristine(tree), to)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it is"]):
        run("git", "-C", to, *command, env=os.environ | GIT)
    return to


# --- style -------------------------------------------------------------------


def checkpatch(*arguments: str | Path) -> None:
    newest = lab_paths()["cache"] / "trees" / "newest" / "source"
    scripts = (
        source / "scripts" / "checkpatch.pl"
        for source in (newest, lab_paths()["kernel"] / "source")
    )
    script = next((script for script in scripts if script.exists()), None)
    if not script:
        pytest.skip("no checkpatch.pl: testbed/setup kernel")
    command = ["perl", script, "--no-tree", "--strict", f"--ignore={IGNORED}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("total: 0 errors, 0 warnings, 0 checks, [1-9]", done.stdout), done.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=named)
def test_patch_style(patch):
    """checkpatch --strict is content, subject and sign-off are as they should be."""
    checkpatch(patch)
    text = patch.read_text()
    assert re.search(r"^Subject: \[PATCH\] (selftests: net: )?sctp: [a-z]", text, re.MULTILINE)
    assert text.count("\nSigned-off-by: ") == 1


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_kernel_style(source):
    """checkpatch --strict is content with every source file."""
    checkpatch("--file", source)


# --- one series for all lines ------------------------------------------------


@pytest.mark.parametrize(
    ("version", "line"),
    [("5.15", ""), ("6.0", ""), ("6.1", "6.1"), ("6.6", "6.1"), ("6.12", "6.12"), ("6.18", "6.12"),
     ("7.2", "7.2"), ("7.10", "7.2"), ("10.0", "7.2")],
)  # fmt: skip
def test_each_version_has_a_line(version, line):
    """A folder serves its own version and later ones; nothing serves what is older than all."""
    done = subprocess.run([SERIES, "--line", version], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0 if line else 2, line)
    if line:
        names = [patch.name for patch in patches_for(version)]
        assert names == sorted(path.name for path in FOLDER.glob(f"patches/{BASE}/*.patch"))
        assert {patch.parent.name for patch in patches_for(version)} <= {BASE, line}


@pytest.mark.parametrize("tree", TREES)
def test_git_am_takes_it(tree, tmp_path):
    """What `make series` gives for a line applies there by git am: no fuzz, no leftovers."""
    repository = copied(tree, tmp_path / "linux")
    run(
        "make",
        "-s",
        "-C",
        FOLDER,
        "series",
        f"LINE={version_of(repository)}",
        f"OUT={tmp_path / 'out'}",
    )
    mails = sorted((tmp_path / "out").iterdir())
    assert [mail.name for mail in mails] == [
        patch.name for patch in patches_for(version_of(repository))
    ]
    run("git", "-C", repository, "am", "-q", "--whitespace=error-all", *mails, env=os.environ | GIT)
    assert run("git", "-C", repository, "rev-list", "--count", "HEAD").strip() == str(
        len(mails) + 1
    )
    assert not run("git", "-C", repository, "status", "--porcelain")


def changes(patch: Path) -> list[str]:
    """Return the lines that PATCH adds and removes, file by file."""
    body = patch.read_text().split("\n---\n", 1)[1]
    return [line for line in body.splitlines() if re.match(r"[+-](?![+-]{2} )|\+\+\+ ", line)]


@pytest.mark.parametrize("patch", OVERRIDES, ids=named)
def test_a_lines_own_patch_is_the_same_patch(patch):
    """A patch of another line's own has the message of the base's, and little else to change."""
    base = FOLDER / "patches" / BASE / patch.name
    message, of_base = (path.read_text().split("\n---\n")[0] for path in (patch, base))
    assert message == of_base
    ours, theirs = changes(patch), changes(base)
    only = [line for line in ours if line not in theirs] + [
        line for line in theirs if line not in ours
    ]
    assert len(only) <= 20, "\n".join(only)


def applied(tree: str, patches: list[Path], to: Path) -> Iterator[Path]:
    """Apply PATCHES one after the other to what TREE has; yield the folder before each."""
    shutil.copytree(pristine(tree), to)
    for patch in patches:
        yield to
        run("patch", "-d", to, "-p1", "-N", "-s", "-F0", "--no-backup-if-mismatch", "-i", patch)


@pytest.mark.parametrize("tree", ("stable", "newest"))
def test_a_lines_own_patch_is_needed(tree, tmp_path):
    """Where the base's patch would do the same, there is no other one."""
    patches = patches_for(version_of(pristine(tree)))
    for patch, folder in zip(patches, applied(tree, patches, tmp_path / "a"), strict=False):
        if patch.parent.name == BASE:
            continue
        results = []
        for number, candidate in enumerate((patch, FOLDER / "patches" / BASE / patch.name)):
            copy = tmp_path / f"{patch.stem}-{number}"
            shutil.copytree(folder, copy)
            command = [
                "patch",
                "-d",
                copy,
                "-p1",
                "-N",
                "-s",
                "-F0",
                "--no-backup-if-mismatch",
                "-i",
                candidate,
            ]
            if subprocess.run(command, capture_output=True).returncode == 0:
                results.append(copy)
        assert len(results) == 1 or run_diff(*results), f"{named(patch)} is the base's"


def run_diff(one: Path, other: Path) -> bool:
    return subprocess.run(["diff", "-rq", one, other], capture_output=True).returncode == 1


# --- make source -------------------------------------------------------------


@pytest.mark.parametrize("tree", TREES)
def test_source_applies_without_fuzz(tree, tmp_path):
    """`make source` says nothing and leaves the patched files, no rejects, nothing else's."""
    out = tmp_path / "out"
    make = ["make", "-s", "-C", FOLDER, "source", f"OUT={out}", "KDIR=/nowhere"]
    assert not run(*make, f"SOURCE={pristine(tree)}")
    assert (out / "net/sctp/cong.c").exists() and not list(out.rglob("*.rej"))
    assert not list(out.rglob("*.orig")) and not (out / "Makefile").exists()


UNDER_RCU = re.compile(r"rcu_read_lock\(\);(.*?)rcu_read_unlock\(\);", re.DOTALL)


@pytest.mark.parametrize("tree", TREES)
def test_nothing_that_may_wait_is_asked_under_rcu(tree, tmp_path):
    """capable() asks security modules and is audited; loading a module waits."""
    source = tmp_path / "source"
    shutil.copytree(pristine(tree), source)
    for patch in patches_for(version_of(source)):
        run("patch", "-d", source, "-p1", "-N", "-s", "-i", patch)
    spans = UNDER_RCU.findall((source / "net/sctp/cong.c").read_text())
    assert len(spans) >= 4
    for span in spans:
        assert not re.search(r"capable|sctp_cong_allowed|request_module|GFP_KERNEL", span), span
