# SPDX-License-Identifier: GPL-2.0-only
"""What all rooms use: how things go wrong, how commands end, options they share."""
