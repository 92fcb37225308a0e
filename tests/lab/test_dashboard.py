# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard and the alerts that are shipped: a real Prometheus that reads a cluster under load has data for each of their queries."""
import json
import math
import os
import re

import pytest

from cluster import membership
from cluster.prometheus import MONITORING, Prometheus
from earshotlab import Lab, tls, wait_for
from web.staples import make_staple
from web.traffic import Request, Traffic

pytestmark = pytest.mark.earshot

NODES = ["n1", "n2", "n3"]
VARIABLES = {"$__rate_interval": "5s", "$job": "earshot", "$instance": ".+", "$service": ".+"}
COMPARED = re.compile(r"\s*(?:==|>)\s*(?:bool\s+)?[0-9.]+")


class Pages(Traffic):
    """Several pages on each connection, so that some requests move."""

    def request(self, number):
        return Request("GET", f"/u/1k/{number % 23}", b"")


def judge(lab):
    """Put servers out that answer with 5xx, and have OCSP answers: there are metrics of both."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    assert text.count("\nservice web {\n") == text.count("tls {") == 1
    text = text.replace("\nservice web {\n", "\nservice web {\noutlier { max_errors = 50 }\n")
    place = tls.directory(lab.directory)
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text.replace("tls {", f"tls {{ ocsp = {{ {place}/www.ocsp, {place}/other.ocsp }} "))
    for name in ("www", "other"):
        make_staple(place, name)
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=len(NODES), policy="uri-hash", membership="corosync", tls=True,
             settings={"service.inspect": "every", "service.load_bound": 0, "service.survive": 1, "service.resume": "on"}) as lab:
        membership.settled(lab, NODES)
        judge(lab)
        with Pages(lab, kept=10, fresh=3):
            yield lab


@pytest.fixture(scope="module", name="prometheus")
def _prometheus(lab, tmp_path_factory):
    found = Prometheus(lab, tmp_path_factory.mktemp("prometheus"), soon=True)
    wait_for(lambda: sum(count >= 6 for count in found.values("count_over_time(up[1m])")) == len(NODES),
             "Prometheus has read all nodes for some seconds", 40)
    return found


def dashboard():
    with open(os.path.join(MONITORING, "earshot-dashboard.json"), encoding="utf-8") as handle:
        return json.load(handle)


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def filled(query):
    """As Grafana sends it, with all nodes and services chosen."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    assert "$" not in query, query
    return query


def query_of(title):
    return filled(next(panel["targets"][0]["expr"] for panel in panels() if panel["title"] == title))


def assert_data(prometheus, query, where):
    wait_for(lambda: any(not math.isnan(value) for value in prometheus.values(query)), f"data for {where}: {query}", 15,
             seen=lambda: prometheus.values(query))


def test_all_is_well(prometheus):
    """No alert is wrong, and none is active; but a busy machine's decisions may be slow for a second, of the rule's five minutes."""
    rules = prometheus.rules()
    assert len(rules) >= 10 and {rule["health"] for rule in rules} == {"ok"}, rules
    assert {rule["name"] for rule in rules if rule["state"] != "inactive"} <= {"EarshotDecisionsSlow"}


def test_each_panel_has_data(prometheus):
    for panel in panels():
        for target in panel["targets"]:
            assert_data(prometheus, filled(target["expr"]), f"the panel {panel['title']!r}")


def test_what_panels_say(prometheus):
    """Of a cluster that is well and under load."""
    found = {panel["title"]: prometheus.values(filled(panel["targets"][0]["expr"])) for panel in panels()}
    for title in ("Nodes that are not read", "Nodes that take no requests", "Servers that fail", "Alerts"):
        assert found[title] == [0], title
    assert found["Nodes on the ring"] == [3] and found["Nodes up"] == [1] * 3 and found["Servers up"] == [1] * 6
    assert sum(found["Share of the ring"]) == pytest.approx(1)
    assert len(found["Requests by node that serves them"]) == 3 and min(found["Requests by node that serves them"]) > 0
    assert sum(found["Moves by reason"]) > 0 and sum(found["Responses by class"]) > 0
    locality = query_of("Locality")
    wait_for(lambda: any(0 < share <= 1 for share in prometheus.values(locality)), "a share; nobody asks for https", 15,
             seen=lambda: prometheus.values(locality))
    assert all(0 < left < 60 for left in found["Leases"]) and max(found["Tables"]) < 1


def test_each_alert_has_data(lab, prometheus):
    """Its query without what it compares with: so an alert is quiet since all is well, and not for want of a metric."""
    for _ in range(9):  # nobody else asks for https
        lab.client.exec(["curl", "-sk", f"https://{lab.net.vip}/"])
    for rule in prometheus.rules():
        query = COMPARED.sub("", rule["query"]).replace(" != ", " - ").replace(" < ", " - ").replace(" and on ", " + on ").replace(" and ", " + on (instance, node) ")
        assert query != rule["query"]
        for part in re.split(r" unless on \([^)]*\) ", query):
            assert_data(prometheus, part, f"the alert {rule['name']}")


def test_variables_and_annotations_have_data(prometheus):
    listed = dashboard()
    for variable in listed["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        assert prometheus.ask(f"label/{label}/values", **{"match[]": filled(metric)}), variable
    for annotation in listed["annotations"]["list"]:
        assert_data(prometheus, COMPARED.sub("", filled(annotation["expr"])), annotation["name"])


def test_a_server_that_fails(lab, prometheus):
    lab.stop("n2", "nginx")
    wait_for(lambda: "EarshotServerDown" in prometheus.firing(), "the alert fires", 20, seen=prometheus.firing)
    failing = query_of("Servers that fail")
    assert prometheus.values(failing) == [1]
    lab.start("n2", "nginx")
    wait_for(lambda: "EarshotServerDown" not in prometheus.firing(), "it is over", 20, seen=prometheus.firing)


def test_a_node_that_dies(lab, prometheus):
    lab.kill("n3")
    wait_for(lambda: {"EarshotNodeNotRead", "EarshotNodeDown"} <= prometheus.firing(), "the alerts fire", 25, seen=prometheus.firing)
    unread = filled(next(panel["targets"][0]["expr"] for panel in panels() if panel["title"] == "Nodes that are not read"))
    assert prometheus.values(unread) == [1]
    assert not prometheus.firing() & {"EarshotNotQuorate", "EarshotSilent"}  # two of three go on
