# SPDX-License-Identifier: GPL-2.0-only
"""The scorecard as a command and as a page; lab.judge.scorecard has what it asks and judges."""
