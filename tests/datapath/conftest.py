# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet suite's fixtures."""
import contextlib
import os

import pytest

import namespaces
from packets import families
from packets import program as program_of
from packets.client import Client
from packets.node import BLIND, CRAMPED, CRAMPED_BLIND, EACH, PREFIX, PROGRAM, SERVER, TURNS, WEB, Node
from tree import BUILD, EARSHOT, EARSHOTD, EARSHOTD_TABLES, skip, unbuilt


def _missing(config):
    """Why nothing but the model can be tested here, or None."""
    if os.geteuid():
        return "needs root"
    if config.getoption("datapath") == "module" and not os.path.exists("/sys/module/earshot"):
        return "earshot.ko is not loaded"
    return unbuilt(EARSHOT, EARSHOTD, EARSHOTD_TABLES)


# What does not hold for a datapath has one of these marks, with the reason.
LEAVES_OUT = {"bpf": {"netfilter"}, "module": {"bpf", "netfilter"}, "netfilter": {"no_netfilter"}}


def pytest_addoption(parser):
    parser.addoption("--each-value", action="store_true", help="of a test with several parameters, not each combination: as few "
                     "as have each value of each parameter once")


def combinations(items):
    """Those of one test that --each-value leaves out."""
    values = {item: {(name, repr(value)) for name, value in item.callspec.params.items()} for item in items}
    missing = set().union(*values.values())
    while missing:
        best = max(values, key=lambda item: len(values[item] & missing))
        missing -= values.pop(best)
    return set(values)


def pytest_collection_modifyitems(config, items):
    datapath = config.getoption("datapath")
    left_out = {item for item in items if LEAVES_OUT[datapath] & {mark.name for mark in item.iter_markers()}}
    if config.getoption("each_value"):
        tests = {}
        for item in items:
            if hasattr(item, "callspec") and item not in left_out:
                tests.setdefault((item.parent, item.originalname), []).append(item)
        left_out.update(*map(combinations, tests.values()))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def pytest_runtest_setup(item):
    skip(None if item.get_closest_marker("model") else _missing(item.config))


@pytest.fixture(scope="session")
def make_node(request):
    """Node(…) with the datapath under test."""
    namespaces.delete_stale(PREFIX)
    return lambda **settings: Node(datapath=request.config.getoption("datapath"), **settings)


def serving(node, tells=True):
    """Starts the daemon and all servers."""
    node.start(tells)
    for port in (WEB, BLIND, TURNS, EACH, PROGRAM):
        node.listen(port)
    node.listen(SERVER)
    for port in (CRAMPED, CRAMPED_BLIND):
        node.listen(port, backlog=0)
    return node


@pytest.fixture(scope="session")
def shared_node(make_node):
    with make_node() as node:
        yield serving(node)


@pytest.fixture
def cluster_family():
    """Of the nodes' own addresses: 4, unless the test says otherwise (packets/families.py)."""
    return 4


@pytest.fixture
def node(shared_node, cluster_family):
    """The node that most tests share: nothing of an earlier test is on its wires or in its accept queues."""
    shared_node.settle()
    shared_node.public.clear()
    shared_node.cluster.clear()
    with families.cluster(shared_node, cluster_family):
        yield shared_node


@pytest.fixture
def own_node(make_node):
    """For what would disturb others; takes Node's settings."""
    nodes = []

    def make(tells=True, **settings):
        nodes.append(make_node(**settings))
        return serving(nodes[-1], tells)

    yield make
    for made in nodes:
        made.close()


@pytest.fixture(name="own")
def _own(own_node):
    """A node whose plugin does what a request's header says."""
    node = own_node()
    with open(node.config_path, encoding="ascii") as handle:
        text = handle.read()
    rule = f'plugin debug {{ file = "{os.path.join(BUILD, "plugins", "debug.so")}" budget_us = 0 }}'
    with open(node.config_path, "w", encoding="ascii") as handle:
        handle.write(text.replace(f"service s{WEB} {{", f"service s{WEB} {{ {rule}"))
    node.reload()
    return node


@pytest.fixture
def family():
    """Of the clients: 4, unless the test says otherwise (packets/families.py)."""
    return 4


@pytest.fixture
def client(node, family):
    """Client(node, …), whose connections do not outlive the test."""
    clients = []

    def make(*arguments, at=node, **keywords):
        clients.append(Client(at, *arguments, family=family, **keywords))
        return clients[-1]

    with families.dual_stack(node) if family == 6 else contextlib.nullcontext():
        yield make
    for made in clients:
        made.abort()
    for port in (WEB, BLIND, TURNS, EACH, PROGRAM, SERVER, CRAMPED, CRAMPED_BLIND):
        node.pending(port)


@pytest.fixture(scope="session")
def library():
    """libearshot, as programs have it."""
    return program_of.library()


@pytest.fixture
def program(node, client, library):
    """Program(…) on the node that most tests share."""
    made = []

    def make(*arguments, **keywords):
        made.append(program_of.Program(node, client, library, *arguments, **keywords))
        return made[-1]

    yield make
    for each in made:
        each.pool.shutdown()
    node.settle()
    node.cluster.clear()
