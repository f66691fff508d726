# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP does what it claims, and with everything off what the unpatched one does, on a
real kernel in virtual time: the scripts beside this file run there, one boot each.

The last three take how much of their kind is done: SCTP_FUZZ packets, SCTP_ENDS associations and
SCTP_FAILOVER runs of the environment.
"""

import os
import platform
import re
from functools import cache
from pathlib import Path

import pytest
import sctp_claims
import sctp_ends
import sctp_failover
import sctp_fuzz
import sctp_packets

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


FUZZ_SLICE = 50_000  # packets of one boot


def amount(name: str, of_test: int) -> int:
    """Return how much of NAME is wanted; OF_TEST: in `make test`."""
    text = os.environ.get(name, str(of_test))
    if not text.isdecimal() or not int(text):
        pytest.exit(f"{name}={text}: not a number above 0", returncode=2)
    return int(text)


def fuzz_slices(packets: int) -> list[str]:
    """Return the scripts that send so many PACKETS; each slice has a seed of its own."""
    return [
        f"sctp_fuzz.py {seed} {min(FUZZ_SLICE, packets - done)}"
        for seed, done in enumerate(range(0, packets, FUZZ_SLICE), 1)
    ]


CLAIMED = {
    "sctp_claims.py": sctp_claims.CLAIMS,
    "sctp_packets.py": sctp_packets.CLAIMS,
    f"sctp_ends.py {amount('SCTP_ENDS', 1000)}": sctp_ends.CLAIMS,
    f"sctp_failover.py {amount('SCTP_FAILOVER', 5)}": sctp_failover.CLAIMS,
    **dict.fromkeys(fuzz_slices(amount("SCTP_FUZZ", 5000)), sctp_fuzz.CLAIMS),
}
SCRIPTS = (*CLAIMED, "sctp_traces.py stock", "sctp_traces.py patched")


@cache
def said_by() -> dict[str, str]:
    """Return what each script said in the lab."""
    return run_scripts(Path(__file__).parent, SCRIPTS)


@pytest.mark.parametrize(
    ("script", "text"), [(script, one.text) for script, of in CLAIMED.items() for one in of]
)
def test_claim(script, text):
    assert_claimed(said_by()[script], text)


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
