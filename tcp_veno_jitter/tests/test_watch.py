# SPDX-License-Identifier: GPL-2.0-only
"""cc-watch shows what the kernel tells, survives what it could tell, and says what is wrong. What
it says of our modules is held against them in the lab (guest_watch.py)."""

import ast
import contextlib
import curses
import json
import os
import platform
import pty
import random
import socket
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import guest_watch
import pytest
from guest_net import TCP_INFO

from labtest.boot import assert_claimed, run_scripts, verdict_count

TOOLS = Path(__file__).resolve().parents[1] / "tools"
WATCH = TOOLS / "cc-watch"
from cctools import sockdiag  # noqa: E402 (guest_watch has told where it is)
from cctools.connections import LAW_STATES, OURS, TOLD, Connection, Watcher  # noqa: E402
from cctools.tracing import Verdicts  # noqa: E402
from cctools.watch import NAMES, Screen, Selection, heading, line, summary  # noqa: E402


@pytest.fixture
def pair():
    """A connection over the loopback that has carried 100 kB."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    with one, other:
        one.sendall(bytes(100_000))
        left = 100_000
        while left:
            left -= len(other.recv(left))
        yield one, other


def connections() -> list[Connection]:
    try:
        return Watcher().look(sockdiag.Kernel().sockets(), 1.0)
    except sockdiag.Complaint as complaint:
        pytest.skip(str(complaint))


def of(found: list[Connection], sock: socket.socket) -> Connection:
    host, port = sock.getsockname()
    (one,) = (one for one in found if one.local == f"{host}:{port}")
    return one


def test_this_kernel_tells_what_the_socket_tells(pair):
    """Every number is read from its right place in struct tcp_info."""
    sock, peer = pair
    found = connections()
    one, raw = of(found, sock), sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
    info = TCP_INFO.unpack(raw)
    assert one.remote == "{}:{}".format(*peer.getsockname()) and one.tcp_state == "ESTAB"
    assert (one.mss_bytes, one.srtt_ms, one.cwnd_pkts) == (info[10], info[23] / 1000, info[26])
    assert (one.bytes_acked, one.retransmits) == (info[34], info[31])
    assert one.bytes_acked > 100_000 and one.base_rtt_ms and one.resent_percent == 0
    assert one.state == "Open" and one.in_flight_pkts == 0
    assert of(found, peer).bytes_acked <= 1 and one.told.inode
    assert one.algorithm in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()


def test_an_ipv6_connection_is_told_too():
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with listener, socket.create_connection(listener.getsockname()[:2]) as sock:
        port = sock.getsockname()[1]
        assert [one for one in connections() if one.local == f"[::1]:{port}"]


# --- messages ----------------------------------------------------------------


def attribute(kind: int, content: bytes) -> bytes:
    text = struct.pack("=HH", 4 + len(content), kind) + content
    return text + bytes(-len(text) % 4)


def message(content: bytes, kind: int = 20, flags: int = 2, sequence: int = 7) -> bytes:
    return struct.pack("=IHHII", 16 + len(content), kind, flags, sequence, 0) + content


def told(name: str = "veno_jitter", cookie: int = 1, acked: int = 1000, port: int = 5001) -> bytes:
    """Return a connection as the kernel lays it out (inet_sk_diag_fill())."""
    info = bytearray(240)
    struct.pack_into("=8B24I", info, 0, *bytes(8), *range(24))
    struct.pack_into("=Q", info, 120, acked)
    bbr = struct.pack("=5I", 250_000, 0, 96_000, 3 << 7, 5 << 8)
    address = socket.inet_aton("192.0.2.7") + bytes(12)
    head = struct.pack(">BBBBHH", socket.AF_INET, 1, 0, 0, port, 80) + address + address
    return (
        head + struct.pack("=IQ5I", 0, cookie, 0, 0, 0, 1000, 77)
        + attribute(2, bytes(info)) + attribute(4, name.encode() + b"\0") + attribute(16, bbr)
    )  # fmt: skip


def read(*contents: bytes) -> list[Connection]:
    data = b"".join(map(message, contents))
    return [Connection(one) for one in sockdiag.read_messages(data, 7)[0]]


def test_our_values_have_their_meaning():
    """docs/values.md, the other way round; what a module has no number for is none."""
    (one,) = read(told())
    assert (one.bandwidth_mbps, one.base_rtt_ms) == (2.0, 96.0)
    assert (one.jitter_percent, one.backlog_pkts) == (1.5, 5.0)
    assert one.told.uid == 1000 and one.remote == "192.0.2.7:80"
    (one,) = read(told("jtcp"))
    assert one.bandwidth_mbps is None and one.jitter_percent == 1.5
    assert one.law is None
    (one,) = read(told("bbr"))
    assert one.bandwidth_mbps == 2.0 and one.jitter_percent is None


@pytest.mark.parametrize(("rtt_us", "least_us"), [(20_000, 0), (20_000, 25_000), (30_000, 20_000)])
def test_the_base_of_vegas_westwood_and_illinois(rtt_us, least_us):
    """Whichever of the two fields it is in: the smaller one."""
    (one,) = read(told("illinois"))
    one.told.cc_kind = sockdiag.VEGASINFO
    one.told.cc = struct.pack("=4I", 1, 5, rtt_us, least_us)
    assert one.base_rtt_ms == 20.0 and one.bandwidth_mbps is None


@pytest.mark.parametrize("code", range(4))
def test_the_law_s_state_is_in_two_bits(code):
    """They change nothing of the jitter ratio; others' bits are no state."""
    for name, law in (("veno_jitter", LAW_STATES[code]), ("jtcp", None), ("bbr", None)):
        (one,) = read(told(name))
        one.told.cc = struct.pack("=5I", 0, 0, 0, 7 << 8 | code, 0)
        assert one.law == law
        if name != "bbr":
            assert one.jitter_percent == 7 + (code / 256 if name == "jtcp" else 0)
        assert bool(Selection(words=("shared",)).of([one])) == (law == "SHARED")


