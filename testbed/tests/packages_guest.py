# SPDX-License-Identifier: GPL-2.0-only
"""The life of the packages on a Debian, inside a machine that is thrown away: prints TAP.

test_packages.py starts it, with a repository in repository/ that has an older version of
veno-jitter-dkms and cc-tools beside all that is to be tested:

    packages_guest.py fill             install all of them in the root that this is, of a disk
    packages_guest.py filled           what a machine that booted that disk does with them
    packages_guest.py bare VERSION     from the older one on, on a machine that has none yet

The claims are steps, each on what the one before has left. Standard library only.
"""

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from lab.run.guest.kernel_log import KernelLog
from labtest.claims import Claims

HERE = Path(__file__).resolve().parent
RELEASE = os.uname().release
UPDATES = Path("/lib/modules", RELEASE, "updates")
APT = ("apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={HERE}/sources.list", "-o",
       "Dir::Etc::sourceparts=/none", "-o", "APT::Install-Recommends=false", "-y")  # fmt: skip
MODULES = {"tcp_veno_jitter", "tcp_jtcp", "tcp_veno03", "tcp_tabe", "tcp_wccp", "sch_wccp"}
# these are always the machine's own; /etc is compared by content
PASSING = ("/proc", "/sys", "/run", "/tmp", "/dev", "/var/log", "/var/cache", "/var/lib/apt",
           "/var/lib/dpkg", "/etc/ld.so.cache", "/var/lib/dkms/mok", "/etc/mtab")  # fmt: skip
BEFORE = HERE / "before.json"
SCTP_MODULES = {"sctp", "sctp_diag", "sctp_jsctp"}
SCTP_CONG_CONTROL = 1000
SETTINGS = ("tcp_congestion_control", "tcp_available_congestion_control",
            "tcp_allowed_congestion_control")  # fmt: skip
ALL = ("veno-jitter-dkms", "sctp-jitter-dkms", "cc-tools", "libtfrc2", "libtfrc-dev",
       "tfrc-tools", "veno-lab")  # fmt: skip

bare, filled = Claims(), Claims()


def run(*command: str) -> str:
    start_s = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"# {' '.join(command)}: {time.monotonic() - start_s:.0f} s", flush=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}"
    return done.stdout


def apt(*words: str) -> str:
    return run(*APT, *words)


def version_of(package: str) -> str:
    """Return which version is there; nothing if it is not, or only its settings are."""
    asked = ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", package]
    said = subprocess.run(asked, capture_output=True, text=True).stdout
    return said[3:] if said.startswith("ii") else ""


def dkms_status() -> list[str]:
    return run("dkms", "status").splitlines()


def installed() -> set[str]:
    """Return the names of the modules that are not the kernel's own."""
    return {path.name.split(".")[0] for path in UPDATES.rglob("*.ko*")}


def loaded() -> set[str]:
    return {line.split()[0] for line in Path("/proc/modules").read_text().splitlines()}


def loaded_sources() -> str:
    """Return what names the sources of the veno_jitter that is loaded."""
    return Path("/sys/module/tcp_veno_jitter/srcversion").read_text()


def everything() -> dict[str, str]:
    """Return all files, and what those of /etc hold."""
    found = {}
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in PASSING]
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            if path.startswith(PASSING):
                continue
            kept = path.startswith("/etc/") and os.path.isfile(path)
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest() if kept else ""
    return found


def settings() -> list[str]:
    """Return what the kernel is set to."""
    return [Path("/proc/sys/net/ipv4", name).read_text() for name in SETTINGS]


