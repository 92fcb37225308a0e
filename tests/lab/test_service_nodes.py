# SPDX-License-Identifier: GPL-2.0-or-later
"""A service with `nodes`: the others inspect what comes for it, hand it over and lack nothing; whatever listens there serves none."""
import collections
import json
import re

import pytest

from cluster.membership import serving, settled
from earshotlab import Lab, topology, wait_for
from tree import module
from web import raw
from web.traffic import Traffic

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
THESE = {"n1", "n2"}
APP = 8080
COROSYNC = pytest.param("corosync", marks=pytest.mark.corosync)


def write(lab, before, web="", more=""):
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(before.replace("\nservice web {\n", f"\nservice web {{\n{web}\n") + more)


def reload(lab):
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


@pytest.fixture(scope="module", name="lab", params=["static", COROSYNC])
def _lab(request):
    with Lab(nodes=3, policy="wrr", membership=request.param) as lab:
        if request.param == "corosync":
            settled(lab, ALL)
        serving(lab)
        yield lab


@pytest.fixture(name="before")
def _before(lab):
    """The file; each test finds it in force, and all servers."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    yield text
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text)
    reload(lab)
    serving(lab)


def ask(lab, data=None):
    """The node that answers, or what went wrong."""
    try:
        return raw.ask(lab.client, data or raw.head("/1k", Connection="close"), timeout=5)[0].node
    except (OSError, AssertionError) as error:
        return type(error).__name__


def asked(lab, count=30):
    return collections.Counter(ask(lab) for _ in range(count))


@pytest.mark.parametrize("inspect, first", [("first", 20000), ("every", 21000), ("never", 22000)],
                         ids=["first", "every", "never"])
def test_these_alone_serve(lab, before, inspect, first):
    """Though n3's server listens as well. It has its share of the ring, too, and gives it all away."""
    write(lab, before.replace("policy = wrr", ""), "nodes = {n1, n2}\n" + {
        "first": "policy = wrr", "every": "policy = wrr\ninspect = every", "never": "inspect = never"}[inspect])
    reload(lab)
    served = asked(lab)
    assert set(served) == THESE, served
    port = next(raw.ports(lab, "n3", first))
    with raw.connect(lab.client, port=port) as sock:
        for number in range(4):
            sock.sendall(raw.head(f"/u/1k/{number}"))
            assert raw.receive(sock).node in THESE


def test_when_they_are_gone(lab, before):
    """None serves: then n3 does not either."""
    write(lab, before, "nodes = {n1, n2}\ncheck { interval_ms = 200 }")
    reload(lab)
    lab.stop("n1", "nginx")
    try:
        served = asked(lab)
        assert set(served) == {"n2"}, served
        lab.stop("n2", "nginx")
        served = asked(lab, 6)
        assert not {who for who in served if who.startswith("n")}, served
        lab.start("n2", "nginx")
        wait_for(lambda: ask(lab) == "n2", "n2, which serves again", 20)
    finally:
        for node in THESE:
            lab.start(node, "nginx")


def app(lab, node):
    return lab.node(node).popen([*module("web.backend"), node, lab.net.vip, str(APP)])


def findings(lab, node):
    done = lab.node(node).exec(["earshot", "--json", "check", "--config", lab.config_file], check=False)
    return [each for each in json.loads(done.stdout)["findings"] if each["severity"] in ("error", "warning")]


def metrics(lab, node):
    return lab.node(node).exec(["curl", "-s", f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}/metrics"]).stdout


def test_nobody_complains(lab, before):
    """n3 has no server for it, on purpose. n1, which should have, is told of as ever."""
    servers = {node: app(lab, node) for node in THESE}
    text = f'\nservice app {{ address = "{lab.net.vip}" port = {APP} policy = wrr %s }}\n'
    write(lab, before, more=text % "nodes = {n2, n1}")
    try:
        reload(lab)
        wait_for(lambda: 'earshot_server_up{service="app"} 1' in metrics(lab, "n1"), "n1's first check of it")
        wait_for(lambda: all(not node["failing"] and not node["trouble"] and node["state"] == "up"
                             for at in ALL for node in lab.status(at)["nodes"]), "nodes without trouble", 10)
        assert not [each for each in findings(lab, "n3") if "app" in each["found"]]
        assert 'server_up{service="app"}' not in metrics(lab, "n3")
        assert 'server_up{service="web"} 1' in metrics(lab, "n3")
        for at in ALL:
            services = {service["name"]: service["nodes"] for service in lab.status(at)["services"]}
            assert services == {"web": ALL, "app": ["n1", "n2"]}
            shown = lab.node(at).exec(["earshot", "nodes"]).stdout
            assert re.search(r"^app .* up; not on n3$", shown, re.M), shown
        servers["n1"].kill()
        servers["n1"].wait()
        wait_for(lambda: 'server_up{service="app"} 0' in metrics(lab, "n1"), "n1's server, which is gone")
        assert [each for each in findings(lab, "n1") if "app" in each["found"]]
        wait_for(lambda: next(node for node in lab.status("n3")["nodes"] if node["name"] == "n1")["trouble"], "n3, which tells of n1's", 10)
        write(lab, before, more=text % "")
        lab.node("n3").exec(["earshot", "reload"])
        assert [each for each in findings(lab, "n3") if "nothing listens" in each["found"]]
    finally:
        for server in servers.values():
            server.kill()
            server.wait()


def test_it_moves_under_load(lab, before):
    """Node by node, and by a rollout: from all to two, to the third alone, and back, no request fails."""
    steps = ["nodes = {n1, n2}", "nodes = {n2, n3}", "nodes = {n3}", ""]
    with Traffic(lab, kept=10, fresh=5) as traffic:
        for step in steps:
            write(lab, before, step)
            for node in lab.nodes:
                node.exec(["earshot", "reload"])
                traffic.run(0.7)
            since = traffic.now()
            traffic.run(1)
            expected = set(re.findall(r"n\d", step)) or set(ALL)
            new = {each.node for each in traffic.answers if each.began >= since and each.kind == "fresh"}
            assert new == expected, (step, new)
    assert not traffic.failures() and not traffic.wrong, (traffic.failures(), traffic.wrong)


@pytest.mark.parametrize("membership", ["static", COROSYNC])
def test_rollout_under_load(membership):
    with Lab(nodes=3, policy="wrr", membership=membership, own_files=True) as lab:
        if membership == "corosync":
            settled(lab, ALL)
        serving(lab)
        with open(lab.config_of("n1"), encoding="utf-8") as handle:
            before = handle.read()
        with Traffic(lab, kept=10, fresh=5) as traffic:
            for step in ["nodes = {n1, n2}", "nodes = {n3}", ""]:
                new = f"{lab.directory}/new.conf"
                with open(new, "w", encoding="utf-8") as handle:
                    handle.write(before.replace("\nservice web {\n", f"\nservice web {{\n{step}\n"))
                lab.node("n1").exec(["earshot", "rollout", new])
                since = traffic.now()
                traffic.run(2)
                new = {each.node for each in traffic.answers if each.began >= since and each.kind == "fresh"}
                assert new == (set(re.findall(r"n\d", step)) or set(ALL)), (step, new)
        assert not traffic.failures() and not traffic.wrong, (traffic.failures(), traffic.wrong)
