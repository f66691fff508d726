# SPDX-License-Identifier: GPL-2.0-only
"""Mininet topologies of the experiments.

They are plain Topo subclasses; `mn --custom testbed/lab/ask/topologies.py --topo dumbbell,2
--controller none` builds the same network by hand. Links are bare; what a hop does to packets is
set on the routers' interfaces that devices() names, never on an end host (a queue on the sending
host would push back on its own TCP, which no real bottleneck does).
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from shlex import quote
from tempfile import NamedTemporaryFile

from mininet.link import Intf
from mininet.net import Mininet
from mininet.node import Node, Switch
from mininet.topo import Topo

from lab.ask.medium import Medium
from lab.ask.wifi import WifiMedium

# The receive window is wide from the start. If it followed the reader, as it does by default, the
# sink, which is woken as rarely as it can be, would hold it below what fast paths need.
HOST_SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 16777216 16777216",
    "net.ipv4.tcp_wmem": "4096 16384 16777216",
    "net.ipv4.tcp_no_metrics_save": "1",  # a point must not learn from the one before
    # A flow that starves from its first packet on is a result, and by default an error: the
    # receiver gives up after 63 s, the sender after 131.
    "net.ipv4.tcp_synack_retries": "12",
    "net.ipv4.tcp_syn_retries": "12",
}
NETS = {"src": 100, "dst": 200}  # the hosts of pair 7 are 10.100.7.2 and 10.200.7.2
ROWS = "rs"  # routers of a host's first home and of its second, which is 10.101.7.2 or 10.201.7.2
SECOND = "second_"  # of the names of the hops between second homes
SENT = ("tso", "gso", "tx", "sg")  # offloads of what is sent
OFFLOADS = (*SENT, "gro", "rx")
AT_HOSTS = "hosts"  # in place of whether they are on, as lab.ask.parts has it
CARD_MBPS = 10_000  # of a host's network card, which cuts what TCP hands over
CARD_LIMIT_BYTES = 100_000_000  # never reached: TCP has little in its own host's queue
# A packet that a card has cut takes more than twice of it at the receiver that another one does.
CARD_RMEM = ("net.ipv4.tcp_rmem", "4096 67108864 67108864")


def run(node: Node, *commands: str) -> None:
    """Run shell COMMANDS on NODE one after the other; RuntimeError with what the failing one said.

    Node.cmd() alone gives back the output and forgets the status.
    """
    said = node.cmd(f"{{ {' && '.join(commands)} ; }} 2>&1 >/dev/null && echo done").strip()
    if said.splitlines()[-1:] != ["done"]:
        raise RuntimeError(f"{node.name}: {'; '.join(commands)}: {said}")


def setting(name: str, value: object) -> str:
    """Return the shell command that gives the sysctl NAME a VALUE, without a process of its own."""
    return f"echo '{value}' >/proc/sys/{name.replace('.', '/')}"


class Host(Node):
    """An end host with wide socket buffers and no memory of earlier connections."""

    def config(self, second_route="", **params):
        """Set up the host; SECOND_ROUTE is for `ip route add` if it has a second home."""
        result = super().config(**params)
        run(self, *(setting(name, value) for name, value in HOST_SYSCTLS.items()))
        if len(self.intfList()) > 1:
            run(self, f"ip route replace {second_route}")
        return result


class Router(Node):
    """A node that forwards."""

    def config(self, routes=(), **params):
        """Set up the node; ROUTES are arguments of `ip route add`."""
        result = super().config(**params)
        commands = [f"ip route replace {route}" for route in routes]
        run(self, setting("net.ipv4.ip_forward", 1), *commands)
        return result


def devices(hops: Sequence[str], homes: int = 1) -> dict[str, str]:
    """Return hop -> interface whose queue it is, there and back. HOPS: those forward, in order;
    with two HOMES there are as many between the second ones."""
    found = {}
    for row, prefix in zip(ROWS[:homes], ("", SECOND), strict=False):
        names = [prefix + hop for hop in hops]
        found |= {hop: f"{row}{i}-fwd" for i, hop in enumerate(names, 1)}
        back = {f"reverse_{hop}": f"{row}{i}-rev" for i, hop in enumerate(names, 2)}
        found |= dict(reversed(back.items()))
    return found


class Chain(Topo):
    """A row of hops between routers, and PAIRS of a sender and a receiver.

    src1 --.                                            .-- dst1
           r1 ==hop1==> r2 ==hop2==> r3 ==hop3==> r4 --'
              <==reverse_hop1==      ...
                        |-- src2     |-- dst2

    Without SPANS all pairs are at the two ends, as pair 1 here. SPANS gives each pair the first
    and the last hop (from 0) that lie between its two hosts; those of pair 2 are 1 and 1.

    With two HOMES there is a second row of routers, s1 and on, and each host has an interface to
    both; the rows do not meet.
    """

    def build(
        self,
        pairs: int = 1,
        hops: Sequence[str] | int = 3,
        spans: Sequence[Sequence[int]] = (),
        homes: int = 1,
        **_params,
    ):
        if isinstance(hops, (int, str)):  # as mn has it
            hops = [f"hop{i}" for i in range(1, int(hops) + 1)]
        ends = [(0, len(hops) - 1)] * int(pairs)
        # the routers, from 1, that the hosts of each pair are at
        self.places = [(first + 1, last + 2) for first, last in spans or ends]
        hosts = [self._hosts(pair) for pair in range(1, len(self.places) + 1)]
        for home in range(int(homes)):
            routers = self._row(home, len(hops) + 1)
            for pair, places in enumerate(self.places, 1):
                for end, host, place in zip(NETS, hosts[pair - 1], places, strict=True):
                    self._settle(home, end, pair, host, routers[place - 1])

    def _hosts(self, pair: int) -> list[str]:
        """Add the two hosts of PAIR, which know the way from either home to the other's."""
        ways = {"src": f"10.{NETS['dst'] + 1}", "dst": f"10.{NETS['src'] + 1}"}
        return [
            self.addHost(
                f"{end}{pair}", cls=Host, ip=None, defaultRoute=f"via 10.{net}.{pair}.1",
                second_route=f"{ways[end]}.0.0/16 via 10.{net + 1}.{pair}.1",
            )
            for end, net in NETS.items()
        ]  # fmt: skip

    def _row(self, home: int, last: int) -> list[str]:
        """Add the routers of a HOME (from 0), 1 to LAST, and the lines between them."""
        row = ROWS[home]
        routers = [
            self.addNode(f"{row}{i}", cls=Router, ip=None, routes=list(self._routes(home, i, last)))
            for i in range(1, last + 1)
        ]
        for i, (router, following) in enumerate(pairwise(routers), 1):
            line = f"10.{home}.{i}"
            self._wire(
                router,
                following,
                f"{router}-fwd",
                f"{following}-rev",
                f"{line}.1/24",
                f"{line}.2/24",
            )
        return routers

    def _routes(self, home: int, router: int, last: int) -> Iterator[str]:
        """Give the routes of a ROUTER (from 1 to LAST): senders lie back, receivers ahead, but for
        the senders further ahead and the receivers further back. Lines between other routers are
        for those who try the network out."""
        src, dst = (f"10.{net + home}" for net in NETS.values())
        back, ahead = f"via 10.{home}.{router - 1}.1", f"via 10.{home}.{router}.2"
        if router > 1:
            yield f"{src}.0.0/16 {back}"
        if router < last:
            yield f"{dst}.0.0/16 {ahead}"
        for pair, (first, end) in enumerate(self.places, 1):
            if router < first:
                yield f"{src}.{pair}.0/24 {ahead}"
            if router > end:
                yield f"{dst}.{pair}.0/24 {back}"
        for line in range(1, last):
            if line not in (router - 1, router):
                yield f"10.{home}.{line}.0/24 {back if line < router else ahead}"

    def _settle(self, home: int, end: str, pair: int, host: str, router: str):
        """Wire the HOME of a host to a ROUTER."""
        net = f"10.{NETS[end] + home}.{pair}"
        self._wire(
            host, router, f"{host}-eth{home}", f"{router}-{host}", f"{net}.2/24", f"{net}.1/24"
        )

    def _wire(self, a, b, name_a, name_b, ip_a, ip_b):
        # an address sets a device up, so Mininet need not
        ends = [{"ip": ip, "up": None} for ip in (ip_a, ip_b)]
        self.addLink(a, b, intfName1=name_a, intfName2=name_b, params1=ends[0], params2=ends[1])

    @staticmethod
    def host(end: str, pair: int) -> str:
        """Return the name of the host at END, src or dst, of PAIR (from 1)."""
        return f"{end}{pair}"

    @staticmethod
    def address(end: str, pair: int) -> str:
        """Return the first address of the host at END, src or dst, of PAIR (from 1)."""
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


