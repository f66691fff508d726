# SPDX-License-Identifier: GPL-2.0-only
"""What a link does over time: traces from files and from models, as the steps that lablink takes.

A trace of a rate is Mahimahi's (each line a millisecond at which 1500 bytes may pass) or CSV of
seconds and Mb/s; delays and losses are CSV of seconds and ms or %. All of them loop.
"""

import hashlib
import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from lab.ask import linkmodels
from lab.ask.links import Link
from lab.ask.seeds import derived_seed
from lab.common.errors import BadInput, unknown

OPPORTUNITY_BYTES = 1500  # of whole frames, as links count
NS, MS = 10**9, 10**6  # ns of a second, of a millisecond
LENGTH_MAX_MS = 10**9  # eleven days
STEPS_MAX = 2**20  # sch_lablink.c: LABLINK_STEPS_MAX
STEP_MIN_S = 1e-6
# A schedule begins so long before a point does, and up to as much again, as the seed says: long
# enough that it began before the point was set up.
OFFSET_MS = 10**9
# key of a link -> what its file gives, and its unit
KEYS = {"trace": "rate", "delay_trace": "delay", "loss_trace": "loss"}
UNITS = {"rate": "Mb/s", "delay": "ms", "loss": "%"}
MADE = re.compile(rf"# seconds, ({'|'.join(UNITS.values())}):")  # what `traces --write` begins with
# what a unit is to lablink: bytes/s, ns, probability times 2^32
SCALES = {"rate": 125e3, "delay": 1e6, "loss": 2**32 / 100}
# files that are elsewhere than their name says, as where points run on other machines
# (lab.run.cluster)
elsewhere: dict[str, Path] = {}
LARGEST = {"rate": 100_000.0, "delay": 60_000.0, "loss": 100.0}


@dataclass(frozen=True, eq=False)
class Schedule:
    """Steps of a loop. KIND: rate, opportunities, delay or loss; NS: how long each lasts, VALUES:
    bytes/s, bytes at its end, ns, or a probability times 2^32; both int64, of one length."""

    kind: str
    ns: np.ndarray
    values: np.ndarray

    @cached_property
    def packed(self) -> bytes:
        """The steps as lablink takes them (lab.ask.lablink.STEP)."""
        return np.stack([self.ns, self.values], axis=1).astype("=u8").tobytes()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.kind.encode() + self.packed).hexdigest()[:16]

    @property
    def period_ns(self) -> int:
        return int(self.ns.sum())

    @property
    def period_s(self) -> float:
        return self.period_ns / NS

    @cached_property
    def _ends_s(self) -> np.ndarray:
        return np.cumsum(self.ns) / NS

    @cached_property
    def _carried_bytes(self) -> np.ndarray:
        """What has passed at the end of each step of a rate or of opportunities."""
        each = self.values * (self.ns / NS if self.kind == "rate" else 1)
        return np.cumsum(each)

    def bytes_by(self, time_s: np.ndarray) -> np.ndarray:
        """Return what may pass from the loop's begin to TIME_S, which may be loops later."""
        loops, phase_s = np.divmod(np.asarray(time_s, dtype=float), self.period_s)
        before = loops * self._carried_bytes[-1]
        if self.kind == "rate":
            ends, carried = (np.append(0.0, of) for of in (self._ends_s, self._carried_bytes))
            return before + np.interp(phase_s, ends, carried)
        passed = np.searchsorted(self._ends_s, phase_s, side="right")
        return before + np.append(0.0, self._carried_bytes)[passed]

    def time_of(self, byte: np.ndarray) -> np.ndarray:
        """Return when so many bytes may have passed: what bytes_by() is the other way round."""
        loops, rest = np.divmod(np.asarray(byte, dtype=float), self._carried_bytes[-1])
        at = np.searchsorted(self._carried_bytes, rest, side="left")
        time_s = loops * self.period_s + self._ends_s[at]
        if self.kind == "rate":  # and so much before the step's end
            left_bytes = self._carried_bytes[at] - rest
            time_s -= np.divide(
                left_bytes, self.values[at], out=np.zeros_like(rest), where=left_bytes > 0
            )
        return time_s

    def mean(self, from_s: float = 0.0, to_s: float = 0.0) -> float:
        """Return the mean from FROM_S to TO_S (default: of a loop), in Mb/s, ms or %."""
        to_s = to_s or from_s + self.period_s
        if self.kind in ("delay", "loss"):
            at_s = np.arange(from_s, to_s, max((to_s - from_s) / 10_000, 1e-3))
            at = np.searchsorted(self._ends_s, at_s % self.period_s, side="right")
            mean = self.values[np.minimum(at, len(self.values) - 1)].mean()
            return float(mean / SCALES[self.kind])
        carried = np.diff(self.bytes_by(np.array([from_s, to_s])))[0]
        return float(carried * 8e-6 / (to_s - from_s))


