# SPDX-License-Identifier: GPL-2.0-or-later
"""Scanners that look for what is weak in a TLS server find nothing: sslscan, and testssl.sh in full runs."""
import json
import os
import re
import xml.etree.ElementTree

import pytest

from cluster import secure as cluster
from earshotlab import tls
from web.staples import make_staple

pytestmark = pytest.mark.earshot
NAMES = [tls.NAMES[0], tls.OTHER[0]]  # with an elliptic key, and with an RSA key
OF_A_SERVER = ["-addext", "keyUsage=critical,digitalSignature", "-addext", "extendedKeyUsage=serverAuth",
               "-addext", "authorityInfoAccess=OCSP;URI:http://ocsp.example.org/"]
# The choice among the strong is the client's, as Mozilla's "intermediate" has it: a telephone without AES takes ChaCha20.
ALLOWED = {"cipher_order", "engine_problem"}


@pytest.fixture(scope="module", name="lab")
def _lab():
    """As an operator has it who does what docs/tls.md says: certificates of 90 days, with OCSP answers."""
    with cluster.lab_of({"https.inspect": "never"}, nodes=2) as lab:
        cluster.start_backends(lab)
        place = tls.directory(lab.directory)
        for name, names, key in (("www", tls.NAMES, tls.EC), ("other", tls.OTHER, tls.RSA)):
            tls.make_certificate(place, name, names, lab.net.vips, days=90, more=OF_A_SERVER, key=key)
            make_staple(place, name)
        with cluster.changed(lab) as change:
            change("tls {", f"tls {{ ocsp = {{ {place}/www.ocsp, {place}/other.ocsp }} ")
            yield lab


def sslscan(lab, name, *options):
    return lab.client.exec(["sslscan", "--no-colour", f"--sni-name={name}", *options, f"{lab.net.vip}:{tls.PORT}"], timeout=60).stdout


@pytest.mark.parametrize("name", NAMES)
def test_sslscan(lab, name):
    """Protocols, ciphers, groups, certificate, renegotiation, Heartbleed, stapling."""
    found = xml.etree.ElementTree.fromstring(sslscan(lab, name, "--show-certificate", "--xml=-")).find("ssltest")
    protocols = {each.get("type") + each.get("version"): each.get("enabled") for each in found.iter("protocol")}
    assert protocols == {"ssl2": "0", "ssl3": "0", "tls1.0": "0", "tls1.1": "0", "tls1.2": "1", "tls1.3": "1"}
    ciphers = [(each.get("sslversion"), each.get("cipher"), each.get("strength"), int(each.get("ecdhebits") or 0)) for each in found.iter("cipher")]
    assert {version for version, *_ in ciphers} == {"TLSv1.2", "TLSv1.3"} and len(ciphers) == 6
    for version, cipher, strength, exchange in ciphers:
        assert strength in ("strong", "acceptable") and exchange >= 250 and re.search("GCM|CHACHA20", cipher), (version, cipher, strength)
    assert all(int(each.get("bits")) >= 112 for each in found.iter("group"))
    assert [each.get("vulnerable") for each in found.iter("heartbleed")] == ["0", "0"]
    assert found.find("renegotiation").get("supported") == "0"
    certificate = found.find(".//certificate[@type='short']")
    key = certificate.find("pk")
    assert (key.get("error"), certificate.find("expired").text, certificate.find("self-signed").text) == ("false", "false", "false")
    assert int(key.get("bits")) >= (128 if key.get("type") == "EC" else 3072)
    assert re.search("(?i)sha256", certificate.find("signature-algorithm").text)
    text = sslscan(lab, name, "--ocsp", "--no-ciphersuites")
    assert re.search("OCSP Response Status: successful", text) and re.search("Cert Status: good", text), text
    assert "Server supports TLS Fallback SCSV" in text


def test_testssl(lab, tmp_path):
    """The same and more by testssl.sh: what it calls less than good is none of what TLS is asked for here."""
    name, out = NAMES[1], tmp_path / "found.json"
    done = lab.client.exec(
        ["testssl", "--color", "0", "--warnings", "off", "--openssl-timeout", "5", "--nodns", "none", "--ip", lab.net.vip, "--sneaky",
         "--add-ca", f"{tls.directory(lab.directory)}/ca.pem", "--jsonfile", str(out),
         "--protocols", "--std", "--fs", "--server-preference", "--server-defaults", "--vulnerable", f"{name}:{tls.PORT}"],
        check=False, timeout=500)
    assert os.path.exists(out), done.stdout + done.stderr
    found = {each["id"]: each for each in json.loads(out.read_text())}
    bad = [each for each in found.values() if each["severity"] not in ("OK", "INFO") and each["id"] not in ALLOWED]
    assert not bad, f"{bad}\n{done.stdout}"
    for each in ("secure_renego", "secure_client_renego", "heartbleed", "CCS", "ticketbleed", "CRIME_TLS", "OCSP_stapling", "TLS1_3"):
        assert found[each]["severity"] == "OK", found[each]
    assert "offered" in found["ALPN"]["finding"] or "http/1.1" in found["ALPN"]["finding"]
    assert int(re.search(r"valid for (\d+)", found["TLS_session_ticket"]["finding"])[1]) <= 86400
