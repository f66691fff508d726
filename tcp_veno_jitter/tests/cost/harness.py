# SPDX-License-Identifier: GPL-2.0-only
"""What is replayed: the lab kernel's and our compiled code, and recordings of real flows."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE.parents[1]
PROJECT = HERE.parents[2]
SETUP = PROJECT / "testbed" / "setup"
RUN = PROJECT / "testbed" / "run"
OUT = PROJECT / "build" / "cost"

OURS = sorted(path.stem.removeprefix("tcp_") for path in MODULES.glob("tcp_*.c"))
KERNELS = ["reno", "cubic", "bbr", "veno", "westwood"]


class CostError(Exception):
    """What is told to the user in one line."""


def run_cmd(*command: str | Path, what: str, **options) -> str:
    """Run COMMAND and return its standard output; CostError with its complaint if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        raise CostError(f"{what}: no command {command[0]}; run 'testbed/setup test'") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise CostError(f"{what} failed ({' '.join(map(str, command))}):\n{tail}")
    return done.stdout


def hash_of(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


# --- build ------------------------------------------------------------------


class Builder:
    """Objects for the lab kernel in FOLDER: what the kernel runs, and the replay around it."""

    def __init__(self):
        said = run_cmd(SETUP, "paths", what="testbed/setup")
        kernel = Path(re.search(r"^kernel=(.+)$", said, re.MULTILINE)[1])
        self.obj, self.source = kernel / "obj", kernel / "source"
        if not (kernel / "complete").exists():
            raise CostError("there is no lab kernel: run 'testbed/setup kernel'")
        self.folder = OUT / kernel.name
        self.ours, self.harness = self.folder / "modules", self.folder / "harness"
        self.recorder = self.harness / "tcp_record.ko"

    def build(self, algorithms: list[str]) -> None:
        self._build_ours()
        self._build_harness()
        for algorithm in algorithms:
            self._link(algorithm)

    def _build_ours(self) -> None:
        """Build our modules as people do, with line numbers."""
        run_cmd("make", "-C", MODULES, "ARCH=um", f"KDIR={self.obj}", f"OUT={self.ours}",
                "KCFLAGS=-g", "all", what="building the modules")  # fmt: skip

    def _build_harness(self) -> None:
        self.harness.mkdir(parents=True, exist_ok=True)
        kernels = [f"tcp_{name}" for name in KERNELS if name != "reno"]
        sources = [*HERE.glob("*.[ch]"), HERE / "Kbuild"]
        sources += [self.source / "net" / "ipv4" / f"{name}.c" for name in kernels]
        for source in sources:
            link = self.harness / source.name
            link.unlink(missing_ok=True)
            link.symlink_to(source)
        modules = [
            name for name in kernels if (self.kernel_object(name).with_suffix(".ko")).exists()
        ]
        objects = [f"{name}.o" for name in [*kernels, "core", "replay"]]
        run_cmd("make", "-C", self.obj, "ARCH=um", f"M={self.harness}",
                f"MODULES={' '.join(f'{name}.o' for name in modules)}", *objects,
                self.recorder.name, what="building the replay")  # fmt: skip
        run_cmd("cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-c", "-o",
                self.harness / "replay_main.o", HERE / "replay_main.c",
                what="compiling the replay")  # fmt: skip

    def kernel_object(self, name: str) -> Path:
        return self.obj / "net" / "ipv4" / f"{name}.o"

    def object(self, algorithm: str) -> Path:
        """Return the algorithm's compiled code, with line numbers."""
        if algorithm == "reno":
            return self.kernel_object("tcp_cong")
        return (self.ours if algorithm in OURS else self.harness) / f"tcp_{algorithm}.o"

    def replay(self, algorithm: str) -> Path:
        return self.folder / f"replay-{algorithm}"

    def _link(self, algorithm: str) -> None:
        """Link the replay with one algorithm.

        What the kernel's objects want beyond that, such as printk and user memory, no hook
        reaches: it stays undefined, and a call to it would end the program.
        """
        libraries = ["kernel/time/time.o", "lib/win_minmax.o", "arch/x86/lib/memset_64.o",
                     "arch/x86/lib/memcpy_64.o"]  # fmt: skip
        objects = [self.harness / f"{name}.o" for name in ("replay_main", "replay", "core")]
        objects += [self.kernel_object("tcp_cong")] + [self.obj / name for name in libraries]
        register = "replay_register_reno"
        if algorithm != "reno":
            copy, register = self._with_register(algorithm)
            objects.append(copy)
        run_cmd("cc", "-no-pie", "-Wl,--gc-sections", "-Wl,-z,noexecstack",
                "-Wl,--unresolved-symbols=ignore-all",
                f"-Wl,--defsym=replay_register_algorithm={register}",
                "-o", self.replay(algorithm), *objects, what="linking the replay")  # fmt: skip

    def _with_register(self, algorithm: str) -> tuple[Path, str]:
        """Return the algorithm's object and the function in it that registers, made callable."""
        source = self.object(algorithm)
        symbols = run_cmd("nm", source, what="nm")
        if " init_module\n" in symbols:
            return source, "init_module"
        register = re.search(r" t (\w+_register)$", symbols, re.MULTILINE)[1]
        copy = self.folder / f"{algorithm}.o"
        run_cmd("objcopy", f"--globalize-symbol={register}", source, copy, what="objcopy")
        return copy, register

    def private_bytes(self, algorithm: str) -> int:
        """Return the size of the structure that the source checks against the kernel's room."""
        if algorithm == "reno":
            return 0
        folder = self.ours if algorithm in OURS else self.harness
        source = (folder / f"tcp_{algorithm}.c").read_text()
        name = re.search(r"BUILD_BUG_ON\(sizeof\(struct (\w+)\) > ICSK_CA_PRIV_SIZE\)", source)[1]
        dump = run_cmd("readelf", "--debug-dump=info", self.object(algorithm), what="readelf")
        found = re.search(
            rf"DW_TAG_structure_type\)\n.*DW_AT_name.* {name}\s*\n.*DW_AT_byte_size\s*: (\d+)", dump
        )
        return int(found[1])

    def divisions(self, algorithm: str) -> set[int]:
        """Return the addresses of the division instructions in the replay."""
        code = run_cmd(
            "objdump", "-d", "--no-show-raw-insn", self.replay(algorithm), what="objdump"
        )
        return {int(at, 16) for at in re.findall(r"^ *(\w+):\ti?div", code, re.MULTILINE)}

    def text(self, path: Path) -> bytes:
        """Return the machine code of an object file."""
        copy = self.folder / "text"
        run_cmd("objcopy", "-O", "binary", "-j", ".text", path, copy, what="objcopy")
        return copy.read_bytes()


# --- record -----------------------------------------------------------------


def recording_key(builder: Builder, algorithm: str, flow_s: float) -> str:
    """Name what the recordings depend on."""
    inputs = [HERE / "recording.h", HERE / "tcp_record.c", HERE / "guest_record.py",
              HERE.parent / "guest_net.py", builder.object(algorithm)]  # fmt: skip
    parts = [path.read_bytes() for path in inputs]
    return hash_of(builder.folder.name.encode(), str(flow_s).encode(), *parts)


def record(builder: Builder, algorithm: str, flow_s: float, cpu: int, out: Path) -> Path:
    """Run the algorithm's flows in the lab, unless OUT has them; return their folder in OUT."""
    folder = out / f"{algorithm}-{recording_key(builder, algorithm, flow_s)}"
    if folder.exists():
        return folder
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    script = HERE / "guest_record.py"
    command = f"/usr/bin/python3 {script} {algorithm} {builder.recorder} {flow_s}"
    run_cmd("taskset", "-c", str(cpu), RUN, "--exec", command, "--out", part,
            what=f"recording {algorithm}", stdin=subprocess.DEVNULL)  # fmt: skip
    for old in folder.parent.glob(f"{algorithm}-????????????"):
        shutil.rmtree(old)
    part.rename(folder)
    return folder
