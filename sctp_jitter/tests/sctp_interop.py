# SPDX-License-Identifier: GPL-2.0-only
"""SCTP of the lab's kernel and what was not written for it, with all features on at this end.

    sctp_interop.py usrsctp PROGRAM    usrsctp_peer.c in another namespace, in UDP
    sctp_interop.py stock              the unpatched module at both ends
    sctp_interop.py programs           lksctp-tools and iperf3, unmodified, patched at both ends
    sctp_interop.py wire patched|stock  one end of two virtual machines that a wire joins

Runs inside the lab as root; prints one line of JSON. The packets of the link between the two
namespaces are read as they pass.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CLONE_NEWNET = 0x40000000
OURS, PEER, PORT, UDP_PORT = "10.9.0.1", "10.9.0.2", 5001, 9899
SECOND_HOME = "10.9.0.3"  # of ours
TIMESTAMP = 190
INIT, INIT_ACK, HEARTBEAT, HEARTBEAT_ACK, ABORT = 1, 2, 4, 5, 6
SUPPORTED_EXTENSIONS = 0x8008
BYTES = 720_000
LABFLOW = f"{os.environ['LAB_BIN']}/labflow"
# a HEARTBEAT's parameter: of a length that our end takes for its own when it is returned, and of no
# address that it knows, so that it forgets it
DISTRACTION = b"\x00\x01\x00\x64" + b"not so odd" + bytes(86)


def sh(command: str) -> None:
    subprocess.run(command, shell=True, check=True)


def in_ns(name: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", name, *command]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# --- packets -----------------------------------------------------------------


@dataclass
class Seen:
    """What went by: chunk types by source address, and what INIT and INIT ACK say."""

    chunks: dict[str, set[int]] = field(default_factory=dict)
    extensions: dict[str, list[int]] = field(default_factory=dict)
    offered: dict[str, set[int]] = field(default_factory=dict)  # of all associations
    tags: dict[str, int] = field(default_factory=dict)  # what each end wants to be addressed by
    ports: dict[str, tuple[int, int]] = field(default_factory=dict)
    answers: list[bytes] = field(default_factory=list)

    def packet(self, frame: bytes) -> None:
        if frame[12:14] != b"\x08\x00":
            return
        ip = frame[14 : 14 + struct.unpack_from("!H", frame, 16)[0]]
        source = socket.inet_ntoa(ip[12:16])
        header = (ip[0] & 15) * 4
        if ip[9] == socket.IPPROTO_UDP:
            header += 8
        elif ip[9] != socket.IPPROTO_SCTP:
            return
        self.ports[source] = struct.unpack_from("!HH", ip, header)
        at = header + 12
        while at + 4 <= len(ip):
            kind, _, length = struct.unpack_from("!BBH", ip, at)
            if length < 4:
                break
            self.chunk(source, kind, ip[at : at + length])
            at += (length + 3) & ~3

    def chunk(self, source: str, kind: int, chunk: bytes) -> None:
        self.chunks.setdefault(source, set()).add(kind)
        if kind in (INIT, INIT_ACK):
            self.tags[source] = struct.unpack_from("!I", chunk, 4)[0]
            at = 20
            self.extensions[source] = []
            self.offered.setdefault(source, set())
            while at + 4 <= len(chunk):
                parameter, length = struct.unpack_from("!HH", chunk, at)
                if parameter == SUPPORTED_EXTENSIONS:
                    self.extensions[source] = list(chunk[at + 4 : at + length])
                    self.offered[source].update(self.extensions[source])
                at += max((length + 3) & ~3, 4)
        if kind == HEARTBEAT_ACK and DISTRACTION in chunk:
            self.answers.append(chunk)

    def result(self) -> dict:
        return {
            "chunks": {source: sorted(kinds) for source, kinds in self.chunks.items()},
            "extensions": self.extensions,
            "extensions_ever": {source: sorted(kinds) for source, kinds in self.offered.items()},
            "unknown_chunk_skipped": bool(self.answers),
        }


@contextmanager
def watched(device: str) -> Iterator[Seen]:
    """Read the packets of DEVICE, which is in this process' namespace."""
    seen = Seen()
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    tap.bind((device, 0))
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with suppress(TimeoutError):
                seen.packet(tap.recv(65536))

    tap.settimeout(0.1)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield seen
    finally:
        time.sleep(0.2)
        done.set()
        reader.join()


