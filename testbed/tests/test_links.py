# SPDX-License-Identifier: GPL-2.0-only
"""What lab.ask.links sets by netlink is what its tc command would set; hops exist as named."""

import itertools
import json
import re
import subprocess

import pytest
from conftest import TESTBED, run_command

from lab.ask.carries import TUNNELS
from lab.ask.links import Link, netem_takes_seeds
from lab.ask.parts import AT_HOSTS, Topology
from lab.ask.paths import CARD_MBPS, KINDS

LINKS = [
    Link(),
    Link(rate_mbps=1.6, queue_pkts=12),
    Link(rate_mbps=11, delay_ms=45, loss_pct=10),
    Link(delay_ms=0.5, loss_pct=0.01),
    Link(rate_mbps=40_000, queue_pkts=4000),
    Link(loss_pct=2, burst_pkts=5),
    Link(rate_mbps=11, delay_ms=145, jitter_ms=30),
    Link(rate_mbps=50, delay_ms=20, retry_pct=10, retry_ms=8),
    Link(delay_ms=20, aggregate_ms=10, aggregate_pkts=32),
    Link(rate_mbps=10, queue_pkts=200, aqm="fq_codel"),
    Link(rate_mbps=40_000, queue_pkts=4000, aqm="codel"),
    Link(rate_mbps=8, policer_burst_ms=20),
    Link(delay_ms=50, reorder_pct=25),
    Link(delay_ms=50, jitter_ms=20, jitter_reorders=True),
    Link(rate_mbps=10, queue_pkts=200, aqm="pie"),
    Link(rate_mbps=10, queue_pkts=200, aqm="fq_pie"),
]
SCRIPT = """
import json, os, socket, subprocess
from lab.ask.links import Link, change_link, set_link
def show():
    return subprocess.check_output(["tc", "qdisc", "show", "dev", "v0"], text=True)
def sh(command):
    subprocess.run(command, shell=True, check=True)
sh("ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up")
for fields in json.loads(os.environ["LINKS"]):
    link = Link(**fields)
    for name, table in link.distributions.items():
        with open(f"/run/tmp/{name}.dist", "w") as out:
            print(*table, file=out)
    set_link("v0", link, 7)
    ours = show()
    sh("tc qdisc del dev v0 root")
    sh(link.tc_command("v0", 7).rsplit(" seed ", 1)[0])  # Debian 12's tc knows no seed
    print("RESULT", json.dumps([ours, show()]))
    sh("tc qdisc del dev v0 root")
set_link("v0", Link(delay_ms=1), 1)
set_link("v0", Link(delay_ms=2), 1)  # replaces
print("REPLACED", show())
slow = Link(rate_mbps=0.1, queue_pkts=50)
set_link("v0", slow, 1)
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
frames.bind(("v0", 0))
for _ in range(30):
    frames.send(bytes(12) + bytes.fromhex("88b5") + bytes(86))
change_link("v0", Link(rate_mbps=5, queue_pkts=60))
print("CHANGED", subprocess.check_output(["tc", "-s", "qdisc", "show", "dev", "v0"], text=True))
"""


