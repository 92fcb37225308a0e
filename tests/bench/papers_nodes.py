# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' clusters: four nodes with corosync, each with a page cache and a disk of its own, and one run on them."""
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

import cgroups
import cpu
from earshotlab import Lab, LabError, netns, process, server, topology, wait_for
from earshotlab.probe import receives
from papers_content import Content

NODES = 4
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "papers_client.py")
SAMPLE_S = 0.25  # between looks at who waits for the disk

# One worker, as everywhere here. Reads are in threads: a disk with many waiting must not keep it from serving others.
# What it has once opened stays open, so that reads are of the files themselves.
_MAIN = """\
worker_rlimit_nofile 65536;
thread_pool disk threads=64;"""
_HTTP = """\
    access_log off;
    aio threads=disk;
    keepalive_requests 100000000;
    open_file_cache max=4096 inactive=1h;
    open_file_cache_valid 1h;
    server {{
        listen 80 backlog=4096;
        root {docroot};
        add_header X-Node {node} always;
        location = /node {{ return 200 "{node}\\n"; }}
    }}"""


class Nodes:
    """Copies of the content and control groups, which outlive the labs; `stack` removes them."""

    def __init__(self, stack, arguments):
        self.arguments = arguments
        self.content = Content(arguments.files)
        name = f"earshot-papers-{os.getpid()}"
        try:
            self.directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=f"{name}-", dir=arguments.directory))
        except OSError as error:
            raise LabError(f"{arguments.directory}: {error.strerror}") from error
        device = cgroups.disk_of(self.directory)
        needed = NODES * self.content.total_bytes
        if shutil.disk_usage(self.directory).free < 2 * needed:
            raise LabError(f"{arguments.directory}: {needed >> 20} MB are needed, and as much again left free")
        self.names = [f"n{number}" for number in range(1, NODES + 1)]
        self.groups = {node: stack.enter_context(cgroups.Group(f"{name}-{node}", device, arguments.cache_mb << 20))
                       for node in self.names}
        for node in self.names:
            self.content.write(self.docroot(node))

    def docroot(self, node):
        return os.path.join(self.directory, node)

    @contextlib.contextmanager
    def cluster(self, policy, settings):
        """A fresh lab with cold caches, which serves."""
        for node in self.names:
            self.content.forget(self.docroot(node))
            self.groups[node].forget()
            self.groups[node].set_disk(0, 0)
        with Lab(nodes=NODES, membership="corosync", policy=policy, settings=settings, server="none") as lab:
            netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
            for node in self.names:
                self._nginx(lab, node)
            for node in self.names:
                self._wait(lab, node)
            lab.wait_serving()
            wait_for(lambda: all(_is_settled(lab, node) for node in self.names), "one cluster")
            yield lab
            kills = sum(group.kills() for group in self.groups.values())
            if kills:
                raise LabError(f"the kernel killed {kills} of nginx' processes: --cache-mb is too little")

    def _nginx(self, lab, node):
        directory = lab.node_directory(node)
        argv = server.nginx(directory, _HTTP.format(node=node, docroot=self.docroot(node)), main=_MAIN, connections=8192)
        with open(os.path.join(directory, "nginx.log"), "ab") as log:
            lab.node(node).popen(argv, stdout=log, stderr=log, preexec_fn=self.groups[node].join)

    @staticmethod
    def _wait(lab, node):
        address, directory = lab.node(node).public_address, lab.node_directory(node)
        try:
            wait_for(lambda: receives(lab.net.client, address, topology.PORT), f"answer of {node} at {address}")
        except LabError as error:
            logs = (process.log_tail(os.path.join(directory, name)) for name in ("nginx.log", "error.log"))
            raise LabError(str(error), "\n".join(filter(None, logs))) from error

    def measure(self, policy, experiment):
        """One run from cold caches; a dictionary as in the JSON file's "runs"."""
        # Sizes come from one copy, as all are alike.
        settings = {"service.document_root": self.docroot(self.names[0]), **experiment.settings(policy)}
        with self.cluster(policy.partition(":")[0], settings) as lab:
            options = {"address": topology.VIP, "port": topology.PORT, "files": self.arguments.files,
                       "seed": self.arguments.seed, "seconds": self.arguments.seconds, **experiment.client}
            run = _Run(lab, self.groups)
            result = run.clients(options, self._throttle)
            targets = lab.node(self.names[0]).ask({"command": "table", "limit": 1}).get("table")
        requests = max(result["requests"], 1)
        served = [result["nodes"].get(node, 0) for node in self.names]
        read = sum(run.read_bytes.values())
        used = run.used
        return {
            "policy": policy, "experiment": experiment.name, "settings": experiment.settings(policy),
            "requests_per_s": round(result["requests"] / result["seconds"], 1),
            "mb_per_s": round(result["bytes"] / result["seconds"] / 1e6, 2),
            "hit_share": round(1 - read / max(result["bytes"], 1), 4),
            "cpu_us": round(used["total"] * 1e6 / requests, 1),
            "cpu_us_without_client": round((used["total"] - run.client_cpu_s) * 1e6 / requests, 1),
            "cpu_us_by_process": {name: round(value * 1e6 / requests, 1)
                                  for name, value in sorted(used["by_name"].items()) if value},
            "machine_busy": round(used["total"] / run.elapsed_s / os.cpu_count(), 3),
            "machine_foreign": round((used["foreign"] + used["steal"]) / run.elapsed_s / os.cpu_count(), 3),
            "imbalance": round(max(served) * NODES / max(sum(served), 1), 3),
            "moved_share": round(run.counters.get("inspect_moved", 0) / requests, 3),
            "disk_kb_per_s": [round(run.read_bytes[node] / run.elapsed_s / 1e3) for node in self.names],
            "disk_reads_per_s": [round(run.reads[node] / run.elapsed_s, 1) for node in self.names],
            "disk_waiting": [round(run.waiting[node] / max(run.samples, 1), 3) for node in self.names],
            "cached_mb": [size >> 20 for size in run.cached.values()],
            "served": served, "targets": targets, "client": result,
            "failed": bool(result["errors"] or not result["requests"]),
        }

    def _throttle(self):
        for group in self.groups.values():
            group.set_disk(self.arguments.disk_iops, round(self.arguments.disk_mb * 1e6))


