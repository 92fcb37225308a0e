# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of `inspect = every` from the clients' side share. But for the nodes, they hold with `first` too."""
import contextlib
import itertools
import os
import selectors
import threading
import time

import pytest

import tree
from cluster.membership import serving
from earshotlab import netns, topology, wait_for
from web import raw
from web.reader import Reader, connection

INSPECT = os.environ.get("EARSHOT_INSPECT", "every")  # first: the same clients, the same answers, one node a connection
MOVES = INSPECT == "every"
NODES = 4
VERDICTS = ("handover_", "stay_", "end_", "stray_", "rebuild_")  # counters that tell what became of requests
SETTINGS = {"service.inspect": INSPECT, "service.load_bound": 0}


def start_backends(lab, program="scripted", address=None):
    """That server of tests/lib/web on every node, for the service's addresses if there is none given."""
    address = address or ",".join(lab.net.vips)
    for node in lab.nodes:
        child = node.popen([*tree.module(f"web.{program}"), node.name, address, str(topology.PORT)], stdout=-1)
        assert child.stdout.readline() == "listening\n"
    serving(lab)


def homes(lab, targets, count):
    """{node: that many targets that live there}, each found out on a connection of its own."""
    found = {node.name: [] for node in lab.nodes}
    for target in targets:
        lists = found[raw.ask(lab.client, raw.head(target, Connection="close"))[0].node]
        if len(lists) < count:
            lists.append(target)
        if min(len(each) for each in found.values()) == count:
            return found
    raise AssertionError(f"no {count} targets for each node: {found}")


def there_and_back(lists, number):
    """Endlessly A, B, A, C, A, D, ...: (node, target); each number begins elsewhere, each node's targets take turns."""
    names = sorted(lists)
    names = names[number % len(names):] + names[:number % len(names)]
    turns = {name: itertools.cycle(lists[name][number % 3:] + lists[name][:number % 3]) for name in names}
    for other in itertools.cycle(names[1:]):
        for name in (names[0], other):
            yield name, next(turns[name])


def snmp(lab, *names):
    """The client's counters of /proc/net/snmp and netstat, by name."""
    def read():
        text = ""
        for file in ("snmp", "netstat"):  # of the thread that reads, not of the process
            with open(f"/proc/thread-self/net/{file}", encoding="ascii") as handle:
                text += handle.read()
        return text.splitlines()

    lines = netns.in_namespace(lab.net.client, read)
    found = {}
    for keys, values in zip(lines[::2], lines[1::2]):
        if keys.startswith("Tcp"):
            found.update(zip(keys.split()[1:], map(int, values.split()[1:])))
    return [found[name] for name in names]


class Walker:
    """One connection of walk(): sends the next request when the response to the last is complete."""

    def __init__(self, lab, steps, expect):
        self.sock = raw.connect(lab.client)
        self.sock.setblocking(False)
        self.steps, self.expect, self.seen, self.strays = steps, expect, [], 0
        self.ask()

    def ask(self):
        self.node, self.target = next(self.steps)
        self.response, self.data, self.since = None, b"", time.monotonic()
        self.sock.send(raw.head(self.target))

    def readable(self):
        """Whether a response is complete."""
        piece = self.sock.recv(1 << 18)
        assert piece, f"closed within {self.target}, after {len(self.seen)} responses"
        if self.response is None:
            self.data += piece
            text, end, piece = self.data.partition(b"\r\n\r\n")
            if not end:
                return False
            self.response = raw.Response(text)
        self.response.add(piece)
        length = int(self.response.fields["content-length"])
        assert self.response.size <= length, f"bytes behind {self.target}"
        if self.response.size < length:
            return False
        self.check()
        return True

    def check(self):
        response = self.response
        assert response.status == 200 and response.digest.hexdigest() == self.expect(self.target), self.target
        self.strays += response.node != self.node
        self.seen.append(response.node)


def stuck(lab, walker):
    """All that tells where an unanswered request is, of a Walker or Patient."""
    port = walker.sock.getsockname()[1]
    flows = {node.name: flow for node in lab.nodes for flow in node.ask({"command": "flows", "limit": 50000})["flows"]
             if flow["port"] == port}
    verdicts = {node.name: {name: value for name, value in lab.counters(node.name).items() if value and name.startswith(VERDICTS)}
                for node in lab.nodes}
    return {"port": port, "target": walker.target, "home": walker.node, "seen": walker.seen[-6:], "flows": flows,
            "inspector": raw.inspector(lab, port), "sockets": raw.states(lab, port), "verdicts": verdicts}


