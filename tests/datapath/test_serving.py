# SPDX-License-Identifier: GPL-2.0-or-later
"""A node on which a connection would never be heard of again: it refuses what it is given, says why, and comes back."""
import contextlib
import functools
import socket
import subprocess
import time

import pytest

import namespaces
from earshotlab import netns, wait_for
from packets import model, packet
from packets.families import BOTH
from packets.leases import BUILT, from_another, nacked
from packets.loads import others_serve, said, tell
from packets.node import BLIND, CLUSTER, EACH, SERVICE_INDEX, VIP, WEB
from packets.packet import ACK, NOP, PSH, RST

IPPROTO_MPTCP = 262
DOWN = 2
ADDRESS, SYNCOOKIES, RP_FILTER, MTU = range(3, 7)
OVERHEAD = 20 + 8 + 64  # of a handover message


def n1(node):
    return node.ask("status")["nodes"][0]


def is_known(node, trouble):
    wait_for(lambda: trouble in n1(node)["trouble"], f"trouble: {trouble}", seen=lambda: n1(node))


class Broken:
    """What is done to a node's machine, and taken back."""

    def __init__(self, what, trouble, text):
        self.what, self.trouble, self.text = what, trouble, text

    def set(self, node, broken):
        at = node.namespace
        if self.what == "address":
            netns.ip("-n", at, "address", "del" if broken else "add", f"{VIP}/32", "dev", "lo")
        elif self.what == "tcp_syncookies":
            netns.set_sysctls(at, {"net.ipv4.tcp_syncookies": int(not broken)})
        else:
            netns.set_sysctls(at, {f"net.ipv4.conf.{self.what}.rp_filter": 1 if broken else 2})


BROKEN = (Broken("address", ADDRESS, f"{VIP} is not an address of this node"),
          pytest.param(Broken("tcp_syncookies", SYNCOOKIES, "tcp_syncookies is 0"),
                       marks=[pytest.mark.bpf("the module makes its requests itself"),
                              pytest.mark.no_netfilter("its handshakes are true ones")]),
          Broken("eth1", RP_FILTER, "rp_filter is strict on eth1"), Broken("lo", RP_FILTER, "rp_filter is strict on lo"))


def refuses(node, client, broken):
    """What others give to it; its own requests go to another node at once, without a try here; who has none is told."""
    wait_for(lambda: [(m.state, m.trouble) for m in said(node, 0)[-1:]] == [(DOWN, broken.trouble)], "n2 hears of it")
    c, text, message = from_another(node, client, WEB)
    with node.counts(handover_received=1, handover_nacked=1):
        node.message(message)
        nacked(node, c, message, model.NACK_NO_LISTENER)
    c = client(WEB)
    c.shake()
    with node.counts(request_queued=1, inspect_requests=1, inspect_handovers=1):
        c.request(target=1)
        assert node.cluster.take(lambda f: f.udp and f.ip.dst in CLUSTER[1:] and f.udp.payload[5] == model.REQUEST
                                 and f.udp.payload[:4] == b"ESH1", "its request, at another node")
    c = client(BLIND)
    c.shake()
    with node.counts(layer4_queued=1, inspect_layer4_given=1, inspect_requests=1, inspect_handovers=1):
        c.request()
        assert node.cluster.take(lambda f: f.udp and f.ip.dst in CLUSTER[1:] and f.udp.payload[5] == model.REQUEST
                                 and f.udp.payload[:4] == b"ESH1", "what nobody reads, at another node")


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.what)
def test_broken(own_node, client, broken):
    """Noticed within a second or two: nothing is taken of others, own requests go to others, and all that is said; and back."""
    node = own_node()
    client = functools.partial(client, at=node)
    with contextlib.ExitStack() as stack:
        stack.enter_context(others_serve(node))
        stack.callback(broken.set, node, False)
        broken.set(node, True)
        is_known(node, broken.text)
        assert n1(node)["state"] == "down"
        assert broken.text in node.log() and "until then the other nodes serve" in node.log()
        if broken.what != "eth1":  # where a strict filter also drops what the test asks with
            refuses(node, client, broken)
        assert f"n1: {n1(node)['trouble']}" in node.earshot("nodes").stdout
    wait_for(lambda: n1(node)["state"] == "up", "n1 is up again", seen=lambda: n1(node))
    assert "can serve again" in node.log() or n1(node)["trouble"].startswith("service s82: nothing listens")
    c, text, message = from_another(node, client, WEB)
    with node.counts(**BUILT):
        node.message(message)
        c.sent(text)
        assert c.read(len(text)) == text


