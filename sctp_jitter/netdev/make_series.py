#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make the patches for netdev out of those in ../patches and ../sctp_jsctp.c.

    make_series.py OUT SOURCE...

SOURCE: a kernel tree of 7.2 or newer; of several, the first that has a file. Makes, each of them
to be posted by itself (git send-email OUT/SERIES/*.patch):

    OUT/timers            a fix, for net
    OUT/i-data            a fix, for net
    OUT/miss-indications  for net-next
    OUT/idle-retransmit   for net-next
    OUT/cong              for net-next, with the algorithms, inet_diag and selftests

The patches of ../patches are for a module that replaces the kernel's own on a kernel that runs, so
they add nothing to struct net and keep clear of what others may add. netdev() below is all that is
otherwise in the kernel itself: it rewrites the whole state of the sources after each patch, and the
differences between such states are the new patches. What only netdev has is in layer/.

Standard library, git and make's usual tools only. Exit: 0, or 2 if SOURCE is not what it should be.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCTP = HERE.parent
ESTIMATORS = ("forward_queue", "jitter_ratio", "loss_share", "tabe", "veno_backlog")
PATHS = (
    "Documentation/networking/ip-sysctl.rst", "Makefile", "include/linux/sctp.h",
    "include/net/netns/sctp.h", "include/net/sctp", "include/uapi/linux/inet_diag.h",
    "include/uapi/linux/sctp.h", "net/sctp", "tools/testing/selftests/net/.gitignore",
    "tools/testing/selftests/net/Makefile", "tools/testing/selftests/net/config",
)  # fmt: skip
SUFFIXES = (".c", ".h", ".rst", "Makefile", "Kconfig", ".sh")

Files = dict[str, str]


class WrongSource(Exception):
    """The kernel tree, or a patch, is not what the rules below are for."""


# --- from a module's sources to the kernel's --------------------------------------


def once(text: str, old: str, new: str, where: str) -> str:
    if text.count(old) != 1:
        raise WrongSource(f"{where}: {text.count(old)} times instead of once: {old.strip()!r}")
    return text.replace(old, new)


def cut(text: str, start: str, end: str) -> tuple[str, str]:
    """Take what is from START up to END, which both are there once, out of TEXT; return both."""
    begin = text.index(start)
    stop = text.index(end, begin) + len(end)
    return text[:begin] + text[stop:], text[begin:stop]


def netns_fields(files: Files) -> None:
    """struct sctp_net is no more: its fields are struct netns_sctp's."""
    path, home = "include/net/sctp/structs.h", "include/net/netns/sctp.h"
    if "struct sctp_net {" not in files[path]:
        return
    text, block = cut(
        files[path], "/* What a network namespace has besides",
        "struct sctp_net *sctp_net(const struct net *net);\n\n",
    )  # fmt: skip
    files[path] = text.replace("sctp_net.miss_indications", "netns_sctp.miss_indications")
    body = block.split("struct sctp_net {\n", 1)[1].split("};\n", 1)[0]
    fields = [part.strip("\n") for part in body.split("\n\n") if "sysctl_header" not in part]
    after = "	unsigned long max_autoclose;\n"
    more = "".join(f"\n{field}\n" for field in fields)
    text = once(files[home], after, after + more, home)
    files[home] = once(
        text,
        "struct ctl_table_header;\n",
        "struct ctl_table_header;\nstruct sctp_cong_ops;\n",
        home,
    )


def netns_uses(text: str) -> str:
    """What was sctp_net(NET)->field is NET->sctp.field."""
    found = re.compile(r"\tstruct sctp_net \*sn = sctp_net\((.+)\);\n(\n?)")
    while match := found.search(text):
        alone = match[2] and not re.search(r"[;{]\n$", text[: match.start()].rsplit("{", 1)[-1])
        end = text.index("\n}\n", match.end())
        body = re.sub(r"\bsn->", f"{match[1]}->sctp.", text[match.end() : end])
        text = text[: match.start()] + match[2] * (not alone) + body + text[end:]
    return re.sub(r"\bsctp_net\(([\w>.-]+)\)->", r"\1->sctp.", text)


DEFAULTS = {
    "cong": "Congestion control as RFC 9260 has it by default",
    "miss_indications": "Miss indications until a TSN is sent again - 3",
}


def netns_start_and_end(files: Files) -> None:
    """Defaults are set, and references given back, where those of the protocol are."""
    path, protocol = "net/sctp/cong.c", "net/sctp/protocol.c"
    if "static int __net_init sctp_cong_net_init" not in files.get(path, ""):
        return
    text, block = cut(
        files[path], "static int __net_init sctp_cong_net_init",
        "sctp_cong_unregister(&sctp_cong_rfc9260);\n}\n",
    )  # fmt: skip
    text, _ = cut(text, "static unsigned int sctp_net_id", "__read_mostly;\n\n")
    text, _ = cut(text, "struct sctp_net *sctp_net(", "\n}\n\n")
    files[path] = once(text, "#include <net/netns/generic.h>\n", "", path) + (
        "int __init sctp_cong_init(void)\n{\n"
        "\treturn sctp_cong_register(&sctp_cong_rfc9260);\n}\n\n"
        "void sctp_cong_exit(void)\n{\n\tsctp_cong_unregister(&sctp_cong_rfc9260);\n}\n"
    )
    values = re.findall(r"(?:sn|sctp_net\(net\))->(\w+) = (.+);", block)
    after = "	net->sctp.max_autoclose		= INT_MAX / HZ;\n"
    more = "".join(
        f"\n\t/* {DEFAULTS[name]} */\n\tnet->sctp.{name} = {value};\n" for name, value in values
    )
    text = once(files[protocol], after, after + more, protocol)
    after = "	cleanup_sctp_mibs(net);\n}\n"
    files[protocol] = once(
        text, after, after[:-2] + "	sctp_cong_leave(&net->sctp.cong);\n}\n", protocol
    )


