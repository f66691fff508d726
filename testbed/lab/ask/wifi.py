# SPDX-License-Identifier: GPL-2.0-only
"""The access point of a scenario and its stations: what labmedium is told, what the kernel's queues
before the MAC are, and the times of 802.11n, ac and ax behind it.

Works with the standard library alone, since it runs inside the lab. docs/medium.md has the model.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.ask import qdiscs
from lab.ask.links import Link
from lab.ask.qdiscs import attribute
from lab.common.errors import BadInput, unknown

GATE_MODULE = "sch_labgate"  # testbed/lablink
# what may be in front of the MAC besides drop-tail; after mac80211, which has fq_codel
AQMS = ("codel", "fq_codel")
AQM_TARGET_US, AQM_INTERVAL_US = 20_000, 100_000  # as mac80211 sets them
TCA_CODEL_TARGET, TCA_CODEL_INTERVAL = 1, 3  # of codel and fq_codel
DBM_LIMITS = (0, 30)
DISTANCE_LIMITS_M = (1, 1000)

# IEEE 802.11-2016 17.4.4 and 10.22.2, in the 5 GHz band, in us
SLOT_US, SIFS_US = 9.0, 16.0
AIFS_US = SIFS_US + 3 * SLOT_US  # AIFSN 3 of best effort
CW_MIN = 15
BLOCK_ACK_BYTES = 32  # compressed, with a bitmap of 8 bytes
CONTROL_RATE_MBPS = 24.0  # the highest mandatory one
MPDU_OVERHEAD_BYTES = 26 + 8 + 4  # QoS data header, LLC/SNAP, frame check sequence
SUBFRAME_BYTES = 4  # of an A-MPDU, before each MPDU, which is padded to a multiple of 4
WINDOW_MPDUS = 64  # of a block acknowledgement
# standard -> subcarriers that carry data, by width in MHz
SUBCARRIERS = {
    "n": {20: 52, 40: 108},
    "ac": {20: 52, 40: 108, 80: 234},
    "ax": {20: 234, 40: 468, 80: 980},
}
SYMBOL_US = {"n": 3.2, "ac": 3.2, "ax": 12.8}  # without the guard interval
GUARD_INTERVALS_NS = {"n": (400, 800), "ac": (400, 800), "ax": (800, 1600, 3200)}
# coded bits of a subcarrier and the share of them that is data, by MCS
MCS = [
    (1, 1 / 2), (2, 1 / 2), (2, 3 / 4), (4, 1 / 2), (4, 3 / 4), (6, 2 / 3), (6, 3 / 4), (6, 5 / 6),
    (8, 3 / 4), (8, 5 / 6), (10, 3 / 4), (10, 5 / 6),
]  # fmt: skip
MCS_MAX = {"n": 7, "ac": 9, "ax": 11}
MINSTREL = -1  # instead of an MCS: Minstrel-HT chooses
MAX_AMPDU_BYTES = {"n": 65535, "ac": 1048575, "ax": 1048575}
# preamble and headers: legacy 20 us; HT-SIG, STF, LTFs; VHT-SIG-A, STF, LTFs, SIG-B; RL-SIG,
# HE-SIG-A, STF, LTFs. ns-3's, for one stream; each further one has an LTF more
PREAMBLE_US = {"n": 20 + 8 + 4 + 4, "ac": 20 + 8 + 4 + 4 + 4, "ax": 20 + 4 + 8 + 4 + 8}
LTF_US = {"n": 4.0, "ac": 4.0, "ax": 8.0}
PPDU_MAX_US = 5484.0  # aPPDUMaxTime


@dataclass(frozen=True)
class Place:
    """Where a station is: so far from the access point, there or on a circle around it."""

    distance_m: float
    circle_radius_m: float = 0.0
    circle_period_s: float = 0.0


@dataclass(frozen=True)
class WifiMedium:
    """One channel of 802.11n, ac or ax in the 5 GHz band, an access point and where its stations
    are."""

    standard: str = "n"
    channel_width_mhz: int = 20
    streams: int = 1
    mcs: int = MINSTREL  # of all data
    guard_interval_ns: int = 800
    distance_m: float = 5.0  # of each station, on a circle around the access point
    circle_radius_m: float = 0.0  # each station moves on a circle around its place
    circle_period_s: float = 0.0
    queue_pkts: int = 1000  # at the access point, for each station
    aqm: str = "fq_codel"  # there; nothing: drop-tail
    station_queue_pkts: int = 1000  # at each station
    station_aqm: str = "fq_codel"
    ampdu_bytes: int = 65535  # the longest aggregate; 0: none
    rts_threshold_bytes: int = 65535  # longer ones use RTS/CTS
    transmit_dbm: float = 20.0
    loss_exponent: float = 3.0  # of the path loss beyond 1 m

    def options(self, seed: int) -> list[str]:
        """Return what labmedium is told of the channel; SEED: of all that is random."""
        told = {
            "--width-mhz": self.channel_width_mhz,
            "--streams": self.streams,
            "--guard-interval-ns": self.guard_interval_ns,
            "--ampdu-bytes": self.ampdu_bytes,
            "--rts-threshold-bytes": self.rts_threshold_bytes,
            "--transmit-dbm": self.transmit_dbm,
            "--loss-exponent": self.loss_exponent,
            "--seed": seed,
        }
        if self.mcs != MINSTREL:
            told["--mcs"] = self.mcs
        numbers = [text for key, value in told.items() for text in (key, f"{value:.12g}")]
        return ["--standard", self.standard, *numbers]

    @property
    def place(self) -> Place:
        """Return where each station is that is told nothing else."""
        return Place(self.distance_m, self.circle_radius_m, self.circle_period_s)

    def node_options(
        self, taps: list[tuple[str, str, str]], places: Sequence[Place] = ()
    ) -> list[str]:
        """Return what labmedium is told of the nodes.

        TAPS: of the access point for the first station, and of that station, its namespace (a
        path), its TAP device there and its address; then of the second one, and so on. PLACES: of
        each station, all at the same angles from the next; without, all are at `place`.
        """
        options = []
        count = len(taps) // 2
        for i, place in enumerate(places or [self.place] * count):
            (ap_namespace, ap_device, _), (namespace, device, _) = taps[2 * i : 2 * i + 2]
            angle = 2 * math.pi * i / count
            x, y = place.distance_m * math.cos(angle), place.distance_m * math.sin(angle)
            options += [
                "--station",
                f"{ap_namespace},{ap_device},{namespace},{device},{x:.6f},{y:.6f}",
            ]
            if place.circle_radius_m:
                circle = f"{place.circle_radius_m:.12g},{place.circle_period_s:.12g}"
                options += ["--circle", f"{i + 1},{circle}"]
        return options

    @property
    def phy_mbps(self) -> float:
        """Return the fastest rate of the PHY, or the one of `mcs`."""
        mcs = MCS_MAX[self.standard] if self.mcs == MINSTREL else self.mcs
        if not self.has_mcs(mcs):
            mcs -= 1
        bits, share = MCS[mcs]
        symbol_us = SYMBOL_US[self.standard] + self.guard_interval_ns / 1000
        subcarriers = SUBCARRIERS[self.standard][self.channel_width_mhz]
        return math.floor(subcarriers * bits * share) * self.streams / symbol_us

    def has_mcs(self, mcs: int) -> bool:
        """Say whether there is this MCS (IEEE 802.11-2016 21.5: not all are where subcarriers do
        not come to whole numbers of bits)."""
        of = (self.standard, self.channel_width_mhz, mcs)
        missing = (of == ("ac", 20, 9) and self.streams != 3) or (
            of == ("ac", 80, 6) and self.streams == 3
        )
        return 0 <= mcs <= MCS_MAX[self.standard] and not missing

    def one_hop_mbps(self, payload_bytes: int, packet_bytes: int) -> float:
        """Return what one sender gets over the air, if nothing goes wrong and nobody answers: the
        longest A-MPDU of such packets (from the IP header on), its block acknowledgement, and a
        mean backoff before it."""
        mpdu_bytes = packet_bytes + MPDU_OVERHEAD_BYTES
        each_bytes = SUBFRAME_BYTES + 4 * math.ceil(mpdu_bytes / 4)
        symbol_us = SYMBOL_US[self.standard] + self.guard_interval_ns / 1000
        preamble_us = PREAMBLE_US[self.standard] + LTF_US[self.standard] * (self.streams - 1)
        room_bytes = (PPDU_MAX_US - preamble_us) * self.phy_mbps / 8
        mpdus = min(min(self.ampdu_bytes, room_bytes) // each_bytes, WINDOW_MPDUS)
        bytes_in_all = max(mpdus, 1) * each_bytes if mpdus else mpdu_bytes
        symbols = math.ceil((16 + 8 * bytes_in_all + 6) / (self.phy_mbps * symbol_us))
        ack_us = 20 + 4 * math.ceil((16 + 8 * BLOCK_ACK_BYTES + 6) / (4 * CONTROL_RATE_MBPS))
        total_us = AIFS_US + CW_MIN / 2 * SLOT_US + preamble_us + symbols * symbol_us
        return max(mpdus, 1) * payload_bytes * 8 / (total_us + SIFS_US + ack_us)


def check_wifi(medium: WifiMedium, where: str = "") -> None:
    """Refuse what cannot be; WHERE stands before the keys' names."""
    if medium.standard not in SUBCARRIERS:
        raise unknown(f"{where}standard", medium.standard, SUBCARRIERS)
    choices = {
        "channel_width_mhz": SUBCARRIERS[medium.standard],
        "guard_interval_ns": GUARD_INTERVALS_NS[medium.standard],
        "streams": (1, 2, 3, 4),
    }
    for key, allowed in choices.items():
        if getattr(medium, key) not in allowed:
            raise BadInput(
                f"{where}{key} = {getattr(medium, key)}: 802.11{medium.standard} has"
                f" {', '.join(map(str, allowed))}"
            )
    if medium.mcs != MINSTREL and not medium.has_mcs(medium.mcs):
        there = ", ".join(str(mcs) for mcs in range(len(MCS)) if medium.has_mcs(mcs))
        raise BadInput(
            f"{where}mcs = {medium.mcs}: 802.11{medium.standard} has {there} there; {MINSTREL}:"
            " Minstrel-HT chooses"
        )
    for key in ("aqm", "station_aqm"):
        if getattr(medium, key) and getattr(medium, key) not in AQMS:
            raise unknown(f"{where}{key}", getattr(medium, key), AQMS)
    limits = {
        "distance_m": DISTANCE_LIMITS_M, "queue_pkts": (1, 100_000),
        "station_queue_pkts": (1, 100_000), "ampdu_bytes": (0, MAX_AMPDU_BYTES[medium.standard]),
        "rts_threshold_bytes": (0, 1 << 22), "transmit_dbm": DBM_LIMITS, "loss_exponent": (2, 6),
    }  # fmt: skip
    check_limits(medium, limits, where)
    check_place(medium.place, where)