class Station(Host):
    """A node of a wireless network: an end host that forwards, too."""

    def config(self, routes=(), **params):
        """Set up the node; ROUTES are arguments of `ip route add`."""
        result = super().config(**params)
        device = self.defaultIntf().name
        run(
            self,
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0",
            # what comes in leaves by the same device: no reason to tell the sender
            "sysctl -qw net.ipv4.conf.all.send_redirects=0"
            f" net.ipv4.conf.{device}.send_redirects=0",
            *(f"ip route replace {route} dev {device} onlink" for route in routes),
        )
        return result


# a TAP device's own ring never drops: what is queued and dropped is the medium's to say
RING_PKTS = 10_000


def add_tap(node: Node, name: str, link, port=None, mac=None, **params) -> Intf:
    """Give NODE a TAP device of this NAME as an interface of LINK; MAC: its address."""
    run(
        node,
        f"ip tuntap add dev {name} mode tap",
        f"ip link set {name} txqueuelen {RING_PKTS}",
    )
    in_place = {"moveIntfFn": lambda *_: True}  # it is made where it belongs
    intf = Intf(name, node=node, port=port, link=link, **in_place, **params)
    if mac:
        intf.setMAC(mac)
    return intf


class WirelessLink:
    """What ties a station to its medium: a TAP device at the station."""

    def __init__(
        self, node, medium, port1=None, intfName1=None, params1=None, addr1=None, order=0, **_params
    ):
        """Make it. ORDER: where it stands among the medium's, which Mininet links in its own."""
        name = intfName1 or f"{node.name}-wl0"
        self.intf1 = add_tap(node, name, self, port1, addr1, **(params1 or {}))
        self.intf2 = None
        self.medium, self.order = medium, order
        medium.taps.append(self.intf1)
        medium.taps.sort(key=lambda tap: tap.link.order)

    def status(self) -> str:
        return "OK"

    def stop(self) -> None:
        self.intf1.delete()

    delete = stop

    def __str__(self):
        return f"{self.intf1}~~~"


