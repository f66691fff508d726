# SPDX-License-Identifier: GPL-2.0-only
"""What a point is expected to cost is what it costs, within a stated factor."""

from statistics import median

import pytest

from lab.ask import points, scenario
from lab.run import costs
from lab.run.backends.virtual import VirtualBackend

SEEN = {
    "axes.place.random.count": "1000", "axes.place.random.seed": "20261125", "run.packets": "true",
}  # fmt: skip
# Scenario, algorithm, place, and what a point took in s: from the end of seed 3's to that of seed
# 1's, halved, in a boot that ran 3, 2 and 1 alone on its core, while another was busy with other
# work; and the lab's processor time for its figures. Points drawn by random.sample() from each
# scenario; the virtual lab with Linux 6.12, two cores of a virtual machine.
MEASURED = [
    ("demo", "veno_jitter", {"loss_pct": "1", "path": "2 Mb/s 90 ms"}, 0.17),
    ("demo", "reno", {"loss_pct": "5", "path": "2 Mb/s 90 ms"}, 0.1),
    ("demo", "reno", {"loss_pct": "10", "path": "2 Mb/s 90 ms"}, 0.09),
    ("random-paths", "cubic", SEEN | {"place": "614"}, 0.77),
    ("random-paths", "cubic", SEEN | {"place": "645"}, 0.28),
    ("random-paths", "veno_jitter", SEEN | {"place": "519"}, 2.38),
    ("random-paths", "veno_jitter", SEEN | {"place": "87"}, 2.78),
    ("random-paths", "veno_jitter", SEEN | {"place": "349"}, 0.46),
    ("random-paths", "cubic", SEEN | {"place": "161"}, 0.88),
    ("random-paths", "bbr", SEEN | {"place": "677"}, 2.02),
    ("random-paths", "bbr", SEEN | {"place": "890"}, 3.28),
    ("random-paths", "bbr", SEEN | {"place": "287"}, 2.2),
    ("jtcp-friendly", "jtcp", {"loss_pct": "1"}, 1.12),
    ("jtcp-friendly", "jtcp", {"loss_pct": "5"}, 1.2),
    ("wifi-ap", "veno_jitter", {"stations": "1 station", "direction": "down"}, 2.15),
    ("wifi-ap", "veno_jitter", {"stations": "5 stations", "direction": "up"}, 3.43),
    ("wccp-1", "reno", {"flows": "1", "run.duration_s": "100"}, 6.81),
    ("wccp-1", "reno", {"flows": "6", "run.duration_s": "100"}, 7.6),
    ("random-blind", "bbr", {"place": "28"}, 0.42),
    ("random-blind", "bbr", {"place": "39"}, 1.28),
    ("random-blind", "veno_jitter", {"place": "1"}, 1.25),
    ("random-blind", "bbr", {"place": "29"}, 0.29),
    ("random-blind", "veno_jitter", {"place": "18"}, 3.96),
    ("random-blind", "bbr", {"place": "15"}, 0.58),
    ("veno-coexist", "veno_jitter", {"mix": "1 beside 3 reno", "loss_pct": "1"}, 0.58),
    ("veno-coexist", "veno_jitter", {"mix": "3 beside 1 reno", "loss_pct": "0"}, 0.55),
    ("tfrc-fair", "westwood", {"flows": "2 alike"}, 0.83),
    ("tfrc-single", "veno_jitter", {"loss_pct": "0.5"}, 1.01),
    ("real-links", "bbr", {"loss_pct": "0", "model": "lte-car"}, 0.26),
    ("real-links", "bbr", {"loss_pct": "1", "model": "lte-walking"}, 0.6),
    ("jsctp-friendly", "jsctp", {"loss_pct": "5"}, 2.45),
    ("jsctp-friendly", "bbr", {"loss_pct": "5"}, 1.14),
    ("buffers", "cubic", {"queue_pkts": "133", "loss_pct": "0"}, 0.72),
    ("buffers", "cubic", {"queue_pkts": "16", "loss_pct": "1"}, 0.28),
    ("jtcp-fairness", "jtcp", {"flows": "5", "loss_pct": "5"}, 0.46),
    ("jtcp-fairness", "jtcp", {"flows": "2", "loss_pct": "5"}, 0.3),
    ("tfrc-path", "uddj", {"loss_pct": "4"}, 7.56),
    ("tfrc-path", "tfrc", {"loss_pct": "0"}, 7.15),
    ("tfrc-fair", "tfrc", {}, 8.33),
]


def estimate_s(name: str, algorithm: str, place: dict[str, str]) -> float:
    loaded = scenario.load(name, place)
    (point,) = points.expand(loaded, (algorithm,), [1], lambda *_: "")[:1]
    return costs.point_s(point.spec)


@pytest.fixture(scope="module")
def ratios() -> list[float]:
    return [estimate_s(*of) / measured_s for *of, measured_s in MEASURED]


def test_estimates_are_right_by_the_median(ratios):
    assert 0.9 < median(ratios) < 1.1


def test_nine_of_ten_estimates_are_within_a_factor_of_one_and_a_half(ratios):
    """Else a flow that loses so much that it carries little costs less than its path's packets: up
    to four times, as next to nothing but packets costs anything."""
    near = [ratio for ratio in ratios if 1 / 1.5 < ratio < 1.5]
    assert len(near) >= 0.9 * len(ratios)
    assert all(1 / 2.5 < ratio < 4 for ratio in ratios)


def test_more_costs_more():
    """Of flows, of time and of rate each by itself."""
    one = {"path": "2 Mb/s 90 ms", "loss_pct": "1"}
    least_s = estimate_s("demo", "reno", one)
    for more in ({"run.duration_s": "400"}, {"flows.0.count": "10"}):
        assert estimate_s("demo", "reno", one | more) > 2 * least_s
    slow_s, fast_s = (
        estimate_s("buffers", "reno", {"loss_pct": "0", "links.bottleneck.rate_mbps": rate})
        for rate in ("2", "200")
    )
    assert fast_s > 10 * slow_s


def test_flows_that_end_cost_what_they_send():
    """1 MB twice and minutes of silence, at 100 Mb/s: it takes a quarter of a second."""
    assert estimate_s("sctp-idle", "jsctp", {"queue": "1"}) < 3


def test_a_guest_has_several_times_its_estimate_before_it_counts_as_hung():
    """A machine may be slower than the one that was measured; minutes of nothing help nobody."""
    backend = VirtualBackend.__new__(VirtualBackend)
    backend.kernel = "lab"
    loaded = scenario.load("demo", {"path": "2 Mb/s 90 ms", "loss_pct": "1"})
    (point,) = points.expand(loaded, ("reno",), [1], lambda *_: "")
    assert backend.point_limit_s(point) == pytest.approx(60 + 30 * costs.point_s(point.spec))
    assert 62 < backend.point_limit_s(point) < 75
