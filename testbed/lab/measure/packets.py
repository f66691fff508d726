# SPDX-License-Identifier: GPL-2.0-only
"""What became of each packet, from the taps on both sides of the hops that matter (labtap): which
share queues dropped, how long a packet was under way, and how much of that it waited.

A packet's way begins where it enters the first hop and ends where it leaves the last. It waits from
where it enters a hop that queues until it leaves it; its self-inflicted delay is that without the
time that its own frame takes at the hop's rate. A delay that the path itself has, also one that
changes, is not in it. A packet that entered such a hop and never left it was dropped there, unless
the run ended first. Sampled taps (labtap --every) see the same packets on all hops.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from lab.ask.links import link_of
from lab.ask.parts import SECOND
from lab.measure.truth import PACKET, read_tap

START_S, START_RTTS = 2.0, 20  # a flow's start lasts the longer of both
STANDING_S = 1.0  # a standing queue is what the shortest wait of so long leaves
DATAGRAM = pl.col("protocol") == 17
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def queue_hops(spec: dict[str, Any]) -> list[str]:
    """Return the hops on the way forward that drop for congestion, second homes' included."""
    return [hop for hop in spec["taps"] if link_of(spec["links"][hop]).drops_for_congestion]


def base_rtt_s(spec: dict[str, Any]) -> float:
    """Return the sum of the hops' delays, there and back."""
    hops = spec["topology"]["hops"]
    both = [*hops, *(f"reverse_{hop}" for hop in hops)]
    return sum(spec["links"][hop]["delay_ms"] for hop in both) / 1000


def start_s(spec: dict[str, Any]) -> float:
    """Return how long a flow's start lasts."""
    own_s = max(flow["delay_ms"] for flow in spec["flows"]) / 1000
    return max(START_S, START_RTTS * (base_rtt_s(spec) + own_s))


# --- the packets --------------------------------------------------------------------------


def follow(taps: dict[str, pl.DataFrame], ways: Iterable[list[str]], queues: list[str]):
    """Return one row for each packet that entered a way: PACKET, time_ns, left_ns (null: it did
    not arrive), waited_ns (in QUEUES), dropped (by one of them).

    TAPS: hop -> packets of read_tap(); each of WAYS: its hops in order, those with a tap.
    """
    return pl.concat([_follow(taps, way, [q for q in queues if q in way]) for way in ways if way])


def _follow(taps: dict[str, pl.DataFrame], way: list[str], queues: list[str]) -> pl.DataFrame:
    packets = _side(taps[way[0]], 0)
    waited, dropped = pl.lit(0, pl.Int64), pl.lit(False)
    for i, hop in enumerate(queues):
        if hop == way[0]:
            packets = packets.with_columns(pl.col("time_ns").alias(f"in{i}"))
        else:
            packets = _join(packets, _side(taps[hop], 0), f"in{i}")
        packets = _join(packets, _side(taps[hop], 1), f"out{i}")
        inside = pl.col(f"in{i}") > pl.col(f"in{i}").filter(pl.col(f"out{i}").is_not_null()).max()
        lost = pl.col(f"in{i}").is_not_null() & pl.col(f"out{i}").is_null() & ~inside
        waited += (pl.col(f"out{i}") - pl.col(f"in{i}")).fill_null(0)
        dropped |= lost.fill_null(False)
    if queues and queues[-1] == way[-1]:
        packets = packets.with_columns(pl.col(f"out{len(queues) - 1}").alias("left_ns"))
    else:
        packets = _join(packets, _side(taps[way[-1]], 1), "left_ns")
    return packets.sort("time_ns", maintain_order=True).select(
        *PACKET, "time_ns", "left_ns", waited_ns=waited, dropped=dropped
    )


def _side(tap: pl.DataFrame, leaves: int) -> pl.DataFrame:
    """Return the data packets of TAP on one side. KEY: its flow, identification and sequence
    number in one, which no other packet of a stream has."""
    ports = pl.col("sport").cast(pl.UInt64) * 2**48 + pl.col("ip_id").cast(pl.UInt64) * 2**32
    data = (pl.col("leaves") == leaves) & (pl.col("length") > 0)
    return tap.filter(data).select(*PACKET, "time_ns", key=ports + pl.col("seq"))


def _join(packets: pl.DataFrame, other: pl.DataFrame, name: str) -> pl.DataFrame:
    """Give PACKETS the time at which OTHER has each of them as NAME; null if it has not."""
    streams, datagrams = packets.filter(~DATAGRAM), packets.filter(DATAGRAM)
    times = other.filter(~DATAGRAM).select("key", pl.col("time_ns").alias(name))
    found = streams.join(times, on="key", how="left", maintain_order="left")
    if not len(datagrams):
        return found
    return pl.concat([found, _join_datagrams(datagrams, other.filter(DATAGRAM), name)])


def _join_datagrams(packets: pl.DataFrame, other: pl.DataFrame, name: str) -> pl.DataFrame:
    """The same for datagrams, whose numbers repeat after 65536 of a flow: it is the first after
    the packet, and before its successor."""
    again = pl.col("time_ns").shift(-1).over(PACKET)
    left = other.drop("key").with_columns(pl.col("time_ns").alias(name))
    found = packets.with_columns(again_ns=again).join_asof(
        left, on="time_ns", by=PACKET, strategy="forward", check_sortedness=False
    )
    late = (pl.col(name) >= pl.col("again_ns")).fill_null(False)
    return found.with_columns(pl.when(~late).then(pl.col(name)).alias(name)).drop("again_ns")


