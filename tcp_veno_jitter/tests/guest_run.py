# SPDX-License-Identifier: GPL-2.0-only
"""Check what the modules claim, inside the lab kernel: guest_run.py MODULE prints TAP.

test_modules.py starts it and reads CLAIMS. Standard library only. All times are virtual.
"""

import os
import sys

import guest_liars  # noqa: F401 (registers its claims)
import guest_modules  # noqa: F401
import guest_packets  # noqa: F401
from guest_claims import CLAIMS, claim, run_claims
from guest_net import run_cmd

from lab.guest.kernel_log import KernelLog

PRIORITY = 10


@claim("the kernel log holds no complaint at the end, and no memory was lost")
def check_log(_name):
    log = KernelLog()
    complaint = log.complaint()
    assert not complaint, complaint


__all__ = ["CLAIMS"]

if __name__ == "__main__":
    # who goes first of several that wake at one instant must not hang on what ran before
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    run_cmd("modprobe", "-d", "/run/lab/modules", "tun")
    sys.exit(1 if run_claims(sys.argv[1]) else 0)
