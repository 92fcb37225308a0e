# SPDX-License-Identifier: GPL-2.0-or-later
"""What comes out of an envelope is seen by the node's own packet filter where clients' packets come from: at the public interface,
without a mark, the first packet new to conntrack. Whom a rule refuses there gets no socket."""
import collections
import contextlib
import re
import subprocess

import pytest

from packets.client import LINUX, WINDOWS
from packets.families import BOTH, CLUSTERS
from packets.model import CONNECTION, FOLLOW
from packets.node import EACH, PROGRAM, SERVER, WEB
from packets.packet import ACK, FIN, PSH

pytestmark = pytest.mark.no_netfilter("what came in an envelope comes in by earshot-nf there, as install.md says")
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
SEEN = """table inet seen { chain in { type filter hook input priority 0;
    iifname "eth0" tcp flags ack ct state new counter comment "made"
    iifname "eth0" tcp flags ack counter comment "public"
    iifname { "lo", "eth1" } tcp flags ack counter comment "other"
    meta mark != 0 counter comment "marked"; }; }"""
REFUSES = 'table inet refuses { chain in { type filter hook input priority 0; iifname "eth0" meta l4proto tcp %s drop; }; }'


def nft(node, *words, text=None):
    return subprocess.run(["ip", "netns", "exec", node.namespace, "nft", *words], input=text, check=True, text=True,
                          capture_output=True).stdout


@contextlib.contextmanager
def rules(node, text):
    name = text.split()[2]
    nft(node, "-f", "-", text=text)
    try:
        yield
    finally:
        nft(node, "delete", "table", "inet", name)


@pytest.fixture
def seen(node):
    """How many packets the packet filter has seen where, since it was asked last."""
    before = collections.Counter()

    def look():
        text = nft(node, "list", "table", "inet", "seen")
        now = {words: int(count) for count, words in re.findall(r'packets (\d+) bytes \d+ comment "(\w+)"', text)}
        news = {words: count - before[words] for words, count in now.items()}
        before.update(news)
        return news

    with rules(node, SEEN):
        yield look


@BOTH
@CLUSTERS
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
def test_of_another_node(node, client, seen, offer):
    c = client(WEB, owner=2, offer=offer)
    c.forge()
    text = c.get()
    node.message(c.handover(c.ip_packet(ACK | PSH, text)))
    c.sent(text)
    assert c.read(len(text)) == text
    assert seen() == dict(made=1, public=1, other=0, marked=0)
    # More of it, which its inspecting node passes on.
    node.message(c.handover(c.ip_packet(ACK | PSH, b"more"), FOLLOW))
    c.sent(b"more")
    assert c.read(4) == b"more"
    # The same again.
    with node.counts(handover_received=1, handover_duplicate=1):
        node.message(c.handover(c.ip_packet(ACK | PSH, text, seq=c.next - 4 - len(text))))
    assert seen() == dict(made=0, public=2, other=0, marked=0)
    c.answer()


@BOTH
def test_of_its_own(node, client, seen):
    """Its first request, and a later one, which was queued."""
    c = client(EACH).serve()
    assert seen()["other"] == 0
    c.answer(EMPTY)
    seen()
    before = node.counters()["stay_delivered"]
    c.request()
    c.read(1)
    assert node.counters()["stay_delivered"] == before + 1
    assert seen()["other"] == 0


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
def test_with_its_fin(node, client, seen, offer):
    c = client(WEB, owner=2, offer=offer)
    c.forge()
    text = c.get()
    with node.counts(handover_received=1, handover_rebuilt=1):
        node.message(c.handover(c.ip_packet(ACK | PSH | FIN, text)))
        c.sent(text, FIN)
        assert c.read(len(text)) == text
    assert seen() == dict(made=1, public=2, other=0, marked=0)
    c.answer()


@BOTH
def test_of_a_program(node, client, seen):
    c = client(PROGRAM, owner=2)
    c.forge()
    with node.counts(handover_received=1, connection_rebuilt=1):
        node.message(c.handover(c.ip_packet(ACK | PSH, b"text"), CONNECTION, content=1 << 50, stream=14))
    c.server, _ = node.listener(SERVER, c.family).accept()
    assert c.server.recv(4) == b"text"
    assert seen() == dict(made=1, public=1, other=0, marked=0)


@BOTH
@pytest.mark.parametrize("rule", ["", "ct state new"])
def test_refused(node, client, rule):
    """No socket, no word; and the node knows that it has not heard of it."""
    c = client(WEB, owner=2)
    c.forge()
    request = c.ip_packet(ACK | PSH, c.get())
    with rules(node, REFUSES % rule):
        with node.counts(handover_received=1, handover_rebuilt=1):
            node.message(c.handover(request))
            c.silence()
        assert not node.sockets(c) and not node.pending(WEB)
        with node.counts(handover_received=1, handover_old=1):
            node.message(c.handover(request))
            c.silence()
    assert not node.sockets(c) and not node.pending(WEB)
