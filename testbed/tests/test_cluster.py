# SPDX-License-Identifier: GPL-2.0-only
"""Points on other machines: here, workers that have neither the lab in their Python nor a checkout
as their folder."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import dask.config
import dask_jobqueue
import pytest
from distributed.comm import CommClosedError

from lab.ask import linktraces, points, scenario
from lab.common.errors import BadInput, LabError
from lab.run import runner
from lab.run.cluster import bundle, carried, crew, work
from lab.run.store import Store

DASK = Path(sys.executable).parent / "dask"
PATH = "jsctp-primary"


@pytest.fixture
def started():
    """Start processes of Dask's, which end with the test."""
    running = []

    def start(folder: Path, *arguments: str, **more: str) -> subprocess.Popen:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more
        with open(folder / f"dask-{len(running)}", "w") as log:
            running.append(subprocess.Popen(
                [str(DASK), *arguments, "--no-dashboard"], cwd=folder, env=environment,
                stdout=log, stderr=log,
            ))  # fmt: skip
        return running[-1]

    start.running = running
    yield start
    for process in running:
        process.kill()
        process.wait()


def when(condition, process: subprocess.Popen):
    """Return what CONDITION gives once it is something, while PROCESS lives."""
    while not (found := condition()):
        assert process.poll() is None
        time.sleep(0.02)
    return found


def scheduler_of(started, folder: Path) -> str:
    told = folder / "scheduler.json"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told)]
    process = started(folder, "scheduler", *arguments)
    when(told.exists, process)
    return when(lambda: json.loads(told.read_text() or "{}").get("address"), process)


def worker_of(
    started, folder: Path, address: str, name: str, **environment: str
) -> subprocess.Popen:
    options = ["--nthreads", "1", "--no-nanny", "--name", name, "--local-directory", str(folder)]
    return started(folder, "worker", address, *options, **environment)


def children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listed in lists for child in listed.read_text().split()]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [deeper for child in found for deeper in descendants(child)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def short_points(backend, **settings) -> list[points.Point]:
    settings = {"run.duration_s": "5", "run.warmup_s": "1", "loss_pct": "1,10"} | settings
    loaded = scenario.load(PATH, settings)
    return points.expand(loaded, ("jtcp",), [1, 2, 3], backend.build.key)


def files(folder: Path) -> dict[str, bytes]:
    """Return what a run left but how it was made."""
    kept = [p for p in folder.rglob("*") if p.is_file() and p.name != "meta.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def test_a_killed_worker_loses_nothing_and_results_are_those_of_a_local_run(
    backend, started, tmp_path, capfd
):
    todo = short_points(backend)

    def sweep(folder: Path, of: crew.Crew | None = None) -> runner.Sweep:
        store = Store(tmp_path / folder)
        return runner.run_points(todo, backend, store, 1, lambda p: p.seed == 1, {}, None, of)

    address = scheduler_of(started, tmp_path)
    workers = [worker_of(started, tmp_path, address, f"w{i}") for i in range(3)]
    dead: list[int] = []

    def kill_one() -> None:
        """Kill the first that has a kernel at work, as a machine that fails would end."""
        while not dead:
            for worker in workers:
                if len(found := descendants(worker.pid)) > 1:
                    worker.send_signal(signal.SIGKILL)
                    dead.extend([worker.pid, *found])
                    return
            time.sleep(0.01)

    with crew.gathered(address, 0) as of:
        while of.cores() < len(workers):
            time.sleep(0.1)
        killer = threading.Thread(target=kill_one)
        killer.start()
        far = sweep("far", of)
        killer.join()
    assert not far.failures and len(far.results) == len(todo)
    assert "6 of 6 points" in capfd.readouterr().err
    while any(map(is_running, dead[1:])):  # nothing of the killed one goes on
        time.sleep(0.1)
    near = sweep("near")
    assert files(tmp_path / "near") == files(tmp_path / "far")
    assert near.results == far.results


def test_a_scheduler_that_goes_ends_the_run_in_words(backend, started, tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "CONNECT_S", 3.0)  # so long it is looked for
    address = scheduler_of(started, tmp_path)
    worker = worker_of(started, tmp_path, address, "w")
    store = Store(tmp_path / "far")
    todo = short_points(backend)

    def go() -> None:
        while len(descendants(worker.pid)) < 2:
            time.sleep(0.05)
        for process in started.running:
            process.kill()

    with crew.gathered(address, 0) as of:
        killer = threading.Thread(target=go)
        killer.start()
        with pytest.raises(LabError, match="the scheduler is gone; what is finished is kept"):
            runner.run_points(todo, backend, store, 1, lambda _: False, {}, None, of)
        killer.join()


@pytest.mark.filterwarnings("ignore:Mismatched versions")
def test_a_machine_that_lacks_something_is_left_out_as_long_as_there_are_others(
    backend, started, tmp_path, capfd
):
    """Its batch goes to another. It is found by what the worker's own PYTHONPATH has, too."""
    other = tmp_path / "packages" / "numpy-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")
    address = scheduler_of(started, tmp_path)
    worker_of(started, tmp_path, address, "bad", PYTHONPATH=str(other.parent))
    todo = short_points(backend)[:2]

    def run(folder: str, workers: int) -> runner.Sweep:
        with crew.gathered(address, 0) as of:
            while of.describe()["threads"] < workers:
                time.sleep(0.1)
            store = Store(tmp_path / folder)
            return runner.run_points(todo, backend, store, 1, lambda _: False, {}, None, of)

    lack = f"{socket.gethostname()}: its Python lacks what results are made by: pip install numpy=="
    with pytest.raises(LabError, match=f"^no worker is left that can run points: {lack}"):
        run("none", 1)
    capfd.readouterr()
    worker_of(started, tmp_path, address, "good")
    done = run("one", 2)
    assert not done.failures and len(done.results) == len(todo)
    said = capfd.readouterr().err
    assert said.count(lack) == said.count("this worker is left out") == 1


