# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that harm the daemon that reads them: the plugin `debug` does what their header says."""
import contextlib
import os
import re

from cluster.membership import ALL
from earshotlab import daemon
from web import raw

RULE = '    plugin debug {{ file = "{file}" budget_us = 0 }}\n'


def plugin_load(lab):
    """Put the plugin in force on all nodes."""
    rule = RULE.format(file=os.path.join(daemon.BUILD, "plugins", "debug.so"))
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(re.sub(r"(service web \{\n)", lambda found: found[1] + rule, text))
    for node in ALL:
        lab.node(node).exec(["earshot", "reload"])


def ask(lab, wish, timeout=30):
    """One request on a connection of its own, that does this to the daemon that reads it; its status."""
    with contextlib.closing(raw.connect(lab.client, timeout=timeout)) as sock:
        sock.sendall(raw.head("/1k", X_Debug=wish))
        return raw.receive(sock).status


def asked(lab):
    """How many requests the plugin has seen, on all nodes."""
    return sum(each["calls"] for node in ALL for each in lab.status(node)["plugins"])


def known(lab):
    """What each node knows of: [{(whose daemon, what became of it)}]."""
    return [{(p["node"], p["daemon"]) for p in lab.status(node)["poison"]} for node in ALL]
