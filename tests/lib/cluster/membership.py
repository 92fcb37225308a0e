# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs of four nodes with corosync, their ring, and who answers when it changes."""
import re

from earshotlab import wait_for

ALL = ["n1", "n2", "n3", "n4"]
TOKEN = 0.5
# Consensus after the token's loss, then the rings' change; on a machine with two cores.
DETECTED = 2.2 * TOKEN + 1.5


def settled(lab, members=ALL, timeout=15):
    """All of these are members, and the same ring is in force on all of them."""
    def check():
        seen = [lab.status(node) for node in members]
        return (all(s["membership"]["phase"] == "stable" and not s["membership"]["silent"] for s in seen)
                and len({s["membership"]["epoch"] for s in seen}) == 1
                and all({n["name"] for n in s["nodes"] if n["member"]} == set(members) for s in seen))

    def rings():
        found = {node: lab.status(node) for node in members}
        return "".join(f"\n  {node}: members {[n['name'] for n in s['nodes'] if n['member']]}, {s['membership']}"
                       for node, s in found.items())

    wait_for(check, f"a ring of {members}", timeout, rings)


def serving(lab):
    """All nodes say that all can serve: a server that has just started, or a node that has refused something, is left alone for
    a while."""
    def states():
        return {node.name: {n["name"]: n["state"] for n in lab.status(node.name)["nodes"]} for node in lab.nodes}

    wait_for(lambda: all(state == "up" for seen in states().values() for state in seen.values()), "the servers", seen=states)


def hear(connections):
    """Who answered, and how many were told that nobody does."""
    answered, told = [], 0
    for connection in connections:
        try:
            answered.append(re.search(rb"X-Node: (\S+)", connection.recv(65536)).group(1).decode())
        except ConnectionResetError:
            told += 1
        connection.close()
    return answered, told