def test_a_worker_without_room_for_the_lab_says_so(tmp_path, monkeypatch):
    """Also one that comes later: it answers with what it lacks, and is no sign of a lost
    scheduler."""
    carrier = carried.Carrier("a", b"")
    worker = SimpleNamespace(local_directory=str(tmp_path / "none"), address="tcp://w:1",
                             plugins={carrier.name: carrier})  # fmt: skip
    carrier.setup(worker)
    monkeypatch.setattr(carried, "get_worker", lambda: worker)
    at, lack, kept = carried.run_batch(carrier.name, b"")
    assert at == "tcp://w:1" and not kept
    assert lack.startswith(f"{socket.gethostname()}: it cannot take the lab: ") and "none" in lack


class Gone:
    """A client whose scheduler has gone: each question fails in one of the ways of Dask's."""

    def __init__(self, status: str, error: Exception):
        self.status, self.error = status, error

    def __getattr__(self, name):
        raise self.error


@pytest.mark.parametrize(
    "client",
    [Gone("running", CommClosedError("lost")), Gone("closed", AttributeError("no scheduler"))],
    ids=["lost", "closed"],
)
def test_a_scheduler_that_went_before_the_run_is_told_in_words(client):
    for ask in (
        lambda of: of.cores(), lambda of: of.describe(), lambda of: of.carry(None, []),
        lambda of: of.submit(b"", None),
    ):  # fmt: skip
        with pytest.raises(LabError, match=f"^{crew.GONE}$"):
            ask(crew.Crew(client))


def test_only_a_lost_connection_is_taken_for_a_lost_scheduler():
    told = {"host": {"python": "3.11.2.final.0"}}
    client = SimpleNamespace(
        status="running", get_versions=lambda: {"client": told, "workers": {"tcp://w:1": told}}
    )
    assert crew.Crew(client).in_words(FileNotFoundError(2, "none", "f")) == "[Errno 2] none: 'f'"
    assert crew.Crew(client).in_words(CommClosedError()) == crew.GONE


def test_a_worker_with_another_python_is_refused():
    told = {"client": "3.11.2.final.0", "tcp://a:1": "3.11.9.final.0", "tcp://b:1": "3.12.0.rc.1"}
    told = {name: {"host": {"python": version}} for name, version in told.items()}
    client = SimpleNamespace(
        status="running", get_versions=lambda: {"client": told.pop("client"), "workers": told}
    )
    with pytest.raises(LabError, match=r"^the worker tcp://b:1 has Python 3\.12: start it with 3"):
        crew.Crew(client).carry(None, [])


def test_a_machine_without_the_libraries_of_the_medium_is_told_so(tmp_path):
    """But only where points are wireless."""
    program = tmp_path / "labmedium"
    program.write_text("#!/bin/sh\necho 'labmedium: libns3-core.so: no such file' >&2; exit 127\n")
    program.chmod(0o755)
    work.check_machine()
    with pytest.raises(LabError, match=r"libns3-core\.so: no such file: apt-get install libns3"):
        work.check_machine(program)


