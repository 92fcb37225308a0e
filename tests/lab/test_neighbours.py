# SPDX-License-Identifier: GPL-2.0-or-later
"""Where clients' kernels think that the service is, for as long as they run: at the cluster MAC, whatever they ask, and whoever
comes up or goes away.

Time is made short by the clients' own settings: what takes a kernel half a minute takes it hundredths of a second.
"""
import contextlib
import json
import socket
import struct
from types import SimpleNamespace

import pytest

from earshotlab import Lab, daemon, families, netns, topology, wait_for
from packets import packet
from web import raw

pytestmark = pytest.mark.earshot

EACH = pytest.mark.parametrize("vip", [topology.VIP, families.VIP6], ids=["v4", "v6"])
MACS = {"multicast": "03:bf:0a:4d:00:64", "unicast": "02:bf:0a:4d:00:64"}
BROADCAST, GROUP_MAC = "ff:ff:ff:ff:ff:ff", "33:33:ff:00:01:00"
SOLICITATION, ADVERTISEMENT, SOLICITED, OVERRIDE = 135, 136, 0x40, 0x20
DISCARD = 9  # a port that no service has: what a client sends there tells its kernel nothing about the neighbour


@pytest.fixture(scope="module", name="lab", params=list(MACS))
def _lab(request):
    with Lab(nodes=3, family="46", settings={"datapath.mac_mode": request.param, "datapath.cluster_mac": MACS[request.param]}) as lab:
        lab.cluster_mac = MACS[request.param]
        yield lab


class Ear:
    """What is said on a machine's public interface about who has the service's addresses."""

    def __init__(self, namespace):
        self.socket = netns.in_namespace(namespace, self._open)
        self.asked, self.told = [], []

    @staticmethod
    def _open():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        s.bind(("eth0", 3))  # ETH_P_ALL: what it sends, too
        s.setblocking(False)
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, frame):
        self.socket.send(frame)

    def listen(self):
        """Takes what was said since the last time. Returns itself."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._take(self.socket.recv(65536))
        return self

    def _take(self, frame):
        kind = frame[12:14]
        if kind == b"\x08\x06":
            operation, sender_mac, sender, _, target = struct.unpack_from(">6xH6s4s6s4s", frame, 14)
            sender, target = socket.inet_ntoa(sender), socket.inet_ntoa(target)
            self._note(frame, target if operation == 1 else None, sender, sender_mac, operation == 2)
        elif kind == b"\x86\xdd" and frame[20] == packet.ICMP6 and frame[54] in (SOLICITATION, ADVERTISEMENT):
            source, target = (socket.inet_ntop(socket.AF_INET6, frame[at:at + 16]) for at in (22, 62))
            is_answer = frame[54] == ADVERTISEMENT
            option = frame[80:86] if len(frame) >= 86 and frame[78] == (2 if is_answer else 1) else None
            self._note(frame, None if is_answer else target, target if is_answer else source, option,
                       not is_answer or frame[58] & SOLICITED)

    def _note(self, frame, target, claimed, claimed_mac, is_solicited):
        dst, src = frame[:6].hex(":"), frame[6:12].hex(":")
        if target in VIPS:
            self.asked.append(SimpleNamespace(vip=target, dst=dst, src=src))
        if claimed in VIPS:
            self.told.append(SimpleNamespace(vip=claimed, dst=dst, src=src, mac=claimed_mac and claimed_mac.hex(":"),
                                             solicited=bool(is_solicited)))


VIPS = (topology.VIP, families.VIP6)


def entry(lab, vip):
    """The client's neighbour: (MAC, state), or (None, None)."""
    shown = json.loads(lab.client.exec(["ip", "-j", "neigh", "show", vip, "dev", "eth0"]).stdout or "[]")
    return (shown[0].get("lladdr"), shown[0]["state"][0]) if shown else (None, None)


def poke(lab, vip):
    """A datagram to the address, whose answer confirms nothing."""
    family = socket.AF_INET6 if ":" in vip else socket.AF_INET
    with netns.in_namespace(lab.net.client, socket.socket, family, socket.SOCK_DGRAM) as s:
        s.sendto(b"?", (vip, DISCARD))


@contextlib.contextmanager
def short_times(lab, **more):
    """A neighbour of the client's is doubted after hundredths of a second, and asked at once."""
    names = dict(base_reachable_time_ms=20, delay_first_probe_time=0, retrans_time_ms=500, gc_stale_time=1, **more)
    keys = {f"net.{family}.neigh.eth0.{name}": value for family in ("ipv4", "ipv6") for name, value in names.items()}
    before = {key: lab.client.exec(["sysctl", "-n", key]).stdout.strip() for key in keys}
    netns.set_sysctls(lab.net.client, keys)
    try:
        yield
    finally:
        netns.set_sysctls(lab.net.client, before)


