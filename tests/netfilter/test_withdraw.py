# SPDX-License-Identifier: GPL-2.0-or-later
"""Attempts to make a connection of which nothing comes, as a rule drops their SYN or there is no way back to the client: nothing
comes of them later, either."""
import errno
import subprocess
import time

import pytest

from earshotlab import wait_for
from place import CLIENT, FAMILIES, RELOAD, Place, run

pytestmark = pytest.mark.usefixtures("possible")

DROPS = """\
table inet operator {{
    chain in {{ type filter hook {hook} priority {priority}; iifname "earshot-nf" tcp flags syn drop; }}
}}
"""
# Where a SYN is dropped: before the connection tracking, behind it, and where filters mostly stand.
WHERE = {"raw": ("prerouting", -310), "mangle": ("prerouting", -140), "filter": ("input", 0)}
NETWORK = {4: "10.79.1.0/24", 6: "fd00:79::/64"}


def ask_in_vain(place, family=4):
    """A client whose request has been tried, and withdrawn."""
    connection = place.connect(family)
    connection.request("GET", "/small")
    wait_for(lambda: place.counts()["failed"] == 1, "an attempt", 10, place.counts)
    assert place.counts()["error"] == -errno.ETIMEDOUT
    return connection


def drops(where):
    hook, priority = WHERE[where]
    return DROPS.format(hook=hook, priority=priority)


def sockets(place):
    """The states of the server's sockets, but for those that listen."""
    return sorted(line.split()[0] for line in run(place.server, "ss", "-Htan", "sport", "=", ":80").splitlines()
                  if not line.startswith("LISTEN"))


def served(place, connection):
    """Its client repeats its request, and has an answer from the next attempt."""
    assert place.tell("again") == "0"
    assert connection.getresponse().read() == b"x" * 1024
    connection.close()


@FAMILIES
@pytest.mark.parametrize("where", WHERE)
def test_a_rule_that_drops(where, family):
    """It is certain, for as long as nothing has come in; and when the rule is gone, its client is served."""
    with Place(words=["patient"], rules=drops(where)) as place:
        connection = ask_in_vain(place, family)
        assert place.tell("withdrawn") == "1"
        assert sockets(place) == []
        run(place.server, "nft", "delete", "table", "inet", "operator")
        served(place, connection)


@FAMILIES
def test_no_way_back(family):
    """The SYN comes in, and its answer cannot leave."""
    with Place(words=["patient"]) as place:
        connection = place.connect(family)
        flag = ["-6"] if family == 6 else []
        run(place.server, "ip", *flag, "route", "del", NETWORK[family], "dev", "wire")
        connection.request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] == 1, "an attempt", 10, place.counts)
        assert place.counts()["error"] == -errno.ETIMEDOUT
        assert place.tell("withdrawn") == "1"
        assert sockets(place) == []
        run(place.server, "ip", *flag, "route", "add", f"{CLIENT[family]}", "dev", "wire")
        served(place, connection)


@FAMILIES
def test_a_syn_that_comes_late(family):
    """Nobody has dropped it after all. The listening socket answers, and the hook does not hear of it: without its numbers, no packet of
    the client's makes that a connection. But it is not certain any more, and another attempt makes one."""
    with Place(words=["patient"], rules=drops("filter")) as place:
        connection = ask_in_vain(place, family)
        run(place.server, "nft", "delete", "table", "inet", "operator")
        assert place.tell("late") == "0"
        wait_for(lambda: sockets(place) == ["SYN-RECV"], "half a connection", 10, lambda: sockets(place))
        assert place.tell("withdrawn") == "0"
        time.sleep(1.5)  # in which its client repeats its request twice; the kernel gives it up when it cannot repeat its answer
        assert "ESTAB" not in sockets(place)
        assert place.tell("shift") == "0"
        served(place, connection)


@FAMILIES
def test_a_syn_that_comes_behind_a_flush(family):
    """Whose entry is gone: it is not certain any more, though nothing comes of it."""
    with Place(words=["patient"], rules=drops("filter")) as place:
        connection = ask_in_vain(place, family)
        assert place.tell("flush") == "0"
        assert place.tell("withdrawn") == "0"
        run(place.server, "nft", "delete", "table", "inet", "operator")
        assert place.tell("late") == "0"
        time.sleep(1.5)
        assert "ESTAB" not in sockets(place)
        connection.close()


def test_a_new_daemon():
    """It finds what was withdrawn as it was."""
    with Place(words=["patient"], rules=drops("filter")) as place:
        connection = ask_in_vain(place)
        place.rebuilder.kill()
        place.rebuilder.wait()
        wait_for(lambda: "earshot-nf" not in run(place.server, "ip", "link"), "the tun device has gone", 10)
        place.rebuilder = place.start_rebuilder(["patient", "keep"])
        assert place.entries() == 1
        assert place.counts()["kept"] == 1
        run(place.server, "nft", "delete", "table", "inet", "operator")
        connection.close()


def test_a_kernel_without_labels():
    """There, nobody can say that nothing comes of it."""
    with Place(words=["patient", "plain"], rules=drops("filter")) as place:
        connection = place.connect()
        connection.request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] == 1, "an attempt", 10, place.counts)
        assert place.counts()["error"] == -errno.ENOBUFS
        assert place.tell("withdrawn") == "0"
        run(place.server, "nft", "delete", "table", "inet", "operator")
        served(place, connection)


def test_what_becomes_of_its_packets():
    """Without leases, with them, and of a node that has left: the answer does not come to the hook, and what its client sends is for who
    reads the queue, as that of any flow which is not here."""
    done = subprocess.run(["unshare", "--net", RELOAD, "withdrawn"], capture_output=True, text=True, check=False)
    assert done.stdout == "dropped 1\n" * 3, (done.stdout, done.stderr)
