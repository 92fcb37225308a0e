# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines as nodes of a lab (lab/): all of them, or some beside nodes that are namespaces of the host.

    lab NAME: client --- brpub, brclu in NAME-sw --- n1, n2: namespaces
                           |      |
                        n3-pub  n3-clu          tap devices, in place of the cables that led to NAME-n3
                           |      |
                         eth0   eth1            virtio-net of a QEMU machine, with the addresses that NAME-n3 had

The cables keep their names, so that `lab.cut("n3")` and partitions work. Power is the machine's: kill() it.
"""
import base64
import contextlib
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from earshotlab import Lab, LabError, corosync, daemon, families, netns, services, topology, wait_for

from .errors import VmError
from .machine import PYTHON
from .remote import Remote

__all__ = ["Lab", "LabError", "VmNode", "daemon", "nodes", "plug", "topology", "wait_for"]  # what tests take from the lab, too

LAB = os.path.dirname(os.path.dirname(os.path.abspath(daemon.__file__)))
DIRECTORY = "/run/node"  # the node's, in the machine
CONTROL = "/run/earshot/node.sock"
SERVE_S = 120  # each step towards it; on an idle host it is some seconds

# In the machine: the server's files and configuration. Prints nginx' command line.
_SERVER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from earshotlab import server
directory = sys.argv[2]
server.make_docroot(directory + "/docroot")
print(json.dumps(server.configure(directory, sys.argv[3], directory + "/docroot", directory + "/origin.sock", sys.argv[4])))
"""


def plug(lab, node):
    """Put tap devices in place of the node's cables; what ran on the node is dead. Returns Machine's `taps`."""
    if node not in lab.dead:
        lab.kill(node)
    links = lab.net.node_links(node)
    netns.ip_batch(lab.net.switch, [
        command for link in links for command in (f"link del {link.name}", f"tuntap add dev {link.name} mode tap",
                                                  f"link set {link.name} mtu 1500", *link.port_commands)])
    return [(link.name, link.mac) for link in links]


class VmNode(Remote):
    """A node of a lab that is a machine of its own. Booting takes a while: start all first, then set_up() each."""

    def __init__(self, lab, node, kernel, *, cpus=1, memory_mb=768, **options):
        super().__init__(kernel, taps=plug(lab, node), namespace=lab.net.switch, cpus=cpus, memory_mb=memory_mb,
                         name=node, **options)
        self.lab, self.node = lab, node

    def set_up(self, insmod=None):
        """Network, nginx and earshotd, as services.py does it for a namespace. Returns when the daemon serves.

        insmod: {node: [a module's file that is loaded first, …]}
        """
        family = self.lab.net.family
        sysctls = [f"{key}={value}" for key, value in {**topology.NODE_SYSCTLS, **families.sysctls(family)}.items()]
        self.exec(["sysctl", "-q", "-w", *sysctls])
        self.exec(["ip", "-batch", "-"], stdin="".join(f"{c}\n" for c in self.lab.net.machine_commands(self.node)))
        self.exec(["mkdir", "-p", DIRECTORY])
        argv = json.loads(self.exec([PYTHON, "-I", "-c", _SERVER, LAB, DIRECTORY, self.node, family], timeout=SERVE_S).stdout)
        self.spawn(argv, f"{DIRECTORY}/nginx.log")
        for file in (self.lab.config_file, os.path.join(self.lab.directory, "cluster.key")):
            with open(file, encoding="utf-8") as handle:
                self.write(file, handle.read())
        self.exec(["chmod", "600", os.path.join(self.lab.directory, "cluster.key")])
        for file in (insmod or {}).get(self.node, ()):
            self.exec(["insmod", file])
        if self.lab.options["membership"] == "corosync":
            self._set_up_corosync()
        self.spawn(daemon.command_line(self.lab.config_file, self.node, CONTROL), f"{DIRECTORY}/earshotd.log")
        wait_for(self._serves, f"earshotd of {self.node} serves", SERVE_S)

    def _set_up_corosync(self):
        """The machine's /etc is the host's, but what is written there stays in the machine's memory."""
        disk = services.node_mounts(self.lab, self.node)
        for name in ("corosync.conf", "authkey"):
            with open(disk.path(f"/etc/corosync/{name}"), "rb") as handle:
                text = base64.b64encode(handle.read()).decode()
            self.exec(["sh", "-c", 'umask 77; base64 -d >"$1"', "sh", f"/etc/corosync/{name}"], stdin=text)
        self.exec(["mkdir", "-p", "/run/corosync", "/var/lib/corosync"])
        self.spawn(corosync.command_line(), f"{DIRECTORY}/corosync.log")
        wait_for(self._is_quorate, f"corosync of {self.node} is quorate", SERVE_S)

    def _is_quorate(self):
        done = self.exec(["corosync-quorumtool", "-s"], check=False)
        if "Quorate:" not in done.stdout:
            raise ConnectionError((done.stderr or done.stdout).strip())
        return "Yes" in done.stdout.partition("Quorate:")[2].splitlines()[0]

    def _serves(self):
        log = self.exec(["cat", f"{DIRECTORY}/earshotd.log"]).stdout
        if "earshotd: error:" in log:
            raise VmError(f"earshotd of {self.node}: {log.strip()}")
        return "is serving" in log

    def ask(self, command):
        """What `earshot --json COMMAND` prints on the node."""
        return json.loads(self.exec([daemon.binary("earshot"), "--control", CONTROL, "--json", command]).stdout)

    def exec(self, argv, **options):
        """Remote.exec() with our programs in the path."""
        path = f"{daemon.BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return super().exec(argv, **{"env": {"PATH": path}, **options})

    def counters(self):
        """{name: value}"""
        return {counter["name"]: counter["value"] for counter in self.ask("counters")["counters"]}

    def log_ends(self):
        try:
            return self.exec(["sh", "-c", f"tail -n 15 {DIRECTORY}/*.log"], check=False).stdout
        except (OSError, VmError, subprocess.TimeoutExpired) as error:
            return f"{self.node}: {error}"

    def earshotd_log(self):
        return self.exec(["cat", f"{DIRECTORY}/earshotd.log"]).stdout


@contextlib.contextmanager
def nodes(lab, kernels_of, **options):
    """{node: VmNode}, booted and serving, for {node: kernel}; afterwards they are off.

    Leaving without an exception, each is turned off in an orderly way, and a kernel that complained raises VmError; so
    does a machine that ended by itself, but not one that was killed. `options` are those of set_up().
    """
    with contextlib.ExitStack() as stack:
        made = {node: stack.enter_context(VmNode(lab, node, kernel)) for node, kernel in kernels_of.items()}
        with ThreadPoolExecutor(len(made)) as pool:
            list(pool.map(lambda machine: machine.set_up(**options), made.values()))
        try:
            yield made
        except BaseException as error:
            error.add_note("\n".join(machine.log_ends() for machine in made.values() if not machine.dead))
            raise
        made = {node: machine for node, machine in made.items() if not machine.dead}
        for machine in made.values():
            machine.ask_to_end()
        troubles = [line for machine in made.values() for line in machine.wait(60).troubles]
        if troubles:
            raise VmError("\n".join(troubles))
