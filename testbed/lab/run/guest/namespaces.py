# SPDX-License-Identifier: GPL-2.0-only
"""To be in a network namespace for a while. Works with the standard library alone, also outside the
lab (veno_lab)."""

import ctypes
import os

CLONE_NEWNET = 0x40000000


class NetworkNamespaceOf:
    """A context manager: inside it, this process is in the network namespace of process PID."""

    def __init__(self, pid: int):
        self._pid = pid
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        target = os.open(f"/proc/{self._pid}/ns/net", os.O_RDONLY)
        try:
            self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
            self._setns(target)
        finally:
            os.close(target)

    def __exit__(self, *_exc):
        self._setns(self._home)
        os.close(self._home)

    def _setns(self, fd: int):
        if self._libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
