# SPDX-License-Identifier: GPL-2.0-only
"""What several tests use."""

import os
import subprocess
from pathlib import Path

import pytest

TESTBED = Path(__file__).resolve().parent.parent
RUN = TESTBED / "run"
HUNG_S = 3600  # not a bound on how slow a machine may be


def run_command(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run testbed/run as a user would and return how it ended, with its output."""
    return subprocess.run(
        [str(RUN), *arguments], capture_output=True, text=True, timeout=HUNG_S, **options
    )


@pytest.fixture(scope="session")
def backend():
    """The virtual backend with everything built."""
    from lab.run.backends import open_backend

    if os.uname().machine != "x86_64":
        pytest.skip("the virtual lab needs x86-64")
    return open_backend("virtual")
