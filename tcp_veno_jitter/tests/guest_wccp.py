# SPDX-License-Identifier: GPL-2.0-only
"""What WCCP claims, inside the lab kernel: guest_wccp.py prints TAP. Times are virtual.

    a --wccp--> r --wccp--> s ==delay, rate==> b
      <==delay==                       <--wccp--

The channel is a script's: it tells the agents of a, r and b how busy it is.
"""

import argparse
import contextlib
import errno
import os
import random
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path as File

import guest_net as net
from guest_net import Flow

from lab.measure.stats import jain_index
from labtest.claims import Claims, check_log, near
from labtest.guest import (
    abort,
    errno_as_nobody,
    first_in_line,
    inside,
    leave_namespace,
    refusal,
    return_to_namespace,
    run_cmd,
    write_file,
)
from labtest.wire import TunWire

CLAIMS = Claims()
claim = CLAIMS.add

STATE = "/proc/thread-self/net/wccp"
MODULES = ("-d", "/run/lab/modules")
AGENTS = (("a", "to-r"), ("r", "to-s"), ("b", "to-s"))
KIND, EXID, DATA_BYTES, ECHO_BYTES = 254, 0x5743, 16, 8
SO_RCVBUFFORCE = 33
TELL_S = 0.02
SETTLE_S = 15


class WccpPath(net.Path):
    """AGENTS: the devices that have the queueing discipline."""

    def __init__(self, agents=AGENTS, rate_mbps=20, **arguments):
        super().__init__(rate_mbps=rate_mbps, **arguments)
        self.agents = agents

    def shape(self, *_extra: str, action: str = "change") -> None:
        for agent in self.agents:
            attach(*agent)

    def set_delay(self, forward_ms: float, action: str = "add") -> None:
        run_cmd("tc", "-n", "s", "qdisc", action, "dev", "to-b", "root", "netem", "limit",
                str(self.queue_pkts), "delay", f"{forward_ms}ms", "rate",
                f"{self.rate_mbps}mbit")  # fmt: skip
        run_cmd("tc", "-n", "r", "qdisc", action, "dev", "to-a", "root", "netem", "limit",
                "100000", "delay", f"{self.delay_ms}ms")  # fmt: skip


def attach(name: str, dev: str) -> None:
    run_cmd("tc", "-n", name, "qdisc", "add", "dev", dev, "root", "wccp")


def detach(name: str, dev: str) -> None:
    run_cmd("tc", "-n", name, "qdisc", "del", "dev", dev, "root")


def tell(dev: str, busy_ns: int, time_ns: int) -> None:
    """Say how busy the channel of DEV, in this namespace, has been."""
    write_file(STATE, f"{dev} {busy_ns} {time_ns}")


def states(name: str) -> dict[str, dict[str, str]]:
    """Return what the agents of a namespace say of themselves, by device."""
    with inside(name):
        head, *rows = (line.split() for line in File(STATE).read_text().splitlines())
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def count(name: str, dev: str, what: str) -> int:
    return int(states(name)[dev][what])


def sent_bytes(name: str, dev: str) -> int:
    """Return what DEV has sent, 0 if it is gone."""
    with inside(name):
        lines = File("/proc/thread-self/net/dev").read_text().splitlines()
    found = [line.split(":")[1].split() for line in lines if line.strip().startswith(f"{dev}:")]
    return int(found[0][8]) if found else 0


class Channel(threading.Thread):
    """Tells the agents of a path, EVERY_S, how busy the channel is: SHARE() of the time."""

    def __init__(self, share: Callable[[], float], agents=AGENTS, every_s: float = TELL_S):
        super().__init__()
        self.share, self.agents, self.every_s = share, agents, every_s
        self.ended = threading.Event()

    def run(self) -> None:
        busy_ns, before_ns = 0, time.monotonic_ns()
        while not self.ended.wait(self.every_s):
            now_ns = time.monotonic_ns()
            busy_ns += int(self.share() * (now_ns - before_ns))
            before_ns = now_ns
            self.tell(busy_ns, now_ns)

    def tell(self, busy_ns: int, now_ns: int) -> None:
        """Tell those agents that are there."""
        for name, dev in self.agents:
            with contextlib.suppress(OSError), inside(name):
                tell(dev, busy_ns, now_ns)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self.ended.set()
        self.join()


class Load:
    """How busy what DEVICE sends makes a channel of so many Mb/s, over the last OVER_S."""

    def __init__(self, capacity_mbps: float, over_s: float = TELL_S, device=("r", "to-s")):
        self.capacity_bps = capacity_mbps * 1e6
        self.over_s = over_s
        self.device = device
        self.seen = deque([(time.monotonic(), sent_bytes(*device))])

    def __call__(self) -> float:
        now_s, sent = time.monotonic(), sent_bytes(*self.device)
        while len(self.seen) > 1 and self.seen[1][0] <= now_s - self.over_s:
            self.seen.popleft()
        before_s, before = self.seen[0]
        self.seen.append((now_s, sent))
        bits = max(sent - before, 0) * 8  # a device that is gone has sent nothing
        return min(bits / (now_s - before_s) / self.capacity_bps, 1.0) if now_s > before_s else 1.0


def rate_mbps(flow: Flow) -> float:
    """Return r_p; 0: plain TCP."""
    return flow.cc_info()["bw_bps"] / 1e6


def goodput_mbps(flow: Flow, over_s: float) -> float:
    before = flow.info().bytes_acked
    time.sleep(over_s)
    return (flow.info().bytes_acked - before) * 8e-6 / over_s


@contextlib.contextmanager
def begun_after(wait_s: float):
    """Let agents hear of the channel before what is inside begins."""
    time.sleep(wait_s)
    yield


@contextlib.contextmanager
def flows(count: int, algorithm: str = "wccp"):
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            net.PORT += 1
            made.append(stack.enter_context(Flow(algorithm)))
        yield made


# --- what is on the wire -----------------------------------------------------


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def parse_options(options: bytes) -> list[tuple[int, bytes]]:
    found, i = [], 0
    while i < len(options) and options[i]:
        if options[i] == 1:
            i += 1
            continue
        found.append((options[i], options[i + 2 : i + options[i + 1]]))
        i += options[i + 1]
    return found


