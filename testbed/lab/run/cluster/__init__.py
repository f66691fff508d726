# SPDX-License-Identifier: GPL-2.0-only
"""Points on other machines, by Dask (docs/cluster.md).

A sweep's machines are a Crew (crew.py). Kernel, modules, tools and the lab's own code go to each
worker once, as one archive named by its hash (bundle.py); what Dask itself runs there (carried.py)
unpacks it and starts a process of the lab in it (work.py), which does as a local run does. All that
Dask sees is bytes: a batch of points there, what is kept of them back.
"""
