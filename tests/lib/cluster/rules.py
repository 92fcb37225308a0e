# SPDX-License-Identifier: GPL-2.0-or-later
"""Locations and rules of a cluster that is up."""


def add(lab, text):
    """To all nodes' one configuration; subprocess.CalledProcessError if a node refuses it. Without text nothing is done."""
    if not text:
        return
    with open(lab.config_file, "a", encoding="utf-8") as handle:
        handle.write(text)
    for node in lab.nodes:
        node.exec(["earshot", "reload"])
