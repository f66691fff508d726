# SPDX-License-Identifier: GPL-2.0-only
"""Wireless chains in the lab: the real stack over the medium, repeatable, and as ns-3 has it."""

import io
import json
import os
import subprocess
import threading
import tomllib
from pathlib import Path

import polars as pl
import pytest
from conftest import run_command
from test_lab import raw_bytes
from test_medium import BASIC, mediumsim, simulate

from lab.ask import points, scenario
from lab.ask.medium import CW_MIN, SLOT_US, frame_us
from lab.common.errors import BadInput, LabError
from lab.measure.metrics import summarize

__all__ = ["mediumsim"]  # a fixture

# The answer to the 400th frame with an IPv4 packet: no room. (The warm-up has fewer.)
NO_ROOM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

ssize_t write(int fd, const void *bytes, size_t length)
{
	static ssize_t (*kernel_write)(int, const void *, size_t);
	static int frames;
	const unsigned char *frame = bytes;

	if (!kernel_write)
		kernel_write = dlsym(RTLD_NEXT, "write");
	if (length > 34 && frame[12] == 8 && frame[13] == 0 && ++frames == 400) {
		errno = EAGAIN;
		return -1;
	}
	return kernel_write(fd, bytes, length);
}
"""

OUT_OF_RANGE = """
title = "Nobody hears the sender"
[topology]
kind = "wireless-chain"
nodes = 2
offloads = false
[medium]
spacing_m = 400
[[flows]]
name = "tcp"
[run]
algorithms = ["wccp", "reno"]
duration_s = 140
warmup_s = 2
seeds = 1
[[claims]]
id = "as-much"
text = "WCCP: at least Reno's goodput"
metric = "goodput_mbps"
algorithm = "wccp"
against = "reno"
at_least = 1.0
"""

SCENARIO = """
title = "A wireless chain"
[topology]
kind = "wireless-chain"
nodes = {nodes}
offloads = false
{topology}
[medium]
{medium}
[[flows]]
name = "tcp"
mss_bytes = {mss_bytes}
{flow}
[run]
algorithms = ["reno"]
duration_s = {duration_s}
warmup_s = 2
"""


def parsed(nodes=3, medium="", flow="", duration_s=12, topology="", mss_bytes=1012):
    text = SCENARIO.format(
        nodes=nodes, medium=medium, flow=flow, duration_s=duration_s, topology=topology,
        mss_bytes=mss_bytes,
    )  # fmt: skip
    return scenario.parse("wireless", tomllib.loads(text))


@pytest.fixture(scope="session")
def expand(backend):
    """Make points of a wireless scenario."""

    def expand(at, seeds=(1,), algorithm="reno"):
        try:
            return points.expand(at, (algorithm,), list(seeds), backend.build.key)
        except LabError as error:
            pytest.skip(f"ns-3 cannot be installed here: {error}")

    return expand


def run(backend, point):
    """Run one point; return its line of results."""
    results = []

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        results.append(summarize(point, outcome.raw))

    backend.run_batch([point], min(os.sched_getaffinity(0)), on_outcome, threading.Event())
    return results[0]


def test_same_seed_same_bytes(backend, expand):
    """In whatever order points run in a boot, and whatever ran before."""
    batch = expand(parsed(), seeds=(1, 2))
    together = raw_bytes(backend, batch)
    alone = raw_bytes(backend, batch[1:])
    assert together[batch[1].id] == alone[batch[1].id]
    assert together[batch[0].id]["medium.csv"] != together[batch[1].id]["medium.csv"]


def test_wccp_is_repeatable(backend, expand):
    """Its agents' timers and answers, too, and whatever queues the point before had."""
    batch = expand(parsed(), seeds=(1,), algorithm="reno")
    batch += expand(parsed(), seeds=(1, 2), algorithm="wccp")
    together = raw_bytes(backend, batch)
    alone = raw_bytes(backend, batch[2:])
    assert together[batch[2].id] == alone[batch[2].id]
    alone = raw_bytes(backend, batch[:1])
    assert together[batch[0].id] == alone[batch[0].id]


