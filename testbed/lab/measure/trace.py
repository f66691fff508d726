# SPDX-License-Identifier: GPL-2.0-only
"""What the modules' tracepoints said during a point (trace.txt among its raw figures), and what
is needed to make sense of it."""

import re
from collections.abc import Iterator

LINE = re.compile(r" (\d+)\.(\d{6}): (\w+): (.*)")
JITTER_RATIO_ONE = 1 << 24  # fixed point of estimators/jitter_ratio.h


def events(text: str, *names: str) -> Iterator[dict]:
    """Give each event of a trace that has one of NAMES with its time_ns (CLOCK_MONOTONIC); numbers
    as int."""
    for seconds, microseconds, event, fields in LINE.findall(text):
        if event in names:
            known = dict(field.split("=") for field in fields.split())
            yield {"time_ns": int(seconds + microseconds) * 1000} | {
                key: _number(value) for key, value in known.items()
            }


def _number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def start_ns(spec: dict, ends: list[dict]) -> int:
    """Return when a point started. ENDS: what labflow said of each of SPEC's flows, in order."""
    return round((ends[0]["start_s"] - spec["flows"][0]["start_s"]) * 1e9)


def flows_by_port(spec: dict, ends: list[dict]) -> dict[int, tuple[str, str]]:
    """Return source port -> name, algorithm of those flows that take the whole way forward."""
    return {
        end["source_port"]: (flow["name"], flow["algorithm"])
        for flow, end in zip(spec["flows"], ends, strict=True)
        if not flow["cross"]
    }
