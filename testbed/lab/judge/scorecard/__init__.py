# SPDX-License-Identifier: GPL-2.0-only
"""RFC 9743 answered by measurement, for any congestion control: testbed/run scorecard.

`rows` reads what is asked (testbed/scorecard/*.toml), `figures` what is read off a point, `judge`
holds one against the other; lab.show.scorecard shows it and has the command.
"""
