# SPDX-License-Identifier: GPL-2.0-or-later
"""Two machines, n1 and n2, on which all is well, and `earshot check` on n1.

    namespace esckPID-K-n1                            namespace esckPID-K-n2
    eth0 10.77.0.1/24 ------ the clients' network ------ eth0 10.77.0.2/24
    eth1 10.78.0.1/24 ------ the private network ------- eth1 10.78.0.2/24
    lo   10.77.0.100/32, a server on port 80            lo   10.77.0.100/32
"""
import glob
import json
import os
import shutil
import signal
import subprocess

import namespaces
import node_logs
from earshotlab import netns, wait_for
from tree import EARSHOT, EARSHOTD

PREFIX = "esck"
VIP, VIP6 = "10.77.0.100", "fd00:77::100"
CLUSTER_MAC = "03:bf:0a:4d:00:64"
NOBODY = 65534
# The machine's, not the site's: whether its clock is kept right; and this site is static.
ALWAYS = {"kernel.clock", "cluster.membership"}


class Result:
    """What `earshot check --json` has found."""

    def __init__(self, done):
        self.status = done.returncode
        self.stderr = done.stderr
        self.report = json.loads(done.stdout)
        self.findings = self.report["findings"]

    def of(self, check_id):
        found = [f for f in self.findings if f["id"] == check_id]
        assert found, f"no finding {check_id}"
        return found

    def wrong(self):
        """{id: severity} of what is not ok, the worst of each."""
        order = ("unchecked", "warning", "error")
        wrong = {}
        for f in self.findings:
            if f["severity"] in order and f["id"] not in ALWAYS:
                wrong[f["id"]] = max(f["severity"], wrong.get(f["id"], f["severity"]), key=order.index)
        return wrong