HANDLER = re.compile(
    r"^static int (proc_sctp_do_\w+)\(const struct ctl_table \*ctl, int write,\s+"
    r"void \*buffer, size_t \*lenp,\s+loff_t \*ppos\)",
    re.M,
)


def sysctls(files: Files) -> None:
    """There is one table of a namespace's sysctls."""
    path = "net/sctp/sysctl.c"
    text = files[path]
    if "sctp_sysctl_ext_register" not in text:
        return
    text, block = cut(text, "/* Register what struct sctp_net holds", "\treturn 0;\n}\n\n")
    text, _ = cut(text, "static void sctp_sysctl_ext_unregister", "\n}\n\n")
    text, _ = cut(text, "	if (sctp_sysctl_ext_register(net)) {", "\t}\n")
    text = once(text, "	sctp_sysctl_ext_unregister(net);\n", "", path)
    entries = block.split("struct ctl_table table[] = {\n")[1].split("\t};\n")[0]
    entries = re.sub(r"^\t", "", entries, flags=re.M)
    entries = entries.replace("= net,", "= &init_net.sctp.cong,").replace(
        "&sn->", "&init_net.sctp."
    )
    before = "#ifdef CONFIG_NET_L3_MASTER_DEV\n\t{\n"
    text = once(text, before, entries + before, path)
    text = once(
        text, "	struct net *net = ctl->data;\n",
        "	struct net *net = container_of(ctl->data, struct net, sctp.cong);\n", path,
    )  # fmt: skip
    text = once(
        text, "		table[i].data += (char *)(&net->sctp) - (char *)&init_net.sctp;\n",
        "		if (table[i].data)\n"
        "			table[i].data += (char *)(&net->sctp) - (char *)&init_net.sctp;\n", path,
    ).replace("	for (i = 0; i < table_size; i++)\n\t\tif (table[i].data)\n",
              "	for (i = 0; i < table_size; i++) {\n\t\tif (table[i].data)\n"
    ).replace("(char *)&init_net.sctp;\n\n	table[SCTP_RTO_MIN_IDX]",
              "(char *)&init_net.sctp;\n\t}\n\n	table[SCTP_RTO_MIN_IDX]")  # fmt: skip
    declared = text[: text.index("static struct ctl_table sctp_table")]
    last = "static int proc_sctp_do_probe_interval("
    for match in HANDLER.finditer(text):
        if match[1] in entries and f"{match[1]}(" not in declared:
            text = once(text, last, f"{match[0]};\n{last}", path) if text.count(last) == 1 else (
                text.replace(last, f"{match[0]};\n{last}", 1)
            )  # fmt: skip
    files[path] = text


