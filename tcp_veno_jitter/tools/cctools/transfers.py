# SPDX-License-Identifier: GPL-2.0-only
"""One transfer with one algorithm, and what was seen of it: iperf3 or any command.

Programs run in a session of their own, so a Ctrl-C at the terminal is ours alone to answer.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from cctools import Complaint
from cctools.pinging import Ping

FORWARD, REVERSE = "forward", "reverse"
STALLED_S = 30.0  # beyond its time: a transfer that hangs, not a slow one
BUSY_WAIT_S = 5.0
BUSY_TRIES = 6
SNMP = Path("/proc/net/snmp")


class Failed(Exception):
    """This transfer gave no figure; another may."""


class Refused(Failed):
    """No transfer of this kind can: what is missing is said with its cure."""


@dataclass(frozen=True)
class Transfer:
    """What a transfer told. SPEED is what is compared: Mb/s, or one over the seconds that a command
    took; RETRANSMITTED_PERCENT of the packets sent."""

    speed: float
    seconds: float
    goodput_mbps: float | None = None
    rtt_ms: float | None = None
    retransmits: int | None = None
    retransmitted_percent: float | None = None


@dataclass(frozen=True)
class Run:
    """A transfer in its place: ROUND from 0 on, SLOT within it; AT_S since the start."""

    round: int
    slot: int
    direction: str
    algorithm: str
    at_s: float
    transfer: Transfer | None = None
    ping: Ping | None = None
    failure: str = ""

    def row(self) -> dict[str, Any]:
        return asdict(self)


class Traffic(Protocol):
    """Something that moves data with an algorithm."""

    def describe(self) -> str: ...

    def transfer(self, algorithm: str, direction: str, seconds: float) -> Transfer:
        """Raises Failed or Refused."""
        ...


def start(command: list[str], **options: Any) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
        env=os.environ | {"LC_ALL": "C"},
        **options,
    )


def end(process: subprocess.Popen) -> None:
    """End PROCESS and all that it started; nothing if that is over."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)


def output_of(command: list[str], limit_s: float | None) -> tuple[str, str, int]:
    """Return output, complaints and exit code of COMMAND; Failed if it takes over LIMIT_S."""
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, complaints = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {limit_s:.0f} s") from None
    finally:
        if process.poll() is None:
            end(process)
    return output, complaints, process.returncode


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()


# --- iperf3 ------------------------------------------------------------------


@dataclass
class Iperf3:
    """iperf3 to HOST. FAMILY: -4, -6 or nothing; EXTRA: options of its own."""

    host: str
    port: int = 5201
    family: str = ""
    extra: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return f"iperf3 to {self.host}, port {self.port}"

    def command(self, algorithm: str, direction: str, seconds: float) -> list[str]:
        return [
            "iperf3", "-J", "-c", self.host, "-p", str(self.port), "-t", f"{seconds:g}",
            "-C", algorithm, *([self.family] if self.family else []),
            *(["-R"] if direction == REVERSE else []), *self.extra,
        ]  # fmt: skip

    def transfer(self, algorithm: str, direction: str, seconds: float) -> Transfer:
        for attempt in range(1, BUSY_TRIES + 1):
            output, complaints, _ = output_of(
                self.command(algorithm, direction, seconds), seconds + STALLED_S
            )
            try:
                said = json.loads(output)
            except ValueError:
                raise Failed(
                    f"iperf3: {last_line(complaints or output) or 'it says nothing'}"
                ) from None
            error = said.get("error", "")
            if "busy" not in error or attempt == BUSY_TRIES:
                break
            time.sleep(BUSY_WAIT_S)
        if error:
            raise self._failure(error, algorithm, direction)
        return read_iperf3(said, algorithm, direction)

    def _failure(self, error: str, algorithm: str, direction: str) -> Failed:
        server = f"`iperf3 -s -p {self.port}`" if self.port != 5201 else "`iperf3 -s`"
        if "busy" in error:
            return Refused(
                f"the iperf3 of {self.host} is busy with somebody else's test: wait, or run"
                f" another there (`iperf3 -s -p {self.port + 1}`) and give --port"
            )
        if "Connection refused" in error:
            return Refused(f"nobody listens on {self.host} port {self.port}: run {server} there")
        if "TCP_CONGESTION" in error and direction == REVERSE:
            return refused_there(algorithm)
        if any(word in error for word in ("not known", "No route", "unreachable", "resolution")):
            return Refused(f"{self.host}: {error.removeprefix('error - ')}")
        return Failed(f"iperf3: {error.removeprefix('error - ')}")


