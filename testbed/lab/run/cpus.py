# SPDX-License-Identifier: GPL-2.0-only
"""Which processor a kernel of the lab runs on: it is held to one, so that switches stay on it."""

import errno
import fcntl
import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.run.build import setup_paths

# of a network's file system, the last of a folder there
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)


@contextmanager
def claimed(folder: Path | None = None) -> Iterator[int]:
    """Give one of the processors that this process may use, for as long as the block lasts.

    It is one of those with the fewest claims of any run, whatever started it: runs beside each
    other take different ones. Locks in FOLDER tell, by default in the cache, where no other user
    can lay traps; they end with their process. Machines that share the folder have their own
    there. Where it is on a file system without locks nothing tells what others use, and processes
    are spread over the processors by their numbers.
    """
    folder = (folder or Path(setup_paths()["cache"]) / "cpus") / socket.gethostname()
    folder.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    for depth, cpu in ((depth, cpu) for depth in itertools.count() for cpu in cpus):
        with open(folder / f"{cpu}.{depth}", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            except OSError as refused:
                if refused.errno not in NO_LOCKS:
                    raise
                cpu = cpus[os.getpid() % len(cpus)]
            yield cpu
            return
