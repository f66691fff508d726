# SPDX-License-Identifier: GPL-2.0-only
"""Netlink messages about the queueing disciplines of the current network namespace's devices.

For what tc of Debian 12 cannot say. Works with the standard library alone, since it runs inside the
lab.
"""

import errno
import socket
import struct

# linux/rtnetlink.h, linux/pkt_sched.h
RTM_NEWQDISC, RTM_DELQDISC = 36, 37
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400
NLMSG_ERROR, NLA_F_NESTED = 2, 0x8000
TC_H_ROOT = 0xFFFFFFFF
TCA_KIND, TCA_OPTIONS = 1, 2

# where one is: its handle and its parent
ROOT = (0x10000, TC_H_ROOT)  # 1:
CHILD = (0x100000, ROOT[0] | 1)  # 10: in class 1:1


def attribute(kind: int, payload: bytes) -> bytes:
    """Return a netlink attribute, with what pads it."""
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def tell(
    dev: str, kind: str, options: bytes, place: tuple[int, int] = ROOT, *, new: bool = False,
    nested: bool = False,
) -> int:  # fmt: skip
    """Give the qdisc of this KIND at PLACE of DEV its OPTIONS (attributes; NESTED, as newer kinds
    insist, or bare), or make a NEW one; return the kernel's errno (0: done)."""
    attributes = attribute(TCA_KIND, kind.encode() + b"\0")
    attributes += attribute(TCA_OPTIONS | (NLA_F_NESTED if nested else 0), options)
    flags = NLM_F_CREATE | NLM_F_EXCL if new else 0
    return _request(RTM_NEWQDISC, flags, dev, place, attributes)


def delete(dev: str) -> None:
    """Take the root qdisc from DEV, if it has one of its own."""
    error = _request(RTM_DELQDISC, 0, dev, (0, TC_H_ROOT), b"")
    if error not in (0, errno.ENOENT):
        raise OSError(error, f"removing the qdisc of {dev}")


def _request(kind: int, flags: int, dev: str, place: tuple[int, int], attributes: bytes) -> int:
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), *place, 0) + attributes
    flags |= NLM_F_REQUEST | NLM_F_ACK
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        reply = netlink.recv(65536)
    _, reply_kind = struct.unpack_from("=IH", reply)
    if reply_kind != NLMSG_ERROR:
        raise OSError(f"unexpected netlink message {reply_kind} for {dev}")
    return -struct.unpack_from("=i", reply, 16)[0]
