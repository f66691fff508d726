# SPDX-License-Identifier: GPL-2.0-only
"""Check what cc-watch claims against sockets of its own, inside the lab kernel: prints TAP.

test_watch.py starts it. Time stands still while nobody waits, so what a socket says of itself and
what cc-watch says of it are of one instant. Standard library only.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from guest_claims import ALL
from guest_net import LOSS, RECOVERY, Flow
from guest_net import Path as Network

from labtest.claims import Claims, check_log
from labtest.guest import NOBODY, enter_namespace, first_in_line, inside, run_cmd

TOOLS = Path(__file__).resolve().parents[1] / "tools"
WATCH = TOOLS / "cc-watch"
sys.path.insert(0, str(TOOLS))
from cctools.connections import CA_STATES, GAIN_ONE, LAW_MASK, LAW_STATES, TOLD  # noqa: E402
from cctools.watch import Source  # noqa: E402

INSTANCES = Path("/sys/kernel/tracing/instances")
# what a module tells -> its name here, the socket's, and how many of the first a unit of that is
FIELDS = {
    "base": ("base_rtt_ms", "base_rtt_us", 1e-3),
    "bandwidth": ("bandwidth_mbps", "bw_bps", 1e-6),
    "ratio": ("jitter_percent", "ratio_pct", 1),
    "backlog": ("backlog_pkts", "backlog_pkts", 1),
}

claims = Claims()
claim = claims.add


def watched(flow: Flow) -> dict:
    """Return the row that a look from a's namespace has for FLOW."""
    local = flow.sock.getsockname()
    with inside("a"), Source() as source:
        (row,) = (one.row() for one in source.look() if one.local == f"{local[0]}:{local[1]}")
    return row


def watch(*arguments: str, user: int = 0) -> str:
    """Return what the command says in a to USER."""
    return run_cmd(str(WATCH), *arguments, preexec_fn=lambda: enter_namespace("a", user))


@claim("of each algorithm it shows what the socket itself tells, in its units")
def _values():
    for name in (*ALL, "bbr", "cubic"):
        with Network(rate_mbps=10, queue_pkts=60) as network, Flow(name) as flow:
            network.shape("loss", "1%")
            time.sleep(4)
            row, info = watched(flow), flow.info()
            assert row["algorithm"] == name and row["tcp_state"] == "ESTAB"
            assert row["cwnd_pkts"] == info.cwnd_pkts and row["mss_bytes"] == info.mss_bytes
            assert row["srtt_ms"] == info.srtt_us / 1000
            assert row["retransmits"] == info.retransmits > 0
            assert row["bytes_acked"] == info.bytes_acked > 0
            assert 0 < row["resent_percent"] < 20 and 45 < row["base_rtt_ms"] < 60
            told = flow.cc_info() if name in ALL else {}
            for what in TOLD.get(name, set()) - {"law"}:
                shown, field, unit = FIELDS[what]
                slack = LAW_MASK / GAIN_ONE if (name, what) == ("veno_jitter", "ratio") else 0
                assert abs(row[shown] - told[field] * unit) < slack + 1e-6, (name, row, told)
            assert (row["law"] in LAW_STATES[1:]) == (name == "veno_jitter"), (name, row)
            if "ratio" not in TOLD.get(name, ()):
                assert row["jitter_percent"] is None


@claim("the state is the socket's: Recovery while a loss is repaired, Loss in an outage, Open after"
       " it")  # fmt: skip
def _states():
    with Network(rate_mbps=20, queue_pkts=200) as _network, Flow("veno_jitter") as flow:
        time.sleep(5)
        assert watched(flow)["state"] == "Open"
        seen = set()
        flow.refuse_next(2)
        flow.wait_for(lambda info: info.ca_state == RECOVERY)
        seen.add(watched(flow)["state"])
        flow.accept()
        with flow.outage():
            flow.wait_for(lambda info: info.ca_state == LOSS)
            seen.add(watched(flow)["state"])
        assert seen == {"Recovery", "Loss"}, seen
        for _ in flow.samples(10, 0.1):
            row, info = watched(flow), flow.info()
            assert row["state"] == CA_STATES[info.ca_state], (row, info)


