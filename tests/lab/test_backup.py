# SPDX-License-Identifier: GPL-2.0-or-later
"""Backup nodes serve while none of the others does, read or not; and while nobody can serve, clients are told so."""
import collections
import socket
import subprocess
import time

import pytest

from cluster.membership import serving, settled
from earshotlab import Lab, wait_for
from tree import module
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
MAIL = 2525
PAGE = "<!DOCTYPE html><title>Sorry</title><p>We are back at ten. Déjà vu.</p>\n"
PAGE += "." * (1000 - len(PAGE.encode()))  # as long as one may be
CHECK = "check { interval_ms = 200  timeout_ms = 1000 }"


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request, tmp_path):
    page = tmp_path / "sorry.html"
    page.write_text(PAGE, encoding="utf-8")
    with Lab(nodes=3, policy="wrr", membership=request.param) as lab:
        if request.param == "corosync":
            settled(lab, ALL)
        with open(lab.config_file, encoding="utf-8") as handle:
            lab.plain = handle.read()
        configure(lab, f"backup = n3  retry_after_s = 77  {CHECK}  otherwise {{ status = 502  file = \"{page}\" }}", f"""
service mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never  backup = {{n3}}  {CHECK} }}
""")
        lab.page, lab.drains = page, request.param == "corosync"
        lab.greeters = {}
        try:
            for node in ALL:
                greet(lab, node)
            yield lab
        finally:
            for child in lab.greeters.values():
                child.kill()
                child.wait()


def configure(lab, web, more=""):
    assert lab.plain.count("\nservice web {\n") == 1
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(lab.plain.replace("\nservice web {\n", f"\nservice web {{\n{web}\n") + more)
    return [lab.node(node).exec(["earshot", "reload"], check=False) for node in ALL]


