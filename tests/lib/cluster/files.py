# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs of three nodes in which each has a configuration file of its own, and what is rolled out there."""
import json
import os
import shutil

from earshotlab import daemon, wait_for

NODES = ["n1", "n2", "n3"]


def own_files(lab):
    """Each node with a file of its own, as on machines of their own."""
    for node in NODES:
        shutil.copy(lab.config_file, path_of(lab, node))
        lab.stop(node, "earshotd")
    for node in NODES:
        lab.start(node, "earshotd")


def path_of(lab, node):
    return os.path.join(lab.node_directory(node), "earshot.conf")


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def write_new(lab, text):
    path = os.path.join(lab.directory, "new.conf")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    return path


def with_policy(lab, policy):
    return write_new(lab, daemon.config_text(
        lab.net, os.path.join(lab.directory, "cluster.key"), policy,
        **{option: lab.options[option] for option in ("datapath", "membership", "settings")}))


def rollout(lab, *arguments, node="n1"):
    done = lab.node(node).exec(["earshot", "rollout", "--json", *arguments], check=False)
    report = json.loads(done.stdout) if done.stdout else {"nodes": []}
    return done, report, {node["name"]: (node["state"], node["reason"]) for node in report["nodes"]}


def policies(lab):
    return {node: lab.status(node)["services"][0]["policy"] for node in NODES}


def ready(lab):
    wait_for(lambda: all(all(other["tells"] for other in daemon.ask(
        lab.net.namespace(node), {"command": "cluster"})["nodes"]) for node in NODES), "all nodes hear each other", 15)
