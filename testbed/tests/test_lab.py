# SPDX-License-Identifier: GPL-2.0-only
"""The lab itself, on a booted lab kernel: repeatable, clean, and honest about what fails."""

import dataclasses
import json
import os
import pickle
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import pytest
from conftest import RUN, run_command

from lab.ask import points, scenario
from lab.measure.metrics import summarize
from lab.run import build as builds
from lab.run.backends import virtual

LIMIT_S = 120  # only so that a hang ends
PATH = "jsctp-primary"  # one path, loss as its axis
SHORT = ["--set", "run.duration_s=30", "--set", "run.warmup_s=5"]
# bbr and cdg draw random numbers, the others do not; ours sample clocks
ALGORITHMS = ("bbr", "cdg", "jtcp", "tabe")


def short_points(backend, algorithms=ALGORITHMS, seeds=(1, 2, 3), loss="1,10", **settings):
    settings = {"run.duration_s": "30", "run.warmup_s": "5", "loss_pct": loss} | settings
    loaded = scenario.load(PATH, settings)
    return points.expand(loaded, tuple(algorithms), list(seeds), backend.build.key)


def raw_bytes(backend, batch, cpu=None) -> dict[str, dict[str, bytes]]:
    """Run BATCH in one boot; return point id -> file -> bytes, without wall or boot times."""
    found = {}

    def on_outcome(outcome):
        assert not outcome.error, f"{outcome.error}\n{outcome.log}"
        found[outcome.point.id] = {
            path.name: _without_clock(path) for path in outcome.raw.iterdir()
        }

    cpu = min(os.sched_getaffinity(0)) if cpu is None else cpu
    backend.run_batch(list(batch), cpu, on_outcome, threading.Event())
    return found


def _without_clock(path: Path) -> bytes:
    """A flow's JSON names absolute times since boot; results count from the point's start."""
    if not path.name.startswith("flow-"):
        return path.read_bytes()
    flow = json.loads(path.read_text())
    start_s = flow["start_s"]
    for key in ("start_s", "connected_s", "end_s", "completion_time_s"):
        if flow[key] is not None:
            flow[key] = round(flow[key] - start_s, 9)
    return json.dumps(flow).encode()


def test_only_a_wireless_point_asks_for_the_medium(backend, monkeypatch):
    """ns-3 is a large package that most scenarios do without."""

    def refuse(*step, **_):
        raise builds.LabError(f"testbed/setup {step[0]}")

    monkeypatch.setattr(builds, "setup", refuse)
    build = dataclasses.replace(backend.build)  # without what the other has built already
    assert build.key({"reno"})
    with pytest.raises(builds.LabError, match="testbed/setup medium"):
        build.key({"reno"}, wireless=True)


def test_the_medium_is_laid_out_once(backend):
    """Others may be packing the stage for their workers, or running what is in it."""

    def laid_out() -> dict[str, int]:
        dataclasses.replace(backend.build).key({"reno"}, wireless=True)
        return {path.name: path.stat().st_ino for path in (backend.build.stage / "bin").iterdir()}

    assert laid_out() == laid_out()


@pytest.fixture(scope="module")
def in_one_batch(backend):
    sweep = short_points(backend)
    return sweep, raw_bytes(backend, sweep)


def test_a_point_alone_gives_the_bytes_it_gives_in_a_batch(backend, in_one_batch):
    """Same bytes first in a boot, last in a boot, and in the middle of another order."""
    sweep, reference = in_one_batch
    for point in (sweep[-1], sweep[5]):
        assert raw_bytes(backend, [point])[point.id] == reference[point.id]
    assert raw_bytes(backend, sweep[::-1]) == reference


def test_a_points_wall_clock_is_its_own(backend):
    """veno_jitter goes by it where nothing but losses tells how full the path is."""
    one, two = short_points(
        backend, ("veno_jitter",), (1, 2), "0", **{"links.bottleneck.queue_pkts": "3"}
    )
    assert raw_bytes(backend, [two, one])[one.id] == raw_bytes(backend, [one])[one.id]


