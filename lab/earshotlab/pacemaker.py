# SPDX-License-Identifier: GPL-2.0-or-later
"""A real pacemaker per node, on the node's corosync: how it is started, questions and orders to it.

There is neither systemd nor D-Bus nor fencing on a node. Its cluster information base is written before the first
start: with an empty one, the first election waits for 20 s.
"""
import os
import shutil
import signal
import xml.etree.ElementTree as ElementTree

from . import process
from .errors import LabError
from .wait import wait_for

_TOOLS = {"pacemakerd": "pacemaker", "crm_mon": "pacemaker-cli-utils", "cibadmin": "pacemaker-cli-utils"}
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
_CIB = "/var/lib/pacemaker/cib/cib.xml"
PROPERTIES = {"dc-deadtime": "1s", "stonith-enabled": "false", "start-failure-is-fatal": "false"}
_SECTIONS = ("crm_config", "nodes", "resources", "constraints", "rsc_defaults", "op_defaults", "fencing-topology", "acls",
             "tags", "alerts")
_SECTION_OF = {"cluster_property_set": "crm_config", "rsc_location": "constraints", "rsc_order": "constraints",
               "rsc_colocation": "constraints", "rsc_ticket": "constraints", "primitive": "resources",
               "clone": "resources", "group": "resources", "bundle": "resources"}
STOP_PATIENCE = 30.0  # it stops its resources first


def check(properties):
    """LabError if this machine has no pacemaker."""
    for tool, package in _TOOLS.items():
        if not shutil.which(tool, path=_PATH):
            raise LabError(f"{tool} is not installed: apt-get install {package}")
    if not isinstance(properties, (bool, dict)):
        raise LabError(f"pacemaker {properties!r}: True, or cluster properties")


def _cib_text(net, properties):
    cib = ElementTree.Element("cib", {"validate-with": "pacemaker-3.0", "admin_epoch": "0", "epoch": "1",
                                      "num_updates": "0", "crm_feature_set": "3.0.14"})
    configuration = ElementTree.SubElement(cib, "configuration")
    options = ElementTree.SubElement(ElementTree.SubElement(configuration, "crm_config"), "cluster_property_set",
                                     {"id": "cib-bootstrap-options"})
    for name, value in {**PROPERTIES, **properties}.items():
        ElementTree.SubElement(options, "nvpair", {"id": f"option-{name}", "name": name, "value": str(value)})
    nodes = ElementTree.SubElement(configuration, "nodes")
    for number, node in enumerate(net.nodes, 1):
        ElementTree.SubElement(nodes, "node", {"id": str(number), "uname": node})
    for section in ("resources", "constraints"):
        ElementTree.SubElement(configuration, section)
    ElementTree.SubElement(cib, "status")
    return ElementTree.tostring(cib, encoding="unicode")


