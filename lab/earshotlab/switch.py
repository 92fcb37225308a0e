# SPDX-License-Identifier: GPL-2.0-or-later
"""What a switch can do to frames without anybody's carrier going away: lose all of a port's, those that one direction
takes, or those between ports.

One table of nft in the switch's namespace, written as a whole each time. Everything else of the lab's network, e.g.
the client's port, is not touched by a partition.
"""
import itertools
import shutil
import subprocess

from . import netns
from .errors import LabError

_SUFFIX = {"cluster": "clu", "public": "pub"}
NETWORKS = tuple(_SUFFIX)


def link_name(node, network):
    """The link of a node to a network, "cluster" or "public"."""
    if network not in _SUFFIX:
        raise LabError(f"network {network!r}: {' or '.join(NETWORKS)}")
    return f"{node}-{_SUFFIX[network]}"


def parse_groups(nodes, groups):
    """Check the sides of a partition: lists of nodes without overlap. Who is not named is on a side with the others."""
    groups = [list(group) for group in groups]
    named = list(itertools.chain.from_iterable(groups))
    for node in named:
        if node not in nodes:
            raise LabError(f"partition: no node {node!r}: {', '.join(nodes)}")
    if len(named) != len(set(named)):
        raise LabError("partition: a node is on two sides")
    groups.append([node for node in nodes if node not in named])
    groups = [group for group in groups if group]
    if len(groups) < 2:
        raise LabError("partition: there is only one side")
    return groups


def _set(links):
    return "{ " + ", ".join(f'"{link}"' for link in links) + " }"


def rules(partition, losing):
    """The script for nft: partition = {network: groups of nodes}, losing = {link: "in", "out" or "both"}: which of its
    machine's frames are lost, those that come to it or those that it sends."""
    drops = []
    for word, direction in (("iifname", "out"), ("oifname", "in")):
        links = sorted(link for link, lost in losing.items() if lost in (direction, "both"))
        if links:
            drops += [f"{word} {_set(links)} drop"]
    for network, groups in partition.items():
        sides = [[link_name(node, network) for node in group] for group in groups]
        for side in sides:
            others = [link for other in sides if other is not side for link in other]
            drops += [f"iifname {_set(side)} oifname {_set(others)} drop"]
    script = ["table bridge earshot_lab", "delete table bridge earshot_lab"]
    if drops:
        script += ["table bridge earshot_lab {", "  chain forward {", "    type filter hook forward priority 0;",
                   *(f"    {drop}" for drop in drops), "  }", "}"]
    return "\n".join(script) + "\n"


def apply(namespace, partition, losing):
    """Make the switch behave so from the next frame on."""
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    if not nft:
        raise LabError("nft is not installed: apt-get install nftables")
    done = subprocess.run([netns.ip_command(), "netns", "exec", namespace, nft, "-f", "-"],
                          input=rules(partition, losing), capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"nft in {namespace}: {done.stderr.strip()}")
