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


def make_guest(folder):
    """Lay FOLDER out as a guest's."""
    (folder / "out").mkdir(parents=True)
    (folder / "init").touch()
    for name in guestrooms.GUEST_LINKS:
        (folder / name).symlink_to(TESTBED)


def age(folder):
    """Make FOLDER, and what is in it, as old as what is forgotten."""
    hour_ago_s = time.time() - 2 * guestrooms.FORGOTTEN_S
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (hour_ago_s, hour_ago_s), follow_symlinks=False)


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
    for folder in (old, young, used):
        make_guest(folder)
    for folder in (old, used):
        age(folder)
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
    (left / guestrooms.MARK).touch()
    (left / "out").symlink_to(precious.parent)
    (room / f"{guestrooms.RUN_PREFIX}link").symlink_to(precious.parent)
    assert guestrooms.sweep() == [left]
    assert precious.read_text() == "{}\n" and not left.exists()


@pytest.mark.parametrize(
    "name", ["veno-jitter-results", "veno-jitter-main", "veno-jitter-run-1", ".veno-jitter-new-a"]
)
def test_a_user_s_folder_stays_whatever_it_is_called_and_however_old_it_is(room, name):
    """As `testbed/run demo --out /tmp/veno-jitter-results` and a clone leave them."""
    results, clone = room / "a" / name, room / "b" / name
    (results / "points").mkdir(parents=True)
    (results / "out").mkdir()
    (results / "results.jsonl").write_text("{}\n")
    (clone / ".git").mkdir(parents=True)
    (clone / "project").symlink_to(TESTBED)
    for folder in (results, clone):
        moved = folder.rename(room / name)
        age(moved)
        assert guestrooms.sweep() == [] and guestrooms.sweep_forgotten() == []
        moved.rename(folder)


def test_what_earlier_versions_left_has_no_mark_and_still_goes(room):
    left = room / f"{guestrooms.RUN_PREFIX}old"
    make_guest(left / "veno-jitter-guest")
    assert guestrooms.sweep() == [left] and not left.exists()


def test_a_guest_s_folder_is_told_by_what_is_in_it(backend):
    """What the backends make is what guestrooms looks for."""
    with backend._guest_dir() as guest:
        assert guestrooms.is_guest(guest) and (guest.parent / guestrooms.MARK).is_file()
