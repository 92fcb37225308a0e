# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that accept, read, decide and hand the connection over (docs/programs.md)."""
import collections
import concurrent.futures
import contextlib
import errno
import hashlib
import itertools
import json
import random
import socket
import time

import pytest

from cluster.programs import ALL, PORTS, ask, at, right, serve, start_program
from earshotlab import Lab, daemon, netns, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.wire]

LINKS = ["client", "n1-clu", "n2-clu", "n3-clu"]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash", wires=LINKS) as lab, contextlib.ExitStack() as stack:
        lab.programs = serve(lab, stack)
        lab.stack = stack
        yield lab


def total(lab, name):
    return sum(lab.counters(node)[name] for node in ALL)


@pytest.mark.parametrize("target", ALL + ["self"])
def test_download(lab, target):
    """From whichever node, to each: its real server answers, and sees the client's own address."""
    made, seen = total(lab, "connection_rebuilt"), set()
    for _ in range(30):  # the ring's node of each is the one whose program gets it
        sock = raw.connect(lab.client, at(lab))
        name = ":".join(map(str, sock.getsockname()[:2]))
        response = ask(lab, "/100k", connect=sock, X_To=target)
        assert right(response) and (target == "self" or response.node == target)
        wait_for(lambda: any(line.startswith(name + " ") for line in lab.node(response.node).access_log()), "the log")
        seen.add(response.node)
    assert target != "self" or seen == set(ALL)
    assert total(lab, "connection_rebuilt") == made + 30


@pytest.mark.parametrize("read", [1, 100, 4096, 60000])
@pytest.mark.parametrize("linger", [0, 60])
def test_upload(lab, read, linger):
    """Read a byte of it or much; what the kernel has unread travels along, and the client goes on sending."""
    body = random.Random(read + linger).randbytes(700_000)
    for target in ("n1", "n3"):
        response = ask(lab, "/upload", "POST", body, X_To=target, X_Read=read, X_Linger=linger)
        told = json.loads(response.text)
        assert told["bytes"] == len(body) and told["sha256"] == hashlib.sha256(body).hexdigest()
        assert response.node == target


def test_later_request(lab):
    """The program answers itself for a while, and hands the connection over with its third request."""
    for target in ALL:
        with raw.connect(lab.client, at(lab)) as sock:
            for size in (10, 50_000):
                sock.sendall(raw.head("/", X_Hello=size))
                response = raw.receive(sock)
                assert (response.node, response.size) == ("program", size)
            sock.sendall(raw.head("/100k", X_To=target))
            assert right(raw.receive(sock))
            sock.sendall(raw.head("/node"))  # and it stays there
            assert raw.receive(sock).node == target


