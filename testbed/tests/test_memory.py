# SPDX-License-Identifier: GPL-2.0-only
"""Guests get the memory that the packets of their points may take, and nobody else gets more."""

import threading
import tomllib
from types import SimpleNamespace

import pytest
from test_scenario import GOOD

from lab.ask import memory, points, scenario
from lab.ask.carries import mean_links
from lab.common.errors import LabError
from lab.run.backends import base
from lab.run.backends.virtual import VirtualBackend

# Of BBR at places of random-paths (path seed 20261125, run.packets), each first in its boot: the MB
# that a guest had touched in the end, less the 1/64 of its size that the kernel's map of it takes.
# Measured with mem=3000M (place 54) and mem=1500M, Linux 6.12.
TOUCHED_MB = {54: 265, 777: 91, 931: 240, 403: 224, 828: 235, 497: 200, 145: 122, 51: 119, 33: 207}
IDLE_MB = 55  # of demo's guest
MORE = (54, 81, 245, 353, 403, 428, 497, 526, 565, 736, 779, 804, 828, 831, 924, 931, 978)


def random_paths(*places: int) -> list[points.Point]:
    chosen = ",".join(map(str, places))
    asked = {"axes.place.random.count": "1000", "axes.place.random.seed": "20261125"}
    loaded = scenario.load("random-paths", asked | ({"place": chosen} if places else {}))
    return points.expand(loaded, ("bbr",), [1], lambda *_: "")


def packets_mb(point: points.Point) -> float:
    return memory.packets_mb(point.spec, mean_links(point.spec))


def test_a_guest_has_room_for_what_was_measured():
    """And not far more than packets took: at most six times, where short queues keep them few."""
    for point in random_paths(*TOUCHED_MB):
        touched_mb = TOUCHED_MB[int(point.axes["place"])]
        guest_mb = 256 + point.extra_memory_mb
        assert touched_mb < guest_mb * 63 / 64, point.describe()
        assert packets_mb(point) < 6 * (touched_mb - IDLE_MB), point.describe()


def test_which_of_1000_random_places_get_more():
    """The others' ids are what they were: nothing of it is in what they are made of."""
    every = random_paths()
    assert tuple(int(p.axes["place"]) for p in every if p.extra_memory_mb) == MORE
    for point in every:
        assert ("extra_memory_mb" in point.spec) == (int(point.axes["place"]) in MORE)


def test_memory_comes_in_few_sizes_and_never_below_what_all_have():
    assert [memory.extra_mb(need) for need in (0, 160, 161, 416, 417, 929)] == [
        0, 0, 256, 256, 768, 1792,
    ]  # fmt: skip


@pytest.mark.parametrize(("offloads", "each"), [(False, 1), ("hosts", 1), (True, 45)])
def test_packets_are_those_of_queues_and_of_two_round_trips(offloads, each):
    """A packet in a queue may be 45 frames where segmentation is offloaded."""
    tree = tomllib.loads(GOOD)
    tree["topology"] = {"offloads": offloads}
    tree["links"] = {
        "bottleneck": {"rate_mbps": 121.12, "queue_pkts": 100},
        "wireless": {"delay_ms": 45},
        "reverse_wireless": {"delay_ms": 45},
    }
    tree["flows"][0]["count"] = 100
    tree |= {"axes": {}, "claims": []}
    (point, *_) = points.expand(scenario.parse("test", tree), ("reno",), [1], lambda *_: "")
    assert packets_mb(point) == pytest.approx((2 * 900 + each * 100) * 5300e-6)


def test_a_boot_has_points_of_one_size(tmp_path, monkeypatch):
    few, much = random_paths(1, 54)
    assert few.topology_key != much.topology_key
    backend = VirtualBackend.__new__(VirtualBackend)
    backend.kernel, backend.memory_mb, backend.guest_room = "lab", 256, tmp_path
    kernel = SimpleNamespace(image=tmp_path / "linux", has=lambda _: True)
    backend.build = SimpleNamespace(
        kernel=kernel, stage=tmp_path, user=(), user_modules=lambda _: [], patches_sctp=True
    )
    monkeypatch.setattr(VirtualBackend, "_fast_userspace", ())
    said = {}

    def started(self, guest, cpu, console="console", extra_mb=0):
        said[extra_mb] = self.guest_command(guest, cpu, extra_mb)
        raise InterruptedError

    monkeypatch.setattr(VirtualBackend, "_guest", started)
    for point in (few, much):
        with pytest.raises(InterruptedError):
            backend.run_batch([point], 0, lambda _: None, threading.Event())
    assert "mem=256M" in said[0] and "mem=512M" in said[256]


def test_a_folder_without_room_for_the_largest_guest_is_refused(tmp_path, monkeypatch):
    backend = VirtualBackend.__new__(VirtualBackend)
    backend.kernel, backend.memory_mb, backend.guest_room = "lab", 256, tmp_path
    backend.build = SimpleNamespace(kernel=SimpleNamespace(has=lambda _: True), user=())
    few, much = random_paths(1, 54)
    monkeypatch.setattr(
        base.os, "statvfs", lambda _: SimpleNamespace(f_bavail=400, f_frsize=1 << 20)
    )
    backend.check([few])
    with pytest.raises(LabError, match="needs 640 MB"):
        backend.check([few, much])