class Seen:
    """A segment from the wire; ValueError if a checksum is wrong."""

    def __init__(self, packet: bytes):
        header_bytes = (packet[0] & 15) * 4
        self.ip_bytes = struct.unpack_from("!H", packet, 2)[0]
        packet = packet[: self.ip_bytes]
        tcp = packet[header_bytes:]
        pseudo = packet[12:20] + struct.pack("!2H", socket.IPPROTO_TCP, len(tcp))
        if checksum(packet[:header_bytes]) or checksum(pseudo + tcp):
            raise ValueError(f"a wrong checksum: {packet[:80].hex()}")
        self.flags = tcp[13]
        doff = (tcp[12] >> 4) * 4
        self.payload_bytes = len(tcp) - doff
        self.options = parse_options(tcp[20:doff])
        ours = [body for kind, body in self.options if kind == KIND]
        bodies = [body[2:] for body in ours if body[:2] == struct.pack("!H", EXID)]
        self.data = next((body for body in bodies if len(body) == DATA_BYTES - 4), None)
        self.echo = next((body for body in bodies if len(body) == ECHO_BYTES - 4), None)
        self.sack_blocks = sum(len(body) // 8 for kind, body in self.options if kind == 5)


def listen(name: str, dev: str) -> socket.socket:
    """Return a socket that hears what comes in at DEV."""
    with inside(name):
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    tap.bind((dev, 0x0800))
    tap.setblocking(False)
    return tap


def heard(tap: socket.socket) -> list[Seen]:
    segments = []
    with contextlib.suppress(BlockingIOError):
        while True:
            packet, (*_, kind, _hardware, _address) = tap.recvfrom(1 << 16)
            if kind == socket.PACKET_HOST or kind == socket.PACKET_OTHERHOST:
                segments.append(Seen(packet))
    return segments


def offload(name: str, dev: str, **features: str) -> None:
    words = [word for pair in features.items() for word in pair]
    with inside(name):
        run_cmd("ethtool", "-K", dev, *words)


@contextlib.contextmanager
def whole_checksums():
    """Ends that leave no checksum to the device, so that it is on the wire."""
    for name, dev in (("a", "to-r"), ("b", "to-s")):
        offload(name, dev, tx="off")
    yield


@claim("data has the option, ACKs the echo; checksums are right and no packet is beyond the MTU")
def check_wire():
    with WccpPath(), whole_checksums(), Channel(lambda: 0.5), contextlib.ExitStack() as stack:
        there, back = listen("s", "to-r"), listen("s", "to-b")
        stack.callback(there.close)
        stack.callback(back.close)
        (flow,) = stack.enter_context(flows(1))
        time.sleep(3)
        data = [seen for seen in heard(there) if seen.payload_bytes]
        acks = [seen for seen in heard(back) if not seen.flags & 2]
        assert len(data) > 100 and len(acks) > 50, (len(data), len(acks))
        assert max(seen.ip_bytes for seen in data) == net.MTU_BYTES
        assert all(seen.data for seen in data[1:]), "data without the option"
        assert not any(seen.data for seen in acks)
        told = sum(seen.echo is not None for seen in acks)
        assert told >= len(acks) - 2, f"{told} of {len(acks)}"
        assert rate_mbps(flow) > 0
        assert count("a", "to-r", "no_room") == 0


@claim("ACKs whose blocks fill the options have no echo, and the flow repairs its losses")
def check_sack_room():
    with WccpPath(), whole_checksums(), Channel(lambda: 0.3), flows(1) as (flow,):
        time.sleep(2)
        tap = listen("s", "to-b")
        run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit",
                "1000", "delay", "25ms", "rate", "20mbit", "loss", "20%")  # fmt: skip
        time.sleep(8)
        acks = heard(tap)
        tap.close()
        by_blocks = {n: [s for s in acks if s.sack_blocks == n] for n in range(5)}
        assert len(by_blocks[3]) > 5 and not any(s.echo for s in by_blocks[3])
        assert len(by_blocks[2]) > 5 and all(s.echo for s in by_blocks[2])
        assert flow.info().retransmits > 10
        before = flow.info().bytes_acked
        time.sleep(3)
        assert flow.info().bytes_acked > before


@claim("where the path's MTU is smaller than the device's, both ways' segments keep to it")
def check_path_mtu():
    with WccpPath(), whole_checksums(), Channel(lambda: 0.5), contextlib.ExitStack() as stack:
        for name, to, via in (("a", "10.0.2.0/24", "10.0.1.2"), ("b", "10.0.1.0/24", "10.0.2.1")):
            run_cmd("ip", "-n", name, "route", "replace", to, "via", via, "mtu", "1200")
        taps = [listen("s", "to-r"), listen("s", "to-b")]
        (flow,) = stack.enter_context(flows(1))
        back = threading.Thread(target=flow.peer.sendall, args=(bytes(10**6),))
        back.start()
        read = 0
        while read < 10**6:
            read += len(flow.sock.recv(1 << 16))
        back.join()
        there, here = ([seen for seen in heard(tap) if seen.payload_bytes] for tap in taps)
        for tap in taps:
            tap.close()
        assert max(seen.ip_bytes for seen in there) == 1200
        assert max(seen.ip_bytes for seen in here) == 1200
        assert any(seen.data for seen in there) and rate_mbps(flow) > 0
        # b's algorithm leaves no room
        assert not any(seen.echo for seen in here if seen.ip_bytes > 1192)


@claim("who sends and receives has room for both: segments of full size have option and echo")
def check_both_ways():
    with WccpPath(), whole_checksums(), Channel(lambda: 0.5), contextlib.ExitStack() as stack:
        (flow,) = stack.enter_context(flows(1))
        net.set_algorithm(flow.peer, "wccp")
        threading.Thread(target=drain, args=(flow.sock,)).start()
        back = threading.Thread(target=send_for, args=(flow.peer, 3))
        back.start()
        time.sleep(1)
        tap = listen("s", "to-b")
        stack.callback(tap.close)
        back.join()
        whole = [seen for seen in heard(tap) if seen.payload_bytes > 1000]
        assert len(whole) > 50 and max(seen.ip_bytes for seen in whole) == net.MTU_BYTES
        assert all(seen.data and seen.echo for seen in whole[1:]), len(whole)