def const_tables(files: Files) -> None:
    """Handlers take const tables of sysctls, which 6.1 does not have."""
    path = "net/sctp/sysctl.c"
    files[path] = files[path].replace(
        "\tstruct ctl_table tbl = {\n", "\tconst struct ctl_table tbl = {\n"
    )


def option_number(files: Files) -> None:
    """A new socket option has the next number."""
    path = "include/uapi/linux/sctp.h"
    if "SCTP_CONG_CONTROL" not in files[path]:
        return
    text, _ = cut(files[path], "/* Options from here on are numbered apart", "*/\n")
    last = max(int(n) for n in re.findall(r"^#define SCTP_\w+\s+(1[0-9][0-9])\b", text, re.M))
    text = re.sub(r"(#define SCTP_CONG_CONTROL)\t1000\t", rf"\1	{last + 1}	", text)
    files[path] = once(text, "\n\n#define SCTP_CONG_CONTROL", "\n#define SCTP_CONG_CONTROL", path)


def build_list(files: Files) -> None:
    """New objects are in the list of all."""
    path = "net/sctp/Makefile"
    text = files[path]
    if not (match := re.search(r"^sctp-y \+= (.*)\n", text, re.M)):
        return
    text = text.replace(match[0], "")
    files[path] = once(
        text, "stream_interleave.o\n", f"stream_interleave.o \\\n\t  {match[1]}\n", path
    )


def netdev(files: Files) -> Files:
    """Return FILES as they are where they are part of the kernel; what is not ours stays."""
    files = dict(files)
    netns_fields(files)
    netns_start_and_end(files)
    sysctls(files)
    const_tables(files)
    option_number(files)
    build_list(files)
    for path in files:
        if path.startswith("net/sctp/"):
            files[path] = netns_uses(files[path])
    left = [
        path for path, text in files.items() if re.search(r"\bsctp_net\(|struct sctp_net\b", text)
    ]
    if left:
        raise WrongSource(f"struct sctp_net is still used in {', '.join(left)}")
    return files