def read(spec: dict[str, Any], raw: Path, ports: dict[int, int]) -> pl.DataFrame:
    """Return follow() of a point's taps in the folder RAW, of those flows whose source port is one
    of PORTS (-> number), as the column flow. SPEC is the point's."""
    taps = {hop: read_tap(raw / f"tap-{hop}") for hop in spec["taps"]}
    known = pl.col("sport").is_in(list(ports))
    taps = {hop: tap.filter(known) for hop, tap in taps.items()}
    ways = [[hop for hop in taps if hop.startswith(SECOND) == second] for second in (False, True)]
    packets = follow(taps, ways, queue_hops(spec))
    flow = pl.col("sport").replace_strict(ports, default=None, return_dtype=pl.Int64)
    return packets.with_columns(flow=flow)


def own_frame_ns(spec: dict[str, Any], frame_bytes: int, start_ns: int) -> pl.Expr:
    """Return how long FRAME_BYTES take at the rates that the queues of the first homes' way have
    when a packet leaves; nothing where a hop's rate is no constant between events."""
    total = pl.lit(0.0)
    for hop in queue_hops(spec):
        if hop.startswith(SECOND) or spec["lablinks"].get(hop):
            continue
        link = link_of(spec["links"][hop])
        if link.bucket_bytes:
            continue
        rate_mbps = pl.lit(link.rate_mbps)
        for event in spec["events"]:
            if event["link"] == hop and "rate_mbps" in event["changes"]:
                later = pl.col("left_ns") > start_ns + round(event["at_s"] * 1e9)
                rate_mbps = pl.when(later).then(event["changes"]["rate_mbps"]).otherwise(rate_mbps)
        total += frame_bytes * 8e3 / rate_mbps
    return total


# --- figures ------------------------------------------------------------------------------


def quantiles_ms(name: str, values_ns: pl.Series) -> dict[str, float | None]:
    """Return the quantiles of VALUES_NS in ms, called NAME_ms_p50 and so on; null of none."""
    values_ns = values_ns.drop_nulls()
    return {
        f"{name}_ms_{q}": values_ns.quantile(of, "nearest") / 1e6 if len(values_ns) else None
        for q, of in QUANTILES.items()
    }


def drop_pct(packets: pl.DataFrame) -> float | None:
    """Return the share of PACKETS that queues dropped; null of none."""
    return 100 * packets["dropped"].sum() / len(packets) if len(packets) else None


def of_flow(packets: pl.DataFrame, every: int) -> dict[str, Any]:
    """Return the figures of one flow from its PACKETS, one in EVERY of them."""
    lost = packets["left_ns"].is_null().sum()
    return {
        "sent_pkts": len(packets) * every,
        "queue_drops": int(packets["dropped"].sum()) * every,
        "queue_drop_pct": drop_pct(packets),
        "lost_pct": 100 * lost / len(packets) if len(packets) else None,
        **quantiles_ms("owd", packets["left_ns"] - packets["time_ns"]),
    }


def of_point(
    tested: pl.DataFrame, forward: pl.DataFrame, began_ns: dict[int, int], begin_s: float,
    steady_ns: int, goodput_mbps: float,
) -> dict[str, Any]:  # fmt: skip
    """Return the figures of a point.

    TESTED: packets of the flows under test, FORWARD: of all that take the whole way. BEGAN_NS: flow
    -> its start, which lasts BEGIN_S. Delays are of packets that entered after STEADY_NS (the end
    of the warm-up). GOODPUT_MBPS: of the flows under test, together.
    """
    began = pl.col("flow").replace_strict(began_ns, default=None, return_dtype=pl.Int64)
    starting = pl.col("time_ns") < began + round(begin_s * 1e9)
    steady = tested.filter(pl.col("time_ns") >= steady_ns)
    owd = quantiles_ms("owd", steady["left_ns"] - steady["time_ns"])
    all_steady = forward.filter(pl.col("time_ns") >= steady_ns)
    arrived = all_steady.filter(pl.col("left_ns").is_not_null())
    seconds = (pl.col("time_ns") - steady_ns) // round(STANDING_S * 1e9)
    standing = quantiles_ms("standing_queue", arrived.group_by(seconds).agg(
        pl.col("self_ns").min())["self_ns"])  # fmt: skip
    waits = quantiles_ms("queue_delay", arrived["waited_ns"])
    return {
        **owd,
        **quantiles_ms("self_delay", steady.filter(pl.col("left_ns").is_not_null())["self_ns"]),
        "standing_queue_ms_p50": standing["standing_queue_ms_p50"],
        "standing_queue_ms_p95": standing["standing_queue_ms_p95"],
        "queue_delay_ms_p50": waits["queue_delay_ms_p50"],
        "queue_delay_ms_p95": waits["queue_delay_ms_p95"],
        "queue_drop_start_pct": drop_pct(tested.filter(starting)),
        "queue_drop_steady_pct": drop_pct(tested.filter(~starting)),
        "power_mbps_per_s": goodput_mbps / (owd["owd_ms_p95"] / 1e3) if owd["owd_ms_p95"] else None,
    }
