# SPDX-License-Identifier: GPL-2.0-or-later
"""Another connection of the ports of an open one: by somebody who has guessed a cookie, and by the client itself."""
import itertools
import struct
import time

import pytest

from cluster import floods
from cluster.every import homes
from earshotlab import Lab, topology
from web import raw

pytestmark = pytest.mark.earshot

SYN_ACK = floods.SYN | floods.ACK
TRIES = 4
REPEATED_S = (0.2, 0.6, 1.4, 3)  # as a client repeats its request
ANEW_S = 4  # so soon a client is served that has begun anew, on a busy machine


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash", settings={"service.load_bound": 0}) as lab:
        lab.homes = homes(lab, (f"/1k?{number}" for number in itertools.count()), 1)
        yield lab


def total(lab, name):
    return sum(lab.counters(node.name)[name] for node in lab.nodes)


def ask(sock, target):
    sock.sendall(raw.head(target))
    assert raw.right(raw.receive(sock), "1k")


def opened(lab, target):
    """An idle connection that the node which inspects it has given to another one."""
    for _ in range(20):
        before = total(lab, "inspect_handovers")
        sock = raw.connect(lab.client)
        ask(sock, target)
        if total(lab, "inspect_handovers") > before:
            return sock
        sock.close()
    pytest.fail("no connection was handed over")


def forge(lab, tap, sock, isn, target):
    """A connection in the name of the one that is open, whose cookie the forger knows: he asks for what its node serves."""
    address, port = sock.getsockname()[:2]

    def send(*segment):
        packet = floods.tcp(floods.packed(address), port, *segment)
        tap.send(floods.frame(floods.mac(lab.net.link("client").mac), floods.mac(f"03:bf:{floods.packed(lab.net.vip)[-4:].hex(':')}"), packet))

    tap.frames(lambda data: False)
    send(isn, 0, floods.SYN)
    answers = tap.frames(floods.is_from(lab.net.vip, port), 2)
    cookie = next(struct.unpack_from("!I", data, floods.segment_at(data) + 4)[0] for data in answers
                  if data[floods.segment_at(data) + 13] & SYN_ACK == SYN_ACK)
    began = time.monotonic()
    for at in (0, *REPEATED_S):
        time.sleep(max(0, began + at - time.monotonic()))
        send(isn + 1, (cookie + 1) & 0xffffffff, floods.ACK | floods.PSH, raw.head(target))


def test_a_guessed_cookie_ends_no_connection(lab):
    target = lab.homes["n2"][0]
    before = total(lab, "handover_asked")
    for number in range(TRIES):
        with opened(lab, target) as sock, floods.Tap(lab.net.client, "eth0") as tap:
            for isn in (number << 29, (number << 29) + (1 << 31)):  # one of them is later than its own
                forge(lab, tap, sock, isn, target)
            ask(sock, target)
    assert total(lab, "handover_asked") >= before + TRIES


def test_a_client_begins_anew(lab):
    """The node has not heard that the connection before is over."""
    target = lab.homes["n2"][0]
    mute = ["OUTPUT", "-p", "tcp", "--dport", str(topology.PORT), "--tcp-flags", "RST", "RST", "-j", "DROP"]
    before = total(lab, "handover_asked")
    lab.client.exec(["iptables", "-A", *mute])
    try:
        for _ in range(TRIES):
            sock = opened(lab, target)
            port = sock.getsockname()[1]
            raw.reset(sock)
            time.sleep(0.2)
            with raw.connect(lab.client, port=port) as sock:
                began = time.monotonic()
                ask(sock, target)
                assert time.monotonic() - began < ANEW_S
    finally:
        lab.client.exec(["iptables", "-D", *mute])
    assert total(lab, "handover_asked") >= before + TRIES