def greet(lab, node):
    """A server that speaks first, for what nobody reads."""
    lab.greeters[node] = lab.node(node).popen([*module("web.greeter"), node, lab.net.vip, str(MAIL)],
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mute(lab, node):
    lab.greeters[node].kill()
    lab.greeters[node].wait()


def ask(lab, method="GET", before=None):
    """(the node, or the status, of an answer; the answer) or (the error, None)"""
    try:
        with raw.connect(lab.client, timeout=5, before=before) as sock:
            sock.sendall(raw.head("/1k", method, Connection="close"))
            response = raw.receive(sock, body=method != "HEAD")
            response.more = sock.recv(100) if method == "HEAD" else b""
    except (OSError, EOFError) as error:
        return repr(error), None
    return response.node if response.status == 200 else response.status, response


def talk(lab):
    """The node that greets a client of the service that nobody reads."""
    try:
        with raw.connect(lab.client, (lab.net.vip, MAIL), timeout=5) as sock:
            return sock.recv(100).split()[1].decode()
    except (OSError, IndexError) as error:
        return repr(error)


def served(lab, count=30):
    """Who has served so many requests; and so many connections that nobody reads."""
    return (collections.Counter(ask(lab)[0] for _ in range(count)), collections.Counter(talk(lab) for _ in range(count)))


def is_served_by(lab, nodes):
    web, mail = served(lab)
    return set(web) == set(mail) == set(nodes)


def known_to(lab, node):
    """How that node sees each of them: who serves what was not his to serve may have had a reason."""
    return [[each.get(key) for key in ("name", "state", "lacks", "failing", "trouble")] for each in lab.status(node)["nodes"]]


def test_active_and_passive(lab):
    """n3 inspects its share and serves nothing of it, until neither n1 nor n2 can; and gives all back when one of them can again."""
    wait_for(lambda: is_served_by(lab, ["n1", "n2"]), "the first choice", 30, lambda: served(lab))
    serving(lab)  # n2 may have refused what it was given before its greeter listened: for a second n3 would not ask it
    web, mail = served(lab, 60)
    assert set(web) == set(mail) == {"n1", "n2"}, (web, mail)
    assert lab.counters("n3")["layer4_queued"] > 0  # it had connections to give away
    assert next(service for service in lab.status("n1")["services"] if service["name"] == "web")["backup"] == ["n3"]
    # One is enough.
    lab.node("n1").stop("nginx")
    mute(lab, "n1")
    web, mail = served(lab)
    assert set(web) == set(mail) == {"n2"}, (web, mail, known_to(lab, "n3"))
    lab.node("n2").stop("nginx")
    mute(lab, "n2")
    web, mail = served(lab)
    assert set(web) == set(mail) == {"n3"}, (web, mail)
    time.sleep(2)  # by now, all know
    web, mail = served(lab)
    assert set(web) == set(mail) == {"n3"}, (web, mail)
    lab.node("n1").start("nginx")
    greet(lab, "n1")
    wait_for(lambda: is_served_by(lab, ["n1"]), "n1, which serves again", 30, lambda: served(lab))
    if not lab.drains:
        return
    # What an operator takes out is out for this, too.
    lab.node("n1").exec(["earshot", "drain", "n1"])
    wait_for(lambda: is_served_by(lab, ["n3"]), "n3, while n1 drains", 30, lambda: served(lab))
    lab.node("n1").exec(["earshot", "undrain", "n1"])
    wait_for(lambda: is_served_by(lab, ["n1"]), "n1 again", 30, lambda: served(lab))


def test_one_service_of_a_node(lab):
    """Nobody passes a node over since it refuses what is for another of its services, so that n3 would serve though n2 can."""
    wait_for(lambda: is_served_by(lab, ["n1", "n2"]), "the first choice", 30, lambda: served(lab))
    mute(lab, "n2")
    wait_for(lambda: {talk(lab) for _ in range(20)} == {"n1"}, "mail of n1", 30)
    lab.node("n1").stop("nginx")
    asked = collections.Counter((talk(lab), ask(lab)[0]) for _ in range(60))
    assert set(asked) == {("n1", "n2")}, (asked, known_to(lab, "n3"))


def test_page(lab):
    """Nobody listens: each node answers for the service. A request that was told so is no error."""
    wait_for(lambda: is_served_by(lab, ["n1", "n2"]), "the first choice", 30, lambda: served(lab))
    for node in ALL:
        lab.node(node).stop("nginx")
    wait_for(lambda: ask(lab)[0] == 502, "the page", 20, lambda: ask(lab)[0])
    for _ in range(30):
        who, response = ask(lab)
        assert who == 502, who
        assert response.text.decode() == PAGE
        fields = response.fields
        assert (fields["retry-after"], fields["content-type"]) == ("77", "text/html; charset=utf-8") and "date" in fields
    who, response = ask(lab, "HEAD")
    assert (who, response.more, response.fields["content-length"]) == (502, b"", str(len(PAGE.encode())))
    if ":" not in lab.net.vip:
        # No segment is longer than its client takes.
        who, response = ask(lab, before=lambda sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000))
        assert (who, response.text) == (502, b"502 Unavailable\n")
    rejected = [lab.node(node).exec(["earshot", "metrics"]).stdout for node in ALL]
    assert any('rule="(all_down)"' in text for text in rejected)
    lab.node("n3").start("nginx")
    wait_for(lambda: ask(lab)[0] == "n3", "n3", 20)


def test_page_that_is_no_page(lab):
    """A reload says what is wrong with it, and goes on with the one before."""
    for wrong, text in ((lab.page.with_name("none.html"), "No such file"), (lab.page.with_name("long.html"), "expected text of 1..1000 bytes")):
        if "long" in wrong.name:
            wrong.write_text("x" * 1001)
        for done in configure(lab, f'{CHECK}  otherwise {{ file = "{wrong}" }}'):
            assert done.returncode and text in done.stderr and lab.config_file in done.stderr, done
        shown = lab.node("n1").exec(["earshot", "check-config", lab.config_file])
        assert text in shown.stdout + shown.stderr


def test_rules(lab):
    """A location has its own first and second choice, and who refuses uses the service's page."""
    configure(lab, f'{CHECK}  otherwise {{ body = "Later." }}', 'location "/1k" { nodes = n1  backup = n2  otherwise = reject }\n')
    wait_for(lambda: {ask(lab)[0] for _ in range(20)} == {"n1"}, "n1", 20)
    lab.node("n1").stop("nginx")
    assert {ask(lab)[0] for _ in range(20)} == {"n2"}
    lab.node("n2").stop("nginx")
    wait_for(lambda: ask(lab)[0] == 503, "a refusal", 20)
    who, response = ask(lab)
    assert (who, response.text) == (503, b"Later.\n")
    lab.node("n1").start("nginx")
    wait_for(lambda: {ask(lab)[0] for _ in range(20)} == {"n1"}, "n1 again", 20)