def test_broken_and_alone(own_node, client):
    """Nobody else serves: it is said what is wrong, and what can be served is."""
    node = own_node()
    client = functools.partial(client, at=node)
    broken = Broken("lo", RP_FILTER, "rp_filter is strict on lo")
    try:
        broken.set(node, True)
        is_known(node, broken.text)
        wait_for(lambda: [m.trouble for m in said(node, 0)[-1:]] == [RP_FILTER], "n2 hears of it")
        wait_for(lambda: n1(node)["state"] == "up", "the others, who told their time at the start, are silent", seen=lambda: n1(node))
        assert broken.text in n1(node)["trouble"]
        c, text, message = from_another(node, client, WEB)
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        with others_serve(node):
            wait_for(lambda: n1(node)["state"] == "down", "n1 leaves it to the others", seen=lambda: n1(node))
    finally:
        broken.set(node, False)


def mtu_set(node, mtu):
    netns.ip("-n", node.namespace, "link", "set", "eth1", "mtu", str(mtu))


def mss_becomes(node, client, expected):
    """By the longest packet that fits into a handover message."""
    def announced():
        c = client(at=node)
        node.public.send(c.syn_frame())
        return int.from_bytes(node.public.take(c.mine).tcp.options[2], "big")

    wait_for(lambda: announced() == expected - 40, f"MSS {expected - 40}", seen=announced)
    node.mss = expected - 40


def goes_whole(node, client, target, packet_max):
    """A request of a client that has heard of the first MSS is handed over in messages that fit."""
    c = client(at=node)
    c.shake()
    text = c.get(target)
    text = text[:-2] + b"X-Long: " + b"x" * (1368 - 12 - len(text) - 10) + b"\r\n\r\n"
    c.request(text=text)

    def payload(message):
        return packet.parse(packet.eth(node.mac, node.mac, packet.ETH_IP, message.packet)).tcp.payload

    messages = [node.taken(target, model.REQUEST)]
    while sum(len(payload(m)) for m in messages) < len(text):
        messages.append(node.taken(target, model.FOLLOW))
    assert b"".join(payload(m) for m in messages) == text
    assert max(len(m.packet) for m in messages) <= packet_max, [len(m.packet) for m in messages]
    return len(messages)


def test_mtu(own_node, client):
    """One that changes is in force at once, up and down, here and at another node; the node serves throughout."""
    node = own_node()
    first = 1500 - OVERHEAD
    for other in (2, 3):
        node.hear(other, time.time_ns(), understands=model.UNDERSTANDS_TAKES)
    wait_for(lambda: n1(node)["state"] == "up", "n1 serves", seen=lambda: n1(node))
    mss_becomes(node, client, first)
    assert goes_whole(node, client, 2, first) == 1
    try:
        mtu_set(node, 1400)
        mss_becomes(node, client, 1400 - OVERHEAD)
        assert goes_whole(node, client, 2, 1400 - OVERHEAD) == 2
        assert n1(node)["state"] == "up"
        # n2 takes less than that, until it says nothing any more.
        tell(node, model.Takes(1, time.time_ns(), 900), 2)
        mss_becomes(node, client, 900)
        assert goes_whole(node, client, 2, 900) == 2
        mss_becomes(node, client, 1400 - OVERHEAD)
        for wrong in (0, 1):  # nobody can have less than TCP's least
            tell(node, model.Takes(1, time.time_ns(), wrong), 2)
            mss_becomes(node, client, (1400 - OVERHEAD, 576)[wrong])
        assert n1(node)["state"] == "up"
    finally:
        mtu_set(node, 1500)
    tell(node, model.Takes(1, time.time_ns(), 9000), 2)
    mss_becomes(node, client, first)
    assert goes_whole(node, client, 2, first) == 1
    assert n1(node)["state"] == "up" and "cannot serve" not in node.log()


