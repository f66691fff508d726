# SPDX-License-Identifier: GPL-2.0-only
"""The modules build without a warning for every kernel that there is a build tree of.

Those are the installed headers packages, and what `testbed/setup trees` prepares: clang for each
of them, and the newest kernel of Debian's unstable suite.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]
SETUP = FOLDER.parent / "testbed" / "setup"
MODULES = sorted(source.stem for name in ("tcp", "sch") for source in FOLDER.glob(f"{name}_*.c"))
SOURCES = sorted(
    path for pattern in ("*.c", "*.h") for path in FOLDER.rglob(pattern) if path.is_file()
)
HEADERS_CURE = "no kernel headers: apt-get install linux-headers-amd64"
INSTALLED = ("lib/modules/*/build", "usr/src/linux-headers-*")


@cache
def lab_paths() -> dict[str, Path]:
    """Return where the testbed keeps things, as its setup names them."""
    said = subprocess.run([SETUP, "paths"], capture_output=True, text=True).stdout
    return {name: Path(path) for name, path in (line.split("=", 1) for line in said.splitlines())}


TREES = lab_paths()["cache"] / "trees"
PREPARED = ("stable/clang", "lab/clang", "newest/gcc", "newest/clang")
# Headers of the newest kernel take the newest sparse only.
SPARSE = shutil.which(TREES / "sparse" / "source" / "sparse") or shutil.which("sparse")


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
    found = {path.resolve() for place in INSTALLED for path in Path("/").glob(place)}
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
        ["make", f"-j{os.cpu_count()}", "-C", FOLDER, f"KDIR={tree}", f"OUT={out}", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return Built(tree, done.returncode, done.stdout, out)


def modinfo(module: Path, field: str) -> str:
    command = shutil.which("modinfo", path="/usr/sbin:/sbin:/usr/bin") or "modinfo"
    return subprocess.run(
        [command, "-F", field, module], capture_output=True, text=True, check=True
    ).stdout.strip()


def tree_params() -> list:
    """Return every build tree as a test's parameter; one that should be there and is not skips."""
    installed = [pytest.param(tree, id=tree.name) for tree in header_trees()]
    prepared = [
        pytest.param(
            TREES / name,
            id=name.replace("/", "-"),
            marks=pytest.mark.skipif(
                not (TREES / name / "complete").exists(), reason="testbed/setup trees made none"
            ),
        )
        for name in PREPARED
    ]
    none = pytest.param(None, id="installed", marks=pytest.mark.skip(reason=HEADERS_CURE))
    return (installed or [none]) + prepared


@pytest.fixture(scope="module", params=tree_params())
def built(request, tmp_path_factory) -> Built:
    """All modules, built with W=1 for one kernel, and read by sparse."""
    check = ["C=2", f"CHECK={SPARSE}"] if SPARSE else []
    return make(request.param, tmp_path_factory.mktemp("modules"), "W=1", *check)


def test_there_are_modules():
    """The folder has modules to build, or every other test here would be empty."""
    assert {"tcp_jtcp", "tcp_veno03", "tcp_tabe", "sch_wccp"} <= set(MODULES)


def test_builds_without_a_warning(built):
    """The kernel's compiler (W=1) and sparse have nothing to say."""
    assert built.status == 0, built.output
    assert not built.complaints(), built.output
    assert "CC [M]" in built.output, "nothing was compiled"


@pytest.mark.skipif(not SPARSE, reason="no sparse: apt-get install sparse")
@pytest.mark.parametrize("name", MODULES)
def test_sparse_reads_every_module(built, name):
    """What sparse does not complain of, it has read."""
    assert re.search(rf"CHECK .*\b{name}\.c$", built.output, re.MULTILINE), built.output


@pytest.mark.parametrize("name", MODULES)
def test_module_is_of_the_kernels_compiler(built, name):
    """A kernel built with clang gets modules built with clang, and one of gcc gets them of gcc."""
    config = (built.tree / "include" / "config" / "auto.conf").read_text()
    comment = subprocess.run(
        ["readelf", "-p", ".comment", built.out / f"{name}.ko"], capture_output=True, text=True
    ).stdout
    assert ("clang" in comment) == ("CONFIG_CC_IS_CLANG=y" in config), comment


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
    assert re.fullmatch("[0-9a-f]{12}", modinfo(module, "sources"))


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


@cache
def checkpatch() -> Path | None:
    """Return the kernel's style checker, the newest that there is."""
    sources = [TREES / "newest" / "source", lab_paths()["kernel"] / "source", *header_trees()]
    scripts = (tree / "scripts" / "checkpatch.pl" for tree in sources)
    return next((script for script in scripts if script.exists()), None)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_kernel_style(source, tmp_path):
    """checkpatch --strict is content with every source file."""
    script = checkpatch()
    if not script:
        pytest.skip("no checkpatch.pl: testbed/setup kernel")
    # without a tree it does not know that struct Qdisc is the kernel's own name
    known = ["--ignore", "CAMELCASE"] if source.name.startswith("sch_") else []
    done = subprocess.run(
        ["perl", script, "--no-tree", "--strict", *known, "--file", source],
        capture_output=True, text=True, cwd=tmp_path,
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