class WirelessMedium(Switch):
    """The 802.11b channel of the stations linked to it, simulated by labmedium (docs/medium.md).

    Mininet starts it with the network. PROGRAM: labmedium, by default that of the lab ($LAB_BIN) or
    in $PATH; AUTOSTART: or begin() is called later, once or again and again.
    """

    def __init__(self, name, program=None, channel=None, seed=1, autostart=True, **params):
        super().__init__(name, **({"dpid": "1"} | params))
        self.taps: list[Intf] = []
        self.program = program or str(Path(os.environ.get("LAB_BIN", "")) / "labmedium")
        self.channel = channel or Medium()
        self.seed, self.autostart = seed, autostart
        self.process: subprocess.Popen | None = None

    def begin(self, channel: Medium, seed: int, options: Sequence[str] = ()):
        """Let frames flow over CHANNEL; OPTIONS: more for labmedium."""
        taps = [(f"/proc/{tap.node.pid}/ns/net", tap.name, tap.node.IP()) for tap in self.taps]
        command = [
            self.program, *self.node_options(channel, taps), *channel.options(seed), *options,
            "--ready-fd", "1",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # who interrupts a command at a terminal means that alone
        )
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"labmedium did not come up: {self.process.stderr.read().strip()}")

    def node_options(self, channel: Medium, taps: list[tuple[str, str, str]]) -> list[str]:
        """Return what labmedium is told of the nodes with these TAPS, as CHANNEL takes them."""
        return channel.node_options(taps)

    def end(self) -> None:
        """Let no more frames flow; RuntimeError with labmedium's complaint if it has one."""
        self.process.terminate()
        _, complaint = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(f"labmedium failed: {complaint.strip()}")
        self.process = None

    def start(self, controllers) -> None:
        if self.autostart:
            self.begin(self.channel, self.seed)

    def stop(self, deleteIntfs=True) -> None:
        if self.process:
            self.end()
        super().stop(deleteIntfs)

    def heard_by(self, tap: Intf) -> list[Intf]:
        """Return the devices that TAP may send to."""
        return [other for other in self.taps if other is not tap]

    def dropped_by_taps(self) -> int:
        """Return how many packets the stations' devices lost before the medium had them."""
        count = "cat /sys/class/net/{0}/statistics/tx_dropped"
        return sum(int(tap.node.cmd(count.format(tap.name))) for tap in self.taps)


