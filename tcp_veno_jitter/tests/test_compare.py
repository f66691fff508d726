# SPDX-License-Identifier: GPL-2.0-only
"""cc-compare says what is so, and no more: on a thousand simulated paths here, and on real ones in
the lab (guest_compare.py)."""

import json
import math
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import guest_compare
import pytest

from labtest.boot import assert_claimed, run_scripts, verdict_count

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
from cctools import Complaint, compare, pinging, rounds, sequence, transfers, verdict  # noqa: E402
from cctools.rounds import Plan, run_rounds  # noqa: E402
from cctools.transfers import Failed, Refused, Transfer  # noqa: E402

COMPARE = TOOLS / "cc-compare"
needs_iperf3 = pytest.mark.skipif(not shutil.which("iperf3"), reason="no iperf3")
PATHS = 1000
ALPHA = 0.01
BY = verdict.Judge(baseline="a", alpha=ALPHA, same_within=0.05)


def plan(names: str = "ab", most: int = 30, seed: int = 0) -> Plan:
    return Plan(tuple(names), (transfers.FORWARD,), 10, 2, most, None, "", "", seed)


class Path_:
    """A path whose rate wanders, by noise that hangs together from slot to slot, and changes by a
    factor of 0.2 to 5 somewhere in the middle. EFFECT: algorithm -> times what `a` carries."""

    def __init__(self, seed: int, effect: dict[str, float], scatter: float = 0.3):
        self.chance = random.Random(seed)
        self.effect, self.scatter = effect, scatter
        self.wander = self.chance.gauss(0, scatter)
        self.slots, self.change_at = 0, self.chance.randrange(4, 50)
        self.change = self.chance.choice((0.2, 0.5, 2, 5))

    def describe(self) -> str:
        return "simulated"

    def transfer(self, algorithm: str, _direction: str, seconds: float) -> Transfer:
        self.slots += 1
        keep = 0.9
        step = self.chance.gauss(0, self.scatter * math.sqrt(1 - keep * keep))
        self.wander = keep * self.wander + step
        rate = 10 * math.exp(self.wander + self.chance.gauss(0, self.scatter / 3))
        rate *= self.effect.get(algorithm, 1) * (self.change if self.slots > self.change_at else 1)
        return Transfer(speed=rate, seconds=seconds, goodput_mbps=rate)


def compared(seed: int, effect: dict[str, float], by: verdict.Judge = BY, **options):
    """Return the runs of a comparison on one path, as cc-compare makes them."""
    names = "".join(["a", *effect]) if effect else "ab"
    what = plan(names, seed=seed, **options)
    path = Path_(seed, effect)
    runs = run_rounds(
        path, what, lambda done: verdict.unsettled(done, what, by), sleep=lambda _s: None
    )
    return list(runs), what


def test_no_difference_is_seldom_taken_for_one():
    """Stopping as soon as it looks certain does not make more than one in a hundred false. The
    same paths, looked at in the same way with a normal interval, do."""
    false = naive = 0
    for seed in range(PATHS):
        runs, what = compared(seed, {})
        found = verdict.judge(runs, what, BY)
        false += found[0].kind in (verdict.MORE, verdict.LESS)
        ratios = rounds.log_ratios(runs, "forward", "b", "a", rounds.speed)
        naive += any(
            abs(fmean(ratios[:n])) > 2.58 * stdev(ratios[:n]) / math.sqrt(n)
            for n in range(5, len(ratios) + 1)
        )
    assert false <= 1.5 * ALPHA * PATHS
    assert naive > 5 * ALPHA * PATHS