def test_a_point_needs_no_network_of_its_own_size(backend, in_one_batch):
    """Points that differ in how many pairs of hosts they need share a boot, and the bytes of one
    are those that it has alone."""
    sweep, reference = in_one_batch
    many = short_points(backend, ("bbr", "jtcp"), seeds=(1,), **{"flows.0.count": "12"})
    (batch,) = backend.batches([sweep[0], *many, sweep[5]], jobs=1)
    assert [point.pairs for point in batch] == [12] * len(many) + [1, 1]
    found = raw_bytes(backend, batch)
    for point in (sweep[0], sweep[5]):
        assert found[point.id] == reference[point.id]


def test_a_sysctl_is_of_all_hosts_and_of_one_point(backend, in_one_batch):
    """Without time stamps a full segment carries twelve bytes more; the next point has them."""
    sweep, reference = in_one_batch
    (bare,) = short_points(backend, ("bbr",), (1,), "1", **{"sysctl.net.ipv4.tcp_timestamps": "0"})
    found = raw_bytes(backend, [bare, sweep[0]])
    assert found[sweep[0].id] == reference[sweep[0].id]
    mss_bytes = [json.loads(of["flow-0.json"])["mss_bytes"] for of in found.values()]
    assert mss_bytes == [1460, 1448]


def test_a_sysctl_that_no_host_has_is_named(backend):
    outcomes = []
    batch = short_points(backend, ("bbr",), (1,), "1", **{"sysctl.net.ipv4.tcp_sak": "0"})
    cpu = min(os.sched_getaffinity(0))
    backend.run_batch(batch, cpu, outcomes.append, threading.Event())
    assert [outcome.error for outcome in outcomes] == [
        "RuntimeError: sysctl net.ipv4.tcp_sak = 0: No such file or directory"
    ]


def test_three_runs_give_the_same_files_also_with_the_other_core_busy(tmp_path):
    """results.jsonl and samples/ are the same bytes; wall times are in meta.json alone."""
    wanted = [
        PATH,
        *SHORT,
        "--algorithms",
        "bbr,jtcp",
        "--seed",
        "3",
        "--set",
        "loss_pct=5",
    ]
    folders = []
    for name in ("first", "second", "busy"):
        hogs = []
        if name == "busy":
            spin = [sys.executable, "-c", "while True: pass"]
            hogs = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
        try:
            done = run_command(*wanted, "--out", str(tmp_path / name))
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        assert done.returncode == 0, done.stderr
        folders.append(tmp_path / name)
    first, *others = ({p.name: p.read_bytes() for p in _result_files(f)} for f in folders)
    assert len(first) == 1 + 2 * 2 and all(first.values())
    for other in others:
        assert other == first


def _result_files(folder: Path):
    return [folder / "results.jsonl", *(folder / "samples").iterdir()]


def test_seeds_and_algorithms_make_a_difference(in_one_batch):
    """What is compared above is not trivially the same."""
    sweep, reference = in_one_batch
    assert len({files["flows.csv"] for files in reference.values()}) == len(sweep)


def test_every_drop_has_a_cause(backend):
    """The wireless hop drops at its loss rate, a queue that has room drops nothing."""
    settings = {"links.bottleneck.queue_pkts": "1000"}
    point = short_points(backend, ["reno"], [1], "5", **settings)[0]
    rows = raw_bytes(backend, [point])[point.id]["hops.csv"].decode().splitlines()
    last = {row.split(",")[1]: [float(x) for x in row.split(",")[2:]] for row in rows[1:]}
    sent, _, drops, *_ = last["wireless"]
    assert abs(drops / (sent + drops) - 0.05) < 4 * (0.05 * 0.95 / (sent + drops)) ** 0.5
    assert last["bottleneck"][2] == 0


