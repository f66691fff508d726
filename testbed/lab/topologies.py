# SPDX-License-Identifier: GPL-2.0-only
"""Mininet topologies of the experiments.

They are plain Topo subclasses; `mn --custom testbed/lab/topologies.py --topo dumbbell,2
--controller none` builds the same network by hand. Links are bare; what a hop does to packets is
set on the routers' interfaces that HOPS names, never on an end host (a queue on the sending host
would push back on its own TCP, which no real bottleneck does).
"""

from pathlib import Path
from typing import ClassVar

from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

# The receive window is wide from the start. If it followed the reader, as it does by default, the
# sink, which is woken as rarely as it can be, would hold it below what fast paths need.
HOST_SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 16777216 16777216",
    "net.ipv4.tcp_wmem": "4096 16384 16777216",
    "net.ipv4.tcp_no_metrics_save": "1",  # a point must not learn from the one before
}
IPV6 = Path("/proc/sys/net/ipv6/conf")  # where there is none, it cannot disturb
OFFLOADS = ("tso", "gso", "gro", "tx", "rx", "sg")


def run(node: Node, *commands: str) -> None:
    """Run shell COMMANDS on NODE one after the other; RuntimeError with what the failing one said.

    Node.cmd() alone gives back the output and forgets the status.
    """
    said = node.cmd(f"{{ {' && '.join(commands)} ; }} 2>&1 >/dev/null && echo done").strip()
    if said.splitlines()[-1:] != ["done"]:
        raise RuntimeError(f"{node.name}: {'; '.join(commands)}: {said}")


class Host(Node):
    """An end host with wide socket buffers and no memory of earlier connections."""

    def config(self, **params):
        result = super().config(**params)
        settings = " ".join(f"'{key}={value}'" for key, value in HOST_SYSCTLS.items())
        run(self, f"sysctl -qw {settings}")
        return result


class Router(Node):
    """A node that forwards."""

    def config(self, routes=(), **params):
        """Set up the node; ROUTES are arguments of `ip route add`."""
        result = super().config(**params)
        commands = [f"ip route replace {route}" for route in routes]
        run(self, "sysctl -qw net.ipv4.ip_forward=1", *commands)
        return result


class Dumbbell(Topo):
    """PAIRS senders and receivers around one bottleneck and one wireless hop.

    src1 --.                                            .-- dst1
    src2 --- r1 ==bottleneck==> r2 ~~wireless~~> r3 ------- dst2
                <reverse_bottleneck   <reverse_wireless
    """

    HOPS: ClassVar[dict[str, str]] = {
        "bottleneck": "r1-fwd",
        "wireless": "r2-fwd",
        "reverse_wireless": "r3-rev",
        "reverse_bottleneck": "r2-rev",
    }

    ROUTES: ClassVar[dict[str, tuple[str, ...]]] = {
        "r1": ("10.200.0.0/16 via 10.0.1.2",),
        "r2": ("10.100.0.0/16 via 10.0.1.1", "10.200.0.0/16 via 10.0.2.2"),
        "r3": ("10.100.0.0/16 via 10.0.2.1",),
    }

    def build(self, pairs: int = 1, **_params):
        pairs = int(pairs)  # mn passes text
        r1, r2, r3 = (
            self.addNode(name, cls=Router, ip=None, routes=routes)
            for name, routes in self.ROUTES.items()
        )
        self._wire(r1, r2, "r1-fwd", "r2-rev", "10.0.1.1/24", "10.0.1.2/24")
        self._wire(r2, r3, "r2-fwd", "r3-rev", "10.0.2.1/24", "10.0.2.2/24")
        for i in range(1, pairs + 1):
            for end, router, net in (("src", r1, 100), ("dst", r3, 200)):
                host = self.addHost(
                    f"{end}{i}", cls=Host, ip=None, defaultRoute=f"via 10.{net}.{i}.1"
                )
                self._wire(
                    host, router, f"{end}{i}-eth0", f"{router}-{end}{i}",
                    f"10.{net}.{i}.2/24", f"10.{net}.{i}.1/24",
                )  # fmt: skip

    def _wire(self, a, b, name_a, name_b, ip_a, ip_b):
        self.addLink(
            a, b, intfName1=name_a, intfName2=name_b, params1={"ip": ip_a}, params2={"ip": ip_b}
        )

    @staticmethod
    def address(end: str, pair: int) -> str:
        """Return the address of the host at END, src or dst, of PAIR (from 1)."""
        return f"10.{100 if end == 'src' else 200}.{pair}.2"


KINDS = {"dumbbell": Dumbbell}
topos = KINDS  # the name that `mn --custom` looks for


def finish(net: Mininet, offloads: bool, ecn: bool) -> None:
    """Complete a started network: offloads, ECN, and every neighbour known for good.

    Address resolution in mid-run would be packets that no scenario asked for, lost like any.
    """
    switch = "on" if offloads else "off"
    for node in net.values():
        commands = [f"sysctl -qw net.ipv4.tcp_ecn={int(ecn)}"]
        for intf in node.intfList():
            if intf.link is None:
                continue
            peer = intf.link.intf2 if intf.link.intf1 is intf else intf.link.intf1
            features = " ".join(f"{feature} {switch}" for feature in OFFLOADS)
            commands.append(f"ethtool -K {intf.name} {features}")
            commands.append(
                f"ip neigh replace {peer.ip} lladdr {peer.mac} dev {intf.name} nud permanent"
            )
        run(node, *commands)
