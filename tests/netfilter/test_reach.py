# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether what a service sends leaves at once: by neighbours that are known, that must be asked for, and that are nobody; and by routers of
either family."""
import os

import pytest

from earshotlab import wait_for
from place import CLIENT, SERVER, Place, run
from tree import BUILD

pytestmark = pytest.mark.usefixtures("possible")

REACH = os.path.join(BUILD, "bin/earshot-nf-reach")
FAR = {4: "198.51.100.7", 6: "2001:db8:1::7"}
NOBODY = {4: "10.79.1.99", 6: "fd00:79::99"}
AT_ONCE, NEVER = "1 1", "0 0"
WHEN_ASKED = ("0 1", "1 1")  # a veth's other end may answer before the kernel is back


@pytest.fixture(scope="module", name="place")
def _place():
    with Place(serves=False) as place:
        # By its link-local address a machine asks for others' MACs.
        wait_for(lambda: "tentative" not in (text := run(place.server, "ip", "-6", "addr", "show", "dev", "wire")) and "fe80::" in text,
                 "the interface's own address of IPv6", 10)
        yield place


def reach(place, family, client, mark=0):
    return run(place.server, REACH, SERVER[family], client, str(mark)).strip()


def forget(place):
    for family in (4, 6):
        run(place.server, "ip", f"-{family}", "neigh", "flush", "dev", "wire")


@pytest.mark.parametrize("family", (4, 6))
def test_neighbours(place, family):
    forget(place)
    assert reach(place, family, CLIENT[family]) in WHEN_ASKED
    assert reach(place, family, CLIENT[family]) == AT_ONCE
    assert reach(place, family, NOBODY[family]) == NEVER


# Of IPv4 clients by a router that has IPv6 alone, as in networks that save addresses.
@pytest.mark.parametrize("family, by", ((4, 4), (6, 6), (4, 6)), ids=("v4", "v6", "v4-by-v6"))
def test_routers(place, family, by):
    def route(gateway):
        via = ("via", "inet6", gateway) if family != by else ("via", gateway)
        run(place.server, "ip", f"-{family}", "route", "replace", FAR[family], *via, "dev", "wire")

    route(CLIENT[by])
    forget(place)
    assert reach(place, family, FAR[family]) in WHEN_ASKED
    assert reach(place, family, FAR[family]) == AT_ONCE
    route(NOBODY[by])
    assert reach(place, family, FAR[family]) == NEVER
    run(place.server, "ip", f"-{family}", "route", "del", FAR[family])


@pytest.mark.parametrize("family", (4, 6))
def test_a_router_by_the_mark(place, family):
    """The one that others have is out of order."""
    ip = ("ip", f"-{family}")
    run(place.server, *ip, "rule", "add", "fwmark", "7", "lookup", "100")
    run(place.server, *ip, "route", "replace", FAR[family], "via", CLIENT[family], "dev", "wire", "table", "100")
    run(place.server, *ip, "route", "replace", FAR[family], "via", NOBODY[family], "dev", "wire")
    assert reach(place, family, FAR[family], mark=7) in WHEN_ASKED
    assert reach(place, family, FAR[family]) == NEVER
    run(place.server, *ip, "rule", "del", "fwmark", "7")
    run(place.server, *ip, "route", "del", FAR[family])


def test_where_there_are_no_neighbours(place):
    """By lo, and by a device that is a tunnel's."""
    assert reach(place, 4, SERVER[4]) == AT_ONCE
    run(place.server, "ip", "route", "replace", FAR[4], "dev", "earshot-nf")
    assert reach(place, 4, FAR[4]) == AT_ONCE
    run(place.server, "ip", "route", "del", FAR[4])
