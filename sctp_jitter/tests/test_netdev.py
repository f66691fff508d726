# SPDX-License-Identifier: GPL-2.0-only
"""The patches for netdev are made of the others, and are what netdev would take: they apply, each
series by itself, checkpatch is content, and nothing in them is of this project's own world.

That they build after each patch is shown by matrix_sctp.py.
"""

import os
import re
import subprocess

import pytest
from test_series import FOLDER, GIT, checkpatch, copied, lab_paths, pristine, run

from labtest.guest import load_script

NETDEV = load_script(FOLDER / "netdev" / "make_series.py")
NEWEST = lab_paths()["cache"] / "trees" / "newest"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder with all series, made for the newest kernel; OUT is a relative path."""
    pristine("newest")
    out = tmp_path_factory.mktemp("netdev")
    run("make", "-s", "-C", FOLDER, "netdev", f"OUT={os.path.relpath(out, FOLDER)}",
        f"SOURCE={NEWEST / 'series'} {NEWEST / 'source'}")  # fmt: skip
    return out


@pytest.fixture
def kernel(tmp_path):
    """Return a repository of the files that the series change."""
    tree = copied("newest", tmp_path / "linux")
    for path in ("include/net/netns/sctp.h", "include/uapi/linux/inet_diag.h"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes((NEWEST / "source" / path).read_bytes())
    run("git", "-C", tree, "add", "-A")
    run("git", "-C", tree, "commit", "-q", "--amend", "--no-edit", env=os.environ | GIT)
    return tree


def patches(made, name):
    return sorted(path for path in (made / name).iterdir() if "cover" not in path.name)


@pytest.mark.parametrize("name", NETDEV.SERIES)
def test_each_series_applies_by_itself(made, kernel, name):
    mails = patches(made, name)
    assert len(mails) == len(NETDEV.SERIES[name][1])
    run("git", "-C", kernel, "am", "-q", "--whitespace=error-all", *mails, env=os.environ | GIT)


def test_the_cover_letter_is_a_mail(made):
    head, _, body = (made / "cong/0000-cover-letter.patch").read_text().partition("\n\n")
    names = [line.partition(":")[0] for line in head.splitlines()[1:]]
    assert names == ["From", "Date", "Subject"]
    steps = len(NETDEV.SERIES["cong"][1])
    assert f"\nSubject: [PATCH RFC net-next 00/{steps}] sctp: " in head
    assert body.startswith("SCTP in Linux has one congestion control")


@pytest.mark.parametrize("name", NETDEV.SERIES)
def test_style(made, name):
    """checkpatch --strict is content; only it cannot know the first of all commits here."""
    for patch in patches(made, name):
        text = patch.read_text()
        if "\nFixes: 1da177e4c3f4 " in text:
            copy = patch.with_suffix(".style")
            copy.write_text(re.sub("\nFixes: 1da177e4c3f4.*", "", text))
            patch = copy
        checkpatch(patch)
        assert re.search(r"^Subject: \[PATCH (RFC )?net(-next)?( \d+/\d+)?\] ", text, re.M)


def test_what_a_module_needs_is_gone(made):
    """No private copy of what the kernel has, and nothing that only this project knows."""
    added = [
        line for patch in patches(made, "cong") for line in patch.read_text().splitlines()
        if line.startswith("+")
    ]  # fmt: skip
    alien = re.compile(
        r"net_generic|sctp_net\(|struct sctp_net\b|\b1000\t|seq_file|estimators/|docs/|\bthe lab\b"
        r"|tcp_param|TCP_SOURCES|jtcp|sctp_jitter_trace|tcp_veno|net\.sctp\.miss_indications"
    )
    assert [line for line in added if alien.search(line)] == []
    text = "\n".join(added)
    for wanted in ("config SCTP_CONG_JSCTP", "SCTP_CONG_CONTROL\t134", "INET_DIAG_SCTP_PATHS",
                   "allowed_congestion_control", "struct sctp_jsctp_info {"):  # fmt: skip
        assert wanted in text, wanted


def test_all_of_the_module_is_there(made, kernel):
    """What the module's sources say otherwise is what netdev() changes, and no more."""
    for name in ("miss-indications", "idle-retransmit"):
        assert len(patches(made, name)) == 1
    run("git", "-C", kernel, "am", "-q", *patches(made, "cong"), env=os.environ | GIT)
    ours = (FOLDER / "sctp_jsctp.c").read_text()
    theirs = (kernel / "net/sctp/cong_jsctp.c").read_text()
    functions = re.compile(r"^(?:static )?[\w ]+\*?\b(\w+)\([^;]*?\)\n\{\n(.*?)^\}$", re.M | re.S)
    of_module, of_kernel = (dict(functions.findall(text)) for text in (ours, theirs))
    assert set(of_module) - set(of_kernel) == {"jsctp_show"}
    assert set(of_kernel) - set(of_module) == {"jsctp_get_info"}
    same = of_module.keys() & of_kernel.keys()
    assert len(same) > 30
    renamed = {name: of_module[name].replace("tcp_param", "cong_param") for name in same}
    assert {name for name in same if renamed[name] != of_kernel[name]} == set()


