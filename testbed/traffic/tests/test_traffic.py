# SPDX-License-Identifier: GPL-2.0-only
"""labflow and labprobe on loopback and in private network namespaces.

TRAFFIC_BIN names the folder of the programs under test (a sanitised build in
`make check`), TRAFFIC_PLAIN_BIN that of the build whose system calls are
counted. No test asserts how fast anything is.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parents[3] / "build" / "traffic"
BIN = Path(os.environ.get("TRAFFIC_BIN", BUILD))
PLAIN_BIN = Path(os.environ.get("TRAFFIC_PLAIN_BIN", BUILD))
WAIT_S = 60
MPTCP = Path("/proc/sys/net/mptcp/enabled")

FLOW_COLUMNS = [
    "time_s",
    "flow",
    "algorithm",
    "ca_state",
    "cwnd_pkts",
    "ssthresh_pkts",
    "srtt_ms",
    "rttvar_ms",
    "min_rtt_ms",
    "rto_ms",
    "inflight_pkts",
    "lost_pkts",
    "retransmits",
    "timeouts",
    "bytes_acked",
    "delivery_rate_mbps",
    "pacing_rate_mbps",
    "cc_kind",
    "cc_bw_mbps",
    "cc_min_rtt_ms",
    "cc_pacing_gain",
    "cc_cwnd_gain",
    "vegas_rtt_ms",
    "vegas_minrtt_ms",
]
HOP_COLUMNS = [
    "time_s",
    "hop",
    "sent_pkts",
    "sent_bytes",
    "drops",
    "backlog_pkts",
    "backlog_bytes",
    "overlimits",
    "ce_marks",
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(*args: object, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(a) for a in args], capture_output=True, text=True, timeout=WAIT_S, **kwargs
    )


def have_namespaces() -> bool:
    return os.geteuid() == 0 and run("unshare", "-n", "true").returncode == 0


class Namespace:
    """A network namespace with loopback up, held by a sleeping process."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "up\n"
        self.path = f"/proc/{self.holder.pid}/ns/net"
        self.enter = ("nsenter", f"--net={self.path}")

    def close(self) -> None:
        assert self.holder.stdin is not None and self.holder.stdout is not None
        self.holder.stdin.close()
        self.holder.wait(WAIT_S)
        self.holder.stdout.close()


