# SPDX-License-Identifier: GPL-2.0-only
"""WCCP on wireless devices, inside a distribution's kernel: guest_radios.py prints TAP.

    a wlan0 - - - wlan1 r wlan1 - - - wlan2 s ==delay==> b      one IBSS; a and s reach each other
                                                                through r; b is wired

The devices are mac80211's, the radios mac80211_hwsim's: frames, queues and survey go the way they
go for hardware, but the air costs no time and the driver does not know how busy it is. The time
comes from the wire; how busy the air is, a script says, from what r sends and what is to fit.
"""

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import guest_net as net
from guest_wccp import (
    DATA_BYTES,
    Channel,
    Load,
    WccpPath,
    count,
    flows,
    goodput_mbps,
    rate_mbps,
    states,
)

from labtest.claims import Claims, check_log, near
from labtest.guest import enter_namespace, inside, load_script, run_cmd, write_file

CLAIMS = Claims()
claim = CLAIMS.add

MODULES = ("-d", "/run/lab/modules")
TOOL = Path(__file__).resolve().parents[1] / "tools" / "wccp-survey"
FREQUENCY_MHZ, BSSID = "2412", "02:11:22:33:44:55"
RADIOS = {"a": "wlan0", "r": "wlan1", "s": "wlan2"}
ADDRESSES = {"a": ["10.0.1.1"], "r": ["10.0.1.2", "10.0.3.1"], "s": ["10.0.3.2"]}
AGENTS = (*RADIOS.items(), ("b", "to-s"))
LIMIT_S = 30
CAPACITY_MBPS = 4
DELAY = "20ms"
TELL_S = 0.1


def iw(name: str, *words: str) -> str:
    return run_cmd("iw", *words, preexec_fn=lambda: enter_namespace(name))


def wait_for(what: Callable[[], bool], text: str) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < end_s, f"not within {LIMIT_S} s: {text}"
        time.sleep(0.1)


class Radios(WccpPath):
    """The network above; it goes with its radios, whatever is on the air."""

    def __init__(self):
        super().__init__(agents=AGENTS)

    def __enter__(self):
        run_cmd("modprobe", *MODULES, "mac80211_hwsim", f"radios={len(RADIOS)}")
        for name in net.NAMESPACES:
            run_cmd("ip", "netns", "add", name)
        for name, dev in RADIOS.items():
            phy = Path(f"/sys/class/net/{dev}/phy80211/name").read_text().strip()
            run_cmd("iw", "phy", phy, "set", "netns", "name", name)
            iw(name, "dev", dev, "set", "type", "ibss")
            commands = ["link set lo up", f"link set {dev} up"]
            commands += [f"addr add {address}/24 dev {dev}" for address in ADDRESSES[name]]
            run_cmd("ip", "-n", name, "-batch", "-", input="\n".join([*commands, ""]))
            for where in ("all", dev):  # r is in reach of both and a detour all the same
                for what in ("send_redirects", "accept_redirects"):
                    self.sysctl(name, f"conf/{where}/{what}", 0)
        self._wire("s", "b", "10.0.2.1", net.ADDRESSES["b"])
        self._route()
        self.shape()
        run_cmd("tc", "-n", "s", "qdisc", "add", "dev", "to-b", "root", "netem", "delay", DELAY)
        return self

    def __exit__(self, *_exc):
        self.leave()
        for name in net.NAMESPACES:
            run_cmd("ip", "netns", "del", name)

    def join(self) -> None:
        """Let the nodes find each other."""
        for name, dev in RADIOS.items():
            join = ("dev", dev, "ibss", "join", "lab", FREQUENCY_MHZ, "NOHT", "fixed-freq", BSSID)
            iw(name, *join)
        wait_for(lambda: self.reaches("a", net.ADDRESSES["b"]), "b from a")

    def reaches(self, name: str, address: str) -> bool:
        with inside(name):
            ping = ["ping", "-c", "1", "-W", "1", address]
            return subprocess.run(ping, capture_output=True).returncode == 0

    @staticmethod
    def leave() -> None:
        """Take the radios out of the machine."""
        if Path("/sys/module/mac80211_hwsim").exists():
            run_cmd("rmmod", "mac80211_hwsim")


