# SPDX-License-Identifier: GPL-2.0-or-later
"""The Earshot lab: a cluster, its switch and its client in network namespaces of one machine.

    from earshotlab import Lab

    with Lab(nodes=3, policy="uri-hash") as lab:
        print(lab.client_run(["curl", "-s", lab.url("/node")]).stdout)
        lab.kill("n1")

`lab.py` beside this package is the same for people.
"""
from .errors import LabError
from .lab import Lab
from .netns import in_namespace
from .wait import wait_for

__all__ = ["Lab", "LabError", "in_namespace", "wait_for"]
