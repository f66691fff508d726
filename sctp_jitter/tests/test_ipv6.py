# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP over IPv6, which the lab's own kernel does not have: on a distribution's kernel
in QEMU. sctp_ipv6.py holds the claims, VM_KERNELS names the kernels."""

from functools import cache

import pytest
import sctp_ipv6

from labtest.boot import VM_KERNELS, assert_claimed, run_in_lab, vm_kernel


@cache
def said(kernel: str) -> str:
    where = ("--backend", "vm", *(("--kernel", kernel) if kernel else ()))
    return run_in_lab("/usr/bin/python3 sctp_jitter/tests/sctp_ipv6.py", kernel=where)


@pytest.mark.parametrize("name", VM_KERNELS)
@pytest.mark.parametrize("text", [claim.text for claim in sctp_ipv6.CLAIMS])
def test_claim(name, text):
    assert_claimed(said(vm_kernel(name)), text)
