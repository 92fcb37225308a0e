# SPDX-License-Identifier: GPL-2.0-or-later
"""The datapath with a daemon that hangs, dies, comes back or does not start; and what the daemon says of itself."""
import contextlib
import json
import os
import signal

import pytest

from earshotlab import netns, wait_for
from packets import model
from packets.node import BLIND, EACH, TURNS, VIP, WEB
from packets.packet import ACK, PSH
from packets.strays import lets_pass
from packets.wire import TIMEOUT_S

FALLBACK_MS = 300


@pytest.fixture
def own(own_node):
    return own_node(fallback_after_ms=FALLBACK_MS)


def fallback(node, client):
    """A request that the policy would give to n2 is served here after all: wait until that is so."""
    def served():
        c = client(at=node)
        c.shake()
        text = c.get(2)
        c.request(text=text)
        node.public.fence()
        if not node.sockets(c):
            return None
        assert c.read(len(text)) == text
        return c

    return wait_for(served, "service without inspection")


def inspected(node, client):
    """Requests that are for n2 go there (again)."""
    def handed():
        node.cluster.clear()
        c = client(at=node)
        c.shake()
        sent = c.request(target=2)
        try:
            return node.taken(2, timeout=0.2).packet == sent
        except AssertionError:
            return False

    wait_for(handed, "inspection", 3 * TIMEOUT_S)


def test_sleeping_worker_is_woken(node, client):
    """Not by its timer, which would find the packet too: nearly every request after a pause wakes it."""
    before = node.counters()["inspect_woken"]
    for _ in range(20):
        client().serve()
    assert node.counters()["inspect_woken"] >= before + 10


FALLBACK = pytest.mark.no_netfilter("without its daemon a node answers nothing: test_nothing_without_a_daemon")


@FALLBACK
def test_hanging_daemon(own, client):
    """Nobody waits for it: served content-blind. When it is back, requests are inspected again."""
    inspected(own, client)
    given, before = client(at=own).shake(), own.counters()
    given.request(target=2)
    own.taken(2)
    kept = client(at=own).serve()
    own.freeze()
    c = fallback(own, client)
    assert c.answer()
    blind = client(BLIND, at=own).serve()
    # Given away before: not served twice.
    given.send(ACK | PSH, given.get(2), seq=given.isn + 1)
    given.silence()
    assert not own.sockets(given)
    # Only whole first segments are served blind.
    later = client(at=own).shake()
    later.send(ACK | PSH, b"x" * 10, seq=later.next + 10)
    later.silence()
    for established in (kept, blind):
        established.request(text=b"still here")
        assert established.read(10) == b"still here"
    own.signal(signal.SIGCONT)
    inspected(own, client)
    after = own.counters()
    assert after["request_fallback"] > before["request_fallback"]
    assert after["drop_fallback_elsewhere"] == before["drop_fallback_elsewhere"] + 1
    assert after["drop_no_flow"] == before["drop_no_flow"] + 1
    assert c.answer(b"more")


@FALLBACK
def test_daemon_that_wakes_up_too_late(own, client):
    """A request lay in its queue, the client repeated it, and the fallback served it: it must not be served again."""
    def stopped():
        """A client whose request for n2 is in the queue of a stopped daemon."""
        own.signal(signal.SIGCONT)
        inspected(own, client)
        own.freeze()
        c = client(at=own).shake()
        text = c.get(2)
        c.send(ACK | PSH, text)
        c.silence()
        return None if own.sockets(c) else (c, text)

    c, text = wait_for(stopped, "a request in the queue")
    fallback(own, client)
    c.request(text=text)
    assert c.read(len(text)) == text
    own.cluster.clear()
    own.signal(signal.SIGCONT)
    before = own.counters()["inspect_requests"]

    def inspects():
        """Without taking anything off the wire; what lay in the queue was dealt with before."""
        other = client(at=own).shake()
        other.send(ACK | PSH, other.get(3))
        return own.counters()["inspect_requests"] > before + 1

    wait_for(inspects, "inspection")
    late = own.cluster.all(lambda f: f.udp and text in f.udp.payload)
    assert not late, "handed over, though it is served here"


