# SPDX-License-Identifier: GPL-2.0-only
"""The vm backend: the modules on distributions' own kernels, in QEMU.

VM_KERNELS names the kernels, as `testbed/run --kernel` takes them (default: the newest of this
Debian; `make test-vm`: one of each line).
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from conftest import RUN, TESTBED, run_command

from lab.ask import points, scenario
from lab.ask.algorithms import ALGORITHMS
from lab.common.errors import BadInput, LabError
from lab.run import build as builds
from lab.run.backends import base, vm
from labtest.boot import VM_KERNELS, vm_kernel

OURS = tuple(name for name, a in ALGORITHMS.items() if a.ours and a.module)
MODULES = {m for name in OURS for m in ALGORITHMS[name].parameter_modules}
MODULES |= {"sctp_diag", "sch_lablink", "sch_labgate"}
DURATION_S = 20


@dataclass
class Booted:
    """What came of two boots, TCP and patched SCTP: our algorithms over the same path."""

    backend: vm.VmBackend
    sweep: list[points.Point]
    flows: dict[str, dict] = field(default_factory=dict)
    hops: dict[str, list[list[str]]] = field(default_factory=dict)
    complaints: dict[str, str] = field(default_factory=dict)

    def keep(self, outcome: base.Outcome) -> None:
        name = outcome.point.algorithm
        if outcome.error:
            self.complaints[name] = f"{outcome.error}\n{outcome.log}"
            return
        self.flows[name] = json.loads((outcome.raw / "flow-0.json").read_text())
        rows = (outcome.raw / "hops.csv").read_text().splitlines()[1:]
        self.hops[name] = [row.split(",") for row in rows]


def prepared(kernel: str) -> vm.VmBackend:
    """Return the backend for KERNEL; skip where the kernel or QEMU cannot be had."""
    return vm.VmBackend(vm_kernel(kernel))


@cache
def booted(kernel: str) -> Booted:
    """Run a point with each of our algorithms on KERNEL."""
    backend = prepared(kernel)
    settings = {"run.duration_s": str(DURATION_S), "run.warmup_s": "5", "loss_pct": "1"}
    loaded = scenario.load("jsctp-primary", settings)
    sweep = points.expand(loaded, OURS, [1], backend.build.key)
    run = Booted(backend, sweep)
    for transport in ("tcp", "sctp"):
        batch = [p for p in sweep if ALGORITHMS[p.algorithm].transport == transport]
        backend.run_batch(batch, min(os.sched_getaffinity(0)), run.keep, threading.Event())
    return run


@pytest.fixture(params=VM_KERNELS)
def on_kernel(request) -> Booted:
    return booted(request.param)


@pytest.mark.parametrize("algorithm", OURS)
def test_each_module_carries_data(on_kernel, algorithm):
    """It loads, its flow ran with it to the end, and got through what the path lets through."""
    assert algorithm not in on_kernel.complaints, on_kernel.complaints[algorithm]
    flow = on_kernel.flows[algorithm]
    assert flow["algorithm"] == algorithm and flow["completed"]
    bound_mbps = next(p.bound_mbps for p in on_kernel.sweep if p.algorithm == algorithm)
    goodput_mbps = flow["bytes_acked"] * 8e-6 / (flow["end_s"] - flow["start_s"])
    assert 0.25 * bound_mbps < goodput_mbps <= 1.01 * bound_mbps


@pytest.mark.parametrize("algorithm", OURS)
def test_the_path_is_the_one_asked_for(on_kernel, algorithm):
    """The wireless hop loses 1 %, give or take 4 sigma, and all of it is sent again."""
    last = {row[1]: [float(x) for x in row[2:]] for row in on_kernel.hops[algorithm]}
    sent, _, drops, *_ = last["wireless"]
    packets = sent + drops
    assert packets > 500
    assert abs(drops / packets - 0.01) < 4 * (0.01 * 0.99 / packets) ** 0.5
    flow = on_kernel.flows[algorithm]
    assert (flow["min_rtt_us"] or flow["srtt_us"]) >= 90_000  # SCTP does not tell the smallest


def test_what_depends_on_the_kernel_is_said(on_kernel):
    """meta.json names the kernel, and whether its netem can repeat a loss sequence."""
    said = on_kernel.backend.describe()
    release = on_kernel.backend.build.kernel.release
    assert said["backend"] == "vm" and said["kernel_release"] == release
    assert said["netem_seeded"] == (not release.startswith("6.1."))
    assert set(said["module_srcversions"]) == MODULES
    assert {point.id for point in on_kernel.sweep}.isdisjoint(
        point.id
        for point in points.expand(
            scenario.load("jsctp-primary", {"run.duration_s": str(DURATION_S), "loss_pct": "1"}),
            OURS, [1], lambda *_: "another kernel",
        )
    )  # fmt: skip


HOST_POINT = """
import csv, json, os, subprocess, threading
from lab.run import build as builds
from lab.ask import points, scenario
from lab.run.backends.host import HostBackend

