# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests on many open connections, each sent at its time, by one thread; and when each was answered."""
import dataclasses
import selectors
import time

from web import raw


@dataclasses.dataclass
class Asked:
    """One request. Times are in seconds since the first; `error` is an exception's class, or None."""
    at: float
    sent: float = None
    ended: float = None
    node: str = None
    error: type = None
    data: bytes = b""

    @property
    def took(self):
        return self.ended - self.sent

    def add(self, piece):
        """Returns whether the response is complete."""
        if not piece:
            raise EOFError("the connection ended")
        self.data += piece
        text, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return False
        response = raw.Response(text)
        assert response.status < 300, text
        self.node = response.node
        return len(body) >= int(response.fields.get("content-length", 0))


class _Round:
    def __init__(self, plan):
        self.asked = {sock: Asked(at) for at, sock, _ in plan}
        self.due = sorted(plan, key=lambda one: one[0], reverse=True)
        self.selector = selectors.DefaultSelector()
        self.began = time.monotonic()

    def now(self):
        return time.monotonic() - self.began

    def end(self, sock, error=None):
        self.asked[sock].ended, self.asked[sock].error = self.now(), error
        self.selector.unregister(sock)

    def send(self):
        while self.due and self.due[-1][0] <= self.now():
            _, sock, request = self.due.pop()
            self.asked[sock].sent = self.now()
            self.selector.register(sock, selectors.EVENT_READ)
            try:
                sock.sendall(request)
            except OSError as error:
                self.end(sock, type(error))

    def hear(self, patience):
        for key, _ in self.selector.select(patience):
            try:
                if self.asked[key.fileobj].add(key.fileobj.recv(65536)):
                    self.end(key.fileobj)
            except (OSError, EOFError) as error:
                self.end(key.fileobj, type(error))


def ask(plan, patience=60.0):
    """Carries out a plan of (time, socket, request), a socket once: {socket: Asked}. What is not over after `patience` seconds
    ends with a TimeoutError."""
    one = _Round(plan)
    while one.due or one.selector.get_map():
        one.send()
        one.hear(max(0.0, one.due[-1][0] - one.now()) if one.due else 1.0)
        if one.now() > patience:
            for key in list(one.selector.get_map().values()):
                one.end(key.fileobj, TimeoutError)
            break
    one.selector.close()
    return one.asked


def ask_all(socks, request, patience=60.0, over=0.0):
    """The same request on all of them, at once or spread over so many seconds."""
    return ask([(number * over / len(socks), sock, request) for number, sock in enumerate(socks)], patience)


def slowest(asked, part=1.0):
    """Of those that were answered, how long the slowest took, or that at the `part`-th place."""
    took = sorted(one.took for one in asked if not one.error)
    return took[min(int(len(took) * part), len(took) - 1)] if took else 0.0
