# SPDX-License-Identifier: GPL-2.0-only
"""Inside the lab: Mininet scripts as a person writes them, with an access point of veno_lab."""

import json
import re
import sys
from contextlib import suppress
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from veno_lab import WifiAp, WifiLink, WirelessHop

LABFLOW = "/run/lab/modules/bin/labflow"


def network(places: dict[str, float], wire: dict, **keywords) -> Mininet:
    """Start a server, an access point with these KEYWORDS behind a WIRE, and stations, name -> m
    away."""
    net = Mininet(controller=None)
    ap = net.addSwitch("ap1", cls=WifiAp, **keywords)
    net.addLink(net.addHost("server"), ap, **wire)
    for name, distance_m in places.items():
        net.addLink(ap, net.addHost(name), cls=WifiLink, distance_m=distance_m)
    net.start()
    return net


def transfer(net: Mininet, source: str, sink: str, size: int) -> dict:
    """Send SIZE bytes; return what labflow says of it."""
    receiver = net[sink].popen([LABFLOW, "sink", "--port", "5001", "--ready-fd", "1"], text=True)
    assert receiver.stdout.readline() == "ready\n"
    to = f"--connect {net[sink].IP()} --port 5001"
    told = net[source].cmd(f"{LABFLOW} send {to} --bytes {size} --json -")
    receiver.terminate()
    receiver.wait()
    return json.loads(told.strip().splitlines()[-1])


def seconds(flow: dict) -> float:
    return flow["end_s"] - flow["start_s"]


def media() -> list[str]:
    """Return the process ids of each labmedium there is."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found += [path.parent.name] * (path.read_text() == "labmedium\n")
    return found


def seeded(seed: int) -> dict:
    """Return what labflow says of a transfer, with times to the nanosecond."""
    net = network({"near": 5, "far": 40}, {}, seed=seed)
    try:
        return transfer(net, "server", "near", 300_000)
    finally:
        net.stop()


def named(net: Mininet, ip: str) -> str:
    return next(host.name for host in net.hosts if host.IP() == ip)


def bridged() -> dict:
    """Return what is to be seen of stations near and far, behind a wire with a delay."""
    wire = {"cls": WirelessHop, "delay_ms": 10}
    net = network({"near": 5, "far": 66}, wire, seed=2, station_aqm="", station_queue_pkts=77)
    try:
        ap, near = net["ap1"], net["near"]
        for other in ("server", "far"):  # address resolution, and first steps of Minstrel-HT
            near.cmd(f"ping -c 20 -i 0.1 {net[other].IP()}")
        said = near.cmd(f"ping -c 5 -i 0.1 {net['server'].IP()}")
        for host in net.hosts:
            host.cmd("echo 0 >/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts")
        to_all = near.cmd("ping -b -c 5 -i 0.2 10.255.255.255")
        return {
            "processes": len(media()),
            "stations": ap.stations,
            "late": refused(net.addLink, net.addHost("late"), ap, cls=WifiLink),
            "rtts_ms": [float(ms) for ms in re.findall(r"time=([\d.]+)", said)],
            "to_far": near.cmd(f"ping -c 5 -i 0.1 {net['far'].IP()}").count("ttl="),
            "heard": sorted({named(net, ip) for ip in re.findall(r"from ([\d.]+)", to_all)}),
            "queues": [
                net[node].cmd(f"tc qdisc show dev {dev}")
                for node, dev in (("ap1", "ap1-wl1"), ("near", "near-wlan0"))
            ],
            "s": {
                station: seconds(transfer(net, "server", station, 2_000_000))
                for station in ("near", "far")
            },
            "up": seconds(transfer(net, "near", "server", 1_000_000)),
        }
    finally:
        net.stop()
        assert not media()


def fixed_rate(mcs: int, **keywords) -> dict:
    """Return how long a transfer takes at this MCS, and what was lost in queues of the kernel."""
    net = network({"sta": 5}, {}, mcs=mcs, **keywords)
    try:
        flow = transfer(net, "server", "sta", 500_000)
        return {
            "s": seconds(flow),
            "retransmits": flow["retransmits"],
            "gated": "labgate" in net["ap1"].cmd("tc qdisc show dev ap1-wl1"),
        }
    finally:
        net.stop()


def refused(step, *arguments, **keywords) -> str:
    try:
        step(*arguments, **keywords)
    except (TypeError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def refusals() -> dict[str, str]:
    """Return what is said of keywords and networks that cannot be."""
    net = Mininet(controller=None)
    ap = net.addSwitch("ap1", cls=WifiAp)
    host, far = net.addHost("h1"), net.addHost("far")
    said = {
        "typo": refused(WifiAp, "ap2", standrad="ac"),
        "standard": refused(WifiAp, "ap2", standard="g"),
        "rate": refused(WifiAp, "ap2", mcs=9),
        "number": refused(WifiAp, "ap2", queue_pkts="many"),
        "aqm": refused(WifiAp, "ap2", gate=False, aqm="codel"),
        "gate": refused(WifiAp, "ap2", gate="no"),
        "seed": refused(WifiAp, "ap2", seed="x"),
        "link": refused(net.addLink, host, ap, cls=WifiLink, distance=3),
        "place": refused(net.addLink, host, ap, cls=WifiLink, distance_m=-3),
        "ends": refused(net.addLink, host, far, cls=WifiLink),
        "alone": refused(ap.start, []),
    }
    net.addLink(far, ap, cls=WifiLink, distance_m=900)
    said["reach"] = refused(net.start)
    net.stop()
    said["left"] = " ".join(media())
    # a kernel without the module
    said["rmmod"] = ap_without_gate()
    return said


def ap_without_gate() -> str:
    net = Mininet(controller=None)
    ap = net.addSwitch("ap1", cls=WifiAp)
    net.addLink(net.addHost("h1"), ap, cls=WifiLink)
    ap.cmd("rmmod sch_labgate; echo /bin/false >/proc/sys/kernel/modprobe")
    try:
        return refused(net.start)
    finally:
        net.stop()


def main():
    setLogLevel("critical")
    found = {"seeded": seeded(int(sys.argv[1]))}
    if "--all" in sys.argv:
        found |= {
            "bridged": bridged(),
            "slow": fixed_rate(0, aqm=""),
            "ungated": fixed_rate(0, gate=False, queue_pkts=20),
            "refused": refusals(),
        }
        found["refused"]["late"] = found["bridged"]["late"]
    print(json.dumps(found))


main()
