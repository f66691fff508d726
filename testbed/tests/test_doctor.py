# SPDX-License-Identifier: GPL-2.0-only
"""veno-lab doctor: it says what is missing with one command for each, and changes nothing."""

import os
import subprocess
from pathlib import Path

from conftest import TESTBED

from lab.run import doctor
from lab.run.doctor import Finding, Use


def run_doctor(**environment: str) -> subprocess.CompletedProcess:
    """Run it as on a machine without the lab's Python environment."""
    return subprocess.run(
        [str(TESTBED / "veno-lab"), "doctor"], capture_output=True, text=True,
        env=os.environ | environment,
    )  # fmt: skip


def test_a_machine_with_nothing_built_is_told_what_to_run(tmp_path):
    """An empty cache: no environment, no kernel. Nothing is made of them by looking."""
    done = run_doctor(LAB_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "-> testbed/setup kernel\n" in done.stdout and "-> testbed/setup python" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Not ready: testbed/setup")
    left = [path.name for path in Path(tmp_path).rglob("*")]
    assert left in ([], ["cache"])


def test_a_cache_that_cannot_be_written_is_the_first_thing_to_mend(tmp_path):
    (tmp_path / "file").write_text("")
    done = run_doctor(LAB_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1 and "file/cache: not writable" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Not ready: export LAB_CACHE=")


def test_missing_packages_are_named(tmp_path):
    stubs = tmp_path / "bin"
    stubs.mkdir()
    (stubs / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (stubs / "dpkg-query").chmod(0o755)
    told = run_doctor(PATH=f"{stubs}:{os.environ['PATH']}").stdout
    assert "missing:" in told and "mininet" in told and "-> testbed/setup packages" in told


def test_what_is_missing_has_a_cure():
    """On whatever machine this is: a finding that is not good says what to do."""
    for use in (use() for use in doctor.USES):
        assert use.findings and all(finding.good or finding.cure for finding in use.findings)


def test_headers_and_signatures_are_what_make_says_of_them(monkeypatch, tmp_path):
    """By the same look (check-host), here at machines that are made up."""
    monkeypatch.setenv("SYSROOT", str(tmp_path))
    monkeypatch.setenv("RELEASE", "1.2.3")
    monkeypatch.setattr(doctor.platform, "release", lambda: "1.2.3")
    monkeypatch.setattr(doctor, "loads_modules", lambda: True)
    for name, text in (("etc/os-release", "ID=debian"), ("proc/modules", "")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    found = doctor.headers()
    assert not found.good and found.told == "no kernel build tree in /lib/modules/1.2.3/build"
    assert found.cure == "apt install linux-headers-1.2.3, or give KDIR="
    assert doctor.signatures().told == "unsigned modules are taken"
    lockdown = tmp_path / "sys/kernel/security/lockdown"
    lockdown.parent.mkdir(parents=True)
    lockdown.write_text("none [integrity] confidentiality")
    assert doctor.signatures().told.startswith("signed modules only")


def test_the_page_says_yes_and_no():
    use = Use("Things", [Finding("a", True, "there"), Finding("bb", False, "gone", "fetch bb")])
    lines = list(doctor.page([use]))
    assert lines[0] == "no   Things" and lines[1] == "       a   there"
    assert lines[2].startswith("     ! bb") and lines[3].endswith("-> fetch bb")