def refused_there(algorithm: str, said: object = "") -> Refused:
    """Return what is to be said if the other end does not send with ALGORITHM."""
    return Refused(
        f"with -R the other end sends, and its kernel refuses {algorithm}: modprobe"
        f" tcp_{algorithm} there, and list it in its tcp_allowed_congestion_control"
        + (f" ({said})" if said else "")
    )


def read_iperf3(said: dict[str, Any], algorithm: str, direction: str) -> Transfer:
    """Return what iperf3's JSON says of one transfer."""
    try:
        total = said["end"]
        received, sent = total["sum_received"], total["sum_sent"]
        goodput_mbps = received["bits_per_second"] / 1e6
        seconds, sent_bytes = received["seconds"], sent["bytes"]
    except (KeyError, TypeError) as missing:
        raise Failed(f"iperf3 does not tell {missing}") from None
    used = total.get("sender_tcp_congestion", algorithm)
    if used != algorithm:
        raise Failed(f"the sender used {used} instead of {algorithm}")
    retransmits = sent.get("retransmits")
    mss_bytes = said.get("start", {}).get("tcp_mss_default") or 1448
    return Transfer(
        speed=goodput_mbps,
        seconds=seconds,
        goodput_mbps=goodput_mbps,
        rtt_ms=_median_rtt_ms(said) if direction == FORWARD else None,
        retransmits=retransmits,
        retransmitted_percent=(
            100 * retransmits * mss_bytes / sent_bytes
            if retransmits is not None and sent_bytes
            else None
        ),
    )


def _median_rtt_ms(said: dict[str, Any]) -> float | None:
    """Return the smoothed RTT that TCP_INFO told at the end of each second, the median of all."""
    rtts_us = [
        stream["rtt"]
        for interval in said.get("intervals", [])
        for stream in interval.get("streams", [])
        if stream.get("rtt")
    ]
    return median(rtts_us) / 1000 if rtts_us else None


# --- any command -------------------------------------------------------------


@dataclass
class Command:
    """A command of the user's, in whose words {algorithm} stands for the name. What it takes is
    what is compared. LIMIT_S: one that takes longer has failed."""

    template: str
    limit_s: float | None = None

    def __post_init__(self):
        if "{algorithm}" not in self.template:
            raise Complaint("--command: its words must have {algorithm} where the name belongs")

    def describe(self) -> str:
        return self.template

    def transfer(self, algorithm: str, direction: str, seconds: float) -> Transfer:
        line = self.template.replace("{algorithm}", shlex.quote(algorithm))
        before, began_s = retransmitted_segments(), time.monotonic()
        _, complaints, status = output_of(["/bin/sh", "-c", line], self.limit_s)
        took_s = time.monotonic() - began_s
        if status:
            raise Failed(f"exit code {status}: {last_line(complaints) or 'it says nothing'}")
        after = retransmitted_segments()
        return Transfer(
            speed=1 / max(took_s, 1e-6),
            seconds=took_s,
            retransmits=after - before if None not in (before, after) else None,
        )


def retransmitted_segments() -> int | None:
    """Return how many segments this machine (this network namespace) has sent again."""
    with contextlib.suppress(OSError, ValueError):
        lines = [line.split() for line in SNMP.read_text().splitlines() if line.startswith("Tcp:")]
        return int(lines[1][lines[0].index("RetransSegs")])
    return None