@contextlib.contextmanager
def all_that_is_told(lab):
    """Whoever says on the client's network, while the block runs, where a service is, names the cluster MAC."""
    with Ear(lab.net.client) as ear:
        yield ear
        assert {told.mac for told in ear.listen().told} <= {lab.cluster_mac}, ear.told


@EACH
@pytest.mark.parametrize("cast", ["unicast", "multicast"])
def test_for_hours(lab, vip, cast):
    """The entry is doubted and confirmed, again and again, and never another one: by unicast, as kernels ask who have an
    entry, and by multicast or broadcast, as they do when nobody has answered that."""
    more = dict(ucast_solicit=3) if cast == "unicast" else dict(ucast_solicit=0, mcast_resolicit=3)
    everybody = GROUP_MAC if ":" in vip else BROADCAST
    own = lab.net.link("client").mac
    with all_that_is_told(lab) as ear, short_times(lab, **more):
        lab.client.exec(["ip", "neigh", "flush", "to", vip, "dev", "eth0"])  # the timer of one that is there runs on
        assert lab.client.get("/1k", host=vip)[0] == 200
        seen = set()

        def is_asked_often():
            poke(lab, vip)
            seen.add(entry(lab, vip))
            return sum((asked.src, asked.dst) == (own, lab.cluster_mac if cast == "unicast" else everybody)
                       for asked in ear.listen().asked) >= 20

        wait_for(is_asked_often, "20 questions", seen=lambda: (seen, ear.asked))
        assert {mac for mac, _ in seen} == {lab.cluster_mac} and not {state for _, state in seen} & {"FAILED", "INCOMPLETE"}, seen
        assert len(ear.told) >= 19 and all(told.solicited and told.vip == vip for told in ear.told)
    assert lab.client.get("/1k", host=vip)[0] == 200


@EACH
def test_forgotten(lab, vip):
    """Who has no entry any more gets the same one, and gets it from each of the nodes, as the ring says."""
    with all_that_is_told(lab) as ear:
        answering = set()
        for number in range(40, 60):
            source = families.client_address6(number) if ":" in vip else f"10.77.1.{number}"
            length = 64 if ":" in vip else 16
            lab.client.exec(["ip", "address", "replace", f"{source}/{length}", "dev", "eth0",
                             *(["nodad"] if ":" in vip else [])])
            lab.client.exec(["ip", "neigh", "flush", "to", vip, "dev", "eth0"])
            done = lab.client.exec(["curl", "-sS", "--max-time", "10", "--globoff", "--interface", source,
                                    f"http://{families.in_url(vip)}/node"])
            assert done.stdout in ("n1\n", "n2\n", "n3\n")
            assert entry(lab, vip)[0] == lab.cluster_mac
            answering |= {told.src for told in ear.listen().told}
        assert answering == {lab.net.link(f"{node.name}-pub").mac for node in lab.nodes}


@EACH
def test_nodes_that_ask(lab, vip):
    """A node that looks for a client, because it answers from the service's address, does not say that the address is its own."""
    family = "-6" if ":" in vip else "-4"
    with all_that_is_told(lab) as ear:
        for number in range(12):
            for node in lab.nodes:
                node.exec(["ip", family, "neigh", "flush", "dev", "eth0"])
            assert lab.client.get(f"/u/1k/{number}", host=vip)[0] == 200
    assert all(told.dst == lab.net.link("client").mac for told in ear.told)


def announce(node):
    """Its kernel says aloud what it has when an interface comes up, and makes sure that nobody else has it; the service's
    addresses are there before its daemon."""
    netns.set_sysctls(node.namespace, {
        **{f"net.ipv4.conf.{name}.arp_notify": 1 for name in ("all", "eth0", "lo")},
        **{f"net.ipv6.conf.{name}.ndisc_notify": 1 for name in ("all", "eth0", "lo")},
        **{f"net.ipv6.conf.{name}.accept_dad": 1 for name in ("all", "eth0", "lo")}})
    node.exec(["ip", "link", "set", "eth0", "down"])
    for vip, length in ((topology.VIP, 32), (families.VIP6, 128)):
        node.exec(["ip", "address", "del", f"{vip}/{length}", "dev", "lo"])
        node.exec(["ip", "address", "add", f"{vip}/{length}", "dev", "lo"])
    node.exec(["ip", "link", "set", "eth0", "up"])