def drain(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(1 << 16):
            pass


def send_for(sock: socket.socket, duration_s: float) -> None:
    end_s = time.monotonic() + duration_s
    while time.monotonic() < end_s:
        sock.sendall(bytes(1 << 14))


@claim("what a raw socket sends as TCP passes as it is")
def check_raw_socket():
    with WccpPath(), Channel(lambda: 0.5), flows(1), contextlib.ExitStack() as stack:
        time.sleep(2)
        tap = listen("s", "to-r")
        stack.callback(tap.close)
        with inside("a"):
            kind = socket.SOCK_RAW, socket.IPPROTO_TCP
            raw = stack.enter_context(socket.socket(socket.AF_INET, *kind))
        target, sent = net.ADDRESSES["b"], []
        for flags in (0x10, 0x18, 0x02, 0x04, 0x11):
            tcp = struct.pack("!2H2I2BHHH", 7, 7, 1, 1, 5 << 4, flags, 1000, 0, 0) + bytes(200)
            ends = socket.inet_aton(net.ADDRESSES["a"]) + socket.inet_aton(target)
            pseudo = ends + struct.pack("!2H", socket.IPPROTO_TCP, len(tcp))
            tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
            raw.sendto(tcp, (target, 0))
            sent.append(tcp)
        time.sleep(1)
        came = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = tap.recv(1 << 16)
                if packet[20:24] == struct.pack("!2H", 7, 7):
                    came.append(packet[20:])
        assert came == sent


@claim("with segmentation offloads the option is on each segment, and all arrive whole")
def check_gso():
    with WccpPath(rate_mbps=400, queue_pkts=10000), Channel(lambda: 0.2):
        for name, dev in (("a", "to-r"), ("r", "to-a"), ("r", "to-s"), ("s", "to-r")):
            offload(name, dev, tso="on", gso="on", gro="on", tx="on")
        offload("s", "to-b", tso="off", gso="off", tx="off")
        tap = listen("b", "to-s")
        with flows(1) as (flow,):
            time.sleep(6)
            data = [seen for seen in heard(tap) if seen.payload_bytes]
            tap.close()
            assert all(seen.data for seen in data[1:])
            assert max(seen.ip_bytes for seen in data) <= net.MTU_BYTES
            inserted = count("a", "to-r", "inserted")
            assert inserted < 0.9 * len(data), f"{inserted} for {len(data)}: none was cut"
            assert flow.info().bytes_acked > 10**7


# --- the law -----------------------------------------------------------------


@claim("rates rise to the channel's threshold and stay, without a queue")
def check_converges():
    with WccpPath(), Channel(Load(10)), flows(1) as (flow,):
        time.sleep(SETTLE_S)
        # what r sends is headers, too: 1500 + 14 bytes carry 1432
        near(goodput_mbps(flow, 5), 10 * 0.95 * 1432 / 1514, 0.7)
        assert flow.info().srtt_us < 1.2 * flow.info().min_rtt_us
        assert flow.info().retransmits == 0


@claim("flows that join get their share, and what flows that leave had goes to who stays")
def check_join_and_leave():
    with WccpPath(), Channel(Load(10)), flows(1) as (first,):
        time.sleep(SETTLE_S)
        with flows(2) as joined:
            time.sleep(2 * SETTLE_S)
            rates = [rate_mbps(flow) for flow in (first, *joined)]
            assert jain_index(rates) > 0.97, rates
            near(sum(rates), 9, 1.2)
        time.sleep(SETTLE_S)
        near(rate_mbps(first), 10 * 0.95 * 1432 / 1514, 0.8)


@claim("shares are equal, or by 1 / hops: who has twice as far to go gets half")
def check_shares_by_hops():
    for by_hops, wanted in ((0, 1), (1, 2)):
        with (
            parameter("share_by_hops", by_hops),
            WccpPath(),
            whole_checksums(),
            Channel(Load(10)),
            flows(2) as (near_by, far),
        ):
            far.peer.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 61)  # as if from three beyond b
            time.sleep(3 * SETTLE_S)
            tap = listen("s", "to-r")
            rates = [0.0, 0.0]
            for _ in range(20):
                time.sleep(0.5)
                rates = [was + rate_mbps(f) for was, f in zip(rates, (near_by, far), strict=True)]
            hops = {seen.data[-2:] for seen in heard(tap) if seen.data}
            tap.close()
            assert hops == {b"\3\0", b"\6\0"}, hops
            near(rates[0] / rates[1], wanted, 0.1 * wanted)
            near(sum(rates) / 20, 10 * 0.95 * 1432 / 1514, 0.5)


@claim("on a channel that is always busy a flow sinks to half a segment a round trip, and lives")
def check_always_busy():
    share = 0.2
    with WccpPath(), Channel(lambda: share), flows(1) as (flow,):
        time.sleep(3)
        share = 1.0
        time.sleep(60)
        info = flow.info()
        floor_mbps = info.mss_bytes * 8 / info.srtt_us / 2
        near(rate_mbps(flow), floor_mbps, 0.3 * floor_mbps)
        before = info.bytes_acked
        time.sleep(3)
        assert flow.info().bytes_acked > before
        share = 0.1
        time.sleep(10)
        assert rate_mbps(flow) > 3


@claim("on a channel that is never busy losses still bound the rate: Reno's window is under it")
def check_never_busy():
    with WccpPath(rate_mbps=5, queue_pkts=30) as path, Channel(lambda: 0.0), flows(1) as (flow,):
        time.sleep(20)
        info = flow.info()
        assert info.retransmits > 0 and info.cwnd_pkts < 3 * (path.queue_pkts + path.bdp_pkts())
        most = info.cwnd_pkts * info.mss_bytes * 8 / info.srtt_us
        assert 0 < rate_mbps(flow) <= 2.2 * most, (rate_mbps(flow), most)
        assert goodput_mbps(flow, 10) > 4


@claim("the window is at most 2.5 times r_p times the smallest round trip, or four packets")
def check_window():
    with WccpPath(), flows(1) as (flow,):
        for capacity_mbps in (10, 1):
            with Channel(Load(capacity_mbps)):
                time.sleep(2 * SETTLE_S)
                info = flow.info()
                bdp_pkts = rate_mbps(flow) / 8 * info.min_rtt_us / info.mss_bytes
            assert 4 <= info.cwnd_pkts <= max(2.6 * bdp_pkts, 4) + 1, (info.cwnd_pkts, bdp_pkts)


# --- ACKs that wait ----------------------------------------------------------


@contextlib.contextmanager
def parameter(name: str, value: int):
    """Within the block sch_wccp has another value of NAME."""
    path = File("/sys/module/sch_wccp/parameters", name)
    was = path.read_text()
    path.write_text(str(value))
    try:
        yield
    finally:
        path.write_text(was)


@claim("ACKs wait until they are for three segments; of segments far apart, until 200 ms are over")
def check_acks_are_joined():
    # TCP acknowledges each second segment, and each of those that come every 80 ms
    for load, plain, joined in (((10,), 0.5, 0.25), ((0.16, 1), 1, 0.34)):
        for number, wanted in ((1, plain), (3, joined)):
            with (
                parameter("ack_segments", number),
                WccpPath(),
                Channel(Load(*load)),
                flows(1) as (flow,),
            ):
                time.sleep(3 * SETTLE_S)
                before = flow.info().delivered_pkts, acks_sent()
                time.sleep(SETTLE_S)
                segments, acks = flow.info().delivered_pkts - before[0], acks_sent() - before[1]
                near(acks / segments, wanted, 0.2 * wanted)
                assert flow.info().retransmits == 0
                assert number > 1 or count("b", "to-s", "joined") == 0


@claim("ACKs of segments of 300 bytes wait for each other as those of large ones do")
def check_acks_of_small_segments():
    with WccpPath(), Channel(Load(2)):
        run_cmd("ip", "-n", "b", "route", "replace", "10.0.1.0/24", "via", "10.0.2.1",
                "advmss", "328")  # fmt: skip
        with flows(1) as (flow,):
            assert flow.info().mss_bytes == 300
            time.sleep(3 * SETTLE_S)
            before = flow.info().delivered_pkts, acks_sent()
            time.sleep(SETTLE_S)
            segments, acks = flow.info().delivered_pkts - before[0], acks_sent() - before[1]
            near(acks / segments, 0.25, 0.05)
            assert flow.info().retransmits == 0