def of(name: str, kind: str, seed: int) -> Schedule:
    """Return the rate, delay or loss (KIND) of NAME: a model's realisation SEED, or a file."""
    if name in linkmodels.MODELS:
        return _from_model(name, kind, seed)
    path = elsewhere.get(name) or Path(name)
    try:
        stat = path.stat()
    except OSError as error:
        if "/" in name or "." in name:
            raise BadInput(f"trace {name}: {error.strerror}") from None
        raise unknown("file or model", name, linkmodels.MODELS) from None
    return _from_file(path, kind, stat.st_size, stat.st_mtime_ns)


def is_file(name: str, folder: Path) -> bool:
    """Say whether NAME is meant to be a file of FOLDER; else it is a model's, perhaps misspelt."""
    if name in ("", *linkmodels.MODELS):
        return False
    return bool(set("./") & set(name)) or (folder / name).exists()


@lru_cache(maxsize=256)
def _from_model(name: str, kind: str, seed: int) -> Schedule:
    trace = linkmodels.make(name, derived_seed(seed, f"model {name}"))
    values = trace.get(kind)
    if values is None:
        has = ", ".join(kind for kind in UNITS if kind in trace)
        raise BadInput(f"model {name} has no {kind}: it has {has}")
    return _schedule(kind, trace["seconds"], values)


@lru_cache(maxsize=64)
def _from_file(path: Path, kind: str, _size: int, _changed_ns: int) -> Schedule:
    return read(path, kind)


def read(path: Path, kind: str) -> Schedule:
    """Read the file PATH as a rate, a delay or a loss; BadInput names the line that is wrong."""
    try:
        text = path.read_text("utf-8-sig")  # a spreadsheet's begins with a mark
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise BadInput(f"trace {path}: {why}") from None
    if (of := MADE.match(text)) and UNITS[kind] != of[1]:
        raise BadInput(f"trace {path}: it gives {of[1]}, and a {kind} is in {UNITS[kind]}")
    lines = [
        (number, re.sub("[,;]", " ", line.split("#")[0]).split())
        for number, line in enumerate(text.splitlines(), 1)
    ]
    lines = [(number, words) for number, words in lines if words]
    if not lines:
        raise BadInput(f"trace {path}: it is empty")
    if kind == "rate" and len(lines[0][1]) == 1:
        return _mahimahi(path, lines)
    return _csv(path, kind, lines)


Lines = list[tuple[int, list[str]]]


def _mahimahi(path: Path, lines: Lines) -> Schedule:
    times_ms = np.empty(len(lines), dtype=np.int64)
    last_ms = 0
    for i, (number, words) in enumerate(lines):
        if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 18:
            raise BadInput(
                f"trace {path}, line {number}: '{' '.join(words)[:40]}': one whole number of"
                " milliseconds is wanted"
            )
        times_ms[i] = int(words[0])
        if times_ms[i] < last_ms:
            raise BadInput(
                f"trace {path}, line {number}: {times_ms[i]} ms comes after {last_ms} ms: times"
                " cannot go back"
            )
        last_ms = times_ms[i]
    if last_ms > LENGTH_MAX_MS:
        raise BadInput(
            f"trace {path}, line {lines[-1][0]}: {last_ms} ms: times count from where the trace"
            f" begins, up to {LENGTH_MAX_MS}"
        )
    if not last_ms:
        raise BadInput(f"trace {path}, line {lines[-1][0]}: a trace ends after 0 ms")
    at_ms, counts = np.unique(times_ms, return_counts=True)
    _check_steps(path, len(at_ms))
    ns = np.diff(at_ms, prepend=0) * MS
    return Schedule("opportunities", ns, counts * OPPORTUNITY_BYTES)


