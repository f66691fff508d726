# SPDX-License-Identifier: GPL-2.0-only
"""What sctp_init() and sctp_cong_init() have registered is taken back when a later step fails.

None of these steps fails by itself, so the patched source is built once more, with a parameter that
names the one that shall: fail_at=3 is the third. sctp_unwind.py holds the claims.
"""

import platform
import re
from functools import cache
from pathlib import Path

import pytest
import sctp_unwind
from test_series import FOLDER, lab_paths, run

from labtest.boot import PROJECT, READY, assert_claimed, run_in_lab, verdict_count

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the lab in virtual time needs an x86-64 machine"
)

# what protocol.c has more, and cong.c a declaration of; the step that fails is never begun
FAILING = """
static int fail_at;
module_param(fail_at, int, 0);
bool sctp_fails(void);
bool sctp_fails(void)
{
	return fail_at && !--fail_at;
}
"""
DECLARED = "\nbool sctp_fails(void);\n"
STARTS = {"protocol.c": "sctp_init", "cong.c": "sctp_cong_init"}
STEP = re.compile(r"\b(status|err) = (\w+\([^;]*\));")


def with_failing_steps(source: str, function: str, declared: str) -> str:
    """Return the SOURCE of a file in which each step of FUNCTION asks first whether it fails."""
    start = re.search(rf"^[\w ]*\b{function}\(void\)\n\{{$.*?^\}}$", source, re.M | re.S)
    assert start, f"no {function}()"
    body, steps = STEP.subn(r"\1 = sctp_fails() ? -ENOMEM : \2;", start[0])
    assert steps >= 2, body
    return source[: start.start()] + declared + "\n" + body + source[start.end() :]


@pytest.fixture(scope="module")
def module() -> Path:
    """The patched SCTP with steps that fail, built for the lab kernel."""
    if READY not in run_in_lab(f"echo {READY}"):
        pytest.fail("no lab kernel")
    kernel = lab_paths()["kernel"]
    out = PROJECT / "build" / "sctp-unwind" / kernel.name
    stamp = out / "patched"
    if stamp.exists() and stamp.stat().st_mtime < Path(__file__).stat().st_mtime:
        stamp.unlink()
    build = ["make", "-s", "-C", FOLDER, "ARCH=um", f"KDIR={kernel / 'obj'}", f"OUT={out}"]
    run(*build, f"SOURCE={kernel / 'source'}", "source")
    for name, function in STARTS.items():
        path = out / "net" / "sctp" / name
        declared = FAILING if function == "sctp_init" else DECLARED
        if "sctp_fails" not in path.read_text():
            path.write_text(with_failing_steps(path.read_text(), function, declared))
    run("make", "-s", "-C", kernel / "obj", "ARCH=um", f"M={out}", "modules")
    return out / "net" / "sctp" / "sctp.ko"


@cache
def said(module: Path) -> str:
    script = Path(__file__).parent.relative_to(PROJECT) / "sctp_unwind.py"
    return run_in_lab(f"/usr/bin/python3 {script} {module}")


@pytest.mark.parametrize("text", [one.text for one in sctp_unwind.CLAIMS])
def test_claim(module, text):
    assert_claimed(said(module), text)


def test_every_claim_was_tested(module):
    assert verdict_count(said(module)) == len(sctp_unwind.CLAIMS)