@claim("where round trips are short, too, segments leave one by one, and ACKs wait for each other")
def check_short_round_trips():
    with WccpPath(delay_ms=0), whole_checksums(), Channel(Load(2)), contextlib.ExitStack() as stack:
        (flow,) = stack.enter_context(flows(1))
        time.sleep(SETTLE_S)
        assert flow.info().min_rtt_us < 2000  # of which the core makes bursts of many segments
        tap = listen("s", "to-r")
        stack.callback(tap.close)
        before = acks_sent()
        time.sleep(SETTLE_S)
        data = [seen for seen in heard(tap) if seen.payload_bytes]
        pushed = sum(bool(seen.flags & 8) for seen in data)
        assert pushed < 0.1 * len(data), f"{pushed} of {len(data)}"
        near((acks_sent() - before) / len(data), 0.25, 0.05)
        assert flow.info().retransmits == 0


def acks_sent() -> int:
    return count("b", "to-s", "echoed") - count("b", "to-s", "joined")


@claim("an ACK waits 200 ms at most, and not at all where a write ends; no timer runs out")
def check_last_ack():
    with WccpPath(), Channel(lambda: 0.5), Flow("wccp", bulk=False) as flow:
        flow.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waits = {socket.MSG_MORE: [], 0: []}
        sent = 0
        for flags in [socket.MSG_MORE] * 30 + [0] * 30:
            whole = bytes(flow.info().mss_bytes)
            begun = time.monotonic()
            flow.sock.sendall(whole, flags)
            sent += len(whole)
            flow.wait_for(lambda now, all=sent: now.bytes_acked > all)
            waits[flags].append(time.monotonic() - begun - flow.info().min_rtt_us * 1e-6)
            time.sleep(0.03)
        delayed_s = 0.04 + 0.02
        assert 0.1 < max(waits[socket.MSG_MORE]) < delayed_s + 0.2, waits
        assert max(waits[0][1:]) < delayed_s, waits
        assert flow.info().retransmits == 0 and count("b", "to-s", "echoed") > 20


@claim("ACKs that wait when the queue goes, or its device, are not missed for long")
def check_waiting_queue_goes():
    with WccpPath(), Channel(Load(10)), flows(3) as three:
        time.sleep(SETTLE_S)
        for _ in range(10):
            before = count("b", "to-s", "joined")
            time.sleep(2)
            assert count("b", "to-s", "joined") > before
            detach("b", "to-s")
            attach("b", "to-s")
        acked = [flow.info().bytes_acked for flow in three]
        run_cmd("ip", "-n", "b", "link", "set", "to-s", "down")
        run_cmd("ip", "-n", "b", "link", "set", "to-s", "up")
        run_cmd("ip", "-n", "b", "route", "replace", "10.0.1.0/24", "via", "10.0.2.1")
        time.sleep(SETTLE_S)
        assert all(flow.info().bytes_acked > was for flow, was in zip(three, acked, strict=True))


# --- beside others -------------------------------------------------------------


@claim("who is beside flows that take what it yields goes by the window, until they are gone")
def check_beside_reno():
    with WccpPath(rate_mbps=10, queue_pkts=60), Channel(Load(10)), flows(1) as (flow,):
        with flows(1, "reno") as (rival,):
            time.sleep(SETTLE_S)
            assert rate_mbps(flow) == 0
            before = flow.info().bytes_acked, rival.info().bytes_acked
            time.sleep(4 * SETTLE_S)
            got = [
                one.info().bytes_acked - was for one, was in zip((flow, rival), before, strict=True)
            ]
            assert got[0] > 0.35 * sum(got), got
        time.sleep(SETTLE_S)
        assert rate_mbps(flow) > 0
        time.sleep(SETTLE_S)
        near(goodput_mbps(flow, 5), 10 * 0.95 * 1432 / 1514, 0.7)


@claim("who repairs losses as others fill the channel goes by the window before all is repaired")
def check_beside_reno_in_repair():
    with WccpPath(rate_mbps=10, queue_pkts=60), contextlib.ExitStack() as stack:
        stack.enter_context(Channel(lambda: 0.99))
        flow, _ = stack.enter_context(flows(1))[0], stack.enter_context(flows(1, "reno"))
        time.sleep(1)
        run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit",
                "60", "delay", "25ms", "rate", "10mbit", "loss", "20%")  # fmt: skip
        while states("r")["to-s"]["crowded"] == "0":
            time.sleep(0.01)
        # repairs go on for as long as one packet in five is lost; a timeout or two may come first
        for _ in range(1000):
            if not rate_mbps(flow):
                break
            time.sleep(0.01)
        else:
            raise AssertionError(f"paced for ten seconds: {flow.info()}")


@claim("who is silent beside such flows for a while goes by the window when it is back")
def check_beside_reno_after_silence():
    with WccpPath(rate_mbps=10, queue_pkts=60), contextlib.ExitStack() as stack:
        stack.enter_context(Channel(lambda: 0.5, AGENTS[:1]))
        behind = stack.enter_context(Channel(Load(10), AGENTS[1:]))
        flow, _ = stack.enter_context(flows(1))[0], stack.enter_context(flows(1, "reno"))
        time.sleep(SETTLE_S)
        assert rate_mbps(flow) == 0
        for silence_s in (1, 4, 8):
            with flow.pause():
                time.sleep(silence_s)
            still_plain(flow, silence_s)
        # nodes behind the first hear nothing while nothing of ours passes, as with ask_medium
        behind.ended.set()
        with flow.pause():
            time.sleep(4)
        assert states("r")["to-s"]["channel"] == "deaf"
        still_plain(flow, "deaf")


def still_plain(flow: Flow, about) -> None:
    for _ in range(40):
        time.sleep(0.1)
        assert rate_mbps(flow) == 0, about


@claim("beside traffic that does not answer it takes what is left, and goes on listening")
def check_beside_cbr():
    for cbr_mbps in (2, 7):
        with (
            WccpPath(rate_mbps=20, queue_pkts=60),
            Channel(Load(10)),
            Datagrams(cbr_mbps),
            flows(1) as (flow,),
        ):
            time.sleep(SETTLE_S)
            for _ in range(20):
                time.sleep(1)
                assert rate_mbps(flow) > 0, cbr_mbps
            near(goodput_mbps(flow, 10), (9.5 - cbr_mbps) * 1432 / 1514, 0.7)
            assert flow.info().retransmits == 0


class Datagrams(threading.Thread):
    """UDP from a to b, at so many Mb/s, frames counted."""

    FRAME_BYTES, HEADER_BYTES = 1514, 42

    def __init__(self, mbps: float):
        super().__init__()
        self.gap_s = self.FRAME_BYTES * 8e-6 / mbps
        self.ended = threading.Event()

    def run(self) -> None:
        with inside("a"):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        with sock:
            while not self.ended.wait(self.gap_s):
                with contextlib.suppress(OSError):
                    payload = bytes(self.FRAME_BYTES - self.HEADER_BYTES)
                    sock.sendto(payload, (net.ADDRESSES["b"], 9))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self.ended.set()
        self.join()


# --- who does not know of it -------------------------------------------------


