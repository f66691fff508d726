# SPDX-License-Identifier: GPL-2.0-only
"""testbed/veno-lab: each thing that the lab does is a subcommand, and each says how."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import TESTBED, run_command
from typer.testing import CliRunner

from lab import commands
from lab.ask import points, scenario
from lab.ask.scenario import list_scenarios
from lab.commands import COMMANDS
from lab.common import names
from lab.common.errors import nearest, unknown
from lab.run import build as builds
from lab.run.build import PROJECT
from lab.show import describe, listing, picture

VENO_LAB = TESTBED / "veno-lab"


def veno_lab(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(VENO_LAB), *arguments], capture_output=True, text=True, env=os.environ | environment
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name):
    """Its options are those of the module that does it, whose import shows here, too."""
    done = veno_lab(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Examples:" in done.stdout and "testbed/" in done.stdout.split("Examples:")[1]


def test_help_names_every_command_and_a_wrong_one_gets_the_nearest():
    told = veno_lab("--help").stdout
    assert all(f"  {name} " in told and f"veno-lab {name}" in told for name in COMMANDS)
    done = veno_lab("scorcard")
    assert done.returncode == 2 and "did you mean 'scorecard'?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_man_page_names_every_command():
    page = (TESTBED / "packaging" / "veno-lab.1").read_text()
    section = page.split("\n.SH COMMANDS\n")[1].split("\n.SH ")[0]
    bold = [
        line.replace(r"\fR", "").replace(r"\fP", "")
        for line in section.splitlines()
        if line.startswith(".B") and r"\-" not in line
    ]
    names = [name for line in bold for name in re.findall(r"\b[a-z]+[0-9]?\b", line)]
    assert sorted(names) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "veno-singel"), "run: unknown scenario 'veno-singel': did you mean 'veno-single'"),
        (("show", "veno-singel"), "show: unknown scenario 'veno-singel': did you mean"),
        (("list", "veno-singel"), "list: unknown scenario by name or title 'veno-singel': did you"),
        (
            ("list", "nosuch"),
            "list: unknown scenario by name or title 'nosuch': `testbed/veno-lab list` lists all",
        ),
        (("agree", "/nowhere", "/nowhere"), "agree: /nowhere is not the folder of a finished run"),
        (("verdicts", "/nowhere"), "verdicts: /nowhere is not the folder of a finished run"),
        (("publish", "/nowhere"), "publish: /nowhere is not the folder of a finished run"),
        (("report", "/nowhere"), "report: /nowhere is no finished run and has none below it"),
        (("run", "demo", "--scheduler", "x", "--slurm", "1"), "run: --scheduler takes machines"),
        (("exec", "--backend", "moon", "true"), "exec: unknown backend 'moon'"),
        (("exec", "--backend", "host", "true"), "exec: --backend host: a command needs no lab"),
        (("run", "demo", "--exec", "true"), "run: --exec goes without SCENARIO"),
        (("run", "--exec", "true", "--seeds", "2"), "run: --exec goes without --seeds"),
        (("run", "--list", "--jobs", "2"), "run: --list goes without --jobs"),
        (("run", "scorecard", "--rows", "9.9"), "scorecard: "),
        (("run", "demo", "--algorithms", ""), "run: --algorithms '': it names none; leave it out"),
        (("scorecard", "--rows", ","), "scorecard: --rows ',': it names none; leave it out"),
    ],
)
def test_bad_input_is_one_line_whatever_the_command(words, told):
    done = veno_lab(*words)
    assert done.returncode == 2 and done.stderr.startswith(told)
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_name_gets_the_nearest_ones_and_not_all():
    """Beginnings first, then likenesses, then parts; a short list is told whole."""
    names = [path.stem for path in list_scenarios()]
    assert nearest("veno-s", names)[0] == "veno-single"
    assert nearest("lossbursts", names)[0] == "loss-bursts"
    assert nearest("linkretry", names) == ["link-retry"]
    assert "wccp-mobile" in nearest("mobile", names)
    many = str(unknown("scenario", "tfrc", names, "--list"))
    assert many.count("tfrc-") == 3 and f"lists all {len(names)}" in many and len(many) < 120
    assert str(unknown("clock", "x", ["a", "b"])) == "unknown clock 'x': there are a, b"


def test_it_says_which_one_it_is():
    told = veno_lab("--version").stdout
    assert re.fullmatch(r"veno-lab \d+\.\d+(, commit [0-9a-f]{12})?( and changes)?\n", told), told


def test_ctrl_c_is_told_of_once_whatever_the_command():
    """typer makes a status of it, without a word."""
    script = """
from lab.common import exits, options
app = options.new_app()
@app.command()
def main() -> None:
    raise KeyboardInterrupt
exits.run(app, "bench", "bench")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=TESTBED, capture_output=True, text=True
    )
    assert done.returncode == 130
    assert done.stderr == "bench: interrupted; what was built or finished so far is kept\n"


