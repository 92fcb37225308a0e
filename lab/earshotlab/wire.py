# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad cables: the earshot-wire process of a link that the lab was made with (`--wire`).

Directions are seen from the machine: "in" is what comes to the node or client, "out" what it sends. Settings are those
of lab/wire/impair.h; durations also as delay="2ms", jitter="500us", reorder_for="10ms".
"""
import contextlib
import json
import os
import re
import socket
import subprocess

from . import daemon, netns, process
from .errors import LabError

DIRECTIONS = {"in": "a2b", "out": "b2a", "both": "both"}
KEYS = ("loss", "dup", "reorder", "reorder_ms", "delay_ms", "jitter_ms", "rate_mbit", "limit", "drop_next")
_DURATIONS = {"delay": "delay_ms", "jitter": "jitter_ms", "reorder_for": "reorder_ms"}
_UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def milliseconds(text):
    """"2ms", "500us", "1s" as a number of milliseconds; a bare number is milliseconds."""
    match = re.fullmatch(r"([0-9.]+)(us|ms|s)?", str(text))
    try:
        return float(match[1]) * _UNITS_MS[match[2] or "ms"]
    except (TypeError, ValueError):
        raise LabError(f"{text!r} is not a duration: 2ms, 500us, 1s") from None


class Wire:
    """A link's shim."""

    def __init__(self, link, directory):
        self.link = link
        self.control = os.path.join(directory, f"wire-{link.name}.sock")
        self.stats_file = os.path.join(directory, f"wire-{link.name}.json")
        self.log = os.path.join(directory, f"wire-{link.name}.log")

    def start(self, namespace, seed=None):
        """Start the shim; returns the process' record. The link carries frames once `answers` is true."""
        a, b = self.link.wire_interfaces
        argv = [daemon.binary("earshot-wire"), "--a", a, "--b", b, "--control", self.control,
                "--stats", self.stats_file]
        if seed is not None:
            argv += ["--seed", str(seed)]
        return process.spawn(f"wire-{self.link.name}", "wire", namespace, argv, self.log)

    def answers(self):
        return bool(self.command("stats"))

    def command(self, line):
        """One command as in lab/wire/control.h; returns the shim's figures as it names them."""
        if not self.link.wired:
            raise LabError(f"link {self.link.name} has no shim: `lab up --wire {self.link.name}` puts one in")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as connection:
            connection.settimeout(5)
            connection.connect(self.control)
            connection.send(line.encode())
            answer = json.loads(connection.recv(8192))
        if "error" in answer:
            raise LabError(f"link {self.link.name}: {answer['error']}")
        return answer

    def _named(self, figures):
        return {"link": self.link.name, "seed": figures["seed"], "in": figures["a2b"], "out": figures["b2a"]}

    def set(self, direction="both", clear=False, **settings):
        """Change settings, all others stay (or go back to a perfect link first, with `clear`); returns stats()."""
        if direction not in DIRECTIONS:
            raise LabError(f"direction {direction!r}: in, out or both")
        words = [DIRECTIONS[direction]] + ["clear"] * clear
        for key, value in settings.items():
            if key in _DURATIONS:
                key, value = _DURATIONS[key], milliseconds(value)
            elif key not in KEYS:
                raise LabError(f"wire setting {key!r}: {', '.join((*KEYS, *_DURATIONS))}")
            words += [key, str(value)]
        return self._named(self.command(" ".join(words)))

    def clear(self):
        """A perfect link again, both ways. Frames that wait still arrive."""
        return self.set(clear=True)

    def stats(self):
        """{"link", "seed", "in": {...}, "out": {...}}: counters, "waiting" and "settings" of each direction."""
        return self._named(self.command("stats"))

    def zero(self):
        """Set all counters to 0."""
        return self._named(self.command("zero"))

    def segment(self, switch_namespace, on=True):
        set_segmentation(self.link, switch_namespace, on)


def set_segmentation(link, switch_namespace, on):
    """Whether both senders of a link cut their super-frames into segments first, as a NIC does on a real cable.

    Without it one frame may be 64 KB, and its loss that of 45 segments.
    """
    state = "off" if on else "on"
    for namespace, interface in ((switch_namespace, link.name), (link.namespace, link.interface)):
        done = subprocess.run([netns.ip_command(), "netns", "exec", namespace, "ethtool", "-K", interface,
                               "tso", state, "gso", state], capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"ethtool -K {interface} in {namespace}: {done.stderr.strip()}")