backend = HostBackend()
settings = {"run.duration_s": "10", "run.warmup_s": "2"}
wired = scenario.load("jsctp-primary", settings | {"loss_pct": "0"})
wireless = scenario.load("wccp-1", settings | {"topology.nodes": "3", "flows": "1"})
sweeps = [
    points.expand(wired, ("jtcp",), [1], backend.build.key),
    points.expand(wireless, ("wccp",), [1], backend.build.key),
]

def show(outcome):
    print("error", json.dumps(outcome.error + outcome.log))
    if not outcome.error:
        print("flow", (outcome.raw / "flow-0.json").read_text().strip())
        print("medium", (outcome.raw / "medium.json").exists())
        rows = csv.DictReader((outcome.raw / "flows.csv").read_text().splitlines())
        print("rate", max(float(row["cc_bw_mbps"] or 0) for row in rows))

before = os.listdir("/sys/class/net")
for sweep in sweeps:
    backend.run_batch(list(sweep), 0, show, threading.Event())
listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
print("left", json.dumps([line for line in listed.splitlines() if "mininet" in line]))
print("links", before == os.listdir("/sys/class/net"))
"""


@pytest.mark.skipif(
    "VM_KERNELS" not in os.environ, reason="in real time, on an emulated processor: make test-vm"
)
def test_the_host_backend_on_a_host_that_can(tmp_path):
    """A virtual machine in real time is the host: a point runs there, on wires and on a wireless
    medium, and nothing is left."""
    backend = prepared(VM_KERNELS[0])
    try:
        backend.build.key({"wccp"}, wireless=True)
    except LabError as error:
        pytest.skip(f"ns-3 cannot be installed here: {error}")
    script = tmp_path / "point.py"
    script.write_text(HOST_POINT)
    build = TESTBED.parent / "build"
    built = [str(build / name) for name in ("medium", "tfrc")]  # an emulated compiler is slow
    run = (
        f"mkdir /run/kept && cp -a {' '.join(built)} /run/kept && mount -t tmpfs none {build}"
        f" && cp -a /run/kept/* {build}"
        f" && PYTHONPATH={TESTBED} python3 {script} | tee $LAB_OUT/said"
    )
    done = run_command(
        "--backend", "vm", "--kernel", backend.build.kernel.release, "--exec", run,
        "--out", str(tmp_path / "out"), env=os.environ | {"VM_CLOCK": "real"},
    )  # fmt: skip
    said: dict[str, list[str]] = {}
    for line in (tmp_path / "out" / "said").read_text().splitlines():
        what, text = line.split(" ", 1)
        said.setdefault(what, []).append(text)
    assert said["error"] == ['""', '""'], done.stdout
    assert said["medium"] == ["False", "True"]
    flows = [json.loads(text) for text in said["flow"]]
    assert [flow["algorithm"] for flow in flows] == ["jtcp", "wccp"]
    assert all(flow["completed"] for flow in flows)
    assert flows[0]["bytes_acked"] > 1_000_000 and flows[1]["bytes_acked"] > 100_000
    assert float(said["rate"][1]) > 0  # the agents were heard
    assert said["left"] == ["[]"] and said["links"] == ["True"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--backend", "vm", "--kernel", "5.99"], "apt knows no kernel image '5.99'"),
        (["demo", "--kernel", "6.12"], "unknown kernel of the virtual backend"),
        (["demo", "--cpus", "2"], "--cpus goes with --backend vm"),
        (["demo", "--backend", "vm", "--cpus", "2"], "set VM_CLOCK=real"),
        (["demo", "--backend", "vm", "--cpus", "0"], "--cpus 0: from 1 to 16"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, told, tmp_path):
    done = run_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and told in done.stderr
    assert not list(tmp_path.iterdir())


class SctpHere(base.Backend):
    """A backend with a kernel of this SOURCE, if there is one."""

    name = "vm"
    cost_s = describe = guest_command = None

    def __init__(self, source: Path | None):
        nowhere = Path("/nowhere")
        kernel = builds.Kernel("key", "6.1.0-1", nowhere, nowhere, nowhere, source=source)
        self.build = builds.Build(kernel, self.name)


def other_source(folder: Path) -> Path:
    """Make a source that our patches do not fit."""
    (folder / "net/sctp").mkdir(parents=True)
    (folder / "net/sctp/socket.c").write_text("/* all else */\n")
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    for name in ("include/net/sctp", "include/linux", "include/uapi/linux"):
        (folder / name).mkdir(parents=True)
    for name in ("include/linux/sctp.h", "include/uapi/linux/sctp.h"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("algorithm", ["jsctp_abe", "rfc9260", "sctp", "reno"])
@pytest.mark.parametrize(
    ("source", "because"),
    [("none", "there is no source of it"), ("other", "0001 of .* does not apply"), ("lab's", "")],
)
def test_a_kernel_without_patched_sctp_is_refused(
    algorithm, source, because, tmp_path, monkeypatch
):
    """Algorithms that need it are refused in one line before anything boots; others are not."""
    monkeypatch.setattr(builds, "BUILD", tmp_path / "build")
    sweep = points.expand(scenario.load("jsctp-primary"), (algorithm,), [1], lambda *_: "a kernel")
    backend = SctpHere(
        {
            "none": lambda: None,
            "other": lambda: other_source(tmp_path / "linux"),
            "lab's": lambda: builds.uml_kernel().source,
        }[source]()
    )
    for _ in range(2):  # asked, and remembered
        if not because or algorithm in ("sctp", "reno"):
            backend.check(sweep)
            continue
        with pytest.raises(BadInput, match=rf"no patched SCTP for kernel 6.1.0-1: {because}"):
            backend.check(sweep)
        backend = SctpHere(backend.build.kernel.source)


def test_without_qemu_the_cure_is_named(tmp_path):
    """No package is there and the user is not root: the administrator's command, once."""
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name, script in (("dpkg-query", "exit 1"), ("id", "echo 1000"), ("sudo", "exit 1")):
        (stubs / name).write_text(f"#!/bin/sh\n{script}\n")
        (stubs / name).chmod(0o755)
    done = subprocess.run(
        [TESTBED / "setup", "vm"], capture_output=True, text=True,
        env=os.environ | {"PATH": f"{stubs}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 1
    assert re.search("apt-get install -y .*qemu-system-x86", done.stderr)


def test_too_little_memory_is_said(monkeypatch):
    monkeypatch.setattr(vm, "EMULATOR_MEMORY_MB", 1 << 40)
    with pytest.raises(LabError, match=r"needs .* MB of memory .* --jobs 1"):
        vm.check_memory()


def test_kernels_of_one_release_have_modules_of_their_own(monkeypatch, tmp_path):
    """A module that is built with KASAN has no place in a kernel with KCSAN."""
    for name in ("kasan-0123", "kcsan-4567", "6.12.117"):
        (tmp_path / name).mkdir()
        for told in ("release", "version"):
            (tmp_path / name / told).write_text("6.12.117\n")
    monkeypatch.setattr(builds, "setup", lambda *_, **__: None)
    monkeypatch.setattr(builds, "setup_paths", lambda VM_KERNEL: {"vm": str(tmp_path / VM_KERNEL)})
    keys = {vm.prepared_kernel(path.name).key for path in tmp_path.iterdir()}
    assert len(keys) == 3, keys
    assert "vm-6.12.117-6.12.117" in keys


def test_an_unknown_clock_is_refused(monkeypatch):
    monkeypatch.setenv("VM_CLOCK", "rael")
    with pytest.raises(BadInput, match="did you mean 'real'"):
        vm.wanted_clock()


@pytest.mark.parametrize(
    ("clock", "kvm", "machine"),
    [("real", True, "kvm-2"), ("real", False, "tcg-2"), ("jumps", True, "jumps-1")],
)
def test_results_are_of_the_processor_that_there_is(monkeypatch, clock, kvm, machine):
    """What KVM and what an emulated processor measures are no results of one point."""
    nowhere = Path("/nowhere")
    kernel = builds.Kernel("key", "6.1.0-1", nowhere, nowhere, nowhere)
    monkeypatch.setenv("VM_CLOCK", clock)
    monkeypatch.setattr(vm, "prepared_kernel", lambda _: kernel)
    monkeypatch.setattr(vm, "kvm_boots", lambda _: kvm)
    monkeypatch.setattr(vm, "check_memory", lambda _: None)
    monkeypatch.setattr(vm.shutil, "which", lambda _: vm.QEMU)
    monkeypatch.setattr(builds, "prepare", builds.Build)
    assert vm.VmBackend(cpus=int(machine[-1])).build.machine == machine


@pytest.mark.parametrize("processor", vm.PROCESSORS)
def test_an_emulated_processor_lacks_what_its_emulator_does_wrongly(processor):
    """vm.EMULATED says which instruction, and what it does to a kernel."""
    what, _, options = vm.PROCESSORS[processor]
    model = options[options.index("-cpu") + 1]
    assert ("-cx16" in model.split(",")) == what.startswith("emulated")


def processes_of(folder: Path) -> list[str]:
    """Return the virtual machines whose results go below FOLDER."""
    listed = subprocess.run(["ps", "-wweo", "args"], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if vm.QEMU in line and str(folder) in line]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_ended_runner_leaves_no_virtual_machine(tmp_path, number, status):
    """Ctrl-C cleans up; after SIGKILL the machine ends by itself."""
    prepared(VM_KERNELS[0])
    wanted = ["demo", "--backend", "vm", "--algorithms", "reno", "--seeds", "1"]
    kernel = ["--kernel", VM_KERNELS[0]] if vm_kernel(VM_KERNELS[0]) else []
    sweep = subprocess.Popen(
        [RUN, *wanted, *kernel, "--out", tmp_path / "out"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    while not processes_of(tmp_path) and sweep.poll() is None:
        time.sleep(0.05)
    sweep.send_signal(number)
    _, complaint = sweep.communicate()
    assert sweep.returncode == status, complaint
    while processes_of(tmp_path) and number == signal.SIGKILL:
        time.sleep(0.05)  # hangs here if it does not end
    assert not processes_of(tmp_path)
    if number == signal.SIGINT:
        assert not list(tmp_path.glob("veno-jitter-*"))
