# SPDX-License-Identifier: GPL-2.0-only
"""docs/bisect.md: git bisect run with veno-lab diff finds the commit that made a module slower."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import TESTBED, run_command

MODULE = """// SPDX-License-Identifier: GPL-2.0-only
/* Reno, which keeps a share of its window when packets are lost. */
#include <linux/module.h>
#include <net/tcp.h>

static u32 mine_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * 5 / 10, 2U);
}

static struct tcp_congestion_ops mine __read_mostly = {
	.ssthresh	= mine_ssthresh,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.cong_avoid	= tcp_reno_cong_avoid,
	.owner		= THIS_MODULE,
	.name		= "mine",
};

static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}

static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&mine);
}

module_init(mine_register);
module_exit(mine_unregister);
MODULE_DESCRIPTION("Reno that keeps a share");
MODULE_LICENSE("GPL");
"""
# each commit: what it replaces, and by what; one does not build, one makes it slower
EDITS = (
    ("", ""),
    ("when packets are lost", "when packets get lost"),
    ("tcp_snd_cwnd(tcp_sk(sk))", "tcp_snd_cwnd(sk)"),
    ("tcp_snd_cwnd(sk) * 5 / 10", "tcp_snd_cwnd(tcp_sk(sk)) * 3 / 10"),
    ("Reno, which keeps", "It keeps"),
)
SLOWER = 3


def git(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *identity, *arguments], cwd=tree, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path) -> Path:
    """A small repository of a module, a commit for each of EDITS."""
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    text = MODULE
    for number, (was, becomes) in enumerate(EDITS):
        assert was in text
        text = text.replace(was, becomes) if was else text
        (tree / "tcp_mine.c").write_text(text)
        git(tree, "add", "tcp_mine.c")
        assert git(tree, "commit", "-q", "-m", f"edit {number}").returncode == 0
    return tree


def test_git_bisect_finds_the_commit_that_made_a_module_slower(tree, tmp_path):
    """At 1 % loss, of five commits: one does not build, and is skipped; the next keeps less of the
    window. What the module carries is the real kernel's, in virtual time."""
    good = tmp_path / "good"
    git(tree, "checkout", "-q", "main~4")
    done = run_command(
        "demo", "--module", str(tree / "tcp_mine.c"), "--algorithms", "mine", "--seeds", "6",
        "--set", "loss_pct=1", "--set", "path=2 Mb/s 90 ms", "--set", "run.duration_s=60",
        "--out", str(good), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert git(tree, "bisect", "start", "main", "main~4").returncode == 0
    lab = str(TESTBED / "veno-lab")
    found = git(tree, "bisect", "run", lab, "diff", str(good), "tcp_mine.c", "--bound", "3%",
                "--bisect")  # fmt: skip
    log = git(tree, "bisect", "log").stdout
    assert re.search(r"first bad commit|only skipped commits left", log), found.stdout
    suspects = re.findall(r"(?:first|possible first) bad commit: \[\w+\] edit (\d)", log)
    assert set(suspects) <= {"2", str(SLOWER)} and str(SLOWER) in suspects, found.stdout
