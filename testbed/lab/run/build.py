# SPDX-License-Identifier: GPL-2.0-only
"""What points are made of: lab kernel, modules and tools, each built once and named by content."""

import fcntl
import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lab.ask.algorithms import ALGORITHMS, KERNEL_MODULE_PREFIX
from lab.common.errors import BadInput, LabError, unknown

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "testbed"
# a package has no room beside its sources (testbed/packaging/wrapper)
BUILD = Path(os.environ.get("LAB_BUILD") or PROJECT / "build")
MODULE_SOURCES = PROJECT / "tcp_veno_jitter"
SCTP_SOURCES = PROJECT / "sctp_jitter"
TFRC_SOURCES = PROJECT / "tfrc_uddj_user"
# What a result depends on besides the guest's own part: how it is run and what is made of it.
RESULT_SOURCES = (
    "ask/topologies.py",
    "ask/links.py",
    "ask/qdiscs.py",
    "ask/lablink.py",
    "ask/carries.py",
    "ask/linktraces.py",
    "ask/linkmodels.py",
    "ask/seeds.py",
    "measure/metrics.py",
    "measure/packets.py",
    "measure/transients.py",
    "measure/trace.py",
    "measure/truth.py",
    "measure/ratios.py",
    "measure/stats.py",
    "ask/medium.py",
    "ask/wifi.py",
    "ask/algorithms.py",
    "run/backends/base.py",
)
REFUSED = 2  # how prepare-source ends where the user has to change something
TOOL_SOURCES = TESTBED / "traffic"
MEDIUM_SOURCES = TESTBED / "medium"
LABLINK_SOURCES = TESTBED / "lablink"


def run_cmd(command: list[str | Path], what: str, **options) -> str:
    """Run COMMAND and return its standard output; LabError with its complaint if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        raise LabError(f"{what}: no command {command[0]}; run 'testbed/setup packages'") from None
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise LabError(f"{what} failed ({' '.join(map(str, command))}):\n{tail}")
    return done.stdout


def make(sources: Path, what: str, *arguments: str, within: Sequence[str | Path] = ()) -> None:
    """Run make in the folder SOURCES, by the command WITHIN if there is one, on all processors."""
    command = ["make", "-C", str(sources), f"-j{len(os.sched_getaffinity(0))}", *arguments]
    run_cmd([*within, *command], f"building {what}")


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
        if not {"tests", "netdev"} & {*path.relative_to(folder).parts}
    ]


@contextmanager
def locked(path: Path):
    """Within the block, no other process is in one with the same PATH."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Kernel:
    """A kernel that points run on. KEY: its name, with all that it was made of."""

    key: str
    release: str
    image: Path
    tree: Path  # modules are built against it
    modules: Path  # lib/modules/RELEASE: those that belong to it
    arch: str = ""  # ARCH= for a build, if it is not this machine's
    source: Path | None = None  # what it was built from, if SCTP is to be patched; in SYSROOT
    sysroot: Path | None = None  # the root that TREE is in, with its own compiler

    @cached_property
    def _own_modules(self) -> set[str]:
        built_in = self.modules / "modules.builtin"
        names = built_in.read_text().split() if built_in.exists() else []
        names += map(str, self.modules.rglob("*.ko*"))
        return {Path(name).name.split(".")[0] for name in names}

    def has(self, module: str) -> bool:
        """Say whether the MODULE belongs to it, or is built in."""
        return module in self._own_modules

    def algorithms(self) -> list[str]:
        """Return the names of TCP's algorithms that it has as modules."""
        prefix = KERNEL_MODULE_PREFIX
        names = {name.removeprefix(prefix) for name in self._own_modules if name.startswith(prefix)}
        return sorted(names - {"diag"})


def modinfo(file: Path | str, field: str) -> str:
    """Return what a module's FILE says of itself in FIELD; nothing if it has none."""
    return run_cmd(["/sbin/modinfo", "-F", field, file], "modinfo").strip()


