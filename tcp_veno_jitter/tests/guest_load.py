# SPDX-License-Identifier: GPL-2.0-only
"""guest_load.py ROUNDS [FLOWS]: the TCP modules and sch_wccp come and go, and change, under many
flows, inside the lab with several processors and in real time; prints TAP and figures. Standard
library only.

    a ==wccp or none==> b ==2 ms, 1 % loss==> a        flows both ways
"""

import contextlib
import errno
import os
import random
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from labtest.claims import Claims, check_log
from labtest.guest import abort, inside, run_cmd, write_file
from labtest.load import (
    allow_files,
    assert_held,
    load,
    meanwhile,
    unload,
    unload_unused,
    wait_for_work,
)

CLAIMS = Claims()
claim = CLAIMS.add

PORT, BACKLOG = 5001, 1024
ALGORITHMS = ("jtcp", "veno03", "tabe", "veno_jitter", "wccp")
DEFAULT = "reno"
BURST, READ_BYTES = 24, 1 << 16
ADDRESS = {"a": "10.0.0.1", "b": "10.0.0.2"}


def wanted() -> tuple[int, int]:
    """Return how many rounds, and how many flows."""
    return int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000


def choose(sock: socket.socket, name: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def qdisc(host: str, *words: str) -> str:
    return run_cmd("tc", "-n", host, "qdisc", *words)


def has_wccp(host: str) -> bool:
    return "qdisc wccp" in qdisc(host, "show", "dev", f"to-{host}")


class Crowd:
    """Two hosts and connections from a to b, both ends of which are ours."""

    def __init__(self, count: int):
        for name in ADDRESS:
            run_cmd("ip", "netns", "add", name)
        run_cmd("ip", "link", "add", "to-a", "netns", "a", "type", "veth", "peer", "name", "to-b",
                "netns", "b")  # fmt: skip
        for name, address in ADDRESS.items():
            run_cmd("ip", "-n", name, "address", "add", f"{address}/24", "dev", f"to-{name}")
            run_cmd("ip", "-n", name, "link", "set", f"to-{name}", "up")
            with inside(name):
                write_file("/proc/sys/net/ipv4/tcp_congestion_control", DEFAULT)
        qdisc("b", "add", "dev", "to-b", "root", "netem", "limit", "100000", "delay", "2ms",
              "loss", "1%")  # fmt: skip
        self.pairs = list(self.connections(count))

    def connections(self, count: int) -> Iterator[tuple[socket.socket, socket.socket]]:
        with inside("b"):
            listener = socket.create_server((ADDRESS["b"], PORT), backlog=BACKLOG)
        with listener:
            for _ in range(count):
                with inside("a"):
                    client = socket.create_connection((ADDRESS["b"], PORT))
                server, _ = listener.accept()
                for sock in (client, server):
                    sock.setblocking(False)
                yield client, server

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        for pair in self.pairs:
            abort(*pair)
        for name in ADDRESS:
            run_cmd("ip", "netns", "del", name)

    # --- what goes on meanwhile ---

    def flow(self) -> None:
        """Some of the connections carry data, both ways."""
        for pair in random.sample(self.pairs, BURST):
            for sock in pair:
                with contextlib.suppress(BlockingIOError):
                    sock.send(bytes(random.choice((100, 3000, 30_000))))
            for sock in pair:
                with contextlib.suppress(BlockingIOError):
                    while sock.recv(READ_BYTES):
                        pass

    def churn(self) -> None:
        """Connections come and end, with whatever algorithm is there."""
        with inside("b"):
            listener = socket.create_server((ADDRESS["b"], 0))
        with inside("a"):
            client = socket.create_connection(listener.getsockname())
        with contextlib.suppress(OSError):
            choose(client, random.choice(ALGORITHMS))
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            client.send(bytes(30_000))
        server, _ = listener.accept()
        abort(client, server, listener)

    def look(self) -> None:
        """Readers of /proc and inet_diag see what there is."""
        for name in ADDRESS:
            run_cmd("ip", "netns", "exec", name, "ss", "-tinH")
            try:
                with inside(name):
                    Path("/proc/thread-self/net/wccp").read_bytes()
            except OSError as error:  # gone, also between open and read
                if error.errno not in (errno.ENOENT, errno.EIO):
                    raise

    # --- the algorithm ---

    def change(self, name: str, every: int = 1) -> None:
        for client, server in self.pairs[::every]:
            choose(client, name)
            choose(server, name)


@contextlib.contextmanager
def crowd() -> Iterator[Crowd]:
    for name in ALGORITHMS:
        load(f"tcp_{name}")
    with Crowd(wanted()[1]) as people:
        yield people


def tell(what: str) -> None:
    rounds, count = wanted()
    print(f"# {rounds} {what}, {count} flows", flush=True)


@claim("flows change their algorithm in mid flow, with wccp's queueing discipline and without")
def check_switch():
    rounds, _ = wanted()
    load("sch_wccp")
    with crowd() as people:
        with meanwhile(people.flow, people.churn, people.look) as workers:
            wait_for_work(workers)
            for number in range(rounds):
                if number % 3 == 0:
                    action = ("del",) if has_wccp("a") else ("add",)
                    kind = () if action == ("del",) else ("wccp",)
                    qdisc("a", *action, "dev", "to-a", "root", *kind)
                people.change(ALGORITHMS[number % len(ALGORITHMS)], every=1 + number % 3)
        people.change(DEFAULT)
    unload_unused("sch_wccp")
    tell("changes")


@claim("a module in use is not unloaded, one that is not any more is, under load")
def check_unload():
    rounds, _ = wanted()
    with crowd() as people, meanwhile(people.flow, people.look) as workers:
        wait_for_work(workers)
        for number in range(rounds):
            name = ALGORITHMS[number % len(ALGORITHMS)]
            people.change(name, every=1 + number % 7)
            assert_held(f"tcp_{name}")
            people.change(DEFAULT)
            unload_unused(f"tcp_{name}")
            load(f"tcp_{name}")
    tell("modules unloaded")


@claim("sch_wccp comes and goes with its device's traffic, and is not unloaded while it is there")
def check_discipline():
    rounds, _ = wanted()
    with crowd() as people:
        people.change("wccp", every=2)
        with meanwhile(people.flow, people.look) as workers:
            wait_for_work(workers)
            for _ in range(rounds):
                load("sch_wccp")
                qdisc("a", "add", "dev", "to-a", "root", "wccp")
                assert_held("sch_wccp")
                assert unload("tcp_wccp") in (errno.EAGAIN, errno.EBUSY)
                qdisc("a", "del", "dev", "to-a", "root")
                unload_unused("sch_wccp")
        people.change(DEFAULT)
    for name in ALGORITHMS:
        unload_unused(f"tcp_{name}")
    tell("disciplines unloaded")


claim("the kernel log holds no complaint after all of it")(check_log)


if __name__ == "__main__":
    assert (os.cpu_count() or 1) > 1, "needs two processors: testbed/run --cpus 2"
    for module in ("veth", "sch_netem", "inet_diag", "tcp_diag"):
        run_cmd("modprobe", "-d", "/run/lab/modules", module)
    allow_files(4096)
    CLAIMS.settle()
