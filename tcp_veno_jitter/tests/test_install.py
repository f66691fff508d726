# SPDX-License-Identifier: GPL-2.0-only
"""Installing, DKMS and the package do what docs/install.md says, and explain what they cannot.

Nothing of this machine is changed: installs go below folders of their own, and machines with
Secure Boot, without headers or without modules are folders that look like one.
"""

import filecmp
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_build import FOLDER, HEADERS_CURE, MODULES, header_trees, kernel_release, modinfo

PACKAGING = FOLDER / "packaging"
TREE = next(iter(header_trees()), None)
needs_headers = pytest.mark.skipif(not TREE, reason=HEADERS_CURE)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="DKMS insists on being root")
needs_dkms = pytest.mark.skipif(not shutil.which("dkms"), reason="no DKMS: apt-get install dkms")
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not a Debian system")
SBIN = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
SIG_ENFORCE = "sys/module/module/parameters/sig_enforce"
LOCKDOWN = "sys/kernel/security/lockdown"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def run(*command, **variables) -> subprocess.CompletedProcess:
    return subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | SBIN | {name: str(value) for name, value in variables.items()},
    )  # fmt: skip


def make(*arguments, **variables) -> str:
    done = run("make", f"-j{os.cpu_count()}", "-C", FOLDER, *arguments, **variables)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def machine(folder: Path, files: dict[str, str]) -> Path:
    """Make FOLDER look like a machine whose kernel loads modules and that has FILES."""
    for name, content in ({"proc/modules": ""} | files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def user(folder: Path, number: int) -> str:
    """Return a PATH on which everybody is user NUMBER."""
    command = folder / "bin" / "id"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f"#!/bin/sh\necho {number}\n")
    command.chmod(0o755)
    return f"{command.parent}:{SBIN['PATH']}"


def test_example_options_exist():
    """What modprobe.conf sets, its module has."""
    lines = (PACKAGING / "examples" / "modprobe.conf").read_text().splitlines()
    set_there = [line.split() for line in lines if line.lstrip("#").startswith("options ")]
    assert set_there
    for _, module, *values in set_there:
        known = re.findall(r"module_param_cb\((\w+)", (FOLDER / f"{module}.c").read_text())
        assert {value.split("=")[0] for value in values} <= set(known), module


# --- make install ------------------------------------------------------------


