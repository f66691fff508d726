# SPDX-License-Identifier: GPL-2.0-only
"""What the scripted peer and the fuzzer build is what it says; without any kernel."""

import random
import re
import struct

import pytest
import sctp_fuzz as fuzz
import sctp_peer as sp
from sctp_net import Packet

DIGITS = {"cookie": "0008aabbccdd", "heartbeat": "00000c0001000801020304"}


def packet(*chunks: bytes) -> Packet:
    raw = sp.ip_packet("10.1.0.2", "10.1.0.1", sp.packet_of((1, 2), 3, b"".join(chunks)))
    return Packet(0, raw, "10.1.0.2")


def test_crc32c():
    """The check value of the catalogue, and one of RFC 3720 appendix B.4."""
    assert sp.crc32c(b"123456789") == 0xE3069283
    assert sp.crc32c(bytes(32)) == 0x8A9136AA


def test_packets_are_read_as_they_were_built():
    found = packet(sp.timestamp(1, 2, 3), sp.sack(7, 8, [(2, 3)], [9]), sp.data(5, b"abcde"))
    assert (found.ports, found.vtag) == ((1, 2), 3) and len(found.raw) % 4 == 0
    assert [(one.type, one.length) for one in found.chunks] == [(190, 12), (3, 24), (0, 21)]
    assert sp.stamps(found) == [sp.Stamp(3, 1, 2)]
    assert sp.data_of(found) == [sp.Data(5, b"abcde")]
    total = sum(struct.unpack(">10H", found.raw[:20]))
    assert total % 0xFFFF == 0, "checksum of the IP header"


@pytest.mark.parametrize("seed", fuzz.SEEDS, ids=lambda seed: seed["name"])
def test_seed(seed):
    """Each chunk of the corpus is as long as it says."""
    for text in seed["chunks"]:
        made = bytes.fromhex(fuzz.PLACE.sub(lambda place: DIGITS.get(place[1], "0" * 8), text))
        said = struct.unpack_from(">H", made, 2)[0]
        assert len(made) in (said, said + 3 & ~3), (said, len(made))
    assert re.fullmatch(r"[\w ,:\-]+", seed["name"])


def test_mutations_repeat_and_fit():
    """The same seed gives the same bytes; each kind of mutation leaves a packet that fits."""

    def some(number: int) -> list[bytes]:
        rng = random.Random(number)
        chunks = [sp.timestamp(1), sp.sack(2, 3), sp.data(4, b"x")]
        return [fuzz.mutated(rng, [bytearray(c) for c in chunks], 0.5) for _ in range(2000)]

    first = some(1)
    assert first == some(1) != some(2)
    assert len(set(first)) > 1000 and max(map(len, first)) <= fuzz.MOST_BYTES
