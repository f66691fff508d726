# SPDX-License-Identifier: GPL-2.0-only
"""Keywords of links and nodes: Mininet passes over in silence what it does not know; these do
not."""

from collections.abc import Iterable

from lab.common.errors import nearest

# what Mininet's own Link and interfaces take
LINK_KEYS = {
    "port1", "port2", "intfName1", "intfName2", "addr1", "addr2", "intf", "cls1", "cls2", "params1",
    "params2", "fast", "ip", "mac", "ifconfig", "up",
}  # fmt: skip
# and its switches; the last ones it gives by itself
SWITCH_KEYS = {"dpid", "opts", "privateDirs", "listenPort", "inNamespace", "isSwitch", "batch"}


# Mininet's TCLink's, and what is called otherwise here as its unit is in its name
TCLINK = {
    "bw": "rate_mbps", "delay": "delay_ms", "jitter": "jitter_ms", "loss": "loss_pct",
    "max_queue_size": "queue_pkts",
}  # fmt: skip


def refuse_unknown(who: str, given: Iterable[str], known: Iterable[str], cure: str = "") -> None:
    """Refuse the first of the keywords GIVEN to WHO that is not KNOWN: TypeError, with CURE if
    there is one for it, or with those that were probably meant."""
    for key in given:
        if key not in known:
            ours = TCLINK.get(key)
            near = [ours] if ours in known else nearest(key, known)
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            raise TypeError(f"{who} takes no {key}{hint or cure}")
