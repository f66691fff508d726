# SPDX-License-Identifier: GPL-2.0-only
"""What people see: tables, figures, reports, pages."""