def test_mtu_is_told(own_node):
    """Once a second, to those who understand; and at once when it changes."""
    node = own_node()

    def takes():
        node.cluster.fence()
        told = [(model.Takes.parse(f.udp.payload, node.keys), f.ip.dst) for f in node.cluster.loads
                if f.udp.payload[4] == model.Takes.VERSION]
        assert all(word.makes == model.Takes.HANDSHAKES for word, _ in told)
        return [(word.packet_max, dst) for word, dst in told]

    node.hear(3, time.time_ns(), understands=model.UNDERSTANDS_TAKES)
    wait_for(takes, "a word")
    assert set(takes()) == {(1500 - OVERHEAD, CLUSTER[2])}
    try:
        mtu_set(node, 1400)
        wait_for(lambda: (1400 - OVERHEAD, CLUSTER[2]) in takes(), "another word")
    finally:
        mtu_set(node, 1500)


def test_mtu_and_a_node_of_the_version_before(own_node, client):
    """It goes on sending what it always has: while it is heard, nothing is taken of others."""
    node = own_node()
    broken = Broken("mtu", MTU, "MTU of eth1")
    try:
        with others_serve(node):
            mtu_set(node, 1499)
            is_known(node, broken.text)
            assert n1(node)["state"] == "down"
            node.mss -= 1
            refuses(node, functools.partial(client, at=node), broken)
        with others_serve(node, understands=model.UNDERSTANDS_TAKES):
            wait_for(lambda: n1(node)["state"] == "up", "n1 serves again", seen=lambda: n1(node))
            assert broken.text not in n1(node)["trouble"]
        with others_serve(node):
            is_known(node, broken.text)
            mtu_set(node, 1500)
            wait_for(lambda: n1(node)["state"] == "up", "n1 serves again", seen=lambda: n1(node))
    finally:
        mtu_set(node, 1500)


@pytest.fixture
def mptcp():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        pytest.skip("this kernel has no MPTCP")


@pytest.mark.no_netfilter("a true handshake is such a socket's, too")
@pytest.mark.parametrize("port", [WEB, BLIND])
def test_mptcp(make_node, client, mptcp, port):
    """No connection is made for such a socket: its sender is told while the message is still whole."""
    with make_node() as node:
        client = functools.partial(client, at=node)
        node.start()
        with namespaces.listen(node.namespace, VIP, port, protocol=IPPROTO_MPTCP):
            c, _, message = from_another(node, client, port)
            with node.counts(handover_received=1, handover_nacked=1):
                node.message(message)
                nacked(node, c, message, model.NACK_NO_LISTENER)
            is_known(node, "is one of MPTCP")
            assert n1(node)["state"] == "down"
        node.listen(port)
        wait_for(lambda: n1(node)["state"] == "up", "n1 is up again", seen=lambda: n1(node))
        c, text, message = from_another(node, client, port)
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text


@pytest.mark.netfilter("a true handshake is such a socket's, too")
def test_mptcp_is_served(own_node, client, mptcp):
    """Its connections speak TCP, and wait where the subflow's socket says: nothing is made when that queue is full."""
    node = own_node()
    client = functools.partial(client, at=node)
    node.unlisten(WEB)
    is_known(node, f"service s{WEB}: nothing listens")
    node.listen(WEB, backlog=0, protocol=IPPROTO_MPTCP)
    wait_for(lambda: f"service s{WEB}: nothing" not in n1(node)["trouble"], "the server is seen", seen=lambda: n1(node))
    assert "MPTCP" not in n1(node)["trouble"] and n1(node)["state"] == "up"
    assert f'earshot_server_up{{service="s{WEB}"}} 1' in node.earshot("metrics").stdout
    held, held_text, message = from_another(node, client, WEB)
    with node.counts(**BUILT):
        node.message(message)
        wait_for(lambda: node.sockets(held), "a connection that nobody accepts")
    c, text, message = from_another(node, client, WEB)
    with node.counts(handover_received=1, handover_accept_full=1):
        node.message(message)
        c.silence()
    node.no_message()
    assert not node.sockets(c) and f'earshot_server_up{{service="s{WEB}"}} 0' in node.earshot("metrics").stdout
    held.sent(held_text)
    assert held.read(len(held_text)) == held_text
    with node.counts(**BUILT):
        node.message(again(message))
        c.sent(text)
        assert c.read(len(text)) == text
        assert c.answer()


