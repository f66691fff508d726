# SPDX-License-Identifier: GPL-2.0-only
"""Records one algorithm's flows, inside the lab kernel. Standard library only.

    guest_record.py ALGORITHM RECORDER.ko SECONDS

Leaves FLOW.rec in $LAB_OUT for each of FLOWS, which last that many virtual seconds. All take the
same path: 10 Mb/s, 40 ms round trip, a queue of 50 packets (60 ms).
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import guest_net

from labtest.guest import run_cmd

PATH = {"rate_mbps": 10, "delay_ms": 20, "queue_pkts": 50}
CHUNK_BYTES, CHUNK_EVERY_S = 40_000, 0.1  # a third of the rate: limited by the application


def send_bulk(flow: guest_net.Flow, duration_s: float) -> None:
    with flow:
        time.sleep(duration_s)


def send_chunks(flow: guest_net.Flow, duration_s: float) -> None:
    with flow:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            flow.sock.sendall(bytes(CHUNK_BYTES))
            time.sleep(CHUNK_EVERY_S)


# name -> (what to send, netem's words for the bottleneck)
FLOWS = {
    "bulk": (send_bulk, ()),
    "lossy": (send_bulk, ("loss", "1%")),
    "chunks": (send_chunks, ()),
}


def record(algorithm: str, recorder: str, name: str, duration_s: float, out: Path) -> None:
    send, words = FLOWS[name]
    run_cmd("insmod", recorder, f"algorithm={algorithm}")
    with guest_net.Path(**PATH) as path:
        path.shape(*words)
        send(guest_net.Flow("record", bulk=send is send_bulk), duration_s)
    shutil.copyfile("/proc/tcp_record", out / f"{name}.rec")
    # the sockets of a namespace end a moment after it
    until_s = time.monotonic() + 30
    while Path("/sys/module/tcp_record/refcnt").read_text() != "0\n":
        if time.monotonic() > until_s:
            raise RuntimeError("tcp_record: its connections do not end")
        time.sleep(0.1)
    run_cmd("rmmod", "tcp_record")


def main() -> None:
    algorithm, recorder, duration_s = sys.argv[1:]
    # reno and cubic are built in: modprobe's complaint is no news
    subprocess.run(["modprobe", "-q", "-d", "/run/lab/modules", f"tcp_{algorithm}"])
    for name in FLOWS:
        record(algorithm, recorder, name, float(duration_s), Path(os.environ["LAB_OUT"]))


if __name__ == "__main__":
    main()