@pytest.mark.parametrize("off", [["tcp_timestamps"], ["tcp_sack"], ["tcp_window_scaling"],
                                 ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"]], ids="-".join)


def test_options(lab, off):
    """What a connection has agreed on goes on, or large transfers would crawl or stop."""
    netns.set_sysctls(lab.net.client, {f"net.ipv4.{option}": 0 for option in off})
    try:
        body = random.Random(1).randbytes(3_000_000)
        for target in ALL:
            assert right(ask(lab, "/1m", X_To=target), "1m")
            told = json.loads(ask(lab, "/upload", "POST", body, X_To=target).text)
            assert told["sha256"] == hashlib.sha256(body).hexdigest()
    finally:
        netns.set_sysctls(lab.net.client, {f"net.ipv4.{option}": 1 for option in off})


def crowd(lab, count, parallel):
    """Uploads and downloads at a time; the nodes that served them. All bytes are right."""
    def one(number):
        target = ALL[number % 3] if number % 4 else "self"
        if number % 2:
            response = ask(lab, "/100k", X_To=target, X_Linger=number % 50)
            assert right(response)
        else:
            body = random.Random(number).randbytes(20_000 + number % 7 * 30_000)
            response = ask(lab, "/upload", "POST", body, X_To=target, X_Read=1 + number * 97 % 9000)
            assert json.loads(response.text)["sha256"] == hashlib.sha256(body).hexdigest()
        assert target in ("self", response.node)
        return response.node

    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        return list(pool.map(one, range(count)))


def test_many_at_a_time(lab):
    """So many that with the netfilter datapath, whose daemon is asked about each, nobody waits longer for its word than a program does."""
    made = total(lab, "connection_rebuilt")
    assert set(crowd(lab, 600, 60 if daemon.DATAPATH == "netfilter" else 250)) == set(ALL)
    assert total(lab, "connection_rebuilt") == made + 600


def test_loss(lab):
    """1% of all packets lost, doubled and out of order, to the client and between the nodes."""
    made = total(lab, "connection_rebuilt")
    try:
        for link in LINKS:
            lab.wire(link).zero()
            lab.wire(link).set(loss=0.01, dup=0.01, reorder=0.01)
        crowd(lab, 250, 40)
        assert all(lab.wire(link).stats()[way]["lost"] for link in ("client", "n1-clu") for way in ("in", "out"))
    finally:
        for link in LINKS:
            lab.wire(link).set(loss=0, dup=0, reorder=0)
    assert total(lab, "connection_rebuilt") == made + 250


def test_refused(lab):
    """A node without a server: the program hears it, and the next one takes the connection; or nobody does."""
    lab.stop("n3", "nginx")
    try:
        for _ in range(6):
            assert ask(lab, "/node", X_To="n3, n1").node == "n1"
            with raw.connect(lab.client, at(lab)) as sock:
                sock.sendall(raw.head("/1k", X_To="n3, n9", X_Read=20))
                response = raw.receive(sock)
                assert response.status == 299 and json.loads(response.text) == [-errno.ECONNREFUSED, -errno.ENOENT]
    finally:
        lab.start("n3", "nginx")
    assert ask(lab, "/node", X_To="n3, n1").node == "n3"


def test_no_answer(lab):
    """A node that is cut off: nothing is given to it, and the connection goes elsewhere."""
    lab.cut("n3", "cluster", silent=True)
    try:
        nodes = {}
        for number in range(12):
            sock = raw.connect(lab.client, at(lab))
            nodes[number] = ask(lab, "/node", connect=sock, X_To="n3, self").node
        assert {"n1", "n2"} <= set(nodes.values()), nodes
    finally:
        lab.mend("n3", "cluster")


def test_too_much_given(lab):
    """More than was ever read: nothing is done, or the server would read what no client has sent."""
    with raw.connect(lab.client, at(lab)) as sock:
        sock.sendall(raw.head("/100k", X_To="n2", X_Give="more"))
        response = raw.receive(sock)
        assert response.status == 299 and json.loads(response.text) == [-errno.EINVAL]


def delay(lab, milliseconds):
    for link in ("n1-clu", "n3-clu"):
        lab.wire(link).set(delay=milliseconds)


@pytest.fixture(name="slow")
def _slow(lab):
    """A handover takes several times 40 ms: whatever happens, happens in the middle of many."""
    delay(lab, 20)
    yield lab
    delay(lab, 0)


def handed_over(lab, port):
    """What comes of a connection that is to go to n3: the node, "kept" by the program
    since n3 did not answer in time, "broken" if its end is heard, "silence" if nothing is."""
    try:
        response = ask(lab, "/100k", connect=raw.connect(lab.client, at(lab), timeout=4, port=port), X_To="n3",
                       X_Read=(30, 4096)[port % 2], X_Linger=port % 3 * 60)
    except socket.timeout:
        return "silence"
    except (OSError, EOFError):
        return "broken"
    if response.status == 299:
        assert set(json.loads(response.text)) <= {-errno.EHOSTUNREACH, -errno.ENOLINK}
        return "kept"
    assert right(response), response.fields
    return response.node


_first_port = itertools.count(20000, 600)  # each time others: the client cannot bind those that it has in TIME_WAIT


def in_the_middle(lab, happens):
    """Connections in all phases of a handover from n1 to n3 while that happens; what comes of each."""
    ports = list(itertools.islice(raw.ports(lab, "n1", next(_first_port), "programs"), 90))
    with concurrent.futures.ThreadPoolExecutor(91) as pool:
        results = []
        for number, port in enumerate(ports):
            if number == 45:
                happened = pool.submit(happens)
            results.append(pool.submit(handed_over, lab, port))
            time.sleep(0.005)
        happened.result()
        return collections.Counter(result.result() for result in results)


def all_is_well(lab):
    """Nothing of it is left: no socket of the programs that stands still, and all connections go to n3."""
    def left(node):
        return node.exec(["ss", "-Htn", "state", "established", "sport", f"= :{PORTS['programs']}"]).stdout

    for node in lab.nodes:
        wait_for(lambda node=node: not left(node), f"the end of all connections on {node.name}", timeout=10)
    delay(lab, 0)
    results = in_the_middle(lab, lambda: None)
    assert results["n3"] + results["kept"] == 90 and results["n3"] > 80, results


def test_program_killed(slow):
    """Its connections go on to the node, or break, as they do when any program dies. All others are served."""
    results = in_the_middle(slow, slow.programs["n1"].kill)
    slow.programs["n1"].wait()
    slow.programs["n1"] = start_program(slow.stack, slow.node("n1"))
    assert set(results) <= {"n3", "broken", "kept"} and results["broken"], results
    all_is_well(slow)


@pytest.mark.parametrize("node", ["n1", "n3"])
def test_earshotd_killed(slow, node):
    """Of the node that gives, or of the one that takes, whose datapath goes on: it needs no daemon for that. With netfilter
    the daemon is the datapath: who waits for its word gives up."""
    try:
        results = in_the_middle(slow, lambda: slow.node(node).signal("earshotd"))
    finally:
        slow.start(node, "earshotd")
    wait_for(lambda: slow.status(node)["datapath"]["state"] == "inspecting", "inspection")
    if node == "n3" and daemon.DATAPATH != "netfilter":
        assert results["n3"] + results["kept"] == 90 and results["n3"], results
    else:
        assert set(results) <= {"n3", "broken", "kept", "silence"} and 0 < results["n3"] < 90, results
    all_is_well(slow)


@pytest.mark.corosync
def test_node_dies():
    """A node loses its power while connections are handed to it: they go to others, or end; none is mixed up."""
    def one(number):
        try:
            connection = raw.connect(lab.client, at(lab), timeout=5)
            response = ask(lab, "/100k", connect=connection, X_To="n3, n1" if number % 2 else "n3, self", X_Read=30)
        except (OSError, EOFError):
            return "broken"
        if response.status == 299:  # nobody was sure of the ring: the program has it still
            assert not set(json.loads(response.text)) - {-errno.EHOSTUNREACH, -errno.ECONNREFUSED, -errno.EAGAIN}
            return "kept"
        assert right(response), response.fields
        return response.node

    with Lab(nodes=3, membership="corosync", policy="uri-hash", token=500) as lab, contextlib.ExitStack() as stack:
        serve(lab, stack)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            assert set(pool.map(one, range(60))) == {"n3"}
            during = [pool.submit(one, number) for number in range(200)]
            lab.kill("n3")
            nodes = {future.result() for future in during}
            assert nodes <= {"n1", "n2", "n3", "kept", "broken"}
            wait_for(lambda: set(pool.map(one, range(20))) == {"n1", "n2"}, "n1 and n2 to serve all", 20)


def test_example(lab):
    """The program that is shipped: uploads to n2, all else stays."""
    body = random.Random(2).randbytes(300_000)
    for _ in range(6):
        with raw.connect(lab.client, at(lab, "example")) as sock:
            sock.sendall(raw.head("/upload", "POST", Content_Length=len(body), Connection="close") + body)
            response = raw.receive(sock)
            assert response.node == "n2"
            assert json.loads(response.text)["sha256"] == hashlib.sha256(body).hexdigest()
    nodes = set()
    for _ in range(40):
        with raw.connect(lab.client, at(lab, "example")) as sock:
            sock.sendall(raw.head("/100k", Connection="close"))
            response = raw.receive(sock)
            assert right(response)
            nodes.add(response.node)
    assert nodes == set(ALL)
