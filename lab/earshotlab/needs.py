# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab with these options needs: programs, files, and options that go together. LabError says what is missing."""
import os
import shutil

from . import corosync, daemon, families, pacemaker, qdevice, server, services, tls
from .errors import LabError


def check(lab):
    """Is all there? The paths among the lab's options are absolute afterwards."""
    options = lab.options
    if os.geteuid():
        raise LabError("network namespaces take root")
    families.check(options["family"])
    _check_paths(options)
    if options["server"] not in ("nginx", "none"):
        raise LabError(f"server {options['server']}: nginx or none")
    _check_cluster(options)
    if options["tls"] and (options["config"] or not options["earshot"]):
        raise LabError("tls is for labs with earshotd and a generated configuration")
    if options["config"] and options["settings"]:
        raise LabError("settings go into the generated configuration: not together with a configuration file")
    unknown = set(options["node_datapath"]) - set(lab.net.nodes)
    if unknown:
        raise LabError(f"node_datapath: {', '.join(sorted(unknown))}: no such node")
    _check_programs(options)
    daemon.config_text(lab.net, "", settings=options["settings"], tls=lab.tls_sections())


def _check_paths(options):
    for key in ("config", "docroot", "agents"):
        if options[key]:
            options[key] = os.path.abspath(options[key])
            if not os.path.exists(options[key]):
                raise LabError(f"{options[key]}: no such {key}")


def _check_cluster(options):
    if options["membership"] == "corosync":
        corosync.check(options["transport"], options["corosync"])
    else:
        for option in ("pacemaker", "corosync", "agents", "device"):
            if options[option]:
                raise LabError(f"{option} needs membership corosync")
    if options["pacemaker"]:
        pacemaker.check(options["pacemaker"])
    if options["device"]:
        qdevice.check()
    for what in options["autostart"]:
        if what not in services.OPTIONAL:
            raise LabError(f"autostart {what}: {', '.join(services.OPTIONAL)}")


def _check_programs(options):
    if options["server"] == "nginx":
        server.command()
    if options["earshot"]:
        daemon.binary("earshotd")
        daemon.binary("earshot")
    if options["tls"]:
        tls.check()
    if options["wires"]:
        daemon.binary("earshot-wire")
    if options["segment"] and not shutil.which("ethtool", path="/usr/sbin:/sbin:/usr/bin"):
        raise LabError("ethtool is not installed: apt-get install ethtool")
