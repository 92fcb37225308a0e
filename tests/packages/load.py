# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that go on asking until they are told to stop, and forgive nothing: new connections, and lasting ones."""
import http.client
import threading
import time

from earshotlab import in_namespace

TIMEOUT = 10.0


class Load:
    """As a context manager: asks inside the block; after it, `failures` are to be none and `requests` many."""

    def __init__(self, namespace, host, new=3, lasting=3):
        self.namespace = namespace
        self.host = host
        self.requests = {"new": 0, "lasting": 0}
        self.failures = []
        self.longest = 0.0
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=in_namespace, args=(namespace, self._ask, kind))
                         for kind in ["new"] * new + ["lasting"] * lasting]

    def _ask(self, kind):
        connection = None
        while not self._end.is_set():
            begun = time.monotonic()
            try:
                if connection is None or kind == "new":
                    connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT)
                connection.request("GET", "/", headers={"Connection": "close"} if kind == "new" else {})
                response = connection.getresponse()
                body = response.read()
                why = None if response.status == 200 and b"nginx" in body else f"status {response.status}"
                if kind == "lasting" and response.will_close:
                    connection = None  # nginx: keepalive_requests
            except (OSError, http.client.HTTPException) as error:
                why, connection = f"{type(error).__name__}: {error}", None
            took = time.monotonic() - begun
            with self._lock:
                self.requests[kind] += 1
                self.longest = max(self.longest, took)
                if why:
                    self.failures.append(f"{kind}, {took:.3f} s: {why}")
            self._end.wait(0.01)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self._threads:
            thread.join()