def algorithms(folder: Path) -> Files:
    """Return the sources of jsctp and jsctp_abe as they are in net/sctp."""
    shared = SCTP.parent / "tcp_veno_jitter"
    files = {
        f"net/sctp/jitter/{name}.h": (shared / "estimators" / f"{name}.h").read_text()
        for name in ESTIMATORS
    }
    for path, text in files.items():
        files[path] = once(
            text,
            '#include "types.h"\n',
            "#include <linux/math64.h>\n#include <linux/types.h>\n",
            path,
        )
    param = (shared / "tcp_param.h").read_text()
    param, _ = cut(param, "/* Every module has parameters, so", "TCP_SOURCES);\n\n")
    files["net/sctp/cong_param.h"] = param
    files["net/sctp/cong_jsctp_verdict.h"] = (SCTP / "sctp_verdict.h").read_text()
    files["net/sctp/cong_jsctp_trace.h"] = (SCTP / "sctp_jitter_trace.h").read_text()
    text = (SCTP / "sctp_jsctp.c").read_text()
    text, _ = cut(text, "/* For /proc/net/sctp/cong. */\nstatic void jsctp_show", "\n}\n")
    files["net/sctp/cong_jsctp.c"] = text.replace(
        "	info->narrow = j->narrow;\n}\n\n",
        "	info->narrow = j->narrow;\n}\n\n" + (HERE / "layer/jsctp_get_info.c").read_text(),
    ).replace("	.show	= jsctp_show,\n", "	.get_info = jsctp_get_info,\n")
    for path, text in files.items():
        for old, new in NAMES:
            text = re.sub(old, new, text)
        files[path] = text
    told, _ = cut(
        (SCTP / "sctp_jsctp_info.h").read_text(), "/* SPDX", "#include <linux/types.h>\n\n"
    )
    told = once(told, "#endif /* SCTP_JSCTP_INFO_H */\n", "", "sctp_jsctp_info.h")
    home = "include/uapi/linux/inet_diag.h"
    last = "#endif /* _UAPI_INET_DIAG_H_ */\n"
    files[home] = once(
        (folder / home).read_text(), last, f"\n/* SCTP_DIAG_PATH_JSCTP */\n\n{told}{last}", home
    )
    return files


# what is called otherwise there
NAMES = (
    (r'"estimators/(\w+\.h)"', r'"jitter/\1"'),
    (r"estimators/(\w+\.h)", r"jitter/\1"),
    (r'#include "sctp_jsctp_info\.h"\n', ""),
    (r"(#include <net/sctp/cong\.h>\n)", r"\1#include <linux/inet_diag.h>\n"),
    (r"\bsctp_jitter_trace\b", "cong_jsctp_trace"),
    (r"\bSCTP_JITTER_TRACE_H\b", "CONG_JSCTP_TRACE_H"),
    (r"\bsctp_verdict\.h\b", "cong_jsctp_verdict.h"),
    (r"\bESTIMATORS_(\w+_H)\b", r"SCTP_JITTER_\1"),
    (r"\btcp_param\.h\b", "cong_param.h"),
    (r"\bTCP_PARAM_H\b", "SCTP_CONG_PARAM_H"),
    (r"\btcp_param(_ops|_get|_set_op|_get_op)?\b", r"cong_param\1"),
    (r"jtcp_m\b", "jsctp_m"),
    (r"( \*  - k is half a packet, not one: )see docs/jtcp\.md\.\n",
     r"\1two packets in one window and none in the next\n"
     r" *    are what a receiver that acknowledges every other one lets queue.\n"),
    (r" \*  - Three miss indications start it, not four: net\.sctp\.miss_indications\.\n",
     r" *  - Three miss indications start it, not four.\n"),
    (r" \*\n \* tcp_veno_jitter\.c has the same test amid its states\.\n", ""),
    (r": docs/sctp-internals\.md has what it is worth\.", "."),
    (r"; the lab compares it\n \* with what became of the packet\. ", ".\n * "),
)  # fmt: skip


# --- patches -----------------------------------------------------------------


def git(folder: Path, *command: str, **options) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "core.abbrev=12"]
    done = subprocess.run(
        ["git", "-C", folder, *who, *command], capture_output=True, text=True, **options
    )
    if done.returncode:
        raise WrongSource(f"git {command[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def read(folder: Path) -> Files:
    listed = git(folder, "ls-files").splitlines()
    return {path: (folder / path).read_text() for path in listed if path.endswith(SUFFIXES)}


def write(folder: Path, files: Files) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def repository(folder: Path, sources: list[Path]) -> Path:
    for path in PATHS:
        found = next((source / path for source in sources if (source / path).exists()), None)
        if not found:
            raise WrongSource(f"no {path} in {' or '.join(map(str, sources))}")
        to = folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            ignored = shutil.ignore_patterns("*.o", "*.ko", ".*.cmd", "*.mod*", "*.a")
            shutil.copytree(found, to, ignore=ignored)
        else:
            shutil.copy(found, to)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "as it is")
    return folder


