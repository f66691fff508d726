# SPDX-License-Identifier: GPL-2.0-only
"""The series builds for every kernel that there is a build tree of, after each of its patches, and
compilers and sparse have nothing to say that they do not say of the unpatched module.

Minutes for each kernel: `make matrix`, not `make test`.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_series import FOLDER, lab_paths, patches_for, pristine, run, version_of

TREES = lab_paths()["cache"] / "trees"
SPARSE = shutil.which(TREES / "sparse" / "source" / "sparse") or shutil.which("sparse")
# as Kbuild of the folder: headers of SCTP before the kernel's
KBUILD = (
    "LINUXINCLUDE := -I$(src)/include -I$(src)/include/uapi $(LINUXINCLUDE)\nobj-m := net/sctp/\n"
)


@dataclass(frozen=True)
class Target:
    """A kernel and compiler: where it builds modules, and which of the sources is its own."""

    name: str
    tree: Path
    line: str

    def source(self) -> Path:
        if not (self.tree / "include/generated/utsrelease.h").exists():
            pytest.skip(f"no build tree {self.tree}: testbed/setup test")
        return pristine(self.line)

    def compiler(self) -> list[str]:
        config = (self.tree / "include/config/auto.conf").read_text()
        found = re.search(r"^CONFIG_CLANG_VERSION=(\d+)\d{4}$", config, re.M)
        return [f"LLVM=-{found[1]}"] if found and found[1] != "0" else []


def headers(version: str) -> Path:
    """Return the installed headers of VERSION, the newest if there are several."""
    found = sorted(Path("/usr/src").glob(f"linux-headers-{version}.*-amd64"))
    return found[-1] if found else Path("/usr/src", f"linux-headers-{version}")


TARGETS = [
    Target("6.1-gcc", headers("6.1"), "stable"),
    Target("6.1-clang", TREES / "stable/clang", "stable"),
    Target("6.12-gcc", headers("6.12"), "lab"),
    Target("6.12-clang", TREES / "lab/clang", "lab"),
    Target("newest-gcc", TREES / "newest/gcc", "newest"),
    Target("newest-clang", TREES / "newest/clang", "newest"),
]


def complaints(output: str) -> list[str]:
    """Return the warnings and errors in OUTPUT without the line numbers, which patches move."""
    found = [line for line in output.splitlines() if re.search(r"\b(warning|error): ", line)]
    return sorted(re.sub(r"^.*?(net/sctp/\S+?\.[ch]):[\d:]+", r"\1", line) for line in found)


def modules(target: Target, out: Path, *arguments: str) -> str:
    command = ["make", "-C", target.tree, f"M={out}", "-j2", *target.compiler(), *arguments]
    return run(*command, "modules")


def unpatched(target: Target, out: Path) -> Path:
    source = target.source()
    for part in ("net/sctp", "include"):
        shutil.copytree(source / part, out / part)
    (out / "Kbuild").write_text(KBUILD)
    return out


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_nothing_new_to_complain_of(target, tmp_path):
    """W=1 and sparse find in the patched module what they find in the unpatched one, or less."""
    checks = ["W=1", *(["C=2", f"CHECK={SPARSE}"] if SPARSE else [])]
    before = complaints(modules(target, unpatched(target, tmp_path / "stock"), *checks))
    out = tmp_path / "patched"
    output = run("make", "-C", FOLDER, "-j2", f"KDIR={target.tree}", f"OUT={out}",
                 f"SOURCE={target.source()}", *checks)  # fmt: skip
    new = [line for line in complaints(output) if line not in before]
    assert not new, "\n".join(new)
    if SPARSE:
        assert re.search(r"CHECK .*\bsctp_jsctp\.c$", output, re.M)
    built = {path.name for path in out.rglob("*.ko")}
    assert built == {"sctp.ko", "sctp_diag.ko", "sctp_jsctp.ko"}


def body_of(patch: Path) -> bytes:
    """Return what PATCH changes that modules are made of."""
    return subprocess.run(
        ["awk", '/^diff --git / { keep = $3 ~ "^a/(net|include)/" } keep', patch],
        capture_output=True, check=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_builds_after_each_patch(target, tmp_path):
    """git bisect stops at no patch that does not build."""
    out = unpatched(target, tmp_path / "out")
    for patch in patches_for(version_of(target.source())):
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*.ko")}
        body = body_of(patch)
        if not body:
            continue  # documentation, selftests
        subprocess.run(["patch", "-d", out, "-p1", "-N", "-s", "-F0"], input=body, check=True)
        modules(target, out, "W=1")
        after = {path: path.stat().st_mtime_ns for path in out.rglob("*.ko")}
        assert len(after) == 2 and after != before, f"{patch.name} changed nothing"
        print(f"{target.name}: {patch.name} builds", file=sys.stderr)


@pytest.mark.parametrize("target", TARGETS[-2:], ids=lambda target: target.name)
@pytest.mark.parametrize("series", ["timers", "miss-indications", "idle-retransmit", "cong"])
def test_netdev_builds_after_each_patch(target, series, tmp_path):
    """As part of the kernel, too; neither W=1 nor sparse has anything new to say."""
    whole = target.tree.parent / "source"
    run("make", "-s", "-C", FOLDER, "netdev", f"OUT={tmp_path / 'netdev'}",
        f"SOURCE={target.source()} {whole}")  # fmt: skip
    out = unpatched(target, tmp_path / "out")
    for path in ("net/netns/sctp.h", "linux/inet_diag.h", "uapi/linux/inet_diag.h"):
        (out / "include" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(whole / "include" / path, out / "include" / path)
    checks = ["W=1", "CONFIG_SCTP_CONG_JSCTP=m"]
    checks += ["C=2", f"CHECK={SPARSE}"] if SPARSE else []
    before = complaints(modules(target, out, *checks))
    patches = sorted((tmp_path / "netdev" / series).glob("*.patch"))
    for patch in patches:
        body = body_of(patch)
        if "cover-letter" in patch.name or not body:
            continue
        subprocess.run(["patch", "-d", out, "-p1", "-N", "-s", "-F0"], input=body, check=True)
        new = [line for line in complaints(modules(target, out, *checks)) if line not in before]
        assert not new, f"{patch.name}: " + "\n".join(new)
        print(f"{target.name}: {series}/{patch.name} builds", file=sys.stderr)
    assert (out / "net/sctp/sctp_jsctp.ko").exists() == (series == "cong")


# --- a real host -------------------------------------------------------------

MODULES = ["sctp", "sctp_diag", "sctp_jsctp"]
LAB = next(target for target in TARGETS if target.name == "6.12-gcc")
SBIN = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def release_of(tree: Path) -> str:
    return (tree / "include/generated/utsrelease.h").read_text().split('"')[1]


def answer(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | SBIN).stdout


def test_install_goes_before_the_kernels_own(tmp_path):
    """modprobe takes ours while they are installed, and the kernel's own after uninstall."""
    source, release = LAB.source(), release_of(LAB.tree)
    root = tmp_path / "root"
    own = root / "lib/modules" / release / "kernel/net/sctp"
    own.mkdir(parents=True)
    out = tmp_path / "out"
    where = ["make", "-C", FOLDER, f"KDIR={LAB.tree}", f"OUT={out}", f"INSTALL_MOD_PATH={root}"]
    run(*where, "-j2", f"SOURCE={source}", env=os.environ | SBIN)
    for module in ("sctp", "sctp_diag"):
        shutil.copy(out / f"net/sctp/{module}.ko", own)
    run(*where, f"SOURCE={source}", "install", env=os.environ | SBIN)
    asked = ["modprobe", "-d", root, "-S", release, "--show-depends"]
    for name in ("sctp_jsctp", "sctp_cong_jsctp_abe"):
        loaded = re.findall(r"^insmod (\S+)", answer(*asked, name), re.M)
        assert [Path(path).name.split(".ko")[0] for path in loaded] == ["sctp", "sctp_jsctp"]
        assert all("updates/sctp-jitter" in path for path in loaded)
    run(*where, "uninstall", env=os.environ | SBIN)
    assert "kernel/net/sctp/sctp.ko" in answer(*asked, "sctp")
    assert not answer(*asked, "sctp_jsctp")