@dataclass(frozen=True)
class UserModule:
    """A module that a user brings: FILE, and by what its results are told apart, KEY. SOURCES: what
    it was built from here, if it was, by their names in FOLDER."""

    file: Path
    key: str
    algorithms: tuple[str, ...] = ()  # those that it registers
    folder: Path = Path()
    sources: tuple[Path, ...] = ()

    @cached_property
    def name(self) -> str:
        """What the kernel calls it, whatever its file and its algorithms are called."""
        return modinfo(self.file, "name") or self.file.stem.replace("-", "_")

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.file.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Build:
    """A kernel and, in STAGE, its module tree (with ours) and the tools. MACHINE: what results
    depend on besides, if there is a choice: the clock, how many processors."""

    kernel: Kernel
    backend: str
    machine: str = ""
    user: tuple[UserModule, ...] = ()

    def user_modules(self, algorithms: Iterable[str]) -> list[UserModule]:
        """Return the user's modules that have one of these ALGORITHMS."""
        return [module for module in self.user if {*module.algorithms} & {*algorithms}]

    @cached_property
    def _modules_key(self) -> str:
        return hash_files(_sources(MODULE_SOURCES, "*.c", "*.h", "Kbuild", "Makefile"))

    @cached_property
    def _sctp_key(self) -> str:
        estimators = MODULE_SOURCES / "estimators"
        names = ("*.patch", "series", "prepare-source", "*.c", "*.h", "Kbuild", "Makefile")
        ours = _sources(SCTP_SOURCES, *names)
        return hash_files([*ours, *_sources(estimators, "*.h")])

    @cached_property
    def _tfrc_key(self) -> str:
        return hash_files(_sources(TFRC_SOURCES, "*.c", "*.h", "Makefile"))

    @cached_property
    def _lab_key(self) -> str:
        names = (*RESULT_SOURCES, f"run/backends/{self.backend}.py")
        lab = [TESTBED / "lab" / name for name in names]
        guest = _sources(TESTBED / "lab" / "run" / "guest", "*.py", "init")
        return hash_files([*lab, *guest, *_sources(TOOL_SOURCES, "*.c", "*.h", "Makefile")])

    @cached_property
    def _lablink_key(self) -> str:
        return hash_files(_sources(LABLINK_SOURCES, "*.c", "Kbuild", "Makefile"))

    @cached_property
    def stage(self) -> Path:
        keys = [self.kernel.key, self._modules_key, self._lab_key, self._tfrc_key]
        keys.append(self._lablink_key)
        return BUILD / "stage" / "-".join(keys + [self._sctp_key] * self.patches_sctp)

    @property
    def patches_sctp(self) -> bool:
        return not self.no_sctp_because

    @cached_property
    def no_sctp_because(self) -> str:
        """Say why this kernel's SCTP cannot be patched; nothing if it can. Asked once for a kernel
        and these patches: a tree of one's own may be newer than they are, or have them."""
        source = self.kernel.source
        if source is None:
            return "there is no source of it"
        answer = self._sctp_answer
        if not answer.exists():
            if self.kernel.sysroot:
                source = self.kernel.sysroot / source.relative_to("/")
            with tempfile.TemporaryDirectory() as folder:
                prepare = SCTP_SOURCES / "packaging" / "prepare-source"
                command = [prepare, "patch", "", source, Path(folder, "out")]
                done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode not in (0, REFUSED):
                raise LabError(f"{prepare} failed:\n{done.stderr}")
            said = done.stderr.splitlines()[-1].partition(": ")[2] if done.returncode else ""
            answer.parent.mkdir(parents=True, exist_ok=True)
            part = answer.with_suffix(f".{os.getpid()}")
            part.write_text(said)
            part.replace(answer)
        return answer.read_text()

    @property
    def _sctp_answer(self) -> Path:
        return BUILD / "sctp" / f"{self.kernel.key}-{self._sctp_key}.answer"

    @property
    def is_made(self) -> bool:
        """Whether there is all that make_stage() would build, as far as can be seen without
        building anything."""
        answered = self._sctp_answer.exists() or not self.kernel.source
        return answered and (self.stage / "complete").exists()

    def key(self, algorithms: set[str], wireless: bool = False, lablinks: bool = False) -> str:
        """Name what a point with these ALGORITHMS depends on; ours count only where they run, the
        medium, which is built by that, where it is WIRELESS, and lablink where there are some."""
        ours = {ALGORITHMS[name].transport for name in algorithms if ALGORITHMS[name].ours}
        keys = [self._modules_key] * ("tcp" in ours) + [self._sctp_key] * ("sctp" in ours)
        keys += [self._tfrc_key] * ("tfrc" in ours)
        if wireless:  # not before: it is installed and built when it is first asked for
            keys.append(self._medium_key)
        keys += [self._lablink_key] * lablinks
        keys += [module.key for module in self.user_modules(algorithms)]
        machine = [self.machine] * bool(self.machine)
        return "-".join([self.kernel.key, *machine, self._lab_key, *keys])

    @cached_property
    def _medium_key(self) -> str:
        """Lay labmedium out for the guest, building what is missing; return its name."""
        setup("medium")
        folder = medium_folder()
        with locked(BUILD / "medium.lock"):
            if not (folder / "labmedium").exists():
                print(
                    "building the wireless medium, once for these sources (a minute or two)",
                    file=sys.stderr,
                    flush=True,
                )
            make(MEDIUM_SOURCES, "the wireless medium", f"OUT={folder}")
            staged = self.stage / "bin" / "labmedium"
            if not (staged.exists() and filecmp.cmp(folder / "labmedium", staged)):
                part = BUILD / "labmedium.part"  # not in the stage: others may be packing that
                shutil.copy2(folder / "labmedium", part)
                part.replace(staged)
        return folder.name

    def offer_medium(self) -> None:
        """Lay labmedium out if ns-3 is installed: who knows what a user's command will start."""
        if ns3_version():
            _ = self._medium_key

    def make_stage(self) -> None:
        """Build what is missing and lay it out as the guest expects it."""
        with locked(BUILD / "stage.lock"):
            if (self.stage / "complete").exists():
                return
            print(
                f"building modules and tools for Linux {self.kernel.release}, once for these"
                " sources (a minute or two)",
                file=sys.stderr,
                flush=True,
            )
            shutil.rmtree(self.stage, ignore_errors=True)
            self.stage.mkdir(parents=True)
            with ThreadPoolExecutor() as together:  # as each ends with a single process
                tools = f"OUT={self.stage / 'bin'}"
                others = [
                    together.submit(make, TOOL_SOURCES, "the traffic tools", tools),
                    together.submit(self._stage_tfrc),
                ]
                self._stage_modules(together)
                for other in others:
                    other.result()
            (self.stage / "complete").touch()

    def _stage_tfrc(self) -> None:
        out = BUILD / "tfrc"
        make(TFRC_SOURCES, "TFRC", f"OUT={out}", "tools")
        (self.stage / "bin").mkdir(exist_ok=True)
        for tool in ("tfrc-send", "tfrc-recv"):
            shutil.copy2(out / tool, self.stage / "bin")

    def _make(self, sources: Path, out: Path, what: str, *arguments: str) -> Path:
        """Build the modules of SOURCES for this kernel; return the folder they are in."""
        of_kernel = [f"KDIR={self.kernel.tree}", f"OUT={out}"]
        if self.kernel.arch:
            of_kernel.append(f"ARCH={self.kernel.arch}")
        enter: list[str | Path] = []
        if self.kernel.sysroot:
            enter = [TESTBED / "kernels" / "in-sysroot", self.kernel.sysroot, PROJECT]
        make(sources, what, *of_kernel, *arguments, "all", within=enter)
        return out

    def _make_modules(self) -> Path:
        return self._make(MODULE_SOURCES, BUILD / "modules" / self.kernel.key, "the modules")

    def _make_lablink(self) -> Path:
        out = BUILD / "lablink" / self.kernel.key
        return self._make(LABLINK_SOURCES, out, "the link whose rate changes")

    def _stage_modules(self, together: Executor) -> None:
        makes = [self._make_modules, self._make_lablink]
        makes += [self._make_sctp] * self.patches_sctp
        made = [together.submit(it) for it in makes]
        tree = self.stage / "lib" / "modules" / self.kernel.release
        shutil.copytree(self.kernel.modules, tree, ignore=shutil.ignore_patterns("build", "source"))
        (tree / "updates").mkdir()
        if self.patches_sctp:
            self._stage_stock()
        elif self.kernel.source:
            print(f"no patched SCTP, TCP only: {self.no_sctp_because}", file=sys.stderr, flush=True)
        for folder in made:
            for module in folder.result().rglob("*.ko"):
                shutil.copy2(module, tree / "updates")
        self._depmod(self.stage)

    def _depmod(self, root: Path) -> None:
        environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        run_cmd(["depmod", "-b", str(root), self.kernel.release], "depmod", env=environment)

    def _make_sctp(self) -> Path:
        """Build the patched SCTP and its algorithms; return the folder they are in."""
        out = BUILD / "sctp" / self.kernel.key
        source = f"SOURCE={self.kernel.source}"
        return self._make(SCTP_SOURCES, out, "the patched SCTP", source)

    def _stage_stock(self) -> None:
        """Lay out a tree of the kernel's own modules, whose SCTP is not patched."""
        root = self.stage / "stock"
        tree = root / "lib" / "modules" / self.kernel.release
        shutil.copytree(self.kernel.modules, tree, ignore=shutil.ignore_patterns("build", "source"))
        self._depmod(root)

    def check_parameters(self, modules: dict[str, dict[str, int]]) -> None:
        """Refuse a scenario's module parameters that the built modules do not have."""
        for algorithm, values in modules.items():
            files = self.parameter_files(algorithm)
            text = run_cmd(["/sbin/modinfo", "-F", "parm", *files], "modinfo")
            known = dict(line.split(":", 1) for line in text.splitlines())
            for name, value in values.items():
                if name not in known:
                    raise unknown(f"parameter of {algorithm}:", name, known)
                limits = re.search(r"\((\d+)-(\d+)\)", known[name])
                if limits and not int(limits[1]) <= value <= int(limits[2]):
                    raise BadInput(
                        f"modules.{algorithm}.{name} = {value}: between {limits[1]} and {limits[2]}"
                    )

    def parameter_files(self, algorithm: str) -> list[str]:
        """Return the modules that have the parameters of ALGORITHM, as modinfo takes them."""
        if user := self.user_modules([algorithm]):
            return [str(module.file) for module in user]
        names = ALGORITHMS[algorithm].parameter_modules
        if algorithm not in ALGORITHMS and not self.kernel.has(names[0]):
            raise BadInput(f"modules.{algorithm}: the kernel has no module of this algorithm")
        return list(map(self.module_file, names))

    def module_file(self, name: str) -> str:
        """Return where the module NAME is, as modinfo takes it."""
        tree = self.stage / "lib/modules" / self.kernel.release
        found = [*(tree / "updates").glob(f"{name}.ko"), *tree.rglob(f"{name}.ko")]
        return str(found[0])

    def our_modules(self) -> list[str]:
        """Return the names of the modules that this project brings."""
        ours = self.stage / "lib/modules" / self.kernel.release / "updates"
        return sorted(module.stem for module in ours.glob("*.ko"))

    def srcversions(self) -> dict[str, str]:
        """Return the srcversion of each module of ours, as modinfo gives it."""
        versions = {}
        for name in self.our_modules():
            versions[name] = modinfo(self.module_file(name), "srcversion")
        return versions


