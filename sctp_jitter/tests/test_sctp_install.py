# SPDX-License-Identifier: GPL-2.0-only
"""Patched SCTP for a real host: it is explained what cannot work, and structures that others read
are where they were. Nothing of this machine is changed.

Building, installing and DKMS are in matrix_sctp.py.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_series import FOLDER, lab_paths, pristine, run, version_of

PREPARE = FOLDER / "packaging" / "prepare-source"
SERIES_FILES = "/usr/src/linux-source-{}.tar.xz"


def refused(done: subprocess.CompletedProcess, *words: str) -> None:
    """Exit code 2 and one line of ours with these words."""
    assert done.returncode == 2, done.stdout
    ours = [line for line in done.stdout.splitlines() if line.startswith("sctp_jitter: ")]
    assert len(ours) == 1, done.stdout
    assert all(word in ours[0] for word in words), ours[0]


def attempt(*command: str | Path, **variables) -> subprocess.CompletedProcess:
    return subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {name: str(value) for name, value in variables.items()},
    )  # fmt: skip


def build_tree(folder: Path, sctp: str, version: str = "6.12.9") -> Path:
    """Make FOLDER look like the build tree of a kernel whose SCTP is configured so."""
    major, patchlevel, sublevel = version.split(".")
    files = {
        "include/generated/utsrelease.h": f'#define UTS_RELEASE "{version}"\n',
        "include/generated/uapi/linux/version.h": f"#define LINUX_VERSION_MAJOR {major}\n"
        f"#define LINUX_VERSION_PATCHLEVEL {patchlevel}\n"
        f"#define LINUX_VERSION_SUBLEVEL {sublevel}\n",
        "include/config/auto.conf": f"CONFIG_MODULES=y\n{sctp}",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def make(tree: Path, *arguments: str | Path, **variables) -> subprocess.CompletedProcess:
    return attempt("make", "-C", FOLDER, f"KDIR={tree}", f"OUT={tree}/out", *arguments, **variables)


@pytest.mark.parametrize(
    ("system", "cure"),
    [("ID=debian", "apt install linux-source-6.12"), ("ID=other", "source package of this kernel")],
)
def test_missing_source_is_named(system, cure, tmp_path):
    """The package to install is the one of this kernel; nothing is built."""
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n")
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/os-release").write_text(f"{system}\n")
    refused(make(tree, SYSROOT=tmp_path / "root"), cure, "SOURCE=")
    assert not (tree / "out").exists()


def test_missing_headers_are_named(tmp_path):
    refused(make(tmp_path / "absent"), str(tmp_path / "absent"), "linux-headers")


@pytest.mark.parametrize(
    ("sctp", "words"),
    [
        ("CONFIG_IP_SCTP=y\n", ("built into the kernel", "make sctp-series")),
        ("", ("without SCTP",)),
    ],
)
def test_sctp_that_is_no_module(sctp, words, tmp_path):
    """An SCTP that is built in cannot be replaced, and where there is none its core is missing."""
    refused(make(build_tree(tmp_path, sctp), "SOURCE=/nowhere"), *words)


@pytest.mark.parametrize("given", ["absent", "empty", "file"])
def test_what_is_no_kernel_source(given, tmp_path):
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no tarball\n")
    refused(make(tree, f"SOURCE={tmp_path / given}"), str(tmp_path / given))


def sources(tmp_path: Path, version: str) -> Path:
    """Return the lab's kernel source, called VERSION."""
    copy = tmp_path / "source"
    shutil.copytree(pristine("lab"), copy)
    numbers = dict(zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True))
    (copy / "Makefile").write_text(
        "# first\n" + "".join(f"{k} = {v}\n" for k, v in numbers.items())
    )
    return copy


def test_source_of_another_line(tmp_path):
    """Headers of one line and source of another do not fit."""
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n", "6.1.7")
    done = make(tree, f"SOURCE={sources(tmp_path, '6.12.3')}")
    refused(done, "is Linux 6.12.3", "6.1.7")


@pytest.mark.parametrize("sublevel", [117, 90])
def test_source_of_another_stable_release(sublevel, tmp_path):
    """It is taken, and said: structures may have changed between the two."""
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n", f"6.12.{sublevel}")
    done = make(tree, "-s", "source", f"SOURCE={sources(tmp_path, '6.12.117')}")
    assert done.returncode == 0
    said = done.stdout.splitlines()
    assert len(said) == (sublevel != 117), said
    assert all("6.12.117" in line and "6.12.90" in line for line in said)


def test_kernel_that_is_too_old(tmp_path):
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n", "5.10.7")
    refused(make(tree, f"SOURCE={sources(tmp_path, '5.10.7')}"), "no patches for Linux 5.10", "6.1")


def test_kernel_that_is_too_new(tmp_path):
    """The newest patches are tried; the first that does not apply is named, with its file."""
    source = sources(tmp_path, "99.1.0")
    (source / "net/sctp/transport.c").write_text("/* all is new */\n")
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n", "99.1.0")
    refused(make(tree, f"SOURCE={source}"), "0001 of the patches for 7.", "99.1.0", "transport.c")


@pytest.mark.parametrize("target", ["install", "uninstall", "dkms", "undkms"])
def test_only_root_installs(target, tmp_path):
    """Each of them says so before it builds or removes anything."""
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n")
    identity = tmp_path / "bin" / "id"
    identity.parent.mkdir()
    identity.write_text("#!/bin/sh\necho 1000\n")
    identity.chmod(0o755)
    refused(make(tree, target, PATH=f"{identity.parent}:{os.environ['PATH']}"), "root", "sudo make")
    assert not (tree / "out").exists()


