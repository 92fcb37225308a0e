# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP by hand, on sockets that tests may treat as badly as they like."""
import hashlib
import http.client
import itertools
import json
import socket
import struct
import time

from earshotlab import families, server, topology

HEAD_MAX = 65536
HOST = families.in_url(topology.vips_of(families.DEFAULT)[0])  # what clients write that ask by an address


def head(target, method="GET", version="HTTP/1.1", **fields):
    """A request head. Names of fields are written with `_` for `-`."""
    fields = {"Host": HOST, **fields}
    lines = [f"{method} {target} {version}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(lines + ["", ""]).encode("ascii")


def service(lab):
    """Where the lab's service is."""
    return lab.net.vip, topology.PORT


def services(lab):
    """The same, by each of its addresses in turn, endlessly."""
    return itertools.cycle((vip, topology.PORT) for vip in lab.net.vips)


def connect(machine, address=None, timeout=10.0, port=None, before=None):
    """A connection of a machine, to the lab's service without an address; `before(sock)` may set options that matter to the
    handshake."""
    address = address or service(machine.lab)
    sock = machine.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    try:
        sock.settimeout(timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if before:
            before(sock)
        if port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("", port))
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def http_connection(machine, timeout=10.0, address=None):
    """The same for http.client. One that has ended is a failure, not a reason for a new one."""
    connection = http.client.HTTPConnection(families.in_url(address[0] if address else machine.lab.net.vip))
    connection.auto_open = False
    connection.sock = connect(machine, address, timeout=timeout)
    return connection


def name(sock):
    """A client's end of a connection, as ss shows it."""
    address, port = sock.getsockname()[:2]
    return f"{families.in_url(address)}:{port}"


def reset(sock):
    """Close with a RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Response:
    """Status, fields (lower case) and, when it has been read, size and SHA-256 of the body."""

    def __init__(self, text):
        lines = text.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        self.size = 0
        self.digest = hashlib.sha256()
        self.text = b""

    @property
    def node(self):
        return self.fields.get("x-node")

    def add(self, piece):
        self.size += len(piece)
        self.digest.update(piece)
        if self.size <= HEAD_MAX:
            self.text += piece


def receive(sock, body=True):
    """Read one response with Content-Length, or else to the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(HEAD_MAX)
        if not piece:
            raise EOFError(f"the connection ended after {data!r}")
        data += piece
    text, _, rest = data.partition(b"\r\n\r\n")
    response = Response(text)
    response.add(rest)
    length = response.fields.get("content-length")
    wanted = None if length is None else int(length)
    while body and response.size != wanted:
        piece = sock.recv(1 << 18)
        if not piece:
            if wanted is not None:
                raise EOFError(f"the body ended after {response.size} of {wanted} bytes")
            break
        response.add(piece)
    return response


def ask(machine, data, **keywords):
    """Send the bytes on a connection of their own: the response, and the seconds from connecting to its end."""
    begin = time.monotonic()
    with connect(machine, **keywords) as sock:
        sock.sendall(data)
        return receive(sock), time.monotonic() - begin


def upload(sock, body):
    """POST it on a connection: has the server got each byte of it?"""
    sock.sendall(head("/upload", "POST", Content_Length=len(body)) + body)
    return json.loads(receive(sock).text)["sha256"] == hashlib.sha256(body).hexdigest()


def right(response, name):
    """Whether it is one of the generated files, intact."""
    return response.status == 200 and response.digest.hexdigest() == \
        hashlib.sha256(server.file_content(name, server.FILES[name])).hexdigest()


def sockets(node, port=None):
    """What the node's kernel has on the service address but listeners: lines of ss, of one client port or of all."""
    rule = ["sport", "=", f":{topology.PORT}"] + (["and", "dport", "=", f":{port}"] if port else [])
    return node.exec(["ss", "-Htan", "state", "all", "exclude", "listening", *rule]).stdout.splitlines()


def sockets_everywhere(lab, port):
    return {node.name: sockets(node, port) for node in lab.nodes}


def states(lab, port):
    """What everybody's kernel knows of a client's connection, the client's too: timers, counters."""
    return {machine.name: machine.exec(["ss", "-Htanoie", f"sport = :{port} or dport = :{port}"], check=False).stdout
            for machine in (lab.client, *lab.nodes) if machine.name not in lab.dead}


def inspector(lab, port, service="web", client=None):
    """The node that the ring gives this port of that address of the client, or of its first."""
    lookup = {"address": client or lab.net.client_address, "port": port, "service": service}
    return lab.nodes[0].ask({"command": "ring", "lookup": lookup})["lookup"]["node"]


def ports(lab, node, first=20000, service="web", client=None):
    """Client ports, of that address or the client's first, whose connections that node inspects; up to 29999 no other connection
    has them (topology.py)."""
    return (port for port in range(first, 65536) if inspector(lab, port, service, client) == node)


def total(lab, *counters):
    """Sum over nodes and counters."""
    values = [lab.counters(node.name) for node in lab.nodes]
    return sum(each[counter] for each in values for counter in counters)
