# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of docs/programs.md, as they stand there: built, run, and asked."""
import os
import re
import subprocess
import sys

import pytest

from earshotlab import netns, wait_for
from packets.model import ASK
from packets.node import VIP
from tree import BUILD, SOURCE

PORT, SERVER = 8000, 80


def block(name):
    """What stands behind <!-- programs: NAME -->."""
    with open(os.path.join(SOURCE, "docs", "programs.md"), encoding="utf-8") as handle:
        return re.search(rf"<!-- programs: {re.escape(name)} -->\n```\w*\n(.*?)```", handle.read(), re.S)[1]


@pytest.fixture(scope="module", name="prefix")
def _prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    for component in ("lib", "libdev"):
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", prefix], check=True,
                       capture_output=True)
    return prefix


def in_c(prefix, directory):
    (directory / "by_path.c").write_text(block("by_path.c"))
    build, run = block("build").strip().split("\n")
    place = next(prefix.rglob("earshot.pc")).parent
    subprocess.run(build.replace("cc ", "cc -Wall -Wextra -Werror ", 1), shell=True, check=True, cwd=directory,
                   env={**os.environ, "PKG_CONFIG_PATH": str(place)})
    return [str(directory / run)]


def in_python(_prefix, directory):
    (directory / "by_path.py").write_text(block("by_path.py"))
    return [sys.executable, str(directory / "by_path.py")]


@pytest.mark.parametrize("command", [in_c, in_python])
def test_as_it_stands_there(own_node, client, prefix, tmp_path, command):
    """n3 is asked to take a connection with a request for reports; any other goes to this node's own server."""
    node = own_node()
    with open(node.config_path, "a", encoding="ascii") as handle:
        handle.write(block("earshot.conf"))
    node.reload()
    address, port = node.server_name(PORT, 4, SERVER)
    # Not on all addresses, since another server has the service's, as its port is that of another service here.
    server = node.listen(SERVER, address=address if node.netfilter else "127.0.0.1")
    environment = {**os.environ, "EARSHOT_HANDOVER_SOCKET": node.control + ".handover",
                   "LD_LIBRARY_PATH": str(next(prefix.rglob("libearshot.so.1")).parent)}
    with subprocess.Popen(["nsenter", f"--net={netns.path(node.namespace)}", *command(prefix, tmp_path)],
                          env=environment) as program:
        try:
            wait_for(lambda: f"{VIP}:{PORT} " in subprocess.run(
                ["nsenter", f"--net={netns.path(node.namespace)}", "ss", "-ltn"], check=True, capture_output=True,
                text=True).stdout, "the program")
            other = client(PORT, at=node).shake()
            text = b"GET /other HTTP/1.1\r\nHost: test\r\n\r\n"
            other.request(text=text)
            connection, peer = server.accept()
            with connection:
                assert peer == (other.ip, other.port) and connection.getsockname() == (address, port)
                assert connection.recv(4096) == text
            node.cluster.clear()
            client(PORT, at=node).shake().request(text=b"GET /reports/1 HTTP/1.1\r\nHost: test\r\n\r\n")
            node.taken(3, ASK)
        finally:
            program.kill()
