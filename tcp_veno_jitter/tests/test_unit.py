# SPDX-License-Identifier: GPL-2.0-only
"""The estimators agree with the papers' formulas: the C unit tests, on the host, without root."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler: apt-get install build-essential")
def test_every_unit_test_passes(tmp_path):
    """`make check` succeeds and its closing line counts at least one test that passed."""
    done = subprocess.run(
        ["make", "-C", FOLDER, f"TESTOUT={tmp_path}", "check"], capture_output=True, text=True
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    closing = re.findall(r"^(\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE)
    assert len(closing) == 1, output
    passed, failed = map(int, closing[0])
    assert passed > 0 and failed == 0, output
    assert passed == len(re.findall(r"^ok \d+ - ", done.stdout, re.MULTILINE)), output
