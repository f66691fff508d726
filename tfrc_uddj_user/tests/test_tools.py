# SPDX-License-Identifier: GPL-2.0-only
"""tfrc-send and tfrc-recv on loopback, as a user runs them. TFRC_BIN: the folder they are in.

Nothing here judges a rate: that is what simulated time and the lab are for.
"""

import contextlib
import errno
import itertools
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

BIN = Path(os.environ.get("TFRC_BIN", Path(__file__).parents[2] / "build" / "tfrc"))
SEND, RECV = str(BIN / "tfrc-send"), str(BIN / "tfrc-recv")
MAKE = os.environ.get("TFRC_MAKE", str(Path(__file__).parents[1]))
LIMIT_S = 120  # only so that a hang ends


# Below those that the kernel gives to senders; each worker of pytest-xdist has 1000 of its own.
PORTS = itertools.count(20_000 + 1000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]))


def free_port() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for port in PORTS:
            with contextlib.suppress(OSError):
                probe.bind(("", port))
                return str(port)


class Receiver:
    """A tfrc-recv for one connection, that is listening."""

    def __init__(self, tmp_path: Path, *options: str):
        self.port = free_port()
        self.results = tmp_path / "recv.json"
        self.data = tmp_path / "data"
        command = [RECV, "--one-off", "--output", str(self.data), "--json", str(self.results),
                   "--ready-fd", "1", *options, self.port]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def end(self) -> dict:
        _, said = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, said
        return json.loads(self.results.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.process.kill()
        self.process.wait()


def send(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [SEND, *arguments], capture_output=True, text=not isinstance(options.get("input"), bytes),
        timeout=LIMIT_S, **options,
    )  # fmt: skip


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("algorithm", ["tfrc", "uddj"])
def test_a_file_arrives(tmp_path, host, algorithm):
    data = random.Random(1).randbytes(300_000)
    (tmp_path / "file").write_bytes(data)
    with Receiver(tmp_path) as receiver:
        done = send("--file", str(tmp_path / "file"), "--algorithm", algorithm,
                    "--json", str(tmp_path / "send.json"), host, receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        got = receiver.end()
    sent = json.loads((tmp_path / "send.json").read_text())
    assert receiver.data.read_bytes() == data
    assert got["bytes_received"] == sent["bytes_acked"] == sent["bytes_sent"] == len(data)
    assert got["completed"] and sent["completed"] and sent["error"] is None
    assert sent["feedbacks_refused"] == 0 and got["refused"] == 0


@pytest.mark.parametrize("family", [[], ["-4"]])
def test_answers_come_from_where_it_was_sent_to(tmp_path, family):
    """A host has several addresses; the route to 127.0.0.1 prefers another than 127.0.0.2."""
    with Receiver(tmp_path, *family) as receiver:
        done = send("--quiet", "127.0.0.2", receiver.port, input=b"hello")
        assert done.returncode == 0, done.stderr
        receiver.end()
    assert receiver.data.read_bytes() == b"hello"


def test_so_does_what_says_that_a_stream_is_unknown(tmp_path):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with Receiver(tmp_path) as receiver, datagrams as sender:
        sender.connect(("127.0.0.2", int(receiver.port)))
        sender.settimeout(LIMIT_S)
        sender.send(FIRST.pack(0x21, 0, 0, 1234, 5, 1, 1, 77, 0, 0, 0))
        assert sender.recv(2000)[:2] == b"\x22\x04"


def test_standard_input_and_output(tmp_path):
    data = random.Random(2).randbytes(50_000)
    with Receiver(tmp_path) as receiver:
        done = send("--quiet", "127.0.0.1", receiver.port, input=data)
        assert done.returncode == 0 and done.stdout == b""
        receiver.end()
    assert receiver.data.read_bytes() == data


@pytest.mark.parametrize("payload", ["1", "1400", "65455"])
def test_packets_of_any_size(tmp_path, payload):
    with Receiver(tmp_path) as receiver:
        count = 3 * int(payload)
        done = send("--endless", "--bytes", str(count), "--payload-bytes", payload,
                    "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert receiver.end()["bytes_received"] == count


@pytest.mark.parametrize("source", ["--cbr", "--vbr"])
def test_made_up_media(tmp_path, source):
    with Receiver(tmp_path) as receiver:
        done = send(source, "2M", "--duration", "1", "127.0.0.1", receiver.port)
        assert done.returncode == 0, done.stderr
        assert 0 < receiver.end()["bytes_received"] < 2_000_000


def test_a_rate_below_a_packet_a_second(tmp_path):
    """5000 bytes a second: no packet of 6000 is full before 1.2 s are over."""
    with Receiver(tmp_path) as receiver:
        done = send("--cbr", "40k", "--payload-bytes", "6000", "--bytes", "6000", "--quiet",
                    "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert receiver.end()["bytes_received"] == 6000


def test_small_packets_are_10_ms_apart(tmp_path):
    """RFC 4828, 4.2. The source would have 150 packets a second."""
    with Receiver(tmp_path) as receiver:
        done = send("--cbr", "192k", "--payload-bytes", "160", "--small-packets", "--duration",
                    "1", "--json", "-", "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        receiver.end()
    sent = json.loads(done.stdout)
    data = sent["bytes_sent"] / 160
    assert 0 < data <= (sent["end_s"] - sent["start_s"]) / 0.01 + 2


def test_sigint_ends_in_order(tmp_path):
    with Receiver(tmp_path) as receiver:
        process = subprocess.Popen(
            [SEND, "--cbr", "1M", "--interval", "0.1", "127.0.0.1", receiver.port],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        process.stdout.readline()  # it is under way
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0
        assert receiver.end()["completed"]


def test_a_duration_of_0_is_none(tmp_path):
    """As with iperf3; who says so need not be told that this goes on."""
    with Receiver(tmp_path) as receiver:
        process = subprocess.Popen(
            [SEND, "--endless", "--duration", "0", "--max-rate", "1M", "--interval", "0.1",
             "127.0.0.1", receiver.port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for _ in range(5):
            assert "sent" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0 and said == ""
        assert receiver.end()["completed"]


def test_one_off_ends_with_the_first_sender(tmp_path):
    with Receiver(tmp_path) as receiver:
        for data, code in ((b"first", 0), (b"second", 1)):
            done = send("--quiet", "--timeout", "1", "127.0.0.1", receiver.port, input=data)
            assert done.returncode == code
        assert receiver.end()["bytes_received"] == 5
    assert receiver.data.read_bytes() == b"first"


def killed_sender(port: str) -> None:
    """A sender that dies in the middle: its receiver hears of no end."""
    with subprocess.Popen(
        [SEND, "--endless", "--max-rate", "1M", "--interval", ".05", "127.0.0.1", port],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        process.stdout.readline()
        process.kill()


def test_a_sender_that_dies_ends_one_off(tmp_path):
    with Receiver(tmp_path, "--quiet", "--timeout", "0.5") as receiver:
        killed_sender(receiver.port)
        _, said = receiver.process.communicate(timeout=LIMIT_S)
    assert receiver.process.returncode == 1
    assert re.fullmatch(
        r"tfrc-recv: 127\.0\.0\.1 port \d+ has sent nothing for 0\.5 s,"
        r" and not said that this was all\n",
        said,
    )
    results = json.loads(receiver.results.read_text())
    assert not results["completed"]
    assert results["bytes_received"] == receiver.data.stat().st_size > 0
    assert results["error"] in said


def test_a_sender_that_dies_makes_room_for_the_next(tmp_path):
    data, port = tmp_path / "data", free_port()
    command = [RECV, "--quiet", "--timeout", "0.5", "--output", str(data), "--ready-fd", "1", port]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as receiver:
        receiver.stdout.readline()
        killed_sender(port)
        said = receiver.stderr.readline()
        done = send("--quiet", "127.0.0.1", port, input=b"the next")
        receiver.terminate()
        assert receiver.wait(timeout=LIMIT_S) == 0
    assert "has sent nothing for 0.5 s" in said
    assert done.returncode == 0, done.stderr
    assert data.read_bytes().endswith(b"the next")


def test_the_rate_for_an_encoder(tmp_path):
    with Receiver(tmp_path) as receiver:
        rate = tmp_path / "rate"
        done = send("--cbr", "1M", "--duration", "0.5", "--interval", "0.1", "--rate-file",
                    str(rate), "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        receiver.end()
    assert int(rate.read_text()) > 0


@pytest.mark.parametrize(
    ("closed", "complaint"),
    [("<&-", "cannot read the data"), (">&-", "cannot write to standard output")],
)
def test_a_closed_standard_descriptor(tmp_path, closed, complaint):
    """The next one to be opened is no substitute: a socket, or the pipe of signals."""
    source = ["--endless", "--bytes", "10"] if closed == ">&-" else ["--quiet"]
    command = ["sh", "-c", f'"$@" {closed}', "sh", SEND, *source, "127.0.0.1"]
    with Receiver(tmp_path) as receiver:
        done = subprocess.run([*command, receiver.port], stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_S)  # fmt: skip
        assert done.returncode == 1
        assert done.stderr == f"tfrc-send: {complaint}: Bad file descriptor\n"
        assert receiver.end()["completed"]


def test_nobody_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        done = send("--endless", "--bytes", "1000", "--quiet", "127.0.0.1",
                    str(silent.getsockname()[1]))  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "tfrc-send: the receiver never answered\n"


def test_nobody_listens_is_said_at_once():
    done = send("--endless", "--bytes", "1000", "--quiet", "127.0.0.1", free_port())
    assert done.returncode == 1
    assert done.stderr == "tfrc-send: nobody listens there: Connection refused\n"


def test_a_dead_receiver_ends_an_endless_stream(tmp_path):
    with Receiver(tmp_path) as receiver, subprocess.Popen(
        [SEND, "--endless", "--timeout", "1", "--max-rate", "1M", "--interval", ".1",
         "127.0.0.1", receiver.port],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdout.readline()  # it is under way
        receiver.process.send_signal(signal.SIGSTOP)
        _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert said.endswith("tfrc-send: the receiver answers no more\n")


def test_the_end_of_input_while_idle(tmp_path):
    """--quiet leaves nothing that would wake it up."""
    with Receiver(tmp_path) as receiver:
        with subprocess.Popen([SEND, "--quiet", "127.0.0.1", receiver.port],
                              stdin=subprocess.PIPE) as process:  # fmt: skip
            process.stdin.write(b"hello\n")
            process.stdin.flush()
            while not (receiver.data.exists() and receiver.data.read_bytes()):
                time.sleep(0.05)
            time.sleep(0.5)  # the nofeedback timer has gone to rest
            process.stdin.close()
            assert process.wait(timeout=LIMIT_S) == 0
        receiver.end()
    assert receiver.data.read_bytes() == b"hello\n"


def test_lines_that_nobody_reads_end_the_stream(tmp_path):
    with Receiver(tmp_path) as receiver:
        report = tmp_path / "send.json"
        with subprocess.Popen(
            [SEND, "--cbr", "1M", "--interval", ".1", "--json", str(report), "127.0.0.1",
             receiver.port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            process.stdout.readline()
            process.stdout.close()  # as head -1 does
            assert process.stderr.read() == (
                "tfrc-send: cannot write to standard output: Broken pipe\n"
            )
            assert process.wait(timeout=LIMIT_S) == 1
        assert receiver.end()["completed"]
    assert json.loads(report.read_text())["error"].startswith("cannot write to standard output")


def test_data_that_cannot_be_written_leaves_a_report(tmp_path):
    port, report = free_port(), tmp_path / "recv.json"
    with subprocess.Popen(
        [RECV, "--one-off", "--quiet", "--output", "/dev/full", "--json", str(report),
         "--ready-fd", "1", port],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as receiver:  # fmt: skip
        receiver.stdout.readline()
        send("--endless", "--bytes", "200000", "--quiet", "--timeout", "1", "127.0.0.1", port)
        _, said = receiver.communicate(timeout=LIMIT_S)
    assert receiver.returncode == 1
    assert said == "tfrc-recv: cannot write the data: No space left on device\n"
    assert "No space left" in json.loads(report.read_text())["error"]


def test_a_flood_does_not_hold_up_a_signal(tmp_path):
    """Datagrams of a byte come faster than they are taken: still it ends."""
    with Receiver(tmp_path) as receiver:
        flood = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            f"s.connect(('127.0.0.1', {receiver.port}))\n"
            "while True:\n    try: s.send(b'x')\n    except OSError: pass\n"
        )
        floods = [subprocess.Popen(["python3", "-c", flood]) for _ in range(2)]
        try:
            time.sleep(0.5)
            receiver.process.send_signal(signal.SIGINT)
            receiver.process.wait(timeout=LIMIT_S)
        finally:
            for process in floods:
                process.kill()
                process.wait()
    assert receiver.process.returncode == 0


AT_THE_WORST_MOMENT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static int at(const char *name, int calls)
{
	const char *value = getenv(name);

	return value && calls == atoi(value);
}

/* A signal after the last look at whether there was one, before the sleep. */
int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	static int calls;
	int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) =
		dlsym(RTLD_NEXT, "ppoll");

	if (at("RAISE_AT_PPOLL", ++calls))
		raise(SIGINT);
	if (!getenv("RAISE_AT_RECVMMSG"))
		return real(p, n, t, mask);
	for (nfds_t i = 0; i < n; i++)
		p[i].revents = p[i].events;
	return (int)n;
}

/* A flood: there is always more, a byte each. */
int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *t)
{
	static int calls;
	int (*real)(int, struct mmsghdr *, unsigned int, int, struct timespec *) =
		dlsym(RTLD_NEXT, "recvmmsg");

	if (!getenv("RAISE_AT_RECVMMSG"))
		return real(fd, m, n, flags, t);
	if (at("RAISE_AT_RECVMMSG", ++calls))
		raise(SIGINT);
	for (unsigned int i = 0; i < n; i++) {
		*(char *)m[i].msg_hdr.msg_iov->iov_base = 0;
		m[i].msg_hdr.msg_controllen = 0;
		m[i].msg_len = 1;
	}
	return (int)n;
}
"""


@pytest.mark.parametrize("moment", ["RAISE_AT_PPOLL=1", "RAISE_AT_RECVMMSG=100"])
@pytest.mark.parametrize("tool", [SEND, RECV])
def test_a_signal_at_the_worst_moment_ends_it(tmp_path, tool, moment):
    """Just before it sleeps, or while datagrams come faster than they are taken."""
    (tmp_path / "shim.c").write_text(AT_THE_WORST_MOMENT)
    shim = str(tmp_path / "shim.so")
    build = ["cc", "-shared", "-fPIC", str(tmp_path / "shim.c"), "-o", shim, "-ldl"]
    subprocess.run(build, check=True)
    name, _, call = moment.partition("=")
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env = os.environ | {"LD_PRELOAD": shim, name: call, "ASAN_OPTIONS": asan}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = str(silent.getsockname()[1])
        later = ["--start-at-s", "9e8"] * (name == "RAISE_AT_PPOLL")
        arguments = [*later, "--endless", "127.0.0.1", port] if tool == SEND else [free_port()]
        done = subprocess.run([tool, "--quiet", *arguments], env=env, timeout=LIMIT_S,
                              capture_output=True, text=True)  # fmt: skip
    # nobody answered what was sent
    assert done.returncode == (1 if tool == SEND else 0), done.stderr


def test_results_alone_on_standard_output(tmp_path):
    with Receiver(tmp_path, "--interval", ".1") as receiver:
        done = send("--cbr", "1M", "--duration", ".6", "--interval", ".1", "--json", "-",
                    "--name", "größe", "127.0.0.1", receiver.port)  # fmt: skip
        got = receiver.end()
    assert done.returncode == 0, done.stderr
    sent = json.loads(done.stdout)
    assert sent["name"] == "größe"
    assert len(sent["intervals"]) >= 4 and sent["intervals"][0]["to_s"] > 0
    assert sum(interval["bytes_sent"] for interval in sent["intervals"]) <= sent["bytes_sent"]
    assert got["intervals"] and all(i["to_s"] > i["from_s"] >= 0 for i in got["intervals"])


def test_a_time_series_says_what_its_columns_are(tmp_path):
    with Receiver(tmp_path) as receiver:
        samples = tmp_path / "samples.csv"
        done = send("--cbr", "1M", "--duration", ".5", "--interval", ".1", "--samples",
                    str(samples), "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        receiver.end()
    header, *rows = (line.split(",") for line in samples.read_text().splitlines())
    assert header[:3] == ["time_s", "flow", "algorithm"]
    assert rows and all(len(row) == len(header) for row in rows)


def test_no_line_goes_back_in_time(tmp_path):
    with Receiver(tmp_path) as receiver:
        assert send("--endless", "--bytes", "10", "127.0.0.1", receiver.port).returncode == 0
        _, said = receiver.process.communicate(timeout=LIMIT_S)
    assert "--" not in said and "s  received" in said
    # a start that is never reached; --verbose speaks when signals are caught already
    with subprocess.Popen([SEND, "--cbr", "1M", "--verbose", "--start-at-s", "9e8", "127.0.0.1",
                           "9"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:  # fmt: skip
        assert "packets leave" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        lines, _ = process.communicate(timeout=LIMIT_S)
    assert lines.split()[0] == "0.00-0.00"


def test_a_start_that_is_waited_for(tmp_path):
    with Receiver(tmp_path) as receiver:
        start_s = time.monotonic() + 0.5
        done = send("--endless", "--bytes", "10", "--start-at-s", f"{start_s:.6f}", "--json", "-",
                    "127.0.0.1", receiver.port)  # fmt: skip
        receiver.end()
    assert done.returncode == 0, done.stderr
    assert time.monotonic() > start_s and abs(json.loads(done.stdout)["start_s"] - start_s) < 1e-3


def test_ipv6_only_is_not_ipv4(tmp_path):
    with Receiver(tmp_path, "-6") as receiver:
        refused = send("--endless", "--bytes", "10", "--quiet", "127.0.0.1", receiver.port)
        assert refused.returncode == 1
        assert send("--endless", "--bytes", "10", "::1", receiver.port).returncode == 0
        assert receiver.end()["bytes_received"] == 10


def test_only_a_peer_is_served(tmp_path):
    with Receiver(tmp_path, "--peer", "127.0.0.2") as receiver:
        refused = send("--endless", "--bytes", "10", "--quiet", "127.0.0.1", receiver.port)
        assert refused.returncode == 1
        assert refused.stderr == "tfrc-send: the receiver never answered\n"
        receiver.process.send_signal(signal.SIGTERM)
        receiver.process.communicate(timeout=LIMIT_S)
    with Receiver(tmp_path, "--peer", "localhost") as receiver:
        assert send("--endless", "--bytes", "10", "127.0.0.1", receiver.port).returncode == 0
        receiver.end()


@pytest.mark.parametrize("tool", [SEND, RECV])
@pytest.mark.parametrize("option", ["-h", "--help", "--version"])
def test_questions_are_answered(tool, option):
    done = subprocess.run([tool, option], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0 and not done.stderr
    assert Path(tool).name in done.stdout


def test_rubbish_does_no_harm(tmp_path):
    noise = random.Random(3)
    with Receiver(tmp_path) as receiver:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(200):
                packet = b"\x21\x04\0\0" + noise.randbytes(noise.randrange(100))
                stranger.sendto(packet, ("127.0.0.1", int(receiver.port)))
        os.kill(receiver.process.pid, signal.SIGTERM)
        _, said = receiver.process.communicate(timeout=LIMIT_S)
    assert receiver.process.returncode == 0, said


@pytest.mark.parametrize(
    "arguments",
    [
        (SEND,),
        (SEND, "host"),
        (SEND, "--cbr", "fast", "h", "1"),
        (SEND, "--cbr", "-5", "h", "1"),
        (SEND, "--payload-bytes", "65456", "h", "1"),
        (SEND, "--algorithm", "cubic", "h", "1"),
        (SEND, "--duration", "inf", "h", "1"),
        (SEND, "--file", "/nowhere/at/all", "127.0.0.1", "1"),
        (SEND, "--bogus", "h", "1"),
        (SEND, "--bytes"),
        (SEND, "h", "99999"),
        (SEND, "h", "0"),
        (SEND, "h", "http"),
        (SEND, "--law", "mark", "h", "1"),
        (SEND, "--cbr", "1M", "--endless", "h", "1"),
        (SEND, "--samples-from-s", "1", "h", "1"),
        (SEND, "--samples", "x", "--interval", "0", "h", "1"),
        (SEND, "--rate-file", "x", "--interval", "0", "h", "1"),
        (SEND, "--rate-file", "-", "h", "1"),
        (SEND, "--json", "-", "--samples", "-", "h", "1"),
        (SEND, "--name", b"\xff", "h", "1"),
        (SEND, "--name", "a,b", "h", "1"),
        (SEND, "--interval", ".", "h", "1"),
        (SEND, "--interval", ".000000001", "h", "1"),
        (SEND, "-4", "-6", "h", "1"),
        (RECV, "99999"),
        (RECV, "0"),
        (RECV, "--json", "-", "1"),
        (RECV, "--interval", ".0009", "1"),
        (RECV,),
        (RECV, "--output", "x", "--discard", "1"),
        (RECV, "--oracle", "nonsense", "1"),
    ],
    ids=lambda arguments: (
        " ".join(Path(os.fsdecode(a)).name for a in arguments).encode("ascii", "replace").decode()
    ),
)
def test_bad_options_are_one_line_and_2(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("tfrc-")


EARLIER = "of an earlier run\n" * 1000


@pytest.fixture
def busy_port():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as busy:
        busy.bind(("", 0))
        yield str(busy.getsockname()[1])


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        (SEND, ["-6", "127.0.0.1", "9"], "cannot find 127.0.0.1"),
        (SEND, ["--source-port", "BUSY", "::1", "9"], "Address already in use"),
        (SEND, ["--samples", "/no/where", "127.0.0.1", "9"], "cannot write '/no/where'"),
        (SEND, ["--rate-file", "/no/where", "127.0.0.1", "9"], "cannot write '/no/where'"),
        (SEND, ["--json", "/no/where", "127.0.0.1", "9"], "cannot write '/no/where'"),
        (RECV, ["BUSY"], "Address already in use"),
        (RECV, ["--json", "/no/where", "FREE"], "cannot write '/no/where'"),
        (RECV, ["-6", "--peer", "127.0.0.1", "FREE"], "cannot find 127.0.0.1"),
        (RECV, ["--ready-fd", "77", "FREE"], "--ready-fd 77"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else Path(value).name,
)
def test_what_fails_at_the_start_leaves_earlier_results(
    tmp_path, busy_port, tool, arguments, complaint
):
    """And is said at once: neither does it wait for its start."""
    results, data = tmp_path / "json", tmp_path / "data"
    more = "--samples" if tool == SEND else "--output"
    options = ["--json", str(results), more, str(data)]
    if tool == SEND:
        options += ["--endless", "--bytes", "10", "--start-at-s", "9e8"]
    ports = {"BUSY": busy_port, "FREE": free_port()}
    command = [tool, *options, *(ports.get(one, one) for one in arguments)]
    for earlier in (None, EARLIER):
        if earlier:
            results.write_text(earlier)
            data.write_text(earlier)
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 1 and complaint in done.stderr
        if earlier:
            assert results.read_text() == data.read_text() == earlier
    assert not list(tmp_path.glob("*.part"))


def test_results_take_the_place_of_earlier_ones(tmp_path):
    results, samples = tmp_path / "send.json", tmp_path / "samples"
    for path in (results, samples, tmp_path / "recv.json", tmp_path / "data"):
        path.write_text(EARLIER)
    with Receiver(tmp_path) as receiver:
        done = send("--json", str(results), "--samples", str(samples), "127.0.0.1", receiver.port,
                    input="hello")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert receiver.end()["bytes_received"] == 5
    assert receiver.data.read_text() == "hello"
    assert json.loads(results.read_text())["bytes_sent"] == 5
    assert samples.read_text().startswith("time_s,") and "earlier" not in samples.read_text()


@pytest.mark.parametrize("tool", [SEND, RECV])
def test_help_is_all_in_the_man_page(tool):
    said = subprocess.run([tool, "--help"], capture_output=True, text=True).stdout
    page = (Path(MAKE) / "man" / f"{Path(tool).name}.1").read_text().replace("\\-", "-")
    options = {word.strip(",;") for word in said.split() if word.startswith("--")}
    assert options and not {option for option in options if option not in page}


def test_an_installed_library_is_found(tmp_path):
    install = ["make", "-s", "-C", MAKE, "install", f"OUT={tmp_path}/out", "PREFIX=/usr",
               f"DESTDIR={tmp_path}/root"]  # fmt: skip
    # built for another place first, as one does who then makes up his mind
    subprocess.run(["make", "-s", "-C", MAKE, "all", f"OUT={tmp_path}/out"], check=True,
                   capture_output=True, timeout=600)  # fmt: skip
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    root = tmp_path / "root" / "usr"
    program = tmp_path / "p.c"
    program.write_text(
        "#include <tfrc.h>\nint main(void) { return tfrc_equation(1460, 0.1, 0.01) > 1e5 ? 0 : 1; }"
    )
    flags = [f"-I{root}/include", f"-L{root}/lib", "-ltfrc", "-lm", f"-Wl,-rpath,{root}/lib"]
    subprocess.run(["cc", str(program), "-o", str(tmp_path / "p"), *flags], check=True)
    assert subprocess.run([str(tmp_path / "p")]).returncode == 0
    needed = subprocess.run(["ldd", str(tmp_path / "p")], capture_output=True, text=True).stdout
    assert "libtfrc.so.2" in needed
    for page in ("tfrc-send.1", "tfrc-recv.1"):
        assert (root / "share" / "man" / "man1" / page).is_file()
    package = (root / "lib" / "pkgconfig" / "libtfrc.pc").read_text()
    assert "Version: 2" in package and "prefix=/usr\n" in package


def test_exported_names_are_the_headers(tmp_path):
    build = ["make", "-s", "-C", MAKE, "lib", f"OUT={tmp_path}"]
    subprocess.run(build, check=True, capture_output=True, timeout=600)
    library = next(tmp_path.glob("libtfrc.so.*"))
    names = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True,
                           text=True, check=True).stdout.split()  # fmt: skip
    exported = {name.partition("@@")[0] for name in names if name.startswith("tfrc_")}
    header = (Path(MAKE) / "include" / "tfrc.h").read_text()
    assert exported == set(re.findall(r"\b(tfrc_\w+)\(", header))
    assert all("@@LIBTFRC_2" in name for name in names if name.startswith("tfrc_"))
    assert "testbed" not in header and "oracle" not in header
    # the archive shows those, and what testbeds need, and nothing without the prefix
    archive = subprocess.run(["nm", "--defined-only", "--extern-only", str(tmp_path / "libtfrc.a")],
                             capture_output=True, text=True, check=True).stdout  # fmt: skip
    shown = {line.split()[-1] for line in archive.splitlines() if len(line.split()) == 3}
    assert shown == exported | {"tfrc_testbed_oracle", "tfrc_testbed_judged"}


def test_the_example_streams(tmp_path):
    root = tmp_path / "root"
    subprocess.run(["make", "-s", "-C", MAKE, "install", f"OUT={tmp_path}/out", f"PREFIX={root}"],
                   check=True, capture_output=True, timeout=600)  # fmt: skip
    source = Path(MAKE) / "examples" / "stream.c"
    assert len(source.read_text().splitlines()) <= 60
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", str(source),
                    f"-I{root}/include", f"-L{root}/lib", "-ltfrc", f"-Wl,-rpath,{root}/lib",
                    "-o", str(tmp_path / "stream")], check=True)  # fmt: skip
    with Receiver(tmp_path) as receiver:
        done = subprocess.run([tmp_path / "stream", "127.0.0.1", receiver.port],
                              capture_output=True, text=True, timeout=LIMIT_S)  # fmt: skip
        assert done.returncode == 0 and "bytes arrived" in done.stdout
        assert receiver.end()["bytes_received"] == 2_000_000


def test_the_manual_knows_every_function():
    header = (Path(MAKE) / "include" / "tfrc.h").read_text()
    page = (Path(MAKE) / "man" / "libtfrc.3").read_text().replace("\\-", "-")
    functions = set(re.findall(r"\b(tfrc_\w+)\(", header))
    members = set(re.findall(r"^\t\w[\w ]*?[ *](\w+)(?:\[\w+\])?;", header, re.M))
    assert len(functions) > 20 and len(members) > 40
    missing = {name for name in functions | members if not re.search(rf"\b{name}\b", page)}
    assert not missing


FIRST = struct.Struct(">BBHQQQQIIII")  # a data packet's header: docs/wire-formats.md


def forged_first(flags: int, connection: int = 1234) -> bytes:
    return FIRST.pack(0x21, flags, 0, connection, 0, 1, 0, 77, 0, 0, 0) + b"not from here"


def test_forged_first_packets_keep_nobody_out(tmp_path):
    """Data under a false address, also such as says that it is all, is held back and forgotten."""
    with Receiver(tmp_path) as receiver:
        with contextlib.ExitStack() as stack:
            for i in range(8):
                socket_ = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                for _ in range(3):
                    socket_.sendto(forged_first(i % 2), ("127.0.0.1", int(receiver.port)))
            done = send("--quiet", "127.0.0.1", receiver.port, input=b"honest")
        assert done.returncode == 0, done.stderr
        got = receiver.end()
    assert got["completed"] and got["bytes_received"] == 6
    assert receiver.data.read_bytes() == b"honest"


def forge(port: str, count: int) -> None:
    """First packets of as many connections, each from a port of its own."""
    for i in range(count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
            forger.sendto(forged_first(i % 2, 5000 + i), ("127.0.0.1", int(port)))


def test_forged_first_packets_between_two_of_an_honest_sender_keep_it_out_no_more(tmp_path):
    """However many come in a round trip: who repeats a challenge is known by it."""
    with Receiver(tmp_path) as receiver:
        honest = Peer(receiver.port, 1)
        honest.send(b"one ")
        honest.hear()
        forge(receiver.port, 64)
        honest.send(b"two", flags=1)
        assert honest.hear()[1] == 1  # the end has come, and no word of "not known"
        got = receiver.end()
    assert got["completed"] and got["bytes_received"] == 7 and got["packets_received"] == 2
    assert receiver.data.read_bytes() == b"one two"


def test_megabytes_of_forged_first_packets_cost_no_more_than_what_waited(tmp_path):
    """There is no room for all: what came first is forgotten, and counts as lost."""
    with Receiver(tmp_path) as receiver:
        honest, forger = Peer(receiver.port, 1), Peer(receiver.port, 1000)
        honest.send(b"one ")
        honest.hear()
        for _ in range(90):
            forger.send(bytes(60_000))
            forger.hear()  # so that none is dropped on its way
            forger.connection, forger.seq, forger.challenge = forger.connection + 1, 0, 0
        for part in (b"two ", b"three ", b"four ", b"five"):
            honest.send(part, flags=part == b"five")
            heard = honest.hear()
        assert heard[1] == 1
        got = receiver.end()
    assert got["completed"] and got["lost_congestion"] == 1
    assert receiver.data.read_bytes() == b"two three four five"


def test_who_has_sent_much_before_an_answer_came_is_served(tmp_path):
    data = [bytes([i]) * 65455 for i in range(5)]
    with Receiver(tmp_path) as receiver:
        peer = Peer(receiver.port, 1)
        for part in data:
            challenge, peer.challenge = peer.challenge, 0
            peer.send(part)
            peer.challenge = challenge
            peer.hear()
        peer.send(b"", flags=1)
        assert peer.hear()[1] == 1
        assert receiver.end()["completed"]
    assert receiver.data.read_bytes() == b"".join(data)


def test_a_challenge_is_for_one_address_and_one_connection(tmp_path):
    with Receiver(tmp_path) as receiver:
        honest, thief = Peer(receiver.port, 1), Peer(receiver.port, 1)
        honest.send(b"")
        honest.hear()
        thief.challenge, thief.seq = honest.challenge, 1
        thief.send(b"stolen")
        assert thief.hear()[1] == 4
        elsewhere = honest.connection
        honest.connection = 2
        honest.send(b"of another")
        assert honest.hear()[1] == 4
        honest.connection = elsewhere
        honest.send(b"mine", flags=1)
        assert honest.hear()[1] == 1
        receiver.end()
    assert receiver.data.read_bytes() == b"mine"


def test_a_late_packet_of_a_connection_that_ended_begins_none(tmp_path):
    """It has the challenge, which is the same for good."""
    port, data = free_port(), tmp_path / "data"
    command = [RECV, "--quiet", "--timeout", "0.5", "--output", str(data), "--ready-fd", "1", port]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as receiver:
        receiver.stdout.readline()
        peer = Peer(port, 1)
        for part in (b"one ", b"two"):
            peer.send(part)
            challenge = peer.challenge
            peer.hear()
        assert "has sent nothing for 0.5 s" in receiver.stderr.readline()
        peer.challenge = challenge
        peer.send(b"late")
        assert peer.hear()[1] == 4
        receiver.terminate()
    assert data.read_bytes() == b"one two"


LATER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* From when there is a file LATER, it is 31 s later. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int error = real(clock, now);

	if (clock == CLOCK_MONOTONIC && !access(getenv("LATER"), F_OK))
		now->tv_sec += 31;
	return error;
}
"""


class Peer:
    """A sender of a few packets, that answers challenges when it is told to."""

    def __init__(self, port: str, connection: int):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", int(port)))
        self.socket.settimeout(LIMIT_S)
        self.connection, self.seq, self.challenge = connection, 0, 0

    def send(self, data: bytes, flags: int = 0):
        header = FIRST.pack(0x21, flags, 0, self.connection, self.seq, 1 + self.seq, 0, 77, 0, 0,
                            self.challenge)  # fmt: skip
        self.socket.send(header + data)
        self.seq += 1

    def hear(self) -> bytes:
        heard = self.socket.recv(2000)
        self.challenge = struct.unpack_from(">I", heard, 72)[0] or self.challenge
        return heard


def test_who_was_silent_and_goes_on_is_not_replaced(tmp_path):
    (tmp_path / "shim.c").write_text(LATER)
    shim, later, data = str(tmp_path / "shim.so"), tmp_path / "later", tmp_path / "data"
    build = ["cc", "-shared", "-fPIC", str(tmp_path / "shim.c"), "-o", shim, "-ldl"]
    subprocess.run(build, check=True)
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env = os.environ | {"LD_PRELOAD": shim, "LATER": str(later), "ASAN_OPTIONS": asan}
    port = free_port()
    command = [RECV, "--quiet", "--output", str(data), "--ready-fd", "1", port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as receiver:
        try:
            receiver.stdout.readline()
            first, other = Peer(port, 1), Peer(port, 2)
            for part in (b"one ", b"two "):
                first.send(part)
                first.hear()
            later.touch()
            other.send(b"not ")
            other.hear()
            first.send(b"three ")
            first.hear()
            other.send(b"me ")
            first.send(b"four", flags=1)
            first.hear()
        finally:
            receiver.terminate()
    assert data.read_bytes() == b"one two three four"


NO_WAY_BACK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* While there is a file NO_WAY_BACK nothing is sent: the error is the number in it. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
	FILE *file = fopen(getenv("NO_WAY_BACK"), "re");
	int error = 0;

	if (!file)
		return real(fd, msg, flags);
	if (fscanf(file, "%d", &error) != 1)
		abort();
	fclose(file);
	file = fopen(getenv("TRIED"), "ae");
	fputc('x', file);
	fclose(file);
	errno = error;
	return -1;
}
"""


class Unheard:
    """A tfrc-recv whose feedback does not get out while there is a file NO_WAY."""

    def __init__(self, tmp_path: Path):
        (tmp_path / "shim.c").write_text(NO_WAY_BACK)
        shim = str(tmp_path / "shim.so")
        build = ["cc", "-shared", "-fPIC", str(tmp_path / "shim.c"), "-o", shim, "-ldl"]
        subprocess.run(build, check=True)
        self.no_way, self.tried, self.port = tmp_path / "no-way", tmp_path / "tried", free_port()
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        env = os.environ | {"LD_PRELOAD": shim, "NO_WAY_BACK": str(self.no_way),
                            "TRIED": str(self.tried), "ASAN_OPTIONS": asan}  # fmt: skip
        command = [RECV, "--quiet", "--discard", "--ready-fd", "1", self.port]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )
        assert self.process.stdout.readline() == "ready\n"

    def close_way(self, error: int):
        later = self.no_way.with_suffix(".new")
        later.write_text(str(error))
        later.rename(self.no_way)

    def wait_until_tried(self, times: int, send):
        end = time.monotonic() + LIMIT_S
        while not (self.tried.exists() and len(self.tried.read_text()) >= times):
            assert time.monotonic() < end
            send()
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("error", [errno.ENETUNREACH, errno.EPERM])
def test_feedback_that_cannot_be_sent_is_said_once_and_so_is_that_it_can(tmp_path, error):
    with Unheard(tmp_path) as receiver:
        peer = Peer(receiver.port, 1)
        for _ in range(2):
            peer.send(b"x")
            peer.hear()
        port = peer.socket.getsockname()[1]
        receiver.close_way(error)
        receiver.wait_until_tried(5, lambda: peer.send(b"x"))
        receiver.no_way.unlink()
        said = receiver.process.stderr.readline()
        assert said == (
            f"tfrc-recv: cannot send feedback to 127.0.0.1 port {port}: {os.strerror(error)}\n"
        )
        over = threading.Event()
        more = threading.Thread(target=send_on, args=(peer, over))
        more.start()
        try:
            said = receiver.process.stderr.readline()
        finally:
            over.set()
            more.join()
        assert said == f"tfrc-recv: feedback to 127.0.0.1 port {port} is sent again\n"
        receiver.process.terminate()
        assert receiver.process.communicate(timeout=LIMIT_S)[1] == ""


def send_on(peer: Peer, over: threading.Event):
    while not over.wait(0.02):
        peer.send(b"x")


def test_newcomers_that_cannot_be_answered_are_one_line(tmp_path):
    """Anyone can make up addresses to which there is no way back."""
    with Unheard(tmp_path) as receiver:
        receiver.close_way(errno.ENETUNREACH)
        peers = [Peer(receiver.port, number) for number in range(1, 9)]
        receiver.wait_until_tried(20, lambda: [peer.send(b"x") for peer in peers])
        receiver.process.terminate()
        _, said = receiver.process.communicate(timeout=LIMIT_S)
    port = peers[0].socket.getsockname()[1]
    assert said == (
        f"tfrc-recv: cannot send feedback to 127.0.0.1 port {port}: Network is unreachable\n"
    )


def test_one_port_may_stream_twice(tmp_path):
    port, local = free_port(), free_port()
    command = [RECV, "--quiet", "--output", str(tmp_path / "data"), "--ready-fd", "1", port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        receiver.stdout.readline()
        for part in (b"one ", b"two"):
            done = send("--quiet", "--source-port", local, "127.0.0.1", port, input=part)
            assert done.returncode == 0, done.stderr
        receiver.terminate()
    assert (tmp_path / "data").read_bytes() == b"one two"


def test_a_restarted_receiver_says_that_it_knows_nothing(tmp_path):
    with Receiver(tmp_path) as receiver, subprocess.Popen(
        [SEND, "--endless", "--max-rate", "1M", "--interval", ".1", "127.0.0.1", receiver.port],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        receiver.process.kill()
        receiver.process.wait()
        command = [RECV, "--discard", "--quiet", "--ready-fd", "1", receiver.port]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            second.stdout.readline()
            process.send_signal(signal.SIGCONT)
            _, said = process.communicate(timeout=LIMIT_S)
            second.terminate()
    assert process.returncode == 1
    assert "was it restarted?" in said or "Connection refused" in said