def test_rates_are_of_what_was_acknowledged_between():
    watcher = Watcher()
    first = sockdiag.read_messages(message(told(acked=1000)), 7)[0]
    then = sockdiag.read_messages(message(told(acked=251_000)) + message(told(cookie=2)), 7)[0]
    assert watcher.look(first, 10.0)[0].rate.sent_mbps is None
    old, new = watcher.look(then, 12.0)
    assert old.rate.sent_mbps == 1.0 and new.rate.sent_mbps is None


def test_hostile_bytes_are_read_to_their_end():
    """Whatever is cut or changed: a connection whose every number can be asked for, or none."""
    choose = random.Random(1)
    whole = message(told()) + message(told("cubic", 2))
    for _ in range(5000):
        text = bytearray(whole[: choose.randrange(len(whole) + 1)])
        for _ in range(choose.randrange(4)):
            if text:
                text[choose.randrange(len(text))] = choose.randrange(256)
        try:
            found, _ = sockdiag.read_messages(bytes(text), 7)
        except (OSError, sockdiag.Interrupted):
            continue
        for one in map(Connection, found):
            if one.told.family in (socket.AF_INET, socket.AF_INET6):
                json.dumps(one.row())


def test_a_dump_in_which_connections_came_and_went_is_read_anew():
    kernel = sockdiag.Kernel()
    answers = [
        message(told(), flags=2 | sockdiag.NLM_F_DUMP_INTR, sequence=1),
        message(told(), sequence=2) + message(bytes(4), sockdiag.NLMSG_DONE, sequence=2),
        message(told("late"), sequence=1) + message(bytes(4), sockdiag.NLMSG_DONE, sequence=3),
    ]

    class Link:
        def send(self, _data):
            pass

        def recv(self, _most):
            return answers.pop(0)

    kernel.link.close()
    kernel.link = Link()
    assert [one.algorithm for one in kernel.sockets()] == ["veno_jitter"]


# --- what is shown -----------------------------------------------------------


def test_sort_and_filter():
    found = read(told("cubic", 1, port=1), told("veno_jitter", 2, port=22), told("reno", 3, port=3))
    assert [one.told.cookie for one in Selection(sort="algorithm").of(found)] == [2, 3, 1]
    assert [one.told.cookie for one in Selection("local", False).of(found)] == [1, 2, 3]
    assert [one.told.cookie for one in Selection(words=("22", "veno")).of(found)] == [2]
    assert [one.told.cookie for one in Selection(algorithms=("reno",)).of(found)] == [3]
    assert Selection("jitter").of(found)[0].algorithm == "veno_jitter"  # others have none
    assert summary(found, found[:1]).startswith("1 of 3 connections (cubic 1, reno 1, veno_jitter")


@pytest.mark.parametrize("name", [*OURS, "cubic", "x" * 40])
def test_a_line_has_the_columns_of_its_heading(name):
    (one,) = read(told(name))
    assert len(line(one)) == len(heading()) and set(TOLD) == set(OURS)


def test_verdicts_are_counted_by_ports(tmp_path):
    """A line may come in two pieces; without a tracing folder nobody tells."""
    verdicts = Verdicts(tmp_path)
    assert not verdicts.there and not list(tmp_path.iterdir())
    text = (
        b" x-1 [0] ..s. 5.0: tcp_verdict: verdict=random at=fast_retransmit sport=5 dport=6 s=1\n"
        b" x-1 [0] ..s. 5.1: tcp_verdict: verdict=congestion at=timeout sport=5 dport=6 s=1\n"
    )
    for cut in range(len(text)):
        verdicts._count(text[:cut])
        verdicts._count(text[cut:])
    assert verdicts.random == verdicts.congestion == {(5, 6): len(text)}


