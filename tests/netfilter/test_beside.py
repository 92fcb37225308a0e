# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections made by netfilter/ beside what operators have in the same kernel: settings, firewalls, zones, flushed tables."""
import concurrent.futures
import errno
import socket
import subprocess
import time

import pytest

from earshotlab import wait_for
from place import FAMILIES, LARGE, RELOAD, Place, ask, has_sysctl, run, who

pytestmark = pytest.mark.usefixtures("possible")


@pytest.mark.parametrize("how", (0, 1, 2))
def test_source_checks(how):
    """rp_filter of all interfaces, as distributions set it."""
    with Place(before={"net.ipv4.conf.all.rp_filter": how, "net.ipv4.conf.default.rp_filter": how,
                       "net.ipv4.conf.wire.rp_filter": how}) as place:
        assert place.counts()["marked"] == (how == 1)
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            connection.close()


@pytest.mark.parametrize("sysctls", (
    {"net.netfilter.nf_conntrack_tcp_loose": 0}, {"net.netfilter.nf_conntrack_tcp_be_liberal": 1},
    {"net.netfilter.nf_conntrack_checksum": 0}, {"net.netfilter.nf_conntrack_tcp_ignore_invalid_rst": 1},
    {"net.netfilter.nf_conntrack_acct": 1, "net.netfilter.nf_conntrack_timestamp": 1},
    {"net.netfilter.nf_conntrack_tcp_timeout_syn_sent": 1, "net.netfilter.nf_conntrack_tcp_timeout_syn_recv": 1},
    {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}, {"net.ipv4.tcp_synack_retries": 0},
    {"net.ipv4.tcp_fastopen": 0x403}, {"net.ipv4.tcp_ecn": 1}, {"net.ipv4.tcp_timestamps": 2},
    {"net.ipv4.tcp_syncookies": 0}), ids=lambda each: "-".join(name.rpartition(".")[2] for name in each))
def test_settings_of_the_operator(sysctls):
    """None of them is ours to choose. What an older kernel has not, nobody chooses there."""
    with Place(before={name: value for name, value in sysctls.items() if has_sysctl(name)}) as place:
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            assert ask(connection, "PUT", "/upload/x", LARGE[:1 << 20])[0] in (201, 204)
            connection.close()
        assert place.counts()["failed"] == 0


def test_an_entry_that_times_out():
    """Its connection is idle for longer than the operator has it tracked, and goes on all the same."""
    with Place(words=["keep"], before={"net.netfilter.nf_conntrack_tcp_timeout_established": 1}) as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        time.sleep(0.1)  # it has less than a second left, which the kernel tells as 0
        assert place.tell("look") == "0"
        # An idle kernel looks for entries that are over once a minute; who reads them all has it look.
        wait_for(lambda: place.entries() and place.counts()["restored"], "its entry was gone, and is there again", 10, place.counts)
        assert ask(connection, path="/large") == (200, LARGE)
        connection.close()


def test_a_listener_that_answers_with_cookies_alone():
    """No connection is made, and none half: the client is not reset, and is served when the setting is right."""
    with Place(before={"net.ipv4.tcp_syncookies": 2}) as place:
        connection = place.connect()
        connection.request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] >= 2, "the client repeats its request", 10, place.counts)
        assert place.counts()["error"] == -errno.ENOBUFS
        run(place.server, "sysctl", "-qw", "net.ipv4.tcp_syncookies=1")
        assert connection.getresponse().read() == b"x" * 1024
        connection.close()


FIREWALL = """\
table inet operator {{
    chain rpfilter {{
        type filter hook prerouting priority -290
        meta nfproto ipv6 fib saddr . mark . iif oif missing drop
    }}
    chain input {{
        type filter hook input priority 0; policy drop
        {accept}
        iifname "lo" ct state established accept
        icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept
    }}
}}
"""


ESTABLISHED = "ct state established accept"
SERVICE = 'iifname { "wire", "earshot-nf" } tcp dport 80 accept'


@pytest.mark.parametrize("accept", (f"{ESTABLISHED}; {SERVICE}", f"{SERVICE}; {ESTABLISHED}"), ids=("state-first", "service-first"))
def test_a_firewall_that_lets_in_the_service(accept):
    """And one that asks whether packets of IPv6 come in where their source is, as firewalld does where rp_filter is 1."""
    with Place(rules=FIREWALL.format(accept=accept), before={"net.ipv4.conf.all.rp_filter": 1}) as place:
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            connection.close()


