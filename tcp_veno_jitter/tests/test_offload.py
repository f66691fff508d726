# SPDX-License-Identifier: GPL-2.0-only
"""Segmentation offload over a short way: a piece that TCP sends at once is as long as the path."""

import json
import platform
import subprocess

import pytest

from labtest.boot import KERNEL, PROJECT

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


@pytest.mark.parametrize(("rate", "least"), [("100 Mb/s", 0.95), ("1000 Mb/s", 0.95)])
def test_a_piece_of_our_own_is_no_queue(rate, least, tmp_path):
    """Of the share that is carried; 0.57 and 0.20 when each piece was taken for a queue."""
    asked = [f'rate="{rate}"', 'rtt="2 ms"', "loss_pct=0", "run.duration_s=12", "run.warmup_s=4"]
    sets = [word for one in asked for word in ("--set", one)]
    subprocess.run(
        [PROJECT / "testbed/run", "speeds", "--kernel", KERNEL, "--algorithms", "veno_jitter",
         *sets, "--seed", "1", "--out", tmp_path / "out"],
        check=True, capture_output=True,
    )  # fmt: skip
    (line,) = (tmp_path / "out/results.jsonl").read_text().splitlines()
    point = json.loads(line)
    assert point["goodput_mbps"] > least * point["bound_mbps"]
