# SPDX-License-Identifier: GPL-2.0-or-later
"""Real corosyncs on the two machines of a site: one in each network namespace, where libqb's abstract sockets are its
own, and with a private /run and state directory, whose paths are compiled in."""
import os
import shutil
import subprocess

from earshotlab import wait_for
from tree import EARSHOT

START = """
mount --make-rprivate / && mount -t tmpfs none /run && mkdir -p /run/lock && mount -t tmpfs none /var/lib/corosync &&
mount --bind /dev/null /etc/resolv.conf && # corosync asks for its addresses' names, and here nobody answers
exec corosync -f -c "$0"
"""


def missing():
    """Why there can be no corosync here, or None."""
    return None if shutil.which("corosync", path="/usr/sbin:/usr/bin") else "corosync is not installed"


def membership():
    """`membership` of a configuration that earshot takes. With static, errors of corosync are warnings."""
    path = "/tmp/check-membership-%d.conf" % os.getpid()
    with open(path, "w", encoding="ascii") as handle:
        handle.write("cluster { membership = corosync }\ndatapath { interface = a cluster_interface = b }\n"
                     "node n1 { address = 10.78.0.1 }\nservice web { address = 10.77.0.100 port = 80 }\n")
    done = subprocess.run([EARSHOT, "check-config", path], capture_output=True)
    os.unlink(path)
    return "static" if done.returncode else "corosync"


def write(site, path, token=1000, quorum="", nodes=(1, 2), totem="", links=1):
    def node(n):
        addresses = " ".join(f"ring{link}_addr: 10.{78 - link}.0.{n}\n" for link in range(links))
        return f"node {{\nname: n{n}\nnodeid: {n}\n{addresses}\n}}\n"

    ping = "".join(f"interface {{\nlinknumber: {link}\nknet_ping_interval: 300\nknet_ping_timeout: 1500\n}}\n"
                   for link in range(links))
    with open(path, "w", encoding="ascii") as handle:
        handle.write(f"totem {{\nversion: 2\ncluster_name: site\ntransport: knet\ntoken: {token}\n"
                     f"{totem or ping}}}\n"
                     f"quorum {{\nprovider: corosync_votequorum\n{quorum}\n}}\n"
                     f"nodelist {{\n{''.join(map(node, nodes))}}}\n"
                     f"logging {{\nto_stderr: yes\nto_syslog: no\n}}\n")


def start(site, namespace, text=None, **settings):
    """corosync in a namespace of the site; returns when it serves, alone or not."""
    path = os.path.join(site.directory, f"corosync-{namespace}.conf")
    if text is None:
        write(site, path, **settings)
    else:
        with open(path, "w", encoding="ascii") as handle:
            handle.write(text)
    process = site.spawn(namespace, "unshare", "-m", "sh", "-c", START, path, log=log(namespace))

    def ready():
        assert process.poll() is None, site.text(log(namespace))
        return "ready to provide service" in site.text(log(namespace))

    wait_for(ready, "corosync's ring")
    return process


def log(namespace):
    return f"corosync-{namespace}.log"


def start_both(site, **settings):
    """Both machines' corosyncs, as members of one ring; returns them."""
    both = [start(site, namespace, **settings) for namespace in (site.n1, site.n2)]
    for namespace in (site.n1, site.n2):
        wait_for(lambda: "Members[2]: 1 2" in site.text(log(namespace)), "a ring of two")
    return both


__all__ = ["membership", "missing", "start", "start_both", "write"]
