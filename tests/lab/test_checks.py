# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of another port, by HTTPS, with a list of statuses and a text, of real servers: nginx, and OpenSSL's own."""
import contextlib
import os
import subprocess
import time

import pytest

from earshotlab import Lab, server, topology, wait_for
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
HEALTH = 8443
PACE = "interval_ms = 200  timeout_ms = 1000"

# What it says of itself is in a file of its node.
NGINX = """\
    access_log off;
    server {{
        listen 8443 ssl;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        location /health {{ root {place}; add_header X-Name $ssl_server_name; }}
        location /login {{ return 401; }}
    }}"""


def make_certificates(directory):
    """A CA, and a certificate of www.example that it has issued: the paths of ca, cert and key."""
    ca, ca_key, cert, key, request, names = (str(directory / name) for name in
                                             ("ca", "ca_key", "cert", "key", "request", "names"))
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    with open(names, "w", encoding="ascii") as handle:
        handle.write("subjectAltName = DNS:www.example\n")
    for command in ([*new, "-x509", "-days", "2", "-subj", "/CN=ca.example", "-keyout", ca_key, "-out", ca],
                    [*new, "-subj", "/CN=www.example", "-keyout", key, "-out", request],
                    ["openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
                     "-extfile", names, "-out", cert]):
        subprocess.run(command, check=True, capture_output=True)
    return ca, cert, key


@pytest.fixture(scope="module", name="lab")
def _lab(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    ca, cert, key = make_certificates(directory)
    with Lab(nodes=3, policy="wrr") as lab, contextlib.ExitStack() as stack:
        with open(lab.config_file, encoding="utf-8") as handle:
            lab.plain = handle.read()
        lab.ca, lab.cert, lab.key, lab.place = ca, cert, key, {}
        for node in ALL:
            lab.place[node] = tmp_path_factory.mktemp(node)
            say(lab, node, "all is well\n")
            child = lab.node(node).popen(server.nginx(str(lab.place[node]), NGINX.format(cert=cert, key=key, place=lab.place[node]), "tls"))
            stack.callback(child.wait)
            stack.callback(child.terminate)
            wait_for(lambda node=node: f":{HEALTH} " in lab.node(node).exec(["ss", "-ltn"]).stdout, "nginx with TLS")
        yield lab


def say(lab, node, text):
    (lab.place[node] / "health").write_text(text)


def check(lab, text):
    """With this check of service web on all nodes."""
    assert lab.plain.count("\nservice web {\n") == 1
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(lab.plain.replace("\nservice web {\n", f"\nservice web {{\ncheck {{ {PACE}  {text} }}\n"))
    for node in ALL:
        lab.node(node).exec(["earshot", "reload"])


def trouble(lab, of, at):
    return next(node for node in lab.status(at)["nodes"] if node["name"] == of).get("trouble", "")


def has(lab, of, text):
    """That the nodes say so of its server, or nothing if @text is empty; @of itself says why."""
    wait_for(lambda: (text in trouble(lab, of, of) if text else not trouble(lab, of, of)) and
             all(bool(trouble(lab, of, at)) == bool(text) for at in ALL), f"'{text}' of {of}", 20,
             lambda: [trouble(lab, of, at) for at in ALL])


def answers(lab, count=40):
    """Who serves so many requests of clients."""
    return {raw.ask(lab.client, raw.head("/1k", Connection="close"), timeout=5)[0].node for _ in range(count)}


def test_https_of_another_port(lab):
    """What is answered there decides who gets requests, though the server of the clients is always well."""
    check(lab, f'type = https  port = {HEALTH}  path = /health  host = www.example  body = "all is well"')
    for node in ALL:
        has(lab, node, "")
    assert answers(lab) == set(ALL)
    say(lab, "n2", "maintenance\n")
    has(lab, "n2", "the answer to GET /health does not have \"all is well\" in its body")
    wait_for(lambda: "n2" not in answers(lab, 20), "requests that go to the others", 20)
    say(lab, "n2", "oh, all is well\n")
    has(lab, "n2", "")
    wait_for(lambda: answers(lab, 20) == set(ALL), "its share", 20)


def test_certificate(lab):
    """Whoever has issued it is no matter without ca_file; with it, that and the name are."""
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = other.example")
    for node in ALL:
        has(lab, node, "")
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = www.example  ca_file = {lab.ca}")
    time.sleep(1)
    for node in ALL:
        has(lab, node, "")
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = other.example  ca_file = {lab.ca}")
    has(lab, "n1", "the server's certificate: hostname mismatch")
    # It is so on all of them, and no client pays for that.
    assert len(answers(lab)) >= 2
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = www.example  ca_file = /nowhere/ca.pem")
    has(lab, "n1", "ca_file /nowhere/ca.pem has no certificates")
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = www.example  ca_file = {lab.ca}")
    for node in ALL:
        has(lab, node, "")


def test_statuses(lab):
    """A page that asks for a password is as good as another, if the list says so."""
    check(lab, f'type = https  port = {HEALTH}  path = /login  status = {{"200..299"}}')
    has(lab, "n3", "the answer to GET /login is 401")
    check(lab, f'type = https  port = {HEALTH}  path = /login  status = {{"200..299", "401"}}')
    for node in ALL:
        has(lab, node, "")


def test_nobody_listens_there(lab):
    """That is no news of the server of clients: one node at most is out, and all know why."""
    check(lab, "type = tcp  port = 9")
    for node in ALL:
        has(lab, node, "refused")
    assert len(answers(lab, 60)) >= 2


@pytest.mark.parametrize("program", ["nginx", "openssl"])
def test_tls_that_is_asked_in_the_clear(lab, program):
    """The commonest mistake has a name."""
    port = HEALTH
    with contextlib.ExitStack() as stack:
        if program == "openssl":
            port = 8444
            for node in ALL:
                child = lab.node(node).popen(["openssl", "s_server", "-accept", str(port), "-cert", lab.cert, "-key", lab.key, "-www", "-quiet"])
                stack.callback(child.wait)
                stack.callback(child.terminate)
                wait_for(lambda node=node: f":{port} " in lab.node(node).exec(["ss", "-ltn"]).stdout, "openssl s_server")
        check(lab, f"type = http  port = {port}")
        for node in ALL:
            has(lab, node, "it looks like TLS; expected type = https")
        check(lab, f"type = https  port = {port}  status = {{\"200..499\"}}")
        for node in ALL:
            has(lab, node, "")
        check(lab, f"type = https  port = {topology.PORT}")
        has(lab, "n1", "the server does not speak TLS")


def test_no_error_in_its_log(lab):
    """A check that passes leaves nothing in the server's log."""
    check(lab, f"type = https  port = {HEALTH}  path = /health  host = www.example  ca_file = {lab.ca}")
    has(lab, "n1", "")
    log = os.path.join(lab.place["n1"], "error.log")
    size = os.path.getsize(log)
    time.sleep(2)
    with open(log, encoding="utf-8") as handle:
        handle.seek(size)
        assert handle.read() == ""
