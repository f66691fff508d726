# SPDX-License-Identifier: GPL-2.0-only
"""The command `veno-lab doctor`: what this machine can do, and the one command for what is missing.

It looks and changes nothing, and needs Python's standard library alone, since it is for machines on
which nothing is set up yet. One that is too old for the lab reads this file, too.
"""

from __future__ import annotations

import argparse
import os
import platform
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TESTBED = Path(__file__).resolve().parents[2]
GUEST_MB, VM_MB, BUILD_MB = 384, 768, 2000  # of memory, of memory, of disk
PYTHON = "/usr/bin/python3"  # the system's, for which Mininet is
NEWER = "a machine or a container with Debian 12, Ubuntu 24.04 or newer"
COMMAND_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
CAP_SYS_MODULE = 16
NETEM = "sch_netem"
CHECK_HOST = TESTBED.parent / "tcp_veno_jitter" / "packaging" / "check-host"  # what make asks
OTHER_KERNEL = "a distribution's kernel; in a container the host must load modules"
DESCRIPTION = (
    "Say what this machine can do, and the one command for what is missing. Nothing is changed."
    " Exit status: 0 experiments in virtual time can start, 1 something is missing."
)
EXAMPLES = """Examples:
  testbed/veno-lab doctor
  sudo testbed/veno-lab doctor    what root can do"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. CURE: the one command for it, or what helps instead."""

    what: str
    good: bool
    told: str
    cure: str = ""


@dataclass(frozen=True)
class Use:
    """Something that one may want of this machine, and all that it needs."""

    title: str
    findings: list[Finding]

    @property
    def good(self) -> bool:
        return all(finding.good for finding in self.findings)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": COMMAND_PATH}


def output(*command: str) -> str:
    """Return what COMMAND prints, nothing if it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=_environment())
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def has_command(name: str) -> bool:
    return shutil.which(name, path=COMMAND_PATH) is not None


def has_packages(*names: str) -> Finding:
    """Look for Debian packages, all of which are missing where there is no dpkg."""
    status = output("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names)
    if not status:  # one that dpkg has never heard of makes it fail
        shown = ("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}")
        status = "\n".join(output(*shown, name) for name in names)
    have = [line.split()[0] for line in status.splitlines() if line.endswith(" installed")]
    missing = [name for name in names if name not in have]
    told = f"missing: {', '.join(missing)}" if missing else "all installed"
    return Finding("packages", not missing, told)


def setup_paths(*of: str) -> dict[str, str]:
    said = output(str(TESTBED / "setup"), "paths", *of)
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)


def memory_mb() -> int:
    """Return how much memory is free for programs."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def room_mb(folder: Path) -> int:
    """Return how much is free where FOLDER is, or will be."""
    while not folder.exists():
        folder = folder.parent
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize >> 20


def processor() -> Finding:
    machine, cores = platform.machine(), len(os.sched_getaffinity(0))
    good = machine == "x86_64"
    cure = "" if good else "another machine: User Mode Linux and the vm backend are for x86-64"
    return Finding("processor", good, f"{machine}, {cores} cores", cure)


def memory(guest_mb: int) -> Finding:
    free = memory_mb()
    told = f"{free} MB free, {guest_mb} for each of {len(os.sched_getaffinity(0))} points at once"
    few = max(1, free // guest_mb)
    cure = "" if free >= guest_mb * len(os.sched_getaffinity(0)) else f"--jobs {few}"
    return Finding("memory", free >= guest_mb, told, cure)


def guests_room() -> Finding:
    """Is there a folder in memory that allows programs, as lab.run.backends.base looks for one?"""
    for name in filter(None, (os.environ.get("TMPDIR"), "/dev/shm", "/tmp")):
        with suppress(OSError):
            noexec = os.statvfs(name).f_flag & os.ST_NOEXEC
            if room_mb(Path(name)) >= GUEST_MB and os.access(name, os.W_OK) and not noexec:
                return Finding("room for guests", True, f"{name}, {room_mb(Path(name))} MB")
    return Finding(
        "room for guests", False, f"no folder that allows exec with {GUEST_MB} MB",
        "export TMPDIR=FOLDER   (one that has it)",
    )  # fmt: skip


def packages() -> Finding:
    """The Debian packages that testbed/setup wants."""
    if not has_command("dpkg-query"):
        return Finding("packages", False, "this is no Debian system",
                       "testbed/setup packages   (names what to install instead)")  # fmt: skip
    missing = output(str(TESTBED / "setup"), "missing").split()
    told = f"missing: {', '.join(missing)}" if missing else "all installed"
    return Finding("packages", not missing, told, "testbed/setup packages" if missing else "")


def cache() -> Finding:
    """May this user keep what testbed/setup makes where that goes?"""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("LAB_CACHE") or Path(base) / "veno-jitter")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    good = there.is_dir() and os.access(there, os.W_OK)
    cure = "" if good else "export LAB_CACHE=FOLDER   (one that you can write)"
    return Finding("cache", good, f"{folder}{'' if good else ': not writable'}", cure)


