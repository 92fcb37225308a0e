# SPDX-License-Identifier: GPL-2.0-or-later
"""Client ports that come back while some node still has a socket of their last connection."""
import pytest

from earshotlab import Lab, daemon
from loading import check, check_impaired, load
from make_docroot import make_docroot
from sizes import size

pytestmark = pytest.mark.earshot

FIRST, LAST = 1024, 65535
PORTS = size(20000, LAST - FIRST + 1, "EARSHOT_PORTS")  # in an emulated machine TIME_WAIT is over before more come back
SYN_TIMEOUT_US = 1000000  # after which a client sends a SYN again


@pytest.fixture(scope="module")
def docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("object")
    make_docroot(directory, files=1, max_bytes=1024)
    return str(directory)


def test_twice_through_all_ports(docroot):
    with Lab(policy="wrr", docroot=docroot) as lab:
        report = load(lab, connections=2 * PORTS, close="server", local_ports=f"{FIRST}-{FIRST + PORTS - 1}")
        check(report, 2 * PORTS)
        assert report["ports_skipped"] < 10  # where the lab looked whether it serves
        assert report["syn_retransmissions"] == 0 and report["connect_us"]["max"] < SYN_TIMEOUT_US
        assert report["total_ms"]["max"] < SYN_TIMEOUT_US / 1000
        # The servers closed first and keep their TIME_WAIT for a minute; a round takes less. With netfilter, the kernel sees to it.
        assert report["counted"]["syn_time_wait"] > 0.9 * PORTS or daemon.DATAPATH == "netfilter"


@pytest.mark.wire
def test_ports_come_back_at_once_over_a_bad_cable(docroot):
    """Here also connections are met of which the server has not heard that they are over: a RST may be lost."""
    rate = {"inspector.connection_rate": 2000}  # so many come: no decision may be forgotten that a client repeats its request to
    with Lab(policy="wrr", docroot=docroot, wires=["client"], segment=True, settings=rate) as lab:
        lab.wire("client").set(loss=0.02, dup=0.01, reorder=0.01)
        report = load(lab, connections=10000, close="server,reset", local_ports="2000-2499", timeout_ms=60000)
        check_impaired(lab, "client", "lost", rate=0.02)
        check(report, 10000)
        assert report["counted"]["deliver_syn_established"] > 0 and report["counted"]["handover_time_wait"] > 0