class _Run:
    """The clients' phases, and what the cluster did in the last one."""

    def __init__(self, lab, groups):
        self.lab = lab
        self.groups = groups
        self.samples = 0
        self.waiting = dict.fromkeys(groups, 0)
        self.identities = {netns.identity(namespace) for namespace in lab.net.namespaces}

    def _look(self):
        counters = {}
        for node in self.groups:
            for name, value in self.lab.counters(node).items():
                counters[name] = counters.get(name, 0) + value
        return (time.monotonic(), cpu.snapshot(self.identities), counters,
                {node: group.reads() for node, group in self.groups.items()})

    def clients(self, options, throttle):
        """Run them. The caches are filled from the disk as it is; `throttle` makes it slow for what comes then."""
        child = self.lab.client.popen([sys.executable, CLIENT, json.dumps(options)], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, bufsize=0, text=False)
        deadline = time.monotonic() + sum(options["seconds"]) + 30
        before, result, output = None, None, b""
        while result is None:
            if time.monotonic() > deadline:
                raise LabError("the clients do not come to an end", output.decode(errors="replace"))
            if not select.select([child.stdout], [], [], SAMPLE_S)[0]:
                if before and options["mode"] == "sessions":  # with hundreds of clients it would cost too much
                    self._sample()
                continue
            piece = os.read(child.stdout.fileno(), 1 << 16)
            if not piece:
                raise LabError("the clients failed", output.decode(errors="replace"))
            *lines, output = (output + piece).split(b"\n")
            for line in lines:
                if line == b"settle":
                    throttle()
                elif line == b"measure":
                    before = self._look(), _cpu_of(child.pid)
                elif line.startswith(b"RESULT "):
                    after = self._look(), _cpu_of(child.pid)
                    result = json.loads(line.removeprefix(b"RESULT "))
                elif line != b"fill":
                    raise LabError("the clients failed", (line + b"\n" + output).decode(errors="replace"))
        child.wait()
        self._difference(before, after)
        return result

    def _sample(self):
        self.samples += 1
        for node, group in self.groups.items():
            self.waiting[node] += group.waiting()

    def _difference(self, before, after):
        (begun, cpu_before, counters, reads), client = before
        (ended, cpu_after, counters_after, reads_after), client_after = after
        self.elapsed_s = ended - begun
        self.used = cpu.usage(cpu_before, cpu_after)
        self.client_cpu_s = client_after - client
        self.counters = {name: value - counters.get(name, 0) for name, value in counters_after.items()}
        self.reads = {node: reads_after[node][0] - reads[node][0] for node in reads}
        self.read_bytes = {node: reads_after[node][1] - reads[node][1] for node in reads}
        self.cached = {node: group.cached_bytes() for node, group in self.groups.items()}


def _cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
        fields = handle.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * cpu.TICK_S


def _is_settled(lab, node):
    """All nodes are targets to this one, and it knows what the policy's inspectors share."""
    status = lab.status(node)
    if status["membership"]["phase"] != "stable" or any(each["state"] != "up" for each in status["nodes"]):
        return False
    return lab.node(node).ask({"command": "table"}).get("table", {}).get("state", "whole") == "whole"
