# SPDX-License-Identifier: GPL-2.0-only
"""What Dask runs on a worker. It travels by value, so it knows nothing of the lab: it unpacks the
bundle where the worker keeps its files, and starts a process in it for each batch. What a machine
lacks is no exception but an answer, since whoever asks wants to know which machine it is."""

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
    """Lays the bundle out on each worker, also on those that come later; REFUSED: why it could
    not, there."""

    def __init__(self, bundle: str, packed: bytes):
        self.bundle, self.packed, self.refused = bundle, packed, ""
        # runs that carry the same come and go by themselves
        self.name = f"{FOLDER.format(bundle)}-{uuid.uuid4()}"

    def setup(self, worker) -> None:
        try:
            self._lay_out(Path(worker.local_directory))
        except Exception as trouble:
            self.refused = f"it cannot take the lab: {trouble}"

    def _lay_out(self, room: Path) -> None:
        if os.statvfs(room).f_flag & os.ST_NOEXEC:
            raise RuntimeError(
                f"nothing in {room} may be executed: start the worker with --local-directory DIR"
            )
        folder = room / FOLDER.format(self.bundle)
        if folder.exists():
            return
        raw = gzip.decompress(self.packed)
        if hashlib.sha256(raw).hexdigest()[:16] != self.bundle:
            raise RuntimeError("the bundle was damaged on its way")
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(part, **safely)
        part.rename(folder)


def run_batch(carrier: str, batch: bytes) -> tuple[str, str, bytes]:
    """Run a packed batch of points where CARRIER, by its name, laid out the bundle; return the
    worker's address, what it lacks or nothing, and, packed, what is kept of the points. A worker
    that is killed leaves no process behind."""
    worker = get_worker()
    plugin = worker.plugins[carrier]
    if plugin.refused:
        return worker.address, f"{socket.gethostname()}: {plugin.refused}", b""
    folder = Path(worker.local_directory) / FOLDER.format(plugin.bundle)
    own = str(folder / "project" / "testbed")
    path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "lab.run.cluster.work",
             str(folder)],
            input=batch, capture_output=True, cwd=folder, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
    except OSError as trouble:
        return worker.address, f"{socket.gethostname()}: {trouble}", b""
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it was killed"]
        return worker.address, f"{socket.gethostname()}: {said[-1]}", b""
    return worker.address, "", done.stdout