@contextlib.contextmanager
def ruled(node, table):
    """@table, whose name is t."""
    nft = ["ip", "netns", "exec", node.namespace, "nft"]
    subprocess.run([*nft, "-f", "-"], check=True, text=True, input=table)
    try:
        yield
    finally:
        subprocess.run([*nft, "delete", *table.split()[:3]], check=True)


def swallowed(node):
    """A rule that no look finds takes the packets that connections are made of."""
    return ruled(node, "table inet t { chain in { type filter hook input priority 0;\n"
                 f"iifname {{ eth0, earshot-nf }} tcp dport {WEB} drop\n }}\n }}")


def tried(node):
    """How a request is counted whose socket the kernel does not make."""
    return dict(handover_received=1, rebuild_refused=1) if node.netfilter else BUILT


def again(message):
    """The same attempt, as its sender repeats it for the client's retransmission."""
    message.sequence, message.mac = 0, None
    return message


def test_swallowed(own_node, client):
    """While the kernel may still make the socket, nobody else may; then the request goes back, and is no more made here."""
    node = own_node()
    c, text, message = from_another(node, functools.partial(client, at=node), WEB)
    with swallowed(node):
        with node.counts(**tried(node)):
            node.message(message)
        # The netfilter datapath sees that nothing comes of it, sees to it that nothing will, and tries again.
        with node.counts(**tried(node) if node.netfilter else dict(handover_received=1, handover_old=1)):
            node.message(again(message))
        time.sleep(1.1)
        if not node.netfilter:
            with node.counts(handover_received=1, handover_vanished=1):
                node.message(again(message))
                node.no_message()
            time.sleep(3)
        with node.counts(handover_received=1, handover_vanished=1):
            node.message(again(message))
            nacked(node, c, message, model.NACK_VANISHED)
    with node.counts(handover_received=1, handover_refused=1):
        node.message(again(message))
        nacked(node, c, message, model.NACK_RETRY)
    with node.counts(**BUILT):
        message.attempt += 1
        node.message(again(message))
        c.sent(text)
        assert c.read(len(text)) == text


def test_redirected(own_node, client):
    """The kernel answers with a RST, which the client does not get: the request goes back with its next copy, and is no more made here.
    By chance, the more often the busier the machine is, the kernel makes the socket all the same, with the other port: then it serves."""
    node = own_node()
    c, text, message = from_another(node, functools.partial(client, at=node), WEB)
    with ruled(node, f"table ip t {{ chain in {{ type nat hook prerouting priority -100; tcp dport {WEB} redirect to :9\n }}\n }}"):
        if node.netfilter:  # it has entered the connection before rules translate it
            with node.counts(**BUILT):
                node.message(message)
                c.sent(text)
            return
        def is_made():
            return any(name[2:4] == (c.ip, c.port) for name in namespaces.tcp_sockets(node.namespace, 4))
        before = node.counters()["reply_astray"]
        with node.counts(reply_astray={0, 1}, **BUILT):
            node.message(message)
            wait_for(lambda: node.counters()["reply_astray"] > before or is_made(), "a RST that stays, or a connection")
        if is_made():
            c.sent(text)
            assert c.read(len(text)) == text
            return
        c.silence()
        with node.counts(handover_received=1, handover_vanished=1):
            node.message(again(message))
            nacked(node, c, message, model.NACK_VANISHED)
    with node.counts(**BUILT):
        message.attempt += 1
        node.message(again(message))
        c.sent(text)
        assert c.read(len(text)) == text