def test_many_algorithms_share_the_chance_of_an_error():
    false = 0
    for seed in range(PATHS // 2):
        runs, what = compared(seed, dict.fromkeys("bcd", 1.0), most=20)
        false += any(one.kind in "more less" for one in verdict.judge(runs, what, BY))
    assert false <= 1.5 * ALPHA * PATHS / 2


@pytest.mark.parametrize(
    ("times", "kind", "most_rounds"), [(1.8, verdict.MORE, 28), (0.3, verdict.LESS, 15)]
)
def test_a_difference_is_found_and_its_interval_holds_the_truth(times, kind, most_rounds):
    """However the path changes meanwhile; soon where it is large."""
    right = covered = slots = 0
    paths = PATHS // 5
    for seed in range(paths):
        runs, what = compared(seed, {"b": times})
        (one,) = verdict.judge(runs, what, BY)
        right += one.kind == kind
        covered += one.speed.low <= times <= one.speed.high
        slots += len(runs)
    assert right >= 0.98 * paths and covered >= (1 - 1.5 * ALPHA) * paths
    assert slots / paths / 2 <= most_rounds


def test_equal_algorithms_on_a_quiet_path_are_called_equal():
    """Where nothing scatters a small number of rounds is enough to say that nothing differs."""
    what = plan()
    path = Path_(1, {}, scatter=0.01)
    path.change = 1
    runs = list(
        run_rounds(path, what, lambda done: verdict.unsettled(done, what, BY), lambda _s: None)
    )
    (one,) = verdict.judge(runs, what, BY)
    assert one.kind == verdict.SAME and one.settled and len(runs) < 30
    assert one.words.startswith("cannot tell b from a: any difference is below")


def test_order_is_balanced_and_random():
    """Each round has every algorithm once, and each is first as often as the others."""
    what = plan("abc")
    first = dict.fromkeys("abc", 0)
    for number in range(3000):
        order = [algorithm for _, algorithm in what.order(number, what.slots())]
        assert sorted(order) == list("abc")
        first[order[0]] += 1
    assert all(abs(count - 1000) < 100 for count in first.values())
    every = what.slots()
    assert what.order(7, every) == plan("abc").order(7, every)
    assert what.order(7, every) != plan("abc", seed=1).order(7, every)


def test_what_is_settled_is_left_out():
    """It keeps its verdict; the baseline goes on beside what has none, and is compared in the
    rounds that both were in."""
    runs, what = compared(1, {"b": 8.0, "c": 1.0}, most=25)
    count = {name: sum(run.algorithm == name for run in runs) for name in "abc"}
    assert count["a"] == count["c"] == 25 and 10 <= count["b"] < 20
    found = {one.algorithm: one for one in verdict.judge(runs, what, BY)}
    assert found["b"].kind == verdict.MORE and found["b"].speed.n == count["b"]
    assert found["c"].kind == verdict.CANNOT_TELL


# --- the interval ------------------------------------------------------------


def test_an_interval_needs_rounds():
    """At 99 % no eight rounds can show anything; ten of one sign do."""
    assert sequence.interval([1.0] * 8, 0.01).low == 0
    found = sequence.interval([math.log(2) + i / 100 for i in range(10)], 0.01)
    assert found.low == pytest.approx(2) and found.above and not found.below


def test_what_was_certain_stays_so():
    """Unless the ratio itself has changed: then all rounds together are asked."""
    gain = [1.0 + i / 100 for i in range(12)]
    before = sequence.interval(gain, 0.01)
    after = sequence.interval([*gain, -0.1, -0.2], 0.01)
    assert before.above and after.low == before.low and after.n == 14
    turned = sequence.interval([*gain, *([-value for value in gain] * 5)], 0.01)
    assert turned.below and turned.low <= turned.ratio <= turned.high


def test_capital_is_a_fair_game():
    """What is to be expected of the next sign leaves it as it is."""
    for above, below in ((0, 0), (3, 1), (40, 2), (5, 900)):
        now = math.exp(sequence.log_capital(above, below))
        one = math.exp(sequence.log_capital(above + 1, below))
        other = math.exp(sequence.log_capital(above, below + 1))
        assert (one + other) / 2 == pytest.approx(now)


def test_nothing_carried_is_a_figure():
    """An algorithm that starves counts as worse, not as missing."""
    assert sequence.log_ratio(0, 5) == -math.inf and sequence.log_ratio(0, 0) == 0
    found = sequence.interval([-math.inf] * 12, 0.01)
    assert found.below and found.high == 0
    assert sequence.interval([], 0.01).n == 0


# --- words -------------------------------------------------------------------


def test_words_say_how_much_and_how_sure():
    runs, what = compared(3, {"b": 4.0})
    (one,) = verdict.judge(runs, what, BY)
    said = re.fullmatch(r"b carried ([\d.]+) times a's \[([\d.]+), ([\d.]+)\]\.", one.words)
    assert said and float(said[2]) <= 4 <= float(said[3])
    assert verdict.advice([one], BY) == [f"Worth switching on this path: b ({said[1]} times a's)."]


def test_harm_is_told_beside_the_gain():
    """More carried, but pings lost, a longer queue, and packets sent again."""
    gain, runs = {"a": 1.0, "b": 2.0}, []
    for number in range(14):
        for slot, name in enumerate("ab"):
            bad = name == "b"
            carried = Transfer(gain[name], 10, gain[name], 90.0 if bad else 30.0, 9, 8.0 * bad)
            ping = pinging.Ping(90.0, 50, 5 * bad)
            runs.append(transfers.Run(number, slot, "forward", name, 0.0, carried, ping))
    (one,) = verdict.judge(runs, plan(), BY)
    assert one.kind == verdict.MORE and len(one.harm) == 3
    assert "RTT under load 90.0 against 30.0 ms" in one.words
    assert "a price that others pay" in verdict.advice([one], BY)[0]


def test_two_pings_more_are_no_harm():
    """A point more of a hundred pings is chance; of ten thousand it is not."""
    assert not verdict._lost_more(3, 100, 1, 100)
    assert verdict._lost_more(300, 10_000, 100, 10_000)
    assert not verdict._lost_more(150, 10_000, 100, 10_000)


def test_a_transfer_that_fails_is_no_figure():
    """The round counts for no comparison it is missing from; three in a row end the run."""

    class Broken(Path_):
        def transfer(self, algorithm, direction, seconds):
            if algorithm == "b" or self.slots > 20:
                raise Failed("gone")
            return super().transfer(algorithm, direction, seconds)

    done, endless = [], plan(most=100)
    with pytest.raises(Failed, match="3 transfers in a row failed: gone"):
        for run in run_rounds(
            Broken(1, {}), endless, lambda _runs: endless.slots(), sleep=lambda _s: None
        ):
            done.append(run)
    assert not rounds.log_ratios(done, "forward", "b", "a", rounds.speed)
    assert "no round has a figure of both" in verdict.judge(done, plan(), BY)[0].words


# --- what programs say -------------------------------------------------------


def test_pings_are_answered():
    """By this machine, which is near; what nobody answers is lost."""
    with pinging.pinging("127.0.0.1") as told:
        time.sleep(0.5)
    with pinging.pinging("240.0.0.1") as lost:
        pass
    if not told:
        pytest.skip("this user may not ping")
    assert told[0].sent >= 1 and told[0].lost == 0 and told[0].rtt_ms > 0
    assert lost[0].lost == lost[0].sent == 1 and lost[0].rtt_ms is None


@pytest.mark.parametrize("message", [bytes(56), bytes([8, 0, 0, 0, 18, 52, 0, 7]), b"\xff" * 64])
def test_a_checksum_makes_the_sum_nothing(message):
    whole = message[:2] + pinging.checksum(message[:2] + bytes(2) + message[4:]).to_bytes(2, "big")
    assert pinging.checksum(whole + message[4:]) == 0


@pytest.mark.parametrize("said", [{}, {"end": {}}, {"end": None}, {"end": {"sum_sent": {}}}])
def test_json_that_tells_nothing_is_a_failure(said):
    with pytest.raises(Failed, match="does not tell"):
        transfers.read_iperf3(said, "cubic", "forward")


def test_a_sender_that_used_another_algorithm_does_not_count():
    total = {"bits_per_second": 1e6, "seconds": 1, "bytes": 1e5, "retransmits": 0}
    end = {"sum_sent": total, "sum_received": total, "sender_tcp_congestion": "reno"}
    with pytest.raises(Failed, match="used reno instead of cubic"):
        transfers.read_iperf3({"end": end}, "cubic", "reverse")


# --- the command -------------------------------------------------------------


def run_compare(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMPARE, *arguments], capture_output=True, text=True, cwd=folder,
        env=os.environ | variables,
    )  # fmt: skip


