# SPDX-License-Identifier: GPL-2.0-or-later
"""A node with a packet filter's rules: which of them `earshot check` warns of, and that it warns of none of Earshot's own."""
import os
import subprocess

import pytest


def nft(site, text):
    subprocess.run(site.command(site.n1, "nft", "-f", "-"), input=text, text=True, check=True)


def test_firewall(site):
    nft(site, "table inet t { chain out { type filter hook output priority 0; drop; }\n"
              "chain empty { type filter hook input priority 0; policy accept; }\n"
              "chain nat { type nat hook prerouting priority 0;\n tcp dport 81 redirect to 80\n }\n "
              "chain source { type nat hook postrouting priority 0;\n masquerade\n }\n }")
    nft(site, "flush chain inet t out")
    found = site.expect("kernel.firewall warning").of("kernel.firewall")[0]
    assert "1 nat chain for what comes in, nft t nat first" in found["found"]
    nft(site, "flush chain inet t nat")
    site.expect()
    nft(site, "add rule inet t empty tcp dport 22 drop")
    found = site.expect("kernel.firewall warning").of("kernel.firewall")[0]
    assert "nft t empty first, 0 with policy drop" in found["found"]
    nft(site, "flush ruleset\ntable ip f { chain input { type filter hook input priority 0; policy drop; "
              "iif lo accept; icmp type echo-reply accept\n }\n }")
    found = site.expect("kernel.firewall warning").of("kernel.firewall")[0]
    assert "1 with policy drop" in found["found"]
    assert "earshot-nf" not in found["action"]
    site.configure(datapath="type = netfilter")
    assert "on earshot-nf, as on " in next(f for f in site.check().findings if f["id"] == "kernel.firewall")["action"]


NAT = "flush ruleset\ntable {} t {{ chain in {{ type nat hook prerouting priority -100;\n{}\n }}\n chain other {{\n {}\n }}\n " \
      "chain out {{ type nat hook output priority -100;\n tcp dport 80 redirect to :81\n }}\n }}"
TAKES = {
    "redirect": ("inet", "tcp dport 80 redirect to :81", ""),
    "dnat": ("ip", "ip daddr 10.77.0.100 tcp dport 80 dnat to 172.17.0.2:80", ""),
    "any port": ("inet", "meta l4proto tcp counter redirect", ""),
    "range": ("ip", "iifname eth0 tcp dport 79-81 redirect to :81", ""),
    "jump": ("ip", "fib daddr type local jump other", 'iifname != "docker0" meta l4proto tcp tcp dport 80 dnat to 172.17.0.2:80'),
}
SPARES = {
    "another port": ("inet", "tcp dport 81 redirect to :80", ""),
    "another address": ("ip", "ip daddr 10.77.0.101 tcp dport 80 redirect to :81", ""),
    "udp": ("inet", "udp dport 80 redirect to :81", ""),
    "another interface": ("inet", "iifname docker0 tcp dport 80 redirect to :81", ""),
    "accepted before": ("inet", "ip daddr 10.77.0.100 tcp dport 80 accept\ntcp dport 80 redirect to :81", ""),
    "not sure": ("inet", "ip saddr 192.0.2.0/24 tcp dport 80 redirect to :81", ""),
    "none comes in": ("inet", "", ""),
}


@pytest.mark.parametrize("rule", [*TAKES, *SPARES])
def test_translation(site, rule):
    """A rule that certainly takes the service's port is an error, and named; with the netfilter datapath it does no harm."""
    def found():
        return next(f for f in site.check().findings if f["id"] == "kernel.translation")

    nft(site, NAT.format(*{**TAKES, **SPARES}[rule]))
    assert found()["severity"] == ("error" if rule in TAKES else "ok")
    if rule in TAKES:
        assert f"nft t {'other' if rule == 'jump' else 'in'} translates what is for port 80" in found()["found"]
        site.configure(datapath="type = netfilter")
        assert found()["severity"] == "info"


