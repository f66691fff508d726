# SPDX-License-Identifier: GPL-2.0-only
"""The modules build without a warning for every kernel whose headers are installed."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SETUP = FOLDER.parent / "testbed" / "setup"
MODULES = sorted(source.stem for source in FOLDER.glob("tcp_*.c"))
SOURCES = sorted(
    path for pattern in ("*.c", "*.h") for path in FOLDER.rglob(pattern) if path.is_file()
)
HEADERS_CURE = "no kernel headers: apt-get install linux-headers-amd64"
PLACES = ("lib/modules/*/build", "usr/src/linux-headers-*")


@dataclass(frozen=True)
class Built:
    """One run of make: what it said, and the folder that it built into."""

    tree: Path
    status: int
    output: str
    out: Path

    def complaints(self) -> list[str]:
        return [line for line in self.output.splitlines() if re.search("warning|error", line, re.I)]


def kernel_release(tree: Path) -> str:
    """Return the release that modules built in TREE are for, nothing if it is no build tree."""
    header = tree / "include" / "generated" / "utsrelease.h"
    return header.read_text().split('"')[1] if header.exists() else ""


def header_trees() -> list[Path]:
    """Return every installed build tree once, however many names it has."""
    found = {path.resolve() for place in PLACES for path in Path("/").glob(place)}
    return sorted(tree for tree in found if (tree / "Makefile").exists() and kernel_release(tree))


def folder_state() -> dict[Path, int]:
    """Return the files of the source folder with the time of their last change."""
    return {
        path: path.lstat().st_mtime_ns
        for path in FOLDER.rglob("*")
        if not {"__pycache__", ".pytest_cache"} & set(path.parts) and not path.is_dir()
    }


def make(tree: Path, out: Path, *arguments: str) -> Built:
    done = subprocess.run(
        ["make", "-C", FOLDER, f"KDIR={tree}", f"OUT={out}", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return Built(tree, done.returncode, done.stdout, out)


def modinfo(module: Path, field: str) -> str:
    command = shutil.which("modinfo", path="/usr/sbin:/sbin:/usr/bin") or "modinfo"
    return subprocess.run(
        [command, "-F", field, module], capture_output=True, text=True, check=True
    ).stdout.strip()


def tree_params() -> list:
    skip = pytest.mark.skip(reason=HEADERS_CURE)
    return [pytest.param(tree, id=tree.name) for tree in header_trees()] or [
        pytest.param(None, id="headers", marks=skip)
    ]


@pytest.fixture(scope="module", params=tree_params())
def built(request, tmp_path_factory) -> Built:
    """All modules, built with W=1 for one kernel."""
    return make(request.param, tmp_path_factory.mktemp("modules"), "W=1")


def test_there_are_modules():
    """The folder has modules to build, or every other test here would be empty."""
    assert {"tcp_jtcp", "tcp_veno03", "tcp_tabe"} <= set(MODULES)


def test_builds_without_a_warning(built):
    """W=1 has nothing to say."""
    assert built.status == 0, built.output
    assert not built.complaints(), built.output
    assert "CC [M]" in built.output, "nothing was compiled"


@pytest.mark.parametrize("name", MODULES)
def test_module_says_what_it_is(built, name):
    """A module is for the kernel it was built for and carries license, description and hash."""
    module = built.out / f"{name}.ko"
    assert module.exists(), built.output
    assert modinfo(module, "vermagic").split()[0] == kernel_release(built.tree)
    assert modinfo(module, "name") == name
    assert modinfo(module, "license") == "GPL"
    assert modinfo(module, "description")
    assert modinfo(module, "srcversion")


@pytest.mark.parametrize("name", MODULES)
def test_every_parameter_is_described(built, name):
    """modinfo describes each parameter that the source declares, with its range."""
    declared = re.findall(r"module_param\w*\((\w+),", (FOLDER / f"{name}.c").read_text())
    described = dict(
        line.split(":", 1) for line in modinfo(built.out / f"{name}.ko", "parm").splitlines()
    )
    assert declared and set(described) == set(declared)
    for text in described.values():
        assert re.search(r"\(\d+-\d+\)", text), text


@pytest.mark.skipif(not shutil.which("sparse"), reason="no sparse: apt-get install sparse")
@pytest.mark.parametrize("tree", tree_params())
def test_sparse_finds_nothing(tree, tmp_path):
    """Sparse (C=2) reads every source file and has nothing to say about ours."""
    checked = make(tree, tmp_path, "C=2")
    assert checked.status == 0, checked.output
    for name in MODULES:
        assert re.search(rf"CHECK .*/{name}\.c$", checked.output, re.MULTILINE), checked.output
    assert not checked.complaints(), checked.output


@cache
def checkpatch() -> Path | None:
    """Return the kernel's style checker: of a header tree, or of the lab kernel's source."""
    said = subprocess.run([SETUP, "paths"], capture_output=True, text=True).stdout
    lab = re.search(r"^kernel=(.+)$", said, re.MULTILINE)
    trees = [*header_trees(), *([Path(lab[1]) / "source"] if lab else [])]
    scripts = (tree / "scripts" / "checkpatch.pl" for tree in trees)
    return next((script for script in scripts if script.exists()), None)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_kernel_style(source):
    """checkpatch --strict is content with every source file."""
    script = checkpatch()
    if not script:
        pytest.skip("no checkpatch.pl: testbed/setup kernel")
    done = subprocess.run(
        ["perl", script, "--no-tree", "--strict", "--file", source],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("total: 0 errors, 0 warnings, 0 checks, [1-9]", done.stdout), done.stdout


def test_missing_headers_are_one_clear_line(tmp_path):
    """Without a kernel build tree, make fails and one line names the package to install."""
    out = tmp_path / "out"
    built = make(tmp_path / "absent", out)
    lines = [line for line in built.output.splitlines() if not re.match(r"make(\[\d+\])?: ", line)]
    assert built.status != 0
    assert len(lines) == 1, built.output
    assert "linux-headers-" in lines[0] and str(tmp_path / "absent") in lines[0]
    assert not out.exists(), "something was built"


@pytest.mark.parametrize("tree", tree_params()[:1])
def test_source_folder_stays_clean(tree, tmp_path):
    """Building and cleaning leave the source folder as it was, and nothing in OUT."""
    before = folder_state()
    out = tmp_path / "out"
    assert make(tree, out).status == 0
    assert len(list(out.glob("*.ko"))) == len(MODULES)
    assert folder_state() == before
    assert make(tree, out, f"TESTOUT={tmp_path / 'tests'}", "clean").status == 0
    assert folder_state() == before
    assert not list(out.iterdir()), "clean left something behind"
