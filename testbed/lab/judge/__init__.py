# SPDX-License-Identifier: GPL-2.0-only
"""What it means: claims, the scorecard, runs held against each other."""