def pace(row: dict) -> float:
    """Return the pacing rate as a multiple of cwnd / srtt."""
    window_mbps = row["cwnd_pkts"] * row["mss_bytes"] * 8 / row["srtt_ms"] / 1e3
    return row["pacing_mbps"] / window_mbps


def laws(flow: Flow, seconds: int) -> list[str]:
    """Return the states of the law that are seen in so many seconds, ten times a second."""
    found = []
    for _ in range(10 * seconds):
        time.sleep(0.1)
        found.append(watched(flow)["law"])
    return found


@claim("the law is in STARTUP while the window doubles, ALONE on an empty path, SHARED beside cubic"
       " in a deep queue, ALONE again after that; in STARTUP it paces faster")  # fmt: skip
def _law():
    with Network(rate_mbps=10, queue_pkts=200) as _network, Flow("veno_jitter") as flow:
        flow.wait_for(lambda info: info.cwnd_pkts >= 30)
        row = watched(flow)
        assert row["law"] == "STARTUP" and pace(row) > 1.25, row
        time.sleep(5)
        assert set(laws(flow, 5)) == {"ALONE"}
        assert 0.95 < pace(watched(flow)) < 1.2, watched(flow)
        with Flow("cubic"), Flow("cubic"):
            time.sleep(30)
            beside = laws(flow, 20)
        assert beside.count("SHARED") > 0.9 * len(beside) and "STARTUP" not in beside, beside
        time.sleep(30)
        after = laws(flow, 10)
        assert after.count("ALONE") > 0.9 * len(after), after


@claim("losses are counted by what the module took them for, one verdict for each repair")
def _losses():
    with Network(rate_mbps=10, queue_pkts=60) as _network, Flow("veno_jitter") as flow:
        time.sleep(5)
        port = flow.sock.getsockname()[1]
        with inside("a"), Source() as source:
            assert source.verdicts.there
            before = [one.losses for one in source.look() if f":{port}" in one.local]
            for _ in range(4):
                flow.drop_one()
                time.sleep(3)
            (losses,) = (one.losses for one in source.look() if one.local.endswith(f":{port}"))
        assert before[0].random == before[0].congestion == 0
        assert losses.random + losses.congestion == 4 and losses.random >= 3, losses
        assert not list(INSTANCES.iterdir())


@claim("whoever it is sees the connections and their numbers, but not the verdicts")
def _nobody():
    with Network(rate_mbps=10) as _network, Flow("veno_jitter") as flow:
        time.sleep(2)
        of_root = json.loads(watch("--json", "--ours"))
        rows = json.loads(watch("--json", "--ours", user=NOBODY))
        assert len(rows) == 1 and rows[0]["losses_random"] is None
        told, seen = (
            {key for key, value in row.items() if value is not None}
            for row in (of_root[0], rows[0])
        )
        assert told - seen == {"losses_random", "losses_congestion"} and seen <= told
        # between two looks packets come and go
        same = [key for key in seen if isinstance(rows[0][key], str)]
        assert "local" in same and all(of_root[0][key] == rows[0][key] for key in same)
        assert abs(rows[0]["cwnd_pkts"] - flow.info().cwnd_pkts) <= 2


@claim("the log has a line for each look with the rates between, and ends with the command")
def _log():
    with (
        Network(rate_mbps=10) as _network,
        Flow("cubic") as _flow,
        tempfile.TemporaryDirectory() as at,
    ):
        process = subprocess.Popen(
            [WATCH, "--log", f"{at}/log", "-i", "0.5", "cubic"],
            preexec_fn=lambda: enter_namespace("a"),
        )
        time.sleep(8)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        looks = [json.loads(line) for line in Path(at, "log").read_text().splitlines()]
    assert 12 <= len(looks) <= 17, len(looks)
    rates = [look["connections"][0]["sent_mbps"] for look in looks]
    assert rates[0] is None and all(8 < rate < 11 for rate in rates[6:]), rates
    assert not list(INSTANCES.iterdir())


claim("the kernel log holds no complaint at the end, and no memory was lost")(check_log)


if __name__ == "__main__":
    run_cmd("mount", "-t", "tracefs", "nodev", str(INSTANCES.parent))
    first_in_line()
    claims.settle(" ".join(sys.argv[1:]))
