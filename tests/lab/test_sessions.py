# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions that only the node has that began them: cookies that name it keep them there."""
import collections
import contextlib
import json

import pytest

from cluster.membership import serving, settled
from earshotlab import Lab, topology, wait_for
from tree import module
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
ROUTES = {"n1": "n1", "n2": "jvm2", "n3": "jvm3"}  # n1's is its name
SETTINGS = {f"node.{node}.route": route for node, route in ROUTES.items() if node != route}
COUNT = 30
RULES = """
rule tomcat { path = /jvm  cookie = JSESSIONID  affinity = route }
rule beside { path = /beside  cookie = SRV  affinity = route }
"""


class Servers:
    """One on each node, to be ended and started again."""

    def __init__(self, lab):
        self.lab, self.running = lab, {}
        for node in ALL:
            self.start(node)
        serving(lab)

    def start(self, node):
        self.running[node] = self.lab.node(node).popen(
            [*module("web.sessions"), node, ",".join(self.lab.net.vips), str(topology.PORT), ROUTES[node]], stdout=-1)
        assert self.running[node].stdout.readline() == "listening\n"

    def end(self, node):
        self.running[node].kill()
        self.running[node].wait()


class Browser:
    """Cookies, and what its requests find."""

    def __init__(self, lab, path):
        self.lab, self.path, self.cookies = lab, path, {}

    def ask(self, connection=None):
        """On a connection of its own, if none is given: (node, what became of the session)."""
        with contextlib.closing(raw.http_connection(self.lab.client)) if not connection else \
                contextlib.nullcontext(connection) as asked:
            fields = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
            asked.request("GET", self.path, headers=fields)
            response = asked.getresponse()
            text = response.read().decode()
        for cookie in response.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        return response.headers["X-Node"], text


def configure(lab, text):
    """The file that the lab was made with, and this behind it."""
    if not hasattr(lab, "made_with"):
        with open(lab.config_file, encoding="utf-8") as handle:
            lab.made_with = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(lab.made_with + text)
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


def begun(lab, path, count=COUNT):
    """{browser: the node that began its session}"""
    found = {}
    for _ in range(count):
        browser = Browser(lab, path)
        found[browser], state = browser.ask()
        assert state == "began"
    assert set(found.values()) == set(ALL), collections.Counter(found.values())
    return found


@contextlib.contextmanager
def cluster(**keywords):
    with Lab(nodes=3, policy="wrr", server="none", settings={**SETTINGS, **keywords.pop("settings", {})}, **keywords) as lab:
        if keywords.get("membership") == "corosync":
            settled(lab, ALL)
        lab.servers = Servers(lab)
        yield lab


@pytest.fixture(scope="module", name="lab", params=["first", "every"])
def _lab(request):
    with cluster(settings={"service.inspect": request.param}) as lab:
        lab.inspect = request.param
        yield lab


@pytest.mark.parametrize("path", ["/jvm", "/beside"])
def test_sessions_go_on(lab, path):
    """On the node that began them, from the second request on, whichever node inspects it."""
    configure(lab, RULES)
    for browser, home in begun(lab, path).items():
        seen = {browser.ask() for _ in range(6)}
        assert seen == {(home, "goes on")}


def test_by_the_hash_of_a_value(lab):
    """affinity = yes knows nothing of who began a session: of three nodes, two of three sessions are another one's."""
    configure(lab, "rule by-value { cookie = JSESSIONID  affinity = yes }\n")
    states = collections.Counter(browser.ask()[1] for browser in begun(lab, "/jvm"))
    print(f"with affinity = yes: {dict(states)}")
    assert states["lost"] > COUNT // 4, states


def test_sessions_of_several_clients_on_one_connection(lab):
    """As a proxy's. With inspect = first, the connection's first request decides about all."""
    configure(lab, RULES)
    found = begun(lab, "/jvm", 12)
    with contextlib.closing(raw.http_connection(lab.client)) as connection:
        nodes = []
        for browser, home in list(found.items()):
            node, state = browser.ask(connection)
            nodes.append(node)
            if lab.inspect == "every":
                assert (node, state) == (home, "goes on")
        assert len(set(nodes)) == (3 if lab.inspect == "every" else 1)


def test_explain(lab):
    configure(lab, RULES)
    said = lab.node("n1").exec(["earshot", "explain", "/jvm", "--json", "-H", "Cookie: a=b; JSESSIONID=4711.jvm2"]).stdout
    assert json.loads(said)["node"] == "n2" and "rule tomcat: cookie JSESSIONID names n2" in said
    said = lab.node("n1").exec(["earshot", "explain", "/jvm", "--json", "-H", "Cookie: JSESSIONID=4711.n2"]).stdout
    assert "rule tomcat: cookie JSESSIONID names no node" in said  # n2 is called jvm2


def where(found):
    """(browser, node, state) of one more request of each."""
    return [(browser, *browser.ask()) for browser in found]


def is_elsewhere(found, gone):
    """The sessions of `gone` begin anew on other nodes, once; no other one notices."""
    for browser, node, state in where(found):
        if found[browser] == gone:
            assert node != gone and state == "lost", (node, state)
            found[browser] = node
        else:
            assert (node, state) == (found[browser], "goes on")
    assert where(found) == [(browser, home, "goes on") for browser, home in found.items()]


def is_back(lab, found, node):
    """It begins sessions again, and those that went elsewhere stay there."""
    wait_for(lambda: Browser(lab, "/jvm").ask()[0] == node, f"{node}, which begins sessions again", 30)
    assert where(found) == [(browser, home, "goes on") for browser, home in found.items()]
    for browser, home in begun(lab, "/jvm").items():
        assert browser.ask() == (home, "goes on")


def test_a_server_ends(lab):
    configure(lab, RULES)
    found = begun(lab, "/jvm")
    lab.servers.end("n2")
    try:
        is_elsewhere(found, "n2")
    finally:
        lab.servers.start("n2")
    serving(lab)
    is_back(lab, found, "n2")


@pytest.mark.corosync
def test_a_node_is_drained_and_dies():
    """A drained node is given no request any more, those of its own sessions included."""
    with cluster(membership="corosync") as lab:
        configure(lab, RULES)
        found = begun(lab, "/jvm")
        lab.node("n1").exec(["earshot", "drain", "n2", "--wait"])
        is_elsewhere(found, "n2")
        lab.node("n1").exec(["earshot", "undrain", "n2"])
        is_back(lab, found, "n2")
        configure(lab, RULES.replace("affinity = route", "affinity = route  when_drained = stay"))
        found = begun(lab, "/jvm")
        lab.node("n1").exec(["earshot", "drain", "n2"])
        wait_for(lambda: [n["state"] for at in ALL for n in lab.status(at)["nodes"] if n["name"] == "n2"] == ["draining"] * 3,
                 "n2, which drains")
        assert where(found) == [(browser, home, "goes on") for browser, home in found.items()]
        assert {Browser(lab, "/jvm").ask()[0] for _ in range(12)} == {"n1", "n3"}
        lab.node("n1").exec(["earshot", "weight", "n2", "0"])
        wait_for(lambda: all(n["weight"] == 0 for at in ALL for n in lab.status(at)["nodes"] if n["name"] == "n2"), "n2's weight 0")
        is_elsewhere(found, "n2")
        lab.node("n1").exec(["earshot", "weight", "n2", "100"])
        lab.node("n1").exec(["earshot", "undrain", "n2"])
        is_back(lab, found, "n2")
        found = begun(lab, "/jvm")
        lab.kill("n3")
        settled(lab, ["n1", "n2"])
        is_elsewhere(found, "n3")
