# SPDX-License-Identifier: GPL-2.0-or-later
"""OCSP answers for the lab's certificates."""
import subprocess
import time


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True).stdout


def make_staple(place, name):
    """What the lab's authority says of that certificate: it is good, for a week."""
    ca, path = ["-CA", f"{place}/ca.pem", "-rsigner", f"{place}/ca.pem", "-rkey", f"{place}/ca.key"], f"{place}/{name}"
    serial = openssl("x509", "-in", f"{path}.pem", "-noout", "-serial").strip().partition("=")[2]
    ends = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + 90 * 86400))
    with open(f"{path}.index", "w", encoding="ascii") as index:
        index.write(f"V\t{ends}\t\t{serial}\tunknown\t/CN={name}\n")
    openssl("ocsp", "-issuer", f"{place}/ca.pem", "-cert", f"{path}.pem", "-no_nonce", "-reqout", f"{path}.request")
    openssl("ocsp", "-index", f"{path}.index", *ca, "-reqin", f"{path}.request", "-respout", f"{path}.ocsp", "-ndays", "7")
