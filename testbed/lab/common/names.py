# SPDX-License-Identifier: GPL-2.0-only
"""What the lab's commands are called, which depends on how somebody has the lab: texts name
`testbed/veno-lab` and `testbed/run` of a checkout."""

import re
import sys
from pathlib import Path

NAME = "veno-lab"
PROGRAM = f"testbed/{NAME}"
TESTBED = Path(__file__).resolve().parents[2]
DOCS = TESTBED.parent / "docs"  # a checkout has them beside it, the Debian package elsewhere
# What stands for itself in a text, and is no part of a path of somebody's.
BEFORE, AFTER = r"(?<![\w./~-])", r"(?![\w/-])"
INSTALLED = {
    rf"{BEFORE}{PROGRAM}{AFTER}": NAME,
    rf"{BEFORE}testbed/run scorecard{AFTER}": f"{NAME} scorecard",
    rf"{BEFORE}testbed/run{AFTER}": f"{NAME} run",
    rf"{BEFORE}testbed/traces{AFTER}": f"{NAME} traces",
}
PACKAGED = {rf"{BEFORE}docs/(?=[\w/-]+\.md\b)": f"/usr/share/doc/{NAME}/docs/"}
# pip's command has a file of this name in some bin; the checkout's starts a module.
_by_pip = Path(sys.argv[0]).name == NAME


def as_called(text: str) -> str:
    """Return what TEXT is for who has the lab as a package, of Debian or of pip."""
    packaged = not DOCS.is_dir()
    others = (INSTALLED if packaged or _by_pip else {}) | (PACKAGED if packaged else {})
    for ours, theirs in others.items():
        text = re.sub(ours, theirs, text)
    return text