# Each refuses the place's client; in whichever order.
REFUSING = {
    "nobody-is-let-in": ESTABLISHED,
    "allow-list": f"{ESTABLISHED}; ip saddr 10.79.1.77 tcp dport 80 accept; ip6 saddr fd00:79::77 tcp dport 80 accept",
    "allow-list-first": f"ip saddr 10.79.1.77 tcp dport 80 accept; ip6 saddr fd00:79::77 tcp dport 80 accept; {ESTABLISHED}",
    "set": f"{ESTABLISHED}; ip saddr != {{ 10.79.1.1, 10.79.1.66 }} tcp dport 80 accept; ip6 saddr != {{ fd00:79::1 }} tcp dport 80 accept",
    "banned": f"ip saddr 10.79.1.1 drop; ip6 saddr fd00:79::1 tcp dport 80 drop; {ESTABLISHED}; {SERVICE}",
    "limit": f"{ESTABLISHED}; tcp dport 80 ct state new limit rate over 1/hour burst 1 packets drop; {SERVICE}",
    "by-the-port": f"{ESTABLISHED}; tcp dport 81 accept",
}


@FAMILIES
@pytest.mark.parametrize("how", REFUSING)
def test_a_firewall_that_refuses_a_client(how, family):
    """As one server's firewall does: to it, the connection is new. And it is let in when the rule is gone."""
    with Place(words=["patient"], rules=FIREWALL.format(accept=REFUSING[how]), before={"net.ipv4.conf.all.rp_filter": 1}) as place:
        if how == "limit":  # the first one is let in
            first = place.connect(family)
            assert ask(first)[0] == 200
            first.close()
        connection = place.connect(family)
        connection.request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] == 1, "an attempt", 10, place.counts)
        assert place.counts()["error"] == -errno.ETIMEDOUT
        assert place.tell("withdrawn") == "1"
        run(place.server, "nft", "delete", "table", "inet", "operator")
        assert place.tell("again") == "0"
        assert connection.getresponse().read() == b"x" * 1024
        connection.close()


# At most two connections of one address.
AT_MOST = {
    "nft": "nft -f - <<END\ntable ip operator { set open { type ipv4_addr; size 64; flags dynamic; }\n"
           "chain in { type filter hook input priority 0; tcp dport 80 ct state new add @open { ip saddr ct count over 2 } drop; }; }\nEND\n",
    "iptables": "iptables-nft -A INPUT -p tcp --syn --dport 80 -m connlimit --connlimit-above 2 -j DROP",
}


@pytest.mark.parametrize("how", AT_MOST)
def test_a_firewall_that_counts_connections(how):
    with Place(words=["patient"]) as place:
        run(place.server, "sh", "-ec", AT_MOST[how])
        connections = [place.connect() for _ in range(3)]
        for connection in connections[:2]:
            assert ask(connection)[0] == 200
        connections[2].request("GET", "/small")
        wait_for(lambda: place.counts()["failed"] == 1, "an attempt", 10, place.counts)
        for connection in connections[:2]:
            assert ask(connection)[0] == 200
        for connection in connections:
            connection.close()


# An operator who marks what comes in for the service, and has answers go by the mark: by that of the socket, or of the connection.
MARKS = {
    "socket": """\
table inet operator {
    chain in { type filter hook prerouting priority -150; tcp dport 80 meta mark set meta mark | 0x7; }
    chain out { type filter hook output priority 0; oifname "wire" tcp sport 80 tcp flags & rst == 0 meta mark != 0x7 drop; }
}
""",
    "connection": """\
table inet operator {
    chain in { type filter hook prerouting priority -150; tcp dport 80 meta mark set 0x7 ct mark set meta mark; }
    chain route { type route hook output priority -150; tcp sport 80 meta mark set ct mark; }
    chain out { type filter hook output priority 0; oifname "wire" tcp sport 80 tcp flags & rst == 0 meta mark != 0x7 drop; }
}
"""}


@pytest.mark.parametrize("strict", (0, 1), ids=("loose", "strict"))
@pytest.mark.parametrize("how", MARKS)
def test_marks_of_the_operator(how, strict):
    """They stay as they are, whatever is marked so that sources are not refused; else nothing would leave."""
    with Place(rules=MARKS[how], before={"net.ipv4.conf.all.rp_filter": strict, "net.ipv4.tcp_fwmark_accept": int(how == "socket")}) as place:
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            connection.close()


MARKED_SYN = """\
nft -f - <<END
table ip operator {
    counter marked { }
    chain in { type filter hook prerouting priority -160; tcp flags syn meta mark set 0x7; }
    chain seen { type filter hook prerouting priority -140; tcp flags syn meta mark 0x7 counter name marked; }
}
END
"""