def test_a_node_comes_up(lab):
    """After a loss of power, and with all that a kernel does when it finds out who it is: of the service's addresses nobody
    hears, and none is taken for a duplicate. The clients' entries are as they were."""
    for vip in VIPS:
        assert lab.client.get("/1k", host=vip)[0] == 200
    before = {vip: entry(lab, vip)[0] for vip in VIPS}
    own = lab.net.link("n2-pub").mac
    with all_that_is_told(lab) as ear:
        lab.kill("n2")
        lab.heal("n2")
        node = lab.node("n2")
        lab.stop("n2", "earshotd")
        announce(node)
        wait_for(lambda: not any("tentative" in each for each in node.exec(["ip", "-6", "-o", "address", "show", "dev", "eth0"])
                                 .stdout.splitlines()), "the node's own addresses")
        shown = node.exec(["ip", "-6", "-o", "address", "show", "dev", "lo", "to", families.VIP6]).stdout
        assert families.VIP6 in shown and "tentative" not in shown and "dadfailed" not in shown
        assert not [told for told in ear.listen().told if told.src == own]
        lab.start("n2", "earshotd")
        for vip in VIPS:
            wait_for(lambda vip=vip: lab.client.get("/1k", host=vip)[0] == 200, "an answer")
    assert {vip: entry(lab, vip)[0] for vip in VIPS} == before


def test_somebody_wants_the_address(lab):
    """A machine that is given the service's address and asks first finds it taken (RFC 4862, 5.4), and all who hear the
    answer, of whom it was not asked, keep the cluster MAC."""
    client = lab.machine("client")
    assert lab.client.get("/1k", host=families.VIP6)[0] == 200
    netns.set_sysctls(client.namespace, {f"net.ipv6.conf.{name}.accept_dad": 1 for name in ("all", "eth0")})
    with all_that_is_told(lab) as ear:
        try:
            client.exec(["ip", "address", "add", f"{families.VIP6}/128", "dev", "eth0"])
            wait_for(lambda: "dadfailed" in client.exec(["ip", "-6", "address", "show", "dev", "eth0", "to", families.VIP6]).stdout,
                     "a duplicate", seen=lambda: (ear.listen().asked, ear.told))
        finally:
            client.exec(["ip", "address", "del", f"{families.VIP6}/128", "dev", "eth0"])
            netns.set_sysctls(client.namespace, {f"net.ipv6.conf.{name}.accept_dad": 0 for name in ("all", "eth0")})
    assert ear.told and all(told.dst == "33:33:00:00:00:01" and not told.solicited for told in ear.told)
    assert not any("dadfailed" in node.exec(["ip", "-6", "address", "show", "dev", "lo"]).stdout for node in lab.nodes)
    wait_for(lambda: lab.client.get("/1k", host=families.VIP6)[0] == 200, "an answer")


def test_somebody_wants_the_address_of_ipv4(lab):
    """The same with ARP's probe (RFC 5227, 2.1), whose sender is 0.0.0.0."""
    own = lab.net.link("client").mac
    with all_that_is_told(lab) as ear:
        ear.send(packet.eth(BROADCAST, own, packet.ETH_ARP, packet.arp(1, own, "0.0.0.0", "00:00:00:00:00:00", topology.VIP)))
        wait_for(lambda: ear.listen().told, "an answer")
    assert len(ear.told) == 1 and ear.told[0].dst == own


def index_of(machine, interface):
    return json.loads(machine.exec(["ip", "-j", "link", "show", "dev", interface]).stdout)[0]["ifindex"]


@contextlib.contextmanager
def link_local_client(lab):
    """Connects to the service from an address that it has on the nodes' link only."""
    client = lab.machine("client")
    interface = index_of(client, "eth0")

    @contextlib.contextmanager
    def connect():
        with netns.in_namespace(lab.net.client, socket.socket, socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.settimeout(20)
            sock.bind(("fe80::77", 0, 0, interface))
            sock.connect((families.VIP6, topology.PORT))
            yield sock

    client.exec(["ip", "address", "add", "fe80::77/64", "dev", "eth0", "nodad"])
    try:
        yield connect
    finally:
        client.exec(["ip", "address", "del", "fe80::77/64", "dev", "eth0"])


def test_link_local_client(lab):
    """A client that has no other address: it is on the nodes' link, and each serves its share, request by request. With the
    netfilter datapath, all refuse it at once."""
    rebuilt, refused, nodes = raw.total(lab, "handover_rebuilt"), raw.total(lab, "rebuild_refused"), set()
    with link_local_client(lab) as connect:
        for number in range(24):
            if daemon.DATAPATH == "netfilter":
                with pytest.raises(ConnectionRefusedError), connect():
                    pass
                continue
            with connect() as sock:
                answers = []
                for part in range(3):
                    sock.sendall(raw.head(f"/u/100k/{number}.{part}"))
                    answers.append(raw.receive(sock))
                    assert raw.right(answers[-1], "100k")
                nodes |= {answer.node for answer in answers}
    if daemon.DATAPATH == "netfilter":
        assert raw.total(lab, "rebuild_refused") == refused + 24
    else:
        assert nodes == {"n1", "n2", "n3"}
    assert raw.total(lab, "handover_rebuilt") == rebuilt
