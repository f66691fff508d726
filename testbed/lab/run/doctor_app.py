# SPDX-License-Identifier: GPL-2.0-only
"""`veno-lab doctor` where the Python environment is there; lab.run.doctor does without."""

import typer

from lab.common import options
from lab.run import doctor

app = options.new_app()


@app.command(help=f"{doctor.DESCRIPTION}\n\n\b\n{doctor.EXAMPLES}", context_settings=options.HELP)
def main() -> None:
    raise typer.Exit(doctor.look())
