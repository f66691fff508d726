# SPDX-License-Identifier: GPL-2.0-only
"""What git says of a checkout, if there is a git and a checkout."""

import subprocess
from pathlib import Path

from lab.run import build


def told(*arguments: str, folder: Path | None = None) -> str:
    """Return what git says in FOLDER, or of the project; nothing where it fails, or is not
    installed."""
    command = ["git", "-C", str(folder or build.PROJECT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
