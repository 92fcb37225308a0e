# SPDX-License-Identifier: GPL-2.0-or-later
"""earshotd: where it is, its configuration, its command line and its control socket (docs/json.md)."""
import contextlib
import json
import os
import re
import socket
import subprocess

from . import topology
from .errors import LabError

REPOSITORY = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
INSTALLED = not os.path.exists(os.path.join(REPOSITORY, "CMakePresets.json"))  # from the package earshot-lab
COMMAND = "earshot-lab" if INSTALLED else "./dev lab"
BUILD = os.environ.get("EARSHOT_BUILD") or ("" if INSTALLED else os.path.join(REPOSITORY, "build"))
BIN = os.path.join(BUILD, "bin") if BUILD else "/usr/sbin"
LIBEXEC = BIN if BUILD else "/usr/libexec/earshot"  # programs that are not for people
CONTROL_DIR = "/run/earshot"
WORKERS = 2  # more than these few CPUs ask for, so that what workers share is tested; 0: as many as anywhere
SECTIONS = ("cluster", "datapath", "inspector", "service", "https", "tls")
DATAPATHS = ("auto", "bpf", "module", "netfilter")
DATAPATH = os.environ.get("EARSHOT_DATAPATH") or "bpf"  # of labs that do not name one
_BARE = re.compile(r"[A-Za-z0-9_.-]+")


def binary(name):
    """The path of a built program, or LabError."""
    path = os.path.join(LIBEXEC if name == "earshot-wire" else BIN, name)
    if not os.access(path, os.X_OK):
        raise LabError(f"{path} is not there: " + (
            f"cmake --preset default && cmake --build build --target {name}" if BUILD else "apt-get install earshot"))
    return path


def command_line(config, node, control, program=None):
    """How earshotd, or that program of another version, is started on a node; it stays in the foreground."""
    return [program or binary("earshotd"), "--config", config, "--node", node, "--control", control]


def control_path(namespace):
    return os.path.join(CONTROL_DIR, f"{namespace}.sock")


def remove_files(namespace):
    """The control socket's path, and beside it what is that namespace's alone: what the daemon has noted of sysctls, events and
    rollouts, and what earshot-tls has counted."""
    for suffix in (".sock", ".sysctl", ".events", ".events.1", ".rollout", ".tls"):
        path = control_path(namespace).removesuffix(".sock") + suffix
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def make_key(path):
    done = subprocess.run([binary("earshot"), "keygen", path], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"earshot keygen {path} failed", done.stderr.strip())


def parse_settings(settings):
    """{"service.inspect": "every", "node.n1.weight": 50} as {section: {key: value}}, section "node n1" for a node."""
    sections = {}
    for name, value in (settings or {}).items():
        section, _, key = name.rpartition(".")
        if section not in SECTIONS and not section.startswith("node."):
            raise LabError(f"setting {name}: {', '.join(s + '.KEY' for s in SECTIONS)} or node.nI.KEY")
        sections.setdefault(section.replace(".", " ", 1), {})[key] = value
    return sections


def config_text(net, key_file, policy=None, datapath=DATAPATH, membership="static", settings=None, tls=None):
    """The configuration file of all nodes of the lab. A setting that is None leaves the key out.

    tls: with a service https, what stands in it and in its tls { } (tls.py)
    """
    content = {
        "cluster": {"name": net.name, "key_file": key_file, "membership": membership},
        "datapath": {"type": datapath, "interface": "eth0", "cluster_interface": "eth1", "mac_mode": "multicast"},
        "inspector": {"workers": WORKERS},
        **{f"node {node}": {"address": net.cluster_address(node), "id": number} for number, node in enumerate(net.nodes, 1)},
        "service": {"address": ", ".join(net.vips), "port": topology.PORT, **({"policy": policy} if policy else {})},
    }
    if tls:
        content["https"], content["tls"] = (dict(values) for values in tls)
    for section, values in parse_settings(settings).items():
        if section not in content:
            raise LabError(f"setting of {section}: " + ("no such node" if section.startswith("node ") else "a lab with tls has it"))
        content[section].update(values)
        content[section] = {key: value for key, value in content[section].items() if value is not None}
    inner = content.pop("tls", None)
    names = {"service": "service web", "https": "service https"}
    lines = []
    for section, values in content.items():
        if values:
            lines += [names.get(section, section) + " {"]
            lines += [f"    {key} = {_value(value)}" for key, value in values.items()]
            if section == "https":
                lines += ["    tls {", *(f"        {key} = {_value(value)}" for key, value in inner.items()), "    }"]
            lines += ["}"]
    return "\n".join(lines) + "\n"


def membership_of(path):
    """Which membership a configuration file asks for; LabError if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            found = re.search(r"^[^#]*\bmembership\s*=\s*(\w+)", handle.read(), re.MULTILINE)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    return found[1] if found else "static"


def _value(value):
    if isinstance(value, (list, tuple)):
        return "{" + ", ".join(map(_value, value)) + "}"
    text = str(value)
    if _BARE.fullmatch(text) and not text[0].isdigit() or text.isdigit():
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def ask(namespace, request, timeout=5.0):
    """One request to a node's daemon and its result; OSError if none answers, LabError if it says no."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        connection.settimeout(timeout)
        connection.connect(control_path(namespace))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as replies:
            line = replies.readline()
    if not line:
        raise ConnectionResetError(f"earshotd of {namespace} closed the control connection")
    reply = json.loads(line)
    if not reply.get("ok"):
        raise LabError(f"earshotd of {namespace}: {reply.get('error')}")
    return reply["result"]
