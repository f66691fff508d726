# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages hold what they should, and lintian finds nothing.

PACKAGES_ON (suites of Debian, as `make test-packages` has them): they are also installed, upgraded
and taken away there, in QEMU; packages_guest.py is what happens inside. An older version is made of
the sources before the last change of their version number.
"""

import contextlib
import os
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import packages_guest
import pytest

from lab.run.backends import vm
from lab.run.build import PROJECT
from labtest.boot import assert_claimed, verdict_count

pytestmark = pytest.mark.skipif(
    not shutil.which("dpkg-shlibdeps"), reason="no dpkg-shlibdeps: apt-get install dpkg-dev"
)
NAMES = {
    "cc-tools", "libtfrc-dev", "libtfrc2", "sctp-jitter-dkms", "tfrc-tools", "veno-jitter-dkms",
    "veno-lab",
}  # fmt: skip


def run(*command, **variables) -> str:
    done = subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {name: str(value) for name, value in variables.items()},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> dict[str, Path]:
    """All packages, by their names."""
    folder = tmp_path_factory.mktemp("debs")
    run("make", "-C", PROJECT, "debs", DEBDIR=folder)
    found = {path.name.split("_")[0]: path for path in folder.iterdir()}
    assert set(found) == NAMES  # and nothing that a build has left
    return found


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory) -> dict[str, Path]:
    """Their files."""
    folder = tmp_path_factory.mktemp("unpacked")
    for name, path in packages.items():
        run("dpkg-deb", "-x", path, folder / name)
    return {name: folder / name for name in packages}


def test_each_says_what_it_is(packages):
    """Nothing is left to fill in, and only the library's parts depend on a machine."""
    for name, path in packages.items():
        fields = dict(
            line.split(": ", 1) for line in run("dpkg-deb", "-f", path).splitlines() if ": " in line
        )
        assert fields["Package"] == name and "@" not in "".join(
            value for field, value in fields.items() if field != "Maintainer"
        )
        assert (fields["Architecture"] == "all") == ("tfrc" not in name)
        if name in ("libtfrc2", "tfrc-tools"):
            assert "libc6 (>= " in fields["Depends"]


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian: apt-get install lintian")
def test_lintian_finds_nothing(packages):
    said = run("lintian", "--allow-root", "--fail-on", "none", *packages.values())
    assert not [line for line in said.splitlines() if line.startswith(("E: ", "W: "))], said


def test_a_program_is_built_with_the_library(unpacked, tmp_path):
    """By pkg-config's words, as on a machine that has both packages; the tools need neither."""
    (library,) = (unpacked["libtfrc2"] / "usr" / "lib").iterdir()
    developer = unpacked["libtfrc-dev"] / "usr"
    words = (developer / "lib" / library.name / "pkgconfig" / "libtfrc.pc").read_text()
    assert f"libdir=/usr/lib/{library.name}\n" in words and "-ltfrc" in words
    source = PROJECT / "tfrc_uddj_user" / "examples" / "stream.c"
    run("cc", f"-I{developer / 'include'}", "-o", tmp_path / "stream", source,
        f"-L{developer / 'lib' / library.name}", f"-Wl,-rpath-link,{library}",
        library / "libtfrc.so.2", "-lm")  # fmt: skip
    listed = run("ldd", tmp_path / "stream", LD_LIBRARY_PATH=library)
    assert f"libtfrc.so.2 => {library}" in listed
    assert "tfrc-send" in run(unpacked["tfrc-tools"] / "usr" / "bin" / "tfrc-send", "--help")


