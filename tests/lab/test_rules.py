# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules before the policy on a real cluster: placement, sessions, refusals, and the document root behind the URL table."""
import json
import os
import re

import pytest

from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

RULES = """
location "/u/1k/placed" { nodes = n3 }
location "/u/1k/only" { nodes = n3  otherwise = reject }
location "/u/1k/caf%C3%A9/" { nodes = n3 }
location "/u/1k/thé" { nodes = n3 }
rule umlaut { path = "/u/1k/p%C3%A2té/"  nodes = n3 }
rule session { cookie = sid  affinity = yes }
rule dear { path = "/u/"  header = "X-Dear: yes"  cost = 40  class = cpu }
"""


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="wrr") as lab:
        change(lab, lambda text: re.sub(r"(service web \{)", rf'\1\n document_root = "{lab.docroot}"\n retry_after_s = 17',
                                        text.replace('service "web"', "service web")) + RULES)
        yield lab


def change(lab, how, refused=None):
    """Another configuration for all nodes; with `refused`, one that nobody takes, for this reason."""
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()
    after = how(before)
    assert after != before
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(after)
    for node in lab.nodes:
        done = node.exec(["earshot", "reload"], check=False)
        if refused:
            assert done.returncode == 1 and refused in done.stderr, done
        else:
            assert done.returncode == 0, done
    if refused:
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(before)


def ask(lab, uri, **fields):
    return raw.ask(lab.client, raw.head(uri, Connection="close", **fields))[0]


def content(lab, node):
    return lab.status(node)["content"][0]


def explain(lab, uri, *options):
    return json.loads(lab.node("n1").exec(["earshot", "explain", uri, "--json", *options]).stdout)


def test_placement(lab):
    """wrr would take turns; what n3 has is served there, however it is spelled."""
    assert {ask(lab, "/u/1k/placed").node for _ in range(12)} == {"n3"}
    assert {ask(lab, "/u/x/..//1k/pl%61ced?query").node for _ in range(12)} == {"n3"}
    assert {ask(lab, "/u/1k/other").node for _ in range(24)} == {"n1", "n2", "n3"}


@pytest.mark.parametrize("uri", ["/u/1k/caf%C3%A9/x", "/u/1k/caf%c3%a9/x", "/u/1k/th%C3%A9", "/u/1k/p%C3%A2t%C3%A9/x"])
def test_paths_outside_ascii(lab, uri):
    """Written in UTF-8 or as in a URL, they are one path."""
    assert {ask(lab, uri).node for _ in range(9)} == {"n3"}
    assert explain(lab, uri)["node"] == "n3"


@pytest.mark.parametrize("target,field", [
    ("/u/1k/caf\u00e9/\u00fc".encode(), b""), (b"/u/1k/caf%C3%A9/\xe9", b""), (b"/u/1k/caf%C3%A9/x", b"X-Y : 1"),
    (b"/u/1k/caf%C3%A9/x y", b""), (b"/u/1k/caf%C3%A9/x", b"Content-Length: 0"),
], ids=["UTF-8", "Latin-1", "blank before colon", "blank in the path", "length"])
def test_explain_decides_as_the_daemon(lab, target, field):
    """What servers may read differently is routed, and only then pinned; explain says where, and not that it would not be."""
    head = b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + (field + b"\r\n" if field else b"") + b"\r\n"
    seen = [raw.ask(lab.client, head)[0] for _ in range(6)]
    options = ["-H", field.decode()] if field else []
    said = explain(lab, "GET " + os.fsdecode(target), *options)
    assert said["node"] == "n3" and {answer.node for answer in seen} == {"n3"}, (said, seen)


def test_sessions(lab):
    homes = {}
    for number in range(24):
        sid = f"session-{number}"
        homes[sid] = {ask(lab, f"/u/1k/{sid}-{again}", Cookie=f"a=b; sid={sid}").node for again in range(4)}
        assert len(homes[sid]) == 1, sid
    assert set.union(*homes.values()) == {"n1", "n2", "n3"}


def test_explain(lab):
    steps = json.dumps(explain(lab, "/u/1k/placed"))
    assert "URL table: nodes n3, otherwise any" in steps
    steps = json.dumps(explain(lab, "/u/1k/x", "-H", "X-Dear: yes"))
    assert "rule dear: class cpu; cost 40" in steps


def test_weight_0(lab):
    """n3 wants no requests: what only it has it serves all the same, what others may have they serve."""
    with open(lab.config_file, encoding="utf-8") as handle:
        good = handle.read()
    change(lab, lambda text: re.sub(r"(node \"?n3\"? \{)", r"\1 weight = 0 ", re.sub(r"weight = 100", "", text)))
    try:
        for _ in range(6):
            assert ask(lab, "/u/1k/only").node == "n3"
            assert ask(lab, "/u/1k/placed").node in ("n1", "n2")
    finally:
        change(lab, lambda _: good)


def test_refused_while_the_node_is_away(lab):
    """n3 can take no requests: what only it has is refused, what others may have is served."""
    def states():
        return [node["state"] for name in ("n1", "n2") for node in lab.status(name)["nodes"] if node["name"] == "n3"]

    def addresses(what):
        for vip in lab.net.vips:
            lab.node("n3").exec(["ip", "address", what, f"{vip}/{128 if ':' in vip else 32}", "dev", "lo"])
    addresses("del")
    try:
        wait_for(lambda: states() == ["down"] * 2, "n3 is down", seen=states)
        for _ in range(6):
            response = ask(lab, "/u/1k/only")
            assert response.status == 503 and response.fields["retry-after"] == "17", response.fields
            assert ask(lab, "/u/1k/placed").node in ("n1", "n2")
    finally:
        addresses("add")
    wait_for(lambda: states() == ["up"] * 2, "n3 is up", seen=states)
    assert ask(lab, "/u/1k/only").node == "n3"


def test_document_root(lab):
    """Scanned, and watched; a reload that changes nothing of it keeps it."""
    found = wait_for(lambda: content(lab, "n1")["scanned"] and content(lab, "n1"), "the scan")
    assert found["document_root"]["state"] == "watched" and found["document_root"]["path"] == lab.docroot
    assert found["document_root"]["files"] + found["document_root"]["directories"] == found["scanned"]
    path = os.path.join(lab.docroot, "new-file")
    with open(path, "w", encoding="ascii") as handle:
        handle.write("x" * 14600)
    try:
        wait_for(lambda: content(lab, "n1")["scanned"] == found["scanned"] + 1, "the new file")
        assert "URL table: size 14600; static" in json.dumps(explain(lab, "/new-file"))
        change(lab, lambda text: text + "rule more { suffix = .more  priority = low }\n")
        assert content(lab, "n1")["document_root"]["scans"] == found["document_root"]["scans"]
    finally:
        os.unlink(path)
    wait_for(lambda: content(lab, "n1")["scanned"] == found["scanned"], "the file gone")


def test_wrong_rules_are_refused(lab):
    change(lab, lambda text: text + "rule wrong { nodes = n9 }\n", "rule wrong: nodes = n9: no node of that name")
    assert ask(lab, "/u/1k/placed").node == "n3"