@pytest.mark.skipif(os.geteuid() != 0, reason="DKMS insists on being root")
@pytest.mark.skipif(not shutil.which("dkms"), reason="no DKMS: apt-get install dkms")
def test_dkms_installs_and_removes(tmp_path):
    """`make dkms` leaves all three where modprobe looks first; `make undkms` leaves nothing."""
    source, release = LAB.source(), release_of(LAB.tree)
    modules = tmp_path / "modules" / release
    for folder in (modules / "kernel/net/sctp", tmp_path / "tree", tmp_path / "src"):
        folder.mkdir(parents=True)
    for name in ("sctp", "sctp_diag"):  # the kernel's own, which tell no version
        (modules / f"kernel/net/sctp/{name}.ko").touch()
    dkms = (
        f"DKMS=dkms --no-depmod --dkmstree {tmp_path / 'tree'} --sourcetree {tmp_path / 'src'}"
        f" --installtree {tmp_path / 'modules'}"
    )
    where = ["make", "-C", FOLDER, f"KDIR={LAB.tree}", f"DKMS_SRC={tmp_path / 'src'}", dkms]
    keys = {"mok_signing_key": str(tmp_path / "key"), "mok_certificate": str(tmp_path / "cert")}
    environment = os.environ | SBIN | keys | {"SOURCE": str(source)}
    run(*where, "dkms", env=environment)
    installed = sorted((modules / "updates/dkms").iterdir())
    assert [path.name.split(".ko")[0] for path in installed] == MODULES
    run(*where, "undkms", env=environment)
    left = [path for folder in (tmp_path / "src", modules) for path in folder.rglob("*")]
    assert {path.stem for path in left if path.is_file()} == {"sctp", "sctp_diag"}
    assert all(path.parent.name == "sctp" for path in left if path.is_file()), "the kernel's own"


def test_package_has_what_dkms_builds(tmp_path):
    """The package's sources make the patched sources by themselves, for each line."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("not a Debian system")
    run("make", "-C", FOLDER, f"DEBDIR={tmp_path}", "deb")
    run("dpkg-deb", "-R", *tmp_path.glob("*.deb"), tmp_path / "unpacked")
    (sources,) = (tmp_path / "unpacked/usr/src").iterdir()
    for line in ("stable", "lab", "newest"):
        out = tmp_path / line
        run(
            "make",
            "-s",
            "-C",
            sources,
            "source",
            f"OUT={out}",
            f"SOURCE={pristine(line)}",
            "KDIR=/none",
        )
        assert (out / "net/sctp/cong.c").exists() and (out / "estimators/tabe.h").exists()
    control = (tmp_path / "unpacked/DEBIAN/control").read_text()
    assert "Package: sctp-jitter-dkms\n" in control and "@" not in control.split("Maintainer")[0]
