# SPDX-License-Identifier: GPL-2.0-only
"""veno_lab: access points for anybody's Mininet, inside the lab, where time is virtual, and on this
machine, where nothing that depends on time is looked at."""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import fields
from pathlib import Path

import pytest
from conftest import TESTBED, run_command
from test_medium import built

from lab.ask.wifi import Place, WifiMedium

ON_A_HOST = """
import sys
from mininet.log import setLogLevel
from mininet.net import Mininet
from veno_lab import WifiAp, WifiLink
setLogLevel("critical")
net = Mininet(controller=None)
ap = net.addSwitch("ap1", cls=WifiAp, gate=False)
net.addLink(net.addHost("server"), ap)
net.addLink(net.addHost("sta1"), ap, cls=WifiLink, distance_m=10)
net.start()
print(net["server"].cmd(f"until ping -c 1 -W 5 {net['sta1'].IP()}; do :; done").count("ttl="))
print(ap.process.pid, flush=True)
if sys.stdin.readline():
    net.stop()
"""


TOPO = f"mn --custom {TESTBED}/veno_lab/hops.py --controller none --topo wifi,distance_m=5/10"
MN = f"{TOPO},standard=ac --test pingall"
# mn gives text where Python has True and False
MN += f" && echo 'py ap1.gate, ap1.offloads' | {TOPO},gate=False,offloads=False"