@claim("where there are no agents it is Reno: the same window, and as many losses, to a tenth")
def check_is_reno():
    for queue_pkts in (60, 20, 4):
        seen = {}
        for algorithm in ("wccp", "reno"):
            with (
                WccpPath((), rate_mbps=10, queue_pkts=queue_pkts),
                flows(1, algorithm) as (flow,),
            ):
                infos = [now for _before, now in flow.samples(30, 0.1)]
                windows = [info.cwnd_pkts for info in infos]
                seen[algorithm] = sum(windows), infos[-1].retransmits, infos[-1].bytes_acked
                assert infos[-1].mss_bytes == net.MTU_BYTES - 52
        for got, wanted in zip(seen["wccp"], seen["reno"], strict=True):
            near(got, wanted, 0.1 * wanted)


@claim(
    "while it repairs losses its window is what is under way: packets are conserved, as with Reno"
)
def check_recovery_conserves():
    with WccpPath(rate_mbps=10, queue_pkts=200), Channel(lambda: 0.2), flows(1) as (flow,):
        flow.wait_for(lambda now: now.cwnd_pkts > 60 and now.ca_state == net.OPEN)
        assert rate_mbps(flow) > 0
        with flow.outage():  # a burst of losses, and what comes after it arrives
            time.sleep(0.04)
        _, begun = flow.wait_for(lambda now: now.ca_state == net.RECOVERY)
        for _before, now in flow.samples(begun.srtt_us * 0.8e-6):
            if now.ca_state != net.RECOVERY:
                break
            pipe_pkts = under_way_pkts(flow.sock)
            assert now.cwnd_pkts <= pipe_pkts + 2, (now, pipe_pkts)
        flow.wait_for(lambda now: now.ca_state == net.OPEN)
        time.sleep(1)
        assert rate_mbps(flow) > 0


def under_way_pkts(sock: socket.socket) -> int:
    """Return the segments that have been sent and are neither acknowledged nor taken for lost."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, net.TCP_INFO.size)
    unacked, sacked, lost, retransmitted = net.TCP_INFO.unpack(raw)[12:16]
    return unacked - sacked - lost + retransmitted


@claim("after an idle time rate and window begin anew, as the sysctl says")
def check_idle():
    for restarts in (1, 0):
        with (
            WccpPath(tcp_slow_start_after_idle=restarts),
            Channel(Load(10)),
            flows(1) as (flow,),
        ):
            time.sleep(SETTLE_S)
            before = rate_mbps(flow)
            with flow.pause():
                time.sleep(2)
                assert flow.info().cwnd_pkts > 10, flow.info()
            time.sleep(0.04)
            info = flow.info()
            first = info.mss_bytes * 8 / info.srtt_us
            if restarts:
                assert info.cwnd_pkts <= 10 and rate_mbps(flow) < 2 * first < before / 5
            else:
                assert info.cwnd_pkts > 10 and rate_mbps(flow) > 0.5 * before
            time.sleep(SETTLE_S)
            near(rate_mbps(flow), 10 * 0.95 * 1432 / 1514, 1)


@claim("what the peer sends meanwhile is no reason to keep the window over an idle time")
def check_idle_after_word():
    with WccpPath(), Channel(Load(10)), Flow("wccp", bulk=False) as flow:
        flow.sock.sendall(bytes(6 << 20))
        flow.wait_for(lambda now: now.bytes_acked > 6 << 20)
        before = flow.info()
        assert before.cwnd_pkts > 20 and rate_mbps(flow) > 0, before
        flow.peer.sendall(b"x")  # with an ACK in it, and nothing under way
        time.sleep(3)
        assert flow.info().cwnd_pkts == before.cwnd_pkts, flow.info()
        flow.sock.sendall(bytes(100_000))
        time.sleep(0.04)  # less than a round trip
        assert flow.info().cwnd_pkts <= 10, flow.info()


@claim("an application that uses little of its window loses what it does not use, as with Reno")
def check_window_is_validated():
    with (
        parameter("shuffle_percent", 0),  # which would take from the rate what is not used
        WccpPath(),
        Channel(lambda: 0.2),
        Flow("wccp", bulk=False) as flow,
    ):
        flow.sock.sendall(bytes(3 << 20))
        flow.wait_for(lambda now: now.bytes_acked > 2 << 20)
        before = flow.info()
        assert before.cwnd_pkts > 40 and rate_mbps(flow) > 0
        flow.wait_for(lambda now: now.bytes_acked > 3 << 20)
        for _ in range(200):  # something is always on its way
            flow.sock.sendall(bytes(1000))
            time.sleep(0.02)
        assert flow.info().cwnd_pkts <= 12, flow.info()


@claim("a receiver without an agent gets plain TCP, as fast as Reno's")
def check_ignorant_peer():
    got = {}
    for algorithm in ("wccp", "reno"):
        with (
            WccpPath(AGENTS[:2], rate_mbps=10, queue_pkts=60),
            Channel(lambda: 0.99, AGENTS[:2]),
            flows(1, algorithm) as (flow,),
        ):
            time.sleep(5)
            got[algorithm] = goodput_mbps(flow, 20)
            assert rate_mbps(flow) == 0 if algorithm == "wccp" else True
            if algorithm == "wccp":
                assert count("a", "to-r", "inserted") > 1000
                assert count("a", "to-r", "told") == 0
    near(got["wccp"], got["reno"], 0.05 * got["reno"])


@contextlib.contextmanager
def first_flow(**sysctls):
    """A flow from a namespace that has an agent to one that has none, of two segments for now."""
    with WccpPath(AGENTS[:2], **sysctls), Flow("wccp", bulk=False) as flow:
        assert flow.info().cwnd_pkts == 2, flow.info()
        yield flow


def window_told(flow: Flow) -> net.Info:
    """Send one segment; return what the socket says as soon as that is acknowledged."""
    before = flow.info().bytes_acked
    flow.sock.sendall(bytes(flow.info().mss_bytes))
    return flow.wait_for(lambda now: now.bytes_acked > before + 1)[1]


@claim("where two segments have waited, the window is then the route's, and Reno's after a loss")
def check_first_window():
    for pkts in (4, 10, 40):
        with WccpPath(AGENTS[:2]):
            begin_with(str(pkts))
            with Flow("wccp", bulk=False) as flow:
                assert flow.info().cwnd_pkts == 2, flow.info()
                near(window_told(flow).cwnd_pkts, pkts, 1)
    with first_flow() as flow:
        with flow.outage():
            flow.sock.sendall(bytes(flow.info().mss_bytes))
            flow.wait_for(lambda now: now.ca_state == net.LOSS)
        _, now = flow.wait_for(lambda now: now.bytes_acked > 1)
        assert now.cwnd_pkts <= 3, now
    with first_flow(tcp_ecn=1) as flow:
        lose_at_s("100% ecn")  # which marks instead
        assert window_told(flow).ssthresh_pkts == 2, flow.info()
    with WccpPath(AGENTS[:2]):
        with flows(1):  # whose neighbour is known then
            pass
        lose_at_s("100%")
        ends = threading.Timer(4, lose_at_s, ("0%",))
        ends.start()
        with Flow("wccp", bulk=False) as flow:
            assert flow.info().cwnd_pkts == 1, flow.info()
            assert window_told(flow).cwnd_pkts <= 2, flow.info()
        ends.join()


@claim("chosen while it connects it does not wait: its window is the route's all the time")
def check_chosen_in_syn_sent():
    with WccpPath(AGENTS[:2]), contextlib.ExitStack() as stack:
        begin_with("4")
        with inside("b"):
            listener = stack.enter_context(socket.create_server((net.ADDRESSES["b"], 0)))
        with inside("a"):
            sock = stack.enter_context(socket.socket())
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        net.set_algorithm(sock, "wccp")
        stack.callback(abort, sock, listener.accept()[0])
        before = net.info_of(sock)
        sock.sendall(bytes(before.mss_bytes))
        while (now := net.info_of(sock)).bytes_acked <= 1:
            time.sleep(0.001)
        assert before.cwnd_pkts == 4 and now.cwnd_pkts <= 5, (before, now)


@claim("who is chosen instead before the first ACK has the route's window, not two segments")
def check_left_while_waiting():
    with first_flow() as flow:
        net.set_algorithm(flow.sock, "cubic")
        assert flow.info().cwnd_pkts == 10, flow.info()


def begin_with(pkts: str) -> None:
    """Give a's route to b an initial window."""
    run_cmd("ip", "-n", "a", "route", "replace", "10.0.2.0/24", "via", "10.0.1.2", "initcwnd",
            pkts)  # fmt: skip


