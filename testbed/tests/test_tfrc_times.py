# SPDX-License-Identifier: GPL-2.0-only
"""tfrc-send hands packets over ahead of their times where fq keeps them, and nowhere else."""

import json
import re
from pathlib import Path

import pytest
from conftest import run_command

SCRIPT = Path(__file__).parents[2] / "tfrc_uddj_user" / "tests" / "guest_times.sh"


def run(backend, qdisc: str) -> tuple[str, dict, dict, str]:
    """Return what the sender says, both ends' results, and the queueing discipline's counters."""
    done = run_command("--exec", f"sh {SCRIPT} {qdisc} {backend.build.stage / 'bin'}")
    lines = [line for line in done.stdout.splitlines() if line[:1] in "t{q"]
    assert len(lines) == 4, done.stdout + done.stderr
    return lines[0], json.loads(lines[1]), json.loads(lines[2]), lines[3]


@pytest.mark.parametrize("qdisc", ["fq", "pfifo_fast"])
def test_packets_leave_at_their_times(backend, qdisc):
    said, sent, got, counters = run(backend, qdisc)
    assert sent["completed"] and sent["timeouts"] == 0 and sent["feedbacks_refused"] == 0
    assert got["packets_received"] == sent["segs_out"] and got["late"] == 0
    # 20 Mb/s for 5 s: neither faster nor slower for leaving another way
    assert sent["segs_out"] > 7000
    held = re.search(r" throttled (\d+) latency", counters)
    if qdisc == "fq":
        assert said == "tfrc-send: packets leave at their times: near has fq"
        assert int(held[1]) > 0.95 * sent["segs_out"]
    else:
        assert said.startswith("tfrc-send: packets leave when this program wakes up: near has")
        assert not held