def in_lab(folder: Path, *arguments: str, then: str = ":") -> dict:
    """Run the script there, THEN a command of the shell; return what was found, and the output."""
    script = TESTBED / "tests" / "guest_wifi_hop.py"
    command = f"/usr/bin/python3 {script} {' '.join(arguments)} && {then}"
    done = run_command("--exec", command, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    found = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return found | {"output": done.stdout}


@pytest.fixture(scope="session")
def labmedium() -> Path:
    return built("all").with_name("labmedium")


@pytest.fixture(scope="module")
def found(labmedium, tmp_path_factory):
    return in_lab(tmp_path_factory.mktemp("wifi"), "1", "--all")


def test_the_same_seed_gives_the_same_bytes_and_mn_takes_it(found, tmp_path):
    """From boot to boot, to the nanosecond; another seed other ones."""
    again, other = in_lab(tmp_path, "1"), in_lab(tmp_path, "2", then=MN)
    assert again["seeded"] == found["seeded"] != other["seeded"]
    assert " 0% dropped" in other["output"]  # mn takes it, as docs/mininet.md has it
    assert "(False, False)" in other["output"]


def test_the_page_has_every_keyword():
    page = (TESTBED.parent / "docs" / "mininet.md").read_text()
    section = page[page.index("## WifiAp") : page.index("## On the command line")]
    listed = [
        set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", table, re.M))))
        for table in section.split("and of `WifiLink`")
    ]
    of_ap = {field.name for field in fields(WifiMedium)} - {"circle_radius_m", "circle_period_s"}
    assert listed[0] == of_ap | {"gate", "offloads", "seed"}
    assert listed[1] == {field.name for field in fields(Place)}


def test_stations_are_hosts_behind_a_bridge(found):
    """The wire's 10 ms there and back, and the air's; station to station; one for all."""
    seen = found["bridged"]
    assert seen["processes"] == 1 and seen["stations"] == ["near", "far"]
    assert len(seen["rtts_ms"]) == 5 and all(20 < ms < 25 for ms in seen["rtts_ms"])
    assert seen["to_far"] >= 3 and {"server", "far"} <= set(seen["heard"])


def test_queues_before_the_mac_are_the_kernel_s(found):
    at_ap, at_station = found["bridged"]["queues"]
    assert "labgate" in at_ap and "fq_codel" in at_ap and "limit 1000p" in at_ap
    assert "labgate" in at_station and "pfifo" in at_station and "limit 77p" in at_station


def test_distance_slows_a_station_down(found):
    """Two megabytes: to 5 m at up to 65 Mb/s, which takes 0.25 s at least, and to 66 m."""
    took = found["bridged"]["s"]
    assert 0.25 < took["near"] < 0.9 and took["far"] > 1.4 * took["near"]
    assert 0.13 < found["bridged"]["up"] < 0.6


def test_a_fixed_rate_is_kept(found):
    """500 kB at 6.5 Mb/s take 0.62 s at least, where Minstrel-HT has four times as much in less."""
    assert max(0.62, found["bridged"]["s"]["near"]) < found["slow"]["s"] < 0.9


def test_without_a_gate_queues_are_in_the_mac(found):
    """They drop what they have no room for, where the kernel's of the same flow has room."""
    assert found["slow"]["gated"] and found["slow"]["retransmits"] == 0
    assert not found["ungated"]["gated"] and found["ungated"]["retransmits"] > 0


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("typo", "TypeError: WifiAp takes no standrad: did you mean standard?"),
        ("standard", "ValueError: WifiAp: unknown standard 'g': there are ac, ax, n"),
        ("rate", "ValueError: WifiAp: mcs = 9: 802.11n has 0, 1, 2, 3, 4, 5, 6, 7 there;"),
        ("number", "ValueError: WifiAp: queue_pkts = 'many': this must be a whole number"),
        ("gate", "ValueError: WifiAp: gate = 'no': this must be true or false"),
        ("seed", "ValueError: WifiAp: seed = 'x': this must be a whole number"),
        ("aqm", "ValueError: WifiAp: aqm goes with a gate"),
        ("link", "TypeError: WifiLink takes no distance: did you mean distance_m?"),
        ("place", "ValueError: WifiLink: distance_m = -3: 1 to 1000"),
        ("ends", "TypeError: WifiLink ties a host to a WifiAp; of h1, far neither is one"),
        ("late", "RuntimeError: ap1 has started: tie all its stations to it before net.start()"),
        ("alone", "ValueError: ap1 has no station: addLink(HOST, ap1, cls=WifiLink)"),
        (
            "reach",
            "RuntimeError: ap1: labmedium: far does not hear the access point: it is too far",
        ),
        ("rmmod", "sudo make -C testbed/lablink install; or take gate=False"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(found, what, said):
    assert said in found["refused"][what] and "\n" not in found["refused"][what]
    assert found["refused"]["left"] == ""


PERSON = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(TESTBED),
    "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


def on_this_machine(script: str) -> subprocess.Popen:
    """Start a SCRIPT as a person would who has a Mininet; in a network namespace of its own."""
    return subprocess.Popen(
        ["unshare", "--net", "/usr/bin/python3", "-c", script],
        env=PERSON, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "cure"),
    [
        ({"LAB_BIN": "/nowhere"}, "WifiAp needs ns-3: testbed/setup medium, then run it again"),
        ({"LAB_BUILD": "/nowhere"}, "not built: testbed/setup medium && make -C testbed/medium"),
    ],
    ids=["in the lab", "on a machine"],
)
def test_what_is_missing_is_named_with_its_cure(environment, cure):
    command = ["/usr/bin/python3", "-c", "from veno_lab import WifiAp; WifiAp('ap1')"]
    done = subprocess.run(command, env=PERSON | environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip().splitlines()[-1].endswith(cure)


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/net/tun", os.W_OK),
    reason="Mininet needs root, and TAP devices",
)
@pytest.mark.parametrize("end", ["net.stop", "SIGINT", "SIGKILL"])
def test_on_this_machine_nothing_is_left(labmedium, end):
    """In real time, and without a module of ours: however the script ends, the medium does."""
    script = on_this_machine(ON_A_HOST)
    replies, pid = script.stdout.readline(), script.stdout.readline()
    assert replies == "1\n", script.communicate()
    assert Path(f"/proc/{int(pid)}/comm").read_text() == "labmedium\n"
    if end == "net.stop":
        _, complaint = script.communicate("\n")
        assert script.returncode == 0, complaint
    else:
        script.send_signal(getattr(signal, end))
        script.communicate()
    while alive(int(pid)):  # a moment; a hang is what would be wrong
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Say whether there is such a process, but for one that nobody has asked after yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
