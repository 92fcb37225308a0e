# SPDX-License-Identifier: GPL-2.0-or-later
"""The sample configurations: accepted by the programs that they are for, and meaning what their comments say."""
import copy
import os
import re
import subprocess

import pytest
from lxml import etree

from earshotlab import netns
from pacemaker import RESOURCES, SAMPLE_CRM, resources_with_ours
from tree import SOURCE

SAMPLE_PCS = os.path.join(SOURCE, "conf/pacemaker/earshot.pcs.sh")
SAMPLE_COROSYNC = os.path.join(SOURCE, "conf/corosync/corosync.conf.example")
NODES = ("n1", "n2", "n3", "n4")


class Workshop:
    """A mount namespace per command, in which our agent is among the installed ones; CIBs are files."""

    def __init__(self, directory):
        self.directory = str(directory)
        resources_with_ours(self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, script, *arguments, check=True, **environment):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-ec", f"mount --bind {self.path('resource.d')} {RESOURCES}\n{script}", "sh",
             *arguments], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.directory, **environment},
            cwd=self.directory, capture_output=True, text=True, timeout=60, check=False)
        assert not check or not done.returncode, done.stdout + done.stderr
        return done.stdout + done.stderr

    def cib(self, name, form):
        """An empty CIB with one form of the sample in it."""
        self.run(f"cibadmin --empty >{name}")
        if form == "crm":
            self.run('crm configure load update "$1"', SAMPLE_CRM, CIB_file=self.path(name))
        else:
            self.run('sh "$1" "$2"', SAMPLE_PCS, self.path(name))
        return self.path(name)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module", params=["crm", "pcs"])
def cib(request, workshop):
    return workshop.cib(f"{request.param}.xml", request.param)


# Pacemaker

def test_verifies(workshop, cib):
    output = workshop.run('crm_verify -V -x "$1"', cib)
    assert not output.strip() or "Blind faith" in output, output  # what it says of every cluster without fencing
    workshop.run("crm configure verify", CIB_file=cib)


def meaning(path):
    """The configuration without ids and comments, in an order of its own."""
    root = etree.parse(path, etree.XMLParser(remove_comments=True, remove_blank_text=True)).getroot()

    def of(element):
        attributes = {k: v for k, v in element.attrib.items() if k != "id" or element.tag in ("clone", "primitive")}
        # Defaults that one of the tools writes out.
        for name in ("first-action", "then-action"):
            if attributes.get(name) == "start":
                del attributes[name]
        if attributes.get("score") in ("INFINITY", "inf"):
            attributes["score"] = "INFINITY"
        return element.tag, tuple(sorted(attributes.items())), tuple(sorted(map(of, element)))

    return of(root.find("configuration"))


def test_both_forms_mean_the_same(workshop):
    assert meaning(workshop.cib("a.xml", "crm")) == meaning(workshop.cib("b.xml", "pcs"))


def test_operations_fit_the_agent(workshop, cib):
    """Timeouts are not below those that the agents advise, and a drain fits into the stop."""
    root = etree.parse(cib)
    for primitive in root.iter("primitive"):
        path = os.path.join(RESOURCES, primitive.get("provider"), primitive.get("type"))
        output = workshop.run('OCF_ROOT=/usr/lib/ocf "$1" meta-data 2>/dev/null', path)
        advised = {(a.get("name"), a.get("depth", "0")): int(a.get("timeout").rstrip("s"))
                   for a in etree.fromstring(output.encode()).iter("action")}
        for op in primitive.iter("op"):
            level = op.find(".//nvpair[@name='OCF_CHECK_LEVEL']")
            key = (op.get("name"), level.get("value") if level is not None else "0")
            assert int(op.get("timeout").rstrip("s")) >= advised[key], (primitive.get("id"), key)
    drain = int(root.find(".//nvpair[@name='drain_timeout']").get("value"))
    stop = int(root.find(".//primitive[@id='earshotd']//op[@name='stop']").get("timeout").rstrip("s"))
    assert drain + 10 <= stop


class Simulation:
    """What Pacemaker would do. The cluster is up, everything runs; each question starts from there."""

    def __init__(self, workshop, cib):
        self.workshop = workshop
        self.up = cib.replace(".xml", "-up.xml")
        tree = etree.parse(cib)
        nodes = tree.find("configuration/nodes")
        for number, name in enumerate(NODES, 1):
            etree.SubElement(nodes, "node", id=str(number), uname=name)
        tree.write(self.up)
        workshop.run('crm_simulate -x "$1" -S -O "$1" -q 1 ' + " ".join(f"-u {name}" for name in NODES), self.up)

    def actions(self, options="", constraint=None, standby=None):
        """[(resource, action, node)] in the order of their execution, without monitors."""
        tree = etree.parse(self.up)
        if constraint is not None:
            tree.find("configuration/constraints").append(copy.deepcopy(constraint))
        tree.write(self.up + ".asked")
        if standby:
            self.workshop.run('crm_attribute --node "$1" --name standby --update on', standby,
                              CIB_file=self.up + ".asked")
        output = self.workshop.run(f'crm_simulate -x "$1" -S {options}', self.up + ".asked")
        found = re.findall(r"Resource action: +(\w+)(?::\d)? +(start|stop) on (\w+)", output)
        assert "Transition Summary" in output and "error" not in output.lower(), output
        return found


@pytest.fixture(scope="module")
def simulation(workshop, cib):
    return Simulation(workshop, cib)


