# SPDX-License-Identifier: GPL-2.0-only
"""An access point and its stations: as ns-3 and the standard have them; the real stack on top."""

import json
import math
import statistics
import subprocess
import tomllib

import pytest
from test_lab import raw_bytes
from test_medium import labmedium, mediumsim, stocksim
from test_wireless import expand, run

from lab.ask import points, scenario
from lab.ask.wifi import WifiMedium
from lab.common.errors import BadInput
from lab.run import build as builds

__all__ = ["expand", "labmedium", "mediumsim", "stocksim"]  # fixtures

PACKET_BYTES, PAYLOAD_BYTES = 1500, 1472
SCENARIO = """
title = "An access point"
[topology]
kind = "wifi-ap"
stations = {stations}
offloads = false
{topology}
[medium]
{medium}
[links.wired]
delay_ms = 5
[links.reverse_wired]
delay_ms = 5
[[flows]]
name = "tcp"
count = {stations}
{flow}
[run]
algorithms = ["cubic"]
duration_s = 3
warmup_s = 1
"""


def parsed(stations=1, medium="", flow="", topology=""):
    text = SCENARIO.format(stations=stations, medium=medium, flow=flow, topology=topology)
    return scenario.parse("wifi", tomllib.loads(text))


@pytest.fixture(scope="session")
def stockwifi(mediumsim):
    command = ["make", "-C", str(builds.MEDIUM_SOURCES), f"OUT={mediumsim.parent}", "stockwifi"]
    builds.run_cmd(command, "building stockwifi")
    return mediumsim.with_name("stockwifi")


def station_options(medium, stations):
    taps = [(f"-{i}", "-", "-") for i in range(2 * stations)]
    return [*medium.node_options(taps), *medium.options(1)]


def saturated_mbps(mediumsim, medium, stations, up=False, seconds=3, seed=1, extra=()):
    """Return the UDP payload that each station gets or sends, in Mb/s."""
    command = [mediumsim, "--seconds", seconds, *station_options(medium, stations), "--seed", seed]
    for i in range(2, stations + 2):
        command += ["--saturate", f"{i},1,1500" if up else f"1,{i},1500"]
    done = subprocess.run(
        [*map(str, command), *extra], capture_output=True, text=True, check=True
    ).stdout
    port_bytes = json.loads(done)["port_bytes"]
    came_out = port_bytes[:stations] if up else port_bytes[stations:]
    return [of * 8e-6 / seconds * PAYLOAD_BYTES / PACKET_BYTES for of in came_out]


@pytest.mark.parametrize(
    ("standard", "mcs", "width_mhz"), [("n", 7, 20), ("ac", 9, 80), ("ax", 11, 20)]
)
def test_one_station_is_as_the_standard_says(mediumsim, standard, mcs, width_mhz):
    medium = WifiMedium(standard=standard, channel_width_mhz=width_mhz)
    measured = saturated_mbps(mediumsim, medium, 1, seconds=1, extra=["--mcs", str(mcs)])
    theory = medium.one_hop_mbps(PAYLOAD_BYTES, PACKET_BYTES)
    assert measured[0] == pytest.approx(theory, rel=0.01)