def _csv(path: Path, kind: str, lines: Lines) -> Schedule:
    wanted = f"seconds and {UNITS[kind]}"
    seconds, values = [], []
    for i, (number, words) in enumerate(lines):
        try:
            if len(words) != 2:
                raise ValueError
            time_s, value = map(float, words)
            if not (math.isfinite(time_s) and math.isfinite(value)):
                raise ValueError
        except ValueError:
            if not i and not any(word[0].isdigit() for word in words):
                continue  # what the columns are called
            raise BadInput(
                f"trace {path}, line {number}: '{' '.join(words)[:40]}': {wanted} are wanted"
            ) from None
        if seconds and time_s < seconds[-1] + STEP_MIN_S:
            raise BadInput(
                f"trace {path}, line {number}: {time_s:g} s does not come after {seconds[-1]:g} s"
            )
        if not 0 <= value <= LARGEST[kind]:
            raise BadInput(
                f"trace {path}, line {number}: {value:g} {UNITS[kind]}: 0 to {LARGEST[kind]:g}"
            )
        seconds.append(time_s)
        values.append(value)
    if not values:
        raise BadInput(f"trace {path}: no line of {wanted}")
    if kind == "rate" and not any(values):
        raise BadInput(f"trace {path}: nothing ever passes")
    _check_steps(path, len(values))
    # the last line lasts as long as the one before it
    last_s = seconds[-1] - seconds[-2] if len(seconds) > 1 else 1.0
    return _schedule(kind, np.diff(seconds, append=seconds[-1] + last_s), np.array(values))


def _check_steps(path: Path, count: int) -> None:
    if count > STEPS_MAX:
        raise BadInput(f"trace {path}: {count} steps, {STEPS_MAX} at most: cut it in pieces")


def _schedule(kind: str, seconds: np.ndarray, values: np.ndarray) -> Schedule:
    """Return steps of SECONDS that have VALUES in the unit of KIND."""
    scaled = np.round(np.asarray(values) * SCALES[kind]).astype(np.int64)
    return Schedule(kind, np.round(np.asarray(seconds) * NS).astype(np.int64), scaled)


def of_link(link: Link, seed: int) -> dict[str, Schedule]:
    """Return what traces LINK has at SEED: key of the link -> schedule."""
    names = {key: getattr(link, key) for key in KEYS}
    return {key: of(name, KEYS[key], seed) for key, name in names.items() if name}


def offset_s(seed: int) -> float:
    """Return how long before a point all its schedules begin: one time for all, so that traces of
    one place stay together."""
    return (OFFSET_MS + derived_seed(seed, "trace offset") % OFFSET_MS) / 1000


def at_point(link: Link, seed: int, from_s: float, to_s: float) -> Link:
    """Return LINK as it is on average between two times of a point: with a rate and a loss instead
    of traces of them."""
    start_s = offset_s(seed)
    means = {
        key: schedule.mean(start_s + from_s, start_s + to_s)
        for key, schedule in of_link(link, seed).items()
        if key != "delay_trace"
    }
    rate_mbps = means.get("trace", link.rate_mbps)
    kept = (1 - link.loss_pct / 100) * (1 - means.get("loss_trace", 0.0) / 100)
    loss_pct = 100 * (1 - kept) if "loss_trace" in means else link.loss_pct
    return Link(**(vars(link) | {"rate_mbps": rate_mbps, "loss_pct": loss_pct}))


def drain_ms(schedule: Schedule, seed: int, time_s: np.ndarray, backlog: np.ndarray) -> np.ndarray:
    """Return how long the last of BACKLOG bytes, which wait at TIME_S of a point, waits yet."""
    now_s = offset_s(seed) + np.asarray(time_s, dtype=float)
    gone_s = schedule.time_of(schedule.bytes_by(now_s) + backlog)
    return np.where(np.asarray(backlog) > 0, np.maximum(gone_s - now_s, 0) * 1000, 0.0)
