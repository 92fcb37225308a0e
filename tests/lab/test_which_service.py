# SPDX-License-Identifier: GPL-2.0-or-later
"""Which service it is that a node does not serve: in `earshot nodes`, in its JSON, in the events of all nodes, and what each node is."""
import json
import subprocess

import pytest

from cluster.membership import settled
from earshotlab import Lab, wait_for
from tree import module

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
MAIL = 2525


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request):
    """Two services; of mail, nobody reads anything, and n2 has no server for it."""
    with Lab(nodes=3, policy="wrr", membership=request.param) as lab:
        if request.param == "corosync":
            settled(lab, ALL)
        greeters = [lab.node(node).popen([*module("web.greeter"), node, lab.net.vip, str(MAIL)], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL) for node in ("n1", "n3")]
        try:
            with open(lab.config_file, "a", encoding="utf-8") as handle:
                handle.write(f'service mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never }}\n')
            for node in lab.nodes:
                node.exec(["earshot", "reload"])
            yield lab
        finally:
            for greeter in greeters:
                greeter.kill()
                greeter.wait()


def states(lab, asked):
    """What the table of services says of each."""
    table = lab.node(asked).exec(["earshot", "nodes"]).stdout.split("SERVICE ")[1].splitlines()[1:]
    return {row.split()[0]: " ".join(row.split()[5:]) for row in table}


def nodes(lab, asked):
    return {node["name"]: node for node in json.loads(lab.node(asked).exec(["earshot", "--json", "nodes"]).stdout)["nodes"]}


def said(lab, asked):
    events = lab.node(asked).ask({"command": "events"})["events"]
    return [event["text"] for event in events if event["kind"] in ("server_down", "server_up") and event["node"] == "n2"]


def test_the_service_is_named(lab):
    for asked in ALL:
        expected = {"web": "up", "mail": "down on n2"}
        wait_for(lambda asked=asked, expected=expected: states(lab, asked) == expected, f"{asked} names it", 20, lambda asked=asked: states(lab, asked))
    shown = nodes(lab, "n1")
    assert shown["n2"]["lacks"] == ["mail"] and not shown["n1"]["lacks"]
    services = {service["name"]: service for service in shown["n2"]["snapshot"]["services"]}
    assert services["mail"]["state"] == "down" and services["mail"]["why"] == f"nothing listens on {lab.net.vip} port {MAIL}"
    assert services["web"]["state"] == "up" and not services["web"]["why"]
    assert shown["n2"]["trouble"] == f"service mail: nothing listens on {lab.net.vip} port {MAIL}"  # as it says itself
    assert lab.status("n1")["nodes"][1]["trouble"] == "service mail: nothing listens for the service"  # as it has told
    wait_for(lambda: said(lab, "n1")[-1:] == ["n2 cannot serve mail: nothing listens for the service"], "the event names it",
             seen=lambda: said(lab, "n1"))
    lab.stop("n2", "nginx")
    expected = {"web": "down on n2", "mail": "down on n2"}
    wait_for(lambda: states(lab, "n3") == expected, "both", 20, lambda: states(lab, "n3"))
    both = "n2 cannot serve web, mail: nothing listens for the service"
    wait_for(lambda: said(lab, "n1")[-1:] == [both], "the event names both", seen=lambda: said(lab, "n1"))
    lab.start("n2", "nginx")
    expected = {"web": "up", "mail": "down on n2"}
    wait_for(lambda: states(lab, "n3") == expected, "one again", 20, lambda: states(lab, "n3"))


def test_version_and_datapath(lab):
    """Of all nodes, whichever is asked."""
    status = lab.status("n1")
    heading, *rows = lab.node("n3").exec(["earshot", "nodes"]).stdout.splitlines()
    at = [heading.index(column) for column in ("VERSION", "DATAPATH")]
    for row in rows[:3]:
        assert [row[place:].split()[0] for place in at] == [status["version"], status["datapath"]["type"]], row
    for node in nodes(lab, "n2").values():
        assert (node["snapshot"]["version"], node["snapshot"]["datapath"]) == (status["version"], status["datapath"]["type"])
