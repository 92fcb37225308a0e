# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that ask again and again from an address of their own, each time on a connection of its own."""
import contextlib
import threading
import time

from web import raw


class Client(threading.Thread):
    """Asks again and again from one address, each time on a connection of its own, and gives up after a while."""

    def __init__(self, lab, source, timeout, pause=0.1):
        super().__init__(daemon=True)
        self.lab, self.source, self.timeout, self.pause, self.results, self.is_over = lab, source, timeout, pause, [], False

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            try:
                with raw.connect(self.lab.client, timeout=self.timeout, before=lambda s: s.bind((self.source, 0))) as sock:
                    sock.sendall(raw.head("/node", Connection="close"))
                    result = raw.receive(sock).node
            except (OSError, AssertionError) as error:
                result = type(error).__name__
            self.results.append((began, result, time.monotonic() - began))
            time.sleep(self.pause)


@contextlib.contextmanager
def clients(lab, source, timeout, count):
    """So many at once; yields them, and ends them."""
    all_of_them = [Client(lab, source, timeout) for _ in range(count)]
    for client in all_of_them:
        client.start()
    try:
        yield all_of_them
    finally:
        for client in all_of_them:
            client.is_over = True
        for client in all_of_them:
            client.join()


def failed(asked, since=0.0):
    return [result for client in asked for result in client.results if result[0] >= since and not result[1].startswith("n")]


def served(asked, since=0.0):
    return [result for client in asked for result in client.results if result[0] >= since and result[1].startswith("n")]