def lose_at_s(model: str) -> None:
    """Lose packets behind the bottleneck; MODEL is netem's."""
    run_cmd("tc", "-n", "s", "qdisc", "change", "dev", "to-b", "root", "netem", "limit", "1000",
            "delay", "25ms", "rate", "20mbit", "loss", *model.split())  # fmt: skip


@claim("a sender without an agent is plain TCP, and puts nothing on the wire")
def check_no_agent():
    with WccpPath(AGENTS[1:], rate_mbps=10, queue_pkts=60), Channel(lambda: 0.5, AGENTS[1:]):
        tap = listen("r", "to-a")
        with flows(1) as (flow,):
            time.sleep(10)
            assert not any(seen.data for seen in heard_loosely(tap))
            assert rate_mbps(flow) == 0 and goodput_mbps(flow, 10) > 8
        tap.close()


def heard_loosely(tap: socket.socket) -> list[Seen]:
    with contextlib.suppress(ValueError):  # checksums are the device's
        return heard(tap)
    return []


@claim("feedback that ends (stripped options, an agent that goes) leaves plain TCP, and comes back")
def check_feedback_ends():
    with WccpPath(), Channel(lambda: 0.6), flows(1) as (flow,):
        time.sleep(3)
        assert rate_mbps(flow) > 0
        detach("b", "to-s")
        time.sleep(4)
        assert rate_mbps(flow) == 0
        before = flow.info().bytes_acked
        time.sleep(2)
        assert flow.info().bytes_acked > before
        attach("b", "to-s")
        time.sleep(2)
        assert rate_mbps(flow) > 0


@claim("agents that nobody tells of the channel let segments pass as they are")
def check_deaf():
    share = 0.6
    with WccpPath(rate_mbps=10, queue_pkts=60), flows(1) as (flow,):
        time.sleep(3)
        assert rate_mbps(flow) == 0 and count("a", "to-r", "inserted") == 0
        with Channel(lambda: share):
            time.sleep(3)
            assert rate_mbps(flow) > 0
            assert states("a")["to-r"]["channel"] == "alive"
        time.sleep(6)
        assert rate_mbps(flow) == 0
        assert states("a")["to-r"]["channel"] == "deaf"
        assert goodput_mbps(flow, 10) > 8


@claim("a node that fails in mid path costs the time that it is away, and no more")
def check_node_failure():
    with WccpPath(), Channel(Load(10)), flows(1) as (flow,):
        time.sleep(SETTLE_S)
        before = rate_mbps(flow)
        run_cmd("ip", "-n", "r", "link", "set", "to-s", "down")
        time.sleep(3)
        run_cmd("ip", "-n", "r", "link", "set", "to-s", "up")
        run_cmd("ip", "-n", "r", "route", "replace", "10.0.2.0/24", "via", "10.0.3.2")
        time.sleep(2 * SETTLE_S)
        near(rate_mbps(flow), before, 0.15 * before)


# --- clocks and hostile numbers ----------------------------------------------


@claim("the channel's clock may wrap, stand, go back or jump; the flow goes on")
def check_clocks():
    last = 2**64 - 1
    tales = [
        [(0, 0)] * 5,
        [(last - 10**8 + i * 10**7, last - 10**8 + i * 10**7) for i in range(10)],
        [((i * 10**7) % 2**64, (last + 1 - 5 * 10**7 + i * 10**7) % 2**64) for i in range(10)],
        [(10**9 - i * 10**7, 10**9 - i * 10**7) for i in range(10)],
        [(i * 10**17, i * 10**18) for i in range(10)],
        [(i * 10**10, i * 10**7) for i in range(10)],
        [(i % 2 * last, i * 10**7) for i in range(10)],
    ]
    with WccpPath(), flows(1) as (flow,):
        for tale in tales:
            before = flow.info().bytes_acked
            for busy_ns, time_ns in tale:
                for name, dev in AGENTS:
                    with inside(name):
                        tell(dev, busy_ns, time_ns)
                time.sleep(0.1)
            time.sleep(1)
            assert flow.info().bytes_acked > before, tale
        with Channel(Load(10)):
            time.sleep(3 * SETTLE_S)
            near(goodput_mbps(flow, 5), 10 * 0.95 * 1432 / 1514, 0.7)


@claim("a survey that stands still, or creeps, says nothing: flows go on as plain TCP")
def check_standing_clock():
    for speed in (0, 0.001):
        with WccpPath(rate_mbps=10, queue_pkts=60), Stopped(speed):
            time.sleep(2)
            with flows(1) as (flow,):
                time.sleep(15)
                got_mbps = goodput_mbps(flow, 10)
                assert got_mbps > 8 and rate_mbps(flow) == 0, (speed, got_mbps, states("a"))


class Stopped(Channel):
    """Its clock runs for a second, and then at SPEED."""

    def __init__(self, speed: float):
        super().__init__(lambda: 0.9)
        self.speed = speed

    def run(self) -> None:
        begun_ns = time.monotonic_ns()
        while not self.ended.wait(self.every_s):
            late_ns = max(time.monotonic_ns() - begun_ns - 10**9, 0)
            now_ns = time.monotonic_ns() - int(late_ns * (1 - self.speed))
            self.tell(int(now_ns * 0.9), now_ns)