def test_slurm_is_asked_for_jobs_that_end_with_the_run(backend, tmp_path, monkeypatch):
    """Not before there is something to run, and each job is one worker. By stand-ins for sbatch
    and scancel: what dask-jobqueue writes for a job is run as it is."""
    programs = {
        "sbatch": 'cp "$1" $0.job; setsid bash $0.job >$0.log 2>&1 & echo $! | tee $0.jobs',
        "scancel": "kill -- -$1",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    crew.check("", 1, 0, "virtual")
    job = {"cores": 4, "memory": "1GB", "local-directory": str(tmp_path), "log-directory": None}
    job["shared-temp-directory"] = str(tmp_path)
    todo = short_points(backend)[:1]
    told = {f"jobqueue.slurm.{key}": value for key, value in job.items()}
    with dask.config.set(told), crew.gathered("", 1) as of:
        assert of.cores() == 4
        assert not (tmp_path / "sbatch.jobs").exists()
        address = of.describe()["scheduler"]
        assert address.startswith("tls://")  # who has an account on that machine is kept out
        refused = pytest.raises(BadInput, match="no Dask scheduler answers")
        with refused, crew.gathered(address.replace("tls://", "tcp://"), 0):
            pass
        certificates = list(tmp_path.glob(".dask-jobqueue.worker.*"))
        assert certificates and all(one.stat().st_mode & 0o77 == 0 for one in certificates)
        store = Store(tmp_path / "far")
        done = runner.run_points(todo, backend, store, 1, lambda _: False, {}, None, of)
    assert "--nthreads 4 " in (script := (tmp_path / "sbatch.job").read_text())
    assert "--nworkers" not in script
    assert not done.failures and [r["seed"] for r in done.results] == [1]
    for pid in map(int, (tmp_path / "sbatch.jobs").read_text().split()):
        while is_running(pid):
            time.sleep(0.1)
    (tmp_path / "sbatch.jobs").unlink()
    with dask.config.set(told), crew.gathered("", 1) as of:
        runner.run_points(todo, backend, store, 1, lambda _: False, {}, None, of)
    assert not (tmp_path / "sbatch.jobs").exists()  # all of it is there


def test_a_slurm_job_that_nothing_is_told_of_is_refused():
    assert dask_jobqueue.SLURMCluster  # its import brings the defaults
    untold = {"jobqueue.slurm.cores": None, "jobqueue.slurm.memory": None}
    told = dask.config.set(untold)
    with told, pytest.raises(BadInput, match=r"jobqueue\.yaml"), crew.gathered("", 1):
        pass


def test_a_bundle_is_all_that_a_worker_needs_and_has_one_name(backend, tmp_path, monkeypatch):
    """Also the traces that links follow: on a worker they are at another place."""
    trace = tmp_path / "mine.csv"
    trace.write_text("seconds,mbps\n0,1\n5,2\n10,1\n")
    at = {"links.bottleneck.rate_mbps": "0", "links.bottleneck.trace": str(trace)}
    todo = short_points(backend, **at)
    made = bundle.make(backend, todo)
    assert made == bundle.make(backend, todo)
    want = linktraces.of(str(trace), "rate", 1)
    folder = tmp_path / "worker"
    with tarfile.open(fileobj=BytesIO(made.packed)) as tar:
        tar.extractall(folder)
    trace.unlink()
    monkeypatch.setattr(linktraces, "elsewhere", {})
    there = bundle.backend_in(folder)
    assert linktraces.of(str(trace), "rate", 1).packed == want.packed
    assert Path(there.build.module_file("tcp_jtcp")).is_relative_to(folder)
    assert (folder / "linux").read_bytes() == backend.build.kernel.image.read_bytes()
    trace.write_text("seconds,mbps\n0,1\n5,3\n10,1\n")
    assert bundle.make(backend, todo).name != made.name


def test_other_versions_of_what_makes_figures_are_refused(monkeypatch):
    monkeypatch.setattr(bundle, "_version", {"numpy": "2", "polars": "1"}.get)
    bundle._check_packages({"numpy": "2"})
    with pytest.raises(LabError, match=r"pip install polars==3$"):
        bundle._check_packages({"numpy": "2", "polars": "3"})


@pytest.mark.parametrize("asked, told", [
    (("tcp://h:1", 2, 0, "virtual"), "give one"),
    (("", -1, 0, "virtual"), "at least 1"),
    (("tcp://h:1", 0, 0, "vm"), "this machine alone"),
    (("tcp://h:1", 0, 4, "virtual"), "--jobs"),
    (("", 2, 0, "virtual"), "no sbatch"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_before_anything_is_built(asked, told, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BadInput, match=told):
        crew.check(*asked)
    crew.check("", 0, 4, "vm")


def test_where_no_scheduler_is_the_cure_is_told(monkeypatch):
    monkeypatch.setattr(crew, "CONNECT_S", 0.5)
    with pytest.raises(BadInput, match="dask scheduler"), crew.gathered("tcp://127.0.0.1:1", 0):
        pass
