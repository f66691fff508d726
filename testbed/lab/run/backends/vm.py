# SPDX-License-Identifier: GPL-2.0-only
"""The `vm` backend: points on a distribution's own kernel in QEMU, with modules built against its
headers. It proves on the kernel that people run what the virtual lab found on a kernel of its own.

VM_CLOCK says what time is. `jumps`, the default: the processor is emulated (TCG) and the guest's
clock counts instructions, one a nanosecond; when the guest is idle the clock jumps to the next
timer, so waiting costs nothing here either, and a busy host cannot disturb a run. What a packet
costs the kernel does take time, as on a processor of about 1 GHz. `real`: this machine's clock, on
its own processor where KVM boots (TCG elsewhere); a point of 100 s takes 100 s, at any rate. Only
in real time can a guest have several processors that work side by side.

Nothing is repeatable to the byte: the host's answers to the guest come when they come, and the
kernel draws its own random numbers.
"""

import os
import shutil
import subprocess
from pathlib import Path

from lab.ask.points import Point, least_rate_mbps
from lab.common.errors import BadInput, LabError, unknown
from lab.run import build as builds
from lab.run.backends.base import Backend, folder_with_room

QEMU = "qemu-system-x86_64"
GUEST_MEMORY_MB = 512
# Kernels that testbed/setup builds: they watch themselves. What each is told besides: KCSAN holds a
# processor up where it looks, until another one comes by; an emulated one is slower than the 80 us
# that it waits, and does not always run.
WATCHED = {
    "debug": "",
    "kasan": "",
    "kcsan": "kcsan.udelay_task=1000 kcsan.udelay_interrupt=300 kcsan.skip_watch=3000",
}
WATCHED_MEMORY_MB = 1536  # what KASAN, lockdep and kmemleak know takes most of it
# QEMU's tables are programs that a kernel interprets; with all checks on that takes half a minute
# for each bridge, and then it gives up. The BIOS knows the interrupts, too. And what takes long
# there is no lockup.
WATCHED_TOLD = "pci=noacpi watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300"
EMULATOR_MEMORY_MB = 256  # its own
RESULTS_ROOM_MB = 64
BOOT_COST_S, POINT_COST_S, MBIT_COST_S = 15.0, 2.0, 0.015  # of one core, as measured
WIRELESS_COST = 1.0  # of a second on a wireless medium, emulated
REAL_TIME_COST_S = 10.0  # of a point, besides its duration
KVM_LIMIT_S = 60  # a kernel boots to its initrd in two
CPUS_LIMIT = 16
# What time is in the guest: a clock that instructions move is exact, a busy host makes the kernel
# measure an emulated processor's speed wrongly, and KVM brings a clock of its own.
# QEMU 7.2 sets all flags from whatever a register held when CMPXCHG16B finds another value, and an
# interrupt's return takes them for real: a kernel whose allocator was interrupted there panics.
# Without the instruction kernels do the same with interrupts off.
EMULATED = "qemu64,-cx16"
PROCESSORS = {
    "jumps": ("emulated, one instruction a nanosecond, idle time skipped", "tsc=reliable",
              ("-accel", "tcg", "-cpu", EMULATED, "-icount", "shift=0,sleep=off")),
    "kvm": ("the host's (KVM)", "", ("-accel", "kvm", "-cpu", "host")),
    "tcg": ("emulated, in real time", "notsc tsc=unstable clocksource=acpi_pm",
            ("-accel", "tcg,thread=multi", "-cpu", EMULATED)),
}  # fmt: skip


def wanted_clock() -> str:
    """Return what VM_CLOCK asks for."""
    clock = os.environ.get("VM_CLOCK", "jumps")
    if clock not in ("jumps", "real"):
        raise unknown("VM_CLOCK", clock, ("jumps", "real"))
    return clock


def wanted_cpus(cpus: int, clock: str) -> int:
    """Return CPUS if a guest with this CLOCK can have so many."""
    if not 1 <= cpus <= CPUS_LIMIT:
        raise BadInput(f"--cpus {cpus}: from 1 to {CPUS_LIMIT}")
    if cpus > 1 and clock != "real":
        raise BadInput(
            f"--cpus {cpus}: processors work side by side in real time only: set VM_CLOCK=real"
        )
    return cpus


def prepared_kernel(want: str) -> builds.Kernel:
    """Return the kernel WANT (as testbed/setup takes it), fetched or built if it is missing."""
    builds.setup("vm", VM_KERNEL=want)
    folder = Path(builds.setup_paths(VM_KERNEL=want)["vm"])
    release = (folder / "release").read_text().strip()
    version = (folder / "version").read_text().strip()
    headers, sysroot = Path(f"usr/src/linux-headers-{release}"), folder / "sysroot"
    root = sysroot if sysroot.exists() else folder
    inside = Path("/") if sysroot.exists() else folder  # as a build there knows it
    source = Path("usr/src", f"linux-source-{'.'.join(version.split('.')[:2])}")
    # those that are built here have one release, and modules of their own
    name = release if folder.name == release else f"{release}-{folder.name}"
    return builds.Kernel(
        key=f"vm-{name}-{version}",
        release=release,
        image=folder / "vmlinuz",
        tree=inside / headers,
        modules=folder / "lib" / "modules" / release,
        source=inside / source if (root / source).exists() else None,
        sysroot=sysroot if sysroot.exists() else None,
    )


