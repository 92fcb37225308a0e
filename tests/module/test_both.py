# SPDX-License-Identifier: GPL-2.0-or-later
"""Both datapaths in one network namespace would handle each packet twice: whoever comes second refuses.

For kernels that take both (6.12); conftest.py leaves it out on others.
"""
import os
import re
import subprocess

import pytest

from earshotlab import netns
from packets.client import Client
from packets.node import WEB, Node
from tree import EARSHOT, EARSHOTD


@pytest.mark.parametrize("first, second", [("bpf", "module"), ("module", "bpf")])
def test_the_second_refuses(first, second):
    with Node(datapath=first) as node:
        node.start()
        node.listen(WEB)
        Client(node).serve().abort()
        with open(node.config_path, encoding="ascii") as handle:
            text = re.sub(r" server_port = \d+", "", handle.read())  # which only bpf has
        other = os.path.join(node.directory, "other.conf")
        with open(other, "w", encoding="ascii") as handle:
            handle.write(text.replace(f"type = {first}", f"type = {second}"))

        def start():
            return subprocess.run(["nsenter", f"--net={netns.path(node.namespace)}", EARSHOTD, "--config", other,
                                   "--control", f"{node.control}2"], capture_output=True, text=True, timeout=60)

        done = start()
        assert done.returncode and f"the {first} datapath is attached in this network namespace" in done.stderr, done
        Client(node).serve().abort()
        # Nor beside what an ended daemon has left.
        node.kill()
        done = start()
        assert done.returncode and '"earshot detach"' in done.stderr, done
        done = subprocess.run(["nsenter", f"--net={netns.path(node.namespace)}", EARSHOT, "--control", node.control,
                               "detach"], check=True, capture_output=True, text=True)
        assert "eth0: " in done.stdout and "eth1: " in done.stdout, done
        # Now there is room for it.
        os.replace(other, node.config_path)
        node.start()
        Client(node).serve().abort()
        assert node.ask("status")["datapath"]["type"] == second
