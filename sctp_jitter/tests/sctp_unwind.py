# SPDX-License-Identifier: GPL-2.0-only
"""Load an SCTP whose N-th step of starting fails, for each N, inside the lab kernel; prints TAP.
test_unwind.py makes that module, starts this with its path and reads CLAIMS.

What a step has registered and nothing has taken back is memory of a module that is gone: the next
network namespace, socket or look at /proc goes there."""

import re
import socket
import subprocess
import sys
from pathlib import Path

from labtest.claims import Claims, check_log
from labtest.guest import run_cmd

LEAST_STEPS = 9  # with the two of sctp_cong_init()
SETTING = "/proc/sys/net/sctp/congestion_control"
ENOMEM = "Cannot allocate memory"

CLAIMS = Claims()
claim = CLAIMS.add


def fails(step: int) -> bool:
    """Load the module whose STEP fails; say whether that was so. The last step is followed by none
    that fails: then the module is loaded."""
    done = subprocess.run(
        ["insmod", sys.argv[1], f"fail_at={step}"], capture_output=True, text=True
    )
    assert not done.returncode or ENOMEM in done.stderr, done.stderr
    return bool(done.returncode)


def left() -> list[str]:
    """Return what is there of SCTP."""
    found = [path for path in ("/proc/net/sctp", "/proc/sys/net/sctp") if Path(path).exists()]
    for path in ("/proc/net/protocols", "/proc/modules"):
        lines = Path(path).read_text().splitlines()
        found += [f"{path}: {line}" for line in lines if line.lower().startswith("sctp")]
    return found


def walk_what_is_registered() -> None:
    """Go through the lists of the kernel that a module that starts is put into."""
    run_cmd("ip", "netns", "add", "walked")
    run_cmd("ip", "-n", "walked", "link", "set", "lo", "up")
    run_cmd("ip", "addr", "add", "10.9.9.9/32", "dev", "lo")
    run_cmd("ip", "addr", "del", "10.9.9.9/32", "dev", "lo")
    run_cmd("ip", "netns", "del", "walked")


@claim("each step of starting may fail: nothing is left, and the next namespace comes and goes")
def check_each_step():
    steps = 0
    while fails(steps + 1):
        steps += 1
        assert not left(), (steps, left())
        walk_what_is_registered()
    assert steps >= LEAST_STEPS, f"only {steps} steps"
    print(f"# {steps} steps", flush=True)


@claim("after that it has started, with its default, in each namespace")
def check_starts():
    chosen = Path(SETTING).read_text().strip()
    assert chosen == "rfc9260", chosen
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
    run_cmd("ip", "netns", "add", "later")
    told = run_cmd("ip", "netns", "exec", "later", "cat", SETTING)
    assert told.strip() == "rfc9260", told
    run_cmd("ip", "netns", "del", "later")


claim("the kernel log holds no complaint")(check_log)

if __name__ == "__main__":
    # those of other modules; its own, once started, cannot be unloaded
    told = run_cmd("modprobe", "-d", "/run/lab/modules", "--show-depends", "sctp")
    needed = {Path(path).stem for path in re.findall(r"^insmod (\S+)", told, re.M)} - {"sctp"}
    run_cmd("modprobe", "-d", "/run/lab/modules", "-a", *sorted(needed))
    CLAIMS.settle()