def install(mounts, net, properties):
    """Write a node's first information base."""
    path = mounts.path(_CIB)
    directory = os.stat(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(_cib_text(net, properties if isinstance(properties, dict) else {}))
    os.chown(path, directory.st_uid, directory.st_gid)
    os.chmod(path, 0o600)


def command_line():
    return [shutil.which("pacemakerd", path=_PATH), "-f"]


def daemon_environment():
    return {"PCMK_logfacility": "none", "PCMK_logfile": "/var/log/pacemaker/pacemaker.log"}


def pids(namespace):
    """Its daemons on a node, all of them: each is a session of its own, so the first one's record is not enough."""
    found = []
    for pid in process.pids_in([namespace]):
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            continue
        if program == "pacemakerd" or program.startswith("pacemaker-"):
            found.append(pid)
    return found


class Pacemaker:
    """The pacemaker of one node."""

    def __init__(self, node):
        self.node = node

    def start(self):
        """Start it, and wait until it answers (see wait_online for more)."""
        self.node.start("pacemaker")

    def stop(self):
        """End it in an orderly way; it stops its resources on this node first."""
        self.node.stop("pacemaker")

    def kill(self):
        """SIGKILL to all its daemons; what they started runs on. Returns when they are gone."""
        self.node.lab.crash(self.node.name, "pacemaker")

    @property
    def pid(self):
        """pacemakerd's; None if it is not running."""
        return self.node.lab.pid(self.node.name, "pacemaker")

    def signal(self, daemon="pacemakerd", number=signal.SIGKILL):
        """Signal one of its daemons on this node: "pacemakerd", "pacemaker-execd", ..."""
        for pid in pids(self.node.namespace):
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == daemon:
                process.signal_pids([pid], number)

    @property
    def log(self):
        """What it reports, all daemons in one file."""
        return os.path.join(self.node.directory, "root/var/log/pacemaker/pacemaker.log")

    # --- questions

    def crm_mon(self):
        """What crm_mon knows, as an ElementTree element; OSError if pacemaker does not answer."""
        done = self.node.exec(["crm_mon", "-1", "--inactive", "--output-as=xml"], check=False, timeout=10)
        try:
            result = ElementTree.fromstring(done.stdout)
        except ElementTree.ParseError:
            result = None
        if done.returncode or result is None:
            raise ConnectionError(f"crm_mon on {self.node.name}: {(done.stderr or done.stdout).strip()}")
        return result

    def state(self):
        """{"dc": name or None, "quorate": bool, "nodes": {name: condition}, "resources": {id: {node: role}}}.

        Conditions are online, offline, standby, pending, maintenance; roles Started, Promoted, Unpromoted, or
        failed, blocked. A resource that runs nowhere has no nodes.
        """
        top = self.crm_mon()
        dc = top.find("summary/current_dc")
        resources = {}
        for resource in top.iter("resource"):
            where = resources.setdefault(resource.get("id").partition(":")[0], {})
            for node in resource.findall("node"):
                role = resource.get("role")
                for word in ("blocked", "failed"):
                    role = word if resource.get(word) == "true" else role
                where[node.get("name")] = role
        return {
            "dc": dc.get("name") if dc is not None and dc.get("present") == "true" else None,
            "quorate": dc is not None and dc.get("with_quorum") == "true",
            "nodes": {node.get("name"): _condition(node) for node in top.findall("nodes/node")},
            "resources": resources,
        }

    def wait(self, condition, what, timeout=None):
        """Wait until condition(state()) is true; returns that state."""
        seen = {}

        def asked():
            seen["state"] = self.state()
            if condition(seen["state"]):
                return seen["state"]
            raise BlockingIOError(str(seen["state"]))

        return wait_for(asked, f"pacemaker of {self.node.name}: {what}",
                        timeout or self.node.lab.options["timeout"])

    def sees_online(self, nodes):
        """True if exactly these nodes are online and a DC is elected; an OSError tells what it sees instead."""
        state = self.state()
        online = [node for node, condition in state["nodes"].items() if condition == "online"]
        if not state["dc"] or sorted(online) != sorted(nodes):
            raise BlockingIOError(f"DC {state['dc']}, {state['nodes']}")
        return True

    def wait_online(self, nodes=None, timeout=None):
        """Wait until exactly these nodes (all, by default) are online, with an elected DC."""
        nodes = self.node.lab.net.nodes if nodes is None else nodes
        wait_for(lambda: self.sees_online(nodes), f"pacemaker of {self.node.name}: {', '.join(nodes)} online",
                 timeout or self.node.lab.options["timeout"])

    def wait_resource(self, resource, nodes, role="Started", timeout=None):
        """Wait until the resource runs on exactly these nodes, and there in this role."""
        expected = {node: role for node in nodes}
        return self.wait(lambda state: state["resources"].get(resource, {}) == expected,
                         f"{resource} {role} on {', '.join(nodes) or 'no node'}", timeout)

    # --- orders

    def cibadmin(self, xml):
        """Create or change parts of the configuration: a whole section (<resources>...) or one element of it."""
        element = ElementTree.fromstring(xml)
        if element.tag in _SECTIONS:
            for child in element:
                self._put(element.tag, child)
        elif element.tag in _SECTION_OF:
            self._put(_SECTION_OF[element.tag], element)
        else:
            raise LabError(f"<{element.tag}>: {', '.join((*_SECTIONS, *_SECTION_OF))}")

    def _put(self, section, element):
        self._order(["cibadmin", "--modify", "--allow-create", "--scope", section, "--xml-text",
                     ElementTree.tostring(element, encoding="unicode")])

    def standby(self, on=True):
        """The node hosts no resources any more; standby(False) takes that back. See wait() for the effect."""
        self._order(["crm_standby", "--node", self.node.name, "--update", "on" if on else "off"])

    def property(self, name, value):
        """Set a cluster property, e.g. no-quorum-policy."""
        self._order(["crm_attribute", "--name", name, "--update", str(value)])

    def _order(self, command):
        done = self.node.exec(command, check=False)
        if done.returncode:
            raise LabError(f"{command[0]} on {self.node.name} failed", (done.stderr or done.stdout).strip())


def _condition(node):
    if node.get("online") != "true":
        return "offline"
    for condition in ("pending", "standby", "maintenance"):
        if node.get(condition) == "true":
            return condition
    return "online"