def test_secure_boot_is_explained(tmp_path):
    """`make install` is refused before it builds, and DKMS, which signs, is named."""
    tree = build_tree(tmp_path / "tree", "CONFIG_IP_SCTP=m\n")
    lockdown = tmp_path / "root/sys/kernel/security/lockdown"
    lockdown.parent.mkdir(parents=True)
    lockdown.write_text("none [integrity]\n")
    identity = tmp_path / "bin" / "id"
    identity.parent.mkdir()
    identity.write_text("#!/bin/sh\necho 0\n")
    identity.chmod(0o755)
    done = make(tree, "install", SYSROOT=tmp_path / "root",
                PATH=f"{identity.parent}:{os.environ['PATH']}")  # fmt: skip
    refused(done, "Secure Boot", "sudo make sctp-dkms", "make sctp-install MOK_KEY=")
    assert not (tree / "out").exists()


def test_dkms_builds_what_the_series_makes():
    """dkms.conf has a place to come from and one to go to for each module."""
    script = (
        f'kernel_source_dir=/k; . {FOLDER}/dkms.conf; printf "%s\\n" "${{#BUILT_MODULE_NAME[@]}}"'
    )
    script += (
        ' "${#BUILT_MODULE_LOCATION[@]}" "${#DEST_MODULE_LOCATION[@]}" "${BUILT_MODULE_NAME[*]}"'
    )
    counts = run("bash", "-c", script).splitlines()
    assert counts == ["3", "3", "3", "sctp sctp_diag sctp_jsctp"]


# --- layout ------------------------------------------------------------------

# What code outside of sctp.ko has the layout of built in: struct net has a netns_sctp, security
# modules and drivers read the others.
READ_BY_OTHERS = (
    "net", "netns_sctp", "sctp_association", "sctp_endpoint", "sctp_ep_common", "sctp_sock",
    "sctp_transport", "sctp_cookie", "sctp_bind_addr", "sctp_stream",
)  # fmt: skip
PROBE = "#include <net/sctp/structs.h>\n" + "".join(
    f"struct {name} *a_{name};\nsize_t size_of_{name} = sizeof(*a_{name});\n"
    for name in READ_BY_OTHERS
)


def layout(tree: Path, folder: Path, includes: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Return where the members of each structure are (bytes, bits), as a compiler has them."""
    folder.mkdir()
    (folder / "probe.c").write_text(PROBE)
    (folder / "Kbuild").write_text(
        f"LINUXINCLUDE := {includes} $(LINUXINCLUDE)\nobj-m := probe.o\n"
    )
    run("make", "-C", tree, f"M={folder}", "KCFLAGS=-g -Wno-missing-prototypes", "probe.o")
    return {name: members(folder / "probe.o", name) for name in READ_BY_OTHERS}


def members(module: Path, name: str) -> dict[str, tuple[int, int]]:
    told = run("pahole", "-C", name, module)
    found = re.findall(
        r"(\w+)(?:\[\w*\])*(?:\s*:\s*\d+)?(?:\)\([^)]*\))?;\s*/\*\s*(\d+)(?::\s*(\d+))?\s+\d+\s*\*/",
        told,
    )
    assert len(found) > 1, told
    return {member: (int(byte), int(bit or 0)) for member, byte, bit in found}


def build_trees() -> dict[str, Path]:
    """Return a build tree of each of the sources that there is one of."""
    cache = lab_paths()["cache"] / "trees"
    found = {}
    for name in ("stable", "lab", "newest"):
        if not (cache / name / "series/Makefile").exists():
            continue
        version = version_of(cache / name / "series")
        trees = [*Path("/usr/src").glob(f"linux-headers-{version}.*-amd64"), cache / name / "gcc"]
        trees = [tree for tree in trees if (tree / "include/generated/utsrelease.h").exists()]
        if trees:
            found[name] = trees[-1]
    return found


@pytest.mark.skipif(not shutil.which("pahole"), reason="no pahole: apt-get install pahole")
@pytest.mark.parametrize("name", ["stable", "lab", "newest"])
def test_nothing_moves_in_structures_that_others_read(name, tmp_path):
    """Each member that the kernel's headers have is where it was, padding by the name of what it
    is for; struct net has no byte more."""
    trees = build_trees()
    if name not in trees:
        pytest.skip("no kernel headers: testbed/setup test")
    source = tmp_path / "patched"
    run("make", "-s", "-C", FOLDER, "source", f"OUT={source}", f"SOURCE={pristine(name)}",
        f"KDIR={trees[name]}")  # fmt: skip
    stock = layout(trees[name], tmp_path / "stock", "")
    patched = layout(trees[name], tmp_path / "ours", f"-I{source}/include -I{source}/include/uapi")
    patched["sctp_cookie"]["padding"] = patched["sctp_cookie"].pop("timestamp_chunk")
    for struct, before in stock.items():
        assert {m: patched[struct].get(m) for m in before} == before, struct
    assert patched["net"] == stock["net"] and patched["netns_sctp"] == stock["netns_sctp"]
    assert "cong" in patched["sctp_association"] and "cong" not in stock["sctp_association"]
