# SPDX-License-Identifier: GPL-2.0-only
"""The patches are what kernel people would take: style, subject, sign-off; and they apply.

That they build and run is shown by test_sctp.py, which uses what the lab built of them.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SETUP = FOLDER.parent / "testbed" / "setup"
PATCHES = sorted(FOLDER.glob("patches/*/*.patch"))
SOURCES = sorted(FOLDER.glob("*.c"))
# every new file lies in a folder that MAINTAINERS gives to the SCTP protocol
IGNORED = "FILE_PATH_CHANGES"


@cache
def kernel_source() -> Path:
    said = subprocess.run([SETUP, "paths"], capture_output=True, text=True).stdout
    paths = dict(line.split("=", 1) for line in said.splitlines())
    return Path(paths["kernel"], "source")


def checkpatch(*arguments: str | Path) -> None:
    script = kernel_source() / "scripts" / "checkpatch.pl"
    if not script.exists():
        pytest.skip("no checkpatch.pl: testbed/setup kernel")
    command = ["perl", script, "--no-tree", "--strict", f"--ignore={IGNORED}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("total: 0 errors, 0 warnings, 0 checks, [1-9]", done.stdout), done.stdout


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: f"{path.parent.name}/{path.name[:40]}")
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


def test_series_applies_without_fuzz(tmp_path):
    """`make source` gives the patched files; without a kernel source one line says what to do."""
    if not kernel_source().exists():
        pytest.skip("no kernel source: testbed/setup kernel")
    make = ["make", "-s", "-C", FOLDER, "source", f"OUT={tmp_path / 'out'}"]
    done = subprocess.run([*make, f"SOURCE={kernel_source()}"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and not done.stdout, done.stdout + done.stderr
    assert (tmp_path / "out/net/sctp/cong.c").exists()
    assert not list((tmp_path / "out").rglob("*.rej"))
    done = subprocess.run([*make, "SOURCE=/nowhere", "OUT=" + str(tmp_path / "none")],
                          capture_output=True, text=True)  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if not line.startswith("make")]
    assert done.returncode and len(lines) == 1 and "/nowhere" in lines[0], done.stdout
