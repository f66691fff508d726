# SPDX-License-Identifier: GPL-2.0-only
"""What a connection's numbers mean: struct tcp_info, and what its algorithm tells (docs/values.md).

Our modules fill the layout of BBR, the only one of the kernel's three that holds most of their
numbers and that every ss knows; which of them is meant, the algorithm's name says.
"""

import socket
import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cctools.sockdiag import BBRINFO, STATES, VEGASINFO, Socket

OURS = ("veno_jitter", "jtcp", "veno03", "tabe", "wccp")
# what each of ours tells; what it has no number for is 0
TOLD = {
    "veno_jitter": {"bandwidth", "base", "ratio", "backlog", "law"},
    "jtcp": {"base", "ratio"},
    "veno03": {"base", "backlog"},
    "tabe": {"bandwidth", "base"},
    "wccp": {"bandwidth", "base"},
}
CA_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")  # enum tcp_ca_state
# of veno_jitter, in the two lowest bits of bbr_pacing_gain; 0: none is told
LAW_STATES = (None, "STARTUP", "ALONE", "SHARED")
LAW_MASK = 3
NEVER_LOST = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
GAIN_ONE = 256

# struct tcp_info, from its beginning; a kernel may tell less or more
HEAD = struct.Struct("=8B24I")
# offset and layout of what is read of the rest
PACING_RATE, BYTES_ACKED, MIN_RTT, DELIVERY_RATE = 104, 120, 148, 160
DELIVERED, BYTES_SENT, BYTES_RETRANS = 192, 200, 208
U64, U32 = struct.Struct("=Q"), struct.Struct("=I")
BBR = struct.Struct("=5I")
VEGAS = struct.Struct("=4I")


def _number(info: bytes, layout: struct.Struct, at: int) -> int | None:
    return layout.unpack_from(info, at)[0] if at + layout.size <= len(info) else None


@dataclass
class Rate:
    """What went over a connection between two looks."""

    sent_mbps: float | None = None
    resent_percent: float | None = None


@dataclass
class Losses:
    """For what its losses were taken since we look; None: nobody tells."""

    random: int | None = None
    congestion: int | None = None


