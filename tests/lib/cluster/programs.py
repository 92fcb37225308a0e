# SPDX-License-Identifier: GPL-2.0-or-later
"""Services whose connections programs hand over (docs/programs.md): program.py and the shipped example on each node."""
import hashlib
import os
import sys

from earshotlab import daemon, server, topology, wait_for
from web import raw

ALL = ["n1", "n2", "n3"]
FILE = os.path.join(os.path.dirname(__file__), "program.py")
LIBRARY = os.path.join(daemon.BUILD, "lib", "libearshot.so.1")
PORTS = {"programs": 8000, "example": 8001}
PROGRAM = topology.VIP, PORTS["programs"]  # in a lab that has IPv4


def at(lab, name="programs"):
    """Where clients find it."""
    return lab.net.vip, PORTS[name]


def listens(lab):
    """By what address a program listens: by one socket for both families, whose clients of IPv4 have mapped addresses."""
    return lab.net.vip if len(lab.net.vips) == 1 else "::"


def services(lab, names=tuple(PORTS)):
    """Their sections of the configuration."""
    return "".join(f"""\
service {name} {{
    address = "{', '.join(lab.net.vips)}"
    port = {PORTS[name]}
    inspect = never
    server_port = {topology.PORT}
}}
""" for name in names)


def start(stack, node, command, port):
    """Run a program on a node until the end of the tests."""
    environment = node.environment()
    if node.lab.options["membership"] == "static":  # or it has a /run/earshot of its own, and only one socket there
        environment["EARSHOT_HANDOVER_SOCKET"] = daemon.control_path(node.namespace).replace(".sock", ".handover")
    child = node.popen(command, env=environment)
    stack.callback(child.wait)
    stack.callback(child.kill)
    wait_for(lambda: f":{port} " in node.exec(["ss", "-ltn"]).stdout, f"program of {node.name}",
             seen=lambda: node.exec(["ss", "-ltn"]).stdout)
    return child


def start_program(stack, node):
    port = PORTS["programs"]
    return start(stack, node, [sys.executable, "-I", FILE, LIBRARY, listens(node.lab), str(port)], port)


def serve(lab, stack):
    """The services of the programs on all nodes, and a program for each: {node: its program}."""
    programs = {}
    for path in {lab.config_of(node.name) for node in lab.nodes}:
        with open(path, "a", encoding="utf-8") as handle:
            handle.write(services(lab))
    for node in lab.nodes:
        node.exec(["earshot", "reload"])
        programs[node.name] = start_program(stack, node)
        port = PORTS["example"]
        start(stack, node, [daemon.binary("upload-inspector"), listens(lab), str(port), "n2"], port)
    return programs


def ask(lab, uri, method="GET", body=b"", before=None, connect=None, **named):
    """One request to a program; its answer, read to the end."""
    with connect or raw.connect(lab.client, at(lab), before=before, timeout=30) as sock:
        length = {"Content_Length": len(body)} if body else {}
        sock.sendall(raw.head(uri, method, Connection="close", **length, **named) + body)
        return raw.receive(sock)


def right(response, name="100k"):
    """It is the file, whole."""
    wanted = hashlib.sha256(server.file_content(name, server.FILES[name])).hexdigest()
    return response.status == 200 and response.digest.hexdigest() == wanted
