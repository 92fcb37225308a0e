# SPDX-License-Identifier: GPL-2.0-or-later
"""What ./dev bench xo measures: https_targets.py's servers and proxies without TLS, and Earshot's services of HTTP."""
from cluster import rules
from earshotlab import Lab, topology

import targets
import https_targets

EARSHOT = {
    # As an operator would have them: servers in turn by connection, or by content where that is worth a move ...
    "earshot": {"policy": "wrr", "settings": targets.WORKERS},
    "earshot-uri": {"policy": "uri-hash", "settings": {**targets.WORKERS, "service.inspect": "every"}},
    "earshot-lard-r": {"policy": "lard-r", "settings": {**targets.WORKERS, "service.inspect": "every"}},
    # ... and each request for the node that its path names, which moves the connection.
    "earshot-every": {"policy": "wrr", "settings": {**targets.WORKERS, "service.inspect": "every"}},
}
PROXIES = https_targets.PROXIES
DEFAULT_MODES = ("direct", "earshot", "earshot-uri", "earshot-every", *PROXIES)
MODES = ("direct", *EARSHOT, *PROXIES)

make_docroot = https_targets.make_docroot


class Targets(https_targets.Targets):
    """The same paths; check() is the parent's, too."""

    scheme = "http"
    read_counters = staticmethod(Lab.counters)

    def __init__(self, stack, docroot, nodes):
        super().__init__(stack, docroot, nodes)
        self.clusters = EARSHOT

    def url(self, mode):
        lab = self.lab(mode)
        if mode in EARSHOT:
            return f"{topology.VIP}:{topology.PORT}"
        if mode == "direct":
            return f"{lab.node('n1').public_address}:{topology.PORT}"
        return f"{lab.node(self.front['proxy']).public_address}:{https_targets.PLAIN_PORTS[mode]}"

    def _configure(self, lab, key):
        rules.add(lab, self._rules("web"))
