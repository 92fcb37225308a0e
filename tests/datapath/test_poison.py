# SPDX-License-Identifier: GPL-2.0-or-later
"""A request that ends the daemon: the others are told by who survives it, and nobody inspects it again."""
import struct
import time

import pytest

from earshotlab import wait_for
from packets import model
from packets.loads import tell
from packets.node import CLUSTER, WEB
from packets.packet import ACK, PSH

VERSION = 2  # of a message that begins with LOADS_MAGIC
DIED, HUNG, OVER = 0, 1, 2
FORMAT = ">BBBBQQQ16sH6x"


def message(node, flow, request, source=2, kind=DIED, sent_ns=None, key=None):
    """struct es_poison_message (inspector/inspect/poison.h)"""
    body = model.LOADS_MAGIC + struct.pack(FORMAT, VERSION, source - 1, 0, kind, time.time_ns() if sent_ns is None else sent_ns,
                                           flow, request, b"\0" * 10 + b"\xff\xff" + bytes([192, 0, 2, 1]), 4711)
    return body + struct.pack(">Q", model.siphash(key or node.keys.handover[0], body))


def told(node, target):
    """What the node has told n2 or n3 of poison: [(flow, hash of the request, kind)]."""
    node.cluster.fence()
    found = []
    for f in node.cluster.loads:
        data = f.udp.payload
        if f.ip.dst == CLUSTER[target - 1] and data[4] == VERSION:
            assert struct.unpack(">Q", data[-8:])[0] == model.siphash(node.keys.handover[0], data[:-8])
            _, source, _, kind, _, flow, request, _, _ = struct.unpack(FORMAT, data[4:-8])
            assert source == 0
            found.append((flow, request, kind))
    return found


def known(node):
    return [(p["node"], p["daemon"]) for p in node.ask("status")["poison"]]


def hashes(node, c, text):
    return c.hash, model.siphash(node.keys.ring, text[:900])


def served(c, text):
    """Here, without inspection: a rule would have refused it, or the policy given it to n2."""
    c.shake()
    c.request(text=text)
    assert c.read(len(text)) == text


def refused(c, text):
    c.shake()
    c.request(text=text)
    assert b"403" in c.take().payload


@pytest.mark.parametrize("wish,what", [("die", "died"), ("fatal", "died"), ("stuck", "hung")])
def test_daemon_ends(own, client, wish, what):
    """Told at once, to each; the next daemon knows, too, and serves it by the ring. Other requests are inspected."""
    c = client(at=own).shake()
    text = c.get(2, extra=f"X-Debug: {wish}\r\n")
    own.cluster.clear()
    c.request(text=text)
    kind = HUNG if what == "hung" else DIED
    for target in (2, 3):
        wait_for(lambda target=target: (*hashes(own, c, text), kind) in told(own, target), f"word to n{target}")
    wait_for(lambda: own.daemon.poll() is not None, "the daemon's end")
    own.start()
    assert known(own) == [("n1", "died")]
    c.send(ACK | PSH, text, seq=c.isn + 1)
    assert c.read(len(text)) == text
    served(client(at=own), text)
    other = client(at=own).shake()
    sent = other.request(target=2)
    assert own.taken(2).packet == sent
    assert own.counters()["inspect_poisoned"] >= 2


@pytest.mark.parametrize("wish", ["hang", "stuck"])
def test_explained(own, wish):
    """What a request would do is asked by the operator: there is an end to it, and no other node has to hear of it."""
    own.cluster.clear()
    done = own.earshot("explain", "--service", f"s{WEB}", "--header", f"X-Debug: {wish}", "GET /", check=False)
    assert done.returncode == 1
    if wish == "hang":
        assert f"plugin debug of service s{WEB} does not return from this request" in done.stderr, done.stderr
        assert own.daemon.poll() is None
    else:
        wait_for(lambda: own.daemon.poll() is not None, "the daemon's end")
        own.start()
    assert not told(own, 2) and not known(own)


def test_configuration_is_checked(own):
    """And not for ever."""
    with open(own.config_path, encoding="ascii") as handle:
        text = handle.read()
    with open(own.config_path, "w", encoding="ascii") as handle:
        handle.write(text.replace("budget_us = 0", "budget_us = 0 config = \"harm configure hang\""))
    error = "plugin debug: configure() did not return within 2000 ms"
    assert error in own.earshot("check-config", own.config_path, check=False).stderr
    assert error in own.earshot("reload", check=False).stderr
    assert own.daemon.poll() is None


def test_told_by_another_node(own, client):
    """Its connection, and the same bytes on others."""
    text = client(at=own).get(2, extra="X-Debug: reject 403\r\n")
    refused(client(at=own), text)
    c = client(at=own)
    tell(own, message(own, *hashes(own, c, b"x")))
    wait_for(lambda: known(own) == [("n2", "died")], "the first poison")
    served(c, text)
    refused(client(at=own), text)
    tell(own, message(own, 1, hashes(own, c, text)[1]))
    wait_for(lambda: len(known(own)) == 2, "the second one")
    served(client(at=own), text)


def test_hung_and_goes_on(own, client):
    """A busy machine looked like a daemon that hangs: its own node takes that back, another cannot."""
    c = client(at=own)
    text = c.get(2, extra="X-Debug: reject 403\r\n")
    poison = hashes(own, c, text)
    tell(own, message(own, *poison, kind=HUNG))
    wait_for(lambda: known(own) == [("n2", "hung")], "the poison")
    tell(own, message(own, *poison, source=3, kind=OVER), source=3)
    served(client(at=own), text)
    tell(own, message(own, *poison, kind=OVER))
    wait_for(lambda: not known(own), "its end")
    refused(client(at=own), text)


def test_refused(own, client):
    """What is not authentic, not of now, or not of another node."""
    before = own.ask("status")["loads"]["refused"]
    minutes_ns = 60 * 10**9
    bad = [message(own, 1, 1, key=(1, 2)), message(own, 1, 1, sent_ns=time.time_ns() - 3 * minutes_ns),
           message(own, 1, 1, sent_ns=time.time_ns() + 3 * minutes_ns), message(own, 1, 1, source=1),
           message(own, 1, 1, source=4), message(own, 1, 1)[:-1] + b"?"]
    for data in bad:
        tell(own, data)
    wait_for(lambda: own.ask("status")["loads"]["refused"] == before + len(bad), "their refusal")
    assert not known(own)
