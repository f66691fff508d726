# SPDX-License-Identifier: GPL-2.0-only
"""The testbed: data-only scenarios, run on the real kernel, turned into claims and plots."""
