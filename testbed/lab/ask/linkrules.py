# SPDX-License-Identifier: GPL-2.0-only
"""What one hop can be: the rules that scenarios and the hops of veno_lab share. Standard library
only, as they are also checked inside the lab."""

from dataclasses import replace

from lab.ask.links import AQMS, QUEUE_UNLIMITED_PKTS, Link
from lab.common.errors import BadInput, unknown


def check_link(where: str, link: Link, holds_delayed: bool = True) -> None:
    """Raise BadInput, said of WHERE, if LINK cannot be; files of traces are not read.
    HOLDS_DELAYED: the limit of its queue also counts what is only delayed, as netem's does."""
    for key, value in vars(link).items():
        if not isinstance(value, str) and value < 0:
            raise BadInput(f"{where}.{key} = {value:g}: it cannot be negative")
    if link.loss_pct > 100:
        raise BadInput(f"{where}.loss_pct = {link.loss_pct:g}: loss is at most 100 %")
    if link.rate_mbps > 100_000:
        raise BadInput(f"{where}.rate_mbps = {link.rate_mbps:g}: at most 100000")
    if link.delay_ms > 60_000:
        raise BadInput(f"{where}.delay_ms = {link.delay_ms:g}: at most 60000")
    if link.queue_pkts > QUEUE_UNLIMITED_PKTS:
        raise BadInput(f"{where}.queue_pkts = {link.queue_pkts}: at most {QUEUE_UNLIMITED_PKTS}")
    _check_loss_and_delay(where, link)
    _check_policer(where, link)
    if link.aqm and link.aqm not in AQMS:
        raise unknown(f"{where}.aqm", link.aqm, AQMS)
    if link.aqm and not (link.queue_pkts or link.queue_bdp):
        raise BadInput(f"{where}: aqm needs queue_pkts, the most it may hold")
    _check_traces(where, link)
    _check_queue(where, link, holds_delayed)


def _check_queue(where: str, link: Link, holds_delayed: bool) -> None:
    if link.queue_bdp > 1000:
        raise BadInput(f"{where}.queue_bdp = {link.queue_bdp:g}: at most 1000")
    if link.queue_bdp and not link.rate_mbps:
        raise BadInput(f"{where}.queue_bdp needs a rate_mbps above 0 on the same hop")
    queue = "queue_bdp" if link.queue_bdp else "queue_pkts"  # the latter follows from the former
    if link.queue_pkts and not link.has_rate:
        raise BadInput(f"{where}: {queue} needs a rate_mbps above 0, or a trace, on the same hop")
    if link.queue_pkts and (link.loss_pct or link.loss_trace):
        raise BadInput(
            f"{where}: {queue} and a loss on one hop, where the cause of a drop would be unknown;"
            " put the loss on another hop"
        )
    delays = link.delay_ms or link.spread_ms or link.aggregate_ms
    if link.queue_pkts and delays and holds_delayed:
        raise BadInput(
            f"{where}: {queue} and a delay on one hop, where packets in flight would count as"
            " queued; put the delay on another hop"
        )


def check_bursts(where: str, bursts: bool, losses: bool) -> None:
    """Refuse BURSTS that somebody asks for WHERE no LOSSES are: they would do nothing. A loss_pct
    of 0 that is named, or swept, is asked for."""
    if bursts and not losses:
        raise BadInput(f"{where}: burst_pkts needs loss_pct, the losses that come in such runs")


def _check_traces(where: str, link: Link) -> None:
    if link.trace and (link.rate_mbps or link.aqm):
        raise BadInput(f"{where}: a trace takes the place of rate_mbps, and has no aqm")
    if link.is_traced and (link.aqm or link.aggregate_ms):
        raise BadInput(f"{where}: traces go with neither aqm nor aggregate_ms")


def _check_order(where: str, link: Link) -> None:
    if link.reorder_pct > 100 or (link.reorder_pct and not link.delay_ms):
        raise BadInput(
            f"{where}: reorder_pct is at most 100, and needs the delay_ms that it spares"
        )
    if link.reorder_pct and link.has_rate:
        raise BadInput(f"{where}: reorder_pct needs a hop without rate_mbps, which keeps the order")
    if link.jitter_reorders and (link.has_rate or not link.jitter_ms):
        raise BadInput(
            f"{where}: jitter_reorders needs jitter_ms and no rate_mbps, which keeps the order; put"
            " the rate on another hop"
        )
    if link.spread_ms and not (link.has_rate or link.jitter_reorders):
        raise BadInput(
            f"{where}: jitter_ms and retry_pct need rate_mbps on the same hop, or netem would"
            " change the order of packets (which jitter_reorders allows)"
        )


def _check_policer(where: str, link: Link) -> None:
    if not (link.policer_burst_ms or link.policer_burst_bytes):
        return
    if link.policer_burst_ms and link.policer_burst_bytes:
        raise BadInput(f"{where}: give policer_burst_ms or policer_burst_bytes, not both")
    if not link.rate_mbps:
        raise BadInput(f"{where}: a policer needs rate_mbps")
    if link.bucket_bytes > 1 << 31:
        raise BadInput(f"{where}: a policer's bucket is at most {1 << 31} bytes")
    if replace(link, rate_mbps=0, policer_burst_ms=0, policer_burst_bytes=0) != Link():
        raise BadInput(
            f"{where}: a policer has no queue, loss or delay on its hop; put them on another"
        )


def _check_loss_and_delay(where: str, link: Link) -> None:
    if link.burst_pkts and link.burst_pkts < 1:
        raise BadInput(f"{where}.burst_pkts = {link.burst_pkts:g}: a run of losses has 1 at least")
    if link.burst_pkts and link.loss_pct > 50:
        raise BadInput(f"{where}: with burst_pkts loss_pct is at most 50")
    if link.retry_pct and not link.retry_ms:
        raise BadInput(f"{where}: retry_pct needs retry_ms, what a repeated transmission costs")
    if link.retry_pct > 90 or link.retry_ms > 500:
        raise BadInput(f"{where}: retry_pct is at most 90, retry_ms at most 500")
    if link.jitter_ms and link.retry_pct:
        raise BadInput(f"{where}: give jitter_ms or retry_pct, not both")
    if link.jitter_ms > 2000 or link.aggregate_ms > 2000:
        raise BadInput(f"{where}: jitter_ms and aggregate_ms are at most 2000")
    if link.aggregate_pkts < 1:
        raise BadInput(f"{where}.aggregate_pkts = {link.aggregate_pkts}: 1 at least")
    if link.jitter_ms > link.delay_ms:
        raise BadInput(f"{where}: jitter_ms is at most delay_ms, or packets would leave too early")
    _check_order(where, link)