def check_memory(guest_mb: int = GUEST_MEMORY_MB) -> None:
    """Refuse to start a guest that this machine has no memory for."""
    needed_mb = guest_mb + EMULATOR_MEMORY_MB
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free_mb = int(fields["MemAvailable"].split()[0]) >> 10
    if free_mb < needed_mb:
        raise LabError(
            f"a virtual machine needs {needed_mb} MB of memory and {free_mb} MB are free:"
            " end something, or give --jobs 1"
        )


def machine(
    kernel: builds.Kernel,
    processor: str,
    told: str,
    cpus: int = 1,
    memory_mb: int = GUEST_MEMORY_MB,
) -> list[str]:
    """Return the command that boots KERNEL, which is TOLD this on its command line."""
    _, clock, options = PROCESSORS[processor]
    return [
        QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
        "-serial", "stdio", "-m", str(memory_mb), "-smp", str(cpus), *options,
        "-kernel", str(kernel.image), "-initrd", str(kernel.image.with_name("initrd")),
        "-append", f"console=ttyS0 quiet panic=-1 {clock} {told}",
    ]  # fmt: skip


def kvm_boots(kernel: builds.Kernel) -> bool:
    """Say whether KVM is there and runs KERNEL: in some nested machines it does not."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = machine(kernel, "kvm", "LAB_INIT=none")
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=KVM_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return False
    return b"lab: up" in done.stdout


class VmBackend(Backend):
    name = "vm"
    boot_limit_s = 600.0
    batch_wall_s = 20 * BOOT_COST_S
    guest_modules = ("veth", "sch_netem", "inet_diag", "tcp_diag")

    def __init__(self, kernel: str = "", cpus: int = 1):
        self.clock = wanted_clock()
        self.cpus = wanted_cpus(cpus, self.clock)
        booted = prepared_kernel(kernel)
        if not shutil.which(QEMU):
            raise LabError(f"no {QEMU}: apt-get install qemu-system-x86")
        self.watched_told = f" {WATCHED_TOLD} {WATCHED[kernel]}" if kernel in WATCHED else ""
        self.memory_mb = WATCHED_MEMORY_MB if self.watched_told else GUEST_MEMORY_MB
        check_memory(self.memory_mb)
        self.processor = "jumps"
        if self.clock == "real":
            self.processor = "kvm" if kvm_boots(booted) else "tcg"
        self.build = builds.prepare(booted, self.name, f"{self.processor}-{cpus}")
        self.guest_room = folder_with_room(RESULTS_ROOM_MB, "results of a boot", executable=False)

    def cost_s(self, point: Point) -> float:
        """What an emulated processor takes goes by packets, whatever the clock says."""
        if self.clock == "real":
            return REAL_TIME_COST_S + point.spec["duration_s"]
        if point.spec["medium"]:
            return POINT_COST_S + point.spec["duration_s"] * WIRELESS_COST
        rate_mbps = least_rate_mbps(point.spec)
        return POINT_COST_S + point.spec["duration_s"] * rate_mbps * MBIT_COST_S

    def guest_command(self, guest: Path, cpu: int, extra_mb: int = 0) -> list[str]:
        shares = []
        for name, folder, readonly in (
            ("root", Path("/"), "on"),
            ("job", guest, "off"),
            ("project", guest / "project", "on"),
            ("modules", guest / "modules", "on"),
            ("out", guest / "out", "off"),
        ):
            shares += [
                "-fsdev", f"local,id={name},path={folder.resolve()},security_model=none,"
                f"readonly={readonly},multidevs=remap",
                "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}",
            ]  # fmt: skip
        told = (
            "ipv6.disable_ipv6=1 mitigations=off nokaslr norandmaps"
            f" LAB_INIT={guest}/init LAB_FS=9p LAB_DIR={guest}{self.watched_told}"
        )
        memory_mb = self.memory_mb + extra_mb
        boot = machine(self.build.kernel, self.processor, told, self.cpus, memory_mb)
        held = ["taskset", "-c", str(cpu)] if self.cpus == 1 else []
        return [*held, *boot, *shares]

    @property
    def netem_seeded(self) -> bool:
        """Say whether this kernel's netem can be told its loss sequence."""
        headers = self.build.kernel.image.parent.rglob("include/uapi/linux/pkt_sched.h")
        return any("TCA_NETEM_PRNG_SEED" in header.read_text() for header in headers)

    def describe(self) -> dict:
        return {
            "backend": self.name,
            "kernel_release": self.build.kernel.release,
            "kernel_build": self.build.kernel.key,
            "module_srcversions": self.build.srcversions(),
            "processor": PROCESSORS[self.processor][0],
            "processors": self.cpus,
            "netem_seeded": self.netem_seeded,
            "kernel_random_numbers_seeded": False,
            "repeatable_to_the_byte": False,
        }
