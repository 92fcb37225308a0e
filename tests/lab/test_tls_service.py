# SPDX-License-Identifier: GPL-2.0-or-later
"""A service with tls { }, without earshot-tls: what daemons make of its configuration and certificates, and that programs which listen on
the service's own address hand connections over to each other."""
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import time

import pytest

from cluster import programs
from earshotlab import Lab
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
NETFILTER = ["n2", "n3"]
LIKE = os.path.join(os.path.dirname(programs.__file__), "like.py")
PORT = 443


def section(lab):
    addresses = ", ".join(lab.net.vips)
    return (f'service shop {{\n    address = "{addresses}"\n    port = {PORT}\n    inspect = every\n    tls {{\n'
            f"        certificate = {lab.directory}/a.pem\n        key = {lab.directory}/a.key\n        server = \"127.0.0.1:1\"\n    }}\n}}\n")


def make_certificate(lab, days):
    """Until in so many days from now."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days), "-subj", "/CN=a",
                    "-addext", "subjectAltName=DNS:a.example", "-keyout", f"{lab.directory}/a.key", "-out", f"{lab.directory}/a.pem"],
                   check=True, capture_output=True)
    os.chmod(f"{lab.directory}/a.key", 0o600)


@pytest.fixture(scope="module", name="lab", params=["4", "6"], ids=["v4", "v6"])
def _lab(request):
    with Lab(nodes=3, policy="uri-hash", datapath="bpf", node_datapath={name: "netfilter" for name in NETFILTER}, family=request.param) as lab, \
            contextlib.ExitStack() as stack:
        for path in {lab.config_of(node.name) for node in lab.nodes}:
            with open(path, "a", encoding="utf-8") as handle:
                handle.write(section(lab))
        lab.refused = lab.node("n1").exec(["earshot", "reload"], check=False)
        make_certificate(lab, 20)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
            programs.start(stack, node, [sys.executable, "-I", LIKE, programs.LIBRARY, node.name, str(PORT), lab.net.vip], PORT)
        lab.free_ports = {name: raw.ports(lab, name, 20000, "shop") for name in ALL}
        yield lab


@contextlib.contextmanager
def connection(lab, node):
    """To the program of that node: says a line, and hears the answer."""
    with raw.connect(lab.client, (lab.net.vip, PORT), port=next(lab.free_ports[node]), timeout=20) as sock, sock.makefile("rw") as both:
        def say(line):
            both.write(line + "\n")
            both.flush()
            return both.readline().rstrip()
        yield say


def test_certificates(lab):
    """A reload without them is refused, with file and line; when they end is told, and whether they should be renewed."""
    assert lab.refused.returncode and re.search(r"earshot.*\.conf:\d+: service shop: tls: \S+/a\.pem: cannot be read: No such file", lab.refused.stderr)
    for name in ALL:
        ends = re.search(r'^earshot_certificate_expiry_time_seconds\{service="shop",certificate="\S+/a\.pem"\} (\d+)$',
                         lab.node(name).exec(["earshot", "metrics"]).stdout, re.M)
        assert abs(int(ends[1]) - time.time() - 20 * 86400) < 600
        found = json.loads(lab.node(name).exec(["earshot", "--json", "check"], check=False).stdout)["findings"]
        told = {finding["id"]: finding["severity"] for finding in found}
        assert told["tls.certificate"] == told["tls.key"] == told["server.listen"] == "ok", found
        assert (told["tls.expiry"], told["tls.server"]) == ("warning", "error"), found
    services = json.loads(lab.node("n1").exec(["earshot", "--json", "status"]).stdout)["services"]
    assert [service["inspect"] for service in services] == ["first", "every"]


@pytest.mark.parametrize("program", ALL)
def test_handed_over(lab, program):
    """From each node to each other one, and from there to each again, whatever the datapath of each."""
    for target, later in itertools.permutations(ALL, 2):
        if target == program:
            continue
        with connection(lab, program) as say:
            assert say("who") == program
            assert say(f"to {target}") == f"{target} took it"
            assert say("who") == target
            # One that has just given it away, and has not done with that yet, refuses.
            told = next((answer for answer in (say(f"to {later}") for _ in range(1000)) if not answer.endswith("refused")), "nothing else")
            assert told == f"{later} took it"
            assert say("who") == later