@pytest.mark.parametrize(
    ("stations", "up"), [(1, False), (1, True), (5, False), (5, True)],
    ids=["1-down", "1-up", "5-down", "5-up"],
)  # fmt: skip
def test_it_carries_what_stock_ns3_does(mediumsim, stockwifi, stations, up):
    """ns-3 as it is, without a line of ours and with queues that never empty."""
    ours, stock = [], []
    for seed in (1, 2, 3) if stations > 1 and up else (1,):
        ours.append(sum(saturated_mbps(mediumsim, WifiMedium(), stations, up, seed=seed)))
        command = [stockwifi, f"--stations={stations}", f"--up={str(up).lower()}", "--seconds=3",
                   f"--run={seed}"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        stock.append(sum(map(float, done.stdout.split())))
    assert statistics.mean(ours) == pytest.approx(statistics.mean(stock), rel=0.05)


@pytest.mark.parametrize("stations", [1, 5])
def test_no_frame_is_late_or_missing(mediumsim, stations):
    """Bursts both ways at once, also where requests for block acknowledgements collide."""
    command = [mediumsim, "--lag", "--seconds", 5, *station_options(WifiMedium(), stations)]
    for i in range(2, stations + 2):
        command += ["--saturate", f"{i},1,1500", "--saturate", f"1,{i},1500"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["received"] == 2 * stations * 40
    assert found["late_max_ns"] == found["given_up"] == 0
    assert found["wakeups"] < found["received"]


def test_a_station_out_of_reach_is_named(mediumsim):
    command = [str(mediumsim), "--station", "-,-,-,-,900,0", "--saturate", "1,2,1500"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "station 1 does not hear the access point: it is too far away" in done.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--standard", "g"], "standard: n, ac or ax, not g"),
        (["--width-mhz", "80"], "width: 802.11n has 20 and 40 MHz"),
        (["--guard-interval-ns", "3200"], "guard interval"),
        (["--range-m", "300"], "--range-m is of ad hoc nodes, --station of an access point"),
        (["--station", "-,-"], "AP_NAMESPACE,AP_DEVICE,NAMESPACE,DEVICE,X,Y"),
    ],
)
def test_bad_options_are_named(mediumsim, options, complaint):
    command = [str(mediumsim), "--station", "-,-,-,-,5,0", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_same_seed_same_bytes(backend, expand):
    """In whatever order points run in a boot, and whatever ran before."""
    batch = expand(parsed(stations=2), seeds=(1, 2))
    together = raw_bytes(backend, batch)
    alone = raw_bytes(backend, batch[1:])
    assert together[batch[1].id] == alone[batch[1].id]
    assert together[batch[0].id]["medium.csv"] != together[batch[1].id]["medium.csv"]


def test_the_kernel_holds_back_what_the_mac_does_not_take(backend, expand):
    """Down, packets wait in the access point's queueing discipline, which drops what it has no room
    for; up, the sender's own TCP waits (TCP small queues), and its node drops nothing."""
    found = {}
    for way in (False, True):
        flow = f"reverse = {str(way).lower()}"
        medium = 'queue_pkts = 50\naqm = ""\nstation_queue_pkts = 50\nstation_aqm = ""'
        (point,) = expand(parsed(medium=medium, flow=flow), algorithm="cubic")
        result = found[way] = run(backend, point)
        bound_mbps = result["bound_mbps"]
        assert 0.75 * bound_mbps < result["goodput_mbps"] < bound_mbps
        assert result["medium_run"]["late_max_us"] < 5
        assert result["medium_run"]["early_frames"] == result["retry_drops"] == 0
    down, up = found[False], found[True]
    assert down["queue_drops"] > 0 and down["nodes"][0]["queue_drops"] == down["queue_drops"]
    assert up["own_queue_drops"] == up["queue_drops"] == 0
    assert up["rtt_ms_p95"] < down["rtt_ms_p95"] + 30


def test_fq_codel_at_the_access_point_keeps_delays_short(backend, expand):
    deep = 'queue_pkts = 1000\naqm = ""'
    found = {}
    for name, medium in (("deep", deep), ("fq_codel", "")):
        (point,) = expand(parsed(medium=medium), algorithm="cubic")
        found[name] = run(backend, point)
    assert found["fq_codel"]["rtt_ms_p95"] < 0.6 * found["deep"]["rtt_ms_p95"]
    assert found["fq_codel"]["goodput_mbps"] > 0.8 * found["deep"]["goodput_mbps"]


def test_flows_take_the_stations_in_turn():
    text = 'station = 2\n[[flows]]\nname = "more"\ncount = 2\nreverse = true'
    at = parsed(stations=3, flow=text)
    spec = points.expand(at, ("cubic",), [1], lambda *_: "")[0].spec
    assert [flow["pair"] for flow in spec["flows"]] == [2, 3, 1, 1, 2]
    assert not any(flow["cross"] for flow in spec["flows"])
    assert len(spec["topology"]["spans"]) == 3


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"stations": 21}, "topology.stations = 21: a wifi-ap has 1 to 20"),
        ({"medium": 'standard = "g"'}, "medium.standard"),
        ({"medium": "channel_width_mhz = 80"}, "802.11n has 20, 40"),
        ({"medium": "distance_m = 0"}, "medium.distance_m = 0: 1 to 1000"),
        ({"medium": 'aqm = "red"'}, "medium.aqm"),
        ({"medium": "circle_radius_m = 3"}, "both circle_radius_m and circle_period_s"),
        ({"medium": "rate_mbps = 2"}, "key in medium"),
        ({"flow": "station = 2"}, "station = 2: there are 1"),
        ({"flow": "delay_ms = 2"}, "has no router for it"),
        ({"topology": "nodes = 3"}, "topology.nodes: only a wireless-chain"),
        ({"topology": 'hops = ["a"]'}, "those of the wifi-ap are wired"),
    ],
)
def test_bad_input_is_one_clear_line(changes, complaint):
    with pytest.raises(BadInput) as refused:
        parsed(**changes)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_distance_slows_it_down(mediumsim):
    near, far = (
        saturated_mbps(mediumsim, WifiMedium(distance_m=distance), 1, seconds=2)[0]
        for distance in (5, 60)
    )
    assert far < 0.7 * near


def test_the_theory_by_hand():
    """MPDUs of 1538 bytes, 1544 with delimiter and padding, 28 of them in 5.484 ms at 65 Mb/s: 1331
    symbols of 260 bits."""
    symbols = math.ceil((16 + 8 * 28 * 1544 + 6) / 260)
    total_us = 43 + 67.5 + 36 + symbols * 4 + 16 + 32
    assert symbols == 1331 and 36 + symbols * 4 < 5484 < 36 + symbols * 4 * 29 / 28
    assert WifiMedium().one_hop_mbps(1472, 1500) == pytest.approx(28 * 1472 * 8 / total_us)