@pytest.fixture(scope="module")
def shown() -> tuple[list[list[str]], str, str]:
    fields = json.dumps([vars(link) for link in LINKS])
    done = run_command(
        "--exec", f"LINKS='{fields}' TC_LIB_DIR=/run/tmp /usr/bin/python3 - <<'END'\n{SCRIPT}\nEND"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    results = re.findall(r"^RESULT (.*)$", done.stdout, re.M)
    return [json.loads(line) for line in results], *re.split("REPLACED |CHANGED ", done.stdout)[1:]


@pytest.mark.parametrize(
    ("release", "takes"),
    [("6.1.0-41-amd64", False), ("6.6.116", False), ("6.7-rc1", True), ("7.2.3+deb14-arm64", True)],
)
def test_a_kernel_is_known_to_ignore_seeds_by_its_release(release, takes):
    assert netem_takes_seeds(release) == takes


def test_netlink_and_tc_agree(shown):
    """The kernel shows the same for both, but for the seed, which tc cannot set."""
    pairs = shown[0]
    assert len(pairs) == len(LINKS)
    for link, (ours, theirs) in zip(LINKS, pairs, strict=True):
        kind = "prio" if link.bucket_bytes else "tbf" if link.aqm else "netem"
        assert f"{kind} 1: root" in ours
        assert re.sub(r" seed \d+", "", ours) == re.sub(r" seed \d+", "", theirs)
    assert "limit 12 rate 1600Kbit" in pairs[1][0]
    assert "delay 45ms loss 10% rate 11Mbit" in pairs[2][0]
    assert "loss gemodel p 0.408163% r 20% 1-h 100% 1-k 0%" in pairs[5][0]
    assert "delay 145ms  30ms" in pairs[6][0]
    assert "slot distribution 10ms 5ms packets 32" in pairs[8][0]
    assert "fq_codel 10: parent 1:1 limit 200p" in pairs[9][0] and " ecn" in pairs[9][0]


def test_a_second_link_replaces_the_first(shown):
    assert "delay 2ms" in shown[1] and "delay 1ms" not in shown[1]


def test_a_change_in_place_keeps_what_is_queued(shown):
    changed = shown[2]
    assert "limit 60 rate 5Mbit" in changed and "dropped 0" in changed
    assert "backlog 3000b 30p" in changed


def test_hops_of_scenarios_are_those_of_the_topologies():
    """The host side names hops without Mininet; both lists must be one."""
    code = (
        "import json; from lab.ask.topologies import AT_HOSTS, CARD_MBPS, KINDS, TUNNELS;"
        "from lab.ask.topologies import Dumbbell, devices;"
        "print(json.dumps([list(KINDS), Dumbbell.HOPS, list(devices(['a', 'b', 'c'], 2).items()),"
        "TUNNELS, [AT_HOSTS, CARD_MBPS]]))"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(TESTBED), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    kinds, dumbbell, devices, tunnels, cards = json.loads(done.stdout)
    assert cards == [AT_HOSTS, CARD_MBPS]
    assert {kind: tuple(known[:2]) for kind, known in tunnels.items()} == TUNNELS
    assert kinds == list(KINDS) and tuple(dumbbell) == KINDS["dumbbell"]
    chain = Topology("chain", ("a", "b", "c"), homes=2)
    assert tuple(hop for hop, _ in devices) == chain.all_hops
    # each direction of a line is an interface of its own, of the routers at its two ends
    assert dict(devices)["b"] == "r2-fwd" and dict(devices)["reverse_b"] == "r3-rev"
    assert len({device for _, device in devices}) == len(devices)


BEHAVIOUR = """
import json, os, socket, subprocess, sys, threading, time
from lab.ask.links import Link, set_link
from lab.run.guest.namespaces import NetworkNamespaceOf
def sh(command):
    subprocess.run(command, shell=True, check=True)
def cross(fields, packets, every_ms, together):
    # What becomes of packets: (number, ms under way) in the order of arrival.
    set_link("v0", Link(**fields), 7)
    receiver.settimeout(1)
    arrived, sent, start = [], [], time.monotonic()
    def receive():
        try:
            while True:
                number = int(receiver.recv(2000)[:8])
                arrived.append((number, 1000 * (time.monotonic() - sent[number])))
        except TimeoutError:
            pass
    thread = threading.Thread(target=receive)
    thread.start()
    for number in range(packets):
        if number % together == 0:
            time.sleep(max(0, start + number // together * every_ms / 1000 - time.monotonic()))
        sent.append(time.monotonic())
        sender.send(b"%08d" % number + bytes(92))
    thread.join()
    return arrived
sh("ip link add v0 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0; ip link set v0 up")
other = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
time.sleep(0.1)
sh(f"ip link set v1 netns {other.pid}")
sh(f"nsenter -n -t {other.pid} ip addr add 10.9.0.2/24 dev v1")
sh(f"nsenter -n -t {other.pid} ip link set v1 up")
with NetworkNamespaceOf(other.pid):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("10.9.0.2", 9))
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("10.9.0.2", 9))
sender.send(b"00000000")  # address resolution
receiver.recv(2000)
for fields, load in json.loads(os.environ["CASES"]):
    print("ARRIVED", json.dumps(cross(fields, *load)))
other.kill()
"""
# hop -> (link, (packets, every so many ms, so many together))
STEADY, SPARSE, DENSE = (600, 1, 1), (600, 100, 1), (20_000, 5, 400)
FRAME_BYTES = 142  # of these packets
BEHAVIOURS = {
    "retry": (Link(rate_mbps=50, delay_ms=20, retry_pct=10, retry_ms=8), STEADY),
    "retry-alone": (Link(rate_mbps=50, delay_ms=20, retry_pct=10, retry_ms=8), SPARSE),
    "jitter": (Link(rate_mbps=50, delay_ms=60, jitter_ms=30), STEADY),
    "bursts": (Link(delay_ms=20, loss_pct=2, burst_pkts=5), DENSE),
    "reorder": (Link(delay_ms=20, reorder_pct=10), STEADY),
    "jitter-reorders": (Link(delay_ms=60, jitter_ms=30, jitter_reorders=True), STEADY),
    "policer": (Link(rate_mbps=0.5, policer_burst_bytes=10 * FRAME_BYTES), STEADY),
    "aggregate": (Link(delay_ms=20, aggregate_ms=10, aggregate_pkts=4), STEADY),
}


@pytest.fixture(scope="module")
def arrivals() -> dict[str, list[tuple[int, float]]]:
    """What became of packets: hop -> (number, ms under way) as they arrived."""
    cases = json.dumps([(vars(link), load) for link, load in BEHAVIOURS.values()])
    done = run_command("--exec", f"CASES='{cases}' /usr/bin/python3 - <<'END'\n{BEHAVIOUR}\nEND")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in re.findall(r"^ARRIVED (.*)$", done.stdout, re.M)]
    return dict(zip(BEHAVIOURS, found, strict=True))


@pytest.mark.parametrize("hop", ["retry", "jitter", "aggregate"])
def test_a_delay_neither_loses_nor_reorders(arrivals, hop):
    assert [number for number, _ in arrivals[hop]] == list(range(STEADY[0]))


def test_retries_are_delays_of_whole_steps(arrivals):
    """Of 600 packets that do not meet, 60 are sent more than once (within 4 deviations)."""
    tries = [(ms - 20.023) / 8 for _, ms in arrivals["retry-alone"]]
    assert all(abs(n - round(n)) < 0.001 for n in tries) and min(tries) < 0.5
    again = sum(n > 0.5 for n in tries)
    assert abs(again - 60) < 4 * (60 * 0.9) ** 0.5
    delays = [ms for _, ms in arrivals["retry"]]  # 1 ms apart: most wait for one before them
    assert sum(ms > 20.1 for ms in delays) > 2 * again


def test_jitter_stays_within_its_bounds(arrivals):
    delays = [ms for _, ms in arrivals["jitter"]]
    assert min(delays) >= 30 and 85 < max(delays) < 90.1


def test_some_overtake(arrivals):
    """10 % leave at once, within 4 deviations; the others take 20 ms; none is lost."""
    delays = dict(arrivals["reorder"])
    assert sorted(delays) == list(range(STEADY[0]))
    assert all(ms < 0.1 or abs(ms - 20) < 0.1 for ms in delays.values())
    assert abs(sum(ms < 0.1 for ms in delays.values()) - 60) < 4 * (60 * 0.9) ** 0.5


def test_jitter_may_reorder(arrivals):
    """Each packet has its own delay from 30 to 90 ms, uniform, whoever was before it."""
    numbers = [number for number, _ in arrivals["jitter-reorders"]]
    delays = [ms for _, ms in arrivals["jitter-reorders"]]
    assert sorted(numbers) == list(range(STEADY[0])) and numbers != sorted(numbers)
    assert 30 <= min(delays) < 31 and 89 < max(delays) < 90.1
    assert abs(sum(delays) / len(delays) - 60) < 4 * 30 / 3**0.5 / 600**0.5


def test_losses_come_in_runs(arrivals):
    """2 % lost, in runs of 5 on average: 80 runs in 20000 packets, within 4 deviations."""
    lost = sorted(set(range(DENSE[0])) - {number for number, _ in arrivals["bursts"]})
    runs = sum(number - 1 not in set(lost) for number in lost)
    assert abs(runs - 80) < 4 * 80**0.5
    assert abs(len(lost) / runs - 5) < 4 * 4.5 / runs**0.5


def test_a_policer_drops_what_finds_no_token_and_delays_nothing(arrivals):
    """Which packets pass is what a bucket of 10 packets, filled at 0.5 Mb/s, says of each."""
    tokens, passed = 10.0 * FRAME_BYTES, []
    for number in range(STEADY[0]):
        tokens = min(tokens + 0.5e6 / 8 * 1e-3 * (number > 0), 10 * FRAME_BYTES)
        if tokens >= FRAME_BYTES:
            tokens -= FRAME_BYTES
            passed.append(number)
    assert [number for number, _ in arrivals["policer"]] == passed
    assert max(ms for _, ms in arrivals["policer"]) < 0.01


def test_aggregation_holds_packets_and_lets_them_go_together(arrivals):
    """Bursts of at most four, never nearer than 5 ms: 600 packets take 150 bursts or more."""
    times = [number + ms for number, ms in arrivals["aggregate"]]
    between = [b - a for a, b in itertools.pairwise(times) if b - a > 0.1]
    assert len(between) + 1 >= STEADY[0] / 4
    assert min(between[1:]) > 4.9 and max(between) < 16
    assert 9 < sum(between) / len(between) < 11
