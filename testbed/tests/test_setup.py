# SPDX-License-Identifier: GPL-2.0-only
"""What cannot work is said in one line that names the cure, and leaves nothing half-made."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import RUN, TESTBED, run_command


def setup(step: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(TESTBED / "setup"), step],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"LAB_CACHE": str(tmp_path / "cache")} | environment,
    )


def fake_source(folder: Path, time_travel: bool, netem_seed: bool) -> Path:
    """Make what looks like a kernel source that lacks one thing or the other."""
    uml = folder / "arch/um/Kconfig"
    netem = folder / "include/uapi/linux/pkt_sched.h"
    tcp = folder / "include/uapi/linux/tcp.h"
    for path, text in (
        (tcp, "tcpi_total_rto\n"),
        (uml, "config UML_TIME_TRAVEL_SUPPORT\n" * time_travel),
        (netem, "TCA_NETEM_PRNG_SEED\n" * netem_seed),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("time_travel", "netem_seed", "told"),
    [
        (False, True, "no virtual time"),
        (True, False, "without a seed"),
        (True, True, "does not apply"),
    ],
)
def test_a_kernel_source_that_cannot_serve_is_named(tmp_path, time_travel, netem_seed, told):
    source = fake_source(tmp_path / "linux", time_travel, netem_seed)
    done = setup("kernel", tmp_path, KERNEL_SRC=str(source))
    assert done.returncode == 2
    assert told in done.stderr.splitlines()[-1] and str(source) in done.stderr
    assert not list((tmp_path / "cache").glob("kernels/*/complete"))


def test_the_labs_patches_fit_the_newest_kernel():
    """Those of them that it needs; KERNEL_SRC may name any that is not older than 6.7."""
    paths = subprocess.run([TESTBED / "setup", "paths"], capture_output=True, text=True).stdout
    cache = next(line.partition("=")[2] for line in paths.splitlines() if line.startswith("cache="))
    tree = Path(cache, "trees/newest/source")
    if not (tree / "arch/um/Kconfig").exists():
        pytest.skip("the newest kernel's source is not here: testbed/setup test")
    command = [TESTBED / "kernels/patches/series", tree]
    needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert needed
    for patch in needed:
        command = ["patch", "--dry-run", "-d", tree, "-p1", "-N", "-s", "-i", patch]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{patch}: {done.stdout}"


def test_a_trees_own_algorithms_are_built_as_modules(tmp_path):
    """But nothing is taken from a choice of the default, nor what the lab's configuration names."""
    kconfig = tmp_path / "Kconfig"
    kconfig.write_text(
        'menuconfig TCP_CONG_ADVANCED\n\tbool "more"\nconfig TCP_CONG_CUBIC\n\ttristate "c"\n'
        'config TCP_CONG_MINE2\n\ttristate "mine"\n\tdepends on X\nconfig DEFAULT_MINE2\n\tbool\n'
        "config INET_TUNNEL\n\ttristate\n"
    )
    command = [TESTBED / "kernels/tcp-algorithms", kconfig, TESTBED / "kernels/lab.config"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout == "CONFIG_TCP_CONG_MINE2=m\n"


def test_a_kernel_source_that_is_not_there(tmp_path):
    done = setup("kernel", tmp_path, KERNEL_SRC="/no/such/linux")
    assert done.returncode == 2 and "no kernel source at /no/such/linux" in done.stderr
    run = run_command("demo", env=os.environ | {"KERNEL_SRC": "/no/such/linux"}, cwd=tmp_path)
    assert run.returncode == 2 and len(run.stderr.splitlines()) == 1


def test_an_unwritable_cache(tmp_path):
    (tmp_path / "file").write_text("")
    done = setup("kernel", tmp_path, LAB_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1 and "set LAB_CACHE" in done.stderr


def test_a_second_setup_waits_for_the_first(tmp_path):
    """Of the Python environment, too: two commands of a first use may be given at once."""
    paths = setup("paths", tmp_path).stdout.splitlines()
    venv = Path(next(line for line in paths if line.startswith("venv=")).partition("=")[2])
    with Path(f"{venv}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [str(TESTBED / "setup"), "python"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LAB_CACHE": str(tmp_path / "cache")},
        )
        assert second.stdout.readline().startswith("waiting for another setup")
        venv.mkdir()
        (venv / "complete").touch()
    assert second.wait(timeout=60) == 0
    assert [file.name for file in venv.iterdir()] == ["complete"]


def mounts() -> bool:
    """Say whether this process may mount in a namespace of its own; root in a container may not."""
    asked = ["unshare", "-m", "mount", "--bind", "/usr/bin/python3", "/usr/bin/python3"]
    return subprocess.run(asked, capture_output=True).returncode == 0


@pytest.mark.skipif(not mounts(), reason="mounts over the interpreter: needs the right to")
def test_a_python_that_is_too_old_is_one_line_before_anything_is_made(tmp_path):
    """It is the system's, which no setting changes. doctor runs on it, and says so, too."""
    shutil.copy(Path("/usr/bin/python3").resolve(), tmp_path / "real")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.version_info = (3, 9, 2)\n")
    old = tmp_path / "old"
    old.write_text(
        '#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 && exit\n'
        f'PYTHONPATH={tmp_path}:$PYTHONPATH exec {tmp_path}/real "$@"\n'
    )
    old.chmod(0o755)

    def on_it(command: str) -> subprocess.CompletedProcess:
        script = f"mount --bind {old} /usr/bin/python3 && exec {TESTBED}/{command}"
        return subprocess.run(
            ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
            env=os.environ | {"LAB_CACHE": str(tmp_path / "cache")},
        )  # fmt: skip

    for command in ("run demo", "veno-lab list", "setup packages", "setup"):
        done = on_it(command)
        assert done.returncode == 1 and not done.stdout, command
        assert len(done.stderr.splitlines()) == 1 and "3.9.2, and the lab needs" in done.stderr
    assert not list((tmp_path / "cache").glob("venv-*/*"))
    told = on_it("veno-lab doctor").stdout
    assert "! Python              3.9.2, and 3.11 or newer is needed\n" in told
    assert told.splitlines()[-1].startswith("Not ready: a machine or a container with Debian")


def stubs_before_path(tmp_path: Path, scripts: dict[str, str]) -> str:
    """Return a PATH on which each NAME is a shell SCRIPT."""
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name, script in scripts.items():
        (stubs / name).write_text(f"#!/bin/sh\n{script}\n")
        (stubs / name).chmod(0o755)
    return f"{stubs}:{os.environ['PATH']}"


def test_without_root_the_administrators_command_is_printed(tmp_path):
    """No package is there, the user is not root, sudo would ask: the command to run, once."""
    path = stubs_before_path(
        tmp_path, {"dpkg-query": "exit 1", "id": "echo 1000", "sudo": "exit 1"}
    )
    done = setup("packages", tmp_path, PATH=path)
    assert done.returncode == 1
    assert "apt-get install -y" in done.stderr and "linux-source-6.12" in done.stderr


@pytest.mark.parametrize(
    ("locked", "broken"),
    [(2, ""), (0, "Unable to fetch some archives"),
     (0, "Could not open lock file /var/lib/apt/lists/lock - open (30: Read-only file system)")],
    ids=["locked", "broken", "read-only"],
)  # fmt: skip
def test_another_apt_that_reads_lists_is_waited_for(tmp_path, locked, broken):
    """Whatever else is wrong with the lists is said at once."""
    calls, status = tmp_path / "calls", int(bool(broken))
    apt = f"""
        echo $1 >>{calls}
        [ $1 = update ] || exit 0
        [ $(grep -c update {calls}) -gt {locked} ] && echo "E: {broken}" && exit {status}
        echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7"
        exit 100"""
    path = stubs_before_path(
        tmp_path, {"dpkg-query": "exit 1", "id": "echo 0", "sleep": "exit 0", "apt-get": apt}
    )
    done = setup("packages", tmp_path, PATH=path)
    assert done.returncode == status, done.stderr
    installs = ["install"] * (not status)
    assert calls.read_text().split() == ["update"] * (locked + 1) + installs


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")
def test_no_space_for_results_loses_nothing(tmp_path):
    """One line, exit 2, and no result that is not whole."""
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=96k none {small} && {RUN} demo --algorithms reno --seeds 2"
        f" --set loss_pct=1 --set run.duration_s=60 --out {small}/out; status=$?;"
        f" for f in {small}/out/points/*.json; do [ ! -e $f ] || tail -c 2 $f; done;"
        " echo status $status"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    assert "status 2" in done.stdout and "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert set(done.stdout.splitlines()[:-1]) <= {"}"}


