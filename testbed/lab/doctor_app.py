# SPDX-License-Identifier: GPL-2.0-only
"""`veno-lab doctor` where the Python environment is there; lab.doctor does without."""

import typer

from lab import doctor, options

app = options.new_app()


@app.command(help=f"{doctor.DESCRIPTION}\n\n\b\n{doctor.EXAMPLES}", context_settings=options.HELP)
def main() -> None:
    raise typer.Exit(doctor.look())
