# SPDX-License-Identifier: GPL-2.0-only
"""What became of each packet is found out exactly, and each verdict is held against it."""

import dataclasses
import json
import os
import threading

import numpy as np
import polars as pl
import pytest

from lab.ask import points, scenario
from lab.ask.figures import CLASSIFIED
from lab.judge import verdicts
from lab.measure import trace, truth
from lab.measure.metrics import summarize

CAUSES = {"bottleneck": "congestion", "wireless": "random"}
SPORT, MSS, MS = 20000, 1000, 1_000_000
SECOND_CAUSES = {"second_bottleneck": "congestion", "second_wireless": "random"}
FLOWS = {SPORT: ("tcp", "jtcp")}
FIRST_HOME, SECOND_HOME = "10.200.1.2", "10.201.1.2"
PATH_MS = 10  # between the hops
BACK_MS = 30


class Path:
    """A made-up sender and two hops; send() says at which one a segment is dropped, if at any."""

    def __init__(self, first_seq: int = 7):
        self.first_seq, self.ip_id = first_seq, 65530
        self.packets = {hop: [] for hop in CAUSES}

    def send(self, at_ms: float, number: int, dropped_at: str = "", sport: int = SPORT) -> None:
        seq = (self.first_seq + number * MSS) % 2**32
        at_ns = int(at_ms * MS)
        self.ip_id = (self.ip_id + 1) % 2**16
        for hop, rows in self.packets.items():
            rows.append((at_ns, sport, 5001, self.ip_id, truth.TCP, 0, seq, MSS))
            if hop == dropped_at:
                return
            at_ns += PATH_MS * MS
            rows.append((at_ns, sport, 5001, self.ip_id, truth.TCP, 1, seq, MSS))

    def taps(self, folder) -> dict[str, pl.DataFrame]:
        """Return the taps by way of their files."""
        for hop, rows in self.packets.items():
            np.array(sorted(rows), truth.TAP_RECORD).tofile(folder / hop)
        return {hop: truth.read_tap(folder / hop) for hop in self.packets}

    def verdict(
        self, at_ms: float, una: int, nxt: int, said: str = "random", at="timeout", rtt_ms=0.001
    ) -> dict:
        snd_una, snd_nxt = ((self.first_seq + n * MSS) % 2**32 for n in (una, nxt))
        text = (
            f"  <idle>-0 [000] ..s.. {at_ms / 1000:.6f}: tcp_verdict: verdict={said} at={at}"
            f" sport={SPORT} dport=5001 snd_una={snd_una} snd_nxt={snd_nxt} cwnd_pkts=9"
            f" rtt_us={round(rtt_ms * 1000)}"
            f" srtt_us=2 min_rtt_us={(2 * PATH_MS + BACK_MS) * 1000} queue_us=3 queue_max_us=4"
            " backlog=384 jr=-8388608 sjr=4194304"
        )
        (found,) = trace.events(text, "tcp_verdict")
        return found

    def judge(self, folder, *told: dict) -> pl.DataFrame:
        return truth.judge(list(told), self.taps(folder), CAUSES, FLOWS, 0)


class TwoPaths(Path):
    """The same with SCTP and two homes: a chunk a packet, numbered one by one."""

    def __init__(self, first_tsn: int):
        super().__init__(first_tsn)
        self.packets |= {hop: [] for hop in SECOND_CAUSES}

    def send_chunk(self, at_ms: float, number: int, dropped_at: str = "", second=False) -> None:
        tsn, at_ns = (self.first_seq + number) % 2**32, int(at_ms * MS)
        self.ip_id = (self.ip_id + 1) % 2**16
        for hop in SECOND_CAUSES if second else CAUSES:
            row = (SPORT, 5001, self.ip_id, truth.SCTP)
            self.packets[hop].append((at_ns, *row, 0, tsn, 1))
            if hop == dropped_at:
                return
            at_ns += PATH_MS * MS
            self.packets[hop].append((at_ns, *row, 1, tsn, 1))

    def verdict_of(self, path: str, at_ms: float, una: int, nxt: int) -> dict:
        told = self.verdict(at_ms, una, nxt)
        numbers = {"snd_una": una, "snd_nxt": nxt}
        tsns = {name: (self.first_seq + n) % 2**32 for name, n in numbers.items()}
        return told | {"path": path} | tsns

    def judge(self, folder, *told: dict) -> pl.DataFrame:
        return truth.judge(list(told), self.taps(folder), CAUSES | SECOND_CAUSES, FLOWS, 0)