def built(what: str, folder: str, step: str, needs_mb: int = 0) -> Finding:
    """Is what testbed/setup STEP makes in FOLDER there?"""
    if folder and (Path(folder) / "complete").exists():
        return Finding(what, True, "built")
    told, command = "not built yet", f"testbed/setup {step}"
    if needs_mb and folder and room_mb(Path(folder)) < needs_mb:
        told += f", and {room_mb(Path(folder))} MB of disk are free; {needs_mb} are needed"
        command = f"export LAB_CACHE=FOLDER; {command}"
    return Finding(what, False, told, command)


def interpreter() -> Finding:
    """Is the system's Python as new as the lab's modules need it?"""
    project = (TESTBED / "pyproject.toml").read_text()
    needed = re.search('requires-python = ">=(.*)"', project).group(1)
    have = output(PYTHON, "-V").replace("Python ", "")
    if not have:
        return Finding("Python", False, f"no {PYTHON}", "testbed/setup packages")
    good = _release(have) >= _release(needed)
    return Finding("Python", good, have if good else f"{have}, and {needed} or newer is needed",
                   "" if good else NEWER)  # fmt: skip


def _release(version: str) -> list[int]:
    """Return what 3.11.2 begins with, 3 and 11."""
    return [int(part) for part in version.split(".")[:2]]


def virtual_lab() -> Use:
    paths = setup_paths()
    return Use(
        "Experiments in virtual time (testbed/run SCENARIO)",
        [
            interpreter(),
            processor(),
            memory(GUEST_MB),
            guests_room(),
            packages(),
            cache(),
            built("Python environment", paths.get("venv", ""), "python"),
            built("lab kernel", paths.get("kernel", ""), "kernel", BUILD_MB),
        ],
    )


def debug_kernel() -> Use:
    kernel = setup_paths("debug").get("kernel", "")
    return Use(
        "The kernel that checks itself (--kernel debug)",
        [built("debug kernel", kernel, "kernel debug", BUILD_MB)],
    )


def wireless() -> Use:
    found = has_packages("libns3-dev")
    cure = "" if found.good else "testbed/setup medium"
    return Use(
        "Wireless chains (testbed/run wireless-hops)",
        [Finding("ns-3", found.good, found.told, cure)],
    )


def vm() -> Use:
    qemu = has_command("qemu-system-x86_64")
    cache = setup_paths().get("cache", "")
    kernels = sorted(path.parent.name for path in Path(cache).glob("vm/*/complete"))
    return Use(
        "A distribution's kernel (--backend vm)",
        [
            Finding("QEMU", qemu, "installed" if qemu else "not installed",
                    "" if qemu else "testbed/setup vm"),
            Finding("kernels", bool(kernels), ", ".join(kernels) or "none fetched yet",
                    "" if kernels else "testbed/setup vm"),
            memory(VM_MB),
        ],
    )  # fmt: skip


def kvm() -> Use:
    device = Path("/dev/kvm")
    if not device.exists():
        told, cure = "no /dev/kvm", "a host with virtualisation; without it QEMU emulates: slower"
    elif not os.access(device, os.R_OK | os.W_OK):
        told, cure = (
            "/dev/kvm may not be used",
            f"sudo usermod -aG kvm {pwd.getpwuid(os.getuid()).pw_name}",
        )
    else:
        told, cure = "/dev/kvm may be used", ""
    return Use("Fast paths there (VM_CLOCK=real)", [Finding("KVM", not cure, told, cure)])


def loads_modules() -> bool:
    return Path("/proc/modules").exists()


def may_load_modules() -> bool:
    """Say whether this process has the capability to load modules."""
    with suppress(OSError, StopIteration):
        status = Path("/proc/self/status").read_text().splitlines()
        effective = next(line for line in status if line.startswith("CapEff:")).split()[1]
        return bool(int(effective, 16) >> CAP_SYS_MODULE & 1)
    return False


