# SPDX-License-Identifier: GPL-2.0-or-later
"""What ./dev bench https measures: the modes, and the labs, servers and proxies behind them. xo_targets.py has the same without TLS.

    plain lab    client -- brpub -- n1... (nginx: TLS and plain) and one more, with haproxy and nginx as proxies that end TLS
    earshot labs client -- brpub -- n1... (nginx, earshot-tls, earshotd), one lab for each configuration

All have the same certificate and the same files, and nginx with one worker behind them. A target's path begins with the node
that it is for: Earshot has a rule for each, and the proxies as well. /any/ is for any node, and in /content/ the rest of the path
says which.
"""
import os
import shutil
import signal
import subprocess

from cluster import secure
from earshotlab import Lab, LabError, netns, server, tls, topology, wait_for

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

_NGINX = """\
    access_log off;
    keepalive_requests 100000000;
{content}"""
_TLS = """\
        ssl_certificate {place}/www.pem;
        ssl_certificate_key {place}/www.key;
        ssl_protocols TLSv1.3;
        ssl_session_tickets on;"""
_SERVER = """\
    server {{
{listens}
        root {docroot};
        add_header X-Node {node} always;
    }}"""
_PROXY = """\
{upstreams}
    server {{
        listen {port} ssl backlog=4096 reuseport;
        listen {plain} backlog=4096 reuseport;
{tls}
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_max_temp_file_size 0;
{locations}
    }}"""
_UPSTREAM = """\
    upstream {name} {{
{choice}{servers}
        keepalive 128;
        keepalive_requests 100000000;
    }}"""
_HAPROXY = """\
global
    nbthread 2
    maxconn 4000
    ssl-default-bind-options ssl-min-ver TLSv1.3
    tune.ssl.cachesize 20000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend web
    bind :{port} ssl crt {place}/both.pem
    bind :{plain}
{uses}
    default_backend any
{backends}
"""


def make_docroot(directory):
    """/13k/0, /13k/1, ...: one file under many names, and /n1/, /any/, /content/ that are all of it."""
    targets.make_docroot(directory, SIZES, FILES)
    for name in ("any", "content", *(f"n{number}" for number in range(1, 10))):
        os.symlink(".", os.path.join(directory, name))


class Targets(targets.Targets):
    """Brings up what a mode needs when it is first asked for; `stack` takes it down."""

    scheme = "https"

    def __init__(self, stack, docroot, nodes=targets.NODES):
        super().__init__(stack, docroot)
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.proxy = f"n{nodes + 1}"
        self.place = os.path.join(docroot, "tls")
        tls.make_files(docroot, [topology.VIP])
        with open(f"{self.place}/both.pem", "wb") as both:
            for name in ("www.pem", "www.key"):
                with open(f"{self.place}/{name}", "rb") as part:
                    both.write(part.read())

    def lab(self, mode):
        key = mode if mode in EARSHOT else "plain"
        if key not in self.labs:
            self.labs[key] = self._make(key)
        return self.labs[key]

    def url(self, mode):
        """ADDRESS:PORT, which is all that differs."""
        lab = self.lab(mode)
        if mode in EARSHOT:
            return f"{topology.VIP}:{tls.PORT}"
        if mode == "direct":
            return f"{lab.node('n1').public_address}:{tls.PORT}"
        return f"{lab.node(self.proxy).public_address}:{PORTS[mode]}"

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

    def counters(self, mode):
        """earshot-tls's counters, summed over the nodes; nothing for a mode without it."""
        total = {}
        for node in self.names if mode in EARSHOT else ():
            for name, value in secure.counters(self.lab(mode), node).items():
                total[name] = total.get(name, 0) + value
        return total

    def _make(self, key):
        if key == "plain":
            lab = Lab(nodes=len(self.names) + 1, earshot=False, server="none")
        else:
            options = EARSHOT[key]
            files = {"tls.certificate": f"{self.place}/www.pem", "tls.key": f"{self.place}/www.key"}
            lab = Lab(server="none", nodes=len(self.names), tls=True, own_files=True, policy=options["policy"],
                      settings={"inspector.workers": 0, **files, **options["settings"]})
        self.stack.enter_context(lab)
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        for node in self.names:
            self._server(lab, node, key)
        if key == "plain":
            self._proxies(lab)
            waiting = ("direct", *PROXIES)
        else:
            self._configure(lab)
            waiting = (key,)
        self.labs[key] = lab
        for mode in waiting:
            wait_for(lambda mode=mode: self._answers(mode), f"an answer of {mode}", lab.options["timeout"])
        return lab

    def _answers(self, mode):
        try:
            return self.fetch(mode, "/any/1k/0")[0] == 200
        except LabError:
            return False

    def _socket(self, lab, node):
        return os.path.join(lab.node_directory(node), "web.sock")

    def _server(self, lab, node, key):
        os.makedirs(lab.node_directory(node), exist_ok=True)
        if key == "plain":
            listens = (f"        listen 80 backlog=4096;\n        listen {tls.PORT} ssl backlog=4096;\n"
                       + _TLS.format(place=self.place))
        else:
            listens = (f"        listen unix:{self._socket(lab, node)} backlog=4096;\n"
                       "        listen 127.0.0.1:8080 backlog=4096;\n        listen 80;")
        self._nginx(lab, node, "server", 1, _SERVER.format(docroot=self.docroot, node=node, listens=listens))

    def _rules(self, service):
        return "".join(f'rule to-{node} {{ service = {service}  path = "/{node}/"  nodes = {node} }}\n' for node in self.names)

    @staticmethod
    def _reload(lab, node):
        def said():
            done = lab.node(node).exec(["earshot", "reload"], check=False)
            return done.stdout + done.stderr

        wait_for(lambda: said().startswith("reloaded"), f"a reload of {node}", lab.options["timeout"], said)

    def _configure(self, lab):
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
        places = {"any": self.names, "content": self.names, **{node: [node] for node in self.names}}
        addresses = {node: lab.node(node).cluster_address for node in self.names}
        choices = {"content": "        hash $request_uri consistent;\n"}
        upstreams = "\n".join(_UPSTREAM.format(name=name, choice=choices.get(name, ""), servers="\n".join(
            f"        server {addresses[node]}:80;" for node in nodes)) for name, nodes in places.items())
        locations = "\n".join(f"        location {'/' if name == 'any' else f'/{name}/'} {{ proxy_pass http://{name}; }}" for name in places)
        self._nginx(lab, self.proxy, "proxy", 2, _PROXY.format(
            port=PORTS["nginx-proxy"], plain=PLAIN_PORTS["nginx-proxy"], tls=_TLS.format(place=self.place), upstreams=upstreams, locations=locations))
        haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
        if not haproxy:
            raise LabError("haproxy is not installed: apt-get install haproxy")
        uses = "\n".join(f"    use_backend {name} if {{ path_beg /{name}/ }}" for name in places if name != "any")
        backends = "\n".join("\n".join([f"backend {name}", f"    balance {'uri' if name == 'content' else 'roundrobin'}",
                                        *(f"    server {node} {addresses[node]}:80" for node in nodes)])
                             for name, nodes in places.items())
        directory = lab.node_directory(self.proxy)
        config = os.path.join(directory, "haproxy.cfg")
        with open(config, "w", encoding="utf-8") as handle:
            handle.write(_HAPROXY.format(port=PORTS["haproxy"], plain=PLAIN_PORTS["haproxy"], place=self.place, uses=uses, backends=backends))
        self._start(lab, self.proxy, [haproxy, "-db", "-f", config], os.path.join(directory, "haproxy.log"))
