# SPDX-License-Identifier: GPL-2.0-only
"""Inside the lab: a wireless chain that a person writes, and a node that asks for its counters."""

import json
import os
import re
import socket
import struct
import sys
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet

from lab.ask import topologies
from lab.run.guest.namespaces import NetworkNamespaceOf

ETHERTYPE_SURVEY = 0x88B5
HEADER = struct.Struct("!HHQ")


def survey(net, name):
    """Ask the medium from node NAME; return the medium's time in ns and the counters."""
    node = net[name]
    with NetworkNamespaceOf(node.pid):
        asker = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_SURVEY))
    asker.bind((f"{name}-wl0", ETHERTYPE_SURVEY))
    asker.settimeout(5)
    mac = bytes.fromhex(node.MAC().replace(":", ""))
    asker.send(mac + mac + struct.pack("!H", ETHERTYPE_SURVEY) + bytes(46))
    while True:
        answer, (*_, kind, _hardware, _mac) = asker.recvfrom(2048)
        if kind != socket.PACKET_OUTGOING:
            break
    version, count, time_ns = HEADER.unpack_from(answer, 14)
    values = struct.unpack_from(f"!{count}Q", answer, 14 + HEADER.size)
    return {"version": version, "time_ns": time_ns, "values": values}


def main():
    setLogLevel("warning")
    net = Mininet(topo=topologies.WirelessChain(3), controller=None)
    net.start()
    topologies.finish(net, offloads=False, ecn=False)
    before = [survey(net, f"n{i}") for i in (1, 2, 3)]
    said = net["n1"].cmd("ping -c 20 -i 0.1 -s 972 10.9.0.3")
    after = [survey(net, f"n{i}") for i in (1, 2, 3)]
    net.stop()
    rtts = [float(ms) for ms in re.findall(r"time=([\d.]+)", said)]
    found = {"before": before, "after": after, "rtts_ms": rtts}
    Path(os.environ["LAB_OUT"], "wireless.json").write_text(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