def test_offloads_at_hosts_send_single_packets(backend):
    """At 100 Mb/s TCP makes pieces of several segments. They cross a hop as they are made, or cut:
    by the stack, or by the host's device, which takes its time for each packet."""
    hops = {}
    for offloads in ("false", "hosts", "true"):
        settings = {
            "topology.offloads": offloads, "rate": "100 Mb/s", "rtt": "40 ms", "loss_pct": "0",
            "run.duration_s": "3", "run.warmup_s": "1",
        }  # fmt: skip
        loaded = scenario.load("speeds", settings)
        point = points.expand(loaded, ("bbr",), [1], backend.build.key)[0]
        hops[offloads] = raw_bytes(backend, [point])[point.id]["hops.csv"]
        rows = [row.split(",") for row in hops[offloads].decode().splitlines()[1:]]
        waiting = [(int(row[5]), int(row[6])) for row in rows if row[1] == "bottleneck"]
        mean_bytes = [size / pkts for pkts, size in waiting if pkts]
        assert len(mean_bytes) > 5 and max(mean_bytes) >= 1400
        assert (max(mean_bytes) <= 1514) == (offloads != "true")
    assert hops["false"] != hops["hosts"]


def test_an_aqm_drops_or_marks_and_the_probe_sees_which(backend):
    """An AQM makes two cubic flows send again what it dropped, or, with ECN, marks and drops none;
    in both cases the queue is near its target (PIE's 15 ms, CoDel's 5), far below the 240 ms that
    it has room for."""
    settings = {"run.duration_s": "20", "run.warmup_s": "5", "loss_pct": "0"}
    for queue in ("codel", "fq_codel, ECN", "pie", "fq_pie, ECN"):
        aqm = {"links.bottleneck.aqm": queue.split(",")[0], "links.bottleneck.queue_pkts": "200"}
        aqm |= {"topology.ecn": str("ECN" in queue).lower(), "queue": '["drop-tail"]'}
        loaded = scenario.load("aqm", settings | aqm)
        point = points.expand(loaded, ("cubic",), [1], backend.build.key)[0]
        found = []
        backend.run_batch(
            [point], min(os.sched_getaffinity(0)),
            lambda outcome, to=found, of=point: to.append(summarize(of, outcome.raw)),
            threading.Event(),
        )  # fmt: skip
        result = found[0]
        assert 0.95 * point.bound_mbps < result["goodput_mbps"] < 1.01 * point.bound_mbps
        assert 1 < result["queue_delay_ms_p95"] < 6 * (15 if "pie" in queue else 5)
        dropped, marked = result["loss_congestion"], result["ce_marks"]
        # PIE drops also what could be marked while its probability is above 10 % (RFC 8033, 5.1)
        assert (dropped == 0) if queue == "fq_codel, ECN" else (dropped > 10)
        assert (marked > 10) if "ECN" in queue else (marked == 0)
        assert 0 <= dropped - result["retransmits"] <= 5  # the last: under way


def test_no_loss_fills_the_bound_and_overflows_the_queue(backend):
    """Thirty seconds of Reno over a short queue: near the bound, and drops are congestion."""
    settings = {"links.bottleneck.queue_pkts": "12"}
    point = short_points(backend, ["reno"], [1], "0", **settings)[0]
    files = raw_bytes(backend, [point])[point.id]
    flow = json.loads(files["flow-0.json"])
    goodput_mbps = flow["bytes_acked"] * 8e-6 / 30
    assert 0.9 * point.bound_mbps < goodput_mbps <= point.bound_mbps
    rows = [row.split(",") for row in files["hops.csv"].decode().splitlines()[1:]]
    drops = [int(row[4]) for row in rows if row[1] == "bottleneck"]
    assert drops[-1] > 0 and 0 <= drops[-1] - flow["retransmits"] <= 5  # the last: under way


def test_a_hanging_point_is_killed_and_the_rest_still_run(backend, monkeypatch):
    """The point that hangs is reported with its console; those behind it get another boot.

    It really hangs: without a rate its flow never lets virtual time move.
    """
    sweep = short_points(backend, ["reno"], [1, 2, 3], "1")
    no_rate = {hop: {"seed": 1} for hop in sweep[1].spec["links"]}
    sweep[1] = dataclasses.replace(sweep[1], spec=sweep[1].spec | {"links": no_rate})
    real = backend.point_limit_s
    monkeypatch.setattr(
        backend, "point_limit_s", lambda point: 3.0 if point is sweep[1] else real(point)
    )
    ended = []
    backend.run_batch(sweep, 0, lambda o: ended.append((o.point.seed, o.error)), threading.Event())
    assert [seed for seed, _ in ended] == [1, 2, 3]
    assert [bool(error) for _, error in ended] == [False, True, False]
    assert "no end within" in ended[1][1]


