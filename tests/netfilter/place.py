# SPDX-License-Identifier: GPL-2.0-or-later
"""A client and a server in namespaces. The server's kernel is as it is; beside it runs earshot-rebuilder (rebuilder.c), which
answers SYNs and makes the connections."""
import hashlib
import http.client
import json
import os
import socket
import subprocess

import pytest

import node_logs
from earshotlab import in_namespace, wait_for
from earshotlab.netns import ip, ip_batch, set_sysctls
from earshotlab.server import nginx
from namespaces import Site, die_with_test, offloads_off
from tree import BUILD

REBUILDER = os.path.join(BUILD, "bin/earshot-rebuilder")
RELOAD = os.path.join(BUILD, "bin/earshot-nf-reload")
PREFIX = "nfr"
PORT = 80
CLIENT = {4: "10.79.1.1", 6: "fd00:79::1"}
SERVER = {4: "10.79.1.2", 6: "fd00:79::2"}
LARGE = bytes(hashlib.sha256(b"large").digest()) * (10 << 15)  # 10 MB

FAMILIES = pytest.mark.parametrize("family", (4, 6))

# What has no connection, or one that is just being made, is for the rebuilder alone; `hold` is filled by tests.
RULES = """\
table inet test {
    chain hold { }
    chain input {
        type filter hook prerouting priority -140
        iifname "wire" tcp dport 80 ct state != established drop
        iifname "wire" tcp dport 80 ct label 124 drop
        iifname "wire" tcp dport 80 jump hold
    }
}
"""

SITE = """\
    access_log off;
    keepalive_requests 1000000;
    client_max_body_size 64m;
    server {{
        listen {listen} backlog={backlog}; listen [::]:80 backlog={backlog};
        root {root};
        location = /who {{ return 200 "$remote_addr $remote_port"; }}
        location /close/ {{ keepalive_timeout 0; alias {root}/; }}
        location /upload/ {{ root {root}; dav_methods PUT; create_full_put_path on; }}
    }}"""


def run(namespace, *command, stdin=None):
    """A program in a namespace; its output."""
    done = subprocess.run(["ip", "netns", "exec", namespace, *command], input=stdin, capture_output=True, text=True, check=False)
    assert not done.returncode, (command, done.stderr)
    return done.stdout


def has_sysctl(name):
    """Does this kernel have it? Of conntrack's, once something has loaded it, as the probe does."""
    return os.path.exists("/proc/sys/" + name.replace(".", "/"))


class Place(Site):
    """client -- server. before: {sysctl: value} of the server's, set before the rebuilder starts; words: the rebuilder's."""

    def __init__(self, words=(), before=None, client=None, rules="", serves=True):
        super().__init__(PREFIX, "client", "server")
        self.client, self.server = self.namespaces
        self.processes = []
        with self.setting_up():
            for namespace in self.namespaces:
                ip("netns", "add", namespace)
            ip("link", "add", "wire", "netns", self.client, "type", "veth", "peer", "name", "wire", "netns", self.server)
            for namespace, own in ((self.client, CLIENT), (self.server, SERVER)):
                set_sysctls(namespace, {"net.ipv6.conf.default.accept_dad": 0, "net.ipv6.conf.all.accept_dad": 0})
                ip_batch(namespace, ["link set lo up", f"addr add {own[4]}/24 dev wire", f"addr add {own[6]}/64 dev wire nodad",
                                     "link set wire up"])
                offloads_off(namespace, "wire")
            set_sysctls(self.client, client or {})
            set_sysctls(self.server, {"net.ipv4.tcp_rmem": "4096 131072 6291456", **(before or {})})  # the scale that the cookies promise
            run(self.server, "nft", "-f", "-", stdin=RULES + rules)
            if serves:
                self.serve()
            self.rebuilder = self.start_rebuilder(words)

    def log_ends(self):
        return node_logs.of_files("nginx", os.path.join(self.directory, "error.log"))

    def _start(self, command, **keywords):
        command = ["ip", "netns", "exec", self.server, *command]
        process = subprocess.Popen(command, preexec_fn=die_with_test, **keywords)
        self.processes.append(process)
        return process

    def serve(self, backlog=511):
        """nginx as it is, with its default of everything."""
        with open(os.path.join(self.directory, "large"), "wb") as handle:
            handle.write(LARGE)
        with open(os.path.join(self.directory, "small"), "wb") as handle:
            handle.write(b"x" * 1024)
        site = SITE.format(listen=f"{PORT}", root=self.directory, backlog=backlog)
        self._start(nginx(self.directory, site))
        wait_for(lambda: ":80 " in run(self.server, "ss", "-tln"), "nginx listens", 10)

    def start_rebuilder(self, words):
        process = self._start([REBUILDER, "serve", "wire", str(PORT), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process

    def tell(self, command):
        """A line to the rebuilder; its answer."""
        self.rebuilder.stdin.write(command + "\n")
        self.rebuilder.stdin.flush()
        answer = self.rebuilder.stdout.readline().strip()
        assert answer, f"the rebuilder has ended: {self.rebuilder.poll()}"
        return answer

    def counts(self):
        return json.loads(self.tell("counts"))

    def entries(self):
        """How many conntrack entries are ours."""
        rc, n = self.tell("entries").split()
        assert rc == "0"
        return int(n)

    def hold(self, is_held):
        """Whether what clients send with data is kept from the server's stack."""
        rule = "flush chain inet test hold\n" + ("add rule inet test hold drop\n" if is_held else "")
        run(self.server, "nft", "-f", "-", stdin=rule)

    def connect(self, family=4, port=0):
        """A connection of the client's, as an http.client has it."""
        def make():
            s = socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.settimeout(10)
            s.bind((CLIENT[family], port))
            s.connect((SERVER[family], PORT))
            return s

        connection = http.client.HTTPConnection(SERVER[family])
        connection.sock = in_namespace(self.client, make)
        return connection

    def counters(self, namespace):
        """{name: number} of the namespace's TcpExt."""
        def read():
            with open("/proc/thread-self/net/netstat", encoding="ascii") as handle:
                lines = [line.split() for line in handle]
            return dict(zip(lines[0][1:], map(int, lines[1][1:])))

        return in_namespace(namespace, read)

    def close(self):
        for process in self.processes:
            process.terminate()  # nginx ends its workers, too
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
        super().close()


def ask(connection, method="GET", path="/small", body=None, headers=None):
    """One request: (status, body)."""
    connection.request(method, path, body=body, headers=headers or {})
    response = connection.getresponse()
    return response.status, response.read()


def who(connection):
    """Whom the server takes the client for."""
    _, body = ask(connection, path="/who")
    return tuple(body.decode().split())