def asked(node, c, message, reason):
    """n2 asks what has become of the request; nothing comes of the question itself."""
    question = c.handover(message.packet, kind=model.FATE)
    with node.counts(handover_received=1, fate_asked=1):
        node.message(question, sport=40001)
        back = node.taken(2, model.NACK)
    assert (back.nack, back.packet, back.ports[1]) == (reason, question.packet, 40001)
    node.no_message()


@BOTH
def test_fate(node, client):
    """Of a request that nobody knows, and of one whose socket has spoken, also when it is gone."""
    c, text, message = from_another(node, client, WEB)
    asked(node, c, message, model.NACK_UNKNOWN)
    c.silence()
    with node.counts(**BUILT):
        node.message(message)
        c.sent(text)
        assert c.read(len(text)) == text
    asked(node, c, message, model.NACK_HEARD)
    c.closes()
    asked(node, c, message, model.NACK_HEARD)


def test_fate_of_swallowed(own_node, client):
    node = own_node()
    c, text, message = from_another(node, functools.partial(client, at=node), WEB)
    with swallowed(node):
        with node.counts(**tried(node)):
            node.message(message)
        asked(node, c, message, model.NACK_UNKNOWN)
        time.sleep(1.1)
        asked(node, c, message, model.NACK_UNHEARD)
        c.silence()


def evidence(node, number, request=0, client=None):
    return model.Evidence(service=f"s{WEB}", address=client or 100 + number, prefix=1000 + number, request=request,
                          sequence=time.time_ns())


def test_clients_are_not_heard(own_node, client):
    """Other nodes say so, and hear them: the node claims a place, goes, says why, and tries again; its other services are there."""
    node = own_node()
    with others_serve(node):
        for number in range(3):
            tell(node, evidence(node, 0, request=7 + number))
        wait_for(lambda: n1(node)["failing"] == [f"s{WEB}"], "n1 claims a place", 15, seen=lambda: n1(node)["failing"])
        c, text, message = from_another(node, functools.partial(client, at=node), WEB)
        with node.counts(**BUILT):  # meanwhile it serves
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        wait_for(lambda: "not heard of again" in n1(node)["trouble"], "n1 goes", 15, seen=lambda: n1(node)["trouble"])
        assert f"service s{WEB}: connections" in node.log() and n1(node)["state"] == "up"
        c, _, message = from_another(node, functools.partial(client, at=node), WEB)
        with node.counts(handover_received=1, handover_nacked=1):
            node.message(message)
            nacked(node, c, message, model.NACK_NO_LISTENER)
        c, text, message = from_another(node, functools.partial(client, at=node))
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        wait_for(lambda: not n1(node)["failing"], "n1 tries again", 20, seen=lambda: n1(node)["failing"])
    c, text, message = from_another(node, functools.partial(client, at=node), WEB)
    with node.counts(**BUILT):
        node.message(message)
        c.sent(text)
        assert c.read(len(text)) == text


@pytest.mark.parametrize("case", ["heard", "alone", "forged"])
def test_stays_in(own_node, case):
    """Others are heard there; nobody else serves; or somebody without the key says so."""
    node = own_node()
    with others_serve(node, (2, 3) if case != "alone" else ()):
        for second in range(8):
            message = evidence(node, 0, request=100 + second)
            tell(node, message if case != "forged" else message.bytes((1, 2)))
            if case == "heard":
                tell(node, evidence(node, 1))
            time.sleep(1)
            assert n1(node)["state"] == "up" and "not heard of again" not in n1(node)["trouble"]
    assert ("serves all the same" in node.log()) == (case == "alone")


