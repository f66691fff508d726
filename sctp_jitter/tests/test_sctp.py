# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP does what it claims, and with everything off what the unpatched one does, on a
real kernel in virtual time: guest_run.py and guest_traces.py run there, one boot each."""

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
from guest_run import CLAIMS

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)

PROJECT = Path(__file__).resolve().parents[2]
TESTS = Path(__file__).parent.relative_to(PROJECT)
KERNEL = os.environ.get("TEST_KERNEL", "lab")  # debug: make test-debug
# of wall time, with room for building the kernel: only ends what hangs
HUNG_S = 900 if KERNEL == "lab" else 3600
ALIKE = (
    "short queue",
    "random loss",
    "lost SACKs",
    "segmentation offload",
    "messages",
    "failover",
)


SCRIPTS = ("guest_run.py", "guest_traces.py stock", "guest_traces.py patched")


def run_in_lab(command: str, cpus: set[int] | None = None) -> str:
    """Run COMMAND in the lab and return all it said; a lab that hangs is ended, not left."""
    lab = subprocess.Popen(
        [PROJECT / "testbed" / "run", "--kernel", KERNEL, "--exec", command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=lambda: os.sched_setaffinity(0, cpus) if cpus else None,
    )  # fmt: skip
    try:
        return lab.communicate(timeout=HUNG_S)[0].replace("\r", "")
    except subprocess.TimeoutExpired:
        lab.send_signal(signal.SIGINT)
        return lab.communicate()[0] + "\nthe lab hung"


@cache
def lab_outputs() -> dict[str, str]:
    """Return what the lab said about each script; one boot for each, side by side."""
    said = run_in_lab("echo lab is ready")  # builds what is missing, on all cores
    if "lab is ready" not in said:
        return dict.fromkeys(SCRIPTS, said)
    cpus = queue.SimpleQueue()
    for cpu in os.sched_getaffinity(0):
        cpus.put(cpu)

    def run(script: str) -> str:
        cpu = cpus.get()
        output = run_in_lab(f"PYTHONPATH=testbed /usr/bin/python3 {TESTS}/{script}", {cpu})
        cpus.put(cpu)
        return output

    with ThreadPoolExecutor(cpus.qsize()) as pool:
        return dict(zip(SCRIPTS, pool.map(run, SCRIPTS), strict=True))


@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(text):
    """Each claim has exactly one line, and that says ok."""
    output = lab_outputs()["guest_run.py"]
    found = re.findall(rf"^(ok|not ok) - {re.escape(text)}$((?:\n# .*)*)", output, re.MULTILINE)
    assert len(found) == 1, f"the lab did not get that far:\n{output[-3000:]}"
    assert found[0][0] == "ok", found[0][1]


def trace(variant: str, name: str) -> str:
    """Return what the packets of an exchange were: how many, and a hash of bytes and times."""
    output = lab_outputs()[f"guest_traces.py {variant}"]
    found = re.findall(rf"^trace: {name}: (.*)$", output, re.MULTILINE)
    assert len(found) == 1, f"the lab did not get that far:\n{output[-3000:]}"
    return found[0]


@pytest.mark.parametrize("name", ALIKE)
def test_off_is_the_unpatched_module(name):
    """With everything off, each byte of each packet is sent by both modules at the same time."""
    assert int(trace("stock", name).split()[0]) > 50
    assert trace("patched", name) == trace("stock", name)


def test_a_difference_is_seen():
    """One SACK more until a fast retransmission is another trace."""
    assert trace("patched", "four reports") != trace("stock", "four reports")
