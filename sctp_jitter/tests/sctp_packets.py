# SPDX-License-Identifier: GPL-2.0-only
"""Each rule of the patched SCTP, packet by packet, against a peer that a script drives; prints
TAP. test_sctp.py starts it and reads CLAIMS. Standard library only. All times are virtual."""

import contextlib
import struct
import subprocess
import sys
from collections.abc import Iterable

import sctp_peer as sp
from sctp_peer import ECHO, MASK, PAYLOAD_BYTES, Link, Peer, Stamp, Wire, stamps, timestamp

from lab.guest.kernel_log import KernelLog
from labtest.claims import Claims, near
from labtest.guest import first_in_line, run_cmd

CLAIMS = Claims()
claim = CLAIMS.add

WRONG_LENGTHS = (0, 3, 4, 8, 11, 13, 16, 20, 0xFFFF)


@contextlib.contextmanager
def receiving(**options):
    """The kernel's end receives; it acknowledges each packet at once (sack_timeout 0)."""
    with Wire() as wire:
        yield Peer(wire, **options).accept()


def returned(peer: Peer, *chunks: bytes, **how) -> list[Stamp]:
    """Send chunks, then two packets with DATA, which make a SACK due; return its echoes."""
    before = len(peer.heard)
    peer.send_data(b"a", *chunks, **how)
    peer.send_data(b"b", **how)
    peer.wire.run(0.5)
    return [stamp for packet in peer.since(before) for stamp in stamps(packet) if stamp.echo]


# --- times of the peer: the kernel returns them -----------------------------------


@claim("a time is returned once, as it came, with its path and when it arrived")
def check_echo():
    with receiving() as peer:
        for sent_us in (1, MASK, 0, 0x80000000, 5):
            for path in (0, 2, 0xFE):
                now_us = sp.clock_us()
                (echo,) = returned(peer, timestamp(sent_us, 99, path))
                assert (echo.sent_us, echo.flags) == (sent_us, path | ECHO), echo
                assert echo.received_us == now_us & MASK, (echo, now_us)
        assert not returned(peer)


def main() -> int:
    """Check all claims; return how many do not hold."""
    return sum(not entry.holds() for entry in CLAIMS)


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "sctp", "sctp_diag", "sctp_jsctp")
    sys.exit(1 if main() else 0)
