# SPDX-License-Identifier: GPL-2.0-only
"""Folders of guests: each process has its own; a killed one's goes, a living one's stays."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import TESTBED

from lab.run import guestrooms

CLAIM = """
import sys, pathlib
from lab.run import guestrooms
folder = guestrooms.claim(pathlib.Path(sys.argv[1]))
(folder / "veno-jitter-guest").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setattr(guestrooms, "rooms", lambda: [tmp_path])
    return tmp_path


def claimant(room) -> tuple[subprocess.Popen, str]:
    """Start a process that claims a folder in ROOM and waits; return it and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(room)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=os.environ | {"PYTHONPATH": str(TESTBED)},
    )  # fmt: skip
    return process, process.stdout.readline().strip()


def test_a_killed_process_s_folder_goes_and_a_living_one_s_stays(room):
    living, kept = claimant(room)
    killed, left = claimant(room)
    try:
        assert guestrooms.sweep() == []
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert [str(path) for path in guestrooms.sweep(dry=True)] == [left]
        assert [str(path) for path in guestrooms.sweep()] == [left]
        assert [str(path) for path in room.iterdir()] == [kept]
    finally:
        living.communicate("")
        killed.stdout.close()
        killed.stdin.close()
    assert living.returncode == 0 and not list(room.iterdir())


def test_folders_without_a_lock_go_only_when_old_and_unused(room):
    """As an earlier version of the lab, or a test, left them."""
    old, young, used = (room / f"veno-jitter-{name}" for name in ("old", "young", "used"))
    hour_ago_s = time.time() - 2 * guestrooms.FORGOTTEN_S
    for folder in (old, young, used):
        (folder / "out").mkdir(parents=True)
    for folder in (old, used):
        for path in (folder / "out", folder):
            os.utime(path, (hour_ago_s, hour_ago_s))
    user = subprocess.Popen(["sleep", "3600"], env={"LAB_DIR": str(used)})
    try:
        assert guestrooms.sweep_forgotten() == [old]
        assert sorted(room.iterdir()) == [used, young]
    finally:
        user.kill()
        user.wait()


def test_a_link_to_elsewhere_is_not_followed(room, tmp_path_factory):
    """A guest's folder has links to the project and to results: those stay."""
    precious = tmp_path_factory.mktemp("results") / "results.jsonl"
    precious.write_text("{}\n")
    left = room / f"{guestrooms.RUN_PREFIX}x"
    left.mkdir()
    (left / "out").symlink_to(precious.parent)
    (room / f"{guestrooms.RUN_PREFIX}link").symlink_to(precious.parent)
    assert guestrooms.sweep() == [left]
    assert precious.read_text() == "{}\n" and not left.exists()
