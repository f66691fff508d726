# SPDX-License-Identifier: GPL-2.0-only
"""A path and flows over it, inside the lab kernel. Standard library only.

    a (10.0.1.2) --- r ==rate, queue==> s ==delay==> b (10.0.2.2)
                 <==delay==

Loss is exact, not random: a filter on the receiving socket refuses the segments it is told to,
so the sender sees what it would see if the network had dropped them.
"""

import contextlib
import ctypes
import socket
import struct
import threading
import time
from dataclasses import dataclass

from labtest.guest import abort, enter_namespace, inside, run_cmd, write_file

ADDRESSES = {"a": "10.0.1.1", "b": "10.0.2.2"}
PORT = 5001
NAMESPACES = "arsb"
MTU_BYTES = 1500

# linux/tcp.h, asm-generic/socket.h; Python 3.11 does not know them
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, TCP_CC_INFO = 19, 20, 21, 26
TCP_RECV_QUEUE, TCP_REPAIR_OFF_NO_WP = 1, -1
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)  # enum tcp_ca_state
TIMESTAMPS, ECN = 0x1, 0x8  # tcpi_options
# struct tcp_info up to tcpi_snd_wnd
TCP_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q4I")
CC_INFO = struct.Struct("=5I")  # struct tcp_bbr_info
GAIN_ONE, LAW_MASK = 256, 3


class Path:
    """The network above, in four namespaces that go with it. SYSCTLS: of a and b, net.ipv4."""

    def __init__(self, rate_mbps=1000, delay_ms=25, queue_pkts=1000, **sysctls):
        self.rate_mbps, self.delay_ms, self.queue_pkts = rate_mbps, delay_ms, queue_pkts
        # who accepts would wait for good for a connection whose last ACK is lost each time: in a
        # burst, five times in a row, one flow in some hundred
        patience = {"tcp_syn_retries": 12, "tcp_synack_retries": 12}
        self.sysctls = {"tcp_no_metrics_save": 1} | patience | sysctls

    def __enter__(self):
        for name in NAMESPACES:
            run_cmd("ip", "netns", "add", name)
        for left, right, subnet in (("a", "r", 1), ("r", "s", 3), ("s", "b", 2)):
            self._wire(left, right, f"10.0.{subnet}.1", f"10.0.{subnet}.2")
        self._route()
        for name in "ab":
            for key, value in self.sysctls.items():
                self.sysctl(name, key, value)
        self.shape(action="add")
        self.set_delay(self.delay_ms, action="add")
        return self

    def __exit__(self, *_exc):
        for name in NAMESPACES:
            run_cmd("ip", "netns", "del", name)

    def _route(self) -> None:
        for name, route in (
            ("a", "10.0.2.0/24 via 10.0.1.2"),
            ("r", "10.0.2.0/24 via 10.0.3.2"),
            ("s", "10.0.1.0/24 via 10.0.3.1"),
            ("b", "10.0.1.0/24 via 10.0.2.1"),
        ):
            run_cmd("ip", "-n", name, "route", "add", *route.split())
        for name in "rs":
            self.sysctl(name, "ip_forward", 1)

    def _wire(self, left: str, right: str, left_ip: str, right_ip: str) -> None:
        run_cmd("ip", "link", "add", f"to-{right}", "netns", left, "type", "veth",
                "peer", "name", f"to-{left}", "netns", right)  # fmt: skip
        for name, dev, ip in ((left, f"to-{right}", left_ip), (right, f"to-{left}", right_ip)):
            run_cmd("ip", "-n", name, "-batch", "-", input=(
                f"link set lo up\naddr add {ip}/24 dev {dev}\nlink set {dev} up\n"))  # fmt: skip
        if left == "a":  # a packet is a segment
            run_cmd("ethtool", "-K", "to-r", "tso", "off", "gso", "off",
                    preexec_fn=lambda: enter_namespace("a"))  # fmt: skip

    @staticmethod
    def sysctl(namespace: str, key: str, value) -> None:
        with inside(namespace):
            write_file(f"/proc/sys/net/ipv4/{key}", value)

    def shape(self, *extra: str, action: str = "change") -> None:
        """Set the bottleneck; EXTRA are netem's words, such as loss 2%."""
        run_cmd("tc", "-n", "r", "qdisc", action, "dev", "to-s", "root", "netem",
                "limit", str(self.queue_pkts), *extra, "rate", f"{self.rate_mbps}mbit")  # fmt: skip

    def set_delay(self, forward_ms: float, action: str = "change") -> None:
        for name, dev, delay_ms in (("s", "to-b", forward_ms), ("r", "to-a", self.delay_ms)):
            run_cmd("tc", "-n", name, "qdisc", action, "dev", dev, "root", "netem",
                    "limit", "100000", "delay", f"{delay_ms}ms")  # fmt: skip

    def lose(self, model: str) -> None:
        """Lose packets behind the bottleneck; MODEL is netem's."""
        run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit",
                "100000", "delay", f"{self.delay_ms}ms", "loss", *model.split())  # fmt: skip

    def overtake(self, share_pct: float) -> None:
        """Let so many packets have no delay behind the bottleneck, and so overtake others."""
        run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit",
                "100000", "delay", f"{self.delay_ms}ms", "reorder", f"{share_pct}%")  # fmt: skip

    def vary(self, jitter_ms: float, loss_pct: float = 0) -> None:
        """Let the delay behind the bottleneck vary, and so much be lost; netem keeps the order
        where there is a rate."""
        run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit",
                "100000", "delay", f"{self.delay_ms}ms", f"{jitter_ms}ms", "loss",
                f"{loss_pct}%", "rate", "100mbit")  # fmt: skip

    def police(self, bucket_bytes: int) -> None:
        """Let the bottleneck queue nothing: what finds no room in the bucket is dropped."""
        for command in (
            "qdisc replace dev to-s root handle 1: prio",
            "filter add dev to-s parent 1: protocol all prio 1 matchall action police"
            f" rate {self.rate_mbps}mbit burst {bucket_bytes} conform-exceed drop/ok",
        ):
            run_cmd("tc", "-n", "r", *command.split())

    def mark(self) -> None:
        """Let CoDel manage the bottleneck's queue, and mark; both ends speak ECN from now on."""
        for command in (
            f"qdisc replace dev to-s root handle 1: tbf rate {self.rate_mbps}mbit burst 3100"
            " limit 1000000",
            f"qdisc add dev to-s parent 1:1 codel limit {self.queue_pkts} ecn",
        ):
            run_cmd("tc", "-n", "r", *command.split())
        for name in "ab":
            self.sysctl(name, "tcp_ecn", 1)

    def slow_way_back(self, rate_mbps: float, queue_pkts: int) -> None:
        """Give the way from b to a a bottleneck of its own."""
        run_cmd("tc", "-n", "r", "qdisc", "change", "dev", "to-a", "root", "netem",
                "limit", str(queue_pkts), "delay", f"{self.delay_ms}ms",
                "rate", f"{rate_mbps}mbit")  # fmt: skip

    def bdp_pkts(self) -> float:
        """Return what the path holds without a queue."""
        service_s = MTU_BYTES * 8 / (self.rate_mbps * 1e6)
        return (2 * self.delay_ms / 1000 + service_s) / service_s