def test_wccp_hears_the_medium(backend, expand):
    """Over two hops it carries nearly what Reno does, without a queue; without its agents it is
    Reno, queue and all."""
    reno, wccp, plain = (
        run(backend, expand(parsed(topology=extra), algorithm=algorithm)[0])
        for algorithm, extra in (("reno", ""), ("wccp", ""), ("wccp", "agents = false"))
    )
    assert wccp["goodput_mbps"] > 0.8 * reno["goodput_mbps"]
    assert wccp["rtt_ms_mean"] < 0.3 * reno["rtt_ms_mean"]
    assert wccp["own_queue_drops"] == wccp["queue_drops"] == 0
    assert plain["rtt_ms_mean"] > 0.8 * reno["rtt_ms_mean"]


def test_wccp_finds_how_busy_a_chain_can_be(backend, expand):
    """Four hops of which each hears the others are full at 96 or 97 %, one hop of short packets at
    88: it carries more than Reno does on both, without a queue."""
    for nodes, mss_bytes in ((5, 1012), (2, 312)):
        reno, wccp = (
            run(backend, expand(at, algorithm=algorithm)[0])
            for at in [parsed(nodes=nodes, duration_s=30, mss_bytes=mss_bytes)]
            for algorithm in ("reno", "wccp")
        )
        assert wccp["goodput_mbps"] > 1.02 * reno["goodput_mbps"], (nodes, wccp["goodput_mbps"])
        assert wccp["rtt_ms_mean"] < 0.3 * reno["rtt_ms_mean"]
        assert wccp["drops_per_s"] == 0


def test_who_comes_to_a_full_queue_beside_reno_does_not_starve(backend, expand):
    """The first round trip is a second or two there, so what the flow asks to be told by (T_c) is
    longer than the time after which a node that hears nothing is deaf. Nodes that were deaf when
    each interval ended never told anything but to stay at half a segment a round trip."""
    rival = '[[flows]]\nname = "rival"\nalgorithm = "reno"\nmss_bytes = 1012'
    loaded = parsed(nodes=5, flow=f"start_s = 12\n{rival}", duration_s=45)
    result = run(backend, expand(loaded, algorithm="wccp")[0])
    mbps = {flow["name"]: flow["goodput_mbps"] for flow in result["flows"]}
    assert mbps["tcp"] > 0.1 * mbps["rival"], mbps


def test_agents_on_some_nodes_and_flows_both_ways(backend, expand):
    """Where the far end has no agent nobody hears anything: plain TCP, queue and all. Where the
    middle has none the ends' do, for flows of both ways. What they say is sampled."""
    both = '[[flows]]\nname = "back"\nreverse = true\nmss_bytes = 1012'
    found = {}
    for nodes in ([1, 3], [1, 2]):
        loaded = parsed(flow=both, topology=f"agents = {nodes}")
        (point,) = expand(loaded, algorithm="wccp")
        raw = raw_bytes(backend, [point])[point.id]
        rows = pl.read_csv(io.BytesIO(raw["agents.csv"]))
        assert sorted(set(rows["node"])) == [f"n{node}" for node in nodes]
        assert rows.filter(pl.col("time_s") > 4)["busy_permille"].mean() > 500
        found[nodes[1]] = run(backend, point)
    whole, lame = found[3], found[2]
    assert whole["rtt_ms_mean"] < 0.5 * lame["rtt_ms_mean"]
    assert whole["drops_per_s"] == 0 and whole["jain"] > 0.9
    assert all(flow["goodput_mbps"] > 0.2 for flow in whole["flows"])


