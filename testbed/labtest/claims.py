# SPDX-License-Identifier: GPL-2.0-only
"""Claims: sentences and the functions that raise if one does not hold. They print TAP."""

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from lab.run.guest.alike import is_lab_kernel, start_alike
from lab.run.guest.kernel_log import KernelLog


@dataclass(frozen=True)
class Claim:
    """ABOUT: what it is said of, if not of all; CHECK takes one of them, or nothing."""

    text: str
    check: Callable[..., None]
    about: tuple[str, ...] = ()

    def holds(self, *about: str) -> bool:
        """Check it, print a line that says what came of it, and return that. In a lab kernel its
        chance and its times are its own, whatever was checked before."""
        if is_lab_kernel():
            start_alike()
        try:
            self.check(*about)
        except Exception:
            print(f"not ok - {self.text}", flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
            return False
        print(f"ok - {self.text}", flush=True)
        return True


class Claims(list[Claim]):
    """The claims of one script, in the order in which they are checked."""

    def add(self, text: str):
        """Register a function that raises if TEXT does not hold."""

        def register(check):
            self.append(Claim(text, check))
            return check

        return register

    def settle(self, wanted: str = "") -> NoReturn:
        """Check those whose text the pattern WANTED is found in, and exit: with 0 if all hold."""
        held = [one.holds() for one in self if re.search(wanted, one.text)]
        sys.exit(0 if all(held) else 1)


def check_log(*_about: str) -> None:
    """The check of a claim that the guest's kernel log holds no complaint."""
    complaint = KernelLog().complaint()
    assert not complaint, complaint


def near(value: float, wanted: float, by: float) -> None:
    assert abs(value - wanted) <= by, f"{value}, not {wanted} +- {by}"
