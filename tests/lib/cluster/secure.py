# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs with earshot-tls, and a server behind it that answers oddly (web/backend.py)."""
import contextlib
import itertools
import os
import re
import signal

import tree
from earshotlab import Lab, tls, wait_for
from web.reader import Reader
from web.secure import Secure

BEHIND = "127.0.0.1:8081"
ALL = ["n1", "n2", "n3"]
RULES = "".join(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in ALL)


def lab_of(settings=None, **keywords):
    """A lab with earshot-tls in front of web/backend.py; start_backends() is the caller's."""
    return Lab(**{"nodes": 3, "tls": True, **keywords},
               settings={"tls.server": BEHIND, "tls.workers": 2, **(settings or {})})


def start_backends(lab, program="backend"):
    for node in lab.nodes:
        start_backend(node, program)


def start_backend(node, program="backend"):
    address, port = BEHIND.split(":")
    child = node.popen([*tree.module(f"web.{program}"), node.name, address, port], stdout=-1)
    assert child.stdout.readline() == "listening\n"


@contextlib.contextmanager
def moving_lab(settings=None, **keywords):
    """The same, with the servers, where each request is for the node that its field X-To names, and the connection moves there."""
    with lab_of({"https.inspect": "every", **(settings or {})}, **keywords) as lab:
        start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab
        assert total(lab, "arrived_bad") == total(lab, "arrived_repeated") == 0


def round_trip():
    """Nodes in an order in which each comes after each of the others."""
    return itertools.cycle(["n1", "n2", "n3", "n1", "n3", "n2"])


def counters(lab, node):
    """{name: value} of earshot-tls, which writes them to its log when it is asked."""
    path = os.path.join(lab.node_directory(node), f"{tls.NAME}.log")
    with open(os.path.join(tree.SOURCE, "inspector/ask/ledger.h"), encoding="utf-8") as header:
        last = re.findall(r"X\((\w+),[\s\\]*\"", header.read())[-1]
    with open(path, encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        os.kill(lab.pid(node, tls.NAME), signal.SIGUSR1)
        text = ""

        def told():
            nonlocal text
            text += log.read()
            return f" {last}=" in text and text.endswith("\n")

        wait_for(told, f"the counters of earshot-tls on {node}")
    return {name: int(value) for name, value in re.findall(r" (\w+)=(\d+)", text)}


def total(lab, name):
    return sum(counters(lab, node)[name] for node in lab.net.nodes)


def connect(lab, how=None, **keywords):
    """A connection, and what reads its responses."""
    sock = Secure(lab, how, **keywords)
    return sock, Reader(sock)


def workers(lab, node):
    """Process ids of a node's workers."""
    parent = lab.pid(node, tls.NAME)
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as children:
        return sorted(map(int, children.read().split()))


def reload(lab):
    """All earshot-tls have read their files again."""
    for node in lab.net.nodes:
        said = log_of(lab, node).count("reloaded")
        os.kill(lab.pid(node, tls.NAME), signal.SIGHUP)
        wait_for(lambda node=node, said=said: log_of(lab, node).count("reloaded") > said, f"the reload on {node}")


@contextlib.contextmanager
def changed(lab):
    """change(TEXT, BY): another configuration for all earshot-tls; undone in the end."""
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()

    def write(text):
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text)
        reload(lab)

    def change(text, by):
        assert text in before
        write(before.replace(text, by))

    yield change
    write(before)


def log_of(lab, node):
    with open(os.path.join(lab.node_directory(node), f"{tls.NAME}.log"), encoding="utf-8") as log:
        return log.read()