class Sink:
    """A running `labflow sink`, known to listen."""

    def __init__(self, *options: object, enter: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        read_fd, write_fd = os.pipe()
        self.process = subprocess.Popen(
            [
                *enter,
                str(BIN / "labflow"),
                "sink",
                "--port",
                str(self.port),
                "--ready-fd",
                str(write_fd),
                *map(str, options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[write_fd],
        )
        os.close(write_fd)
        with os.fdopen(read_fd, "rb", buffering=0) as ready:
            self.ready = ready.read(6)

    def next_line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def stop(self) -> tuple[int, list[dict[str, Any]], str]:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


class SinkTestCase(unittest.TestCase):
    enter: tuple[str, ...] = ()

    def start_sink(self, *options: object) -> Sink:
        sink = Sink(*options, enter=self.enter)
        self.addCleanup(sink.stop)
        self.assertEqual(sink.ready, b"ready\n")
        return sink

    def send(self, sink: Sink, *options: object, code: int = 0) -> dict[str, Any]:
        done = run(
            *self.enter,
            BIN / "labflow",
            "send",
            "--connect",
            "127.0.0.1",
            "--port",
            sink.port,
            *options,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return dict(json.loads(done.stdout))


class SendTest(SinkTestCase):
    def test_byte_limit_delivers_exactly(self) -> None:
        sink = self.start_sink()
        for size_bytes in (1, 262144, 262145, 100_000_007):
            with self.subTest(size_bytes=size_bytes):
                flow = self.send(sink, "--bytes", size_bytes, "--name", 'a"b')
                received = sink.next_line()
                self.assertEqual(received["bytes_received"], size_bytes)
                self.assertEqual(received["peer_port"], flow["source_port"])
                self.assertEqual(flow["bytes_acked"], size_bytes)
                self.assertIs(flow["completed"], True)
                self.assertEqual(flow["name"], 'a"b')
                self.assertAlmostEqual(
                    flow["completion_time_s"], flow["end_s"] - flow["start_s"], places=6
                )
                self.assertGreaterEqual(received["last_byte_s"], received["first_byte_s"])
                self.assertIsNone(flow["error"])

    def test_time_limit_ends_at_start_plus_duration(self) -> None:
        sink = self.start_sink()
        start_s = round(time.monotonic() + 0.3, 3)
        flow = self.send(
            sink, "--start-at-s", f"{start_s:.3f}", "--duration-s", "0.4", "--sndbuf", 65536
        )
        received = sink.next_line()
        self.assertAlmostEqual(flow["start_s"], start_s, places=6)
        self.assertGreaterEqual(flow["connected_s"], start_s)
        self.assertGreaterEqual(flow["end_s"], start_s + 0.4)
        self.assertLess(flow["end_s"], start_s + 0.4 + WAIT_S / 2)
        self.assertIs(flow["completed"], True)
        self.assertGreater(flow["bytes_acked"], 0)
        self.assertGreaterEqual(received["bytes_received"], flow["bytes_acked"])

    @unittest.skipUnless(MPTCP.exists() and MPTCP.read_text().strip() == "1", "no MPTCP here")
    def test_mptcp_counts_what_the_connection_acknowledged(self) -> None:
        sink = self.start_sink("--transport", "mptcp")
        flow = self.send(sink, "--transport", "mptcp", "--bytes", 3_000_000)
        self.assertEqual((flow["transport"], flow["bytes_acked"]), ("mptcp", 3_000_000))
        self.assertIs(flow["completed"], True)
        self.assertEqual(sink.next_line()["bytes_received"], 3_000_000)
        cut = self.send(sink, "--transport", "mptcp", "--duration-s", "0.2")
        self.assertIsNone(cut["completion_time_s"])
        self.assertGreater(cut["bytes_acked"], 0)
        self.assertGreaterEqual(sink.next_line()["bytes_received"], cut["bytes_acked"])
        old = self.send(sink, "--bytes", 1000)  # falls back
        self.assertEqual((old["bytes_acked"], old["completed"]), (1000, True))

    def test_duration_cuts_a_byte_limit_short(self) -> None:
        sink = self.start_sink()
        flow = self.send(sink, "--bytes", 2**60, "--duration-s", "0.2")
        self.assertIs(flow["completed"], False)
        self.assertIsNone(flow["completion_time_s"])
        self.assertIsNone(flow["error"])

    def test_requests_are_answered_one_by_one(self) -> None:
        """Also requests that fall apart in many segments; the end may come before an answer."""
        for size_bytes in (1, 300_001):
            sink = self.start_sink("--reply-after", size_bytes)
            flow = self.send(sink, "--bytes", size_bytes, "--repeats", 4, "--pause-s", "0.01")
            self.assertEqual((len(flow["answers_s"]), flow["unanswered_s"]), (4, None))
            self.assertIs(flow["completed"], True)
            self.assertEqual(flow["bytes_acked"], 4 * size_bytes)
            self.assertEqual(sink.next_line()["bytes_received"], 4 * size_bytes)
            self.assertGreater(flow["completion_time_s"], sum(flow["answers_s"]) + 0.04)
        mute = self.start_sink()
        flow = self.send(mute, "--bytes", 9, "--repeats", 2, "--duration-s", "0.2")
        self.assertEqual((flow["answers_s"], flow["completed"]), ([], False))
        self.assertGreater(flow["unanswered_s"], 0.1)

    def test_end_time_interrupts_a_blocked_write(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            done = run(
                BIN / "labflow",
                "send",
                "--connect",
                "127.0.0.1",
                "--port",
                silent.getsockname()[1],
                "--duration-s",
                "0.3",
            )
        flow = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(flow["bytes_acked"], 0)

    def test_algorithm_mss_and_source_port(self) -> None:
        sink = self.start_sink()
        port = free_port()
        flow = self.send(
            sink,
            "--bytes",
            5000,
            "--algorithm",
            "reno",
            "--mss",
            1000,
            "--source-port",
            port,
            "--source",
            "127.0.0.1",
        )
        self.assertEqual(flow["algorithm"], "reno")
        self.assertLessEqual(flow["mss_bytes"], 1000)
        self.assertEqual(flow["source_port"], port)
        self.assertEqual(sink.next_line()["peer_port"], port)

    def test_sigterm_reports_and_fails(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process = subprocess.Popen(
                [
                    str(BIN / "labflow"),
                    "send",
                    "--connect",
                    "127.0.0.1",
                    "--port",
                    str(silent.getsockname()[1]),
                    "--bytes",
                    str(2**60),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            connection, _ = silent.accept()
            connection.settimeout(WAIT_S)
            connection.recv(1)  # it sends, so it knows that it is connected
            process.terminate()
            out, err = process.communicate(timeout=WAIT_S)
            connection.close()
        self.assertEqual(process.returncode, 1)
        self.assertIn("SIGTERM", err)
        self.assertIn("SIGTERM", json.loads(out)["error"])


class SendErrorTest(SinkTestCase):
    def test_unknown_algorithm(self) -> None:
        done = run(
            BIN / "labflow",
            "send",
            "--connect",
            "127.0.0.1",
            "--port",
            9,
            "--bytes",
            1,
            "--algorithm",
            "no_such",
        )
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertRegex(
            done.stderr,
            r"algorithm 'no_such' is not available in this kernel "
            r"\(available: .*reno.*; is its module loaded\?\)",
        )
        self.assertIn("no_such", json.loads(done.stdout)["error"])

    def test_refused_connection(self) -> None:
        done = run(
            BIN / "labflow", "send", "--connect", "127.0.0.1", "--port", free_port(), "--bytes", 1
        )
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("Connection refused", done.stderr)
        self.assertIsNone(json.loads(done.stdout)["connected_s"])

    def test_no_connection_in_its_time_is_a_finding(self) -> None:
        """A flow that starves from its first packet on is reported with nothing carried."""
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            port = full.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port)):
                done = run(BIN / "labflow", "send", "--connect", "127.0.0.1", "--port", port,
                           "--duration-s", 0.3)  # fmt: skip
        flow = json.loads(done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIsNone(flow["connected_s"])
        self.assertIsNone(flow["min_rtt_us"])
        self.assertEqual((flow["completed"], flow["bytes_acked"]), (False, 0))

    def test_bad_options(self) -> None:
        send = ("send", "--connect", "127.0.0.1", "--port", "1")
        cases: list[tuple[tuple[str, ...], str]] = [
            ((), "'sink' or 'send'"),
            (("sink",), "--port"),
            (("sink", "--port", "0"), "1 to 65535"),
            (("sink", "--nonsense"), "--nonsense"),
            (("sink", "--port"), "--port needs a value"),
            (send, "--duration-s above 0, --bytes, or both"),
            ((*send, "--bytes", "1x"), "whole number"),
            ((*send, "--duration-s", "1.0123456789"), "nine digits"),
            ((*send, "--duration-s", "-1"), "decimal seconds"),
            ((*send, "--bytes", "1", "--transport", "quic"), "there is: tcp"),
            ((*send, "--bytes", "1", "extra"), "extra"),
            (("send", "--connect", "::1", "--port", "1"), "IPv4"),
        ]
        for options, wanted in cases:
            with self.subTest(options=options):
                done = run(BIN / "labflow", *options)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stdout, "")


class SinkTest(SinkTestCase):
    def connect(self, sink: Sink) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", sink.port))
        self.addCleanup(client.close)
        return client

    def test_tail_below_the_watermark(self) -> None:
        sink = self.start_sink("--lowat-bytes", 262144)
        client = self.connect(sink)
        client.sendall(b"x" * 300_000)
        client.sendall(b"x" * 7)
        client.close()
        self.assertEqual(sink.next_line()["bytes_received"], 300_007)

    def test_tail_before_a_reset(self) -> None:
        sink = self.start_sink()
        client = self.connect(sink)
        client.sendall(b"x" * 100)
        time.sleep(0.2)
        client.sendall(b"x" * 4321)
        time.sleep(0.2)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        received = sink.next_line()
        self.assertEqual(received["bytes_received"], 4421)
        self.assertGreaterEqual(received["last_byte_s"] - received["first_byte_s"], 0.1)

    def test_no_bytes(self) -> None:
        sink = self.start_sink()
        self.connect(sink).close()
        received = sink.next_line()
        self.assertEqual(received["bytes_received"], 0)
        self.assertIsNone(received["first_byte_s"])

    def test_sigterm_reports_open_connections(self) -> None:
        sink = self.start_sink()
        clients = [self.connect(sink) for _ in range(5)]
        for size, client in enumerate(clients):
            client.sendall(b"x" * size)
        time.sleep(0.2)
        code, lines, err = sink.stop()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(line["bytes_received"] for line in lines), list(range(5)))

    def test_port_in_use(self) -> None:
        sink = self.start_sink()
        done = run(BIN / "labflow", "sink", "--port", sink.port)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Address already in use", done.stderr)


@unittest.skipUnless(have_namespaces(), "needs root and network namespaces")
class ProbeTest(SinkTestCase):
    def setUp(self) -> None:
        self.namespace = Namespace()
        self.addCleanup(self.namespace.close)
        self.enter = self.namespace.enter
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def root_qdisc(self, *spec: str) -> None:
        done = run(*self.enter, "tc", "qdisc", "add", "dev", "lo", "root", *spec)
        if done.returncode:
            self.skipTest(f"no qdisc {spec[0]} in this kernel: {done.stderr.strip()}")

    def probe(
        self,
        *options: object,
        interval_ms: int = 50,
        start_s: float,
        end_s: float,
        prefix: tuple[str, ...] = (),
        folder: Path = BIN,
    ) -> subprocess.Popen[str]:
        flows, hops = self.folder / "flows.csv", self.folder / "hops.csv"
        return subprocess.Popen(
            [
                *prefix,
                str(folder / "labprobe"),
                "--interval-ms",
                str(interval_ms),
                "--start-at-s",
                f"{start_s:.9f}",
                "--end-at-s",
                f"{end_s:.9f}",
                "--flows",
                str(flows),
                "--hops",
                str(hops),
                *map(str, options),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> str:
        _, err = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0, err)
        return err

    def table(self, name: str) -> tuple[list[str], list[dict[str, str]]]:
        reader = csv.DictReader(io.StringIO((self.folder / name).read_text()))
        rows = list(reader)
        for row in rows:
            self.assertNotIn(None, row)
            self.assertNotIn(None, row.values())
        return list(reader.fieldnames or []), rows

    def sampled_flow(self, *send_options: object) -> tuple[dict[str, Any], list[dict[str, str]]]:
        """A flow of 1 s sampled every 50 ms from 0.2 s before to 0.3 s after."""
        sink = self.start_sink()
        port = free_port()
        start_s = time.monotonic() + 0.5
        process = self.probe(
            "--sock",
            f"f1:{self.namespace.path}:{port}",
            "--hop",
            f"h1:{self.namespace.path}:lo",
            start_s=start_s,
            end_s=start_s + 1.5,
        )
        flow = self.send(
            sink,
            "--source-port",
            port,
            "--start-at-s",
            f"{start_s + 0.2:.9f}",
            "--duration-s",
            1,
            *send_options,
        )
        self.finish(process)
        columns, rows = self.table("flows.csv")
        self.assertEqual(columns, FLOW_COLUMNS)
        return flow, rows

    def test_flow_agrees_with_its_sender(self) -> None:
        self.root_qdisc("tbf", "rate", "20mbit", "burst", "70000", "limit", "200000")
        flow, rows = self.sampled_flow("--algorithm", "reno")
        self.assertGreater(len(rows), 1)
        acked = [int(row["bytes_acked"]) for row in rows]
        self.assertEqual(acked, sorted(acked))
        self.assertLessEqual(acked[-1], flow["bytes_acked"] + 1)
        self.assertGreater(acked[-1], 0)
        for row in rows:
            self.assertEqual((row["flow"], row["algorithm"]), ("f1", "reno"))
            self.assertRegex(row["time_s"], r"^\d+\.\d(0|5)0$")
            self.assertRegex(row["srtt_ms"], r"^\d+\.\d{3}$")
            self.assertEqual(row["cc_kind"], "")
            self.assertGreaterEqual(float(row["time_s"]), 0.2)
        self.assertEqual(rows[0]["ssthresh_pkts"], "")

    def test_settled_flow_agrees_exactly(self) -> None:
        sink = self.start_sink()
        client = run(
            *self.enter,
            "python3",
            "-c",
            f"""
import socket, subprocess, time
c = socket.create_connection(("127.0.0.1", {sink.port}))
c.sendall(b"x" * 54321)
time.sleep(0.3)
now = time.monotonic()
subprocess.run(["{BIN}/labprobe", "--interval-ms", "10", "--start-at-s", str(round(now, 6)),
    "--end-at-s", str(round(now + 0.05, 6)), "--sock", f"f:-:{{c.getsockname()[1]}}",
    "--flows", "-"], check=True)
""",
        )
        self.assertEqual(client.returncode, 0, client.stderr)
        rows = list(csv.DictReader(io.StringIO(client.stdout)))
        self.assertEqual(
            [row["time_s"] for row in rows], ["0.000", "0.010", "0.020", "0.030", "0.040", "0.050"]
        )
        self.assertEqual({row["bytes_acked"] for row in rows}, {"54322"})
        self.assertEqual({row["inflight_pkts"] for row in rows}, {"0"})

    def test_resets_leave_no_rows_of_cleared_counts(self) -> None:
        """Some of 600 sockets are reset while the kernel waits for their lock to answer."""
        client = run(
            *self.enter,
            "python3",
            "-c",
            f"""
import socket, struct, subprocess, threading, time
RESET = struct.pack("ii", 1, 0)
server = socket.create_server(("127.0.0.1", 0), backlog=64)
with socket.create_server(("127.0.0.1", 0)) as unused:
    port = unused.getsockname()[1]

def drain(peer):
    try:
        while peer.recv(1 << 16):
            pass
    except OSError:
        pass

def accept():
    while True:
        threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()

threading.Thread(target=accept, daemon=True).start()
now = time.monotonic()
probe = subprocess.Popen(["{BIN}/labprobe", "--interval-ms", "1",
    "--start-at-s", str(round(now + 0.1, 6)), "--end-at-s", str(round(now + {WAIT_S}, 6)),
    "--sock", f"f:-:{{port}}", "--flows", "-"])
for _ in range(600):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.bind(("127.0.0.1", port))
        client.connect(server.getsockname())
        end = time.monotonic() + 0.004
        while time.monotonic() < end:
            client.send(bytes(1 << 20))
probe.terminate()
raise SystemExit(probe.wait())
""",
        )
        self.assertEqual(client.returncode, 0, client.stderr)
        rows = list(csv.DictReader(io.StringIO(client.stdout)))
        self.assertTrue(rows)
        self.assertEqual([row for row in rows if row["bytes_acked"] == "0"], [])

    def test_bbr_columns(self) -> None:
        if "bbr" not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text():
            self.skipTest("no bbr in this kernel")
        self.root_qdisc("tbf", "rate", "20mbit", "burst", "70000", "limit", "200000")
        _, rows = self.sampled_flow("--algorithm", "bbr")
        # The kernel reports an algorithm's own values up to FIN_WAIT2. A socket
        # that closes while it is being asked has a state, but no longer these.
        while rows and not rows[-1]["cc_kind"]:
            rows.pop()
        self.assertGreater(len(rows), 10)
        self.assertEqual({row["cc_kind"] for row in rows}, {"bbr"})
        self.assertRegex(rows[-1]["cc_pacing_gain"], r"^\d\.\d{4}$")
        self.assertGreater(float(rows[-1]["cc_bw_mbps"]), 0)

    def test_hop_ticks_and_drops(self) -> None:
        self.root_qdisc("tbf", "rate", "2mbit", "burst", "70000", "limit", "70000")
        _, _ = self.sampled_flow("--algorithm", "reno")
        columns, rows = self.table("hops.csv")
        self.assertEqual(columns, HOP_COLUMNS)
        self.assertEqual(
            [row["time_s"] for row in rows], [f"{tick * 0.05:.3f}" for tick in range(31)]
        )
        drops = [int(row["drops"]) for row in rows]
        self.assertEqual(drops, sorted(drops))
        shown = run(*self.enter, "tc", "-s", "qdisc", "show", "dev", "lo").stdout
        match = re.search(r"dropped (\d+)", shown)
        assert match is not None
        self.assertGreater(drops[-1], 0)
        self.assertLessEqual(drops[-1], int(match.group(1)))
        self.assertGreater(int(rows[-1]["sent_bytes"]), 0)

    def test_sigterm_writes_what_there_is(self) -> None:
        self.root_qdisc("pfifo", "limit", "10")
        start_s = time.monotonic()
        process = self.probe(
            "--hop",
            f"h1:{self.namespace.path}:lo",
            "--hop",
            f"h2:{self.namespace.path}:lo",
            start_s=start_s,
            end_s=start_s + 10 * WAIT_S,
        )
        time.sleep(1)
        process.terminate()
        self.finish(process)
        _, rows = self.table("hops.csv")
        self.assertGreater(len(rows), 0)
        self.assertEqual([row["hop"] for row in rows], ["h1", "h2"] * (len(rows) // 2))

    def test_absent_targets_warn_and_give_no_row(self) -> None:
        flows, hops = self.folder / "flows.csv", self.folder / "hops.csv"
        # Loopback has not been up in this fresh namespace: its qdisc is noop.
        done = run(
            "unshare",
            "-n",
            BIN / "labprobe",
            "--interval-ms",
            10,
            "--end-at-s",
            f"{time.monotonic() + 1:.3f}",
            "--sock",
            "f1:-:9",
            "--hop",
            "h1:-:lo",
            "--flows",
            flows,
            "--hops",
            hops,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("flow f1 was never there", done.stderr)
        self.assertIn("hop h1 never had a qdisc", done.stderr)
        self.assertEqual(self.table("flows.csv"), (FLOW_COLUMNS, []))
        self.assertEqual(self.table("hops.csv"), (HOP_COLUMNS, []))

    def test_system_calls_a_tick(self) -> None:
        if not shutil.which("strace"):
            self.skipTest("no strace")
        self.root_qdisc("pfifo", "limit", "1000")
        sink = self.start_sink()
        start_s = time.monotonic() + 0.5
        ticks = 21
        trace = self.folder / "trace"
        targets: list[str] = []
        senders = []
        for _ in range(3):
            port = free_port()
            targets += [
                "--sock",
                f"f:{self.namespace.path}:{port}",
                "--hop",
                f"h:{self.namespace.path}:lo",
            ]
            senders.append(
                subprocess.Popen(
                    [
                        *self.enter,
                        str(BIN / "labflow"),
                        "send",
                        "--connect",
                        "127.0.0.1",
                        "--port",
                        str(sink.port),
                        "--source-port",
                        str(port),
                        "--json",
                        "/dev/null",
                        "--duration-s",
                        "1.5",
                    ]
                )
            )
        process = self.probe(
            *targets,
            start_s=start_s,
            end_s=start_s + (ticks - 1) * 0.05,
            folder=PLAIN_BIN,
            prefix=(
                "strace",
                "-o",
                str(trace),
                "-e",
                "trace=clock_nanosleep,sendto,recvmmsg,sendmsg,recvmsg,poll,ppoll,clock_gettime",
            ),
        )
        self.finish(process)
        for sender in senders:
            self.assertEqual(sender.wait(WAIT_S), 0)
        calls = [line.split("(")[0] for line in trace.read_text().splitlines() if "(" in line]
        self.assertEqual(
            {name: calls.count(name) for name in set(calls)},
            {"clock_nanosleep": ticks, "sendto": 2 * ticks, "recvmmsg": 2 * ticks},
        )


class ProbeErrorTest(unittest.TestCase):
    def probe(self, *options: str) -> subprocess.CompletedProcess[str]:
        return run(BIN / "labprobe", "--interval-ms", 10, "--end-at-s", 1, *options)

    def test_absent_device_and_namespace(self) -> None:
        for hop, wanted in (
            ("h:-:no_such0", "no device 'no_such0'"),
            ("h:/no/such:lo", "no network namespace '/no/such'"),
        ):
            with self.subTest(hop=hop):
                done = self.probe("--hop", hop, "--hops", "-")
                self.assertEqual(done.returncode, 1)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_bad_options(self) -> None:
        for options, wanted in (
            ((), "nothing to sample"),
            (("--sock", "f:-:1"), "--flows"),
            (("--hop", "h:-:lo"), "--hops"),
            (("--sock", "f:1", "--flows", "-"), "NAME:NETNS:SPORT"),
            (("--sock", "f:-:x", "--flows", "-"), "whole number"),
            (("--hop", "a,b:-:lo", "--hops", "-"), "comma"),
            (("--interval-ms", "0"), "--interval-ms takes"),
            (("--start-at-s", "2"), "before"),
        ):
            with self.subTest(options=options):
                done = self.probe(*options)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(wanted, done.stderr)


if __name__ == "__main__":
    unittest.main()
