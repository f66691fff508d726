# SPDX-License-Identifier: GPL-2.0-only
"""Where points can run. A backend is made only when it is needed: that sets up what it lacks."""

from collections.abc import Callable

from lab.backends.base import Backend
from lab.errors import BadInput


def _virtual(kernel: str) -> Backend:
    from lab.backends.virtual import VirtualBackend

    return VirtualBackend(kernel=kernel or "lab")


def _vm(kernel: str) -> Backend:
    from lab.backends.vm import VmBackend

    return VmBackend(kernel)


def _host(kernel: str) -> Backend:
    from lab.backends.host import HostBackend

    if kernel:
        raise BadInput("--kernel goes with --backend vm; the host backend takes the running one")
    return HostBackend()


BACKENDS: dict[str, Callable[[str], Backend]] = {"virtual": _virtual, "vm": _vm, "host": _host}