class WirelessChain(Topo):
    """NODES stations in a row on one 802.11b channel, each in range of its neighbours only.

    n1 ~~~ n2 ~~~ n3 ~~~ ... ~~~ n9

    SPANS gives each pair of a sender and a receiver the first and the last hop (from 0) between
    them; without, one pair is at the two ends. MEDIUM: of WirelessMedium.
    """

    def build(self, nodes: int = 9, spans: Sequence[Sequence[int]] = (), medium=None, **_params):
        count = int(nodes)
        self.spans = spans or [(0, count - 2)]
        channel = self.addSwitch("medium", cls=WirelessMedium, **(medium or {}))
        for i in range(1, count + 1):
            station = self.addHost(
                f"n{i}", cls=Station, ip=f"{self.node_address(i)}/32", mac=self.mac(i),
                routes=list(self._routes(i, count)),
            )  # fmt: skip
            self.addLink(station, channel, cls=WirelessLink, intfName1=f"n{i}-wl0")

    def _routes(self, node: int, count: int) -> Iterator[str]:
        """Give the routes of NODE: each other node by the neighbour on its side."""
        for other in range(1, count + 1):
            if other != node:
                by = node + (1 if other > node else -1)
                yield f"{self.node_address(other)} via {self.node_address(by)}"

    @staticmethod
    def node_address(node: int) -> str:
        return f"10.9.0.{node}"

    @staticmethod
    def mac(node: int) -> str:
        """Return the address that labmedium gives the NODE-th station."""
        return f"00:00:00:00:00:{node:02x}"

    def place(self, end: str, pair: int) -> int:
        """Return the node (from 1) at END, src or dst, of PAIR (from 1)."""
        first, last = self.spans[pair - 1]
        return first + 1 if end == "src" else last + 2

    def host(self, end: str, pair: int) -> str:
        return f"n{self.place(end, pair)}"

    def address(self, end: str, pair: int) -> str:
        return self.node_address(self.place(end, pair))


class WifiChannel(WirelessMedium):
    """The channel of an access point: its devices are linked in pairs, one of the access point's
    and its station's."""

    def __init__(self, name, channel=None, **params):
        super().__init__(name, channel=channel or WifiMedium(), **params)

    def heard_by(self, tap: Intf) -> list[Intf]:
        return [self.taps[self.taps.index(tap) ^ 1]]


