# SPDX-License-Identifier: GPL-2.0-only
"""compat/ finds out which hooks a kernel has, and calls a module's handlers on each of them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_build import header_trees, make, tree_params

FOLDER = Path(__file__).resolve().parents[1]
ACK, TX_START = "TCP_CONG_CONTROL_HAS_ACK", "TCP_CONG_HAS_TX_START"
HASHINFO = "INET_LOOKUP_HAS_HASHINFO"
SHUTDOWN, PSP = "TIMER_HAS_SHUTDOWN", "NET_HAS_PSP"
TIMER = {
    False: "extern int del_timer_sync(struct timer_list *timer);\n",
    True: "extern int timer_shutdown_sync(struct timer_list *timer);\n",
}
LOOKUP = {
    True: "struct sock *__inet_lookup_established(struct net *net,\n\t\tstruct inet_hashinfo"
    " *hashinfo,\n\t\tconst __be32 saddr);\n",
    False: "struct sock *__inet_lookup_established(const struct net *net,\n"
    "\t\tconst __be32 saddr);\n",
}

# Each hook as kernels declare it, and how their core calls it.
CONG_CONTROL = {
    False: ("(struct sock *sk, const struct rate_sample *rs)", "(sk, rs)"),
    True: ("(struct sock *sk, u32 ack, int flag,\n\t\t\t     const struct rate_sample *rs)",
           "(sk, 7, 0, rs)"),
}  # fmt: skip
EVENT = {
    False: ("", "ops->cwnd_event(sk, event);"),
    True: ("\t/* call when TX_START occurs */\n\tvoid (*cwnd_event_tx_start)(struct sock *sk);",
           "if (event == CA_EVENT_TX_START) {\n"
           "\t\tif (ops->cwnd_event_tx_start)\n\t\t\tops->cwnd_event_tx_start(sk);\n"
           "\t} else if (ops->cwnd_event) {\n\t\tops->cwnd_event(sk, event);\n\t}"),
}  # fmt: skip


def kernel_header(has_ack: bool, has_tx_start: bool) -> str:
    """Return a net/tcp.h with these hooks; what a compiler of user code lacks comes with it."""
    declared_ack, called_ack = CONG_CONTROL[has_ack]
    declared_event, called_event = EVENT[has_tx_start]
    return f"""#include <assert.h>
#include <stdbool.h>
typedef unsigned int u32;
enum tcp_ca_event {{ CA_EVENT_TX_START, CA_EVENT_LOSS }};
struct sock {{ int unused; }};
struct rate_sample {{ int unused; }};

struct tcp_congestion_ops {{
	/* new cwnd and pacing rate */
	void (*cong_control){declared_ack};

	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
{declared_event}
}} __attribute__((aligned(64)));

static inline void tcp_snd_cwnd_set(void) {{}}

static inline void
kernel_ack(const struct tcp_congestion_ops *ops, struct sock *sk, const struct rate_sample *rs)
{{
	ops->cong_control{called_ack};
}}