@pytest.mark.parametrize(("words", "name"), [([], "NAME"), (["scorecard"], "scorecard")])
def test_help_says_where_results_go(words, name):
    text = " ".join(run_command(*words, "--help").stdout.split())
    folders = f"(results/{name}, or {name}-2, ... if it is there)"
    assert folders in text and "default: (results" not in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no-such-scenario"], "unknown scenario"),
        (["demo", "--algorithms", "tahoe"], "unknown algorithm"),
        (["demo", "--backend", "moon"], "unknown backend"),
        (["demo", "--set", "loss_pct=120"], "at most 100 %"),
        (["demo", "--set", "links.bottleneck.rate_mbps=-1"], "negative"),
        (["demo", "--set", "lss_pct=1"], "did you mean 'loss_pct'"),
        (["demo", "--set", "loss_pct"], "KEY=VALUE"),
        (["demo", "--seeds", "2", "--seed", "1"], "give one of them"),
        (["demo", "--seeds", "-1"], "numbers from 1 to"),
        (["demo", "--jobs", "-1"], "at least 1"),
        (["demo", "--set", "modules.jtcp.no_such=1"], "parameter of jtcp"),
        (["demo", "--set", "modules.jtcp.k_percent=0"], "between 1 and 1000"),
        (["demo", "--seed", "0"], "numbers from 1 to"),
        (["demo", "--out", "/dev/null"], "is a file"),
        (["demo", "--out", "/proc/lab"], "cannot write"),
        (["demo", "--outt", "x"], "--outt (Possible options: --out): see testbed/run -h"),
        (["demo", "--algorithms", "reno", "cubic"], "unexpected extra argument"),
        (["demo", "--seeds", "many"], "'--seeds'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, told, tmp_path):
    done = run_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    complaint = [line for line in done.stderr.splitlines() if line.startswith("run: ")]
    assert len(complaint) == 1 and told in complaint[0]
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())
    assert "Usage:" not in done.stderr
