# SPDX-License-Identifier: GPL-2.0-only
"""The wireless medium of a scenario: what labmedium is told, and the 802.11b times behind it.

Works with the standard library alone, since it runs inside the lab. docs/medium.md has the model.
"""

import math
from dataclasses import dataclass

# IEEE 802.11b with long preambles, in us and bytes
SLOT_US, SIFS_US, DIFS_US, PREAMBLE_US = 20.0, 10.0, 50.0, 192.0
CW_MIN = 31
DATA_OVERHEAD_BYTES = 24 + 8 + 4  # MAC header, LLC/SNAP, frame check sequence
RTS_BYTES, CTS_BYTES, ACK_BYTES = 20, 14, 14
RATES_MBPS = (1.0, 2.0)
RTS_OFF_BYTES = 65535
MTU_MAX_BYTES = 2304 - 8  # an MSDU without its LLC header


@dataclass(frozen=True)
class Medium:
    """One 802.11b channel, and where the nodes of a chain are."""

    rate_mbps: float = 2.0  # of data frames
    control_rate_mbps: float = 1.0  # of RTS and broadcast frames
    rts_threshold_bytes: int = RTS_OFF_BYTES  # longer frames (headers counted) use RTS/CTS
    short_retry_limit: int = 7  # attempts of a frame without RTS
    rts_retry_limit: int = 7  # attempts of an RTS
    long_retry_limit: int = 4  # attempts after RTS
    queue_pkts: int = 50  # each node's interface queue
    spacing_m: float = 250.0  # between neighbours of the chain
    range_m: float = 300.0  # how far frames are decoded
    carrier_sense_m: float = 550.0  # and sensed
    loss_exponent: float = 4.0  # of the path loss
    capture_db: float = 10.0  # signal over interference that decodes a frame
    eifs_after_sensed: bool = False  # lock on, and EIFS after, what is only sensed
    circle_radius_m: float = 0.0  # the last node moves on a circle around its place
    circle_period_s: float = 0.0

    def options(self, seed: int) -> list[str]:
        """Return what labmedium is told of the channel; SEED: of the backoffs."""
        told = {
            "--rate-mbps": self.rate_mbps,
            "--control-rate-mbps": self.control_rate_mbps,
            "--rts-threshold-bytes": self.rts_threshold_bytes,
            "--short-retry-limit": self.short_retry_limit,
            "--rts-retry-limit": self.rts_retry_limit,
            "--long-retry-limit": self.long_retry_limit,
            "--queue-pkts": self.queue_pkts,
            "--range-m": self.range_m,
            "--carrier-sense-m": self.carrier_sense_m,
            "--loss-exponent": self.loss_exponent,
            "--capture-db": self.capture_db,
            "--seed": seed,
        }
        numbers = [text for key, value in told.items() for text in (key, f"{value:.12g}")]
        return [*numbers, "--eifs", "sensed" if self.eifs_after_sensed else "header"]

    def node_options(self, taps: list[tuple[str, str, str]]) -> list[str]:
        """Return what labmedium is told of the nodes of a chain.

        TAPS: of each node its namespace (a path), its TAP device there and its IPv4 address.
        """
        options = []
        for i, (namespace, device, address) in enumerate(taps):
            place = f"{i * self.spacing_m:.12g},0"
            options += ["--node", f"{namespace},{device},{place},{address}"]
        if self.circle_radius_m:
            circle = f"{self.circle_radius_m:.12g},{self.circle_period_s:.12g}"
            options += ["--circle", f"{len(taps)},{circle}"]
        return options

    def uses_rts(self, packet_bytes: int) -> bool:
        return packet_bytes + DATA_OVERHEAD_BYTES > self.rts_threshold_bytes

    def exchange_us(self, packet_bytes: int) -> float:
        """Return how long a packet (from the IP header on) has the medium, if nothing goes wrong:
        DIFS, RTS and CTS if it uses them, the frame, and its acknowledgement."""
        data_us = frame_us(packet_bytes + DATA_OVERHEAD_BYTES, self.rate_mbps)
        total_us = DIFS_US + data_us + SIFS_US + frame_us(ACK_BYTES, self.rate_mbps)
        if self.uses_rts(packet_bytes):
            rts_us = frame_us(RTS_BYTES, self.control_rate_mbps)
            total_us += rts_us + frame_us(CTS_BYTES, self.control_rate_mbps) + 2 * SIFS_US
        return total_us

    def one_hop_mbps(self, payload_bytes: int, packet_bytes: int) -> float:
        """Return what one sender gets over one hop: a mean backoff before each exchange."""
        each_us = self.exchange_us(packet_bytes) + CW_MIN / 2 * SLOT_US
        return payload_bytes * 8 / each_us


def frame_us(frame_bytes: int, rate_mbps: float) -> float:
    """Return the time on the air of a frame of so many bytes, MAC header and FCS included."""
    return PREAMBLE_US + math.ceil(frame_bytes * 8 / rate_mbps)
