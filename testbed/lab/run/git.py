# SPDX-License-Identifier: GPL-2.0-only
"""What git says of a checkout, if there is a git and a checkout."""

import subprocess
from pathlib import Path

from lab.run.build import PROJECT


def told(*arguments: str, folder: Path = PROJECT) -> str:
    """Return what git says in FOLDER; nothing where it fails, or is not installed."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
