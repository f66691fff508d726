# SPDX-License-Identifier: GPL-2.0-only
"""The modules do what they claim, on a real kernel in virtual time.

One boot of the lab kernel for each module; guest_run.py runs there; guest_modules.py and
guest_packets.py hold the claims and the tests.
"""

import platform
from functools import cache
from pathlib import Path

import guest_run  # noqa: F401 (registers all claims)
import pytest
from guest_claims import ALL, claims_about

from labtest.boot import assert_claimed, run_scripts, verdict_count

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


@cache
def said_about() -> dict[str, str]:
    """Return what the lab said about each module."""
    scripts = {name: f"guest_run.py {name}" for name in ALL}
    said = run_scripts(Path(__file__).parent, scripts.values())
    return {name: said[script] for name, script in scripts.items()}


@pytest.mark.parametrize(
    ("name", "text"), [(name, claim.text) for name in ALL for claim in claims_about(name)]
)
def test_claim(name, text):
    assert_claimed(said_about()[name], text)


@pytest.mark.parametrize("name", ALL)
def test_every_claim_was_tested(name):
    """The lab ran as many tests as there are claims about the module."""
    assert verdict_count(said_about()[name]) == len(claims_about(name))
