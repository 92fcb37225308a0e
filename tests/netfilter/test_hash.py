# SPDX-License-Identifier: GPL-2.0-or-later
"""The hash by which nf_tables tell whose a flow is (ring_hash = jhash): what the kernel's own rule computes is what the model says."""
import json
import os
import random
import socket

import pytest

from earshotlab import in_namespace, wait_for
from earshotlab.netns import ip, ip_batch, set_sysctls
from namespaces import Site
from packets import model
from place import run
from tree import skip

SEED = 0x12345678
RULES = f"""\
table inet test {{
    set seen4 {{ type ipv4_addr . inet_service . mark; flags dynamic; size 65535; }}
    set seen6 {{ type ipv6_addr . inet_service . mark; flags dynamic; size 65535; }}
    chain input {{
        type filter hook prerouting priority -140
        meta l4proto != tcp accept
        meta nfproto ipv4 meta mark set jhash ip saddr . tcp sport mod 65536 seed {SEED} add @seen4 {{ ip saddr . tcp sport . meta mark }} drop
        meta nfproto ipv6 meta mark set jhash ip6 saddr . tcp sport mod 65536 seed {SEED} add @seen6 {{ ip6 saddr . tcp sport . meta mark }} drop
    }}
}}
"""


@pytest.fixture(scope="module", name="site")
def _site():
    skip("needs root" if os.geteuid() else None)
    site = Site("nfh", "client", "server")
    client, server = site.namespaces
    with site.setting_up():
        for namespace in (client, server):
            ip("netns", "add", namespace)
        ip("link", "add", "wire", "netns", client, "type", "veth", "peer", "name", "wire", "netns", server)
        for namespace, last in ((client, 1), (server, 2)):
            set_sysctls(namespace, {"net.ipv6.conf.default.accept_dad": 0, "net.ipv6.conf.all.accept_dad": 0})
            ip_batch(namespace, [f"addr add 10.79.1.{last}/16 dev wire", f"addr add fd00:79::{last}/64 dev wire nodad", "link set wire up"])
        ip_batch(client, [*(f"addr add 10.79.2.{n}/16 dev wire" for n in range(1, 5)),
                          *(f"addr add fd00:79::{n:x}:8000:{n}/64 dev wire nodad" for n in range(3, 7))])
        run(server, "nft", "-f", "-", stdin=RULES)
    yield client, server
    site.close()


@pytest.mark.parametrize("family, sources", (
    (4, ["10.79.1.1", *(f"10.79.2.{n}" for n in range(1, 5))]), (6, ["fd00:79::1", *(f"fd00:79::{n:x}:8000:{n}" for n in range(3, 7))])))
def test_model(site, family, sources):
    client, server = site
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    wanted = {(source, port) for source in sources for port in (1, 255, 256, 32768, 65535, *random.sample(range(2000, 60000), 40))}

    def send():
        for source, port in wanted:
            with socket.socket(kind, socket.SOCK_STREAM) as s:
                s.setblocking(False)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((source, port))
                s.connect_ex(("10.79.1.2" if family == 4 else "fd00:79::2", 80))

    def seen():
        listed = json.loads(run(server, "nft", "-j", "list", "set", "inet", "test", f"seen{family}"))
        elements = next(item["set"] for item in listed["nftables"] if "set" in item).get("elem", [])
        return {(words[0], words[1]): words[2] for words in (element["concat"] for element in elements)}

    in_namespace(client, send)
    wait_for(lambda: set(seen()) == wanted, "the kernel has computed all")
    assert seen() == {(source, port): model.jhash_slot(SEED, source, port) for source, port in wanted}
