# SPDX-License-Identifier: GPL-2.0-only
"""Commands, files and network namespaces inside the lab, programs as modules. Standard library
only."""

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
NOBODY = 65534
PRIORITY = 10


def run_cmd(*command: str, **options) -> str:
    """Run a command and return its standard output; RuntimeError with its complaint."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def write_file(path: str, value) -> None:
    """Write VALUE in one call, as a file of /proc or /sys wants it; OSError if refused."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def load_script(path: Path) -> ModuleType:
    """Return a Python program without .py as a module."""
    loader = SourceFileLoader(path.name.replace("-", "_"), str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def first_in_line() -> None:
    """Who goes first of several that wake at one instant must not hang on what ran before."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))


def enter_namespace(name: str, user: int = 0) -> None:
    """Put this thread in the named network namespace, for good; a USER but root loses what
    privileges it has."""
    with open(f"/run/netns/{name}") as target:
        _setns(target.fileno())
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


@contextlib.contextmanager
def inside(name: str):
    """Within the block, this thread is in the named network namespace."""
    with open("/proc/thread-self/ns/net") as home:
        enter_namespace(name)
        try:
            yield
        finally:
            _setns(home.fileno())


def leave_namespace() -> int:
    """Put this thread in a new network namespace; return what leads back to the old one."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if LIBC.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    return home


def return_to_namespace(home: int) -> None:
    _setns(home)
    os.close(home)


def _setns(fd: int) -> None:
    if LIBC.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def abort(*sockets: socket.socket) -> None:
    """Close at once: nothing to wait for, nothing left that holds a module."""
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def refusal(action: Callable[[], None]) -> int:
    """Return the errno that ACTION fails with, 0 if it does not."""
    try:
        action()
    except OSError as error:
        return error.errno
    return 0


def errno_as_nobody(action: Callable[[], None]) -> int:
    """Return refusal(action) of a process without any privilege."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setuid(NOBODY)
            os._exit(refusal(action))
        os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