@dataclass(frozen=True)
class Info:
    """What TCP_INFO tells of a socket."""

    ca_state: int
    backoffs: int
    options: int
    mss_bytes: int
    sacked_pkts: int
    lost_pkts: int
    srtt_us: int
    ssthresh_pkts: int
    cwnd_pkts: int
    retransmits: int
    bytes_acked: int
    min_rtt_us: int
    delivered_pkts: int
    delivered_ce_pkts: int
    next_byte: int


def info_of(sock: socket.socket) -> Info:
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
    v = TCP_INFO.unpack(raw)
    return Info(
        ca_state=v[1], backoffs=v[4], options=v[5], mss_bytes=v[10], sacked_pkts=v[13],
        lost_pkts=v[14], srtt_us=v[23], ssthresh_pkts=v[25], cwnd_pkts=v[26], retransmits=v[31],
        bytes_acked=v[34], min_rtt_us=v[39], delivered_pkts=v[46], delivered_ce_pkts=v[47],
        next_byte=v[48] - v[49],
    )  # fmt: skip


def cc_info_of(sock: socket.socket) -> dict[str, float]:
    """Return the numbers that the algorithm gives, by their meaning here."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, CC_INFO.size)
    low, high, min_rtt_us, ratio, backlog = CC_INFO.unpack(raw)
    return {"bw_bps": (high << 32 | low) * 8, "base_rtt_us": min_rtt_us,
            "ratio_pct": ratio / GAIN_ONE, "backlog_pkts": backlog / GAIN_ONE,
            "law": ratio & LAW_MASK}  # fmt: skip


def set_algorithm(sock: socket.socket, name: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def algorithm_of(sock: socket.socket) -> str:
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return raw.rstrip(b"\0").decode()


class Flow:
    """A connection from a to b, or back. It sends all it can, unless BULK is false, from a second
    after a request of REQUEST_BYTES, if any. MAPPED: the sender's socket is one of IPv6, with b's
    address as IPv6 has it."""

    def __init__(self, algorithm="", bulk=True, back=False, mapped=False, request_bytes=0):
        self.request_bytes = request_bytes
        sender, receiver = "ba" if back else "ab"
        address = (ADDRESSES[receiver], PORT)
        with inside(receiver), socket.create_server(address) as listener:
            with inside(sender):
                self.sock = socket.socket(socket.AF_INET6 if mapped else socket.AF_INET)
                if algorithm:
                    set_algorithm(self.sock, algorithm)
                self.sock.connect((f"::ffff:{address[0]}", PORT) if mapped else address)
            self.peer, _ = listener.accept()
        self.first_seq = self._first_seq()
        self.sending = threading.Event()
        self.sending.set()
        self.threads = [threading.Thread(target=self._sink)]
        if bulk:
            self.threads.append(threading.Thread(target=self._source))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_exc):
        self.sending.set()
        for sock in (self.sock, self.peer):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        abort(self.sock, self.peer)

    def _source(self) -> None:
        with contextlib.suppress(OSError):
            if self.request_bytes:
                self.sock.sendall(bytes(self.request_bytes))
                time.sleep(1.0)
            while self.sending.wait():
                self.sock.sendall(bytes(1 << 16))

    def _sink(self) -> None:
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 14)
        with contextlib.suppress(OSError):
            while self.peer.recv(1 << 20):
                pass

    @contextlib.contextmanager
    def pause(self):
        """Within the block nothing is sent, once what was written has been."""
        self.sending.clear()
        time.sleep(1.0)
        try:
            yield
        finally:
            self.sending.set()

    def _first_seq(self) -> int:
        """Return the sequence number of the first byte that the receiver expects."""
        tcp = socket.IPPROTO_TCP
        self.peer.setsockopt(tcp, TCP_REPAIR, 1)
        self.peer.setsockopt(tcp, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE)
        seq = self.peer.getsockopt(tcp, TCP_QUEUE_SEQ)
        self.peer.setsockopt(tcp, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP)
        # repair has taken that away, and the next flow listens on the same port
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return seq

    def info(self) -> Info:
        return info_of(self.sock)

    def cc_info(self) -> dict[str, float]:
        return cc_info_of(self.sock)

    def samples(self, duration_s: float, step_s: float = 0.001):
        """Yield (previous, current) state of the socket every STEP_S of virtual time."""
        before = self.info()
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            time.sleep(step_s)
            now = self.info()
            yield before, now
            before = now

    def wait_for(self, wanted, limit_s: float = 20.0) -> tuple[Info, Info]:
        """Return the state before and after it became what WANTED says."""
        for before, now in self.samples(limit_s):
            if wanted(now):
                return before, now
        raise AssertionError(f"not within {limit_s} s: {before}")

    def _refuse(self, instructions: list[tuple[int, int, int, int]]) -> None:
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
        self._code = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HP", len(instructions), ctypes.addressof(self._code))
        self.peer.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)

    @contextlib.contextmanager
    def outage(self):
        """Within the block, b gets nothing."""
        self._refuse([(0x06, 0, 0, 0)])
        try:
            yield
        finally:
            self.accept()

    def refuse_next(self, ahead_pkts: int) -> None:
        """Lose, each time it comes, the segment AHEAD_PKTS after the next; accept() ends that."""
        info = self.info()
        start = (self.first_seq + info.next_byte + ahead_pkts * info.mss_bytes) % 2**32
        # drop if seq - start, which wraps below 0, is less than a segment
        self._refuse([(0x20, 0, 0, 4), (0x14, 0, 0, start), (0x35, 1, 0, info.mss_bytes),
                      (0x06, 0, 0, 0), (0x06, 0, 0, 2**32 - 1)])  # fmt: skip

    def accept(self) -> None:
        self.peer.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)

    def drop_one(self) -> tuple[Info, Info]:
        """Lose one segment once; return the state before and after recovery began."""
        self.refuse_next(2)
        refusing = True
        for before, now in self.samples(10.0):
            if refusing and (now.sacked_pkts or now.ca_state > DISORDER):
                self.accept()
                refusing = False
            if now.ca_state >= RECOVERY:
                return before, now
        raise AssertionError(f"no recovery: {now}")