def send_unknown_chunk(seen: Seen, in_udp: bool) -> None:
    """Send the peer a TIMESTAMP chunk that it never agreed to, and a HEARTBEAT behind it."""
    chunks = struct.pack("!BBHII", TIMESTAMP, 0, 12, 1, 0)
    chunks += struct.pack("!BBH", HEARTBEAT, 0, 4 + len(DISTRACTION)) + DISTRACTION
    ports = struct.pack("!HH", *seen.ports[OURS])
    common = ports + struct.pack("!II", seen.tags[PEER], 0)
    packet = common[:8] + struct.pack("<I", crc32c(common + chunks)) + chunks
    if in_udp:
        packet = struct.pack("!HHHH", UDP_PORT, UDP_PORT, 8 + len(packet), 0) + packet
    protocol = socket.IPPROTO_UDP if in_udp else socket.IPPROTO_SCTP
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    raw.bind((OURS, 0))
    raw.sendto(packet, (PEER, 0))
    raw.close()


# --- the network -------------------------------------------------------------


def enter(name: str) -> None:
    with open(f"/run/netns/{name}") as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def build() -> None:
    """Two namespaces, `ours` and `peer`, 8 Mb/s and 10 ms between them."""
    for name in ("ours", "peer"):
        sh(f"ip netns add {name}; ip -n {name} link set lo up")
    sh("ip link add va netns ours type veth peer name vb netns peer")
    for name, device, address in (("ours", "va", OURS), ("peer", "vb", PEER)):
        sh(f"ip -n {name} addr add {address}/24 dev {device}; ip -n {name} link set {device} up")
        queue = "netem rate 8mbit delay 5ms limit 50"
        sh(f"ip netns exec {name} tc qdisc add dev {device} root {queue}")
        sh(f"ip netns exec {name} ethtool -K {device} tx off gso off tso off gro off >/dev/null")


def settings(name: str, **values: str | int) -> None:
    for key, value in values.items():
        sh(f"ip netns exec {name} sysctl -qw net.sctp.{key}={value}")


def labflow_sink(name: str, report: Path) -> subprocess.Popen:
    command = in_ns(name, LABFLOW, "sink", "--transport", "sctp", "--port", str(PORT))
    sink = subprocess.Popen([*command, "--json", str(report)])
    time.sleep(0.5)
    return sink


def labflow_send(name: str, to: str, report: Path) -> subprocess.Popen:
    return subprocess.Popen(
        in_ns(name, LABFLOW, "send", "--transport", "sctp", "--connect", to, "--port", str(PORT),
              "--bytes", str(BYTES), "--json", str(report))
    )  # fmt: skip


def received(report: Path) -> int:
    return sum(json.loads(line)["bytes_received"] for line in report.read_text().splitlines())


def flow_to(sink: subprocess.Popen, in_udp: bool) -> dict:
    """Send from here to a sink at the peer; meanwhile an unknown chunk. Returns labflow's say."""
    report = Path("/run/flow.json")
    with watched("va") as seen:
        flow = labflow_send("ours", PEER, report)
        time.sleep(0.3)
        send_unknown_chunk(seen, in_udp)
        flow.wait()
    return json.loads(report.read_text()) | seen.result()


def usrsctp(program: str) -> dict:
    """Both directions; the kernel's end wants TIMESTAMP chunks and has jsctp_abe."""
    build()
    settings("ours", udp_port=UDP_PORT, encap_port=UDP_PORT)
    settings("ours", timestamp_chunk=TIMESTAMP, congestion_control="jsctp_abe")
    settings("ours", miss_indications=4, idle_retransmit=1)
    enter("ours")
    sink = subprocess.Popen(
        in_ns("peer", program, "sink", str(PORT)), stdout=subprocess.PIPE, text=True
    )
    assert sink.stdout.readline() == "ready\n"
    there = flow_to(sink, in_udp=True)
    told = sink.communicate()[0].split()
    there["bytes_received"] = int(told[1])

    report = Path("/run/sink.json")
    ours = labflow_sink("ours", report)
    with watched("va") as seen:
        sender = subprocess.run(
            in_ns("peer", program, "send", OURS, str(PORT), str(BYTES)),
            capture_output=True,
            text=True,
        )
        ours.send_signal(signal.SIGTERM)
        ours.wait()
    back = seen.result() | {
        "said": sender.stdout + sender.stderr,
        "bytes_received": received(report),
    }
    return {"to": there, "from": back}


def stock() -> dict:
    build()
    enter("ours")
    report = Path("/run/sink.json")
    sink = labflow_sink("peer", report)
    result = flow_to(sink, in_udp=False)
    sink.send_signal(signal.SIGTERM)
    sink.wait()
    return result | {"bytes_received": received(report)}


