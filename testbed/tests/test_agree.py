# SPDX-License-Identifier: GPL-2.0-only
"""Two runs are compared place by place over the seeds that both ran."""

import json
import subprocess
from pathlib import Path

from conftest import TESTBED


def write_run(folder: Path, backend: str, goodputs: dict[tuple[float, int], float], **more) -> Path:
    folder.mkdir()
    meta = {
        "backend": backend,
        "kernel_release": "6.12",
        "scenario": "s",
        "title": "t",
        "command": f"testbed/run s --backend {backend}",
        **more,
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    lines = [
        {"axes": {"loss_pct": loss}, "algorithm": "reno", "seed": seed, "goodput_mbps": value}
        for (loss, seed), value in goodputs.items()
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def agree(*folders: Path | str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(TESTBED / "veno-lab"), "agree", *folders],
        capture_output=True,
        text=True,
        cwd=TESTBED,
    )


def test_medians_within_3_percent_agree(tmp_path):
    """The medians of seeds 1 to 3 are 1.0 and 1.02; the seed that one run lacks is left out."""
    first = write_run(tmp_path / "a", "virtual", {(5, 1): 0.9, (5, 2): 1.0, (5, 3): 1.1})
    second = write_run(tmp_path / "b", "vm", {(5, 3): 1.2, (5, 2): 0.8, (5, 1): 1.02, (5, 4): 9.0})
    done = agree(first, second)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 medians agree within 3%, the worst is off by 2.0%" in done.stdout
    assert "| loss_pct 5 | reno | 1.00 [0.90, 1.10] | 1.02 [0.80, 1.20] | 1.020 |" in done.stdout


def test_a_difference_is_named_and_fails(tmp_path):
    first = write_run(tmp_path / "a", "virtual", {(1, 1): 1.0, (5, 1): 1.0})
    second = write_run(tmp_path / "b", "vm", {(1, 1): 1.01, (5, 1): 1.04})
    done = agree(first, second)
    assert done.returncode == 1
    assert "1 of 2 medians agree" in done.stdout
    assert [line.endswith("| **no** |") for line in done.stdout.splitlines()[-2:]] == [False, True]


def test_what_a_point_costs_is_told(tmp_path):
    """In seconds of one core; not where some points are of an earlier run."""
    took = {"wall_s": 10.0, "jobs": 2, "points": 8}
    values = {(1, seed): 1.0 for seed in range(1, 9)}
    ns3_s = took | {"wall_s": 2.0}
    first = write_run(tmp_path / "a", "virtual", values, **took)
    second = write_run(tmp_path / "b", "ns-3", values, **ns3_s)
    resumed = write_run(tmp_path / "c", "vm", values, **took, points_of_earlier_runs=3)
    told = "| wall time of a point, s of one core | all | 2.50 | 0.50 | 0.200 |  |  |"
    assert told in agree(first, second).stdout
    done = agree(first, resumed)
    assert done.returncode == 0 and "wall time" not in done.stdout


def test_what_is_no_run_is_refused(tmp_path):
    done = agree(tmp_path, tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "not the folder of a finished run" in done.stderr


def told(done: subprocess.CompletedProcess) -> str:
    """Return the one line of what was refused."""
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_a_run_with_points_that_failed_is_refused(tmp_path):
    """What failed is what differs: without it both would agree."""
    values = {(1, 1): 1.0, (5, 1): 1.0}
    whole = write_run(tmp_path / "a", "virtual", values, points=2)
    failed = write_run(tmp_path / "b", "vm", {(1, 1): 1.0}, points=2)
    for pair in ((whole, failed), (failed, whole)):
        assert "1 of 2 points have no result" in told(agree(*pair))


def test_what_one_run_has_alone_is_named(tmp_path):
    first = write_run(tmp_path / "a", "virtual", {(1, 1): 1.0, (5, 1): 1.0}, points=2)
    second = write_run(tmp_path / "b", "vm", {(1, 1): 1.0}, points=1)
    done = agree(first, second)
    assert done.returncode == 0
    assert "Not compared, as the second has it not: loss_pct 5, reno." in done.stdout


def test_what_has_no_ratio_is_refused(tmp_path):
    one, other = (write_run(tmp_path / f"{seed}", "vm", {(1, seed): 1.0}) for seed in (1, 2))
    assert "no seed in common" in told(agree(one, other))
    assert "unknown metric 'flows'" in told(agree(one, one, "--metric", "flows"))
    asked = {"source": {"run": {"duration_s": 10}}}
    longer = write_run(tmp_path / "longer", "vm", {(1, 1): 1.0}, **asked)
    assert "they differ in run.duration_s" in told(agree(one, longer))
