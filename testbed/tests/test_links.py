# SPDX-License-Identifier: GPL-2.0-only
"""What lab.links sets by netlink is what its tc command would set; hops exist as named."""

import json
import re
import subprocess

import pytest
from conftest import TESTBED, run_command

from lab.links import Link
from lab.scenario import FORWARD_HOPS, TOPOLOGY_HOPS

LINKS = [
    Link(),
    Link(rate_mbps=1.6, queue_pkts=12),
    Link(rate_mbps=11, delay_ms=45, loss_pct=10),
    Link(delay_ms=0.5, loss_pct=0.01),
    Link(rate_mbps=40_000, queue_pkts=4000),
]
SCRIPT = """
import json, os, subprocess
from lab.links import Link, set_link
def show():
    return subprocess.check_output(["tc", "qdisc", "show", "dev", "v0"], text=True)
def sh(command):
    subprocess.run(command, shell=True, check=True)
sh("ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up")
for fields in json.loads(os.environ["LINKS"]):
    link = Link(**fields)
    set_link("v0", link, 7)
    ours = show()
    sh("tc qdisc del dev v0 root")
    sh(link.tc_command("v0", 7).rsplit(" seed ", 1)[0])  # Debian 12's tc knows no seed
    print("RESULT", json.dumps([ours, show()]))
    sh("tc qdisc del dev v0 root")
set_link("v0", Link(delay_ms=1), 1)
set_link("v0", Link(delay_ms=2), 1)  # replaces
print("REPLACED", show())
"""


@pytest.fixture(scope="module")
def shown() -> tuple[list[list[str]], str]:
    fields = json.dumps([vars(link) for link in LINKS])
    done = run_command(
        "--exec", f"LINKS='{fields}' /usr/bin/python3 - <<'END'\n{SCRIPT}\nEND"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    results = re.findall(r"^RESULT (.*)$", done.stdout, re.M)
    return [json.loads(line) for line in results], done.stdout.split("REPLACED ")[1]


def test_netlink_and_tc_agree(shown):
    """The kernel shows the same for both, but for the seed, which tc cannot set."""
    pairs, _ = shown
    assert len(pairs) == len(LINKS)
    for ours, theirs in pairs:
        assert "netem 1: root" in ours
        assert re.sub(r" seed \d+", "", ours) == re.sub(r" seed \d+", "", theirs)
    assert "limit 12 rate 1600Kbit" in pairs[1][0]
    assert "delay 45ms loss 10% rate 11Mbit" in pairs[2][0]


def test_a_second_link_replaces_the_first(shown):
    assert "delay 2ms" in shown[1] and "delay 1ms" not in shown[1]


def test_hops_of_scenarios_are_those_of_the_topologies():
    """The host side names hops without Mininet; both lists must be one."""
    code = (
        "import json; from lab.topologies import KINDS;"
        "print(json.dumps({name: list(kind.HOPS) for name, kind in KINDS.items()}))"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(TESTBED), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    hops = {name: tuple(found) for name, found in json.loads(done.stdout).items()}
    assert hops == TOPOLOGY_HOPS
    assert all(set(FORWARD_HOPS[name]) <= set(found) for name, found in hops.items())
