# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a point that ended, wherever it ran."""

import traceback
from dataclasses import dataclass, field
from typing import Any

from lab.ask.points import Point
from lab.measure.metrics import summarize
from lab.run.backends.base import Outcome
from lab.run.store import sample_names


@dataclass
class Ended:
    """RESULT and SAMPLES (file -> text) of POINT; or ERROR, what went wrong, and LOG."""

    point: Point
    result: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, str] = field(default_factory=dict)
    error: str = ""
    log: str = ""


def ended(outcome: Outcome, keep_samples: bool) -> Ended:
    """Read what the guest left of a point, as long as its folder is there."""
    point = outcome.point
    if outcome.error:
        return Ended(point, error=outcome.error, log=outcome.log)
    try:
        result = summarize(point, outcome.raw)
    except Exception as unreadable:  # this point's samples; the others go on
        error = f"its samples make no sense: {unreadable}"
        return Ended(point, error=error, log=traceback.format_exc())
    names = sample_names(point, outcome.raw, keep_samples)
    return Ended(point, result, {name: (outcome.raw / name).read_text() for name in names})
