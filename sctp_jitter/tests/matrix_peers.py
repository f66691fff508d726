# SPDX-License-Identifier: GPL-2.0-only
"""The patched and the unpatched module have an association with each other: two virtual machines
of one Debian kernel, one module each, joined by a wire. In real time: `make test-vm`.
"""

import json
import os
import re
import threading
from pathlib import Path

import pytest

from lab.run.backends import vm
from labtest.boot import VM_KERNELS, vm_kernel

TESTS = Path(__file__).parent
PROJECT = TESTS.parents[1]
ENDS = {"patched": "10.9.0.1", "stock": "10.9.0.2"}
TIMESTAMP, ERROR, ABORT = 190, 9, 6
BYTES = 720_000


class Joined(vm.VmBackend):
    """A virtual machine with a network card; what it sends the END of the other name gets."""

    def __init__(self, kernel: str, end: str, wires: Path):
        super().__init__(kernel)
        self.end, self.wires = end, wires

    def guest_command(self, guest: Path, cpu: int) -> list[str]:
        (other,) = ENDS.keys() - {self.end}
        wire = (
            f"dgram,id=wire,local.type=unix,local.path={self.wires / self.end}"
            f",remote.type=unix,remote.path={self.wires / other}"
        )
        mac = f"52:54:00:00:00:0{ENDS[self.end][-1]}"
        card = ["-netdev", wire, "-device", f"virtio-net-pci,netdev=wire,mac={mac}"]
        return [*super().guest_command(guest, cpu), *card]


@pytest.fixture(scope="module", params=VM_KERNELS)
def ends(request, tmp_path_factory) -> dict[str, dict]:
    """What each of the two machines tells of its flow to the other."""
    wires = tmp_path_factory.mktemp("wires")
    kernel = vm_kernel(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VM_CLOCK", "real")
        machines = {end: Joined(kernel, end, wires) for end in ENDS}
    if not machines["patched"].build.patches_sctp:
        pytest.skip(f"no source of kernel {request.param}: testbed/setup vm")

    def run(end: str) -> None:
        out = wires / f"{end}.out"
        out.mkdir()
        script = TESTS.relative_to(PROJECT) / "sctp_interop.py"
        command = f"cd {PROJECT} && /usr/bin/python3 {script} wire {end} >$LAB_OUT/said 2>&1"
        machines[end].run_command(command, cpus[end], out)

    available = sorted(os.sched_getaffinity(0))
    cpus = dict(zip(ENDS, (available[0], available[-1]), strict=True))
    threads = [threading.Thread(target=run, args=(end,)) for end in ENDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results = {}
    for end in ENDS:
        said = (wires / f"{end}.out" / "said").read_text()
        told = re.findall(r"^result: (.*)$", said, re.MULTILINE)
        assert len(told) == 1, said[-3000:]
        results[end] = json.loads(told[0])
    return results


@pytest.mark.parametrize("end", ENDS)
def test_both_ends_get_all_data(ends, end):
    """Each end's flow to the other arrives whole; nobody complains."""
    assert ends[end]["completed"] and ends[end]["bytes_received"] == BYTES
    kinds = {kind for kinds in ends[end]["chunks"].values() for kind in kinds}
    assert not kinds & {ERROR, ABORT}


def test_time_stamps_are_offered_and_not_used(ends):
    """The patched end's INIT lists TIMESTAMP chunks, no answer does, none is sent."""
    for end in ENDS.values():
        assert TIMESTAMP not in ends["stock"]["chunks"][end]
    assert TIMESTAMP in ends["patched"]["extensions_ever"][ENDS["patched"]]
    assert TIMESTAMP not in ends["patched"]["extensions_ever"].get(ENDS["stock"], [])
    assert (ends["patched"]["algorithm"], ends["stock"]["algorithm"]) == ("jsctp_abe", "sctp")
