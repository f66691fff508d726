# SPDX-License-Identifier: GPL-2.0-only
"""veno_lab: hops for anybody's Mininet, tried inside the lab, where time is virtual."""

import json
import re
import runpy
import shutil
import subprocess
import textwrap

import pytest
from conftest import TESTBED, run_command


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hops")
    trace = folder / "rates.csv"  # 4 Mb/s and nothing, by turns of half a second: 2 on average
    trace.write_text("0 4\n0.5 0\n1.0 4\n1.5 0\n2.0 0\n")
    script = TESTBED / "tests" / "guest_hops.py"
    done = run_command("--exec", f"/usr/bin/python3 {script} {trace}", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))


def test_a_hop_has_its_rate_and_loses_nothing_by_itself(found):
    """500 kB at 2 Mb/s take 2 s, headers and slow start come on top."""
    assert 2.0 < found["clean"]["s"] < 2.6 and found["clean"]["lost"] == [0, 0]
    assert found["clean"]["cls"] == ["WirelessHop"] * 2  # the bottleneck and the air


def test_random_loss_is_the_seed_s(found):
    """A tenth of 200 pings: the same ones again with the same seed, others with another. A transfer
    takes longer where packets are lost, and loses others where they are lost in runs."""
    one, again, other = found["pings"]
    assert one == again != other and all(8 <= len(lost) <= 36 for lost in (one, other))
    lossy, bursts = found["lossy"], found["bursts"]
    assert (
        lossy["lost"][0] == 0
        and 2 <= lossy["lost"][1] <= 35
        and lossy["s"] > found["clean"]["s"]
        and lossy != bursts
    )


def test_a_trace_gives_the_rate_over_time(found):
    """Half of the time nothing passes: as long as at 2 Mb/s, and not as at 4."""
    assert found["trace"]["cls"] == ["TraceHop", "WirelessHop"] and 1.4 < found["trace"]["s"] < 3.5


def test_what_is_wrong_is_said(found):
    assert found["typo"] == "WirelessHop takes no los_pct: did you mean loss_pct?"
    wanted = ("bw: did you mean rate_mbps?", "jitter: did you mean jitter_ms?")
    wanted += ("max_queue_size: did you mean queue_pkts?",)  # who comes from TCLink
    assert found["tclink"] == [f"WirelessHop takes no {told}" for told in wanted]
    kinds = ("rate_mbps = '5': this must be a number", "queue_pkts = 2.5: this must be a whole")
    kinds += ("delay_ms = None: this must be a number", "seed = 'x': this must be a whole number")
    kinds += ("seed = 1.5: this must be a whole number", "back = 5: this must be a table")
    assert len(found["kinds"]) == len(kinds)
    for told, kind in zip(found["kinds"], kinds, strict=True):
        assert told.startswith(f"WirelessHop: {kind}")
    # in whichever direction
    assert all("loss_pct = 120" in found[place] for place in ("range", "there", "back")), found
    assert found["way"] == found["limit"] != ""
    assert found["runs"].startswith("WirelessHop: burst_pkts needs loss_pct")
    assert found["none"].startswith("WirelessHop: queue_pkts needs a rate_mbps")
    assert found["aqm"].startswith("unknown WirelessHop.aqm 'codle': did you mean 'codel'")


def test_what_is_only_delayed_takes_no_room_in_the_queue(found):
    """netem has one limit for both, so they are two hops: 20 packets wait and one is being sent.
    Without a rate its jitter would change the order of packets."""
    assert "queue_pkts and a delay on one hop" in found["limit"]
    assert "change the order" in found["order"]
    assert 20 <= found["queue"] <= 22
    assert found["varies"]["lost"] == [0, 0] and 2.0 < found["varies"]["s"] < 2.6


def page_part(begin: str, end: str) -> str:
    """Return what stands in docs/mininet.md between BEGIN and END, its indentation taken away."""
    page = (TESTBED.parent / "docs/mininet.md").read_text()
    return textwrap.dedent(page.split(begin, 1)[1].split(end, 1)[0])


@pytest.mark.skipif(not shutil.which("iperf3"), reason="no iperf3: testbed/setup test")
def test_the_example_of_the_docs_runs_as_it_stands(tmp_path):
    """Its pings and its flow cross the path: Mininet numbers hosts by their names, so an address
    that is written out may be the sender's own."""
    before, stop, after = page_part("```python\n", "```").rpartition("net.stop()")
    flow = page_part("A flow takes an algorithm by name:\n\n", "\n\n")
    delay_ms = float(re.search(r"delay_ms=(\d+)", before)[1])
    assert stop and "iperf3 -c" in flow
    script = tmp_path / "my_mininet.py"
    script.write_text(f"{before}net.pingAll()\n{flow}\n{stop}{after}")
    done = run_command("--exec", f"/usr/bin/python3 {script}", cwd=tmp_path)
    told = done.stdout + done.stderr
    assert done.returncode == 0 and " 0% dropped" in done.stdout, told
    fastest_ms = float(re.search(r"^rtt min\S* = ([\d.]+)/", done.stdout, re.M)[1])
    assert 2 * delay_ms <= fastest_ms < 3 * delay_ms, told
    mbps = float(re.search(r"([\d.]+) Mbits/sec +receiver", done.stdout)[1])
    assert 1 < mbps < 5, told


def test_mn_takes_it(tmp_path):
    """As docs/mininet.md has it, with its options."""
    mn = f"mn --custom {TESTBED}/veno_lab/hops.py --topo hop,rate_mbps=2,queue_pkts=20,delay_ms=45"
    done = run_command("--exec", f"{mn} --controller none --test pingall", cwd=tmp_path)
    assert done.returncode == 0 and " 0% dropped" in done.stdout, done.stdout + done.stderr


def test_it_needs_nothing_that_only_the_lab_has(tmp_path):
    """Whoever has a Mininet script of their own has no $LAB_OUT, and starts it where they like."""
    told = subprocess.run(
        ["/usr/bin/python3", "-c", "import veno_lab; print(veno_lab.WirelessHop.__name__)"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTBED), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert told.stdout == "WirelessHop\n", told.stderr


def test_a_python_that_is_too_old_is_told_so():
    """Mininet runs on older ones, where the rest would be a syntax error."""
    check = runpy.run_path(str(TESTBED / "veno_lab" / "python.py"))["check"]
    check((3, 11, 0))
    with pytest.raises(ImportError, match=r"needs Python 3.11 or newer, and this is 3.8$"):
        check((3, 8, 10))
