# SPDX-License-Identifier: GPL-2.0-or-later
"""Static membership, a content policy, every request inspected: nodes agree without a bus, and nothing moves for nothing."""
import json

import pytest

from earshotlab import Lab, wait_for
from web import raw
from web.reader import Reader

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="lard", settings={"service.inspect": "every"}) as lab:
        def targets():
            return [each["state"] for node in ALL for each in lab.status(node)["nodes"]]

        wait_for(lambda: set(targets()) == {"up"}, "all nodes", seen=targets)
        yield lab


def table(lab, node):
    return json.loads(lab.node(node).exec(["earshot", "table", "--json", "--limit", "100000"]).stdout)


def explained(lab, node, uri):
    """The node that serves it, as `node` has it in its table."""
    return json.loads(lab.node(node).exec(["earshot", "explain", uri, "--json"]).stdout)["node"]


def test_nodes_agree(lab):
    """Each URI is asked for through one inspector; then the others know its home."""
    uris = [f"/u/1k/home-{number}" for number in range(24)]
    homes = {}
    for number, uri in enumerate(uris):
        port = next(raw.ports(lab, ALL[number % 3], 20000 + 50 * number))
        response, _ = raw.ask(lab.client, raw.head(uri, Connection="close"), port=port)
        homes[uri] = response.node
    wait_for(lambda: all(table(lab, node)["table"]["entries"] >= len(uris) for node in ALL), "tables with all of them")
    for uri in uris:
        assert [explained(lab, node, uri) for node in ALL] == [homes[uri]] * 3, uri


def test_nothing_moves_for_nothing(lab):
    """Connections that ask for one file again and again stay where they are."""
    before = raw.total(lab, "inspect_moved", "inspect_stayed")
    connections = [raw.connect(lab.client) for _ in range(12)]
    readers = [Reader(connection) for connection in connections]
    for _ in range(100):
        for connection, reader in zip(connections, readers):
            connection.sendall(raw.head("/u/1k/hot"))
            assert reader.response().status == 200
    for connection in connections:
        connection.close()
    moved, stayed = raw.total(lab, "inspect_moved"), raw.total(lab, "inspect_stayed")
    print(f"{moved} moves in all, {moved + stayed - before} later requests here")
    assert moved + stayed - before == 12 * 99
    assert sum(raw.total(lab, f"inspect_moved_{why}") for why in ("locality", "load", "drain", "rule", "home")) == moved
    assert moved <= 12
