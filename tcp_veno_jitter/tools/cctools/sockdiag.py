# SPDX-License-Identifier: GPL-2.0-only
"""All TCP connections of this network namespace, as the kernel tells them to anybody: what `ss -ti`
reads (linux/inet_diag.h, sock_diag(7)).

Of our own and not pyroute2's: a tool for servers asks for Python alone, and a look at a thousand
connections is to cost next to nothing. Reading a message here is a few unpackings; what it holds
is looked at when it is shown.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cctools import Complaint

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLM_F_DUMP_INTR = 0x1, 0x300, 0x10
NLMSG_ERROR, NLMSG_DONE = 2, 3
# attributes, and as bits of a request; BBRINFO and DCTCPINFO come for VEGASINFO
INFO, VEGASINFO, CONG, DCTCPINFO, BBRINFO = 2, 3, 4, 9, 16
WANTED = 1 << INFO - 1 | 1 << VEGASINFO - 1 | 1 << CONG - 1
# enum of net/tcp_states.h: those that may carry data
STATES = ("", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "CLOSE",
          "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING")  # fmt: skip
SHOWN = sum(
    1 << STATES.index(name)
    for name in STATES
    if name not in ("", "SYN-RECV", "TIME-WAIT", "CLOSE", "LISTEN")
)

HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48s")  # struct inet_diag_req_v2
MESSAGE = struct.Struct("=4B2s2s16s16sIQ5I")  # struct inet_diag_msg
ATTRIBUTE = struct.Struct("=HH")
ERROR = struct.Struct("=i")
RECEIVE_BYTES = 1 << 17
ANSWER_S = 5.0
TRIES = 3  # of a dump in which connections came and went


@dataclass(slots=True)
class Socket:
    """A connection as told. COOKIE names it for as long as it lives; INFO is struct tcp_info, as
    long as this kernel's; CC what its algorithm tells, in the layout of attribute CC_KIND."""

    cookie: int
    family: int
    state: int
    ports: tuple[bytes, bytes]
    addresses: tuple[bytes, bytes]
    uid: int
    inode: int
    algorithm: str
    info: bytes
    cc_kind: int
    cc: bytes


class Interrupted(Exception):
    """Connections came or went while they were read."""


def request(family: int, sequence: int) -> bytes:
    """Return the question for all TCP connections of FAMILY."""
    body = REQUEST.pack(family, socket.IPPROTO_TCP, WANTED, 0, SHOWN, bytes(48))
    size = HEADER.size + len(body)
    flags = NLM_F_REQUEST | NLM_F_DUMP
    return HEADER.pack(size, SOCK_DIAG_BY_FAMILY, flags, sequence, 0) + body


def read_socket(data: bytes, at: int, end: int) -> Socket | None:
    """Return what the message in DATA[at:end] tells; None if it is too short for one."""
    if end - at < MESSAGE.size:
        return None
    family, state, _, _, sport, dport, source, target, _, cookie, *rest = MESSAGE.unpack_from(
        data, at
    )
    at += MESSAGE.size
    algorithm, info, cc_kind, cc = "", b"", 0, b""
    while at + 4 <= end:
        size, kind = ATTRIBUTE.unpack_from(data, at)
        if size < 4 or at + size > end:
            break
        if kind == INFO:
            info = data[at + 4 : at + size]
        elif kind == CONG:
            algorithm = data[at + 4 : at + size].rstrip(b"\0").decode("ascii", "replace")
        elif kind in (BBRINFO, VEGASINFO, DCTCPINFO):
            cc_kind, cc = kind, data[at + 4 : at + size]
        at += size + 3 & ~3
    width = 4 if family == socket.AF_INET else 16
    return Socket(
        cookie, family, state, (sport, dport), (source[:width], target[:width]), rest[3], rest[4],
        algorithm, info, cc_kind, cc,
    )  # fmt: skip


def read_messages(data: bytes, sequence: int) -> tuple[list[Socket], bool]:
    """Return the connections that a datagram tells, and whether it is the last. OSError: the
    kernel's; Interrupted."""
    found, at = [], 0
    while at + HEADER.size <= len(data):
        size, kind, flags, number, _ = HEADER.unpack_from(data, at)
        if size < HEADER.size or at + size > len(data):
            break
        if number == sequence:  # anything else is left of an answer that was given up
            if flags & NLM_F_DUMP_INTR:
                raise Interrupted
            if kind == NLMSG_DONE:
                return found, True
            if kind == NLMSG_ERROR and size >= HEADER.size + ERROR.size:
                error = -ERROR.unpack_from(data, at + HEADER.size)[0]
                raise OSError(error, os.strerror(error))
            one = read_socket(data, at + HEADER.size, at + size)
            if one:
                found.append(one)
        at += size + 3 & ~3
    return found, False


class Kernel:
    """Answers what TCP connections there are."""

    def __init__(self):
        try:
            self.link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        except OSError as error:
            raise Complaint(f"no netlink: {error.strerror}: this needs Linux") from None
        self.link.settimeout(ANSWER_S)
        self.sequence = 0

    def _dump(self, family: int) -> Iterator[Socket]:
        self.sequence += 1
        self.link.send(request(family, self.sequence))
        last = False
        while not last:
            found, last = read_messages(self.link.recv(RECEIVE_BYTES), self.sequence)
            yield from found

    def _family(self, family: int) -> list[Socket]:
        for _ in range(TRIES):
            try:
                return list(self._dump(family))
            except Interrupted:
                continue
            except OSError as error:
                if error.errno == errno.ENOENT:
                    raise Complaint("no tcp_diag in this kernel: sudo modprobe tcp_diag") from None
                raise Complaint(f"the kernel does not tell: {error.strerror or error}") from None
        return []

    def sockets(self) -> list[Socket]:
        """Return all connections that may carry data. Complaint: the kernel tells none."""
        return self._family(socket.AF_INET) + self._family(socket.AF_INET6)
