# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs on a node, in the order in which it starts: how each is started, and when it is ready.

    machine     the node's mounts (mounts.py); with corosync only
    corosync, qdevice, pacemaker
    nginx, earshotd, earshot-tls
"""
import contextlib
import os

from . import corosync, daemon, mounts, netns, pacemaker, probe, process, qdevice, server, tls, topology
from .errors import LabError
from .wait import wait_for

ORDER = ("machine", "corosync", qdevice.NAME, "pacemaker", "nginx", "earshotd", tls.NAME)
FOR_PEOPLE = ORDER[1:]  # what can be started, stopped and signalled by name
OPTIONAL = ("nginx", "earshotd")  # what `autostart` is about


def has(lab, what):
    """Whether the lab's nodes have it at all."""
    options = lab.options
    return {
        "machine": options["membership"] == "corosync",
        "corosync": options["membership"] == "corosync",
        qdevice.NAME: bool(options["device"]),
        "pacemaker": bool(options["pacemaker"]),
        "nginx": options["server"] == "nginx",
        "earshotd": options["earshot"],
        tls.NAME: options["tls"],
    }.get(what, False)


def automatic(lab, what):
    """Whether a node starts it by itself."""
    return has(lab, what) and (what not in OPTIONAL or what in lab.options["autostart"])


def install(lab):
    """Write the configurations of corosync and pacemaker on the nodes' disks."""
    options = lab.options
    device = qdevice.section(lab.net, options["device"]) if options["device"] else None
    text = corosync.config_text(lab.net, options["token"], options["transport"], options["corosync"], device)
    key = os.urandom(256)
    for node in lab.net.nodes:
        disk = node_mounts(lab, node)
        disk.make_disk()
        corosync.install(disk, text, key)
        if has(lab, "pacemaker"):
            pacemaker.install(disk, lab.net, options["pacemaker"])


def node_mounts(lab, node):
    return mounts.Mounts(node, lab.node_directory(node), lab.directory)


def enter(lab, machine, cwd=None):
    """The beginning of a command line on a machine: through its mounts where it has some, into its network anyway."""
    if has(lab, "machine") and machine in lab.net.nodes:
        record = lab.running_record(mounts.NAME, machine)
        if record is None:  # without them it would be among the host's files
            raise LabError(f"{machine} of lab {lab.name} has no power: heal it")
        return mounts.enter(record, cwd)
    return [netns.ip_command(), "netns", "exec", lab.net.namespace(machine)]


def start(lab, node, what):
    """Start it; returns the record of the process."""
    namespace = lab.net.namespace(node)
    directory = lab.node_directory(node)
    env = {}
    if what == "machine":
        _make_control(lab, node)
        return node_mounts(lab, node).start(namespace, lab.options["agents"])
    if what == "corosync":
        argv = corosync.command_line()
    elif what == qdevice.NAME:
        argv = qdevice.command_line()
    elif what == "pacemaker":
        argv, env = pacemaker.command_line(), {**pacemaker.daemon_environment(), **lab.node(node).environment()}
    elif what == "nginx":
        argv = server.configure(directory, node, lab.docroot, lab.origin, lab.net.family,
                                [tls.SERVER] if lab.options["tls"] else [])
    elif what == tls.NAME:
        argv = tls.command_line(lab.config_of(node), node, _control_paths(lab, node)[0])
    else:
        argv = daemon.command_line(lab.config_of(node), node, _make_control(lab, node), lab.daemons.get(node))
    return process.spawn(what, node, namespace, argv, os.path.join(directory, f"{what}.log"), env,
                         enter(lab, node, "/"))


