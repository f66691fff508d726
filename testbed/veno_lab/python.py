# SPDX-License-Identifier: GPL-2.0-only
"""Refuse a Python that cannot read the lab's modules by a line that says so: Mininet itself runs on
older ones. Written so that those can read this one."""

import sys

OLDEST = (3, 11)  # Debian 12's


def check(version=sys.version_info):
    """Raise ImportError if VERSION, a tuple, is too old."""
    if version < OLDEST:
        raise ImportError(
            f"veno_lab needs Python 3.11 or newer, and this is {version[0]}.{version[1]}"
        )


check()
