# SPDX-License-Identifier: GPL-2.0-or-later
"""What clients notice of a crash: those that connect meanwhile, and those that have idle connections."""
import itertools
import select
import socket
import threading
import time

from earshotlab import LabError, wait_for
from web import raw

from .membership import ALL

STEP = 0.02  # seconds between two new connections to the share of one node
BEFORE = 1  # seconds of new connections before the deed

_next_port = itertools.cycle(range(20000, 30000))  # what the kernel never chooses: topology.py


def fresh_ports(count):
    return list(itertools.islice(_next_port, count))


def ports(lab, count):
    """So many fresh client ports for each node, whose connections it inspects when all are there."""
    found = {node.name: [] for node in lab.nodes}
    while min(map(len, found.values())) < count:
        port = next(_next_port)
        found[raw.inspector(lab, port)].append(port)
    return {node: some[:count] for node, some in found.items()}


def _begin(lab, port, address):
    """A client's connection that is being made."""
    sock = lab.client.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", port))
    sock.connect_ex(address)
    return sock


def knock(lab, deed, seconds, of_shares, patience, address=None):
    """New connections to each share, all the time; after BEFORE, `deed` is done; so long after that no more are made, and `patience`
    is for those that are still being made then. For each share, when each began, counted from the deed, and how long the handshake
    took; None: it has not ended. `of_shares` has the client ports of each."""
    order = [(share, port) for row in zip(*([(s, p) for p in some] for s, some in of_shares.items())) for share, port in row]
    poll, waiting, results = select.poll(), {}, {share: [] for share in of_shares}
    doer, begun, done = threading.Thread(target=deed), None, None
    start = time.monotonic()
    for number, (share, port) in enumerate(order + [(None, None)]):
        due = start + number * STEP / len(of_shares) + (0 if share else patience)
        if begun is None and due > start + BEFORE:
            begun = time.monotonic()
            doer.start()
        if begun and not done and not doer.is_alive():
            done = time.monotonic()
        if share and done and due > done + seconds:
            share, due = None, due + patience
        while True:
            for fd, _ in poll.poll(max(0, due - time.monotonic()) * 1000):
                sock, share_of, began = waiting.pop(fd)
                poll.unregister(fd)
                took = None if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) else time.monotonic() - began
                results[share_of].append((began, took))
                raw.reset(sock)
            if time.monotonic() >= due or (not share and not waiting):
                break
        if not share:
            break
        sock = _begin(lab, port, address or raw.service(lab))
        waiting[sock.fileno()] = (sock, share, time.monotonic())
        poll.register(sock.fileno(), select.POLLOUT)
    for sock, share, began in waiting.values():
        results[share].append((began, None))
        sock.close()
    doer.join()
    if number == len(order):
        raise LabError(f"{len(order)} new connections were not enough: the deed took too long")
    return {share: sorted(((began - begun, took) for began, took in some), key=lambda r: r[0]) for share, some in results.items()}


def slow(results, limit):
    """Of those that took longer than this: when they began, and how long they took."""
    return [(round(began, 3), took and round(took, 3)) for began, took in results if took is None or took > limit]


def idle(lab, count, nodes=ALL, address=None):
    """{socket: the node that has it}, of connections that have had an answer; without `nodes` None, each of these has some."""
    found = {}
    for _ in range(count):
        sock = raw.connect(lab.client, address, timeout=10)
        sock.sendall(raw.head("/1k"))
        found[sock] = raw.receive(sock).node
    assert nodes is None or set(found.values()) == set(nodes)
    return found


def kept(lab):
    """{(port, the node that has the connection): the nodes that keep it for that one}."""
    found = {}
    for node in lab.nodes:
        for flow in node.ask({"command": "flows", "limit": 100000})["kept"]["flows"]:
            found.setdefault((flow["port"], flow["node"]), set()).add(node.name)
    return found


def wait_kept(lab, connections):
    wanted = {(sock.getsockname()[1], node) for sock, node in connections.items()}
    wait_for(lambda: wanted == set(kept(lab)), "all idle connections kept, and no other")