@pytest.mark.parametrize("nodes", [2, 3, 4, 9])
def test_udp_goes_as_in_pure_ns3(backend, expand, mediumsim, nodes):
    """The same load over the same medium, with the kernel's stack and with ns-3's: what the loop
    and the TAP devices add is within 3 %."""
    at = {"nodes": str(nodes), "access": '["basic"]', "run.duration_s": "42"}
    (point,) = expand(scenario.load("wireless-udp", at), algorithm="udp")
    result = run(backend, point)
    places = [(250 * i, 0) for i in range(nodes)]
    pure = simulate(mediumsim, BASIC, places, [], udp=[(1, nodes)], seconds=40)
    assert result["goodput_mbps"] == pytest.approx(pure["udp_bytes"][0] * 8e-6 / 40, rel=0.03)
    # until the end: what the queues held then is not counted
    received = result["nodes"][-1]["received"]
    assert result["udp"][0]["received_pkts"] == pytest.approx(received, abs=2)
    assert result["flows"] == [] and result["retransmits"] is None and result["jain"] == 1


def test_udp_is_alone_or_cross_traffic(expand):
    """Where all flows are UDP there is nothing to choose, and nowhere else is it an algorithm."""
    with pytest.raises(BadInput, match="all are UDP, so --algorithms udp"):
        expand(scenario.load("wireless-udp"), algorithm="reno")
    with pytest.raises(BadInput, match='flow tcp: udp is no algorithm: say transport = "udp"'):
        expand(parsed(), algorithm="udp")


def test_results_tell_where_packets_went(backend, expand):
    """Losses of a flow that nothing else loses are those that the nodes counted."""
    (point,) = expand(parsed(nodes=2, medium="queue_pkts = 10"))
    result = run(backend, point)
    assert result["own_queue_drops"] > 0
    assert result["queue_drops"] == result["retry_drops"] == 0
    assert result["own_queue_drops"] == pytest.approx(result["retransmits"], abs=10)
    assert result["drops_per_s"] == pytest.approx(result["own_queue_drops"] / 12, rel=1e-4)
    busy = [node["busy_pct"] for node in result["nodes"]]
    assert all(80 < share < 100 for share in busy)
    assert result["busy_pct_max"] == max(busy)
    assert result["goodput_mbps"] < result["bound_mbps"]
    assert result["medium_run"]["late_max_us"] < 2  # the medium lags, frames do not
    assert result["medium_run"]["early_frames"] == 0


