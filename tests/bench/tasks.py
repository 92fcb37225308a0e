# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of a lab's machines, without its client and its cables: of their processes, and of threads that receive for them.

On veth a packet runs all the way to the receiver in its sender's time. Two things end that: a shim in a cable (earshot-wire), which
pays for what it passes on, and an interface that receives by a kernel thread (threaded NAPI), as a network card has an interrupt. The
kernel counts in nanoseconds what each thread has run, whatever else keeps the machine busy.
"""
import contextlib
import os
import subprocess

from earshotlab import LabError, netns, process

RECEIVER = "napi/"
CLIENT = "client"


def _receivers():
    """The kernel threads that receive for interfaces."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
            if handle.read().startswith(RECEIVER):
                found.add(int(pid))
    return found


def _in(namespace, *command):
    done = subprocess.run([netns.ip_command(), "netns", "exec", namespace, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(command)} in {namespace}: {done.stderr.strip()}")
    return done.stdout


def _ends(net, link):
    """((namespace, interface) of the switch's end of a link with a shim, the same of the machine's)."""
    return (net.switch, link.name), (link.namespace, link.interface)


def _segments(net, link):
    """Let the shim pass segments on, not super-frames: that is what a cable carries, and veth takes only those to a receiver's thread."""
    for interface in link.wire_interfaces:
        _in(net.wire, "ethtool", "-K", interface, "tso", "off")


def _receive_by_thread(namespace, interface):
    """The kernel thread that receives for the interface from now on."""
    before = _receivers()
    _in(namespace, "ethtool", "-K", interface, "gro", "on")
    _in(namespace, "sh", "-c", f"echo 1 >/sys/class/net/{interface}/threaded")
    new = _receivers() - before
    if len(new) != 1:
        raise LabError(f"{interface} in {namespace}: {len(new)} new threads that receive, expected one")
    pid = new.pop()
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0))  # as urgent as what it receives for
    return pid


def _ran(pid):
    """Nanoseconds that the threads of a process have run."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as handle:
                total += int(handle.read().split()[0])
    return total


class Accounts:
    """Of one lab, whose client's cable has a shim: all that arrives from it is received by one thread, which then runs the bridge and all
    nodes' receiving of it. `proxy`: a machine whose cable to the servers has one, too; what it and they receive by that is counted apart."""

    def __init__(self, lab, proxy=None):
        self.lab = lab
        net = lab.net
        _segments(net, net.link("client"))
        self.threads = {CLIENT: _receive_by_thread(*_ends(net, net.link("client"))[0])}
        if proxy:
            link = net.link(f"{proxy}-clu")
            _segments(net, link)
            for name, end in zip(("servers", "proxy"), _ends(net, link)):
                self.threads[name] = _receive_by_thread(*end)

    def used(self):
        """Nanoseconds until now: {node: of its processes, CLIENT: of the thread that receives from the client}, and with a proxy
        {"servers": of that which receives for the servers, "proxy": for the proxy from them}."""
        return {node: sum(map(_ran, process.pids_in([self.lab.net.namespace(node)]))) for node in self.lab.net.nodes} | {
            name: _ran(pid) for name, pid in self.threads.items()}

    def heard(self, node="n1"):
        """(packets, bytes) that have arrived at a node's public interface, with their Ethernet headers."""
        interface = self.lab.net.node_links(node)[0].interface
        where = f"/sys/class/net/{interface}/statistics"
        return tuple(map(int, _in(self.lab.net.namespace(node), "cat", f"{where}/rx_packets", f"{where}/rx_bytes").split()))