def test_the_lab_s_package_has_all_that_is_read(unpacked):
    """What git has of these folders but tests, and what makes packages; nothing is left beside."""
    there = unpacked["veno-lab"] / "usr" / "share" / "veno-lab"
    files = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    folders = ("testbed", "tcp_veno_jitter", "sctp_jitter", "tfrc_uddj_user")
    listed = subprocess.run(
        ["git", "-C", PROJECT, "ls-files", *folders], capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a checkout of git")
    wanted = {
        name
        for name in listed.stdout.splitlines()
        if "/tests/" not in name and Path(name).name not in ("postinst", "prerm")
    }
    assert files == wanted
    pages = unpacked["veno-lab"] / "usr" / "share" / "doc" / "veno-lab" / "docs"
    assert (pages / "scorecard.md").exists() and (pages / "results" / "scorecard.md").exists()
    wrapper = unpacked["veno-lab"] / "usr" / "bin" / "veno-lab"
    assert os.access(wrapper, os.X_OK) and "exec /usr/share/veno-lab/" in wrapper.read_text()


def test_the_same_sources_make_the_same_library(packages, tmp_path):
    """Two builds in two places agree in every byte."""
    run("make", "-C", PROJECT / "tfrc_uddj_user", "deb", DEBDIR=tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == packages[path.name.split("_")[0]].read_bytes(), path.name


@pytest.mark.parametrize(
    ("shlibdeps", "depends"),
    [
        ("echo 'shlibs:Depends=libc6 (>= 2.36) | libc6-other'", "libc6 (>= 2.36) | libc6-other"),
        ("echo 'dpkg-shlibdeps: error: no such library' >&2; exit 2", None),
    ],
    ids=["alternatives", "failure"],
)
def test_what_a_library_needs_is_taken_as_it_is_said(shlibdeps, depends, tmp_path):
    """One of two packages, too; and no package is made without it."""
    program = tmp_path / "bin" / "dpkg-shlibdeps"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{shlibdeps}\n")
    program.chmod(0o755)
    made = subprocess.run(
        ["make", "-C", PROJECT / "tfrc_uddj_user", "deb", f"DEBDIR={tmp_path / 'debs'}"],
        env=os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True, text=True,
    )  # fmt: skip
    found = {
        path.name.split("_")[0]: run("dpkg-deb", "-f", path, "Depends").strip()
        for path in (tmp_path / "debs").glob("*.deb")
    }
    if depends:
        assert made.returncode == 0, made.stderr
        assert found["libtfrc2"] == found["tfrc-tools"] == depends
    else:
        assert made.returncode == 2 and "no such library" in made.stderr and not found


def test_a_repository_has_them_all(packages, tmp_path):
    apt = PROJECT / "tcp_veno_jitter" / "packaging" / "apt-repo"
    run(apt, tmp_path, *packages.values())
    index = (tmp_path / "Packages").read_text().splitlines()
    assert {line.split(": ")[1] for line in index if line.startswith("Package: ")} == NAMES


# --- on a Debian ------------------------------------------------------------------

SUITES = os.environ.get("PACKAGES_ON", "").split()
GUEST_MEMORY_MB = 2048
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
CACHE = Path(os.environ.get("LAB_CACHE", Path.home() / ".cache" / "veno-jitter")) / "debian"
# The same addresses in each process: what is translated once for an emulated processor stays so.
BOOT = (
    "mitigations=off norandmaps init_on_alloc=0 nowatchdog root=/dev/vda rw "
    "init=/usr/local/sbin/guest-init"
)


def last_version(folder: Path) -> str:
    """Make veno-jitter-dkms and cc-tools of the sources before these in FOLDER; return their
    version."""
    git = ["git", "-C", PROJECT]
    conf = "tcp_veno_jitter/dkms.conf"
    changed = run(*git, "log", "-1", "--format=%H", "-G^PACKAGE_VERSION=", "--", conf).strip()
    archive = folder / "sources.tar"
    run(*git, "archive", f"--output={archive}", f"{changed}^", "tcp_veno_jitter")
    run("tar", "-C", folder, "-xf", archive)
    run("make", "-C", folder / "tcp_veno_jitter", "deb", "tools-deb", DEBDIR=folder / "debs")
    (package,) = (folder / "debs").glob("veno-jitter-dkms_*.deb")
    return package.name.split("_")[1]


def pack_job(packages: dict[str, Path], folder: Path) -> Path:
    """Return a folder in FOLDER with all that a guest needs."""
    job, old = folder / "job", folder / "old"
    old.mkdir(parents=True)
    version = last_version(old)
    apt_repo = PROJECT / "tcp_veno_jitter" / "packaging" / "apt-repo"
    run(apt_repo, job / "repository", *(old / "debs").iterdir(), *packages.values())
    shutil.copytree(PROJECT / "debian", job / "debian")
    parts = ("lab/__init__.py", "lab/run/__init__.py", "lab/run/guest", "labtest")
    for name in (*parts, "tests/packages_guest.py"):
        source = PROJECT / "testbed" / name
        to = job / ("packages_guest.py" if source.name == "packages_guest.py" else name)
        to.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, to)
    (job / "sources.list").write_text("deb [trusted=yes] file:/tmp/job/repository ./\n")
    (job / "version").write_text(version)
    return job


@contextlib.contextmanager
def root_of(disk: Path, job: Path):
    """Within the block, the files of a DISK, with the JOB where a guest has it."""
    root = disk.with_suffix("")
    root.mkdir()
    with contextlib.ExitStack() as mounted:

        def mount(*words) -> None:
            run("mount", *words)
            mounted.callback(run, "umount", words[-1])

        mount("-o", "loop", disk, root)
        mount("-t", "proc", "proc", root / "proc")
        mount("--bind", "/dev", root / "dev")
        mount("-t", "tmpfs", "tmpfs", root / "tmp")
        (root / "tmp" / "job").mkdir()
        mount("--bind", job, root / "tmp" / "job")
        yield root


def filled_disk(suite: str, job: Path) -> Path:
    """Return a disk of a Debian SUITE with all packages: this machine's processor compiles."""
    disk = job.parent / f"{suite}.ext4"
    run("cp", "--sparse=always", CACHE / suite / "root.ext4", disk)
    with root_of(disk, job) as root:
        inside = "cd /tmp/job && python3 packages_guest.py fill"
        run("chroot", root, "sh", "-c", inside, PATH=PATH, DEBIAN_FRONTEND="noninteractive")
    return disk


@cache
def life(suite: str, which: str, job: Path) -> str:
    """Boot a Debian SUITE, bare or filled, give it the JOB, and return what it said."""
    run(PROJECT / "testbed" / "setup", "debian", DEBIAN_SUITE=suite)
    disk = filled_disk(suite, job) if which == "filled" else CACHE / suite / "root.ext4"
    version = (job / "version").read_text()
    (job / "run").write_text(f"#!/bin/sh\nexec python3 packages_guest.py {which} {version}\n")
    (job / "run").chmod(0o755)
    archive = job.parent / f"{suite}-{which}.tar"
    run("tar", "-C", job, "-cf", archive, ".")
    kernel = vm.prepared_kernel("6.1")
    processor = "kvm" if vm.kvm_boots(kernel) else "tcg"
    kernel = replace(kernel, image=CACHE / suite / "vmlinuz")
    cpus = min(len(os.sched_getaffinity(0)), 4)
    command = [
        *vm.machine(kernel, processor, BOOT, cpus, GUEST_MEMORY_MB),
        "-drive", f"file={disk},format=raw,if=virtio,snapshot=on",
        "-drive", f"file={archive},format=raw,if=virtio,readonly=on",
    ]  # fmt: skip
    said = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return said.stdout.decode(errors="replace").replace("\r", "")


@pytest.fixture(scope="module")
def job(packages, tmp_path_factory) -> Path:
    return pack_job(packages, tmp_path_factory.mktemp("job"))


in_a_machine = pytest.mark.skipif(
    not SUITES or os.geteuid() != 0, reason="an hour or two if emulated; root: make test-packages"
)


LIVES = {"filled": packages_guest.filled, "bare": packages_guest.bare}


@in_a_machine
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(
    ("which", "text"), [(name, claim.text) for name, claims in LIVES.items() for claim in claims]
)
def test_claim(suite, which, text, job):
    assert_claimed(life(suite, which, job), text)


@in_a_machine
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("which", LIVES)
def test_every_claim_was_tested(suite, which, job):
    assert verdict_count(life(suite, which, job)) == len(LIVES[which])
