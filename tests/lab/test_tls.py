# SPDX-License-Identifier: GPL-2.0-or-later
"""TLS as docs/tls.md has it: a service that nobody reads, tickets that each node can read, and ACME's challenges on one node."""
import os
import re
import socket
import ssl
import subprocess

import pytest

from earshotlab import Lab, server, topology, wait_for
from tree import SOURCE
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
TLS = 443
HTTP = 8080  # of nginx as the page has it on port 80
COMES = 30  # so often a client comes back; that all of these come to one node is out of the question
NGINX = """\
    access_log off;
    server {{
        listen {port} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {directory}/cert;
        ssl_certificate_key {directory}/key;
        {ticket_key}
        add_header X-Node {node} always;
        location / {{ return 200 "{node}\\n"; }}
    }}"""


def page(kind="conf"):
    """The configurations of docs/tls.md, in its order: Earshot's, or those of nginx."""
    with open(os.path.join(SOURCE, "docs/tls.md"), encoding="utf-8") as text:
        return re.findall(rf"^```{kind}\n(.*?)^```$", text.read(), re.M | re.S)


@pytest.fixture(scope="module", name="directory")
def _directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=www.example.org", "-keyout", str(directory / "key"), "-out", str(directory / "cert")], check=True,
                   capture_output=True)
    subprocess.run(["openssl", "rand", "-out", str(directory / "ticket.key"), "80"], check=True)
    return directory


@pytest.fixture(scope="module", name="lab")
def _lab(directory):
    services, acme = page()
    services = services.replace("rule sticky { service = tls  affinity = source }\n", "")  # all come to all nodes
    with Lab(nodes=3, family="4") as lab:
        with open(lab.config_file, encoding="utf-8") as handle:
            text = re.sub(r"^service web \{.*?^\}\n", "", handle.read(), flags=re.M | re.S)
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text + services + acme + f"service any {{ address = {topology.VIP}  port = {HTTP}  inspect = never }}\n")
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        start(lab, directory)
        yield lab


def start(lab, directory):
    """nginx with TLS on each node, with the page's ticket key on one port, and with keys of its own on another."""
    for node in lab.nodes:
        for port, key in ((TLS, f"ssl_session_ticket_key {directory}/ticket.key;"), (TLS + 1, "")):
            place = os.path.join(lab.node_directory(node.name), f"tls-{port}")
            os.makedirs(place)
            node.popen(server.nginx(place, NGINX.format(port=port, directory=directory, ticket_key=key, node=node.name), "tls"))
    for node in lab.nodes:
        wait_for(lambda node=node: node.exec(["ss", "-ltn"]).stdout.count(":44") == 2, "nginx with TLS")


def acme_directory(lab, node):
    return os.path.join(lab.node_directory(node), "acme")


@pytest.fixture(name="challenges")
def _challenges(lab):
    """nginx on each node as the page has it, each with files of its own."""
    text, = page("nginx")
    children = {}
    for node in lab.nodes:
        place = os.path.join(lab.node_directory(node.name), "challenges")
        os.makedirs(place)
        os.makedirs(os.path.join(acme_directory(lab, node.name), ".well-known/acme-challenge"))
        http = text.replace("listen 80;", f"listen {HTTP};").replace("/var/www/acme", acme_directory(lab, node.name))
        children[node.name] = node.popen(server.nginx(place, "    access_log off;\n" + http, "challenges"))
    for node in lab.nodes:
        wait_for(lambda node=node: node.exec(["ss", "-ltn"]).stdout.count(f":{HTTP} ") == 1, "nginx with challenges")
    return children


def come(lab, address, context, session):
    """A connection with one request: (node, its session, was that resumed)."""
    with lab.client.socket(socket.AF_INET) as plain:
        plain.settimeout(20)
        plain.connect(address)
        with context.wrap_socket(plain, session=session) as sock:
            sock.sendall(raw.head("/", Connection="close"))
            return raw.receive(sock).node, sock.session, sock.session_reused


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_tickets(lab, version):
    """With the page's key each node resumes what another one has begun; without it none does, on the nodes' own addresses."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    wait_for(lambda: lab.client.exec(["openssl", "s_client", "-connect", f"{topology.VIP}:{TLS}"], check=False,
                                     stdin=subprocess.DEVNULL).returncode == 0, "TLS by the service's address")
    nodes, session = set(), None
    for number in range(COMES):
        node, session, resumed = come(lab, (topology.VIP, TLS), context, session)
        assert resumed or not number, (number, node)
        nodes.add(node)
    assert nodes == set(ALL)
    for port, expected in ((TLS, True), (TLS + 1, False)):
        _, session, _ = come(lab, (lab.node("n1").public_address, port), context, None)
        assert come(lab, (lab.node("n2").public_address, port), context, session)[2] == expected


def test_challenges(lab):
    """ACME's requests come to one node, all others to all."""
    wait_for(lambda: lab.status("n1")["services"][0]["inspect"] == "every", "the page's configuration")
    asked = [raw.ask(lab.client, raw.head(f"/.well-known/acme-challenge/{i}"))[0] for i in range(20)]
    assert {answer.node for answer in asked} == {"n1"}
    assert {raw.ask(lab.client, raw.head(f"/{i}"))[0].node for i in range(40)} == set(ALL)


def test_challenges_of_any_node(lab, challenges):
    """Whichever node has written the answer, each of them gives it, as the page's nginx asks the others; also without one of these."""
    def answers(token, count=12):
        address = (topology.VIP, HTTP)
        return [raw.ask(lab.client, raw.head(f"/.well-known/acme-challenge/{token}"), address=address)[0] for _ in range(count)]

    def write(node, token):
        with open(os.path.join(acme_directory(lab, node), ".well-known/acme-challenge", token), "w", encoding="ascii") as answer:
            answer.write(f"{token}.of-{node}")

    wait_for(lambda: raw.ask(lab.client, raw.head("/"), address=(topology.VIP, HTTP))[0].status == 301, "the redirect")
    for node in ALL:
        write(node, f"token-{node}")
        assert {(each.status, each.text.decode()) for each in answers(f"token-{node}")} == {(200, f"token-{node}.of-{node}")}
    assert {each.status for each in answers("unknown")} == {404}
    with raw.connect(lab.client, (lab.node("n1").public_address, 8402)) as sock:
        sock.sendall(raw.head("/.well-known/acme-challenge/token-n1", Connection="close"))
        assert raw.receive(sock).status == 403  # it is for the nodes among themselves
    challenges["n3"].terminate()
    challenges["n3"].wait()
    wait_for(lambda: 200 in {each.status for each in answers("token-n2", 1)}, "an answer", 20)
    write("n1", "late")
    assert {(each.status, each.text.decode()) for each in answers("late")} == {(200, "late.of-n1")}