@cache
def two_names() -> str:
    """Return two algorithms that any user may take here."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return ",".join(allowed[:2])


needs_two = pytest.mark.skipif(two_names().count(",") != 1, reason="one algorithm only")


@needs_two
@pytest.mark.parametrize(
    ("arguments", "cure"),
    [(["-a", "no_such_cc,reno"], "sudo modprobe tcp_no_such_cc"),
     (["-a", "../x,reno"], "no algorithm is called"),
     (["-a", "reno"], "two or more"),
     (["-a", "reno,reno"], "two or more"),
     (["--command", "sleep 1"], "{algorithm}"),
     (["--command", "sleep 1 {algorithm}", "-R"], "leave out -R"),
     (["-a", "ANY", "--out", "/no/such/folder/x"], "--out"),
     (["-a", "ANY", "--rounds", "0"], "between 1 and"),
     (["-a", "ANY", "--seconds", "0"], "between 1 and"),
     (["-a", "ANY", "--confidence", "nan"], "between 50 and"),
     (["-a", "ANY", "--gap", "long"], "invalid number value"),
     (["-a", "ANY", "--iperf3", "'"], "No closing quotation")],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_cure(arguments, cure, tmp_path):
    """Exit code 2, and nothing is written."""
    words = [two_names() if word == "ANY" else word for word in arguments]
    done = run_compare("127.0.0.1", "--no-ping", *words, folder=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("cc-compare: ") and cure in last
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("default", "tried"),
    [
        ("cubic", ("cubic", "veno_jitter", "bbr")),
        ("reno", ("reno", "veno_jitter", "bbr")),
        ("veno_jitter", ("veno_jitter", "cubic", "bbr")),
        ("tabe", ("tabe", "cubic", "veno_jitter", "bbr")),
    ],
)
def test_who_has_ours_already_sees_it_beside_cubic(default, tried, monkeypatch):
    """The machine's default is what the others are held against."""
    for name, value in (("default", default), ("usable", True), ("check", None)):
        monkeypatch.setattr(compare.algorithms, name, lambda *_name, value=value: value)
    options = compare.parser().parse_args(["192.0.2.1"])
    assert compare.chosen(options) == (tried, default)


