# SPDX-License-Identifier: GPL-2.0-only
"""sctp_traces.py stock|patched: run the same exchanges over one of the two modules, and print
for each the number of packets and a hash of all their bytes and times.

Random numbers are drawn from a seed and each exchange starts at the same virtual time, so two
modules that behave alike give the same bytes, tags and cookies included. Runs inside the lab.
"""

import hashlib
import os
import socket
import sys
import threading
import time
from pathlib import Path

import sctp_net as net
from sctp_net import Capture, Net

from lab.ask.links import Link
from lab.run.guest.alike import start_alike
from labtest.guest import first_in_line, run_cmd

MESSAGE_BYTES = 40_000
MISS_INDICATIONS = "sctp.miss_indications"
SLOW = Link(rate_mbps=2, queue_pkts=20)
LONG = Link(delay_ms=45)


def bulk(octets: int) -> None:
    """One flow that always has data, to its orderly end."""
    with net.listening() as listener:
        client = net.sctp_socket("a")
        client.connect(("10.0.2.1", net.PORT))
        server, _ = listener.accept()
        reader = threading.Thread(target=net.receive, args=(server, octets))
        reader.start()
        for _ in range(octets // MESSAGE_BYTES):
            client.sendall(bytes(MESSAGE_BYTES))
        client.shutdown(socket.SHUT_WR)
        reader.join()
        client.close()
        server.close()
    time.sleep(1)


def messages() -> None:
    """Messages of many sizes both ways, some of them bundled, and an orderly end."""
    with net.listening() as listener:
        client = net.sctp_socket("a")
        client.connect(("10.0.2.1", net.PORT))
        server, _ = listener.accept()
        for size in (1, 100, 1, 700, 1452, 1453, 3000, 20000, 5):
            client.sendall(bytes(size))
            server.sendall(bytes(size // 2 + 1))
        for size in (1, 100, 1, 700, 1452, 1453, 3000, 20000, 5):
            net.receive(server, size)
            net.receive(client, size // 2 + 1)
        client.shutdown(socket.SHUT_WR)
        assert not server.recv(1)
        client.close()
        server.close()
    time.sleep(1)


def failover(paths: Net) -> None:
    """The first of two paths loses all for 20 s; the other one takes over, and gives back."""
    total = 0
    with net.association(homes=2) as (client, server):
        reader = threading.Thread(target=net.receive, args=(server, 200 * 14400))
        reader.start()
        for i in range(200):
            if i in (50, 150):
                lost = Link(rate_mbps=2, loss_pct=100) if i == 50 else Link(rate_mbps=2)
                paths.set_path(1, lost, LONG)
            total += client.send(bytes(14400))
            time.sleep(0.2)
        reader.join()
    assert total == 200 * 14400


def patient() -> None:
    """A bulk flow whose sender, if it is the patched one, waits for a fourth SACK."""
    if os.path.exists(f"/proc/sys/net/{MISS_INDICATIONS.replace('.', '/')}"):
        net.sysctl("a", MISS_INDICATIONS, 4)
    bulk(2_000_000)


def exchanges():
    """Give each exchange's name, its network and what to do at a time."""
    yield "short queue", Net(SLOW, LONG), lambda _: bulk(2_000_000)
    yield "random loss", Net(Link(rate_mbps=2, loss_pct=5), LONG), lambda _: bulk(2_000_000)
    yield "lost SACKs", Net(SLOW, Link(delay_ms=45, loss_pct=20)), lambda _: bulk(800_000)
    yield "segmentation offload", Net(SLOW, LONG, offloads=True), lambda _: bulk(800_000)
    yield "messages", Net(Link(rate_mbps=2, loss_pct=2), LONG), lambda _: messages()
    yield "failover", Net(Link(rate_mbps=2), LONG), failover
    # not alike: to see that a difference is seen
    yield "four reports", Net(Link(rate_mbps=2, loss_pct=5), LONG), lambda _: patient()


def run(variant: str) -> None:
    options = ["-d", "/run/lab/modules" + ("/stock" if variant == "stock" else "")]
    run_cmd("modprobe", *options, "-a", "sctp", "sctp_diag", "md5", "hmac", "cryptomgr")
    path = "/proc/sys/net/sctp/available_congestion_control"
    assert os.path.exists(path) == (variant == "patched"), "the other module was loaded"
    for name, network, exchange in exchanges():
        with network as paths:
            with Capture("b", "to-r1") as one, Capture("b", "to-r2") as two:
                start_alike()
                exchange(paths)
            packets = sorted(one.packets + two.packets, key=lambda packet: packet.time_ns)
        digest = hashlib.sha256()
        for packet in packets:
            digest.update(packet.time_ns.to_bytes(8, "little") + packet.raw)
        octets = sum(len(packet.raw) for packet in packets)
        print(f"trace: {name}: {len(packets)} packets, {octets} bytes, {digest.hexdigest()}",
              flush=True)  # fmt: skip
        if len(sys.argv) > 2:
            Path(sys.argv[2], name.replace(" ", "-")).write_text(
                "\n".join(f"{p.time_ns} {p.raw.hex()}" for p in packets)
            )


if __name__ == "__main__":
    first_in_line()
    run(sys.argv[1])