class WifiAp(Topo):
    """A server, a router, and an access point with so many STATIONS.

    server -- r1 ==wired==> ap ~~~ sta1
                              ~~~ sta2 ...

    The access point routes; it has a device for each station, as mac80211 has queues for each. The
    server is at one end of each pair, a station at the other. MEDIUM: of WifiChannel.
    """

    SERVER, AP = "10.100.1.2", "10.9.0.254"

    def build(self, stations: int = 1, medium=None, **_params):
        count = int(stations)
        channel = self.addSwitch("medium", cls=WifiChannel, **(medium or {}))
        server = self.addHost("server", cls=Host, ip=None, defaultRoute="via 10.100.1.1")
        router = self.addNode("r1", cls=Router, ip=None, routes=["10.9.0.0/24 via 10.0.1.2"])
        ways = [f"{self.station_address(i)} dev ap-wl{i}" for i in range(1, count + 1)]
        ap = self.addNode("ap", cls=Router, ip=None, routes=["10.100.0.0/16 via 10.0.1.1", *ways])
        self._wire(server, router, "server-eth0", "r1-server", f"{self.SERVER}/24", "10.100.1.1/24")
        self._wire(router, ap, "r1-fwd", "ap-rev", "10.0.1.1/24", "10.0.1.2/24")
        for i in range(1, count + 1):
            station = self.addHost(
                f"sta{i}", cls=Station, ip=f"{self.station_address(i)}/32",
                mac=WirelessChain.mac(i + 1), routes=[f"default via {self.AP}"],
            )  # fmt: skip
            self.addLink(
                ap, channel, cls=WirelessLink, intfName1=f"ap-wl{i}",
                params1={"ip": f"{self.AP}/32"}, addr1=WirelessChain.mac(1), order=2 * i,
            )  # fmt: skip
            self.addLink(
                station, channel, cls=WirelessLink, intfName1=f"sta{i}-wl0", order=2 * i + 1
            )

    _wire = Chain._wire

    @staticmethod
    def station_address(station: int) -> str:
        return f"10.9.0.{station}"

    def host(self, end: str, pair: int) -> str:
        """Return the name of the host at END, src or dst, of PAIR, which is a station's number."""
        return "server" if end == "src" else f"sta{pair}"

    def address(self, end: str, pair: int) -> str:
        return self.SERVER if end == "src" else self.station_address(pair)

    @staticmethod
    def devices() -> dict[str, str]:
        """Return hop -> interface, as devices() does of other topologies."""
        return {"wired": "r1-fwd", "reverse_wired": "ap-rev"}


KINDS = {
    "dumbbell": Dumbbell,
    "chain": Chain,
    "wireless-chain": WirelessChain,
    "wifi-ap": WifiAp,
}
topos = KINDS  # the name that `mn --custom` looks for


def offload_command(device: str, on: bool | Sequence[str]) -> str:
    """Return the command that sets the offloads of DEVICE: all of them, none, or those in ON."""
    are_on = on if isinstance(on, Sequence) else OFFLOADS if on else ()
    return f"ethtool -K {device} " + " ".join(
        f"{one} {'on' if one in are_on else 'off'}" for one in OFFLOADS
    )


def card_command(device: str, mtu_bytes: int) -> str:
    """Return the command that makes DEVICE send one frame after the other: tbf cuts what is larger
    than its bucket, which holds one frame and not two."""
    return (
        f"tc qdisc replace dev {device} root tbf rate {CARD_MBPS}mbit burst {mtu_bytes + 100}"
        f" limit {CARD_LIMIT_BYTES}"
    )


def finish(net: Mininet, offloads: bool | str, ecn: bool, mtu_bytes: int = 1500) -> None:
    """Complete a started network: OFFLOADS (AT_HOSTS: of what they send, where a network card cuts
    it), ECN, MTU, and every neighbour known for good.

    Address resolution in mid-run would be packets that no scenario asked for, lost like any. A
    process costs the virtual lab what a thousand packets do, so a node has one for all of `ip`.
    """
    for node in net.values():
        cuts = offloads == AT_HOSTS and isinstance(node, Host)
        are_on = SENT if cuts else offloads is True
        wired = [intf for intf in node.intfList() if intf.link is not None]
        with NamedTemporaryFile("w", prefix=f"{node.name}-") as batch:
            for intf in wired:
                print(f"link set {intf.name} mtu {mtu_bytes}", file=batch)
                for ip, mac in _neighbours(net, intf):
                    known = f"{ip} lladdr {mac} dev {intf.name} nud permanent"
                    print(f"neigh replace {known}", file=batch)
            batch.flush()
            run(
                node,
                setting("net.ipv4.tcp_ecn", int(ecn)),
                *(offload_command(intf.name, are_on) for intf in wired),
                *(card_command(intf.name, mtu_bytes) for intf in wired if cuts),
                *([setting(*CARD_RMEM)] if cuts else []),
                f"ip -batch {quote(batch.name)}",
            )


