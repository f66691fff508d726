# SPDX-License-Identifier: GPL-2.0-only
"""What a guest's kernel complains of is seen, once."""

from conftest import run_command

SCRIPT = """
from lab.run.guest.kernel_log import KernelLog
log = KernelLog()
assert log.complaint() == "", "after a boot"
for line in ("all is well", "BUG: KASAN: made up"):
    print(line, file=open("/dev/kmsg", "w"))
assert log.complaint().startswith("BUG: KASAN: made up"), "not seen"
assert log.complaint() == "", "seen twice"
races = ("BUG: KCSAN: data-race in tick / idle", "Tainted: [O]=OOT_MODULE", "=" * 66,
         "BUG: KCSAN: data-race in copy / list", " sctp_outq+0x1/0x2 [sctp]", "=" * 66)
for line in races[:3]:
    print(line, file=open("/dev/kmsg", "w"))
assert log.complaint() == "", "a race of the kernel itself"
for line in races:
    print(line, file=open("/dev/kmsg", "w"))
assert log.complaint().startswith(races[3]), "a race of a module"
print("kernel log: fine")
"""


def test_a_complaint_is_found_once():
    done = run_command("--exec", f"/usr/bin/python3 -c '{SCRIPT}'")
    assert "kernel log: fine" in done.stdout, done.stdout + done.stderr