@claim("a driver's survey is read as iw reads it")
def check_survey():
    """hwsim knows the channels of a scan, and marks none as the one in use."""
    tool = load_script(TOOL)
    frequency = 1  # NL80211_SURVEY_INFO_FREQUENCY
    with Radios():
        iw("a", "dev", "wlan0", "scan")
        with inside("a"), tool.netlink() as link:
            read = [tool.survey_info(one) for one in tool.surveys(link, tool.family(link), "wlan0")]
        found = {
            tool.number(info[frequency]): tuple(
                tool.number(info[key]) for key in (tool.SURVEY_TIME, tool.SURVEY_TIME_BUSY)
            )
            for info in read
        }
        shown = re.findall(
            r"frequency:\s+(\d+) MHz.*?active time:\s+(\d+) ms.*?busy time:\s+(\d+) ms",
            iw("a", "dev", "wlan0", "survey", "dump"), re.DOTALL,
        )  # fmt: skip
    assert len(shown) > 5, shown
    assert found == {int(mhz): (int(time_ms), int(busy_ms)) for mhz, time_ms, busy_ms in shown}


@claim("a driver that does not tell how busy the channel is leaves the agent deaf, in one line")
def check_deaf():
    with Radios() as path:
        path.join()
        with inside("a"):
            done = subprocess.run([TOOL, "wlan0", "--once"], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr == (
            "wccp-survey: the driver of wlan0 does not tell how busy the channel is\n"
        )
        assert states("a")["wlan0"]["channel"] == "deaf"
        with flows(1) as (flow,):
            time.sleep(1)
            assert flow.info().bytes_acked > 1e5 and not rate_mbps(flow)
        assert not count("a", "wlan0", "inserted") and not count("r", "wlan1", "lowered")


@contextlib.contextmanager
def on_air(capacity_mbps: float):
    """Have r alone hear that the air carries so much of what it sends, and the others an idle one,
    so that what slows a flow is r's word. They are told as often as by wccp-survey."""
    load = Load(capacity_mbps, TELL_S, device=("r", RADIOS["r"]))
    idle = [agent for agent in AGENTS if agent[0] != "r"]
    with Channel(load, [("r", RADIOS["r"])], TELL_S), Channel(lambda: 0.0, idle, TELL_S):
        yield


@claim("over two hops of mac80211 devices a flow takes what the middle node's air carries")
def check_follows():
    with Radios() as path:
        path.join()
        with flows(1) as (flow,):
            for capacity_mbps in (CAPACITY_MBPS, CAPACITY_MBPS / 4, CAPACITY_MBPS):
                with on_air(capacity_mbps):
                    time.sleep(15)
                    carried_mbps = goodput_mbps(flow, 5)
                near(carried_mbps, 0.8 * capacity_mbps, 0.25 * capacity_mbps)
            assert not flow.info().retransmits
        for name, dev, what in (("a", "wlan0", "inserted"), ("r", "wlan1", "lowered"),
                                ("b", "to-s", "echoed"), ("a", "wlan0", "told")):  # fmt: skip
            assert count(name, dev, what) > 100, (what, states(name))


@claim("radios that leave under load take their agents with them, and what was sent by them stops")
def check_gone():
    with Radios() as path:
        path.join()
        with on_air(CAPACITY_MBPS), flows(1) as (flow,):
            time.sleep(3)
            assert flow.info().bytes_acked > 1e5
            path.leave()
            for name in RADIOS:
                assert not states(name)
            acked = flow.info().bytes_acked
            time.sleep(2)
            assert flow.info().bytes_acked == acked


@claim("an IPv6 socket that is used for IPv4 has the option, and gives its room back")
def check_mapped():
    """Over wires: this is here because the lab kernel has no IPv6."""
    with WccpPath(), Channel(lambda: 0.5), net.Flow("wccp", mapped=True) as flow:
        time.sleep(3)
        assert rate_mbps(flow) and count("a", "to-r", "inserted") > 50
        assert not count("a", "to-r", "no_room")
        with_option = flow.info().mss_bytes
        net.set_algorithm(flow.sock, "reno")
        time.sleep(1)
        assert flow.info().mss_bytes == with_option + DATA_BYTES


@claim("an IPv6 socket, which hears of no node, has its whole window from the start")
def check_ipv6():
    """Over the loopback: this is here because the lab kernel has no IPv6."""
    ends = ((socket.AF_INET, "127.0.0.1", 2), (socket.AF_INET6, "::1", 10))
    with WccpPath(), inside("a"):
        write_file("/proc/sys/net/ipv6/conf/lo/disable_ipv6", 0)  # the guest boots without
        for family, address, wanted_pkts in ends:
            with (
                socket.create_server((address, 0), family=family) as listener,
                socket.socket(family) as sock,
            ):
                net.set_algorithm(sock, "wccp")
                sock.connect(listener.getsockname()[:2])
                assert net.info_of(sock).cwnd_pkts == wanted_pkts, net.info_of(sock)


claim("the kernel log holds no complaint at the end")(check_log)


if __name__ == "__main__":
    run_cmd("modprobe", *MODULES, "-a", "sch_wccp", "tcp_wccp")
    CLAIMS.settle(*sys.argv[1:2])