@pytest.fixture
def signing_key(tmp_path) -> list[str]:
    """What make takes to sign; nothing if there is no openssl to make a key."""
    key, cert = tmp_path / "key", tmp_path / "cert"
    if not shutil.which("openssl"):
        return []
    made = run(
        "openssl", "req", "-new", "-x509", "-nodes", "-subj", "/CN=made for a test", "-newkey",
        "rsa:2048", "-keyout", key, "-outform", "DER", "-out", cert,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout
    return [f"MOK_KEY={key}", f"MOK_CERT={cert}"]


@needs_headers
def test_install_and_uninstall(signing_key, tmp_path):
    """`sysctl ...=NAME` makes the kernel ask for tcp_NAME: modprobe finds it until uninstall.

    Each module is signed by the key given, once however often it is installed.
    """
    release = kernel_release(TREE)
    root = tmp_path / "root"
    where = [f"KDIR={TREE}", f"OUT={tmp_path / 'out'}", f"INSTALL_MOD_PATH={root}", *signing_key]
    asked = ["modprobe", "-d", root, "-S", release, "--show-depends"]
    make(*where, "install")
    first = {path: path.read_bytes() for path in (root / "lib/modules" / release).rglob("*.ko*")}
    make(*where, "install")
    assert first == {path: path.read_bytes() for path in first}
    for name in MODULES:
        said = run(*asked, name).stdout
        found = re.search(rf"^insmod (.*/updates/veno-jitter/{name}\.ko\S*)", said, re.MULTILINE)
        assert found and Path(found[1]) in first
        assert modinfo(found[1], "signer") == ("made for a test" if signing_key else "")
    make(*where, "uninstall")
    assert not list(root.rglob("*.ko*"))
    assert run(*asked, MODULES[0]).returncode != 0


# --- DKMS --------------------------------------------------------------------


def dkms_conf(variable: str) -> list[str]:
    """Return what DKMS reads from dkms.conf."""
    script = f'. {FOLDER / "dkms.conf"}; printf "%s\\n" "${{{variable}[@]}}"'
    return run("bash", "-c", script).stdout.splitlines()


def test_dkms_builds_every_module():
    """dkms.conf and Kbuild name the same modules, each with a place to go."""
    objects = re.search("^obj-m := (.*)$", (FOLDER / "Kbuild").read_text(), re.MULTILINE)
    names = dkms_conf("BUILT_MODULE_NAME")
    assert sorted(names) == MODULES == sorted(name[:-2] for name in objects[1].split())
    assert dkms_conf("DEST_MODULE_LOCATION") == ["/updates/dkms"] * len(names)


@pytest.mark.parametrize(
    "release, wanted",
    [("5.10.0-30-amd64", False), ("6.0.12", False), ("6.1.0-56-amd64", True), ("6.12.9", True),
     ("7.2.13+deb14-amd64", True), ("10.0.1", True), ("16.1", True)],
)  # fmt: skip
def test_dkms_leaves_old_kernels_alone(release, wanted):
    """A kernel before 6.1 is no failed build of DKMS, it is none."""
    pattern = dkms_conf("BUILD_EXCLUSIVE_KERNEL")[0]
    assert run("bash", "-c", f"[[ {release} =~ {pattern} ]]").returncode == (not wanted)


@needs_headers
@needs_root
@needs_dkms
def test_dkms_installs_and_removes(tmp_path):
    """`make dkms` leaves signed modules where modprobe looks; `make undkms` leaves nothing."""
    release = kernel_release(TREE)
    modules = tmp_path / "modules" / release
    for folder in (modules, tmp_path / "tree", tmp_path / "src"):
        folder.mkdir(parents=True)
    dkms = (
        f"DKMS=dkms --no-depmod --dkmstree {tmp_path / 'tree'} --sourcetree {tmp_path / 'src'}"
        f" --installtree {tmp_path / 'modules'}"
    )
    where = [f"KDIR={TREE}", f"DKMS_SRC={tmp_path / 'src'}", dkms]
    keys = {"mok_signing_key": tmp_path / "key", "mok_certificate": tmp_path / "cert"}
    for _ in ("new", "again, as after a change"):
        make(*where, "dkms", **keys)
        installed = sorted((modules / "updates" / "dkms").iterdir())
        assert [path.name.split(".ko")[0] for path in installed] == MODULES  # may be compressed
    if keys["mok_certificate"].exists():
        assert modinfo(installed[0], "signer")
    make(*where, "undkms", **keys)
    assert not files_below(tmp_path / "src") and not files_below(modules)


# --- the package -------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The package, unpacked, with its maintainer scripts in DEBIAN."""
    folder = tmp_path_factory.mktemp("deb")
    make(f"DEBDIR={folder}", "deb")
    unpacked = folder / "unpacked"
    assert run("dpkg-deb", "-R", *folder.glob("*.deb"), unpacked).returncode == 0
    return unpacked


@needs_dpkg
def test_package_has_what_dkms_builds(package):
    """/usr/src of the package holds the sources, all of them, and no product of a build."""
    (sources,) = (package / "usr" / "src").iterdir()
    assert sources.name == f"veno-jitter-{dkms_conf('PACKAGE_VERSION')[0]}"
    found = files_below(sources)
    wanted = {path.name for path in FOLDER.glob("*.[ch]")} | {"Kbuild", "dkms.conf"}
    wanted |= {
        f"{part}/{name}" for part in ("compat", "estimators") for name in files_below(FOLDER / part)
    }
    assert found == wanted
    assert not filecmp.cmpfiles(FOLDER, sources, found, shallow=False)[1]


@needs_dpkg
def test_package_says_what_it_is(package):
    """Name, version and dependency are right, nothing is left to fill in, scripts can be run."""
    control = (package / "DEBIAN" / "control").read_text()
    version = dkms_conf("PACKAGE_VERSION")[0]
    assert f"Package: veno-jitter-dkms\nVersion: {version}\n" in control
    assert "Depends: dkms\n" in control and re.search(
        "^Maintainer: .+ <.+>$", control, re.MULTILINE
    )
    for name in ("postinst", "prerm"):
        script = package / "DEBIAN" / name
        assert os.access(script, os.X_OK) and run("sh", "-n", script).returncode == 0
        assert "@" not in script.read_text() and version in script.read_text()
    assert os.access(package / "usr" / "sbin" / "wccp-survey", os.X_OK)
    manual = package / "usr" / "share" / "man" / "man7" / "tcp_veno_jitter.7.gz"
    assert (manual.parents[1] / "man8" / "wccp-survey.8.gz").exists()
    assert manual.exists() and list((package / "usr/share/doc/veno-jitter-dkms/examples").iterdir())


@pytest.mark.parametrize("name", MODULES)
def test_manual_lists_every_parameter(name):
    """The man page has each parameter with the range and the default of the source."""
    declared = re.findall(
        r"struct tcp_param \w+ = \{\s*\.value = (\d+),\s*\.min = (\d+),\s*\.max = (\d+),?\s*\};"
        r"\s*module_param_cb\((\w+),",
        (FOLDER / f"{name}.c").read_text(),
    )
    manual = (FOLDER / "man" / "tcp_veno_jitter.7").read_text()
    section = re.search(rf"^\.SS {name}\n(.*?)^\.S[HS] ", manual, re.MULTILINE | re.DOTALL)
    listed = re.findall(r'^\.BR (\w+) " \((\d+)-(\d+), default (\d+)\)"$', section[1], re.MULTILINE)
    assert sorted(listed) == sorted((key, low, high, value) for value, low, high, key in declared)


def test_manual_is_of_this_version():
    title = (FOLDER / "man" / "tcp_veno_jitter.7").read_text().splitlines()[1]
    assert f'"veno_jitter {dkms_conf("PACKAGE_VERSION")[0]}"' in title


def made_twice(target: str, folder: Path) -> Path:
    """Return the package that TARGET makes, which is the same the second time."""
    packages = []
    for name in ("a", "b"):
        make(f"DEBDIR={folder / name}", target, SOURCE_DATE_EPOCH=1700000000)
        packages += (folder / name).glob("*.deb")
    first, second = packages
    assert first.read_bytes() == second.read_bytes()
    return first


@needs_dpkg
def test_same_sources_make_the_same_package(tmp_path):
    """Two builds agree in every byte."""
    made_twice("deb", tmp_path)


# --- cc-compare and cc-watch --------------------------------------------------


def assert_tools_run(prefix: Path) -> None:
    """What is installed there needs nothing of this folder, and leaves nothing behind."""
    before = files_below(prefix)
    for tool in ("cc-compare", "cc-watch"):
        done = run(prefix / "bin" / tool, "--help")
        assert done.returncode == 0 and f"usage: {tool}" in done.stdout
        assert (prefix / "bin" / tool).resolve().is_relative_to(prefix)
        assert [name for name in before if name.startswith(f"share/man/man1/{tool}.1")]
    assert files_below(prefix) == before


def test_tools_are_installed_and_taken_away(tmp_path):
    make(f"DESTDIR={tmp_path}", "install-tools")
    make(f"DESTDIR={tmp_path}", "install-tools")
    assert_tools_run(tmp_path / "usr" / "local")
    make(f"DESTDIR={tmp_path}", "uninstall-tools")
    assert not files_below(tmp_path)


@needs_dpkg
def test_package_of_the_tools(tmp_path):
    """It holds what runs, and two builds agree in every byte."""
    package = made_twice("tools-deb", tmp_path)
    assert run("dpkg-deb", "-R", package, tmp_path / "unpacked").returncode == 0
    control = (tmp_path / "unpacked" / "DEBIAN" / "control").read_text()
    assert "Package: cc-tools\nVersion: " in control and "@" not in control.split("Maintainer")[0]
    assert_tools_run(tmp_path / "unpacked" / "usr")


# --- a repository, and the life of a package -----------------------------------

# An image of this machine that is thrown away: its own files below, what changes in memory. What
# is left of cc-tools at the end is listed.
IN_AN_IMAGE = """
set -e
mount -t tmpfs none {here}
mkdir {here}/upper {here}/work {here}/image
mount -t overlay none -o lowerdir=/,upperdir={here}/upper,workdir={here}/work {here}/image
mkdir {here}/image/apt && cp {repository}/* {here}/image/apt
mount --bind /dev {here}/image/dev
mount -t proc none {here}/image/proc
chroot {here}/image /bin/bash -ec '{script}'
find {here}/upper -name "*cc-*" -not -path "*/apt/*" -not -path "*/var/log/*"
"""
LIFE = """
apt="apt-get -qq -o Dir::Etc::sourcelist=/apt/list -o Dir::Etc::sourceparts=/none"
rm -f /var/lib/man-db/auto-update
$apt update
$apt install cc-tools=0.0
echo old $(dpkg-query -W cc-tools)
$apt install cc-tools
echo new $(dpkg-query -W cc-tools)
cc-compare --help >/dev/null && cc-watch --help >/dev/null && echo both run
$apt purge cc-tools
echo now left:
"""


@needs_dpkg
@needs_root
def test_apt_installs_upgrades_and_purges_the_tools(tmp_path):
    """From a folder as `make apt-repo` makes it, with an older version beside; nothing is left."""
    version = dkms_conf("PACKAGE_VERSION")[0]
    for each in ("0.0", version):
        make(f"DEBDIR={tmp_path / each}", f"VERSION={each}", "tools-deb")
    repository, here = tmp_path / "apt", tmp_path / "here"
    here.mkdir()
    made = run(PACKAGING / "apt-repo", repository, *sorted(tmp_path.glob("*/*.deb")))
    if "apt install dpkg-dev" in made.stdout:
        pytest.skip(made.stdout)
    assert made.stdout == f"deb [trusted=yes] file:{repository} ./\n"
    (repository / "list").write_text("deb [trusted=yes] file:/apt ./\n")
    image = IN_AN_IMAGE.format(here=here, repository=repository, script=LIFE)
    done = run("unshare", "-m", "bash", "-c", image)
    if done.returncode and re.search("mount:|unshare:", done.stdout):
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout
    steps = re.findall(r"^(old .*|new .*|both run)$", done.stdout, re.MULTILINE)
    assert steps == ["old cc-tools 0.0", f"new cc-tools {version}", "both run"], done.stdout
    assert done.stdout.endswith("now left:\n"), done.stdout


def test_a_repository_needs_packages():
    refused_by = run(PACKAGING / "apt-repo")
    assert refused_by.returncode == 2 and refused_by.stdout.startswith("apt-repo: ")


# --- what cannot work is explained -------------------------------------------


def refused(done: subprocess.CompletedProcess, *words: str) -> None:
    """Exit code 2 and one line of ours with these words."""
    assert done.returncode == 2, done.stdout
    ours = [line for line in done.stdout.splitlines() if line.startswith("veno_jitter: ")]
    assert len(ours) == 1, done.stdout
    assert all(word in ours[0] for word in words), ours[0]


@pytest.mark.parametrize(
    "system, cure",
    [("ID=debian", "apt install linux-headers-1.2.3"),
     ('ID=linuxmint\nID_LIKE="ubuntu debian"', "apt install linux-headers-1.2.3"),
     ("ID=fedora", "dnf install kernel-devel-1.2.3"),
     ('ID="opensuse-leap"\nID_LIKE="suse opensuse"', "zypper install kernel-default-devel"),
     ("ID=arch", "pacman -S linux-headers"),
     ("ID=other", "headers package of kernel 1.2.3")],
)  # fmt: skip
def test_missing_headers_name_the_package(system, cure, tmp_path):
    """The package to install is the one of this distribution."""
    root = machine(tmp_path, {"etc/os-release": f"{system}\n"})
    missing = "/lib/modules/1.2.3/build"
    done = run(PACKAGING / "check-host", "build", missing, SYSROOT=root, RELEASE="1.2.3")
    refused(done, missing, cure, "KDIR=")


def test_running_kernel_without_modules(tmp_path):
    """No headers package helps a kernel that loads no modules."""
    missing = "/lib/modules/1.2.3/build"
    done = run(PACKAGING / "check-host", "build", missing, SYSROOT=tmp_path, RELEASE="1.2.3")
    refused(done, "CONFIG_MODULES", "1.2.3", "boot a kernel of your distribution")


def test_build_tree_without_modules(tmp_path):
    """The same for the kernel that is built for; nothing is compiled."""
    config = tmp_path / "include" / "config" / "auto.conf"
    for path, text in (
        (config, "CONFIG_INET=y\n"),
        (tmp_path / "include" / "generated" / "utsrelease.h", '#define UTS_RELEASE "1.2.3"\n'),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    done = run("make", "-C", FOLDER, f"KDIR={tmp_path}", f"OUT={tmp_path / 'out'}")
    refused(done, "CONFIG_MODULES", str(tmp_path))
    assert not (tmp_path / "out").exists()
    config.write_text("CONFIG_INET=y\nCONFIG_MODULES=y\n")
    assert run(PACKAGING / "check-host", "build", tmp_path).returncode == 0


@pytest.mark.parametrize(
    "target", ["install", "uninstall", "dkms", "undkms", "install-tools", "uninstall-tools"]
)
def test_only_root_installs(target, tmp_path):
    """Each of them says so before it builds or removes anything."""
    where = [f"KDIR={TREE}", f"OUT={tmp_path / 'out'}"]
    done = run("make", "-C", FOLDER, *where, target, PATH=user(tmp_path, 1000))
    refused(done, "root", "sudo make")
    assert not (tmp_path / "out").exists()


def test_uninstall_needs_no_headers(tmp_path):
    """Of the running kernel, when its headers are gone."""
    installed = tmp_path / "lib" / "modules" / os.uname().release / "updates" / "veno-jitter"
    installed.mkdir(parents=True)
    make(f"KDIR={tmp_path / 'gone'}", f"INSTALL_MOD_PATH={tmp_path}", "uninstall")
    assert not installed.exists()


@pytest.mark.parametrize(
    "signed, files",
    [(False, {}),
     (True, {SIG_ENFORCE: "Y\n"}),
     (False, {SIG_ENFORCE: "N\n"}),
     (True, {LOCKDOWN: "none [integrity] confidentiality\n"}),
     (True, {LOCKDOWN: "none integrity [confidentiality]\n"}),
     (False, {LOCKDOWN: "[none] integrity confidentiality\n", SECURE_BOOT: "\6\0\0\0\1"}),
     (True, {SECURE_BOOT: "\6\0\0\0\1"}),
     (False, {SECURE_BOOT: "\6\0\0\0\0"})],
)  # fmt: skip
def test_secure_boot_is_explained(signed, files, tmp_path):
    """Where only signed modules load, an unsigned install is refused, both ways out are named."""
    root = machine(tmp_path, files)
    done = run(PACKAGING / "check-host", "signing", SYSROOT=root)
    if signed:
        refused(done, "Secure Boot", "sudo make dkms", "mokutil --import", "MOK_KEY=")
    else:
        assert (done.returncode, done.stdout) == (0, "")


def test_install_asks_about_secure_boot(tmp_path):
    """`make install` is refused before it builds, `make dkms` is not: DKMS signs."""
    root = machine(tmp_path, {LOCKDOWN: "none [integrity]\n"})
    variables = {"SYSROOT": root, "PATH": user(tmp_path, 0)}
    done = run("make", "-C", FOLDER, f"OUT={tmp_path / 'out'}", "install", **variables)
    refused(done, "Secure Boot")
    assert not (tmp_path / "out").exists()
    assert "Secure Boot" not in run("make", "-n", "-C", FOLDER, "dkms", **variables).stdout


@needs_headers
def test_missing_dkms_is_named(tmp_path):
    """Without DKMS the package is named."""
    where = [f"KDIR={TREE}", f"DKMS={tmp_path / 'absent'}", f"DKMS_SRC={tmp_path}"]
    done = run("make", "-C", FOLDER, *where, "dkms", PATH=user(tmp_path, 0))
    refused(done, "apt install dkms")
