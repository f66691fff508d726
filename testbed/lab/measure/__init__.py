# SPDX-License-Identifier: GPL-2.0-only
"""What was measured: from a guest's raw files to the figures of a point."""