@claim("a survey that is read seldom, against the round trip, raises no rate twice for one reading")
def check_slow_survey():
    for every_s in (0.1, 0.5, 1.0):
        with (
            WccpPath(delay_ms=2, queue_pkts=100),
            Channel(Load(10, over_s=every_s), every_s=every_s),
            begun_after(1.5),
            flows(1) as (flow,),
        ):
            time.sleep(SETTLE_S)
            near(goodput_mbps(flow, 20), 10 * 0.95 * 1432 / 1514, 0.2)
            assert flow.info().retransmits == 0


@claim("the state file refuses what it cannot read, devices that it does not know, and strangers")
def check_state_file():
    with WccpPath(), inside("a"):
        for text in ("", "x", "to-r", "to-r 1", "to-r x 1", "to-r 1 x", "to-r -1 1\0"):
            assert refusal(lambda text=text: write_file(STATE, text)) in (
                errno.EINVAL,
                0 if "-1" in text or not text else errno.EINVAL,
            ), text
        for text in ("to-r 1 1 x", "to-r 1 1 1 1", "to-r 1 1 1 x"):
            assert refusal(lambda text=text: write_file(STATE, text)) == errno.EINVAL, text
        write_file(STATE, "to-r 1 1 5")  # packets wait
        assert refusal(lambda: tell("lo", 1, 1)) == errno.ENODEV
        assert refusal(lambda: tell("to-s", 1, 1)) == errno.ENODEV, "another namespace's"
        assert refusal(lambda: write_file(STATE, "y" * 4096)) != 0
        assert errno_as_nobody(lambda: tell("to-r", 1, 1)) in (errno.EPERM, errno.EACCES)


@claim("the queueing discipline is a device's root, and nothing else")
def check_root_only():
    with WccpPath():
        run_cmd("tc", "-n", "s", "qdisc", "add", "dev", "to-r", "root", "handle", "1:", "htb")
        run_cmd("tc", "-n", "s", "class", "add", "dev", "to-r", "parent", "1:", "classid", "1:1",
                "htb", "rate", "1mbit")  # fmt: skip
        try:
            run_cmd("tc", "-n", "s", "qdisc", "add", "dev", "to-r", "parent", "1:1", "wccp")
        except RuntimeError as error:
            assert "root" in str(error), error
        else:
            raise AssertionError("it was taken")


def random_option(choose: random.Random) -> bytes:
    """Return bytes of TCP options that WCCP's parser, and the law behind it, have to survive."""
    exid = struct.pack("!H", EXID)
    rate = choose.choice((0, 1, 1000, 2**31 - 1, 2**31, 2**32 - 1, choose.getrandbits(32)))
    interval = choose.choice((0, 1, 100, 65535))
    pieces = (
        b"\1",
        bytes((8, 10)) + choose.randbytes(8),
        bytes((KIND, 16)) + exid + struct.pack("!2I2H", rate, choose.getrandbits(32), interval, 0),
        bytes((KIND, 8)) + exid + choose.randbytes(4),
        bytes((KIND, choose.randrange(256))) + exid,
        bytes((19, 18)) + choose.randbytes(16),
        choose.randbytes(choose.randrange(1, 9)),
    )
    options = b"".join(choose.choices(pieces, k=choose.randrange(1, 5)))[:40]
    if choose.random() < 0.2 and options:
        at = choose.randrange(len(options))
        options = options[:at] + choose.randbytes(1) + options[at + 1 :]
    return options + b"\1" * (-len(options) % 4)


class Wire(TunWire):
    """A tun device with an agent; what is written to it comes in at this host, which forwards."""

    HERE, THERE, BEYOND = "10.7.0.1", "10.7.0.2", "10.8.0.2"

    def __enter__(self):
        self.open([self.HERE])
        run_cmd("ip", "route", "add", "10.8.0.0/24", "via", self.THERE)
        write_file("/proc/sys/net/ipv4/ip_forward", 1)
        write_file("/proc/sys/net/ipv4/conf/all/rp_filter", 0)
        write_file("/proc/sys/net/ipv4/conf/wire/send_redirects", 0)
        write_file("/proc/sys/net/ipv4/conf/all/send_redirects", 0)
        run_cmd("tc", "qdisc", "add", "dev", "wire", "root", "wccp")
        return self

    def __exit__(self, *_exc):
        self.close()

    def step(self, until_us: int) -> bool:
        return False

    def drain(self) -> list[bytes]:
        packets = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packets.append(os.read(self.tun, 1 << 16))
        return packets


def segment(choose: random.Random, to: str, port: int, seq: int, ack: int) -> bytes:
    """Return a segment with random options, some of them with lengths that are wrong."""
    options = random_option(choose)
    payload = bytes(choose.choice((0, 1, 100)))
    doff = 5 + len(options) // 4
    if choose.random() < 0.1:
        doff = choose.randrange(16)
    flags = choose.choice((0x10, 0x10, 0x18, 0x10, 0x02, 0x12, 0x04, 0x11, choose.randrange(256)))
    tcp = struct.pack("!2H2I2BHHH", 5001, port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, doff << 4,
                      flags, 1000, 0, 0) + options + payload  # fmt: skip
    source, target = socket.inet_aton(Wire.THERE), socket.inet_aton(to)
    pseudo = source + target + struct.pack("!2H", socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip_bytes = 20 + len(tcp) if choose.random() < 0.95 else choose.randrange(65536)
    fragment = choose.choice((0, 0, 0, 0, 0, 0, 0, 0x2000, 0x4000, 7))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, ip_bytes, 1, fragment, 64, socket.IPPROTO_TCP, 0,
                     source, target)  # fmt: skip
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    packet = ip + tcp
    return packet[: choose.randrange(20, len(packet) + 1)] if choose.random() < 0.05 else packet


@claim("segments with hostile options, to this host and through it, do no harm")
def check_fuzz():
    """What is forwarded has fb lowered, or is as it was, and its checksum is right."""
    choose = random.Random(1)
    with Wire() as wire, contextlib.ExitStack() as stack:
        sock = socket.socket()
        stack.callback(abort, sock)  # nothing is left that holds the module
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"wccp")
        sock.setblocking(False)
        sock.bind((Wire.HERE, 4000))
        seq = connect(wire, sock)
        forwarded = lowered = 0
        for i in range(OPTIONS.fuzz):
            if i % 50 == 0:
                tell("wire", i * 10**6, i * 10**6 + choose.randrange(10**9))
                with contextlib.suppress(OSError):
                    sock.send(bytes(100))
            if i % 1000 == 0:
                time.sleep(0.05)
            through = choose.random() < 0.4
            packet = segment(choose, Wire.BEYOND if through else Wire.HERE, 4000, 1000 + i, seq)
            with contextlib.suppress(OSError):
                os.write(wire.tun, packet)
            for came in wire.drain():
                if through and came[16:20] == socket.inet_aton(Wire.BEYOND):
                    forwarded += 1
                    lowered += unlike(packet, came)
        assert forwarded > OPTIONS.fuzz / 10, forwarded
        assert lowered > OPTIONS.fuzz / 100, lowered
        state = states_here()["wire"]
        assert int(state["lowered"]) >= lowered, (state, lowered)


