# SPDX-License-Identifier: GPL-2.0-only
"""Modules that a user brings: built against the kernel in use, loaded once to see what they are.

A file tcp_mine.ko, a folder with a Kbuild (or a Makefile that sets obj-m), or one file tcp_mine.c.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.ask.algorithms import KERNEL_MODULE_PREFIX, NAME_MAX
from lab.ask.flows import OFFERED
from lab.ask.points import Point
from lab.common.errors import BadInput, LabError, unknown, writing
from lab.run import build as builds
from lab.run.backends.base import Backend, Offered
from lab.run.build import Build, UserModule
from lab.run.runs import SHOWN

KBUILDS = ("Kbuild", "Makefile")  # the kernel's own order
HOST = "host-"  # begins the key of this machine's kernel
TAKEN = re.compile(r"(\S+) already registered or non-unique key")  # the kernel's log
KEPT = "modules"  # the folder in a run's, with their sources
SOURCES = (".c", ".h", ".S", *KBUILDS)


@dataclass(frozen=True)
class Refused:
    """A user's module that cannot be used. LOG: what the compiler or the kernel said."""

    path: str
    complaint: str
    log: str = ""

    def line(self) -> str:
        return f"module {self.path}: {self.complaint}"

    def keep_log(self) -> str:
        """Write all that was said into a file; return the line, which names it."""
        if not self.log:
            return self.line()
        path = builds.BUILD / "user" / f"{Path(self.path).stem}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.log)
        return f"{self.line()} (all of it: {path})"


def add(backend: Backend, paths: Iterable[str]) -> list[Refused]:
    """Build and load what is at PATHS; let BACKEND have it. Returns what cannot be used."""
    refused = []
    for path in paths:
        try:
            for module in _made(path, backend.build.kernel):
                offered = backend.offer(module)
                if complaint := _complaint(offered):
                    refused.append(Refused(path, complaint, offered.log))
                    continue
                user = (*backend.build.user, replace(module, algorithms=offered.algorithms))
                backend.build = replace(backend.build, user=user)
        except BuildError as error:
            refused.append(Refused(path, *error.args))
    return refused


def _complaint(offered: Offered) -> str:
    """Return what is wrong with a module by what the kernel said of it; nothing if it is good."""
    if any(len(name) > NAME_MAX for name in offered.algorithms):  # what follows it was read, too
        return f".name is longer than {NAME_MAX} characters"
    taken = TAKEN.search(offered.log)
    if taken and "the kernel has already" in offered.complaint:
        return f"it registers '{taken[1]}', a name that the kernel has already"
    return offered.complaint


def check(backend: Backend, points: list[Point]) -> None:
    """Refuse what BACKEND cannot run; tell how an algorithm that is not there may come."""
    try:
        backend.check(points)
    except BadInput:
        build = backend.build
        lacking = [name for name in backend.unknown_modules(points) if not build.kernel.has(name)]
        if not lacking or build.user:
            raise
        name = lacking[0].removeprefix(KERNEL_MODULE_PREFIX)
        known = {*OFFERED, *build.kernel.algorithms()}
        error = unknown(f"algorithm of Linux {build.kernel.release}", name, known)
        own = "" if build.kernel.key.startswith(HOST) else "; one of your own: --module FILE.c"
        raise BadInput(f"{error}{own}") from None


def idle(build: Build, points: list[Point]) -> list[UserModule]:
    """Return those of the user's modules that no flow of POINTS has an algorithm of; refuse them
    where no flow has any algorithm, whatever is listed."""
    used = {flow["algorithm"] for point in points for flow in point.spec["flows"]}
    if build.user and not used:
        brought = ", ".join(module.file.name for module in build.user)
        raise BadInput(f"{brought}: no flow to be in, as all are UDP: leave --module out")
    return [module for module in build.user if not used & {*module.algorithms}]


def addressed(build: Build, points: list[Point]) -> list[Point]:
    """Return POINTS in which a parameter of a user's module is named by its file, wherever a guest
    would not find it: it looks in tcp_NAME, as the kernel itself calls an algorithm's module, and
    what is joined to that folder may be a whole path. Other points stay, and so do their ids."""
    folders = {
        algorithm: f"/sys/module/{module.name}/parameters"
        for module in build.user
        for algorithm in module.algorithms
        if module.name != f"{KERNEL_MODULE_PREFIX}{algorithm}"
    }

    def found(point: Point) -> Point:
        modules = point.spec["modules"]
        if not modules.keys() & folders.keys():
            return point
        named = {
            algorithm: {f"{folders[algorithm]}/{name}": value for name, value in of.items()}
            if algorithm in folders
            else of
            for algorithm, of in modules.items()
        }
        return replace(point, spec=point.spec | {"modules": named})

    return [found(point) for point in points]


