# SPDX-License-Identifier: GPL-2.0-or-later
"""A node is drained whose HTTPS connections would stay, since not each request is placed: they end between two requests, and come again
to another node."""
import threading

import pytest

from cluster import secure as cluster
from cluster.membership import TOKEN, settled
from cluster.secure import ALL
from earshotlab import wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]


@pytest.fixture(scope="module", name="lab", params=["first", "never"])
def _lab(request):
    with cluster.lab_of({"https.inspect": request.param}, membership="corosync", policy="wrr", token=int(TOKEN * 1000),
                        timeout=60) as lab:
        cluster.start_backends(lab)
        settled(lab, ALL, 60)
        yield lab


class Client(threading.Thread):
    """Asks again and again on a kept connection, and on another one when that has ended between two requests."""

    def __init__(self, lab):
        super().__init__()
        self.lab, self.nodes, self.ends, self.error, self.is_over = lab, [], 0, None, False

    def run(self):
        try:
            while not self.is_over:
                sock, reader = cluster.connect(self.lab, timeout=20)
                with sock:
                    self.ask(sock, reader)
        except (OSError, EOFError, AssertionError) as error:
            self.error = repr(error)

    def ask(self, sock, reader):
        while not self.is_over:
            target = f"/len/{len(self.nodes)}"
            try:
                sock.sendall(raw.head(target))
                self.nodes.append(reader.response(target).node)
            except (BrokenPipeError, ConnectionResetError, EOFError) as error:
                if reader.data:
                    raise AssertionError("it ended within a response") from error
                self.ends += 1
                return


def on(lab, node):
    """A connection that this node serves, and has answered once."""
    while True:
        sock, reader = cluster.connect(lab, timeout=20)
        sock.sendall(raw.head("/len/1"))
        if reader.response("/len/1").node == node:
            return sock, reader
        sock.close()


def test_drain(lab):
    idle, _ = on(lab, "n2")
    busy, busy_reader = on(lab, "n2")
    clients = []
    try:
        while len(clients) < 6 or not any("n2" in client.nodes for client in clients):
            clients.append(Client(lab))
            clients[-1].start()
            wait_for(lambda: clients[-1].nodes or clients[-1].error, "its first answer", 20)
        busy.sendall(raw.head("/chunks/20/100"))
        lab.node("n1").exec(["earshot", "drain", "n2"])
        assert idle.recv(1) == b""  # close_notify: it is over, in order
        assert busy_reader.response().status == 200
        assert busy.recv(1) == b""
        wait_for(lambda: all(len(client.nodes) > 40 and "n2" not in client.nodes[-20:] or client.error for client in clients),
                 "no more requests at n2", 30, lambda: [(client.nodes[-3:], client.error) for client in clients])
        ends = [client.ends for client in clients]
        assert max(ends) <= 2, ends
        before = [len(client.nodes) for client in clients]
        wait_for(lambda: all(len(client.nodes) > count + 20 for client, count in zip(clients, before)), "more answers", 30)
        assert [client.ends for client in clients] == ends, "kept connections of other nodes end"
    finally:
        for client in clients:
            client.is_over = True
        for client in clients:
            client.join()
        lab.node("n1").exec(["earshot", "undrain", "n2"])
        for sock in (idle, busy):
            sock.close()
    assert not any(client.error for client in clients), [client.error for client in clients]
    wait_for(lambda: on(lab, "n2")[0].close() is None, "n2 serves again", 30)
