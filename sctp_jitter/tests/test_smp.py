# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP where several processors work at it at once: distributions' kernels in QEMU, in
real time. sctp_smp.py holds the claims.

VM_KERNELS names the kernels, SMP_CPUS how many processors each boot has ("2 4"), SMP_ROUNDS how
often each thing is done. `make test-smp` does more of it than `make test`.
"""

import os
from functools import cache

import pytest
import sctp_smp

from labtest.boot import VM_KERNELS, assert_claimed, run_in_lab, verdict_count, vm_kernel

ROUNDS = int(os.environ.get("SMP_ROUNDS", "30"))
CPUS = os.environ.get("SMP_CPUS", "2").split()
SLICE = 500  # rounds of one boot
SLICES = tuple(min(SLICE, ROUNDS - done) for done in range(0, ROUNDS, SLICE))


@cache
def said(kernel: str, cpus: str, slice_: int) -> str:
    where = ("--backend", "vm", "--cpus", cpus, *(("--kernel", kernel) if kernel else ()))
    command = f"/usr/bin/python3 sctp_jitter/tests/sctp_smp.py {SLICES[slice_]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VM_CLOCK", "real")
        return run_in_lab(command, kernel=where)


@pytest.fixture(params=VM_KERNELS)
def kernel(request) -> str:
    return vm_kernel(request.param)


@pytest.mark.parametrize("slice_", range(len(SLICES)))
@pytest.mark.parametrize("cpus", CPUS)
@pytest.mark.parametrize("text", [claim.text for claim in sctp_smp.CLAIMS])
def test_claim(kernel, cpus, slice_, text):
    assert_claimed(said(kernel, cpus, slice_), text)


@pytest.mark.parametrize("slice_", range(len(SLICES)))
@pytest.mark.parametrize("cpus", CPUS)
def test_every_claim_was_tested(kernel, cpus, slice_):
    assert verdict_count(said(kernel, cpus, slice_)) == len(sctp_smp.CLAIMS)
