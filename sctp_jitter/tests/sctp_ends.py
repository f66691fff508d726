# SPDX-License-Identifier: GPL-2.0-only
"""sctp_ends.py ASSOCIATIONS: set up so many and end them abruptly, in each way there is; prints
TAP and figures. Standard library only, in virtual time.

Each association holds the module of its algorithm, so one that is left over keeps it loaded; what
else is lost is seen by kmemleak, on the kernel that has it, and by the memory that slabs take.
"""

import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import sctp_peer as sp
from sctp_net import Packet
from sctp_peer import ECHO, Peer, Wire, timestamp

from lab.run.guest.kernel_log import LEAKS
from labtest.claims import Claims, check_log
from labtest.guest import first_in_line, run_cmd

CLAIMS = Claims()
claim = CLAIMS.add

OF_A_WIRE = 200
GRACE_S = 2  # until RCU and delayed work have freed what is gone
SLAB_KB = 32  # 40 bytes an association, of 800 and more: less than any object of one


class Silent(Peer):
    """Does not hear chunks of some types."""

    deaf: tuple[int, ...] = ()

    def take(self, packet: Packet) -> None:
        if any(packet.has(kind) for kind in self.deaf):
            self.unheard.append(packet)
        else:
            super().take(packet)


def busy(peer: Peer) -> Peer:
    """Set it up, with data and times on their way in both directions."""
    peer.answers = False
    peer.connect(homes=2)
    peer.write(3)
    peer.send_data(b"x", timestamp(1))
    return peer


def silent(wire: Wire, number: int) -> Silent:
    peer = Silent(wire, port=2000 + number, own_port=4000 + number)
    peer.unheard = []
    return peer


# --- the ways to end; what they leave to the caller is closing the sockets -----------------


def init_alone(peer: Silent) -> None:
    """We start, and go no further than the kernel's INIT ACK."""
    peer.deaf = (sp.INIT_ACK,)
    peer.start_accept()


def never_answered(peer: Silent) -> None:
    """The kernel starts; nobody is there."""
    peer.deaf = (sp.INIT,)
    peer.start_connect()


def refused(peer: Silent) -> None:
    """The kernel starts and is told that nobody is there."""
    peer.deaf = (sp.INIT,)
    peer.start_connect()
    peer.wire.drain()
    (tag,) = struct.unpack_from(">I", peer.unheard[0].chunks[0].body)
    peer.send(sp.chunk(sp.ABORT), tag=tag)


def no_cookie_ack(peer: Silent) -> None:
    peer.deaf = (sp.COOKIE_ECHO,)
    peer.start_connect()


def peer_aborts(peer: Silent) -> None:
    busy(peer).send(sp.chunk(sp.ABORT))


def peer_aborts_with_an_echo(peer: Silent) -> None:
    stamp = sp.stamps(busy(peer).heard[-1])[0]
    peer.send(timestamp(stamp.sent_us, 1, stamp.flags | ECHO), sp.chunk(sp.ABORT))


def application_aborts(peer: Silent) -> None:
    busy(peer)


def application_leaves(peer: Silent) -> None:
    """An orderly end, with all that was sent acknowledged."""
    peer.connect(homes=2)
    peer.write(2)
    peer.sock.close()
    peer.sock = None
    peer.wire.run(0.5)


def peer_leaves(peer: Silent) -> None:
    busy(peer)
    peer.receive(one for packet in peer.heard for one in sp.data_of(packet))
    peer.send(sp.chunk(sp.SHUTDOWN, 0, struct.pack(">I", peer.ctsn)))


def restarts(peer: Silent) -> None:
    busy(peer).restart(peer.tag + 1, 5)
    peer.write(1)


def collides(peer: Silent) -> None:
    peer.collides = sp.COOKIE_ECHO
    busy(peer)


def accepted_by_nobody(peer: Silent) -> None:
    """The association is there; the application never calls accept()."""
    peer.start_accept()
    peer.send_data(b"x", timestamp(1))


def switched(peer: Silent) -> None:
    """The algorithm is another one each time that something is on its way."""
    busy(peer)
    for algorithm in ("jsctp", "rfc9260", "jsctp_abe", "jsctp"):
        peer.choose(algorithm)
        peer.write(1)


ENDS: tuple[Callable[[Silent], None], ...] = (
    init_alone, never_answered, refused, no_cookie_ack, peer_aborts, peer_aborts_with_an_echo,
    application_aborts, application_leaves, peer_leaves, restarts, collides, accepted_by_nobody,
    switched,
)  # fmt: skip


def slab_kb() -> int:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["SUnreclaim"].split()[0])


def wire_of(number: int) -> Wire:
    return Wire(congestion_control=("jsctp", "jsctp_abe")[number % 2], max_init_retransmits=2)


def end_some(number: int, count: int, rng: random.Random) -> None:
    """Use one namespace for COUNT associations; the last one lives when the namespace ends."""
    with wire_of(number) as wire:
        for i in range(count):
            end = rng.choice(ENDS)
            peer = silent(wire, i)
            end(peer)
            wire.run(rng.choice((0, 0, 0.01, 1.5)))
            if i + 1 < count:
                peer.close()
                del wire.peers[peer.port]
            wire.events.clear()
        wire.drain()


@claim("associations that end abruptly, in each way there is: none is left, nor its memory")
def check_ends():
    wanted, rng = int(sys.argv[1]), random.Random(1)
    done, slab = 0, {}
    while done < wanted:
        count = min(OF_A_WIRE, wanted - done)
        end_some(done // OF_A_WIRE, count, rng)
        done += count
        if (done >= wanted / 10 and not slab) or done == wanted:
            time.sleep(GRACE_S)
            slab[done] = slab_kb()
    grown_kb = max(slab.items())[1] - min(slab.items())[1]
    print(f"# {done} associations; slabs after so many (kB): {slab}", flush=True)
    for _ in range(300):
        if not int(Path("/sys/module/sctp_jsctp/refcnt").read_text()):
            break
        time.sleep(1)
    run_cmd("rmmod", "sctp_jsctp")  # refused while an association is left
    if not LEAKS.exists():  # that kernel keeps what is freed for a while, to see who uses it
        assert grown_kb <= SLAB_KB, slab


claim("the kernel log holds no complaint after abrupt ends, and no memory was lost")(check_log)


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "tun", "sctp", "sctp_diag", "sctp_jsctp")
    CLAIMS.settle()
