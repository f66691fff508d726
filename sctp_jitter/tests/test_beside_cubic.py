# SPDX-License-Identifier: GPL-2.0-only
"""jsctp_abe beside a TCP flow, in the lab."""

import json
import platform
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


def test_cubic_keeps_its_share_in_a_queue_of_a_quarter_of_a_bdp(tmp_path):
    """2.8 of 9.4 Mb/s when it came back by +1 a round trip from four fifths of its window."""
    out = tmp_path / "out"
    subprocess.run(
        [PROJECT / "testbed/run", "sctp-beside-cubic", "--algorithms", "jsctp_abe", "--seed", "3",
         "--set", 'queue="1/4 BDP"', "--set", "loss_pct=0", "--out", out],
        check=True, capture_output=True,
    )  # fmt: skip
    (line,) = (out / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["goodput_other_mbps"] > 4
