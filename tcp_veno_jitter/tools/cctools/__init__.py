# SPDX-License-Identifier: GPL-2.0-only
"""What cc-compare and cc-watch are made of. Standard library only, Python 3.11 or newer: they run
on servers, where nothing else should have to be installed.

`compare` and `watch` are the commands; `rounds`, `verdict`, `sequence` and `page` belong to the
first, `sockdiag` and `connections` to the second.
"""

import argparse
import os
import sys

NEEDED = (3, 11)


class Complaint(Exception):
    """What a person got wrong, or what is missing: one line that names the cure."""


def option_parser(program: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return what reads options; its texts are shown as they are, and no option is cut short."""
    return argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def say(program: str, text: str) -> None:
    print(f"{program}: {text}", file=sys.stderr, flush=True)


def check_python() -> None:
    """End where Python is too old, in a line that says so. What this file has, 3.6 can read."""
    if sys.version_info < NEEDED:
        had, needed = (".".join(map(str, one)) for one in (sys.version_info[:3], NEEDED))
        say(
            os.path.basename(sys.argv[0]),
            f"this is Python {had}, and {needed} or newer is needed: install it beside that one,"
            f" then: python{needed} {os.path.abspath(sys.argv[0])}",
        )
        sys.exit(2)


check_python()  # whatever of cctools is imported, this file comes first
