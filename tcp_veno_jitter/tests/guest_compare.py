# SPDX-License-Identifier: GPL-2.0-only
"""Check what cc-compare claims on real paths, inside the lab kernel: prints TAP.

test_compare.py starts it. With arguments it measures instead: guest_compare.py equal TRIES says how
often two names of one algorithm are told apart (changing TRIES: while the rate falls), four TRIES
what is said of four (iperf3 TRIES: with iperf3). Standard library only. All times are virtual.

iperf3 3.12 spins on select() for some round trips before and after a test, which in virtual time
costs many seconds: so where packets are lost or much is transferred, a server of our own sends.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from guest_net import ADDRESSES, PORT, set_algorithm
from guest_net import Path as Network

from labtest.claims import Claims, check_log
from labtest.guest import NOBODY, enter_namespace, inside, run_cmd

COMPARE = Path(__file__).resolve().parents[1] / "tools" / "cc-compare"
SYSCTL = "/proc/sys/net/ipv4/tcp_congestion_control"
LOSSY = ("loss", "1%")
SENT_BYTES = 2_000_000
ASK = f"exec 3<>/dev/tcp/{ADDRESSES['a']}/{PORT} && echo {{algorithm}} >&3 && cat <&3 >/dev/null"
COMMAND = ("--command", f'bash -c "{ASK}"', "--gap", "1")

claims = Claims()
claim = claims.add


@contextlib.contextmanager
def served(where: str = "a", user: int = 0):
    """Within the block, a or b has an iperf3 server, which USER runs."""
    server = subprocess.Popen(
        ["iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: enter_namespace(where, user),
    )  # fmt: skip
    time.sleep(1)
    try:
        yield
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def sender(always: str = "", sent_bytes: int = SENT_BYTES):
    """Within the block, whoever connects to a and names an algorithm is sent SENT_BYTES with it, or
    with the one that it ALWAYS is."""
    with inside("a"), socket.create_server((ADDRESSES["a"], PORT)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as sock:
                        asked = sock.recv(100).decode().strip()
                        set_algorithm(sock, always or asked)
                        sock.sendall(bytes(sent_bytes))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def start(*arguments: str, to: str = "a", user: int = 0) -> subprocess.Popen:
    """Start cc-compare in one of a and b, TO the other, as USER."""
    here = "ab".replace(to, "")
    return subprocess.Popen(
        [COMPARE, ADDRESSES[to], *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: enter_namespace(here, user), cwd="/tmp",
    )  # fmt: skip


def compare(*arguments: str, status: int = 0, to: str = "a", user: int = 0) -> tuple[str, dict]:
    """Return what cc-compare said in all and, if it wrote any, its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        process = start("--out", f"{folder}/run", *arguments, to=to, user=user)
        output, complaints = process.communicate()
        assert process.returncode == status, (process.returncode, output, complaints)
        written = Path(folder, "run.json")
        document = json.loads(written.read_text()) if written.exists() else {}
    return output + complaints, document


def kinds(document: dict) -> dict[str, str]:
    return {one["algorithm"]: one["kind"] for one in document["verdicts"]}


NAMES = "cubic,reno,bbr,veno_jitter"


def judge_four(seed: int) -> dict:
    """Return what is said of four algorithms on a path that loses 1 %."""
    with Network(rate_mbps=10, delay_ms=50, queue_pkts=100) as network, sender():
        network.shape(*LOSSY)
        return compare("-a", NAMES, *COMMAND, "-n", "24", "--seed", str(seed))[1]


@claim("with 1 % loss it finds bbr and veno_jitter better than cubic, and reno not better")
def _right_about_four():
    document = judge_four(seed=1)
    found = {one["algorithm"]: one for one in document["verdicts"]}
    for name in ("bbr", "veno_jitter"):
        assert found[name]["kind"] == "more", found[name]
        assert found[name]["words"].startswith(f"{name} was "), found[name]["words"]
    assert found["reno"]["kind"] in ("less", "same", "cannot tell"), found["reno"]
    clean = {name for name in ("bbr", "veno_jitter") if not found[name]["harm"]}
    (advice,) = document["advice"]  # whether a start loses pings enough for harm is chance here
    assert ("Worth switching" if clean else "at a price that others pay") in advice, advice
    assert {name for name in found if f"{name} (" in advice} == clean, (advice, found)
    assert all(run["ping"]["sent"] > 5 and not run["failure"] for run in document["runs"])
    assert 100 <= document["idle_rtt_ms"] < 104
    with open(SYSCTL) as default:
        assert document["machine_default"] == default.read().strip()


