# SPDX-License-Identifier: GPL-2.0-or-later
"""What ./dev bench xo measures: https_targets.py's servers and proxies without TLS, and Earshot's services of HTTP."""
from earshotlab import Lab, netns, topology, wait_for

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

    def lab(self, mode):
        key = mode if mode in EARSHOT else "plain"
        if key not in self.labs:
            self.labs[key] = self._make(key)
        return self.labs[key]

    def url(self, mode):
        lab = self.lab(mode)
        if mode in EARSHOT:
            return f"{topology.VIP}:{topology.PORT}"
        if mode == "direct":
            return f"{lab.node('n1').public_address}:{topology.PORT}"
        return f"{lab.node(self.proxy).public_address}:{https_targets.PLAIN_PORTS[mode]}"

    def counters(self, mode):
        """The daemons' counters, summed over the nodes."""
        total = {}
        for node in self.names if mode in EARSHOT else ():
            for name, value in self.lab(mode).counters(node).items():
                total[name] = total.get(name, 0) + value
        return total

    def _make(self, key):
        if key == "plain":
            return super()._make(key)
        lab = Lab(server="none", nodes=len(self.names), **EARSHOT[key])
        self.stack.enter_context(lab)
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        for node in self.names:
            self._server(lab, node, key)
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(self._rules("web"))
        for node in self.names:
            self._reload(lab, node)
        self.labs[key] = lab
        wait_for(lambda: self._answers(key), f"an answer of {key}", lab.options["timeout"])
        return lab
