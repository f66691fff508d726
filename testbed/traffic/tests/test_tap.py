# SPDX-License-Identifier: GPL-2.0-only
"""labtap on a router between two private namespaces, and labflow's UDP. No timed bounds."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_traffic import BIN, WAIT_S, Namespace, Sink, have_namespaces, run

RECORD = struct.Struct("=QHHHBBII")
TCP, UDP = 6, 17
DATAGRAMS = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4000))
for i, (size, address) in enumerate({datagrams}):
    s.sendto(bytes(size), (address, 4001))
    if i % 1000 == 999:
        time.sleep(0.03)  # for who reads
"""


@unittest.skipUnless(have_namespaces(), "needs root and network namespaces")
class TapTest(unittest.TestCase):
    """a (10.0.1.2) -- to-a r to-b -- (10.0.2.2) b"""

    def setUp(self) -> None:
        self.ends = {name: Namespace() for name in ("a", "r", "b")}
        for namespace in self.ends.values():
            self.addCleanup(namespace.close)
        for i, name in ((1, "a"), (2, "b")):
            self.ip("r", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth",
                    "netns", str(self.ends[name].holder.pid))  # fmt: skip
            self.ip("r", "addr", "add", f"10.0.{i}.1/24", "dev", f"to-{name}")
            self.ip("r", "link", "set", f"to-{name}", "up")
            self.ip(name, "addr", "add", f"10.0.{i}.2/24", "dev", "eth")
            self.ip(name, "link", "set", "eth", "up")
            self.ip(name, "route", "add", "default", "via", f"10.0.{i}.1")
        done = run(*self.ends["r"].enter, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def ip(self, name: str, *arguments: str) -> None:
        done = run(*self.ends[name].enter, "ip", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def tap(
        self, name: str, device: str, command: list[str], *options: str
    ) -> list[dict[str, int]]:
        """Run COMMAND in namespace NAME; return what labtap saw at DEVICE of the router."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tap"
            process = subprocess.Popen(
                [*self.ends["r"].enter, str(BIN / "labtap"), "--dev", device, "--out", str(path),
                 "--ready-fd", "1", *options],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "ready\n")
            done = run(*self.ends[name].enter, *command)
            self.assertEqual(done.returncode, 0, done.stderr)
            process.terminate()
            _, complaint = process.communicate(timeout=WAIT_S)
            self.assertEqual((process.returncode, complaint), (0, ""))
            names = ("time_ns", "sport", "dport", "ip_id", "protocol", "leaves", "seq", "payload")
            return [dict(zip(names, r, strict=True)) for r in RECORD.iter_unpack(path.read_bytes())]

    def test_who_enters_and_who_leaves(self) -> None:
        """Two of five datagrams are for a host that is not there; an empty one counts as well."""
        there, gone = "10.0.2.2", "10.0.2.99"
        datagrams = [(10, there), (11, gone), (12, there), (13, gone), (0, there)]
        code = DATAGRAMS.format(datagrams=datagrams)
        seen = self.tap("a", "to-b", ["python3", "-c", code])
        self.assertEqual({(r["protocol"], r["sport"], r["dport"]) for r in seen},
                         {(UDP, 4000, 4001)})  # fmt: skip
        entered = [r["payload"] for r in seen if not r["leaves"]]
        left = [r["payload"] for r in seen if r["leaves"]]
        self.assertEqual((entered, left), ([10, 11, 12, 13, 0], [10, 12, 0]))
        self.assertEqual([r["time_ns"] for r in seen], sorted(r["time_ns"] for r in seen))

    def test_the_way_back_is_not_recorded(self) -> None:
        code = DATAGRAMS.format(datagrams=[(10, "10.0.1.2")])
        self.assertEqual(self.tap("b", "to-b", ["python3", "-c", code]), [])
        self.assertEqual(len(self.tap("b", "to-a", ["python3", "-c", code])), 2)

    def test_a_flow_has_its_numbers(self) -> None:
        """All of its bytes, the same packets on either side, each with a number of its own."""
        sink = Sink(enter=self.ends["b"].enter)
        self.addCleanup(sink.stop)
        size_bytes = 3_000_000
        send = [str(BIN / "labflow"), "send", "--connect", "10.0.2.2", "--port", str(sink.port),
                "--source-port", "7001", "--bytes", str(size_bytes)]  # fmt: skip
        seen = self.tap("a", "to-b", send)
        self.assertEqual({(r["protocol"], r["sport"]) for r in seen}, {(TCP, 7001)})
        entered, left = (
            [(r["ip_id"], r["seq"], r["payload"]) for r in seen if r["leaves"] == leaves]
            for leaves in (0, 1)
        )
        # in any order: with two processors one may take the other's turn
        self.assertCountEqual(entered, left)
        data = [one for one in entered if one[2]]
        self.assertEqual(len({ip_id for ip_id, _, _ in data}), len(data))
        first_seq = data[0][1]
        ends = [(seq - first_seq) % 2**32 + payload for _, seq, payload in data]
        self.assertEqual(max(ends), size_bytes)

    def test_one_packet_in_so_many(self) -> None:
        """Both sides see the same, of 2000 about a quarter."""
        code = DATAGRAMS.format(datagrams="[(20, '10.0.2.2')] * 2000")
        seen = self.tap("a", "to-b", ["python3", "-c", code], "--every", "4")
        entered, left = ([r["ip_id"] for r in seen if r["leaves"] == side] for side in (0, 1))
        self.assertEqual(entered, left)
        self.assertLess(abs(len(entered) - 500), 100)

    def test_more_than_the_ring_holds_at_once(self) -> None:
        """The blocks are used again: 60000 records are more than nine of them, of four."""
        code = DATAGRAMS.format(datagrams="[(20, '10.0.2.2')] * 30000")
        seen = self.tap("a", "to-b", ["python3", "-c", code])
        for leaves in (0, 1):
            self.assertEqual(sum(r["leaves"] == leaves for r in seen), 30000)


class TapErrorTest(unittest.TestCase):
    def test_bad_options(self) -> None:
        for options, wanted in (
            ((), "--dev and --out"),
            (("--dev", "lo"), "--dev and --out"),
            (("--dev", "lo", "--out", "-", "x"), "unexpected argument"),
            (("--nonsense",), "--nonsense"),
            (("--dev", "lo", "--out", "-", "--every", "3"), "power of two"),
            (("--dev", "lo", "--out", "-", "--every", "512"), "--every"),
        ):
            with self.subTest(options=options):
                done = run(BIN / "labtap", *options)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(wanted, done.stderr)

    def test_absent_device(self) -> None:
        done = run(BIN / "labtap", "--dev", "no_such0", "--out", "-")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no device 'no_such0'", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "already without root")
    def test_without_the_right_it_says_so(self) -> None:
        nobody = ("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all",
                  "--inh-caps=-all")  # fmt: skip
        done = run(*nobody, BIN / "labtap", "--dev", "lo", "--out", "-")
        self.assertEqual(done.returncode, 1)
        self.assertIn("CAP_NET_RAW", done.stderr)


class UdpTest(unittest.TestCase):
    def sink(self) -> Sink:
        sink = Sink("--transport", "udp")
        self.addCleanup(sink.stop)
        self.assertEqual(sink.ready, b"ready\n")
        return sink

    def send(self, port: int, *options: object, code: int = 0) -> dict:
        done = run(BIN / "labflow", "send", "--transport", "udp", "--connect", "127.0.0.1",
                   "--port", port, *options)  # fmt: skip
        self.assertEqual(done.returncode, code, done.stderr)
        return dict(json.loads(done.stdout))

    def test_sink_counts_what_was_sent_no_faster_than_the_rate(self) -> None:
        sink = self.sink()
        flow = self.send(sink.port, "--rate-mbps", "12.112", "--bytes", 100 * 1472)
        self.assertEqual((flow["segs_out"], flow["bytes_sent"]), (100, 147200))
        self.assertIs(flow["completed"], True)
        self.assertIsNone(flow["error"])
        self.assertGreaterEqual(flow["end_s"] - flow["start_s"], 0.100)  # 1 ms each
        small = self.send(sink.port, "--rate-mbps", "1", "--bytes", 100, "--mss", 100)
        self.assertEqual((small["segs_out"], small["bytes_sent"]), (1, 100))
        code, reports, err = sink.stop()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([r["datagrams_received"] for r in reports], [101])

    def test_time_limit(self) -> None:
        sink = self.sink()
        flow = self.send(sink.port, "--rate-mbps", "12.112", "--duration-s", "0.2")
        self.assertTrue(1 <= flow["segs_out"] <= 201)
        self.assertIs(flow["completed"], True)
        self.assertEqual(sink.stop()[1][0]["datagrams_received"], flow["segs_out"])

    def test_bad_options(self) -> None:
        for options, code, wanted in (
            (("--bytes", "1"), 1, "--rate-mbps"),
            (("--bytes", "1", "--rate-mbps", "1", "--algorithm", "reno"), 1, "no --algorithm"),
            (("--bytes", "1", "--rate-mbps", "0"), 2, "above 0"),
            (("--bytes", "1", "--rate-mbps", "x"), 2, "above 0"),
        ):
            with self.subTest(options=options):
                done = run(BIN / "labflow", "send", "--transport", "udp", "--connect",
                           "127.0.0.1", "--port", "9", *options)  # fmt: skip
                self.assertEqual(done.returncode, code)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
