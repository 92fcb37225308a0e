# SPDX-License-Identifier: GPL-2.0-or-later
"""Which families of addresses the machines of a lab have: "4", "6", or both, "46".

An address of IPv6 has the digits of that of IPv4 in its last places:

                   IPv4            IPv6
    service        10.77.0.100     fd00:77::100    on lo of every node
    node I         10.77.0.I       fd00:77::I      eth0
                   10.78.0.I       fd00:78::I      eth1, by which nodes talk to each other: of IPv4 if there is one
    client         10.77.1.1, …    fd00:77::1:1, …

The service address on lo needs no arp_ignore: a kernel answers solicitations only for addresses of the interface that they come to.
"""
import os

from .errors import LabError

FAMILIES = ("4", "6", "46")
BOTH = "46"
NAMED = os.environ.get("EARSHOT_FAMILY")
DEFAULT = NAMED or "4"  # of a Lab() that names none; what people bring up: usual()
VIP6 = "fd00:77::100"
PREFIX6 = 64

_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 0,
    "net.ipv6.conf.default.disable_ipv6": 0,
    # Addresses are all given here, and serve at once: nobody waits for an answer of who may have the same.
    "net.ipv6.conf.all.accept_dad": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.all.accept_ra": 0,
    "net.ipv6.conf.default.accept_ra": 0,
}


def check(family):
    """Whether a lab can have it; LabError if not."""
    if family not in FAMILIES:
        raise LabError(f"family {family}: {', '.join(FAMILIES)}")
    if has6(family) and not _kernel_has6():
        raise LabError(f"family {family}: this kernel has no IPv6")


def _kernel_has6():
    return os.path.exists("/proc/sys/net/ipv6/conf")


def usual(config=None):
    """(family, why it is not both) of a lab if whoever brings it up names none; config: the file that its nodes get as it is."""
    if NAMED:
        return NAMED, ""
    if not _kernel_has6():
        return "4", "this kernel has no IPv6"
    if config and not _mentions(config, VIP6):
        return "4", f"{config} has no address {VIP6}"
    return BOTH, ""


def _mentions(path, text):
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return text in handle.read()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


def has4(family):
    return "4" in family


def has6(family):
    return "6" in family


def sysctls(family):
    """What a machine's kernel needs on top of what it needs for IPv4."""
    return _SYSCTLS if has6(family) else {}


def address6(network, number):
    """The address of a node in network 77 (public) or 78 (cluster)."""
    return f"fd00:{network}::{number}"


def client_address6(number):
    """The client's address of that number, from 0."""
    return f"fd00:77::{1 + number // 200}:{1 + number % 200}"


def add(address, interface):
    """The `ip` command that gives an interface an address of IPv6."""
    length = 128 if interface == "lo" else PREFIX6
    return f"address add {address}/{length} dev {interface} nodad"


def in_url(host):
    """How a host is written in a URL."""
    return f"[{host}]" if ":" in host else host
