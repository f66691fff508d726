# SPDX-License-Identifier: GPL-2.0-only
"""What traces are to lablink, for those who cannot read them:
python -m lab.ask.schedule TRACES SEED.

TRACES is JSON, a link's key (trace, delay_trace, loss_trace) to a file or model; out comes JSON,
kind of schedule to its steps in base 64.
"""

import base64
import json
import sys

from lab.ask import linktraces
from lab.ask.links import Link
from lab.common import exits


def main(**_) -> None:
    traces, seed = json.loads(sys.argv[1]), int(sys.argv[2])
    schedules = linktraces.of_link(Link(**traces), seed).values()
    steps = {schedule.kind: base64.b64encode(schedule.packed).decode() for schedule in schedules}
    print(json.dumps(steps))


if __name__ == "__main__":
    exits.run(main, "trace", "schedule")
