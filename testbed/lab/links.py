# SPDX-License-Identifier: GPL-2.0-only
"""One direction of a link as netem: the netlink message that sets it, and the tc command.

netem is spoken to directly because Debian 12's tc cannot set its seed and pyroute2 cannot
either; without the seed no loss sequence could be repeated. Works with the standard library
alone, since it runs inside the lab.
"""

import socket
import struct
from dataclasses import dataclass

# linux/rtnetlink.h, linux/pkt_sched.h
RTM_NEWQDISC, RTM_DELQDISC = 36, 37
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400
NLMSG_ERROR = 2
TC_H_ROOT = 0xFFFFFFFF
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_NETEM_RATE, TCA_NETEM_RATE64, TCA_NETEM_LATENCY64, TCA_NETEM_PRNG_SEED = 6, 8, 10, 14
ENOENT = 2

HANDLE = 0x10000  # 1:
QUEUE_UNLIMITED_PKTS = 1_000_000  # a hop whose queue must never drop
PSCHED_TICK_NS = 64  # struct tc_netem_qopt counts time in these


@dataclass(frozen=True)
class Link:
    """What a packet meets on one hop. Zero means: not there.

    A hop either queues (rate and a finite queue: its drops are congestion) or loses (loss:
    its drops are random), never both, so that the cause of every drop is known.
    """

    rate_mbps: float = 0.0
    delay_ms: float = 0.0
    loss_pct: float = 0.0
    queue_pkts: int = 0

    @property
    def limit_pkts(self) -> int:
        return self.queue_pkts or QUEUE_UNLIMITED_PKTS

    def tc_command(self, dev: str, seed: int) -> str:
        """Return the tc command (iproute2 6.6 or newer) that does what set_link() does."""
        parts = [f"tc qdisc add dev {dev} root handle 1: netem limit {self.limit_pkts}"]
        if self.delay_ms:
            parts.append(f"delay {self.delay_ms:g}ms")
        if self.loss_pct:
            parts.append(f"loss {self.loss_pct:g}%")
        if self.rate_mbps:
            parts.append(f"rate {self.rate_mbps:g}mbit")
        return " ".join([*parts, f"seed {seed}"])

    def netem_options(self, seed: int) -> bytes:
        """Return the payload of TCA_OPTIONS: struct tc_netem_qopt and nested attributes."""
        delay_ns = round(self.delay_ms * 1e6)
        loss = min(round(self.loss_pct / 100 * 2**32), 2**32 - 1)
        options = struct.pack(
            "=IIIIII", min(delay_ns // PSCHED_TICK_NS, 2**32 - 1), self.limit_pkts, loss, 0, 0, 0
        )
        options += _attribute(TCA_NETEM_LATENCY64, struct.pack("=q", delay_ns))
        if self.rate_mbps:
            rate_bytes_per_s = round(self.rate_mbps * 1e6 / 8)
            small = min(rate_bytes_per_s, 2**32 - 1)
            options += _attribute(TCA_NETEM_RATE, struct.pack("=IiIi", small, 0, 0, 0))
            if rate_bytes_per_s > small:
                options += _attribute(TCA_NETEM_RATE64, struct.pack("=Q", rate_bytes_per_s))
        return options + _attribute(TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed))


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def _request(
    netlink: socket.socket, kind: int, flags: int, dev: str, handle: int, attributes: bytes
) -> int:
    """Send one qdisc request about DEV's root and return the kernel's errno (0: done)."""
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), handle, TC_H_ROOT, 0)
    body += attributes
    flags |= NLM_F_REQUEST | NLM_F_ACK
    netlink.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
    reply = netlink.recv(65536)
    _, reply_kind = struct.unpack_from("=IH", reply)
    if reply_kind != NLMSG_ERROR:
        raise OSError(f"unexpected netlink message {reply_kind} for {dev}")
    return -struct.unpack_from("=i", reply, 16)[0]


def set_link(dev: str, link: Link, seed: int) -> None:
    """Give DEV of the current network namespace a new netem that starts from SEED.

    The old one goes first: a change in place would keep its random state and its packets.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        error = _request(netlink, RTM_DELQDISC, 0, dev, 0, b"")
        if error not in (0, ENOENT):
            raise OSError(error, f"removing the qdisc of {dev}")
        attributes = _attribute(TCA_KIND, b"netem\0")
        attributes += _attribute(TCA_OPTIONS, link.netem_options(seed))
        create = NLM_F_CREATE | NLM_F_EXCL
        error = _request(netlink, RTM_NEWQDISC, create, dev, HANDLE, attributes)
        if error:
            raise OSError(error, f"netem on {dev}: {link.tc_command(dev, seed)}")
