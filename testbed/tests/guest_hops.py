# SPDX-License-Identifier: GPL-2.0-only
"""Inside the lab: a Mininet script as a person writes it, with hops of veno_lab."""

import json
import re
import sys

from mininet.log import setLogLevel
from mininet.net import Mininet

from veno_lab import OneHop, TraceHop, WirelessHop

LABFLOW = "/run/lab/modules/bin/labflow"


def transfer(net, size: int) -> dict:
    """Send SIZE bytes from src1 to dst1; return what labflow says of it."""
    sink = net["dst1"].popen([LABFLOW, "sink", "--port", "5001", "--ready-fd", "1"], text=True)
    assert sink.stdout.readline() == "ready\n"
    to = f"--connect {net['dst1'].IP()} --port 5001"
    told = net["src1"].cmd(f"{LABFLOW} send {to} --bytes {size} --json -")
    sink.terminate()
    sink.wait()
    return json.loads(told.strip().splitlines()[-1])


def lost(net, dev: str) -> int:
    said = net[dev.split("-")[0]].cmd(f"tc -s qdisc show dev {dev}")
    return int(re.search(r"dropped (\d+)", said)[1])


def run(size: int, **options) -> dict:
    """Run one transfer over a hop with OPTIONS; return when it ended and what the hop dropped."""
    net = Mininet(topo=OneHop(**options), controller=None)
    net.start()
    try:
        hops = [link for link in net.links if isinstance(link, WirelessHop)]
        for hop in hops:
            if isinstance(hop, TraceHop):
                hop.begin()
        flow = transfer(net, size)
        seconds = flow["end_s"] - flow["start_s"]
        names = [hop.intf1.name for hop in hops]
        dropped = [lost(net, name) for name in names]
        return {"s": round(seconds, 3), "lost": dropped, "cls": [type(h).__name__ for h in hops]}
    finally:
        net.stop()


def pings_lost(seed: int) -> list[int]:
    """Return which of 200 pings did not come back, where the way there loses a tenth."""
    options = {"loss_pct": 10, "delay_ms": 5, "back": {"loss_pct": 0}, "seed": seed}
    net = Mininet(topo=OneHop(**options), controller=None)
    net.start()
    try:
        told = net["src1"].cmd(f"ping -c 200 -i 0.05 -W 1 {net['dst1'].IP()}")
        back = {int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", told)}
        return sorted(set(range(1, 201)) - back)
    finally:
        net.stop()


def most_queued() -> int:
    """Return how many of 60 packets at once find room in a queue of 20 before a long delay."""
    options = {"rate_mbps": 1, "queue_pkts": 20, "delay_ms": 300, "back": {"queue_pkts": 1000}}
    net = Mininet(topo=OneHop(**options), controller=None)
    net.start()
    try:
        net["src1"].cmd(f"ping -c 1 -W 2 {net['dst1'].IP()}")  # who has which address
        net["src1"].cmd(f"ping -c 60 -l 60 -s 1400 -W 5 {net['dst1'].IP()}")
        return 60 - lost(net, "r1-fwd")
    finally:
        net.stop()


def refused(**options) -> str:
    try:
        WirelessHop(None, None, **options)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def main():
    setLogLevel("warning")
    lossy = {"rate_mbps": 2, "queue_pkts": 50, "delay_ms": 20, "loss_pct": 5}
    found = {
        "clean": run(500_000, rate_mbps=2, queue_pkts=50, delay_ms=20),
        "lossy": run(500_000, **lossy, seed=1),
        "pings": [pings_lost(seed) for seed in (1, 1, 2)],
        "bursts": run(500_000, **lossy, burst_pkts=4, seed=1),
        "trace": run(500_000, trace=sys.argv[1], queue_pkts=50, delay_ms=20),
        "typo": refused(los_pct=1),
        "range": refused(loss_pct=120),
        "limit": refused(rate_mbps=5, queue_pkts=30, delay_ms=22),
        "order": refused(delay_ms=10, jitter_ms=5),
        "aqm": refused(rate_mbps=5, queue_pkts=30, aqm="codle"),
        "tclink": [refused(**{key: 1}) for key in ("bw", "jitter", "max_queue_size")],
        "kinds": [
            refused(**wrong)
            for wrong in (
                {"rate_mbps": "5"},
                {"queue_pkts": 2.5, "rate_mbps": 5},
                {"delay_ms": None},
                {"seed": "x"},
                {"seed": 1.5},
                {"back": 5},
            )
        ],
        "runs": refused(burst_pkts=3),
        "there": refused(loss_pct=120, back={"loss_pct": 1}),
        "back": refused(loss_pct=1, back={"loss_pct": 120}),
        "way": refused(rate_mbps=2, queue_pkts=20, delay_ms=10, back={"delay_ms": 0}),
        "none": refused(burst_pkts=3, loss_pct=0, queue_pkts=1),
        "queue": most_queued(),
        "varies": run(500_000, rate_mbps=2, queue_pkts=50, delay_ms=20, jitter_ms=5),
    }
    print(json.dumps(found))


main()
