# SPDX-License-Identifier: GPL-2.0-only
"""The folder of a run. Finished points are kept one file each, written whole or not at all;
results.jsonl is put together from them in the scenario's order, so its bytes do not depend on
which point ended first."""

import fcntl
import itertools
import json
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.ask import scenario as scenarios
from lab.ask.linktraces import KEYS
from lab.ask.points import Point, expand
from lab.common.errors import BadInput, writing
from lab.run.cpus import NO_LOCKS
from lab.run.runs import META, changes, read_meta

SAMPLES = ("flows.csv", "hops.csv")
AGENTS = "agents.csv"  # where nodes help an algorithm
VERDICTS = (
    "verdicts.csv"  # kept of every point that has it: it is small, and rules are chosen on it
)
RATIOS = "ratios.csv"  # with the samples, of points that have it
PROJECT_RESULTS = Path("results")


def write_atomically(path: Path, text: str, cure: str = "free space or choose --out") -> None:
    """Write TEXT to PATH so that a reader, or a crash, sees the old file or the new, never half.
    CURE: what to do where that cannot be."""
    part = path.with_name(path.name + ".part")
    try:
        with writing(path, cure):
            part.write_text(text)
            os.replace(part, path)
    except BadInput:
        part.unlink(missing_ok=True)
        raise


def sample_names(point: Point, raw: Path, keep_samples: bool) -> list[str]:
    """Return which files of RAW, a guest's folder of POINT, are kept."""
    kept = [*(SAMPLES if keep_samples else ()), *([VERDICTS] if point.has_verdicts else ())]
    kept += [RATIOS] if keep_samples and "tcp_jitter_ratio" in point.spec["traces"] else []
    kept += [AGENTS] if keep_samples and (raw / AGENTS).exists() else []
    return kept


def _changed(meta: dict[str, Any], scenario: str, source: dict[str, Any]) -> list[str]:
    """Return what of the settings that META tells of is another in SCENARIO's SOURCE of today, in
    words; nothing where what was measured is what is asked now, however it is written."""
    before = meta.get("source", source)
    if before == source:
        return []
    told = changes(before, source)
    try:
        algorithms = tuple(meta.get("algorithms", ()))
        old, new = (_ids(scenario, of, algorithms) for of in (before, source))
    except BadInput:  # an old file, or a trace that is gone: its text is all there is
        return told
    if common := old.keys() & new.keys():
        if all(old[place] == new[place] for place in common):
            return []
        return told or ["a trace file of the same name has other steps"]
    return [] if set(old.values()) & set(new.values()) else told


def _ids(
    scenario: str, source: dict[str, Any], algorithms: tuple[str, ...]
) -> dict[tuple[Any, ...], str]:
    """Return what each place of SCENARIO, as SOURCE has it, is to measure of each algorithm,
    whatever the lab is made of. One seed tells: all follow from the same. A trace is known by the
    digest of its steps, not by where its file is."""
    parsed = scenarios.parse(scenario, source)
    algorithms = algorithms or parsed.run.algorithms
    points = expand(parsed, algorithms, [1], lambda *_: "")
    ids = {}
    for point in points:
        links = {
            hop: {key: value for key, value in link.items() if key not in KEYS}
            for hop, link in point.spec["links"].items()
        }
        place = (point.algorithm, *sorted(point.axes.items()))
        ids[place] = replace(point, spec=point.spec | {"links": links}).id
    return ids


