# SPDX-License-Identifier: GPL-2.0-only
"""Mininet topologies of the experiments.

They are plain Topo subclasses; `mn --custom testbed/lab/topologies.py --topo dumbbell,2
--controller none` builds the same network by hand. Links are bare; what a hop does to packets is
set on the routers' interfaces that devices() names, never on an end host (a queue on the sending
host would push back on its own TCP, which no real bottleneck does).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

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
NETS = {"src": 100, "dst": 200}  # the hosts of pair 7 are 10.100.7.2 and 10.200.7.2
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


def devices(hops: Sequence[str]) -> dict[str, str]:
    """Return hop -> interface whose queue it is, there and back. HOPS: those forward, in order."""
    forward = {hop: f"r{i}-fwd" for i, hop in enumerate(hops, 1)}
    back = {f"reverse_{hop}": f"r{i}-rev" for i, hop in enumerate(hops, 2)}
    return forward | dict(reversed(back.items()))


class Chain(Topo):
    """A row of hops between routers, and PAIRS of a sender and a receiver.

    src1 --.                                            .-- dst1
           r1 ==hop1==> r2 ==hop2==> r3 ==hop3==> r4 --'
              <==reverse_hop1==      ...
                        |-- src2     |-- dst2

    Without SPANS all pairs are at the two ends, as pair 1 here. SPANS gives each pair the first
    and the last hop (from 0) that lie between its two hosts; those of pair 2 are 1 and 1.
    """

    def build(
        self,
        pairs: int = 1,
        hops: Sequence[str] | int = 3,
        spans: Sequence[Sequence[int]] = (),
        **_params,
    ):
        if isinstance(hops, (int, str)):  # as mn has it
            hops = [f"hop{i}" for i in range(1, int(hops) + 1)]
        ends = [(0, len(hops) - 1)] * int(pairs)
        # the routers, from 1, that the hosts of each pair are at
        self.places = [(first + 1, last + 2) for first, last in spans or ends]
        last = len(hops) + 1
        routers = [
            self.addNode(f"r{i}", cls=Router, ip=None, routes=list(self._routes(i, last)))
            for i in range(1, last + 1)
        ]
        for i, (router, following) in enumerate(pairwise(routers), 1):
            self._wire(
                router, following, f"r{i}-fwd", f"r{i + 1}-rev", f"10.0.{i}.1/24", f"10.0.{i}.2/24"
            )
        for pair, places in enumerate(self.places, 1):
            for end, place in zip(NETS, places, strict=True):
                self._add_host(end, pair, routers[place - 1])

    def _routes(self, router: int, last: int) -> Iterator[str]:
        """Give the routes of a ROUTER (from 1 to LAST): senders lie back, receivers ahead, but for
        the senders further ahead and the receivers further back. Lines between other routers are
        for those who try the network out."""
        back, ahead = f"via 10.0.{router - 1}.1", f"via 10.0.{router}.2"
        if router > 1:
            yield f"10.{NETS['src']}.0.0/16 {back}"
        if router < last:
            yield f"10.{NETS['dst']}.0.0/16 {ahead}"
        for pair, (first, end) in enumerate(self.places, 1):
            if router < first:
                yield f"10.{NETS['src']}.{pair}.0/24 {ahead}"
            if router > end:
                yield f"10.{NETS['dst']}.{pair}.0/24 {back}"
        for line in range(1, last):
            if line not in (router - 1, router):
                yield f"10.0.{line}.0/24 {back if line < router else ahead}"

    def _add_host(self, end: str, pair: int, router: str):
        net = f"10.{NETS[end]}.{pair}"
        host = self.addHost(f"{end}{pair}", cls=Host, ip=None, defaultRoute=f"via {net}.1")
        self._wire(
            host, router, f"{end}{pair}-eth0", f"{router}-{end}{pair}", f"{net}.2/24", f"{net}.1/24"
        )

    def _wire(self, a, b, name_a, name_b, ip_a, ip_b):
        self.addLink(
            a, b, intfName1=name_a, intfName2=name_b, params1={"ip": ip_a}, params2={"ip": ip_b}
        )

    @staticmethod
    def address(end: str, pair: int) -> str:
        """Return the address of the host at END, src or dst, of PAIR (from 1)."""
        return f"10.{NETS[end]}.{pair}.2"


class Dumbbell(Chain):
    """One bottleneck and one wireless hop.

    src1 --.                                            .-- dst1
    src2 --- r1 ==bottleneck==> r2 ~~wireless~~> r3 ------- dst2
                <reverse_bottleneck   <reverse_wireless
    """

    HOPS = ("bottleneck", "wireless")

    def build(self, pairs: int = 1, hops: Sequence[str] = HOPS, **params):
        super().build(pairs, hops, **params)


KINDS = {"dumbbell": Dumbbell, "chain": Chain}
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