def test_a_packet_that_does_not_leave_was_dropped(tmp_path):
    """Also where numbers repeat, and where another flow has the same ones."""
    path = Path()
    for i in range(20):
        path.send(i, i, "bottleneck" if i % 5 == 0 else "wireless" if i % 7 == 0 else "")
    path.ip_id = 65530
    for i in range(20):  # the same numbers once more
        path.send(5000 + i, i, "wireless" if i == 5 else "")
        path.ip_id -= 1
        path.send(5000 + i, i, sport=SPORT + 1)
    drops = {hop: truth.find_drops(tap) for hop, tap in path.taps(tmp_path).items()}
    assert [t // MS for t in drops["bottleneck"]["time_ns"]] == [0, 5, 10, 15]
    assert [t // MS for t in drops["wireless"]["time_ns"]] == [7 + 10, 14 + 10, 5005 + 10]


def test_packets_without_a_number_of_their_own_are_counted(tmp_path):
    """Resets of a closed port are all alike, and the second enters before the first leaves."""
    path = Path()
    for at_ms in (0, 2, 4):
        path.ip_id = 65535
        path.send(at_ms, 0)
    assert not any(len(truth.find_drops(tap)) for tap in path.taps(tmp_path).values())


@pytest.mark.parametrize("first_seq", [7, 2**32 - 5 * MSS])
def test_a_verdict_is_about_what_was_dropped_and_still_missing(tmp_path, first_seq):
    """The cause of those drops, congestion where there are both, none where there is none; also
    where sequence numbers wrap."""
    path = Path(first_seq)
    for i in range(20):
        path.send(i, i, {3: "wireless", 8: "bottleneck", 12: "wireless"}.get(i, ""))
    path.send(60, 3)
    path.send(100, 8)
    path.send(160, 12, "wireless")
    path.send(200, 12)
    told = [
        path.verdict(59, 3, 8),
        path.verdict(59, 3, 20),  # both
        path.verdict(99, 8, 20),
        path.verdict(149, 8, 20),  # repaired at 120, but that is not known before 150
        path.verdict(151, 8, 20),
        path.verdict(199, 12, 20),
        path.verdict(251, 12, 20),  # and that is repaired as well
        path.verdict(2, 0, 20),  # nothing was lost yet
        path.verdict(59, 0, 3),
    ]
    rows = path.judge(tmp_path, *told)
    assert rows["truth"].to_list() == [
        "random", "congestion", "congestion", "congestion", "random", "random", "none", "none",
        "none",
    ]  # fmt: skip
    assert rows["lost_random_pkts"].to_list() == [1, 2, 1, 1, 1, 2, 0, 0, 0]
    assert rows["lost_congestion_pkts"].to_list() == [0, 1, 1, 1, 0, 0, 0, 0, 0]


def test_an_ack_under_way_is_not_known(tmp_path):
    """The verdict comes with the ACK of packet 10, 90 ms after that arrived, as the way back is
    full; packet 3 has arrived by then, 10 ms after packet 10."""
    path = Path()
    for i in range(10):
        path.send(i, i, "wireless" if i == 3 else "")
    path.send(50, 10)
    path.send(60, 3)
    known, early = path.verdict(170, 3, 11, rtt_ms=110), path.verdict(160, 3, 11, rtt_ms=110)
    assert path.judge(tmp_path, early)["truth"].to_list() == ["random"]
    assert path.judge(tmp_path, known)["truth"].to_list() == ["none"]


@pytest.mark.parametrize(("hop", "cause"), [("wireless", "random"), ("bottleneck", "congestion")])
def test_a_probe_is_about_what_it_repaired(tmp_path, hop, cause):
    """That is acknowledged by then. A probe of what had arrived has repaired nothing."""
    path = Path()
    for i in range(10):
        path.send(i, i, hop if i in (2, 9) else "")
    path.send(60, 2)
    path.send(200, 9)
    told = path.verdict(300, 10, 12, at="probe")
    assert path.judge(tmp_path, told)["truth"].to_list() == [cause]
    needless = Path()
    for i in range(10):
        needless.send(i, i, hop if i == 2 else "")
    needless.send(60, 2)
    needless.send(200, 9)
    told = needless.verdict(300, 10, 12, at="probe")
    assert needless.judge(tmp_path, told)["truth"].to_list() == ["none"]


@pytest.mark.parametrize("first_tsn", [7, 2**32 - 5])
def test_a_verdict_of_sctp_is_about_its_own_path(tmp_path, first_tsn):
    """Chunks that the first path lost and the second one has brought are no longer missing, and
    what the second one loses is for its own verdict."""
    path = TwoPaths(first_tsn)
    for i in range(20):
        path.send_chunk(i, i, {3: "wireless", 8: "bottleneck"}.get(i, ""))
    path.send_chunk(60, 3, second=True)
    path.send_chunk(70, 8, "second_wireless", second=True)
    told = [
        path.verdict_of(FIRST_HOME, 59, 3, 8),
        path.verdict_of(FIRST_HOME, 59, 3, 20),
        path.verdict_of(FIRST_HOME, 150, 3, 8),  # repaired by the other path
        path.verdict_of(SECOND_HOME, 59, 3, 20),  # that has lost nothing yet
        path.verdict_of(SECOND_HOME, 150, 8, 20),
        path.verdict_of(FIRST_HOME, 150, 8, 20),
    ]
    rows = path.judge(tmp_path, *told)
    assert rows["truth"].to_list() == [
        "random", "congestion", "none", "none", "random", "congestion",
    ]  # fmt: skip
    assert rows["lost_random_pkts"].to_list() == [1, 1, 0, 0, 1, 0]


def test_what_was_known_is_in_the_table(tmp_path):
    path = Path()
    path.send(0, 0)
    (row,) = path.judge(tmp_path, path.verdict(50, 0, 1, "congestion")).to_dicts()
    assert list(row) == list(truth.COLUMNS)
    assert row["time_s"] == 0.05 and (row["flow"], row["algorithm"]) == ("tcp", "jtcp")
    assert (row["said"], row["at"], row["cwnd_pkts"]) == ("congestion", "timeout", 9)
    assert [row[f"{n}_us"] for n in ("rtt", "srtt", "queue", "queue_max")] == [1, 2, 3, 4]
    assert row["backlog_pkts"] == 1.5
    assert (row["jitter_ratio"], row["jitter_ratio_smoothed"]) == (-0.5, 0.25)


def test_the_matrix_and_its_rates():
    pairs = [("random", "random")] * 6 + [("random", "congestion")] * 2
    pairs += [("congestion", "congestion")] * 3 + [("congestion", "random")] * 1
    pairs += [("none", "congestion")] * 9
    rows = pl.DataFrame(pairs, schema=["truth", "said"], orient="row")
    counts = truth.matrix(rows)
    found = counts | truth.rates(counts)
    assert list(found) == list(CLASSIFIED)
    assert list(found.values())[:6] == [6, 2, 1, 3, 0, 9]
    assert found["classified_random_recall"] == 6 / 8
    assert found["classified_random_precision"] == 6 / 7
    assert found["classified_congestion_recall"] == 3 / 4
    assert found["classified_congestion_precision"] == 3 / 5
    nothing = truth.rates(dict.fromkeys(counts, 0))
    assert set(nothing.values()) == {None}


# --- in the lab ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(backend, tmp_path_factory):
    """Points whose losses all have one cause, or two beside UDP traffic, the latter with and
    without looking; each with its samples' bytes, its result, its verdicts, the drops found."""
    settings = {"run.duration_s": "40", "run.warmup_s": "5", "run.truth": "true"}
    always_random = {"modules.veno03.beta_pkts": "1000"}
    wanted = {
        "random": ("jsctp-primary", {"links.bottleneck.queue_pkts": "1000", "loss_pct": "3"}),
        "congestion": ("jsctp-primary", {"links.bottleneck.queue_pkts": "20", "loss_pct": "0"}),
        "both": ("veno-accuracy", {"udp_mbps": "0.6", "loss_pct": "1"}),
        "sctp random": ("jsctp-both", {"links.bottleneck.queue_pkts": "1000", "loss": "3 %"}),
        "sctp congestion": ("jsctp-both", {"links.bottleneck.queue_pkts": "20", "loss": "0 %"}),
    }
    sweep = {}
    for name, (base, changes) in wanted.items():
        given = settings | changes | (always_random if base == "jsctp-primary" else {})
        loaded = scenario.load(base, given)
        algorithm = "jsctp_abe" if name.startswith("sctp") else "veno03"
        (sweep[name],) = points.expand(loaded, (algorithm,), [1], backend.build.key)
    both = sweep["both"]
    sweep["unseen"] = dataclasses.replace(both, spec=both.spec | {"taps": [], "traces": []})
    found = {}

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        raw = outcome.raw
        name = next(name for name, point in sweep.items() if point is outcome.point)
        found[name] = {
            "samples": [(raw / file).read_bytes() for file in ("flows.csv", "hops.csv")],
            "result": summarize(outcome.point, raw),
        }
        if outcome.point.spec["taps"]:
            found[name] |= {
                "rows": pl.read_csv(raw / "verdicts.csv", schema=truth.COLUMNS),
                "drops": {
                    hop: truth.find_drops(truth.read_tap(raw / f"tap-{hop}"))
                    for hop in outcome.point.spec["taps"]
                },
                "start_ns": _start_ns(outcome.point, raw),
            }

    cpu = min(os.sched_getaffinity(0))
    for topology in dict.fromkeys(point.topology_key for point in sweep.values()):
        batch = [point for point in sweep.values() if point.topology_key == topology]
        backend.run_batch(batch, cpu, on_outcome, threading.Event())
    return found


def _start_ns(point, raw) -> int:
    start_s = json.loads((raw / "flow-0.json").read_text())["start_s"]
    return round((start_s - point.spec["flows"][0]["start_s"]) * 1e9)


@pytest.mark.parametrize("name", ["random", "congestion", "both", "sctp random", "sctp congestion"])
def test_the_drops_found_are_those_that_netem_counted(measured, name):
    rows = [row.split(",") for row in measured[name]["samples"][1].decode().splitlines()[1:]]
    end_ns = measured[name]["start_ns"] + 40 * 10**9
    for hop, drops in measured[name]["drops"].items():
        counted = [0, *(int(row[4]) for row in rows if row[1] == hop)][-1]
        assert len(drops.filter(pl.col("time_ns") < end_ns)) == counted, hop
    total = sum(map(len, measured[name]["drops"].values()))
    assert total > (3 if name == "sctp congestion" else 10)


@pytest.mark.parametrize("cause", ["random", "congestion"])
def test_known_drops_give_the_exact_matrix(measured, cause):
    """All losses have one cause and veno03 is made to say random of all: so is the matrix."""
    rows, result = measured[cause]["rows"], measured[cause]["result"]
    assert len(rows) > 10
    wanted = dict.fromkeys(verdicts.COUNTS, 0) | {f"classified_{cause}_as_random": len(rows)}
    assert {name: result[name] for name in verdicts.COUNTS} == wanted


@pytest.mark.parametrize("cause", ["random", "congestion"])
def test_verdicts_of_sctp_are_held_against_the_same_truth(measured, cause):
    """All losses have one cause. Packets of one path can overtake those of the other: what is
    then sent again was not lost, and that is rare."""
    rows, result = measured[f"sctp {cause}"]["rows"], measured[f"sctp {cause}"]["result"]
    lost = rows.filter(pl.col("truth") == cause)
    assert set(rows["truth"]) <= {cause, "none"} and len(lost) > max(3, 0.95 * len(rows))
    counted = {said: result[f"classified_{cause}_as_{said}"] for said in truth.SAID}
    assert counted == {said: lost["said"].to_list().count(said) for said in truth.SAID}


def test_both_causes_are_told_apart(measured):
    rows = measured["both"]["rows"]
    found = rows["truth"].to_list()
    assert found.count("random") >= 3 and found.count("congestion") >= 3
    assert len(rows) == found.count("random") + found.count("congestion")


def test_datagrams_are_sent_at_their_rate_and_none_is_forgotten(measured):
    (udp,) = measured["both"]["result"]["udp"]
    assert udp["sent_pkts"] == pytest.approx(40 * 0.6e6 / (8 * 1514), abs=6)
    drops = pl.concat(measured["both"]["drops"].values())
    lost = len(drops.filter(pl.col("protocol") != truth.TCP))
    assert lost > 0 and udp["received_pkts"] == udp["sent_pkts"] - lost


def test_looking_changes_nothing(measured):
    """The taps and the tracepoint leave the samples the same, byte for byte."""
    assert measured["both"]["samples"] == measured["unseen"]["samples"]
    assert "classified_random_as_random" not in measured["unseen"]["result"]