def iperf3(*options: str) -> dict:
    server = subprocess.Popen(in_ns("peer", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    command = in_ns("ours", "iperf3", "--sctp", "-c", PEER, "-n", "1M", "-J", *options)
    said = subprocess.run(command, capture_output=True, text=True)
    server.wait()
    return json.loads(said.stdout)


def sctp_test() -> dict:
    """Of lksctp-tools: the receiver counts what came."""
    options = ["-H", PEER, "-P", "6000", "-l"]
    receiver = subprocess.Popen(
        in_ns("peer", "stdbuf", "-oL", "sctp_test", *options), stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.5)
    options = ["-H", OURS, "-P", "6001", "-h", PEER, "-p", "6000", "-s", "-x", "2", "-c", "3"]
    sender = subprocess.run(in_ns("ours", "sctp_test", *options), capture_output=True, text=True)
    time.sleep(1)
    receiver.kill()
    said = receiver.communicate()[0]
    return {"status": sender.returncode, "said": said, "sent": sender.stdout + sender.stderr}


def programs() -> dict:
    build()
    for name in ("ours", "peer"):
        settings(name, timestamp_chunk=TIMESTAMP, congestion_control="jsctp_abe")
    enter("ours")
    checked = subprocess.run(["checksctp"], capture_output=True, text=True)
    sh(f"ip -n ours address add {SECOND_HOME}/24 dev va")
    with watched("va") as seen:
        result = {"iperf3": iperf3()["end"], "sctp_test": sctp_test()}
        # without -4 it asks for these as addresses of IPv6, and gives up before any packet
        result["iperf3_homes"] = iperf3("-4", "-X", OURS, "-X", SECOND_HOME)["end"]
    return result | seen.result() | {"checksctp": checked.stdout + checked.stderr}


def paths(name: str) -> list[dict]:
    """Return the lines of /proc/net/sctp/cong of a namespace."""
    command = in_ns(name, "cat", "/proc/net/sctp/cong")
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    header, *lines = (line.split() for line in said.splitlines())
    found = []
    for line in lines:
        own = dict(word.split("=") for word in line[len(header) :])
        found.append(dict(zip(header, line, strict=False)) | own)
    return found


def state() -> dict:
    """Look at both ends twenty times in the course of a flow, and when it is over."""
    build()
    for name in ("ours", "peer"):
        settings(name, timestamp_chunk=TIMESTAMP)
    settings("ours", congestion_control="jsctp_abe")
    report = Path("/run/sink.json")
    sink = labflow_sink("peer", report)
    flow = labflow_send("ours", PEER, Path("/run/flow.json"))
    looks = []
    for _ in range(20):
        time.sleep(0.04)
        looks.append((paths("ours"), paths("peer")))
    flow.wait()
    time.sleep(0.5)
    left = paths("ours") + paths("peer")
    sink.send_signal(signal.SIGTERM)
    sink.wait()
    return {"looks": looks, "left": left, "flow": json.loads(Path("/run/flow.json").read_text())}


def wire(module: str) -> dict:
    """Send to the other machine and receive from it, at the same time; it does the same."""
    mine, other = (OURS, PEER) if module == "patched" else (PEER, OURS)
    sh(f"modprobe virtio_net; ip addr add {mine}/24 dev eth0; ip link set eth0 up")
    if module == "patched":
        sh(f"sysctl -qw net.sctp.timestamp_chunk={TIMESTAMP} net.sctp.congestion_control=jsctp_abe")
    to = [LABFLOW, "send", "--transport", "sctp", "--connect", other, "--port", str(PORT)]
    report, sent = Path("/run/sink.json"), Path("/run/flow.json")
    with watched("eth0") as seen:
        sink = subprocess.Popen(
            [LABFLOW, "sink", "--transport", "sctp", "--port", str(PORT), "--json", report]
        )
        # the other one may not be up yet, or not listen yet
        while subprocess.run([*to, "--bytes", str(BYTES), "--json", sent]).returncode:
            time.sleep(1)
            for kinds in seen.chunks.values():
                kinds.discard(ABORT)
        while not report.exists() or sum(1 for _ in report.open()) < 1:
            time.sleep(0.2)
        time.sleep(1)
        sink.send_signal(signal.SIGTERM)
        sink.wait()
    return json.loads(sent.read_text()) | seen.result() | {"bytes_received": received(report)}


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    unpatched = "stock" in (what, *arguments)
    modules = ["-d", "/run/lab/modules/stock", "-a"] if unpatched else ["-a", "sctp_jsctp"]
    subprocess.run(["modprobe", *modules, "sctp", "sctp_diag"], check=True)
    answers = {"usrsctp": usrsctp, "stock": stock, "programs": programs, "state": state,
               "wire": wire}  # fmt: skip
    answer = answers[what](*arguments)
    print("result:", json.dumps(answer), flush=True)
