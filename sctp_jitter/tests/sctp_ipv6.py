# SPDX-License-Identifier: GPL-2.0-only
"""sctp_ipv6.py: the patched SCTP over IPv6, on a kernel that has it (the vm backend's); prints TAP.
Standard library only.

    a (fd00:N::1) --- 10 Mb/s, 10 ms, 1 % loss ---> b (fd00:N::2)        twice, N = 0 and 1
"""

import socket
import struct
import threading
from pathlib import Path

from sctp_net import SCTP_BINDX_ADD, SCTP_CONNECTX, set_algorithm

from labtest.claims import Claims, check_log
from labtest.guest import abort, inside, run_cmd, write_file

CLAIMS = Claims()
claim = CLAIMS.add

PORT, TIMESTAMP = 5001, 190
BYTES, MESSAGE_BYTES = 1_500_000, 1500
AGAIN = 100  # messages
HOMES = {"a": ("fd00:0::1", "fd00:1::1"), "b": ("fd00:0::2", "fd00:1::2")}


def addresses(host: str, port: int) -> bytes:
    """Return struct sockaddr_in6 of a host's homes, as bindx and connectx take them."""
    return b"".join(
        struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", port, 0)
        + socket.inet_pton(socket.AF_INET6, home) + bytes(4) for home in HOMES[host]
    )  # fmt: skip


def lay_out() -> None:
    for name in HOMES:
        run_cmd("ip", "netns", "add", name)
        with inside(name):
            for what in ("default", "all"):
                write_file(f"/proc/sys/net/ipv6/conf/{what}/disable_ipv6", 0)
                write_file(f"/proc/sys/net/ipv6/conf/{what}/accept_dad", 0)
            write_file("/proc/sys/net/sctp/timestamp_chunk", TIMESTAMP)
    for path in (0, 1):
        run_cmd("ip", "link", "add", f"p{path}", "netns", "a", "type", "veth", "peer", "name",
                f"p{path}", "netns", "b")  # fmt: skip
        for name, homes in HOMES.items():
            dev = ("dev", f"p{path}")
            run_cmd("ip", "-n", name, "link", "set", f"p{path}", "up")
            run_cmd("ip", "-n", name, "address", "add", f"{homes[path]}/64", *dev, "nodad")
            run_cmd("ip", "netns", "exec", name, "ethtool", "-K", f"p{path}", "gso", "off", "gro",
                    "off", "tx", "off")  # fmt: skip
            loss = ("loss", "1%", "rate", "10mbit") if name == "a" else ()
            run_cmd("tc", "-n", name, "qdisc", "add", *dev, "root", "netem", "limit", "100",
                    "delay", "10ms", *loss)  # fmt: skip


def sctp_socket(name: str) -> socket.socket:
    with inside(name):
        return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_SCTP)


def lines_of(name: str) -> list[dict[str, str]]:
    with inside(name):
        header, *lines = Path("/proc/thread-self/net/sctp/cong").read_text().splitlines()
    words = [line.split() for line in lines]
    columns = header.split()
    return [
        dict(zip(columns, each, strict=False))
        | dict(word.split("=") for word in each[len(columns) :])
        for each in words
    ]


def fragments_of(name: str) -> int:
    """Return how many fragments IPv6 has made."""
    with inside(name):
        counters = Path("/proc/thread-self/net/snmp6").read_text().split()
    return int(counters[counters.index("Ip6FragCreates") + 1])


@claim("two homes over IPv6: all arrives, with times, and IP cuts no packet")
def check_flow():
    listener, client = sctp_socket("b"), sctp_socket("a")
    listener.setsockopt(socket.IPPROTO_SCTP, SCTP_BINDX_ADD, addresses("b", PORT))
    listener.listen(1)
    client.setsockopt(socket.IPPROTO_SCTP, SCTP_BINDX_ADD, addresses("a", 7001))
    set_algorithm(client, "jsctp_abe")
    came = []

    def read(server: socket.socket) -> None:
        while sum(came) < BYTES:
            came.append(len(server.recv(1 << 16)))

    client.setsockopt(socket.IPPROTO_SCTP, SCTP_CONNECTX, addresses("b", PORT))
    server, _ = listener.accept()
    server.settimeout(120)
    reader = threading.Thread(target=read, args=(server,))
    reader.start()
    for _ in range(BYTES // MESSAGE_BYTES):
        client.sendall(bytes(MESSAGE_BYTES))
    reader.join()
    lines = lines_of("a")
    fragments = fragments_of("a")
    assert sum(came) == BYTES, sum(came)
    assert fragments == 0, f"{fragments} fragments: IP had to cut packets"
    assert {line["ADDR"] for line in lines} == {"fd00:0000:0000:0000:0000:0000:0000:0002",
            "fd00:0001:0000:0000:0000:0000:0000:0002"}, lines  # fmt: skip
    for line in lines:
        assert line["CONG"] == "jsctp_abe" and line["TIMESTAMP"] == str(TIMESTAMP), line
    # The second, if the INIT was lost. If the COOKIE ECHO was, no time is taken of that path for
    # all of these bytes, a fault (docs/sctp-internals.md): some messages later one is.
    for _ in range(AGAIN):
        if used := [line for line in lines if line["sampled"] == "1"]:
            break
        client.sendall(bytes(MESSAGE_BYTES))
        server.recv(1 << 16)
        lines = lines_of("a")
    assert used and all(20_000 <= int(line["min_rtt_us"]) < 40_000 for line in used), lines
    abort(client, server, listener)


claim("the kernel log holds no complaint after it")(check_log)


if __name__ == "__main__":
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp", "sctp_jsctp", "sch_netem", "veth")
    lay_out()
    CLAIMS.settle()
