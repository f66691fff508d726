# SPDX-License-Identifier: GPL-2.0-only
"""The testbed: data-only scenarios, run on the real kernel, turned into claims and plots.

Its rooms follow the data; each imports from those before it alone: common, ask, measure, run,
judge, show. On top are the commands (commands, cli).
"""
