# SPDX-License-Identifier: GPL-2.0-only
"""The program in docs/sctp.md compiles, and prints in the lab what that page says; so does what
stands there for one-to-many sockets."""

import re
import subprocess

import pytest
from conftest import TESTBED

from lab.run.build import PROJECT

PAGE = (PROJECT / "docs" / "sctp.md").read_text()
SECTION = re.search(r"^## In your program\n(.*?)^## ", PAGE, re.M | re.S)[1]
PROGRAM = re.search(r"Save this as `cong\.c`.*?```c\n(.*?)```", SECTION, re.S)[1]
TRIED = re.findall(r"```sh\n(.*?)```\n\n```\n(.*?)```", SECTION, re.S)
CHOICE = re.search(r"    (struct sctp_cong_control \{.*?sizeof\(all\)\);)", SECTION, re.S)[1]
WITH_CHOICE = f"""
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <linux/sctp.h>
#define SCTP_CONG_CONTROL 1000
int main(void)
{{
	int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	char name[16];
	socklen_t size = sizeof(name);
	int set;

	{CHOICE.replace("setsockopt", "set = setsockopt")}
	getsockopt(fd, IPPROTO_SCTP, SCTP_CONG_CONTROL, name, &size);
	printf("%d %zu %s\\n", set, sizeof(all), name);
	return 0;
}}
"""


@pytest.fixture
def folder(backend, tmp_path):
    """An empty folder that has the testbed, as a copy of this repository has."""
    (tmp_path / "testbed").symlink_to(TESTBED)
    return tmp_path


def sh(folder, text: str) -> str:
    """Run TEXT in FOLDER; return what it printed, but for the lab kernel's own words."""
    ran = subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return "".join(line for line in ran.stdout.splitlines(True) if not line.startswith("["))


def test_the_program_prints_what_the_page_says(folder):
    (folder / "cong.c").write_text(PROGRAM)
    assert len(TRIED) == 2
    for commands, printed in TRIED:
        assert sh(folder, commands) == printed


def test_the_choice_of_a_one_to_many_socket_is_one(folder):
    (folder / "many.c").write_text(WITH_CHOICE)
    made = "gcc -Wall -Wextra -Werror -o many many.c && testbed/veno-lab exec ./many"
    assert sh(folder, made) == "0 20 jsctp_abe\n"
