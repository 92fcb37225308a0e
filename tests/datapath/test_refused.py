# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that refuses BPF programs: what only looks at connections is done without, what serves is named."""
import json
import subprocess

import pytest

from earshotlab import netns, wait_for
from packets.node import EACH, SERVICE_INDEX
from packets.tables_asked import ITERATORS, refusing
from packets.wire import TIMEOUT_S
from tree import EARSHOT

pytestmark = [pytest.mark.bpf("the module is whole, or not there"), pytest.mark.no_netfilter("it loads no programs")]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SERVES = ("es_public", "es_cluster", "es_reply", "es_connection", "es_look")


@pytest.fixture(name="refused")
def _refused(make_node):
    """refused(names…) makes a node whose kernel refuses these."""
    nodes = []

    def make(*names):
        nodes.append(make_node(before=refusing(*names)))
        return nodes[-1]

    yield make
    for node in nodes:
        node.close()


@pytest.mark.parametrize("names", [*((name,) for name in ITERATORS), ITERATORS], ids=" ".join)
def test_iterators(refused, client, names):
    """The daemon serves, says what is refused, and knows its connections and what they are busy with all the same."""
    node = refused(*names).start()
    node.listen(EACH)
    assert "this kernel refuses the BPF iterator" in node.log() and all(name in node.log() for name in names), node.log()
    c = client(EACH, at=node).serve()
    wait_for(lambda: node.ask("status")["services"][SERVICE_INDEX[EACH]]["active"] == 1, "a request in hand")
    c.answer(OK)
    assert [f["requests"] for f in node.ask("flows")["flows"] if f["port"] == c.port] == [1]
    wait_for(lambda: node.ask("status")["services"][SERVICE_INDEX[EACH]]["active"] == 0, "nothing in hand")
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text


@pytest.mark.parametrize("name", SERVES)
def test_what_serves(refused, name):
    """It does not start, and names the program."""
    node = refused(name)
    daemon = node.spawn()
    assert daemon.wait(4 * TIMEOUT_S) != 0
    assert f"the kernel refuses the program {name}: Operation not permitted" in node.log(), node.log()


def test_nothing_ends_a_connection(refused):
    """Neither the iterator nor sock_diag: a node that could not end what another one may have does not start."""
    node = refused("es_unproven_end", "SOCK_DESTROY")
    daemon = node.spawn()
    assert daemon.wait(4 * TIMEOUT_S) != 0
    assert "es_unproven_end" in node.log() and "SOCK_DESTROY" in node.log(), node.log()


def _programs(node, *names):
    """What `earshot check` says of the programs."""
    done = subprocess.run(["nsenter", f"--net={netns.path(node.namespace)}", *refusing(*names), EARSHOT, "check", "--json", "--config", node.config_path, "--control", node.control],
                          capture_output=True, text=True, check=False)
    return next(found for found in json.loads(done.stdout)["findings"] if found["id"] == "kernel.programs")


def test_check(refused):
    """Root is not told to be root."""
    node = refused()
    assert _programs(node)["severity"] == "ok"
    found = _programs(node, "es_list", "es_loads")
    assert found["severity"] == "info" and "es_list, es_loads" in found["found"], found
    found = _programs(node, "es_reply")
    assert found["severity"] == "error" and "es_reply" in found["found"], found


def test_check_beside_daemon(refused):
    """What runs was taken: it is not loaded once more to know that, and what the kernel refused then is told."""
    node = refused("es_loads").start()
    for names in ((), ("es_reply",)):
        found = _programs(node, *names)
        assert found["severity"] == "info" and "es_loads" in found["found"], found
    assert node.ask("status")["datapath"]["note"] == found["found"]
