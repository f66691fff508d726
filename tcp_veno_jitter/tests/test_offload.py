# SPDX-License-Identifier: GPL-2.0-only
"""Over a short way a piece that TCP sends at once is as long as the path."""

import json
import platform
import subprocess

import pytest

from labtest.boot import KERNEL, PROJECT

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


RIVAL = """
title = "Beside one cubic flow, where the queue is shorter than a piece"
[topology]
kind = "dumbbell"
offloads = false
[links]
bottleneck = { rate_mbps = 1000, queue_pkts = 30 }
wireless.delay_ms = 1
reverse_wireless.delay_ms = 1
[[flows]]
name = "own"
[[flows]]
name = "rival"
algorithm = "cubic"
[run]
algorithms = ["veno_jitter"]
duration_s = 14
warmup_s = 4
packets = true
"""


def measured(out, scenario, seed: int, *settings: str) -> dict:
    """Return what one point of SCENARIO gives."""
    sets = [word for one in settings for word in ("--set", one)]
    subprocess.run(
        [PROJECT / "testbed/run", scenario, "--kernel", KERNEL, "--algorithms", "veno_jitter",
         *sets, "--seed", str(seed), "--out", out],
        check=True, capture_output=True,
    )  # fmt: skip
    (line,) = (out / "results.jsonl").read_text().splitlines()
    return json.loads(line)


def carried(out, rate: str, offloads: str, loss_pct: float = 0, seed: int = 1) -> float:
    """Return the share of the bound that one flow carries over 2 ms."""
    point = measured(
        out, "speeds", seed, f'rate="{rate}"', 'rtt="2 ms"', f"loss_pct={loss_pct}",
        "run.duration_s=12", "run.warmup_s=4", f"topology.offloads={offloads}",
    )  # fmt: skip
    return point["goodput_mbps"] / point["bound_mbps"]


@pytest.mark.parametrize("rate", ["100 Mb/s", "1000 Mb/s"])
def test_a_piece_that_arrives_whole_is_no_queue(rate, tmp_path):
    """0.57 and 0.20 when each piece was taken for a queue."""
    assert carried(tmp_path / "out", rate, "true") > 0.95


def test_a_piece_that_a_card_cuts_is_none_to_be_left_waiting(tmp_path):
    """0.94, and 16 ms of queue, when as much as a piece was left in the queue here as well."""
    assert carried(tmp_path / "out", "100 Mb/s", "hosts") > 0.97


@pytest.mark.parametrize(("offloads", "seed"), [("false", 5), ("hosts", 2)])
def test_noise_is_heard_though_our_own_packets_wait(offloads, seed, tmp_path):
    """0.14 and 0.08 when each packet behind the first of those that leave at once had met a
    queue; half of the seeds were not."""
    assert carried(tmp_path / "out", "1000 Mb/s", offloads, loss_pct=1, seed=seed) > 0.95


def test_tails_of_our_own_pieces_are_no_noise(tmp_path):
    """139 Mb/s of about 230, and 6.8 % dropped, when what a queue drops that is shorter than a
    piece was heard as noise."""
    (tmp_path / "rival.toml").write_text(RIVAL)
    point = measured(tmp_path / "out", tmp_path / "rival.toml", 2)
    assert point["goodput_other_mbps"] > 180 and point["queue_drop_steady_pct"] < 2
