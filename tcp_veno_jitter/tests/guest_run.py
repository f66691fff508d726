# SPDX-License-Identifier: GPL-2.0-only
"""Check what the modules claim, inside the lab kernel: guest_run.py MODULE [PATTERN] prints TAP.
PATTERN: only claims whose text it is found in.

test_modules.py starts it and reads CLAIMS. Standard library only. All times are virtual.
"""

import re
import sys

import guest_liars  # noqa: F401 (registers its claims)
import guest_modules  # noqa: F401
import guest_packets  # noqa: F401
from guest_claims import claim, claims_about

from labtest.claims import check_log
from labtest.guest import first_in_line, run_cmd

claim("the kernel log holds no complaint at the end, and no memory was lost")(check_log)


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "tun")
    module, wanted = sys.argv[1], "".join(sys.argv[2:])
    held = [one.holds(module) for one in claims_about(module) if re.search(wanted, one.text)]
    sys.exit(0 if all(held) else 1)