def test_a_failing_point_is_named_and_the_rest_still_run(tmp_path):
    """A value that the module refuses fails its own points: exit 1, a log, all other results."""
    done = run_command(
        PATH, *SHORT, "--algorithms", "cdg,reno", "--seed", "1", "--set", "loss_pct=1",
        "--set", "modules.cdg.window=16", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert done.returncode == 1 and "cdg refuses window = 16" in done.stderr
    results = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["algorithm"] for line in results] == ["reno"]
    assert len(list((tmp_path / "out" / "logs").iterdir())) == 1


def test_module_parameters_act_and_are_taken_back(backend):
    """k_percent = 1000 makes every loss wireless; the point after it has the default again."""
    plain = short_points(backend, ["jtcp"], [1], "0")[0]
    tuned = short_points(backend, ["jtcp"], [1], "0", **{"modules.jtcp.k_percent": "1000"})[0]
    first = raw_bytes(backend, [plain])
    both = raw_bytes(backend, [tuned, plain])
    assert both[plain.id] == first[plain.id] != both[tuned.id]


@pytest.fixture
def own_room(monkeypatch):
    """A folder for this test's guests, so that others' labs may come and go meanwhile."""
    with tempfile.TemporaryDirectory(dir=virtual.room_for_memory(), prefix="test-lab-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield


def guests() -> set[str]:
    """Return the kernels and folders of this test's labs that exist now; it has its own_room."""
    room = virtual.room_for_memory()
    listed = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True).stdout
    kernels = {line for line in listed.splitlines() if f"uml_dir={room}/" in line}
    return kernels | {str(path) for path in room.glob("veno-jitter-*")}


def kernels(found: set[str]) -> set[str]:
    """Return those of FOUND that are kernels and no folders."""
    return {guest for guest in found if "time-travel=" in guest}


