# SPDX-License-Identifier: GPL-2.0-only
"""WCCP on mac80211's devices, in distributions' kernels: guest_radios.py holds the claims.

VM_KERNELS names the kernels, as `testbed/run --kernel` takes them (default: the newest of this
Debian; `make test-vm`: one of each line).
"""

import os
import shutil
import subprocess
from functools import cache

import pytest
from guest_radios import CLAIMS

from labtest.boot import PROJECT, assert_claimed, run_in_lab, verdict_count

KERNELS = os.environ.get("VM_KERNELS", "newest").split()
SCRIPT = "tcp_veno_jitter/tests/guest_radios.py"


@cache
def said(kernel: str) -> str:
    wanted = kernel.replace("newest", "")
    if not shutil.which("iw", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("no iw: apt-get install iw")
    have = subprocess.run(
        [PROJECT / "testbed" / "setup", "vm"], env=os.environ | {"VM_KERNEL": wanted}
    )
    if have.returncode:
        pytest.skip(f"no kernel {kernel} or no QEMU: VM_KERNEL={kernel} testbed/setup vm")
    which = ("--backend", "vm", *(("--kernel", wanted) if wanted else ()))
    return run_in_lab(f"/usr/bin/python3 {SCRIPT}", kernel=which)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(kernel, text):
    assert_claimed(said(kernel), text)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_claim_was_tested(kernel):
    assert verdict_count(said(kernel)) == len(CLAIMS)