def states_here() -> dict[str, dict[str, str]]:
    head, *rows = (line.split() for line in File(STATE).read_text().splitlines())
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def connect(wire: Wire, sock: socket.socket) -> int:
    """Be the peer of a handshake; return the sequence number that it acknowledges."""
    with contextlib.suppress(BlockingIOError):
        sock.connect((Wire.THERE, 5001))
    time.sleep(0.01)
    syn = next(p for p in wire.drain() if p[9] == socket.IPPROTO_TCP)
    isn = struct.unpack_from("!I", syn, 24)[0]
    tcp = struct.pack(
        "!2H2I2BHHH", 5001, 4000, 999, isn + 1 & 0xFFFFFFFF, 5 << 4, 0x12, 60000, 0, 0
    )
    source, target = socket.inet_aton(Wire.THERE), socket.inet_aton(Wire.HERE)
    pseudo = source + target + struct.pack("!2H", socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, source, target)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    os.write(wire.tun, ip + tcp)
    return isn + 1


def unlike(sent: bytes, came: bytes) -> bool:
    """Say whether a forwarded segment's fb was changed; AssertionError if more was, or wrongly."""
    ip_bytes = struct.unpack_from("!H", sent, 2)[0]
    fragment = struct.unpack_from("!H", sent, 6)[0] & 0x3FFF
    sent, came = sent[20:ip_bytes], came[20:]
    assert len(sent) == len(came)
    if sent == came:
        return False
    assert not fragment, "a fragment was changed"
    different = [i for i in range(len(sent)) if sent[i] != came[i] and i not in (16, 17)]
    options = parse_offsets(sent[20 : (sent[12] >> 4) * 4])
    assert options and set(different) <= set(range(20 + options[0] + 8, 20 + options[0] + 12))
    at = 20 + options[0] + 8
    before, after = (struct.unpack_from("!i", text, at)[0] for text in (sent, came))
    assert after < before, "fb was raised"
    pseudo = socket.inet_aton(Wire.THERE) + socket.inet_aton(Wire.BEYOND)
    pseudo += struct.pack("!2H", socket.IPPROTO_TCP, len(came))
    assert checksum(pseudo + came) == 0, "a wrong checksum"
    return True


def parse_offsets(options: bytes) -> list[int]:
    """Return where WCCP's options on data are."""
    found, i = [], 0
    while i < len(options) and options[i]:
        if options[i] == 1:
            i += 1
            continue
        if i + 1 >= len(options) or not 2 <= options[i + 1] <= len(options) - i:
            break
        exid = options[i + 2 : i + 4]
        if options[i : i + 2] == bytes((KIND, 16)) and exid == struct.pack("!H", EXID):
            found.append(i)
        i += options[i + 1]
    return [at for at in found if at % 2 == 0]


# --- modules -----------------------------------------------------------------


def users(module: str) -> int:
    return int(File(f"/sys/module/{module}/refcnt").read_text())


def wait_unused(*modules: str) -> None:
    for _ in range(200):
        if not any(map(users, modules)):
            return
        time.sleep(0.1)
    raise AssertionError({module: users(module) for module in modules})


@claim("no module that is in use can be unloaded; the agent can go and come under load")
def check_unload():
    with WccpPath(), Channel(Load(10)), flows(2) as made:
        time.sleep(1)
        for module in ("sch_wccp", "tcp_wccp"):
            try:
                run_cmd("rmmod", module)
            except RuntimeError as error:
                assert "in use" in str(error), error
            else:
                raise AssertionError(f"{module} was unloaded")
        for i in range(20):
            name, dev = AGENTS[i % len(AGENTS)]
            detach(name, dev)
            time.sleep(0.05 * (i % 3))
            attach(name, dev)
            time.sleep(0.1)
        for name, dev in AGENTS:
            detach(name, dev)
        run_cmd("rmmod", "sch_wccp")
        before = [flow.info().bytes_acked for flow in made]
        time.sleep(3)
        after = [flow.info().bytes_acked for flow in made]
        assert all(x > y for x, y in zip(after, before, strict=True))
        for flow in made:
            net.set_algorithm(flow.sock, "reno")
            assert net.algorithm_of(flow.sock) == "reno"
        time.sleep(1)
    wait_unused("tcp_wccp")
    run_cmd("rmmod", "tcp_wccp")
    run_cmd("modprobe", *MODULES, "sch_wccp")


@claim("what the option takes of a segment is given back with another algorithm")
def check_reserve():
    with WccpPath(), flows(1) as (flow,):
        time.sleep(1)
        with_option = flow.info().mss_bytes
        net.set_algorithm(flow.sock, "reno")
        time.sleep(1)
        assert flow.info().mss_bytes == with_option + DATA_BYTES
        for _ in range(30):
            for name in ("wccp", "cubic"):
                net.set_algorithm(flow.sock, name)
                time.sleep(0.01)
        assert flow.info().mss_bytes == with_option + DATA_BYTES
        assert flow.info().mss_bytes == net.MTU_BYTES - 40 - 12


@claim("namespaces and devices go with agents and traffic on them, and nothing is left")
def check_namespaces():
    for _ in range(5):
        home = leave_namespace()
        run_cmd("ip", "link", "add", "x", "type", "veth", "peer", "name", "y")
        run_cmd("ip", "link", "set", "x", "up")
        run_cmd("tc", "qdisc", "add", "dev", "x", "root", "wccp")
        tell("x", 1, 1)
        return_to_namespace(home)
    for _ in range(5):
        with WccpPath(), Channel(lambda: 0.5), flows(1):
            time.sleep(0.5)
            run_cmd("ip", "-n", "r", "link", "del", "to-s")
    wait_unused("sch_wccp")


@claim("parameters out of range are refused")
def check_parameters():
    ranges = {
        "sch_wccp": {"threshold_percent": (10, 99), "gain_percent": (1, 100),
                     "shuffle_percent": (0, 50), "ack_segments": (1, 3), "ask_medium": (0, 1),
                     "share_by_hops": (0, 1)},
        "tcp_wccp": {"pkts_per_interval": (1, 100), "window_percent": (100, 1000)},
    }  # fmt: skip
    for module, parameters in ranges.items():
        for name, (least, most) in parameters.items():
            path = f"/sys/module/{module}/parameters/{name}"
            was = File(path).read_text()
            for bad in (least - 1, most + 1, "x", "", 2**40):
                assert refusal(lambda p=path, b=bad: write_file(p, f"{b}\n")) == errno.EINVAL
            for good in (least, most):
                write_file(path, good)
            write_file(path, was)


claim("the kernel log holds no complaint at the end, and no memory was lost")(check_log)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fuzz", type=int, default=5000, help="segments")
    parser.add_argument("wanted", nargs="?", default="", help="claims that match this")
    OPTIONS = parser.parse_args()
    first_in_line()
    run_cmd("modprobe", *MODULES, "-a", "tun", "sch_htb", "sch_wccp")
    CLAIMS.settle(OPTIONS.wanted)