def test_run_is_one_program_by_two_names(tmp_path):
    """What testbed/run refuses `veno-lab run` refuses in the same words."""
    wrong = ("demo", "--set", "lss_pct=1", "--out", str(tmp_path / "out"))
    by_run, by_lab = run_command(*wrong), veno_lab("run", *wrong)
    assert by_run.returncode == by_lab.returncode == 2 and by_run.stderr == by_lab.stderr


@pytest.mark.parametrize("name", ["doctor", "list"])
def test_a_folder_lab_where_the_user_is_does_not_matter(name, tmp_path):
    """Python looks there first unless it is told not to."""
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").touch()
    done = subprocess.run(
        [str(VENO_LAB), name, "--help"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_list_fits_100_columns_and_has_every_scenario():
    told = veno_lab("list", COLUMNS="100").stdout
    assert max(map(len, told.splitlines())) <= 100
    listed = {words[0] for words in map(str.split, told.splitlines()) if words}
    assert {path.stem for path in list_scenarios()} <= listed
    assert veno_lab("list", "802.11").stdout.count("points") >= 4


def test_every_scenario_is_under_a_question_and_the_documentation_lists_them_so():
    groups = listing.by_question()
    assert listing.OWN not in groups, [one.id for one in groups[listing.OWN]]
    page = (PROJECT / "docs" / "scenarios.md").read_text()
    assert listing.markdown_table() in page, "testbed/veno-lab list --markdown prints the table"


@pytest.mark.parametrize("path", list_scenarios(), ids=lambda path: path.stem)
def test_every_scenario_can_be_shown(path):
    """The picture has each hop or node, and the cost is one that somebody could wait for."""
    loaded = scenario.load(path.stem)
    told = "\n".join(describe.page(loaded, path.stem))
    at = points.resolve(loaded, next(points.grid(loaded)))
    drawn = "\n".join(picture.lines(at))
    hops = [] if at.medium else at.topology.forward_hops
    assert all(hop in drawn for hop in hops) and f"testbed/run {path.stem}" in told
    assert max(map(len, told.splitlines())) <= 120
    assert 1 < describe.expected_s(loaded) < 1e6
    assert not any(points.endless_text(points.resolve(loaded, at)) for at in points.grid(loaded))


def test_a_bottleneck_that_never_drops_is_told_of():
    """What stands there would be in no figure: the queue of such a hop is counted as its delay."""
    told = veno_lab("show", "demo", "--set", "links.bottleneck.rate_mbps=500").stdout
    assert "wireless is the narrowest hop and has no queue_pkts" in " ".join(told.split())


def test_it_is_said_where_a_link_loses_several_packets_as_one():
    on, off = ({"topology.offloads": text, "loss_pct": "1"} for text in ("true", "false"))
    for settings, told in ((on, True), (off, False), (on | {"loss_pct": "0"}, False)):
        page = " ".join("\n".join(describe.page(scenario.load("demo", settings), "demo")).split())
        assert ("may be several packets at once" in page) == told


def test_what_is_shown_can_be_run(tmp_path):
    """An algorithm that no kernel has is told of, also one of a rival, and what the first run does
    besides, without building anything."""
    told = veno_lab("show", "demo", "--algorithms", "bbr2,jtcp").stdout
    assert re.search(r"Algorithms: bbr2, jtcp\n  bbr2: .*did you mean bbr\?.*--module", told)
    assert "jtcp:" not in told and "Cost: 96 points" in told
    assert "not measured: veno_jitter is not among the algorithms" in " ".join(told.split())
    assert "not measured" not in veno_lab("show", "demo").stdout
    told = veno_lab("show", "coexist", "--set", 'flows.1.algorithm="zzz"').stdout
    assert re.search(r"^  zzz: .*--module$", told, re.M)
    wrong = veno_lab("show", "demo", "--algorithms", "bbr 2")
    assert wrong.returncode == 2 and "no name of an algorithm" in wrong.stderr
    first = "first run"
    assert first in veno_lab("show", "demo", LAB_BUILD=str(tmp_path / "none")).stdout
    assert not (tmp_path / "none").exists()


def test_the_lab_knows_what_it_has_built(backend):
    assert backend.build.is_made and builds.built_uml_kernel() == backend.build.kernel
    told = veno_lab("show", "demo", "--algorithms", "dctcp").stdout
    assert "dctcp:" not in told and "first run" not in told


def test_a_picture_says_what_each_hop_does():
    at = points.resolve(loaded := scenario.load("veno-wan"), next(points.grid(loaded)))
    drawn = picture.lines(at)
    assert "bottleneck" in drawn[0] and "wireless" in drawn[0] and drawn[0].endswith("-- dst")
    column = drawn[0].index("bottleneck")
    assert "5 Mb/s" in drawn[1][column - 6 : column + 16] and "queue 30 pkts" in drawn[2]
    assert "loses 1 % in runs of 3" in "\n".join(drawn)
    assert drawn[-1] == "<-- reverse_wireless: 10 ms"


@pytest.mark.parametrize(
    ("words", "status"), [(("diff", "a", "b", "--bisect"), 125), (("exec", "x", "--bisect"), None)]
)
def test_a_lab_that_breaks_convicts_no_commit(monkeypatch, capsys, words, status):
    """As where a package of it is missing. What `exec` runs may have a --bisect of its own."""

    def broken():
        raise ImportError("no such thing")

    monkeypatch.setattr(commands, "_start", broken)
    monkeypatch.setattr(sys, "argv", ["veno-lab", *words])
    with pytest.raises(SystemExit if status else ImportError) as ended:
        commands.entry()
    assert not status or (ended.value.code == status and "no such thing" in capsys.readouterr().err)


def test_a_shell_is_offered_names():
    """What bash asks when Tab is pressed: behind `veno-lab show veno-`, in a list with commas."""

    def offered(line: str) -> list[str]:
        words = line.split()
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        return veno_lab(_VENO_LAB_COMPLETE="complete_bash", **asked).stdout.split()

    assert "veno-wan" in offered("veno-lab show veno-") and "list" in offered("veno-lab li")
    assert offered("veno-lab run demo --algorithms jtcp,cu") == ["jtcp,cubic"]
    assert offered("veno-lab run demo --kernel kc") == ["kcsan"]
    assert offered("veno-lab traces lte-ca") == ["lte-car"]
    assert offered("veno-lab papers --only jtcp-jr,veno-s") == ["jtcp-jr,veno-single"]
    assert offered("veno-lab scorecard --rows 5.1,shallow-sl") == ["5.1,shallow-slow"]
    assert offered("veno-lab diff a b --metrics jain_by") == ["jain_by_hops_min"]


def test_a_package_is_called_by_its_own_name(monkeypatch):
    """Where there are no docs beside it, it is none of a checkout."""
    monkeypatch.setattr(names, "DOCS", TESTBED / "nowhere")
    told = CliRunner().invoke(commands.app, ["scorecard", "--help"]).stdout
    told += CliRunner().invoke(commands.app, ["--help"]).stdout
    assert "testbed/" not in told.replace("testbed/scorecard/known", "")
    assert "veno-lab scorecard --module" in told and "/usr/share/doc/veno-lab/docs/" in told
    theirs = "cannot read /home/me/docs/mine.md, ~/testbed/run/x, docs/mine.toml or testbed/runs"
    assert names.as_called(theirs) == theirs
    assert names.as_called("docs/lab.md: testbed/run, `testbed/veno-lab list`.") == (
        "/usr/share/doc/veno-lab/docs/lab.md: veno-lab run, `veno-lab list`."
    )


def test_pip_installs_the_checkout(tmp_path):
    """As `pip install -e testbed` does, in an environment of one's own: the command is there, runs
    from anywhere, and is the checkout's."""
    pytest.importorskip("wheel", reason="testbed/setup test installs it")
    checkout = tmp_path / "testbed"
    checkout.mkdir()
    for path in ("pyproject.toml", "requirements.txt"):
        shutil.copy(TESTBED / path, checkout)
    for package in ("lab", "veno_lab"):
        (checkout / package).symlink_to(TESTBED / package)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--ignore-installed", "--prefix", tmp_path]
    done = subprocess.run([*pip, *options, "-e", checkout], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [site] = tmp_path.glob("lib/python*/site-packages")
    script = tmp_path / "bin" / "veno-lab"
    command = [
        sys.executable, "-c", f"import site, sys; site.addsitedir('{site}');"
        f"sys.argv[0] = '{script}'; exec(open('{script}').read())",
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    texts = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([*command, "list", "demo"], **texts)
    assert done.returncode == 0 and "demo" in done.stdout, done.stderr
    done = subprocess.run([*command, "show", "demmo"], **texts)
    assert done.returncode == 2 and "`veno-lab list`" in done.stderr, "by a checkout's name"


def test_a_copy_without_its_checkout_says_so(tmp_path):
    """As `pip install testbed` makes, without -e."""
    shutil.copytree(TESTBED / "lab", tmp_path / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "lab.commands", "list"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install -e CHECKOUT/testbed" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_make_demo_names_its_own_cure_for_results_of_other_settings(tmp_path):
    """An --out or a --resume is not what its user typed."""
    source = scenario.load("demo", {"run.duration_s": "60"}).source
    out = tmp_path / "demo"
    command = ["make", "--no-print-directory", "-C", str(TESTBED.parent), "-o", "setup", "demo"]
    command.append(f"DEMO_OUT={out}")
    (out / "points").mkdir(parents=True)
    (out / "points" / "x.json").write_text("{}")
    (out / "meta.json").write_text(json.dumps({"scenario": "demo", "source": source}))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "run.duration_s 100, was 60" in done.stderr
    assert "make demo FRESH=1 replaces them" in done.stderr
    assert (out / "points" / "x.json").exists()
