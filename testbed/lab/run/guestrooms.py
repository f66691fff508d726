# SPDX-License-Identifier: GPL-2.0-only
"""Folders in memory that guests live in: one for each process that runs some, gone when it ends.

A process that is killed cannot take its folder away. So it holds a lock on the folder (flock),
which the kernel lets go of with the process, however that ends: a folder without is left over, and
the next run removes it.

A name is no proof: users call folders of results, or a clone, veno-jitter-something, too. So what
is removed has what only the lab puts there: the file MARK, or what a guest sees (GUEST_LINKS and
the rest of is_guest), which folders of earlier versions have as well.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

RUN_PREFIX = "veno-jitter-run-"
UNLOCKED_PREFIX = ".veno-jitter-new-"  # for the moment until a folder has its lock
GUEST_PREFIX = "veno-jitter-"  # of a guest's own folder, which lab.run.backends.base makes
MARK = ".veno-jitter-room"  # a file in each folder of a process
GUEST_LINKS = ("project", "modules")  # in each guest's folder, with out/ and the file init
FORGOTTEN_S = 3600.0  # nothing happened in it since

_held: dict[Path, int] = {}  # our folders -> the descriptor that holds the lock


def rooms() -> list[Path]:
    """Return the folders in which guests' folders may be, as lab.run.backends.base looks for
    room."""
    named = [os.environ.get("TMPDIR"), "/dev/shm", "/tmp", os.environ.get("XDG_CACHE_HOME")]
    return [Path(name) for name in dict.fromkeys(filter(None, named)) if Path(name).is_dir()]


def claim(room: Path) -> Path:
    """Make a folder in ROOM that is this process's own while it lives, and return it."""
    folder = Path(tempfile.mkdtemp(prefix=UNLOCKED_PREFIX, dir=room))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (folder / MARK).touch()
    claimed = room / (RUN_PREFIX + folder.name.removeprefix(UNLOCKED_PREFIX))
    folder.rename(claimed)
    _held[claimed] = descriptor
    atexit.register(_release, claimed)
    return claimed


def _release(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(_held.pop(folder))


def is_guest(folder: Path) -> bool:
    """Say whether FOLDER is laid out as lab.run.backends.base lays out a guest's."""
    links = all((folder / name).is_symlink() for name in GUEST_LINKS)
    return links and (folder / "out").is_dir() and (folder / "init").is_file()


def _is_room(folder: Path) -> bool:
    """Say whether FOLDER is a process's: by its mark, or by the guests that alone are in it."""
    try:
        inside = list(folder.iterdir())
    except OSError:
        return False
    return folder / MARK in inside or all(map(is_guest, inside))


def sweep(dry: bool = False) -> list[Path]:
    """Remove what killed runs of this user left; return what that was. DRY: only look."""
    return [
        folder
        for room in rooms()
        for folder in sorted(room.glob(RUN_PREFIX + "*"))
        if _removed_if_left(folder, dry)
    ]


def _removed_if_left(folder: Path, dry: bool) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # gone meanwhile, no folder, or not ours to look into
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        if not _is_room(folder):
            return False
        with suppress(BlockingIOError):  # its process lives
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not dry:
                shutil.rmtree(folder, ignore_errors=True)
            return True
        return False
    finally:
        os.close(descriptor)


def sweep_forgotten(dry: bool = False) -> list[Path]:
    """Remove also folders without a lock, of tests and of earlier versions of the lab, that no
    process names and in which nothing has happened for FORGOTTEN_S; return what that was."""
    found = []
    for room in rooms():
        old = [path for path in room.glob(GUEST_PREFIX + "*") if is_guest(path)]
        old += filter(_is_room, room.glob(UNLOCKED_PREFIX + "*"))
        for folder in sorted(path for path in old if not path.name.startswith(RUN_PREFIX)):
            if _is_forgotten(folder) and not _is_named(folder):
                found.append(folder)
                if not dry:
                    shutil.rmtree(folder, ignore_errors=True)
    return found


def _is_forgotten(folder: Path) -> bool:
    try:
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return False
        changed_s = [p.lstat().st_mtime for p in (folder, *folder.glob("*"), *folder.glob("out/*"))]
    except OSError:
        return False
    return time.time() - max(changed_s) > FORGOTTEN_S


def _is_named(folder: Path) -> bool:
    """Say whether a process has the name of FOLDER in its command or environment."""
    name = os.fsencode(folder)
    for process in Path("/proc").glob("[0-9]*"):
        for told in ("cmdline", "environ"):
            with suppress(OSError):
                if name in (process / told).read_bytes():
                    return True
    return False


def size_mb(folder: Path) -> float:
    """Return what FOLDER takes, in MB."""
    files = (path for path in folder.rglob("*") if not path.is_symlink())
    total = 0
    for path in files:
        with suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total / 1e6