def test_a_frame_that_a_kernel_refused_fails_the_point(backend, expand, tmp_path, monkeypatch):
    """One is enough: on the air it was delivered, so who sent it would wonder about a loss that no
    counter has. The other frames go their way."""
    (point,) = expand(parsed(nodes=2, duration_s=6))
    source, shim, bin_ = tmp_path / "refuse.c", tmp_path / "refuse.so", tmp_path / "stage" / "bin"
    source.write_text(NO_ROOM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    bin_.mkdir(parents=True)
    stage = backend.build.stage
    for folder in (stage, stage / "bin"):
        for entry in folder.iterdir():
            if entry.name not in ("bin", "labmedium"):
                (tmp_path / "stage" / folder.relative_to(stage) / entry.name).symlink_to(entry)
    wrapper = bin_ / "labmedium"
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={shim} exec {stage / "bin" / "labmedium"} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setitem(vars(backend.build), "stage", tmp_path / "stage")
    outcomes = []

    def on_outcome(outcome):
        told = json.loads((outcome.raw / "medium.json").read_text())
        outcomes.append((outcome.error, told["refused_frames"]))

    backend.run_batch([point], min(os.sched_getaffinity(0)), on_outcome, threading.Event())
    assert outcomes == [("RuntimeError: a kernel had no room for 1 frames", 1)]


def test_a_flow_that_never_connects_is_a_starved_one(expand, tmp_path):
    """Also where it tries for longer than the 131 s after which a kernel by itself gives up."""
    expand(parsed())  # ns-3 is there, or a reason to skip
    file = tmp_path / "deaf.toml"
    file.write_text(OUT_OF_RANGE)
    done = run_command(str(file), "--jobs", "1", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    assert [result["algorithm"] for result in results] == ["wccp", "reno"]
    for result in results:
        (flow,) = result["flows"]
        assert (flow["goodput_mbps"], flow["bytes_whole"], flow["min_rtt_ms"]) == (0, 0, None)
        assert flow["stop_s"] == pytest.approx(140, abs=0.01)
        assert result["goodput_mbps"] == 0 and result["rtt_ms_mean"] is None
        assert result["retry_drops"] > 0


def test_a_person_writes_a_chain(backend, expand, tmp_path):
    """WirelessChain(3) in a Mininet script; a node asks the medium for its own counters."""
    expand(parsed())  # builds the medium
    script = Path(__file__).with_name("guest_wireless.py")
    command = f"PYTHONPATH=/run/lab/project/testbed python3 {script}"
    assert backend.run_command(command, min(os.sched_getaffinity(0)), tmp_path) == 0
    found = json.loads((tmp_path / "wireless.json").read_text())
    assert len(found["rtts_ms"]) == 20
    # 1000 bytes over four hops in all: the frame's time, at most acknowledgement and backoff
    least_ms = frame_us(1000 + 36, 2) / 1e3
    most_ms = (BASIC.exchange_us(1000) + CW_MIN * SLOT_US) / 1e3
    assert all(4 * least_ms < ms < 4 * most_ms for ms in found["rtts_ms"])
    names = ("busy", "transmit", "receive", "sense", "nav", "data_sent")
    for before, after in zip(found["before"], found["after"], strict=True):
        assert after["version"] == 1
        assert 20 * 4 * least_ms * 1e6 < after["time_ns"] - before["time_ns"] < 10e9
        grown = dict(zip(names, map(int.__sub__, after["values"], before["values"]), strict=False))
        assert grown["busy"] == sum(grown[name] for name in names[1:5])
        assert grown["busy"] > 0.95 * 20 * 4 * least_ms * 1e6  # all three hear it all
    # the ends sent 20 packets each, the middle 40; a collision may repeat some
    sent = [after["values"][5] for after in found["after"]]
    assert [20 <= sent[0] < 25, 40 <= sent[1] < 50, 20 <= sent[2] < 25] == [True] * 3


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"medium": "rate_mbps = 11"}, "802.11 DSSS has 1 and 2"),
        ({"medium": "carrier_sense_m = 100"}, "medium.carrier_sense_m = 100: 300 to"),
        ({"medium": "circle_radius_m = 10"}, "both circle_radius_m and circle_period_s"),
        ({"medium": "retries = 3"}, "key in medium"),
        ({"nodes": 1}, "topology.nodes = 1"),
        ({"topology": "mtu_bytes = 6000"}, "topology.mtu_bytes = 6000: 802.11 carries 2296"),
        ({"topology": "agents = [1, 4]"}, "topology.agents = [1, 4]: nodes are 1 to 3"),
        ({"topology": 'agents = ["n1"]'}, "must be a whole number"),
        ({"topology": "agents = []"}, "must be a list of whole numbers, or true or false"),
        ({"flow": 'last_hop = "hop9"'}, "hop in last_hop"),
        ({"duration_s": "12\ntruth = true"}, "run.truth: not on a wireless-chain"),
        ({"flow": "[links.hop1]\nrate_mbps = 1"}, "has a [medium] instead"),
    ],
)
def test_bad_input_is_one_clear_line(changes, complaint):
    with pytest.raises(BadInput) as refused:
        parsed(**changes)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_small_windows_of_sctp(backend, expand):
    """Two hops of sctp-smallwin where data is given up after four attempts: each loss costs a
    timeout, and idle retransmit is worth more than the paper's 1.3."""
    at = {"nodes": "3", "reports": "4", "attempts": "4"}
    found = {}
    for idle in ("off", "on"):
        loaded = scenario.load("sctp-smallwin", at | {"idle_retransmit": idle})
        (point,) = expand(loaded, algorithm="rfc9260")
        found[idle] = run(backend, point)
    assert found["off"]["timeouts"] > 5 > found["on"]["timeouts"]
    assert found["on"]["goodput_mbps"] > 1.3 * found["off"]["goodput_mbps"]


def test_flows_may_end_anywhere():
    at = parsed(nodes=9, flow='first_hop = "hop1"\nlast_hop = "hop4"')
    assert at.flows[0].span(at.topology) == (0, 3)
    assert not at.flows[0].is_cross(at.topology)
