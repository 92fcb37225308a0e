# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that never stop, so that a test can ask afterwards what went wrong, when, and for whom.

    with Traffic(lab, kept=40, fresh=10) as traffic:
        began = traffic.now()
        lab.kill("n2")
        traffic.run(5)
    traffic.failures("kept", nodes={"n1", "n3", "n4"})
"""
import asyncio
import collections
import itertools
import socket
import threading
import time

from earshotlab import topology, wait_for
from web import raw

Answer = collections.namedtuple("Answer", "kind client began seconds node")
# `node` is the one that gave the connection's last answer, None before the first; `idle` says that no request was open;
# `known` tells the sockets of one that was silent for too long.
Failure = collections.namedtuple("Failure", "kind client began at error node idle target known")
Request = collections.namedtuple("Request", "method target body")
Open = collections.namedtuple("Open", "kind client began request port")


class WrongAnswer(Exception):
    """What came is no answer to what was asked."""


class Connection:
    """One connection of the lab's client, to each address of the service in turn; a response is read by its Content-Length."""

    turns = itertools.count()

    def __init__(self, machine):
        self.machine, self.socket, self.data, self.node = machine, None, b"", None

    async def open(self):
        vips = self.machine.lab.net.vips
        vip = vips[next(self.turns) % len(vips)]
        self.socket = self.machine.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET)
        self.socket.setblocking(False)
        await asyncio.get_running_loop().sock_connect(self.socket, (vip, topology.PORT))

    async def ask(self, request, close=False):
        loop = asyncio.get_running_loop()
        extra = "Connection: close\r\n" if close else ""
        if request.body:
            extra += f"Content-Length: {len(request.body)}\r\n"
        head = f"{request.method} {request.target} HTTP/1.1\r\nHost: lab\r\n{extra}\r\n".encode()
        await loop.sock_sendall(self.socket, head + request.body)
        while b"\r\n\r\n" not in self.data:
            await self._more()
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        try:
            lines = head.decode().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
            node, length = headers["x-node"], int(headers["content-length"])
            version, status = lines[0].split(" ")[:2]
        except (ValueError, KeyError):
            raise WrongAnswer(head[:500]) from None
        if not version.startswith("HTTP/1.1"):
            raise WrongAnswer(head[:500])
        if status != "200":
            raise ConnectionError(lines[0])
        while len(self.data) < length:
            await self._more()
        body, self.data = self.data[:length], self.data[length:]
        self.node = node
        return body

    async def _more(self):
        data = await asyncio.get_running_loop().sock_recv(self.socket, 65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.data += data

    def close(self):
        if self.socket:
            self.socket.close()


class Traffic:
    """`kept` clients with persistent connections, which open a new one when theirs breaks, and `fresh` ones with a
    connection for each request. `pause`: seconds between the requests of a client."""

    CONNECTION = Connection

    def __init__(self, lab, kept=20, fresh=10, target="/1k", pause=0.02, patience=15):
        self.lab, self.counts, self.target = lab, {"kept": kept, "fresh": fresh}, target
        self.pause, self.patience = pause, patience
        self.answers, self.broken, self.wrong = [], [], []
        self.open = {}  # by client: what it waits for
        self.numbers = itertools.count()
        self.stopping = False
        self.thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    @staticmethod
    def now():
        return time.monotonic()

    def run(self, seconds):
        end = self.now() + seconds
        while self.now() < end:
            time.sleep(min(0.05, max(0, end - self.now())))
            assert self.thread.is_alive(), "the clients ended"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, failed, *_):
        self.stopping = True
        self.thread.join(1 if failed else self.patience + 10)
        assert failed or not self.thread.is_alive(), f"clients wait still: {list(self.open.values())[:5]}"

    async def _main(self):
        await asyncio.gather(*(self._client(kind, number) for kind, count in self.counts.items()
                               for number in range(count)))

    async def _client(self, kind, number):
        connection = self.CONNECTION(self.lab.client)
        fresh = kind == "fresh"
        await asyncio.sleep(self.pause * number / max(1, self.counts[kind]))
        while not self.stopping:
            began, idle = self.now(), True
            request = self.request(next(self.numbers))
            try:
                if not connection.socket:
                    self.open[kind, number] = Open(kind, number, began, request, None)
                    await asyncio.wait_for(connection.open(), self.patience)
                idle = False
                self.open[kind, number] = Open(kind, number, began, request, connection.socket.getsockname()[1])
                body = await asyncio.wait_for(connection.ask(request, fresh), self.patience)
                if not self.is_right(request, connection.node, body):
                    raise WrongAnswer(f"{len(body)} bytes, said to be of {connection.node}: {body[:100]}")
                self.answers.append(Answer(kind, number, began, self.now() - began, connection.node))
                if not fresh:
                    await asyncio.sleep(self.pause)
                    continue
            except WrongAnswer as error:
                self.wrong.append((self.now(), kind, request, error))
            except (OSError, asyncio.TimeoutError) as error:
                silent = connection.socket and isinstance(error, asyncio.TimeoutError)
                known = raw.states(self.lab, connection.socket.getsockname()[1]) if silent else None
                self.broken.append(Failure(kind, number, began, self.now(), error, connection.node, idle,
                                           request.target, known))
            finally:
                self.open.pop((kind, number), None)
            connection.close()
            connection = self.CONNECTION(self.lab.client)
            await asyncio.sleep(self.pause)
        connection.close()

    # What is asked, and what is a right answer

    def request(self, number):
        return Request("GET", f"{self.target}?{number}", b"")

    def is_right(self, request, node, body):
        return True

    # Afterwards, or in between

    def failures(self, kind=None, nodes=None, since=0):
        """Of connections to these nodes; a fresh connection has none before its answer."""
        return [f for f in list(self.broken) if kind in (None, f.kind) and f.at >= since
                and (nodes is None or f.node in nodes)]

    def slow(self, since, kind="fresh"):
        """Seconds that each request took which began since then, the longest first."""
        return sorted((a.seconds for a in list(self.answers) if a.kind == kind and a.began >= since), reverse=True)

    def nodes(self, since=0):
        return {a.node for a in list(self.answers) if a.began >= since}

    def wait_nodes(self, nodes, since=0, timeout=30):
        """Until all these nodes, and no others, have answered something that was asked since then."""
        wait_for(lambda: self.nodes(since) == set(nodes), f"answers of {', '.join(nodes)}", timeout,
                 lambda: f"answers of {self.nodes(since)}")

    def assert_whole(self, since=0):
        """Nothing failed."""
        assert not self.failures(since=since), self.failures(since=since)[:5]
        assert not self.wrong, self.wrong[:5]


def distribution(seconds):
    """min/p50/p90/p99/max, for a line of output."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    picks = [ordered[min(len(ordered) - 1, int(len(ordered) * q))] for q in (0, .5, .9, .99, 1)]
    return "/".join(f"{s:.3f}" for s in picks) + f" s (min/p50/p90/p99/max of {len(ordered)})"
