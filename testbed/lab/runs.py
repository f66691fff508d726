# SPDX-License-Identifier: GPL-2.0-only
"""Folders of finished runs, as those read them who did not make them."""

import json
from pathlib import Path
from typing import Any

from lab.errors import BadInput


def is_run(folder: Path) -> bool:
    """Say whether FOLDER has what a run leaves."""
    return (folder / "results.jsonl").is_file() and (folder / "meta.json").is_file()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return how the run in FOLDER was made."""
    _check(folder)
    return json.loads((folder / "meta.json").read_text())


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of the run in FOLDER, one for each point."""
    _check(folder)
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def _check(folder: Path) -> None:
    if not is_run(folder):
        raise BadInput(
            f"{folder} is not the folder of a finished run: it has no results.jsonl and meta.json"
        )


def place_text(axes: dict[str, Any]) -> str:
    """Return the place of a sweep that AXES are, a dash where nothing is swept."""
    texts = (v if isinstance(v, str) else f"{name} {v:g}" for name, v in axes.items())
    return ", ".join(texts) or "-"
