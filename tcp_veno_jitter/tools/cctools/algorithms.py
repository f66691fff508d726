# SPDX-License-Identifier: GPL-2.0-only
"""Which congestion control algorithms this machine has, and which of them this user may choose."""

import errno
import os
import re
import socket
import subprocess
from pathlib import Path

from cctools import Complaint

SYSCTLS = Path("/proc/sys/net/ipv4")
NAME = re.compile(r"[A-Za-z0-9_-]{1,15}")  # TCP_CA_NAME_MAX


def sysctl(name: str) -> list[str]:
    """Return the words of net.ipv4.NAME."""
    try:
        return (SYSCTLS / name).read_text().split()
    except OSError as error:
        raise Complaint(f"{SYSCTLS / name}: {error.strerror}: this needs Linux") from None


def default() -> str:
    return sysctl("tcp_congestion_control")[0]


def available() -> list[str]:
    return sysctl("tcp_available_congestion_control")


def refusal(name: str) -> int:
    """Return the errno with which a socket of this user refuses NAME, 0 if it takes it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            return error.errno or errno.EINVAL
    return 0


def load(name: str) -> None:
    """Load the module of NAME, as root; what is loaded already stays as it is."""
    if name in available():
        return
    if os.geteuid():
        raise Complaint(f"--load needs root: sudo modprobe tcp_{name}")
    try:
        done = subprocess.run(
            ["modprobe", f"tcp_{name}"], capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        raise Complaint(f"modprobe: {error.strerror}: apt install kmod") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it fails"])[-1]
        raise Complaint(f"tcp_{name} cannot be loaded: {reason}")


def usable(name: str) -> bool:
    return name in available() and not refusal(name)


def check(name: str) -> None:
    """Complain if this user cannot choose NAME here, and say what helps."""
    if not NAME.fullmatch(name):
        raise Complaint(f"no algorithm is called {name!r}")
    if name not in available():
        raise Complaint(
            f"no algorithm {name} here: sudo modprobe tcp_{name}, or --load as root"
            f" (there are: {' '.join(available())})"
        )
    error = refusal(name)
    if error == errno.EPERM:
        listed = " ".join([*sysctl("tcp_allowed_congestion_control"), name])
        raise Complaint(
            f"{name} is not in tcp_allowed_congestion_control, so only root may take it:"
            f' sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="{listed}"'
        )
    if error:
        raise Complaint(f"{name} cannot be chosen: {os.strerror(error)}")