def matched(one: list[str], other: list[str]) -> dict[int, int]:
    """Return which lines of OTHER those of ONE are, by number."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return {b.a + n: b.b + n for b in blocks for n in range(b.size)}


def whole(lines: list[str], start: int, end: int) -> int:
    """Return how far to move the insertion of lines START to END, so that it begins and ends with
    a brace of its own: where lines are alike there are several readings of one change."""
    readings = [0]
    while lines[start + readings[0] - 1] == lines[end + readings[0] - 1]:
        readings.insert(0, readings[0] - 1)
    while lines[start + readings[-1]] == lines[end + readings[-1]]:
        readings.append(readings[-1] + 1)
    for by in readings:
        if lines[start + by].strip() == "{" and lines[end + by - 1].strip() == "},":
            return by
    return 0


def carried(before: str, after: str, ours: str, path: str) -> str:
    """Return OURS with what changed from BEFORE to AFTER. Lines that OURS lacks, as they are those
    of another patch, may be next to a change, but not part of it."""
    if before == ours:
        return after
    old, new, lines = (text.splitlines(keepends=True) for text in (before, after, ours))
    where = matched(old, lines)
    edits = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in reversed(edits):
        if tag == "equal":
            continue
        if i2 > i1:
            if any(where.get(i) != where.get(i1, -1) + i - i1 for i in range(i1, i2)):
                raise WrongSource(f"{path}: a change of what another patch has: {new[j1:j2]}")
            start, end = where[i1], where[i1] + i2 - i1
        else:
            by = whole(new, j1, j2) if j1 > 0 and j2 < len(new) else 0
            i1, j1, j2 = i1 + by, j1 + by, j2 + by
            nearest = next(i for i in range(i1 - 1, -1, -1) if i in where)
            start = end = where[nearest] + 1
        lines[start:end] = new[j1:j2]
    return "".join(lines)


class States:
    """The sources as netdev would have them after each of the patches of ../patches."""

    def __init__(self, folder: Path, sources: list[Path]):
        repository(folder, sources)
        self.pristine = read(folder)
        if netdev(self.pristine) != self.pristine:
            raise WrongSource("the sources are not those of a kernel without the series")
        version = re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", self.pristine["Makefile"], re.M)
        listed = subprocess.run(
            [SCTP / "patches/series", ".".join(version)], capture_output=True, text=True, check=True
        )
        self.changes: dict[int, tuple[Files, Files]] = {}
        self.messages: dict[int, str] = {}
        before = self.pristine
        for number, patch in enumerate(listed.stdout.splitlines(), 1):
            git(folder, "am", "-q", patch)
            self.messages[number] = git(folder, "log", "-1", "--format=%B")
            after = netdev(read(folder))
            self.changes[number] = before, after
            before = after

    def carry(self, number: int, ours: Files) -> Files:
        """Return OURS with the patch NUMBER."""
        before, after = self.changes[number]
        changed = {path for path in after if before.get(path) != after[path]}
        return ours | {
            path: carried(before.get(path, ""), after[path], ours.get(path, ""), path)
            for path in changed
        }


# --- the series ----------------------------------------------------------------

Step = Callable[[States, Path], str]  # changes the folder, returns the message


def base(number: int, *edits: tuple[str, str]) -> Step:
    """The patch NUMBER of ../patches; EDITS: of its message."""

    def step(states: States, folder: Path) -> str:
        write(folder, states.carry(number, read(folder)))
        message = states.messages[number]
        for old, new in edits:
            message = once(message, old, new, f"message of patch {number}")
        return message

    return step


def layer(name: str, more: Callable[[Path], Files] = lambda folder: {}) -> Step:
    """The patch NAME of layer/, and MORE files, made of what is in the folder then."""

    def step(_states: States, folder: Path) -> str:
        text = (HERE / f"layer/{name}.patch").read_text()
        message, _, body = text.partition("\n---\n")
        git(folder, "apply", "--index", "--whitespace=error-all", "-", input=body)
        write(folder, more(folder))
        for script in folder.glob("tools/testing/selftests/net/*.sh"):
            script.chmod(0o755)
        return message

    return step


def selftests(_folder: Path) -> Files:
    to = "tools/testing/selftests/net"
    files = sorted((HERE / "layer").glob("sctp_cong*"))
    return {f"{to}/{file.name}": file.read_text() for file in files}


NO_NET_GENERIC = ("""\

