# SPDX-License-Identifier: GPL-2.0-only
"""sctp_load.py ROUNDS [ASSOCIATIONS]: algorithms that change, and modules that come and go, under
many associations; prints TAP and figures. Needs two processors and real time. Standard library
only.

    one socket of many associations <=== lo: 2 ms, 1 % loss ===> a socket for each

While the algorithm of all of them changes, some carry data, some end and come anew, some are peeled
off or accepted, and others read what /proc and inet_diag tell.
"""

import contextlib
import os
import random
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sctp_peer as sp
from sctp_net import SCTP_CONG_CONTROL, peeled_off, set_algorithm

from labtest.claims import Claims, check_log
from labtest.guest import abort, leave_namespace, return_to_namespace, run_cmd, write_file
from labtest.load import (
    allow_files,
    assert_held,
    load,
    meanwhile,
    unload_unused,
    wait_for_work,
)

CLAIMS = Claims()
claim = CLAIMS.add

HERE = "127.0.0.1"
PORT, ACCEPTING_PORT = 5001, 5002
ALL = 2  # SCTP_ALL_ASSOC
OURS, DEFAULT = ("jsctp", "jsctp_abe"), "rfc9260"
BURST, READ_BYTES, BACKLOG = 16, 1 << 16, 512
CHURNED = 32  # of the associations: these end and come anew
SYSCTLS = {
    "rto_initial": 100, "rto_min": 20, "rto_max": 1000, "timestamp_chunk": sp.TIMESTAMP,
    "hb_interval": 200, "association_max_retrans": 1000,
}  # fmt: skip
TOGETHER, FLOWS_OF_EACH, LIVED_S = 4, 6, 0.4  # namespaces that end in mid transfer


def wanted() -> tuple[int, int]:
    """Return how many rounds, and how many associations."""
    return int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000


def drained(sock: socket.socket, most: int = BURST) -> int:
    """Read what SOCK has; return how many bytes those were."""
    read = 0
    with contextlib.suppress(BlockingIOError, ConnectionError, OSError):
        for _ in range(most):
            read += len(sock.recv(READ_BYTES))
    return read


def offered(sock: socket.socket, where: tuple[str, int] | None = None) -> None:
    """Write a message, if there is room for it and an association to take it."""
    data = bytes(random.choice((10, 1000, 4000)))
    with contextlib.suppress(BlockingIOError, ConnectionError, OSError):
        sock.sendto(data, where) if where else sock.send(data)


class Crowd:
    """A socket of many associations in a namespace of its own, and the other ends of them."""

    def __init__(self, count: int):
        self.home = leave_namespace()
        prepare_namespace(delayed=True)
        self.server = stream(socket.SOCK_SEQPACKET, PORT)
        self.accepting = stream(socket.SOCK_STREAM, ACCEPTING_PORT)
        self.clients = [connected(PORT) for _ in range(count)]
        self.wait(count)
        self.steady = self.clients[CHURNED:]
        self.ports = [client.getsockname()[1] for client in self.steady]

    def wait(self, count: int) -> None:
        """Wait until both ends know of so many associations."""
        end_s = time.monotonic() + 60
        while (known := len(associations())) < 2 * count:
            assert time.monotonic() < end_s, f"{known} of {2 * count} associations"
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        abort(*self.clients, self.server, self.accepting)
        return_to_namespace(self.home)

    # --- what goes on meanwhile ---

    def flow(self) -> None:
        """Some of the associations carry data, both ways."""
        for n in random.sample(range(len(self.steady)), BURST):
            offered(self.steady[n])
            offered(self.server, (HERE, self.ports[n]))
            drained(self.steady[n])
        drained(self.server, 2 * BURST)

    def churn(self) -> None:
        """One association ends in mid transfer, another one comes."""
        n = random.randrange(CHURNED)
        offered(self.clients[n])
        abort(self.clients[n])
        self.clients[n] = connected(PORT)

    def peel(self) -> None:
        """An association gets a socket of its own, changes its algorithm there and ends."""
        extra = connected(PORT)
        offered(extra)
        own = extra.getsockname()[1]
        for local, remote, number in associations():
            if (local, remote) == (PORT, own):
                peeled = peeled_off(self.server, number)
                if peeled:
                    chosen(peeled, random.choice((*OURS, DEFAULT)))
                    offered(peeled)
                    abort(peeled)
        abort(extra)

    def accept(self) -> None:
        """A connection is accepted, which moves its association to a new socket."""
        client = connected(ACCEPTING_PORT)
        chosen(client, random.choice((*OURS, DEFAULT)))
        offered(client)
        time.sleep(0.01)
        with contextlib.suppress(BlockingIOError):
            while True:
                server, _ = self.accepting.accept()
                offered(server)
                abort(server)
        abort(client)

    def look(self) -> None:
        """What holds no lock but RCU reads everything."""
        for name in ("cong", "assocs", "remaddr", "eps"):
            Path(f"/proc/thread-self/net/sctp/{name}").read_bytes()
        sp.diag()

    # --- the algorithm ---

    def change_all(self, name: str) -> None:
        """All associations, and those to come, use the algorithm."""
        for sock in self.clients:
            chosen(sock, name)
        self.change_server(name)
        set_algorithm(self.accepting, name)

    def change_server(self, name: str) -> None:
        """The same at the one end that has all associations, under one lock."""
        value = struct.pack("=i16s", ALL, name.encode())
        self.server.setsockopt(sp.IPPROTO_SCTP, SCTP_CONG_CONTROL, value)


