# SPDX-License-Identifier: GPL-2.0-only
"""make bench-law finds every number that the law is tuned by, and changes that one alone."""

import re
import subprocess
import sys

import pytest
import sensitivity

SOURCE = (sensitivity.PROJECT / sensitivity.LAW).read_text()
CONSTANTS = sensitivity.constants(SOURCE)


def test_all_that_the_law_is_tuned_by():
    names = {one.name for one in CONSTANTS}
    parameters = set(re.findall(r"struct tcp_param (vj_\w+)", SOURCE))
    assert parameters - names == {"vj_pace", "vj_peer_clock"}  # switches
    defines = re.findall(r"#define (VJ_\w+)", sensitivity.TUNED.search(SOURCE)[0])
    assert set(defines) <= names and len(names) == len(defines) + len(parameters) - 2


@pytest.mark.parametrize("one", CONSTANTS, ids=lambda one: one.name)
def test_one_number_changes(one):
    for value in (one.halved(), one.doubled()):
        lines = zip(SOURCE.splitlines(), one.put(SOURCE, value).splitlines(), strict=True)
        changed = [(old, new) for old, new in lines if old != new]
        assert len(changed) == (value != one.value)
        assert all(one.name in old for old, _ in changed)
        assert one.smallest <= value <= one.largest


def fits(source: str) -> bool:
    """Is no BUILD_BUG_ON() of the law's numbers true?"""
    numbers = dict(re.findall(r"#define (VJ_\w+)\s+([^/\n]+)", source))
    for condition in re.findall(r"BUILD_BUG_ON\((.*VJ_.*)\);", source):
        while names := set(re.findall(r"VJ_\w+", condition)):
            for name in names:
                condition = re.sub(rf"\b{name}\b", f"({numbers[name].strip()})", condition)
        if eval(condition.replace("||", " or ").replace("/", "//")):
            return False
    return True


@pytest.mark.parametrize("one", CONSTANTS, ids=lambda one: one.name)
def test_what_is_varied_builds(one):
    assert all(fits(one.put(SOURCE, value)) for value in (one.halved(), one.doubled()))
    if one.name == "VJ_FILLS":
        assert not fits(one.put(SOURCE, 2 * one.value)), "a field's limit is not seen"


def test_shifts_halve_and_double_their_share():
    shift = next(one for one in CONSTANTS if one.name == "VJ_ROOM_SHIFT")
    assert [shift.said(value) for value in (shift.halved(), shift.value, shift.doubled())] == [
        "1/16", "1/8", "1/4",
    ]  # fmt: skip


def test_an_unknown_name_is_said():
    command = [sys.executable, sensitivity.__file__, "VJ_NONE"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 2 and "VJ_NONE: none of vj_beta" in told.stderr