@FALLBACK
def test_dead_daemon(own, client):
    """SIGKILL, service without it, and a successor that takes the running datapath over."""
    inspected(own, client)

    def elsewhere():
        c = client(TURNS, at=own).shake()
        text = c.get()
        c.send(ACK | PSH, text)
        with contextlib.suppress(AssertionError):
            return c, text, own.taken(2, timeout=0.1)

    turns, turns_text, given = wait_for(elsewhere, "a request that n2 serves")
    kept = client(at=own).serve()
    remote = client(owner=2, at=own)
    remote.forge()
    message = own.message(remote.handover(remote.ip_packet(ACK | PSH, remote.get())))
    remote.read(4)
    before = own.counters()
    own.kill()
    c = fallback(own, client)
    assert c.answer()
    kept.request(text=b"alone")
    assert kept.read(5) == b"alone"
    own.start()
    assert "took over" in own.log()
    after = own.counters()
    assert after["request_fallback"] > before["request_fallback"]
    for name in before:
        assert name.startswith("inspect_") or after[name] >= before[name], name
    for established in (kept, c):
        established.request(text=b"again")
        assert established.read(5) == b"again"
        assert established.answer()
    # What it decided in its former life, it decides still; what it has seen, it has seen.
    own.cluster.clear()
    turns.send(ACK | PSH, turns_text)
    repeated = own.taken(2)
    assert turns_text in repeated.packet and repeated.sequence > given.sequence
    with own.counts(handover_replayed=1):
        own.message(message)
    inspected(own, client)


@pytest.mark.bpf("the kernel refuses a module's daemon of another version: tests/module")
def test_another_version_of_the_tables(own, client):
    """They are not taken over: what is open goes on, pinned; what is new is inspected."""
    kept = client(EACH, at=own).serve()
    kept.answer()
    own.signal(signal.SIGTERM)
    assert own.daemon.wait(TIMEOUT_S) == 0
    with own.tables() as found:
        found.be_another_version()
        own.start()
    assert "took over" not in own.log() and "tables cannot be taken over" in own.log()
    for _ in range(2):
        text = kept.get(2)
        kept.request(text=text)
        assert kept.read(len(text)) == text
        kept.answer()
    seen = [f for f in own.ask("flows")["flows"] if f["port"] == kept.port]
    assert [(f["state"], f["pin"]) for f in seen] == [("pinned", "unknown")]
    inspected(own, client)


@FALLBACK
def test_stopped_daemon(own, client):
    """SIGTERM leaves the datapath, and `earshot stop` does not."""
    own.signal(signal.SIGTERM)
    assert own.daemon.wait(TIMEOUT_S) == 0
    assert fallback(own, client).answer()
    own.start()
    inspected(own, client)
    own.earshot("stop")
    assert own.daemon.wait(TIMEOUT_S) == 0
    c = client(at=own)
    own.public.send(c.syn_frame())
    c.silence()
    own.start()
    assert "took over" not in own.log()
    with own.counts(syn_answered=1):
        own.public.send(c.syn_frame())
        c.take_synack()


@pytest.mark.netfilter("the others serve without inspection: above")
@pytest.mark.parametrize("how", ["hangs", "dies", "is-stopped"])
def test_nothing_without_a_daemon(own, client, how):
    """Who waits is answered by no node, what is open goes on; and what lay in a queue for too long has been repeated since."""
    inspected(own, client)
    kept = client(at=own).serve()
    kept.answer()
    waiting, fresh = client(at=own).shake(), client(at=own)
    own.settle()
    if how == "hangs":
        own.freeze()
    elif how == "dies":
        own.kill()
    else:
        own.signal(signal.SIGTERM)
        assert own.daemon.wait(TIMEOUT_S) == 0
    own.public.send(fresh.syn_frame())
    waiting.send(ACK | PSH, waiting.get())
    for c in (waiting, fresh):
        c.silence()
        assert not own.sockets(c)
    kept.request(text=b"still here")
    assert kept.read(10) == b"still here"
    kept.answer()
    lets_pass(2 * FALLBACK_MS / 1000)
    if how == "hangs":
        own.signal(signal.SIGCONT)
        own.settle()  # what comes now may be read together with what has waited for too long, and goes with it
    else:
        own.start()
        assert "took over" in own.log()
    inspected(own, client)
    for c in (waiting, fresh):
        c.silence()
        assert not own.sockets(c)
    waiting.request()
    assert waiting.read(4) == b"GET "
    kept.request(text=b"and now")
    assert kept.read(7) == b"and now"


