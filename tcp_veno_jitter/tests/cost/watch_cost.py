# SPDX-License-Identifier: GPL-2.0-only
"""What cc-watch costs: watch_cost.py [CONNECTIONS [SECONDS]] opens so many over the loopback, lets
cc-watch show them on a terminal of 50 lines, and prints its processor time for each look.

Real processor time, so for a person to read and not a test. Standard library only.
"""

import fcntl
import os
import pty
import resource
import signal
import socket
import struct
import sys
import termios
import threading
import time
from pathlib import Path

WATCH = Path(__file__).resolve().parents[2] / "tools" / "cc-watch"
LINES, CHARACTERS = 50, 180


def connections(count: int) -> list[socket.socket]:
    """Return both ends of COUNT connections in all: half as many pairs."""
    found = []
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        for _ in range(count // 2):
            found.append(socket.create_connection(listener.getsockname()))
            found.append(listener.accept()[0])
            found[-1].sendall(bytes(1000))
            found[-2].recv(1000)
    return found


def shown_for(seconds: float) -> tuple[float, bytes]:
    """Return the processor time (s) that cc-watch took on a terminal, and what it drew."""
    drawn = bytearray()
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(WATCH, [str(WATCH), "--interval", "1"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, CHARACTERS, 0, 0))

    def read() -> None:
        try:
            while data := os.read(terminal, 1 << 16):
                drawn.extend(data)
        except OSError:
            pass  # it has ended

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(seconds)
    os.kill(pid, signal.SIGTERM)
    _, status, used = os.wait4(pid, 0)
    reader.join(5)
    assert status == 0, status
    return used.ru_utime + used.ru_stime, bytes(drawn)


def main(count: int = 1000, seconds: int = 20) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 100), most))
    start_s, _ = shown_for(1.0)
    held = connections(count)
    all_s, drawn = shown_for(seconds + 1.0)
    assert f"of {len(held)} connections".encode() in drawn, drawn[-500:]
    look_ms = 1000 * (all_s - start_s) / seconds
    print(
        f"{count} connections: {look_ms:.1f} ms of processor time a look, {look_ms / 10:.1f} % of"
        f" a core at one look a second; its start {1000 * start_s:.0f} ms"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
