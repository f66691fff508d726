# SPDX-License-Identifier: GPL-2.0-only
"""What points are made of: lab kernel, modules and tools, each built once and named by content."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lab.algorithms import ALGORITHMS
from lab.errors import BadInput, LabError, unknown

PROJECT = Path(__file__).resolve().parents[2]
TESTBED = PROJECT / "testbed"
BUILD = PROJECT / "build"
MODULE_SOURCES = PROJECT / "tcp_veno_jitter"
# What a result depends on besides the guest's own part: how it is run and what is made of it.
RESULT_SOURCES = (
    "topologies.py",
    "links.py",
    "metrics.py",
    "stats.py",
    "algorithms.py",
    "backends/virtual.py",
)
TOOL_SOURCES = TESTBED / "traffic"


def run_cmd(command: list[str], what: str, **options) -> str:
    """Run COMMAND and return its standard output; LabError with its complaint if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        raise LabError(f"{what}: no command {command[0]}; run 'testbed/setup packages'") from None
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise LabError(f"{what} failed ({' '.join(map(str, command))}):\n{tail}")
    return done.stdout


def hash_files(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Path, *patterns: str) -> list[Path]:
    return [
        path
        for pattern in patterns
        for path in folder.rglob(pattern)
        if "tests" not in path.relative_to(folder).parts
    ]


@contextmanager
def _locked(path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Build:
    """A lab kernel and, in STAGE, its module tree (with ours) and the tools."""

    kernel: Path

    @property
    def kernel_key(self) -> str:
        return self.kernel.name

    @property
    def release(self) -> str:
        return (self.kernel / "release").read_text().strip()

    @property
    def linux(self) -> Path:
        return self.kernel / "obj" / "linux"

    @cached_property
    def _modules_key(self) -> str:
        return hash_files(_sources(MODULE_SOURCES, "*.c", "*.h", "Kbuild", "Makefile"))

    @cached_property
    def _lab_key(self) -> str:
        lab = [TESTBED / "lab" / name for name in RESULT_SOURCES]
        guest = _sources(TESTBED / "lab" / "guest", "*.py", "init")
        return hash_files([*lab, *guest, *_sources(TOOL_SOURCES, "*.c", "*.h", "Makefile")])

    @cached_property
    def stage(self) -> Path:
        return BUILD / "stage" / f"{self.kernel_key}-{self._modules_key}-{self._lab_key}"

    def key(self, algorithms: set[str]) -> str:
        """Name what a point with these ALGORITHMS depends on; ours count only where they run."""
        ours = any(ALGORITHMS[name].ours for name in algorithms)
        return "-".join([self.kernel_key, self._lab_key] + [self._modules_key] * ours)

    def make_stage(self) -> None:
        """Build what is missing and lay it out as the guest expects it."""
        with _locked(BUILD / "stage.lock"):
            if (self.stage / "complete").exists():
                return
            shutil.rmtree(self.stage, ignore_errors=True)
            self.stage.mkdir(parents=True)
            modules = BUILD / "modules" / f"um-{self.kernel_key}"
            run_cmd(
                ["make", "-C", str(MODULE_SOURCES), "ARCH=um", f"KDIR={self.kernel / 'obj'}",
                 f"OUT={modules}", "all"],
                "building the modules",
            )  # fmt: skip
            run_cmd(
                ["make", "-C", str(TOOL_SOURCES), f"OUT={self.stage / 'bin'}"],
                "building the traffic tools",
            )
            self._stage_modules(modules)
            (self.stage / "complete").touch()

    def _stage_modules(self, modules: Path) -> None:
        tree = self.stage / "lib" / "modules" / self.release
        skip = shutil.ignore_patterns("build", "source")
        built = self.kernel / "obj" / "root" / "lib" / "modules" / self.release
        shutil.copytree(built, tree, ignore=skip)
        (tree / "updates").mkdir()
        for module in modules.glob("*.ko"):
            shutil.copy2(module, tree / "updates")
        environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        run_cmd(["depmod", "-b", str(self.stage), self.release], "depmod", env=environment)

    def check_parameters(self, modules: dict[str, dict[str, int]]) -> None:
        """Refuse a scenario's module parameters that the built modules do not have."""
        for algorithm, values in modules.items():
            module = next(self.stage.rglob(f"tcp_{algorithm}.ko"))
            text = run_cmd(["/sbin/modinfo", "-F", "parm", str(module)], "modinfo")
            known = dict(line.split(":", 1) for line in text.splitlines())
            for name, value in values.items():
                if name not in known:
                    raise unknown(f"parameter of {algorithm}:", name, known)
                limits = re.search(r"\((\d+)-(\d+)\)", known[name])
                if limits and not int(limits[1]) <= value <= int(limits[2]):
                    raise BadInput(
                        f"modules.{algorithm}.{name} = {value}: between {limits[1]} and {limits[2]}"
                    )

    def srcversions(self) -> dict[str, str]:
        """Return the srcversion of each module of ours, as modinfo gives it."""
        versions = {}
        for module in sorted((self.stage / "lib/modules" / self.release / "updates").glob("*.ko")):
            text = run_cmd(["/sbin/modinfo", "-F", "srcversion", str(module)], "modinfo")
            versions[module.stem] = text.strip()
        return versions


def prepare() -> Build:
    """Set up and build what is missing, showing progress on this terminal; return the build."""
    for step in ("packages", "kernel"):
        status = subprocess.run([TESTBED / "setup", step]).returncode
        if status:  # it has said why
            raise BadInput("") if status == 2 else LabError("")
    paths = dict(
        line.split("=", 1)
        for line in run_cmd([str(TESTBED / "setup"), "paths"], "testbed/setup").splitlines()
    )
    build = Build(Path(paths["kernel"]))
    build.make_stage()
    return build
