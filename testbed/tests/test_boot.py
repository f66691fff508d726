# SPDX-License-Identifier: GPL-2.0-only
"""What the tests themselves boot is ended when it hangs."""

import subprocess

import pytest

from labtest import boot


def begin(script: str) -> subprocess.Popen:
    return subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)


def test_all_that_is_said_until_the_end():
    assert boot.all_said(begin("echo one; echo two; exit 1"), silent_s=60) == "one\ntwo\n"


@pytest.mark.parametrize("deaf", ["", "trap '' INT; ", "trap '' INT TERM; "])
def test_what_falls_silent_is_ended_and_its_words_are_kept(deaf, monkeypatch):
    monkeypatch.setattr(boot, "ENDS_S", 0.5)
    process = begin(f"{deaf}echo one; while :; do sleep 0.1; done")
    assert boot.all_said(process, silent_s=1) == "one\n\nit hung: nothing said for 1 s"
    assert process.returncode
