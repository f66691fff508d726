# SPDX-License-Identifier: GPL-2.0-only
"""tfrc-send and tfrc-recv on loopback, as a user runs them. TFRC_BIN: the folder they are in.

Nothing here judges a rate: that is what simulated time and the lab are for.
"""

import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

BIN = Path(os.environ.get("TFRC_BIN", Path(__file__).parents[2] / "build" / "tfrc"))
SEND, RECV = str(BIN / "tfrc-send"), str(BIN / "tfrc-recv")
MAKE = os.environ.get("TFRC_MAKE", str(Path(__file__).parents[1]))
LIMIT_S = 120  # only so that a hang ends


def free_port(family=socket.AF_INET) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


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


def test_the_rate_for_an_encoder(tmp_path):
    with Receiver(tmp_path) as receiver:
        rate = tmp_path / "rate"
        done = send("--cbr", "1M", "--duration", "0.5", "--interval", "0.1", "--rate-file",
                    str(rate), "127.0.0.1", receiver.port)  # fmt: skip
        assert done.returncode == 0, done.stderr
        receiver.end()
    assert int(rate.read_text()) > 0


def test_nobody_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        done = send("--endless", "--bytes", "1000", "--quiet", "127.0.0.1",
                    str(silent.getsockname()[1]))  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "tfrc-send: the receiver never answered\n"


def test_rubbish_does_no_harm(tmp_path):
    noise = random.Random(3)
    with Receiver(tmp_path) as receiver:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(200):
                packet = b"\x11\x04\0\0" + noise.randbytes(noise.randrange(100))
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
        (RECV,),
        (RECV, "--output", "x", "--discard", "1"),
        (RECV, "--oracle", "nonsense", "1"),
    ],
    ids=lambda arguments: " ".join(Path(a).name for a in arguments),
)
def test_bad_options_are_one_line_and_2(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("tfrc-")


@pytest.mark.parametrize("tool", [SEND, RECV])
def test_help_is_all_in_the_man_page(tool):
    said = subprocess.run([tool, "--help"], capture_output=True, text=True).stdout
    page = (Path(MAKE) / "man" / f"{Path(tool).name}.1").read_text().replace("\\-", "-")
    options = {word for word in said.split() if word.startswith("--")}
    assert options and not {option for option in options if option not in page}


def test_an_installed_library_is_found(tmp_path):
    install = ["make", "-s", "-C", MAKE, "install", f"OUT={tmp_path}/out", "PREFIX=/usr",
               f"DESTDIR={tmp_path}/root"]  # fmt: skip
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
    assert "libtfrc.so.1" in needed
    for page in ("tfrc-send.1", "tfrc-recv.1"):
        assert (root / "share" / "man" / "man1" / page).is_file()
    assert "Version: 1" in (root / "lib" / "pkgconfig" / "libtfrc.pc").read_text()


def test_exported_names_are_the_headers(tmp_path):
    build = ["make", "-s", "-C", MAKE, "lib", f"OUT={tmp_path}"]
    subprocess.run(build, check=True, capture_output=True, timeout=600)
    library = next(tmp_path.glob("libtfrc.so.*"))
    names = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True,
                           text=True, check=True).stdout.split()  # fmt: skip
    exported = {name for name in names if name.startswith("tfrc_")}
    header = (Path(MAKE) / "include" / "tfrc.h").read_text()
    assert exported and all(f"{name}(" in header for name in exported)
    assert not [n for n in names if len(n) > 2 and not n.startswith("tfrc_") and n[0] not in "0_"]
