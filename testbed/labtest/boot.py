# SPDX-License-Identifier: GPL-2.0-only
"""Run scripts inside lab kernels and read what they claim. Runs on this machine, under pytest."""

import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
KERNEL = os.environ.get("TEST_KERNEL", "lab")  # debug: make test-debug
# of wall time without a line said, with room for building the kernel: only ends what hangs
SILENT_S = 900 if KERNEL == "lab" else 3600
SILENT_REAL_S = 3600  # the same where time is real: make test-smp takes so many rounds
ENDS_S = 30  # that an ended lab may take to clean up
READY = "lab is ready"
# of Debian, for tests that boot one: as testbed/run --kernel takes them, or newest
VM_KERNELS = os.environ.get("VM_KERNELS", "newest").split()


def run_in_lab(
    command: str,
    cpus: set[int] | None = None,
    kernel: tuple[str, ...] = ("--kernel", KERNEL),
    silent_s: float = SILENT_S,
) -> str:
    """Run COMMAND in the lab and return all it said; a lab that hangs is ended, not left. KERNEL:
    which, as testbed/run takes it."""
    lab = subprocess.Popen(
        [PROJECT / "testbed" / "run", *kernel, "--exec", command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        preexec_fn=lambda: os.sched_setaffinity(0, cpus) if cpus else None,
    )  # fmt: skip
    return all_said(lab, silent_s).replace("\r", "")


def all_said(process: subprocess.Popen, silent_s: float) -> str:
    """Return all that PROCESS says until it ends; it is ended after SILENT_S without a line."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    said = []

    def read() -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while line := lines.get(timeout=silent_s):
            said.append(line)
    except queue.Empty:
        process.terminate()  # SIGINT is ignored where a shell without jobs began all this
        reader.join(ENDS_S)
        process.kill()
        while not lines.empty():
            said.append(lines.get())
        said.append(f"\nit hung: nothing said for {silent_s:g} s")
    process.wait()
    return "".join(said)


@cache
def _vm_complaint(kernel: str) -> str:
    """Return why Debian's kernel KERNEL cannot be booted here, fetching what is missing."""
    environment = os.environ | {"VM_KERNEL": kernel}
    if not subprocess.run([PROJECT / "testbed" / "setup", "vm"], env=environment).returncode:
        return ""
    return f"no kernel {kernel} or no QEMU: {f'VM_KERNEL={kernel} ' * bool(kernel)}testbed/setup vm"


def vm_kernel(name: str) -> str:
    """Return the kernel of VM_KERNELS as testbed/run takes it (the newest: no name); skip the test
    where it or QEMU cannot be had."""
    kernel = "" if name == "newest" else name
    if complaint := _vm_complaint(kernel):
        pytest.skip(complaint)
    return kernel


def run_on_processors(kernel: str, cpus: int, command: str) -> str:
    """Run COMMAND on so many processors that work side by side, in real time; return all it said.
    KERNEL: as vm_kernel() returns it."""
    where = ("--backend", "vm", "--cpus", str(cpus), *(("--kernel", kernel) if kernel else ()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VM_CLOCK", "real")
        return run_in_lab(command, kernel=where, silent_s=SILENT_REAL_S)


def run_scripts(folder: Path, scripts: Iterable[str]) -> dict[str, str]:
    """Run Python SCRIPTS ("file.py arguments") of FOLDER, one boot for each, side by side.

    Returns what each said.
    """
    scripts = list(scripts)
    said = run_in_lab(f"echo {READY}")  # builds what is missing, on all cores
    if READY not in said:
        return dict.fromkeys(scripts, said)
    cpus = queue.SimpleQueue()
    for cpu in os.sched_getaffinity(0):
        cpus.put(cpu)

    def run(script: str) -> str:
        cpu = cpus.get()
        output = run_in_lab(f"/usr/bin/python3 {folder.relative_to(PROJECT)}/{script}", {cpu})
        cpus.put(cpu)
        return output

    with ThreadPoolExecutor(cpus.qsize()) as pool:
        return dict(zip(scripts, pool.map(run, scripts), strict=True))


def assert_claimed(output: str, text: str) -> None:
    """A script's OUTPUT has exactly one line about the claim TEXT, and that says ok."""
    found = re.findall(rf"^(ok|not ok) - {re.escape(text)}$((?:\n# .*)*)", output, re.MULTILINE)
    assert len(found) == 1, f"the lab did not get that far:\n{output[-3000:]}"
    verdict, details = found[0]
    assert verdict == "ok", details


def verdict_count(output: str) -> int:
    """Return of how many claims the OUTPUT says whether they hold."""
    return len(re.findall(r"^(?:not )?ok - ", output, re.MULTILINE))
