# SPDX-License-Identifier: GPL-2.0-or-later
"""POSTs on connections that were idle, while their node loses its power at some moment: no id is executed twice, and each client hears
an answer or a RST soon (config key survive)."""
import os
import random
import threading
import time

import pytest

from cluster.deeds import Servers
from cluster.membership import TOKEN, serving, settled
from earshotlab import Lab
from sizes import size
from web import ledger, raw, timed

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SURVIVORS = ["n1", "n3", "n4"]
SEED = int(os.environ.get("EARSHOT_SEED") or time.time())
ROUNDS = size(3, 100, "EARSHOT_ROUNDS")
COUNT = 80
SECONDS = 4.0
TOLD_S = 2 + 2.2 * TOKEN + 1.6  # a client whose last repetition came just before may wait for as long again


@pytest.fixture(name="lab")
def _lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf", server="none",
             settings={"service.inspect": "every", "service.survive": 1}) as lab:
        yield lab


def idle(lab, name):
    """Connections that have had an answer."""
    socks = [raw.connect(lab.client, timeout=10) for _ in range(COUNT)]
    for number, sock in enumerate(socks):
        sock.sendall(raw.head(f"/{name}.{number}"))
        raw.receive(sock)
    return socks


def one_round(lab, servers, name, order):
    """Returns the POSTs: {target: Asked}, of which some were sent before, some after."""
    socks = idle(lab, name)
    time.sleep(1.5)
    targets = {sock: f"/post.{name}.{number}" for number, sock in enumerate(socks)}
    plan = []
    for sock, target in targets.items():
        body = ledger.request_body(target)
        plan.append((order.uniform(0, SECONDS), sock, raw.head(target, "POST", Content_Length=len(body)) + body))
    power_cut = threading.Timer(order.uniform(0, 1), lab.kill, ["n2"])
    power_cut.start()
    asked = timed.ask(plan)
    power_cut.join()
    for sock in socks:
        sock.close()
    settled(lab, SURVIVORS)
    lab.heal("n2")
    servers.start("n2")
    settled(lab)
    serving(lab)
    return {targets[sock]: one for sock, one in asked.items()}


def test_random_moments(lab, capsys):
    with capsys.disabled():
        print(f"\nEARSHOT_SEED={SEED} repeats this")
    order = random.Random(SEED)
    servers = Servers(lab)
    settled(lab)
    serving(lab)
    asked = {}
    for number in range(ROUNDS):
        asked.update(one_round(lab, servers, f"r{number}", order))
    executed = servers.executed()
    twice = {key: by for key, by in executed.items() if key[0] == "POST" and len(by) > 1}
    assert not twice, f"executed twice: {twice}"
    unheard = [target for target, one in asked.items() if not one.error and not executed["POST", target]]
    assert not unheard, f"answered, and not executed: {unheard}"
    errors = {one.error for one in asked.values() if one.error}
    assert errors <= {ConnectionResetError}, errors
    slow = {target: round(one.took, 2) for target, one in asked.items() if one.took > TOLD_S}
    assert not slow, f"told late: {slow}"
    survived = sum(lab.counters(name)["inspect_survived"] for name in SURVIVORS)
    print(f"{len(asked)} POSTs: {sum(1 for one in asked.values() if one.error)} RSTs, {survived} went on at another node")
    assert survived
