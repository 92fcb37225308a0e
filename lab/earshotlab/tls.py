# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot-tls: where it is, its command line, its part of the configuration, and the lab's own certificates.

    tls/ca.pem                    the authority that clients of the lab trust
    tls/www.pem, tls/www.key      for NAMES and the service's addresses
    tls/other.pem, tls/other.key  for OTHER
"""
import os
import shutil
import subprocess

from . import daemon, netns
from .errors import LabError

NAME = "earshot-tls"
PORT = 443
SERVER = "127.0.0.1:8080"  # the server behind, on each node
NAMES = ("www.example.org", "*.www.example.org", "localhost")
OTHER = ("other.example.org",)
EC, RSA = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"), ("rsa:3072",)  # kinds of keys


def is_there():
    """Whether the program is installed: the package earshot-lab does not ask for it."""
    return os.access(os.path.join(daemon.BIN, NAME), os.X_OK)


def check():
    """What it takes is there, or LabError."""
    daemon.binary(NAME)
    if not shutil.which("openssl"):
        raise LabError("openssl is not installed: apt-get install openssl")


def command_line(config, node, control):
    """A network namespace has a /sys of its own, without the control groups in which earshot-tls looks for its own."""
    groups = "mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec \"$@\""
    return ["/bin/sh", "-c", groups, NAME, daemon.binary(NAME), "--config", config, "--node", node, "--control", control]


def directory(lab_directory):
    return os.path.join(lab_directory, "tls")


def _openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"openssl {arguments[0]} failed", done.stderr.strip())


def _new_key(path, kind=EC):
    return ["-newkey", *kind, "-nodes", "-keyout", path]


def make_certificate(place, name, names, addresses=(), days=30, more=(), key=EC):
    """Write NAME.pem and NAME.key, issued by the lab's authority."""
    alternatives = ",".join([f"DNS:{each}" for each in names] + [f"IP:{each}" for each in addresses])
    _openssl("req", "-x509", *_new_key(f"{place}/{name}.key", key), "-subj", f"/CN={name}", "-days", str(days),
             "-CA", f"{place}/ca.pem", "-CAkey", f"{place}/ca.key", "-addext", f"subjectAltName={alternatives}",
             "-addext", "basicConstraints=critical,CA:FALSE", *more, "-out", f"{place}/{name}.pem")
    os.chmod(f"{place}/{name}.key", 0o600)


def make_files(lab_directory, vips):
    """Write the authority and the certificates."""
    place = directory(lab_directory)
    os.makedirs(place)
    _openssl("req", "-x509", *_new_key(f"{place}/ca.key"), "-subj", "/CN=lab authority", "-days", "30",
             "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", f"{place}/ca.pem")
    make_certificate(place, "www", NAMES, vips)
    make_certificate(place, "other", OTHER)


def sections(lab_directory, vips):
    """The service https for the configuration, and what stands in its tls { }."""
    place = directory(lab_directory)
    files = {what: [f"{place}/{name}.{ending}" for name in ("www", "other")]
             for what, ending in (("certificate", "pem"), ("key", "key"))}
    return {"address": ", ".join(vips), "port": PORT}, {**files, "server": SERVER}


def is_listening(node_namespace, vips):
    """Whether there is a listening socket at each address of the service, on that node."""
    def read():
        found = []
        for table in ("tcp", "tcp6"):
            with open(f"/proc/thread-self/net/{table}", encoding="ascii") as handle:
                found += [line.split()[1:4:2] for line in handle.readlines()[1:]]
        return [local for local, state in found if state == "0A" and int(local.rpartition(":")[2], 16) == PORT]

    return len(set(netns.in_namespace(node_namespace, read))) >= len(vips)

