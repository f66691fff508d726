# SPDX-License-Identifier: GPL-2.0-only
"""Algorithms that the lab does not know: of the kernel in use, and modules that users bring."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import run_command

from lab.ask import points, scenario
from lab.common.errors import BadInput
from lab.judge.scorecard.rows import FOLDER
from lab.run import usermodules
from lab.run.backends import BACKENDS

RECKLESS = FOLDER / "example" / "tcp_reckless.c"
SHORT = {"run.duration_s": "3", "run.warmup_s": "1", "loss_pct": "1"}
AS_IT_IS = "return tcp_register_congestion_control(&reckless);"


@pytest.fixture(scope="module")
def backend():
    """A backend of its own, that modules can be given to."""
    return BACKENDS["virtual"]("")


def sweep(backend, *algorithms: str) -> list[points.Point]:
    demo = scenario.load("demo", SHORT)
    return points.expand(demo, algorithms, [1], backend.build.key)


def variant(tmp_path: Path, was: str, becomes: str) -> str:
    """Return a copy of the module with one piece of its text changed."""
    text = RECKLESS.read_text()
    assert was in text
    path = tmp_path / "tcp_variant.c"
    path.write_text(text.replace(was, becomes))
    return str(path)


def test_the_kernel_is_asked_for_names_that_the_lab_does_not_know(backend):
    backend.check(sweep(backend, "dctcp", "reno"))
    assert backend.unknown_modules(sweep(backend, "dctcp", "reno")) == ["tcp_dctcp"]
    with pytest.raises(BadInput, match=r"unknown algorithm of Linux .* did you mean 'jtcp'"):
        backend.check(sweep(backend, "jtpc"))
    usermodules.check(backend, sweep(backend, "dctcp", "reno"))
    with pytest.raises(BadInput, match=r"unknown .*; one of your own: --module \./my_cc\.c$"):
        usermodules.check(backend, sweep(backend, "my_cc"))


def test_a_module_of_a_users_own_runs(backend, tmp_path):
    """It is built, loaded and found under the name that it registers; its points are named after
    its source, and other algorithms' points are not."""
    before = {point.algorithm: point.id for point in sweep(backend, "reckless", "reno")}
    assert not usermodules.add(backend, [str(RECKLESS)])
    after = {point.algorithm: point.id for point in sweep(backend, "reckless", "reno")}
    assert after["reno"] == before["reno"] and after["reckless"] != before["reckless"]
    batches = backend.batches(sweep(backend, "reckless", "reno"), jobs=1)
    assert [{point.algorithm for point in batch} for batch in batches] == [{"reckless"}, {"reno"}]
    with pytest.raises(BadInput, match=r"tcp_reckless\.ko registers reckless"):
        backend.check(sweep(backend, "recless"))
    settings = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
    done = run_command(
        "demo", "--module", str(RECKLESS), "--algorithms", "reckless,dctcp", "--seed", "1",
        *settings, "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "reckless" in done.stdout and "dctcp" in done.stdout


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("module_init(reckless_register)", "module_init(none)", "does not build: .*error"),
        ('= "reckless"', '= "cubic"', "registers 'cubic', a name that the kernel has"),
        ('= "reckless"', '= "a_name_that_is_far_too_long"', ".name is longer than 15 characters"),
        (AS_IT_IS, "return -EINVAL;", "does not load it: .*Invalid"),
        (AS_IT_IS, "return 0;", "registers no congestion control"),
        (AS_IT_IS, 'panic("reckless");', "the kernel stopped when it loaded"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused(backend, tmp_path, was, becomes, told):
    (refused,) = usermodules.add(backend, [variant(tmp_path, was, becomes)])
    assert re.search(told, refused.line()) and "\n" not in refused.line()
    assert refused.log or "registers no" in told or ".name" in told
    if "(all of it: " in refused.keep_log():
        kept = Path(refused.keep_log().split("(all of it: ")[1].rstrip(")"))
        assert kept.read_text() == refused.log
    else:
        assert not refused.log


def test_what_is_no_module_is_refused(backend, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "tcp_x.ko").write_text("no module")
    for name, told in (
        ("empty", "no Kbuild"),
        ("tcp_x.ko", "no kernel module"),
        ("none", "there is no such"),
    ):
        with pytest.raises(BadInput, match=told):
            usermodules.add(backend, [str(tmp_path / name)])


def test_a_module_that_is_built_already(backend, tmp_path):
    """A .ko of this kernel is taken; a folder with a Kbuild, too, and nothing is written there."""
    (tmp_path / "Kbuild").write_text("obj-m := tcp_reckless.o\n")
    (tmp_path / "tcp_reckless.c").write_text(RECKLESS.read_text())
    kernel = backend.build.kernel
    (made,) = usermodules._made(str(tmp_path), kernel)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Kbuild", "tcp_reckless.c"]
    (again,) = usermodules._made(str(made.file), kernel)
    assert again.file == made.file
    told = subprocess.run(["/sbin/modinfo", "-F", "vermagic", made.file], capture_output=True)
    assert told.stdout.decode().split()[0] == kernel.release
