# SPDX-License-Identifier: GPL-2.0-only
"""sctp_failover.py RUNS: cut the primary path and heal it, in so many seeded runs; prints TAP and
figures. Standard library only, in virtual time.

What is sent is the numbers 0, 1, 2, ... of 4 bytes each, in messages of any size: one that is lost,
comes twice or in another order is seen by the receiver.
"""

import random
import struct
import sys
import threading
import time
from dataclasses import dataclass, field

import sctp_net as net
from sctp_net import Net

from lab.ask.links import Link
from labtest.claims import Claims, check_log
from labtest.guest import first_in_line, run_cmd

CLAIMS = Claims()
claim = CLAIMS.add

TIMESTAMP = 190
RATE_MBPS = 2
MOST_NUMBERS = 3600  # of a message
ACTIVE = 2  # of enum sctp_spinfo_state
AFTER_S = 30  # of sending at most, until the path is known to be well again
# so that a run is short: a path is known to be well again after a second or two
SYSCTLS = (("hb_interval", 1000), ("rto_max", 4000), ("timestamp_chunk", TIMESTAMP))


@dataclass
class Numbers:
    """The receiver: checks that numbers come in order."""

    next: int = 0
    rest: bytes = b""
    wrong: list[str] = field(default_factory=list)

    def take(self, octets: bytes) -> None:
        octets = self.rest + octets
        count = len(octets) // 4
        self.rest = octets[count * 4 :]
        wanted = struct.pack(f">{count}I", *range(self.next, self.next + count))
        if octets[: count * 4] != wanted and not self.wrong:
            self.wrong.append(f"after {self.next}: {octets[:16].hex()}, not {wanted[:16].hex()}")
        self.next += count

    def read(self, sock) -> None:
        while got := sock.recv(1 << 18):
            self.take(got)


def path(loss_pct: float) -> tuple[Link, Link]:
    return (Link(rate_mbps=RATE_MBPS, delay_ms=20, queue_pkts=30, loss_pct=loss_pct),
            Link(delay_ms=20, loss_pct=loss_pct if loss_pct == 100 else 0))  # fmt: skip


def cuts(rng: random.Random) -> list[tuple[float, int, float]]:
    """Return what happens: wait so many s, then that path loses so many percent."""
    happens = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        happens += [(rng.uniform(0, 3), 1, 100), (rng.choice((0.05, 1, 5, 12)), 1, loss(rng))]
        if rng.random() < 0.3:  # and then the other one
            happens += [(rng.uniform(0, 3), 2, 100), (rng.uniform(0.1, 3), 2, loss(rng))]
    return happens


def loss(rng: random.Random) -> float:
    return rng.choice((0, 0, 1, 5))


def primary_state() -> int:
    table = run_cmd("ip", "netns", "exec", "a", "cat", "/proc/net/sctp/remaddr")
    (line,) = (line for line in table.splitlines() if line.startswith(net.HOMES["b"][0]))
    return int(line.split()[-1])


def run(paths: Net, seed: int) -> tuple[int, Numbers, int]:
    """Return how many numbers were sent, the receiver, and the primary's state at the end."""
    rng = random.Random(seed)
    paths.seed = seed
    for which in (1, 2):
        paths.set_path(which, *path(loss(rng)))
    numbers, sent, over = Numbers(), 0, threading.Event()

    def send(sock) -> None:
        nonlocal sent
        while not over.is_set():
            count = rng_of_sizes.choice((1, 100, 360, MOST_NUMBERS))
            sock.sendall(struct.pack(f">{count}I", *range(sent, sent + count)))
            sent += count
        sock.shutdown(net.socket.SHUT_WR)

    rng_of_sizes = random.Random(seed + 1)
    algorithm = rng.choice(("jsctp_abe", "jsctp", "rfc9260"))
    with net.association(lambda sock: net.set_algorithm(sock, algorithm), homes=2) as ends:
        ends[1].settimeout(600)
        threads = [threading.Thread(target=send, args=ends[:1]),
                   threading.Thread(target=numbers.read, args=ends[1:])]  # fmt: skip
        for thread in threads:
            thread.start()
        for wait_s, which, loss_pct in cuts(rng):
            time.sleep(wait_s)
            paths.set_path(which, *path(loss_pct))
        for _ in range(AFTER_S):
            time.sleep(1)
            primary = primary_state()
            if primary == ACTIVE:
                break
        over.set()
        for thread in threads:
            thread.join()
    return sent, numbers, primary


@claim("the primary path is cut and heals, in seeded runs: nothing is lost, comes twice or late")
def check_failover():
    runs, total = int(sys.argv[1]), 0
    with Net() as paths:
        for host in "ab":
            for name, value in SYSCTLS:
                net.sysctl(host, f"sctp.{name}", value)
        for seed in range(1, runs + 1):
            sent, numbers, primary = run(paths, seed)
            assert not numbers.wrong, f"seed {seed}: {numbers.wrong[0]}"
            assert numbers.next == sent and not numbers.rest, f"seed {seed}: {sent}, {numbers}"
            assert primary == ACTIVE, f"seed {seed}: the primary's state is {primary}"
            total += sent * 4
    print(f"# {runs} runs, {total} bytes", flush=True)


claim("the kernel log holds no complaint after the failovers")(check_log)


if __name__ == "__main__":
    first_in_line()
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp", "sctp_diag", "sctp_jsctp")
    CLAIMS.settle()
