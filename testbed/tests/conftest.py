# SPDX-License-Identifier: GPL-2.0-only
"""What several tests use."""

import os
import subprocess
from pathlib import Path

import pytest

TESTBED = Path(__file__).resolve().parent.parent
RUN = TESTBED / "run"
HUNG_S = 3600  # not a bound on how slow a machine may be
# Files that take a minute or more, the longest first; at the end one of them would run alone.
LONG = (
    "test_modules.py", "test_vm.py", "test_smp.py", "test_wccp.py", "test_lab.py",
    "test_build.py", "test_wireless.py", "test_load.py", "test_sctp.py", "test_compare.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    items.sort(key=lambda of: LONG.index(of.path.name) if of.path.name in LONG else len(LONG))


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