def walk(lab, patterns, expect, seconds=None, requests=None, patience=20, strays=0.0):
    """One connection for each pattern (an iterator of nodes and targets) at once, until each has made so many requests
    or that time is over. `expect(target)` is the SHA-256, `strays` the part of the requests that another node may serve
    than the one that should. Returns the connections, whose `seen` are the nodes."""
    end = time.monotonic() + (seconds or 3600)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        walkers = []
        for pattern in patterns:
            walker = Walker(lab, pattern, expect)
            stack.callback(walker.sock.close)
            selector.register(walker.sock, selectors.EVENT_READ, walker)
            walkers.append(walker)
        while selector.get_map():
            for key, _ in selector.select(0.5):
                walker = key.data
                if not walker.readable():
                    continue
                if len(walker.seen) == requests or time.monotonic() > end:
                    selector.unregister(walker.sock)
                else:
                    walker.ask()
            late = [key.data for key in selector.get_map().values() if time.monotonic() - key.data.since > patience]
            assert not late, f"no complete answer in {patience} s: {[stuck(lab, walker) for walker in late]}"
    stray, count = sum(walker.strays for walker in walkers), sum(len(walker.seen) for walker in walkers)
    assert not MOVES or stray <= strays * count, f"{stray} of {count} requests served by another node than theirs"
    return walkers


def steps(lab, count, number=0):
    """Nodes and targets; each but the first moves the connection."""
    return list(itertools.islice(there_and_back(lab.homes, number), count))


def ask(sock, reader, asked):
    """One after the other, each answered by its own node."""
    for node, target in asked:
        sock.sendall(raw.head(target))
        response = reader.response(target)
        assert not MOVES or response.node == node, (target, response.node, node)


def to_the_end(sock, reader):
    """A last request: behind its response there is the end of the stream and not a byte before it."""
    sock.sendall(raw.head("/len/99?last", Connection="close"))
    reader.response("/len/99?last")
    with pytest.raises(EOFError):
        reader.more()
    assert reader.data == b""


class Mover(threading.Thread):
    """A connection that moves with every request, until it is ended: whatever others do must not show here."""

    def __init__(self, lab, number=0):
        super().__init__(daemon=True)
        self.error, self.count, self.ended = None, 0, threading.Event()
        self.sock = raw.connect(lab.client)
        self.steps = there_and_back(lab.homes, number)
        self.start()

    def run(self):
        try:
            with self.sock:
                reader = Reader(self.sock)
                while not self.ended.is_set():
                    ask(self.sock, reader, [next(self.steps)])
                    self.count += 1
                to_the_end(self.sock, reader)
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(20)
        assert not self.is_alive() and self.error is None and self.count, repr(self.error)


class Patient(threading.Thread):
    """A connection that moves with every request, and is made anew if it breaks: what it reads is right all the same."""

    def __init__(self, lab, number, is_over):
        super().__init__(daemon=True)
        self.lab, self.steps, self.is_over = lab, there_and_back(lab.homes, number), is_over
        self.count, self.broken, self.error = 0, 0, None
        self.sock, self.node, self.target, self.seen = None, None, None, []

    def run(self):
        try:
            while not self.is_over.is_set():
                try:
                    self.talk()
                except (ConnectionError, EOFError):
                    self.broken += 1
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def talk(self):
        with connection(self.lab) as (self.sock, reader):
            self.sock.settimeout(60)
            while not self.is_over.is_set():
                self.node, self.target = next(self.steps)
                self.sock.sendall(raw.head(self.target))
                self.seen = [*self.seen[-5:], reader.response(self.target).node]
                self.count += 1
                time.sleep(0.002)  # CPU time for daemons that start: who has waited for one repeats his request ever more rarely
            to_the_end(self.sock, reader)


@contextlib.contextmanager
def patients(lab, most_broken):
    """Eight, whom something happens to; when it is over, all go on, and no more than so many have been broken."""
    is_over = threading.Event()
    many = [Patient(lab, number, is_over) for number in range(8)]
    for each in many:
        each.start()
    try:
        yield
        count = [each.count for each in many]
        # For less time than a Patient waits, so that the request is still there to be looked for.
        wait_for(lambda: all(each.count > seen + 20 for each, seen in zip(many, count)), "all go on", 40,
                 lambda: [(each.count - seen, each.broken, each.error or each.count == seen and stuck(lab, each))
                          for each, seen in zip(many, count)])
    finally:
        is_over.set()
        for each in many:
            each.join(60)
    assert not any(each.is_alive() or each.error for each in many), [each.error for each in many]
    assert sum(each.broken for each in many) <= most_broken, [each.broken for each in many]
