# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte of thousands of connections, over good and bad cables, whoever closes first."""
import pytest

from earshotlab import Lab
from loading import check, check_impaired, load
from make_docroot import make_docroot
from sizes import size

pytestmark = pytest.mark.earshot

CONNECTIONS = size(4000, 20000, "EARSHOT_CONNECTIONS")
CLUSTER_LINKS = ("n1-clu", "n2-clu", "n3-clu")


@pytest.fixture(scope="module")
def docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("objects")
    make_docroot(directory)
    return str(directory)


def test_good_cables(docroot):
    with Lab(policy="wrr", docroot=docroot) as lab:
        report = load(lab, connections=CONNECTIONS)
        check(report, CONNECTIONS)
        assert report["syn_retransmissions"] == 0
        # Round robin, each worker for itself: three equal shares, and two of three connections changed the node.
        assert max(report["nodes"].values()) - min(report["nodes"].values()) < 0.01 * CONNECTIONS
        assert 0.6 < report["counted"]["inspect_handovers"] / CONNECTIONS < 0.72


@pytest.mark.wire
def test_bad_client_cable(docroot):
    with Lab(policy="wrr", docroot=docroot, wires=["client"], segment=True) as lab:
        lab.wire("client").set(loss=0.01, dup=0.01, reorder=0.01)
        report = load(lab, connections=CONNECTIONS, timeout_ms=60000)
        check_impaired(lab, "client", "lost", "duplicated", "reordered")
        check(report, CONNECTIONS)
        # About one in fifty lost its SYN or its SYN-ACK; a lost, doubled or late request was repeated to its node.
        assert report["syn_retransmissions"] > 0.01 * CONNECTIONS
        assert report["counted"]["inspect_repeated"] > 0.005 * CONNECTIONS
        assert report["counted"]["handover_duplicate"] + report["counted"]["handover_old"] > 0


@pytest.mark.wire
def test_bad_cluster_cables(docroot):
    with Lab(policy="wrr", docroot=docroot, wires=CLUSTER_LINKS) as lab:
        for link in CLUSTER_LINKS:
            lab.wire(link).set(loss=0.01)
        report = load(lab, connections=CONNECTIONS, timeout_ms=60000)
        for link in CLUSTER_LINKS:
            check_impaired(lab, link, "lost")
        check(report, CONNECTIONS)
        # Two of three requests cross two bad cables; what is lost there comes from the client again, unasked.
        assert report["counted"]["inspect_repeated"] > 0.005 * CONNECTIONS
        assert report["syn_retransmissions"] == 0


def test_an_object_has_one_node(docroot):
    # The load bound, on by default, moves the objects of a busy node.
    with Lab(policy="uri-hash", docroot=docroot, settings={"service.load_bound": 0}) as lab:
        report = load(lab, connections=5000, max_bytes=100000)
        check(report, 5000)
        assert report["moved"] == 0
