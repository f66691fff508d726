# SPDX-License-Identifier: GPL-2.0-only
"""For Mininet scripts of anybody: hops that lose, delay, queue and follow traces, by a seed.

docs/mininet.md is the page. It is imported where Mininet is (Debian's Python), so it needs nothing
but Mininet and the lab's modules beside it.
"""

from veno_lab.hops import OneHop, TraceHop, WirelessHop

__all__ = ["OneHop", "TraceHop", "WirelessHop"]
