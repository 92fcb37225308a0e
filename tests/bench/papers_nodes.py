# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' clusters: four nodes, each with a page cache, a disk and perhaps a share of a CPU of its own;
and one run on them."""
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
import papers_cgi
from cluster import rules
from earshotlab import Lab, LabError, netns, process, server, topology, wait_for
from earshotlab.probe import receives
from papers_content import CONTENTS

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
{more}
    }}"""

class Nodes:
    """Copies of the content and control groups, which outlive the labs; `stack` removes them."""

    def __init__(self, stack, arguments):
        self.arguments = arguments
        name = f"earshot-papers-{os.getpid()}"
        try:
            self.directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=f"{name}-", dir=arguments.directory))
        except OSError as error:
            raise LabError(f"{arguments.directory}: {error.strerror}") from error
        device = cgroups.disk_of(self.directory)
        self.names = [f"n{number}" for number in range(1, NODES + 1)]
        self.groups = {node: stack.enter_context(cgroups.Group(f"{name}-{node}", device, arguments.cache_mb << 20))
                       for node in self.names}
        self.contents = {}  # that are written: name: content

    def docroot(self, node, experiment):
        """Where a node's copy of what the experiment asks for is."""
        return os.path.join(self.directory, experiment.content, node)

    @property
    def _script(self):
        return os.path.join(self.directory, "page")

    def _write(self, experiment):
        """All nodes' copies of its content, when it is first asked for."""
        if experiment.content in self.contents:
            return
        content = CONTENTS[experiment.content](**experiment.arguments(self.arguments.files))
        needed = NODES * content.total_bytes
        if shutil.disk_usage(self.directory).free < 2 * needed:
            raise LabError(f"{self.arguments.directory}: {needed >> 20} MB are needed, and as much again left free")
        for node in self.names:
            content.write(self.docroot(node, experiment))
        papers_cgi.write_script(self._script)
        self.contents[experiment.content] = content

    @contextlib.contextmanager
    def cluster(self, policy, experiment):
        """A fresh lab with cold caches, which serves."""
        self._write(experiment)
        for node in self.names:
            self.contents[experiment.content].forget(self.docroot(node, experiment))
            self.groups[node].forget()
            self.groups[node].set_disk(0, 0)
            self.groups[node].set_cpu(1 if experiment.cpu else 0)
            self.groups[node].set_memory((experiment.cache_mb or self.arguments.cache_mb) << 20)
        # Sizes come from one copy, as all are alike.
        settings = {"service.document_root": self.docroot(self.names[0], experiment), **experiment.settings(policy)}
        name = policy.partition(":")[0]
        with Lab(nodes=NODES, membership=experiment.membership, policy=name, settings=settings, server="none") as lab:
            netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
            for node in self.names:
                self._nginx(lab, node, experiment)
            for node in self.names:
                self._wait(lab, node)
            rules.add(lab, experiment.rules.get(name, ""))
            lab.wait_serving()
            wait_for(lambda: all(_is_settled(lab, node) for node in self.names), "one cluster")
            yield lab
            kills = sum(group.kills() for group in self.groups.values())
            if kills:
                raise LabError(f"the kernel killed {kills} of nginx' processes: --cache-mb is too little")

    def _nginx(self, lab, node, experiment):
        directory, more = lab.node_directory(node), ""
        if experiment.dynamic:
            socket = os.path.join(directory, "cgi.sock")
            self._start(lab, node, papers_cgi.command(socket), "cgi.log")
            wait_for(lambda: os.path.exists(socket), f"fcgiwrap's socket on {node}")
            more = papers_cgi.location(socket, self._script)
        text = _HTTP.format(node=node, docroot=self.docroot(node, experiment), more=more)
        self._start(lab, node, server.nginx(directory, text, main=_MAIN, connections=8192), "nginx.log")

    def _start(self, lab, node, argv, name):
        """On that node, with its share of memory, disk and CPU."""
        with open(os.path.join(lab.node_directory(node), name), "ab") as log:
            lab.node(node).popen(argv, stdout=log, stderr=log, preexec_fn=self.groups[node].join)

    @staticmethod
    def _wait(lab, node):
        address, directory = lab.node(node).public_address, lab.node_directory(node)
        try:
            wait_for(lambda: receives(lab.net.client, address, topology.PORT), f"answer of {node} at {address}")
        except LabError as error:
            logs = (process.log_tail(os.path.join(directory, name)) for name in ("nginx.log", "error.log"))
            raise LabError(str(error), "\n".join(filter(None, logs))) from error

    def measure(self, policy, experiment, connections):
        """One run from cold caches; a dictionary as in the JSON file's "runs"."""
        with self.cluster(policy, experiment) as lab:
            options = {"address": topology.VIP, "port": topology.PORT, "connections": connections,
                       "content": (experiment.content, experiment.arguments(self.arguments.files)),
                       "seed": self.arguments.seed, "seconds": self.arguments.seconds or experiment.seconds, **experiment.client}
            run = _Run(lab, self.groups)
            result = run.clients(options, lambda: self._throttle(experiment))
            targets = lab.node(self.names[0]).ask({"command": "table", "limit": 1}).get("table")
        requests = max(result["requests"], 1)
        served = [result["nodes"].get(node, 0) for node in self.names]
        read = sum(run.read_bytes.values())
        used = run.used
        return {
            "policy": policy, "experiment": experiment.name, "connections": connections,
            "settings": experiment.settings(policy),
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

    def _throttle(self, experiment):
        for group in self.groups.values():
            group.set_cpu(experiment.cpu)
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
        """Run them. The caches are filled from the disk, and by the CPUs, as they are; `throttle` makes them slow then."""
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
    if status["membership"].get("phase", "stable") != "stable" or any(each["state"] != "up" for each in status["nodes"]):
        return False
    table = lab.node(node).ask({"command": "table"}).get("table", {})
    return table.get("state", "whole") in ("whole", "alone")  # alone: no bus, with static membership
