# SPDX-License-Identifier: GPL-2.0-only
"""lablink does what it claims, in virtual time: guest_lablink.py holds the claims. And it builds
without a warning for the kernels that there are headers of."""

import platform
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import TESTBED
from guest_lablink import CLAIMS

from lab.common.errors import BadInput
from lab.run.build import setup_paths
from labtest.boot import assert_claimed, run_scripts, verdict_count

SCRIPT = "guest_lablink.py"
FOLDER = TESTBED / "lablink"
HEADERS = sorted(Path("/usr/src").glob("linux-headers-*-amd64"))


@cache
def said() -> str:
    if platform.machine() != "x86_64":
        pytest.skip("the lab in virtual time needs an x86-64 machine")
    return run_scripts(Path(__file__).parent, [SCRIPT])[SCRIPT]


@pytest.mark.parametrize("text", [claim.text for claim in CLAIMS])
def test_claim(text):
    assert_claimed(said(), text)


def test_every_claim_was_tested():
    assert verdict_count(said()) == len(CLAIMS)


def test_it_builds_for_every_kernel_without_a_warning(tmp_path):
    if not HEADERS:
        pytest.skip("no kernel headers: apt-get install linux-headers-amd64")
    for tree in HEADERS:
        out = tmp_path / tree.name
        done = subprocess.run(
            ["make", "-C", FOLDER, f"KDIR={tree}", f"OUT={out}", "W=1"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stdout + done.stderr
        assert (out / "sch_lablink.ko").exists() and (out / "sch_labgate.ko").exists()


def test_kernel_style():
    script = Path(setup_paths()["kernel"]) / "source" / "scripts" / "checkpatch.pl"
    if not script.exists():
        pytest.skip("no checkpatch.pl: testbed/setup kernel")
    done = subprocess.run(
        ["perl", script, "--no-tree", "--strict", "--ignore", "CAMELCASE", "--file",
         *FOLDER.glob("*.c")], capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_host_without_it_is_told_what_to_do(monkeypatch):
    from lab.run.backends import host

    monkeypatch.setattr(host, "loadable", lambda module: module != "sch_lablink")
    backend = object.__new__(host.HostBackend)
    with pytest.raises(BadInput, match="sudo make -C testbed/lablink install"):
        backend.check([SimpleNamespace(spec={"lablinks": {"bottleneck": {}}})])