def keep(build: Build, folder: Path) -> list[dict[str, Any]]:
    """Copy the sources of the user's modules into the FOLDER of a run; return what it says of each
    module. Each version has a place of its own, as a run may be resumed with another one."""
    found = []
    for module in build.user:
        told: dict[str, Any] = {
            "name": module.name,
            "algorithms": list(module.algorithms),
            "srcversion": builds.modinfo(module.file, "srcversion"),
            "sha256": module.sha256,
        }
        if module.sources:
            told["source"] = f"{KEPT}/{module.name}-{module.sha256[:SHOWN]}"
        for name in module.sources:
            copy = folder / told["source"] / name
            with writing(copy, "free space or choose --out"):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(module.folder / name, copy)
        found.append(told)
    return found


class BuildError(Exception):
    """A module does not build: one line, and all that the compiler said."""


def _made(text: str, kernel: builds.Kernel) -> list[UserModule]:
    """Return the modules of the file or folder TEXT, built if they are sources."""
    path = Path(text)
    if kernel.key.startswith(HOST):
        raise BadInput("--module goes with kernels that are booted: on this machine, insmod it")
    if path.is_file() and path.suffix == ".ko":
        return [_checked(path, kernel)]
    if path.is_file() and path.suffix == ".c":
        if not re.fullmatch(r"[\w-]+", path.stem, re.ASCII):
            raise BadInput(f"--module {text}: letters, digits, _ and - are what its name may have")
        return _built(path.parent, [path], f"obj-m := {path.stem}.o\n", kernel)
    if path.is_dir() and any((path / name).is_file() for name in KBUILDS):
        files = [p for p in sorted(path.rglob("*")) if p.is_file() and p.name.endswith(SOURCES)]
        return _built(path, files, "", kernel)
    if path.is_dir():
        raise BadInput(f"--module {text}: no Kbuild in this folder; a line 'obj-m := NAME.o' does")
    if path.exists():
        raise BadInput(f"--module {text}: give a .ko, a .c, or a folder with a Kbuild")
    raise BadInput(f"--module {text}: there is no such file or folder")


def _checked(path: Path, kernel: builds.Kernel) -> UserModule:
    """Return a module that is built, if it is for KERNEL."""
    try:
        magic = builds.modinfo(path, "vermagic").split()
    except LabError:
        raise BadInput(f"--module {path}: this is no kernel module") from None
    if not magic or magic[0] != kernel.release:
        raise BadInput(
            f"--module {path}: it is built for Linux {' '.join(magic[:1]) or '(unknown)'}, this is"
            f" {kernel.release}: give the folder of its source"
        )
    return UserModule(path.resolve(), f"user-{builds.hash_files([path])}")


def _built(folder: Path, files: list[Path], kbuild: str, kernel: builds.Kernel) -> list[UserModule]:
    """Build FILES of FOLDER for KERNEL, with the text KBUILD if the folder has none of its own."""
    digest = hashlib.sha256((kbuild + kernel.key).encode())
    for file in files:
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    key = digest.hexdigest()[:12]
    out = builds.BUILD / "user" / key
    with builds.locked(builds.BUILD / "user.lock"):
        for file in files:
            copy = out / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        if kbuild:
            (out / "Kbuild").write_text(kbuild)
        said, built = _kbuild(out, kernel)
    if not built:
        raise BuildError(_first_error(said.replace(f"{out}/", "")), said)
    names = tuple(file.relative_to(folder) for file in files)
    return [
        UserModule(module, f"user-{key}-{module.stem}", folder=out, sources=names)
        for module in built
    ]


def _kbuild(out: Path, kernel: builds.Kernel) -> tuple[str, list[Path]]:
    """Build what is in the folder OUT; return what was said, and the modules if all is well."""
    command = ["make", "-C", str(kernel.tree), f"M={out}", "modules"]
    command += [f"ARCH={kernel.arch}"] if kernel.arch else []
    if kernel.sysroot:
        enter = builds.TESTBED / "kernels" / "in-sysroot"
        command = [str(enter), str(kernel.sysroot), str(builds.PROJECT), *command]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    built = [] if done.returncode else sorted(out.rglob("*.ko"))
    return done.stdout + done.stderr, built


def _first_error(said: str) -> str:
    """Return the line of a build's output that says why it failed."""
    for pattern in (r"^.*error: .*$", r"^ERROR: .*$", r"^.*\*\*\* .*$"):
        if found := re.search(pattern, said, re.MULTILINE):
            return f"it does not build: {found[0].strip()}"
    return "it does not build: no .ko came of it; does its Kbuild set obj-m?"
