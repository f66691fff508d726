# SPDX-License-Identifier: GPL-2.0-only
from lab.cli import entry

entry()