def check_place(place: Place, where: str = "") -> None:
    limits = {
        "distance_m": DISTANCE_LIMITS_M, "circle_radius_m": (0, place.distance_m),
        "circle_period_s": (0, 100_000),
    }  # fmt: skip
    check_limits(place, limits, where)


def check_limits(of: Any, limits: dict[str, tuple[float, float]], where: str) -> None:
    """Refuse what is outside of its LIMITS, key -> least and most, and a circle that is none."""
    for key, (least, most) in limits.items():
        if not least <= getattr(of, key) <= most:
            raise BadInput(f"{where}{key} = {getattr(of, key):g}: {least:g} to {most:g}")
    if bool(of.circle_radius_m) != bool(of.circle_period_s):
        prefix = f"{where.rstrip('.')}: " if where else ""
        raise BadInput(f"{prefix}a circle takes both circle_radius_m and circle_period_s")


def set_gate(dev: str, queue_pkts: int, aqm: str) -> None:
    """Give DEV of the current network namespace a new gate, closed, and what waits before it."""
    remove_gate(dev)
    if aqm:
        options = Link(queue_pkts=queue_pkts, aqm=aqm).aqm_options()
        options += attribute(TCA_CODEL_TARGET, struct.pack("=I", AQM_TARGET_US))
        options += attribute(TCA_CODEL_INTERVAL, struct.pack("=I", AQM_INTERVAL_US))
    else:
        options = struct.pack("=I", queue_pkts)  # struct tc_fifo_qopt
    child = aqm or "pfifo"
    if error := qdiscs.tell(dev, "labgate", b"", qdiscs.ROOT, new=True):
        raise OSError(error, f"labgate on {dev}: is {GATE_MODULE} there?")
    if error := qdiscs.tell(dev, child, options, qdiscs.CHILD, new=True, nested=bool(aqm)):
        raise OSError(error, f"{child} on {dev}")


def remove_gate(dev: str) -> None:
    """Take it from DEV, if it has one, with all that waits."""
    qdiscs.delete(dev)