class Store:
    @staticmethod
    def check(
        folder: Path, resume: bool, scenario: str = "", source: dict[str, Any] | None = None
    ) -> None:
        """Refuse, before anything is built or written, a FOLDER that a run of SCENARIO, which has
        this SOURCE, may not use: one with results, or, to go on in, one of another scenario or of
        this with other settings, whose they would be lost to. Which seeds, algorithms or values a
        run has may change from one sitting to the next."""
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file: choose another --out")
        finished = any((folder / "points").glob("*.json"))
        if not resume and finished:
            raise BadInput(
                f"{folder} already holds results: add --resume to go on, or choose another --out"
            )
        if scenario and (folder / META).is_file():
            other = read_meta(folder).get("scenario", scenario)
            if other != scenario:
                raise BadInput(
                    f"{folder} holds a run of {other}, not of {scenario}: choose another --out"
                )
        if source and finished and (folder / META).is_file():
            changed = _changed(read_meta(folder), scenario, source)
            if changed:
                raise BadInput(
                    f"{folder} holds results of other settings ({'; '.join(changed)}): choose"
                    " another --out, or move that folder away"
                )

    def __init__(
        self,
        folder: Path,
        resume: bool = True,
        scenario: str = "",
        source: dict[str, Any] | None = None,
    ):
        """Take FOLDER, for check() see there: what it refuses may have come since it looked."""
        self.folder = folder
        with writing(folder, "choose --out"):
            for name in ("points", "samples", "logs"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        self._lock()
        self.check(folder, resume, scenario, source)
        for name in ("logs", "samples"):  # what an interrupted run left half-written
            for part in (folder / name).glob("*.part"):
                part.unlink()

    def _lock(self) -> None:
        """Take the folder for as long as this is there; refuse one that another run has. The lock
        is the folder's own: it leaves no file, and ends with the process, however that ends."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"{self.folder}: another run writes there; choose another --out"
            ) from None
        except OSError as refused:
            if refused.errno not in NO_LOCKS:
                raise

    def _point_file(self, point: Point) -> Path:
        return self.folder / "points" / f"{point.id}.json"

    def _sample_file(self, point: Point, name: str) -> Path:
        return self.folder / "samples" / f"{point.id}.{name}"

    def has(self, point: Point, with_samples: bool = False) -> bool:
        """Say whether POINT is finished, its samples included if they are wanted."""
        if not self._point_file(point).exists():
            return False
        return not with_samples or all(self._sample_file(point, n).exists() for n in SAMPLES)

    def add(self, point: Point, result: dict[str, Any], samples: dict[str, str]) -> None:
        """Keep the result of POINT; its SAMPLES (file -> text) first, so that a result is never
        without them."""
        for name, text in samples.items():
            write_atomically(self._sample_file(point, name), text)
        write_atomically(self._point_file(point), json.dumps(result, sort_keys=True) + "\n")

    def add_failure(self, point: Point, error: str, log: str) -> Path:
        path = self.folder / "logs" / f"{point.id}.log"
        write_atomically(path, f"{point.describe()}\n{error}\n\n{log}")
        return path

    def assemble(
        self, points: list[Point], derive: Callable[[list[dict[str, Any]]], None] | None = None
    ) -> list[dict[str, Any]]:
        """Write results.jsonl of those POINTS that are finished and return them in order.

        What a result is called (its axes' names, say) is the scenario's of today, not of the day
        it was measured: only what was measured is a function of the point's content. DERIVE adds
        what follows from several results.
        """
        results = []
        for point in filter(self.has, points):
            results.append(json.loads(self._point_file(point).read_text()) | point.labels())
        if derive:
            derive(results)
        lines = [json.dumps(result, sort_keys=True) + "\n" for result in results]
        write_atomically(self.folder / "results.jsonl", "".join(lines))
        return results

    def read_json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def write_json(self, name: str, value: Any) -> None:
        """Write VALUE, its keys in their order: that of a scenario's axes means something."""
        write_atomically(self.folder / name, json.dumps(value, indent=2) + "\n")


def fresh_folder(scenario_id: str) -> Path:
    """Make results/NAME, or results/NAME-2 and so on, and return it: results are never overwritten,
    and what starts at the same time gets a folder of its own."""
    for n in itertools.count(1):
        folder = PROJECT_RESULTS / (scenario_id if n == 1 else f"{scenario_id}-{n}")
        with writing(folder, "choose --out"), suppress(FileExistsError):
            folder.mkdir(parents=True)
            break
    return folder
