# SPDX-License-Identifier: GPL-2.0-or-later
"""What ./dev bench https measures: the modes, and the labs, servers and proxies behind them. xo_targets.py has the same without TLS.

    plain lab    client -- brpub -- n1... (nginx: TLS and plain) and one more, with haproxy and nginx as proxies that end TLS
    earshot labs client -- brpub -- n1... (nginx, earshot-tls, earshotd), one lab for each configuration

All have the same certificate and the same files, and nginx with one worker behind them. A target's path begins with the node
that it is for: Earshot has a rule for each, and the proxies as well. /any/ is for any node, and in /content/ the rest of the path
says which.
"""
import os
import signal
import subprocess

from cluster import secure
from earshotlab import LabError, server, tls, topology, wait_for

import targets

NAME = "www.example.org"
SIZES = {**targets.SIZES, "4k": 4 << 10, "16k": 16 << 10, "64k": 64 << 10, "256k": 256 << 10, "4m": 4 << 20}
FILES = 32  # of each size: names of one file
TRIES = 5
PORTS = {"haproxy": 8001, "nginx-proxy": 8002}
PLAIN_PORTS = {"haproxy": 8003, "nginx-proxy": 8004}
EVERY = {"https.inspect": "every"}
EARSHOT = {
    "earshot": {"policy": "wrr", "settings": EVERY},
    "earshot-never": {"policy": "wrr", "settings": {"https.inspect": "never"}},
    "earshot-loopback": {"policy": "wrr", "settings": {**EVERY, "tls.server": "127.0.0.1:8080"}},
}
PROXIES = tuple(PORTS)
DEFAULT_MODES = ("direct", "earshot", *PROXIES)
MODES = ("direct", *EARSHOT, *PROXIES)

_TLS = """\
        ssl_certificate {place}/www.pem;
        ssl_certificate_key {place}/www.key;
        ssl_protocols TLSv1.3;
        ssl_session_tickets on;"""
_HAPROXY = """\
ssl-default-bind-options ssl-min-ver TLSv1.3
tune.ssl.cachesize 20000"""


def make_docroot(directory):
    """/13k/0, /13k/1, ...: one file under many names, and /n1/, /any/, /content/ that are all of it."""
    targets.make_docroot(directory, SIZES, FILES)
    for name in ("any", "content", *(f"n{number}" for number in range(1, 10))):
        os.symlink(".", os.path.join(directory, name))


