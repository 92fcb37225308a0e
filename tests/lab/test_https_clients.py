# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS clients with TLS of their own, Go's net/http and Java's java.net.http: their kept connection moves with each request."""
import json
import os
import shutil
import subprocess

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import families, tls
from tree import skip

pytestmark = pytest.mark.earshot
PATH = "/usr/bin:/bin"  # Debian's, whatever else there is
SOURCES = os.path.join(os.path.dirname(cluster.__file__), "..", "web", "clients")
REQUESTS = 120
# Java's client renews its keys after so much that was sent or read; by default after 137 GB.
KEY_LIMITS = "jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 2^23, ChaCha20-Poly1305 KeyUpdate 2^23\n"


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.moving_lab() as lab:
        yield lab


def build(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def go(directory):
    """The command that runs Go's client."""
    skip(None if shutil.which("go", path=PATH) else "needs golang-go")
    program = directory / "client"
    if not program.exists():
        build(["go", "build", "-o", program, f"{SOURCES}/client.go"],
                    {"PATH": PATH, "HOME": str(directory), "GOPROXY": "off", "GOFLAGS": "-p=2", "GO111MODULE": "off"})
    return [str(program)]


def java(directory):
    """The command that runs Java's."""
    skip(None if shutil.which("javac", path=PATH) else "needs openjdk-17-jdk-headless")
    if not (directory / "Client.class").exists():
        build(["javac", "-d", directory, f"{SOURCES}/Client.java"], {"PATH": PATH})
    return ["java", "-cp", str(directory), "Client"]


@pytest.fixture(scope="module", name="directory")
def _directory(tmp_path_factory):
    return tmp_path_factory.mktemp("clients")


def ask(lab, command, version):
    """Run it; what it tells, and how much has been counted meanwhile."""
    names = ("moved", "handshakes", "records_bad")
    before = [cluster.total(lab, name) for name in names]
    done = lab.client.exec([*command, f"{tls.directory(lab.directory)}/ca.pem", f"https://{families.in_url(lab.net.vip)}", version,
                            str(REQUESTS), "7"], check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert len(told["answered"]) == REQUESTS and set(told["answered"]) == set(ALL)
    return told, {name: cluster.total(lab, name) - count for name, count in zip(names, before)}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("client", [go, java])
def test_keep_alive(lab, directory, client, version):
    """GET and POST with bodies of all lengths, right to the byte, on one connection."""
    told, since = ask(lab, client(directory), version)
    assert since["handshakes"] == 1 and not since["records_bad"], since
    right = sum(asked == answered for asked, answered in zip(told["asked"], told["answered"]))
    if lab.options["datapath"] != "netfilter":  # where a connection comes to a node eight times a minute
        assert right >= REQUESTS * 0.9 and since["moved"] >= REQUESTS * 0.9, (right, since)


def test_java_renews_keys(lab, directory):
    """Once that much was read, it says so with each record until it has read the answer. It takes no answer in between two responses, but
    another connection."""
    command = java(directory)
    limits = directory / "limits"
    limits.write_text(KEY_LIMITS)
    _, since = ask(lab, [command[0], f"-Djava.security.properties={limits}", *command[1:]], "1.3")
    assert not since["records_bad"] and since["moved"] >= REQUESTS * 0.9, since
