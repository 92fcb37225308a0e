#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An HTTP/1.1 server that writes down what it does, before it says so: ledger NODE ADDRESS,... PORT FILE

Each request is for a target of its own, which says all about it:

    POST        the body is request_body(target); a line "NODE METHOD TARGET ok" is added to FILE, or "... bad" if it is
                another one
    GET         a line likewise

The answer's body is answer_body(node, target): no two nodes' are alike, in content or length, so what is mixed of two
answers is neither. SIGUSR1 closes the listener, SIGUSR2 opens it again; open connections go on.
"""
import hashlib
import os
import signal
import sys
import threading

from web import backend

_SIZES = (50, 50, 50, 2000, 2000, 60000)


def _seed(text):
    return hashlib.sha256(text.encode()).digest()


def request_body(target):
    """What a POST of this target has in it: one segment in most cases."""
    return backend.content(f"request {target}", (40, 40, 40, 4000)[_seed(target)[1] % 4])


def answer_body(node, target):
    return backend.content(f"{node} {target}", _SIZES[_seed(target)[0] % len(_SIZES)] + 16 * int(node[1:]))


def read(path):
    """The ledger's lines: (node, method, target, whether the request's body was right)."""
    try:
        with open(path, encoding="ascii") as handle:
            return [(node, method, target, word == "ok") for node, method, target, word in map(str.split, handle)]
    except FileNotFoundError:
        return []


class Handler(backend.Handler):
    def respond(self):
        body = b"".join(self.body())
        right = body == (request_body(self.target) if self.method == "POST" else b"")
        os.write(LEDGER, f"{backend.NODE} {self.method} {self.target} {'ok' if right else 'bad'}\n".encode())
        self.reply(200, answer_body(backend.NODE, self.target))
        return self.fields.get("connection", "").lower() != "close"


def main():
    """Signals are taken by this thread alone; whoever has a connection has a thread of his own."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM})
    servers = []
    received = signal.SIGUSR2
    while received != signal.SIGTERM:
        if received == signal.SIGUSR2 and not servers:
            servers = backend.servers(Handler)
            for server in servers:
                threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            print("listening", flush=True)
        if received == signal.SIGUSR1:
            for server in servers:
                server.shutdown()
                server.server_close()
            servers = []
        received = signal.sigwait({signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM})


if __name__ == "__main__":
    backend.NODE = sys.argv[1]
    LEDGER = os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    main()
