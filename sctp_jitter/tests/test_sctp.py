# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP does what it claims, and with everything off what the unpatched one does, on a
real kernel in virtual time: sctp_claims.py and sctp_traces.py run there, one boot each."""

import platform
import re
from functools import cache
from pathlib import Path

import pytest
from sctp_claims import CLAIMS

from labtest.boot import assert_claimed, run_scripts

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)

ALIKE = (
    "short queue",
    "random loss",
    "lost SACKs",
    "segmentation offload",
    "messages",
    "failover",
)


SCRIPTS = ("sctp_claims.py", "sctp_traces.py stock", "sctp_traces.py patched")


@cache
def said_by() -> dict[str, str]:
    """Return what each script said in the lab."""
    return run_scripts(Path(__file__).parent, SCRIPTS)


@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(text):
    assert_claimed(said_by()["sctp_claims.py"], text)


def trace(variant: str, name: str) -> str:
    """Return what the packets of an exchange were: how many, and a hash of bytes and times."""
    output = said_by()[f"sctp_traces.py {variant}"]
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