@pytest.mark.usefixtures("own_room")
def test_a_killed_runner_leaves_no_kernel(tmp_path):
    """SIGTERM ends like Ctrl-C; after SIGKILL the guests end by themselves, and the next start
    takes their folder away."""
    wanted = [
        PATH,
        "--set",
        "run.duration_s=3000",
        "--algorithms",
        "bbr",
        "--set",
        "loss_pct=1",
    ]
    before = guests()
    for number, status in ((signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        sweep = subprocess.Popen(
            [str(RUN), *wanted, "--out", str(tmp_path / str(number))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not kernels(guests() - before) and sweep.poll() is None:
            time.sleep(0.05)
        sweep.send_signal(number)
        _, complaint = sweep.communicate(timeout=120)
        assert sweep.returncode == status, complaint
        for _ in range(200):
            if not kernels(guests() - before):
                break
            time.sleep(0.05)
        left = guests() - before
        assert not kernels(left) and bool(left) == (number == signal.SIGKILL)
    assert run_command("--exec", "true").returncode == 0
    assert guests() == before


@pytest.mark.usefixtures("own_room")
def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path):
    """Exit 130, only whole results, no process or folder left; --resume gives the same bytes."""
    wanted = [PATH, "--set", "run.duration_s=60", "--algorithms", "reno,bbr", "--seeds", "10",
              "--set", "loss_pct=1,5", "--out"]  # fmt: skip
    out = tmp_path / "cut"
    before = guests()
    sweep = subprocess.Popen(
        [str(RUN), *wanted, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while not len(list(out.glob("points/*.json"))) >= 3 and sweep.poll() is None:
        time.sleep(0.02)
    os.killpg(sweep.pid, signal.SIGINT)
    _, complaint = sweep.communicate(timeout=120)
    assert sweep.returncode == 130, complaint
    assert "--resume" in complaint and "Traceback" not in complaint
    kept = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert 3 <= len(kept) < 40 and guests() == before
    refused = run_command(*wanted, str(out))
    assert refused.returncode == 2 and "--resume" in refused.stderr
    assert run_command(*wanted, str(out), "--resume").returncode == 0
    assert run_command(*wanted, str(tmp_path / "whole")).returncode == 0
    whole = (tmp_path / "whole" / "results.jsonl").read_bytes()
    assert (out / "results.jsonl").read_bytes() == whole


def test_mininet_runs_unchanged_inside(tmp_path):
    """A Mininet script that knows nothing of this lab: hosts, a netem link, a transfer."""
    script = tmp_path / "script.py"
    script.write_text(
        """
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import Topo

class Pair(Topo):
    def build(self):
        self.addLink(self.addHost("a"), self.addHost("b"), bw=10, delay="20ms")

net = Mininet(topo=Pair(), link=TCLink, controller=None)
net.start()
tool = "/run/lab/modules/bin/labflow"
sink = net["b"].popen([tool, "sink", "--port", "5001", "--ready-fd", "1"], text=True)
assert sink.stdout.readline() == "ready\\n"
print(net["a"].cmd(f"{tool} send --connect {net['b'].IP()} --port 5001 --bytes 1000000 --json -"))
sink.terminate()
net.stop()
"""
    )
    out = tmp_path / "out"
    command = f"/usr/bin/python3 {script} | tee $LAB_OUT/log"
    done = run_command("--exec", command, "--out", str(out), cwd=tmp_path)
    assert done.returncode == 0 and (out / "log").read_text() in done.stdout
    flow = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"'))
    assert flow["completed"] and flow["bytes_acked"] == 1_000_000
    assert 0.84 < flow["end_s"] - flow["start_s"] < 2.0  # virtual: 1 MB at 10 Mb/s, 40 ms


def test_a_program_is_one_process_in_its_namespace_and_turn(tmp_path):
    """Each process more costs User Mode Linux some 8 ms, a point of the demo 100."""
    (tmp_path / "start.py").write_text(
        """
import os, subprocess
from pathlib import Path
from lab.run.guest.programs import start
from lab.run.guest.turns import set_priority

def forks():
    return int(Path("/proc/stat").read_text().partition("processes ")[2].split()[0])

def rank(pid):
    return os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority

holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=-1)
while os.readlink(f"/proc/{holder.pid}/ns/net") == (home := os.readlink("/proc/self/ns/net")):
    pass
set_priority(3)
before = forks()
program = start(["sleep", "inf"], 20, holder.pid)
print("forks", forks() - before)
print("there", os.readlink(f"/proc/{program.pid}/ns/net") != home, rank(program.pid))
print("here", os.readlink("/proc/self/ns/net") == home, rank(0))
program.kill()
holder.kill()
"""
    )
    done = run_command("--exec", f"/usr/bin/python3 {tmp_path}/start.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "forks 1\n" in said and "there True (1, 20)" in said and "here True (1, 3)" in said, said


def test_floating_point_registers_stay_with_whom_they_belong_to(tmp_path):
    """The lab's kernel leaves them in the host's process: kernels/patches/0006-um-lazy-fp.patch."""
    source = Path(builds.setup_paths()["kernel"]) / "source"
    if "PATCHLEVEL = 12\n" in (source / "Makefile").read_text():  # it does not fit all others
        text = (source / "arch/um/os-Linux/skas/process.c").read_text()
        assert "fetch_fp_registers" in text
    program = tmp_path / "fp_state"
    code = Path(__file__).with_name("fp_state.c")
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, code], check=True)
    done = run_command("--exec", str(program), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "kept", done.stdout


@pytest.mark.parametrize("topology", ["dumbbell,2", "chain,2,4"])
def test_the_topologies_work_under_mn(tmp_path, topology):
    """`mn --custom` builds them with their routes: all nodes reach each other."""
    mn = f"mn --custom {RUN.parent}/lab/ask/topologies.py --topo {topology} --controller none"
    done = run_command("--exec", f"{mn} --test pingall", cwd=tmp_path)
    assert done.returncode == 0 and " 0% dropped" in done.stdout, done.stdout


def test_hosts_along_a_chain_reach_each_other(tmp_path):
    """Also those of pairs that are not at its ends, in all directions."""
    code = (
        "from mininet.net import Mininet; from lab.ask.topologies import Chain;"
        "topo = Chain(hops=4, spans=[(0, 3), (1, 1), (2, 3), (0, 0)]);"
        "net = Mininet(topo=topo, controller=None); net.start();"
        "hosts = [net[f'{end}{pair}'] for end in ('src', 'dst') for pair in (1, 2, 3, 4)];"
        "print('lost', net.ping(hosts)); net.stop()"
    )
    done = run_command("--exec", f'/usr/bin/python3 -c "{code}"', cwd=tmp_path)
    assert done.returncode == 0 and "lost 0.0" in done.stdout, done.stdout + done.stderr


def test_cross_traffic_takes_its_own_hops_alone(backend):
    """A hop carries what the flows over it send, and those of jtcp-multihop hinder each other
    where their ways meet only."""
    settings = {"run.duration_s": "30", "run.warmup_s": "5", "loss_pct": "1"}
    loaded = scenario.load("jtcp-multihop", settings)
    (point,) = points.expand(loaded, ("reno",), [1], backend.build.key)
    files = raw_bytes(backend, [point])[point.id]
    sent = {
        flow["name"]: flow["segs_out"]
        for flow in (json.loads(files[f"flow-{i}.json"]) for i in range(3))
    }
    rows = [row.split(",") for row in files["hops.csv"].decode().splitlines()[1:]]
    last = {hop: row for row in rows for hop in row[1:2]}
    entered = {hop: int(row[2]) + int(row[4]) + int(row[5]) for hop, row in last.items()}
    dropped = {hop: int(row[4]) for hop, row in last.items()}
    assert min(dropped.values()) > 0
    through = sent["tcp"]
    for hop, cross in (("backbone", "at-backbone"), ("bottleneck", "at-bottleneck")):
        assert abs(entered[hop] - through - sent[cross]) <= dropped["backbone"] + 5
    assert through - entered["wireless"] <= dropped["backbone"] + dropped["bottleneck"] + 5


def test_sctp_goes_on_by_the_second_home(backend):
    """While the primary path of failover is cut, all comes by the other one; and back again."""
    loaded = scenario.load("failover")
    (point,) = points.expand(loaded, ("rfc9260",), [1], backend.build.key)
    files = raw_bytes(backend, [point])[point.id]
    rows = [row.split(",") for row in files["hops.csv"].decode().splitlines()[1:]]

    def sent_kb(hop: str, from_s: float, to_s: float) -> float:
        counts = [int(row[3]) for row in rows if row[1] == hop and from_s < float(row[0]) <= to_s]
        return (counts[-1] - counts[0]) / 1000

    first, second = "wireless", "second_wireless"
    assert sent_kb(first, 10, 60) > 5 * sent_kb(second, 10, 60)
    assert sent_kb(first, 61, 120) < 50 < 1000 < sent_kb(second, 61, 120)
    assert sent_kb(first, 240, 300) > 5 * sent_kb(second, 240, 300)
    assert json.loads(files["flow-0.json"])["completed"]


def test_exec_has_what_shells_want():
    """bash reads <(command) from a file below /dev/fd."""
    command = "bash -c 'cat <(echo from a pipe)' | grep -qx 'from a pipe'"
    assert run_command("--exec", command).returncode == 0


def test_exec_passes_the_exit_status_on():
    assert run_command("--exec", "exit 7").returncode == 7
    assert run_command("--exec", "exec sh -c 'exit 7'").returncode == 7


def test_exec_has_nothing_to_read():
    done = run_command("--exec", "cat; echo read")
    assert done.returncode == 0 and done.stdout.split() == ["read"]


def test_ctrl_c_in_a_terminal_ends_exec_and_leaves_the_terminal_alone():
    """The kernel inside has no terminal; its command says nothing when the key is pressed."""
    process, terminal = pty.fork()
    if not process:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever started these tests ignores
        os.execv(RUN, [str(RUN), "--exec", "echo up; while sleep 1; do :; done"])

    def hear(wanted: bytes) -> bytes:
        said = b""
        while wanted not in said and select.select([terminal], [], [], LIMIT_S)[0]:
            said += os.read(terminal, 1000)
        return said

    try:
        assert b"up" in hear(b"up") and termios.tcgetattr(terminal)[3] & termios.ISIG
        time.sleep(0.5)
        os.write(terminal, b"\3")
        assert b"interrupted" in hear(b"kept")
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130


def test_exec_ends_where_nobody_reads_on():
    command = f"{RUN} --exec 'yes' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 141 and done.stdout == "y\n" and not done.stderr


def test_exec_says_what_the_command_says_and_nothing_else():
    """What a command prints may be for a program: the kernel's last words are not among it."""
    done = run_command("--exec", "echo '{\"a\": 1}' # the end")
    assert done.returncode == 0 and json.loads(done.stdout) == {"a": 1}, done.stdout


def test_what_is_written_for_nobody_is_told_of(tmp_path):
    lost = run_command("--exec", "touch $LAB_OUT/figures")
    assert lost.returncode == 0
    assert lost.stderr.splitlines()[-1] == "lab: gone with $LAB_OUT: figures; --out DIR keeps it"
    kept = run_command("--exec", "touch $LAB_OUT/figures", "--out", str(tmp_path / "out"))
    assert kept.returncode == 0 and (tmp_path / "out" / "figures").exists()
    assert "$LAB_OUT" not in kept.stderr + run_command("--exec", "true").stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="already without root")
def test_no_root_is_needed_to_run_a_point(backend):
    """An unprivileged process, with the right to read this checkout and nothing else, runs one."""
    code = (
        "import pickle, threading;"
        "from lab.ask import points, scenario; from lab.run.backends.virtual import VirtualBackend;"
        f"b = VirtualBackend(pickle.loads({pickle.dumps(backend.build)!r}));"
        "settings = {'run.duration_s': '30', 'run.warmup_s': '5', 'loss_pct': '1'};"
        f"s = scenario.load({PATH!r}, settings);"
        "p = points.expand(s, ('jtcp',), [1], b.build.key);"
        "b.run_batch(p, 0, lambda o: print('ended', o.error or 'well', o.log), threading.Event())"
    )
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
         "--bounding-set=-all,+dac_read_search", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=300,
        env={"PYTHONPATH": str(RUN.parent), "PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )  # fmt: skip
    assert "ended well" in done.stdout, done.stdout + done.stderr


def test_tfrc_repeats_and_its_oracle_knows_the_queue(backend):
    """Keys and connection numbers are random, results are not; and who watches behind the queue
    is never wrong about a loss."""
    settings = {"run.duration_s": "20", "run.warmup_s": "5", "loss_pct": "4"}
    loaded = scenario.load("tfrc-single", settings)
    sweep = points.expand(loaded, ("uddj", "wireless"), [1], backend.build.key)
    runs = []
    for batch in (sweep, sweep[::-1]):
        found = {}

        def on_outcome(outcome, found=found):
            assert not outcome.error, f"{outcome.error}\n{outcome.log}"
            found[outcome.point.algorithm] = summarize(outcome.point, outcome.raw)

        cpu = min(os.sched_getaffinity(0))
        backend.run_batch(list(batch), cpu, on_outcome, threading.Event())
        runs.append(found)
    assert runs[0] == runs[1]
    for name, result in runs[0].items():
        flow = result["flows"][0]
        assert flow["queue_drops"] <= result["loss_congestion"], name
        assert flow["random_as_random"] > 0, name
        assert result["goodput_mbps"] > 0.8 * result["residual_mbps"], name
    oracle = runs[0]["wireless"]["flows"][0]
    assert oracle["congestion_as_congestion"] > 0  # it fills the queue, uddj need not
    assert oracle["congestion_as_random"] == oracle["random_as_congestion"] == 0
    told = runs[0]["wireless"]
    assert told["classified_congestion_recall"] == told["classified_random_recall"] == 1
    assert told["classified_random_as_random"] == oracle["random_as_random"]


def test_what_the_kernel_lacks_is_said(backend):
    """A point is refused before anything runs; the sentence names the module."""
    kernel = backend.build.kernel
    links = {"bottleneck": {"rate_mbps": 2.0, "queue_pkts": 50, "seed": 1}}
    for aqm in ("pie", "dualpi2"):
        complaint = backend.link_complaint({"bottleneck": links["bottleneck"] | {"aqm": aqm}})
        assert (f"no sch_{aqm}" in complaint) != kernel.has(f"sch_{aqm}")
    assert kernel.has("sch_pie") and kernel.has("veth") and not kernel.has("sch_pi")
    assert backend.link_complaint(links) == ""
