# SPDX-License-Identifier: GPL-2.0-only
"""testbed/traces: the figures are what they are called, models are written and read back."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import TESTBED

from lab.ask import linkmodels, linktraces
from lab.common import exits
from lab.common.errors import BadInput
from lab.show.tracestats import PICTURE_COLUMNS, app, line, statistics, write


def of(folder, text: str):
    (folder / "trace").write_text(text)
    return linktraces.read(folder / "trace", "rate")


def test_figures_of_a_rate(tmp_path):
    """2 s at 6 Mb/s, nothing for 1 s, 1 s at 4 Mb/s: mean 4, standard deviation sqrt(6)."""
    told = statistics(of(tmp_path, "0 6\n2 0\n3 4\n"))
    assert told.length_s == 4 and told.mean_mbps == pytest.approx(4)
    assert told.cv_1s == told.cv_100ms == pytest.approx(6**0.5 / 4)
    assert told.outages_per_min == 15 and told.outage_pct == pytest.approx(25)
    assert told.outage_s_mean == told.outage_s_max == pytest.approx(1)
    assert told.p95_mbps == pytest.approx(6)


def test_figures_of_opportunities(tmp_path):
    """One each ms for 1 s, then one at 1.25 s and one at 1.3 s: a single gap of 100 ms or more."""
    text = "".join(f"{ms}\n" for ms in range(1, 1001)) + "1250\n1300\n"
    told = statistics(of(tmp_path, text))
    assert told.length_s == 1.3 and told.mean_mbps == pytest.approx(1002 * 0.012 / 1.3)
    assert told.outage_s_mean == pytest.approx(0.25) and told.outage_pct == pytest.approx(25 / 1.3)


def test_a_line_is_a_picture(tmp_path):
    drawn = line(of(tmp_path, "0 8\n1 0\n2 4\n3 4\n"))
    assert len(drawn) == PICTURE_COLUMNS
    assert drawn[0] == "█" and drawn[PICTURE_COLUMNS // 4 + 1] == " " and drawn[-1] == "▄"


def test_a_model_that_is_written_is_the_model(tmp_path):
    files = write("starlink", 3, tmp_path / "star.csv")
    assert [path.name for path in files] == ["star.csv", "star.csv.delay", "star.csv.loss"]
    for path, kind in zip(files, ("rate", "delay", "loss"), strict=True):
        read, made = linktraces.read(path, kind), linktraces.of("starlink", kind, 3)
        assert np.array_equal(read.ns, made.ns)
        assert np.allclose(read.values, made.values, rtol=1e-8, atol=1)
    with pytest.raises(BadInput, match=r"star\.csv\.delay: it gives ms, and a rate is in Mb/s"):
        linktraces.read(files[1], "rate")


# docs/traces.md: the place that a model has among recorded traces, of means over seeds
PLACES = {
    "lte-walking": {"mean_mbps": (8, 12), "cv_100ms": (0.35, 0.55), "cv_1s": (0.25, 0.45)},
    "lte-car": {"mean_mbps": (3.5, 5.5), "cv_100ms": (0.7, 1.1), "cv_1s": (0.5, 0.9)},
    "lte-subway": {"cv_1s": (0.55, 1.0), "outage_pct": (8, 25)},
    "lte-uplink": {"cv_100ms": (0.55, 1.2), "outages_per_min": (6, 30)},
    "starlink": {"mean_mbps": (85, 115), "cv_1s": (0.2, 0.4), "outage_pct": (0, 0)},
}


@pytest.mark.parametrize("name", PLACES)
def test_models_stay_where_measurements_are(name):
    told = [statistics(linktraces.of(name, "rate", seed)) for seed in range(1, 9)]
    for figure, (least, most) in PLACES[name].items():
        assert least <= np.mean([getattr(of, figure) for of in told]) <= most, figure


def test_starlinks_losses_are_in_bursts_at_handovers():
    loss = [linkmodels.make("starlink", seed)["loss"].reshape(-1, 300) for seed in range(1, 9)]
    slots = np.concatenate(loss)
    assert (slots[:, 18:] == 0).all()  # 0.9 s of 15
    means = slots.mean(axis=1)
    assert 1 < means.mean() < 2.2 and means[means > 0].min() > 0.4 and means.max() < 6.1


def test_the_command(tmp_path):
    done = subprocess.run(
        [TESTBED / "traces", "lte-car", "--seed", "2", "--picture", tmp_path / "p.svg"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "mean_mbps" in done.stdout and "█" in done.stdout
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["{}/bad"], "bad, line 2"),
        (["lte-cra"], "did you mean 'lte-car'"),
        (["lte-car", "--picture", "p.gif"], "an .svg or a .png"),
        (["lte-car", "--write", "/nowhere/x"], "/nowhere/x: No such file"),
        (["lte-car", "--picture", "/nowhere/x.svg"], "/nowhere/x.svg: No such file"),
        (["lte-car", "starlink", "--write", "x"], "takes one model"),
    ],
)
def test_what_is_wrong_is_one_line(wrong, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "bad").write_text("1\nx\n")
    monkeypatch.setattr(sys, "argv", ["traces", *(word.format(tmp_path) for word in wrong)])
    with pytest.raises(SystemExit) as ended:
        exits.run(app, "traces", "testbed/traces")
    said = capsys.readouterr().err
    assert ended.value.code == 2 and told in said and len(said.splitlines()) == 1
