# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs with earshot-tls, and a server behind it that answers oddly (web/backend.py)."""
import os
import re
import signal

import tree
from earshotlab import Lab, tls, wait_for
from web.reader import Reader
from web.secure import Secure

BEHIND = "127.0.0.1:8081"
ALL = ["n1", "n2", "n3"]


def lab_of(settings=None, **keywords):
    """A lab with earshot-tls in front of web/backend.py; start_backends() is the caller's."""
    return Lab(**{"nodes": 3, "tls": True, **keywords},
               settings={"tls.server": BEHIND, "tls.workers": 2, **(settings or {})})


def start_backends(lab, program="backend"):
    address, port = BEHIND.split(":")
    for node in lab.nodes:
        child = node.popen([*tree.module(f"web.{program}"), node.name, address, port], stdout=-1)
        assert child.stdout.readline() == "listening\n"


def counters(lab, node):
    """{name: value} of earshot-tls, which writes them to its log when it is asked."""
    path = os.path.join(lab.node_directory(node), f"{tls.NAME}.log")
    with open(path, encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        os.kill(lab.pid(node, tls.NAME), signal.SIGUSR1)
        text = ""

        def told():
            nonlocal text
            text += log.read()
            return "records_bad=" in text and text.endswith("\n")

        wait_for(told, f"the counters of earshot-tls on {node}")
    return {name: int(value) for name, value in re.findall(r" (\w+)=(\d+)", text)}


def total(lab, name):
    return sum(counters(lab, node)[name] for node in lab.net.nodes)


def connect(lab, how=None, **keywords):
    """A connection, and what reads its responses."""
    sock = Secure(lab, how, **keywords)
    return sock, Reader(sock)


def log_of(lab, node):
    with open(os.path.join(lab.node_directory(node), f"{tls.NAME}.log"), encoding="utf-8") as log:
        return log.read()