# kind -> what it puts around a packet, in bytes, its kernel module, and how `ip link` calls it
TUNNELS = {
    "vxlan": (50, "vxlan", "vxlan id 1 dstport 4789 srcport 49152 49153"),
    "ipip": (20, "ipip", "ipip ttl 64"),
    "gre": (24, "ip_gre", "gre ttl 64"),
}
TUNNEL_DEV = "tunnel0"


def add_tunnel(net: Mininet, kind: str, hops: int, mtu_bytes: int = 1500) -> None:
    """Lay a tunnel of KIND (TUNNELS) over the HOPS of a started chain, from its first router to its
    last: what goes from end to end, either way, takes it."""
    overhead_bytes, _, link = TUNNELS[kind]
    ends = ((1, "10.0.1.1", NETS["dst"]), (hops + 1, f"10.0.{hops}.2", NETS["src"]))
    for i, (router, local, net_there) in enumerate(ends):
        remote, peer = ends[1 - i][1], f"10.8.0.{2 - i}"
        macs = [f"02:00:00:00:08:0{number}" for number in (i + 1, 2 - i)]
        mac = f"address {macs[0]}" if kind == "vxlan" else ""
        known = f"ip neigh replace {peer} lladdr {macs[1]} dev {TUNNEL_DEV} nud permanent"
        run(
            net[f"r{router}"],
            f"ip link add {TUNNEL_DEV} {mac} mtu {mtu_bytes - overhead_bytes} type {link}"
            f" local {local} remote {remote}",
            f"ip addr add 10.8.0.{i + 1}/30 dev {TUNNEL_DEV}",
            f"ip link set {TUNNEL_DEV} up",
            *([known] if kind == "vxlan" else []),
            f"ip route replace 10.{net_there}.0.0/16 via {peer} dev {TUNNEL_DEV}",
        )


SUBFLOW_HOST = 3  # 10.100.7.3 is the second address of pair 7's sender, for a second subflow


def add_subflow(net: Mininet, topo: Chain, end: str, pair: int, port: int) -> None:
    """Let MPTCP connections that begin at END (src or dst) of PAIR have a second subflow, from a
    second address and from PORT."""
    node, address = net[topo.host(end, pair)], f"10.{NETS[end]}.{pair}.{SUBFLOW_HOST}"
    intf = node.defaultIntf()
    router = f"r{topo.places[pair - 1][end == 'dst']}"
    run(
        node,
        f"ip addr add {address}/24 dev {intf.name}",
        f"sysctl -qw net.ipv4.ip_local_port_range='{port} {port}'",
        "ip mptcp limits set subflows 1 add_addr_accepted 0",
        f"ip mptcp endpoint add {address} dev {intf.name} subflow",
    )
    known = f"{address} lladdr {intf.MAC()} dev {router}-{node.name} nud permanent"
    run(net[router], f"ip neigh replace {known}")
    run(net[topo.host("src" if end == "dst" else "dst", pair)], "ip mptcp limits set subflows 1")


def drop_subflow(net: Mininet, topo: Chain, end: str, pair: int) -> None:
    """Take back what add_subflow() gave."""
    node = net[topo.host(end, pair)]
    address = f"10.{NETS[end]}.{pair}.{SUBFLOW_HOST}"
    run(node, "ip mptcp endpoint flush", f"ip addr del {address}/24 dev {node.defaultIntf().name}")


def _neighbours(net: Mininet, intf: Intf) -> Iterator[tuple[str, str]]:
    """Give the addresses, IP and MAC, that INTF can reach at once."""
    if isinstance(intf.link, WirelessLink):
        for other in intf.link.medium.heard_by(intf):
            yield other.ip, other.mac
        return
    peer = intf.link.intf2 if intf.link.intf1 is intf else intf.link.intf1
    yield peer.ip, peer.mac
