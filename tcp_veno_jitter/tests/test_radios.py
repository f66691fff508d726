# SPDX-License-Identifier: GPL-2.0-only
"""WCCP on mac80211's devices, in distributions' kernels: guest_radios.py holds the claims.

VM_KERNELS names the kernels, as `testbed/run --kernel` takes them (default: the newest of this
Debian; `make test-vm`: one of each line).
"""

import os
import shutil
from functools import cache

import pytest
from guest_radios import CLAIMS

from labtest.boot import VM_KERNELS, assert_claimed, run_in_lab, verdict_count, vm_kernel

SCRIPT = "tcp_veno_jitter/tests/guest_radios.py"


@cache
def said(kernel: str) -> str:
    where = ("--kernel", kernel) if kernel else ()
    return run_in_lab(f"/usr/bin/python3 {SCRIPT}", kernel=("--backend", "vm", *where))


@pytest.fixture(params=VM_KERNELS)
def on_kernel(request) -> str:
    """Return what was said on a kernel that can be had."""
    if not shutil.which("iw", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("no iw: apt-get install iw")
    return said(vm_kernel(request.param))


@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(on_kernel, text):
    assert_claimed(on_kernel, text)


def test_every_claim_was_tested(on_kernel):
    assert verdict_count(on_kernel) == len(CLAIMS)