SIGNED = b"\x13\x12" + bytes(16) + NOP * 2  # RFC 2385
AUTHENTIC = b"\x1d\x10" + bytes(14)  # RFC 5925
MALFORMED = NOP * 2 + b"\xfd\x01"
DISLIKED = [(packet.OPTIONS, b"\0\x40\4\0\0\0\0")]  # whoever does not know the option is to drop the packet
each_refused = pytest.mark.parametrize("options", [SIGNED, AUTHENTIC, MALFORMED], ids=["signed", "authentic", "malformed"])


def given_twice(node, client, **odd):
    """A request with such a packet, and again when its socket has not been heard of for a second."""
    c = client(WEB, owner=2)
    c.forge()
    text = c.get()
    message = c.handover(c.ip_packet(ACK | PSH, text, **odd), next_request_seq=c.next + len(text))
    node.message(message)
    time.sleep(1.1)
    node.message(again(message))
    node.no_message()


@each_refused
def test_options_that_no_stack_takes(node, client, options):
    """A client that sends them says nothing of the node, and cannot take it away from other clients."""
    with node.counts(handover_received=2, handover_malformed=2):
        given_twice(node, client, options=options)
    c = client(WEB)
    c.shake()
    with node.counts(drop_malformed=1):
        c.send(ACK | PSH, c.get(), options=options)
        c.silence()


@pytest.mark.parametrize("family", [6])
def test_headers_that_a_stack_refuses(node, client):
    # The netfilter datapath's connection is made by a SYN that has no such headers.
    again_ = "handover_duplicate" if node.netfilter else "handover_old"
    with node.counts(handover_received=2, handover_rebuilt=1, **{again_: 1}):
        given_twice(node, client, headers=DISLIKED)


def test_local_route(own_node):
    """The kernel takes packets for its own by the route, so an address that no interface has may do."""
    node = own_node()
    netns.ip("-n", node.namespace, "address", "del", f"{VIP}/32", "dev", "lo")
    netns.ip("-n", node.namespace, "route", "add", "local", "10.77.0.100/31", "dev", "lo")
    time.sleep(2.5)
    assert n1(node)["state"] == "up" and "is not an address of this node" not in node.log()


def test_one_service(node, client):
    """What is refused of one service is no other's, and nothing is when the daemon has said nothing for seconds."""
    mask, until_ns = 2, 3  # in the first worker's line
    with node.tables() as tables:
        words = tables.state.worker[0]
        looked_ns = words[until_ns]
        wait_for(lambda: words[until_ns] != looked_ns, "the daemon has just looked")
        words[mask] = 1 << SERVICE_INDEX[WEB]
        c, _, message = from_another(node, client, WEB)
        with node.counts(handover_received=1, handover_nacked=1):
            node.message(message)
            nacked(node, c, message, model.NACK_NO_LISTENER)
        c, text, message = from_another(node, client, EACH)
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        words[until_ns] = time.monotonic_ns() - 10**9
        c, text, message = from_another(node, client, WEB)
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        del words  # or the tables cannot be let go


def test_other_node_says_so(own_node, client):
    """Without membership: it is given nothing until it says that it is up, or nothing any more."""
    node = own_node()
    client = functools.partial(client, at=node)
    node.hear(2, time.time_ns(), state=DOWN, trouble=RP_FILTER)
    n2 = node.ask("status")["nodes"][1]
    assert (n2["state"], n2["trouble"]) == ("down", "sysctl rp_filter is strict")
    assert "n2: sysctl rp_filter is strict" in node.earshot("nodes").stdout
    c = client(WEB)
    c.shake()
    with node.counts(request_queued=1, inspect_requests=1, inspect_handovers={0, 1}, inspect_kept={0, 1}, handover_received={0, 1},
                     handover_rebuilt={0, 1}):
        c.request(target=2)
        node.cluster.nothing(lambda f: f.udp and f.ip.dst == "10.78.0.2" and len(f.udp.payload) > 64, "nothing for n2")
    node.hear(2, time.time_ns())
    assert node.ask("status")["nodes"][1]["state"] == "up"
    node.hear(2, time.time_ns(), state=DOWN, trouble=RP_FILTER)
    wait_for(lambda: node.ask("status")["nodes"][1]["state"] == "up", "a node that says nothing is not known to be down")
