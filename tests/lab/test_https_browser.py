# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium loads pages of pictures over HTTPS, each picture from a node that the rules name: the browser's kept connections move."""
import base64
import hashlib
import json
import subprocess

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import Lab, tls
from web import pictures
from web.browser import Browser

pytestmark = pytest.mark.earshot
NAME = tls.NAMES[0]
IMAGES = 90
SOURCES = [f"/{ALL[number % 3]}/image{number}.png" for number in range(IMAGES)]
RULES = "".join(f'rule to-{node} {{ service = https  path = "/{node}/"  nodes = {node} }}\n' for node in ALL)
# Their digests, from the network and not from the browser's cache.
FETCHED = """Promise.all(%s.map(async source => {
  const response = await fetch(source, {cache: "no-store"});
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await response.arrayBuffer()));
  return [source, response.headers.get("X-Node"), Array.from(digest, byte => byte.toString(16).padStart(2, "0")).join("")];
}))"""


@pytest.fixture(scope="module", name="docroot")
def _docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    for number, source in enumerate(SOURCES):
        path = directory / source[1:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pictures.png(number))
    (directory / "page.html").write_text(pictures.page(SOURCES))
    (directory / "favicon.ico").write_bytes(pictures.png(1))
    return directory


@pytest.fixture(scope="module", name="lab")
def _lab(docroot):
    with Lab(nodes=3, tls=True, docroot=str(docroot), settings={"https.inspect": "every", "tls.workers": 2}) as lab:
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


def digest_of_key(path):
    """What Chromium is told to trust: of the certificate's public key."""
    key = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-pubkey"], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, capture_output=True, check=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


@pytest.fixture(name="browser")
def _browser(lab, tmp_path):
    trusted = digest_of_key(f"{tls.directory(lab.directory)}/www.pem")
    with Browser(lab.client.popen, tmp_path / "profile", f"--ignore-certificate-errors-spki-list={trusted}",
                 f"--host-resolver-rules=MAP * {lab.net.vip}", "--disable-quic") as browser:
        browser.tell("Log.enable")
        browser.tell("Runtime.enable")
        browser.tell("Network.enable")
        yield browser


def test_pictures(lab, browser):
    """All pictures, then all of them again on connections that were kept meanwhile; nothing in the console, no load that failed."""
    names = ("moved", "handshakes", "records_bad")
    counted = [{name: cluster.total(lab, name) for name in names}]
    browser.go(f"https://{NAME}/page.html")
    assert browser.evaluate("document.title") == f"{IMAGES} of {IMAGES} pictures"
    counted.append({name: cluster.total(lab, name) for name in names})
    right = {source: hashlib.sha256(pictures.png(number)).hexdigest() for number, source in enumerate(SOURCES)}
    for _ in range(3):
        for source, node, digest in browser.evaluate(FETCHED % json.dumps(SOURCES)):
            assert digest == right[source], source
            assert node in ALL
    counted.append({name: cluster.total(lab, name) for name in names})
    print(counted)
    assert counted[1]["moved"] - counted[0]["moved"] > IMAGES // 3 and counted[2]["moved"] - counted[1]["moved"] > IMAGES
    assert counted[1]["handshakes"] == counted[2]["handshakes"], "connections that were kept are used"
    assert counted[0]["records_bad"] == counted[2]["records_bad"]
    bad = [event for event in browser.events if event["method"] in (
        "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")]
    assert not bad, bad