@needs_two
def test_missing_iperf3_names_the_package(tmp_path):
    (tmp_path / "python3").symlink_to(sys.executable)
    done = run_compare("127.0.0.1", folder=tmp_path, PATH=str(tmp_path))
    assert (done.returncode, "apt install iperf3" in done.stderr) == (2, True)


@needs_two
@needs_iperf3
def test_nobody_listens(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        done = run_compare("127.0.0.1", "--no-ping", "-a", two_names(), "-p", port, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("cc-compare: nobody listens on 127.0.0.1")
    assert f"`iperf3 -s -p {port}`" in done.stderr


def test_what_iperf3_complains_of_is_told_with_its_cure():
    there = transfers.Iperf3("192.0.2.7")
    for error, direction, cure in (
        ("the server is busy running a test. try again later", "forward", "--port"),
        ("unable to set TCP_CONGESTION: not supported", "reverse", "modprobe tcp_x there"),
        ("unable to connect to server: No route to host", "forward", "No route"),
    ):
        failure = there._failure(f"error - {error}", "x", direction)
        assert isinstance(failure, Refused) and cure in str(failure)
    assert not isinstance(there._failure("control socket has closed", "x", "forward"), Refused)


@needs_two
def test_a_command_of_the_users(tmp_path):
    """The slower one is found, the files say the same, and Ctrl-C would have kept as much."""
    slow = two_names().split(",")[1]
    command = f"test {{algorithm}} != {slow} || sleep 0.05"
    done = run_compare(
        "127.0.0.1", "-a", two_names(), "--command", command, "--no-ping", "--gap", "0",
        "--rounds", "10", "--seed", "1", "--out", "here", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "here.json").read_text())
    (found,) = document["verdicts"]
    baseline = document["judge"]["baseline"]
    assert found["kind"] == (verdict.MORE if baseline == slow else verdict.LESS)
    assert f"as fast as {baseline}" in done.stdout and len(document["runs"]) == 20
    html = (tmp_path / "here.html").read_text()
    assert found["words"] in html and "<script" not in html and "http" not in html
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.html", "here.json"]


@needs_two
def test_a_command_that_fails_says_why(tmp_path):
    done = run_compare(
        "127.0.0.1", "-a", two_names(), "--command", "echo {algorithm}: no way >&2; exit 3",
        "--no-ping", "--gap", "0", "--out", "", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1 and "exit code 3" in done.stderr and "no way" in done.stderr


@needs_two
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_whatever_ends_it_ends_its_transfer(ending, tmp_path):
    """A lost terminal or a shutdown is answered as Ctrl-C is."""
    process = subprocess.Popen(
        [COMPARE, "127.0.0.1", "-a", two_names(), "--no-ping", "--gap", "0", "--out", "",
         "--command", f"echo $$ >{tmp_path}/pid && mv {tmp_path}/pid {tmp_path}/began &&"
         " exec sleep 1000 # {algorithm}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # nohup, and a shell's "&", ignore it for all that they start
        preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL),
    )  # fmt: skip
    while not (tmp_path / "began").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(ending)
    output, complaints = process.communicate()
    assert process.returncode == 130 and "Nothing was measured" in output, complaints
    with pytest.raises(ProcessLookupError):
        os.killpg(int((tmp_path / "began").read_text()), 0)


def test_command_needs_a_place_for_the_name():
    with pytest.raises(Complaint, match="algorithm"):
        transfers.Command("scp x y")


# --- in the lab --------------------------------------------------------------


@cache
def said() -> str:
    (output,) = run_scripts(Path(__file__).parent, ["guest_compare.py"]).values()
    return output


in_the_lab = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)


@in_the_lab
@needs_iperf3
@pytest.mark.parametrize("text", [claim.text for claim in guest_compare.claims])
def test_claim(text):
    assert_claimed(said(), text)


@in_the_lab
@needs_iperf3
def test_every_claim_was_tested():
    assert verdict_count(said()) == len(guest_compare.claims)
