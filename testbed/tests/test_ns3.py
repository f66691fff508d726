# SPDX-License-Identifier: GPL-2.0-only
"""ns-3's own TCP over the path of a finished run, and what it cannot repeat."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import TESTBED

from lab.ask import points, scenario
from lab.common.errors import BadInput, LabError
from lab.run import ns3


def write_run(folder: Path, name="veno-single", algorithms=("reno", "jtcp"), **settings) -> Path:
    """What a run leaves of how it was made; its results are not asked for."""
    loaded = scenario.load(name, {"run.duration_s": "20", "run.warmup_s": "2"} | settings)
    meta = {
        "scenario": loaded.id,
        "title": loaded.title,
        "source": loaded.source,
        "seeds": [1, 2],
        "algorithms": list(algorithms),
    }
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "results.jsonl").write_text("")
    return folder


def run_ns3(*arguments) -> subprocess.CompletedProcess:
    command = [str(TESTBED / "veno-lab"), "ns3", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=TESTBED)


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return ns3.build()[0]
    except LabError as error:
        pytest.skip(f"ns-3 cannot be installed here: {error}")


def test_a_run_is_repeated(program, tmp_path):
    """Without loss Reno fills the path; what ns-3 has no model of is left out, and said so; same
    seed, same figure. The folder is one that `agree` takes."""
    run = write_run(tmp_path / "run", loss_pct="0,1")
    texts = []
    for name in ("a", "b"):
        done = run_ns3(run, tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert "no model of them: jtcp" in done.stderr
        texts.append((tmp_path / name / "results.jsonl").read_text())
    assert texts[0] == texts[1]
    found = [json.loads(line) for line in texts[0].splitlines()]
    assert [(one["axes"]["loss_pct"], one["seed"]) for one in found] == [
        (0, 1), (0, 2), (1, 1), (1, 2),
    ]  # fmt: skip
    bound_mbps = found[0]["bound_mbps"]
    for one in found[:2]:
        assert 0.75 * bound_mbps < one["goodput_mbps"] <= bound_mbps
    assert found[2]["goodput_mbps"] != found[3]["goodput_mbps"] < found[0]["goodput_mbps"]
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    assert meta["backend"] == "ns-3" and meta["points"] == 4
    again = run_ns3(run, tmp_path / "a")
    assert again.returncode == 2 and "name another folder" in again.stderr


def test_one_window_a_round_trip(program):
    """Where there is room for all of a window, the path's own time is all that counts: two packets
    of 1448 bytes in a round trip of 100 ms."""
    command = [
        str(program), "--there=0:30:0:0,0:20:0:0", "--back=0:10:0:0,0:40:0:0", "--seconds=11",
        "--warmup=1", f"--ns3::TcpSocket::RcvBufSize={2 * 1448}",
        "--ns3::TcpSocketBase::WindowScaling=0",
    ]  # fmt: skip
    said = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said == pytest.approx(2 * 1448 * 8 / 0.1 / 1e6, rel=0.02)


def test_every_model_runs(program, tmp_path):
    run = write_run(tmp_path / "run", algorithms=[*ns3.MODELS], loss_pct="0")
    wanted = ns3.wanted_points(json.loads((run / "meta.json").read_text()))
    firsts = [point for point in wanted if point.seed == 1]
    assert [point.algorithm for point in firsts] == [*ns3.MODELS]
    for point in firsts:
        # LP takes what others leave, and its own queue for others
        assert ns3.simulate(program, point)["goodput_mbps"] > 0.1 * point.bound_mbps


@pytest.mark.parametrize(
    "name, settings, complaint",
    [
        ("fairness", {}, "one TCP flow over hops that do not change"),
        ("rate-steps", {}, "one TCP flow over hops that do not change"),
        ("link-retry", {}, "ns3 has no"),
        ("veno-single", {"sysctl.net.ipv4.tcp_sack": "0"}, "ns3 has no sysctl.net.ipv4.tcp_sack"),
        ("veno-single", {"topology.tunnel": "vxlan"}, "ns3 has no topology.tunnel"),
        ("veno-single", {"topology.ecn": "true"}, "ns3 has no topology.ecn"),
        ("wccp-1", {}, "one TCP flow"),
    ],
)
def test_what_ns3_cannot_repeat_is_named(name, settings, complaint):
    loaded = scenario.load(name, settings)
    spec = points.expand(loaded, ("reno",), [1], lambda *_: "")[-1].spec
    with pytest.raises(BadInput, match=complaint):
        ns3.check(spec)


def test_a_run_of_ours_alone_is_refused(tmp_path):
    done = run_ns3(write_run(tmp_path / "run", algorithms=["jtcp"]), tmp_path / "out")
    assert done.returncode == 2
    assert "none of its algorithms is ns-3's" in done.stderr
    assert not (tmp_path / "out").exists()
