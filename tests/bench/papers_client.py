#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The clients of papers_lab.py: run in the namespace of the lab's client, with one JSON object of options as argument.

    loop      each of the connections asks for one file after the other, as fast as it gets them
    sessions  each session downloads a large file at a limited speed, looks at pages (small files), thinks, and so on

The order of requests comes from the seed alone. Bodies are thrown away in the kernel (MSG_TRUNC), but for their
beginning, which says whose they are. One line is printed when each phase begins, and "RESULT {json}" at the end.
"""
import collections
import heapq
import json
import random
import select
import socket
import sys
import time

from papers_content import CONTENTS, MARK

PHASES = ("fill", "settle", "measure")
TIMEOUT_S = 30.0
READ_BYTES = 1 << 20
PACE_BYTES = 64 << 10
HEAD_BYTES = 4096
DRAWS = 200000
PAGE, DOWNLOAD, DYNAMIC = KINDS = "page", "download", "dynamic"


class Slot:
    """One connection at a time, and what is under way on it."""

    def __init__(self, number):
        self.number = number
        self.sock = None
        self.left = 0  # requests that the connection may still carry
        self.pages = 0  # until the next download
        self.kind = PAGE
        self.file = 0
        self.begun = 0.0
        self.head = b""
        self.size = None  # of the body, once the head is there
        self.got = 0  # of the body
        self.node = None
        self.interest = 0
        self.turn = 0  # tells a timer of an earlier request


class Client:
    """All slots, one thread."""

    def __init__(self, options):
        self.options = options
        name, arguments = options["content"]
        self.content = CONTENTS[name](**arguments)
        everything = options["mode"] == "loop"
        self.draws = {PAGE: self._draws(0, None if everything else lambda number: number >= self.content.large),
                      DOWNLOAD: self._draws(1, lambda number: number < self.content.large)}
        self.rng = random.Random(options["seed"])
        self.poll = select.epoll()
        self.slots = {}  # by file descriptor
        self.timers = []
        self.buffer = bytearray(READ_BYTES)
        self.errors = collections.Counter()
        self.phase = None
        self.clear()

    def _draws(self, number, chosen):
        files = self.content.draws(self.options["seed"] * 2 + number, DRAWS, chosen)
        while True:
            yield from files

    def clear(self):
        self.bytes = 0
        self.connections = 0
        self.nodes = collections.Counter()
        self.kinds = {kind: collections.Counter() for kind in KINDS}
        self.latencies = {kind: [] for kind in KINDS}

    # --- one request

    def ask(self, slot):
        slot.kind = PAGE
        if self.options["mode"] == "sessions":
            slot.kind = PAGE if slot.pages else DOWNLOAD
            slot.pages = slot.pages - 1 if slot.pages else self.options["pages"]
        slot.file = next(self.draws[slot.kind])
        if self.content.is_dynamic(slot.file):
            slot.kind = DYNAMIC
        slot.turn += 1
        slot.head, slot.size, slot.got, slot.node = b"", None, 0, None
        slot.begun = time.monotonic()
        if slot.sock is None:
            self.connect(slot)
        else:
            self.send(slot)

    def connect(self, slot):
        slot.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        if slot.kind == DOWNLOAD:  # the server is to feel the limited speed
            slot.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * PACE_BYTES)
        slot.sock.connect_ex((self.options["address"], self.options["port"]))
        slot.left = self.options["requests"]
        slot.interest = select.EPOLLOUT
        self.connections += 1
        self.slots[slot.sock.fileno()] = slot
        self.poll.register(slot.sock, slot.interest)

    def watch(self, slot, interest):
        if slot.interest != interest:
            slot.interest = interest
            self.poll.modify(slot.sock, interest)

    def send(self, slot):
        slot.left -= 1
        end = "" if slot.left else "Connection: close\r\n"
        slot.sock.send(f"GET {self.content.path(slot.file)} HTTP/1.1\r\nHost: papers\r\n{end}\r\n".encode())
        self.watch(slot, select.EPOLLIN)

    def close(self, slot):
        del self.slots[slot.sock.fileno()]
        slot.sock.close()  # epoll forgets it
        slot.sock = None

    def fail(self, slot, what):
        self.errors[what] += 1
        self.close(slot)
        self.later(slot, 0.1, self.ask)

    def later(self, slot, seconds, what):
        heapq.heappush(self.timers, (time.monotonic() + seconds, slot.number, slot.turn, slot, what))

    def ready(self, slot, events):
        try:
            if slot.interest & select.EPOLLOUT:
                if events & (select.EPOLLERR | select.EPOLLHUP):
                    self.fail(slot, "connect")
                else:
                    self.send(slot)
            else:
                self.read(slot)
        except BlockingIOError:
            self.watch(slot, select.EPOLLIN)
        except OSError:
            self.fail(slot, "read")

    def read(self, slot):
        if slot.size is None and not self.read_head(slot):
            return
        while slot.got < slot.size:
            want = min(slot.size - slot.got, READ_BYTES)
            if slot.kind == DOWNLOAD:
                now = time.monotonic()
                want = min(want, int(self.options["rate"] * (now - slot.begun)) - slot.got)
                if want < min(PACE_BYTES, slot.size - slot.got):
                    due = slot.begun + (slot.got + min(PACE_BYTES, slot.size - slot.got) + 1) / self.options["rate"]
                    self.watch(slot, 0)
                    self.later(slot, due - now, self.wake)
                    return
            count = slot.sock.recv_into(self.buffer, want, socket.MSG_TRUNC)
            if not count:
                self.fail(slot, "short")
                return
            self.bytes += count
            slot.got += count
        self.complete(slot)

    def wake(self, slot):
        self.ready(slot, select.EPOLLIN)

    def read_head(self, slot):
        """Whether it is complete now; takes the beginning of the body along."""
        data = slot.sock.recv(HEAD_BYTES)
        if not data:
            self.fail(slot, "closed")
            return False
        self.bytes += len(data)
        slot.head += data
        head, blank, body = slot.head.partition(b"\r\n\r\n")
        size = self.content.sizes[slot.file]
        if not blank or len(body) < min(MARK, size):
            return False
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not head.startswith(b"HTTP/1.1 200 "):
            self.fail(slot, "status")
        elif int(fields[b"Content-Length"]) != size or not body.startswith(self.content.mark(slot.file)):
            self.fail(slot, "wrong file")
        else:
            slot.node, slot.size, slot.got = fields[b"X-Node"].decode(), size, len(body)
            return True
        return False

    def complete(self, slot):
        elapsed = time.monotonic() - slot.begun
        self.nodes[slot.node] += 1
        self.latencies[slot.kind].append(elapsed)
        self.kinds[slot.kind][self.quality(slot, elapsed)] += 1
        if not slot.left:
            self.close(slot)
        if self.options["mode"] == "sessions" and not slot.pages:
            if slot.sock:
                self.close(slot)
            self.later(slot, self.rng.expovariate(1 / self.options["think_s"]), self.ask)
        else:
            self.ask(slot)

    def quality(self, slot, elapsed):
        """DTS section 4.4: the speed of a download, the time of a page."""
        if slot.kind == DOWNLOAD:
            speed = slot.size / elapsed / self.options["rate"]
            return "good" if speed >= 0.99 else "tolerable" if speed >= 0.95 else "fail"
        return "good" if elapsed < 3 else "tolerable" if elapsed < 5 else "fail"

    # --- the run

    def run(self):
        slots = [Slot(number) for number in range(self.options["connections"])]
        for slot in slots:
            self.later(slot, self.rng.random() * self.options["spread_s"], self.ask)
        for phase, seconds in zip(PHASES, self.options["seconds"]):
            print(phase, flush=True)
            self.phase = phase
            self.clear()
            begun = time.monotonic()
            self.until(begun + seconds)
            elapsed = time.monotonic() - begun
        self.report(elapsed)

    def until(self, deadline):
        checked = now = time.monotonic()
        while now < deadline:
            while self.timers and self.timers[0][0] <= now:
                _, _, turn, slot, what = heapq.heappop(self.timers)
                if turn == slot.turn:
                    what(slot)
            due = min(self.timers[0][0] if self.timers else deadline, deadline, now + 0.5)
            for descriptor, events in self.poll.poll(max(due - time.monotonic(), 0)):
                if descriptor in self.slots:
                    self.ready(self.slots[descriptor], events)
            now = time.monotonic()
            if now - checked > 1:
                checked = now
                for slot in [slot for slot in self.slots.values() if now - slot.begun > TIMEOUT_S]:
                    self.fail(slot, "timeout")

    def report(self, elapsed):
        everything = [each for latencies in self.latencies.values() for each in latencies]
        print("RESULT", json.dumps({
            "requests": len(everything), "seconds": elapsed, "bytes": self.bytes, "connections": self.connections,
            "nodes": self.nodes, "kinds": self.kinds, "errors": self.errors,
            "p50_ms": percentile_ms(everything, 50), "p99_ms": percentile_ms(everything, 99),
            "p50_ms_of": {kind: percentile_ms(latencies, 50) for kind, latencies in self.latencies.items()}}), flush=True)


def percentile_ms(latencies, percent):
    """Of seconds; 0 if there are none."""
    latencies = sorted(latencies) or [0.0]
    return round(latencies[len(latencies) * percent // 100] * 1e3, 2)


if __name__ == "__main__":
    Client(json.loads(sys.argv[1])).run()
