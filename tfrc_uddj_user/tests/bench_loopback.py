# SPDX-License-Identifier: GPL-2.0-only
"""What a packet costs tfrc-send and tfrc-recv with the kernel under them: both on one core, over
loopback. Processor time counts, so a busy machine makes it take longer, not worse; by the clock is
what was left of the core by others."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BYTES, PAYLOAD_BYTES, PORT = 400_000_000, 1400, "47193"


def main(folder: str) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as work:
        report = Path(work) / "send.json"
        receiver = subprocess.Popen(
            [f"{folder}/tfrc-recv", "--discard", "--one-off", "--quiet", "--ready-fd", "1", PORT],
            stdout=subprocess.PIPE,
        )
        receiver.stdout.readline()
        subprocess.run(
            [f"{folder}/tfrc-send", "--endless", "--bytes", str(BYTES), "--quiet",
             "--json", str(report), "127.0.0.1", PORT],
            check=True,
        )  # fmt: skip
        receiver.wait()
        sent = json.loads(report.read_text())
    used = os.times()
    cpu_s = used.children_user + used.children_system
    clock_s = sent["end_s"] - sent["start_s"]
    print(
        f"both tools on one core: {1e6 * cpu_s / sent['segs_out']:.2f} us a packet of"
        f" {PAYLOAD_BYTES} bytes, {8e-9 * sent['bytes_acked'] / cpu_s:.2f} Gb/s of processor time,"
        f" {8e-9 * sent['bytes_acked'] / clock_s:.2f} Gb/s by the clock;"
        f" {sent['lost_congestion'] + sent['lost_random']} lost"
    )


if __name__ == "__main__":
    main(sys.argv[1])
