# SPDX-License-Identifier: GPL-2.0-only
"""How long a report of thousands of points takes to be there (`make bench-report`). No test: wall
times are of a machine."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from test_browser import CHROMIUM, MANY, api, made_run, opened

from lab.measure.stats import estimate

LOADS = 10


def main() -> None:
    took_s = []
    with TemporaryDirectory() as room, api.sync_playwright() as play:
        folder = made_run(Path(room) / "many", [0, 0.1, 1, 3, 10], MANY // 110)
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(LOADS):
            start_s = time.monotonic()
            tab, _ = opened(browser, folder / "report.html")
            tab.locator("#explorer-points .said").get_by_text(f"{MANY} of {MANY} points").wait_for()
            took_s.append(time.monotonic() - start_s)
            tab.close()
        size_mb = (folder / "report.html").stat().st_size / 1e6
        browser.close()
    of = estimate(took_s)
    print(
        f"{MANY} points, {size_mb:.1f} MB: {of.median:.2f} [{of.low:.2f}, {of.high:.2f}] s,"
        f" {LOADS} loads"
    )


if __name__ == "__main__":
    main()
