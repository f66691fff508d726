# SPDX-License-Identifier: GPL-2.0-only
"""The TCP modules and sch_wccp come and go under many flows on several processors, in QEMU and in
real time. guest_load.py holds the claims.

VM_KERNELS names the kernels, SMP_CPUS how many processors each boot has, LOAD_ROUNDS and LOAD_FLOWS
what guest_load.py takes. `make test-smp` does more of it than `make test`.
"""

import os
from functools import cache

import guest_load
import pytest

from labtest.boot import VM_KERNELS, assert_claimed, run_on_processors, verdict_count, vm_kernel

CPUS = [int(text) for text in os.environ.get("SMP_CPUS", "2").split()]
LOAD = os.environ.get("LOAD_ROUNDS", "6"), os.environ.get("LOAD_FLOWS", "100")


@cache
def said(kernel: str, cpus: int) -> str:
    script = f"tcp_veno_jitter/tests/guest_load.py {' '.join(LOAD)}"
    return run_on_processors(kernel, cpus, f"/usr/bin/python3 {script}")


@pytest.fixture(params=VM_KERNELS)
def kernel(request) -> str:
    return vm_kernel(request.param)


@pytest.mark.parametrize("cpus", CPUS)
@pytest.mark.parametrize("text", [claim.text for claim in guest_load.CLAIMS])
def test_claim(kernel, cpus, text):
    assert_claimed(said(kernel, cpus), text)


@pytest.mark.parametrize("cpus", CPUS)
def test_every_claim_was_tested(kernel, cpus):
    assert verdict_count(said(kernel, cpus)) == len(guest_load.CLAIMS)
