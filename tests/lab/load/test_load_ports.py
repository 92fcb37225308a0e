# SPDX-License-Identifier: GPL-2.0-or-later
"""Client ports that come back while some node still has a socket of their last connection."""
import pytest

from earshotlab import Lab
from loading import check, check_impaired, load
from make_docroot import make_docroot

pytestmark = pytest.mark.earshot

FIRST, LAST = 1024, 65535
TIME_WAIT_S = 60
SYN_TIMEOUT_US = 1000000  # after which a client sends a SYN again


@pytest.fixture(scope="module")
def docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("object")
    make_docroot(directory, files=1, max_bytes=1024)
    return str(directory)


def ports_in_time(lab):
    """All of them, where a round takes seconds; an emulated machine would not be through before TIME_WAIT is over."""
    report = load(lab, connections=1000, close="server", local_ports="64000-65535")
    return min(LAST - FIRST + 1, int(0.5 * TIME_WAIT_S * 1000 / report["seconds"]))


def test_twice_through_all_ports(docroot):
    with Lab(policy="wrr", docroot=docroot) as lab:
        ports = ports_in_time(lab)
        report = load(lab, connections=2 * ports, close="server", local_ports=f"{FIRST}-{FIRST + ports - 1}")
        check(report, 2 * ports)
        assert report["ports_skipped"] < 10  # where the lab looked whether it serves
        assert report["syn_retransmissions"] == 0 and report["connect_us"]["max"] < SYN_TIMEOUT_US
        assert report["total_ms"]["max"] < SYN_TIMEOUT_US / 1000
        # The servers closed first and keep their TIME_WAIT for a minute.
        assert report["counted"]["syn_time_wait"] > 0.9 * ports


@pytest.mark.wire
def test_ports_come_back_at_once_over_a_bad_cable(docroot):
    """Here also connections are met of which the server has not heard that they are over: a RST may be lost."""
    with Lab(policy="wrr", docroot=docroot, wires=["client"], segment=True) as lab:
        lab.wire("client").set(loss=0.02, dup=0.01, reorder=0.01)
        report = load(lab, connections=10000, close="server,reset", local_ports="2000-2499", timeout_ms=60000)
        check_impaired(lab, "client", "lost", rate=0.02)
        check(report, 10000)
        assert report["counted"]["deliver_syn_established"] > 0 and report["counted"]["handover_time_wait"] > 0
