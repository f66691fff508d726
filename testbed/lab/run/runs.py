# SPDX-License-Identifier: GPL-2.0-only
"""Folders of finished runs, as those read them who did not make them."""

import hashlib
import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from lab.ask import linktraces
from lab.ask.scenario import TEXTS, without_idle_bursts
from lab.common.errors import BadInput

NS3 = "ns-3"  # the backend of a run that is no Linux: `veno-lab ns3`
META, RESULTS = "meta.json", "results.jsonl"
SHOWN = 12  # characters of a digest, as of a commit
NOT_MEASURED = (*TEXTS, "claims")  # of a scenario
NOT_ASKED = ("run.algorithms", "run.seeds", "run.keep_samples")
CHANGES_SHOWN = 3
DIGITS = 6  # of a digest in the name of a folder


def is_run(folder: Path) -> bool:
    """Say whether FOLDER has what a run leaves."""
    return (folder / META).is_file() and (folder / RESULTS).is_file()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return how the run in FOLDER was made."""
    try:
        return json.loads(_read(folder, META))
    except ValueError as error:
        raise _damaged(folder / META, getattr(error, "lineno", 1)) from None


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of the run in FOLDER, one for each point."""
    found = []
    for number, line in enumerate(_read(folder, RESULTS).splitlines(), 1):
        try:
            found.append(json.loads(line))
        except ValueError:
            raise _damaged(folder / RESULTS, number) from None
    return found


def _damaged(path: Path, line: int) -> BadInput:
    return BadInput(
        f"{path}, line {line}: no JSON, as where a disk was full or a copy was broken off: run its"
        " command again with --resume"
    )


def read_whole(folder: Path) -> list[dict[str, Any]]:
    """Return the results of the run in FOLDER; refuse one in which points have none."""
    results, planned = read_results(folder), read_meta(folder).get("points", 0)
    if len(results) < planned:
        raise BadInput(
            f"{folder}: {planned - len(results)} of {planned} points have no result: run its"
            " command again with --resume"
        )
    return results


def check_measured(folder: Path) -> None:
    """Refuse the run in FOLDER if it is none of the lab's: of ns-3's there is goodput alone."""
    if (folder / META).is_file() and read_meta(folder).get("backend") == NS3:
        raise BadInput(
            f"{folder} is of `veno-lab ns3`, which has goodput and nothing else to show:"
            f" `veno-lab agree RUN {folder}` holds it against the lab's"
        )


def check_alike(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Refuse two runs, by what they say of themselves, that did not ask the same. They may have
    other algorithms, seeds and places."""
    names = [meta.get("scenario") for meta in (first, second)]
    if names[0] != names[1]:
        raise BadInput(f"one is a run of {names[0]}, the other of {names[1]}: nothing is common")
    one, other = (
        _asked(meta | {"source": without_idle_bursts(meta.get("source", {}))})
        for meta in (first, second)
    )
    if unlike := [key for key in one | other if one.get(key) != other.get(key)]:
        raise BadInput(f"the two runs did not ask the same: they differ in {', '.join(unlike)}")


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what is not as it was BEFORE in a scenario's source NOW, of all that results follow
    from: "key value, was value". More algorithms, seeds, places or figures of rivals are no change:
    what was measured stays what it was."""
    one, other = (_asked({"source": of}) for of in (_common(before, now), _common(now, before)))
    keys = [key for key in other | one if one.get(key) != other.get(key)]
    found = [f"{key} {_told(other.get(key))}, was {_told(one.get(key))}" for key in keys]
    if len(found) > CHANGES_SHOWN:
        found[CHANGES_SHOWN:] = [f"and {len(found) - CHANGES_SHOWN} more"]
    return found


def digest(source: dict[str, Any]) -> str:
    """Name all that results of a scenario's SOURCE follow from, but for algorithms, seeds and which
    of the places it has."""
    asked = json.dumps(_asked({"source": source}), sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:DIGITS]


def _common(source: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return SOURCE without what may differ from OTHER where a run goes on, and with trace files by
    their names, wherever the scenario's file was when it was read."""
    source = json.loads(json.dumps(source))
    source.get("run", {}).pop("harm", None)
    for name, axis in source.get("axes", {}).items():
        theirs = other.get("axes", {}).get(name, {})
        choices = axis.get("choices", {})
        axis["choices"] = {key: v for key, v in choices.items() if key in theirs.get("choices", {})}
        for key in ("count", "marks"):
            axis.get("random", {}).pop(key, None)
    _name_traces(source)
    return source


def _name_traces(value: Any) -> None:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            _name_traces(item)
        elif key in linktraces.KEYS and isinstance(item, str):
            value[key] = Path(item).name


def _told(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def _asked(meta: dict[str, Any]) -> dict[str, Any]:
    """Return by dotted keys what results of a run depend on, but for its algorithms and seeds, and
    which of the places it has."""
    source = {key: v for key, v in meta.get("source", {}).items() if key not in NOT_MEASURED}
    source["axes"] = {
        name: {key: axis.get(key) for key in ("sets", "choices", "random")}
        for name, axis in source.get("axes", {}).items()
    }
    keys = {key: v for key, v in _leaves(source) if key not in NOT_ASKED}
    keys |= {f"--set {key}": value for key, value in meta.get("set", {}).items()}
    return keys | {"--quick": meta.get("quick", False)}


def _leaves(value: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Give what is in VALUE by dotted keys; a list of numbers or names is one value."""
    tables = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if not tables and not isinstance(value, dict):
        yield ".".join(path), value
        return
    for key, item in enumerate(value) if tables else value.items():
        yield from _leaves(item, *path, str(key))


def _read(folder: Path, name: str) -> str:
    if not (folder / name).is_file():
        raise BadInput(f"{folder} is not the folder of a finished run: it has no {name}")
    return (folder / name).read_text(errors="replace")


def without_options(
    arguments: list[str], valued: Container[str], flags: Container[str]
) -> list[str]:
    """Return the ARGUMENTS of a command without those options: VALUED ones with what they are
    given, and FLAGS."""
    kept, skip = [], False
    for argument in arguments:
        name = argument.split("=")[0]
        if not skip and name not in valued and argument not in flags:
            kept.append(argument)
        skip = not skip and argument in valued
    return kept


def user_modules(meta: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the name and the version of each module that the user of a run brought, as META says:
    its srcversion, where the kernel has that, and its sha256."""
    return [
        (one["name"], f"{one['srcversion']} (sha256 {one['sha256'][:SHOWN]})".lstrip())
        for one in meta.get("user_modules", [])
    ]


def place_text(axes: dict[str, Any]) -> str:
    """Return the place of a sweep that AXES are, a dash where nothing is swept."""
    texts = (v if isinstance(v, str) else f"{name} {v:g}" for name, v in axes.items())
    return ", ".join(texts) or "-"


def place_of(result: dict[str, Any], run: str) -> str:
    """Return the place of RESULT, after its scenario where that is not what its RUN is of."""
    scenario, place = result.get("scenario", run), place_text(result["axes"])
    return place if scenario == run else f"{scenario}: {place}"