The namespace's part is net_generic() data: struct netns_sctp is embedded
in struct net, and sctp.ko could not be replaced on a running kernel
if it grew.  For the same reason new fields come last in structures
that others read, as security modules read struct sctp_association.
""", "")  # fmt: skip
NO_NUMBER = ("""\

The number lies far above the others, which grow by one with each new
option, so that one added by someone else in the meantime does not
mean this.
""", "")  # fmt: skip
FIXES = ("\nSigned-off-by:", '\nFixes: 1da177e4c3f4 ("Linux-2.6.12-rc2")\nSigned-off-by:')

SERIES: dict[str, tuple[str, list[Step]]] = {
    "timers": ("net", [base(13, FIXES)]),
    "i-data": ("net", [base(15)]),
    "miss-indications": ("net-next", [base(5)]),
    "idle-retransmit": ("net-next", [base(10)]),
    "cong": (
        "RFC net-next",
        [base(1), base(2, NO_NET_GENERIC), base(3), base(4, NO_NUMBER), base(6), base(7), base(8),
         base(9), layer("diag"), base(14), base(16),
         layer("jsctp", algorithms), layer("selftests", selftests)],
    ),
}  # fmt: skip


def author() -> str:
    """Return who wrote the patches, as they say."""
    patch = next((SCTP / "patches").glob("6.12/0001*"))
    name, address = re.search(r"^From: (.*?)\s*<([^>]*)>", patch.read_text(), re.M | re.S).groups()
    return f"{name} <{address}>"


def make(name: str, states: States, folder: Path, out: Path) -> None:
    """Write the patches of the series NAME, and its cover letter if it has one, into OUT."""
    prefix, steps = SERIES[name]
    git(folder, "checkout", "-q", "-f", "-B", name, "pristine")
    for step in steps:
        message = step(states, folder)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", f"--author={author()}", "--date=2026-01-01T00:00:00Z",
            "-F", "-",
            input=message)  # fmt: skip
    cover = HERE / f"layer/{name}.cover"
    numbered = ["-n"] if len(steps) > 1 else ["-N"]
    git(folder, "format-patch", "-q", "--zero-commit", "--no-signature", *numbered,
        f"--subject-prefix=PATCH {prefix}", "-o", str(out), "pristine")  # fmt: skip
    if cover.exists():
        subject, _, body = cover.read_text().partition("\n\n")
        stat = git(folder, "diff", "--stat", "pristine")
        subjects = git(folder, "log", "--reverse", "--format=%s", "pristine..").splitlines()
        listed = "".join(f"  {line}\n" for line in subjects)
        (out / "0000-cover-letter.patch").write_text(
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: {author()}\n"
            f"Date: Thu, 1 Jan 2026 00:00:00 +0000\n"
            f"Subject: [PATCH {prefix} 00/{len(steps):02}] {subject}\n\n{body}\n{listed}\n{stat}"
        )


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    out, *sources = (Path(argument).resolve() for argument in arguments)
    try:
        with tempfile.TemporaryDirectory() as work:
            states = States(Path(work, "module"), sources)
            folder = repository(Path(work, "netdev"), sources)
            git(folder, "tag", "pristine")
            for name in SERIES:
                shutil.rmtree(out / name, ignore_errors=True)
                (out / name).mkdir(parents=True)
                make(name, states, folder, out / name)
    except WrongSource as error:
        print(f"make_series: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
