# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP where several processors work at it at once, in QEMU and in real time.
sctp_smp.py and sctp_load.py hold the claims.

VM_KERNELS names the kernels, SMP_CPUS how many processors each boot has ("2 4"), SMP_ROUNDS how
often each thing is done, SMP_SLICE how often in one boot, LOAD_ROUNDS and LOAD_FLOWS what
sctp_load.py takes. `make test-smp` does more of it than `make test`.
"""

import os
from functools import cache

import pytest
import sctp_load
import sctp_smp

from labtest.boot import VM_KERNELS, assert_claimed, run_on_processors, verdict_count, vm_kernel

CPUS = [int(text) for text in os.environ.get("SMP_CPUS", "2").split()]
ROUNDS = int(os.environ.get("SMP_ROUNDS", "30"))
SLICE = int(os.environ.get("SMP_SLICE", "500"))
LOAD = os.environ.get("LOAD_ROUNDS", "6"), os.environ.get("LOAD_FLOWS", "100")
CLAIMED = {
    f"sctp_load.py {' '.join(LOAD)}": sctp_load.CLAIMS,
    **{
        f"sctp_smp.py {min(SLICE, ROUNDS - done)} {done}": sctp_smp.CLAIMS
        for done in range(0, ROUNDS, SLICE)
    },
}


@cache
def said(kernel: str, cpus: int, script: str) -> str:
    return run_on_processors(kernel, cpus, f"/usr/bin/python3 sctp_jitter/tests/{script}")


@pytest.fixture(params=VM_KERNELS)
def kernel(request) -> str:
    return vm_kernel(request.param)


@pytest.mark.parametrize("cpus", CPUS)
@pytest.mark.parametrize(
    ("script", "text"), [(script, one.text) for script, of in CLAIMED.items() for one in of]
)
def test_claim(kernel, cpus, script, text):
    assert_claimed(said(kernel, cpus, script), text)


@pytest.mark.parametrize("cpus", CPUS)
@pytest.mark.parametrize("script", CLAIMED)
def test_every_claim_was_tested(kernel, cpus, script):
    assert verdict_count(said(kernel, cpus, script)) == len(CLAIMED[script])
