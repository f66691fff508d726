# SPDX-License-Identifier: GPL-2.0-only
"""What is asked: scenarios and what they are made of, down to points and what each hop is told."""