def wait(lab, node, what):
    """Wait until it does what it is there for, or has ended."""
    namespace = lab.net.namespace(node)
    conditions = {
        "machine": ("mounts", lambda: node_mounts(lab, node).ready()),
        "corosync": ("answer", lambda: lab.node(node).corosync.status()),
        qdevice.NAME: ("answer", lambda: lab.node(node).qdevice.status()),
        "pacemaker": ("answer", lambda: lab.node(node).pacemaker.crm_mon() is not None),
        "nginx": ("answer", lambda: probe.receives(namespace, lab.net.public_address(node), topology.PORT)),
        "earshotd": ("answer", lambda: daemon.ask(namespace, {"command": "status"})),
        tls.NAME: ("listening socket", lambda: tls.is_listening(namespace, lab.net.vips)),
    }
    with lab.step(f"control socket of {node}" if what == "earshotd" else f"{what} of {node}"):
        wait_running(lab, *reversed(conditions[what]), what, node)


def wait_running(lab, condition, text, name, machine):
    """wait_for(), but not in vain for a process that has ended."""

    def checked():
        if not lab.is_running(name, machine):
            raise LabError(f"{name} of {machine} has ended")
        return condition()

    return wait_for(checked, text, lab.options["timeout"])


def form(lab, what):
    """Wait until the corosyncs are one quorate cluster on all nodes, or the pacemakers; or until all count the quorum device."""
    for node in lab.nodes:
        with lab.step(f"{what} of {node.name}"):
            if what == "corosync":
                wait_running(lab, lambda node=node: node.corosync.sees(True, lab.net.nodes), "the whole cluster", what,
                             node.name)
            elif what == qdevice.NAME:
                wait_running(lab, node.qdevice.has_vote, "the device's vote", what, node.name)
            else:
                wait_running(lab, lambda node=node: node.pacemaker.sees_online(lab.net.nodes), "all nodes online",
                             what, node.name)


def stop(lab, node, what):
    """End it in an orderly way."""
    record = lab.record(what, node)
    if what == "pacemaker":
        process.end([record], pacemaker.STOP_PATIENCE)
        process.kill(lambda: pacemaker.pids(lab.net.namespace(node)))
    else:
        process.end([record])


def crash(lab, node, what):
    """SIGKILL, with everything that is part of it; returns when it is gone."""
    process.kill_records([lab.record(what, node)])
    if what == "pacemaker":
        process.kill(lambda: pacemaker.pids(lab.net.namespace(node)))


def end_all(lab):
    """End all that the lab started, those first that stand on others."""
    if has(lab, "pacemaker"):  # its resources are sessions of their own, and it would start them again
        process.kill_namespaces([lab.net.namespace(node) for node in lab.net.nodes])
    shims = [record for record in lab.records if record["machine"] == "wire"]
    ground = [record for record in lab.records if record["name"] in ("corosync", mounts.NAME)]
    process.end([record for record in lab.records if record not in shims + ground])
    process.kill_records(ground)  # an orderly end takes corosync a second, and nobody is left to notice
    process.end(shims)


# --- control sockets


def _control_paths(lab, node):
    """(the path on the node, the file as the host sees it, the path on the host) of a daemon's control socket.

    A node with mounts of its own has /run/earshot for itself, and the host a link to there of the usual name: then it
    does not matter who starts the daemon.
    """
    outside = daemon.control_path(lab.net.namespace(node))
    if not has(lab, "machine"):
        return outside, outside, outside
    inside = daemon.control_path(node)
    return inside, node_mounts(lab, node).path(inside), outside


def _make_control(lab, node):
    """Make the way to the control socket; returns the path on the node, where nothing is then."""
    inside, target, outside = _control_paths(lab, node)
    os.makedirs(daemon.CONTROL_DIR, exist_ok=True)
    for path in {outside, target}:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    if target != outside:
        os.symlink(target, outside)
    link_control(lab, node)
    return inside


def link_control(lab, node, remove=False):
    """For the lab named "lab", `earshot --node n1` is enough."""
    if lab.name != "lab":
        return
    link = daemon.control_path(node)
    target = os.path.basename(daemon.control_path(lab.net.namespace(node)))
    if os.path.islink(link) and os.readlink(link) == target:
        if remove:
            os.unlink(link)
    elif not remove and not os.path.lexists(link):
        os.symlink(target, link)


def remove_control(lab, node):
    daemon.remove_files(lab.net.namespace(node))
    link_control(lab, node, remove=True)
