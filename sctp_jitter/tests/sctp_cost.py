# SPDX-License-Identifier: GPL-2.0-only
"""What SCTP costs in instructions. Runs on a virtual machine whose clock counts them, one a ns:

    testbed/run --backend vm --kernel 6.12 --exec 'python3 sctp_jitter/tests/sctp_cost.py'

Sends the same messages of whole chunks over loopback, as fast as one processor takes them, with
each algorithm, without and with TIMESTAMP chunks; prints instructions for each packet with data
(all that both ends do about it, and about half a SACK) and what that is more than the first row.
Each figure is the smallest of RUNS: what an interrupt adds is no cost of SCTP's.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time

import sctp_net as net

from labtest.guest import abort, run_cmd, write_file

PAYLOAD_BYTES, MESSAGE_CHUNKS = 1440, 32
PACKETS = 4_000
RUNS = 3
TIMESTAMP = 190
ADDRESS = ("127.0.0.1", net.PORT)
CASES = (
    ("rfc9260", 0), ("rfc9260", TIMESTAMP), ("jsctp", TIMESTAMP), ("jsctp_abe", TIMESTAMP),
)  # fmt: skip


def connect(algorithm: str) -> tuple[socket.socket, socket.socket]:
    """Return the two ends of an association over loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    listener.bind(ADDRESS)
    listener.listen()
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    net.set_algorithm(client, algorithm)
    client.setsockopt(socket.IPPROTO_SCTP, net.SCTP_MAXSEG, struct.pack("=iI", 0, PAYLOAD_BYTES))
    client.connect(ADDRESS)
    server, _ = listener.accept()
    listener.close()
    return client, server


def idle_s() -> float:
    """Return how long the processor has had nothing to do."""
    with open("/proc/stat") as stat:
        ticks = stat.readline().split()[4]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def instructions_per_packet(algorithm: str, timestamps: int) -> float:
    write_file("/proc/sys/net/sctp/timestamp_chunk", timestamps)
    client, server = connect(algorithm)
    message = bytes(PAYLOAD_BYTES * MESSAGE_CHUNKS)
    total = PACKETS * PAYLOAD_BYTES
    reader = threading.Thread(target=net.receive, args=(server, total))
    idle_before_s, before_ns = idle_s(), time.monotonic_ns()
    reader.start()
    for _ in range(PACKETS // MESSAGE_CHUNKS):
        client.sendall(message)
    reader.join()
    took_ns, idled_s = time.monotonic_ns() - before_ns, idle_s() - idle_before_s
    assert idled_s < 0.02 * took_ns / 1e9, f"idle for {idled_s} of {took_ns / 1e9} s"
    abort(client, server)
    return took_ns / PACKETS


def main() -> None:
    run_cmd("ip", "link", "set", "lo", "mtu", "1500")
    subprocess.run(["modprobe", "sctp_jsctp"], check=True)
    write_file("/proc/sys/net/sctp/auth_enable", 0)
    base = None
    print("algorithm, TIMESTAMP chunks, instructions for each packet, more")
    for algorithm, timestamps in CASES:
        cost = min(instructions_per_packet(algorithm, timestamps) for _ in range(RUNS))
        base = base or cost
        print(f"{algorithm}, {'on' if timestamps else 'off'}, {cost:.0f}, {cost - base:+.0f}")


if __name__ == "__main__":
    sys.exit(main())
