# SPDX-License-Identifier: GPL-2.0-only
"""Algorithms that the lab does not know: of the kernel in use, and modules that users bring."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import run_command
from test_bisect import MODULE

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
    with pytest.raises(BadInput, match=r"unknown .*; one of your own: --module FILE\.c$"):
        usermodules.check(backend, sweep(backend, "my_cc"))
    with pytest.raises(BadInput) as refused:
        usermodules.check(backend, sweep(backend, "zzz"))
    listed = set(re.split(r"[ ,;]+", str(refused.value)))
    assert {"bbr", "dctcp", "uddj"} <= listed and not {"classify", "wireless", "udp"} & listed


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


@pytest.fixture
def par(tmp_path) -> Path:
    """A module with a parameter, whose file is called otherwise than its algorithm: tcp_par.c
    registers r07."""
    parameter = "static int beta = 5;\nmodule_param(beta, int, 0644);\n\nstatic u32 mine_ssthresh"
    text = MODULE.replace("static u32 mine_ssthresh", parameter).replace("* 5 / 10", "* beta / 10")
    path = tmp_path / "tcp_par.c"
    path.write_text(text.replace('"mine"', '"r07"'))
    return path


def test_a_module_runs_unnamed_and_its_parameters_are_found_whatever_its_file_is_called(
    par, tmp_path
):
    """With nine tenths of the window left at each loss it carries more than with five, as Reno."""
    settings = ["loss_pct=1", "path=2 Mb/s 90 ms", "run.duration_s=20", "run.warmup_s=5"]
    out = tmp_path / "out"
    done = run_command(
        "demo", "--module", str(par), "--algorithms", "reno", "--seed", "1", "--out", str(out),
        *(word for one in (*settings, "modules.r07.beta=9") for word in ("--set", one)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("run: ")]
    assert said == [
        "run: tcp_par.ko brings r07, which no list of algorithms names, so it is run as well"
    ]
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    mbps = {line["algorithm"]: line["goodput_mbps"] for line in lines}
    assert mbps.keys() == {"reno", "r07"} and mbps["r07"] > 1.1 * mbps["reno"]
    (told,) = json.loads((out / "meta.json").read_text())["user_modules"]
    assert told["name"] == "tcp_par" and told["algorithms"] == ["r07"]
    assert (out / told["source"] / "tcp_par.c").read_text() == par.read_text()
    assert f"tcp_par {told['srcversion']} (sha256 {told['sha256'][:12]})" in (
        html := (out / "report.html").read_text()
    )
    assert f"its source in {told['source']}" in html


def test_a_run_has_the_source_of_each_version_that_it_had(backend, par, tmp_path):
    """A run may go on with a module that was changed."""
    found = []
    for text in (par.read_text(), par.read_text().replace("beta / 10", "beta / 11")):
        par.write_text(text)
        backend.build = dataclasses.replace(backend.build, user=())
        assert not usermodules.add(backend, [str(par)])
        found += usermodules.keep(backend.build, tmp_path)
        assert (tmp_path / found[-1]["source"] / "tcp_par.c").read_text() == text
    one, other = found
    assert one["source"] != other["source"] and (tmp_path / one["source"]).is_dir()
    assert one["sha256"] != other["sha256"]
    (ko,) = (module.file for module in backend.build.user)
    backend.build = dataclasses.replace(backend.build, user=())
    assert not usermodules.add(backend, [str(ko)])
    (built,) = usermodules.keep(backend.build, tmp_path / "none")
    assert built == {key: value for key, value in other.items() if key != "source"}
    assert not (tmp_path / "none").exists()


def test_only_what_would_not_be_found_is_addressed(backend, par):
    """A module called tcp_NAME keeps its points' ids, and so do all points without parameters."""
    reckless = scenario.load("demo", SHORT | {"modules.reckless.k": "1", "modules.jtcp.alpha": "1"})
    mine = scenario.load("demo", SHORT | {"modules.r07.beta": "9", "modules.jtcp.alpha": "1"})
    assert not usermodules.add(backend, [str(RECKLESS), str(par)])
    build = backend.build
    for loaded, names in ((reckless, ("reckless", "jtcp")), (mine, ("r07", "jtcp"))):
        sweep = points.expand(loaded, names, [1], build.key)
        addressed = usermodules.addressed(build, sweep)
        changed = {a.algorithm for a, b in zip(sweep, addressed, strict=True) if a.id != b.id}
        assert changed == {*names} & {"r07"}
        for point in addressed:
            if point.algorithm == "r07":
                named = {"/sys/module/tcp_par/parameters/beta": 9}
                assert point.spec["modules"] == {"r07": named}
    assert {module.name for module in usermodules.idle(build, sweep)} == {"tcp_reckless"}


def test_a_module_has_no_flow_to_be_in_where_all_are_udp():
    """Its name in the list of algorithms would be refused, too: the list is of UDP alone then."""
    module = SimpleNamespace(file=Path("/made/tcp_mine.ko"), algorithms=("mine",))
    flows = [[{"algorithm": "reno"}], [{"algorithm": "mine"}], []]
    reno, mine, udp = ([SimpleNamespace(spec={"flows": of})] for of in flows)
    build = SimpleNamespace(user=(module,))
    assert usermodules.idle(build, reno + udp) == [module]
    assert usermodules.idle(build, mine + udp) == []
    with pytest.raises(BadInput, match=r"^tcp_mine.ko: no flow to be in, as all are UDP: leave"):
        usermodules.idle(build, udp)
    assert usermodules.idle(SimpleNamespace(user=()), udp) == []


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
    (tmp_path / "tcp my.c").touch()
    for name, told in (
        ("empty", "no Kbuild"),
        ("tcp_x.ko", "no kernel module"),
        ("tcp my.c", "letters, digits, _ and - are"),
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
