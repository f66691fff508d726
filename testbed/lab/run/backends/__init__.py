# SPDX-License-Identifier: GPL-2.0-only
"""Where points can run. A backend is made only when it is needed: that sets up what it lacks."""

from collections.abc import Callable

from lab.common.errors import BadInput
from lab.run import guestrooms
from lab.run.backends.base import Backend


def _virtual(kernel: str, cpus: int = 1) -> Backend:
    from lab.run.backends.virtual import VirtualBackend

    if cpus != 1:
        raise BadInput("--cpus goes with --backend vm; a kernel in virtual time has one processor")
    return VirtualBackend(kernel=kernel or "lab")


def _vm(kernel: str, cpus: int = 1) -> Backend:
    from lab.run.backends.vm import VmBackend

    return VmBackend(kernel, cpus)


def _host(kernel: str, cpus: int = 1) -> Backend:
    from lab.run.backends.host import HostBackend

    if cpus != 1:
        raise BadInput("--cpus goes with --backend vm; the host backend has this machine's")
    if kernel:
        raise BadInput("--kernel goes with --backend vm; the host backend takes the running one")
    return HostBackend()


# takes the kernel that is wanted and how many processors
BACKENDS: dict[str, Callable[..., Backend]] = {"virtual": _virtual, "vm": _vm, "host": _host}
BOOTED = ("virtual", "vm")  # those that boot a kernel, so that a command can run inside


def open_backend(name: str, kernel: str = "", cpus: int = 1) -> Backend:
    """Return the backend NAME, with all that it needs built. Its guests live in a folder that is
    this process's own; what killed runs left of theirs is taken away first."""
    guestrooms.sweep()
    backend = BACKENDS[name](kernel, cpus)
    backend.guest_room = guestrooms.claim(backend.guest_room)
    return backend
