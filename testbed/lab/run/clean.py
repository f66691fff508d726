# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab clean`: take away what killed runs left in memory."""

from typing import Annotated

import typer

from lab.common import options
from lab.run import guestrooms

app = options.new_app()


@app.command(context_settings=options.HELP)
def main(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and leave it.")
    ] = False,
) -> None:
    """Remove the folders that killed runs left in memory (/dev/shm). Those of living runs stay, and
    so do all results, kernels and builds. Every run does so when it starts; `make clean` and `make
    distclean` remove builds and the cache.

    \b
    Examples:
      testbed/veno-lab clean --dry-run
      testbed/veno-lab clean
    """
    found = [*guestrooms.sweep(dry=True), *guestrooms.sweep_forgotten(dry=True)]
    sizes_mb = {folder: guestrooms.size_mb(folder) for folder in found}
    if not dry_run:
        found = [*guestrooms.sweep(), *guestrooms.sweep_forgotten()]
    for folder in found:
        print(f"{folder} ({sizes_mb.get(folder, 0.0):.0f} MB)")
    what = "nothing is left over" if not found else "would go" if dry_run else "removed"
    total_mb = sum(sizes_mb.get(folder, 0.0) for folder in found)
    print(f"{len(found)} folders {what}, {total_mb:.0f} MB" if found else what)
