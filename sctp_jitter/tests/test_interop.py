# SPDX-License-Identifier: GPL-2.0-only
"""The patched SCTP with all of its features on gets along with what knows none of them: usrsctp,
the unpatched module, lksctp-tools and iperf3. sctp_interop.py runs them in the lab, one boot each.

An association of the patched and the unpatched module: matrix_peers.py, two virtual machines.
"""

import json
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TESTS = Path(__file__).parent
OURS, PEER = "10.9.0.1", "10.9.0.2"
TIMESTAMP, ERROR, ABORT = 190, 9, 6
BYTES = 720_000
HUNG_S = 900  # of wall time, with room for building the kernel: only ends what hangs

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


@cache
def in_lab(*what: str) -> dict:
    """Return what sctp_interop.py tells."""
    script = f"/usr/bin/python3 {TESTS.relative_to(PROJECT)}/sctp_interop.py"
    done = subprocess.run(
        [PROJECT / "testbed" / "run", "--exec", " ".join([script, *what])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HUNG_S,
        errors="replace", cwd=PROJECT,
    )  # fmt: skip
    told = re.findall(r"^result: (.*)$", done.stdout, re.MULTILINE)
    assert len(told) == 1, done.stdout[-3000:]
    return json.loads(told[0])


@pytest.fixture(scope="module")
def usrsctp() -> dict:
    """Associations with usrsctp, in both directions."""
    out = PROJECT / "build" / "tests" / "sctp_jitter"
    out.mkdir(parents=True, exist_ok=True)
    if not Path("/usr/include/usrsctp.h").exists() or not shutil.which("cc"):
        pytest.skip("no usrsctp: apt-get install libusrsctp-dev")
    program = out / "usrsctp_peer"
    subprocess.run(
        ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program,
         TESTS / "usrsctp_peer.c", "-lusrsctp", "-lpthread"],
        check=True,
    )  # fmt: skip
    return in_lab("usrsctp", str(program))


def chunks(result: dict) -> set[int]:
    return {kind for kinds in result["chunks"].values() for kind in kinds}


@pytest.mark.parametrize("direction", ["to", "from"])
def test_usrsctp_gets_all_data(usrsctp, direction):
    """The association comes up, every byte arrives, and it ends without ERROR or ABORT."""
    result = usrsctp[direction]
    assert result["bytes_received"] == BYTES
    assert not chunks(result) & {ERROR, ABORT}
    said = "connected\nsent\n"
    assert result.get("completed", True) and result.get("said", said) == said


def test_usrsctp_does_not_agree_to_time_stamps(usrsctp):
    """We offer TIMESTAMP chunks, usrsctp lists other extensions; so none is sent, none is asked for
    when usrsctp begins."""
    assert TIMESTAMP in usrsctp["to"]["extensions"][OURS]
    assert TIMESTAMP not in usrsctp["to"]["extensions"][PEER] != []
    assert TIMESTAMP not in usrsctp["from"]["extensions"][OURS]
    assert TIMESTAMP not in chunks(usrsctp["from"])
    # the one that there is was not sent by the kernel: see below
    assert usrsctp["to"]["algorithm"] == "jsctp_abe"


def test_usrsctp_skips_an_unknown_chunk(usrsctp):
    """A TIMESTAMP chunk all the same: the HEARTBEAT behind it is answered, and nothing else."""
    assert usrsctp["to"]["unknown_chunk_skipped"]
    assert not chunks(usrsctp["to"]) & {ERROR, ABORT}


def test_unpatched_linux_skips_an_unknown_chunk():
    """The same at the kernel's own module, and the association goes on to its end."""
    result = in_lab("stock")
    assert result["algorithm"] == "sctp" and result["completed"]
    assert result["bytes_received"] == BYTES
    assert result["unknown_chunk_skipped"] and TIMESTAMP in result["chunks"][OURS]
    assert not chunks(result) & {ERROR, ABORT} and TIMESTAMP not in result["chunks"][PEER]


@pytest.fixture(scope="module")
def programs() -> dict:
    missing = [name for name in ("iperf3", "sctp_test", "checksctp") if not shutil.which(name)]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: apt-get install iperf3 lksctp-tools")
    return in_lab("programs")


def test_unmodified_iperf3(programs):
    """`iperf3 --sctp` sends its mebibyte and hears from the other end that it came."""
    sums = programs["iperf3"]
    assert sums["sum_sent"]["bytes"] == 1 << 20
    assert 0.8 * (1 << 20) <= sums["sum_received"]["bytes"] <= 1 << 20
    assert TIMESTAMP in programs["chunks"][OURS] and TIMESTAMP in programs["chunks"][PEER]


def test_iperf3_with_two_homes(programs):
    """-X binds two addresses: with -4, as it wants addresses of IPv6 otherwise."""
    assert programs["iperf3_homes"]["sum_sent"]["bytes"] == 1 << 20


def test_unmodified_lksctp_tools(programs):
    """checksctp finds SCTP; sctp_test's messages, of 1 to 32768 bytes, come in their order."""
    assert programs["checksctp"] == "SCTP supported\n"
    told = programs["sctp_test"]
    assert told["status"] == 0, told["sent"]
    sent = re.findall(r"sendmsg\(sk=\d+, assoc=\d+\)\s+(\d+) bytes", told["sent"])
    came = re.findall(r"Data (\d+) bytes", told["said"])
    assert sent and came == sent
    assert "SHUTDOWN_COMPLETE" in told["said"]


def test_state_of_each_path():
    """/proc/net/sctp/cong: one path at each end while a flow runs, with what is true of it: ports,
    algorithm, TIMESTAMP chunks, a round trip of 10 ms and more, 8 Mb/s and less; none after it."""
    told = in_lab("state")
    assert told["flow"]["completed"] and not told["left"]
    running = [(ours, peer) for ours, peer in told["looks"] if ours and peer]
    assert len(running) >= 10 and all(len(ours) == len(peer) == 1 for ours, peer in running)
    ours, peer = ([both[end][0] for both in running] for end in (0, 1))
    assert {path["ADDR"] for path in ours} == {PEER} and {path["ADDR"] for path in peer} == {OURS}
    assert {(path["RPORT"], path["CONG"], path["TIMESTAMP"]) for path in ours} == {
        ("5001", "jsctp_abe", str(TIMESTAMP))
    }
    assert {(path["LPORT"], path["CONG"]) for path in peer} == {("5001", "rfc9260")}
    assert {path["LPORT"] for path in ours} == {path["RPORT"] for path in peer}
    assert all(int(path["CWND"]) >= 1452 for path in ours)
    assert len({path["CWND"] for path in ours}) > 1, "the window never changed"
    last = {name: int(value) for name, value in ours[-1].items() if name.islower()}
    assert 10_000 <= last["min_rtt_us"] <= 20_000 and last["srtt_us"] >= last["min_rtt_us"]
    assert last["sampled"] == 1 and abs(last["sjr_ppm"]) <= 1_000_000
    assert 200_000 < last["bw_bytes_per_s"] <= 1_050_000
    assert all("bw_bytes_per_s" not in path for path in peer)