class Targets(targets.Targets):
    """Brings up what a mode needs when it is first asked for; `stack` takes it down."""

    scheme = "https"
    read_counters = staticmethod(secure.counters)

    def __init__(self, stack, docroot, nodes=targets.NODES):
        self.place = os.path.join(docroot, "tls")
        files = {"tls.certificate": f"{self.place}/www.pem", "tls.key": f"{self.place}/www.key"}
        super().__init__(stack, docroot, {mode: {
            "tls": True, "own_files": True, **options, "settings": {**targets.WORKERS, **files, **options["settings"]},
        } for mode, options in EARSHOT.items()}, nodes=nodes)
        tls.make_files(docroot, [topology.VIP])
        with open(f"{self.place}/both.pem", "wb") as both:
            for name in ("www.pem", "www.key"):
                with open(f"{self.place}/{name}", "rb") as part:
                    both.write(part.read())

    def url(self, mode):
        """ADDRESS:PORT, which is all that differs."""
        lab = self.lab(mode)
        if mode in EARSHOT:
            return f"{topology.VIP}:{tls.PORT}"
        if mode == "direct":
            return f"{lab.node('n1').public_address}:{tls.PORT}"
        return f"{lab.node(self.front['proxy']).public_address}:{PORTS[mode]}"

    def fetch(self, mode, path):
        """(status, X-Node, body) of one request."""
        address, _, port = self.url(mode).rpartition(":")
        done = subprocess.run(
            [*self.lab(mode).client.argv(["curl"]), "-sS", "--max-time", "30", "--cacert", f"{self.place}/ca.pem", "--tlsv1.3",
             "--resolve", f"{NAME}:{port}:{address}", "-w", "\n%{http_code} %header{x-node}", f"{self.scheme}://{NAME}:{port}{path}"],
            capture_output=True, check=False)
        body, _, told = done.stdout.rpartition(b"\n")
        if done.returncode:
            raise LabError(f"{mode}: curl {path} ended with {done.returncode}", done.stderr.decode())
        status, _, node = told.decode().partition(" ")
        return int(status), node, body

    def check(self, mode):
        """Each target is the right file, and comes from its node; a connection may stay where it is once in a while."""
        for size, length in SIZES.items():
            for place in ("any", "content", *self.names):
                path = f"/{place}/{size}/0"
                for _ in range(TRIES):
                    status, node, body = self.fetch(mode, path)
                    if status != 200 or body != server.file_content(size, length):
                        raise LabError(f"{mode}: {path}: status {status}, {len(body)} bytes, not the file")
                    if node == place or place not in self.names or mode in ("direct", "earshot-never"):
                        break
                else:
                    raise LabError(f"{mode}: {path} was served by {node}, {TRIES} times")

    def _await(self, key):
        for mode in ("direct", *PROXIES) if key == "plain" else (key,):
            wait_for(lambda mode=mode: self._answers(mode), f"an answer of {mode}", self.labs[key].options["timeout"])

    def _answers(self, mode):
        try:
            return self.fetch(mode, "/any/1k/0")[0] == 200
        except LabError:
            return False

    def _socket(self, lab, node):
        return os.path.join(lab.node_directory(node), "web.sock")

    def _listens(self, lab, node):
        if lab.options["tls"]:
            return (f"\n        listen unix:{self._socket(lab, node)} backlog=4096;"
                    "\n        listen 127.0.0.1:8080 backlog=4096;")
        if lab.options["earshot"]:
            return ""
        return f"\n        listen {tls.PORT} ssl backlog=4096;\n" + _TLS.format(place=self.place)

    def _rules(self, service):
        return "".join(f'rule to-{node} {{ service = {service}  path = "/{node}/"  nodes = {node} }}\n' for node in self.names)

    @staticmethod
    def _reload(lab, node):
        def said():
            done = lab.node(node).exec(["earshot", "reload"], check=False)
            return done.stdout + done.stderr

        wait_for(lambda: said().startswith("reloaded"), f"a reload of {node}", lab.options["timeout"], said)

    def _configure(self, lab, key):
        """The rules, and on each node its own server's socket."""
        rules = self._rules("https") if lab.options["settings"].get("https.inspect") != "never" else ""
        for node in self.names:
            path = lab.config_of(node)
            with open(path, encoding="utf-8") as handle:
                text = handle.read()
            if "tls.server" not in lab.options["settings"]:
                text = text.replace(f'server = "{tls.SERVER}"', f'server = "unix:{self._socket(lab, node)}"')
            os.unlink(path)  # it is a name of all nodes' one file
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text + rules)
            self._reload(lab, node)
            os.kill(lab.pid(node, tls.NAME), signal.SIGHUP)

    def _proxies(self, lab):
        """Each path's node, as Earshot's rules have it; the others in turn, or by content."""
        addresses = {node: lab.node(node).cluster_address for node in self.names}
        pools = [("any", addresses, "in turn"), ("content", addresses, "by uri"),
                 *((node, {node: address}, "in turn") for node, address in addresses.items())]
        binds = [f":{PORTS['haproxy']} ssl crt {self.place}/both.pem", f":{PLAIN_PORTS['haproxy']}"]
        listens = (f"        listen {PORTS['nginx-proxy']} ssl backlog=4096 reuseport;\n"
                   f"        listen {PLAIN_PORTS['nginx-proxy']} backlog=4096 reuseport;\n" + _TLS.format(place=self.place))
        self._proxy(lab, binds, listens, pools, _HAPROXY)
