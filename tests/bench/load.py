# SPDX-License-Identifier: GPL-2.0-or-later
"""The load generator: wrk, in the namespace of the lab's client."""
import json
import os
import subprocess
import time
from dataclasses import dataclass

from earshotlab import LabError

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrk.lua")
ERRORS = ("connect", "read", "write", "timeout", "status")
CONNECTIONS = 64
THREADS = 2
TARGETS = 240  # different URIs of each size: what hashes the URI has something to spread
FILES = 1000  # that there are of each size


@dataclass
class Workload:
    """What wrk does. `arguments` are wrk.lua's, behind directory and count; `threads` None: one for each connection, so
    that the script's order of requests is that of each connection. `targets`: of these it asks."""

    name: str
    arguments: list
    threads: int = THREADS
    targets: int = TARGETS
    servers: tuple = ()  # addresses that are asked in turn, a thread each, and not that of the URL

    def takes(self, _mode):
        """Whether it is for that mode."""
        return True

    def run(self, lab, url, size, seconds, connections):
        return run(lab, url, size, self, seconds, connections)


def run(lab, url, directory, workload, seconds, connections=CONNECTIONS):
    """One run; wrk's figures, its CPU time in "client_cpu_s", and the sum of its errors in "errors"."""
    threads = min(workload.threads or connections, connections)
    command = ["wrk", "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s",
               "--timeout", "10s", "--latency", "-s", SCRIPT, url, "--", directory, str(workload.targets),
               *workload.arguments]
    begin = time.monotonic()
    child = lab.client.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**lab.client.environment(), "SERVERS": " ".join(workload.servers)})
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    lines = [line for line in output.splitlines() if line.startswith("RESULT ")]
    if child.returncode or not lines:
        raise LabError(f"wrk {url} ended with {child.returncode}", output)
    result = json.loads(lines[0].removeprefix("RESULT "))
    if workload.threads is None:
        # wrk's clock starts when its last thread does; the first ones have sent for a while by then.
        result["duration_us"] = int((time.monotonic() - begin) * 1e6)
    result["pid"] = child.pid
    result["client_cpu_s"] = usage.ru_utime + usage.ru_stime
    result["kinds"] = {kind: result[kind] for kind in ERRORS}
    result["errors"] = sum(result["kinds"].values())
    return result