def setup(*step: str, **environment: str) -> None:
    """Run a step of testbed/setup, which shows its progress on this terminal."""
    done = subprocess.run([TESTBED / "setup", *step], env=os.environ | environment)
    if done.returncode:  # it has said why
        raise BadInput("") if done.returncode == 2 else LabError("")


def setup_paths(*of: str, **environment: str) -> dict[str, str]:
    """Return where testbed/setup put things; OF: a kernel's variant."""
    command = [TESTBED / "setup", "paths", *of]
    said = run_cmd(command, "testbed/setup", env=os.environ | environment)
    return dict(line.split("=", 1) for line in said.splitlines())


def medium_key() -> str:
    """Name what labmedium is made of: its sources and the ns-3 that is installed."""
    sources = _sources(MEDIUM_SOURCES, "*.cc", "*.h", "Makefile")
    return f"{hash_files(sources)}-{ns3_version() or 'unpackaged'}"


def ns3_version() -> str:
    """Return which ns-3 this machine has as a package; nothing if it has none."""
    told = ["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"]
    return subprocess.run(told, capture_output=True, text=True).stdout


def medium_folder() -> Path:
    """Return where labmedium is built."""
    return BUILD / "medium" / medium_key()


def uml_kernel(variant: str = "lab") -> Kernel:
    """Return the lab kernel, built if it is missing; VARIANT: kernels/VARIANT.config on top."""
    setup("packages")
    setup("kernel", variant)
    return _uml_kernel_in(Path(setup_paths(variant)["kernel"]))


def built_uml_kernel() -> Kernel | None:
    """Return the lab kernel if it has been built; nothing is."""
    try:
        folder = Path(setup_paths("lab").get("kernel", ""))
    except LabError:  # no source of it either
        return None
    return _uml_kernel_in(folder) if (folder / "complete").exists() else None


def _uml_kernel_in(folder: Path) -> Kernel:
    release = (folder / "release").read_text().strip()
    built = folder / "obj"
    return Kernel(
        key=f"um-{folder.name}",
        release=release,
        image=built / "linux",
        tree=built,
        modules=built / "root" / "lib" / "modules" / release,
        arch="um",
        source=folder / "source",
    )


def prepare(kernel: Kernel, backend: str, machine: str = "") -> Build:
    """Build what is missing for BACKEND on KERNEL."""
    build = Build(kernel, backend, machine)
    build.make_stage()
    return build