class Open:
    """A connection of this machine with itself that never stops sending, with an ALGORITHM that an
    OPTION of its PROTOCOL names."""

    def __init__(self, algorithm: str = "veno_jitter", protocol: int = socket.IPPROTO_TCP,
                 option: int = socket.TCP_CONGESTION):  # fmt: skip
        self.algorithm, self.about = algorithm, (protocol, option)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
            self.sender.setsockopt(*self.about, algorithm.encode())
            self.sender.connect(listener.getsockname())
            self.receiver, _ = listener.accept()
        self.got_bytes = 0
        for task in (self._send, self._receive):
            threading.Thread(target=task, daemon=True).start()

    def _send(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.sender.sendall(bytes(10_000))
                time.sleep(0.05)

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.receiver.recv(1 << 16):
                self.got_bytes += len(data)

    def goes_on(self) -> bool:
        """Say whether as many bytes come as before, and the algorithm is the same."""
        before = self.got_bytes
        for _ in range(600):
            if self.got_bytes > before + 50_000:
                break
            time.sleep(0.1)
        name = self.sender.getsockopt(*self.about, 16).split(b"\0")[0].decode()
        return self.got_bytes > before + 50_000 and name == self.algorithm

    def close(self) -> None:
        for sock in (self.sender, self.receiver):
            sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def unload(module: str) -> None:
    """Unload a MODULE, as soon as what is closed is gone."""
    for _ in range(60):
        if not subprocess.run(["rmmod", module], capture_output=True).returncode:
            return
        time.sleep(1)
    run("rmmod", module)


class State:
    """What one step leaves for the next."""

    log: KernelLog
    settings: list[str]
    connection: Open
    old_file: bytes


def module_file() -> Path:
    (path,) = UPDATES.rglob("tcp_veno_jitter.ko*")
    return path


def send_data(*what: str) -> str:
    """Run the autopkgtest, and return what it says."""
    said = run(f"{HERE}/debian/tests/send-data", *what)
    print("# " + said.strip().replace("\n", "\n# "))
    assert not (MODULES | {"sctp_jsctp", "sctp_diag"}) & loaded()
    return said


# --- a machine that has none yet --------------------------------------------------


@bare.add("apt installs the last version; DKMS builds it for this kernel, and no other module goes")
def _install():
    apt("update")
    apt("install", f"veno-jitter-dkms={OLD}", f"cc-tools={OLD}")
    assert version_of("veno-jitter-dkms") == version_of("cc-tools") == OLD
    assert installed() == MODULES, installed()
    assert any(RELEASE in line and "installed" in line for line in dkms_status()), dkms_status()
    State.old_file = module_file().read_bytes()


@bare.add("the last version carries data with each algorithm")
def _old_works():
    send_data("tcp")


@bare.add("an upgrade builds the new modules while a connection goes on with the old one")
def _upgrade():
    State.connection = Open()
    assert State.connection.goes_on()
    running = loaded_sources()
    apt("install", "veno-jitter-dkms", "cc-tools")
    assert State.connection.goes_on()
    assert loaded_sources() == running
    new = version_of("veno-jitter-dkms")
    assert new == version_of("cc-tools") != OLD
    assert installed() == MODULES and module_file().read_bytes() != State.old_file
    status = dkms_status()
    assert len(status) == 1 and new in status[0], status
    assert [path.name for path in Path("/usr/src").glob("veno-jitter*")] == [f"veno-jitter-{new}"]


@bare.add("once that connection has ended, the new modules carry data")
def _new_works():
    State.connection.close()
    unload("tcp_veno_jitter")
    send_data("tcp")


# --- a machine that has all of them -----------------------------------------------


def fill() -> None:
    """Install all packages here, after a list of what there is."""
    apt("update")
    BEFORE.write_text(json.dumps(everything()))
    apt("install", *ALL)
    assert not [name for name in ALL if not version_of(name)]


@filled.add("what DKMS has built, SCTP too, loads and carries data; so do TFRC's tools")
def _work():
    assert installed() == MODULES | SCTP_MODULES, installed()
    assert "libtfrc " in send_data("tcp", "tfrc")
    send_data("sctp")


@filled.add("the lab says what this machine can do")
def _lab():
    cache = os.environ | {
        "LAB_CACHE": "/tmp/lab-cache"
    }  # a user's own, which no package takes away
    doctor = subprocess.run(["veno-lab", "doctor"], capture_output=True, text=True, env=cache)
    assert not doctor.stderr and "processor" in doctor.stdout, doctor


@filled.add("removed while connections are open, the modules' files go, the connections go on")
def _remove():
    run("modprobe", "sctp_jsctp")
    connections = Open(), Open("jsctp_abe", socket.IPPROTO_SCTP, SCTP_CONG_CONTROL)
    assert all(one.goes_on() for one in connections)
    apt("remove", "veno-jitter-dkms", "sctp-jitter-dkms")
    assert all(one.goes_on() for one in connections)
    assert not installed() and not dkms_status()
    assert {"tcp_veno_jitter", "sctp_jsctp"} <= loaded()
    for one in connections:
        one.close()
    unload("tcp_veno_jitter")
    unload("sctp_jsctp")
    refused = subprocess.run(["modprobe", "tcp_veno_jitter"], capture_output=True)
    assert refused.returncode
    assert "/kernel/net/sctp/" in run("modinfo", "-n", "sctp")


@filled.add("purged, nothing of them is left: no file, no setting, no module")
def _purge():
    apt("purge", *ALL)
    before, after = json.loads(BEFORE.read_text()), everything()
    changed = {
        path: (before.get(path), after.get(path))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }
    assert not changed, dict(list(changed.items())[:20])
    assert settings() == State.settings
    assert not re.search("veno|tfrc|cc-tools|jitter", run("dpkg", "-l"))


def complaint_of_the_kernel() -> None:
    complaint = State.log.complaint()
    assert not complaint, complaint


for claims in (bare, filled):
    claims.add("the kernel complained of nothing meanwhile")(complaint_of_the_kernel)


if __name__ == "__main__":
    what, *version = sys.argv[1:]
    if what == "fill":
        fill()
        sys.exit(0)
    OLD = "".join(version)
    State.log = KernelLog()
    State.log.new_lines()  # what a boot says of the machine
    State.settings = settings()
    {"bare": bare, "filled": filled}[what].settle()
