# SPDX-License-Identifier: GPL-2.0-only
"""Folders of finished runs, as those read them who did not make them."""

import json
from pathlib import Path
from typing import Any

from lab.common.errors import BadInput

NS3 = "ns-3"  # the backend of a run that is no Linux: `veno-lab ns3`
META, RESULTS = "meta.json", "results.jsonl"


def is_run(folder: Path) -> bool:
    """Say whether FOLDER has what a run leaves."""
    return (folder / META).is_file() and (folder / RESULTS).is_file()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return how the run in FOLDER was made."""
    return json.loads(_read(folder, META))


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of the run in FOLDER, one for each point."""
    return [json.loads(line) for line in _read(folder, RESULTS).splitlines()]


def _read(folder: Path, name: str) -> str:
    if not (folder / name).is_file():
        raise BadInput(f"{folder} is not the folder of a finished run: it has no {name}")
    return (folder / name).read_text()


def place_text(axes: dict[str, Any]) -> str:
    """Return the place of a sweep that AXES are, a dash where nothing is swept."""
    texts = (v if isinstance(v, str) else f"{name} {v:g}" for name, v in axes.items())
    return ", ".join(texts) or "-"
