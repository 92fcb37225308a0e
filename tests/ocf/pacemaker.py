# SPDX-License-Identifier: GPL-2.0-or-later
"""corosync and Pacemaker for one node, beside nobody: in the network namespace of the packet suite's node, with mount
and pid namespaces of their own. When the first process there ends, everything that they started ends.

libqb's sockets are abstract, so the network namespace separates them; /run, /dev/shm and the state directories are
fresh, and there is no name server to wait for. Our agent appears among the installed ones, as ocf:earshot:earshotd.
"""
import os
import shutil
import subprocess

import node_logs
from agent import AGENT, Agent
from earshotlab import netns, wait_for
from packets.node import CLUSTER, VIP
from tree import SOURCE

RESOURCES = "/usr/lib/ocf/resource.d"
SAMPLE_CRM = os.path.join(SOURCE, "conf/pacemaker/earshot.crm")

SETUP = """
set -e
for d in /run /dev/shm /var/lib/pacemaker /var/lib/corosync /var/log /etc/corosync; do mount -t tmpfs tmpfs $d; done
mkdir -p /run/crm /run/resource-agents /run/lock /var/log/corosync /var/log/pacemaker /var/log/crmsh /var/log/nginx \\
	/var/lib/pacemaker/cib /var/lib/pacemaker/pengine /var/lib/pacemaker/cores /var/lib/pacemaker/blackbox
cp corosync.conf /etc/corosync/
mount --bind hosts /etc/hosts
cp cib.xml /var/lib/pacemaker/cib/
chmod 600 /var/lib/pacemaker/cib/cib.xml
chown -R hacluster:haclient /var/lib/pacemaker /var/log/pacemaker /run/crm
mount --bind /dev/null /etc/resolv.conf
mount --bind resource.d {resources}
corosync -f >/dev/null 2>&1 &
until corosync-cmapctl runtime.votequorum.this_node_id >/dev/null 2>&1; do sleep 0.1; done
PCMK_logfile=/var/log/pacemaker/pacemaker.log pacemakerd >/dev/null 2>&1 &
while :; do wait; sleep 0.2; done
"""

COROSYNC = """
totem {
	version: 2
	cluster_name: ocf
	transport: udpu
}
nodelist {
	node {
		name: n1
		nodeid: 1
		ring0_addr: %s
	}
}
quorum {
	provider: corosync_votequorum
}
logging {
	to_stderr: no
	to_syslog: no
	to_logfile: yes
	logfile: /var/log/corosync/corosync.log
}
"""

# Without this option the first election takes 20 seconds.
CIB = """<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" epoch="1" num_updates="0" admin_epoch="0">
<configuration><crm_config><cluster_property_set id="cib-bootstrap-options">
<nvpair id="dc-deadtime" name="dc-deadtime" value="1s"/></cluster_property_set></crm_config>
<nodes/><resources/><constraints/></configuration><status/></cib>
"""

NGINX = """
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
worker_processes 1;
events {}
http {
	access_log off;
	server { listen %s:80; location / { return 200 "served"; } }
}
"""


def resources_with_ours(directory):
    """A copy of the installed agents, and ours."""
    copy = os.path.join(directory, "resource.d")
    shutil.copytree(RESOURCES, copy, symlinks=True)
    os.makedirs(os.path.join(copy, "earshot"))
    shutil.copy(AGENT, os.path.join(copy, "earshot/earshotd"))
    return copy


class Pacemaker:
    def __init__(self, node):
        self.agent = Agent(node)  # its client, that is; the agent is called by Pacemaker
        self.node = node
        self.init = None
        self.agent.write("corosync.conf", COROSYNC % CLUSTER[0])
        self.agent.write("cib.xml", CIB)
        self.agent.write("hosts", f"127.0.0.1 localhost\n{CLUSTER[0]} n1\n")
        self.agent.write("nginx.conf", NGINX % VIP)
        resources_with_ours(self.agent.directory)
        self.agent.write("setup.sh", SETUP.format(resources=RESOURCES))
        self.process = subprocess.Popen(
            ["nsenter", f"--net={netns.path(node.namespace)}", "unshare", "--mount", "--pid", "--fork",
             "--kill-child", "--mount-proc", "sh", "setup.sh"], cwd=self.agent.directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        try:
            self.init = wait_for(self._find_init, "the namespaces")
            wait_for(lambda: "Online: [ n1 ]" in self.run("crm_mon", "-1", check=False), "the node online", 40,
                     self._shown)
        except BaseException as error:
            node_logs.log_note(self, error)
            self.close()
            raise
        node_logs.watch(self)

    def log_ends(self):
        """/var/log is a file system of theirs."""
        logs = f"/proc/{self.init}/root/var/log"
        return node_logs.of_files("the node", f"{logs}/corosync/*.log", f"{logs}/pacemaker/*.log", f"{logs}/nginx/error.log")

    def _find_init(self):
        assert self.process.poll() is None, "corosync or pacemaker: set-up failed"
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as handle:
            return handle.read().strip()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.agent.close()
        shutil.rmtree(self.agent.directory)

    def run(self, *command, check=True, **environment):
        done = subprocess.run(["nsenter", f"--target={self.init}", "--net", "--mount", "--pid", *command], text=True,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.agent.directory, **environment},
                              capture_output=True, timeout=60, check=False)
        assert not check or not done.returncode, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    def load_sample(self):
        with open(SAMPLE_CRM, encoding="utf-8") as handle:
            text = handle.read()
        ours = " ".join(f"{name}={value}" for name, value in self.agent.parameters.items())
        for old, new in (('configfile="/etc/nginx/nginx.conf"', f'configfile="{self.agent.path("nginx.conf")}"'),
                         ('config="/etc/earshot/earshot.conf"', ours)):
            assert old in text
            text = text.replace(old, new)
        self.agent.write("sample.crm", text)
        self.run("crm", "-F", "configure", "load", "update", self.agent.path("sample.crm"))

    # What runs

    def pids(self, name):
        """By the host's numbers, parents before their children. By the program: an agent's script has the same name."""
        parent = {}
        for pid in self.agent.processes():
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name:
                    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as handle:
                        parent[pid] = int(handle.read().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has ended
        return sorted(parent, key=lambda pid: parent[pid] in parent)

    def earshotd(self):
        """The daemon's process, or None."""
        return (self.pids("earshotd") or [None])[0]

    def nginx(self):
        return (self.pids("nginx") or [None])[0]

    def _shown(self):
        return self.run("crm_mon", "-1", "--failcounts", check=False)

    def idle(self):
        """Waits until Pacemaker has nothing to do, or does not know it yet."""
        wait_for(lambda: "S_IDLE" in self.run("crmadmin", "--status", "n1", check=False), "an idle Pacemaker", 60, self._shown)

    def serving(self):
        wait_for(lambda: self.earshotd() and self.nginx(), "earshotd and nginx", 30, self._shown)
        self.idle()
        return self.earshotd(), self.nginx()

    def stopped(self):
        wait_for(lambda: not self.earshotd() and not self.nginx(), "earshotd's and nginx's end", 30, self._shown)
        self.idle()

    def log(self, since=0):
        return self.run("cat", "/var/log/pacemaker/pacemaker.log", check=False)[since:]
