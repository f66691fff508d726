# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of modules share: scripts that run inside the lab kernel and print what holds.

`boot` starts them and reads what they said; `claims` is for the scripts, `guest` for what they
set up. Standard library only, as inside the lab there is no other.
"""
