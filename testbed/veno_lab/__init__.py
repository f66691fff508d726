# SPDX-License-Identifier: GPL-2.0-only
"""For Mininet scripts of anybody: hops that lose, delay, queue and follow traces, and access points
of Wi-Fi, by a seed.

docs/mininet.md is the page. It is imported where Mininet is (Debian's Python), so it needs nothing
but Mininet and the lab's modules beside it.
"""

from veno_lab import python  # noqa: F401 - first: it refuses one too old for the rest
from veno_lab.hops import OneHop, TraceHop, WirelessHop
from veno_lab.wifi import OneAccessPoint, WifiAp, WifiLink

__all__ = ["OneAccessPoint", "OneHop", "TraceHop", "WifiAp", "WifiLink", "WirelessHop"]
