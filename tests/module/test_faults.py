# SPDX-License-Identifier: GPL-2.0-or-later
"""Allocations that fail, one after another and by chance (faults.h): the module says so or drops a packet, and goes on.

A client's stream may be late or end for it. It is never wrong, and when there is memory again everybody is served.
"""
import errno
import http.client
import itertools
import os
import threading
import time

import pytest

import ko
from earshotlab import Lab, netns, server, wait_for
from module_control import FLOW, opened, params, refused
from packets.tables_module import (ATTR_CONFIG, ATTR_RING0, CMD_ATTACH, CMD_CONFIGURATION, CMD_CONFIGURE, CMD_CONNECTION,
                                   CMD_CONNECTIONS, CMD_COUNTERS, CMD_END_UNPROVEN, CMD_FLOWS, CMD_GET, CMD_NEW,
                                   CMD_REMOVE, DOWNLOADS, DUMP, KEPTS, RING_PARTS, STATE, Control, attribute)
from web import raw

CMD_LOADS = 7
ONE_IN = 12
FAILED, SERVED = 80, 25  # at least
LIMIT_S = 120
FILES = ("1k", "13k", "100k")


def parameter(name, value=None):
    path = f"/sys/module/earshot/parameters/{name}"
    if value is None:
        with open(path, encoding="ascii") as handle:
            return int(handle.read())
    with open(path, "w", encoding="ascii") as handle:
        handle.write(str(value))


@pytest.fixture(autouse=True)
def faulty(module):
    """The module that can fail, in place of the other; when the test is over, nothing of it is left."""
    assert ko.unload() == 0
    ko.load(ko.FAULTS)
    assert ko.traces(), "the kernel does not know who allocated what: boot it with slub_debug=FZPU"
    before = ko.kept()
    yield
    parameter("fail_one_in", 0)
    parameter("fail_at", 0)
    deadline = time.monotonic() + ko.PATIENCE_S
    while left := ko.kept() - before:
        assert time.monotonic() < deadline, "still allocated:\n" + "\n".join(sorted(left))
        time.sleep(0.1)
    ko.unload_patiently()


def sweep(step, undo=lambda: None):
    """Does `step` with its first allocation failing, then with its second, ... until none of its fails; how many did."""
    for at in itertools.count(1):
        parameter("fail_at", at)
        try:
            step()
        except OSError as error:
            assert error.errno == errno.ENOMEM, (at, error)
            assert parameter("fail_at") == 0, f"out of memory, and nothing has failed at {at}"
            continue
        left = parameter("fail_at")
        parameter("fail_at", 0)
        if left:
            return at - 1
        undo()  # it did without


def test_commands(control, namespace):
    """Each command says ENOMEM for each of its allocations, and nothing of it has been done."""
    new = params(control)

    def make():
        try:
            control.ask(CMD_NEW, new)
        except OSError:
            parameter("fail_at", 0)
            refused(errno.ENOENT, control.ask, CMD_COUNTERS)
            raise

    assert sweep(make, lambda: control.ask(CMD_REMOVE)) >= 8
    assert sweep(lambda: control.ask(CMD_GET)) == 1
    assert sweep(lambda: control.ask(CMD_COUNTERS)) == 1
    assert sweep(lambda: control.ask(CMD_LOADS)) == 2
    sweep(lambda: control.ask(CMD_ATTACH))
    assert sweep(lambda: os.close(netns.in_namespace(namespace, opened, STATE))) == 1
    # The first time, each of these is made.
    assert sweep(lambda: os.close(netns.in_namespace(namespace, opened, KEPTS))) == 4
    assert sweep(lambda: os.close(netns.in_namespace(namespace, opened, DOWNLOADS))) == 5
    # New queues for the same node: it stays whole with the ones that it had.
    assert sweep(lambda: control.ask(CMD_NEW, new)) >= 2
    assert control.ask(CMD_COUNTERS)


def test_commands_of_a_cluster():
    """The same of what needs a configuration: a daemon's."""
    with Lab(nodes=1, datapath="module") as lab:
        name = lab.node("n1").namespace
        c = netns.in_namespace(name, Control)
        try:
            answer = dict(c.ask(CMD_CONFIGURATION))
            same = b"".join(attribute(kind, answer[kind]) for kind in (ATTR_CONFIG, *range(ATTR_RING0, ATTR_RING0 + RING_PARTS)))
            assert sweep(lambda: c.ask(CMD_CONFIGURATION)) == 1
            assert sweep(lambda: c.ask(CMD_CONFIGURE, same)) == 1
            for command in (CMD_FLOWS, CMD_CONNECTIONS):
                sweep(lambda command=command: c.ask(command, flags=DUMP))
            sweep(lambda: c.ask(CMD_END_UNPROVEN))
            parameter("fail_at", 1)
            refused(errno.ENOTCONN, c.ask, CMD_CONNECTION, FLOW)
            parameter("fail_at", 0)
        finally:
            c.close()
        assert lab.client.get("/1k")[0] == 200


def unfinished(node):
    return node.exec(["ss", "-Htan", "state", "connected", "exclude", "time-wait"]).stdout


class Client(threading.Thread):
    """Asks for files, several on a connection, and compares what comes. What does not come is no fault of its."""

    def __init__(self, lab, stop):
        super().__init__()
        self.lab, self.stop = lab, stop
        self.served, self.wrong = 0, []

    def run(self):
        for number in itertools.count():
            if self.stop.is_set():
                return
            connection = raw.http_connection(self.lab.client, 5)
            try:
                for name in FILES[number % 3:] + FILES[:number % 3]:
                    connection.request("GET", f"/{name}")
                    response = connection.getresponse()
                    body = response.read()  # raises for a body that is not whole
                    if response.status != 200 or body != server.file_content(name, server.FILES[name]):
                        self.wrong.append((name, response.status, len(body)))
                        return
                    self.served += 1
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()


def test_traffic():
    """One allocation in twelve fails: in handshakes, handovers, rebuilding, moves and what is known of connections."""
    stop = threading.Event()
    with Lab(nodes=2, datapath="module", settings={"service.inspect": "every"}) as lab:
        clients = [Client(lab, stop) for _ in range(3)]
        parameter("fail_one_in", ONE_IN)
        began = time.monotonic()
        for client in clients:
            client.start()
        try:
            while parameter("failed") < FAILED or sum(client.served for client in clients) < SERVED:
                assert time.monotonic() < began + LIMIT_S, (parameter("failed"), [client.served for client in clients])
                time.sleep(0.2)
        finally:
            stop.set()
            for client in clients:
                client.join()
            parameter("fail_one_in", 0)
        assert not any(client.wrong for client in clients), [client.wrong for client in clients]
        wait_for(lambda: lab.client.get("/1k")[0] == 200, "a server, with memory again", ko.PATIENCE_S)
        for name in FILES * 4:
            status, _, body = lab.client.get(f"/{name}")
            assert status == 200 and body == server.file_content(name, server.FILES[name])
        # A closed socket that waits for its client would keep its namespace, and so the node, for minutes.
        deadline = time.monotonic() + ko.PATIENCE_S
        while left := [unfinished(machine) for machine in (lab.node("n1"), lab.node("n2"), lab.client)]:
            if not any(left):
                break
            assert time.monotonic() < deadline, "".join(left)
            time.sleep(0.5)
