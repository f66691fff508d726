# SPDX-License-Identifier: GPL-2.0-only
"""The wireless medium without the lab: against theory, Bianchi's model, and effects that are known.

mediumsim is labmedium's medium under ns-3's own traffic. The bounds are those that
docs/medium.md states.
"""

import json
import os
import signal
import statistics
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.ask.medium import CW_MIN, DIFS_US, RTS_BYTES, SLOT_US, Medium, frame_us
from lab.common.errors import LabError
from lab.run import build as builds

PAYLOAD_BYTES, PACKET_BYTES = 1000, 1028
RTS_ALWAYS = Medium(rts_threshold_bytes=0, long_retry_limit=7)
BASIC = Medium()


def built(program: str) -> Path:
    try:
        builds.setup("medium")
        folder = builds.medium_folder()
        command = ["make", "-C", str(builds.MEDIUM_SOURCES), f"OUT={folder}", program]
        builds.run_cmd(command, f"building {program}")
    except LabError as error:
        pytest.skip(f"ns-3 cannot be installed here: {error}")
    return folder / program


@pytest.fixture(scope="session")
def mediumsim():
    return built("mediumsim")


@pytest.fixture(scope="session")
def stocksim():
    return built("stocksim")


def simulate(program, medium, places, loads, seconds=10, seed=1, udp=()):
    """Run LOADS ((from, to), nodes from 1) between stations at PLACES (x, y in m)."""
    command = [str(program), "--seconds", str(seconds), *medium.options(seed)]
    for x, y in places:
        command += ["--node", f"-,-,{x},{y}"]
    for a, b in loads:
        command += ["--saturate", f"{a},{b},{PACKET_BYTES}"]
    for a, b in udp:
        command += ["--udp", f"{a},{b},{PAYLOAD_BYTES},3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def goodput_kbps(result, node):
    return result["nodes"][node - 1]["delivered"] * PAYLOAD_BYTES * 8e-3 / result["seconds"]


def given_up_share(result):
    """Return which share of the packets that left the nodes' queues was given up."""
    lost, arrived = (sum(n[key] for n in result["nodes"]) for key in ("retry_drops", "delivered"))
    return lost / (lost + arrived)


def bianchi_kbps(medium, stations):
    """Bianchi (2000) with the finite retries of Wu et al. (2002): the goodput of all stations."""
    attempts = (
        medium.long_retry_limit if medium.uses_rts(PACKET_BYTES) else medium.short_retry_limit
    )
    windows = [min(2**i * (CW_MIN + 1), 1024) for i in range(attempts)]
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2  # that an attempt collides
        tries = sum(p**i for i in range(attempts))
        tau = tries / sum(p**i * (w + 1) / 2 for i, w in enumerate(windows))
        low, high = (p, high) if 1 - (1 - tau) ** (stations - 1) > p else (low, p)
    some = 1 - (1 - tau) ** stations
    one = stations * tau * (1 - tau) ** (stations - 1)
    success_us = medium.exchange_us(PACKET_BYTES)
    lost_us = DIFS_US + frame_us(PACKET_BYTES + 36, medium.rate_mbps)
    if medium.uses_rts(PACKET_BYTES):
        lost_us = DIFS_US + frame_us(RTS_BYTES, medium.control_rate_mbps)
    slot_us = (1 - some) * SLOT_US + one * success_us + (some - one) * lost_us
    return one * PAYLOAD_BYTES * 8e3 / slot_us


@pytest.mark.parametrize(
    "medium", [BASIC, RTS_ALWAYS, Medium(rate_mbps=1)], ids=["basic", "rts", "1-mbps"]
)
def test_one_station_is_as_theory_says(mediumsim, medium):
    result = simulate(mediumsim, medium, [(0, 0), (250, 0)], [(1, 2)])
    theory = 1000 * medium.one_hop_mbps(PAYLOAD_BYTES, PACKET_BYTES)
    assert goodput_kbps(result, 1) == pytest.approx(theory, rel=0.005)
    assert result["nodes"][0]["retry_drops"] == 0


@pytest.mark.parametrize(
    ("medium", "stations"),
    [(BASIC, 2), (BASIC, 5), (BASIC, 10), (RTS_ALWAYS, 2), (RTS_ALWAYS, 10)],
    ids=["basic-2", "basic-5", "basic-10", "rts-2", "rts-10"],
)
def test_saturation_is_as_bianchi_says(mediumsim, medium, stations):
    places = [(0, 0)] + [(10, 0)] * stations
    loads = [(i + 2, 1) for i in range(stations)]
    totals = []
    for seed in (1, 2):
        result = simulate(mediumsim, medium, places, loads, seed=seed)
        totals.append(sum(goodput_kbps(result, i + 2) for i in range(stations)))
    assert statistics.mean(totals) == pytest.approx(bianchi_kbps(medium, stations), rel=0.01)


def test_same_seed_same_figures(mediumsim):
    places = [(250 * i, 0) for i in range(4)]
    runs = [
        simulate(mediumsim, BASIC, places, [(1, 2), (4, 3)], seconds=5, seed=seed)
        for seed in (7, 7, 8)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize("threshold_bytes", [65535, 100], ids=["basic", "rts"])
def test_no_frame_is_late(mediumsim, threshold_bytes):
    """labmedium wakes up at no instant but those that it computes beforehand; with queues of long
    and short frames on a chain, none of them is received before the one it waits for."""
    command = [str(mediumsim), "--lag", "--rts-threshold-bytes", str(threshold_bytes)]
    for i in range(9):
        command += ["--node", f"-,-,{250 * i},0"]
    for i in range(1, 9):
        command += ["--saturate", f"{i},{i + 1},{PACKET_BYTES}"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["received"] == 8 * 40
    assert found["late_max_ns"] == 0
    assert found["wakeups"] < 3 * found["received"]


@pytest.mark.parametrize(
    ("distance", "receives", "senses"),
    [(300, True, True), (301, False, True), (550, False, True), (551, False, False)],
)
def test_ranges_are_exact(mediumsim, distance, receives, senses):
    result = simulate(mediumsim, BASIC, [(0, 0), (distance, 0)], [(1, 2)], seconds=2)
    heard = result["nodes"][1]
    assert (heard["received"] > 0, heard["busy_ns"] > 0) == (receives, senses)


def test_capture_is_by_the_ratio(mediumsim):
    """An interferer hidden from the sender, 12 dB weaker than it at the receiver, is survived by a
    frame that came first if 10 dB are enough, and never if 14 are needed."""
    places = [(0, 0), (250, 0), (750, 0), (1000, 0)]  # 3 -> 4 interferes at 2 from 500 m
    share = {}
    for capture_db in (10, 14):
        medium = Medium(capture_db=capture_db)
        result = simulate(mediumsim, medium, places, [(1, 2), (3, 4)], seconds=10)
        share[capture_db] = goodput_kbps(result, 1)
    assert share[10] > 1.5 * share[14]


@pytest.mark.parametrize(
    ("medium", "sent", "attempts"),
    [(Medium(short_retry_limit=3), "data_sent", 3),
     (Medium(rts_threshold_bytes=0, rts_retry_limit=5), "rts_sent", 5)],
    ids=["basic", "rts"],
)  # fmt: skip
def test_a_packet_is_given_up_at_its_limit(mediumsim, medium, sent, attempts):
    """Nobody is there to answer."""
    node = simulate(mediumsim, medium, [(0, 0), (1000, 0)], [(1, 2)])["nodes"][0]
    assert node["retry_drops"] > 100
    assert 0 <= node[sent] - attempts * node["retry_drops"] < attempts


HIDDEN = [(0, 0), (250, 0), (500, 0)]  # 1 and 3 send to 2
OUT_OF_SIGHT = {"carrier_sense_m": 300}  # what is not heard is not sensed


def test_hidden_nodes_collide_and_rts_cures_it(mediumsim):
    seen = simulate(mediumsim, BASIC, HIDDEN, [(1, 2), (3, 2)])
    hidden = simulate(mediumsim, Medium(**OUT_OF_SIGHT), HIDDEN, [(1, 2), (3, 2)])
    cured = simulate(
        mediumsim, Medium(rts_threshold_bytes=0, **OUT_OF_SIGHT), HIDDEN, [(1, 2), (3, 2)]
    )
    totals = [goodput_kbps(r, 1) + goodput_kbps(r, 3) for r in (seen, hidden, cured)]
    assert totals[1] < 0.6 * totals[0]
    assert totals[2] > 1.5 * totals[1]
    lost = [given_up_share(r) for r in (seen, hidden, cured)]
    assert lost[1] > 10 * max(lost[0], lost[2])


def test_exposed_nodes_share_what_each_could_have(mediumsim):
    """2 sends to 1 and 3 to 4: neither disturbs the other's receiver, yet both wait."""
    places = [(0, 0), (250, 0), (500, 0), (750, 0)]
    medium = Medium(carrier_sense_m=300)
    alone = goodput_kbps(simulate(mediumsim, medium, places, [(2, 1)]), 2)
    both = simulate(mediumsim, medium, places, [(2, 1), (3, 4)])
    rts = simulate(mediumsim, Medium(carrier_sense_m=300, rts_threshold_bytes=0), places,
                   [(2, 1), (3, 4)])  # fmt: skip
    apart = simulate(mediumsim, medium, [(0, 0), (250, 0), (1500, 0), (1750, 0)],
                     [(2, 1), (3, 4)])  # fmt: skip
    together = goodput_kbps(both, 2) + goodput_kbps(both, 3)
    assert together == pytest.approx(alone, rel=0.1)
    assert goodput_kbps(apart, 2) + goodput_kbps(apart, 3) == pytest.approx(2 * alone, rel=0.01)
    assert goodput_kbps(rts, 2) + goodput_kbps(rts, 3) < 1.1 * together  # RTS does not cure this


def test_times_add_up_to_what_was_sent(mediumsim):
    """Over one hop every time is known: what the sender transmits, the receiver hears."""
    sender, receiver = simulate(mediumsim, BASIC, [(0, 0), (250, 0)], [(1, 2)])["nodes"]
    data_us = frame_us(PACKET_BYTES + 36, 2)
    assert sender["transmit_ns"] == pytest.approx(sender["data_sent"] * data_us * 1e3, rel=1e-3)
    heard_ns = receiver["receive_ns"] + receiver["sense_ns"]
    assert heard_ns == pytest.approx(sender["transmit_ns"], rel=1e-3)
    for node in (sender, receiver):
        parts = ("transmit_ns", "receive_ns", "sense_ns", "nav_ns")
        assert node["busy_ns"] == sum(node[part] for part in parts)


def test_a_nav_reserves_the_gaps(mediumsim):
    """A station that hears RTS and CTS of others is busy all through their exchange."""
    medium = Medium(rts_threshold_bytes=0)
    places = [(0, 0), (250, 0), (200, 0)]
    result = simulate(mediumsim, medium, places, [(1, 2)])
    third, sent = result["nodes"][2], result["nodes"][0]["delivered"]
    reserved_us = medium.exchange_us(PACKET_BYTES) - DIFS_US
    assert third["busy_ns"] == pytest.approx(sent * reserved_us * 1e3, rel=0.005)
    # three SIFS; durations are rounded up to us, and ways differ by as much
    assert 30e3 * sent <= third["nav_ns"] < 33e3 * sent


def test_a_node_moves_on_its_circle(mediumsim):
    """Half of the circle is out of range: so is half of the time."""
    places = [(0, 0), (300, 0)]
    circle = ["--circle", "2,100,10"]
    program = [str(mediumsim), "--seconds", "20", "--node", "-,-,0,0", "--node", "-,-,300,0"]
    program += [*circle, "--saturate", f"2,1,{PACKET_BYTES}"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    moving = goodput_kbps(json.loads(done.stdout), 2)
    still = goodput_kbps(simulate(mediumsim, BASIC, places, [(2, 1)], seconds=20), 2)
    # within 300 m of the first node for acos(100 / 600) / pi of the turn
    assert moving == pytest.approx(0.447 * still, rel=0.05)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rate-mbps", "11"], "rate: 1 or 2 Mb/s"),
        (["--carrier-sense-m", "200"], "carrier sense: at least the range"),
        (["--queue-pkts", "x"], "--queue-pkts: x is no number"),
        (["--eifs", "x"], "--eifs: header or sensed, not x"),
        (["--nonsense"], "--nonsense: no such option"),
        (["--circle", "3,10,1"], "--circle: there is no node 3 before it"),
    ],
)
def test_bad_options_are_named(mediumsim, options, complaint):
    command = [str(mediumsim), "--node", "-,-,0,0", "--node", "-,-,9,0", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert complaint in done.stderr


def namespace_with_tap(stack, node):
    """Start a process in a network namespace with the TAP device of NODE; return its pid."""
    holder = stack.enter_context(
        subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
    )
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
        time.sleep(0.01)
    for command in (
        "ip tuntap add dev wl0 mode tap",
        f"ip link set wl0 address 00:00:00:00:00:0{node} up",
        f"ip addr add 10.9.0.{node}/24 dev wl0",
    ):
        subprocess.run(
            ["nsenter", f"--net=/proc/{holder.pid}/ns/net", *command.split()], check=True
        )
    return holder.pid


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/net/tun", os.W_OK),
    reason="network namespaces and TAP devices on this machine's own kernel need root",
)


@pytest.fixture(scope="session")
def labmedium(mediumsim) -> str:
    command = ["make", "-C", str(builds.MEDIUM_SOURCES), f"OUT={mediumsim.parent}"]
    builds.run_cmd(command, "building labmedium")
    return str(mediumsim.with_name("labmedium"))


@needs_namespaces
def test_labmedium_in_real_time(labmedium, tmp_path):
    """On this machine's kernel and clock, in namespaces of its own: no packet is lost."""
    with ExitStack() as stack:
        pids = [namespace_with_tap(stack, node) for node in (1, 2)]
        command = [labmedium, "--ready-fd", "1"]
        command += ["--counters", str(tmp_path / "counters.csv"), "--duration-s", "0.2"]
        for i, pid in enumerate(pids):
            command += ["--node", f"/proc/{pid}/ns/net,wl0,{250 * i},0"]
        medium = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert medium.stdout.readline() == "ready\n"
        inside = ["nsenter", f"--net=/proc/{pids[0]}/ns/net", "ping"]
        five, six = (
            subprocess.run([*inside, *how], capture_output=True, text=True).stdout
            for how in (
                ["-c", "5", "-i", "0.2", "10.9.0.2"],
                ["-c", "1", "-w", "60", "fe80::200:ff:fe00:2%wl0"],  # until there is an answer
            )
        )
        medium.send_signal(signal.SIGTERM)
        assert medium.wait() == 0
        assert "5 received" in five, five
        assert "time=" in six or not Path("/proc/net/if_inet6").exists(), six
        head, *rows = (tmp_path / "counters.csv").read_text().splitlines()
        assert head.startswith("time_s,node,busy_ns,transmit_ns")
        assert len(rows) == 4  # two nodes at 0 and 0.2 s


@needs_namespaces
def test_labmedium_ends_with_the_last_node(labmedium, tmp_path):
    """Nobody has to end it; and it writes down what there was."""
    summary = tmp_path / "summary.json"
    with ExitStack() as stack:
        pids = [namespace_with_tap(stack, node) for node in (1, 2)]
        command = [labmedium, "--ready-fd", "1", "--summary", str(summary)]
        for i, pid in enumerate(pids):
            command += ["--node", f"/proc/{pid}/ns/net,wl0,{250 * i},0"]
        medium = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert medium.stdout.readline() == "ready\n"
        assert medium.poll() is None
    try:
        assert medium.wait(timeout=60) == 0
    finally:
        medium.kill()
    told = json.loads(summary.read_text())
    assert told["long_frames"] == told["refused_frames"] == 0


@needs_namespaces
def test_an_mtu_beyond_802_11_is_refused(labmedium):
    with ExitStack() as stack:
        pid = namespace_with_tap(stack, 1)
        at = f"/proc/{pid}/ns/net"
        subprocess.run(
            ["nsenter", f"--net={at}", "ip", "link", "set", "wl0", "mtu", "2297"], check=True
        )
        done = subprocess.run(
            [labmedium, "--node", f"{at},wl0,0,0"], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "an MTU of 2297: 802.11 carries 2296 bytes at most" in done.stderr


@pytest.mark.parametrize("access", ["basic", "rts"])
@pytest.mark.parametrize("hops", [2, 4, 8])
def test_chains_are_as_stock_ns3_has_them(mediumsim, stocksim, hops, access):
    """ns-3 as it is, without a line of ours and with the same ranges. Stations that locked on what
    they cannot decode had -9 % over four hops with RTS/CTS."""
    medium = {"basic": BASIC, "rts": RTS_ALWAYS}[access]
    places = [(250 * i, 0) for i in range(hops + 1)]
    ours, stock = [], []
    seconds = 10
    for seed in (1, 2) if hops > 2 else (1,):
        chain = simulate(mediumsim, medium, places, [], seconds, seed, udp=[(1, hops + 1)])
        ours.append(chain["udp_bytes"][0] * 8e-3 / seconds)
        command = [stocksim, f"--hops={hops}", f"--rts={access == 'rts'}", f"--run={seed}",
                   f"--seconds={seconds}"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        stock.append(float(done.stdout))
    assert statistics.mean(ours) == pytest.approx(statistics.mean(stock), rel=0.03)


@pytest.mark.parametrize("hops", [4, 8])
def test_eifs_after_what_was_only_sensed(mediumsim, hops):
    """The other reading of the standard: who waits longer after a frame from out of range disturbs
    its acknowledgement, which cannot be sensed, less often."""
    places = [(250 * i, 0) for i in range(hops + 1)]
    kbps = [
        simulate(mediumsim, medium, places, [], udp=[(1, hops + 1)], seconds=20)["udp_bytes"][0]
        for medium in (BASIC, Medium(eifs_after_sensed=True))
    ]
    assert 1.05 < kbps[1] / kbps[0] < 1.3


def test_labmedium_names_what_is_wrong(labmedium):
    for options, status, complaint in (
        ([], 2, "no --node"),
        (["--node", "x,y,0"], 2, "NAMESPACE,DEVICE,X,Y"),
        (["--node", "/nowhere,wl0,0,0"], 1, "cannot enter the namespace /nowhere"),
    ):
        done = subprocess.run([labmedium, *options], capture_output=True, text=True)
        assert done.returncode == status
        assert done.stderr.startswith("labmedium: ") and complaint in done.stderr
        assert done.stderr.count("\n") == 1