def test_a_mark_of_a_syn_that_is_known():
    """It goes through the daemon's hands, since a client may have forgotten its connection; and keeps its mark."""
    done = subprocess.run(["unshare", "--net", "sh", "-ec", f"{MARKED_SYN}{RELOAD} known; nft list counter ip operator marked"],
                          capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1\n"), (done.stdout, done.stderr)
    assert "packets 1 " in done.stdout


# What operators do with marks in PREROUTING: those of connections are restored (iptables' CONNMARK --restore-mark), or all get one.
MANGLE = {
    "restore": "meta mark set ct mark",
    "restore-iptables": None,
    "set": "meta mark set 0x1",
    "clear": "meta mark set 0",
}


def mangle(how, priority="mangle"):
    if MANGLE[how] is None:
        return "iptables-nft -t mangle -A PREROUTING -j CONNMARK --restore-mark"
    return f"nft 'table ip operator {{ chain pre {{ type filter hook prerouting priority {priority}; {MANGLE[how]}; }}; }}'"


@pytest.mark.parametrize("when", ("older", "newer"))
@pytest.mark.parametrize("how", MANGLE)
def test_marks_beside_whose_flows_are_others(how, when):
    """A table that was there before ours, as at any start of a machine, or is newer, takes our own marks from nothing."""
    command = [RELOAD, "gone"] + ([mangle(how)] if when == "newer" else [])
    before = mangle(how) if when == "older" else "true"
    done = subprocess.run(["unshare", "--net", "sh", "-ec", f'{before}; "$@"', "sh", *command], capture_output=True, text=True, check=False)
    assert done.stdout.split() == list("1000101"), (done.stdout, done.stderr)


# An operator who stands where nobody does: between our two chains, since the kernel runs the newest first.
BETWEEN = """\
ip addr add 192.0.2.2/32 dev lo; nft -f - <<END
table ip operator {
    counter reached { }
    chain pre { type filter hook prerouting priority -152; meta mark set 0; }
    chain in { type filter hook input priority -300; iifname "client" tcp dport 80 counter name reached; }
}
END
"""


def test_what_nobody_has_dropped():
    """No socket hears of it all the same, nor any filter."""
    done = subprocess.run(["unshare", "--net", "sh", "-ec", '"$@"; nft list counter ip operator reached', "sh", RELOAD, "gone", BETWEEN],
                          capture_output=True, text=True, check=False)
    # The kernel remembers nothing, so more of it comes to the queue.
    assert done.stdout.split()[:7] == list("1111111"), (done.stdout, done.stderr)
    assert "packets 0 " in done.stdout


FIREWALLD = """\
table inet firewalld {
    chain input {
        type filter hook input priority 10; policy accept
        ct state invalid drop
        ct state { established, related } accept
        ct status dnat accept
        iifname "lo" accept
        ct state new tcp dport 80 accept
        icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
        reject with icmpx type admin-prohibited
    }
    chain forward { type filter hook forward priority 10; policy drop; }
    chain nat { type nat hook postrouting priority 110; oifname "wire" masquerade; }
}
"""

XTABLES = """\
for tables in iptables-{variant} ip6tables-{variant}; do
    $tables -P INPUT DROP
    $tables -A INPUT -m conntrack --ctstate INVALID -j DROP
    $tables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
    $tables -A INPUT -i lo -j ACCEPT
    $tables -A INPUT -i earshot-nf -p tcp --dport 80 -j ACCEPT
    $tables -t nat -A POSTROUTING -o wire -j MASQUERADE
    $tables -t nat -A PREROUTING -p tcp --dport 8080 -j REDIRECT --to-ports 80
done
ip6tables-{variant} -A INPUT -p icmpv6 -j ACCEPT
"""

# As Docker has them with one container whose port 80 is the machine's 8080, and Kubernetes with its marks.
DOCKER = """\
sysctl -qw net.ipv4.ip_forward=1
iptables-nft-restore <<END
*nat
:PREROUTING ACCEPT
:OUTPUT ACCEPT
:POSTROUTING ACCEPT
:DOCKER -
:KUBE-POSTROUTING -
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -j KUBE-POSTROUTING
-A DOCKER ! -i docker0 -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT
:FORWARD DROP
:DOCKER-USER -
:KUBE-FIREWALL -
-A INPUT -j KUBE-FIREWALL
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
END
"""

# As ufw has them with the service allowed, and libvirt with its default network.
UFW = """\
for tables in iptables-nft ip6tables-nft; do
    $tables -t mangle -N ufw-before-prerouting
    $tables -t mangle -A PREROUTING -j ufw-before-prerouting
    $tables -t mangle -A ufw-before-prerouting -j CONNMARK --restore-mark
    $tables -N ufw-before-input
    $tables -N ufw-user-input
    $tables -P INPUT DROP
    $tables -A INPUT -j ufw-before-input
    $tables -A INPUT -j ufw-user-input
    $tables -A ufw-before-input -i lo -j ACCEPT
    $tables -A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    $tables -A ufw-before-input -m conntrack --ctstate INVALID -j DROP
    $tables -A ufw-user-input -p tcp --dport 80 -j ACCEPT
done
ip6tables-nft -I ufw-before-input -p icmpv6 -j ACCEPT
"""
LIBVIRT = """\
sysctl -qw net.ipv4.ip_forward=1
iptables-nft-restore <<END
*nat
:LIBVIRT_PRT -
-A POSTROUTING -j LIBVIRT_PRT
-A LIBVIRT_PRT -s 192.168.122.0/24 ! -d 192.168.122.0/24 -p tcp -j MASQUERADE --to-ports 1024-65535
COMMIT
*mangle
-A PREROUTING -j CONNMARK --restore-mark
-A PREROUTING -i virbr0 -j MARK --set-mark 0x1
COMMIT
*filter
:LIBVIRT_INP -
:LIBVIRT_FWI -
-A INPUT -j LIBVIRT_INP
-A FORWARD -j LIBVIRT_FWI
-A LIBVIRT_INP -i virbr0 -p udp -m udp --dport 53 -j ACCEPT
-A LIBVIRT_FWI -o virbr0 -j REJECT --reject-with icmp-port-unreachable
COMMIT
END
"""

OPERATORS = {"docker": DOCKER, "ufw": UFW, "libvirt": LIBVIRT, "firewalld": f"nft -f - <<END\n{FIREWALLD}END\n", "iptables-nft": XTABLES.format(variant="nft"),
             "iptables-legacy": XTABLES.format(variant="legacy")}


@pytest.mark.parametrize("when", ("older", "newer"))
@pytest.mark.parametrize("operator", OPERATORS)
def test_whose_flows_are_others_beside_an_operator_s_rules(operator, when):
    """Whoever came first, what the daemon says of a flow is remembered."""
    command = [RELOAD, "gone"] + ([OPERATORS[operator]] if when == "newer" else [])
    before = OPERATORS[operator] if when == "older" else ""
    done = subprocess.run(["unshare", "--net", "sh", "-ec", f'{before}\n"$@"', "sh", *command], capture_output=True, text=True, check=False)
    assert done.stdout.split() == list("1000101"), (done.stdout, done.stderr)


@pytest.mark.parametrize("when", ("older", "newer"))
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_s_rules(operator, when):
    """Stateful filters that drop what is invalid, and address translation as containers have it: none of it sees anything odd."""
    with Place(words=["keep"]) as place:
        run(place.server, "sh", "-ec", OPERATORS[operator])
        if when == "older":
            place.rebuilder.kill()
            place.rebuilder.wait()
            wait_for(lambda: "earshot-nf" not in run(place.server, "ip", "link"), "the tun device has gone", 10)
            place.rebuilder = place.start_rebuilder(["keep"])
        for family in (4, 6):
            connection = place.connect(family)
            address, port = connection.sock.getsockname()[:2]
            assert who(connection) == (address, str(port))
            assert ask(connection, path="/large") == (200, LARGE)
            assert place.tell("flush") == "0"
            wait_for(lambda: place.entries() == place.counts()["kept"], "the entries are there again", 10, place.counts)
            assert ask(connection, "PUT", "/upload/x", LARGE)[0] in (201, 204)
            connection.close()
        assert place.counts()["failed"] == 0


def test_what_is_flushed_under_load():
    """Again and again, while bodies are on their way: each arrives as it was sent."""
    with Place(words=["keep"]) as place, concurrent.futures.ThreadPoolExecutor(4) as pool:
        connections = [place.connect(family) for family in (4, 6, 4, 6)]
        for connection in connections:
            connection.sock.settimeout(30)
            assert ask(connection)[0] == 200
        bodies = [pool.submit(lambda each=each: [ask(each, path="/large") == (200, LARGE) for _ in range(3)]) for each in connections]
        for _ in range(5):
            assert place.tell("flush") == "0"
            wait_for(lambda: place.entries() == place.counts()["kept"], "the entries are there again", 10, place.counts)
        for body in bodies:
            assert body.result() == [True] * 3
        for connection in connections:
            connection.close()
        assert place.counts()["failed"] == 0


def test_rules_that_are_flushed():
    """Between bodies: what is on its way at that moment, nobody translates."""
    with Place(words=["keep"]) as place:
        connections = [place.connect(family) for family in (4, 6)]
        for turn in range(3):
            for connection in connections:
                assert ask(connection, path="/large") == (200, LARGE)
            run(place.server, "nft", "flush", "ruleset")
            wait_for(lambda n=turn: place.counts()["hooked"] == n + 2, "the hook is set again", 10, place.counts)
        for connection in connections:
            assert ask(connection)[0] == 200
            connection.close()
        assert place.counts()["failed"] == 0


ZONE = """\
table inet zones {{
    chain in {{ type filter hook prerouting priority -300; {arrives} ct zone set 7; }}
    chain out {{ type filter hook output priority -300; {leaves} ct zone set 7; }}
}}
"""


@pytest.mark.parametrize("arrives, leaves", (("tcp dport 80", "tcp sport 80"), ('iifname "wire"', 'oifname "wire"')), ids=("port", "interface"))
def test_in_a_conntrack_zone(arrives, leaves):
    """Of what has that port, or of what uses that interface, as a zone for each uplink has it. It is known again behind a flush."""
    with Place(rules=ZONE.format(arrives=arrives, leaves=leaves), words=["zone=7", "keep"]) as place:
        for family in (4, 6):
            connection = place.connect(family)
            assert ask(connection)[0] == 200
            assert ask(connection, path="/large") == (200, LARGE)
            assert place.tell("flush") == "0"
            wait_for(lambda: place.counts()["restored"], "the entry is there again", 10, place.counts)
            assert ask(connection, path="/large") == (200, LARGE)
            connection.close()
        assert place.counts()["failed"] == 0


def test_an_operator_who_flushes_all_rules():
    """Our table is back at once, and open connections go on."""
    with Place() as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        run(place.server, "nft", "flush", "ruleset")
        wait_for(lambda: place.counts()["hooked"] == 2, "the hook is set again", 10, place.counts)
        assert "synproxy" in run(place.server, "nft", "list", "table", "ip", "earshot-rebuild")
        assert ask(connection, path="/large") == (200, LARGE)
        connection.close()


@FAMILIES
def test_a_flushed_connection_tracking(family):
    """What `conntrack -F` does, while a body is on its way and while nothing is: the entries are made again."""
    with Place(words=["keep"]) as place:
        busy, idle = place.connect(family), place.connect(family)
        for connection in (busy, idle):
            assert ask(connection)[0] == 200
        busy.request("GET", "/large")
        response = busy.getresponse()
        body = response.read(100000)
        assert place.counts()["kept"] == 2
        assert place.tell("first") == "2 2"  # both know the first byte of what they were made of, and do not forget it
        assert place.tell("flush") == "0"
        wait_for(lambda: place.counts()["restored"] == 2, "the entries are there again", 10, place.counts)
        assert body + response.read() == LARGE
        assert ask(idle, path="/large") == (200, LARGE)
        assert ask(busy, "PUT", "/upload/x", LARGE)[0] in (201, 204)
        assert place.counts()["failed"] == 0
        assert place.tell("first") == "2 2"
        busy.close()
        idle.close()


def test_a_new_daemon_keeps_what_it_finds():
    with Place(words=["keep"]) as place:
        connection = place.connect()
        assert ask(connection)[0] == 200
        place.rebuilder.kill()
        place.rebuilder.wait()
        wait_for(lambda: "earshot-nf" not in run(place.server, "ip", "link"), "the tun device has gone", 10)
        place.rebuilder = place.start_rebuilder(["keep"])
        assert place.counts()["kept"] == 1
        assert place.tell("flush") == "0"
        wait_for(lambda: place.counts()["restored"] == 1, "the entry is there again", 10, place.counts)
        assert ask(connection, path="/large") == (200, LARGE)
        connection.close()


def test_what_is_over_is_not_made_again():
    """Connections that have ended are forgotten with their entries."""
    with Place(words=["keep"]) as place:
        closed, alive = place.connect(), place.connect()
        assert ask(closed)[0] == ask(alive)[0] == 200
        closed.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a RST
        closed.close()
        wait_for(lambda: ":80 " in run(place.server, "ss", "-tn") and run(place.server, "ss", "-tn").count("ESTAB") == 1,
                 "the server's socket has gone", 10)
        assert place.tell("flush") == "0"
        wait_for(lambda: place.counts()["kept"] == 1, "one is forgotten", 10, place.counts)
        assert place.tell("restore") == "0"
        assert ask(alive)[0] == 200
        assert place.counts()["failed"] == 0
        alive.close()