class Site(namespaces.Site):
    """The two, with what runs on them."""

    def __init__(self):
        super().__init__(PREFIX, "n1", "n2")
        self.n1, self.n2 = self.namespaces
        self.key = os.path.join(self.directory, "key")
        self.config = os.path.join(self.directory, "earshot.conf")
        self.control = os.path.join(self.directory, "control")
        self.sockets, self.processes = [], []
        with self.setting_up():
            self._make()

    def log_ends(self):
        return node_logs.of_files("site", f"{self.directory}/log*", f"{self.directory}/*.log")

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self.processes:  # what libqb leaves there when it is killed
            for pattern in (f"/dev/shm/qb-corosync-{process.pid}-*", f"/dev/shm/qb-{process.pid}-*"):
                for left in glob.glob(pattern):
                    shutil.rmtree(left) if os.path.isdir(left) else os.unlink(left)
        for s in self.sockets:
            s.close()
        super().close()

    def _make(self):
        for namespace in (self.n1, self.n2):
            netns.ip("netns", "add", namespace)
        self.ip(self.n1, f"link add eth0 type veth peer name eth0 netns {self.n2}",
                f"link add eth1 type veth peer name eth1 netns {self.n2}")
        for number, namespace in enumerate((self.n1, self.n2), 1):
            self.ip(namespace, "link set lo up", "link set eth0 up", "link set eth1 up", f"addr add {VIP}/32 dev lo",
                    f"addr add 10.77.0.{number}/24 dev eth0", f"addr add 10.78.0.{number}/24 dev eth1",
                    "route add default via 10.77.0.254")
            self.sysctl({f"net.ipv4.conf.{conf}.rp_filter": 0 for conf in ("all", "eth0", "eth1", "lo")} |
                        {"net.ipv4.conf.eth0.arp_ignore": 1, "net.ipv4.conf.eth0.arp_announce": 2}, namespace)
        self.configure()
        subprocess.run([EARSHOT, "keygen", self.key], check=True)
        self.listen()

    def configure(self, cluster="", datapath="", more="", address6=None, nodes=("10.78.0.1", "10.78.0.2")):
        address = f"{VIP}, {address6}" if address6 else VIP
        with open(self.config, "w", encoding="ascii") as handle:
            handle.write(f'cluster {{ name = "site" key_file = "{self.key}" {cluster} }}\n'
                         f"datapath {{ interface = eth0 cluster_interface = eth1 {datapath} }}\n"
                         "inspector { workers = 1 }\n"
                         f"node n1 {{ address = {nodes[0]} }}\nnode n2 {{ address = {nodes[1]} }}\n"
                         f"service web {{ address = {address} port = 80  check {{ type = none }} }}\n{more}\n")  # a listener that accepts nothing

    def ip(self, namespace, *lines):
        netns.ip_batch(namespace, list(lines))

    def wait_link_local(self):
        """The interfaces' own addresses of IPv6 may be used: nobody else has them."""
        for namespace in (self.n1, self.n2):
            def shown(namespace=namespace):
                command = self.command(namespace, "ip", "-6", "-o", "addr", "show", "scope", "link")
                return subprocess.run(command, capture_output=True, text=True, check=True).stdout

            wait_for(lambda shown=shown: shown().count("fe80") >= 2 and "tentative" not in shown(), "link-local addresses", seen=shown)

    def have_ipv6(self):
        """The service has an address of IPv6, too, on both machines."""
        for number, namespace in enumerate((self.n1, self.n2), 1):
            self.sysctl({f"net.ipv6.conf.{name}.disable_ipv6": 0 for name in ("all", "default", "eth0", "eth1", "lo")}, namespace)
            self.ip(namespace, "link set eth0 down", "link set eth0 up", f"addr add {VIP6}/128 dev lo",
                    f"addr add fd00:77::{number}/64 dev eth0 nodad")
            if namespace == self.n1:
                self.ip(namespace, "route replace default via 10.77.0.254")
        self.configure(address6=VIP6)
        self.listen("::", v6only=0)
        self.wait_link_local()

    def sysctl(self, values, namespace=None):
        netns.set_sysctls(namespace or self.n1, values)

    def listen(self, address=VIP, port=80, **options):
        for s in self.sockets:
            s.close()
        self.sockets = [namespaces.listen(self.n1, address, port, **options)]

    def command(self, namespace, *arguments, user=None):
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return ["nsenter", f"--net={netns.path(namespace)}", *become, *arguments]

    def spawn(self, namespace, *arguments, log="log"):
        with open(os.path.join(self.directory, log), "ab") as handle:
            self.processes.append(subprocess.Popen(
                self.command(namespace, *arguments), stdin=subprocess.DEVNULL, stdout=handle, stderr=handle,
                preexec_fn=namespaces.die_with_test))
        return self.processes[-1]

    def text(self, name):
        with open(os.path.join(self.directory, name), encoding="utf-8", errors="replace") as handle:
            return handle.read()

    def start_daemon(self, namespace=None, config=None):
        """earshotd, on n1 if nothing else is said. With corosync it may not be a member yet."""
        control, log = (self.control, "log") if namespace in (None, self.n1) else (self.control + "2", "log2")
        daemon = self.spawn(namespace or self.n1, EARSHOTD, "--config", config or self.config,
                            "--control", control, log=log)
        wait_for(lambda: "is serving" in self.text(log) or "has started" in self.text(log) or daemon.poll() is not None,
                 "earshotd's start")
        assert daemon.poll() is None, self.text(log)
        return daemon

    def run(self, *arguments, user=None, timeout=60):
        return subprocess.run(
            self.command(self.n1, EARSHOT, "check", "--config", self.config,
                         "--control", self.control, *arguments, user=user),
            capture_output=True, text=True, timeout=timeout)

    def check(self, *arguments, user=None):
        result = Result(self.run("--json", *arguments, user=user))
        assert result.status == (1 if result.report["summary"]["error"] else 0)
        assert not result.stderr
        return result

    def expect(self, *ids):
        """Just these checks are not ok, each "id severity"; all of n1's other settings are right."""
        result = self.check()
        expected = dict(pair.split() for pair in ids)
        # Nobody to ask, or nothing to compare in a static cluster.
        for name in ("settings", "clocks") if os.path.exists(self.control) else ("daemon",):
            expected[f"members.{name}"] = "unchecked"
        wrong = result.wrong()
        assert wrong == expected, [f for f in result.findings if f["id"] in {*wrong, *expected}]
        return result