class TestRefusal:
    """One line that says what is wrong, and no start."""

    @pytest.fixture
    def unstarted(self, make_node):
        with make_node() as node:
            yield node

    def refused(self, node, *words):
        assert node.spawn().wait(3 * TIMEOUT_S) != 0
        lines = node.log().splitlines()
        assert len(lines) == 1, lines
        for word in words:
            assert word in lines[0]

    @pytest.mark.parametrize("sysctl, value", [
        pytest.param("tcp_syncookies", 0, marks=[
            pytest.mark.bpf("the module does not need it"), pytest.mark.no_netfilter("its handshakes are true ones")]),
        ("tcp_rfc1337", 1)])
    def test_sysctl(self, unstarted, sysctl, value):
        netns.set_sysctls(unstarted.namespace, {f"net.ipv4.{sysctl}": value})
        self.refused(unstarted, f"net.ipv4.{sysctl}", f"is {value}", f"set it to {1 - value}")

    def test_interface(self, unstarted):
        unstarted.configure(interface="eth7")
        self.refused(unstarted, "eth7")

    def test_cluster_address(self, unstarted):
        netns.ip("-n", unstarted.namespace, "addr", "flush", "dev", "eth1")
        self.refused(unstarted, "node")

    def test_keys(self, unstarted):
        with open(unstarted.key_file, "w", encoding="ascii") as handle:
            handle.write("nonsense\n")
        self.refused(unstarted, unstarted.key_file)

    def test_beside_another_one(self, unstarted):
        unstarted.start()
        path = unstarted.log_path
        unstarted.log_path += "2"
        self.refused(unstarted, "another earshotd")
        unstarted.log_path = path
        assert unstarted.ask("status")


def test_mtu_of_the_private_network(make_node, client):
    """The MSS that we announce is what a handover message has room for."""
    with make_node(program=VIP) as own:  # IPv6 demands 1280
        netns.ip("-n", own.namespace, "link", "set", "eth1", "mtu", "1000")
        own.start()
        own.listen(WEB)
        c = client(at=own)
        own.public.send(c.syn_frame())
        synack = own.public.take(c.mine).tcp
        assert int.from_bytes(synack.options[2], "big") == 1000 - 20 - 8 - 64 - 40
        assert synack.window == 10 * (1000 - 132)


def test_workers(own, client):
    """As many as configured, 0: one for each two CPUs, also behind a datapath that had another number; each gets requests."""
    kept = client(at=own).serve()
    for workers, count in ((0, max(1, min(8, os.cpu_count() // 2))), (3, 3), (1, 1)):
        own.kill()
        own.configure(workers=workers)
        own.start()
        assert "took over" in own.log()
        for _ in range(16 * count):
            client(at=own).serve()
        shares = [worker["requests"] for worker in own.ask("status")["workers"]]
        assert len(shares) == count and all(shares), shares
        kept.request(text=b"again")
        assert kept.read(5) == b"again"
        assert kept.answer()


def test_ring_is_the_models(node):
    """And so are its look-ups."""
    report = node.ask("ring", points=True)
    points = [(int(position, 16), int(name[1:]) - 1) for position, name in report["points"]]
    assert points == list(zip(node.ring.positions, node.ring.nodes))
    for port in range(4000, 4020):
        found = node.ask("ring", lookup={"address": "198.51.100.1", "port": port, "service": f"s{WEB}"})["lookup"]
        hash_ = model.flow_hash(node.keys, "198.51.100.1", port, VIP, WEB)
        assert found["node"] == f"n{node.ring.sampled(hash_) + 1}"


def test_command_line(node):
    """It says what the socket says."""
    shown = json.loads(node.earshot("counters", "--json").stdout)
    assert {c["name"]: c["value"] for c in shown["counters"]} == node.counters()
