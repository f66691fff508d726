# SPDX-License-Identifier: GPL-2.0-only
"""sctp_usrsctp.py PROGRAM [SEEDS]: usrsctp, which WebRTC's data channels run on, and the kernel's
SCTP over the same path; prints a table. PROGRAM: usrsctp_peer. Runs inside the lab kernel. Standard
library only.

    a ---> r1: 2 Mb/s, 45 ms there and back each, random loss or a queue of 50 packets ---> b

One home, 3 MB: payload, Mb/s. The time of both is from where the sender is connected until it knows
that the association has ended: transfer and shutdown. It is without the handshake, since an INIT
that is lost costs what each stack waits for its first round trip, not what an algorithm does.
"""

import errno
import socket
import statistics
import subprocess
import sys
import threading
import time

import sctp_net as net
from sctp_net import Net

from lab.ask.links import Link
from labtest.guest import run_cmd

MESSAGE_BYTES = 14_400  # as usrsctp_peer.c: both cut them to what a packet holds
BYTES = 208 * MESSAGE_BYTES
THEIRS = ("rfc2581", "hstcp", "htcp", "rtcc")
OURS = ("rfc9260", "jsctp_abe")
LOSSES_PCT = (0, 1, 5, 10)
TIMESTAMP = 190
READY = "ready\n"


def of_usrsctp(program: str, algorithm: str) -> float:
    """Return how long it takes (s)."""
    inside = ("ip", "netns", "exec")
    sink = subprocess.Popen(
        [*inside, "b", program, "sink", str(net.PORT)], stdout=subprocess.PIPE, text=True
    )
    assert sink.stdout.readline() == READY
    sender = subprocess.Popen(
        [*inside, "a", program, "send", "10.0.2.1", str(net.PORT), str(BYTES), algorithm],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert sender.stdout.readline() == "connected\n"
    start_s = time.monotonic()
    assert sender.stdout.readline() == "sent\n"
    took_s = time.monotonic() - start_s
    sender.wait()
    assert sink.communicate()[0] == f"bytes {BYTES}\n"
    return took_s


def wait_for_end(sock: socket.socket) -> None:
    """Wait, after a shutdown, until the association has ended; the kernel has no end of file for
    who began that, but an error."""
    try:
        assert sock.recv(1) == b""
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise


def of_kernel(algorithm: str) -> float:
    """Return how long it takes (s)."""
    chunk = TIMESTAMP if algorithm in OURS[1:] else 0
    for name in ("a", "b"):
        net.sysctl(name, "sctp.timestamp_chunk", chunk)
    with net.association(prepare=lambda sock: net.set_algorithm(sock, algorithm)) as (one, other):
        start_s = time.monotonic()
        other.settimeout(None)
        wrong: list[int] = []
        reader = threading.Thread(target=lambda: wrong.append(net.receive(other, BYTES)))
        reader.start()
        for _ in range(BYTES // MESSAGE_BYTES):
            one.sendall(bytes(MESSAGE_BYTES))
        one.shutdown(socket.SHUT_WR)
        wait_for_end(one)
        took_s = time.monotonic() - start_s
        reader.join()
        assert wrong == [0]
        return took_s


def rate_mbps(program: str, algorithm: str, loss_pct: float, seed: int) -> float:
    limit = {"loss_pct": loss_pct} if loss_pct else {"queue_pkts": 50}
    path = Link(rate_mbps=2, delay_ms=45, **limit)
    with Net(path, Link(delay_ms=45), seed):
        took_s = of_kernel(algorithm) if algorithm in OURS else of_usrsctp(program, algorithm)
    return BYTES * 8 / 1e6 / took_s


def main() -> None:
    program = sys.argv[1]
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    for algorithm in (*OURS, *THEIRS):
        for loss_pct in LOSSES_PCT:
            rates = [rate_mbps(program, algorithm, loss_pct, seed) for seed in range(1, seeds + 1)]
            spread = f"{min(rates):.2f} {max(rates):.2f}"
            median = statistics.median(rates)
            print(f"result: {algorithm} {loss_pct} {median:.2f} {spread}", flush=True)


if __name__ == "__main__":
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp", "sctp_jsctp")
    main()