@dataclass
class Connection:
    """A connection with its numbers, worked out when asked for. None: not told."""

    told: Socket
    rate: Rate = field(default_factory=Rate)
    losses: Losses = field(default_factory=Losses)

    @property
    def algorithm(self) -> str:
        return self.told.algorithm

    @property
    def bytes_acked(self) -> int:
        return _number(self.told.info, U64, BYTES_ACKED) or 0

    @cached_property
    def head(self) -> tuple[int, ...] | None:
        info = self.told.info
        return HEAD.unpack_from(info) if len(info) >= HEAD.size else None

    def _head(self, index: int) -> int | None:
        return self.head[index] if self.head else None

    def _end(self, side: int) -> str:
        address = socket.inet_ntop(self.told.family, self.told.addresses[side])
        port = int.from_bytes(self.told.ports[side], "big")
        address = address.removeprefix("::ffff:") if "." in address else address
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    @cached_property
    def local(self) -> str:
        return self._end(0)

    @cached_property
    def remote(self) -> str:
        return self._end(1)

    @property
    def tcp_state(self) -> str:
        state = self.told.state
        return STATES[state] if state < len(STATES) else str(state)

    @property
    def ca_state(self) -> str | None:
        state = self._head(1)
        return CA_STATES[state] if state is not None and state < len(CA_STATES) else None

    @property
    def state(self) -> str:
        """The core's state of congestion control; the connection's, where that is not
        established."""
        return (self.ca_state or "-") if self.tcp_state == "ESTAB" else self.tcp_state

    @property
    def law(self) -> str | None:
        """The state of veno_jitter's law."""
        return LAW_STATES[self._bbr[3] & LAW_MASK] if self._bbr and self._tells("law") else None

    @property
    def srtt_ms(self) -> float | None:
        value = self._head(23)
        return value / 1000 if value else None

    @property
    def mss_bytes(self) -> int | None:
        return self._head(10)

    @property
    def cwnd_pkts(self) -> int | None:
        return self._head(26)

    @property
    def ssthresh_pkts(self) -> int | None:
        value = self._head(25)
        return None if value == NEVER_LOST else value

    @property
    def retransmits(self) -> int | None:
        return self._head(31)

    @property
    def in_flight_pkts(self) -> int | None:
        """Sent, neither acknowledged nor taken for lost."""
        unacked, sacked, lost, again = (self._head(index) for index in (12, 13, 14, 15))
        return None if unacked is None else max(unacked - sacked - lost + again, 0)

    @property
    def delivery_mbps(self) -> float | None:
        value = _number(self.told.info, U64, DELIVERY_RATE)
        return value * 8 / 1e6 if value is not None else None

    @property
    def pacing_mbps(self) -> float | None:
        value = _number(self.told.info, U64, PACING_RATE)
        return value * 8 / 1e6 if value is not None and value < 2**63 else None

    @property
    def resent_percent(self) -> float | None:
        """Bytes sent again of all sent, since the beginning."""
        sent = _number(self.told.info, U64, BYTES_SENT)
        again = _number(self.told.info, U64, BYTES_RETRANS)
        return 100 * again / sent if sent and again is not None else None

    @cached_property
    def _bbr(self) -> tuple[int, ...] | None:
        told = self.told
        return BBR.unpack_from(told.cc) if told.cc_kind == BBRINFO and len(told.cc) >= 20 else None

    def _tells(self, what: str) -> bool:
        return self._bbr is not None and what in TOLD.get(self.algorithm, set())

    @property
    def bandwidth_mbps(self) -> float | None:
        """B of ours, bw of BBR."""
        if self._bbr and (self._tells("bandwidth") or self.algorithm not in OURS):
            return (self._bbr[1] << 32 | self._bbr[0]) * 8 / 1e6
        return None

    @property
    def base_rtt_ms(self) -> float | None:
        """What the algorithm takes for the RTT of an empty path, or the core's smallest."""
        base_us = self._bbr[2] if self._bbr else 0
        if self.told.cc_kind == VEGASINFO and len(self.told.cc) >= VEGAS.size:
            # vegas has its base in the first, westwood and illinois in the second
            base_us = min(filter(None, VEGAS.unpack_from(self.told.cc)[2:]), default=0)
        if not 0 < base_us < NEVER_LOST:
            base_us = _number(self.told.info, U32, MIN_RTT) or 0
        return base_us / 1000 if 0 < base_us < NEVER_LOST else None

    @property
    def jitter_percent(self) -> float | None:
        if not self._bbr or not self._tells("ratio"):
            return None
        return (self._bbr[3] & ~LAW_MASK if self._tells("law") else self._bbr[3]) / GAIN_ONE

    @property
    def queue_ms(self) -> float | None:
        """How much longer the round trip is than base."""
        if self.srtt_ms is None or self.base_rtt_ms is None:
            return None
        return max(self.srtt_ms - self.base_rtt_ms, 0.0)

    @property
    def backlog_pkts(self) -> float | None:
        """N, the connection's packets in the queue: the module's, or w (RTT - base) / RTT."""
        if self._bbr and self._tells("backlog"):
            return self._bbr[4] / GAIN_ONE
        if self.queue_ms is None or not self.srtt_ms or self.cwnd_pkts is None:
            return None
        return self.cwnd_pkts * self.queue_ms / self.srtt_ms

    @property
    def ours(self) -> bool:
        return self.algorithm in OURS

    def row(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        names = ("algorithm", "local", "remote", "tcp_state", "state", "law", "delivery_mbps",
                 "pacing_mbps", "srtt_ms", "base_rtt_ms", "queue_ms", "backlog_pkts", "cwnd_pkts",
                 "ssthresh_pkts", "in_flight_pkts", "mss_bytes", "retransmits", "resent_percent",
                 "bandwidth_mbps", "jitter_percent", "bytes_acked")  # fmt: skip
        return {name: getattr(self, name) for name in names} | {
            "sent_mbps": self.rate.sent_mbps,
            "losses_random": self.losses.random,
            "losses_congestion": self.losses.congestion,
            "uid": self.told.uid,
            "inode": self.told.inode,
        }


class Watcher:
    """Looks again and again, and works out what went on between."""

    def __init__(self):
        self.acked: dict[int, int] = {}
        self.at_s: float | None = None

    def look(self, sockets: list[Socket], now_s: float) -> list[Connection]:
        """Return SOCKETS, of time NOW_S, as connections with their rates since the last look."""
        found = [Connection(one) for one in sockets]
        passed_s = now_s - self.at_s if self.at_s is not None else 0.0
        acked = {}
        for one in found:
            cookie = one.told.cookie
            acked[cookie] = bytes_acked = one.bytes_acked
            before = self.acked.get(cookie)
            if before is not None and passed_s > 0:
                one.rate.sent_mbps = max(bytes_acked - before, 0) * 8 / passed_s / 1e6
        self.acked, self.at_s = acked, now_s
        return found
