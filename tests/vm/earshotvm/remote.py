# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that a test talks to while it runs: commands and files, through agent.py inside."""
import contextlib
import json
import os
import socket
import subprocess
import threading
import time

from . import agent
from .errors import VmError
from .machine import PYTHON, Machine

AGENT = os.path.abspath(agent.__file__)
BOOT_S = 90  # on an idle machine it is 10


class Remote(Machine):
    """A Machine whose job is to be asked. exec() and spawn() wait until it has booted."""

    def __init__(self, kernel, **options):
        super().__init__(kernel, [PYTHON, "-I", AGENT], **options)
        self._connection = self._replies = None
        self._lock = threading.Lock()

    def command(self):
        return [*super().command(), "-chardev", f"socket,id=agent,path={self._socket()},server=on,wait=off",
                "-device", f"virtserialport,chardev=agent,name={agent.PORT}"]

    def _socket(self):
        return self._path("agent.sock")

    def _ask(self, request, timeout):
        with self._lock:
            if self._connection is None:
                self._connect()
                timeout += BOOT_S
            self._connection.settimeout(timeout)
            try:
                self._connection.sendall(json.dumps(request).encode() + b"\n")
                line = self._replies.readline()
            except OSError as error:
                raise VmError(f"{self.name}: {request.get('argv')}: no reply: {error}") from error
        if not line:
            raise VmError(f"{self.name}: {request.get('argv')}: the machine has ended{self._last_words()}")
        return json.loads(line)

    def _last_words(self):
        troubles = self.wait(5).troubles
        return "".join(f"\n{line}" for line in troubles)

    def _connect(self):
        deadline = time.monotonic() + 10
        while True:
            self._connection = socket.socket(socket.AF_UNIX)
            try:
                self._connection.connect(self._socket())
                break
            except OSError as error:
                self._connection.close()
                self._connection = None
                if not self.running or time.monotonic() > deadline:
                    raise VmError(f"{self.name}: cannot be reached{self._last_words()}") from error
                time.sleep(0.05)
        self._replies = self._connection.makefile("rb")

    def exec(self, argv, check=True, stdin="", timeout=30, env=None):
        """Run to the end in the machine; returns subprocess.CompletedProcess with text output."""
        reply = self._ask({"argv": list(argv), "input": stdin, "timeout": timeout, "env": env or {}}, timeout + 10)
        if reply["status"] is None:
            raise subprocess.TimeoutExpired(argv, timeout, reply["stdout"], reply["stderr"])
        if check and reply["status"]:
            raise VmError(f"{self.name}: {' '.join(argv)}: exit status {reply['status']}: "
                          f"{(reply['stderr'] or reply['stdout']).strip()}")
        return subprocess.CompletedProcess(argv, reply["status"], reply["stdout"], reply["stderr"])

    def spawn(self, argv, log, env=None):
        """Start it; returns the pid there. Its output is appended to a file of the machine."""
        return self._ask({"argv": list(argv), "log": log, "env": env or {}}, 10)["pid"]

    def write(self, path, text):
        """A file of the machine."""
        self.exec(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1"', "sh", path], stdin=text)

    def ask_to_end(self):
        """Let it turn itself off, if it is on; wait() then tells how it went."""
        if self.running:
            self._ask({"end": True}, 10)

    def kill(self):
        for what in (self._replies, self._connection):
            if what:
                with contextlib.suppress(OSError):
                    what.close()
        self._connection = self._replies = None
        super().kill()