static inline void
kernel_event(const struct tcp_congestion_ops *ops, struct sock *sk, enum tcp_ca_event event)
{{
	{called_event}
}}
"""


def probe(srctree: Path, src: Path = FOLDER) -> subprocess.CompletedProcess:
    """Run SRC's Kbuild as a kernel's build does, for the header in SRCTREE; it prints the flags."""
    rule = "include $(src)/Kbuild\nall: ; @echo $(ccflags-y)\n"
    return subprocess.run(
        ["make", "-s", "-f", "-", f"srctree={srctree}", f"src={src}"],
        input=rule, capture_output=True, text=True,
    )  # fmt: skip


def write_header(
    tree: Path, text: str, lookup: str = LOOKUP[True], timer: str = TIMER[True]
) -> None:
    header = tree / "include" / "net" / "tcp.h"
    header.parent.mkdir(parents=True)
    header.write_text(text)
    header.with_name("inet_hashtables.h").write_text(lookup)
    (tree / "include" / "linux").mkdir()
    (tree / "include" / "linux" / "timer.h").write_text(timer)


@pytest.mark.parametrize("has_hashinfo", LOOKUP)
def test_lookups_arguments_are_found_out(has_hashinfo, tmp_path):
    """From the declaration, wherever its lines break."""
    write_header(tmp_path, kernel_header(True, True), LOOKUP[has_hashinfo])
    assert (f"-D{HASHINFO}" in probe(tmp_path).stdout.split()) == has_hashinfo


def test_no_lookup_is_an_error(tmp_path):
    write_header(tmp_path, kernel_header(True, True), "/* elsewhere */\n")
    done = probe(tmp_path)
    assert done.returncode != 0 and "no __inet_lookup_established" in done.stderr


@pytest.mark.parametrize("has_shutdown", TIMER)
def test_timers_end_is_found_out(has_shutdown, tmp_path):
    write_header(tmp_path, kernel_header(True, True), timer=TIMER[has_shutdown])
    assert (f"-D{SHUTDOWN}" in probe(tmp_path).stdout.split()) == has_shutdown


@pytest.mark.parametrize("has_psp", [False, True])
def test_psp_is_found_out(has_psp, tmp_path):
    """Where there is a header, but no such function, there is none either."""
    write_header(tmp_path, kernel_header(True, True))
    (tmp_path / "include" / "net" / "psp").mkdir()
    header = tmp_path / "include" / "net" / "psp" / "functions.h"
    header.write_text("unsigned int psp_sk_overhead(void);\n" * has_psp)
    assert (f"-D{PSP}" in probe(tmp_path).stdout.split()) == has_psp


def debian_copy(tree: Path, folder: Path) -> tuple[Path, Path]:
    """Return a copy of a headers package's build tree and one of its source; files are links."""
    source = Path(re.match(r"include (.*)/Makefile$", (tree / "Makefile").read_text())[1])
    copies = folder / "tree", folder / "source"
    for was, copy in zip((tree, source), copies, strict=True):
        subprocess.run(["cp", "-rs", was, copy], check=True)
    (copies[0] / "Makefile").unlink()
    (copies[0] / "Makefile").write_text(f"include {copies[1]}/Makefile\n")
    return copies


def test_builds_where_no_timer_can_be_shut_down(tmp_path):
    """As before 6.1.158, with no warning: the oldest headers package, less what came then."""
    trees = [
        tree
        for tree in header_trees()
        if re.match("include .*-common/Makefile$", (tree / "Makefile").read_text())
    ]
    if not trees:
        pytest.skip("no headers package of Debian's: apt-get install linux-headers-amd64")
    tree, source = debian_copy(trees[0], tmp_path)
    header = source / "include" / "linux" / "timer.h"
    text = header.read_text()
    assert "del_timer_sync(" in text
    header.unlink()
    header.write_text(re.sub(r"^extern int timer_shutdown_sync\(.*\n", "", text, flags=re.M))
    built = make(tree, tmp_path / "out", "W=1")
    assert built.status == 0 and not built.complaints(), built.output


@pytest.mark.parametrize("has_ack", [False, True])
@pytest.mark.parametrize("has_tx_start", [False, True])
def test_handlers_are_called_on_every_kernel(has_ack, has_tx_start, tmp_path):
    """Two ACKs, a loss and one start of transmission reach the handlers as two and one."""
    write_header(tmp_path, kernel_header(has_ack, has_tx_start))
    flags = [flag for flag in probe(tmp_path).stdout.split() if flag[2:] in (ACK, TX_START)]
    assert flags == [f"-D{ACK}"] * has_ack + [f"-D{TX_START}"] * has_tx_start
    program = tmp_path / "hooks"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", *flags, "-o", program,
         f"-I{tmp_path / 'include'}", f"-I{FOLDER}", FOLDER / "tests" / "compat" / "hooks.c"],
        check=True,
    )  # fmt: skip
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert said == "acks 2, starts 1\n"


