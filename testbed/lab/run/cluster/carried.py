# SPDX-License-Identifier: GPL-2.0-only
"""What Dask runs on a worker. It travels by value, so it knows nothing of the lab: it unpacks the
bundle where the worker keeps its files, and starts a process in it for each batch."""

import gzip
import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import uuid
from pathlib import Path

from distributed import WorkerPlugin, get_worker

FOLDER = "veno-jitter-{}"  # of a bundle


class Carrier(WorkerPlugin):
    """Lays the bundle out on each worker, also on those that come later."""

    def __init__(self, bundle: str, packed: bytes):
        self.bundle, self.packed = bundle, packed
        # runs that carry the same come and go by themselves
        self.name = f"{FOLDER.format(bundle)}-{uuid.uuid4()}"

    def setup(self, worker) -> None:
        room = Path(worker.local_directory)
        if os.statvfs(room).f_flag & os.ST_NOEXEC:
            raise RuntimeError(
                f"{socket.gethostname()}: nothing in {room} may be executed: start the worker with"
                " --local-directory DIR"
            )
        folder = room / FOLDER.format(self.bundle)
        if folder.exists():
            return
        raw = gzip.decompress(self.packed)
        if hashlib.sha256(raw).hexdigest()[:16] != self.bundle:
            raise RuntimeError(f"{socket.gethostname()}: the bundle was damaged on its way")
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(part, **safely)
        part.rename(folder)


def run_batch(bundle: str, batch: bytes) -> bytes:
    """Run a packed batch of points; return, packed, what is kept of them. A worker that is killed
    leaves no process behind."""
    folder = Path(get_worker().local_directory) / FOLDER.format(bundle)
    environment = os.environ | {"PYTHONPATH": str(folder / "project" / "testbed")}
    done = subprocess.run(
        ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "lab.run.cluster.work",
         str(folder)],
        input=batch, capture_output=True, cwd=folder, env=environment,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it was killed"]
        raise RuntimeError(f"worker {socket.gethostname()}: {said[-1]}")
    return done.stdout