def prepare_namespace(delayed: bool) -> None:
    run_cmd("ip", "link", "set", "lo", "up", "mtu", "1500")
    if delayed:
        run_cmd("tc", "qdisc", "add", "dev", "lo", "root", "netem", "limit", "100000",
                "delay", "2ms", "loss", "1%")  # fmt: skip
    for name, value in SYSCTLS.items():
        write_file(f"/proc/sys/net/sctp/{name}", value)


def stream(kind: int, port: int) -> socket.socket:
    """Return a listening socket that never waits."""
    sock = socket.socket(socket.AF_INET, kind, sp.IPPROTO_SCTP)
    sock.bind((HERE, port))
    sock.setblocking(False)
    sock.listen(BACKLOG)
    return sock


def connected(port: int) -> socket.socket:
    """Return a socket that is on its way to be connected."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, sp.IPPROTO_SCTP)
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        sock.connect((HERE, port))
    return sock


def chosen(sock: socket.socket, name: str) -> None:
    """Choose an algorithm; its module may be on its way out, or gone."""
    with contextlib.suppress(OSError):
        set_algorithm(sock, name)


def associations() -> list[tuple[int, int, int]]:
    """Return local port, remote port and identifier of each of this namespace."""
    _, *lines = Path("/proc/thread-self/net/sctp/assocs").read_text().splitlines()
    fields = [line.split() for line in lines]
    return [(int(each[11]), int(each[12]), int(each[6])) for each in fields]


def repeat(what: str, once: Callable[[int], None]) -> None:
    """Do it as often as is wanted, and tell."""
    rounds, count = wanted()
    for number in range(rounds):
        once(number)
    print(f"# {rounds} {what}, {count} associations", flush=True)


@contextlib.contextmanager
def crowd() -> Iterator[Crowd]:
    load("sctp_jsctp")
    with Crowd(wanted()[1]) as people:
        yield people
    unload_unused("sctp_jsctp")


@claim("all associations change their algorithm in mid flow, some end, are accepted, peeled off")
def check_switch():
    with crowd() as people:
        acts = (people.flow, people.churn, people.peel, people.accept, people.look)

        def change(number: int) -> None:
            name = (*OURS, DEFAULT)[number % 3]
            people.change_server(name)
            for sock in random.sample(people.steady, len(people.steady) // 4):
                set_algorithm(sock, name)

        with meanwhile(*acts) as workers:
            wait_for_work(workers)
            repeat("changes of all", change)
        people.change_all(DEFAULT)


@claim("a module that is in use is not unloaded, one that is not any more is, under load")
def check_unload():
    with crowd() as people:

        def come_and_go(number: int) -> None:
            name = OURS[number % 2]
            people.change_server(name)
            for sock in people.steady[number % 7 :: 7]:
                set_algorithm(sock, name)
            assert_held("sctp_jsctp")
            people.change_all(DEFAULT)
            unload_unused("sctp_jsctp")
            load("sctp_jsctp")

        with meanwhile(people.flow, people.churn, people.look) as workers:
            wait_for_work(workers)
            repeat("modules unloaded", come_and_go)


def live(name: str, started: int) -> None:
    """Be a namespace with flows in mid transfer until the process is ended; tell by the pipe
    STARTED that data has come."""
    os.set_blocking(started, False)
    leave_namespace()
    prepare_namespace(delayed=random.random() < 0.5)
    write_file("/proc/sys/net/sctp/congestion_control", name)
    server = stream(socket.SOCK_SEQPACKET, PORT)
    clients = [connected(PORT) for _ in range(FLOWS_OF_EACH)]
    while True:
        for sock in clients:
            offered(sock)
        if drained(server):
            with contextlib.suppress(BlockingIOError):
                os.write(started, b"x")


def born(name: str, started: int) -> int:
    """Return the process of a namespace with flows."""
    child = os.fork()
    if not child:
        random.seed(os.getpid())
        with contextlib.suppress(BaseException):
            live(name, started)
        os._exit(1)
    return child


@claim("namespaces that end in mid transfer take their associations along, and the module is free")
def check_namespaces():
    load("sctp_jsctp")

    def end_some(number: int) -> None:
        told, started = os.pipe()
        children = [born(OURS[n % 2], started) for n in range(TOGETHER)]
        os.close(started)
        assert os.read(told, 1), "all have ended"
        time.sleep(random.uniform(0, LIVED_S))
        assert_held("sctp_jsctp")
        for child in children:
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it had ended before"
        os.close(told)
        if number % 4 == 3:
            unload_unused("sctp_jsctp")
            load("sctp_jsctp")

    repeat(f"times {TOGETHER} namespaces", end_some)
    unload_unused("sctp_jsctp")


claim("the kernel log holds no complaint after all of it")(check_log)


if __name__ == "__main__":
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", "sctp", "sctp_diag", "sch_netem")
    assert (os.cpu_count() or 1) > 1, "needs two processors: testbed/run --cpus 2"
    assert wanted()[1] >= CHURNED + BURST, f"needs {CHURNED + BURST} associations"
    allow_files(4096)
    CLAIMS.settle()
