# SPDX-License-Identifier: GPL-2.0-only
"""How it runs: what points are made of, where they run, and where their results are kept."""
