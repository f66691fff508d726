# SPDX-License-Identifier: GPL-2.0-only
"""WCCP does what it claims, between real stacks in virtual time: guest_wccp.py holds the claims."""

import os
import platform
from functools import cache
from pathlib import Path

import pytest
from guest_wccp import CLAIMS

from labtest.boot import assert_claimed, run_scripts, verdict_count

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)
SCRIPT = f"guest_wccp.py --fuzz {os.environ.get('WCCP_FUZZ', 5000)}"


@cache
def said() -> str:
    return run_scripts(Path(__file__).parent, [SCRIPT])[SCRIPT]


@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(text):
    assert_claimed(said(), text)


def test_every_claim_was_tested():
    assert verdict_count(said()) == len(CLAIMS)