def test_old_kernel_is_refused(tmp_path):
    """A header of before 6.1 is refused in words, not by the compiler."""
    write_header(tmp_path, kernel_header(False, False).replace("tcp_snd_cwnd_set", "other"))
    done = probe(tmp_path)
    assert done.returncode == 2 and "need Linux 6.1 or newer" in done.stderr


def test_unknown_header_is_an_error(tmp_path):
    """A header without the structure stops the build: silence would mean the oldest kernel."""
    write_header(tmp_path, "struct tcp_congestion_ops;\n")
    done = probe(tmp_path)
    assert done.returncode != 0 and "no struct tcp_congestion_ops" in done.stderr


@pytest.mark.parametrize(
    "word", ["LINUX_VERSION_CODE", "KERNEL_VERSION", "CA_EVENT_TX_START", ".min_tso_segs"]
)
def test_only_compat_tells_kernels_apart(word):
    """No version is compared, nobody waits in cwnd_event for what 7.1 does not tell there, and
    nobody sets a hook that trees with tso_segs do not have."""
    sources = [*FOLDER.glob("*.[ch]"), *FOLDER.glob("estimators/*.h")]
    assert sources and not [path.name for path in sources if word in path.read_text()]


@pytest.mark.parametrize("changed", ["tcp_param.h", "estimators/types.h", "compat/tcp_cong.h"])
def test_any_change_makes_other_sources(changed, tmp_path):
    """What modinfo -F sources shows covers every header; srcversion leaves folders out."""
    write_header(tmp_path, kernel_header(True, True))
    copy = shutil.copytree(FOLDER, tmp_path / "copy")
    before = probe(tmp_path).stdout
    assert re.search("TCP_SOURCES=[0-9a-f]{12} ", before.replace('"', ""))
    assert probe(tmp_path, copy).stdout.replace(str(copy), str(FOLDER)) == before
    (copy / changed).write_text((copy / changed).read_text() + "/* changed */\n")
    assert probe(tmp_path, copy).stdout.replace(str(copy), str(FOLDER)) != before


# What a compiler accepts where the kernel has it, and refuses with one error where it has not.
OPS = "((struct tcp_congestion_ops *)0)"
NEW_FORM = "void (*)(struct sock *, u32, int, const struct rate_sample *)"
FACTS = (
    ("ack", ACK, f"__builtin_types_compatible_p(typeof({OPS}->cong_control), {NEW_FORM}) ? 1 : -1"),
    ("tx_start", TX_START, f"sizeof({OPS}->cwnd_event_tx_start)"),
    ("lookup", HASHINFO, "sizeof(__inet_lookup_established(0, 0, 0, 0, 0, 0, 0, 0))"),
    ("shutdown", SHUTDOWN, "sizeof(timer_shutdown_sync(0))"),
    ("psp", PSP, "sizeof(psp_sk_overhead(0))"),
)


@pytest.mark.parametrize("tree", [tree for tree in tree_params() if "clang" not in tree.id])
def test_compiler_agrees_with_the_probe(tree, tmp_path):
    """compat/Kbuild says of a real kernel's header what its compiler says: yes twice, no twice."""
    (tmp_path / "compat").symlink_to(FOLDER / "compat")
    (tmp_path / "Kbuild").write_text(
        f"obj-m := {' '.join(f'{name}.o' for name, _, _ in FACTS)}\ninclude $(src)/compat/Kbuild\n"
    )
    for name, flag, fact in FACTS:
        (tmp_path / f"{name}.c").write_text(
            "#include <net/tcp.h>\n#if __has_include(<net/psp.h>)\n#include <net/psp.h>\n#endif\n"
            f"int fact[{fact}];\n#ifndef {flag}\n#error no\n#endif\n"
        )
    done = subprocess.run(
        ["make", "-k", "-C", tree, f"M={tmp_path}", "modules"], capture_output=True, text=True
    )
    for name, _, _ in FACTS:
        noes = len(re.findall(rf"{name}\.c:\d+.*error: ", done.stderr))
        built = (tmp_path / f"{name}.o").exists()
        assert (noes, built) in ((0, True), (2, False)), done.stderr