def test_the_cover_letter_numbers_the_patches(made):
    """All are in it, in order, and what it names is in those that it says, and in none before."""
    (cover,) = (made / "cong").glob("0000-*")
    mails = patches(made, "cong")
    added = [
        "\n".join(line for line in mail.read_text().splitlines() if line.startswith("+"))
        for mail in mails
    ]  # fmt: skip
    numbers = []
    for paragraph in cover.read_text().split("\n\n"):
        if not (said := re.match(r"Patch(?:es)? (\d+)(?: to (\d+))? ", paragraph)):
            continue
        own = range(int(said[1]), int(said[2] or said[1]) + 1)
        numbers += own
        names = re.findall(r"\b(?:[A-Z]\w+_\w+|sctp_\w+|jsctp\w*|TIMESTAMP)\b", paragraph)
        assert names, paragraph
        for name in names:
            first = next(n for n, text in enumerate(added, 1) if re.search(rf"\b{name}\b", text))
            assert first in own, (name, first, paragraph)
    assert numbers == list(range(1, len(mails) + 1))
    subjects = [
        re.search(r"^Subject: \[.*?\] (.*?)\n\S", mail.read_text(), re.M | re.S)[1]
        for mail in mails
    ]
    listed = re.findall(r"^  (\S.*)$", cover.read_text().split("what they change:\n")[1], re.M)
    assert listed[: len(mails)] == [subject.replace("\n", "") for subject in subjects]


@pytest.mark.parametrize(
    ("before", "after", "ours", "wanted"),
    [
        ("a\nb\n", "a\nx\nb\n", "a\nb\nc\n", "a\nx\nb\nc\n"),
        ("a\nother\nb\n", "a\nother\nx\nb\n", "a\nb\n", "a\nx\nb\n"),
        ("a\nother\nb\n", "a\nother\n", "a\nb\n", "a\n"),
        ("a\n{\nother\n},\nb\n", "a\n{\nother\n},\n{\nx\n},\nb\n", "a\nb\n", "a\n{\nx\n},\nb\n"),
    ],
)  # fmt: skip
def test_a_change_is_carried(before, after, ours, wanted):
    """To where the lines of another patch are not."""
    assert NETDEV.carried(before, after, ours, "file") == wanted


def test_a_change_of_what_is_not_there_is_refused():
    with pytest.raises(NETDEV.WrongSource, match="what another patch has"):
        NETDEV.carried("a\nother\nb\n", "a\nchanged\nb\n", "a\nb\n", "file")


def test_a_wrong_source_is_said_in_a_line(tmp_path):
    made = subprocess.run(
        [FOLDER / "netdev/make_series.py", tmp_path / "out", tmp_path],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 2
    assert re.fullmatch(r"make_series: no Documentation/\S+ in \S+\n", made.stderr)
    unsaid = subprocess.run(
        ["make", "-s", "-C", FOLDER, "netdev", f"OUT={tmp_path}"], capture_output=True, text=True
    )
    assert "SOURCE=" in unsaid.stderr and unsaid.returncode == 2
