# SPDX-License-Identifier: GPL-2.0-only
"""The modules do what they claim, on a real kernel in virtual time.

One boot of the lab kernel for each module; guest_run.py runs there; guest_modules.py and
guest_packets.py hold the claims and the tests.
"""

import os
import platform
import queue
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from guest_claims import ALL
from guest_run import CLAIMS

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("guest_run.py").relative_to(PROJECT)
KERNEL = os.environ.get("TEST_KERNEL", "lab")  # debug: make test-debug
# of wall time, with room for building the kernel: only ends what hangs
HUNG_S = 1800 if KERNEL == "lab" else 3600


def run_in_lab(command: str, cpus: set[int] | None = None) -> str:
    """Run COMMAND in the lab and return all it said; a lab that hangs is ended, not left."""
    lab = subprocess.Popen(
        [PROJECT / "testbed" / "run", "--kernel", KERNEL, "--exec", command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=lambda: os.sched_setaffinity(0, cpus) if cpus else None,
    )  # fmt: skip
    try:
        return lab.communicate(timeout=HUNG_S)[0]
    except subprocess.TimeoutExpired:
        lab.send_signal(signal.SIGINT)
        return lab.communicate()[0] + "\nthe lab hung"


@cache
def lab_outputs() -> dict[str, str]:
    """Return what the lab said about each module; one lab for each, side by side."""
    said = run_in_lab("echo lab is ready")  # builds what is missing, on all cores
    if "lab is ready" not in said:
        return dict.fromkeys(ALL, said)
    cpus = queue.SimpleQueue()
    for cpu in os.sched_getaffinity(0):
        cpus.put(cpu)

    def run(name: str) -> str:
        cpu = cpus.get()
        output = run_in_lab(f"/usr/bin/python3 {SCRIPT} {name}", {cpu})
        cpus.put(cpu)
        return output.replace("\r", "")

    with ThreadPoolExecutor(cpus.qsize()) as pool:
        return dict(zip(ALL, pool.map(run, ALL), strict=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, claim.text) for name in ALL for claim in CLAIMS if name in claim.algorithms],
)
def test_claim(name, text):
    """Each claim has exactly one line, and that says ok."""
    output = lab_outputs()[name]
    found = re.findall(rf"^(ok|not ok) - {re.escape(text)}$((?:\n# .*)*)", output, re.MULTILINE)
    assert len(found) == 1, f"the lab did not get that far:\n{output[-3000:]}"
    verdict, details = found[0]
    assert verdict == "ok", details


@pytest.mark.parametrize("name", ALL)
def test_every_claim_was_tested(name):
    """The lab ran as many tests as there are claims about the module."""
    verdicts = re.findall(r"^(?:not )?ok - ", lab_outputs()[name], re.MULTILINE)
    assert len(verdicts) == sum(name in claim.algorithms for claim in CLAIMS)