def module(name: str) -> bool:
    """Say whether this machine's kernel has the module NAME. It is not loaded."""
    if Path("/sys/module", name).is_dir():
        return True
    return subprocess_ok("modprobe", "--dry-run", "--quiet", name)


def subprocess_ok(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, env=_environment()).returncode == 0
    except OSError:
        return False


def namespaces() -> Finding:
    good = subprocess_ok("unshare", "--net", "--mount", "--pid", "--fork", "true")
    cure = "" if good else "sudo, or a container that may (--cap-add SYS_ADMIN)"
    return Finding("namespaces", good, "may be made" if good else "may not be made", cure)


def module_rights() -> Finding:
    if not loads_modules():
        return Finding("modules", False, "the running kernel loads no modules", OTHER_KERNEL)
    good = may_load_modules()
    told = "may be loaded" if good else "may not be loaded by this user"
    return Finding("modules", good, told, "" if good else "sudo; in a container the host must")


def refusal(*question: str) -> str:
    """Return why `make` of the modules would refuse, in its own words; nothing if it would not."""
    try:
        done = subprocess.run(
            ["sh", str(CHECK_HOST), *question], capture_output=True, text=True, env=_environment()
        )
    except OSError as error:
        return f"sh: {error.strerror}"
    return done.stderr.strip().partition(": ")[2] if done.returncode else ""


def headers() -> Finding:
    release = platform.release()
    told, _, cure = refusal("build", f"/lib/modules/{release}/build").partition(": ")
    if not told:
        return Finding("headers", True, f"of {release}: there")
    if not loads_modules():
        return Finding("headers", False, f"of {release}: missing", OTHER_KERNEL)
    return Finding("headers", False, told, cure)


def signatures() -> Finding:
    """Does the kernel take signed modules only (Secure Boot with lockdown)?"""
    signs = "signed modules only: dkms signs, enrol its key once (docs/install.md#secure-boot)"
    told = signs if refusal("signing") else "unsigned modules are taken"
    return Finding("signatures", True, told)


def netem() -> Finding:
    good = module(NETEM)
    cure = f"apt-get install linux-modules-extra-{platform.release()}   (Ubuntu), or another kernel"
    told = f"{NETEM} {'there' if good else 'missing'}"
    return Finding("netem", good, told, "" if good else cure if loads_modules() else OTHER_KERNEL)


def host() -> Use:
    return Use(
        "Experiments on this machine's own kernel (--backend host)",
        [namespaces(), module_rights(), netem()],
    )


def modules() -> Use:
    compiler = has_command("gcc") and has_command("make")
    return Use(
        "The modules on this machine (sudo make dkms)",
        [
            Finding("compiler", compiler, "gcc and make" if compiler else "missing",
                    "" if compiler else "apt-get install build-essential"),
            Finding("dkms", has_command("dkms"), "there" if has_command("dkms") else "missing",
                    "" if has_command("dkms") else "apt-get install dkms"),
            headers(),
            module_rights(),
            signatures(),
        ],
    )  # fmt: skip


USES: tuple[Callable[[], Use], ...] = (
    virtual_lab, wireless, vm, kvm, host, modules, debug_kernel,
)  # fmt: skip


def page(uses: list[Use]) -> Iterator[str]:
    """Give the lines that are printed."""
    for use in uses:
        yield f"{'yes' if use.good else 'no ':3}  {use.title}"
        width = max(len(finding.what) for finding in use.findings)
        for finding in use.findings:
            mark = "  " if finding.good else "! "
            yield f"     {mark}{finding.what:{width}}  {finding.told}"
            if finding.cure:
                yield f"       {'':{width}}  -> {finding.cure}"
        yield ""


def look() -> int:
    """Print what this machine can do; return 0 if experiments in virtual time can start."""
    uses = [use() for use in USES]
    print("\n".join(page(uses)), end="")
    lab = uses[0]
    if lab.good:
        print("\nReady: make demo")
        return 0
    cures = list(dict.fromkeys(finding.cure for finding in lab.findings if not finding.good))
    ours = all(cure.startswith("testbed/setup ") for cure in cures)
    print(f"\nNot ready: {'testbed/setup   (all of it), or make demo' if ours else cures[0]}")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="testbed/veno-lab doctor",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `doctor | head` is no error
    return look()


if __name__ == "__main__":
    sys.exit(main())