def ban(resource, node):
    return etree.Element("rsc_location", id=f"ban-{resource}", rsc=resource, node=node, score="-INFINITY")


def test_nothing_to_do(simulation):
    assert not simulation.actions()


def test_standby(simulation):
    assert simulation.actions(standby="n2") == [("earshotd", "stop", "n2"), ("nginx", "stop", "n2")]


def test_start_of_a_node(simulation):
    """n2 was down: its nginx first. (-d and -u in one: it comes back with nothing running.)"""
    down = simulation.up + ".down"
    simulation.workshop.run('crm_simulate -x "$1" -S -O "$2" -d n2', simulation.up, down)
    output = simulation.workshop.run('crm_simulate -x "$1" -S -u n2', down)
    found = re.findall(r"Resource action: +(\w+)(?::\d)? +(start|stop) on (\w+)", output)
    assert found == [("nginx", "start", "n2"), ("earshotd", "start", "n2")]


def test_nginx_fails(simulation):
    """earshotd stays in the ring."""
    assert simulation.actions("-i nginx_monitor_10000@n1=7") == [("nginx", "stop", "n1"), ("nginx", "start", "n1")]


@pytest.mark.parametrize("failure", ["earshotd_monitor_5000@n1=7", "earshotd_monitor_11000@n1=1"])
def test_earshotd_fails(simulation, failure):
    """nginx, which has the open connections, stays; and so does everything on other nodes."""
    assert simulation.actions(f"-i {failure}") == [("earshotd", "stop", "n1"), ("earshotd", "start", "n1")]


def test_ban_of_earshotd(simulation):
    assert simulation.actions(constraint=ban("earshotd-clone", "n3")) == [("earshotd", "stop", "n3")]


def test_ban_of_nginx(simulation):
    assert simulation.actions(constraint=ban("nginx-clone", "n3")) == [
        ("earshotd", "stop", "n3"), ("nginx", "stop", "n3")]


def test_node_dies(simulation):
    """Nothing starts anywhere for it, and nobody waits for fencing."""
    assert not simulation.actions("-d n4")


def test_minority(simulation):
    """Nothing stops: the daemons are silent by themselves. Nothing is mended, either, until there is quorum again."""
    assert not simulation.actions("-q 0 -d n3 -d n4")


# corosync

COROSYNC_SETUP = """
for d in /run /dev/shm /var/lib/corosync /var/log /etc/corosync; do mount -t tmpfs tmpfs $d; done
mount --bind /dev/null /etc/resolv.conf
head -c 256 /dev/urandom >/etc/corosync/authkey
cp "$1" /etc/corosync/corosync.conf
"""


def with_corosync(network, config, script):
    """Runs the script where n1 of the sample could run: its address is there, and corosync's directories are empty."""
    return subprocess.run(
        ["nsenter", f"--net={netns.path(network.namespace)}", "unshare", "--mount", "--pid", "--fork", "--kill-child",
         "--mount-proc", "timeout", "30", "sh", "-ec", COROSYNC_SETUP + script, "sh", config],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, capture_output=True, text=True, timeout=40, check=False)


def uncommented(text, name):
    """The sample with its commented-out block or line `name` in force."""
    block = re.search(rf"^(\t?)#{name} {{\n(?:\1#.*\n)*?\1#}}\n|^\t?#{name}:.*\n", text, re.M)
    assert block, name
    return text.replace(block[0], re.sub(r"^(\t?)#", r"\1", block[0], flags=re.M))


@pytest.mark.parametrize("block", [None, "device", "two_node", "uidgid"])
def test_corosync_accepts(network, tmp_path, block):
    with open(SAMPLE_COROSYNC, encoding="utf-8") as handle:
        text = handle.read().replace("to_stderr: no", "to_stderr: yes")
    if block:
        text = uncommented(text, block)
    if block == "uidgid":
        text = re.sub("id: earshot", "id: daemon", text)  # a user that this machine has
    if block == "two_node":
        for number in (3, 4):
            text, count = re.subn(rf"\tnode {{\n\t\tnodeid: {number}\n(?:\t\t.*\n)*\t}}\n", "", text)
            assert count == 1
    config = tmp_path / "corosync.conf"
    config.write_text(text)
    done = with_corosync(network, config, "corosync -t\n")
    assert not done.returncode and "exiting normally" in done.stderr, done.stdout + done.stderr
    assert "error" not in done.stderr.lower()

    config.write_text(text.replace("transport: knet", "transport: nonsense"))
    assert with_corosync(network, config, "corosync -t\n").returncode  # the check can fail


def test_corosync_runs(network):
    """n1 of the sample alone: the timings are in force as they stand there, and a lone node has no quorum."""
    done = with_corosync(network, SAMPLE_COROSYNC, """
corosync -f >/dev/null 2>&1 &
until corosync-cmapctl runtime.votequorum.this_node_id >/dev/null 2>&1; do sleep 0.1; done
corosync-cmapctl
corosync-quorumtool -s || :
kill $!
""")
    assert not done.returncode, done.stdout + done.stderr
    values = dict(re.findall(r"^(\S+) \(\w+\) = (.*)$", done.stdout, re.M))
    assert values["runtime.config.totem.token"] == "1000"  # whatever the number of nodes
    assert values["runtime.config.totem.consensus"] == "1200"
    assert values["totem.interface.0.knet_ping_timeout"] == "1500"
    assert re.search(r"Expected votes: +4", done.stdout) and re.search(r"Quorate: +No", done.stdout)
