# SPDX-License-Identifier: GPL-2.0-only
"""The compiler of the lab's kernel: headers read once, and objects that know nothing of it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

COMPILER = Path(__file__).parents[1] / "kernels/gcc-precompiled"
OFTEN = re.search(r"^often=\(([^)]*)\)", COMPILER.read_text(), re.M).group(1).split()
PRINTK = """
#ifndef pr_fmt
#define pr_fmt(fmt) fmt
#endif
#define name(what) pr_fmt(KBUILD_MODNAME what)
#ifdef LOUD
#define VOLUME 11
#else
#define VOLUME 3
#endif
static inline int volume(void) { return VOLUME; }
static inline const char *warning(void) { return pr_fmt("queue"); }
"""
OFTEN_IS_SET_UP = "#ifndef OFTEN\n#define __init cold\n#endif\n"  # as a header of User Mode Linux
PRINTED = '#include <linux/kernel.h>\nconst char *said(void) { return name(": hi"); }\n'


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder with headers by the names of the kernel's, precompiled."""
    for header in OFTEN:
        path = tmp_path / "include" / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n")
    (tmp_path / "include/linux/kernel.h").write_text("#pragma once\n#define OFTEN\n" + PRINTK)
    (tmp_path / "include/init.h").write_text(OFTEN_IS_SET_UP)
    (tmp_path / "first.h").write_text("#define FIRST 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRECOMPILED", str(tmp_path / "precompiled"))
    compiled("first", "int first = FIRST;\n", PRECOMPILE="1")
    return tmp_path


def compiled(name: str, text: str, *options: str, **environment: str) -> tuple[str, bool]:
    """Compile TEXT as the kernel's build does; return the object's code and text, and whether
    headers were precompiled for it."""
    Path(f"{name}.c").write_text(text)
    command = [
        COMPILER, f"-Wp,-MMD,.{name}.o.d", "-Iinclude", "-include", "./first.h", "-O2", *options,
        f'-DKBUILD_MODNAME="{name}"', f"-D__KBUILD_MODNAME=kmod_{name}",
        "-c", "-o", f"{name}.o", f"{name}.c",
    ]  # fmt: skip
    subprocess.run(command, check=True, env={**os.environ, **environment})
    listed = subprocess.run(
        ["objdump", "-d", "-s", "-j", ".text", "-j", ".rodata.str1.1", f"{name}.o"],
        check=False, capture_output=True, text=True,
    ).stdout  # fmt: skip
    left = sorted(path.name for path in Path().glob(f".{name}.o.d*"))
    assert left == [f".{name}.o.d"], "a file for the compiler alone stays behind"
    return listed, ".h" not in Path(f".{name}.o.d").read_text()


@pytest.mark.parametrize("options", [(), ("-DMODULE",)], ids=["builtin", "module"])
def test_an_object_is_what_gcc_makes_of_it(tree, options):
    taken = compiled("hi", PRINTED, *options)
    plain = compiled("hi", PRINTED, *options, PRECOMPILED="")
    assert taken[0] == plain[0] and (taken[1], plain[1]) == (True, False)
    assert b"hi: hi" in Path("hi.o").read_bytes()


def test_trace_points_matter_only_if_such_events_are_precompiled(tree):
    text = "#include <linux/kernel.h>\n#define CREATE_TRACE_POINTS\n#include <linux/mm.h>\nint i;\n"
    assert compiled("traced", text)[1]
    (tree / "include/trace/events").mkdir(parents=True)
    (tree / "include/trace/events/sched.h").write_text("#ifdef CREATE_TRACE_POINTS\n#endif\n")
    (tree / "include/linux/sched.h").write_text("#include <trace/events/sched.h>\n")
    (tree / "precompiled/flags").unlink()
    compiled("first", "int first = FIRST;\n", PRECOMPILE="1")
    assert not compiled("traced", text)[1]


def test_make_learns_of_the_headers_that_lie_beside_a_source(tree):
    """The kernel's srcversion of a module is made of them, too."""
    Path("own.h").write_text("#define OWN 1\n")
    compiled("hi", '#include <linux/kernel.h>\n#include "own.h"\nint own = OWN;\n')
    dependencies = Path(".hi.o.d").read_text().replace("\\\n", "").split()
    assert dependencies == ["hi.o:", "hi.c", "own.h"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("#define LOUD\n#include <linux/kernel.h>\nint v(void) { return volume(); }\n", ()),
        ("#include <linux/kernel.h>\n# define LATE\n#include <linux/mm.h>\nint late;\n", ()),
        ("#include <linux/kernel.h>\nint v(void) { return volume(); }\n", ("-DLOUD",)),
        ("int volume(void) { return FIRST; }\n", ()),  # a name that the headers have, too
        (
            '#define pr_fmt(fmt) "TCP: " fmt\n#include <linux/kernel.h>\n'
            "const char *w(void) { return warning(); }\n",
            (),
        ),
        ("#include <init.h>\nint cold;\n#ifdef __init\nint set_up;\n#endif\n", ()),
    ],
    ids=[
        "defined-before",
        "defined-between",
        "other-options",
        "does-not-compile",
        "pr_fmt",
        "asks-what-is-there",
    ],
)
def test_where_headers_could_matter_they_are_read_anew(tree, text, options):
    taken = compiled("own", text, *options)
    assert taken == compiled("own", text, *options, PRECOMPILED="") and not taken[1]


def test_headers_that_do_not_compile_cost_nothing(tree):
    (tree / "precompiled/flags").unlink()
    (tree / "include/linux/mm.h").write_text("#error not of this kernel\n")
    first, _ = compiled("first", "int first = FIRST;\n", PRECOMPILE="1")
    assert first and not (tree / "precompiled/flags").exists()
    assert not compiled("hi", PRINTED)[1]


def test_an_error_is_gccs_own(tree):
    Path("bad.c").write_text("int bad = missing;\n")
    command = [COMPILER, "-Wp,-MMD,.bad.o.d", "-Iinclude", "-include", "./first.h", "-O2"]
    done = subprocess.run(
        [*command, "-c", "-o", "bad.o", "bad.c"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.count("missing") == 2  # the line, and what it has