def tell_equals_apart(seed: int, change_s: float | None = None, rounds: int = 12) -> str:
    """Return what is said of two names of one algorithm; the rate falls to a fifth after
    CHANGE_S."""
    with Network(rate_mbps=5, delay_ms=50, queue_pkts=100) as network, sender("reno", 400_000):
        network.shape(*LOSSY)
        timer = threading.Timer(change_s or 0, _slow_down, [network])
        if change_s:
            timer.start()
        _, document = compare(
            "-a", "cubic,reno", *COMMAND, "-n", str(rounds), "--no-ping",
            "--seed", str(seed),
        )  # fmt: skip
        if change_s:
            timer.join()
    (kind,) = kinds(document).values()
    return kind


def _slow_down(network: Network) -> None:
    network.rate_mbps = 1
    network.shape(*LOSSY)


@claim("two names of one algorithm are not told apart")
def _no_difference():
    assert tell_equals_apart(1) in ("cannot tell", "same")


@claim("a rate that falls to a fifth in the middle does not fool it")
def _change():
    assert tell_equals_apart(2, change_s=15) in ("cannot tell", "same")


@claim("with --both each direction has its own answer, and it says whose kernel sends")
def _both():
    with Network(rate_mbps=10, delay_ms=1, queue_pkts=20) as network, served("b"):
        network.slow_way_back(2, 20)
        words = ("-a", "cubic,bbr", "--both", "-t", "1", "--gap", "0", "-n", "2")
        said, document = compare(*words, to="b")
    assert {one["direction"] for one in document["verdicts"]} == {"forward", "reverse"}
    assert "it is its kernel that has to have" in said and "too few for an answer" in said
    for run in document["runs"]:
        forward, told = run["direction"] == "forward", run["transfer"]
        assert (5 if forward else 1) < told["goodput_mbps"] < (10 if forward else 2), run
        assert forward == (told["rtt_ms"] is not None) and run["ping"]["rtt_ms"] > 2, run


@claim("Ctrl-C keeps what there is, and ends what it has started")
def _interrupted():
    with Network(rate_mbps=2, delay_ms=20) as network, served():
        network.shape(*LOSSY)
        with tempfile.TemporaryDirectory() as folder:
            process = start("-R", "--out", f"{folder}/run", "-a", "cubic,reno", "-t", "5")
            time.sleep(40)
            process.send_signal(signal.SIGINT)
            output, complaints = process.communicate()
            document = json.loads(Path(folder, "run.json").read_text())
        left = run_cmd("ps", "-eo", "args").splitlines()
    assert process.returncode == 130 and "this is what there is" in complaints
    assert len(document["runs"]) >= 3 and "too few for an answer" in output
    assert not [line for line in left if line.startswith(("iperf3 -J", "ping"))], left


@claim("whom nobody may choose is refused with the sysctl that helps; nothing is changed")
def _not_allowed():
    with open(SYSCTL) as default, Network() as _network, served():
        before = default.read()
        # iperf3 is not even asked
        said, document = compare("-R", "-a", "cubic,veno_jitter", status=2, user=NOBODY)
        default.seek(0)
        assert default.read() == before
    assert "net.ipv4.tcp_allowed_congestion_control=" in said and not document, said


@claim("with -R an algorithm that the other end refuses is one line that says so")
def _refused_there():
    with Network() as _network, served(user=NOBODY):
        said, document = compare("-R", "-a", "cubic,veno_jitter", "--no-ping", status=2)
    assert "the other end sends, and its kernel refuses veno_jitter" in said, said
    assert said.count("\n") == 2 and not document, said


@claim("a server that is busy is one line with two ways out")
def _busy():
    with Network(rate_mbps=1) as _network, served():
        other = subprocess.Popen(
            ["iperf3", "-R", "-c", ADDRESSES["a"], "-t", "100"], stdout=subprocess.DEVNULL,
            preexec_fn=lambda: enter_namespace("b"),
        )  # fmt: skip
        time.sleep(2)
        said, document = compare("-R", "-a", "cubic,reno", "--no-ping", status=2)
        other.kill()
        other.wait()
    assert "is busy with somebody else's test" in said and "--port" in said and not document


claim("the kernel log holds no complaint at the end, and no memory was lost")(check_log)


def lossy_iperf3() -> str:
    """Return what is said of four algorithms with iperf3 and 1 % loss, as long as it takes."""
    with Network(rate_mbps=20, delay_ms=10, queue_pkts=100) as network, served():
        network.shape(*LOSSY)
        return compare("-R", "-a", NAMES, "-t", "5", "--seed", "1")[0]


def measure(what: str, tries: int) -> None:
    for seed in range(tries):
        began = time.monotonic()
        if what == "iperf3":
            print(lossy_iperf3(), flush=True)
            continue
        if what == "four":
            for one in judge_four(1 + seed)["verdicts"]:
                print(f"four {seed + 1}: {one['words']}", flush=True)
            continue
        change_s = 40.0 if what == "changing" else None
        kind = tell_equals_apart(100 + seed, change_s, 30)
        print(f"{what} {seed + 1}: {kind}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[2:]:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        claims.settle(" ".join(sys.argv[1:]))