def test_translation_by_iptables(site):
    for rule in (["-p", "tcp", "--dport", "80", "-j", "REDIRECT", "--to-ports", "81"],
                 ["-p", "tcp", "-d", "10.77.0.100", "--dport", "80", "-j", "DNAT", "--to-destination", "172.17.0.2:80"]):
        command = site.command(site.n1, "iptables-nft", "-t", "nat")
        subprocess.run([*command, "-A", "PREROUTING", *rule], check=True)
        assert "nft nat PREROUTING translates what is for port 80" in site.expect(
            "kernel.firewall warning", "kernel.translation error").of("kernel.translation")[0]["found"]
        subprocess.run([*command, "-F"], check=True)


ZONE = """flush ruleset
table inet zones {{
    chain in {{ type filter hook prerouting priority raw; tcp dport 80 ct zone set {zone}; }}
    chain out {{ type filter hook output priority raw; tcp sport 80 ct zone set {zone}; }}
}}"""


def test_conntrack_zone(site):
    """A rule's zone, and the configuration's; of the netfilter datapath only, and of iptables' rules, too."""
    def of_zones():
        return next((f for f in site.check().findings if f["id"] == "kernel.conntrack_zone"))

    nft(site, ZONE.format(zone=7))
    assert of_zones()["severity"] == "ok"
    site.configure(datapath="type = netfilter")
    assert of_zones()["severity"] == "warning"
    assert "nft zones in puts packets into the conntrack zone 7, and conntrack_zone = 0" in of_zones()["found"]
    site.configure(datapath="type = netfilter conntrack_zone = 7")
    assert of_zones()["severity"] == "ok"
    nft(site, "flush ruleset")
    assert "no rule of nf_tables" in of_zones()["found"]
    for chain, ports in (("PREROUTING", "--dport"), ("OUTPUT", "--sport")):
        subprocess.run(site.command(site.n1, "iptables-nft", "-t", "raw", "-A", chain, "-p", "tcp", ports, "80", "-j", "CT", "--zone", "8"),
                       check=True)
    assert "nft raw PREROUTING puts packets into the conntrack zone 8, and conntrack_zone = 7" in of_zones()["found"]
    site.configure(datapath="type = netfilter conntrack_zone = 8")
    assert of_zones()["severity"] == "ok"
    site.start_daemon()
    assert of_zones()["severity"] == "ok"  # its own tables put its own packets there


def test_own_rules_are_no_firewall(site):
    """Those of the netfilter datapath."""
    site.configure(datapath="type = netfilter")
    site.start_daemon()
    assert site.check().of("kernel.firewall")[0]["severity"] == "ok"


def test_legacy_firewall(site):
    legacy = "/usr/sbin/iptables-legacy"
    if not os.access(legacy, os.X_OK):
        pytest.skip("no iptables-legacy")
    subprocess.run(site.command(site.n1, legacy, "-A", "INPUT", "-p", "tcp", "--dport", "22", "-j", "DROP"), check=True)
    assert "iptables-legacy filter" in site.expect("kernel.firewall warning").of("kernel.firewall")[0]["found"]
    subprocess.run(site.command(site.n1, legacy, "-F"), check=True)
    subprocess.run(site.command(site.n1, legacy, "-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "81", "-j", "REDIRECT"),
                   check=True)
    assert "nat chain for what comes in, iptables-legacy nat" in site.expect("kernel.firewall warning").of("kernel.firewall")[0]["found"]


def test_firewall_of_ipv6(site):
    """Rules for IPv6 count where a service has such an address, and only there."""
    legacy = "/usr/sbin/ip6tables-legacy"
    nft(site, "table ip6 six { chain in { type filter hook input priority 0; policy drop; icmpv6 type nd-neighbor-solicit accept\n }\n }")
    site.expect()
    site.have_ipv6()
    nft(site, "add rule ip6 six in meta l4proto ipv6-icmp accept")
    found = site.expect("kernel.firewall warning").of("kernel.firewall")[0]
    assert "nft six in first, 1 with policy drop" in found["found"]
    nft(site, "flush ruleset")
    subprocess.run(site.command(site.n1, legacy, "-A", "INPUT", "-p", "tcp", "--dport", "22", "-j", "DROP"), check=True)
    assert "ip6tables-legacy filter" in site.expect("kernel.firewall warning").of("kernel.firewall")[0]["found"]