def run_watch(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([WATCH, *arguments], capture_output=True, text=True)


def test_one_look(pair):
    """Not on a terminal it is a table and ends; --json has the same in units."""
    port = pair[0].getsockname()[1]
    table = run_watch(f":{port}")
    if table.returncode == 2:
        pytest.skip(table.stderr)
    assert len(table.stdout.splitlines()) == 4 and heading() in table.stdout
    rows = json.loads(run_watch("--json", f":{port}").stdout)
    assert {f"127.0.0.1:{port}"} & {row["local"] for row in rows} and len(rows) == 2
    assert all("srtt_ms" in row and "losses_random" in row for row in rows)


class Paper:
    """A window of curses as far as Screen uses one, of 10 lines by 60."""

    def __init__(self):
        self.lines: dict[int, str] = {}

    def getmaxyx(self):
        return 10, 60

    def erase(self):
        self.lines = {}

    def addnstr(self, row, _column, text, most, _style):
        self.lines[row] = text[:most].rstrip()

    def refresh(self):
        pass


class Steady:
    """A source that has always the same 20 connections."""

    def look(self):
        return read(*(told("cubic", number, port=5000 + number) for number in range(19)), told())


def test_keys_do_what_they_say():
    """What is drawn follows: order, filter, only ours, moving down, pause, and q."""
    paper = Paper()
    screen = Screen(paper, Steady(), Selection("local"), 1.0)
    screen.refresh()
    assert "by local, falling" in paper.lines[9] and ":5018" in paper.lines[2]
    for key, row, text in (
        ("r", 2, ":5000"), ("s", 9, "by remote, rising"), ("S", 9, "by local"), ("r", 2, ":5018"),
    ):  # fmt: skip
        assert screen.press(ord(key))
        screen.refresh()
        assert text in paper.lines[row], (key, paper.lines)
    screen.press(curses.KEY_DOWN)
    screen.refresh()
    assert ":5017" in paper.lines[2]
    for key in "/:5007x\x7f\n":
        screen.press(ord(key))
    screen.refresh()
    assert "1 of 20 connections" in paper.lines[0] and "filter: :5007" in paper.lines[9]
    for key in "/q\x1b":  # a filter given up is no key
        assert screen.press(ord(key))
    screen.press(ord("/"))
    for key in "\x7f" * 5 + "\n":
        screen.press(ord(key))
    screen.press(ord("o"))
    screen.press(ord("p"))
    screen.refresh()
    assert "1 of 20" in paper.lines[0] and "veno_jitter" in paper.lines[2]
    assert "PAUSED" in paper.lines[9] and not screen.press(ord("q"))


def test_on_a_terminal_it_goes_on_until_q():
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(WATCH, [str(WATCH)])
    drawn = b""
    with contextlib.suppress(OSError):  # it has ended
        while b"q end" not in drawn:
            drawn += os.read(terminal, 1 << 16)
    os.write(terminal, b"q")
    with contextlib.suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert status == 0 and b"q end" in drawn, drawn


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [(["--interval", "0"], "between 0.1 and"), (["--interval", "nan"], "between 0.1 and"),
     (["--sort", "x"], NAMES[0]), (["--log", "/no/such/folder/log"], "--log another"),
     (["--json", "--once"], "not allowed with")],
)  # fmt: skip
def test_what_is_wrong_is_one_line(arguments, cure):
    done = run_watch(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("cc-watch: ") and cure in last


@pytest.mark.parametrize("name", ["cc-watch", "cc-compare"])
def test_a_python_that_is_too_old_is_one_line(name):
    """Before it meets anything that it cannot read: these files, one of years ago could."""
    for path in (TOOLS / name, TOOLS / "cctools" / "__init__.py", TOOLS / "wccp-survey"):
        ast.parse(path.read_text(), feature_version=(3, 7))
    script = f"import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path('{TOOLS / name}')"
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=TOOLS, capture_output=True, text=True
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"{name}: this is Python 3.9.2, and 3.11 or newer is needed")


# --- in the lab --------------------------------------------------------------


@cache
def said() -> str:
    (output,) = run_scripts(Path(__file__).parent, ["guest_watch.py"]).values()
    return output


in_the_lab = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux",
    reason="the lab in virtual time needs an x86-64 machine",
)


@in_the_lab
@pytest.mark.parametrize("text", [claim.text for claim in guest_watch.claims])
def test_claim(text):
    assert_claimed(said(), text)


@in_the_lab
def test_every_claim_was_tested():
    assert verdict_count(said()) == len(guest_watch.claims)
